// SPDX-License-Identifier: Apache-2.0
// What a wire's writer does: it serves the ends that are ready, in turn, and makes one send of what
// they have.
//
// A send is a row of parts. Headers and small frames, small chunks of data among them, are in the
// wire's scratch; a larger chunk is sent from where it lies, one of a channel a send, so that none
// can keep the others waiting. An end that has something in the send stays pinned until that has
// been handed to the system; only then the channel is advanced past the larger chunk, which lets
// the segment go home.
//
// A sender without credit puts its channel back and is looked at again when credit comes, or an
// event that overtakes.
#include <string.h>

#include "base/thread.h"
#include "network/nng/exchange_impl.h"

// --- parts ---

bool leati_wire_has_room(const leati_wire *wire, uint32_t size)
{
    return sizeof wire->scratch - wire->scratch_used >= LEATI_FRAME_SIZE + size;
}

static void cut(leati_wire *wire)
{
    if (wire->scratch_used == wire->scratch_cut)
        return;
    wire->parts[wire->part_count++] = (leati_part){
        .data = wire->scratch + wire->scratch_cut,
        .size = wire->scratch_used - wire->scratch_cut,
    };
    wire->scratch_cut = wire->scratch_used;
}

void leati_wire_put(leati_wire *wire, const leati_frame *frame, const uint8_t *payload)
{
    leati_frame_put(frame, wire->scratch + wire->scratch_used);
    wire->scratch_used += LEATI_FRAME_SIZE;
    if (payload) {
        memcpy(wire->scratch + wire->scratch_used, payload, frame->size);
        wire->scratch_used += frame->size;
    }
    // Relaxed: a figure.
    atomic_fetch_add_explicit(&wire->exchange->frames_out, 1, memory_order_relaxed);
}

// For another end: a chunk takes a part of its own, and so may the frames before and after it.
static bool takes_more(const leati_wire *wire)
{
    return wire->part_count + 3 <= LEATI_CONNECTION_PARTS &&
           leati_wire_has_room(wire, LEATI_EVENT_SIZE);
}

// --- a sender's turn ---

static void put_event(leati_wire *wire, leati_end *end, const leati_event *event)
{
    uint8_t payload[LEATI_EVENT_SIZE] = {event->tag, event->priority};
    payload[2] = (uint8_t)event->options;
    payload[3] = (uint8_t)(event->options >> 8);
    leati_element_put_i64(payload + 8, (int64_t)event->checkpoint);
    leati_element_put_i64(payload + 16, event->timestamp);
    leati_frame frame = {
        .size = sizeof payload,
        .kind = LEATI_FRAME_EVENT,
        .channel = end->stream,
        .sequence = end->sequence++,
    };
    leati_wire_put(wire, &frame, payload);
}

// How much more is queued, so that the receiver may grant as much. The chunk is in one of the slots
// that are counted.
static uint16_t backlog_of(const leati_end *end)
{
    uint32_t length = leati_channel_length(end->channel);
    uint32_t more = length > 0 ? length - 1 : 0;
    return more < UINT16_MAX ? (uint16_t)more : UINT16_MAX;
}

// Takes one credit, or tells that there is none.
static bool take_credit(leati_end *end)
{
    // Acquire: pairs with the reader's addition. Nobody but this thread takes.
    if (atomic_load_explicit(&end->credit, memory_order_acquire) == 0) {
        // Relaxed: it is for people.
        if (atomic_load_explicit(&end->starved_since, memory_order_relaxed) == 0)
            atomic_store_explicit(&end->starved_since, leati_clock_ns(), memory_order_relaxed);
        return false;
    }
    atomic_fetch_sub_explicit(&end->credit, 1, memory_order_relaxed);
    if (atomic_load_explicit(&end->starved_since, memory_order_relaxed) != 0)
        atomic_store_explicit(&end->starved_since, 0, memory_order_relaxed);
    return true;
}

// Returns whether the chunk was copied.
static bool put_chunk(leati_wire *wire, leati_end *end, const leati_chunk *chunk)
{
    leati_frame frame = {
        .size = chunk->size,
        .kind = LEATI_FRAME_DATA,
        .more = backlog_of(end),
        .channel = end->stream,
        .sequence = end->sequence++,
    };
    if (chunk->size <= LEATI_WIRE_COPIED && leati_wire_has_room(wire, chunk->size)) {
        leati_wire_put(wire, &frame, chunk->data);
        return true;
    }
    leati_wire_put(wire, &frame, NULL);
    cut(wire);
    wire->parts[wire->part_count++] = (leati_part){.data = chunk->data, .size = chunk->size};
    return false;
}

typedef struct turn {
    leati_flight flight;
    bool used;  // there is something of it in the send
    bool again; // there was no room for more
    leati_chunk_kind failed;
} turn;

// Takes what the channel, which was polled, has, up to its first larger chunk. Returns whether
// the gate has to be given back now, and with `more` or not.
static bool take_from(leati_wire *wire, leati_end *end, turn *this, bool *more)
{
    leati_chunk chunk;
    *more = true;
    for (;;) {
        if (!takes_more(wire)) {
            this->again = true;
            return true;
        }
        leati_chunk_kind kind = leati_channel_peek(end->channel, &chunk);
        switch (kind) {
        case LEATI_CHUNK_EVENT:
            put_event(wire, end, &chunk.event);
            this->used = true;
            this->flight.finishes |= chunk.event.tag == LEATI_TAG_END_OF_PARTITION;
            break;
        case LEATI_CHUNK_DATA:
            if (!take_credit(end))
                return true;
            this->used = true;
            if (!put_chunk(wire, end, &chunk)) {
                this->flight.size = chunk.size;
                return false;
            }
            leati_channel_advance(end->channel, chunk.size);
            break;
        case LEATI_CHUNK_NONE:
            *more = false;
            return true;
        case LEATI_CHUNK_FAILED:
        case LEATI_CHUNK_NO_MEMORY:
            this->failed = kind;
            return true;
        }
    }
}

// Every turn polls and gives back the gate, which is what takes note of priority events.
static turn step_sender(leati_wire *wire, leati_end *end)
{
    turn this = {.flight = {.end = end}};
    while (leati_gate_poll(end->gate)) {
        bool more;
        if (!take_from(wire, end, &this, &more))
            return this;
        leati_gate_done(end->gate, end->channel, more);
        if (more)
            return this;
        // What came meanwhile has put it back in line.
    }
    return this;
}

// --- a send ---

static void put_owed(leati_wire *wire)
{
    if (wire->owes_sign) {
        leati_wire_put(wire, &(leati_frame){.kind = LEATI_FRAME_ALIVE}, NULL);
        wire->owes_sign = false;
    }
    while (takes_more(wire)) {
        uint32_t stream = leati_inward_pop_owing(wire);
        if (stream == LEATI_NO_STREAM)
            break;
        leati_frame frame = {.kind = LEATI_FRAME_CLOSE, .channel = stream};
        leati_wire_put(wire, &frame, NULL);
    }
    while (takes_more(wire)) {
        uint32_t stream = leati_outward_pop_owing(wire);
        if (stream == LEATI_NO_STREAM)
            break;
        leati_frame frame = {
            .kind = LEATI_FRAME_CLOSED,
            .more = wire->outward[stream].reason,
            .channel = stream,
        };
        leati_wire_put(wire, &frame, NULL);
        leati_outward_free(wire, stream);
    }
}

static void let_go(leati_exchange_peer *peer, leati_end *end)
{
    end->writing = false;
    if (end->closing)
        pthread_cond_broadcast(&peer->changed);
}

// Under the lock, which is given up meanwhile.
static void serve_sender(leati_wire *wire, leati_exchange_peer *peer, leati_end *end)
{
    if (!end->opened) {
        // The receiver is not there yet. Relaxed: it is for people.
        if (atomic_load_explicit(&end->starved_since, memory_order_relaxed) == 0)
            atomic_store_explicit(&end->starved_since, leati_clock_ns(), memory_order_relaxed);
        return;
    }
    end->writing = true;
    pthread_mutex_unlock(&peer->lock);
    turn this = step_sender(wire, end);
    pthread_mutex_lock(&peer->lock);
    bool mine = this.failed && leati_link_claim(end->link);
    leati_link *link = end->link;
    uint32_t process = end->process;
    // Before it is sent: the receiver may close on it before this thread learns that it was.
    end->ending |= this.flight.finishes;
    if (this.used)
        wire->flights[wire->flight_count++] = this.flight;
    else
        let_go(peer, end);
    if (this.again)
        leati_end_ready(peer, end);
    if (!mine)
        return;
    pthread_mutex_unlock(&peer->lock);
    bool memory = this.failed == LEATI_CHUNK_NO_MEMORY;
    leati_link_report(link, memory ? LEAT_ENOMEM : LEAT_EIO,
                      memory ? "no memory for what is kept in a file for %s"
                             : "what is kept in a file for %s cannot be read",
                      link->names[process]);
    pthread_mutex_lock(&peer->lock);
}

static void serve_receiver(leati_wire *wire, leati_exchange_peer *peer, leati_end *end)
{
    leat_err err;
    leati_link *link = end->link;
    uint32_t process = end->process;
    if (!leati_receiver_step(wire, peer, end, &err))
        return;
    pthread_mutex_unlock(&peer->lock);
    leati_link_report(link, err, "a channel from %s cannot be opened: %s", link->names[process],
                      leat_err_message(err));
    pthread_mutex_lock(&peer->lock);
}

size_t leati_wire_fill(leati_connection *connection, void *user,
                       leati_part parts[LEATI_CONNECTION_PARTS])
{
    leati_wire *wire = user;
    // Acquire: pairs with the store when the wire opened.
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_acquire);
    if (!peer)
        return 0;
    wire->parts = parts;
    wire->part_count = wire->scratch_used = wire->scratch_cut = 0;
    pthread_mutex_lock(&peer->lock);
    if (peer->wire == wire)
        put_owed(wire);
    // The wire may be replaced while the lock is given up.
    while (peer->wire == wire && takes_more(wire)) {
        leati_end *end = peer->lists[LEATI_LIST_READY].first;
        if (!end)
            break;
        leati_end_remove(peer, end, LEATI_LIST_READY);
        if (end->writing)
            continue; // it is in this send; what comes after that looks at it again
        if (end->sends)
            serve_sender(wire, peer, end);
        else
            serve_receiver(wire, peer, end);
    }
    pthread_mutex_unlock(&peer->lock);
    cut(wire);
    return wire->part_count;
}

void leati_wire_sent(leati_connection *connection, void *user)
{
    leati_wire *wire = user;
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_acquire);
    uint64_t bytes = wire->scratch_used;
    for (uint32_t i = 0; i < wire->flight_count; i++) {
        const leati_flight *flight = &wire->flights[i];
        if (flight->size == 0)
            continue;
        bytes += flight->size;
        leati_channel_advance(flight->end->channel, flight->size);
        leati_gate_done(flight->end->gate, flight->end->channel, true);
    }
    // Relaxed: a figure.
    atomic_fetch_add_explicit(&wire->exchange->bytes_out, bytes, memory_order_relaxed);
    if (wire->flight_count == 0)
        return;
    pthread_mutex_lock(&peer->lock);
    for (uint32_t i = 0; i < wire->flight_count; i++) {
        leati_end *end = wire->flights[i].end;
        end->progress++;
        end->finished |= wire->flights[i].finishes;
        end->writing = false;
        leati_end_ready(peer, end);
    }
    wire->flight_count = 0;
    pthread_cond_broadcast(&peer->changed); // close may wait for any of it
    pthread_mutex_unlock(&peer->lock);
}

void leati_wire_drop_flights(leati_wire *wire, leati_exchange_peer *peer)
{
    for (uint32_t i = 0; i < wire->flight_count; i++)
        let_go(peer, wire->flights[i].end);
    wire->flight_count = 0;
}
