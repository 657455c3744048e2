// SPDX-License-Identifier: Apache-2.0
// Formats of the user's own, CSV and JSON lines: every split and block size gives the records that
// a plain loop finds, and bad ones are found at their true place.
#include "base/strbuf.h"
#include "files.h"

// --- a format of one's own: a magic word, then records of a fixed width ---

enum { MAGIC_SIZE = 7, WIDTH = 5 };

static leat_file_result fixed_header(void *reader, const leat_file_text *text, size_t *consumed,
                                     leat_parse_error *error)
{
    if (text->size < MAGIC_SIZE && !text->at_end)
        return LEAT_FILE_MORE;
    if (text->size < MAGIC_SIZE || memcmp(text->data, "FIXED1\n", MAGIC_SIZE) != 0) {
        error->offset = 0;
        snprintf(error->text, sizeof error->text, "this is no file of fixed records");
        return LEAT_FILE_BAD;
    }
    *consumed = MAGIC_SIZE;
    return LEAT_FILE_RECORD;
}

static bool fixed_sync(void *reader, const leat_file_text *text, size_t *skip)
{
    int64_t past = (text->offset - MAGIC_SIZE) % WIDTH;
    *skip = past == 0 ? 0 : (size_t)(WIDTH - past);
    return true;
}

static leat_file_result fixed_next(void *reader, const leat_file_text *text, size_t *consumed,
                                   void *record, leat_parse_error *error)
{
    if (text->size < WIDTH && !text->at_end)
        return LEAT_FILE_MORE;
    *consumed = text->size < WIDTH ? text->size : WIDTH;
    if (text->size >= WIDTH && text->data[0] != '!') {
        *(leat_str *)record = (leat_str){.data = text->data, .size = WIDTH};
        return LEAT_FILE_RECORD;
    }
    error->offset = 0;
    snprintf(error->text, sizeof error->text, "%s",
             text->size < WIDTH ? "the record is cut off" : "it is marked as bad");
    return LEAT_FILE_BAD;
}

static const leat_file_format fixed = {
    .name = "fixed", .header = fixed_header, .sync = fixed_sync, .next = fixed_next};

// Records that end with two bytes, so that a split may begin between them.
static bool pair_sync(void *reader, const leat_file_text *text, size_t *skip)
{
    for (size_t i = 0; i + 1 < text->size; i++)
        if (text->data[i] == '\r' && text->data[i + 1] == '\n') {
            *skip = i + 2;
            return true;
        }
    *skip = text->size > 0 ? text->size - 1 : 0;
    return false;
}

static leat_file_result pair_next(void *reader, const leat_file_text *text, size_t *consumed,
                                  void *record, leat_parse_error *error)
{
    for (size_t i = text->scanned ? text->scanned - 1 : 0; i + 1 < text->size; i++)
        if (text->data[i] == '\r' && text->data[i + 1] == '\n') {
            *(leat_str *)record = (leat_str){.data = text->data, .size = i};
            *consumed = i + 2;
            return LEAT_FILE_RECORD;
        }
    if (!text->at_end)
        return LEAT_FILE_MORE;
    *(leat_str *)record = (leat_str){.data = text->data, .size = text->size};
    *consumed = text->size;
    return LEAT_FILE_RECORD;
}

static const leat_file_format pair = {
    .name = "pair", .sync_bytes = 2, .sync = pair_sync, .next = pair_next};

static void take_text(void *user, const void *record)
{
    const leat_str *text = record;
    leati_strbuf_append(user, text->data, text->size);
    leati_strbuf_putc(user, '|');
}

// Reads a file in all ways; the records, `|` behind each, and the bad ones must come out the same.
static void expect_texts(const char *path, const leat_file_format *format, const char *records,
                         const char *bad_records)
{
    struct stat status;
    cr_assert_eq(stat(path, &status), 0);
    for (int64_t split = 1; split <= status.st_size + 1; split++)
        for (size_t block = 1; block <= 64; block = block * 2 + 1) {
            files f;
            leat_str record;
            leati_strbuf found;
            char bad[500] = "";
            leati_strbuf_init(&found, NULL);
            files_begin(&f, NULL, path, format, NULL, split, block);
            cr_assert_eq(files_read(&f, &record, take_text, &found, bad, sizeof bad), LEAT_OK, "%s",
                         f.reader.why);
            cr_assert_str_eq(leati_strbuf_text(&found), records, "split %d, block %zu", (int)split,
                             block);
            cr_assert_str_eq(bad, bad_records, "split %d, block %zu", (int)split, block);
            files_end(&f);
            leati_strbuf_fini(&found);
        }
}

Test(file_formats, records_of_a_fixed_width_are_found_from_any_byte)
{
    put_text("fixed", "FIXED1\n1aaaa2bbbb!cccc4dddd5eee");
    expect_texts("fixed", &fixed, "1aaaa|2bbbb|4dddd|",
                 "fixed, byte 17: it is marked as bad [!cccc]\n"
                 "fixed, byte 27: the record is cut off [5eee]\n");
    put_text("fixed", "FIXED1\n");
    expect_texts("fixed", &fixed, "", "");
}

Test(file_formats, a_sign_of_two_bytes_may_lie_across_the_start_of_a_split)
{
    put_text("pair", "one\r\n\rtwo\n\r\n\r\n\r\r\n\nend");
    expect_texts("pair", &pair, "one|\rtwo\n||\r|\nend|", "");
}

static leat_err read_once(const char *path, const leat_file_format *format, char *why, size_t size)
{
    files f;
    leat_str record = {.size = 0};
    leati_strbuf found;
    leati_strbuf_init(&found, NULL);
    files_begin(&f, NULL, path, format, NULL, 10, 4);
    leat_err err = files_read(&f, &record, take_text, &found, NULL, 0);
    snprintf(why, size, "%s", err ? f.reader.why : "");
    files_end(&f);
    leati_strbuf_fini(&found);
    return err;
}

Test(file_formats, a_wrong_header_fails_and_is_named)
{
    char why[800];
    put_text("fixed", "FIXED2\n12345");
    cr_assert_eq(read_once("fixed", &fixed, why, sizeof why), LEAT_ECORRUPT);
    cr_assert_str_eq(why, "fixed, byte 0: this is no file of fixed records");
    put_text("fixed", "FIX");
    cr_assert_eq(read_once("fixed", &fixed, why, sizeof why), LEAT_ECORRUPT);
}

// --- formats that break their promises ---

static leat_file_result wrong_result;
static size_t wrong_consumed;
static const char *wrong_reason;

static leat_file_result wrong_next(void *reader, const leat_file_text *text, size_t *consumed,
                                   void *record, leat_parse_error *error)
{
    if (wrong_result == LEAT_FILE_MORE && !text->at_end)
        return LEAT_FILE_MORE;
    if (wrong_reason)
        snprintf(error->text, sizeof error->text, "%s", wrong_reason);
    *consumed = wrong_consumed == SIZE_MAX ? text->size + 1 : wrong_consumed;
    return wrong_result;
}

static leat_file_result wrong_header(void *reader, const leat_file_text *text, size_t *consumed,
                                     leat_parse_error *error)
{
    *consumed = text->size + 1;
    return LEAT_FILE_RECORD;
}

static bool wrong_sync(void *reader, const leat_file_text *text, size_t *skip)
{
    *skip = text->size + 1;
    return false;
}

Test(file_formats, nonsense_from_a_format_is_an_error_that_names_it)
{
    static const struct {
        leat_file_result result;
        size_t consumed;
        leat_err err;
        const char *why;
    } cases[] = {
        {LEAT_FILE_RECORD, 0, LEAT_EINVAL,
         "file: at byte 0: the format \"wrong\" answers nonsense"},
        {LEAT_FILE_RECORD, SIZE_MAX, LEAT_EINVAL, "the format \"wrong\" answers nonsense"},
        {LEAT_FILE_NONE, 0, LEAT_EINVAL, "the format \"wrong\" answers nonsense"},
        {LEAT_FILE_BAD, 0, LEAT_EINVAL, "the format \"wrong\" answers nonsense"},
        {LEAT_FILE_BAD, SIZE_MAX, LEAT_EINVAL, "the format \"wrong\" answers nonsense"},
        {LEAT_FILE_MORE, 0, LEAT_EINVAL, "the format \"wrong\" answers nonsense"},
        {(leat_file_result)77, 1, LEAT_EINVAL, "the format \"wrong\" answers nonsense"},
        {LEAT_FILE_FAIL, 0, LEAT_ENOMEM, "file: at byte 0: reason"},
    };
    char why[800];
    put_text("file", "some bytes, more than one split");
    wrong_reason = "reason";
    leat_file_format wrong = {.name = "wrong", .next = wrong_next};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wrong_result = cases[i].result;
        wrong_consumed = cases[i].consumed;
        cr_assert_eq(read_once("file", &wrong, why, sizeof why), cases[i].err, "case %zu", i);
        cr_assert(strstr(why, cases[i].why), "case %zu: %s", i, why);
    }
    wrong.header = wrong_header;
    cr_assert_eq(read_once("file", &wrong, why, sizeof why), LEAT_EINVAL);
    cr_assert_str_eq(why, "file: reading the header: the format answers nonsense");
    wrong.header = NULL;
    wrong.sync = wrong_sync;
    wrong_result = LEAT_FILE_RECORD;
    wrong_consumed = 1;
    cr_assert_eq(read_once("file", &wrong, why, sizeof why), LEAT_EINVAL);
    cr_assert_str_eq(why, "file: the format skips more than there is");
}

static leat_file_result silent_header(void *reader, const leat_file_text *text, size_t *consumed,
                                      leat_parse_error *error)
{
    return LEAT_FILE_BAD;
}

static leat_err silent_check(const leat_file_format *format, const leat_type *type,
                             leat_parse_error *error)
{
    return LEAT_ETYPE;
}

Test(file_formats, what_a_format_leaves_unsaid_is_said_for_it)
{
    char why[800];
    leat_file_format silent = {.name = "silent", .next = wrong_next};
    put_text("file", "text");
    wrong_reason = NULL;
    wrong_result = LEAT_FILE_FAIL;
    cr_assert_eq(read_once("file", &silent, why, sizeof why), LEAT_ENOMEM);
    cr_assert_str_eq(why,
                     "file: at byte 0: the format \"silent\" cannot go on, and does not say why");
    silent.header = silent_header;
    cr_assert_eq(read_once("file", &silent, why, sizeof why), LEAT_ECORRUPT);
    cr_assert_str_eq(
        why, "file, byte 0: the format \"silent\" finds no header here, and does not say why");
    silent.header = NULL;
    wrong_result = LEAT_FILE_BAD;
    wrong_consumed = 4;
    for (int i = 0; i < 2; i++) {
        const char *path = "file";
        leat_env *env;
        leat_file_options options = {.paths = &path, .path_count = 1, .format = &silent};
        silent.check = i ? silent_check : NULL;
        cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
        leat_discard(leat_read_files(env, &options, leat_type_scalar(LEAT_STR)));
        cr_assert(leat_execute(env) != LEAT_OK);
        cr_assert(strstr(leat_env_fault(env, 0),
                         i ? "the format \"silent\": it cannot have records of this type"
                           : "file, byte 0: the format \"silent\" finds no record here, and does "
                             "not say why"),
                  "%s", leat_env_fault(env, 0));
        leat_env_destroy(&env);
    }
}

// --- CSV and JSON lines ---

typedef struct pair_of {
    leat_str name;
    int64_t number;
} pair_of;
LEAT_RECORD(pair_of, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(number, LEAT_I64));

static int take_into(leat_ctx *ctx, const void *in)
{
    const pair_of *p = in;
    leati_strbuf *found = leat_ctx_user_data(ctx);
    leati_strbuf_printf(found, "%.*s=%d|", (int)p->name.size, p->name.data, (int)p->number);
    return 0;
}

typedef struct seen_unclosed {
    int count;
    char why[700];
} seen_unclosed;

static int count_pair(leat_ctx *ctx, const void *in)
{
    seen_unclosed *seen = leat_ctx_user_data(ctx);
    seen->count++;
    return 0;
}

// Runs a job of parallelism 1 over one file; the failure, if any, is written to `why`.
static leat_err run(const char *path, bool is_csv, const leat_csv_options *csv, leati_strbuf *found,
                    char *why, size_t size)
{
    leat_env *env;
    cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
    leat_stream *read = is_csv ? leat_read_csv(env, path, LEAT_TYPE(pair_of), csv)
                               : leat_read_json(env, path, LEAT_TYPE(pair_of), NULL);
    leat_user_data(leat_sink(read, take_into), found);
    leat_err err = leat_execute(env);
    snprintf(why, size, "%s", err && leat_env_fault_count(env) ? leat_env_fault(env, 0) : "");
    leat_env_destroy(&env);
    return err;
}

static void expect(const char *what, bool is_csv, const leat_csv_options *csv, const void *data,
                   size_t size, const char *records, const char *failure)
{
    char why[700];
    leati_strbuf found;
    leati_strbuf_init(&found, NULL);
    put_bytes("data", data, size);
    leat_err err = run("data", is_csv, csv, &found, why, sizeof why);
    cr_assert_eq(err != LEAT_OK, failure != NULL, "%s: %s", what, why);
    cr_assert(!failure || strstr(why, failure), "%s: %s", what, why);
    cr_assert_str_eq(leati_strbuf_text(&found), records, "%s", what);
    leati_strbuf_fini(&found);
}

#define CSV(text, ...)  expect(text, true, NULL, text, sizeof(text) - 1, __VA_ARGS__)
#define JSON(text, ...) expect(text, false, NULL, text, sizeof(text) - 1, __VA_ARGS__)

Test(file_formats, csv_files_of_all_kinds_are_read_or_refused_with_their_place)
{
    CSV("number,name\n1,one\n2,\"t\nwo\"\r\n", "one=1|t\nwo=2|", NULL);
    CSV("\xef\xbb\xbfnumber,name\n1,one", "one=1|", NULL);
    CSV("", "", NULL);
    CSV("number,name\n", "", NULL);
    CSV("name,number\n\na,1\n\n", "a=1|", NULL);
    CSV("name,number\na,1\nb,x\nc,3\n", "a=1|", "data, line 3, column 3: ");
    CSV("name,number\n\"a\nb\",1\n\xc3\xa4\xc3\xb6,x\n", "a\nb=1|", "data, line 4, column 4: ");
    CSV("\xef\xbb\xbfname,other\na,1\n", "", "data, line 1, column ");
    CSV("\xff\xfen\0a\0", "", "data: ");
    CSV("\xfe\xff\0n\0a", "", "data: ");
    CSV("name,number\na\0b,1\n", "a=1|", NULL); // "%.*s" ends at the NUL that the name holds
    CSV("name,number\na,1\r\"b", "", "data, line 2, column ");
}

Test(file_formats, json_lines_of_all_kinds_are_read_or_refused_with_their_place)
{
    JSON("{\"name\":\"one\",\"number\":1}\r\n\n  \n{\"number\":2,\"name\":\"two\"}", "one=1|two=2|",
         NULL);
    JSON("\xef\xbb\xbf{\"name\":\"one\",\"number\":1}\n", "one=1|", NULL);
    JSON("", "", NULL);
    JSON("\n", "", NULL);
    JSON("{\"name\":\"one\",\"number\":1}\n{\"name\":\"\xc3\xa4\",\"number\":\"x\"}\n", "one=1|",
         "data, line 2, column 22: ");
    JSON("{\"name\":\"one\",\n\"number\":1}\n", "", "data, line 1, column ");
    JSON("\xff\xfe{\0", "", "data: ");
    JSON("{\"name\":\"one\",\"number\":1}{}\n", "", "data, line 1, column ");
    JSON("\0\n", "", "data, line 1, column 1: ");
    JSON("{\n  \"name\": \"one\",\n  \"number\": 1\n}\n", "",
         "data, line 1, column 2: the text ends where the name of a member is expected; each line "
         "must hold one "
         "whole object");
    JSON(
        "[{\"name\":\"one\",\"number\":1}]\n", "",
        "data, line 1, column 1: a list where an object is expected; each line must hold one whole "
        "object, without a list around them");
}

// Three megabytes behind a quote that is not closed, where records may have one.
static leat_err read_unclosed(const char *start, bool skip, seen_unclosed *seen)
{
    leati_strbuf file;
    leat_env *env;
    leati_strbuf_init(&file, NULL);
    leati_strbuf_puts(&file, start);
    for (int i = 0; i < 300000; i++)
        leati_strbuf_puts(&file, "n,1000000\n");
    put_bytes("unclosed", file.data, file.size);
    leati_strbuf_fini(&file);
    seen->count = 0;
    cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
    leat_env_set(env, "source.record-max-size", "1 MiB");
    leat_stream *read = leat_read_csv(env, "unclosed", LEAT_TYPE(pair_of), NULL);
    leat_on_error(read, skip ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_FAIL);
    leat_user_data(leat_sink(read, count_pair), seen);
    leat_err err = leat_execute(env);
    snprintf(seen->why, sizeof seen->why, "%s", err ? leat_env_fault(env, 0) : "");
    leat_env_destroy(&env);
    return err;
}

Test(file_formats, a_quote_that_is_not_closed_within_the_longest_record_costs_its_line)
{
    seen_unclosed seen;
    cr_assert_eq(read_unclosed("name,number\na,1\nb,\"2\nc,3\n", true, &seen), LEAT_OK, "%s",
                 seen.why);
    cr_assert_eq(seen.count, 300002);
    cr_assert(read_unclosed("name,number\na,1\nb,\"2\nc,3\n", false, &seen) != LEAT_OK);
    cr_assert(strstr(seen.why,
                     "unclosed, line 3, column 3: the quote that opens here is not closed "
                     "within 1 MiB, the source.record-max-size; if no value holds line "
                     "breaks, the option no_multiline "),
              "%s", seen.why);
    // Several of them: the next quote ends the value that the first has begun.
    cr_assert_eq(read_unclosed("name,number\n\"a,1\nb,2\nc,\"3\nd,4\n\"e,5\n", true, &seen),
                 LEAT_OK, "%s", seen.why);
    cr_assert_eq(seen.count, 300001);
    // The header's is nothing that could be skipped.
    cr_assert(read_unclosed("name,\"number\n", true, &seen) != LEAT_OK);
    cr_assert(strstr(seen.why,
                     "unclosed, line 1, column 6: the quote that opens here is not closed "
                     "within 1 MiB"),
              "%s", seen.why);
}

// --- bad lines in files of many splits ---

enum { LINES = 20000 };

typedef struct reject {
    leat_str error, record;
} reject;
LEAT_RECORD(reject, LEAT_FIELD(error, LEAT_STR), LEAT_FIELD(record, LEAT_STR));

// What the sinks have seen; each runs in one subtask.
typedef struct seen {
    uint8_t good[LINES + 1], bad[LINES + 1];
    bool is_csv;
} seen;

static int see_good(leat_ctx *ctx, const void *in)
{
    seen *s = leat_ctx_user_data(ctx);
    int64_t number = ((const pair_of *)in)->number;
    if (number < 1 || number > LINES)
        return leat_fail(ctx, "%d", (int)number);
    s->good[number]++;
    return 0;
}

static int see_bad(leat_ctx *ctx, const void *in)
{
    seen *s = leat_ctx_user_data(ctx);
    const reject *r = in;
    int line = 0, column = 0, number = 0;
    char text[600], raw[100];
    snprintf(text, sizeof text, "%.*s", (int)r->error.size, r->error.data);
    snprintf(raw, sizeof raw, "%.*s", (int)r->record.size, r->record.data);
    if (sscanf(text, "lines, line %d, column %d: ", &line, &column) != 2 ||
        column != (s->is_csv ? 1 : 11))
        return leat_fail(ctx, "%s", text);
    if (sscanf(raw, s->is_csv ? "?%d,n" : "{\"number\":?%d,", &number) != 1 ||
        number != line - s->is_csv || strchr(raw, '\n') || strchr(raw, '\r'))
        return leat_fail(ctx, "%s: %s", text, raw);
    s->bad[number]++;
    return 0;
}

// Every seventh line is bad.
static void make_lines(const char *path, bool is_csv)
{
    leati_strbuf file;
    leati_strbuf_init(&file, NULL);
    if (is_csv)
        leati_strbuf_puts(&file, "number,name\r\n");
    for (int i = 1; i <= LINES; i++)
        leati_strbuf_printf(&file, is_csv ? "%s%d,n%d\r\n" : "{\"number\":%s%d,\"name\":\"n%d\"}\n",
                            i % 7 ? "" : "?", i, i);
    put_bytes(path, file.data, file.size);
    leati_strbuf_fini(&file);
}

Test(file_formats, lines_of_bad_records_are_counted_from_the_start_of_the_file_in_any_split)
{
    static const uint32_t parallelisms[] = {1, 2, 4, 7};
    for (int form = 0; form < 3; form++) {
        make_lines("lines", form < 2);
        for (int i = 0; i < 4; i++) {
            static seen s;
            s = (seen){.is_csv = form < 2};
            leat_env *env;
            cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
            leat_env_set_parallelism(env, parallelisms[i]);
            leat_env_set(env, "source.split-size", "4096");
            // In one piece, then in many.
            leat_csv_options options = {.no_multiline = form == 1};
            leat_stream *read = s.is_csv ? leat_read_csv(env, "lines", LEAT_TYPE(pair_of), &options)
                                         : leat_read_json(env, "lines", LEAT_TYPE(pair_of), NULL);
            leat_user_data(leat_parallelism(leat_sink(leat_rejects(read), see_bad), 1), &s);
            leat_user_data(leat_parallelism(leat_sink(read, see_good), 1), &s);
            cr_assert_eq(leat_execute(env), LEAT_OK, "%s",
                         leat_env_fault_count(env) ? leat_env_fault(env, 0) : "");
            leat_env_destroy(&env);
            for (int n = 1; n <= LINES; n++)
                cr_assert(s.good[n] == (n % 7 != 0) && s.bad[n] == (n % 7 == 0), "form %d, line %d",
                          form, n);
        }
    }
}

Test(file_formats, bad_records_are_skipped_where_that_is_asked_for)
{
    static seen s;
    leat_env *env;
    make_lines("lines", false);
    cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
    leat_stream *read = leat_read_json(env, "lines", LEAT_TYPE(pair_of), NULL);
    leat_on_error(read, LEAT_ON_ERROR_SKIP);
    leat_user_data(leat_parallelism(leat_sink(read, see_good), 1), &s);
    cr_assert_eq(leat_execute(env), LEAT_OK);
    leat_env_destroy(&env);
    for (int n = 1; n <= LINES; n++)
        cr_assert_eq(s.good[n], n % 7 != 0);
}

Test(file_formats, what_cannot_be_built_is_a_fault_that_says_why)
{
    static const leat_file_format nameless = {.next = fixed_next};
    static const leat_column unknown[] = {{"nothing", "x"}};
    const char *paths[] = {"-", ""};
    const char *path = "x";
    leat_file_options cases[] = {
        {.paths = NULL, .path_count = 1, .format = &fixed},
        {.paths = &path, .path_count = 0, .format = &fixed},
        {.paths = paths, .path_count = 2, .format = &fixed},
        {.paths = paths, .path_count = 1, .format = &fixed, .watch_interval_ms = 5},
        {.paths = &path, .path_count = 1},
        {.paths = &path, .path_count = 1, .format = &nameless},
        {.paths = &path, .path_count = 1, .format = &fixed, .watch_interval_ms = -1},
        {.paths = &path, .path_count = 1, .format = &fixed, .compression = 9},
        {.paths = &path, .path_count = 1, .format = leat_text_format()}, // of another type
    };
    static const char *const words[] = {
        "no paths", "no paths", "a path is empty",          "cannot be watched", "no format",
        "no name",  "interval", "compression is not known", "of the type str"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_env *env;
        cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
        cr_assert(leat_read_files(env, &cases[i], LEAT_TYPE(pair_of)) != NULL);
        cr_assert_eq(leat_env_fault_count(env), 1);
        cr_assert(strstr(leat_env_fault(env, 0), words[i]), "%s", leat_env_fault(env, 0));
        leat_env_destroy(&env);
    }
    leat_env *env;
    cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
    leat_csv_options csv = {.columns = unknown, .column_count = 1};
    leat_json_options json = {.columns = unknown, .column_count = 1};
    leat_read_csv(env, "x", LEAT_TYPE(pair_of), &csv);
    leat_read_json(env, "x", LEAT_TYPE(pair_of), &json);
    leat_read_csv(env, "x", leat_type_scalar(LEAT_STR), NULL);
    cr_assert_eq(leat_env_fault_count(env), 3);
    for (size_t i = 0; i < 2; i++)
        cr_assert(strstr(leat_env_fault(env, i), "nothing"), "%s", leat_env_fault(env, i));
    leat_env_destroy(&env);
    cr_assert(leat_read_files(NULL, NULL, NULL) != NULL && leat_read_csv(NULL, "x", NULL, NULL));
}

TestSuite(file_formats, .init = enter_folder, .fini = leave_folder);
