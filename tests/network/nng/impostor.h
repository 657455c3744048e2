// SPDX-License-Identifier: Apache-2.0
// A peer of an exchange that the test plays itself: it says what it likes over a connection, and
// hears what the node "two" says. And scenes with a channel between the two.
#ifndef TESTS_NETWORK_NNG_IMPOSTOR_H
#define TESTS_NETWORK_NNG_IMPOSTOR_H

#include <criterion/criterion.h>
#include <unistd.h>

#include "network/nng/exchange_impl.h"
#include "tests/network/nng/flow.h"

enum { SAID = 1 << 16, HEARD = 64, ATTEMPT = 77 };

// --- the peer ---

typedef struct impostor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    leati_connection *connection;
    bool opened, closed;
    bool deaf; // stays in `arrived`
    uint8_t said[SAID];
    size_t say, sent, in_send;
    leati_frame heard[HEARD];
    uint8_t payload[HEARD][LEATI_EVENT_SIZE]; // as much as goes there
    uint32_t heard_count;
    // The reader's.
    uint8_t in[FLOW_SEGMENT];
} impostor;

static inline void impostor_was_opened(leati_connection *connection, void *user,
                                       const leati_hello *peer)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->opened = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static inline leat_err impostor_place(leati_connection *connection, void *user,
                                      const leati_frame *frame, uint8_t **to)
{
    *to = ((impostor *)user)->in;
    return LEAT_OK;
}

static inline leat_err impostor_arrived(leati_connection *connection, void *user,
                                        const leati_frame *frame)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    if (self->heard_count == HEARD)
        self->heard_count = 0; // nobody looks any more
    memcpy(self->payload[self->heard_count], self->in, LEATI_EVENT_SIZE);
    self->heard[self->heard_count++] = *frame;
    pthread_cond_broadcast(&self->changed);
    while (self->deaf)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return LEAT_OK;
}

static inline size_t impostor_fill(leati_connection *connection, void *user,
                                   leati_part parts[LEATI_CONNECTION_PARTS])
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->in_send = self->say - self->sent;
    parts[0] = (leati_part){.data = self->said + self->sent, .size = self->in_send};
    pthread_mutex_unlock(&self->lock);
    return self->in_send > 0;
}

static inline void impostor_sent(leati_connection *connection, void *user)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->sent += self->in_send;
    pthread_mutex_unlock(&self->lock);
}

static inline void impostor_was_closed(leati_connection *connection, void *user, leat_err err,
                                       const char *why)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static const leati_connection_hooks impostor_hooks = {.opened = impostor_was_opened,
                                                      .place = impostor_place,
                                                      .arrived = impostor_arrived,
                                                      .fill = impostor_fill,
                                                      .sent = impostor_sent,
                                                      .closed = impostor_was_closed};

static inline void impostor_dial(impostor *self, const node *to, const char *process,
                                 uint32_t segment_size)
{
    char why[256];
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
    leati_connection_options options = {
        .address = leati_exchange_address(to->transport),
        .hello = {.purpose = "data", .abi = LEAT_ABI, .segment_size = segment_size},
        .dial_timeout_ms = FLOW_PATIENCE_MS,
        .hello_timeout_ms = FLOW_PATIENCE_MS,
        .frame_max = FLOW_SEGMENT,
        .hooks = &impostor_hooks,
        .user = self,
    };
    snprintf(options.hello.process, sizeof options.hello.process, "%s", process);
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    cr_assert_eq(leati_connection_dial(&options, &self->connection, why, sizeof why), LEAT_OK);
}

static inline void impostor_await(impostor *self, const bool *what)
{
    struct timespec deadline = leati_deadline(FLOW_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    while (!*what && error == 0)
        error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
    pthread_mutex_unlock(&self->lock);
    cr_assert(error == 0, "waited too long");
}

// Waits for the next frame of that kind from `*at` on, which is left behind it.
static inline uint32_t impostor_hear(impostor *self, uint32_t *at, uint8_t kind)
{
    struct timespec deadline = leati_deadline(FLOW_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    for (;; (*at)++) {
        while (*at >= self->heard_count && error == 0)
            error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
        if (error || self->heard[*at].kind == kind)
            break;
    }
    pthread_mutex_unlock(&self->lock);
    cr_assert(error == 0, "waited too long for a frame of kind %u", kind);
    return (*at)++;
}

// A frame that says to have `frame->size` bytes, and `size` bytes that follow.
static inline void impostor_say(impostor *self, const leati_frame *frame, const void *payload,
                                size_t size)
{
    pthread_mutex_lock(&self->lock);
    cr_assert(self->say + LEATI_FRAME_SIZE + size <= SAID);
    leati_frame_put(frame, self->said + self->say);
    if (payload)
        memcpy(self->said + self->say + LEATI_FRAME_SIZE, payload, size);
    self->say += LEATI_FRAME_SIZE + size;
    pthread_mutex_unlock(&self->lock);
    leati_connection_kick(self->connection);
}

static inline void impostor_open(impostor *self, uint32_t stream, uint64_t attempt, uint64_t number,
                                 uint32_t credit)
{
    uint8_t payload[LEATI_OPEN_SIZE];
    leati_element_put_i64(payload, (int64_t)attempt);
    leati_element_put_i64(payload + 8, (int64_t)number);
    leati_frame frame = {
        .size = sizeof payload, .kind = LEATI_FRAME_OPEN, .channel = stream, .sequence = credit};
    impostor_say(self, &frame, payload, sizeof payload);
}

static inline void impostor_credit(impostor *self, uint32_t stream, uint32_t credit,
                                   uint8_t delivered)
{
    const uint8_t payload[LEATI_CREDIT_SIZE] = {delivered};
    leati_frame frame = {
        .size = sizeof payload, .kind = LEATI_FRAME_CREDIT, .channel = stream, .sequence = credit};
    impostor_say(self, &frame, payload, sizeof payload);
}

static inline void impostor_data(impostor *self, uint32_t stream, uint32_t sequence, uint32_t size)
{
    static const uint8_t bytes[FLOW_SEGMENT];
    leati_frame frame = {
        .size = size, .kind = LEATI_FRAME_DATA, .channel = stream, .sequence = sequence};
    impostor_say(self, &frame, bytes, size);
}

static inline void impostor_event(impostor *self, uint32_t stream, uint32_t sequence, uint8_t tag,
                                  uint8_t priority)
{
    uint8_t payload[LEATI_EVENT_SIZE] = {tag, priority};
    leati_frame frame = {
        .size = sizeof payload, .kind = LEATI_FRAME_EVENT, .channel = stream, .sequence = sequence};
    impostor_say(self, &frame, payload, sizeof payload);
}

static inline void impostor_end(impostor *self)
{
    leati_connection_destroy(&self->connection);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

// --- the honest side: node "two", and a job with a channel between the two ---

typedef struct scene {
    node nodes[2]; // [0] is only a name
    share share;
    flow flow;
    impostor peer;
    uint32_t at;     // in what the peer has heard
    uint32_t stream; // of the channel
} scene;

static inline void scene_begin(scene *self)
{
    memset(self, 0, sizeof *self);
    snprintf(self->nodes[0].id, sizeof self->nodes[0].id, "one");
    node_open(&self->nodes[1], "two", 10000);
    const char *addresses[2] = {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1"};
    share_open_at(&self->share, self->nodes, 2, 1, ATTEMPT, addresses);
    impostor_dial(&self->peer, &self->nodes[1], "one", FLOW_SEGMENT);
    impostor_await(&self->peer, &self->peer.opened);
}

static inline void scene_end(scene *self)
{
    flow_cancel(&self->flow);
    flow_join(&self->flow);
    share_close(&self->share);
    impostor_end(&self->peer);
    flow_fini(&self->flow);
    node_close(&self->nodes[1]);
}

// The node receives: the peer knows the stream then.
static inline void scene_receives(scene *self)
{
    scene_begin(self);
    flow_init(&self->flow, &self->share, &self->share, 4, 1 << 20);
    flow_receive(&self->flow, 0, 8);
    uint32_t open = impostor_hear(&self->peer, &self->at, LEATI_FRAME_OPEN);
    self->stream = self->peer.heard[open].channel;
    cr_assert_eq(self->peer.heard[open].sequence, LEATI_RECEIVE_STEADY);
    cr_assert_eq(leati_element_get_i64(self->peer.payload[open]), ATTEMPT);
    cr_assert_eq(leati_element_get_i64(self->peer.payload[open] + 8), 4);
}

static inline void scene_sends(scene *self)
{
    scene_begin(self);
    flow_init(&self->flow, &self->share, &self->share, 4, 1 << 20);
    flow_send(&self->flow, 0);
    flow_start_producer(&self->flow);
    self->stream = 9;
}

// The node has heard everything when it has answered this.
static inline void scene_catch_up(scene *self)
{
    impostor_open(&self->peer, 1, 5, 5, 0);
    leati_frame close = {.kind = LEATI_FRAME_CLOSE, .channel = 1};
    impostor_say(&self->peer, &close, NULL, 0);
    impostor_hear(&self->peer, &self->at, LEATI_FRAME_CLOSED);
}

static inline void assert_failed(scene *self, leat_err err, const char *text)
{
    share_await_failure(&self->share);
    cr_assert_eq(self->share.err, err, "%s: %s", leat_err_name(self->share.err), self->share.text);
    cr_assert(strstr(self->share.text, text), "%s", self->share.text);
}

#endif
