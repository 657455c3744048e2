// SPDX-License-Identifier: Apache-2.0
// One end of a connection for tests: it sends numbered frames whose bytes follow from their number,
// checks those that come, and remembers what happened. And the other end as a bare socket.
#ifndef TESTS_NETWORK_NNG_SIDE_H
#define TESTS_NETWORK_NNG_SIDE_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "network/nng/connection_impl.h"

enum { SIDE_KIND = 7, SIDE_PATIENCE_MS = 20000, SIDE_FRAME_MAX = 1 << 20 };

typedef struct side {
    // Before the connection begins.
    uint32_t size_modulus; // frame i has (i * 7919) % size_modulus bytes
    bool wild;             // what comes is not checked
    leat_err place_says, arrived_says;
    _Atomic uint32_t to_send; // frames

    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    leati_connection *connection;
    leati_hello peer;
    int opened, closed, placed;
    uint32_t arrived, sent;
    uint64_t bytes;
    bool held;  // the reader stays in `arrived`
    bool wrong; // a frame was not the next one, or its bytes were
    leat_err err;
    char why[LEATI_WHY_SIZE];

    // The writer's.
    uint32_t filled;
    uint8_t out[LEATI_FRAME_SIZE];
    uint8_t *out_payload;
    // The reader's.
    uint8_t *in_payload;
} side;

static inline uint32_t side_size(const side *self, uint32_t number)
{
    return self->size_modulus ? (uint32_t)((uint64_t)number * 7919 % self->size_modulus) : 0;
}

static inline void side_opened(leati_connection *connection, void *user, const leati_hello *peer)
{
    side *self = user;
    pthread_mutex_lock(&self->lock);
    self->opened++;
    self->peer = *peer;
    self->wrong |= self->arrived > 0 || self->sent > 0 || self->closed > 0;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static inline leat_err side_place(leati_connection *connection, void *user,
                                  const leati_frame *frame, uint8_t **to)
{
    side *self = user;
    pthread_mutex_lock(&self->lock);
    self->placed++;
    pthread_mutex_unlock(&self->lock);
    if (self->place_says != LEAT_OK)
        return self->place_says;
    *to = self->in_payload;
    return LEAT_OK;
}

static inline leat_err side_arrived(leati_connection *connection, void *user,
                                    const leati_frame *frame)
{
    side *self = user;
    pthread_mutex_lock(&self->lock);
    bool good = self->wild || (frame->kind == SIDE_KIND && frame->sequence == self->arrived &&
                               frame->size == side_size(self, frame->sequence));
    for (uint32_t i = 0; good && !self->wild && i < frame->size; i++)
        good = self->in_payload[i] == (uint8_t)(frame->sequence + i);
    self->wrong |= !good || self->closed > 0;
    self->arrived++;
    self->bytes += frame->size;
    pthread_cond_broadcast(&self->changed);
    while (self->held)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return self->arrived_says;
}

static inline size_t side_fill(leati_connection *connection, void *user,
                               leati_part parts[LEATI_CONNECTION_PARTS])
{
    side *self = user;
    if (self->filled == atomic_load_explicit(&self->to_send, memory_order_acquire))
        return 0;
    uint32_t number = self->filled++, size = side_size(self, number);
    leati_frame frame = {.kind = SIDE_KIND, .sequence = number, .size = size};
    leati_frame_put(&frame, self->out);
    for (uint32_t i = 0; i < size; i++)
        self->out_payload[i] = (uint8_t)(number + i);
    parts[0] = (leati_part){.data = self->out, .size = sizeof self->out};
    parts[1] = (leati_part){.data = self->out_payload, .size = size};
    return 2;
}

static inline void side_sent(leati_connection *connection, void *user)
{
    side *self = user;
    pthread_mutex_lock(&self->lock);
    self->sent++;
    self->wrong |= self->closed > 0;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static inline void side_closed(leati_connection *connection, void *user, leat_err err,
                               const char *why)
{
    side *self = user;
    pthread_mutex_lock(&self->lock);
    self->closed++;
    self->err = err;
    snprintf(self->why, sizeof self->why, "%s", why);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

// All hooks of a side; more may follow.
#define SIDE_HOOKS                                                                                 \
    .opened = side_opened, .place = side_place, .arrived = side_arrived, .fill = side_fill,        \
    .sent = side_sent, .closed = side_closed

static const leati_connection_hooks side_hooks = {SIDE_HOOKS};

static inline void side_init(side *self, uint32_t size_modulus)
{
    *self = (side){.size_modulus = size_modulus};
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
    self->out_payload = malloc(SIDE_FRAME_MAX);
    self->in_payload = malloc(SIDE_FRAME_MAX);
    cr_assert(self->out_payload && self->in_payload);
}

static inline void side_fini(side *self)
{
    leati_connection_destroy(&self->connection);
    free(self->out_payload);
    free(self->in_payload);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->changed);
}

// Whether the reader is to stay in `arrived`.
static inline void side_hold(side *self, bool held)
{
    pthread_mutex_lock(&self->lock);
    self->held = held;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

// Until the counter has got there; a failed test when it does not.
static inline void side_await(side *self, const char *what, const int *counter, int wanted)
{
    struct timespec deadline = leati_deadline(SIDE_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    while (*counter < wanted && error == 0)
        error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
    pthread_mutex_unlock(&self->lock);
    cr_assert(error == 0, "waited too long for %s: \"%s\"", what, self->why);
}
#define side_await_opened(self) side_await(self, "opened", &(self)->opened, 1)
#define side_await_closed(self) side_await(self, "closed", &(self)->closed, 1)
#define side_await_arrived(self, count)                                                            \
    side_await(self, "arrived", (const int *)&(self)->arrived, (int)(count))
#define side_await_sent(self, count)                                                               \
    side_await(self, "sent", (const int *)&(self)->sent, (int)(count))

// So many frames from the first on.
static inline void side_send(side *self, uint32_t frames)
{
    atomic_store_explicit(&self->to_send, frames, memory_order_release);
    leati_connection_kick(self->connection);
}

// --- listening and dialling ---

// A listener that gives its connections to sides, one after the other.
typedef struct hall {
    leati_listener *listener;
    const char *address;
    side *sides;
    uint32_t room;
    _Atomic uint32_t come;
} hall;

static inline leat_err hall_accepted(void *user, leati_connection *connection,
                                     const leati_connection_hooks **hooks, void **connection_user)
{
    hall *self = user;
    uint32_t number = atomic_load(&self->come);
    if (number >= self->room)
        return LEAT_ENOMEM;
    side *taker = &self->sides[number];
    pthread_mutex_lock(&taker->lock);
    taker->connection = connection;
    pthread_mutex_unlock(&taker->lock);
    *hooks = &side_hooks;
    *connection_user = taker;
    atomic_fetch_add(&self->come, 1);
    return LEAT_OK;
}

static inline leati_hello side_hello(const char *process)
{
    leati_hello hello = {.purpose = "data", .segment_size = 32768, .term = 3};
    snprintf(hello.cluster, sizeof hello.cluster, "blue");
    snprintf(hello.process, sizeof hello.process, "%s", process);
    return hello;
}

static inline leati_listener_options hall_options(hall *self, side *sides, uint32_t room)
{
    *self = (hall){.sides = sides, .room = room};
    return (leati_listener_options){
        .address = "tcp://127.0.0.1:0",
        .hello = side_hello("the listener"),
        .hello_timeout_ms = 10000,
        .frame_max = SIDE_FRAME_MAX,
        .most = 1000,
        .accepted = hall_accepted,
        .user = self,
    };
}

static inline void hall_open_with(hall *self, const leati_listener_options *options)
{
    char why[256] = "";
    leat_err err = leati_listener_create(options, &self->listener, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    self->address = leati_listener_address(self->listener);
}

static inline void hall_open(hall *self, side *sides, uint32_t room)
{
    leati_listener_options options = hall_options(self, sides, room);
    hall_open_with(self, &options);
}

static inline leati_connection_options side_options(side *self, const char *address)
{
    return (leati_connection_options){
        .address = address,
        .hello = side_hello("the dialler"),
        .dial_timeout_ms = 10000,
        .hello_timeout_ms = 10000,
        .frame_max = SIDE_FRAME_MAX,
        .hooks = &side_hooks,
        .user = self,
    };
}

static inline void side_dial_with(side *self, const leati_connection_options *options)
{
    char why[256] = "";
    leat_err err = leati_connection_dial(options, &self->connection, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
}

static inline void side_dial(side *self, const char *address)
{
    leati_connection_options options = side_options(self, address);
    side_dial_with(self, &options);
}

// --- the other end as a bare socket ---

static inline int bare_connect(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static inline void bare_send(int fd, const void *bytes, size_t size)
{
    cr_assert_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

// A hello that fits, and the other's taken off the socket.
static inline void bare_greet(int fd)
{
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    leati_hello hello = side_hello("a bare socket");
    leati_hello_complete(&hello);
    leati_hello_put(&hello, bytes);
    bare_send(fd, bytes, sizeof bytes);
    cr_assert_eq(recv(fd, bytes, sizeof bytes, MSG_WAITALL), (ssize_t)sizeof bytes);
}

static inline void bare_frame(int fd, leati_frame frame)
{
    uint8_t bytes[LEATI_FRAME_SIZE];
    leati_frame_put(&frame, bytes);
    bare_send(fd, bytes, sizeof bytes);
}

// Until the other end has closed; what comes before is dropped.
static inline void bare_await_end(int fd)
{
    uint8_t bytes[4096];
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        continue;
    close(fd);
}

#endif
