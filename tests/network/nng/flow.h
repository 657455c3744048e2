// SPDX-License-Identifier: Apache-2.0
// Jobs over the exchange between processes, with all processes in this one: nodes with an exchange
// and memory each, their shares of a job, and flows from one node to another. A flow is a producer
// and a consumer on threads of their own, with a channel at either end. Its bytes follow from their
// position, and events say at which position they were put, so that the consumer can check that
// everything comes, once, and in order.
//
// Works without Criterion: what goes wrong ends the program.
#ifndef TESTS_NETWORK_NNG_FLOW_H
#define TESTS_NETWORK_NNG_FLOW_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "network/channel.h"
#include "network/nng/exchange.h"

// Segments are larger than what is copied when it is sent, and many pieces of them smaller.
enum { FLOW_SEGMENT = 4096, FLOW_PATIENCE_MS = 30000, FLOW_NODES = 4 };

#define FLOW_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

// --- nodes and their shares of jobs ---

typedef struct node {
    leati_transport *transport;
    leati_global_pool *global;
    char id[16];
} node;

// With a socket file and a secret or certificates, or NULL.
static inline void node_open_at(node *self, const char *id, int64_t connect_timeout_ms,
                                const char *socket_path, const leati_auth *auth)
{
    char why[256] = "";
    snprintf(self->id, sizeof self->id, "%s", id);
    FLOW_CHECK(leati_global_pool_create(NULL, FLOW_SEGMENT, 2000, &self->global) == LEAT_OK);
    leati_exchange_options options = {
        .address = "tcp://127.0.0.1:0",
        .process = self->id,
        .segment_size = FLOW_SEGMENT,
        .connect_timeout_ms = connect_timeout_ms,
        .socket_path = socket_path,
        .auth = auth,
    };
    leat_err err = leati_exchange_create(&options, &self->transport, why, sizeof why);
    if (*why)
        fprintf(stderr, "%s\n", why);
    FLOW_CHECK(err == LEAT_OK && !*why);
}

static inline void node_open(node *self, const char *id, int64_t connect_timeout_ms)
{
    node_open_at(self, id, connect_timeout_ms, NULL, NULL);
}

static inline void node_close(node *self)
{
    leati_exchange_destroy(&self->transport);
    leati_global_pool_destroy(&self->global); // which asserts that all segments are home
}

typedef struct share {
    node *of;
    leati_link *link;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int failures;
    leat_err err;
    char text[700];
} share;

static inline void share_failed(void *user, leat_err err, const char *text)
{
    share *self = user;
    pthread_mutex_lock(&self->lock);
    self->failures++;
    self->err = err;
    snprintf(self->text, sizeof self->text, "%s", text);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

// Where the nodes listen may be overridden, for peers that are not there.
static inline void share_open_at(share *self, node *nodes, uint32_t count, uint32_t which,
                                 uint64_t attempt, const char *const *addresses)
{
    static const char *const names[FLOW_NODES] = {"taskmanager 0", "taskmanager 1", "taskmanager 2",
                                                  "taskmanager 3"};
    const char *ids[FLOW_NODES], *at[FLOW_NODES];
    *self = (share){.of = &nodes[which]};
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = nodes[i].id;
        at[i] = addresses ? addresses[i] : leati_exchange_address(nodes[i].transport);
    }
    leati_link_options options = {
        .attempt = attempt,
        .process_count = count,
        .self = which,
        .names = names,
        .ids = ids,
        .addresses = at,
        .failed = share_failed,
        .user = self,
    };
    leati_transport *transport = self->of->transport;
    FLOW_CHECK(transport->open(transport, &options, &self->link) == LEAT_OK);
}

static inline void share_open(share *self, node *nodes, uint32_t count, uint32_t which,
                              uint64_t attempt)
{
    share_open_at(self, nodes, count, which, attempt, NULL);
}

static inline void share_await_failure(share *self)
{
    struct timespec deadline = leati_deadline(FLOW_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    while (self->failures == 0 && error == 0)
        error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
    pthread_mutex_unlock(&self->lock);
    FLOW_CHECK(error == 0);
}

static inline void share_close(share *self)
{
    self->of->transport->close(&self->link);
    FLOW_CHECK(!self->link && self->failures <= 1);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

// --- tasks ---

typedef struct flow_task {
    leati_waiter waiter; // first
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool woken;
    uint64_t random;
    pthread_t thread;
} flow_task;

static inline void flow_wake(leati_waiter *waiter)
{
    flow_task *self = (flow_task *)waiter;
    pthread_mutex_lock(&self->lock);
    self->woken = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static inline void flow_sleep(flow_task *self)
{
    pthread_mutex_lock(&self->lock);
    while (!self->woken)
        pthread_cond_wait(&self->changed, &self->lock);
    self->woken = false;
    pthread_mutex_unlock(&self->lock);
}

static inline void flow_task_init(flow_task *self, uint64_t seed)
{
    *self = (flow_task){.waiter = {.wake = flow_wake}, .random = seed};
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
}

static inline void flow_task_fini(flow_task *self)
{
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

static inline uint32_t flow_random(flow_task *self, uint32_t bound)
{
    self->random = self->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(self->random >> 33) % bound;
}

// --- flows ---

typedef struct flow {
    share *from, *to;
    uint32_t number;
    uint64_t total;  // bytes to be sent
    uint32_t events; // beside the two at the end; each comes after some segment
    uint32_t urgent; // that overtake, at most 16
    bool no_end;     // the producer puts no end of the partition
    bool prompt;     // the channel is

    flow_task producer, consumer;
    leati_channel *out, *in;
    leati_local_pool *out_pool, *in_pool;
    leati_gate *gate;
    bool producing, consuming; // their threads were started
    _Atomic bool cancelled, held, ended;
    _Atomic uint64_t put, got; // bytes
    pthread_mutex_t lock;
    pthread_cond_t changed; // `got`, `ended`
} flow;

static inline uint8_t flow_byte(uint64_t position)
{
    return (uint8_t)(position * 31 + (position >> 8) * 17);
}

static inline void flow_init(flow *self, share *from, share *to, uint32_t number, uint64_t total)
{
    *self = (flow){.from = from, .to = to, .number = number, .total = total};
    flow_task_init(&self->producer, number * 2 + 1);
    flow_task_init(&self->consumer, number * 2 + 2);
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
}

static inline leati_local_pool *flow_pool(node *of, uint32_t minimum, uint32_t maximum,
                                          leati_waiter *waiter)
{
    leati_local_pool *pool;
    leati_local_pool_options options = {.minimum = minimum, .maximum = maximum, .waiter = waiter};
    FLOW_CHECK(leati_global_pool_reserve(of->global, minimum) == LEAT_OK);
    FLOW_CHECK(leati_local_pool_create(of->global, &options, &pool) == LEAT_OK);
    return pool;
}

// The two ends register in either order; `peer` is the other node's index.
static inline void flow_send(flow *self, uint32_t peer)
{
    leati_transport *transport = self->from->of->transport;
    self->out_pool = flow_pool(self->from->of, 2, 8, &self->producer.waiter);
    FLOW_CHECK(leati_channel_create(NULL, self->out_pool, 10, 0, &self->out) == LEAT_OK);
    if (self->prompt)
        leati_channel_set_prompt(self->out);
    FLOW_CHECK(transport->send(self->from->link, self->number, peer, self->out) == LEAT_OK);
}

static inline void flow_receive(flow *self, uint32_t peer, uint32_t segments)
{
    leati_transport *transport = self->to->of->transport;
    leati_waiter *waiter = transport->waiter(self->to->link, self->number);
    FLOW_CHECK(waiter);
    self->in_pool = flow_pool(self->to->of, 2, segments, waiter);
    FLOW_CHECK(leati_channel_create(NULL, self->in_pool, 10, 0, &self->in) == LEAT_OK);
    FLOW_CHECK(leati_gate_create(NULL, &self->consumer.waiter, 1, &self->gate) == LEAT_OK);
    leati_gate_attach(self->gate, 0, self->in);
    FLOW_CHECK(transport->receive(self->to->link, self->number, peer, self->in, self->in_pool) ==
               LEAT_OK);
}

// Waits for a segment, or for room for an event; false when the flow is cancelled.
static inline bool flow_await_room(flow *self, leati_segment **segment)
{
    for (;;) {
        if (atomic_load(&self->cancelled))
            return false;
        for (int look = 0; look < 2; look++) {
            if (segment && leati_channel_room(self->out) > 0 &&
                (*segment = leati_local_pool_request(self->out_pool, false)) != NULL)
                return true;
            if (!segment && leati_channel_event_room(self->out) > 0)
                return true;
            leati_local_pool_await(self->out_pool);
        }
        flow_sleep(&self->producer);
    }
}

static inline bool flow_put_event(flow *self, leati_event event)
{
    if (!event.priority && !flow_await_room(self, NULL))
        return false;
    event.timestamp = (int64_t)atomic_load(&self->put);
    leati_channel_add_event(self->out, &event);
    return true;
}

// Fills a segment in some pieces, of which the reader is told of some.
static inline bool flow_put_segment(flow *self)
{
    leati_segment *segment;
    if (!flow_await_room(self, &segment))
        return false;
    leati_channel_add_segment(self->out, segment);
    uint64_t position = atomic_load(&self->put);
    uint32_t used = 0;
    bool full = flow_random(&self->producer, 2) == 0;
    do {
        uint32_t piece = full ? segment->size : 1 + flow_random(&self->producer, 300);
        if (piece > segment->size - used)
            piece = segment->size - used;
        if (piece > self->total - position)
            piece = (uint32_t)(self->total - position);
        for (uint32_t i = 0; i < piece; i++)
            segment->data[used++] = flow_byte(position++);
        atomic_store_explicit(&segment->committed, used, memory_order_release);
        if (flow_random(&self->producer, 2) == 0)
            leati_channel_notify(self->out);
    } while (used < segment->size && position < self->total &&
             flow_random(&self->producer, 4) != 0);
    atomic_store(&self->put, position);
    atomic_store_explicit(&segment->committed, used | LEATI_SEGMENT_FINISHED, memory_order_release);
    leati_channel_notify(self->out);
    return true;
}

static inline bool flow_put_all(flow *self)
{
    uint64_t events = 0, urgent = 0;
    while (atomic_load(&self->put) < self->total) {
        if (!flow_put_segment(self))
            return false;
        if (events < self->events && flow_random(&self->producer, 4) == 0 &&
            !flow_put_event(self, (leati_event){.tag = LEATI_TAG_BARRIER, .checkpoint = ++events}))
            return false;
        if (urgent < self->urgent && flow_random(&self->producer, 8) == 0)
            flow_put_event(self, (leati_event){.tag = LEATI_TAG_ANNOUNCEMENT,
                                               .priority = 1,
                                               .checkpoint = ++urgent});
    }
    for (; events < self->events;)
        if (!flow_put_event(self, (leati_event){.tag = LEATI_TAG_BARRIER, .checkpoint = ++events}))
            return false;
    for (; urgent < self->urgent;)
        flow_put_event(
            self,
            (leati_event){.tag = LEATI_TAG_ANNOUNCEMENT, .priority = 1, .checkpoint = ++urgent});
    if (self->no_end)
        return true;
    return flow_put_event(self, (leati_event){.tag = LEATI_TAG_END_OF_DATA, .options = 1}) &&
           flow_put_event(self, (leati_event){.tag = LEATI_TAG_END_OF_PARTITION});
}

static inline void *flow_produce(void *arg)
{
    flow *self = arg;
    flow_put_all(self);
    leati_local_pool_close(self->out_pool);
    return NULL;
}

typedef struct flow_seen {
    uint64_t got, events, urgent, ends;
} flow_seen;

static inline void flow_check_event(flow *self, flow_seen *seen, const leati_event *event)
{
    if (event->priority) {
        FLOW_CHECK(event->tag == LEATI_TAG_ANNOUNCEMENT && event->checkpoint == ++seen->urgent);
        return;
    }
    FLOW_CHECK(event->timestamp == (int64_t)seen->got);
    switch (event->tag) {
    case LEATI_TAG_BARRIER:
        FLOW_CHECK(event->checkpoint == ++seen->events);
        break;
    case LEATI_TAG_END_OF_DATA:
        FLOW_CHECK(seen->got == self->total && seen->ends++ == 0 && event->options == 1);
        break;
    default:
        FLOW_CHECK(event->tag == LEATI_TAG_END_OF_PARTITION && seen->ends++ == 1);
        FLOW_CHECK(seen->events == self->events);
    }
}

// Reads what there is; a small part of it at a time.
static inline void flow_read(flow *self, flow_seen *seen)
{
    leati_channel *channel = leati_gate_poll(self->gate);
    leati_chunk chunk;
    leati_chunk_kind kind = LEATI_CHUNK_DATA; // unless it turns out to be none
    if (!channel)
        return;
    while (!atomic_load(&self->held) && (kind = leati_channel_peek(channel, &chunk))) {
        if (kind == LEATI_CHUNK_EVENT) {
            flow_check_event(self, seen, &chunk.event);
            continue;
        }
        FLOW_CHECK(kind == LEATI_CHUNK_DATA && chunk.size > 0);
        for (uint32_t i = 0; i < chunk.size; i++)
            FLOW_CHECK(chunk.data[i] == flow_byte(seen->got + i));
        leati_channel_advance(channel, chunk.size);
        seen->got += chunk.size;
    }
    leati_gate_done(self->gate, channel, kind != LEATI_CHUNK_NONE);
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->got, seen->got);
    atomic_store(&self->ended, seen->ends == 2 && seen->urgent == self->urgent);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static inline void *flow_consume(void *arg)
{
    flow *self = arg;
    flow_seen seen = {0};
    while (!atomic_load(&self->cancelled) && !atomic_load(&self->ended)) {
        flow_read(self, &seen);
        if (!atomic_load(&self->ended) &&
            (atomic_load(&self->held) || !leati_gate_has_data(self->gate)))
            flow_sleep(&self->consumer);
    }
    return NULL;
}

static inline void flow_start_producer(flow *self)
{
    self->producing = true;
    FLOW_CHECK(pthread_create(&self->producer.thread, NULL, flow_produce, self) == 0);
}

static inline void flow_start_consumer(flow *self)
{
    self->consuming = true;
    FLOW_CHECK(pthread_create(&self->consumer.thread, NULL, flow_consume, self) == 0);
}

static inline void flow_hold(flow *self, bool held)
{
    atomic_store(&self->held, held);
    flow_wake(&self->consumer.waiter);
}

static inline void flow_cancel(flow *self)
{
    atomic_store(&self->cancelled, true);
    flow_wake(&self->producer.waiter);
    flow_wake(&self->consumer.waiter);
}

// Until so many bytes have been read, or, for UINT64_MAX, all and the events too.
static inline void flow_await(flow *self, uint64_t bytes)
{
    struct timespec deadline = leati_deadline(FLOW_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    while (error == 0 &&
           (bytes == UINT64_MAX ? !atomic_load(&self->ended) : atomic_load(&self->got) < bytes))
        error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
    pthread_mutex_unlock(&self->lock);
    if (error)
        fprintf(stderr, "flow %u: %llu of %llu bytes have come; %s %s\n", self->number,
                (unsigned long long)atomic_load(&self->got), (unsigned long long)self->total,
                self->from->text, self->to->text);
    FLOW_CHECK(error == 0);
}

// The threads of both tasks have ended after this.
static inline void flow_join(flow *self)
{
    if (self->producing)
        pthread_join(self->producer.thread, NULL);
    if (self->consuming)
        pthread_join(self->consumer.thread, NULL);
    self->producing = self->consuming = false;
}

// After the links were closed.
static inline void flow_fini(flow *self)
{
    if (self->out_pool)
        leati_local_pool_close(self->out_pool);
    leati_channel_destroy(&self->out);
    leati_local_pool_destroy(&self->out_pool);
    if (self->in_pool)
        leati_local_pool_close(self->in_pool);
    leati_channel_destroy(&self->in);
    leati_local_pool_destroy(&self->in_pool);
    leati_gate_destroy(&self->gate);
    flow_task_fini(&self->producer);
    flow_task_fini(&self->consumer);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

#endif
