// SPDX-License-Identifier: Apache-2.0
// Accumulators come from other processes: any bytes, as one part or as two, must be refused or give
// values that can all be read.
#include <stdint.h>
#include <stdlib.h>

#include "runtime/placement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

// Sums up all bytes of a value, so that each is looked at.
static uint64_t read_value(const leat_accumulator_value *value)
{
    uint64_t sum = (uint64_t)value->i64;
    for (uint64_t i = 0; i < value->count; i++) {
        if (value->kind == LEAT_ACCUMULATOR_LIST_I64)
            sum += (uint64_t)value->i64s[i];
        else if (value->kind == LEAT_ACCUMULATOR_LIST_F64)
            sum += value->f64s[i] > 0;
        else if (value->kind != LEAT_ACCUMULATOR_LIST_STR)
            break;
        for (size_t k = 0; value->kind == LEAT_ACCUMULATOR_LIST_STR && k < value->strs[i].size; k++)
            sum += (uint8_t)value->strs[i].data[k];
    }
    if (value->kind == LEAT_ACCUMULATOR_HISTOGRAM)
        sum += (uint64_t)leat_histogram_percentile(value->histogram, 50);
    return sum;
}

static void decode(const uint8_t *const *parts, const size_t *sizes, uint32_t count)
{
    leat_accumulators *all = NULL;
    leat_err err = leati_accumulators_decode(NULL, parts, sizes, count, &all);
    if (err != LEAT_OK) {
        REQUIRE((err == LEAT_ECORRUPT || err == LEAT_ETYPE) && !all);
        return;
    }
    uint64_t sum = 0;
    leat_accumulator_value value;
    for (uint32_t i = 0; leat_accumulators_get(all, i, &value); i++)
        sum += read_value(&value);
    REQUIRE(sum == sum);
    leat_accumulators_destroy(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(&data, &size, 1);
    if (size == 0)
        return 0;
    // The first byte says where the second part begins.
    size_t first = data[0] % size;
    const uint8_t *parts[] = {data + 1, data + 1 + first};
    const size_t sizes[] = {first, size - 1 - first};
    decode(parts, sizes, 2);
    return 0;
}
