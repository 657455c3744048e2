// SPDX-License-Identifier: Apache-2.0
// What a wire's writer does: it serves the ends that are ready, in turn, and makes one send of what
// they have.
//
// A send is a row of parts. A chunk of some size is a part of its own and is sent from where it
// lies, with its header in front of it: in the segment's head-room, or where bytes were that have
// been sent before. Small frames, small chunks of data among them, are copied into the wire's
// scratch, which makes one part of all those in a row; so are the headers of chunks whose segments
// other channels have too.
//
// A segment that is finished is taken from its channel, so a channel can have several in a send;
// while others are ready it has one, so that none can keep the others waiting. A segment that still
// grows can only be the last of its channel: the channel is advanced past the chunk when that has
// been handed to the system. An end that has something in the send stays pinned until then.
//
// A growing segment that is flushed is not closed, as a small chunk costs the same copy either way
// and one that is closed costs its memory, which at the low rates at which flushes find little is
// most of a segment. The receiver gets each piece in a segment of its own.
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
    wire->frame_count++;
}

// Besides the one for what is in the scratch already.
static uint32_t parts_left(const leati_wire *wire)
{
    uint32_t open = wire->scratch_used > wire->scratch_cut ? 1 : 0;
    return LEATI_CONNECTION_PARTS - wire->part_count - open;
}

// For a small frame, or a chunk with its header in front.
static bool takes_more(const leati_wire *wire)
{
    return parts_left(wire) > 0 && leati_wire_has_room(wire, LEATI_EVENT_SIZE);
}

// --- a sender's turn ---

// Relaxed: who compares it with what the peer has told takes the peer's lock, as this thread does
// before it sends the frame.
static uint32_t next_sequence(leati_end *end)
{
    uint32_t sequence = atomic_load_explicit(&end->sequence, memory_order_relaxed);
    atomic_store_explicit(&end->sequence, sequence + 1, memory_order_relaxed);
    return sequence;
}

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
        .sequence = next_sequence(end),
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

typedef struct turn {
    leati_flight flight;
    uint32_t segments; // that it may still take
    bool used;         // there is something of it in the send
    bool finishes;     // the end of the partition is among it
    bool again;        // there was no room for more
    bool full;         // because of the send: what is next needs more parts than are left
    leati_chunk_kind failed;
} turn;

// Whether the bytes before the chunk are this channel's alone.
static bool is_own(const leati_chunk *chunk)
{
    // Acquire: pairs with the release of other holders, who have read their last of it.
    return chunk->segment &&
           atomic_load_explicit(&chunk->segment->references, memory_order_acquire) == 1;
}

static bool is_small(const leati_wire *wire, const leati_chunk *chunk)
{
    return chunk->size <= LEATI_WIRE_COPIED && leati_wire_has_room(wire, chunk->size);
}

// Whether there is room for it, and it is its turn.
static bool fits(const leati_wire *wire, const leati_chunk *chunk, const turn *this)
{
    if (is_small(wire, chunk))
        return true;
    bool joins = is_own(chunk) || wire->scratch_used > wire->scratch_cut;
    return this->segments > 0 && parts_left(wire) >= (joins ? 1u : 2u);
}

// A chunk with its header before it.
static void put_in_place(leati_wire *wire, const leati_frame *frame, const leati_chunk *chunk)
{
    uint8_t *header = (uint8_t *)(uintptr_t)chunk->data - LEATI_FRAME_SIZE;
    cut(wire);
    leati_frame_put(frame, header);
    wire->frame_count++;
    wire->parts[wire->part_count++] =
        (leati_part){.data = header, .size = LEATI_FRAME_SIZE + chunk->size};
}

// Returns whether the channel has to wait until it is sent.
static bool put_chunk(leati_wire *wire, leati_end *end, const leati_chunk *chunk, turn *this)
{
    leati_frame frame = {
        .size = chunk->size,
        .kind = LEATI_FRAME_DATA,
        .more = backlog_of(end),
        .channel = end->stream,
        .sequence = next_sequence(end),
    };
    this->used = true;
    if (is_small(wire, chunk)) {
        leati_wire_put(wire, &frame, chunk->data);
        leati_channel_advance(end->channel, chunk->size);
        return false;
    }
    if (is_own(chunk)) {
        put_in_place(wire, &frame, chunk);
    } else {
        leati_wire_put(wire, &frame, NULL);
        cut(wire);
        wire->parts[wire->part_count++] = (leati_part){.data = chunk->data, .size = chunk->size};
    }
    this->segments--;
    leati_segment *segment = leati_channel_take(end->channel, chunk);
    if (segment)
        wire->taken[wire->taken_count++] = segment;
    else
        this->flight.size = chunk->size;
    return !segment;
}

// Takes what the channel, which was polled, has, as far as it may. Returns whether the gate has to
// be given back now, and with `more` or not.
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
            this->finishes |= chunk.event.tag == LEATI_TAG_END_OF_PARTITION;
            break;
        case LEATI_CHUNK_DATA:
            if (!fits(wire, &chunk, this)) {
                this->again = true;
                this->full = this->segments > 0;
                return true;
            }
            if (!take_credit(end))
                return true;
            if (put_chunk(wire, end, &chunk, this))
                return false;
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
static turn step_sender(leati_wire *wire, leati_end *end, uint32_t segments)
{
    turn this = {.flight = {.end = end}, .segments = segments};
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

// Adds what a turn has put into the send to what the end has there already. Under the lock.
static void note_flight(leati_wire *wire, leati_exchange_peer *peer, leati_end *end, bool pinned,
                        const turn *this)
{
    if (pinned) {
        wire->flights[end->flight].size = this->flight.size;
    } else if (this->used) {
        end->flight = wire->flight_count;
        wire->flights[wire->flight_count++] = this->flight;
    } else {
        let_go(peer, end);
    }
}

// Under the lock, which is given up meanwhile. Returns whether the send is full: the end would find
// that again and again.
static bool serve_sender(leati_wire *wire, leati_exchange_peer *peer, leati_end *end)
{
    if (!end->opened) {
        // The receiver is not there yet. Relaxed: it is for people.
        if (atomic_load_explicit(&end->starved_since, memory_order_relaxed) == 0)
            atomic_store_explicit(&end->starved_since, leati_clock_ns(), memory_order_relaxed);
        return false;
    }
    bool pinned = end->writing;
    uint32_t segments = peer->lists[LEATI_LIST_READY].first ? 1 : LEATI_CONNECTION_PARTS;
    end->writing = true;
    leati_peer_unlock(peer);
    turn this = step_sender(wire, end, segments);
    pthread_mutex_lock(&peer->lock);
    bool mine = this.failed && leati_link_claim(end->link);
    leati_link *link = end->link;
    uint32_t process = end->process;
    // Before it is sent: the receiver may close on it before this thread learns that it was.
    end->ending |= this.finishes;
    note_flight(wire, peer, end, pinned, &this);
    if (this.again)
        leati_end_ready(peer, end);
    if (!mine)
        return this.full;
    leati_peer_unlock(peer);
    bool memory = this.failed == LEATI_CHUNK_NO_MEMORY;
    leati_link_report(link, memory ? LEAT_ENOMEM : LEAT_EIO,
                      memory ? "no memory for what is kept in a file for %s"
                             : "what is kept in a file for %s cannot be read",
                      link->names[process]);
    pthread_mutex_lock(&peer->lock);
    return this.full;
}

static void serve_receiver(leati_wire *wire, leati_exchange_peer *peer, leati_end *end)
{
    leat_err err;
    leati_link *link = end->link;
    uint32_t process = end->process;
    if (!leati_receiver_step(wire, peer, end, &err))
        return;
    leati_peer_unlock(peer);
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
    wire->part_count = wire->scratch_used = wire->scratch_cut = wire->frame_count = 0;
    pthread_mutex_lock(&peer->lock);
    peer->soon = 0;
    if (peer->wire == wire)
        put_owed(wire);
    // The wire may be replaced while the lock is given up.
    while (peer->wire == wire && takes_more(wire)) {
        leati_end *end = peer->lists[LEATI_LIST_READY].first;
        if (!end)
            break;
        leati_end_remove(peer, end, LEATI_LIST_READY);
        if (end->writing && wire->flights[end->flight].size > 0)
            continue; // it waits for this send; what comes after that looks at it again
        if (!end->sends)
            serve_receiver(wire, peer, end);
        else if (serve_sender(wire, peer, end))
            break;
    }
    leati_peer_unlock(peer);
    cut(wire);
    return wire->part_count;
}

void leati_wire_release_taken(leati_wire *wire)
{
    for (uint32_t i = 0; i < wire->taken_count; i++)
        leati_channel_give_back(wire->taken[i]);
    wire->taken_count = 0;
}

void leati_wire_sent(leati_connection *connection, void *user)
{
    leati_wire *wire = user;
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_acquire);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < wire->part_count; i++)
        bytes += wire->parts[i].size;
    leati_wire_release_taken(wire);
    for (uint32_t i = 0; i < wire->flight_count; i++) {
        const leati_flight *flight = &wire->flights[i];
        if (flight->size == 0)
            continue;
        leati_channel_advance(flight->end->channel, flight->size);
        leati_gate_done(flight->end->gate, flight->end->channel, true);
    }
    // Relaxed: figures.
    atomic_fetch_add_explicit(&wire->exchange->bytes_out, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&wire->exchange->frames_out, wire->frame_count, memory_order_relaxed);
    if (wire->flight_count == 0)
        return;
    bool awaited = false;
    pthread_mutex_lock(&peer->lock);
    for (uint32_t i = 0; i < wire->flight_count; i++) {
        leati_end *end = wire->flights[i].end;
        end->progress++;
        end->writing = false;
        awaited |= end->closing;
        if (wire->flights[i].size > 0)
            leati_end_ready(peer, end);
    }
    wire->flight_count = 0;
    if (awaited)
        pthread_cond_broadcast(&peer->changed);
    leati_peer_unlock(peer);
}

void leati_wire_drop_flights(leati_wire *wire, leati_exchange_peer *peer)
{
    for (uint32_t i = 0; i < wire->flight_count; i++)
        let_go(peer, wire->flights[i].end);
    wire->flight_count = 0;
}
