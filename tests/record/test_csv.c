// SPDX-License-Identifier: Apache-2.0
// CSV into typed records and back.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "leat/csv.h"
#include "samples.h"

typedef struct visitor {
    int64_t id;
    leat_str name;
    const double *score;
    bool active;
} visitor;
LEAT_RECORD(visitor, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR),
            LEAT_FIELD_OPTIONAL(score, LEAT_SCALAR(LEAT_F64)), LEAT_FIELD(active, LEAT_BOOL));

// --- a reader that fills its buffer as a source does ---------------------------------------------

typedef struct file {
    const char *text;
    size_t size, at; // `at`: of the next record
    size_t step;     // bytes that a refill brings; 0: all at once
    size_t have;     // bytes behind `at` that have been brought
    size_t refills;  // since the last record
    leat_csv *csv;
    leat_scratch *scratch;
    char *block; // what the last call was given, of exactly its size
    leat_parse_error error;
    size_t offset; // of the last call
} file;

static file open_with(const leat_type *type, const leat_csv_options *options, leat_str text,
                      size_t step)
{
    file f = {.text = text.data, .size = text.size, .step = step};
    leat_err err = leat_csv_create(NULL, type, options, &f.csv, &f.error);
    cr_assert(err == LEAT_OK, "%s", f.error.text);
    cr_assert(leat_scratch_create(NULL, &f.scratch) == LEAT_OK);
    return f;
}

static void close_file(file *f)
{
    leat_csv_destroy(&f->csv);
    leat_scratch_destroy(&f->scratch);
    free(f->block);
}

// One call, or as many as there are refills; the header when `record` is NULL.
static leat_csv_result next(file *f, void *record)
{
    for (f->refills = 0;; f->refills++) {
        size_t left = f->size - f->at, consumed;
        if (f->step == 0 || f->have > left)
            f->have = left;
        bool at_end = f->have == left && f->refills > 0;
        free(f->block);
        f->block = malloc(f->have ? f->have : 1);
        memcpy(f->block, f->text + f->at, f->have);
        leat_scratch_reset(f->scratch);
        leat_csv_result result =
            record ? leat_csv_next(f->csv, f->block, f->have, at_end, &consumed, record, f->scratch,
                                   &f->error)
                   : leat_csv_header(f->csv, f->block, f->have, at_end, &consumed, &f->error);
        if (result != LEAT_CSV_MORE) {
            f->offset = f->at;
            f->at += consumed;
            f->have -= consumed;
            return result;
        }
        cr_assert(consumed == 0 && !at_end, "more was wanted at the end");
        f->have += f->step;
    }
}

// Appends what a file gives, a line for each result, to a text that can be compared.
static void tell(file *f, char *told, size_t room)
{
    const leat_type *type = LEAT_TYPE(visitor);
    size_t length = strlen(told);
    for (;;) {
        visitor v;
        memset(&v, 0xa5, sizeof v);
        leat_csv_result result = next(f, &v);
        if (result == LEAT_CSV_NONE && f->at == f->offset)
            break;
        if (result == LEAT_CSV_RECORD)
            length += leat_record_json(type, &v, told + length, room - length);
        else if (result == LEAT_CSV_BAD)
            length += (size_t)snprintf(told + length, room - length, "%zu: %s",
                                       f->offset + f->error.offset, f->error.text);
        else
            length += (size_t)snprintf(told + length, room - length, "blank");
        told[length++] = '\n';
        told[length] = '\0';
    }
}

// Reads the text in pieces of every size, and compares what it gives.
static void expect(const leat_csv_options *options, leat_str text, const char *expected)
{
    for (size_t step = 0; step <= text.size + 1; step++) {
        char told[4096] = "";
        file f = open_with(LEAT_TYPE(visitor), options, text, step);
        leat_csv_result result = next(&f, NULL);
        if (result == LEAT_CSV_BAD)
            snprintf(told, sizeof told, "%zu: %s\n", f.error.offset, f.error.text);
        else if (result == LEAT_CSV_RECORD)
            tell(&f, told, sizeof told);
        cr_assert(strcmp(told, expected) == 0, "%.*s in pieces of %zu gave\n%snot\n%s",
                  (int)text.size, text.data, step, told, expected);
        close_file(&f);
    }
}

static leat_str str_of(const char *text)
{
    return (leat_str){text, strlen(text)};
}

#define ADA "{\"id\":1,\"name\":\"Ada\",\"score\":2.5,\"active\":true}\n"
#define BEN "{\"id\":2,\"name\":\"Ben\",\"score\":null,\"active\":false}\n"

// --- records -------------------------------------------------------------------------------------

Test(csv, line_ends_headers_and_marks_are_those_of_the_file)
{
    static const char *const texts[] = {
        "id,name,score,active\n1,Ada,2.5,true\n2,Ben,,false\n",
        "id,name,score,active\n1,Ada,2.5,true\n2,Ben,,false",
        "id,name,score,active\r\n1,Ada,2.5,true\r\n2,Ben,,false\r\n",
        "\n\r\nid,name,score,active\r\n1,Ada,2.5,true\n2,Ben,,false",
        "\xef\xbb\xbfid,name,score,active\n1,Ada,2.5,true\n2,Ben,,false\n",
        "active,x,score,y,name,id\ntrue,,2.5,3,Ada,1\nfalse,\"a\nb\",,,Ben,2\n",
        "\"id\",\"name\",\"score\",\"active\"\n\"1\",\"Ada\",\"2.5\",\"true\"\n2,\"Ben\",,\"0\"\n",
        "id,name,score,active\n 1 ,Ada,+2.50,TRUE\n002,Ben, ,0\n",
        "id,name,score,active\n1.0,Ada,25e-1,1\n2e0,Ben,,False\n",
        "name,x\ny,\"\"\"id\",id,score,active\nAda,,,1,2.5,1\n",
    };
    for (size_t i = 0; i + 1 < sizeof texts / sizeof *texts; i++)
        expect(NULL, str_of(texts[i]), ADA BEN);
    expect(NULL,
           str_of("\xef\xbb\xbf\"name\",\"x\ny\",\"\"\"id\",id,score,active\nAda,,,1,2.5,1\n"),
           ADA);
    expect(NULL, str_of("id,name,score,active\n\n1,Ada,2.5,true\n\r\n"), "blank\n" ADA "blank\n");
    expect(NULL, str_of("id,name,score,active\n"), "");
    expect(NULL, str_of("id,name,score,active"), "");
    expect(NULL, str_of(""), "");
    expect(NULL, str_of("\n\r\n"), "");
}

Test(csv, quotes_hold_together_what_belongs_together)
{
#define NAMED(name) "{\"id\":1,\"name\":\"" name "\",\"score\":null,\"active\":true}\n"
    static const char *const rows[][2] = {
        {"\"a,b\"", NAMED("a,b")},
        {"\"a\nb\"", NAMED("a\\nb")},
        {"\"a\r\nb\"", NAMED("a\\r\\nb")},
        {"\"\"", NAMED("")},
        {"\"\"\"\"", NAMED("\\\"")},
        {"\"\"\"a\"\"b\"\"\"", NAMED("\\\"a\\\"b\\\"")},
        {"a\"b", NAMED("a\\\"b")},
        {"a\"\"b", NAMED("a\\\"\\\"b")},
        {" \"a\"", NAMED(" \\\"a\\\"")},
        {"a\rb", NAMED("a\\rb")},
        {"  a  ", NAMED("  a  ")},
        {"\\N", NAMED("\\\\N")},
        {"\"0123456789abcdef0123456789,\n\"\"0123456789abcdef\"",
         NAMED("0123456789abcdef0123456789,\\n\\\"0123456789abcdef")},
        {"0123456789abcdef0123456789abcdef", NAMED("0123456789abcdef0123456789abcdef")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "name,active,id\n%s,true,1\n", rows[i][0]);
        expect(NULL, str_of(text), rows[i][1]);
        snprintf(text, sizeof text, "active,id,name\r\n1,1,%s\r\n", rows[i][0]);
        expect(NULL, str_of(text), rows[i][1]);
        snprintf(text, sizeof text, "active,id,name\n1,1,%s", rows[i][0]);
        expect(NULL, str_of(text), rows[i][1]);
    }
    // NUL bytes are data.
    expect(NULL, (leat_str){"name,active,id\na\0b,1,1\n", 23}, NAMED("a\\u0000b"));
}

Test(csv, options_change_the_marks)
{
    leat_csv_options tabs = {.delimiter = '\t', .quote = '\''};
    expect(&tabs, str_of("id\tname\tscore\tactive\n1\t'Ada'\t2.5\t1\n2\tBen\t\t0\n"), ADA BEN);
    leat_csv_options semicolons = {.delimiter = ';', .missing = "NA"};
    expect(&semicolons, str_of("id;name;score;active\n1;Ada;2.5;1\n2;Ben; NA ;0\n"), ADA BEN);
    expect(&semicolons, str_of("id;name;score;active\n1;NA;;1\n1;\"NA\";;1\n"),
           NAMED("") NAMED("NA"));
    expect(&semicolons, str_of("id;name;score;active\n1;;\"NA\";1\n"),
           "24: field score: \"NA\" is no f64\n");
    // A delimiter that could be part of a number ends it all the same.
    leat_csv_options dots = {.delimiter = '.', .no_header = true};
    expect(&dots, str_of("2.Ben..0\n"), BEN);
    leat_csv_options minus = {.delimiter = '-', .no_header = true};
    expect(&minus, str_of("2-Ben--0\n"), BEN);
    leat_csv_options none = {.no_header = true};
    expect(&none, str_of("1,Ada,2.5,true\n2,Ben,,false\n"), ADA BEN);
    expect(&none,
           str_of("\xef\xbb\xbf"
                  "1,Ada,2.5,true\n"),
           ADA);
    static const leat_column columns[] = {{"id", "No. #"}, {"name", "id"}};
    leat_csv_options renamed = {.columns = columns, .column_count = 2};
    expect(&renamed, str_of("id,No. #,name,active,score\nAda,1,x,1,2.5\n"), ADA);
    // Fields that are optional need no column.
    expect(NULL, str_of("name,active,id\nBen,0,2\n"), BEN);
}

Test(csv, counts_that_differ_are_refused_unless_allowed)
{
#define HEADER "id,name,score,active\n"
    expect(NULL, str_of(HEADER "1,Ada\n1,Ada,2.5,true,,\n1,Ada,2.5,true\nx\n"),
           "26: 2 values where there are 4 columns\n"
           "42: 6 values where there are 4 columns\n" ADA
           "60: 1 value where there are 4 columns\n");
    leat_csv_options extra = {.ignore_extra = true};
    expect(&extra, str_of(HEADER "1,Ada,2.5,true,,\n1,Ada,2.5,true,\"\nx\"\n"), ADA ADA);
    leat_csv_options fewer = {.fill_short = true};
    expect(&fewer, str_of("id,active,name,score\n2,0,Ben\n1,1\n2\n"),
           BEN NAMED("") "34: field active: the value is missing\n");
}

Test(csv, a_bad_record_costs_no_other)
{
    static const struct {
        const char *line;
        size_t offset;
        const char *message;
    } rows[] = {
        {"x,Ada,2.5,1", 0, "field id: \"x\" is no i64"},
        {",Ada,2.5,1", 0, "field id: the value is missing"},
        {"1.5,Ada,2.5,1", 0, "field id: 1.5 does not fit i64"},
        {"9223372036854775808,Ada,2.5,1", 0, "field id: 9223372036854775808 does not fit i64"},
        {"1 2,Ada,2.5,1", 0, "field id: \"1 2\" is no i64"},
        {"1,Ada,2.5.5,1", 6, "field score: \"2.5.5\" is no f64"},
        {"1,Ada,1e999,1", 6, "field score: 1e999 does not fit f64"},
        {"1,Ada,\"\",1", 6, "field score: \"\" is no f64"},
        {"1,Ada,2.5,yes", 10, "field active: \"yes\" is no bool"},
        {"1,Ada,2.5,", 10, "field active: the value is missing"},
        {"x,\"a\nb\",2.5,1", 0, "field id: \"x\" is no i64"},
        {"x,\"a\nb\"", 7, "2 values where there are 4 columns"},
        {"1,\"a\"b,2.5,1", 5, "'b' behind a quote that closes a value"},
        {"1,\"a\" ,2.5,1", 5, "' ' behind a quote that closes a value"},
        {"1,\"a\"b\",2.5,1", 5, "'b' behind a quote that closes a value"},
        {"1,\"a\"\rb,2.5,1", 5, "'?' behind a quote that closes a value"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256], expected[512];
        snprintf(text, sizeof text, HEADER "1,Ada,2.5,1\n%s\n2,Ben,,0\n", rows[i].line);
        snprintf(expected, sizeof expected, ADA "%zu: %s\n" BEN, 33 + rows[i].offset,
                 rows[i].message);
        expect(NULL, str_of(text), expected);
    }
}

Test(csv, a_quote_that_is_not_closed_costs_its_line)
{
    expect(NULL, str_of(HEADER "1,\"Ada,2.5,1\n2,Ben,,0\n1,Ada,2.5,1\n"),
           "23: the quote that opens here is never closed\n" BEN ADA);
    expect(NULL, str_of(HEADER "2,Ben,,0\n1,\""),
           BEN "32: the quote that opens here is never closed\n");
    expect(NULL, str_of(HEADER "2,Ben,,0\n1,\"\"\""),
           BEN "32: the quote that opens here is never closed\n");
    leat_csv_options lines = {.no_multiline = true};
    expect(&lines, str_of(HEADER "1,\"Ada,2.5,1\n2,\"Ben\",,0\n1,Ada,2.5,\"1\"\n"),
           "23: the quote that opens here is never closed in this line\n" BEN ADA);
    expect(&lines, str_of(HEADER "1,\"Ada\"\",2.5,1\n2,Ben,,0\n1,\"x"),
           "23: the quote that opens here is never closed in this line\n" BEN
           "47: the quote that opens here is never closed in this line\n");
}

Test(csv, headers_that_cannot_serve_are_refused)
{
    expect(NULL, str_of("id,name,score\n1,Ada,2\n"),
           "0: the header has no column \"active\"; it is id,name,score\n");
    expect(
        NULL, str_of("\xef\xbb\xbf\r\n\nid;name;score;active\r\n1;Ada;2;true\n"),
        "0: the header has no column \"id\"; its only column is id;name;score;active: is ',' the "
        "delimiter?\n");
    leat_csv_options tabs = {.delimiter = '\t'};
    expect(&tabs, str_of("\nid,name"),
           "0: the header has no column \"id\"; its only column is id,name: is '\\t' the "
           "delimiter?\n");
    // Some 50 bytes of it are shown.
    expect(NULL,
           str_of("one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen\n"),
           "0: the header has no column \"id\"; it is one,two,three,four,five,six,seven,eight,nine,"
           "ten,...\n");
    expect(NULL, str_of("id,name,active,id\n1,Ada,1,2\n"),
           "15: the header has the column \"id\" twice\n");
    expect(NULL, str_of("x,id,name,x,active\n,1,Ada,,1\n"),
           "{\"id\":1,\"name\":\"Ada\",\"score\":null,\"active\":true}\n");
    expect(NULL, str_of("id,name,\"active\n1,Ada,1\n"),
           "8: the quote that opens here is never closed\n");
    expect(NULL, str_of("id,name,score,active\r1,Ada,2.5,1\r"),
           "0: the header has no column \"active\"; it has a CR without LF, which does not end a "
           "line\n");
    expect(NULL, (leat_str){"\xff\xfei\0d\0\n\0", 8},
           "0: this is UTF-16; only UTF-8 can be read\n");
    expect(NULL, (leat_str){"\xfe\xff\0i\0d\0\n", 8},
           "0: this is UTF-16; only UTF-8 can be read\n");
    static const leat_column columns[] = {{"id", "No. #"}};
    leat_csv_options renamed = {.columns = columns, .column_count = 1};
    expect(&renamed, str_of("id,name,score,active\n"),
           "0: the header has no column \"No. #\"; it is id,name,score,active\n");
}

Test(csv, options_that_cannot_serve_are_refused)
{
    static const leat_column unknown[] = {{"nobody", "x"}}, clash[] = {{"id", "name"}};
    static const struct {
        leat_csv_options options;
        leat_err err;
        const char *message;
    } rows[] = {
        {{.delimiter = '"'}, LEAT_EINVAL, "delimiter, quote and line break must differ"},
        {{.delimiter = '\n'}, LEAT_EINVAL, "delimiter, quote and line break must differ"},
        {{.quote = '\r'}, LEAT_EINVAL, "delimiter, quote and line break must differ"},
        {{.missing = "a,b"}, LEAT_EINVAL, "the text that means missing would need quotes"},
        {{.columns = unknown, .column_count = 1}, LEAT_ETYPE, "there is no field nobody"},
        {{.columns = clash, .column_count = 1},
         LEAT_ETYPE,
         "fields id and name: both are called \"name\" in the file"},
    };
    leat_csv *csv = NULL;
    leat_parse_error error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert(leat_csv_create(NULL, LEAT_TYPE(visitor), &rows[i].options, &csv, &error) ==
                  rows[i].err);
        cr_assert(strcmp(error.text, rows[i].message) == 0, "%s", error.text);
    }
    cr_assert(leat_csv_create(NULL, LEAT_SCALAR(LEAT_I64), NULL, &csv, &error) == LEAT_ETYPE);
    cr_assert(csv == NULL);
    // Records before the header.
    visitor v;
    size_t consumed;
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(visitor), NULL, &csv, NULL) == LEAT_OK);
    cr_assert(leat_csv_next(csv, "1\n", 2, false, &consumed, &v, NULL, &error) == LEAT_CSV_BAD);
    cr_assert(strcmp(error.text, "no header has been read") == 0);
    leat_csv_destroy(&csv);
}

typedef struct only_text {
    leat_str text;
} only_text;
LEAT_RECORD(only_text, LEAT_FIELD(text, LEAT_STR));
typedef struct only_number {
    int64_t number;
} only_number;
LEAT_RECORD(only_number, LEAT_FIELD(number, LEAT_I64));

Test(csv, a_blank_line_is_a_record_where_its_column_may_be_empty)
{
    file f = open_with(LEAT_TYPE(only_text), NULL, str_of("text\na\n\n\"\"\n\r\n"), 1);
    only_text t;
    cr_assert(next(&f, NULL) == LEAT_CSV_RECORD);
    cr_assert(next(&f, &t) == LEAT_CSV_RECORD && t.text.size == 1);
    for (int i = 0; i < 3; i++)
        cr_assert(next(&f, &t) == LEAT_CSV_RECORD && t.text.size == 0);
    cr_assert(next(&f, &t) == LEAT_CSV_NONE && f.at == f.size);
    close_file(&f);
    f = open_with(LEAT_TYPE(only_number), NULL, str_of("number\n5\n\n\r\n6"), 1);
    only_number n;
    cr_assert(next(&f, NULL) == LEAT_CSV_RECORD);
    cr_assert(next(&f, &n) == LEAT_CSV_RECORD && n.number == 5);
    cr_assert(next(&f, &n) == LEAT_CSV_NONE && next(&f, &n) == LEAT_CSV_NONE && f.at < f.size);
    cr_assert(next(&f, &n) == LEAT_CSV_RECORD && n.number == 6);
    close_file(&f);
}

Test(csv, reading_goes_on_elsewhere_after_a_restart)
{
    leat_csv *csv;
    leat_scratch *scratch;
    leat_parse_error error;
    size_t consumed;
    only_text t;
    leat_csv_options options = {.no_header = true};
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(only_text), &options, &csv, &error) == LEAT_OK);
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    cr_assert(leat_csv_next(csv, "\"ab", 3, false, &consumed, &t, scratch, &error) ==
              LEAT_CSV_MORE);
    leat_csv_restart(csv);
    cr_assert(leat_csv_next(csv, "cd\nx", 4, false, &consumed, &t, scratch, &error) ==
              LEAT_CSV_RECORD);
    cr_assert(consumed == 3 && t.text.size == 2 && memcmp(t.text.data, "cd", 2) == 0);
    leat_csv_destroy(&csv);
    leat_scratch_destroy(&scratch);
}

Test(csv, a_long_record_in_small_pieces_takes_linear_time)
{
    enum { SIZE = 64 << 20, PIECE = 4096 };
    char *text = malloc(SIZE);
    memset(text, 'x', SIZE);
    text[0] = '"';
    for (size_t i = 1; i < SIZE - 8; i += 4096)
        memcpy(text + i, "\"\",\n", 4);
    memcpy(text + SIZE - 2, "\"\n", 2);
    leat_csv *csv;
    leat_scratch *scratch;
    size_t consumed = 0;
    only_text t;
    leat_csv_options options = {.no_header = true};
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(only_text), &options, &csv, NULL) == LEAT_OK);
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    // Searched from the start each time, this would read half a terabyte.
    for (size_t have = PIECE; have < SIZE; have += PIECE)
        cr_assert(leat_csv_next(csv, text, have, false, &consumed, &t, scratch, NULL) ==
                  LEAT_CSV_MORE);
    cr_assert(leat_csv_next(csv, text, SIZE, false, &consumed, &t, scratch, NULL) ==
              LEAT_CSV_RECORD);
    cr_assert(consumed == SIZE && t.text.size == SIZE - 3 - (SIZE - 9 + 4095) / 4096);
    leat_csv_destroy(&csv);
    leat_scratch_destroy(&scratch);
    free(text);
}

// --- all kinds -----------------------------------------------------------------------------------

Test(csv, every_kind_is_read)
{
    leat_csv_options options = {.no_header = true};
    static const char line[] = "1,-128,-32768,-2147483648,-9223372036854775808,255,65535,4294967295"
                               ",18446744073709551615,0.1,-inf,a b,\"\xff,\",-1\n";
    file f = open_with(LEAT_TYPE(scalars), &options, str_of(line), 7);
    scalars s;
    cr_assert(next(&f, &s) == LEAT_CSV_RECORD, "%s", f.error.text);
    cr_assert(s.flag && s.i8 == INT8_MIN && s.i16 == INT16_MIN && s.i32 == INT32_MIN);
    cr_assert(s.i64 == INT64_MIN && s.u8 == 255 && s.u16 == 65535 && s.u32 == UINT32_MAX);
    cr_assert(s.u64 == UINT64_MAX && s.f32 == 0.1f && s.f64 == -INFINITY && s.at == -1);
    cr_assert(s.str.size == 3 && memcmp(s.str.data, "a b", 3) == 0);
    cr_assert(s.bytes.size == 2 && memcmp(s.bytes.data, "\xff,", 2) == 0);
    close_file(&f);
    static const char bad[] = "1,128,0,0,0,0,0,0,0,0,0,,,0\n1,0,0,0,0,256,0,0,0,0,0,,,0\n"
                              "1,0,0,0,0,0,0,0,-1,0,0,,,0\n1,0,0,0,0,0,0,0,0,1e39,0,,,0\n";
    static const char *const messages[] = {
        "field i8: 128 does not fit i8", "field u8: 256 does not fit u8",
        "field u64: -1 does not fit u64", "field f32: 1e39 does not fit f32"};
    f = open_with(LEAT_TYPE(scalars), &options, str_of(bad), 0);
    for (int i = 0; i < 4; i++)
        cr_assert(next(&f, &s) == LEAT_CSV_BAD && strcmp(f.error.text, messages[i]) == 0, "%s",
                  f.error.text);
    close_file(&f);
}

typedef struct trip {
    address from;
    leat_list tags;
    const address *to;
} trip;
LEAT_RECORD(trip, LEAT_FIELD_STRUCT(from, address), LEAT_FIELD_LIST(tags, LEAT_SCALAR(LEAT_STR)),
            LEAT_FIELD_OPTIONAL(to, LEAT_TYPE(address)));

Test(csv, what_is_nested_stands_as_json)
{
    leat_csv_options options = {.no_header = true};
    static const char text[] =
        "\"{\"\"street\"\":\"\"s\"\",\"\"number\"\":1,\"\"city\"\":\"\"c,\"\"}\",[],\n"
        "\"{\"\"number\"\":70000}\",[],\n"
        "[ ],,\n";
    file f = open_with(LEAT_TYPE(trip), &options, str_of(text), 3);
    trip t;
    cr_assert(next(&f, &t) == LEAT_CSV_RECORD, "%s", f.error.text);
    cr_assert(t.from.number == 1 && t.from.city.size == 2 && t.tags.count == 0 && !t.to);
    cr_assert(next(&f, &t) == LEAT_CSV_BAD && f.error.offset == 0);
    cr_assert(strcmp(f.error.text, "field from.number: 70000 does not fit u16") == 0);
    cr_assert(next(&f, &t) == LEAT_CSV_BAD && f.error.offset == 0);
    cr_assert(strcmp(f.error.text, "field from: a list where an object is expected") == 0);
    close_file(&f);
}

// --- writing -------------------------------------------------------------------------------------

static void expect_line(const leat_csv *csv, const void *record, const char *expected)
{
    size_t size = strlen(expected);
    for (size_t room = 0; room <= size + 2; room++) {
        char *buffer = malloc(room ? room : 1);
        memset(buffer, '#', room ? room : 1);
        size_t needed = record ? leat_csv_write(csv, record, room ? buffer : NULL, room)
                               : leat_csv_write_header(csv, room ? buffer : NULL, room);
        cr_assert(needed == size, "%zu for %s", needed, expected);
        cr_assert(memcmp(buffer, expected, room < size ? room : size) == 0, "%.*s for %s",
                  (int)room, buffer, expected);
        cr_assert(room <= size || buffer[size] == '#', "no NUL is added");
        free(buffer);
    }
}

Test(csv, quotes_are_written_only_where_they_are_needed)
{
    static const double half = 0.5;
    static const struct {
        visitor record;
        const char *line;
    } rows[] = {
        {{1, {"Ada", 3}, &half, true}, "1,Ada,0.5,true"},
        {{-5, {"", 0}, NULL, false}, "-5,,,false"},
        {{1, {"a,b", 3}, NULL, true}, "1,\"a,b\",,true"},
        {{1, {"a\nb", 3}, NULL, true}, "1,\"a\nb\",,true"},
        {{1, {"a\r", 2}, NULL, true}, "1,\"a\r\",,true"},
        {{1, {"\"a\"", 3}, NULL, true}, "1,\"\"\"a\"\"\",,true"},
        {{1, {" a ", 3}, NULL, true}, "1, a ,,true"},
        {{1, {"\\N", 2}, NULL, true}, "1,\\N,,true"},
    };
    leat_csv *csv;
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(visitor), NULL, &csv, NULL) == LEAT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_line(csv, &rows[i].record, rows[i].line);
    expect_line(csv, NULL, "id,name,score,active");
    leat_csv_destroy(&csv);
    static const leat_column columns[] = {{"id", "No; \"1\""}, {"name", "full name"}};
    leat_csv_options options = {
        .delimiter = ';', .missing = "\\N", .columns = columns, .column_count = 2};
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(visitor), &options, &csv, NULL) == LEAT_OK);
    expect_line(csv, &rows[2].record, "1;a,b;\\N;true");
    expect_line(csv, &rows[7].record, "1;\"\\N\";\\N;true");
    expect_line(csv, NULL, "\"No; \"\"1\"\"\";full name;score;active");
    leat_csv_destroy(&csv);
}

Test(csv, what_would_be_taken_for_something_else_is_quoted)
{
    leat_csv *csv;
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(only_text), NULL, &csv, NULL) == LEAT_OK);
    expect_line(csv, &(only_text){{"", 0}}, "\"\"");
    expect_line(csv, &(only_text){{"\xef\xbb\xbfx", 4}}, "\"\xef\xbb\xbfx\"");
    expect_line(csv, &(only_text){{"\xff\xfe", 2}}, "\"\xff\xfe\"");
    leat_csv_destroy(&csv);
    static const leat_str tags[] = {{"a\"b", 3}, {"\n", 1}};
    trip t = {{{"s", 1}, 1, {"", 0}}, {tags, 2}, NULL};
    cr_assert(leat_csv_create(NULL, LEAT_TYPE(trip), NULL, &csv, NULL) == LEAT_OK);
    expect_line(csv, &t,
                "\"{\"\"street\"\":\"\"s\"\",\"\"number\"\":1,\"\"city\"\":\"\"\"\"}\","
                "\"[\"\"a\\\"\"b\"\",\"\"\\n\"\"]\",");
    leat_csv_destroy(&csv);
}

Test(csv, running_out_of_memory_is_an_error)
{
    static const leat_column columns[] = {{"id", "No"}};
    leat_csv_options options = {.missing = "NA", .columns = columns, .column_count = 1};
    static const char text[] = "x1,x2,x3,x4,x5,x6,x7,x8,No,name,score,\"\"\"\",active\n"
                               ",,,,,,,,1,\"a\"\"b\",2.5,,1\n";
    for (size_t n = 1;; n++) {
        counter c = {.fail_at = n};
        leat_allocator allocator = counting(&c);
        leat_csv *csv = NULL;
        leat_scratch *scratch = NULL;
        leat_parse_error error = {0};
        size_t consumed = 0;
        visitor v;
        bool done = false;
        if (leat_scratch_create(&allocator, &scratch) == LEAT_OK &&
            leat_csv_create(&allocator, LEAT_TYPE(visitor), &options, &csv, &error) == LEAT_OK) {
            leat_csv_result result =
                leat_csv_header(csv, text, sizeof text - 1, true, &consumed, &error);
            cr_assert(result == LEAT_CSV_RECORD || (result == LEAT_CSV_NOMEM && consumed == 0));
            done = result == LEAT_CSV_RECORD;
        }
        while (done && c.fail_at > c.calls) {
            // The scratch is never reset, so it must grow in the end.
            size_t used;
            leat_csv_result result = leat_csv_next(csv, text + consumed, sizeof text - 1 - consumed,
                                                   true, &used, &v, scratch, &error);
            cr_assert(result == LEAT_CSV_RECORD || (result == LEAT_CSV_NOMEM && used == 0));
        }
        leat_csv_destroy(&csv);
        leat_scratch_destroy(&scratch);
        cr_assert(c.live == 0);
        if (done && n > 12)
            break;
    }
}
