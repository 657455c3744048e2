// SPDX-License-Identifier: Apache-2.0
// Tasks that write real elements to channels between processes: records of all sizes, with and
// without timestamps, watermarks and events. Each follows from its number, so that who has recorded
// the bytes on their way can say what they have to be.
#ifndef TESTS_NETWORK_NNG_TALK_H
#define TESTS_NETWORK_NNG_TALK_H

#include <stddef.h>

#include "leat/record.h"
#include "network/writer.h"
#include "tests/network/nng/flow.h"

typedef struct blob {
    leat_bytes bytes;
} blob;
LEAT_RECORD(blob, LEAT_FIELD(bytes, LEAT_BYTES));

// --- what is said: a sequence of items, each of which follows from its number ---

enum { ITEM_MOST = 12000, READERS_MOST = 2 };

typedef struct item {
    enum { ITEM_RECORD, ITEM_RECORD_AT, ITEM_WATERMARK, ITEM_EVENT } what;
    int64_t time;  // of the record, the watermark, the event
    uint32_t size; // of the record's bytes
    leati_event event;
} item;

static inline uint64_t mixed(uint64_t seed, uint64_t number)
{
    uint64_t z = (seed << 32 | number) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// The last two are the end of the data and of the partition.
static inline item item_of(uint64_t seed, uint32_t number, uint32_t count)
{
    uint64_t random = mixed(seed, number);
    uint32_t dice = (uint32_t)(random % 100), size = (uint32_t)(random >> 32);
    item self = {.time = (int64_t)mixed(seed + 1000, number)};
    if (number + 2 >= count) {
        self.what = ITEM_EVENT;
        self.event.tag = number + 2 == count ? LEATI_TAG_END_OF_DATA : LEATI_TAG_END_OF_PARTITION;
        self.event.options = number + 2 == count;
    } else if (dice < 80) {
        self.what = dice < 20 ? ITEM_RECORD_AT : ITEM_RECORD;
        self.size = dice == 79 ? size % ITEM_MOST : dice > 70 ? size % 700 : size % 80;
    } else if (dice < 94) {
        self.what = ITEM_WATERMARK;
    } else {
        self.what = ITEM_EVENT;
        self.event = (leati_event){.tag = dice == 94 ? LEATI_TAG_CANCEL_BARRIER : LEATI_TAG_BARRIER,
                                   .options = (uint16_t)size,
                                   .checkpoint = random,
                                   .timestamp = self.time};
    }
    return self;
}

static inline void item_fill(uint64_t seed, uint32_t number, uint32_t size, uint8_t *bytes)
{
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(mixed(seed, number) >> (i % 8 * 8)) ^ (uint8_t)(i >> 3);
}

// The payload of the item's element, by docs/design/wire.md and records.md.
static inline uint32_t item_payload(uint64_t seed, uint32_t number, const item *of, uint8_t *to)
{
    uint32_t at = 0;
    if (of->what != ITEM_RECORD)
        for (; at < 8; at++)
            to[at] = (uint8_t)((uint64_t)of->time >> 8 * at);
    if (of->what == ITEM_WATERMARK)
        return at;
    to[at++] = 0x91; // a struct of one field, which is bytes
    to[at++] = of->size < 256 ? 0xc4 : 0xc5;
    if (of->size >= 256)
        to[at++] = (uint8_t)(of->size >> 8);
    to[at++] = (uint8_t)of->size;
    item_fill(seed, number, of->size, to + at);
    return at + of->size;
}

// --- who says it, and who listens ---

// A writer with a channel to each reader, all from one share to another.
typedef struct talk {
    uint64_t seed;
    uint32_t items, urgent, readers;
    uint32_t number; // of the first channel
    flow flows[READERS_MOST];
    leati_channel *out[READERS_MOST];
    leati_local_pool *pool;
    leati_writer *writer;
    leati_record_time time;
    bool maybe_blocked;
    flow_task task; // the producer
    _Atomic bool cancelled;
    // As heard on the wire, by the decoder.
    uint32_t heard[READERS_MOST], heard_urgent[READERS_MOST];
    uint64_t bytes[READERS_MOST];
} talk;

static inline leat_err talk_failed(leat_ctx *ctx, leat_err err, const char *format, ...)
{
    (void)ctx;
    fprintf(stderr, "%s\n", format);
    abort();
    return err;
}

static inline leat_err talk_wait(leati_waiter *waiter, bool (*ready)(void *arg), void *arg)
{
    talk *self = (talk *)((char *)waiter - offsetof(talk, task));
    while (!ready(arg)) {
        if (atomic_load(&self->cancelled))
            return LEAT_ECANCELLED;
        flow_sleep(&self->task);
    }
    return LEAT_OK;
}

static inline void talk_open(talk *self, share *from, share *to, uint32_t to_index)
{
    flow_task_init(&self->task, self->seed);
    self->task.waiter.wait = talk_wait;
    self->time.timestamp = INT64_MIN;
    self->pool = flow_pool(from->of, 4, 8, &self->task.waiter);
    for (uint32_t i = 0; i < self->readers; i++) {
        flow_init(&self->flows[i], from, to, self->number + i, 0);
        flow_receive(&self->flows[i], 1 - to_index, 8);
        FLOW_CHECK(leati_channel_create(NULL, self->pool, 10, 0, &self->out[i]) == LEAT_OK);
        FLOW_CHECK(from->of->transport->send(from->link, self->number + i, to_index,
                                             self->out[i]) == LEAT_OK);
    }
    leati_writer_options options = {
        .type = LEAT_TYPE(blob),
        .partitioner = self->readers > 1 ? LEATI_PARTITION_BROADCAST : LEATI_PARTITION_FORWARD,
        .channels = self->readers,
        .consumers = self->readers,
        .max_parallelism = 128,
        .buffer_timeout_ms = 100,
        .max_segments = 10,
        .max_record_size = 100000,
        .pool = self->pool,
        .waiter = &self->task.waiter,
        .time = &self->time,
        .maybe_blocked = &self->maybe_blocked,
        .failed = talk_failed,
    };
    FLOW_CHECK(leati_writer_create(&options, self->out, &self->writer) == LEAT_OK);
}

static inline leat_err talk_put(talk *self, uint32_t number)
{
    uint8_t bytes[ITEM_MOST];
    leat_operator *op = leati_writer_operator(self->writer);
    item now = item_of(self->seed, number, self->items);
    if (now.what == ITEM_EVENT)
        return leati_writer_broadcast_event(self->writer, &now.event);
    if (now.what == ITEM_WATERMARK)
        return op->ops->watermark(op, now.time, NULL);
    item_fill(self->seed, number, now.size, bytes);
    self->time = (leati_record_time){.timestamp = now.what == ITEM_RECORD_AT ? now.time : INT64_MIN,
                                     .present = now.what == ITEM_RECORD_AT};
    return op->ops->element(op, &(blob){{bytes, now.size}}, NULL);
}

static inline void *talk_produce(void *arg)
{
    talk *self = arg;
    leat_err err = LEAT_OK;
    uint32_t urgent = 0;
    for (uint32_t i = 0; i < self->items && err == LEAT_OK; i++) {
        uint32_t dice = flow_random(&self->task, 1000);
        if (urgent < self->urgent && (dice < 20 || i + 2 == self->items)) {
            leati_event event = {
                .tag = LEATI_TAG_ANNOUNCEMENT, .priority = 1, .checkpoint = ++urgent};
            FLOW_CHECK(leati_writer_broadcast_event(self->writer, &event) == LEAT_OK);
        }
        err = talk_put(self, i);
        if (err == LEAT_OK && dice > 980)
            leati_writer_flush(self->writer);
    }
    FLOW_CHECK(err == LEAT_OK || (err == LEAT_ECANCELLED && atomic_load(&self->cancelled)));
    return NULL;
}

// Reads everything, as far as the end of the partition; what it was does not matter here.
static inline void *talk_consume(void *arg)
{
    flow *self = arg;
    leati_chunk chunk;
    bool ended = false;
    while (!ended && !atomic_load(&self->cancelled)) {
        leati_channel *channel = leati_gate_poll(self->gate);
        leati_chunk_kind kind = LEATI_CHUNK_NONE;
        while (channel && !ended && (kind = leati_channel_peek(channel, &chunk))) {
            if (kind == LEATI_CHUNK_EVENT)
                ended = chunk.event.tag == LEATI_TAG_END_OF_PARTITION;
            else
                leati_channel_advance(channel, chunk.size);
            if (kind == LEATI_CHUNK_DATA)
                atomic_fetch_add(&self->got, chunk.size);
        }
        if (channel)
            leati_gate_done(self->gate, channel, kind != LEATI_CHUNK_NONE);
        if (!ended && !leati_gate_has_data(self->gate))
            flow_sleep(&self->consumer);
    }
    return NULL;
}

static inline void talk_start(talk *self)
{
    FLOW_CHECK(pthread_create(&self->task.thread, NULL, talk_produce, self) == 0);
    for (uint32_t i = 0; i < self->readers; i++)
        FLOW_CHECK(pthread_create(&self->flows[i].consumer.thread, NULL, talk_consume,
                                  &self->flows[i]) == 0);
}

static inline void talk_cancel(talk *self)
{
    atomic_store(&self->cancelled, true);
    flow_wake(&self->task.waiter);
    for (uint32_t i = 0; i < self->readers; i++)
        flow_cancel(&self->flows[i]);
}

static inline void talk_join(talk *self)
{
    pthread_join(self->task.thread, NULL);
    for (uint32_t i = 0; i < self->readers; i++)
        pthread_join(self->flows[i].consumer.thread, NULL);
}

// After the links were closed.
static inline void talk_close(talk *self)
{
    leati_writer_destroy(&self->writer);
    leati_local_pool_close(self->pool);
    for (uint32_t i = 0; i < self->readers; i++) {
        leati_channel_destroy(&self->out[i]);
        flow_fini(&self->flows[i]);
    }
    leati_local_pool_destroy(&self->pool);
    flow_task_fini(&self->task);
}

#endif
