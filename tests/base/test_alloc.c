// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

// Counts what goes through the hook and refuses once `left` allocations have been made.
typedef struct meter {
    size_t allocated, released, left;
} meter;

static void *meter_allocate(void *user, size_t size_bytes)
{
    meter *m = user;
    if (m->left == 0)
        return NULL;
    m->left--;
    m->allocated++;
    return malloc(size_bytes);
}

static void *meter_reallocate(void *user, void *ptr, size_t size_bytes)
{
    meter *m = user;
    if (m->left == 0)
        return NULL;
    m->left--;
    if (!ptr)
        m->allocated++;
    return realloc(ptr, size_bytes);
}

static void meter_release(void *user, void *ptr)
{
    meter *m = user;
    m->released++;
    free(ptr);
}

static leat_allocator metered(meter *m)
{
    return (leat_allocator){meter_allocate, meter_reallocate, meter_release, m};
}

Test(alloc, the_hook_sees_every_allocation_and_release)
{
    meter m = {.left = 100};
    leat_allocator a = metered(&m);
    void *plain = leati_alloc(&a, 10);
    void *zeroed = leati_calloc(&a, 3, 5);
    void *grown = leati_realloc(&a, NULL, 7);
    grown = leati_realloc(&a, grown, 7000);
    void *aligned = leati_alloc_aligned(&a, 64, 100);
    char *copy = leati_strdup(&a, "leat");
    cr_assert(plain && zeroed && grown && aligned && copy);
    cr_assert_eq(m.allocated, 5);
    leati_free(&a, plain);
    leati_free(&a, zeroed);
    leati_free(&a, grown);
    leati_free_aligned(&a, aligned);
    cr_assert_str_eq(copy, "leat");
    leati_free(&a, copy);
    cr_assert_eq(m.released, 5);
}

Test(alloc, null_is_freed_without_asking_the_hook)
{
    meter m = {.left = 0};
    leat_allocator a = metered(&m);
    leati_free(&a, NULL);
    leati_free_aligned(&a, NULL);
    cr_assert_eq(m.released, 0);
}

Test(alloc, null_means_the_default_allocator)
{
    cr_assert_eq(leati_allocator_or_default(NULL), leat_allocator_default());
    char *text = leati_alloc(NULL, 4);
    memcpy(text, "abc", 4);
    text = leati_realloc(NULL, text, 4096);
    cr_assert_str_eq(text, "abc");
    leati_free(NULL, text);
    leat_allocator other = *leat_allocator_default();
    cr_assert_eq(leati_allocator_or_default(&other), &other);
}

Test(alloc, nothing_is_still_an_allocation)
{
    void *none = leati_alloc(NULL, 0);
    void *no_items = leati_calloc(NULL, 0, 8);
    cr_assert(none && no_items);
    none = leati_realloc(NULL, none, 0);
    cr_assert(none);
    leati_free(NULL, none);
    leati_free(NULL, no_items);
}

Test(alloc, calloc_zeroes_memory_that_was_used_before)
{
    for (int round = 0; round < 8; round++) {
        unsigned char *bytes = leati_calloc(NULL, 16, 16);
        for (int i = 0; i < 256; i++)
            cr_assert_eq(bytes[i], 0);
        memset(bytes, 0xa5, 256);
        leati_free(NULL, bytes);
    }
}

Test(alloc, sizes_that_overflow_are_refused_without_asking_the_hook)
{
    meter m = {.left = 100};
    leat_allocator a = metered(&m);
    cr_assert_null(leati_calloc(&a, SIZE_MAX, 2));
    cr_assert_null(leati_calloc(&a, SIZE_MAX / 8 + 1, 8));
    cr_assert_null(leati_alloc_aligned(&a, 64, SIZE_MAX));
    cr_assert_null(leati_alloc_aligned(&a, 64, SIZE_MAX - 64));
    cr_assert_eq(m.allocated, 0);
}

Test(alloc, exhaustion_gives_null_everywhere)
{
    meter m = {.left = 0};
    leat_allocator a = metered(&m);
    cr_assert_null(leati_alloc(&a, 1));
    cr_assert_null(leati_calloc(&a, 1, 1));
    cr_assert_null(leati_realloc(&a, NULL, 1));
    cr_assert_null(leati_alloc_aligned(&a, 64, 1));
    cr_assert_null(leati_strdup(&a, ""));
}

Test(alloc, aligned_memory_is_aligned_and_whole)
{
    for (size_t align = sizeof(void *); align <= 4096; align *= 2) {
        for (size_t size = 0; size < 300; size += 37) {
            unsigned char *bytes = leati_alloc_aligned(NULL, align, size);
            cr_assert_eq((uintptr_t)bytes % align, 0, "align %zu size %zu", align, size);
            memset(bytes, 0xff, size);
            leati_free_aligned(NULL, bytes);
        }
    }
}

Test(alloc, growing_at_least_doubles_and_keeps_the_items)
{
    int *items = NULL;
    size_t capacity = 0;
    static const struct {
        size_t needed, capacity;
    } steps[] = {{0, 0}, {1, 4}, {4, 4}, {5, 8}, {8, 8}, {9, 16}, {100, 128}, {3, 128}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        cr_assert(leati_grow(NULL, (void **)&items, &capacity, steps[i].needed, sizeof *items));
        cr_assert_eq(capacity, steps[i].capacity, "step %zu: %zu", i, capacity);
        if (steps[i].needed)
            items[steps[i].needed - 1] = (int)i;
    }
    cr_assert_eq(items[0], 1);
    cr_assert_eq(items[3], 2);
    cr_assert_eq(items[99], 6);
    leati_free(NULL, items);
}

Test(alloc, growing_that_fails_changes_nothing)
{
    meter m = {.left = 1};
    leat_allocator a = metered(&m);
    void *items = NULL;
    size_t capacity = 0;
    cr_assert(leati_grow(&a, &items, &capacity, 2, 8));
    void *before = items;
    static const struct {
        size_t needed, item_size;
    } cases[] = {{5, 8}, {SIZE_MAX, 1}, {SIZE_MAX / 2 + 2, 1}, {SIZE_MAX / 4, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_not(leati_grow(&a, &items, &capacity, cases[i].needed, cases[i].item_size));
        cr_assert_eq(items, before);
        cr_assert_eq(capacity, 4);
    }
    leati_free(&a, items);
}
