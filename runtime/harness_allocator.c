// SPDX-License-Identifier: Apache-2.0
// An allocator that fails when it is told to.
#include <stdatomic.h>

#include "base/alloc.h"
#include "leat/testing.h"

struct leat_test_allocator {
    leat_allocator hook;  // immutable
    leat_allocator under; // immutable
    // Atomic. What is tried is numbered from 1; those from `first` on fail, `count` of them.
    _Atomic uint64_t tried, failed, live;
    _Atomic uint64_t first, count;
};

static bool fails(leat_test_allocator *a)
{
    uint64_t number = atomic_fetch_add_explicit(&a->tried, 1, memory_order_relaxed) + 1;
    uint64_t first = atomic_load_explicit(&a->first, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&a->count, memory_order_relaxed);
    if (first == 0 || number < first || number - first >= count)
        return false;
    atomic_fetch_add_explicit(&a->failed, 1, memory_order_relaxed);
    return true;
}

static void *note(leat_test_allocator *a, void *block)
{
    if (block)
        atomic_fetch_add_explicit(&a->live, 1, memory_order_relaxed);
    return block;
}

static void *allocate(void *user, size_t size_bytes)
{
    leat_test_allocator *a = user;
    return fails(a) ? NULL : note(a, a->under.allocate(a->under.user, size_bytes));
}

static void *reallocate(void *user, void *ptr, size_t size_bytes)
{
    leat_test_allocator *a = user;
    if (fails(a))
        return NULL;
    void *block = a->under.reallocate(a->under.user, ptr, size_bytes);
    return ptr ? block : note(a, block);
}

static void release(void *user, void *ptr)
{
    leat_test_allocator *a = user;
    if (ptr)
        atomic_fetch_sub_explicit(&a->live, 1, memory_order_relaxed);
    a->under.release(a->under.user, ptr);
}

leat_err leat_test_allocator_create(const leat_allocator *under, leat_test_allocator **allocator)
{
    under = leati_allocator_or_default(under);
    leat_test_allocator *a = leati_calloc(under, 1, sizeof *a);
    if (!a)
        return LEAT_ENOMEM;
    a->under = *under;
    a->hook = (leat_allocator){
        .allocate = allocate, .reallocate = reallocate, .release = release, .user = a};
    *allocator = a;
    return LEAT_OK;
}

void leat_test_allocator_destroy(leat_test_allocator **allocator)
{
    leat_test_allocator *a = *allocator;
    if (!a)
        return;
    leat_allocator under = a->under;
    leati_free(&under, a);
    *allocator = NULL;
}

const leat_allocator *leat_test_allocator_hook(const leat_test_allocator *a)
{
    return &a->hook;
}

void leat_test_allocator_fail(leat_test_allocator *a, uint64_t nth, uint64_t count)
{
    uint64_t tried = atomic_load_explicit(&a->tried, memory_order_relaxed);
    atomic_store_explicit(&a->count, count, memory_order_relaxed);
    atomic_store_explicit(&a->first, nth ? tried + nth : 0, memory_order_relaxed);
}

uint64_t leat_test_allocator_tried(const leat_test_allocator *a)
{
    return atomic_load_explicit(&a->tried, memory_order_relaxed);
}

uint64_t leat_test_allocator_failed(const leat_test_allocator *a)
{
    return atomic_load_explicit(&a->failed, memory_order_relaxed);
}

uint64_t leat_test_allocator_live(const leat_test_allocator *a)
{
    return atomic_load_explicit(&a->live, memory_order_relaxed);
}
