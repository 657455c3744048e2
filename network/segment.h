// SPDX-License-Identifier: Apache-2.0
// Memory segments and the pools they come from.
//
// Threading. A local pool belongs to one task: request, await and the list of idle segments are
// touched by the thread that runs it. Segments come home from any thread through a stack that the
// owner empties at once. The global pool is behind a lock, which is taken only when a local pool
// grows, shrinks, is created or closed.
//
// Life cycle. A segment is idle in a pool, or referenced by the channels that it is queued on, one
// reference a channel. The writer that fills it needs none of its own: a channel does not let go of
// a segment that is not finished. (Before a spool there is no channel: the reference is the
// writer's until the bytes are in the file.) The last release sends it home. A closed pool hands
// what comes home to the global pool; it is destroyed when its last segment is home and nobody can
// be inside leati_segment_release or leati_local_pool_poke any more, that is, after all tasks that
// read its segments have ended.
//
// Bounds. The global pool has a fixed number of segments, whose memory is mapped at once and
// faulted in by use. A local pool never takes a segment beyond its limit plus its overdraft; when
// its limit shrinks, it gives the excess back as it comes home and in its owner's next turn.
#ifndef LEATI_NETWORK_SEGMENT_H
#define LEATI_NETWORK_SEGMENT_H

#include <stdatomic.h>

#include "base/export.h"
#include "leat/alloc.h"
#include "leat/error.h"

#define LEATI_CACHE_LINE 64
// Bytes before a segment's data that belong to it: a frame header goes there when the segment is
// sent.
#define LEATI_SEGMENT_HEADROOM 16
// Set in `committed` together with the final position.
#define LEATI_SEGMENT_FINISHED 0x80000000u

typedef struct leati_global_pool leati_global_pool;
typedef struct leati_local_pool leati_local_pool;

typedef struct leati_segment {
    // Writer to reader: bytes that may be read, and the finished bit. Release store by the writer,
    // acquire load by the reader.
    _Alignas(LEATI_CACHE_LINE) _Atomic uint32_t committed;
    _Atomic uint32_t references;
    uint8_t *data;              // immutable
    uint32_t size;              // immutable; usable bytes
    leati_local_pool *owner;    // set when requested
    struct leati_segment *next; // in the list of idle or returned segments
} leati_segment;

// What a pool or channel needs of the task at its end. The runtime's task starts with this struct.
typedef struct leati_waiter {
    // Makes the task run (again). Any thread, never blocks on anything but the run queue's lock.
    // May be called without a reason, so the task must look. Not called by a pool once it is
    // closed.
    void (*wake)(struct leati_waiter *self);
    // On the task's thread, in the middle of a record: returns LEAT_OK once `ready(arg)` is true,
    // LEAT_ECANCELLED when the task is to end. `ready` registers for a wake-up before it looks, so
    // that none is lost.
    leat_err (*wait)(struct leati_waiter *self, bool (*ready)(void *arg), void *arg);
} leati_waiter;

// Segments of 64 bytes to 2 GiB; LEAT_EINVAL, LEAT_ENOMEM.
LEATI_SHARED LEAT_MUST_USE leat_err leati_global_pool_create(const leat_allocator *allocator,
                                                             size_t segment_size, uint32_t count,
                                                             leati_global_pool **pool);
// All local pools must have gone.
LEATI_SHARED void leati_global_pool_destroy(leati_global_pool **pool);
LEATI_SHARED size_t leati_global_pool_segment_size(const leati_global_pool *pool);
// Segments in all, and those not promised to any local pool as its minimum. Any thread.
LEATI_SHARED void leati_global_pool_counts(leati_global_pool *pool, uint32_t *total,
                                           uint32_t *unreserved);
// Promises `count` segments for pools that are going to be created, all or nothing: LEAT_ENOBUFS.
// The local pools created with `reserved` take their minimum out of the promise.
LEATI_SHARED LEAT_MUST_USE leat_err leati_global_pool_reserve(leati_global_pool *pool,
                                                              uint32_t count);
LEATI_SHARED void leati_global_pool_unreserve(leati_global_pool *pool, uint32_t count);

// For tests, on one thread: from now on the `nth` (1: the next) look for a segment, in any local
// pool, finds none, and `count` in all. 0: none fails.
LEATI_SHARED void leati_global_pool_refuse(leati_global_pool *global, uint64_t nth, uint64_t count);

typedef struct leati_local_pool_options {
    uint32_t minimum; // guaranteed, at least 1
    uint32_t maximum; // wished for; the limit lies between, by what the global pool can spare
    uint32_t overdraft;
    leati_waiter *waiter; // the owning task
} leati_local_pool_options;

// `minimum` must have been reserved before (else LEAT_ENOBUFS); the pool takes over that part of
// the promise and gives it up when closed. LEAT_EINVAL for a minimum of 0 or above the maximum;
// LEAT_ENOMEM.
LEATI_SHARED LEAT_MUST_USE leat_err leati_local_pool_create(leati_global_pool *global,
                                                            const leati_local_pool_options *options,
                                                            leati_local_pool **pool);
// Of the segments that it hands out. Any thread.
LEATI_SHARED uint32_t leati_local_pool_segment_size(const leati_local_pool *pool);
// A segment with committed = 0 and one reference, or NULL when there is none now. `overdraft`
// allows to go beyond the limit: for finishing a record only. Owner.
LEATI_SHARED leati_segment *leati_local_pool_request(leati_local_pool *pool, bool overdraft);
// Whether an idle segment is there (taking in what came home and, below the limit, what the global
// pool has). Owner.
LEATI_SHARED bool leati_local_pool_available(leati_local_pool *pool);
// Registers the owner for one wake-up at the next homecoming or poke. The caller must look again
// afterwards, before it sleeps.
LEATI_SHARED void leati_local_pool_await(leati_local_pool *pool);
// The same at the `count`-th homecoming or draining from now on. No more than have gone out and not
// come home, or nobody may ever wake it; so after a look that has found something, it is registered
// anew.
LEATI_SHARED void leati_local_pool_await_many(leati_local_pool *pool, uint32_t count);
// Gives back what is idle above the limit: before the owner goes to sleep, and by itself with each
// request. An owner whose limit has shrunk below what it holds is woken so that it gets here.
// Owner.
LEATI_SHARED void leati_local_pool_trim(leati_local_pool *pool);
// Something the owner may wait for has happened (a channel has drained): wakes it if it is
// registered. Any thread.
LEATI_SHARED void leati_local_pool_poke(leati_local_pool *pool);
// Owner, or anyone once the owner has ended: no more requests. Idle segments go back at once, the
// others as they come home. Waits for a wake-up of this owner that the global pool has under way.
// May be called again.
LEATI_SHARED void leati_local_pool_close(leati_local_pool *pool);
// Frees a closed pool whose segments are all home (asserted).
LEATI_SHARED void leati_local_pool_destroy(leati_local_pool **pool);
// Any thread; `used` counts segments that are not idle.
LEATI_SHARED void leati_local_pool_counts(const leati_local_pool *pool, uint32_t *used,
                                          uint32_t *limit);
// The most that `used` has been. Any thread.
LEATI_SHARED uint32_t leati_local_pool_peak(const leati_local_pool *pool);

// One more reference, for a segment queued on several channels.
LEATI_SHARED void leati_segment_hold(leati_segment *segment);
// Any thread. The last one sends it home, which wakes a registered owner.
LEATI_SHARED void leati_segment_release(leati_segment *segment);

#endif
