// SPDX-License-Identifier: Apache-2.0
// Peers: other processes, the wire to each, and the ends of channels that use it.
//
// Both sides register their ends whenever they deploy; who has the smaller id dials. An end that
// finds no wire waits for one until its deadline.
//
// A wire that is lost takes with it what was under way, so the jobs whose channels have sent or
// received anything fail. A channel that has not begun waits for the next wire: it may have been
// opened on a wire that was dead already, as after a pause of the network, without anybody knowing.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "network/nng/exchange_impl.h"

// --- lists ---

void leati_end_append(leati_exchange_peer *peer, leati_end *end, int list)
{
    if (end->in_list[list])
        return;
    end->in_list[list] = true;
    leati_end_list *to = &peer->lists[list];
    end->next[list] = NULL;
    end->previous[list] = to->last;
    if (to->last)
        to->last->next[list] = end;
    else
        to->first = end;
    to->last = end;
}

void leati_end_remove(leati_exchange_peer *peer, leati_end *end, int list)
{
    if (!end->in_list[list])
        return;
    end->in_list[list] = false;
    leati_end_list *from = &peer->lists[list];
    if (end->previous[list])
        end->previous[list]->next[list] = end->next[list];
    else
        from->first = end->next[list];
    if (end->next[list])
        end->next[list]->previous[list] = end->previous[list];
    else
        from->last = end->previous[list];
}

// --- the writer ---

void leati_peer_kick(leati_exchange_peer *peer)
{
    _Atomic uint32_t *word = leati_connection_mark(peer->connection);
    if (word)
        peer->to_wake = word;
}

void leati_peer_wake(leati_exchange_peer *peer)
{
    if (peer->to_wake)
        leati_futex_wake(peer->to_wake);
    peer->to_wake = NULL;
}

void leati_peer_unlock(leati_exchange_peer *peer)
{
    _Atomic uint32_t *word = peer->to_wake;
    peer->to_wake = NULL;
    pthread_mutex_unlock(&peer->lock);
    if (word)
        leati_futex_wake(word);
}

void leati_end_ready_quietly(leati_exchange_peer *peer, leati_end *end)
{
    if (end->state == LEATI_END_BOUND && !end->closing)
        leati_end_append(peer, end, LEATI_LIST_READY);
}

void leati_end_ready(leati_exchange_peer *peer, leati_end *end)
{
    if (end->state != LEATI_END_BOUND || end->closing)
        return;
    leati_end_append(peer, end, LEATI_LIST_READY);
    leati_peer_kick(peer);
}

bool leati_end_ready_soon(leati_exchange_peer *peer, leati_end *end)
{
    if (end->state != LEATI_END_BOUND || end->closing)
        return false;
    leati_end_append(peer, end, LEATI_LIST_READY);
    uint32_t most = peer->wire->inward_count / LEATI_SOON_SHARE;
    return ++peer->soon >= (most < LEATI_SOON_MOST ? most : LEATI_SOON_MOST);
}

// --- peers ---

static leati_exchange_peer *create_peer(leati_exchange *exchange, const char *id)
{
    leati_exchange_peer *peer = leati_calloc(exchange->allocator, 1, sizeof *peer);
    if (!peer)
        return NULL;
    *peer = (leati_exchange_peer){
        .exchange = exchange,
        .id = leati_strdup(exchange->allocator, id),
        .we_dial = strcmp(exchange->process, id) < 0,
    };
    if (!peer->id) {
        leati_free(exchange->allocator, peer);
        return NULL;
    }
    pthread_mutex_init(&peer->lock, NULL);
    leati_cond_init(&peer->changed);
    return peer;
}

void leati_exchange_free_peer(leati_exchange_peer *peer)
{
    const leat_allocator *allocator = peer->exchange->allocator;
    pthread_cond_destroy(&peer->changed);
    pthread_mutex_destroy(&peer->lock);
    leati_free(allocator, peer->address);
    leati_free(allocator, peer->id);
    leati_free(allocator, peer);
}

leati_exchange_peer *leati_exchange_find_peer(leati_exchange *exchange, const char *id,
                                              const char *address)
{
    pthread_mutex_lock(&exchange->lock);
    leati_exchange_peer *peer = exchange->peers;
    while (peer && strcmp(peer->id, id) != 0)
        peer = peer->next;
    if (!peer && (peer = create_peer(exchange, id)) != NULL) {
        peer->next = exchange->peers;
        exchange->peers = peer;
    }
    if (peer)
        peer->references++;
    pthread_mutex_unlock(&exchange->lock);
    if (!peer || !address)
        return peer;
    char *copy = leati_strdup(exchange->allocator, address);
    if (!copy) {
        leati_exchange_drop_peer(peer);
        return NULL;
    }
    pthread_mutex_lock(&peer->lock);
    char *old = peer->address;
    peer->address = copy;
    leati_peer_unlock(peer);
    leati_free(exchange->allocator, old);
    return peer;
}

void leati_exchange_drop_peer(leati_exchange_peer *peer)
{
    leati_exchange *exchange = peer->exchange;
    pthread_mutex_lock(&exchange->lock);
    if (--peer->references == 0) {
        exchange->poked = true;
        pthread_cond_signal(&exchange->changed);
    }
    pthread_mutex_unlock(&exchange->lock);
}

// --- ends and wires ---

void leati_sender_opened(leati_exchange_peer *peer, leati_end *end, uint32_t stream)
{
    leati_outward_bind(peer->wire, stream, end);
    end->stream = stream;
    end->opened = true;
    // Relaxed: the writer looks at the end under the lock first; the time is for people.
    atomic_store_explicit(&end->credit, peer->wire->outward[stream].credit, memory_order_relaxed);
    atomic_store_explicit(&end->starved_since, 0, memory_order_relaxed);
    leati_end_ready_quietly(peer, end);
}

// The end can use the peer's wire.
static void bind(leati_exchange_peer *peer, leati_end *end)
{
    end->state = LEATI_END_BOUND;
    if (!end->sends) {
        leati_end_ready(peer, end); // to say OPEN
        return;
    }
    uint32_t stream = leati_outward_find(peer->wire, end->link->attempt, end->number);
    if (stream == LEATI_NO_STREAM) {
        leati_end_append(peer, end, LEATI_LIST_UNOPENED);
        return;
    }
    leati_sender_opened(peer, end, stream);
    leati_peer_kick(peer);
}

// Until when the peer has to be there.
static int64_t deadline_of(const leati_exchange_peer *peer)
{
    // Who waits to be dialled waits for the other side to deploy, too.
    int64_t patience = peer->we_dial ? 1 : LEATI_PEER_PATIENCE;
    return leati_clock_ns() + peer->exchange->connect_timeout_ms * patience * 1000000;
}

void leati_exchange_register(leati_exchange_peer *peer, leati_end *end)
{
    leati_exchange *exchange = peer->exchange;
    pthread_mutex_lock(&peer->lock);
    // Release: pairs with the load by whoever wakes it.
    atomic_store_explicit(&end->peer, peer, memory_order_release);
    end->deadline_ns = deadline_of(peer);
    end->state = LEATI_END_WAITING;
    leati_end_append(peer, end, LEATI_LIST_ALL);
    bool waits = !peer->wire;
    if (!waits)
        bind(peer, end);
    leati_peer_unlock(peer);
    atomic_fetch_add_explicit(&exchange->channels, 1, memory_order_relaxed); // a figure
    if (waits)
        leati_exchange_poke(exchange);
}

leati_wire *leati_wire_create(leati_exchange *exchange, leati_exchange_peer *dialed)
{
    leati_wire *wire = leati_calloc(exchange->allocator, 1, sizeof *wire);
    if (!wire)
        return NULL;
    wire->exchange = exchange;
    wire->dialed = dialed;
    wire->inward_free = LEATI_NO_STREAM;
    wire->inward_owing = wire->outward_owing = wire->pending =
        (leati_stream_list){LEATI_NO_STREAM, LEATI_NO_STREAM};
    pthread_mutex_lock(&exchange->lock);
    bool stopping = exchange->stopping;
    if (!stopping) {
        wire->next = exchange->wires;
        exchange->wires = wire;
    }
    pthread_mutex_unlock(&exchange->lock);
    if (stopping) {
        leati_free(exchange->allocator, wire);
        return NULL;
    }
    return wire;
}

void leati_wire_free(leati_wire *wire)
{
    const leat_allocator *allocator = wire->exchange->allocator;
    leati_free(allocator, wire->inward);
    leati_free(allocator, wire->outward);
    leati_free(allocator, wire->trash);
    leati_free(allocator, wire);
}

// --- the hooks of a wire that are about its life ---

static bool fits(leati_exchange *exchange, const leati_wire *wire, const leati_hello *peer,
                 char *why, size_t why_size)
{
    char cluster[LEATI_HELLO_TEXT];
    pthread_mutex_lock(&exchange->lock);
    memcpy(cluster, exchange->cluster, sizeof cluster);
    pthread_mutex_unlock(&exchange->lock);
    if (*cluster && *peer->cluster && strcmp(cluster, peer->cluster) != 0) {
        snprintf(why, why_size, "task manager %s is of cluster %s, this one is of cluster %s",
                 peer->process, peer->cluster, cluster);
        return false;
    }
    if (wire->dialed && strcmp(wire->dialed->id, peer->process) != 0) {
        snprintf(why, why_size, "task manager %s answers where %s was expected", peer->process,
                 wire->dialed->id);
        return false;
    }
    if (!wire->dialed && strcmp(peer->process, exchange->process) >= 0) {
        snprintf(why, why_size, "task manager %s has dialed, and not waited for %s to do it",
                 peer->process, exchange->process);
        return false;
    }
    return true;
}

static bool can_move(const leati_end *end)
{
    // Relaxed: what changes it holds the end.
    bool begun = end->writing || end->reading || end->refused ||
                 atomic_load_explicit(&end->sequence, memory_order_relaxed) > 0;
    return !begun && end->moves < LEATI_END_MOVES;
}

// Back to where it was before it had a wire.
static void wait_again(leati_end *end, int64_t deadline_ns)
{
    end->moves++;
    end->state = LEATI_END_WAITING;
    end->deadline_ns = deadline_ns;
    end->opened = false;
    end->announce = end->outstanding;
    atomic_store_explicit(&end->credit, 0, memory_order_relaxed); // nobody else has to do with it
}

static uint32_t count_unconfirmed(const leati_exchange_peer *peer, const leati_link *link)
{
    uint32_t count = 0;
    const leati_end *end = peer->lists[LEATI_LIST_ALL].first;
    for (; end; end = end->next[LEATI_LIST_ALL])
        if (end->link == link && end->sends)
            count += atomic_load_explicit(&end->sequence, memory_order_relaxed) - end->delivered;
    return count;
}

// Ends that use the peer's wire cannot go on with it. Returns the links that their failure is to be
// reported to. A peer that talks nonsense would do so on the next wire too. Under the lock.
static leati_link *detach(leati_exchange_peer *peer, leat_err err)
{
    leati_link *failed = NULL;
    int64_t deadline_ns = deadline_of(peer);
    leati_end *end = peer->lists[LEATI_LIST_ALL].first;
    for (; end; end = end->next[LEATI_LIST_ALL]) {
        if (end->state != LEATI_END_BOUND)
            continue;
        leati_end_remove(peer, end, LEATI_LIST_READY);
        leati_end_remove(peer, end, LEATI_LIST_UNOPENED);
        if (err != LEAT_ECORRUPT && can_move(end)) {
            wait_again(end, deadline_ns);
            continue;
        }
        end->state = LEATI_END_DEAD;
        bool complete = !end->sends && end->finished;
        if (!complete && !end->closing && leati_link_claim(end->link)) {
            end->link->unconfirmed = count_unconfirmed(peer, end->link);
            end->link->failed_process = end->process;
            end->link->next_failed = failed;
            failed = end->link;
        }
    }
    peer->wire = NULL;
    peer->connection = NULL;
    pthread_cond_broadcast(&peer->changed);
    atomic_fetch_sub_explicit(&peer->exchange->open_wires, 1, memory_order_relaxed); // a figure
    return failed;
}

static void report_lost(leati_link *failed, leat_err err, const char *why)
{
    while (failed) {
        leati_link *link = failed;
        failed = link->next_failed; // before the report, after which the link may be closed
        char lost[80] = "";
        if (link->unconfirmed > 0)
            snprintf(lost, sizeof lost, " (%" PRIu32 " buffers sent to it are not confirmed)",
                     link->unconfirmed);
        leati_link_report(link, err, "the connection to %s was lost: %s%s; told by %s",
                          link->names[link->failed_process], why, lost, link->names[link->self]);
    }
}

static void opened(leati_connection *connection, void *user, const leati_hello *hello)
{
    leati_wire *wire = user;
    leati_exchange *exchange = wire->exchange;
    char why[4 * LEATI_HELLO_TEXT];
    if (!fits(exchange, wire, hello, why, sizeof why)) {
        leati_connection_close(connection, LEAT_EINVAL, why);
        return;
    }
    leati_exchange_peer *peer = leati_exchange_find_peer(exchange, hello->process, NULL);
    if (!peer) {
        leati_connection_close(connection, LEAT_ENOMEM, NULL);
        return;
    }
    leati_link *failed = NULL;
    const char *again = "it has connected again";
    leati_near_widen(leati_connection_peer(connection));
    pthread_mutex_lock(&peer->lock);
    // The other side dials only when it has given up the connection that was.
    if (peer->wire) {
        leati_connection_close(peer->connection, LEAT_EIO, again);
        failed = detach(peer, LEAT_EIO);
    }
    // Release: pairs with the loads of the wire's writer and reader.
    atomic_store_explicit(&wire->peer, peer, memory_order_release);
    peer->wire = wire;
    peer->connection = connection;
    peer->dialing = false;
    peer->dial_failures = 0;
    atomic_fetch_add_explicit(&exchange->open_wires, 1, memory_order_relaxed); // a figure
    leati_end *end = peer->lists[LEATI_LIST_ALL].first;
    for (; end; end = end->next[LEATI_LIST_ALL])
        if (end->state == LEATI_END_WAITING)
            bind(peer, end);
    leati_peer_unlock(peer);
    leati_exchange_poke(exchange); // to watch it
    report_lost(failed, LEAT_EIO, again);
}

static void closed(leati_connection *connection, void *user, leat_err err, const char *why)
{
    leati_wire *wire = user;
    leati_exchange *exchange = wire->exchange;
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_relaxed); // our own
    if (peer) {
        leati_link *failed = NULL;
        // Before their ends are let go, whose pools they go home to.
        if (wire->segment)
            leati_segment_release(wire->segment);
        leati_wire_release_taken(wire);
        leati_wire_let_go(wire, peer);
        pthread_mutex_lock(&peer->lock);
        if (peer->wire == wire)
            failed = detach(peer, err);
        leati_wire_drop_flights(wire, peer);
        if (wire->reading)
            wire->reading->reading = false;
        wire->reading = NULL;
        pthread_cond_broadcast(&peer->changed);
        leati_peer_unlock(peer);
        report_lost(failed, err, why);
        leati_exchange_drop_peer(peer);
    }
    if (wire->dialed) {
        if (!peer)
            leati_peer_dialing_failed(wire->dialed, why);
        leati_exchange_drop_peer(wire->dialed);
    } else if (!peer && exchange->refused && err != LEAT_ECLOSED && err != LEAT_ECANCELLED) {
        exchange->refused(exchange->user, why);
    }
    pthread_mutex_lock(&exchange->lock);
    wire->over = true;
    exchange->poked = true;
    pthread_cond_signal(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
}

const leati_connection_hooks leati_wire_hooks = {
    .opened = opened,
    .place = leati_wire_place,
    .arrived = leati_wire_arrived,
    .settle = leati_wire_settle,
    .fill = leati_wire_fill,
    .sent = leati_wire_sent,
    .closed = closed,
};
