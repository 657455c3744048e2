// SPDX-License-Identifier: Apache-2.0
// Blocks of many sizes for the state of one task, found by a reference of 32 bits.
//
// Threading. One thread at a time.
// Life cycle. init → alloc and free in any order → fini, which gives everything back.
// Bounds. 32 GiB; of blocks above 32 KiB at most 131,071.
//
// Blocks are cut from slabs of 256 KiB. A reference is the number of a slab and the distance into
// it in units of 8 bytes; 0 is never given out and means "none". A block of more than an eighth of
// a slab gets an allocation of its own, which takes the number of a slab. The place of a block that
// was freed is used again by blocks of its size class; slabs are kept until fini.
#ifndef LEATI_RUNTIME_BLOCK_STORE_H
#define LEATI_RUNTIME_BLOCK_STORE_H

#include "leat/alloc.h"

enum {
    LEATI_BLOCK_UNIT = 8, // bytes; also how blocks are aligned
    LEATI_BLOCK_SLAB_BITS = 15,
    LEATI_BLOCK_SLAB_UNITS = 1 << LEATI_BLOCK_SLAB_BITS,
    LEATI_BLOCK_LARGE_UNITS = LEATI_BLOCK_SLAB_UNITS / 8, // the most units cut from a slab
    LEATI_BLOCK_CLASSES = 49,
};

typedef struct leati_block_store {
    const leat_allocator *allocator; // borrowed
    uint8_t **slabs;
    size_t slab_capacity, slab_count;
    uint32_t current, used; // the slab being cut up, and how many of its units are gone
    uint32_t freed[LEATI_BLOCK_CLASSES]; // chains of blocks to use again, by class
    uint32_t *freed_numbers;             // numbers of large blocks that were freed
    size_t numbers_capacity, numbers_count;
    size_t bytes; // in slabs and large blocks
} leati_block_store;

// False when out of memory; fini may be called then.
bool leati_block_store_init(leati_block_store *store, const leat_allocator *allocator);
void leati_block_store_fini(leati_block_store *store);

// Gives a block of at least `*units`, which becomes the size to free it with; false when out of
// memory.
bool leati_block_alloc(leati_block_store *store, uint32_t *units, uint32_t *ref);
void leati_block_free(leati_block_store *store, uint32_t ref, uint32_t units);

static inline uint8_t *leati_block_at(const leati_block_store *store, uint32_t ref)
{
    return store->slabs[ref >> LEATI_BLOCK_SLAB_BITS] +
           (size_t)(ref & (LEATI_BLOCK_SLAB_UNITS - 1)) * LEATI_BLOCK_UNIT;
}

#endif
