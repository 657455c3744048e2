// SPDX-License-Identifier: Apache-2.0
// The life of a connection: made, begun, closed, destroyed. What its threads do is in
// connection_read.c and connection_send.c.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "network/nng/connection_impl.h"

static void release(leati_connection *self)
{
    nng_aio_free(self->in);
    nng_aio_free(self->out);
    pthread_mutex_destroy(&self->in_lock);
    pthread_mutex_destroy(&self->out_lock);
    pthread_mutex_destroy(&self->lock);
    leati_free_aligned(self->allocator, self);
}

static leat_err start_threads(leati_connection *self)
{
    leat_err err = leati_thread_start(&self->writer, "leat-net-out", leati_connection_write, self);
    if (err != LEAT_OK)
        return err;
    err = leati_thread_start(&self->reader, "leat-net-in", leati_connection_read, self);
    if (err == LEAT_OK)
        return err;
    leati_connection_close(self, err, NULL);
    pthread_join(self->writer, NULL);
    return err;
}

leat_err leati_connection_create(const leati_connection_setup *setup, leati_connection **connection)
{
    leati_connection *self = leati_alloc_aligned(setup->allocator, 64, sizeof *self);
    if (!self)
        return LEAT_ENOMEM;
    memset(self, 0, offsetof(leati_connection, buffer));
    self->allocator = setup->allocator;
    self->socket = -1;
    self->hello = *setup->hello;
    leati_hello_complete(&self->hello);
    self->auth = setup->auth;
    self->dial_timeout_ms = setup->dial_timeout_ms;
    self->hello_timeout_ms = setup->hello_timeout_ms;
    self->frame_max = setup->frame_max;
    snprintf(self->peer, sizeof self->peer, "%s", setup->peer);
    pthread_mutex_init(&self->lock, NULL);
    pthread_mutex_init(&self->in_lock, NULL);
    pthread_mutex_init(&self->out_lock, NULL);
    leat_err err = leati_connection_prepare_hello(self);
    if (err == LEAT_OK &&
        (nng_aio_alloc(&self->in, NULL, NULL) != 0 || nng_aio_alloc(&self->out, NULL, NULL) != 0))
        err = LEAT_ENOMEM;
    if (err == LEAT_OK)
        err = start_threads(self);
    if (err != LEAT_OK) {
        release(self);
        return err;
    }
    *connection = self;
    return LEAT_OK;
}

void leati_connection_begin(leati_connection *connection, leati_connection_stage stage)
{
    // From the store on it may come to its end and be destroyed, which waits for the lock.
    pthread_mutex_lock(&connection->lock);
    // Release: the reader, which loads it with acquire order, sees hooks and stream.
    atomic_store_explicit(&connection->stage, stage, memory_order_release);
    leati_futex_wake(&connection->stage);
    leati_connection_kick(connection);
    pthread_mutex_unlock(&connection->lock);
}

static leat_err make_dialer(const leati_connection_options *options, nng_stream_dialer **dialer,
                            char *why, size_t why_size)
{
    int error = nng_stream_dialer_alloc(dialer, options->address);
    if (error) {
        snprintf(why, why_size, "%s: %s", options->address, leati_nng_text(error));
        return error == NNG_ENOMEM ? LEAT_ENOMEM : LEAT_EINVAL;
    }
    // Where these do not exist (ipc) they are not needed.
    (void)nng_stream_dialer_set_bool(*dialer, NNG_OPT_TCP_NODELAY, true);
    (void)nng_stream_dialer_set_bool(*dialer, NNG_OPT_TCP_KEEPALIVE, true);
    return LEAT_OK;
}

leat_err leati_connection_dial(const leati_connection_options *options,
                               leati_connection **connection, char *why, size_t why_size)
{
    leat_err err = leati_address_check(options->address, 1, why, why_size);
    if (err != LEAT_OK)
        return err;
    nng_stream_dialer *dialer = NULL;
    err = make_dialer(options, &dialer, why, why_size);
    if (err != LEAT_OK)
        return err;
    leati_connection_setup setup = {
        .allocator = leati_allocator_or_default(options->allocator),
        .hello = &options->hello,
        .auth = options->auth,
        .dial_timeout_ms = options->dial_timeout_ms,
        .hello_timeout_ms = options->hello_timeout_ms,
        .frame_max = options->frame_max,
        .peer = options->address,
    };
    leati_connection *self;
    err = leati_connection_create(&setup, &self);
    if (err != LEAT_OK) {
        nng_stream_dialer_free(dialer);
        snprintf(why, why_size, "%s: %s", options->address, leat_err_message(err));
        return err;
    }
    self->dialer = dialer;
    self->hooks = options->hooks;
    self->user = options->user;
    *connection = self; // before the first hook may run
    leati_connection_begin(self, LEATI_CONNECTION_STARTED);
    return LEAT_OK;
}

void leati_connection_close(leati_connection *connection, leat_err err, const char *why)
{
    // The lock is held to the end, so that destroy, which takes it last of all, does not free what
    // is still used here.
    pthread_mutex_lock(&connection->lock);
    if (!atomic_load_explicit(&connection->closing, memory_order_relaxed)) {
        connection->err = err;
        if (why)
            snprintf(connection->why, sizeof connection->why, "%s", why);
        else
            snprintf(connection->why, sizeof connection->why, "the connection to %s was closed",
                     connection->peer);
        // Release: pairs with the loads of all threads. More than that for who steps aside now.
        atomic_store_explicit(&connection->closing, true, memory_order_seq_cst);
        pthread_mutex_lock(&connection->in_lock);
        nng_aio_abort(connection->in, NNG_ECANCELED);
        if (connection->socket >= 0)
            (void)shutdown(connection->socket, SHUT_RD);
        pthread_mutex_unlock(&connection->in_lock);
        pthread_mutex_lock(&connection->out_lock);
        nng_aio_abort(connection->out, NNG_ECANCELED);
        pthread_mutex_unlock(&connection->out_lock);
        leati_connection_kick(connection);
        // Whoever is away may be so for long, and the end is not to wait for that.
        leati_connection_hand_on(connection);
    }
    pthread_mutex_unlock(&connection->lock);
}

leat_err leati_connection_fail(leati_connection *connection, leat_err err, const char *format, ...)
{
    char rest[LEATI_WHY_SIZE], why[LEATI_WHY_SIZE + LEATI_ADDRESS_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(rest, sizeof rest, format, args);
    va_end(args);
    snprintf(why, sizeof why, "%s %s", connection->peer, rest);
    leati_connection_close(connection, err, why);
    return err;
}

void leati_connection_destroy(leati_connection **connection)
{
    leati_connection *self = *connection;
    if (!self)
        return;
    *connection = NULL;
    leati_connection_close(self, LEAT_ECLOSED, NULL);
    // One of them has joined the writer.
    pthread_join(self->reader, NULL);
    if (self->has_second)
        pthread_join(self->second, NULL);
    pthread_mutex_lock(&self->lock);
    pthread_mutex_unlock(&self->lock);
    release(self);
}

uint64_t leati_connection_heard(const leati_connection *connection)
{
    // Relaxed: a figure, which orders nothing.
    return atomic_load_explicit(&connection->heard, memory_order_relaxed);
}

const char *leati_connection_peer(const leati_connection *connection)
{
    return connection->peer;
}
