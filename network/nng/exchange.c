// SPDX-License-Identifier: Apache-2.0
// The exchange between processes: its life, and its housekeeper.
//
// The housekeeper is the thread for what the threads of connections cannot do: dial, watch times,
// and destroy connections that are over.
#include "network/nng/exchange.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "leat/base.h"
#include "network/nng/exchange_impl.h"

enum { MOST_CONNECTIONS = 4096, MOST_NEAR = 1024 };
// How often a wire is looked at that is over and still has a thread away.
static const int64_t LOOK_AGAIN_NS = 20000000;

void leati_exchange_poke(leati_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    exchange->poked = true;
    pthread_cond_signal(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
}

void leati_exchange_hello(leati_exchange *exchange, leati_hello *hello)
{
    *hello = (leati_hello){
        .purpose = "data",
        .abi = LEAT_ABI,
        .segment_size = exchange->segment_size,
    };
    snprintf(hello->version, sizeof hello->version, "%s", leat_version());
    snprintf(hello->process, sizeof hello->process, "%s", exchange->process);
    pthread_mutex_lock(&exchange->lock);
    memcpy(hello->cluster, exchange->cluster, sizeof hello->cluster);
    pthread_mutex_unlock(&exchange->lock);
}

static leat_err accepted(void *user, leati_connection *connection,
                         const leati_connection_hooks **hooks, void **connection_user)
{
    leati_exchange *exchange = user;
    leati_wire *wire = leati_wire_create(exchange, NULL);
    if (!wire)
        return LEAT_ENOMEM;
    // Before any hook runs, by which the housekeeper gets to know of it.
    wire->connection = connection;
    *hooks = &leati_wire_hooks;
    *connection_user = wire;
    return LEAT_OK;
}

// --- the housekeeper ---

// A wire that is over is destroyed without the lock: its reader may just be giving it up. Returns
// whether there is one that has to wait, as a thread of it gives a long turn to a task.
static bool reap_wires(leati_exchange *exchange)
{
    bool waits = false;
    leati_wire **link = &exchange->wires;
    leati_wire *over = NULL;
    while (*link) {
        leati_wire *wire = *link;
        if (!wire->over || (wire->connection && !leati_connection_is_left(wire->connection))) {
            waits |= wire->over;
            link = &wire->next;
            continue;
        }
        *link = wire->next;
        wire->next = over;
        over = wire;
    }
    if (!over)
        return waits;
    pthread_mutex_unlock(&exchange->lock);
    while (over) {
        leati_wire *wire = over;
        over = wire->next;
        leati_connection_destroy(&wire->connection);
        leati_wire_free(wire);
    }
    pthread_mutex_lock(&exchange->lock);
    return waits;
}

static void reap_peers(leati_exchange *exchange)
{
    leati_exchange_peer **link = &exchange->peers;
    while (*link) {
        leati_exchange_peer *peer = *link;
        if (peer->references > 0) {
            link = &peer->next;
            continue;
        }
        *link = peer->next;
        leati_exchange_free_peer(peer);
    }
}

// What is due at any peer. Nobody but this thread takes peers out of the list, and new ones come
// first, so the lock may be given up on the way. Returns when something will be due.
static int64_t tend_peers(leati_exchange *exchange)
{
    int64_t due_ns = INT64_MAX, now_ns = leati_clock_ns();
    for (leati_exchange_peer *peer = exchange->peers; peer; peer = peer->next) {
        peer->references++;
        pthread_mutex_unlock(&exchange->lock);
        int64_t peer_due_ns = leati_exchange_tend(peer, now_ns);
        pthread_mutex_lock(&exchange->lock);
        if (--peer->references == 0)
            exchange->poked = true;
        if (peer_due_ns < due_ns)
            due_ns = peer_due_ns;
    }
    return due_ns;
}

static void sleep_until(leati_exchange *exchange, int64_t due_ns)
{
    if (exchange->poked)
        return;
    if (due_ns == INT64_MAX) {
        pthread_cond_wait(&exchange->changed, &exchange->lock);
        return;
    }
    int64_t left_ms = (due_ns - leati_clock_ns()) / 1000000 + 1;
    struct timespec until = leati_deadline(left_ms > 0 ? left_ms : 0);
    pthread_cond_timedwait(&exchange->changed, &exchange->lock, &until);
}

// Nobody else dials, so after this there are no new ones; closing calls nothing of ours.
static void close_wires(leati_exchange *exchange)
{
    for (leati_wire *wire = exchange->wires; wire; wire = wire->next)
        if (!wire->over)
            leati_connection_close(wire->connection, LEAT_ECLOSED, "the task manager is ending");
}

static void *keep_house(void *arg)
{
    leati_exchange *exchange = arg;
    pthread_mutex_lock(&exchange->lock);
    while (!exchange->stopping || exchange->wires) {
        exchange->poked = false;
        bool waits = reap_wires(exchange);
        reap_peers(exchange);
        int64_t due_ns = INT64_MAX;
        if (exchange->stopping)
            close_wires(exchange);
        else
            due_ns = tend_peers(exchange);
        if (waits) {
            int64_t look_ns = leati_clock_ns() + LOOK_AGAIN_NS;
            due_ns = due_ns < look_ns ? due_ns : look_ns;
        }
        if (!exchange->stopping || exchange->wires)
            sleep_until(exchange, due_ns);
    }
    reap_peers(exchange);
    pthread_mutex_unlock(&exchange->lock);
    return NULL;
}

// --- life ---

static leat_err listen_at(leati_exchange *exchange, const char *address, uint32_t most,
                          leati_listener **listener, char *why, size_t why_size)
{
    leati_listener_options options = {
        .allocator = exchange->allocator,
        .address = address,
        .auth = exchange->auth,
        .hello_timeout_ms = exchange->connect_timeout_ms,
        .frame_max = exchange->segment_size,
        .most = most,
        .accepted = accepted,
        .user = exchange,
    };
    // Without a cluster: which one this is may only become known later, so that who dials says its
    // own, and it is compared here (exchange_peer.c).
    leati_exchange_hello(exchange, &options.hello);
    return leati_listener_create(&options, listener, why, why_size);
}

// At the socket file. Whatever is in its way, peers have the port.
static void listen_near(leati_exchange *exchange, const char *path, char *why, size_t why_size)
{
    char address[LEATI_EXCHANGE_ADDRESS_ONE];
    if (!leati_socket_path_fits(path, why, why_size))
        return;
    snprintf(address, sizeof address, "ipc://%s", path);
    (void)listen_at(exchange, address, MOST_NEAR, &exchange->near, why, why_size);
}

static leat_err listen_for_peers(leati_exchange *exchange, const leati_exchange_options *options,
                                 char *why, size_t why_size)
{
    leat_err err =
        listen_at(exchange, options->address, MOST_CONNECTIONS, &exchange->listener, why, why_size);
    if (err != LEAT_OK)
        return err;
    if (why_size > 0)
        *why = '\0';
    if (options->socket_path)
        listen_near(exchange, options->socket_path, why, why_size);
    snprintf(exchange->address, sizeof exchange->address, "%s%s%s",
             leati_listener_address(exchange->listener), exchange->near ? " " : "",
             exchange->near ? leati_listener_address(exchange->near) : "");
    return LEAT_OK;
}

static void free_exchange(leati_exchange *exchange)
{
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->lock);
    leati_free(exchange->allocator, exchange->process);
    leati_free(exchange->allocator, exchange);
}

leat_err leati_exchange_create(const leati_exchange_options *options, leati_transport **transport,
                               char *why, size_t why_size)
{
    if (options->connect_timeout_ms <= 0 || strlen(options->process) >= LEATI_HELLO_TEXT ||
        !*options->process || options->segment_size < 64) {
        snprintf(why, why_size, "the options of the exchange between task managers are wrong");
        return LEAT_EINVAL;
    }
    const leat_allocator *allocator = leati_allocator_or_default(options->allocator);
    leati_exchange *exchange = leati_calloc(allocator, 1, sizeof *exchange);
    if (!exchange) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    exchange->transport = (leati_transport){
        .open = leati_exchange_open,
        .send = leati_exchange_send,
        .receive = leati_exchange_receive,
        .waiter = leati_exchange_waiter,
        .look = leati_exchange_look,
        .nudge = leati_exchange_nudge,
        .close = leati_exchange_close,
    };
    exchange->allocator = allocator;
    exchange->auth = options->auth;
    exchange->refused = options->refused;
    exchange->user = options->user;
    exchange->segment_size = options->segment_size;
    exchange->connect_timeout_ms = options->connect_timeout_ms;
    exchange->process = leati_strdup(allocator, options->process);
    pthread_mutex_init(&exchange->lock, NULL);
    leati_cond_init(&exchange->changed);
    leat_err err = exchange->process ? LEAT_OK : LEAT_ENOMEM;
    if (err == LEAT_OK)
        err = leati_thread_start(&exchange->housekeeper, "leat-exchange", keep_house, exchange);
    if (err != LEAT_OK) {
        snprintf(why, why_size, "%s", leat_err_message(err));
        free_exchange(exchange);
        return err;
    }
    leati_transport *made = &exchange->transport;
    err = listen_for_peers(exchange, options, why, why_size);
    if (err != LEAT_OK)
        leati_exchange_destroy(&made);
    else
        *transport = made;
    return err;
}

const char *leati_exchange_address(const leati_transport *transport)
{
    return ((const leati_exchange *)transport)->address;
}

void leati_exchange_set_cluster(leati_transport *transport, const char *cluster)
{
    leati_exchange *exchange = (leati_exchange *)transport;
    pthread_mutex_lock(&exchange->lock);
    memset(exchange->cluster, 0, sizeof exchange->cluster);
    snprintf(exchange->cluster, sizeof exchange->cluster, "%s", cluster);
    pthread_mutex_unlock(&exchange->lock);
}

void leati_exchange_destroy(leati_transport **transport)
{
    leati_exchange *exchange = (leati_exchange *)*transport;
    if (!exchange)
        return;
    *transport = NULL;
    leati_listener_destroy(&exchange->near);
    leati_listener_destroy(&exchange->listener);
    pthread_mutex_lock(&exchange->lock);
    exchange->stopping = true;
    exchange->poked = true;
    pthread_cond_signal(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
    pthread_join(exchange->housekeeper, NULL);
    free_exchange(exchange);
}

void leati_exchange_count(const leati_transport *transport, leati_exchange_counts *counts)
{
    const leati_exchange *exchange = (const leati_exchange *)transport;
    // Relaxed: figures, which order nothing.
    *counts = (leati_exchange_counts){
        .connections = atomic_load_explicit(&exchange->open_wires, memory_order_relaxed),
        .channels = atomic_load_explicit(&exchange->channels, memory_order_relaxed),
        .bytes_in = atomic_load_explicit(&exchange->bytes_in, memory_order_relaxed),
        .bytes_out = atomic_load_explicit(&exchange->bytes_out, memory_order_relaxed),
        .frames_in = atomic_load_explicit(&exchange->frames_in, memory_order_relaxed),
        .frames_out = atomic_load_explicit(&exchange->frames_out, memory_order_relaxed),
    };
}
