// SPDX-License-Identifier: Apache-2.0
// The two threads of a connection.
//
// The reader leads: it connects, shakes hands (handshake.c), reads frames, and at the end joins the
// writer and tells `closed`. The writer sends our hello, and then what `fill` gives.
//
// A writer that finds the other side gone does not end the connection at once: what the peer has
// sent before it went is still to be read, and the reader comes upon the end by itself.
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "network/nng/connection_impl.h"
#include "network/nng/tls.h"

enum { DRAIN_MS = 1000 }; // how long the reader may go on after the writer has failed

bool leati_connection_is_closing(leati_connection *self)
{
    return atomic_load_explicit(&self->closing, memory_order_acquire);
}

// --- one operation -------------------------------------------------------------------------------

// What is left until `deadline_ns`, for an aio; 0 means no limit.
static nng_duration time_left(int64_t deadline_ns)
{
    if (deadline_ns == 0)
        return NNG_DURATION_INFINITE;
    int64_t left_ms = (deadline_ns - leati_clock_ns()) / 1000000;
    return left_ms < 1 ? 1 : left_ms > INT_MAX ? INT_MAX : (nng_duration)left_ms;
}

int64_t leati_connection_deadline(int64_t timeout_ms)
{
    return timeout_ms <= 0 ? 0 : leati_clock_ns() + timeout_ms * 1000000;
}

// Receives at least one byte.
int leati_connection_receive_bytes(leati_connection *self, const nng_iov *iov, unsigned count,
                                   int64_t deadline_ns, size_t *got)
{
    if (deadline_ns && leati_clock_ns() >= deadline_ns)
        return NNG_ETIMEDOUT;
    nng_aio_set_iov(self->in, count, iov);
    nng_aio_set_timeout(self->in, time_left(deadline_ns));
    pthread_mutex_lock(&self->in_lock);
    bool begun = !leati_connection_is_closing(self);
    if (begun)
        nng_stream_recv(self->stream, self->in);
    pthread_mutex_unlock(&self->in_lock);
    if (!begun)
        return NNG_ECANCELED;
    nng_aio_wait(self->in);
    int error = nng_aio_result(self->in);
    if (error)
        return error;
    *got = nng_aio_count(self->in);
    // Relaxed: a figure.
    atomic_fetch_add_explicit(&self->heard, *got, memory_order_relaxed);
    return *got ? 0 : NNG_ECONNSHUT;
}

// Sends all parts; the system often takes some of it only.
int leati_connection_transmit_bytes(leati_connection *self, const leati_part *parts, size_t count,
                                    int64_t deadline_ns)
{
    nng_iov iov[LEATI_CONNECTION_PARTS];
    size_t first = 0;
    for (size_t i = 0; i < count; i++)
        iov[i] = (nng_iov){.iov_buf = (void *)(uintptr_t)parts[i].data, .iov_len = parts[i].size};
    for (;;) {
        while (first < count && iov[first].iov_len == 0)
            first++;
        if (first == count)
            return 0;
        if (deadline_ns && leati_clock_ns() >= deadline_ns)
            return NNG_ETIMEDOUT;
        nng_aio_set_iov(self->out, (unsigned)(count - first), iov + first);
        nng_aio_set_timeout(self->out, time_left(deadline_ns));
        pthread_mutex_lock(&self->out_lock);
        bool begun = !leati_connection_is_closing(self);
        if (begun)
            nng_stream_send(self->stream, self->out);
        pthread_mutex_unlock(&self->out_lock);
        if (!begun)
            return NNG_ECANCELED;
        nng_aio_wait(self->out);
        int error = nng_aio_result(self->out);
        if (error)
            return error;
        for (size_t sent = nng_aio_count(self->out); sent > 0 && first < count;) {
            size_t step = sent < iov[first].iov_len ? sent : iov[first].iov_len;
            iov[first].iov_buf = (uint8_t *)iov[first].iov_buf + step;
            iov[first].iov_len -= step;
            sent -= step;
            if (iov[first].iov_len == 0)
                first++;
        }
    }
}

static int receive(leati_connection *self, const nng_iov *iov, unsigned count, int64_t deadline_ns,
                   size_t *got)
{
    return self->tls ? leati_connection_receive_tls(self, iov, count, deadline_ns, got)
                     : leati_connection_receive_bytes(self, iov, count, deadline_ns, got);
}

int leati_connection_transmit(leati_connection *self, const leati_part *parts, size_t count,
                              int64_t deadline_ns)
{
    return self->tls ? leati_connection_transmit_tls(self, parts, count, deadline_ns)
                     : leati_connection_transmit_bytes(self, parts, count, deadline_ns);
}

// --- the writer ----------------------------------------------------------------------------------

_Atomic uint32_t *leati_connection_mark(leati_connection *connection)
{
    // As in leati_connection_kick.
    bool sleeps = atomic_exchange_explicit(&connection->news, 1, memory_order_acq_rel) == 2;
    return sleeps ? &connection->news : NULL;
}

// Until the next kick, unless one has come since the word was last set to 0.
static void sleep_until_kicked(leati_connection *self)
{
    uint32_t seen = 0;
    // What the kick published is acquired by the exchange that every round begins with.
    if (atomic_compare_exchange_strong_explicit(&self->news, &seen, 2, memory_order_acq_rel,
                                                memory_order_relaxed))
        leati_futex_wait(&self->news, 2);
}

// False: the connection ends before it gets there.
static bool await_stage(leati_connection *self, leati_connection_stage wanted)
{
    for (;;) {
        atomic_exchange_explicit(&self->news, 0, memory_order_acq_rel);
        if (leati_connection_is_closing(self))
            return false;
        // Acquire: pairs with enter() and leati_connection_begin.
        uint32_t stage = atomic_load_explicit(&self->stage, memory_order_acquire);
        if (stage == LEATI_CONNECTION_REFUSED || stage >= (uint32_t)wanted)
            return stage >= (uint32_t)wanted;
        sleep_until_kicked(self);
    }
}

// The send side has failed. The reader is given time to read what the peer has sent before.
static void give_up_sending(leati_connection *self, int error)
{
    if (error == NNG_ECLOSED || error == NNG_ECONNSHUT || error == NNG_ECONNRESET)
        leati_park_for(&self->reading_over, DRAIN_MS);
    leati_connection_fail(self, leati_nng_error(error), "was lost while sending: %s",
                          leati_nng_text(error));
}

static void send_frames(leati_connection *self)
{
    leati_part parts[LEATI_CONNECTION_PARTS];
    while (!leati_connection_is_closing(self)) {
        // Acquire: pairs with leati_connection_kick.
        atomic_exchange_explicit(&self->news, 0, memory_order_acq_rel);
        size_t count = self->hooks->fill(self, self->user, parts);
        if (count == 0) {
            if (!leati_connection_is_closing(self))
                sleep_until_kicked(self);
            continue;
        }
        assert(count <= LEATI_CONNECTION_PARTS);
        int error = leati_connection_transmit(self, parts, count, 0);
        if (error) {
            give_up_sending(self, error);
            return;
        }
        self->hooks->sent(self, self->user);
    }
}

static void send_hello(leati_connection *self)
{
    // A hello that cannot be sent says nothing here: the reader gets to know more, perhaps the
    // hello of the peer that tells why it has closed.
    leati_part hello = {.data = self->hello_frame, .size = self->hello_size};
    if (await_stage(self, LEATI_CONNECTION_GREETING))
        (void)leati_connection_transmit(self, &hello, 1,
                                        leati_connection_deadline(self->hello_timeout_ms));
    // Release: pairs with await_greeting_sent.
    atomic_store_explicit(&self->greeted, 1, memory_order_release);
    leati_futex_wake(&self->greeted);
}

void *leati_connection_write(void *connection)
{
    leati_connection *self = connection;
    send_hello(self);
    if (await_stage(self, LEATI_CONNECTION_OPEN))
        send_frames(self);
    return NULL;
}

// --- the reader ----------------------------------------------------------------------------------

void leati_connection_enter(leati_connection *self, leati_connection_stage stage)
{
    // Release: pairs with await_stage.
    atomic_store_explicit(&self->stage, stage, memory_order_release);
    leati_connection_kick(self);
}

static leat_err dial(leati_connection *self)
{
    nng_aio_set_timeout(self->in, time_left(leati_connection_deadline(self->dial_timeout_ms)));
    pthread_mutex_lock(&self->in_lock);
    bool begun = !leati_connection_is_closing(self);
    if (begun)
        nng_stream_dialer_dial(self->dialer, self->in);
    pthread_mutex_unlock(&self->in_lock);
    if (!begun)
        return LEAT_ECANCELLED;
    nng_aio_wait(self->in);
    int error = nng_aio_result(self->in);
    if (error)
        return leati_connection_fail(self, error == NNG_ENOMEM ? LEAT_ENOMEM : LEAT_EIO,
                                     "cannot be reached: %s", leati_nng_text(error));
    self->stream = nng_aio_get_output(self->in, 0);
    return LEAT_OK;
}

// The connection has ended while reading; `inside` a frame, or between two.
leat_err leati_connection_lost(leati_connection *self, int error, bool inside)
{
    bool opened = atomic_load_explicit(&self->stage, memory_order_relaxed) == LEATI_CONNECTION_OPEN;
    if (!opened && error == NNG_ETIMEDOUT)
        return leati_connection_fail(self, LEAT_EIO, "did not say who it is within %lld ms",
                                     (long long)self->hello_timeout_ms);
    if (error == NNG_ECRYPTO)
        return leati_connection_fail(self, LEAT_EIO, "does not do TLS with this process: %s",
                                     leati_tls_stream_why(self->tls));
    if (!opened && error == NNG_ECONNSHUT)
        return leati_connection_fail(
            self, LEAT_ECLOSED, "has closed the connection at once%s",
            self->dialer && !(self->auth && self->auth->tls) ? "; does it want TLS?" : "");
    if (inside && error == NNG_ECONNSHUT)
        return leati_connection_fail(self, LEAT_EIO,
                                     "was lost: closed by the other side in the middle of a frame");
    return leati_connection_fail(self, leati_nng_error(error), "was lost: %s",
                                 leati_nng_text(error));
}

// Reads until `needed` bytes, no more than the buffer's size, are there.
leat_err leati_connection_buffer(leati_connection *self, size_t needed, int64_t deadline_ns)
{
    if (self->begin > 0 && self->end - self->begin < needed) {
        memmove(self->buffer, self->buffer + self->begin, self->end - self->begin);
        self->end -= self->begin;
        self->begin = 0;
    }
    while (self->end - self->begin < needed) {
        size_t got;
        nng_iov iov = {.iov_buf = self->buffer + self->end,
                       .iov_len = sizeof self->buffer - self->end};
        int error = receive(self, &iov, 1, deadline_ns, &got);
        if (error)
            return leati_connection_lost(self, error, self->end > self->begin);
        self->end += got;
    }
    return LEAT_OK;
}

// The payload: what is in the buffer already is copied, the rest goes where it belongs, and what
// comes with it goes to the buffer. After a large payload that is only the next header, so that the
// payload of that one can be read to its place as well; small frames are read in bulk.
static leat_err read_payload(leati_connection *self, uint8_t *to, size_t size)
{
    size_t there = self->end - self->begin;
    if (there > size)
        there = size;
    memcpy(to, self->buffer + self->begin, there);
    self->begin += there;
    size_t behind = size > LEATI_CONNECTION_BULK ? LEATI_FRAME_SIZE : sizeof self->buffer;
    for (size_t got; there < size; there += got) {
        nng_iov iov[] = {{.iov_buf = to + there, .iov_len = size - there},
                         {.iov_buf = self->buffer, .iov_len = behind}};
        int error = receive(self, iov, 2, 0, &got);
        if (error)
            return leati_connection_lost(self, error, true);
        if (got > size - there) {
            self->begin = 0;
            self->end = got - (size - there);
            return LEAT_OK;
        }
    }
    return LEAT_OK;
}

static leat_err read_frame(leati_connection *self)
{
    leati_frame frame;
    leat_err err = leati_connection_buffer(self, LEATI_FRAME_SIZE, 0);
    if (err != LEAT_OK)
        return err;
    leati_frame_get(&frame, self->buffer + self->begin);
    self->begin += LEATI_FRAME_SIZE;
    if (frame.kind == 0)
        return leati_connection_fail(self, LEAT_ECORRUPT, "has said hello twice");
    if (frame.size > self->frame_max)
        return leati_connection_fail(self, LEAT_ETOOBIG,
                                     "has sent a frame of %u bytes; at most %u "
                                     "are allowed",
                                     frame.size, self->frame_max);
    if (frame.size > 0) {
        uint8_t *to = NULL;
        err = self->hooks->place(self, self->user, &frame, &to);
        if (err != LEAT_OK)
            return leati_connection_fail(self, err,
                                         "has sent a frame (of kind %u) that was refused: "
                                         "%s",
                                         frame.kind, leat_err_message(err));
        err = read_payload(self, to, frame.size);
        if (err != LEAT_OK)
            return err;
    }
    err = self->hooks->arrived(self, self->user, &frame);
    if (err != LEAT_OK)
        return leati_connection_fail(self, err,
                                     "has sent a frame (of kind %u) that was refused: %s",
                                     frame.kind, leat_err_message(err));
    return LEAT_OK;
}

static void read_all(leati_connection *self)
{
    leati_hello peer;
    if (!self->stream && dial(self) != LEAT_OK)
        return;
    if (leati_connection_greet(self, &peer) != LEAT_OK || leati_connection_is_closing(self))
        return;
    leati_connection_greeted(self);
    self->hooks->opened(self, self->user, &peer);
    leati_connection_enter(self, LEATI_CONNECTION_OPEN);
    while (!leati_connection_is_closing(self) && read_frame(self) == LEAT_OK)
        continue;
}

void *leati_connection_read(void *connection)
{
    leati_connection *self = connection;
    uint32_t stage;
    // Acquire: pairs with leati_connection_begin.
    while ((stage = atomic_load_explicit(&self->stage, memory_order_acquire)) ==
           LEATI_CONNECTION_NEW)
        leati_futex_wait(&self->stage, LEATI_CONNECTION_NEW);
    if (stage == LEATI_CONNECTION_STARTED)
        read_all(self);
    leati_unpark(&self->reading_over);
    leati_connection_close(self, LEAT_ECLOSED, NULL); // if nobody has yet; it wakes the writer
    pthread_join(self->writer, NULL);
    if (self->stream)
        nng_stream_free(self->stream);
    leati_tls_stream_destroy(&self->tls);
    if (self->dialer)
        nng_stream_dialer_free(self->dialer);
    leati_connection_greeted(self);
    if (self->load)
        leati_listener_load_release(self->load);
    // Nobody writes these once `closing` is set.
    if (stage == LEATI_CONNECTION_STARTED)
        self->hooks->closed(self, self->user, self->err, self->why);
    return NULL;
}
