// SPDX-License-Identifier: Apache-2.0
// The wire form, byte for byte, and what decoding takes and refuses. Each case runs for the
// compiled codec and for the same type described at run time.
#include <criterion/criterion.h>
#include <math.h>

#include "samples.h"

// Encodes into exactly the room that is needed, checks that one byte less is refused, and decodes
// again.
static size_t encode(const leat_type *type, const void *record, uint8_t *to)
{
    size_t size = leat_record_encoded_size(type, record);
    uint8_t *room = malloc(size);
    cr_assert(leat_record_encode(type, record, room, room + size) == room + size);
    memcpy(to, room, size);
    // With more room the fast paths are taken; they write the same.
    uint8_t *wide = malloc(size + 64);
    cr_assert(leat_record_encode(type, record, wide, wide + size + 64) == wide + size);
    cr_assert(memcmp(room, wide, size) == 0);
    free(wide);
    free(room);
    for (size_t less = 0; less < size; less += less < 100 || less + 20 > size ? 1 : size / 16) {
        room = malloc(less ? less : 1);
        cr_assert(!leat_record_encode(type, record, room, room + less), "%zu of %zu", less, size);
        free(room);
    }
    return size;
}

static void expect_bytes(const leat_type *type, const void *record, const void *bytes, size_t size)
{
    const leat_type *both[] = {type, twin_of(NULL, type)};
    uint8_t *got = malloc(size + 100);
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert(leat_record_encoded_size(both[i], record) == size);
        cr_assert(encode(both[i], record, got) == size);
        for (size_t at = 0; at < size; at++)
            cr_assert(got[at] == ((const uint8_t *)bytes)[at], "byte %zu: %02x", at, got[at]);
        void *back = calloc(1, type->size);
        uint8_t *from = malloc(size);
        memcpy(from, bytes, size);
        cr_assert(leat_record_decode(both[i], from, size, back, scratch) == LEAT_OK);
        cr_assert(leat_record_equal(type, record, back));
        leat_scratch_reset(scratch);
        free(from);
        free(back);
    }
    leat_scratch_destroy(&scratch);
    free(got);
    leat_type_release(both[1]);
}

Test(codec, every_scalar_has_its_fixed_form)
{
    static const uint8_t raw[] = {7, 8};
    scalars low = {true, INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN, 0,        0,
                   0,    0,        -1.5f,     -0.1,      {"ab", 2}, {raw, 2}, -2};
    static const char low_bytes[] =
        "\x9e\xc3\xd0\x80\xd1\x80\x00\xd2\x80\x00\x00\x00\xd3\x80\x00\x00\x00\x00\x00\x00\x00"
        "\xcc\x00\xcd\x00\x00\xce\x00\x00\x00\x00\xcf\x00\x00\x00\x00\x00\x00\x00\x00"
        "\xca\xbf\xc0\x00\x00\xcb\xbf\xb9\x99\x99\x99\x99\x99\x9a"
        "\xa2"
        "ab\xc4\x02\x07\x08\xd3\xff\xff\xff\xff\xff\xff\xff\xfe";
    expect_bytes(LEAT_TYPE(scalars), &low, low_bytes, sizeof low_bytes - 1);
    scalars high = {false,      INT8_MAX,   INT16_MAX, INT32_MAX, INT64_MAX, UINT8_MAX, UINT16_MAX,
                    UINT32_MAX, UINT64_MAX, 0.0f,      0.0,       {NULL, 0}, {NULL, 0}, 258};
    static const char high_bytes[] =
        "\x9e\xc2\xd0\x7f\xd1\x7f\xff\xd2\x7f\xff\xff\xff\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"
        "\xcc\xff\xcd\xff\xff\xce\xff\xff\xff\xff\xcf\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xca\x00\x00\x00\x00\xcb\x00\x00\x00\x00\x00\x00\x00\x00\xa0\xc4\x00"
        "\xd3\x00\x00\x00\x00\x00\x00\x01\x02";
    expect_bytes(LEAT_TYPE(scalars), &high, high_bytes, sizeof high_bytes - 1);
}

Test(codec, strings_and_bytes_have_the_shortest_header)
{
    static const struct {
        size_t size;
        const char *str_header;
        size_t str_header_size;
        const char *bytes_header;
        size_t bytes_header_size;
    } rows[] = {
        {0, "\xa0", 1, "\xc4\x00", 2},
        {1, "\xa1", 1, "\xc4\x01", 2},
        {31, "\xbf", 1, "\xc4\x1f", 2},
        {32, "\xd9\x20", 2, "\xc4\x20", 2},
        {255, "\xd9\xff", 2, "\xc4\xff", 2},
        {256, "\xda\x01\x00", 3, "\xc5\x01\x00", 3},
        {65535, "\xda\xff\xff", 3, "\xc5\xff\xff", 3},
        {65536, "\xdb\x00\x01\x00\x00", 5, "\xc6\x00\x01\x00\x00", 5},
    };
    char *data = malloc(65536), *bytes = malloc(65536 + 64);
    for (size_t i = 0; i < 65536; i++)
        data[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        word_count record = {{data, rows[i].size}, 1};
        size_t at = 1;
        bytes[0] = (char)0x92;
        memcpy(bytes + at, rows[i].str_header, rows[i].str_header_size);
        at += rows[i].str_header_size;
        memcpy(bytes + at, data, rows[i].size);
        at += rows[i].size;
        memcpy(bytes + at, "\xd3\0\0\0\0\0\0\0\1", 9);
        expect_bytes(LEAT_TYPE(word_count), &record, bytes, at + 9);
        leat_bytes binary = {(uint8_t *)data, rows[i].size};
        memcpy(bytes, rows[i].bytes_header, rows[i].bytes_header_size);
        memcpy(bytes + rows[i].bytes_header_size, data, rows[i].size);
        expect_bytes(LEAT_SCALAR(LEAT_BYTES), &binary, bytes,
                     rows[i].bytes_header_size + rows[i].size);
    }
    // Every length on the paths that copy short strings in pieces.
    for (size_t size = 0; size < 200; size++) {
        leat_str str = {data, size};
        size_t header = size < 32 ? 1 : 2;
        bytes[0] = (char)(size < 32 ? 0xa0 | size : 0xd9);
        if (header == 2)
            bytes[1] = (char)size;
        memcpy(bytes + header, data, size);
        expect_bytes(LEAT_SCALAR(LEAT_STR), &str, bytes, header + size);
    }
    free(data);
    free(bytes);
}

Test(codec, composed_values_have_the_shortest_header)
{
    static const double score = 1.0;
    static const address work = {{"w", 1}, 258, {NULL, 0}};
    static const leat_str tags[] = {{"x", 1}, {"yz", 2}};
    static const leat_str keys[] = {{"k", 1}};
    static const leat_list values[] = {{tags, 2}};
    static const int64_t one = 1;
    static const int64_t *const numbers[] = {NULL, &one};
    static const leat_list visits[] = {{numbers, 2}};
    person full = {5,     {{"s", 1}, 1, {"c", 1}}, {tags, 2}, {keys, values, 1}, &score, {&work, 1},
                   &work, {&work, visits, 1},      true};
    static const char full_bytes[] =
        "\x99\xd3\0\0\0\0\0\0\0\5" // id
        "\x93\xa1s\xcd\0\1\xa1"
        "c"                                                     // home
        "\x92\xa1x\xa2yz"                                       // tags
        "\x81\xa1k\x92\xa1x\xa2yz"                              // aliases
        "\xcb\x3f\xf0\0\0\0\0\0\0"                              // score
        "\x91\x93\xa1w\xcd\1\2\xa0"                             // past
        "\x93\xa1w\xcd\1\2\xa0"                                 // work
        "\x81\x93\xa1w\xcd\1\2\xa0\x92\xc0\xd3\0\0\0\0\0\0\0\1" // visits
        "\xc3";
    expect_bytes(LEAT_TYPE(person), &full, full_bytes, sizeof full_bytes - 1);
    person empty = {0};
    static const char empty_bytes[] = "\x99\xd3\0\0\0\0\0\0\0\0\x93\xa0\xcd\0\0\xa0"
                                      "\x90\x80\xc0\x90\xc0\x80\xc2";
    expect_bytes(LEAT_TYPE(person), &empty, empty_bytes, sizeof empty_bytes - 1);
    many wide = {.f0 = 1, .f16 = -1, .end = {"e", 1}};
    static const char wide_start[] = "\xdc\0\x13\xd0\1\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0"
                                     "\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0\xd0\0\xd0\xff";
    char wide_bytes[200];
    size_t at = sizeof wide_start - 1;
    memcpy(wide_bytes, wide_start, at);
    memcpy(wide_bytes + at, empty_bytes, sizeof empty_bytes - 1);
    at += sizeof empty_bytes - 1;
    memcpy(wide_bytes + at,
           "\xa1"
           "e",
           2);
    expect_bytes(LEAT_TYPE(many), &wide, wide_bytes, at + 2);
}

Test(codec, counts_use_16_and_32_bits_when_they_must)
{
    static const struct {
        size_t count;
        const char *list_header, *map_header;
        size_t header_size;
    } rows[] = {
        {15, "\x9f", "\x8f", 1},
        {16, "\xdc\0\x10", "\xde\0\x10", 3},
        {65535, "\xdc\xff\xff", "\xde\xff\xff", 3},
        {65536, "\xdd\0\1\0\0", "\xdf\0\1\0\0", 5},
    };
    leat_type list = {.kind = LEAT_LIST,
                      .size = sizeof(leat_list),
                      .align = 8,
                      .element = LEAT_SCALAR(LEAT_BOOL)};
    leat_type map = {.kind = LEAT_MAP,
                     .size = sizeof(leat_dict),
                     .align = 8,
                     .element = LEAT_SCALAR(LEAT_BOOL),
                     .key = LEAT_SCALAR(LEAT_U16)};
    bool *flags = calloc(65536, sizeof *flags);
    uint16_t *keys = calloc(65536, sizeof *keys);
    uint8_t *bytes = malloc(65536 * 4 + 8);
    for (size_t i = 0; i < 65536; i++) {
        flags[i] = i % 3 == 0;
        keys[i] = (uint16_t)i;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_list items = {flags, rows[i].count};
        leat_dict entries = {keys, flags, rows[i].count};
        size_t at = rows[i].header_size;
        memcpy(bytes, rows[i].list_header, at);
        for (size_t j = 0; j < rows[i].count; j++)
            bytes[at++] = flags[j] ? 0xc3 : 0xc2;
        expect_bytes(&list, &items, bytes, at);
        at = rows[i].header_size;
        memcpy(bytes, rows[i].map_header, at);
        for (size_t j = 0; j < rows[i].count; j++) {
            bytes[at++] = 0xcd;
            bytes[at++] = (uint8_t)(j >> 8);
            bytes[at++] = (uint8_t)j;
            bytes[at++] = flags[j] ? 0xc3 : 0xc2;
        }
        expect_bytes(&map, &entries, bytes, at);
    }
    free(flags);
    free(keys);
    free(bytes);
}

// --- numbers of any width ------------------------------------------------------------------------

// The forms of some integers: the value as a signed or, when `natural`, an unsigned number.
static const struct {
    const char *bytes;
    size_t size;
    bool natural;
    int64_t value;
} integers[] = {
    {"\x00", 1, false, 0},
    {"\x7f", 1, false, 127},
    {"\xe0", 1, false, -32},
    {"\xff", 1, false, -1},
    {"\xcc\x05", 2, false, 5},
    {"\xcc\x80", 2, false, 128},
    {"\xcc\xff", 2, false, 255},
    {"\xcd\x01\x00", 3, false, 256},
    {"\xcd\x7f\xff", 3, false, 32767},
    {"\xcd\x80\x00", 3, false, 32768},
    {"\xcd\xff\xff", 3, false, 65535},
    {"\xce\x00\x00\x00\x05", 5, false, 5},
    {"\xce\x00\x01\x00\x00", 5, false, 65536},
    {"\xce\x7f\xff\xff\xff", 5, false, 2147483647},
    {"\xce\x80\x00\x00\x00", 5, false, 2147483648},
    {"\xce\xff\xff\xff\xff", 5, false, 4294967295},
    {"\xcf\x00\x00\x00\x00\x00\x00\x00\x01", 9, false, 1},
    {"\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 9, false, 4294967296},
    {"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9, false, INT64_MAX},
    {"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", 9, true, INT64_MIN},
    {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, true, -1},
    {"\xd0\x05", 2, false, 5},
    {"\xd0\x80", 2, false, -128},
    {"\xd0\xdf", 2, false, -33},
    {"\xd1\x00\x05", 3, false, 5},
    {"\xd1\xff\x7f", 3, false, -129},
    {"\xd1\x80\x00", 3, false, -32768},
    {"\xd2\xff\xff\x7f\xff", 5, false, -32769},
    {"\xd2\x80\x00\x00\x00", 5, false, -2147483648LL},
    {"\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", 9, false, -2147483649LL},
    {"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, false, INT64_MIN},
    {"\xd3\x00\x00\x00\x00\x00\x00\x00\xff", 9, false, 255},
};

Test(codec, integers_of_every_width_are_taken_when_they_fit)
{
    static const struct {
        leat_kind kind;
        int64_t low, high; // of the values that are not `natural`
        bool natural;      // whether those fit too
    } kinds[] = {
        {LEAT_I8, -128, 127, false},
        {LEAT_I16, -32768, 32767, false},
        {LEAT_I32, -2147483648LL, 2147483647, false},
        {LEAT_I64, INT64_MIN, INT64_MAX, false},
        {LEAT_TIMESTAMP, INT64_MIN, INT64_MAX, false},
        {LEAT_U8, 0, 255, false},
        {LEAT_U16, 0, 65535, false},
        {LEAT_U32, 0, 4294967295, false},
        {LEAT_U64, 0, INT64_MAX, true},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const leat_type *type = leat_type_scalar(kinds[k].kind);
        for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
            uint64_t got = 0;
            bool fits = integers[i].natural ? kinds[k].natural
                                            : integers[i].value >= kinds[k].low &&
                                                  integers[i].value <= kinds[k].high;
            uint8_t *from = malloc(integers[i].size);
            memcpy(from, integers[i].bytes, integers[i].size);
            leat_err err = leat_record_decode(type, from, integers[i].size, &got, NULL);
            cr_assert(err == (fits ? LEAT_OK : LEAT_ECORRUPT), "kind %d row %zu", type->kind, i);
            cr_assert(!fits || memcmp(&got, &integers[i].value, type->size) == 0, "kind %d row %zu",
                      type->kind, i);
            for (size_t less = 0; less < integers[i].size; less++)
                cr_assert(leat_record_decode(type, from, less, &got, NULL) == LEAT_ECORRUPT);
            free(from);
        }
    }
}

Test(codec, reals_are_taken_when_nothing_is_lost)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool f32, f64;
        double value;
    } rows[] = {
        {"\xca\x3f\xc0\x00\x00", 5, true, true, 1.5},
        {"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 9, true, true, 1.5},
        {"\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", 9, false, true, 0.1},
        {"\xcb\x7f\xef\xff\xff\xff\xff\xff\xff", 9, false, true, 1.7976931348623157e308},
        {"\xcb\x47\xef\xff\xff\xe0\x00\x00\x00", 9, true, true, 3.4028234663852886e38},
        {"\xcb\x47\xef\xff\xff\xf0\x00\x00\x00", 9, false, true, 3.4028235677973366e38},
        {"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", 9, true, true, INFINITY},
        {"\xca\xff\x80\x00\x00", 5, true, true, -INFINITY},
        {"\xcb\x80\x00\x00\x00\x00\x00\x00\x00", 9, true, true, -0.0},
        {"\x05", 1, true, true, 5},
        {"\xff", 1, true, true, -1},
        {"\xce\x01\x00\x00\x00", 5, true, true, 16777216},
        {"\xce\x01\x00\x00\x01", 5, false, true, 16777217},
        {"\xd2\xff\x00\x00\x00", 5, true, true, -16777216},
        {"\xcf\x00\x20\x00\x00\x00\x00\x00\x00", 9, false, true, 9007199254740992.0},
        {"\xcf\x00\x20\x00\x00\x00\x00\x00\x01", 9, false, false, 0},
        {"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, false, false, 0},
        {"\xc0", 1, false, false, 0},
        {"\xc3", 1, false, false, 0},
        {"\xa1"
         "1",
         2, false, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t *from = (const uint8_t *)rows[i].bytes;
        float f32 = 0;
        double f64 = 0;
        leat_err err = leat_record_decode(LEAT_SCALAR(LEAT_F32), from, rows[i].size, &f32, NULL);
        cr_assert(err == (rows[i].f32 ? LEAT_OK : LEAT_ECORRUPT), "row %zu", i);
        cr_assert(!rows[i].f32 || (double)f32 == rows[i].value, "row %zu", i);
        err = leat_record_decode(LEAT_SCALAR(LEAT_F64), from, rows[i].size, &f64, NULL);
        cr_assert(err == (rows[i].f64 ? LEAT_OK : LEAT_ECORRUPT), "row %zu", i);
        cr_assert(!rows[i].f64 || f64 == rows[i].value, "row %zu", i);
    }
    float f32;
    const uint8_t nan64[] = {0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1};
    cr_assert(leat_record_decode(LEAT_SCALAR(LEAT_F32), nan64, 9, &f32, NULL) == LEAT_OK);
    cr_assert(isnan(f32));
}

Test(codec, foreign_widths_are_taken_field_by_field)
{
    // {word, count} with every form of the header, the string and the number.
    static const struct {
        const char *bytes;
        size_t size;
        leat_err err;
    } rows[] = {
        {"\x92\xa1x\x01", 4, LEAT_OK},
        {"\xdc\0\2\xa1x\x01", 6, LEAT_OK},
        {"\xdd\0\0\0\2\xa1x\x01", 8, LEAT_OK},
        {"\x92\xd9\1x\xcc\1", 6, LEAT_OK},
        {"\x92\xda\0\1x\xcd\0\1", 8, LEAT_OK},
        {"\x92\xdb\0\0\0\1x\xd0\1", 9, LEAT_OK},
        {"\x92\xdb\0\0\0\1x\xd3\0\0\0\0\0\0\0\1", 16, LEAT_OK},
        {"\x92\xa1x\xcf\0\0\0\0\0\0\0\1", 12, LEAT_OK},
        {"\x92\xa1x\xd3\0\0\0\0\0\0\0\1", 12, LEAT_OK},
        {"\x92\xa1x\xd3\0\0\0\0\0\0\0\1\0", 13, LEAT_ECORRUPT},
        {"\x93\xa1x\xd3\0\0\0\0\0\0\0\1\0", 13, LEAT_ECORRUPT},
        {"\x91\xa1x", 3, LEAT_ECORRUPT},
        {"\x91\xa1x\x01", 4, LEAT_ECORRUPT},
        {"\x93\xa1x\x01", 4, LEAT_ECORRUPT},
        {"\xdc\0\1\xa1x\x01", 6, LEAT_ECORRUPT},
        {"\x90", 1, LEAT_ECORRUPT},
        {"\x82\xa1x\x01", 4, LEAT_ECORRUPT},
        {"\x92\xc4\1x\xd3\0\0\0\0\0\0\0\1", 13, LEAT_ECORRUPT},
        {"\x92\xc0\xd3\0\0\0\0\0\0\0\1\0\0", 13, LEAT_ECORRUPT},
        {"\x92\xa1x\xc0", 4, LEAT_ECORRUPT},
        {"\x92\xa1x\xca\0\0\0\0", 8, LEAT_ECORRUPT},
        {"\x92\xa1x\xc1\0\0\0\0\0\0\0\0", 12, LEAT_ECORRUPT},
    };
    const leat_type *both[] = {LEAT_TYPE(word_count), twin_of(NULL, LEAT_TYPE(word_count))};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int t = 0; t < 2; t++) {
            uint8_t *from = malloc(rows[i].size);
            memcpy(from, rows[i].bytes, rows[i].size);
            word_count got;
            leat_err err = leat_record_decode(both[t], from, rows[i].size, &got, NULL);
            cr_assert(err == rows[i].err, "row %zu type %d", i, t);
            cr_assert(err || (got.count == 1 && got.word.size == 1 && *got.word.data == 'x'));
            cr_assert(err || ((const uint8_t *)got.word.data > from &&
                              (const uint8_t *)got.word.data < from + rows[i].size));
            free(from);
        }
    leat_type_release(both[1]);
}
