// SPDX-License-Identifier: Apache-2.0
// Random values of random types, of the sample types and of their twins of run time, against the
// naive model.
#include <criterion/criterion.h>

#include "model.h"
#include "samples.h"

enum { LARGEST = 4 << 20 };

static uint8_t expected[LARGEST], wire[LARGEST];

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

// Encoding gives the bytes of the model; every form of them decodes to the value again.
static void check_wire(const model *value, const void *record, leat_scratch *scratch, dice *d)
{
    const leat_type *type = value->type;
    size_t size = (size_t)(model_encode(value, expected, NULL) - expected);
    cr_assert(leat_record_encoded_size(type, record) == size);
    uint8_t *room = malloc(size);
    cr_assert(leat_record_encode(type, record, room, room + size) == room + size);
    cr_assert(memcmp(room, expected, size) == 0);
    cr_assert(leat_record_encode(type, record, wire, wire + LARGEST) == wire + size);
    cr_assert(memcmp(wire, expected, size) == 0);
    cr_assert(!leat_record_encode(type, record, room, room + roll(d, size)));
    free(room);
    void *got = calloc(1, type->size);
    for (int form = 0; form < 4; form++) {
        size = (size_t)(model_encode(value, expected, form ? d : NULL) - expected);
        uint8_t *from = malloc(size);
        memcpy(from, expected, size);
        leat_scratch_reset(scratch);
        cr_assert(leat_record_decode(type, from, size, got, scratch) == LEAT_OK);
        cr_assert(leat_record_equal(type, record, got) &&
                  leat_record_compare(type, record, got) == 0);
        cr_assert(leat_record_decode(type, from, roll(d, size), got, scratch) == LEAT_ECORRUPT);
        free(from);
    }
    free(got);
}

static void check_copy(const leat_type *type, const void *record)
{
    size_t extra = leat_record_extra_size(type, record);
    void *copy = malloc(type->size), *block = malloc(extra + 1);
    leat_record_copy_into(type, record, copy, block);
    cr_assert(leat_record_equal(type, record, copy));
    cr_assert(leat_record_is_within(type, copy, block, extra));
    cr_assert(leat_record_extra_size(type, copy) == extra);
    cr_assert(leat_type_has_pointers(type) || extra == 0);
    free(block);
    free(copy);
}

static void check_pair(const model *a, const void *a_record, const model *b, const void *b_record)
{
    const leat_type *type = a->type;
    int order = model_compare(a, b);
    cr_assert(sign(leat_record_compare(type, a_record, b_record)) == order);
    cr_assert(leat_record_equal(type, a_record, b_record) == (order == 0));
    cr_assert(leat_record_hash(type, a_record) == model_hash(a));
    cr_assert(order != 0 || model_hash(a) == model_hash(b));
    leat_key key;
    if (leat_key_init(&key, type, NULL, NULL, NULL) != LEAT_OK)
        return;
    cr_assert(leat_key_hash(&key, a_record) == model_hash(a));
    cr_assert(leat_key_equal(&key, a_record, &key, b_record) == (order == 0));
    cr_assert(sign(leat_key_compare(&key, a_record, b_record)) == order);
}

// Bytes with some changed: refused, or a value that survives another round.
static void check_changed(const model *value, leat_scratch *scratch, dice *d)
{
    const leat_type *type = value->type;
    size_t size = (size_t)(model_encode(value, expected, roll(d, 2) ? d : NULL) - expected);
    for (uint64_t changes = 1 + roll(d, 3); changes > 0; changes--)
        expected[roll(d, size)] = (uint8_t)roll(d, 256);
    void *got = calloc(1, type->size), *again = calloc(1, type->size);
    leat_scratch_reset(scratch);
    leat_err err = leat_record_decode(type, expected, size, got, scratch);
    cr_assert(err == LEAT_OK || err == LEAT_ECORRUPT);
    if (err == LEAT_OK) {
        size = leat_record_encoded_size(type, got);
        cr_assert(leat_record_encode(type, got, wire, wire + size) == wire + size);
        cr_assert(leat_record_decode(type, wire, size, again, scratch) == LEAT_OK);
        cr_assert(leat_record_equal(type, got, again));
        cr_assert(leat_record_hash(type, got) == leat_record_hash(type, again));
    }
    free(got);
    free(again);
}

static void check_type(const leat_type *type, uint64_t seed, int pairs)
{
    dice d = {seed};
    leat_scratch *scratch;
    cr_assert(leat_type_check(type, NULL) == LEAT_OK);
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    for (int i = 0; i < pairs; i++) {
        model a, b;
        int size = i % 4 == 0 ? 40 : 3;
        model_random(&a, type, &d, size);
        // The same dice make the same value, other ones mostly another.
        dice same = d;
        if (roll(&d, 3) == 0)
            model_random(&b, type, &same, 0);
        else
            model_random(&b, type, &d, size);
        void *a_record = calloc(1, type->size), *b_record = calloc(1, type->size);
        model_build(&a, a_record);
        model_build(&b, b_record);
        check_wire(&a, a_record, scratch, &d);
        check_copy(type, a_record);
        check_pair(&a, a_record, &b, b_record);
        check_pair(&a, a_record, &a, a_record);
        check_changed(&a, scratch, &d);
        model_unbuild(type, a_record);
        model_unbuild(type, b_record);
        free(a_record);
        free(b_record);
        model_free(&a);
        model_free(&b);
    }
    leat_scratch_destroy(&scratch);
}

Test(random, types_of_run_time_agree_with_the_model)
{
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        dice d = {seed};
        const leat_type *type = random_type(&d, 1 + (int)(seed % 5));
        check_type(type, seed * 77, 6);
        leat_type_release(type);
    }
}

Test(random, compiled_types_and_their_twins_agree_with_the_model)
{
    for (int i = 0; i < SAMPLE_TYPES; i++) {
        const leat_type *twin = twin_of(NULL, sample_types[i]);
        check_type(sample_types[i], (uint64_t)i + 1, 300);
        check_type(twin, (uint64_t)i + 100, 100);
        leat_type_release(twin);
    }
}
