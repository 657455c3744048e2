// SPDX-License-Identifier: Apache-2.0
// A record writer: one exchange as its producer sees it. It chooses the channel, encodes the record
// straight into the channel's open segment and publishes it. To the chain it is an operator like
// any other, the last of its branch.
//
// Threading. The task's thread, except leati_writer_tick (timer) and leati_writer_counts.
//
// A record that does not fit the open segment starts the next one if it is at most an eighth of a
// segment; a larger one is encoded aside and cut at segment borders. So small records are never
// copied and always decoded in place.
#ifndef LEATI_NETWORK_WRITER_H
#define LEATI_NETWORK_WRITER_H

#include "graph/stream_graph.h"
#include "network/channel.h"

typedef struct leati_writer leati_writer;

// The timestamp of the record that the task is working on; one per task, read by its writers.
typedef struct leati_record_time {
    int64_t timestamp; // INT64_MIN when there is none
    bool present;
} leati_record_time;

typedef struct leati_writer_options {
    const leat_allocator *allocator;
    const leat_type *type;
    leati_partitioner partitioner;
    const leati_key_selector *key; // LEATI_PARTITION_HASH
    leat_ctx *ctx; // for user functions (key, partitioner) and for recording failures; the emitting
                   // operator's
    uint32_t subtask;   // of the producer: seeds the choice of the first channel
    uint32_t channels;  // that this subtask feeds
    uint32_t consumers; // parallelism of the consumer, and its max parallelism: for hashing
    uint32_t max_parallelism;
    int64_t buffer_timeout_ms;
    // Per channel, beside the open one, before no further record is started; at least 1.
    uint32_t max_segments;
    uint32_t max_record_size;
    leat_partition_fn custom; // LEATI_PARTITION_CUSTOM
    leati_spool *spool;       // of a blocking exchange, else NULL; borrowed
    leati_local_pool *pool;
    leati_waiter *waiter;          // the task
    const leati_record_time *time; // of the task
    // Set by writers when the task should look whether its output is still available; cleared by
    // the task.
    bool *maybe_blocked;
    // Records an error with the emitting operator and returns it: LEAT_ETOOBIG, a null key, a
    // failed key function.
    leat_err (*failed)(leat_ctx *ctx, leat_err err, const char *format, ...) LEAT_PRINTF(3, 4);
} leati_writer_options;

// `channels[i]` is the channel to the i-th consumer that this subtask feeds; borrowed. LEAT_EINVAL
// for a partitioner that is not known here or counts that do not fit it;
// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_writer_create(const leati_writer_options *options,
                                           leati_channel *const *channels, leati_writer **writer);
void leati_writer_destroy(leati_writer **writer);
// The writer as an operator: element writes a record, watermark broadcasts; it has no other hooks
// and disposing it does nothing. LEAT_ECANCELLED when a wait was cancelled; then nothing more can
// be written. Any other error leaves the writer as it was before the record.
leat_operator *leati_writer_operator(leati_writer *writer);

// How it takes several records at once, or NULL; see leat_out. `*count` becomes how many it has
// taken: it stops when the task should look whether output is available.
leat_some_fn leati_writer_some(const leati_writer *writer);

// Whether another record may be started: an idle segment in the pool and no channel at its bound.
bool leati_writer_available(leati_writer *writer);
// Registers the task, with the pool, for a wake-up when that may have changed. Look again
// afterwards.
void leati_writer_await(leati_writer *writer);
// When the task has no more input for now: makes everything written visible to the readers (not
// with timeout -1) and gives excess segments back. True when some reader was notified.
bool leati_writer_flush(leati_writer *writer);
// The same from the timer's thread, for writers with a positive timeout.
void leati_writer_tick(leati_writer *writer);
// Finishes all open segments and queues the event on every channel; waits for room where it must.
// A priority event goes out at once and finishes nothing.
LEAT_MUST_USE leat_err leati_writer_broadcast_event(leati_writer *writer, const leati_event *event);
// What was written, a broadcast record counted once: exact after a flush or an event, else behind
// by what stands in open segments. Any thread; relaxed.
void leati_writer_counts(const leati_writer *writer, uint64_t *records, uint64_t *bytes);

#endif
