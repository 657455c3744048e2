// SPDX-License-Identifier: Apache-2.0
// Records on their way from other threads to one that takes them, in encoded form.
//
// Threading. Puts and take are under a lock of the owner's, which also knows when to wait or to
// wake whom; next is the taker's alone, so that the lock is held for a copy or a swap only. Life
// cycle. init → put, take, next in any order → fini. Bounds. The owner's: it looks at `waiting`
// before it puts.
#ifndef LEATI_OPERATORS_RECORD_QUEUE_H
#define LEATI_OPERATORS_RECORD_QUEUE_H

#include "leat/record.h"

typedef struct leati_record_buffer {
    uint8_t *data;
    size_t size, capacity;
} leati_record_buffer;

typedef struct leati_record_queue {
    // Immutable after init.
    const leat_allocator *allocator;
    const leat_type *type;
    // Under the owner's lock.
    leati_record_buffer waiting; // its size is what has been put and not taken, in bytes
    // The taker's.
    leati_record_buffer taken;
    size_t at; // read position in it
    void *record;
    leat_scratch *scratch;
} leati_record_queue;

// What has no record in it, a watermark.
#define LEATI_QUEUE_WATERMARK UINT32_MAX

typedef struct leati_queued {
    const void *record; // NULL: a watermark, whose time is `timestamp`; valid until the next call
    bool stamped;
    int64_t timestamp;
} leati_queued;

// LEAT_ENOMEM. fini also after a failure, and on a zeroed queue.
LEAT_MUST_USE leat_err leati_record_queue_init(leati_record_queue *queue,
                                               const leat_allocator *allocator,
                                               const leat_type *type);
void leati_record_queue_fini(leati_record_queue *queue);
// Puts a copy of what `item` says. LEAT_ENOMEM, LEAT_ETOOBIG, LEAT_EINVAL; nothing is put then.
LEAT_MUST_USE leat_err leati_record_queue_put(leati_record_queue *queue, const leati_queued *item);
// Makes all that waits next's to give; only when next has nothing more. False when nothing waits.
bool leati_record_queue_take(leati_record_queue *queue);
// Whether next has something.
static inline bool leati_record_queue_has_next(const leati_record_queue *queue)
{
    return queue->at < queue->taken.size;
}
// Gives what has been taken, one after the other. LEAT_ENOENT when there is nothing more.
LEAT_MUST_USE leat_err leati_record_queue_next(leati_record_queue *queue, leati_queued *item);

#endif
