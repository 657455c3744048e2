// SPDX-License-Identifier: Apache-2.0
// The receiving half that speaks: how credit is granted, and what else is said of a stream that
// comes in. Whoever has the baton does this (connection_send.c); it owns the pools of received
// channels.
//
// It takes segments from them ahead of the data and says how many; the reader fills them in the
// order of the grants. So a sender can only send what there is a place for, and the reader never
// waits: data without a grant is a mistake of the peer.
//
// How much: a few segments always, and as many more as the sender has said to have queued. So a
// channel that is idle holds next to nothing, and what it was granted beyond that has been asked
// for and comes back by being used. Beyond what its ring has room for nothing is granted, less some
// slots for events, which need no credit.
#include "base/alloc.h"
#include "network/channel_impl.h"
#include "network/nng/exchange_impl.h"

enum { BATCH = 32 };

static uint32_t target_of(const leati_end *end)
{
    return end->steady + end->backlog;
}

// Granted, and told to the sender.
static uint32_t known_of(const leati_end *end)
{
    return end->outstanding - end->announce;
}

// Half of what was ready has been used.
static void adapt(leati_end *end, bool full)
{
    if (full)
        end->steady += end->steady < LEATI_RECEIVE_BUSY ? 2 : 0;
    else
        end->steady -= end->steady > LEATI_RECEIVE_STEADY ? 1 : 0;
}

leati_grant_need leati_receiver_used(leati_end *end, uint16_t backlog, bool full)
{
    end->outstanding--;
    end->backlog = backlog;
    leati_channel_set_backlog(end->channel, backlog);
    // Once on the way, and when the sender has nothing left.
    uint32_t known = known_of(end);
    if (known != 0 && known != target_of(end) / 2)
        return LEATI_GRANT_ENOUGH;
    adapt(end, full);
    return known == 0 ? LEATI_GRANT_NOW : LEATI_GRANT_SOON;
}

// How many are told at once: half of what the channel has at both ends of the wire, or of what the
// sender is to have. So it is told soon when it has used the little that an idle channel has, and a
// busy channel takes few frames, while as many as are told are still to be sent or read.
static uint32_t batch_of(const leati_end *end)
{
    uint32_t all = end->outstanding + leati_channel_length(end->channel);
    if (all > target_of(end))
        all = target_of(end);
    return all > 3 ? all / 2 : 1;
}

static uint32_t wanted(const leati_end *end)
{
    uint32_t room = leati_channel_room(end->channel);
    uint32_t most = room > end->margin ? room - end->margin : 0;
    if (most > end->grant_capacity)
        most = end->grant_capacity;
    if (most > target_of(end))
        most = target_of(end);
    return most > end->outstanding ? most - end->outstanding : 0;
}

static uint32_t take_segments(leati_local_pool *pool, uint32_t count, leati_segment **segments)
{
    uint32_t taken = 0;
    while (taken < count && taken < BATCH &&
           (segments[taken] = leati_local_pool_request(pool, false)) != NULL)
        taken++;
    return taken;
}

// Before looking once more: whoever brings home what is missing of a batch wakes the end from here
// on.
static void await_batch(leati_end *end, uint32_t announce)
{
    uint32_t batch = batch_of(end);
    leati_local_pool_await_many(end->pool, batch > announce ? batch - announce : 1);
}

// Under the lock, which is given up meanwhile. A sender that has credit is not waited for: what it
// sends is the next occasion, and if it sends nothing it needs none.
static void grant(leati_exchange_peer *peer, leati_end *end)
{
    leati_segment *segments[BATCH];
    bool registered = false;
    end->writing = true;
    for (;;) {
        uint32_t count = wanted(end), announce = end->announce;
        bool starves = known_of(end) == 0;
        leati_peer_unlock(peer);
        count = take_segments(end->pool, count, segments);
        bool again = count == 0 && starves && !registered;
        if (again)
            await_batch(end, announce);
        registered = again;
        pthread_mutex_lock(&peer->lock);
        for (uint32_t i = 0; i < count; i++)
            end->granted[(end->grant_first + end->grant_count++) % end->grant_capacity] =
                segments[i];
        end->outstanding += count;
        end->announce += count;
        if ((count == 0 && !again) || end->outstanding >= target_of(end))
            break;
    }
    end->writing = false;
    if (end->closing)
        pthread_cond_broadcast(&peer->changed);
}

// Nothing more will come: what was granted goes home. The same about the lock.
static void take_back(leati_exchange_peer *peer, leati_end *end)
{
    end->writing = true;
    while (end->grant_count > 0) {
        leati_segment *segment = end->granted[end->grant_first];
        end->grant_first = (end->grant_first + 1) % end->grant_capacity;
        end->grant_count--;
        end->outstanding--;
        leati_peer_unlock(peer);
        leati_segment_release(segment);
        pthread_mutex_lock(&peer->lock);
    }
    end->writing = false;
    if (end->closing)
        pthread_cond_broadcast(&peer->changed);
}

static void put_open(leati_wire *wire, leati_end *end)
{
    uint8_t payload[LEATI_OPEN_SIZE] = {0};
    leati_element_put_i64(payload, (int64_t)end->link->attempt);
    leati_element_put_i64(payload + 8, end->number);
    leati_frame frame = {
        .size = sizeof payload,
        .kind = LEATI_FRAME_OPEN,
        .channel = end->stream,
        .sequence = end->announce,
    };
    leati_wire_put(wire, &frame, payload);
}

// Says that the partition has come to its end, so that the sender may forget it.
static void confirm_end(leati_wire *wire, leati_exchange_peer *peer, leati_end *end)
{
    if (!end->finished || end->told || end->refused || end->closing || !end->opened ||
        peer->wire != wire)
        return;
    end->told = true;
    leati_frame frame = {.kind = LEATI_FRAME_CLOSE, .channel = end->stream};
    leati_wire_put(wire, &frame, NULL);
}

// What a CREDIT says of the size of segments, in units.
static uint16_t limit_of(const leati_end *end)
{
    uint32_t units = (leati_channel_limit(end->channel) + LEATI_LIMIT_UNIT - 1) / LEATI_LIMIT_UNIT;
    return units <= UINT16_MAX ? (uint16_t)units : 0;
}

static void put_credit(leati_wire *wire, const leati_end *end)
{
    // Relaxed: the reader counts it under the lock.
    uint32_t delivered = atomic_load_explicit(&end->sequence, memory_order_relaxed);
    uint8_t payload[LEATI_CREDIT_SIZE];
    for (int i = 0; i < LEATI_CREDIT_SIZE; i++)
        payload[i] = (uint8_t)(delivered >> 8 * i);
    leati_frame frame = {
        .size = sizeof payload,
        .kind = LEATI_FRAME_CREDIT,
        .more = limit_of(end),
        .channel = end->stream,
        .sequence = end->announce,
    };
    leati_wire_put(wire, &frame, payload);
}

bool leati_receiver_step(leati_wire *wire, leati_exchange_peer *peer, leati_end *end, leat_err *err)
{
    if (end->finished || end->broken || end->refused) {
        take_back(peer, end);
        confirm_end(wire, peer, end);
        return false;
    }
    grant(peer, end);
    if (end->closing || peer->wire != wire)
        return false;
    if (!end->opened) {
        *err = leati_inward_take(wire, end, &end->stream);
        if (*err != LEAT_OK) {
            end->state = LEATI_END_DEAD;
            return leati_link_claim(end->link);
        }
        end->opened = true;
        put_open(wire, end);
    } else if (end->announce >= batch_of(end)) {
        put_credit(wire, end);
    } else {
        return false;
    }
    end->announce = 0;
    return false;
}
