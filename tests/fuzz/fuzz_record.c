// SPDX-License-Identifier: Apache-2.0
// The first byte chooses a type, compiled or described at run time; the rest is decoded. What
// decodes must survive a second round: encoded, decoded and compared equal. All of it within the
// memory that decoding promises.
#include <stdio.h>

#include "tests/record/samples.h"

// A finding: libFuzzer and the tests both see an abort.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fuzz_record: line %d: %s\n", __LINE__, #condition);                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static const leat_type *choose_type(unsigned choice)
{
    // Made once, as making types is not what is tested here.
    static const leat_type *twins[SAMPLE_TYPES];
    unsigned index = choice % SAMPLE_TYPES;
    if (choice / SAMPLE_TYPES % 2 == 0)
        return sample_types[index];
    if (!twins[index])
        twins[index] = twin_of(NULL, sample_types[index]);
    EXPECT(twins[index]);
    return twins[index];
}

static void check_copy(const leat_type *type, const void *record)
{
    size_t extra = leat_record_extra_size(type, record);
    void *copy = malloc(type->size), *block = malloc(extra ? extra : 1);
    EXPECT(copy && block);
    leat_record_copy_into(type, record, copy, block);
    EXPECT(leat_record_is_within(type, copy, block, extra));
    EXPECT(leat_record_equal(type, record, copy));
    free(block);
    free(copy);
}

static void check_text(const leat_type *type, const void *record)
{
    size_t size = leat_record_json(type, record, NULL, 0);
    char *text = malloc(size ? size : 1);
    EXPECT(text && leat_record_json(type, record, text, size) == size);
    EXPECT(leat_record_json(type, record, text, size / 2) == size);
    free(text);
    size = leat_record_text(type, record, NULL, 0);
    text = malloc(size ? size : 1);
    EXPECT(text && leat_record_text(type, record, text, size) == size);
    free(text);
}

// Equality and order are quadratic in maps whose entries stand in different orders; here they stand
// in the same one.
static void check_round(const leat_type *type, const void *record, leat_scratch *scratch)
{
    size_t size = leat_record_encoded_size(type, record);
    uint8_t *wire = malloc(size);
    void *again = calloc(1, type->size);
    EXPECT(wire && again);
    EXPECT(!leat_record_encode(type, record, wire, wire + size - 1));
    EXPECT(leat_record_encode(type, record, wire, wire + size) == wire + size);
    EXPECT(leat_record_decode(type, wire, size, again, scratch) == LEAT_OK);
    EXPECT(leat_record_equal(type, record, again));
    EXPECT(leat_record_hash(type, record) == leat_record_hash(type, again));
    if (size < 4096)
        EXPECT(leat_record_compare(type, record, again) == 0);
    check_copy(type, again);
    check_text(type, again);
    free(again);
    free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const leat_type *type = choose_type(data[0]);
    data++;
    size--;
    counter c = {0};
    leat_allocator allocator = counting(&c);
    leat_scratch *scratch;
    EXPECT(leat_scratch_create(&allocator, &scratch) == LEAT_OK);
    size_t before = c.bytes;
    // A block of exactly that size.
    uint8_t *from = malloc(size ? size : 1);
    void *record = calloc(1, type->size);
    EXPECT(from && record);
    memcpy(from, data, size);
    leat_err err = leat_record_decode(type, from, size, record, scratch);
    EXPECT(err == LEAT_OK || err == LEAT_ECORRUPT);
    EXPECT(c.bytes - before <= 2 * LEAT_DECODE_AMPLIFICATION * size + 1024);
    if (err == LEAT_OK)
        check_round(type, record, scratch);
    free(record);
    free(from);
    leat_scratch_destroy(&scratch);
    EXPECT(c.live == 0);
    return 0;
}
