// SPDX-License-Identifier: Apache-2.0
// The first byte chooses a type, compiled or described at run time; the rest is read as JSON. What
// is read must survive being written and read once more, in the strict form and with unknown
// members refused.
#include <math.h>
#include <stdio.h>

#include "leat/parse.h"
#include "tests/record/samples.h"

// A finding: libFuzzer and the tests both see an abort.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fuzz_json: line %d: %s\n", __LINE__, #condition);                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

LEAT_MAP_TYPE(by_u64, LEAT_SCALAR(LEAT_U64), LEAT_SCALAR(LEAT_BYTES));
LEAT_MAP_TYPE(by_bool, LEAT_SCALAR(LEAT_BOOL), LEAT_TYPE(by_u64));
LEAT_LIST_TYPE(floats, LEAT_SCALAR(LEAT_F32));

static const leat_type *choose_type(unsigned choice)
{
    static const leat_type *const more[] = {LEAT_TYPE(by_bool), LEAT_TYPE(floats),
                                            LEAT_SCALAR(LEAT_STR)};
    enum { MORE = sizeof more / sizeof *more };
    // Made once, as making types is not what is tested here.
    static const leat_type *twins[SAMPLE_TYPES];
    unsigned index = choice % (SAMPLE_TYPES + MORE);
    if (index >= SAMPLE_TYPES)
        return more[index - SAMPLE_TYPES];
    if (choice < 128)
        return sample_types[index];
    if (!twins[index])
        twins[index] = twin_of(NULL, sample_types[index]);
    EXPECT(twins[index]);
    return twins[index];
}

static void check_round(const leat_type *type, const void *record, leat_scratch *scratch)
{
    static const leat_json_options strict = {.refuse_unknown = true};
    size_t size = leat_record_json(type, record, NULL, 0);
    char *text = malloc(size);
    void *again = calloc(1, type->size);
    leat_parse_error error;
    EXPECT(text && again);
    EXPECT(leat_record_json(type, record, text, size) == size);
    EXPECT(leat_record_from_json(type, &strict, text, size, again, scratch, &error) == LEAT_OK);
    EXPECT(leat_record_equal(type, record, again));
    EXPECT(leat_record_from_json(type, &strict, text, size - 1, again, scratch, &error) ==
           LEAT_ECORRUPT);
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const leat_type *type = choose_type(data[0]);
    data++;
    size--;
    leat_scratch *scratch;
    EXPECT(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    // A block of exactly that size.
    char *text = malloc(size ? size : 1);
    void *record = calloc(1, type->size);
    EXPECT(text && record);
    memcpy(text, data, size);
    leat_parse_error error = {.offset = SIZE_MAX};
    leat_err err = leat_record_from_json(type, NULL, text, size, record, scratch, &error);
    EXPECT(err == LEAT_OK || err == LEAT_ECORRUPT);
    if (err == LEAT_OK)
        check_round(type, record, scratch);
    else
        EXPECT(error.offset <= size && error.text[0] && strlen(error.text) < sizeof error.text);
    free(record);
    free(text);
    leat_scratch_destroy(&scratch);
    return 0;
}
