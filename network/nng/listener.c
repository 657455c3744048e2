// SPDX-License-Identifier: Apache-2.0
// Accepts connections, one thread a listener.
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "network/nng/connection_impl.h"

enum { PAUSE_MIN_MS = 10, PAUSE_MAX_MS = 500 }; // after an accept that failed, as for want of files

struct leati_listener {
    leati_listener_options options; // immutable
    char address[LEATI_ADDRESS_SIZE];
    leati_listener_load *load; // shared with the connections
    nng_stream_listener *listener;
    pthread_t thread;
    // An accept is started, and aborted, under the lock.
    pthread_mutex_t lock;
    nng_aio *aio;
    _Atomic bool closing;
    leati_parker pause;
};

static void drop_load(leati_listener_load *load)
{
    // Acquire and release: the last one frees what the others have used.
    if (atomic_fetch_sub_explicit(&load->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&load->lock);
    leati_free(load->allocator, load);
}

void leati_listener_load_release(leati_listener_load *load)
{
    atomic_fetch_sub_explicit(&load->open, 1, memory_order_relaxed); // a figure, it orders nothing
    drop_load(load);
}

// --- who has not said yet who he is ---

static void unlink_locked(leati_listener_load *load, leati_connection *connection)
{
    if (connection->older)
        connection->older->newer = connection->newer;
    else
        load->oldest = connection->newer;
    if (connection->newer)
        connection->newer->older = connection->older;
    else
        load->newest = connection->older;
    connection->greeting = false;
    load->greeting--;
}

void leati_connection_greeted(leati_connection *self)
{
    if (!self->load)
        return;
    pthread_mutex_lock(&self->load->lock);
    if (self->greeting)
        unlink_locked(self->load, self);
    pthread_mutex_unlock(&self->load->lock);
}

// Each holds two threads for as long as a hand-shake may take, so there are few. Who comes now is
// likelier to mean it than who has said nothing while so many others came.
static void greet(leati_listener_load *load, leati_connection *connection)
{
    pthread_mutex_lock(&load->lock);
    leati_connection *oldest = load->greeting >= load->greeting_most ? load->oldest : NULL;
    if (oldest) {
        unlink_locked(load, oldest);
        (void)leati_connection_fail(oldest, LEAT_EIO,
                                    "had not said who it is when %u others had connected too",
                                    (unsigned)load->greeting_most);
    }
    connection->greeting = true;
    connection->older = load->newest;
    connection->newer = NULL;
    if (load->newest)
        load->newest->newer = connection;
    else
        load->oldest = connection;
    load->newest = connection;
    load->greeting++;
    pthread_mutex_unlock(&load->lock);
}

// --- accepting ---

static bool is_closing(leati_listener *self)
{
    return atomic_load_explicit(&self->closing, memory_order_acquire);
}

static void peer_address(const leati_listener *self, nng_stream *stream, char *to, size_t size)
{
    nng_sockaddr address = {.s_family = NNG_AF_UNSPEC};
    (void)nng_stream_get_addr(stream, NNG_OPT_REMADDR, &address);
    leati_address_print(&address, self->address, to, size);
}

// Hands a stream out; it is freed where nobody takes it.
static void hand_out(leati_listener *self, nng_stream *stream)
{
    char peer[LEATI_ADDRESS_SIZE];
    const leati_listener_options *options = &self->options;
    leati_connection *connection;
    // A figure, it orders nothing.
    if (atomic_load_explicit(&self->load->open, memory_order_relaxed) >= options->most) {
        nng_stream_free(stream);
        return;
    }
    peer_address(self, stream, peer, sizeof peer);
    leati_connection_setup setup = {
        .allocator = options->allocator,
        .hello = &options->hello,
        .auth = options->auth,
        .hello_timeout_ms = options->hello_timeout_ms,
        .frame_max = options->frame_max,
        .peer = peer,
    };
    if (leati_connection_create(&setup, &connection) != LEAT_OK) {
        nng_stream_free(stream);
        return;
    }
    connection->stream = stream;
    connection->load = self->load;
    atomic_fetch_add_explicit(&self->load->open, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->load->references, 1, memory_order_relaxed);
    greet(self->load, connection);
    leat_err err =
        options->accepted(options->user, connection, &connection->hooks, &connection->user);
    leati_connection_begin(connection,
                           err == LEAT_OK ? LEATI_CONNECTION_STARTED : LEATI_CONNECTION_REFUSED);
    if (err != LEAT_OK)
        leati_connection_destroy(&connection);
}

static void *accept_all(void *arg)
{
    leati_listener *self = arg;
    int64_t pause_ms = PAUSE_MIN_MS;
    for (;;) {
        pthread_mutex_lock(&self->lock);
        bool begun = !is_closing(self);
        if (begun)
            nng_stream_listener_accept(self->listener, self->aio);
        pthread_mutex_unlock(&self->lock);
        if (!begun)
            return NULL;
        nng_aio_wait(self->aio);
        if (nng_aio_result(self->aio) == 0) {
            pause_ms = PAUSE_MIN_MS;
            hand_out(self, nng_aio_get_output(self->aio, 0));
        } else if (!is_closing(self)) {
            leati_park_for(&self->pause, pause_ms);
            pause_ms = pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms * 2;
        }
    }
}

// The address with the port that the system has chosen.
static void find_address(leati_listener *self)
{
    nng_sockaddr address = {.s_family = NNG_AF_UNSPEC};
    (void)nng_stream_listener_get_addr(self->listener, NNG_OPT_LOCADDR, &address);
    leati_address_print(&address, self->options.address, self->address, sizeof self->address);
}

static leat_err listen_at(leati_listener *self, const char *address, char *why, size_t why_size)
{
    int error = nng_stream_listener_alloc(&self->listener, address);
    if (!error) {
        (void)nng_stream_listener_set_bool(self->listener, NNG_OPT_TCP_NODELAY, true);
        (void)nng_stream_listener_set_bool(self->listener, NNG_OPT_TCP_KEEPALIVE, true);
        // Of a socket file, which only its own user may open.
        (void)nng_stream_listener_set_int(self->listener, NNG_OPT_IPC_PERMISSIONS, 0600);
        error = nng_stream_listener_listen(self->listener);
    }
    if (!error)
        error = nng_aio_alloc(&self->aio, NULL, NULL);
    if (error) {
        snprintf(why, why_size, "cannot listen at %s: %s", address, leati_nng_text(error));
        return error == NNG_ENOMEM ? LEAT_ENOMEM : LEAT_EIO;
    }
    find_address(self);
    return LEAT_OK;
}

static void release(leati_listener *self)
{
    const leat_allocator *allocator = self->options.allocator;
    if (self->aio)
        nng_aio_free(self->aio);
    if (self->listener)
        nng_stream_listener_free(self->listener);
    if (self->load)
        drop_load(self->load);
    pthread_mutex_destroy(&self->lock);
    leati_free(allocator, self);
}

uint32_t leati_listener_share(uint32_t part, uint32_t most)
{
    enum { LEAST = 4 };
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / part >= most)
        return most;
    return files.rlim_cur / part > LEAST ? (uint32_t)(files.rlim_cur / part) : LEAST;
}

leat_err leati_listener_create(const leati_listener_options *options, leati_listener **listener,
                               char *why, size_t why_size)
{
    const leat_allocator *allocator = leati_allocator_or_default(options->allocator);
    leat_err err = leati_address_check(options->address, 0, why, why_size);
    if (err != LEAT_OK)
        return err;
    leati_listener *self = leati_calloc(allocator, 1, sizeof *self);
    leati_listener_load *load = leati_calloc(allocator, 1, sizeof *load);
    if (!self || !load) {
        leati_free(allocator, self);
        leati_free(allocator, load);
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    self->options = *options;
    self->options.allocator = allocator;
    self->load = load;
    load->allocator = allocator;
    atomic_init(&load->references, 1);
    pthread_mutex_init(&load->lock, NULL);
    load->greeting_most = leati_listener_share(LEATI_GREETING_PART, LEATI_GREETING_MOST);
    pthread_mutex_init(&self->lock, NULL);
    err = listen_at(self, options->address, why, why_size);
    if (err == LEAT_OK) {
        err = leati_thread_start(&self->thread, "leat-net-accept", accept_all, self);
        if (err != LEAT_OK)
            snprintf(why, why_size, "%s", leat_err_message(err));
    }
    if (err != LEAT_OK) {
        release(self);
        return err;
    }
    self->options.address = NULL; // the caller's, which may be gone by now
    *listener = self;
    return LEAT_OK;
}

const char *leati_listener_address(const leati_listener *listener)
{
    return listener->address;
}

void leati_listener_destroy(leati_listener **listener)
{
    leati_listener *self = *listener;
    if (!self)
        return;
    *listener = NULL;
    pthread_mutex_lock(&self->lock);
    // Release: pairs with the loads of the thread.
    atomic_store_explicit(&self->closing, true, memory_order_release);
    nng_aio_abort(self->aio, NNG_ECANCELED);
    pthread_mutex_unlock(&self->lock);
    leati_unpark(&self->pause);
    pthread_join(self->thread, NULL);
    release(self);
}
