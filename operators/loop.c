// SPDX-License-Identifier: Apache-2.0
#include "operators/loop.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "runtime/context.h"

typedef struct leati_loop {
    const leat_allocator *allocator;
    uint32_t count;
    _Atomic uint32_t outsides; // heads to which something may still come from outside
    _Atomic int64_t moved_ns;  // when something last moved on any lane
    leati_loop_lane lanes[];
} loop;

static void loop_destroy(void *object)
{
    loop *gone = object;
    for (uint32_t i = 0; i < gone->count; i++) {
        leati_record_queue_fini(&gone->lanes[i].queue);
        pthread_mutex_destroy(&gone->lanes[i].lock);
    }
    leati_free(gone->allocator, gone);
}

// The type of the records is known to the tail and to the head alike, but only through the config;
// leati_ctx_shared_by has no room for it, so the lanes' queues are initialised by lane_of.
static leat_err loop_create(leat_ctx *ctx, void **object)
{
    const leat_allocator *allocator = leat_ctx_allocator(ctx);
    uint32_t count = leat_ctx_parallelism(ctx);
    loop *made = leati_calloc(allocator, 1, sizeof *made + count * sizeof *made->lanes);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = allocator;
    made->count = count;
    atomic_init(&made->outsides, count);
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_init(&made->lanes[i].lock, NULL);
        made->lanes[i].loop = made;
    }
    *object = made;
    return LEAT_OK;
}

leat_err leati_loop_lane_of(leat_ctx *ctx, const leati_loop_config *config, leati_loop_lane **lane)
{
    static const leati_shared_ops shared = {.create = loop_create, .destroy = loop_destroy};
    void *object;
    leat_err err = leati_ctx_shared_by(ctx, config, &shared, &object);
    if (!err) {
        *lane = &((loop *)object)->lanes[leat_ctx_subtask(ctx)];
        pthread_mutex_lock(&(*lane)->lock);
        if (!(*lane)->queue.allocator)
            err = leati_record_queue_init(&(*lane)->queue, leat_ctx_allocator(ctx),
                                          config->feedback.type);
        pthread_mutex_unlock(&(*lane)->lock);
    }
    return err ? leati_ctx_error(ctx, err, "no memory for the feedback loop") : LEAT_OK;
}

leat_err leati_loop_put(leati_loop_lane *lane, const void *record, size_t most_bytes,
                        bool *was_empty)
{
    pthread_mutex_lock(&lane->lock);
    leat_err err = lane->over                               ? LEAT_ESTATE
                   : lane->queue.waiting.size >= most_bytes ? LEAT_ENOBUFS
                                                            : LEAT_OK;
    *was_empty = lane->queue.waiting.size == 0;
    if (!err)
        err = leati_record_queue_put(&lane->queue, &(leati_queued){.record = record});
    // Under the lock, so that the head cannot go away meanwhile.
    if (!err && *was_empty && lane->waker)
        leat_wake(lane->waker);
    pthread_mutex_unlock(&lane->lock);
    return err;
}

void leati_loop_attach(leati_loop_lane *lane, leat_waker *waker)
{
    pthread_mutex_lock(&lane->lock);
    lane->waker = waker;
    pthread_mutex_unlock(&lane->lock);
}

bool leati_loop_take(leati_loop_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool taken = leati_record_queue_take(&lane->queue);
    pthread_mutex_unlock(&lane->lock);
    return taken;
}

size_t leati_loop_waiting(leati_loop_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    size_t bytes = lane->queue.waiting.size;
    pthread_mutex_unlock(&lane->lock);
    return bytes + lane->queue.taken.size - lane->queue.at;
}

bool leati_loop_close(leati_loop_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->over = lane->queue.waiting.size == 0;
    bool over = lane->over;
    pthread_mutex_unlock(&lane->lock);
    return over;
}

void leati_loop_moved(leati_loop_lane *lane, int64_t now_ns)
{
    atomic_store_explicit(&lane->loop->moved_ns, now_ns, memory_order_relaxed);
}

void leati_loop_outside_ended(leati_loop_lane *lane, int64_t now_ns)
{
    loop *l = lane->loop;
    leati_loop_moved(lane, now_ns);
    // The others have looked in vain and sleep without a time to wake.
    if (atomic_fetch_sub_explicit(&l->outsides, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < l->count; i++) {
        pthread_mutex_lock(&l->lanes[i].lock);
        if (l->lanes[i].waker)
            leat_wake(l->lanes[i].waker);
        pthread_mutex_unlock(&l->lanes[i].lock);
    }
}

int64_t leati_loop_quiet_since(leati_loop_lane *lane)
{
    loop *l = lane->loop;
    if (atomic_load_explicit(&l->outsides, memory_order_acquire) > 0)
        return INT64_MAX;
    return atomic_load_explicit(&l->moved_ns, memory_order_relaxed);
}
