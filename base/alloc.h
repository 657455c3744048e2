// SPDX-License-Identifier: Apache-2.0
// Calls through the allocator hook. Every internal function that allocates is handed the allocator
// to use.
#ifndef LEATI_BASE_ALLOC_H
#define LEATI_BASE_ALLOC_H

#include "leat/alloc.h"

// NULL means the default, so that callers may pass on what the user gave them.
const leat_allocator *leati_allocator_or_default(const leat_allocator *allocator);

// malloc, calloc and realloc through the hook; NULL when out of memory or when count * size
// overflows.
void *leati_alloc(const leat_allocator *allocator, size_t size_bytes);
void *leati_calloc(const leat_allocator *allocator, size_t count, size_t size_bytes);
void *leati_realloc(const leat_allocator *allocator, void *ptr, size_t size_bytes);
void leati_free(const leat_allocator *allocator, void *ptr);
// Aligned to a power of two (64 for cache lines); released with leati_free_aligned only.
void *leati_alloc_aligned(const leat_allocator *allocator, size_t align, size_t size_bytes);
void leati_free_aligned(const leat_allocator *allocator, void *ptr);
// A NUL-terminated copy.
char *leati_strdup(const leat_allocator *allocator, const char *text);

// Grows `*items` so that `needed` items of `item_size` fit; `*capacity` is in items and at least
// doubles. False when out of memory: nothing has changed then.
bool leati_grow(const leat_allocator *allocator, void **items, size_t *capacity, size_t needed,
                size_t item_size);

#endif
