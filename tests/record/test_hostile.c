// SPDX-License-Identifier: Apache-2.0
// Bytes that somebody made up: an error, no read beyond them, no memory beyond what they could
// stand for.
#include <criterion/criterion.h>

#include "samples.h"

// Decodes from a block of exactly that size, so that AddressSanitizer sees a read beyond it.
// Returns the error and the bytes asked of the allocator.
static leat_err decode(const leat_type *type, const void *bytes, size_t size, size_t *asked)
{
    counter c = {0};
    leat_allocator allocator = counting(&c);
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(&allocator, &scratch) == LEAT_OK);
    size_t before = c.bytes;
    uint8_t *from = malloc(size ? size : 1);
    memcpy(from, bytes, size);
    void *record = calloc(1, type->size);
    leat_err err = leat_record_decode(type, from, size, record, scratch);
    *asked = c.bytes - before;
    leat_scratch_destroy(&scratch);
    cr_assert(c.live == 0);
    free(record);
    free(from);
    return err;
}

// The chunks of a scratch double, so it asks for at most twice what was taken, and a first chunk.
static void expect_refusal(const leat_type *type, const void *bytes, size_t size)
{
    size_t asked;
    const leat_type *both[] = {type, twin_of(NULL, type)};
    for (int i = 0; i < 2; i++) {
        cr_assert(decode(both[i], bytes, size, &asked) == LEAT_ECORRUPT);
        cr_assert(asked <= 2 * LEAT_DECODE_AMPLIFICATION * size + 1024, "%zu for %zu", asked, size);
    }
    leat_type_release(both[1]);
}

LEAT_LIST_TYPE(numbers, LEAT_SCALAR(LEAT_I64));
LEAT_LIST_TYPE(matrix, LEAT_TYPE(numbers));
LEAT_LIST_TYPE(cube, LEAT_TYPE(matrix));
LEAT_MAP_TYPE(dictionary, LEAT_SCALAR(LEAT_STR), LEAT_TYPE(names));

Test(hostile, headers_that_promise_too_much_are_refused)
{
#define ROW(type, bytes)                                                                           \
    {                                                                                              \
        LEAT_TYPE(type), bytes, sizeof bytes - 1                                                   \
    }
    static const struct {
        const leat_type *type;
        const char *bytes;
        size_t size;
    } rows[] = {
        {LEAT_TYPE(names), "", 0},
        ROW(names, "\xdd\xff\xff\xff\xff"),
        ROW(names, "\xdd\xff\xff\xff\xff\xa0\xa0\xa0\xa0\xa0\xa0\xa0\xa0"),
        ROW(names, "\xdd\x08\x00\x00\x00"),
        ROW(names, "\xdc\xff\xff\xa0"),
        ROW(names, "\xdc\x00"),
        ROW(names, "\xdd\x00\x00\x00"),
        ROW(names, "\x9f"),
        ROW(names, "\x92\xa0"),
        ROW(names, "\x91\xa1"),
        ROW(names, "\x91\xbf"
                   "abc"),
        ROW(names, "\x91\xd9"),
        ROW(names, "\x91\xd9\xff"
                   "abc"),
        ROW(names, "\x91\xda\xff\xff"
                   "abc"),
        ROW(names, "\x91\xdb\xff\xff\xff\xff"
                   "abc"),
        ROW(names, "\x91\xdb\x00\x00\x00"),
        ROW(names, "\x91\xa0\xa0"),
        ROW(names, "\xc0"),
        ROW(names, "\xc7\x00\x01"),
        ROW(dictionary, "\xdf\xff\xff\xff\xff\xa1k\x90"),
        ROW(dictionary, "\xde\xff\xff\xa1k\x90"),
        ROW(dictionary, "\x8f\xa1k\x90"),
        ROW(dictionary, "\x81\xa1k"),
        ROW(dictionary, "\x81\xa1k\xdd\xff\xff\xff\xff"),
        ROW(dictionary, "\x81\x01\x90"),
        ROW(dictionary, "\x90"),
        ROW(maybe_i64, "\xc0\xc0"),
        ROW(maybe_i64, "\xa0"),
        ROW(maybe_i64, "\xd3\x00"),
        ROW(row, "\x94\xa1x\xd3\0\0\0\0\0\0\0\0\xcb\0\0\0\0\0\0\0\0\xd3\0\0\0\0\0\0\0"),
        ROW(row, "\x94\xbfx\xd3\0\0\0\0\0\0\0\0\xcb\0\0\0\0\0\0\0\0\xd3\0\0\0\0\0\0\0\0"),
        ROW(row, "\x94\xd9\xffx\xd3\0\0\0\0\0\0\0\0\xcb\0\0\0\0\0\0\0\0\xd3\0\0\0\0\0\0\0\0"),
    };
#undef ROW
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refusal(rows[i].type, rows[i].bytes, rows[i].size);
}

Test(hostile, nested_counts_share_one_budget)
{
    // Each level promises as many items as there are bytes left; only the first of each is there.
    enum { SIZE = 200000 };
    uint8_t *bytes = malloc(SIZE);
    memset(bytes, 0xc1, SIZE);
    for (size_t level = 0; level < 3; level++) {
        bytes[level * 5] = 0xdd;
        bytes[level * 5 + 1] = 0;
        bytes[level * 5 + 2] = 0x02;
        bytes[level * 5 + 3] = 0x20;
        bytes[level * 5 + 4] = 0;
    }
    expect_refusal(LEAT_TYPE(cube), bytes, SIZE);
    // One item that stands for much memory and is not there.
    memset(bytes, 0x99, SIZE);
    memcpy(bytes, "\x93\1\xdd\x00\x03\x00\x00", 7);
    expect_refusal(LEAT_TYPE(shuffled), bytes, SIZE);
    // Thirty levels that promise as much each.
    const leat_type *type = LEAT_SCALAR(LEAT_I64), *next;
    for (int level = 0; level < 30; level++) {
        cr_assert(leat_type_list_create(NULL, type, &next) == LEAT_OK);
        leat_type_release(type);
        type = next;
        memcpy(bytes + level * 5, "\xdd\x00\x03\x00\x00", 5);
    }
    expect_refusal(type, bytes, SIZE);
    leat_type_release(type);
    free(bytes);
}

Test(hostile, what_valid_records_take_is_within_the_budget)
{
    // The densest valid inputs: a byte each for an empty map in an optional, an absent optional, an
    // empty string.
    static const leat_type map = {.kind = LEAT_MAP,
                                  .size = sizeof(leat_dict),
                                  .align = 8,
                                  .element = LEAT_SCALAR(LEAT_BOOL),
                                  .key = LEAT_SCALAR(LEAT_BOOL)};
    static const leat_type optional = {
        .kind = LEAT_OPTIONAL, .size = sizeof(void *), .align = 8, .element = &map};
    static const leat_type flag = {.kind = LEAT_OPTIONAL,
                                   .size = sizeof(void *),
                                   .align = 8,
                                   .element = LEAT_SCALAR(LEAT_BOOL)};
    static const struct {
        leat_type list;
        uint8_t item;
    } rows[] = {
        {{.kind = LEAT_LIST, .size = sizeof(leat_list), .align = 8, .element = &optional}, 0x80},
        {{.kind = LEAT_LIST, .size = sizeof(leat_list), .align = 8, .element = &map}, 0x80},
        {{.kind = LEAT_LIST, .size = sizeof(leat_list), .align = 8, .element = &flag}, 0xc3},
        {{.kind = LEAT_LIST, .size = sizeof(leat_list), .align = 8, .element = &flag}, 0xc0},
        {{.kind = LEAT_LIST,
          .size = sizeof(leat_list),
          .align = 8,
          .element = LEAT_SCALAR(LEAT_STR)},
         0xa0},
    };
    static const size_t counts[] = {1, 15, 16, 70, 1000, 65535};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            uint8_t *bytes = malloc(counts[c] + 3);
            size_t header = counts[c] < 16 ? 1 : 3, asked;
            bytes[0] = (uint8_t)(0x90 | counts[c]);
            if (header == 3) {
                bytes[0] = 0xdc;
                bytes[1] = (uint8_t)(counts[c] >> 8);
                bytes[2] = (uint8_t)counts[c];
            }
            memset(bytes + header, rows[i].item, counts[c]);
            cr_assert(decode(&rows[i].list, bytes, header + counts[c], &asked) == LEAT_OK,
                      "row %zu, %zu items", i, counts[c]);
            free(bytes);
        }
}

Test(hostile, every_prefix_and_every_changed_byte_ends_well)
{
    static const double score = 0.5;
    static const address work = {
        {"work street", 11}, 7, {"a city with a name of more than 31 bytes", 40}};
    static const leat_str tags[] = {{"x", 1}, {"yz", 2}};
    static const leat_list values[] = {{tags, 2}, {NULL, 0}};
    static const int64_t one = 1;
    static const int64_t *const numbers[] = {NULL, &one};
    static const leat_list visits[] = {{numbers, 2}};
    person who = {5,     {{"s", 1}, 1, {"c", 1}}, {tags, 2}, {tags, values, 2}, &score, {&work, 1},
                  &work, {&work, visits, 1},      true};
    uint8_t bytes[512], changed[512];
    uint8_t *end = leat_record_encode(LEAT_TYPE(person), &who, bytes, bytes + sizeof bytes);
    size_t size = (size_t)(end - bytes), asked;
    const leat_type *both[] = {LEAT_TYPE(person), twin_of(NULL, LEAT_TYPE(person))};
    for (int t = 0; t < 2; t++) {
        for (size_t less = 0; less < size; less++)
            cr_assert(decode(both[t], bytes, less, &asked) == LEAT_ECORRUPT);
        for (size_t at = 0; at < size; at++)
            for (int value = 0; value < 256; value += 3) {
                memcpy(changed, bytes, size);
                changed[at] = (uint8_t)value;
                leat_err err = decode(both[t], changed, size, &asked);
                cr_assert(err == LEAT_OK || err == LEAT_ECORRUPT);
                cr_assert(asked <= 2 * LEAT_DECODE_AMPLIFICATION * size + 1024);
            }
    }
    leat_type_release(both[1]);
}

Test(hostile, a_type_that_holds_itself_does_not_overrun_the_stack)
{
    // leat_type_check refuses it; decoding stays safe for who did not ask.
    static const leat_type recursive = {
        .kind = LEAT_LIST, .size = sizeof(leat_list), .align = 8, .element = &recursive};
    enum { SIZE = 1 << 20 };
    uint8_t *bytes = malloc(SIZE);
    memset(bytes, 0x91, SIZE);
    size_t asked;
    cr_assert(decode(&recursive, bytes, SIZE, &asked) == LEAT_ECORRUPT);
    free(bytes);
}

Test(hostile, a_type_that_needs_a_scratch_says_so)
{
    leat_list list;
    const void *optional;
    cr_assert(leat_record_decode(LEAT_TYPE(names), (const uint8_t *)"\x91\xa0", 2, &list, NULL) ==
              LEAT_EINVAL);
    cr_assert(leat_record_decode(LEAT_TYPE(names), (const uint8_t *)"\x90", 1, &list, NULL) ==
              LEAT_OK);
    cr_assert(leat_record_decode(LEAT_TYPE(maybe_i64), (const uint8_t *)"\x01", 1, &optional,
                                 NULL) == LEAT_EINVAL);
    cr_assert(leat_record_decode(LEAT_TYPE(maybe_i64), (const uint8_t *)"\xc0", 1, &optional,
                                 NULL) == LEAT_OK);
    cr_assert(optional == NULL);
}
