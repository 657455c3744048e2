// SPDX-License-Identifier: Apache-2.0
// Typed records from JSON.
#include <criterion/criterion.h>
#include <stdio.h>

#include "leat/parse.h"
#include "samples.h"

typedef struct visitor {
    int64_t id;
    leat_str name;
    const int32_t *age;
    bool active;
} visitor;
LEAT_RECORD(visitor, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR),
            LEAT_FIELD_OPTIONAL(age, LEAT_SCALAR(LEAT_I32)), LEAT_FIELD(active, LEAT_BOOL));

static leat_scratch *scratch;

// The text is a block of exactly its size, which stays until the next call.
static char *block;

static leat_err read_json(const leat_type *type, const leat_json_options *options, leat_str text,
                          void *record, leat_parse_error *error)
{
    free(block);
    block = malloc(text.size ? text.size : 1);
    memcpy(block, text.data, text.size);
    memset(record, 0xa5, type->size);
    memset(error, 0, sizeof *error);
    if (!scratch)
        cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    leat_scratch_reset(scratch);
    return leat_record_from_json(type, options, block, text.size, record, scratch, error);
}

static leat_str str_of(const char *text)
{
    return (leat_str){text, strlen(text)};
}

static bool is(leat_str str, const char *text)
{
    return str.size == strlen(text) && memcmp(str.data, text, str.size) == 0;
}

// Both the compiled type and its twin of run time must refuse the text with this message and place.
static void expect_error(const leat_type *type, const leat_json_options *options, leat_str text,
                         size_t offset, const char *message)
{
    char record[1024];
    leat_parse_error error;
    const leat_type *types[] = {type, twin_of(NULL, type)};
    for (int i = 0; i < 2; i++) {
        leat_err err = read_json(types[i], options, text, record, &error);
        cr_assert(err == LEAT_ECORRUPT, "%.*s was taken", (int)text.size, text.data);
        cr_assert(strcmp(error.text, message) == 0, "%.*s: said \"%s\", not \"%s\"", (int)text.size,
                  text.data, error.text, message);
        cr_assert(error.offset == offset, "%.*s: at %zu, not %zu", (int)text.size, text.data,
                  error.offset, offset);
    }
    leat_type_release(types[1]);
}

// What is read, printed again.
static void expect_json(const leat_type *type, const char *text, const char *printed)
{
    char record[1024], again[2048];
    leat_parse_error error;
    leat_err err = read_json(type, NULL, str_of(text), record, &error);
    cr_assert(err == LEAT_OK, "%s: %s", text, error.text);
    size_t size = leat_record_json(type, record, again, sizeof again);
    cr_assert(size == strlen(printed) && memcmp(again, printed, size) == 0, "%s gave %.*s", text,
              (int)size, again);
}

// --- what is taken -------------------------------------------------------------------------------

Test(json_read, members_come_in_any_order_with_any_blanks)
{
    static const char *const texts[] = {
        "{\"id\":7,\"name\":\"Ada\",\"age\":36,\"active\":true}",
        " \t\r\n{ \"id\" : 7 , \"name\" : \"Ada\" ,\n\"age\" : 36 , \"active\" : true } \n",
        "{\"active\":true,\"age\":36,\"name\":\"Ada\",\"id\":7}",
        "{\"name\":\"Ada\",\"id\":7,\"active\":true,\"age\":36}",
        "{\"\\u0069d\":7,\"n\\u0061me\":\"A\\u0064a\",\"age\":36,\"active\":true}",
        "{\"x\":[1,{\"y\":null}],\"id\":7,\"\":{},\"name\":\"Ada\",\"age\":36,\"active\":true}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        visitor v;
        leat_parse_error error;
        cr_assert(read_json(LEAT_TYPE(visitor), NULL, str_of(texts[i]), &v, &error) == LEAT_OK,
                  "%s: %s", texts[i], error.text);
        cr_assert(v.id == 7 && is(v.name, "Ada") && *v.age == 36 && v.active);
    }
}

Test(json_read, optionals_are_absent_when_null_or_not_there)
{
    static const char *const texts[] = {"{\"id\":1,\"name\":\"\",\"active\":false}",
                                        "{\"id\":1,\"name\":\"\",\"age\":null,\"active\":false}"};
    for (size_t i = 0; i < 2; i++) {
        visitor v;
        leat_parse_error error;
        cr_assert(read_json(LEAT_TYPE(visitor), NULL, str_of(texts[i]), &v, &error) == LEAT_OK);
        cr_assert(v.id == 1 && v.name.size == 0 && v.age == NULL && !v.active);
    }
}

Test(json_read, strings_mean_what_their_escapes_say)
{
    static const struct {
        const char *text, *meaning;
        size_t size;
    } rows[] = {
        {"\"\"", "", 0},
        {"\"plain text that is longer than sixteen bytes\"",
         "plain text that is longer than sixteen bytes", 44},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 6},
        {"\"\\uD83D\\uDE00!\"", "\xf0\x9f\x98\x80!", 5},
        {"\"\\ud800\\udc00\\uDBFF\\uDFFF\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},
        {"\"\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"",
         "\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 14},
        {"\"\x7f\"", "\x7f", 1},
        {"\"0123456789abcdef\\n0123456789abcdef\\n\"", "0123456789abcdef\n0123456789abcdef\n", 34},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_str str;
        leat_parse_error error;
        cr_assert(read_json(LEAT_SCALAR(LEAT_STR), NULL, str_of(rows[i].text), &str, &error) ==
                      LEAT_OK,
                  "%s: %s", rows[i].text, error.text);
        cr_assert(str.size == rows[i].size && memcmp(str.data, rows[i].meaning, str.size) == 0,
                  "%s", rows[i].text);
        // Nothing is copied that need not be.
        bool in_text = str.data > block && str.data < block + strlen(rows[i].text);
        cr_assert(in_text == !strchr(rows[i].text, '\\'));
    }
}

LEAT_LIST_TYPE(flags, LEAT_SCALAR(LEAT_BOOL));
LEAT_LIST_TYPE(shorts, LEAT_SCALAR(LEAT_I16));
LEAT_MAP_TYPE(by_short, LEAT_SCALAR(LEAT_I16), LEAT_SCALAR(LEAT_STR));
LEAT_MAP_TYPE(by_flag, LEAT_SCALAR(LEAT_BOOL), LEAT_SCALAR(LEAT_I8));
LEAT_MAP_TYPE(by_bytes, LEAT_SCALAR(LEAT_BYTES), LEAT_SCALAR(LEAT_I8));
LEAT_MAP_TYPE(by_address, LEAT_TYPE(address), LEAT_SCALAR(LEAT_I8));

Test(json_read, composed_values_are_read_as_they_are_written)
{
    expect_json(LEAT_TYPE(flags), " [ true , false ] ", "[true,false]");
    expect_json(LEAT_TYPE(shorts), "[]", "[]");
    expect_json(LEAT_TYPE(shorts), "[1,-2,3,4,5,6,7,8,9]", "[1,-2,3,4,5,6,7,8,9]");
    expect_json(LEAT_TYPE(maybe_numbers), "[null,1,null]", "[null,1,null]");
    expect_json(LEAT_TYPE(by_short), "{ \"-1\" : \"a\" , \"3e2\" : \"b\" }",
                "{\"-1\":\"a\",\"300\":\"b\"}");
    expect_json(LEAT_TYPE(by_flag), "{\"true\":1,\"false\":2}", "{\"true\":1,\"false\":2}");
    expect_json(LEAT_TYPE(by_bytes), "{\"aGVsbG8=\":1,\"\":2,\"\\u0061GVsbG8h\":3}",
                "{\"aGVsbG8=\":1,\"\":2,\"aGVsbG8h\":3}");
#define STREET "{\"street\":\"s\",\"number\":1,\"city\":\"c\"}"
    expect_json(LEAT_TYPE(by_address), "[{\"value\":1,\"key\":" STREET "}]",
                "[{\"key\":" STREET ",\"value\":1}]");
    expect_json(LEAT_TYPE(by_address), "[]", "[]");
    static const char *const whole =
        "{\"id\":5,\"home\":" STREET ",\"tags\":[\"x\",\"\\n\"],\"aliases\":{\"x\":[\"y\"],\"\":[]"
        "},\"score\":2,\"past\":[" STREET "," STREET "],\"work\":" STREET
        ",\"visits\":[{\"key\":" STREET ",\"value\":[null,1]}],\"active\":true}";
    expect_json(LEAT_TYPE(person), whole, whole);
}

Test(json_read, base64_has_all_three_endings)
{
    static const char *const rows[][2] = {
        {"\"\"", ""},        {"\"Zg==\"", "f"},        {"\"Zm8=\"", "fo"},
        {"\"Zm9v\"", "foo"}, {"\"Zm9vYg==\"", "foob"}, {"\"+\\/8=\"", "\xfb\xff"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_bytes bytes;
        leat_parse_error error;
        cr_assert(read_json(LEAT_SCALAR(LEAT_BYTES), NULL, str_of(rows[i][0]), &bytes, &error) ==
                  LEAT_OK);
        cr_assert(bytes.size == strlen(rows[i][1]) &&
                  (bytes.size == 0 || memcmp(bytes.data, rows[i][1], bytes.size) == 0));
    }
    static const char *const bad[] = {"\"Z\"",    "\"Zg\"",   "\"Zg=\"",  "\"Zh==\"",
                                      "\"Zm9=\"", "\"Zm 9\"", "\"=Zg=\"", "\"Zg==Zg==\"",
                                      "\"====\"", "\"Zm9-\"", "\"Z===\"", "\"Zm9v\\n\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(LEAT_SCALAR(LEAT_BYTES), NULL, str_of(bad[i]), 0,
                     "a string that is not base64");
}

Test(json_read, many_fields_and_many_items_take_the_slow_ways)
{
    enum { FIELDS = 200, ITEMS = 3000 };
    leat_field_spec fields[FIELDS];
    char names[FIELDS][16];
    for (int i = 0; i < FIELDS; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        fields[i] = (leat_field_spec){names[i], LEAT_SCALAR(LEAT_I32)};
    }
    const leat_type *type;
    cr_assert(leat_type_struct_create(NULL, "wide", fields, FIELDS, &type) == LEAT_OK);
    static char text[ITEMS * 32];
    size_t size = 0;
    for (int i = FIELDS - 1; i >= 0; i--)
        size += (size_t)snprintf(text + size, sizeof text - size, "%c\"f%d\":%d",
                                 i == FIELDS - 1 ? '{' : ',', i, i * 3);
    int32_t record[FIELDS];
    leat_parse_error error;
    text[size] = '}';
    cr_assert(read_json(type, NULL, (leat_str){text, size + 1}, record, &error) == LEAT_OK);
    for (int i = 0; i < FIELDS; i++)
        cr_assert(record[i] == i * 3);
    memcpy(text + size, ",\"f70\":1}", 9);
    cr_assert(read_json(type, NULL, (leat_str){text, size + 9}, record, &error) == LEAT_ECORRUPT);
    cr_assert(strcmp(error.text, "field f70: it is there twice") == 0);
    leat_type_release(type);

    // Keys in an order of their own: 7 has no factor with 3000 in common.
    size = 0;
    for (int i = 0; i < ITEMS; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%c\"%d\":\"%d\"", i ? ',' : '{',
                                 i * 7 % ITEMS, i);
    leat_dict map;
    text[size] = '}';
    cr_assert(read_json(LEAT_TYPE(by_short), NULL, (leat_str){text, size + 1}, &map, &error) ==
              LEAT_OK);
    cr_assert(map.count == ITEMS && ((const int16_t *)map.keys)[5] == 35 &&
              is(((const leat_str *)map.values)[5], "5"));
    memcpy(text + size, ",\"1234\":\"\"}", 11);
    expect_error(LEAT_TYPE(by_short), NULL, (leat_str){text, size + 11}, 0,
                 "the key 1234 is there twice");
}

// --- options -------------------------------------------------------------------------------------

Test(json_read, columns_rename_members_of_the_outermost_struct)
{
    static const leat_column columns[] = {
        {"id", "Identity No."}, {"active", "name"}, {"name", "id"}};
    leat_json_options options = {.columns = columns, .column_count = 3};
    leat_parse_error error;
    visitor v;
    cr_assert(leat_json_options_check(LEAT_TYPE(visitor), &options, &error) == LEAT_OK);
    leat_str text = str_of("{\"Identity No.\":3,\"id\":\"Ada\",\"name\":true,\"age\":9,\"x\":0}");
    cr_assert(read_json(LEAT_TYPE(visitor), &options, text, &v, &error) == LEAT_OK, "%s",
              error.text);
    cr_assert(v.id == 3 && is(v.name, "Ada") && v.active && *v.age == 9);
    options.refuse_unknown = true;
    expect_error(LEAT_TYPE(visitor), &options, text, 49, "there is no field x");
    leat_column city = {"street", "number"};
    leat_json_options clash = {.columns = &city, .column_count = 1};
    cr_assert(leat_json_options_check(LEAT_TYPE(address), &clash, &error) == LEAT_ETYPE);
    cr_assert(strcmp(error.text,
                     "fields street and number: both are called \"number\" in the file") == 0);
    city.field = "town";
    cr_assert(leat_json_options_check(LEAT_TYPE(address), &clash, &error) == LEAT_ETYPE);
    cr_assert(strcmp(error.text, "there is no field town") == 0);
    leat_column twice[] = {{"id", "a"}, {"id", "b"}};
    leat_json_options two = {.columns = twice, .column_count = 2};
    cr_assert(leat_json_options_check(LEAT_TYPE(visitor), &two, &error) == LEAT_ETYPE);
}

// --- what is refused -----------------------------------------------------------------------------

Test(json_read, errors_name_the_place)
{
    static const struct {
        const char *text;
        size_t offset;
        const char *message;
    } rows[] = {
        {"", 0, "the text is empty"},
        {"  \n", 3, "the text is empty"},
        {"[1]", 0, "a list where an object is expected"},
        {"{", 1, "the text ends where the name of a member is expected"},
        {"{\"id\"", 5, "the text ends where ':' is expected"},
        {"{\"id\":", 6, "field id: the text ends where i64 is expected"},
        {"{\"id\":1", 7, "the text ends where ',' or '}' is expected"},
        {"{\"id\":1,", 8, "the text ends where the name of a member is expected"},
        {"{\"id\":1,}", 8, "'}' where the name of a member is expected"},
        {"{,}", 1, "',' where the name of a member is expected"},
        {"{\"id\" 1}", 6, "a number where ':' is expected"},
        {"{\"id\":1 \"name\":2}", 8, "a string where ',' or '}' is expected"},
        {"{id:1}", 1, "'i' where the name of a member is expected"},
        {"{'id':1}", 1, "''' where the name of a member is expected"},
        {"{\"id\":\"1\"}", 6, "field id: a string where i64 is expected"},
        {"{\"id\":null}", 6, "field id: null where i64 is expected"},
        {"{\"id\":nul}", 6, "field id: 'n' where i64 is expected"},
        {"{\"id\":01}", 6, "field id: a number that JSON does not have"},
        {"{\"id\":-}", 6, "field id: a number that JSON does not have"},
        {"{\"id\":+1}", 6, "field id: '+' where i64 is expected"},
        {"{\"id\":1.}", 6, "field id: a number that JSON does not have"},
        {"{\"id\":.5}", 6, "field id: '.' where i64 is expected"},
        {"{\"id\":NaN}", 6, "field id: 'N' where i64 is expected"},
        {"{\"id\":1x}", 7, "'x' where ',' or '}' is expected"},
        {"{\"id\":1.5}", 6, "field id: 1.5 does not fit i64"},
        {"{\"id\":9223372036854775808}", 6, "field id: 9223372036854775808 does not fit i64"},
        {"{\"id\":\xe2\x82\xac}", 6, "field id: '\xe2\x82\xac' where i64 is expected"},
        {"{\"name\":1}", 8, "field name: a number where a string is expected"},
        {"{\"name\":\"a", 8, "field name: the string is not closed"},
        {"{\"name\":\"a\\", 10, "field name: the text ends inside a string"},
        {"{\"name\":\"a\nb\"}", 10, "field name: a control character in a string"},
        {"{\"name\":\"a\xff\"}", 10, "field name: a byte that is not UTF-8"},
        {"{\"name\":\"\xc0\x80\"}", 9, "field name: a byte that is not UTF-8"},
        {"{\"name\":\"\xed\xa0\x80\"}", 9, "field name: a byte that is not UTF-8"},
        {"{\"name\":\"\\x\"}", 9, "field name: an escape that JSON does not have"},
        {"{\"name\":\"\\u12g4\"}", 9, "field name: \\u without four hexadecimal digits"},
        {"{\"name\":\"\\u12", 9, "field name: \\u without four hexadecimal digits"},
        {"{\"name\":\"\\ud800\"}", 9, "field name: half of a surrogate pair"},
        {"{\"name\":\"\\ud800x\"}", 9, "field name: half of a surrogate pair"},
        {"{\"name\":\"\\ud800\\u0041\"}", 9, "field name: half of a surrogate pair"},
        {"{\"name\":\"\\udc00\"}", 9, "field name: half of a surrogate pair"},
        {"{\"age\":2147483648}", 7, "field age: 2147483648 does not fit i32"},
        {"{\"active\":1}", 10, "field active: a number where bool is expected"},
        {"{\"active\":truth}", 10, "field active: 't' where bool is expected"},
        {"{\"id\":1,\"name\":\"\",\"id\":2}", 18, "field id: it is there twice"},
        {"{\"id\":1,\"name\":\"\"}", 0, "field active: it is missing"},
        {"{}", 0, "field id: it is missing"},
        {"{\"id\":1,\"name\":\"\",\"active\":true}}", 32,
         "'}' where the end of the text is expected"},
        {"{\"id\":1,\"name\":\"\",\"active\":true} {", 33,
         "an object where the end of the text is expected"},
        {"{\"x\":[1,]}", 8, "']' where a value is expected"},
        {"{\"x\":{\"a\" 1}}", 10, "a number where ':' is expected"},
        {"{\"x\":{\"a\":1]}", 11, "']' where ',' or '}' is expected"},
        {"{\"x\":tru}", 5, "'t' where a value is expected"},
        {"{\"x\":\"\\q\"}", 6, "an escape that JSON does not have"},
        {"{\"x\":[1", 7, "the text ends where ',' or ']' is expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_error(LEAT_TYPE(visitor), NULL, str_of(rows[i].text), rows[i].offset,
                     rows[i].message);
    expect_error(LEAT_TYPE(visitor), NULL, (leat_str){"{\"id\"\0:1}", 9}, 5,
                 "'?' where ':' is expected");
    expect_error(LEAT_TYPE(visitor), NULL, (leat_str){"\xef\xbb\xbf{}", 5}, 0,
                 "'\xef\xbb\xbf' where an object is expected");
}

Test(json_read, errors_name_the_path)
{
#define HOME "\"id\":1,\"home\":" STREET ","
    static const struct {
        const char *text;
        size_t offset;
        const char *message;
    } rows[] = {
        {"{\"home\":{\"street\":\"\",\"number\":65536}}", 30,
         "field home.number: 65536 does not fit u16"},
        {"{\"home\":{\"street\":\"\"}}", 8, "field home.number: it is missing"},
        {"{\"tags\":[\"a\",\"b\",3]}", 17, "field tags[2]: a number where a string is expected"},
        {"{\"past\":[" STREET ",{\"number\":-1}]}", 56,
         "field past[1].number: -1 does not fit u16"},
        {"{\"aliases\":{\"a\":[],\"b\":[1]}}", 24,
         "field aliases[\"b\"][0]: a number where a string is expected"},
        {"{\"aliases\":{\"a\":[],\"a\":[]}}", 19, "field aliases: the key \"a\" is there twice"},
        {"{\"aliases\":[]}", 11, "field aliases: a list where an object is expected"},
        {"{\"visits\":[{\"key\":" STREET "}]}", 11,
         "field visits: an entry has one \"key\" and one \"value\""},
        {"{\"visits\":[{\"value\":[],\"value\":[]}]}", 23,
         "field visits: an entry has one \"key\" and one \"value\""},
        {"{\"work\":{\"street\":1}}", 18, "field work.street: a number where a string is expected"},
        {"{\"tags\":[\"a\" \"b\"]}", 13, "field tags: a string where ',' or ']' is expected"},
        {"{\"tags\":{}}", 8, "field tags: an object where a list is expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_error(LEAT_TYPE(person), NULL, str_of(rows[i].text), rows[i].offset,
                     rows[i].message);
    expect_error(LEAT_TYPE(shorts), NULL, str_of("[1,2,99999]"), 5,
                 "item [2]: 99999 does not fit i16");
    expect_error(LEAT_TYPE(by_short), NULL, str_of("{\"a\":\"\"}"), 1,
                 "the key \"a\" does not fit i16");
    expect_error(LEAT_TYPE(by_short), NULL, str_of("{\"1\":\"\",\"1.0\":\"\"}"), 8,
                 "the key 1 is there twice");
    expect_error(LEAT_TYPE(by_flag), NULL, str_of("{\"yes\":1}"), 1,
                 "the key \"yes\" does not fit bool");
    expect_error(LEAT_SCALAR(LEAT_F64), NULL, str_of("1e400"), 0, "1e400 does not fit f64");
    expect_error(LEAT_SCALAR(LEAT_F64), NULL, str_of("null"), 0, "null where f64 is expected");
}

Test(json_read, what_is_passed_over_nests_up_to_a_limit)
{
    visitor v;
    leat_parse_error error;
    for (int depth = 126; depth <= 128; depth++) {
        char text[512] = "{\"id\":1,\"name\":\"\",\"active\":true,\"x\":";
        size_t size = strlen(text);
        memset(text + size, '[', (size_t)depth);
        memset(text + size + depth, ']', (size_t)depth);
        size_t whole = size + 2 * (size_t)depth;
        text[whole++] = '}';
        leat_err err = read_json(LEAT_TYPE(visitor), NULL, (leat_str){text, whole}, &v, &error);
        // The object around it is one of the levels.
        cr_assert(err == (depth <= 127 ? LEAT_OK : LEAT_ECORRUPT));
        cr_assert(err == LEAT_OK || (strcmp(error.text, "nested deeper than 128") == 0 &&
                                     error.offset == size + 127));
    }
}

Test(json_read, every_text_that_is_cut_off_is_refused)
{
    static const char whole[] =
        "{\"id\":5,\"home\":" STREET ",\"tags\":[\"x\",\"\\u00e9\"],\"aliases\":{\"x\":[\"y\"]},"
        "\"score\":2.5e1,\"past\":[" STREET "],\"visits\":[{\"key\":" STREET
        ",\"value\":[null,1]}],\"active\":true,\"more\":{\"a\":[null,\"\\ud83d\\ude00\"]}}";
    person p;
    leat_parse_error error;
    for (size_t size = 0; size < sizeof whole - 1; size++)
        cr_assert(read_json(LEAT_TYPE(person), NULL, (leat_str){whole, size}, &p, &error) ==
                      LEAT_ECORRUPT,
                  "%.*s", (int)size, whole);
    cr_assert(read_json(LEAT_TYPE(person), NULL, str_of(whole), &p, &error) == LEAT_OK);
}

// --- memory --------------------------------------------------------------------------------------

Test(json_read, running_out_of_memory_is_an_error)
{
    static const char text[] =
        "[\"0123456789\\n0123456789\\n0123456789\\n0123456789\\n0123456789\"]";
    counter c = {0};
    leat_allocator allocator = counting(&c);
    leat_list list;
    leat_parse_error error;
    cr_assert(leat_record_from_json(LEAT_TYPE(names), NULL, "[\"a\"]", 5, &list, NULL, &error) ==
              LEAT_EINVAL);
    cr_assert(leat_scratch_create(&allocator, &scratch) == LEAT_OK);
    c.fail_at = c.calls + 1;
    leat_err err = LEAT_OK;
    for (int i = 0; i < 1000 && err == LEAT_OK; i++)
        err = leat_record_from_json(LEAT_TYPE(names), NULL, text, sizeof text - 1, &list, scratch,
                                    i % 2 ? &error : NULL);
    cr_assert(err == LEAT_ENOMEM);
    leat_scratch_destroy(&scratch);
    cr_assert(c.live == 0);
}

Test(json_read, the_marks_of_other_encodings_are_told)
{
    static const struct {
        leat_str text;
        size_t skip;
        const char *message; // NULL: none
    } rows[] = {
        {{"", 0}, 0, NULL},
        {{"a", 1}, 0, NULL},
        {{"\xef\xbb", 2}, 0, NULL},
        {{"\xef\xbb\xbf", 3}, 3, NULL},
        {{"\xef\xbb\xbf{}", 5}, 3, NULL},
        {{"\xff\xfe"
          "a\0",
          4},
         0,
         "this is UTF-16; only UTF-8 can be read"},
        {{"\xfe\xff\0a", 4}, 0, "this is UTF-16; only UTF-8 can be read"},
        {{"\xff\xfe\0\0", 4}, 0, "this is UTF-32; only UTF-8 can be read"},
        {{"\0\0\xfe\xff", 4}, 0, "this is UTF-32; only UTF-8 can be read"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t skip = 99;
        leat_parse_error error;
        leat_err err = leat_text_start(rows[i].text.data, rows[i].text.size, &skip, &error);
        cr_assert(err == (rows[i].message ? LEAT_ECORRUPT : LEAT_OK));
        cr_assert(rows[i].message ? strcmp(error.text, rows[i].message) == 0
                                  : skip == rows[i].skip);
    }
}
