// SPDX-License-Identifier: Apache-2.0
// Text and JSON forms of records.
#include <criterion/criterion.h>
#include <float.h>
#include <locale.h>
#include <math.h>

#include "samples.h"

typedef size_t form_fn(const leat_type *type, const void *record, char *buffer, size_t size);

// Checks the form, and that any room is respected as snprintf does.
static void expect_form(form_fn *form, const leat_type *type, const void *record,
                        const char *expected)
{
    size_t size = strlen(expected);
    const leat_type *both[] = {type, twin_of(NULL, type)};
    for (int t = 0; t < 2; t++)
        for (size_t room = 0; room <= size + 2; room++) {
            char *buffer = malloc(room ? room : 1);
            memset(buffer, '#', room);
            cr_assert(form(both[t], record, room ? buffer : NULL, room) == size, "for %s",
                      expected);
            size_t kept = room < size ? room : size;
            cr_assert(memcmp(buffer, expected, kept) == 0, "%.*s for %s", (int)kept, buffer,
                      expected);
            cr_assert(room <= size || buffer[size] == '#', "no NUL is added");
            free(buffer);
        }
    leat_type_release(both[1]);
}

Test(text, scalars_print_as_themselves)
{
    static const uint8_t raw[] = {'M', 'a', 'n', '\xff'};
    scalars a = {true,       INT8_MIN,   INT16_MIN, INT32_MIN, INT64_MIN,   UINT8_MAX, UINT16_MAX,
                 UINT32_MAX, UINT64_MAX, 0.1f,      0.1,       {"a\tb", 3}, {raw, 4},  -1};
    expect_form(leat_record_text, LEAT_TYPE(scalars), &a,
                "true\t-128\t-32768\t-2147483648\t-9223372036854775808\t255\t65535\t4294967295\t"
                "18446744073709551615\t0.1\t0.1\ta\tb\tMan\xff\t-1");
    expect_form(leat_record_json, LEAT_TYPE(scalars), &a,
                "{\"flag\":true,\"i8\":-128,\"i16\":-32768,\"i32\":-2147483648,"
                "\"i64\":-9223372036854775808,\"u8\":255,\"u16\":65535,\"u32\":4294967295,"
                "\"u64\":18446744073709551615,\"f32\":0.1,\"f64\":0.1,\"str\":\"a\\tb\","
                "\"bytes\":\"TWFu/w==\",\"at\":-1}");
    leat_str alone = {"just this", 9};
    expect_form(leat_record_text, LEAT_SCALAR(LEAT_STR), &alone, "just this");
    expect_form(leat_record_json, LEAT_SCALAR(LEAT_STR), &alone, "\"just this\"");
}

Test(text, reals_print_in_the_shortest_form_that_reads_back)
{
    static const struct {
        double value;
        const char *text, *json;
    } rows[] = {
        {0, "0", "0"},
        {-0.0, "-0", "-0"},
        {1, "1", "1"},
        {100, "100", "100"},
        {0.3, "0.3", "0.3"},
        {0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"},
        {1e21, "1e+21", "1e+21"},
        {-2.5e-7, "-2.5e-07", "-2.5e-07"},
        {DBL_MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"},
        {5e-324, "4.94065645841247e-324", "4.94065645841247e-324"},
        {NAN, "nan", "null"},
        {INFINITY, "inf", "null"},
        {-INFINITY, "-inf", "null"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_form(leat_record_text, LEAT_SCALAR(LEAT_F64), &rows[i].value, rows[i].text);
        expect_form(leat_record_json, LEAT_SCALAR(LEAT_F64), &rows[i].value, rows[i].json);
    }
    float third = 1.0f / 3, most = FLT_MAX, nan32 = NAN;
    expect_form(leat_record_text, LEAT_SCALAR(LEAT_F32), &third, "0.33333334");
    expect_form(leat_record_text, LEAT_SCALAR(LEAT_F32), &most, "3.4028235e+38");
    expect_form(leat_record_json, LEAT_SCALAR(LEAT_F32), &nan32, "null");
}

Test(text, the_locale_does_not_change_numbers)
{
    // Where no locale with a decimal comma is installed this holds trivially.
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fa_IR.UTF-8"};
    double value = 1234.5;
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        setlocale(LC_ALL, locales[i]);
        expect_form(leat_record_json, LEAT_SCALAR(LEAT_F64), &value, "1234.5");
    }
}

Test(text, nested_values_print_as_json)
{
    static const double score = 2;
    static const address work = {{"Elm \"St\"", 8}, 7, {"\xc3\xa9\xff", 3}};
    static const leat_str tags[] = {{"x", 1}, {"\n", 1}};
    static const leat_list values[] = {{tags, 2}, {NULL, 0}};
    static const int64_t one = 1;
    static const int64_t *const numbers[] = {NULL, &one};
    static const leat_list visits[] = {{numbers, 2}};
    person full = {
        5,     {{"s", 1}, 1, {NULL, 0}}, {tags, 2}, {tags, values, 2}, &score, {&work, 1},
        &work, {&work, visits, 1},       true};
#define WORK "{\"street\":\"Elm \\\"St\\\"\",\"number\":7,\"city\":\"\xc3\xa9\xef\xbf\xbd\"}"
#define HOME "{\"street\":\"s\",\"number\":1,\"city\":\"\"}"
    expect_form(leat_record_text, LEAT_TYPE(person), &full,
                "5\t" HOME "\t[\"x\",\"\\n\"]\t{\"x\":[\"x\",\"\\n\"],\"\\n\":[]}\t2\t[" WORK
                "]\t" WORK "\t[{\"key\":" WORK ",\"value\":[null,1]}]\ttrue");
    expect_form(leat_record_json, LEAT_TYPE(person), &full,
                "{\"id\":5,\"home\":" HOME ",\"tags\":[\"x\",\"\\n\"],\"aliases\":{\"x\":[\"x\","
                "\"\\n\"],\"\\n\":[]},\"score\":2,\"past\":[" WORK "],\"work\":" WORK
                ",\"visits\":[{\"key\":" WORK ",\"value\":[null,1]}],\"active\":true}");
    person empty = {0};
#define NOWHERE "{\"street\":\"\",\"number\":0,\"city\":\"\"}"
    expect_form(leat_record_text, LEAT_TYPE(person), &empty,
                "0\t" NOWHERE "\t[]\t{}\t\\N\t[]\t\\N\t[]\tfalse");
    expect_form(leat_record_json, LEAT_TYPE(person), &empty,
                "{\"id\":0,\"home\":" NOWHERE ",\"tags\":[],\"aliases\":{},\"score\":null,"
                "\"past\":[],\"work\":null,\"visits\":[],\"active\":false}");
}

LEAT_MAP_TYPE(by_number, LEAT_SCALAR(LEAT_I16), LEAT_SCALAR(LEAT_BOOL));
LEAT_MAP_TYPE(by_flag, LEAT_SCALAR(LEAT_BOOL), LEAT_SCALAR(LEAT_BOOL));
LEAT_MAP_TYPE(by_bytes, LEAT_SCALAR(LEAT_BYTES), LEAT_SCALAR(LEAT_BOOL));

Test(text, names_in_json_objects_are_strings)
{
    static const int16_t numbers[] = {-1, 300};
    static const bool flags[] = {true, false};
    static const leat_bytes bytes[] = {{(const uint8_t *)"hello", 5}, {NULL, 0}};
    leat_dict map = {numbers, flags, 2};
    expect_form(leat_record_json, LEAT_TYPE(by_number), &map, "{\"-1\":true,\"300\":false}");
    map.keys = flags;
    expect_form(leat_record_json, LEAT_TYPE(by_flag), &map, "{\"true\":true,\"false\":false}");
    map.keys = bytes;
    expect_form(leat_record_json, LEAT_TYPE(by_bytes), &map, "{\"aGVsbG8=\":true,\"\":false}");
}

Test(text, base64_has_all_three_endings)
{
    static const char *const rows[][2] = {
        {"", "\"\""},        {"f", "\"Zg==\""},        {"fo", "\"Zm8=\""},
        {"foo", "\"Zm9v\""}, {"foob", "\"Zm9vYg==\""}, {"\xfb\xff", "\"+/8=\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_bytes bytes = {(const uint8_t *)rows[i][0], strlen(rows[i][0])};
        expect_form(leat_record_json, LEAT_SCALAR(LEAT_BYTES), &bytes, rows[i][1]);
    }
}
