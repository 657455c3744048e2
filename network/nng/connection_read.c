// SPDX-License-Identifier: Apache-2.0
// Reading frames, and who it is that reads.
//
// The reader leads: it connects, shakes hands (handshake.c), reads frames, and at the end joins the
// writer (connection_send.c) and tells `closed`.
//
// One thread at a time has the *right* to read. A connection with the hook `settle` has two threads
// for it, of which one stands by. The other may step aside in that hook, to give a task's turn: the
// right lies there meanwhile, and the thread takes it up again when it comes back. When it does not
// come back soon, because the turn waits, somebody hands the right on to the one that stands by. So
// bytes are read whatever turns do, and no thread is woken where turns are short. Without another
// thread standing by nobody steps aside.
//
// All that is known of a frame that is half read is in `reading`, so the other thread can go on at
// any point, also with an operation that is under way; with TLS, between two operations.
#include <string.h>

#include "network/nng/connection_impl.h"

// The right to read.
enum {
    HELD = 0,
    LIES = 1,   // whose it was has stepped aside
    HANDED = 2, // for a thread that stands by
    OVER = 3,
};

// What the reader can be asked for.
enum {
    AT_WORK = 1, // it is to be asked; only it sets and clears this
    ASKED = 2,   // to send
};

// --- being asked to send -------------------------------------------------------------------------

bool leati_connection_take_or_ask(leati_connection *connection)
{
    uint32_t seen = atomic_load_explicit(&connection->asked, memory_order_relaxed);
    while (seen & AT_WORK)
        // Release: what was put before this is seen by the reader's exchange.
        if (atomic_compare_exchange_weak_explicit(&connection->asked, &seen, seen | ASKED,
                                                  memory_order_release, memory_order_relaxed))
            return false;
    return leati_connection_take(connection);
}

// Nobody has asked while it was not at work. With TLS it never is.
static void begin_work(leati_connection *self)
{
    if (!self->tls)
        atomic_store_explicit(&self->asked, AT_WORK, memory_order_relaxed);
}

// Sends if the reader was asked to. From here on it is at work, or others send themselves.
static void answer(leati_connection *self, bool at_work)
{
    if (self->tls)
        return;
    uint32_t before =
        atomic_exchange_explicit(&self->asked, at_work ? AT_WORK : 0, memory_order_acquire);
    if ((before & ASKED) && leati_connection_take(self))
        leati_connection_serve(self);
}

// --- the right -----------------------------------------------------------------------------------

bool leati_connection_may_step_aside(const leati_connection *connection)
{
    // Acquire: what it has done while it was away is over.
    return !connection->reading.inside_tls &&
           atomic_load_explicit(&connection->standing_by, memory_order_acquire) > 0;
}

void leati_connection_step_aside(leati_connection *connection)
{
    answer(connection, false);
    // Relaxed: it is read once the connection is over, which this thread has made possible below.
    atomic_store_explicit(&connection->away, true, memory_order_relaxed);
    // Release: pairs with the taking of the right, here and in await_right. Sequentially
    // consistent with the loads and stores of close: either that one finds the right here, or this
    // finds that it is closing.
    atomic_store_explicit(&connection->right, LIES, memory_order_seq_cst);
    if (atomic_load_explicit(&connection->closing, memory_order_seq_cst))
        leati_connection_hand_on(connection);
}

bool leati_connection_come_back(leati_connection *connection)
{
    uint32_t seen = LIES;
    // Acquire: pairs with the end of the connection.
    bool back = atomic_compare_exchange_strong_explicit(&connection->right, &seen, HELD,
                                                        memory_order_acquire, memory_order_acquire);
    if (back)
        begin_work(connection);
    // Release: what it has done is over.
    atomic_store_explicit(&connection->away, false, memory_order_release);
    return back;
}

void leati_connection_hand_on(void *connection)
{
    leati_connection *self = connection;
    uint32_t seen = LIES;
    // Sequentially consistent for close alone.
    if (atomic_compare_exchange_strong_explicit(&self->right, &seen, HANDED, memory_order_seq_cst,
                                                memory_order_seq_cst))
        leati_futex_wake(&self->right);
}

// False: it is over.
static bool await_right(leati_connection *self)
{
    atomic_fetch_add_explicit(&self->standing_by, 1, memory_order_acq_rel);
    uint32_t seen;
    for (;;) {
        seen = HANDED;
        if (atomic_compare_exchange_strong_explicit(&self->right, &seen, HELD, memory_order_acq_rel,
                                                    memory_order_acquire))
            break;
        if (seen == OVER)
            break;
        leati_futex_wait(&self->right, seen);
    }
    atomic_fetch_sub_explicit(&self->standing_by, 1, memory_order_acq_rel);
    return seen == HANDED;
}

bool leati_connection_settle(leati_connection *self)
{
    self->reading.unsettled = 0;
    return !self->opened || !self->hooks->settle || self->hooks->settle(self, self->user);
}

// --- frames --------------------------------------------------------------------------------------

// The hook has refused the frame.
static leat_err refused(leati_connection *self, const leati_frame *frame, leat_err err)
{
    return leati_connection_fail(self, err, "has sent a frame (of kind %u) that was refused: %s",
                                 frame->kind, leat_err_message(err));
}

static leat_err complete_frame(leati_connection *self)
{
    leati_reading *r = &self->reading;
    r->to = NULL;
    r->unsettled++;
    leat_err err = self->hooks->arrived(self, self->user, &r->frame);
    return err == LEAT_OK ? err : refused(self, &r->frame, err);
}

// What of the payload is in the buffer already is copied.
static leat_err take_header(leati_connection *self)
{
    leati_reading *r = &self->reading;
    leati_frame_get(&r->frame, self->buffer + self->begin);
    self->begin += LEATI_FRAME_SIZE;
    if (r->frame.kind == 0)
        return leati_connection_fail(self, LEAT_ECORRUPT, "has said hello twice");
    if (r->frame.size > self->frame_max)
        return leati_connection_fail(self, LEAT_ETOOBIG,
                                     "has sent a frame of %u bytes; at most %u "
                                     "are allowed",
                                     r->frame.size, self->frame_max);
    if (r->frame.size == 0)
        return complete_frame(self);
    uint8_t *to = NULL;
    leat_err err = self->hooks->place(self, self->user, &r->frame, &to);
    if (err != LEAT_OK)
        return refused(self, &r->frame, err);
    r->to = to;
    r->there = self->end - self->begin;
    if (r->there > r->frame.size)
        r->there = r->frame.size;
    memcpy(to, self->buffer + self->begin, r->there);
    self->begin += r->there;
    return LEAT_OK;
}

// Where the next bytes go: the rest of the payload to its place, and what comes with it to the
// buffer. Behind a large payload that is only the next header, so that the payload of that one can
// be read to its place as well; small frames are read in bulk.
static unsigned place_next(leati_connection *self, nng_iov iov[2])
{
    leati_reading *r = &self->reading;
    if (r->to) { // the buffer is empty
        size_t behind =
            r->frame.size > LEATI_CONNECTION_BULK ? LEATI_FRAME_SIZE : sizeof self->buffer;
        iov[0] = (nng_iov){.iov_buf = r->to + r->there, .iov_len = r->frame.size - r->there};
        iov[1] = (nng_iov){.iov_buf = self->buffer, .iov_len = behind};
        return 2;
    }
    if (self->begin > 0) {
        memmove(self->buffer, self->buffer + self->begin, self->end - self->begin);
        self->end -= self->begin;
        self->begin = 0;
    }
    iov[0] =
        (nng_iov){.iov_buf = self->buffer + self->end, .iov_len = sizeof self->buffer - self->end};
    return 1;
}

static void note_received(leati_connection *self, size_t got)
{
    leati_reading *r = &self->reading;
    size_t rest = r->to ? r->frame.size - r->there : 0;
    if (rest > got)
        rest = got;
    if (r->to) {
        r->there += rest;
        self->begin = self->end = 0;
    }
    self->end += got - rest;
}

// False: another thread reads now. Otherwise an error of nng, or bytes have come.
static bool receive_more(leati_connection *self, int *error, size_t *got)
{
    leati_reading *r = &self->reading;
    nng_iov iov[2];
    unsigned count = place_next(self, iov);
    *error = 0;
    if (!r->under_way) {
        if (self->drained && !leati_connection_settle(self))
            return false;
        if (self->tls) {
            r->inside_tls = true;
            *error = leati_connection_receive(self, iov, count, 0, got);
            r->inside_tls = false;
            return true;
        }
        if (self->drained) {
            answer(self, false);
            leati_connection_await(self);
            begin_work(self);
        }
        *error = leati_connection_begin_receive(self, iov, count, 0);
        if (*error)
            return true;
        r->under_way = true;
        // An operation that has ended at once has its count already. One that ends just now may be
        // taken for one that does not, which costs a needless call.
        if (nng_aio_count(self->in) == 0 && !leati_connection_settle(self))
            return false;
    }
    bool waits = nng_aio_count(self->in) == 0;
    if (waits)
        answer(self, false);
    *error = leati_connection_end_receive(self, iov, count, got);
    if (waits)
        begin_work(self);
    r->under_way = false;
    return true;
}

// False: another thread reads now. Otherwise the connection is closing.
static bool read_frames(leati_connection *self)
{
    leati_reading *r = &self->reading;
    leat_err err = LEAT_OK;
    begin_work(self);
    while (err == LEAT_OK && !leati_connection_is_closing(self)) {
        if (r->unsettled == LEATI_CONNECTION_UNSETTLED) {
            answer(self, true);
            if (!leati_connection_settle(self))
                return false;
        }
        if (r->to && r->there == r->frame.size) {
            err = complete_frame(self);
        } else if (!r->to && self->end - self->begin >= LEATI_FRAME_SIZE) {
            err = take_header(self);
        } else {
            int error;
            size_t got;
            if (!receive_more(self, &error, &got))
                return false;
            if (error)
                err = leati_connection_lost(self, error, r->to || self->end > self->begin);
            else
                note_received(self, got);
        }
    }
    return true;
}

// --- the threads ---------------------------------------------------------------------------------

static void set_socket(leati_connection *self, int socket)
{
    pthread_mutex_lock(&self->in_lock);
    self->socket = socket;
    pthread_mutex_unlock(&self->in_lock);
}

static void end_connection(leati_connection *self, bool started)
{
    // An operation that is under way has been aborted: its memory is used until it has ended.
    if (self->reading.under_way)
        nng_aio_wait(self->in);
    leati_unpark(&self->reading_over);
    leati_connection_close(self, LEAT_ECLOSED, NULL); // if nobody has yet; it wakes the writer
    pthread_join(self->writer, NULL);
    set_socket(self, -1); // nng is about to close it
    if (self->stream)
        nng_stream_free(self->stream);
    leati_tls_stream_destroy(&self->tls);
    if (self->dialer)
        nng_stream_dialer_free(self->dialer);
    leati_connection_greeted(self);
    if (self->load)
        leati_listener_load_release(self->load);
    // Release: the other thread leaves, or finds this when it comes back.
    atomic_store_explicit(&self->right, OVER, memory_order_release);
    leati_futex_wake(&self->right);
    // Nobody writes these once `closing` is set.
    if (started)
        self->hooks->closed(self, self->user, self->err, self->why);
}

// Reads as long as this thread has the right to; who has it in the end ends the connection.
static void read_in_turns(leati_connection *self)
{
    do {
        if (read_frames(self)) {
            end_connection(self, true);
            return;
        }
    } while (await_right(self));
}

static void *stand_by(void *connection)
{
    leati_connection *self = connection;
    void *signal_stack = leati_signal_stack_enter();
    if (await_right(self))
        read_in_turns(self);
    leati_signal_stack_leave(signal_stack);
    return NULL;
}

// Without a second thread nobody steps aside, so that it is no error if there is none to be had.
static void start_second(leati_connection *self)
{
    if (!self->hooks->settle)
        return;
    self->has_second = leati_thread_start(&self->second, "leat-net-in", stand_by, self) == LEAT_OK;
}

// False: there is nothing to be read.
static bool open_connection(leati_connection *self)
{
    leati_hello peer;
    if (!self->stream && leati_connection_connect(self) != LEAT_OK)
        return false;
    if (leati_connection_greet(self, &peer) != LEAT_OK || leati_connection_is_closing(self))
        return false;
    leati_connection_greeted(self);
    set_socket(self, leati_socket_of(self->stream));
    start_second(self);
    self->hooks->opened(self, self->user, &peer);
    self->opened = true;
    leati_connection_enter(self, LEATI_CONNECTION_OPEN);
    return true;
}

void *leati_connection_read(void *connection)
{
    leati_connection *self = connection;
    uint32_t stage;
    // Acquire: pairs with leati_connection_begin.
    while ((stage = atomic_load_explicit(&self->stage, memory_order_acquire)) ==
           LEATI_CONNECTION_NEW)
        leati_futex_wait(&self->stage, LEATI_CONNECTION_NEW);
    bool started = stage == LEATI_CONNECTION_STARTED;
    if (!started || !open_connection(self)) {
        end_connection(self, started);
        return NULL;
    }
    void *signal_stack = self->has_second ? leati_signal_stack_enter() : NULL;
    read_in_turns(self);
    leati_signal_stack_leave(signal_stack);
    return NULL;
}

bool leati_connection_is_left(const leati_connection *connection)
{
    return !atomic_load_explicit(&connection->away, memory_order_acquire);
}
