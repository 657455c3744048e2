// SPDX-License-Identifier: Apache-2.0
// Signs of life on the connections between task managers.
//
// TCP takes a quarter of an hour to find out that what it sends does not arrive, and never does for
// who only receives; and a network may fail between two task managers while the job manager still
// hears both. So each side sends a frame of its own at an interval, whatever else it sends, and
// gives up who has sent nothing for longer. Any bytes count, also those of a frame that is not yet
// complete: a large one may take its time on a slow line. It does not wait for an answer, as that
// could be stuck behind much data.
#include <inttypes.h>
#include <stdio.h>

#include "network/nng/exchange_impl.h"

void leati_exchange_set_silence(leati_transport *transport, int64_t interval_ms, int64_t silence_ms)
{
    leati_exchange *exchange = (leati_exchange *)transport;
    atomic_store_explicit(&exchange->sign_interval_ns, interval_ms * 1000000, memory_order_relaxed);
    atomic_store_explicit(&exchange->silence_ns, silence_ms * 1000000, memory_order_relaxed);
    leati_exchange_poke(exchange);
}

static void note_silence(leati_wire *wire, const leati_connection *connection, int64_t now_ns,
                         int64_t interval_ns)
{
    uint64_t heard = leati_connection_heard(connection);
    // The time in which this process was stopped itself says nothing about the other one.
    int64_t passed_ns = now_ns - wire->watched_ns;
    if (passed_ns > 2 * interval_ns)
        passed_ns = 2 * interval_ns;
    if (wire->watched_ns == 0 || heard != wire->heard)
        wire->silent_ns = 0;
    else
        wire->silent_ns += passed_ns;
    wire->heard = heard;
    wire->watched_ns = now_ns;
}

int64_t leati_wire_watch(leati_exchange_peer *peer, int64_t now_ns)
{
    leati_wire *wire = peer->wire;
    int64_t interval_ns =
        atomic_load_explicit(&peer->exchange->sign_interval_ns, memory_order_relaxed);
    int64_t silence_ns = atomic_load_explicit(&peer->exchange->silence_ns, memory_order_relaxed);
    if (silence_ns == 0 || interval_ns == 0)
        return INT64_MAX;
    note_silence(wire, peer->connection, now_ns, interval_ns);
    if (wire->silent_ns > silence_ns) {
        char why[256];
        snprintf(why, sizeof why, "%s has been silent for %" PRId64 " ms",
                 leati_connection_peer(peer->connection), wire->silent_ns / 1000000);
        leati_connection_close(peer->connection, LEAT_EIO, why);
        return INT64_MAX;
    }
    if (now_ns >= wire->sign_due_ns) {
        wire->sign_due_ns = now_ns + interval_ns;
        wire->owes_sign = true;
        leati_peer_kick(peer);
    }
    return wire->sign_due_ns;
}
