// SPDX-License-Identifier: Apache-2.0
// What is received, one operation at a time, and how a connection comes about and is lost. Frames
// are read in connection_read.c.
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

static size_t size_of(const nng_iov *iov, unsigned count)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += iov[i].iov_len;
    return size;
}

void leati_connection_await(leati_connection *self)
{
    if (self->drained && self->socket >= 0)
        leati_socket_await(self->socket, &self->waits);
}

int leati_connection_begin_receive(leati_connection *self, const nng_iov *iov, unsigned count,
                                   int64_t deadline_ns)
{
    nng_aio_set_iov(self->in, count, iov);
    nng_aio_set_timeout(self->in, leati_connection_time_left(deadline_ns));
    pthread_mutex_lock(&self->in_lock);
    bool begun = !leati_connection_is_closing(self);
    if (begun)
        nng_stream_recv(self->stream, self->in);
    pthread_mutex_unlock(&self->in_lock);
    return begun ? 0 : NNG_ECANCELED;
}

int leati_connection_end_receive(leati_connection *self, const nng_iov *iov, unsigned count,
                                 size_t *got)
{
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

int leati_connection_receive_bytes(leati_connection *self, const nng_iov *iov, unsigned count,
                                   int64_t deadline_ns, size_t *got)
{
    if (deadline_ns && leati_clock_ns() >= deadline_ns)
        return NNG_ETIMEDOUT;
    if (self->drained && !deadline_ns) {
        (void)leati_connection_settle(self);
        leati_connection_await(self);
    }
    int error = leati_connection_begin_receive(self, iov, count, deadline_ns);
    if (error)
        return error;
    // Nobody steps aside from here.
    if (nng_aio_count(self->in) == 0)
        (void)leati_connection_settle(self);
    return leati_connection_end_receive(self, iov, count, got);
}

int leati_connection_receive(leati_connection *self, const nng_iov *iov, unsigned count,
                             int64_t deadline_ns, size_t *got)
{
    return self->tls ? leati_connection_receive_tls(self, iov, count, deadline_ns, got)
                     : leati_connection_receive_bytes(self, iov, count, deadline_ns, got);
}

// --- coming about, and being lost ----------------------------------------------------------------

void leati_connection_enter(leati_connection *self, leati_connection_stage stage)
{
    // Release: pairs with await_stage.
    atomic_store_explicit(&self->stage, stage, memory_order_release);
    leati_connection_kick(self);
}

leat_err leati_connection_connect(leati_connection *self)
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
        int error = leati_connection_receive(self, &iov, 1, deadline_ns, &got);
        if (error)
            return leati_connection_lost(self, error, self->end > self->begin);
        self->end += got;
    }
    return LEAT_OK;
}
