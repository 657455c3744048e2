// SPDX-License-Identifier: Apache-2.0
// The frozen hash: the table of docs/design/hash.md, which a separate program computed, and what
// must hold beside it.
#include <criterion/criterion.h>
#include <math.h>

#include "samples.h"

typedef struct pair {
    leat_str a;
    int64_t b;
} pair;
LEAT_RECORD(pair, LEAT_FIELD(a, LEAT_STR), LEAT_FIELD(b, LEAT_I64));
typedef struct two {
    int64_t b, c;
} two;
LEAT_RECORD(two, LEAT_FIELD(b, LEAT_I64), LEAT_FIELD(c, LEAT_I64));
typedef struct nested {
    int64_t a;
    two rest;
} nested;
LEAT_RECORD(nested, LEAT_FIELD(a, LEAT_I64), LEAT_FIELD_STRUCT(rest, two));
typedef struct three {
    int64_t a, b, c;
} three;
LEAT_RECORD(three, LEAT_FIELD(a, LEAT_I64), LEAT_FIELD(b, LEAT_I64), LEAT_FIELD(c, LEAT_I64));
typedef struct maybe {
    const int64_t *a;
    int64_t b;
} maybe;
LEAT_RECORD(maybe, LEAT_FIELD_OPTIONAL(a, LEAT_SCALAR(LEAT_I64)), LEAT_FIELD(b, LEAT_I64));
LEAT_LIST_TYPE(numbers, LEAT_SCALAR(LEAT_I64));
LEAT_MAP_TYPE(counts, LEAT_SCALAR(LEAT_STR), LEAT_SCALAR(LEAT_I64));

static const int64_t i64s[] = {0, 1, 2};
static const int64_t backwards[] = {2, 1};
static const leat_str words[] = {{"a", 1}, {"b", 1}};
static const leat_str swapped[] = {{"b", 1}, {"a", 1}};

Test(hash, the_documented_vectors_hold)
{
    static char x300[300];
    memset(x300, 'x', sizeof x300);
    static const int64_t low = INT64_MIN, high = INT64_MAX, minus = -1, answer = 42;
    static const double zero = -0.0, one = 1, real = -2.5, tenth = 0.1, nan = NAN, inf = INFINITY;
    static const leat_str empty = {NULL, 0}, word_and = {"word count", 10}, xs = {x300, 300};
    static const int64_t *const absent = NULL;
    static const leat_list none = {NULL, 0}, zeros = {i64s, 1}, up = {i64s + 1, 2},
                           down = {backwards, 2};
    static const leat_dict no_map = {NULL, NULL, 0}, map = {words, i64s + 1, 2},
                           map_swapped = {swapped, backwards, 2};
    static const pair a_1 = {{"a", 1}, 1};
    static const three flat = {1, 2, 3};
    static const nested deep = {1, {2, 3}};
    static const maybe null_1 = {NULL, 1};
    static const struct {
        const leat_type *type;
        const void *value;
        uint64_t hash;
        uint32_t group128, group1000;
    } rows[] = {
        {LEAT_SCALAR(LEAT_I64), &i64s[0], 0xe220a8397b1dcdaf, 106, 66},
        {LEAT_SCALAR(LEAT_I64), &i64s[1], 0x910a2dec89025cc1, 103, 887},
        {LEAT_SCALAR(LEAT_I64), &minus, 0xe4d971771b652c20, 109, 557},
        {LEAT_SCALAR(LEAT_TIMESTAMP), &answer, 0xbdd732262feb6e95, 63, 607},
        {LEAT_SCALAR(LEAT_I64), &high, 0x2a67d7552e039ea7, 42, 706},
        {LEAT_SCALAR(LEAT_I64), &low, 0x481ec0a212a9f3db, 29, 389},
        {LEAT_SCALAR(LEAT_F64), &zero, 0xe220a8397b1dcdaf, 106, 66},
        {LEAT_SCALAR(LEAT_F64), &one, 0x88d7c35bbbf3eded, 97, 881},
        {LEAT_SCALAR(LEAT_F64), &real, 0xe0191234ca04fa08, 11, 323},
        {LEAT_SCALAR(LEAT_F64), &tenth, 0xf823e4ed2fb12a7d, 103, 271},
        {LEAT_SCALAR(LEAT_F64), &nan, 0xc72971d82e15bb46, 56, 208},
        {LEAT_SCALAR(LEAT_F64), &inf, 0x249e5410c2f97d99, 78, 598},
        {LEAT_SCALAR(LEAT_STR), &empty, 0x2d06800538d394c2, 74, 234},
        {LEAT_SCALAR(LEAT_STR), &words[0], 0xe6c632b61e964e1f, 88, 488},
        {LEAT_SCALAR(LEAT_STR), &word_and, 0xd66b085308aa8afe, 4, 668},
        {LEAT_SCALAR(LEAT_BYTES), &xs, 0xa5d1b4607dc83554, 0, 496},
        {LEAT_TYPE(maybe_i64), &absent, 0x6c6561742e6e696c, 6, 670},
        {LEAT_TYPE(numbers), &none, 0x6c6561742e6c7374, 37, 773},
        {LEAT_TYPE(numbers), &zeros, 0xa51eb4abbb62f15d, 37, 189},
        {LEAT_TYPE(numbers), &up, 0x5bb246d234f65975, 127, 199},
        {LEAT_TYPE(numbers), &down, 0x90eb8c27732efce0, 89, 969},
        {LEAT_TYPE(counts), &no_map, 0x86ef40afcfe07802, 6, 326},
        {LEAT_TYPE(counts), &map, 0xf37dca3bdeedd058, 17, 785},
        {LEAT_TYPE(counts), &map_swapped, 0xf37dca3bdeedd058, 17, 785},
        {LEAT_TYPE(pair), &a_1, 0x3ab4fd89b9038144, 47, 687},
        {LEAT_TYPE(three), &flat, 0x2889595287922b67, 33, 809},
        {LEAT_TYPE(nested), &deep, 0x787cf6fa12b34972, 20, 388},
        {LEAT_TYPE(maybe), &null_1, 0x30f1629da7f54385, 117, 893},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const leat_type *twin = twin_of(NULL, rows[i].type);
        cr_assert(leat_record_hash(rows[i].type, rows[i].value) == rows[i].hash, "row %zu", i);
        cr_assert(leat_record_hash(twin, rows[i].value) == rows[i].hash, "row %zu", i);
        cr_assert(leat_key_group(rows[i].hash, 128) == rows[i].group128, "row %zu", i);
        cr_assert(leat_key_group(rows[i].hash, 1000) == rows[i].group1000, "row %zu", i);
        leat_type_release(twin);
    }
}

Test(hash, integers_hash_by_value_whatever_their_width)
{
    for (int v = -128; v < 256; v++) {
        int8_t i8 = (int8_t)v;
        int16_t i16 = (int16_t)v;
        int32_t i32 = v;
        int64_t i64 = v;
        uint8_t u8 = (uint8_t)v;
        uint16_t u16 = (uint16_t)v;
        uint32_t u32 = (uint32_t)v;
        uint64_t u64 = (uint64_t)v, hash = leat_record_hash(LEAT_SCALAR(LEAT_I64), &i64);
        cr_assert(hash == leat_hash_u64((uint64_t)i64));
        cr_assert(leat_record_hash(LEAT_SCALAR(LEAT_I32), &i32) == hash);
        cr_assert(leat_record_hash(LEAT_SCALAR(LEAT_I16), &i16) == hash);
        cr_assert(leat_record_hash(LEAT_SCALAR(LEAT_TIMESTAMP), &i64) == hash);
        cr_assert(leat_record_hash(LEAT_SCALAR(LEAT_U64), &u64) == hash);
        cr_assert(v > 127 || leat_record_hash(LEAT_SCALAR(LEAT_I8), &i8) == hash);
        cr_assert(v < 0 || leat_record_hash(LEAT_SCALAR(LEAT_U8), &u8) == hash);
        cr_assert(v < 0 || leat_record_hash(LEAT_SCALAR(LEAT_U16), &u16) == hash);
        cr_assert(v < 0 || leat_record_hash(LEAT_SCALAR(LEAT_U32), &u32) == hash);
        bool flag = v;
        cr_assert((v != 0 && v != 1) || leat_record_hash(LEAT_SCALAR(LEAT_BOOL), &flag) == hash);
    }
}

Test(hash, every_nan_is_one_value_and_so_are_the_zeros)
{
    static const uint64_t nans[] = {0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001,
                                    0xffffffffffffffff, 0x7ff8000000000123};
    static const uint32_t nans32[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff};
    double first = NAN, infinite = INFINITY, zero = 0.0, minus_zero = -0.0;
    const leat_type *f64 = LEAT_SCALAR(LEAT_F64), *f32 = LEAT_SCALAR(LEAT_F32);
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        double value;
        memcpy(&value, &nans[i], sizeof value);
        cr_assert(leat_record_hash(f64, &value) == leat_record_hash(f64, &first));
        cr_assert(leat_record_equal(f64, &value, &first));
        cr_assert(leat_record_compare(f64, &value, &first) == 0);
        cr_assert(!leat_record_equal(f64, &value, &infinite));
    }
    for (size_t i = 0; i < sizeof nans32 / sizeof *nans32; i++)
        cr_assert(leat_record_hash(f32, &nans32[i]) == leat_record_hash(f64, &first));
    cr_assert(leat_record_equal(f64, &zero, &minus_zero));
    float one32 = 0.1f;
    double one64 = (double)one32;
    cr_assert(leat_record_hash(f32, &one32) == leat_record_hash(f64, &one64));
}

Test(hash, key_groups_and_subtasks_are_in_range_and_even)
{
    static const uint32_t most[] = {1, 2, 3, 127, 128, 1000, 32768};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++)
        for (uint32_t p = 1; p <= most[m] && p < 9; p++) {
            uint32_t *seen = calloc(p, sizeof *seen);
            for (uint64_t v = 0; v < 20000; v++) {
                uint32_t group = leat_key_group(leat_hash_u64(v), most[m]);
                cr_assert(group < most[m]);
                uint32_t subtask = leat_key_group_to_subtask(group, p, most[m]);
                cr_assert(subtask < p);
                seen[subtask]++;
            }
            for (uint32_t s = 0; s < p && most[m] > 100; s++)
                cr_assert(seen[s] > 20000 / p * 8 / 10 && seen[s] < 20000 / p * 12 / 10);
            free(seen);
        }
    cr_assert(leat_key_group_to_subtask(32767, 32768, 32768) == 32767);
    // Subtask i owns the groups from ceil(i * M / P) to floor(((i + 1) * M - 1) / P).
    for (uint32_t p = 1; p <= 128; p++)
        for (uint32_t i = 0; i < p; i++) {
            uint32_t low = (i * 128 + p - 1) / p, high = ((i + 1) * 128 - 1) / p;
            cr_assert(leat_key_group_to_subtask(low, p, 128) == i);
            cr_assert(leat_key_group_to_subtask(high, p, 128) == i);
        }
}

Test(hash, bits_spread)
{
    // Consecutive integers fill the slots of a table by their low bits and by their high bits.
    for (int shift = 0; shift <= 52; shift += 52) {
        uint32_t used[4096] = {0}, filled = 0;
        for (uint64_t v = 0; v < 4096; v++)
            filled += used[leat_hash_u64(v) >> shift & 4095]++ == 0;
        // 1 - 1/e of 4096 is 2589.
        cr_assert(filled > 2400 && filled < 2780, "%u", filled);
    }
}
