// SPDX-License-Identifier: Apache-2.0
// The reader of a connection, which leads: it connects, shakes hands (handshake.c), reads frames,
// and at the end joins the writer (connection_send.c) and tells `closed`.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "network/nng/connection_impl.h"
#include "network/nng/tls.h"

bool leati_connection_is_closing(leati_connection *self)
{
    return atomic_load_explicit(&self->closing, memory_order_acquire);
}

// --- one operation -------------------------------------------------------------------------------

// What is left until `deadline_ns`, for an aio; 0 means no limit.
nng_duration leati_connection_time_left(int64_t deadline_ns)
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

static void tell_idle(leati_connection *self)
{
    if (self->opened && self->hooks->idle)
        self->hooks->idle(self, self->user);
}

static size_t size_of(const nng_iov *iov, unsigned count)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += iov[i].iov_len;
    return size;
}

// Receives at least one byte.
int leati_connection_receive_bytes(leati_connection *self, const nng_iov *iov, unsigned count,
                                   int64_t deadline_ns, size_t *got)
{
    if (deadline_ns && leati_clock_ns() >= deadline_ns)
        return NNG_ETIMEDOUT;
    if (self->drained)
        tell_idle(self);
    nng_aio_set_iov(self->in, count, iov);
    nng_aio_set_timeout(self->in, leati_connection_time_left(deadline_ns));
    pthread_mutex_lock(&self->in_lock);
    bool begun = !leati_connection_is_closing(self);
    if (begun)
        nng_stream_recv(self->stream, self->in);
    pthread_mutex_unlock(&self->in_lock);
    if (!begun)
        return NNG_ECANCELED;
    // An operation that has ended at once has its count already. One that ends just now may be
    // taken for one that does not, which costs a needless call.
    if (nng_aio_count(self->in) == 0)
        tell_idle(self);
    nng_aio_wait(self->in);
    int error = nng_aio_result(self->in);
    if (error)
        return error;
    *got = nng_aio_count(self->in);
    self->drained = *got < size_of(iov, count); // the system had no more
    // Relaxed: a figure.
    atomic_fetch_add_explicit(&self->heard, *got, memory_order_relaxed);
    return *got ? 0 : NNG_ECONNSHUT;
}

static int receive(leati_connection *self, const nng_iov *iov, unsigned count, int64_t deadline_ns,
                   size_t *got)
{
    return self->tls ? leati_connection_receive_tls(self, iov, count, deadline_ns, got)
                     : leati_connection_receive_bytes(self, iov, count, deadline_ns, got);
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
    nng_aio_set_timeout(
        self->in, leati_connection_time_left(leati_connection_deadline(self->dial_timeout_ms)));
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
                                     "was closed by the other side in the middle of a frame");
    if (error == NNG_ECONNSHUT)
        return leati_connection_fail(self, LEAT_ECLOSED, "was closed by the other side");
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
    self->opened = true;
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
