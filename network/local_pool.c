// SPDX-License-Identifier: Apache-2.0
// A task's own pool, and the way of a segment back to it.
//
// No wake-up is lost. The owner exchanges `waiting` to 1, or how many are to come, and looks again;
// whoever brings something home counts it down afterwards. The later of the two sees the earlier
// one: either the owner then sees the segment, or the other side sees the number, and wakes if it
// was 1. Exchanges, not fences, because ThreadSanitizer does not know fences.
//
// No ABA. Segments are pushed one by one and taken all at once, so a head that has not changed
// means that its link is still right.
#include <assert.h>

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

leat_err leati_local_pool_create(leati_global_pool *global, const leati_local_pool_options *options,
                                 leati_local_pool **pool)
{
    if (options->minimum == 0 || options->maximum < options->minimum)
        return LEAT_EINVAL;
    leati_local_pool *local =
        leati_alloc_aligned(global->allocator, LEATI_CACHE_LINE, sizeof *local);
    if (!local)
        return LEAT_ENOMEM;
    *local = (leati_local_pool){
        .global = global,
        .waiter = options->waiter,
        .minimum = options->minimum,
        .maximum = options->maximum,
        .overdraft = options->overdraft,
    };
    leat_err err = leati_global_enrol(global, local);
    if (err != LEAT_OK) {
        leati_free_aligned(global->allocator, local);
        return err;
    }
    *pool = local;
    return LEAT_OK;
}

uint32_t leati_local_pool_segment_size(const leati_local_pool *pool)
{
    return (uint32_t)pool->global->segment_size;
}

// Takes over what came home. Pairs with the push in leati_segment_drop.
static void take_in(leati_local_pool *pool)
{
    if (atomic_load_explicit(&pool->returned, memory_order_relaxed))
        pool->idle = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
}

void leati_local_pool_trim(leati_local_pool *pool)
{
    while (!pool->ended && held_by(pool) > limit_of(pool)) {
        if (!pool->idle)
            take_in(pool);
        leati_segment *segment = pool->idle;
        if (!segment)
            return;
        leati_segment *rest = segment->next;
        if (!leati_global_take_back(pool->global, pool, segment))
            return;
        pool->idle = rest;
    }
}

leati_segment *leati_local_pool_request(leati_local_pool *pool, bool overdraft)
{
    // Who asks for an overdraft has just looked in vain.
    leati_global_pool *global = pool->global;
    if (LEAT_UNLIKELY(pool->ended || (overdraft ? global->refused : leati_global_refuses(global))))
        return NULL;
    leati_local_pool_trim(pool);
    if (!pool->idle)
        take_in(pool);
    leati_segment *segment = pool->idle;
    if (segment)
        pool->idle = segment->next;
    else
        segment = leati_global_take(global, pool, overdraft ? pool->overdraft : 0);
    if (!segment)
        return NULL;
    leati_unpoison(segment->data, segment->size);
    atomic_store_explicit(&segment->committed, 0, memory_order_relaxed);
    atomic_store_explicit(&segment->references, 1, memory_order_relaxed);
    uint64_t requested = atomic_load_explicit(&pool->requested, memory_order_relaxed);
    atomic_store_explicit(&pool->requested, requested + 1, memory_order_relaxed);
    uint64_t out = requested + 1 - atomic_load_explicit(&pool->homed, memory_order_relaxed);
    if (out > atomic_load_explicit(&pool->peak, memory_order_relaxed))
        atomic_store_explicit(&pool->peak, (uint32_t)out, memory_order_relaxed);
    return segment;
}

bool leati_local_pool_available(leati_local_pool *pool)
{
    if (LEAT_UNLIKELY(pool->ended || leati_global_refuses(pool->global)))
        return false;
    leati_local_pool_trim(pool);
    if (!pool->idle)
        take_in(pool);
    if (!pool->idle)
        pool->idle = leati_global_take(pool->global, pool, 0);
    return pool->idle != NULL;
}

void leati_local_pool_await(leati_local_pool *pool)
{
    leati_local_pool_await_many(pool, 1);
}

void leati_local_pool_await_many(leati_local_pool *pool, uint32_t count)
{
    // Pairs with the exchanges in leati_local_pool_poke and count_down.
    atomic_exchange_explicit(&pool->waiting, count, memory_order_acq_rel);
    // A full pool waits for its own segments only, so that the common wait takes no lock; when its
    // limit is raised later, the global pool wakes the owner.
    if (held_by(pool) < limit_of(pool))
        leati_global_await(pool->global, pool);
}

void leati_local_pool_poke(leati_local_pool *pool)
{
    // Pairs with the exchange in leati_local_pool_await.
    if (atomic_exchange_explicit(&pool->waiting, 0, memory_order_acq_rel))
        pool->waiter->wake(pool->waiter);
}

// One more has come home.
static void count_down(leati_local_pool *pool)
{
    uint32_t waiting = atomic_load_explicit(&pool->waiting, memory_order_relaxed), less;
    do {
        less = waiting > 0 ? waiting - 1 : 0;
        // Pairs with the exchange in leati_local_pool_await_many; also when nothing changes.
    } while (!atomic_compare_exchange_weak_explicit(&pool->waiting, &waiting, less,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (waiting == 1)
        pool->waiter->wake(pool->waiter);
}

void leati_local_pool_close(leati_local_pool *pool)
{
    if (pool->ended)
        return;
    pool->ended = true;
    // From here on nobody has a reason to wake the owner.
    atomic_exchange_explicit(&pool->waiting, 0, memory_order_acq_rel);
    leati_global_withdraw(pool->global, pool);
}

void leati_local_pool_destroy(leati_local_pool **pool)
{
    leati_local_pool *local = *pool;
    if (!local)
        return;
    *pool = NULL;
    leati_global_pool *global = local->global;
    // The lock orders this after the homecoming of the last segment.
    pthread_mutex_lock(&global->lock);
    assert(local->closed && held_by(local) == 0);
    pthread_mutex_unlock(&global->lock);
    leati_free_aligned(global->allocator, local);
}

void leati_local_pool_counts(const leati_local_pool *pool, uint32_t *used, uint32_t *limit)
{
    // In this order, so that no segment is seen to come home before it has gone out.
    uint64_t homed = atomic_load_explicit(&pool->homed, memory_order_acquire);
    uint64_t requested = atomic_load_explicit(&pool->requested, memory_order_relaxed);
    *used = requested > homed ? (uint32_t)(requested - homed) : 0;
    *limit = limit_of(pool);
}

uint32_t leati_local_pool_peak(const leati_local_pool *pool)
{
    return atomic_load_explicit(&pool->peak, memory_order_relaxed);
}

void leati_segment_hold(leati_segment *segment)
{
    atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
}

bool leati_segment_drop(leati_segment *segment)
{
    // Whoever finds a single reference is the one who has it, so it needs no exchange to give it
    // up. The decrement releases what this holder did; the last one acquires it.
    if (atomic_load_explicit(&segment->references, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) != 1)
        return false;
    leati_local_pool *pool = segment->owner;
    leati_poison(segment->data, segment->size);
    atomic_fetch_add_explicit(&pool->homed, 1, memory_order_release);
    if (held_by(pool) > limit_of(pool) && leati_global_take_back(pool->global, pool, segment))
        return false;
    leati_segment *head = atomic_load_explicit(&pool->returned, memory_order_relaxed);
    do {
        if (head == leati_pool_closed_mark(pool)) {
            leati_global_take_back(pool->global, pool, segment);
            return false;
        }
        segment->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&pool->returned, &head, segment,
                                                    memory_order_release, memory_order_relaxed));
    count_down(pool);
    return true;
}

void leati_segment_release(leati_segment *segment)
{
    leati_segment_drop(segment);
}
