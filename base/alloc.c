// SPDX-License-Identifier: Apache-2.0
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *user, size_t size_bytes)
{
    return malloc(size_bytes);
}

static void *default_reallocate(void *user, void *ptr, size_t size_bytes)
{
    return realloc(ptr, size_bytes);
}

static void default_release(void *user, void *ptr)
{
    free(ptr);
}

static const leat_allocator default_allocator = {
    .allocate = default_allocate,
    .reallocate = default_reallocate,
    .release = default_release,
};

const leat_allocator *leat_allocator_default(void)
{
    return &default_allocator;
}

const leat_allocator *leati_allocator_or_default(const leat_allocator *allocator)
{
    return allocator ? allocator : &default_allocator;
}

void *leati_alloc(const leat_allocator *allocator, size_t size_bytes)
{
    allocator = leati_allocator_or_default(allocator);
    // malloc(0) may return NULL, which callers would take for exhaustion.
    return allocator->allocate(allocator->user, size_bytes ? size_bytes : 1);
}

void *leati_calloc(const leat_allocator *allocator, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total))
        return NULL;
    void *ptr = leati_alloc(allocator, total);
    if (ptr)
        memset(ptr, 0, total);
    return ptr;
}

void *leati_realloc(const leat_allocator *allocator, void *ptr, size_t size_bytes)
{
    allocator = leati_allocator_or_default(allocator);
    return allocator->reallocate(allocator->user, ptr, size_bytes ? size_bytes : 1);
}

void leati_free(const leat_allocator *allocator, void *ptr)
{
    allocator = leati_allocator_or_default(allocator);
    if (ptr)
        allocator->release(allocator->user, ptr);
}

// The hook promises alignment for any type only, so the block's own address is kept just before the
// aligned part.
void *leati_alloc_aligned(const leat_allocator *allocator, size_t align, size_t size_bytes)
{
    size_t total;
    if (__builtin_add_overflow(size_bytes, align + sizeof(void *), &total))
        return NULL;
    char *block = leati_alloc(allocator, total);
    if (!block)
        return NULL;
    uintptr_t start = ((uintptr_t)block + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1);
    ((void **)start)[-1] = block;
    return (void *)start;
}

void leati_free_aligned(const leat_allocator *allocator, void *ptr)
{
    if (ptr)
        leati_free(allocator, ((void **)ptr)[-1]);
}

char *leati_strdup(const leat_allocator *allocator, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = leati_alloc(allocator, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

bool leati_grow(const leat_allocator *allocator, void **items, size_t *capacity, size_t needed,
                size_t item_size)
{
    if (needed <= *capacity)
        return true;
    size_t grown = *capacity ? *capacity : 4;
    while (grown < needed)
        if (__builtin_mul_overflow(grown, 2, &grown))
            return false;
    size_t total;
    if (__builtin_mul_overflow(grown, item_size, &total))
        return false;
    void *moved = leati_realloc(allocator, *items, total);
    if (!moved)
        return false;
    *items = moved;
    *capacity = grown;
    return true;
}
