// SPDX-License-Identifier: Apache-2.0
// A bump arena for things that die together: a graph's nodes, names and settings. Memory comes in
// growing chunks, is handed out zeroed, and is given back all at once.
//
// Threading: one thread at a time. Bounds: whatever is asked for plus at most one chunk of slack.
#ifndef LEATI_BASE_ARENA_H
#define LEATI_BASE_ARENA_H

#include <stdarg.h>

#include "leat/alloc.h"

typedef struct leati_arena {
    const leat_allocator *allocator; // borrowed
    struct leati_arena_chunk *chunks;
    char *at, *end; // the free part of the newest chunk
    size_t next_size_bytes;
} leati_arena;

// Allocates nothing yet.
void leati_arena_init(leati_arena *arena, const leat_allocator *allocator);
// Gives everything back; the arena may be used again.
void leati_arena_fini(leati_arena *arena);
// Zeroed and aligned for any type; NULL when out of memory.
void *leati_arena_alloc(leati_arena *arena, size_t size_bytes);
// The same for an array; NULL also when the product overflows.
void *leati_arena_calloc(leati_arena *arena, size_t count, size_t size_bytes);
// NUL-terminated copies.
char *leati_arena_strdup(leati_arena *arena, const char *text);
char *leati_arena_strndup(leati_arena *arena, const char *text, size_t size);
char *leati_arena_printf(leati_arena *arena, const char *format, ...) LEAT_PRINTF(2, 3);
char *leati_arena_vprintf(leati_arena *arena, const char *format, va_list args);

#endif
