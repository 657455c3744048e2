// SPDX-License-Identifier: Apache-2.0
// What the global pool and the local pools know of each other (docs/memory.md).
//
// Threading. Everything that both sides touch is under the global pool's lock. `held` and `limit`
// are written under it and read without it, as hints: a decision that matters is taken again under
// the lock.
//
// Life cycle. A local pool is enrolled when it is created and withdrawn when it is closed; a
// withdrawn one is only counted down by its segments' coming home.
//
// Bounds. owed <= total; a local pool holds at most limit + overdraft.
#ifndef LEATI_NETWORK_POOL_IMPL_H
#define LEATI_NETWORK_POOL_IMPL_H

#include <pthread.h>

#include "network/segment.h"

struct leati_global_pool {
    // Immutable.
    const leat_allocator *allocator;
    size_t segment_size; // usable bytes
    size_t stride;       // from one segment's memory to the next's
    uint32_t total;
    uint8_t *memory;
    size_t mapped;
    leati_segment *segments; // descriptors; those from `fresh` on are not initialised yet

    // Of tests, and never written in a pool that threads share: how many looks for a segment until
    // the first that fails, how many fail from there on, and whether the last one has.
    bool refusing, refused;
    uint64_t refuse_after, refuse_count;

    pthread_mutex_t lock;
    pthread_cond_t unpinned; // some pool's `pins` has become 0
    // Under the lock.
    leati_segment *free;       // given back; taken first, because their pages are there
    uint32_t fresh;            // index of the first segment that was never used
    uint32_t free_count;       // of both kinds
    uint32_t promised;         // minima of pools that are still to be created
    uint32_t minima;           // of the pools that are open
    uint32_t owed;             // promised, and what open pools hold less than their minimum
    uint32_t orphans;          // held by closed pools
    leati_local_pool *changed; // to be woken because their limit has changed
    leati_local_pool *pools;   // open ones
    leati_local_pool *waiting;
};

struct leati_local_pool {
    // Immutable.
    leati_global_pool *global;
    leati_waiter *waiter;
    uint32_t minimum, maximum, overdraft;

    // Owner.
    leati_segment *idle;
    bool ended;                 // closed: requests find nothing
    _Atomic uint64_t requested; // segments handed out so far; written by the owner only
    _Atomic uint32_t peak;      // most that were out at once; the same

    // Under the global pool's lock; the atomic ones are read by anyone.
    _Atomic uint32_t held;  // segments that belong to this pool, idle or not
    _Atomic uint32_t limit; // `held` is to stay at or below it
    bool closed;
    bool in_waiting;
    bool changed;
    uint32_t pins; // threads that are waking the owner on the global pool's behalf
    leati_local_pool *next, *previous;
    leati_local_pool *waiting_next, *changed_next;

    // Any thread.
    // What came home since the owner last looked; leati_pool_closed_mark once it is closed.
    _Alignas(LEATI_CACHE_LINE) _Atomic(leati_segment *) returned;
    _Atomic uint32_t waiting; // the owner wants to be woken by so many more; 0: it does not
    _Atomic uint64_t homed;   // segments that came home so far
};

// Stands in `returned` once the pool is closed, so that closing and coming home cannot miss each
// other.
static inline leati_segment *leati_pool_closed_mark(const leati_local_pool *pool)
{
    return (leati_segment *)(void *)(uintptr_t)pool;
}

// Whether this look for a segment is one that a test has asked to fail.
static inline bool leati_global_refuses(leati_global_pool *global)
{
    if (LEAT_LIKELY(!global->refusing))
        return false;
    global->refused = global->refuse_after == 0 && global->refuse_count > 0;
    if (global->refuse_after > 0)
        global->refuse_after--;
    else if (global->refuse_count > 0)
        global->refuse_count--;
    return global->refused;
}

// LEAT_ENOBUFS when the minimum was not promised.
LEAT_MUST_USE leat_err leati_global_enrol(leati_global_pool *global, leati_local_pool *pool);
void leati_global_withdraw(leati_global_pool *global, leati_local_pool *pool);
// One segment for the pool, which may hold `beyond` more than its limit; or NULL.
leati_segment *leati_global_take(leati_global_pool *global, leati_local_pool *pool,
                                 uint32_t beyond);
// Takes a segment back if its pool is closed or above its limit.
bool leati_global_take_back(leati_global_pool *global, leati_local_pool *pool,
                            leati_segment *segment);
// Puts the pool in the list of those to be poked when there is something for them. Not if there is
// something already.
void leati_global_await(leati_global_pool *global, leati_local_pool *pool);

// As leati_segment_release; true when the owning pool was poked by it.
bool leati_segment_drop(leati_segment *segment);

#endif
