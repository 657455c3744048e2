// SPDX-License-Identifier: Apache-2.0
// Deep copies, and the scratch memory of decoding.
#include <criterion/criterion.h>

#include "samples.h"

static const double score = 0.5;
static const address work = {{"work", 4}, 7, {"city", 4}};
static const leat_str tags[] = {{"x", 1}, {"yz", 2}};
static const leat_list values[] = {{tags, 2}, {NULL, 0}};
static const int64_t one = 1;
static const int64_t *const numbers[] = {NULL, &one};
static const leat_list visits[] = {{numbers, 2}};
static const person full = {
    5,     {{"s", 1}, 1, {"c", 1}}, {tags, 2}, {tags, values, 2}, &score, {&work, 1},
    &work, {&work, visits, 1},      true};

Test(copy, extra_size_is_what_the_parts_need)
{
    // home: 2 bytes of text. tags: 2 leat_str at 8, 3 of text: 43. aliases: keys at 48 to 80, text
    // to 83; lists at 88 to 120, items to 152, text to 155. score at 160 to 168. past at 168 to
    // 208, text to 216. work at 216 to 256, text to 264. visits: key at 264 to 304, text to 312;
    // list to 328; pointers to 344; number to 352.
    cr_assert(sizeof(address) == 40);
    cr_assert(leat_record_extra_size(LEAT_TYPE(person), &full) == 352);
    const leat_type *twin = twin_of(NULL, LEAT_TYPE(person));
    cr_assert(leat_record_extra_size(twin, &full) == 352);
    leat_type_release(twin);
    person empty = {0};
    cr_assert(leat_record_extra_size(LEAT_TYPE(person), &empty) == 0);
    scalars flat = {.str = {"abc", 3}, .bytes = {(const uint8_t *)"de", 2}};
    cr_assert(leat_record_extra_size(LEAT_TYPE(scalars), &flat) == 5);
}

Test(copy, a_copy_owns_all_it_points_to)
{
    const leat_type *both[] = {LEAT_TYPE(person), twin_of(NULL, LEAT_TYPE(person))};
    for (int t = 0; t < 2; t++) {
        void *copy;
        cr_assert(leat_record_copy(NULL, both[t], &full, &copy) == LEAT_OK);
        size_t size = sizeof(person) + 352 + 8; // the struct ends on 8, the rest starts on 16
        cr_assert(leat_record_equal(both[t], &full, copy));
        cr_assert(leat_record_is_within(both[t], copy, copy, size));
        cr_assert(!leat_record_is_within(both[t], &full, copy, size));
        cr_assert(!leat_record_is_within(both[t], copy, &full, sizeof full));
        // One byte less at either end leaves something outside.
        cr_assert(!leat_record_is_within(both[t], copy, copy, sizeof(person)));
        const person *p = copy;
        cr_assert(leat_record_is_within(both[t], copy, p->home.street.data,
                                        size - (size_t)(p->home.street.data - (char *)copy)));
        cr_assert(!leat_record_is_within(both[t], copy, p->home.street.data + 1, size));
        // A part that is borrowed is noticed at any depth.
        person mixed = *p;
        mixed.work = &work;
        cr_assert(!leat_record_is_within(both[t], &mixed, copy, size));
        mixed = *p;
        mixed.past.items = &work;
        cr_assert(!leat_record_is_within(both[t], &mixed, copy, size));
        mixed.past.count = 0;
        cr_assert(leat_record_is_within(both[t], &mixed, copy, size));
        leat_record_free(NULL, copy);
    }
    leat_type_release(both[1]);
}

Test(copy, copying_in_place_moves_what_is_borrowed)
{
    person mine = full;
    size_t extra = leat_record_extra_size(LEAT_TYPE(person), &mine);
    void *block = malloc(extra);
    leat_record_copy_into(LEAT_TYPE(person), &mine, &mine, block);
    cr_assert(leat_record_is_within(LEAT_TYPE(person), &mine, block, extra));
    cr_assert(leat_record_equal(LEAT_TYPE(person), &mine, &full));
    // Fields of the list are not part of the struct that was copied.
    cr_assert(mine.past.items != &work && mine.tags.items != tags);
    free(block);
}

Test(copy, running_out_of_memory_is_reported)
{
    counter c = {.fail_at = 1};
    leat_allocator allocator = counting(&c);
    void *copy = &c;
    cr_assert(leat_record_copy(&allocator, LEAT_TYPE(person), &full, &copy) == LEAT_ENOMEM);
    cr_assert(copy == &c && c.live == 0);
    cr_assert(leat_record_copy(&allocator, LEAT_TYPE(person), &full, &copy) == LEAT_OK);
    cr_assert(c.live == 1);
    leat_record_free(&allocator, copy);
    cr_assert(c.live == 0);
    leat_record_free(&allocator, NULL);
}

Test(copy, pointers_are_known_from_the_type)
{
    static const struct {
        const leat_type *type;
        bool pointers;
    } rows[] = {
        {LEAT_SCALAR(LEAT_I64), false},  {LEAT_SCALAR(LEAT_TIMESTAMP), false},
        {LEAT_SCALAR(LEAT_BOOL), false}, {LEAT_SCALAR(LEAT_F64), false},
        {LEAT_SCALAR(LEAT_STR), true},   {LEAT_SCALAR(LEAT_BYTES), true},
        {LEAT_TYPE(names), true},        {LEAT_TYPE(maybe_i64), true},
        {LEAT_TYPE(address), true},      {LEAT_TYPE(many), true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_assert(leat_type_has_pointers(rows[i].type) == rows[i].pointers, "row %zu", i);
    leat_field_spec fields[] = {{"a", LEAT_SCALAR(LEAT_I64)}, {"b", LEAT_SCALAR(LEAT_BOOL)}};
    const leat_type *flat, *outer;
    cr_assert(leat_type_struct_create(NULL, "flat", fields, 2, &flat) == LEAT_OK);
    leat_field_spec nested[] = {{"a", flat}, {"b", flat}};
    cr_assert(leat_type_struct_create(NULL, "outer", nested, 2, &outer) == LEAT_OK);
    cr_assert(!leat_type_has_pointers(outer));
    leat_type_release(flat);
    leat_type_release(outer);
}

// --- scratch -------------------------------------------------------------------------------------

Test(scratch, memory_is_aligned_and_apart)
{
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    for (int round = 0; round < 3; round++) {
        unsigned char *taken[200];
        for (size_t i = 0; i < 200; i++) {
            taken[i] = leat_scratch_take(scratch, i * 7 % 300);
            cr_assert(taken[i] && (uintptr_t)taken[i] % 16 == 0);
            memset(taken[i], (int)i, i * 7 % 300);
        }
        for (size_t i = 0; i < 200; i++)
            for (size_t j = 0; j < i * 7 % 300; j++)
                cr_assert(taken[i][j] == (unsigned char)i);
        leat_scratch_reset(scratch);
    }
    leat_scratch_destroy(&scratch);
    cr_assert(scratch == NULL);
    leat_scratch_destroy(&scratch);
}

Test(scratch, growth_is_bounded_and_ends)
{
    counter c = {0};
    leat_allocator allocator = counting(&c);
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(&allocator, &scratch) == LEAT_OK);
    // Records of up to 100,000 bytes in pieces of changing size, one piece larger than all chunks.
    unsigned seed = 1;
    size_t calls = 0;
    for (int record = 0; record < 3000; record++) {
        for (size_t left = 100000; left > 0;) {
            seed = seed * 1103515245 + 12345;
            size_t piece = seed % 5 == 0 ? left / 2 + 1 : seed / 65536 % 700 + 1;
            piece = piece < left ? piece : left;
            cr_assert(leat_scratch_take(scratch, piece) != NULL);
            left -= piece;
        }
        leat_scratch_reset(scratch);
        if (record == 100)
            calls = c.calls;
    }
    cr_assert(c.calls == calls, "allocations after 100 records");
    cr_assert(c.bytes < 600000, "%zu", c.bytes);
    leat_scratch_destroy(&scratch);
    cr_assert(c.live == 0);
}

Test(scratch, running_out_of_memory_leaves_it_usable)
{
    counter c = {.fail_at = 1};
    leat_allocator allocator = counting(&c);
    leat_scratch *scratch = NULL;
    cr_assert(leat_scratch_create(&allocator, &scratch) == LEAT_ENOMEM && !scratch);
    c = (counter){.fail_at = 3};
    cr_assert(leat_scratch_create(&allocator, &scratch) == LEAT_OK);
    cr_assert(leat_scratch_take(scratch, 3000) != NULL);
    cr_assert(leat_scratch_take(scratch, 1 << 20) == NULL);
    cr_assert(leat_scratch_take(scratch, SIZE_MAX) == NULL);
    cr_assert(leat_scratch_take(scratch, SIZE_MAX - 64) == NULL);
    cr_assert(leat_scratch_take(scratch, 1 << 20) != NULL);
    leat_scratch_reset(scratch);
    cr_assert(leat_scratch_take(scratch, 1 << 20) != NULL);
    cr_assert(c.calls == 4);
    leat_scratch_destroy(&scratch);
    cr_assert(c.live == 0);
}

Test(scratch, decoding_reports_what_it_cannot_get)
{
    uint8_t bytes[1024];
    uint8_t *end = leat_record_encode(LEAT_TYPE(person), &full, bytes, bytes + sizeof bytes);
    static leat_str many_tags[500];
    person big = full;
    big.tags = (leat_list){many_tags, 500};
    uint8_t *large = malloc(4096);
    uint8_t *large_end = leat_record_encode(LEAT_TYPE(person), &big, large, large + 4096);
    for (size_t n = 1; n < 10; n++) {
        counter c = {.fail_at = n};
        leat_allocator allocator = counting(&c);
        leat_scratch *scratch;
        if (leat_scratch_create(&allocator, &scratch) != LEAT_OK)
            continue;
        person got;
        leat_err err = leat_record_decode(LEAT_TYPE(person), large, (size_t)(large_end - large),
                                          &got, scratch);
        cr_assert(err == (c.calls >= n ? LEAT_ENOMEM : LEAT_OK), "allocation %zu", n);
        leat_scratch_reset(scratch);
        cr_assert(leat_record_decode(LEAT_TYPE(person), bytes, (size_t)(end - bytes), &got,
                                     scratch) == LEAT_OK);
        cr_assert(leat_record_equal(LEAT_TYPE(person), &full, &got));
        leat_scratch_destroy(&scratch);
        cr_assert(c.live == 0);
    }
    free(large);
}

Test(scratch, encoding_and_decoding_allocate_nothing_in_the_steady_state)
{
    // Records with strings, optionals, lists and maps of changing sizes, compiled and described at
    // run time.
    static leat_str words[64];
    for (size_t i = 0; i < 64; i++)
        words[i] = (leat_str){"a word of any length, cut somewhere", i % 36};
    counter c = {0};
    leat_allocator allocator = counting(&c);
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(&allocator, &scratch) == LEAT_OK);
    const leat_type *both[] = {LEAT_TYPE(person), twin_of(&allocator, LEAT_TYPE(person))};
    static uint8_t bytes[16384];
    size_t settled = 0;
    for (size_t i = 0; i < 20000; i++) {
        person p = full;
        p.tags = (leat_list){words, i * 31 % 65};
        p.aliases.count = i % 3;
        p.visits.count = i % 2;
        p.score = i % 5 ? &score : NULL;
        p.work = i % 7 ? &work : NULL;
        const leat_type *type = both[i % 2];
        uint8_t *end = leat_record_encode(type, &p, bytes, bytes + sizeof bytes);
        cr_assert(end != NULL);
        person got;
        leat_scratch_reset(scratch);
        cr_assert(leat_record_decode(type, bytes, (size_t)(end - bytes), &got, scratch) == LEAT_OK);
        cr_assert(leat_record_equal(type, &p, &got));
        cr_assert(leat_record_hash(type, &p) == leat_record_hash(type, &got));
        if (i == 200)
            settled = c.calls;
    }
    cr_assert(c.calls == settled, "%zu allocations after the first 200 records", c.calls - settled);
    leat_type_release(both[1]);
    leat_scratch_destroy(&scratch);
    cr_assert(c.live == 0);
}
