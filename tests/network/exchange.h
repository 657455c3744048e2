// SPDX-License-Identifier: Apache-2.0
// A writer with channels to several readers, driven by hand.
#ifndef TESTS_NETWORK_EXCHANGE_H
#define TESTS_NETWORK_EXCHANGE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "leat/record.h"
#include "network/reader.h"
#include "network/writer.h"

enum { MAX_CHANNELS = 8 };

typedef struct pair {
    int64_t a, b;
} pair;
LEAT_RECORD(pair, LEAT_FIELD(a, LEAT_I64), LEAT_FIELD(b, LEAT_I64));

typedef struct blob {
    leat_bytes bytes;
} blob;
LEAT_RECORD(blob, LEAT_FIELD(bytes, LEAT_BYTES));

typedef struct exchange {
    leati_global_pool *global;
    leati_local_pool *pool;
    fake_task producer;
    fake_task consumer[MAX_CHANNELS];
    leati_gate *gate[MAX_CHANNELS];
    leati_channel *channel[MAX_CHANNELS];
    leati_reader reader[MAX_CHANNELS];
    leati_writer *writer;
    leati_record_time time;
    bool maybe_blocked;
    leati_writer_options options; // may be changed before exchange_open
    uint32_t segment_size;
    uint32_t segments; // limit of the pool
} exchange;

// What the writers reported last.
static leat_err last_error;
static char last_message[200];

static inline leat_err note_failure(leat_ctx *ctx, leat_err err, const char *format, ...)
{
    last_error = err;
    va_list args;
    va_start(args, format);
    vsnprintf(last_message, sizeof last_message, format, args);
    va_end(args);
    return err;
}

static inline void exchange_init(exchange *x, leati_partitioner partitioner, uint32_t channels)
{
    *x = (exchange){.segment_size = 1024, .segments = 20, .producer = fake_task_make()};
    x->time.timestamp = INT64_MIN;
    x->options = (leati_writer_options){
        .type = LEAT_TYPE(pair),
        .partitioner = partitioner,
        .channels = channels,
        .consumers = channels,
        .max_parallelism = 128,
        .buffer_timeout_ms = 100,
        .max_segments = 10,
        .max_record_size = 100000,
        .failed = note_failure,
    };
}

static inline void exchange_open(exchange *x)
{
    x->global = make_global(x->segment_size, x->segments);
    x->pool = make_local(x->global, &x->producer, x->segments, x->segments, 0);
    for (uint32_t i = 0; i < x->options.channels; i++) {
        x->consumer[i] = fake_task_make();
        cr_assert(leati_channel_create(NULL, x->pool, x->options.max_segments, 0, &x->channel[i]) ==
                  LEAT_OK);
        cr_assert(leati_gate_create(NULL, &x->consumer[i].waiter, 1, &x->gate[i]) == LEAT_OK);
        leati_gate_attach(x->gate[i], 0, x->channel[i]);
        leati_reader_init(&x->reader[i], NULL, x->channel[i], 100000 + 8);
    }
    x->options.pool = x->pool;
    x->options.waiter = &x->producer.waiter;
    x->options.time = &x->time;
    x->options.maybe_blocked = &x->maybe_blocked;
    cr_assert(leati_writer_create(&x->options, x->channel, &x->writer) == LEAT_OK);
}

static inline void exchange_close(exchange *x)
{
    leati_writer_destroy(&x->writer);
    for (uint32_t i = 0; i < x->options.channels; i++) {
        leati_reader_fini(&x->reader[i]);
        leati_channel_destroy(&x->channel[i]);
        leati_gate_destroy(&x->gate[i]);
    }
    end_local(&x->pool);
    leati_global_pool_destroy(&x->global);
}

static inline leat_err put(exchange *x, const void *record)
{
    leat_operator *op = leati_writer_operator(x->writer);
    return op->ops->element(op, record, NULL);
}

static inline leat_err put_pair(exchange *x, int64_t a)
{
    return put(x, &(pair){a, -a});
}

static inline leat_err put_blob(exchange *x, const uint8_t *bytes, size_t size)
{
    return put(x, &(blob){{bytes, size}});
}

static inline leat_err put_watermark(exchange *x, int64_t watermark)
{
    leat_operator *op = leati_writer_operator(x->writer);
    return op->ops->watermark(op, watermark, NULL);
}

static inline leat_err put_event(exchange *x, leati_tag tag, uint8_t priority)
{
    return leati_writer_broadcast_event(x->writer,
                                        &(leati_event){.tag = (uint8_t)tag, .priority = priority});
}

static inline leati_read get(exchange *x, uint32_t channel, leati_element *element)
{
    return leati_reader_next(&x->reader[channel], element);
}

// The next pair of a channel; false when it has none.
static inline bool get_pair(exchange *x, uint32_t channel, pair *record)
{
    leati_element element;
    leati_read read = get(x, channel, &element);
    if (read == LEATI_READ_NONE)
        return false;
    cr_assert(read == LEATI_READ_ELEMENT && element.tag == LEATI_TAG_RECORD);
    cr_assert(leat_record_decode(LEAT_TYPE(pair), element.payload, element.size, record, NULL) ==
              LEAT_OK);
    return true;
}

// What the gate's consumer does: reads the channel until it has no more. False if it was not in
// line.
static inline bool visit(exchange *x, uint32_t channel)
{
    leati_channel *polled = leati_gate_poll(x->gate[channel]);
    leati_element element;
    if (!polled)
        return false;
    while (get(x, channel, &element) != LEATI_READ_NONE)
        ;
    leati_gate_done(x->gate[channel], polled, false);
    return true;
}

#endif
