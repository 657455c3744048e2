// SPDX-License-Identifier: Apache-2.0
// What is due at a peer, for the housekeeper: to dial it, and to give up what has waited for it for
// too long.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "network/nng/exchange_impl.h"

enum { DIAL_PAUSE_MS = 25, DIAL_PAUSE_MAX_MS = 1000 }; // after a dialing that failed
// Of the connect timeout, what a socket file may take.
enum { NEAR_SHARE = 4 };

void leati_peer_dialing_failed(leati_exchange_peer *peer, const char *why)
{
    pthread_mutex_lock(&peer->lock);
    peer->dialing = false;
    if (peer->dials_near) {
        // The port is tried at once; only if that is not over in time it is this that is told.
        peer->passes_near = true;
        peer->dial_at_ns = 0;
        if (peer->dial_failures == 0)
            snprintf(peer->trouble, sizeof peer->trouble, "%s", why);
        leati_peer_unlock(peer);
        return;
    }
    int64_t pause_ms = (int64_t)DIAL_PAUSE_MS
                       << (peer->dial_failures < 8 ? peer->dial_failures : 8);
    peer->dial_failures++;
    peer->dial_at_ns =
        leati_clock_ns() + (pause_ms < DIAL_PAUSE_MAX_MS ? pause_ms : DIAL_PAUSE_MAX_MS) * 1000000;
    snprintf(peer->trouble, sizeof peer->trouble, "%s", why);
    leati_peer_unlock(peer);
}

// Which address is the next one, of those that the peer has. Nobody else dials it.
static bool choose_address(leati_exchange_peer *peer, const char *addresses,
                           char to[LEATI_EXCHANGE_ADDRESS_ONE])
{
    pthread_mutex_lock(&peer->lock);
    bool near = peer->exchange->near && !peer->passes_near;
    leati_peer_unlock(peer);
    near = leati_address_choose(addresses, near, to); // which looks at files
    pthread_mutex_lock(&peer->lock);
    peer->dials_near = near;
    peer->passes_near = false;
    leati_peer_unlock(peer);
    return near;
}

static void dial(leati_exchange_peer *peer, const char *addresses)
{
    leati_exchange *exchange = peer->exchange;
    char why[256], address[LEATI_EXCHANGE_ADDRESS_ONE];
    bool near = choose_address(peer, addresses, address);
    // Who does not answer there leaves time for the port. 0 would be no limit.
    int64_t timeout_ms =
        near ? exchange->connect_timeout_ms / NEAR_SHARE + 1 : exchange->connect_timeout_ms;
    leati_wire *wire = leati_wire_create(exchange, peer);
    if (!wire) {
        leati_peer_dialing_failed(peer, leat_err_message(LEAT_ENOMEM));
        return;
    }
    leati_connection_options options = {
        .allocator = exchange->allocator,
        .address = address,
        .auth = exchange->auth,
        .dial_timeout_ms = timeout_ms,
        .hello_timeout_ms = timeout_ms,
        .frame_max = exchange->segment_size,
        .hooks = &leati_wire_hooks,
        .user = wire,
    };
    leati_exchange_hello(exchange, &options.hello);
    pthread_mutex_lock(&exchange->lock);
    peer->references++; // the wire's
    pthread_mutex_unlock(&exchange->lock);
    leat_err err = leati_connection_dial(&options, &wire->connection, why, sizeof why);
    if (err == LEAT_OK)
        return;
    leati_peer_dialing_failed(peer, why);
    leati_exchange_drop_peer(peer);
    pthread_mutex_lock(&exchange->lock);
    wire->over = true; // there is no connection to be destroyed
    exchange->poked = true;
    pthread_mutex_unlock(&exchange->lock);
}

// Ends whose time is over. Returns when the next one is due; under the lock.
static int64_t give_up_waiting(leati_exchange_peer *peer, int64_t now_ns, leati_link **failed)
{
    leati_end *end = peer->lists[LEATI_LIST_ALL].first;
    for (; end; end = end->next[LEATI_LIST_ALL]) {
        if (end->state != LEATI_END_WAITING)
            continue;
        if (end->deadline_ns > now_ns)
            return end->deadline_ns; // they are in the order of their deadlines
        end->state = LEATI_END_DEAD;
        if (!end->closing && leati_link_claim(end->link)) {
            end->link->failed_process = end->process;
            end->link->next_failed = *failed;
            *failed = end->link;
        }
    }
    pthread_cond_broadcast(&peer->changed);
    return INT64_MAX;
}

// Channels that were opened and that nobody here has known for so long.
static int64_t refuse_unknown(leati_exchange_peer *peer, int64_t now_ns)
{
    leati_wire *wire = peer->wire;
    int64_t patience_ns =
        peer->exchange->connect_timeout_ms * LEATI_PEER_PATIENCE * (int64_t)1000000;
    bool any = false;
    while (wire->pending.first != LEATI_NO_STREAM) {
        uint32_t stream = wire->pending.first;
        int64_t due_ns = wire->outward[stream].since_ns + patience_ns;
        if (due_ns > now_ns)
            break;
        leati_outward_close(wire, stream, LEATI_CLOSED_UNKNOWN);
        any = true;
    }
    if (any)
        leati_peer_kick(peer);
    return wire->pending.first == LEATI_NO_STREAM
               ? INT64_MAX
               : wire->outward[wire->pending.first].since_ns + patience_ns;
}

static void report_unreached(leati_exchange_peer *peer, leati_link *failed)
{
    char trouble[sizeof peer->trouble] = "";
    pthread_mutex_lock(&peer->lock);
    if (peer->we_dial)
        memcpy(trouble, peer->trouble, sizeof trouble);
    leati_peer_unlock(peer);
    while (failed) {
        leati_link *link = failed;
        failed = link->next_failed;
        uint32_t process = link->failed_process;
        if (*trouble)
            leati_link_report(link, LEAT_EIO, "no connection to %s: %s", link->names[process],
                              trouble);
        else
            leati_link_report(link, LEAT_EIO,
                              "no connection to %s (%s): it has not connected within %lld ms",
                              link->names[process], link->addresses[process],
                              (long long)peer->exchange->connect_timeout_ms * LEATI_PEER_PATIENCE);
    }
}

int64_t leati_exchange_tend(leati_exchange_peer *peer, int64_t now_ns)
{
    leati_link *failed = NULL;
    char addresses[LEATI_EXCHANGE_ADDRESS];
    bool dials = false;
    pthread_mutex_lock(&peer->lock);
    int64_t due_ns;
    if (peer->wire) {
        due_ns = refuse_unknown(peer, now_ns);
        int64_t watch_ns = leati_wire_watch(peer, now_ns);
        if (watch_ns < due_ns)
            due_ns = watch_ns;
    } else {
        due_ns = give_up_waiting(peer, now_ns, &failed);
        if (due_ns != INT64_MAX && peer->we_dial && !peer->dialing) {
            dials = peer->dial_at_ns <= now_ns;
            if (!dials && peer->dial_at_ns < due_ns)
                due_ns = peer->dial_at_ns;
        }
        peer->dialing |= dials;
        snprintf(addresses, sizeof addresses, "%s", peer->address ? peer->address : "");
    }
    leati_peer_unlock(peer);
    report_unreached(peer, failed);
    if (dials)
        dial(peer, addresses);
    return due_ns;
}
