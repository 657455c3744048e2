// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define FIRST_CHUNK_BYTES   ((size_t)1024)
#define LARGEST_CHUNK_BYTES ((size_t)65536)

typedef struct leati_arena_chunk {
    alignas(max_align_t) struct leati_arena_chunk *next;
} chunk;

void leati_arena_init(leati_arena *arena, const leat_allocator *allocator)
{
    *arena = (leati_arena){.allocator = allocator, .next_size_bytes = FIRST_CHUNK_BYTES};
}

void leati_arena_fini(leati_arena *arena)
{
    while (arena->chunks) {
        chunk *next = arena->chunks->next;
        leati_free(arena->allocator, arena->chunks);
        arena->chunks = next;
    }
    leati_arena_init(arena, arena->allocator);
}

// A request larger than the next chunk gets a chunk of its own, behind the newest, so that the free
// part of that one is not lost.
static void *take_oversize(leati_arena *arena, size_t size_bytes)
{
    size_t total;
    if (__builtin_add_overflow(size_bytes, sizeof(chunk), &total))
        return NULL;
    chunk *own = leati_alloc(arena->allocator, total);
    if (!own)
        return NULL;
    chunk **link = arena->chunks ? &arena->chunks->next : &arena->chunks;
    own->next = *link;
    *link = own;
    return memset(own + 1, 0, size_bytes);
}

static bool add_chunk(leati_arena *arena)
{
    chunk *added = leati_alloc(arena->allocator, sizeof(chunk) + arena->next_size_bytes);
    if (!added)
        return false;
    added->next = arena->chunks;
    arena->chunks = added;
    arena->at = (char *)(added + 1);
    arena->end = arena->at + arena->next_size_bytes;
    if (arena->next_size_bytes < LARGEST_CHUNK_BYTES)
        arena->next_size_bytes *= 2;
    return true;
}

void *leati_arena_alloc(leati_arena *arena, size_t size_bytes)
{
    size_t rounded;
    if (__builtin_add_overflow(size_bytes, alignof(max_align_t) - 1, &rounded))
        return NULL;
    rounded &= ~(alignof(max_align_t) - 1);
    if (rounded == 0)
        rounded = alignof(max_align_t);
    if (rounded > (size_t)(arena->end - arena->at)) {
        if (rounded > arena->next_size_bytes / 4)
            return take_oversize(arena, rounded);
        if (!add_chunk(arena))
            return NULL;
    }
    void *ptr = memset(arena->at, 0, rounded);
    arena->at += rounded;
    return ptr;
}

void *leati_arena_calloc(leati_arena *arena, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total))
        return NULL;
    return leati_arena_alloc(arena, total);
}

char *leati_arena_strndup(leati_arena *arena, const char *text, size_t size)
{
    size_t total;
    if (__builtin_add_overflow(size, (size_t)1, &total))
        return NULL;
    char *copy = leati_arena_alloc(arena, total);
    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

char *leati_arena_strdup(leati_arena *arena, const char *text)
{
    return leati_arena_strndup(arena, text, strlen(text));
}

char *leati_arena_vprintf(leati_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : leati_arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *leati_arena_printf(leati_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = leati_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
