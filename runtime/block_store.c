// SPDX-License-Identifier: Apache-2.0
#include "runtime/block_store.h"

#include <string.h>

#include "base/alloc.h"

// Up to 16 units each size is a class of its own; above there are four classes for each doubling.
enum {
    EXACT_CLASSES = 16,
    MAX_SLABS = 1 << (32 - LEATI_BLOCK_SLAB_BITS),
};

static uint32_t class_of(uint32_t units)
{
    if (units <= EXACT_CLASSES)
        return units;
    uint32_t log = 31 - (uint32_t)__builtin_clz(units - 1);
    return EXACT_CLASSES + 1 + (log - 4) * 4 + (((units - 1) >> (log - 2)) - 4);
}

static uint32_t class_units(uint32_t class)
{
    if (class <= EXACT_CLASSES)
        return class;
    uint32_t step = class - EXACT_CLASSES - 1;
    return (5 + step % 4) << (2 + step / 4);
}

static bool slab_add(leati_block_store *store, size_t size_bytes, uint32_t *number)
{
    if (store->numbers_count == 0) {
        if (store->slab_count == MAX_SLABS ||
            !leati_grow(store->allocator, (void **)&store->slabs, &store->slab_capacity,
                        store->slab_count + 1, sizeof *store->slabs))
            return false;
        // Room to note the number when the block is freed, which must not fail.
        if (!leati_grow(store->allocator, (void **)&store->freed_numbers, &store->numbers_capacity,
                        store->slab_count + 1, sizeof *store->freed_numbers))
            return false;
    }
    uint8_t *slab = leati_alloc(store->allocator, size_bytes);
    if (!slab)
        return false;
    *number = store->numbers_count ? store->freed_numbers[--store->numbers_count]
                                   : (uint32_t)store->slab_count++;
    store->slabs[*number] = slab;
    store->bytes += size_bytes;
    return true;
}

bool leati_block_alloc(leati_block_store *store, uint32_t *units, uint32_t *ref)
{
    uint32_t number;
    if (*units > LEATI_BLOCK_LARGE_UNITS) {
        if (!slab_add(store, (size_t)*units * LEATI_BLOCK_UNIT, &number))
            return false;
        *ref = number << LEATI_BLOCK_SLAB_BITS;
        return true;
    }
    uint32_t class = class_of(*units);
    *units = class_units(class);
    if (store->freed[class]) {
        *ref = store->freed[class];
        memcpy(&store->freed[class], leati_block_at(store, *ref), sizeof *ref);
        return true;
    }
    if (LEATI_BLOCK_SLAB_UNITS - store->used < *units) {
        if (!slab_add(store, (size_t)LEATI_BLOCK_SLAB_UNITS * LEATI_BLOCK_UNIT, &number))
            return false;
        store->current = number;
        store->used = 0;
    }
    *ref = store->current << LEATI_BLOCK_SLAB_BITS | store->used;
    store->used += *units;
    return true;
}

void leati_block_free(leati_block_store *store, uint32_t ref, uint32_t units)
{
    if (units > LEATI_BLOCK_LARGE_UNITS) {
        uint32_t number = ref >> LEATI_BLOCK_SLAB_BITS;
        leati_free(store->allocator, store->slabs[number]);
        store->slabs[number] = NULL;
        store->bytes -= (size_t)units * LEATI_BLOCK_UNIT;
        store->freed_numbers[store->numbers_count++] = number;
        return;
    }
    uint32_t class = class_of(units);
    memcpy(leati_block_at(store, ref), &store->freed[class], sizeof ref);
    store->freed[class] = ref;
}

bool leati_block_store_init(leati_block_store *store, const leat_allocator *allocator)
{
    uint32_t number;
    *store = (leati_block_store){.allocator = allocator};
    if (!slab_add(store, (size_t)LEATI_BLOCK_SLAB_UNITS * LEATI_BLOCK_UNIT, &number))
        return false;
    store->used = 1; // the reference 0 is not given out
    return true;
}

void leati_block_store_fini(leati_block_store *store)
{
    for (size_t i = 0; i < store->slab_count; i++)
        leati_free(store->allocator, store->slabs[i]);
    leati_free(store->allocator, store->slabs);
    leati_free(store->allocator, store->freed_numbers);
}
