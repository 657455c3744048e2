// SPDX-License-Identifier: Apache-2.0
// Sending over a connection: one operation at a time, and who it is that sends.
//
// Whoever has the *baton* sends. It lies there while there is nothing to send; who then brings
// something takes it up, and hands it to the writer thread, or sends on the spot. Others who bring
// something leave word, and whoever has the baton looks for word before it lays it down. So what
// `fill` and `sent` use needs no lock, whichever thread calls them.
//
// The writer thread is for what cannot be done on the spot: to wait until the system takes more.
// A send that is not complete at once goes to it with the baton. It ends only with the baton in its
// hand, so nobody comes upon a connection that has gone.
//
// A writer that finds the other side gone does not end the connection at once: what the peer has
// sent before it went is still to be read, and the reader comes upon the end by itself.
#include <assert.h>
#include <limits.h>

#include "network/nng/connection_impl.h"

enum {
    DRAIN_MS = 1000, // how long the reader may go on after the writer has failed
    ON_THE_SPOT = 4, // sends of a thread that has other things to do
};

// The word.
enum { TAKEN = 0, WORD = 1, LIES = 2 };

// --- one send ------------------------------------------------------------------------------------

static void set_parts(leati_connection *self, const leati_part *parts, size_t count)
{
    leati_sending *sending = &self->sending;
    for (size_t i = 0; i < count; i++)
        sending->iov[i] =
            (nng_iov){.iov_buf = (void *)(uintptr_t)parts[i].data, .iov_len = parts[i].size};
    sending->first = 0;
    sending->count = (unsigned)count;
}

static bool has_rest(leati_connection *self)
{
    leati_sending *sending = &self->sending;
    while (sending->first < sending->count && sending->iov[sending->first].iov_len == 0)
        sending->first++;
    return sending->first < sending->count;
}

// Hands the rest to the system. False: the connection is closing.
static bool begin(leati_connection *self, int64_t deadline_ns)
{
    leati_sending *sending = &self->sending;
    nng_aio_set_iov(self->out, sending->count - sending->first, sending->iov + sending->first);
    nng_aio_set_timeout(self->out, leati_connection_time_left(deadline_ns));
    pthread_mutex_lock(&self->out_lock);
    bool begun = !leati_connection_is_closing(self);
    if (begun)
        nng_stream_send(self->stream, self->out);
    pthread_mutex_unlock(&self->out_lock);
    sending->under_way = begun;
    return begun;
}

// The system often takes some of it only.
static int complete(leati_connection *self)
{
    leati_sending *sending = &self->sending;
    nng_aio_wait(self->out);
    sending->under_way = false;
    int error = nng_aio_result(self->out);
    size_t sent = error ? 0 : nng_aio_count(self->out);
    for (nng_iov *iov = sending->iov + sending->first; sent > 0; iov++) {
        size_t step = sent < iov->iov_len ? sent : iov->iov_len;
        iov->iov_buf = (uint8_t *)iov->iov_buf + step;
        iov->iov_len -= step;
        sent -= step;
    }
    return error;
}

// Waits until everything is sent.
static int send_rest(leati_connection *self, int64_t deadline_ns)
{
    for (;;) {
        if (!self->sending.under_way) {
            if (!has_rest(self))
                return 0;
            if (deadline_ns && leati_clock_ns() >= deadline_ns)
                return NNG_ETIMEDOUT;
            if (!begin(self, deadline_ns))
                return NNG_ECANCELED;
        }
        int error = complete(self);
        if (error)
            return error;
    }
}

// The same as far as the system takes it now. False: it is under way, or is not to be any more.
static bool send_now(leati_connection *self)
{
    while (has_rest(self)) {
        if (!begin(self, 0))
            return false;
        // An operation that has succeeded at once has its count; one that has only just ended may
        // not, and is then the writer's to see.
        if (nng_aio_count(self->out) == 0)
            return false;
        if (complete(self) != 0)
            return false;
    }
    return true;
}

int leati_connection_transmit_bytes(leati_connection *self, const leati_part *parts, size_t count,
                                    int64_t deadline_ns)
{
    set_parts(self, parts, count);
    return send_rest(self, deadline_ns);
}

int leati_connection_transmit(leati_connection *self, const leati_part *parts, size_t count,
                              int64_t deadline_ns)
{
    return self->tls ? leati_connection_transmit_tls(self, parts, count, deadline_ns)
                     : leati_connection_transmit_bytes(self, parts, count, deadline_ns);
}

// --- the baton -----------------------------------------------------------------------------------

bool leati_connection_take(leati_connection *connection)
{
    // Acquire and release: what was put before this is seen by the `fill` that follows the
    // exchange by whoever has the baton; what that one has left is seen by who takes it up.
    return atomic_exchange_explicit(&connection->word, WORD, memory_order_acq_rel) == LIES;
}

// The writer has it from here on, and the connection may go.
static _Atomic uint32_t *pass(leati_connection *self)
{
    _Atomic uint32_t *given = &self->given;
    // Release: pairs with await_baton.
    atomic_store_explicit(given, 1, memory_order_release);
    return given;
}

_Atomic uint32_t *leati_connection_mark(leati_connection *connection)
{
    return leati_connection_take(connection) ? pass(connection) : NULL;
}

void leati_connection_kick(leati_connection *connection)
{
    _Atomic uint32_t *given = leati_connection_mark(connection);
    if (given)
        leati_futex_wake(given);
}

// From here on what is brought is seen, or leaves word.
static void look_for_word(leati_connection *self)
{
    atomic_exchange_explicit(&self->word, TAKEN, memory_order_acq_rel);
}

// False when word was left since the last look.
static bool lay_down(leati_connection *self)
{
    uint32_t seen = TAKEN;
    return atomic_compare_exchange_strong_explicit(&self->word, &seen, LIES, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void await_baton(leati_connection *self)
{
    // Acquire: pairs with pass.
    while (atomic_exchange_explicit(&self->given, 0, memory_order_acquire) == 0)
        leati_futex_wait(&self->given, 0);
}

// As far as it goes at once; true: the baton was laid down.
static bool send_on_the_spot(leati_connection *self)
{
    // Acquire: pairs with leati_connection_enter.
    uint32_t stage = atomic_load_explicit(&self->stage, memory_order_acquire);
    if (stage != LEATI_CONNECTION_OPEN || self->tls)
        return false;
    for (int i = 0; i < ON_THE_SPOT && !leati_connection_is_closing(self); i++) {
        look_for_word(self);
        size_t count = self->hooks->fill(self, self->user, self->parts);
        if (count > 0) {
            set_parts(self, self->parts, count);
            self->filled = count;
            if (!send_now(self))
                return false;
            self->filled = 0;
            self->hooks->sent(self, self->user);
        } else if (lay_down(self)) {
            return true;
        }
    }
    return false;
}

void leati_connection_serve(leati_connection *connection)
{
    // A connection that is closing needs the writer to end.
    if (!send_on_the_spot(connection))
        leati_futex_wake(pass(connection));
}

// --- the writer ----------------------------------------------------------------------------------

// False: the connection ends before it gets there.
static bool await_stage(leati_connection *self, leati_connection_stage wanted)
{
    for (;;) {
        look_for_word(self);
        if (leati_connection_is_closing(self))
            return false;
        // Acquire: pairs with leati_connection_enter and leati_connection_begin.
        uint32_t stage = atomic_load_explicit(&self->stage, memory_order_acquire);
        if (stage == LEATI_CONNECTION_REFUSED || stage >= (uint32_t)wanted)
            return stage >= (uint32_t)wanted;
        if (lay_down(self))
            await_baton(self);
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

// What somebody else has begun, or all of what `fill` gave.
static int send_filled(leati_connection *self)
{
    if (self->tls)
        return leati_connection_transmit_tls(self, self->parts, self->filled, 0);
    return send_rest(self, 0);
}

static void send_frames(leati_connection *self)
{
    while (!leati_connection_is_closing(self)) {
        if (self->filled == 0) {
            look_for_word(self);
            self->filled = self->hooks->fill(self, self->user, self->parts);
            if (self->filled == 0) {
                if (!leati_connection_is_closing(self) && lay_down(self))
                    await_baton(self);
                continue;
            }
            assert(self->filled <= LEATI_CONNECTION_PARTS);
            if (!self->tls)
                set_parts(self, self->parts, self->filled);
        }
        int error = send_filled(self);
        if (error) {
            give_up_sending(self, error);
            return;
        }
        self->filled = 0;
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
    // An operation that is under way has been aborted: its memory is used until it has ended.
    if (self->sending.under_way)
        (void)complete(self);
    return NULL;
}
