// SPDX-License-Identifier: Apache-2.0
// The global pool: all segments of a process, and who may have how many of them.
//
// Who gets what. A pool below its minimum always gets a free segment. One above it gets one only if
// more are free than are owed to others; so whatever pools do with the surplus, each can get its
// minimum as soon as what is in use comes home.
//
// Waking. Owners are woken outside the lock. A pool is pinned meanwhile, and closing it waits for
// the pin, because its owner may go away afterwards. The alternative, a list of all to be woken
// that is taken along, loses a wake-up when two threads want to put the same pool in their list.
#include <assert.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "network/poison.h"
#include "network/pool_impl.h"

static uint32_t held_by(const leati_local_pool *pool)
{
    return atomic_load_explicit(&pool->held, memory_order_relaxed);
}

static uint32_t limit_of(const leati_local_pool *pool)
{
    return atomic_load_explicit(&pool->limit, memory_order_relaxed);
}

static uint32_t missing(const leati_local_pool *pool)
{
    uint32_t held = held_by(pool);
    return held < pool->minimum ? pool->minimum - held : 0;
}

// --- the memory ---

enum { SMALL_PAGES = 4 << 20, HUGE_PAGE = 2 << 20 };

// Who uses many segments goes from one to the next without any order that the processor could
// learn: with pages of 4 KiB it waits for their addresses as long as for their bytes. Who uses few
// of them gets by with what is in use, so the beginning, which is handed out first, has small
// pages.
static void use_huge_pages(void *memory, size_t mapped)
{
    uintptr_t begin = (uintptr_t)memory, end = begin + mapped;
    uintptr_t from = (begin + SMALL_PAGES + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    // A system without them says so, and goes on with small ones.
    if (from < end)
        (void)madvise((void *)from, end - from, MADV_HUGEPAGE);
}

static leat_err map_memory(leati_global_pool *global)
{
    size_t mapped;
    if (__builtin_mul_overflow(global->stride, (size_t)global->total, &mapped))
        return LEAT_EINVAL;
    void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return LEAT_ENOMEM;
    use_huge_pages(memory, mapped);
    global->memory = memory;
    global->mapped = mapped;
    return LEAT_OK;
}

leat_err leati_global_pool_create(const leat_allocator *allocator, size_t segment_size,
                                  uint32_t count, leati_global_pool **pool)
{
    // A segment must take a header and a watermark, and its positions leave one bit for
    // LEATI_SEGMENT_FINISHED.
    if (segment_size < 64 || segment_size >= LEATI_SEGMENT_FINISHED || count == 0)
        return LEAT_EINVAL;
    leati_global_pool *global = leati_calloc(allocator, 1, sizeof *global);
    if (!global)
        return LEAT_ENOMEM;
    global->allocator = allocator;
    global->segment_size = segment_size;
    // The headroom takes a whole cache line, so that the data starts with one.
    global->stride = LEATI_CACHE_LINE +
                     (segment_size + LEATI_CACHE_LINE - 1) / LEATI_CACHE_LINE * LEATI_CACHE_LINE;
    global->total = count;
    global->free_count = count;
    leat_err err = map_memory(global);
    if (err != LEAT_OK)
        goto free_pool;
    global->segments =
        leati_alloc_aligned(allocator, LEATI_CACHE_LINE, (size_t)count * sizeof(leati_segment));
    err = LEAT_ENOMEM;
    if (!global->segments)
        goto unmap;
    if (pthread_mutex_init(&global->lock, NULL) != 0)
        goto free_segments;
    if (pthread_cond_init(&global->unpinned, NULL) != 0)
        goto destroy_lock;
    *pool = global;
    return LEAT_OK;

destroy_lock:
    pthread_mutex_destroy(&global->lock);
free_segments:
    leati_free_aligned(allocator, global->segments);
unmap:
    munmap(global->memory, global->mapped);
free_pool:
    leati_free(allocator, global);
    return err;
}

void leati_global_pool_destroy(leati_global_pool **pool)
{
    leati_global_pool *global = *pool;
    if (!global)
        return;
    *pool = NULL;
    assert(!global->pools && global->free_count == global->total);
    // The address range may be mapped again for something else.
    leati_unpoison(global->memory, global->mapped);
    munmap(global->memory, global->mapped);
    pthread_cond_destroy(&global->unpinned);
    pthread_mutex_destroy(&global->lock);
    leati_free_aligned(global->allocator, global->segments);
    leati_free(global->allocator, global);
}

size_t leati_global_pool_segment_size(const leati_global_pool *pool)
{
    return pool->segment_size;
}

// Descriptors are initialised when their segment is first used, so that a large pool costs nothing
// until then.
static leati_segment *pop_free(leati_global_pool *global)
{
    assert(global->free_count > 0);
    global->free_count--;
    leati_segment *segment = global->free;
    if (segment) {
        global->free = segment->next;
        return segment;
    }
    uint32_t index = global->fresh++;
    segment = &global->segments[index];
    *segment = (leati_segment){
        .data = global->memory + (size_t)index * global->stride + LEATI_CACHE_LINE,
        .size = (uint32_t)global->segment_size,
    };
    return segment;
}

static void push_free(leati_global_pool *global, leati_segment *segment)
{
    segment->owner = NULL;
    segment->next = global->free;
    global->free = segment;
    global->free_count++;
}

// --- waking ---

static bool may_take(const leati_global_pool *global, const leati_local_pool *pool, uint32_t beyond)
{
    if (held_by(pool) < pool->minimum)
        return global->free_count > 0;
    return held_by(pool) < limit_of(pool) + beyond && global->free_count > global->owed;
}

static void stop_waiting(leati_global_pool *global, leati_local_pool *pool)
{
    if (!pool->in_waiting)
        return;
    leati_local_pool **link = &global->waiting;
    while (*link != pool)
        link = &(*link)->waiting_next;
    *link = pool->waiting_next;
    pool->in_waiting = false;
}

static leati_local_pool *next_to_wake(leati_global_pool *global, bool *changed)
{
    if (global->changed) {
        leati_local_pool *pool = global->changed;
        global->changed = pool->changed_next;
        pool->changed = false;
        *changed = true;
        return pool;
    }
    for (leati_local_pool *pool = global->waiting; pool; pool = pool->waiting_next) {
        if (!may_take(global, pool, 0))
            continue;
        stop_waiting(global, pool);
        *changed = false;
        return pool;
    }
    return NULL;
}

// Wakes whoever can go on after what has changed. Locked on entry, unlocked on return.
static void unlock_and_wake(leati_global_pool *global)
{
    bool changed;
    leati_local_pool *pool;
    while ((pool = next_to_wake(global, &changed)) != NULL) {
        pool->pins++;
        pthread_mutex_unlock(&global->lock);
        if (changed) {
            atomic_exchange_explicit(&pool->waiting, 0, memory_order_acq_rel);
            pool->waiter->wake(pool->waiter);
        } else {
            leati_local_pool_poke(pool);
        }
        pthread_mutex_lock(&global->lock);
        if (--pool->pins == 0)
            pthread_cond_broadcast(&global->unpinned);
    }
    pthread_mutex_unlock(&global->lock);
}

// --- shares ---

static void set_limit(leati_global_pool *global, leati_local_pool *pool, uint32_t limit)
{
    uint32_t old = limit_of(pool);
    uint32_t held = held_by(pool);
    atomic_store_explicit(&pool->limit, limit, memory_order_relaxed);
    // One that holds too much gives it back in its next turn; one that was full may grow. A new
    // pool (no limit yet) has an owner that may not be ready for being woken.
    bool wake = old > 0 && (held > limit || (held >= old && held < limit));
    if (wake && !pool->changed) {
        pool->changed = true;
        pool->changed_next = global->changed;
        global->changed = pool;
    }
}

// Each pool gets its minimum, and of the surplus a share in proportion to what it could use beyond.
// The shares are differences of rounded sums, so that nothing is left over.
static void share_out(leati_global_pool *global)
{
    uint32_t taken = global->promised + global->minima;
    uint64_t surplus = taken < global->total ? global->total - taken : 0;
    uint64_t wishes = 0;
    for (leati_local_pool *pool = global->pools; pool; pool = pool->next)
        wishes += pool->maximum - pool->minimum;
    uint64_t wished = 0;
    uint64_t given = 0;
    for (leati_local_pool *pool = global->pools; pool; pool = pool->next) {
        wished += pool->maximum - pool->minimum;
        uint64_t sum = wishes <= surplus ? wished : surplus * wished / wishes;
        set_limit(global, pool, pool->minimum + (uint32_t)(sum - given));
        given = sum;
    }
}

static uint32_t count_unreserved(const leati_global_pool *global)
{
    // What closed pools still hold cannot be promised before it is home.
    uint64_t taken = (uint64_t)global->promised + global->minima + global->orphans;
    return taken < global->total ? global->total - (uint32_t)taken : 0;
}

void leati_global_pool_counts(leati_global_pool *pool, uint32_t *total, uint32_t *unreserved)
{
    pthread_mutex_lock(&pool->lock);
    *total = pool->total;
    *unreserved = count_unreserved(pool);
    pthread_mutex_unlock(&pool->lock);
}

leat_err leati_global_pool_reserve(leati_global_pool *pool, uint32_t count)
{
    pthread_mutex_lock(&pool->lock);
    if (count > count_unreserved(pool)) {
        pthread_mutex_unlock(&pool->lock);
        return LEAT_ENOBUFS;
    }
    pool->promised += count;
    pool->owed += count;
    share_out(pool);
    unlock_and_wake(pool);
    return LEAT_OK;
}

void leati_global_pool_unreserve(leati_global_pool *pool, uint32_t count)
{
    pthread_mutex_lock(&pool->lock);
    assert(count <= pool->promised);
    pool->promised -= count;
    pool->owed -= count;
    share_out(pool);
    unlock_and_wake(pool);
}

// --- local pools ---

leat_err leati_global_enrol(leati_global_pool *global, leati_local_pool *pool)
{
    pthread_mutex_lock(&global->lock);
    if (pool->minimum > global->promised) {
        pthread_mutex_unlock(&global->lock);
        return LEAT_ENOBUFS;
    }
    // What is owed stays the same: the promise becomes what the pool misses.
    global->promised -= pool->minimum;
    global->minima += pool->minimum;
    pool->next = global->pools;
    if (pool->next)
        pool->next->previous = pool;
    global->pools = pool;
    share_out(global);
    unlock_and_wake(global);
    return LEAT_OK;
}

static void unlink_pool(leati_global_pool *global, leati_local_pool *pool)
{
    if (pool->previous)
        pool->previous->next = pool->next;
    else
        global->pools = pool->next;
    if (pool->next)
        pool->next->previous = pool->previous;
    stop_waiting(global, pool);
    for (leati_local_pool **link = &global->changed; pool->changed; link = &(*link)->changed_next) {
        if (*link != pool)
            continue;
        *link = pool->changed_next;
        pool->changed = false;
        break;
    }
    pool->closed = true;
}

// Puts a list of segments in the free list; returns how many they were.
static uint32_t push_all_free(leati_global_pool *global, leati_segment *segment)
{
    uint32_t count = 0;
    while (segment) {
        leati_segment *next = segment->next;
        push_free(global, segment);
        count++;
        segment = next;
    }
    return count;
}

void leati_global_withdraw(leati_global_pool *global, leati_local_pool *pool)
{
    pthread_mutex_lock(&global->lock);
    unlink_pool(global, pool);
    global->minima -= pool->minimum;
    global->owed -= missing(pool);
    // Under the lock: a segment that finds the mark comes here, and must find the pool closed.
    leati_segment *returned = atomic_exchange_explicit(
        &pool->returned, leati_pool_closed_mark(pool), memory_order_acq_rel);
    uint32_t held = held_by(pool) - push_all_free(global, pool->idle);
    held -= push_all_free(global, returned);
    pool->idle = NULL;
    atomic_store_explicit(&pool->held, held, memory_order_relaxed);
    global->orphans += held;
    share_out(global);
    unlock_and_wake(global);
    // Last, so that two pools that are closed at once do not wait for each other's pins.
    pthread_mutex_lock(&global->lock);
    while (pool->pins > 0)
        pthread_cond_wait(&global->unpinned, &global->lock);
    pthread_mutex_unlock(&global->lock);
}

void leati_global_pool_refuse(leati_global_pool *global, uint64_t nth, uint64_t count)
{
    global->refusing = nth > 0;
    global->refused = false;
    global->refuse_after = nth > 0 ? nth - 1 : 0;
    global->refuse_count = count;
}

leati_segment *leati_global_take(leati_global_pool *global, leati_local_pool *pool, uint32_t beyond)
{
    if (held_by(pool) >= limit_of(pool) + beyond)
        return NULL;
    leati_segment *segment = NULL;
    pthread_mutex_lock(&global->lock);
    if (may_take(global, pool, beyond)) {
        segment = pop_free(global);
        segment->owner = pool;
        segment->next = NULL;
        uint32_t held = held_by(pool);
        if (held < pool->minimum)
            global->owed--;
        atomic_store_explicit(&pool->held, held + 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&global->lock);
    return segment;
}

bool leati_global_take_back(leati_global_pool *global, leati_local_pool *pool,
                            leati_segment *segment)
{
    pthread_mutex_lock(&global->lock);
    uint32_t held = held_by(pool);
    if (!pool->closed && held <= limit_of(pool)) {
        pthread_mutex_unlock(&global->lock);
        return false;
    }
    push_free(global, segment);
    // A limit is never below the minimum, so nothing becomes owed by this.
    atomic_store_explicit(&pool->held, held - 1, memory_order_relaxed);
    if (pool->closed)
        global->orphans--;
    unlock_and_wake(global);
    return true;
}

void leati_global_await(leati_global_pool *global, leati_local_pool *pool)
{
    pthread_mutex_lock(&global->lock);
    if (!pool->closed && !pool->in_waiting && !may_take(global, pool, 0)) {
        pool->waiting_next = global->waiting;
        global->waiting = pool;
        pool->in_waiting = true;
    }
    pthread_mutex_unlock(&global->lock);
}
