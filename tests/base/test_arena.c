// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

typedef struct counting {
    size_t allocations, alive;
    bool refuse;
} counting;

static void *counting_alloc(void *user, size_t size)
{
    counting *c = user;
    if (c->refuse)
        return NULL;
    c->allocations++;
    c->alive++;
    return malloc(size);
}

static void *counting_realloc(void *user, void *ptr, size_t size)
{
    return realloc(ptr, size);
}

static void counting_free(void *user, void *ptr)
{
    ((counting *)user)->alive -= ptr != NULL;
    free(ptr);
}

Test(arena, blocks_are_zeroed_aligned_and_do_not_overlap)
{
    enum { BLOCKS = 2000 };
    static struct {
        uint8_t *data;
        size_t size;
    } blocks[BLOCKS];
    leati_arena arena;
    leati_arena_init(&arena, NULL);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i].size = i * 37 % 500 + (i % 100 == 0 ? 100000 : 0);
        blocks[i].data = leati_arena_alloc(&arena, blocks[i].size);
        cr_assert(blocks[i].data && (uintptr_t)blocks[i].data % _Alignof(max_align_t) == 0);
        for (size_t j = 0; j < blocks[i].size; j++)
            cr_assert(blocks[i].data[j] == 0);
        memset(blocks[i].data, (int)(i % 255) + 1, blocks[i].size);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t j = 0; j < blocks[i].size; j++)
            cr_assert(blocks[i].data[j] == i % 255 + 1);
    leati_arena_fini(&arena);
}

// 64,000 bytes in chunks that double from 1 KiB to 64 KiB: at most seven.
Test(arena, small_blocks_share_chunks_and_all_memory_is_returned)
{
    counting c = {0};
    leat_allocator allocator = {counting_alloc, counting_realloc, counting_free, &c};
    leati_arena arena;
    leati_arena_init(&arena, &allocator);
    cr_assert(c.allocations == 0);
    for (int i = 0; i < 4000; i++)
        cr_assert(leati_arena_alloc(&arena, 16));
    cr_assert(c.allocations <= 7, "%zu", c.allocations);
    leati_arena_fini(&arena);
    cr_assert(c.alive == 0);
    cr_assert(leati_arena_alloc(&arena, 1)); // it may be used again
    leati_arena_fini(&arena);
    cr_assert(c.alive == 0);
}

Test(arena, texts_are_copied_and_formatted)
{
    leati_arena arena;
    leati_arena_init(&arena, NULL);
    cr_assert_str_eq(leati_arena_strdup(&arena, ""), "");
    cr_assert_str_eq(leati_arena_strdup(&arena, "text"), "text");
    cr_assert_str_eq(leati_arena_strndup(&arena, "text", 2), "te");
    cr_assert_str_eq(leati_arena_strndup(&arena, NULL, 0), "");
    cr_assert_str_eq(leati_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
    leati_arena_fini(&arena);
}

Test(arena, exhaustion_and_overflow_give_null)
{
    counting c = {.refuse = true};
    leat_allocator allocator = {counting_alloc, counting_realloc, counting_free, &c};
    leati_arena arena;
    leati_arena_init(&arena, &allocator);
    cr_assert(!leati_arena_alloc(&arena, 1) && !leati_arena_alloc(&arena, 1 << 20));
    cr_assert(!leati_arena_strdup(&arena, "x") && !leati_arena_printf(&arena, "x"));
    c.refuse = false;
    cr_assert(!leati_arena_alloc(&arena, SIZE_MAX) && !leati_arena_alloc(&arena, SIZE_MAX - 20));
    cr_assert(!leati_arena_calloc(&arena, SIZE_MAX / 2, 4));
    cr_assert(!leati_arena_strndup(&arena, "x", SIZE_MAX));
    leati_arena_fini(&arena);
    cr_assert(c.alive == 0);
}
