// SPDX-License-Identifier: Apache-2.0
// The memory behind decoded lists, maps and optionals: a bump allocator over a chain of chunks.
//
// Each new chunk is at least as large as all earlier ones together, and a reset only goes back to
// the first. So once the last chunk holds what the largest record needs, nothing is allocated any
// more, and the whole is at most about four times that need. Memory is given back when the scratch
// is destroyed.
#include "base/alloc.h"
#include "record/value_impl.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
// Values that outlive their record are found at once.
#define POISON(at, size)   ASAN_POISON_MEMORY_REGION(at, size)
#define UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define POISON(at, size)   ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#endif

#define FIRST_CHUNK 1024

// The bytes of a chunk follow its header.
typedef struct chunk {
    _Alignas(max_align_t) struct chunk *next;
    size_t size; // without the header
} chunk;

struct leat_scratch {
    leat_allocator allocator;
    chunk *current;
    char *at;     // the next free byte of `current`
    char *end;    // the end of `current`
    size_t total; // bytes of all chunks
    chunk first;  // last member: FIRST_CHUNK bytes follow
};

static char *data_of(chunk *of)
{
    return (char *)(of + 1);
}

static void enter(leat_scratch *scratch, chunk *next)
{
    scratch->current = next;
    scratch->at = data_of(next);
    scratch->end = data_of(next) + next->size;
}

leat_err leat_scratch_create(const leat_allocator *allocator, leat_scratch **scratch)
{
    leat_scratch *made = leati_alloc(allocator, sizeof *made + FIRST_CHUNK);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = *leati_allocator_or_default(allocator);
    made->first.next = NULL;
    made->first.size = FIRST_CHUNK;
    made->total = FIRST_CHUNK;
    enter(made, &made->first);
    POISON(data_of(&made->first), FIRST_CHUNK);
    *scratch = made;
    return LEAT_OK;
}

static void free_chunk(leat_scratch *scratch, chunk *gone)
{
    UNPOISON(data_of(gone), gone->size);
    leati_free(&scratch->allocator, gone);
}

void leat_scratch_destroy(leat_scratch **scratch)
{
    leat_scratch *gone = *scratch;
    if (!gone)
        return;
    while (gone->first.next) {
        chunk *next = gone->first.next;
        gone->first.next = next->next;
        free_chunk(gone, next);
    }
    UNPOISON(data_of(&gone->first), gone->first.size);
    leat_allocator allocator = gone->allocator;
    leati_free(&allocator, gone);
    *scratch = NULL;
}

// Puts a chunk that `size` bytes fit in behind the last one and enters it.
static bool grow(leat_scratch *scratch, size_t size)
{
    size_t bytes = size > scratch->total ? size : scratch->total;
    size_t with_header, total;
    if (__builtin_add_overflow(bytes, sizeof(chunk), &with_header) ||
        __builtin_add_overflow(bytes, scratch->total, &total))
        return false;
    chunk *made = leati_alloc(&scratch->allocator, with_header);
    if (!made)
        return false;
    made->next = NULL;
    made->size = bytes;
    POISON(data_of(made), bytes);
    scratch->total = total;
    scratch->current->next = made;
    enter(scratch, made);
    return true;
}

static void *take_here(leat_scratch *scratch, size_t size, size_t align)
{
    size_t padding = -(uintptr_t)scratch->at & (align - 1);
    size_t room = (size_t)(scratch->end - scratch->at);
    if (padding > room || size > room - padding)
        return NULL;
    char *taken = scratch->at + padding;
    scratch->at = taken + size;
    UNPOISON(taken, size);
    return taken;
}

void *leati_scratch_take(leat_scratch *scratch, size_t size_bytes, size_t align)
{
    void *taken = take_here(scratch, size_bytes, align);
    // A reset may have left larger chunks behind this one.
    while (!taken && scratch->current->next) {
        enter(scratch, scratch->current->next);
        taken = take_here(scratch, size_bytes, align);
    }
    if (!taken && grow(scratch, size_bytes))
        taken = take_here(scratch, size_bytes, align);
    return taken;
}

void *leat_scratch_take(leat_scratch *scratch, size_t size_bytes)
{
    return leati_scratch_take(scratch, size_bytes, _Alignof(max_align_t));
}

void leat_scratch_reset(leat_scratch *scratch)
{
#ifdef WITH_ASAN
    for (chunk *each = &scratch->first; each; each = each->next)
        POISON(data_of(each), each->size);
#endif
    enter(scratch, &scratch->first);
}
