// SPDX-License-Identifier: Apache-2.0
// Whole jobs over files of all kinds, at several parallelisms.
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <zlib.h>
#include <zstd.h>

#include "files.h"

static const uint32_t parallelisms[] = {1, 2, 4, 7};
enum { PARALLELISMS = 4 };

typedef struct row {
    int64_t number;
    leat_str name;
    const double *score; // may be missing
} row;
LEAT_RECORD(row, LEAT_FIELD(number, LEAT_I64), LEAT_FIELD(name, LEAT_STR),
            LEAT_FIELD_OPTIONAL(score, LEAT_SCALAR(LEAT_F64)));

// Sums over all records, of which a naive model knows what they must be.
typedef struct sums {
    _Atomic int64_t count, numbers, bytes, scores, missing;
} sums;

static int add_row(leat_ctx *ctx, const void *in)
{
    sums *s = leat_ctx_user_data(ctx);
    const row *r = in;
    s->count++;
    s->numbers += r->number;
    s->bytes += (int64_t)r->name.size;
    s->scores += r->score ? (int64_t)*r->score : 0;
    s->missing += !r->score;
    return 0;
}

static int add_line(leat_ctx *ctx, const void *in)
{
    sums *s = leat_ctx_user_data(ctx);
    s->count++;
    s->bytes += (int64_t)((const leat_str *)in)->size;
    return 0;
}

static leat_env *begin(uint32_t parallelism)
{
    leat_env *env;
    cr_assert_eq(leat_env_create(NULL, &env), LEAT_OK);
    leat_env_set_parallelism(env, parallelism);
    leat_env_set(env, "workers", "2");
    leat_env_set(env, "source.split-size", "4096");
    return env;
}

// Ends the job; the failure, if any, is written to `why`.
static leat_err end(leat_env *env, char *why, size_t size)
{
    leat_err err = leat_execute(env);
    snprintf(why, size, "%s", leat_env_fault_count(env) ? leat_env_fault(env, 0) : "");
    leat_env_destroy(&env);
    return err;
}

static void expect_sums(leat_env *env, sums *found, const sums *expected, const char *what)
{
    char why[800];
    cr_assert_eq(end(env, why, sizeof why), LEAT_OK, "%s: %s", what, why);
    cr_assert(found->count == expected->count && found->numbers == expected->numbers &&
                  found->bytes == expected->bytes && found->scores == expected->scores &&
                  found->missing == expected->missing,
              "%s: %d records, %d, %d, %d, %d", what, (int)found->count, (int)found->numbers,
              (int)found->bytes, (int)found->scores, (int)found->missing);
}

// Rows in a form: CSV, CSV with line breaks in its names, JSON lines.
enum { ROWS = 5000 };

static void make_rows(const char *path, int form, sums *expected)
{
    FILE *file = fopen(path, "w");
    *expected = (sums){.count = ROWS};
    if (form < 2)
        fputs("score,unused,name,number\n", file);
    for (int i = 0; i < ROWS; i++) {
        char score[20] = "";
        if (i % 3)
            snprintf(score, sizeof score, "%d.25", i % 10);
        if (form == 2)
            fprintf(file, "{\"number\":%d,\"score\":%s,\"name\":\"name %d\"}\n", i,
                    *score ? score : "null", i);
        else
            fprintf(file, form ? "%s,\"\n,\",\"na\nme %d\",%d\n" : "%s,,name %d,%d\r\n", score, i,
                    i);
        expected->numbers += i;
        expected->bytes += snprintf(NULL, 0, "name %d", i) + (form == 1);
        expected->scores += i % 3 ? i % 10 : 0;
        expected->missing += i % 3 == 0;
    }
    fclose(file);
}

Test(file_source, csv_and_json_lines_give_the_sums_of_a_model_at_any_parallelism)
{
    for (int form = 0; form < 3; form++) {
        sums expected;
        make_rows("rows", form, &expected);
        for (int i = 0; i < PARALLELISMS; i++)
            for (int cut = 0; cut < 2; cut++) {
                leat_csv_options csv = {.no_multiline = cut};
                if (cut && form != 0)
                    continue;
                sums found = {0};
                leat_env *env = begin(parallelisms[i]);
                leat_stream *rows = form < 2 ? leat_read_csv(env, "rows", LEAT_TYPE(row), &csv)
                                             : leat_read_json(env, "rows", LEAT_TYPE(row), NULL);
                leat_user_data(leat_sink(rows, add_row), &found);
                expect_sums(env, &found, &expected, form < 2 ? "csv" : "json");
            }
    }
}

Test(file_source, columns_may_have_other_names_than_fields)
{
    put_text("a.csv", "The Name;N o $;x\nabc;5;\nd;7;1.5\n");
    put_text("b.json", "{\"The Name\":\"abc\",\"N o $\":12}\n");
    leat_column columns[] = {{"name", "The Name"}, {"number", "N o $"}, {"score", "x"}};
    leat_csv_options csv = {.delimiter = ';', .columns = columns, .column_count = 3};
    leat_json_options json = {.columns = columns, .column_count = 3};
    sums found = {0}, expected = {.count = 3, .numbers = 24, .bytes = 7, .scores = 1, .missing = 2};
    leat_env *env = begin(2);
    leat_stream *rows[] = {leat_read_csv(env, "a.csv", LEAT_TYPE(row), &csv),
                           leat_read_json(env, "b.json", LEAT_TYPE(row), &json)};
    memset(columns, 0, sizeof columns); // options are copied
    leat_user_data(leat_sink(leat_union(rows, 2), add_row), &found);
    expect_sums(env, &found, &expected, "columns");
}

Test(file_source, the_count_of_lines_is_that_of_wc_at_parallelism_4)
{
    enum { SIZE = 1000000 };
    char *text = malloc(SIZE);
    uint32_t random = 11;
    sums expected = {0};
    for (size_t i = 0; i < SIZE; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = random >> 26 ? (char)('a' + (random >> 16) % 26) : '\n';
        expected.count += text[i] == '\n';
    }
    expected.count += text[SIZE - 1] != '\n';
    text[SIZE - 1] = '\n';
    expected.bytes = SIZE - expected.count;
    put_bytes("text", text, SIZE);
    free(text);
    sums found = {0};
    leat_env *env = begin(4);
    leat_user_data(leat_sink(leat_read_text(env, "text"), add_line), &found);
    expect_sums(env, &found, &expected, "lines");
}

static void put_packed(const char *path, const char *text, bool is_zstd)
{
    static char packed[1 << 20];
    size_t size = strlen(text);
    if (is_zstd) {
        size = ZSTD_compress(packed, sizeof packed, text, size, 1);
        put_bytes(path, packed, size);
        return;
    }
    gzFile file = gzopen(path, "wb");
    cr_assert(gzwrite(file, text, (unsigned)size) == (int)size && gzclose(file) == Z_OK);
}

Test(file_source, a_directory_may_hold_plain_and_compressed_files)
{
    char *lines = calloc(1, 60001);
    for (int i = 0; i < 10000; i++)
        snprintf(lines + i * 6, 7, "%05d\n", i);
    mkdir("d", 0700);
    mkdir("d/sub", 0700);
    put_text("d/plain", lines);
    put_packed("d/a.gz", lines, false);
    put_packed("d/sub/b.zst", lines, true);
    put_packed("d/_c.gz", lines, false);
    put_text("d/empty", "");
    free(lines);
    for (int i = 0; i < PARALLELISMS; i++) {
        sums found = {0}, expected = {.count = 30000, .bytes = 150000};
        leat_env *env = begin(parallelisms[i]);
        leat_user_data(leat_sink(leat_read_text(env, "d"), add_line), &found);
        expect_sums(env, &found, &expected, "directory");
    }
}

Test(file_source, compression_may_be_said_whatever_the_name)
{
    static const struct {
        const char *path;
        leat_file_compression compression;
    } cases[] = {
        {"packed", LEAT_FILE_GZIP}, {"packed2", LEAT_FILE_ZSTD}, {"x.gz", LEAT_FILE_PLAIN}};
    put_packed("packed", "one\ntwo\n", false);
    put_packed("packed2", "one\ntwo\n", true);
    put_text("x.gz", "one\ntwo\n");
    for (int i = 0; i < 3; i++) {
        sums found = {0}, expected = {.count = 2, .bytes = 6};
        leat_env *env = begin(2);
        leat_file_options options = {.paths = &cases[i].path,
                                     .path_count = 1,
                                     .format = leat_text_format(),
                                     .compression = cases[i].compression};
        leat_stream *lines = leat_read_files(env, &options, leat_type_scalar(LEAT_STR));
        leat_user_data(leat_sink(lines, add_line), &found);
        expect_sums(env, &found, &expected, cases[i].path);
    }
}

// Makes `text` the standard input, through a pipe.
static void put_stdin(const char *text, size_t size)
{
    int ends[2];
    cr_assert(pipe(ends) == 0 && dup2(ends[0], 0) == 0);
    close(ends[0]);
    cr_assert_eq(write(ends[1], text, size), (ssize_t)size);
    close(ends[1]);
}

Test(file_source, standard_input_may_be_csv_json_or_compressed)
{
    static const char *const texts[] = {
        "number,name,score\n1,a,2.5\n2,\"b\nb\",\n",
        "{\"number\":1,\"name\":\"a\",\"score\":2.5}\n{\"number\":2,\"name\":\"bbb\"}"};
    const char *path = "-";
    for (int i = 0; i < PARALLELISMS; i++) {
        for (int form = 0; form < 2; form++) {
            sums found = {0},
                 expected = {.count = 2, .numbers = 3, .bytes = 4, .scores = 2, .missing = 1};
            put_stdin(texts[form], strlen(texts[form]));
            leat_env *env = begin(parallelisms[i]);
            leat_stream *rows = form ? leat_read_json(env, path, LEAT_TYPE(row), NULL)
                                     : leat_read_csv(env, path, LEAT_TYPE(row), NULL);
            leat_user_data(leat_sink(rows, add_row), &found);
            expect_sums(env, &found, &expected, texts[form]);
        }
        char packed[200];
        sums found = {0}, expected = {.count = 1, .bytes = 8};
        put_stdin(packed, ZSTD_compress(packed, sizeof packed, "one line", 8, 1));
        leat_env *env = begin(parallelisms[i]);
        leat_file_options options = {.paths = &path,
                                     .path_count = 1,
                                     .format = leat_text_format(),
                                     .compression = LEAT_FILE_ZSTD};
        leat_stream *lines = leat_read_files(env, &options, leat_type_scalar(LEAT_STR));
        leat_user_data(leat_sink(lines, add_line), &found);
        expect_sums(env, &found, &expected, "compressed");
    }
}

// --- a format of one's own: numbers of four bytes ---

typedef struct reading {
    uint32_t sensor;
    float value;
} reading;
LEAT_RECORD(reading, LEAT_FIELD(sensor, LEAT_U32), LEAT_FIELD(value, LEAT_F32));

static bool reading_sync(void *reader, const leat_file_text *text, size_t *skip)
{
    size_t past = (size_t)(text->offset % (int64_t)sizeof(reading));
    *skip = past ? sizeof(reading) - past : 0;
    return true;
}

static leat_file_result reading_next(void *reader, const leat_file_text *text, size_t *consumed,
                                     void *record, leat_parse_error *error)
{
    if (text->size < sizeof(reading)) {
        if (!text->at_end)
            return LEAT_FILE_MORE;
        *consumed = text->size;
        snprintf(error->text, sizeof error->text, "the file ends within a reading");
        return LEAT_FILE_BAD;
    }
    memcpy(record, text->data, sizeof(reading));
    *consumed = sizeof(reading);
    return LEAT_FILE_RECORD;
}

static const leat_file_format readings = {
    .name = "readings", .sync = reading_sync, .next = reading_next};

static int add_reading(leat_ctx *ctx, const void *in)
{
    sums *s = leat_ctx_user_data(ctx);
    const reading *r = in;
    s->count++;
    s->numbers += r->sensor;
    s->scores += (int64_t)(r->value * 2);
    return 0;
}

Test(file_source, a_format_of_ones_own_is_cut_and_read_like_any)
{
    enum { COUNT = 30000 };
    reading *all = calloc(COUNT, sizeof *all);
    sums expected = {.count = COUNT};
    for (int i = 0; i < COUNT; i++) {
        all[i] = (reading){.sensor = (uint32_t)i, .value = (float)(i % 100) / 2};
        expected.numbers += i;
        expected.scores += i % 100;
    }
    put_bytes("readings", all, COUNT * sizeof *all);
    put_bytes("cut", all, 3 * sizeof *all - 1);
    free(all);
    const char *path = "readings";
    leat_file_options options = {.paths = &path, .path_count = 1, .format = &readings};
    for (int i = 0; i < PARALLELISMS; i++) {
        sums found = {0};
        leat_env *env = begin(parallelisms[i]);
        leat_user_data(leat_sink(leat_read_files(env, &options, LEAT_TYPE(reading)), add_reading),
                       &found);
        expect_sums(env, &found, &expected, "readings");
    }
    char why[800];
    path = "cut";
    leat_env *env = begin(1);
    leat_discard(leat_read_files(env, &options, LEAT_TYPE(reading)));
    cr_assert(end(env, why, sizeof why) != LEAT_OK);
    cr_assert(strstr(why, "cut, byte 16: the file ends within a reading"), "%s", why);
}

// --- what cannot be read ---

Test(file_source, what_cannot_be_read_ends_the_job_with_its_name)
{
    put_text("plain.gz", "just text\n");
    put_bytes("binary", "\x7f\x45\x4c\x46\0\1\2\3\n\xff\xff", 11);
    put_text("number", "number,name\n1,a\n2\n");
    put_text("quote", "number,name\n1,\"a\n2,b\n");
    put_text("twice", "number,name,number\n1,a,1\n");
    put_text("deep", "{\"x\":[[1");
    cr_assert(symlink("loop", "loop") == 0 && symlink("nowhere", "dangling") == 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    static const struct {
        const char *path, *why;
        int form; // text, CSV, JSON lines
    } cases[] = {
        {"missing", "cannot read missing: No such file or directory", 0},
        {"loop", "cannot read loop: Too many levels of symbolic links", 0},
        {"dangling", "cannot read dangling: No such file or directory", 1},
        {"socket", "cannot open socket: No such device or address", 0},
        {"plain.gz", "plain.gz: this is not gzip data", 0},
        {"binary", "binary, line 1, column 1: ", 1},
        {"binary", "binary, line 1, column 1: ", 2},
        {"number", "number, line 3, column ", 1},
        {"quote", "quote, line 2, column 3: ", 1},
        {"twice", "twice, line 1, column ", 1},
        {"deep", "deep, line 1, column ", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[800];
        leat_env *env = begin(2);
        leat_stream *in = cases[i].form == 0 ? leat_read_text(env, cases[i].path)
                          : cases[i].form == 1
                              ? leat_read_csv(env, cases[i].path, LEAT_TYPE(row), NULL)
                              : leat_read_json(env, cases[i].path, LEAT_TYPE(row), NULL);
        leat_discard(in);
        cr_assert(end(env, why, sizeof why) != LEAT_OK, "%s", cases[i].path);
        cr_assert(strstr(why, cases[i].why), "%s: %s", cases[i].path, why);
    }
    close(fd);
}

Test(file_source, devices_pipes_and_empty_files_are_read_to_their_end)
{
    put_text("empty", "");
    static const char *const paths[] = {"empty", "/dev/null", "/proc/self/comm"};
    static const int counts[] = {0, 0, 1};
    for (int i = 0; i < 3; i++) {
        char why[800];
        sums found = {0};
        leat_env *env = begin(3);
        leat_user_data(leat_sink(leat_read_text(env, paths[i]), add_line), &found);
        cr_assert_eq(end(env, why, sizeof why), LEAT_OK, "%s", why);
        cr_assert_eq(found.count, counts[i], "%s", paths[i]);
        if (i == 2)
            continue;
        env = begin(3);
        leat_discard(leat_read_json(env, paths[i], LEAT_TYPE(row), NULL));
        cr_assert_eq(end(env, why, sizeof why), LEAT_OK, "%s", why);
    }
}

TestSuite(file_source, .init = enter_folder, .fini = leave_folder);
