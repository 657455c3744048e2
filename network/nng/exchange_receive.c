// SPDX-License-Identifier: Apache-2.0
// The receiving half that hears: what the reader does with frames.
//
// What follows from a frame for others, a task that has something to read or a send, is put off
// until the reader is about to wait, or has put off enough: waking somebody for each segment takes
// longer than reading one. An end that has something put off is held meanwhile. Then it sends
// itself what there is to be sent, and gives itself the turn of a task that would have to be woken.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "network/channel_impl.h"
#include "network/nng/exchange_impl.h"

// What the reader finds out under the lock and does without it.
typedef struct verdict {
    const char *nonsense; // the peer is not to be trusted: the wire ends
    leati_link *failed;   // claimed
    uint32_t process;
    leat_err err;
    const char *text;
    bool waits; // a time has to be watched
} verdict;

static leat_err carry_out(leati_connection *connection, const leati_frame *frame,
                          const verdict *what)
{
    if (what->failed)
        leati_link_report(what->failed, what->err, "%s %s", what->failed->names[what->process],
                          what->text);
    if (!what->nonsense)
        return LEAT_OK;
    char why[256];
    snprintf(why, sizeof why, "%s: frame of kind %u for stream %u: %s",
             leati_connection_peer(connection), frame->kind, frame->channel, what->nonsense);
    leati_connection_close(connection, LEAT_ECORRUPT, why);
    return LEAT_ECORRUPT;
}

static void fail_link(verdict *what, leati_end *end, leat_err err, const char *text)
{
    if (end->closing || !leati_link_claim(end->link))
        return;
    *what = (verdict){.failed = end->link, .process = end->process, .err = err, .text = text};
}

static void break_end(verdict *what, leati_end *end, const char *text)
{
    end->broken = true;
    fail_link(what, end, LEAT_ECORRUPT, text);
}

// The end that a frame of data or an event is for, pinned, or NULL when it is to be thrown away.
static leati_end *find_receiver(leati_wire *wire, const leati_frame *frame, verdict *what)
{
    leati_inward *slot = leati_inward_at(wire, frame->channel);
    if (!slot) {
        what->nonsense = "there is no such stream";
        return NULL;
    }
    leati_end *end = slot->end;
    if (!end || end->broken || end->closing)
        return NULL;
    if (end->refused || end->finished) {
        what->nonsense = "the stream has ended";
        return NULL;
    }
    // Relaxed: it changes here alone, under the lock.
    if (frame->sequence != atomic_load_explicit(&end->sequence, memory_order_relaxed)) {
        break_end(what, end, "has sent frames that are not in sequence");
        return NULL;
    }
    atomic_store_explicit(&end->sequence, frame->sequence + 1, memory_order_relaxed);
    end->reading = true;
    wire->reading = end;
    return end;
}

static void release_receiver(leati_wire *wire, leati_exchange_peer *peer)
{
    leati_end *end = wire->reading;
    wire->reading = NULL;
    end->reading = end->held;
    if (end->closing && !end->held)
        pthread_cond_broadcast(&peer->changed);
}

// --- what is put off; reader, without the lock ---

// Under the lock. There is room: an end is held for a frame, and the connection does not read more
// frames than that before it has them settled.
static void hold(leati_wire *wire, leati_end *end)
{
    if (end->held)
        return;
    end->held = true;
    wire->held[wire->held_count++] = end;
    wire->turns = end->link->turns;
}

// Under the lock.
static void let_go_of_held(leati_wire *wire, leati_exchange_peer *peer)
{
    bool awaited = false;
    for (uint32_t i = 0; i < wire->held_count; i++) {
        leati_end *end = wire->held[i];
        end->held = false;
        end->reading = end == wire->reading;
        awaited |= end->closing;
    }
    wire->held_count = 0;
    if (awaited)
        pthread_cond_broadcast(&peer->changed);
}

static void tell_gates(leati_wire *wire)
{
    for (uint32_t i = 0; i < wire->held_count; i++)
        leati_channel_notify(wire->held[i]->channel);
}

void leati_wire_let_go(leati_wire *wire, leati_exchange_peer *peer)
{
    tell_gates(wire);
    pthread_mutex_lock(&peer->lock);
    let_go_of_held(wire, peer);
    wire->owes_send = false;
    leati_peer_unlock(peer);
}

// Tells everybody, and sends, as this thread may as well do that.
static void tell(leati_wire *wire, leati_connection *connection, leati_exchange_peer *peer)
{
    tell_gates(wire);
    pthread_mutex_lock(&peer->lock);
    let_go_of_held(wire, peer);
    bool sends = wire->owes_send && peer->wire == wire && leati_connection_take(connection);
    wire->owes_send = false;
    leati_peer_unlock(peer);
    if (sends)
        leati_connection_serve(connection);
}

bool leati_wire_settle(leati_connection *connection, void *user)
{
    leati_wire *wire = user;
    if (wire->held_count == 0 && !wire->owes_send)
        return true;
    // Relaxed: the reader has set it itself.
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_relaxed);
    const leati_turns *turns = wire->turns;
    bool visits = turns && leati_connection_may_step_aside(connection) &&
                  turns->visit(leati_connection_hand_on, connection);
    tell(wire, connection, peer);
    if (!visits)
        return true;
    // What was told may be for tasks whose worker sleeps: then this thread gives their turns.
    if (!turns->has_worker()) {
        turns->leave();
        return true;
    }
    leati_connection_step_aside(connection);
    turns->leave();
    return leati_connection_come_back(connection);
}

// --- what frames are to be ---

static bool sizes_fit(const leati_frame *frame)
{
    switch (frame->kind) {
    case LEATI_FRAME_OPEN:
        return frame->size == LEATI_OPEN_SIZE;
    case LEATI_FRAME_EVENT:
        return frame->size == LEATI_EVENT_SIZE;
    case LEATI_FRAME_DATA:
        return frame->size > 0;
    case LEATI_FRAME_CREDIT:
        return frame->size == LEATI_CREDIT_SIZE;
    case LEATI_FRAME_CLOSE:
    case LEATI_FRAME_CLOSED:
    case LEATI_FRAME_ALIVE:
        return frame->size == 0;
    default:
        return false;
    }
}

static void place_data(leati_wire *wire, const leati_frame *frame, verdict *what)
{
    leati_end *end = find_receiver(wire, frame, what);
    if (!end)
        return;
    if (end->grant_count == 0) {
        what->nonsense = "it was sent without credit";
        return;
    }
    wire->segment = end->granted[end->grant_first];
    end->grant_first = (end->grant_first + 1) % end->grant_capacity;
    end->grant_count--;
}

leat_err leati_wire_place(leati_connection *connection, void *user, const leati_frame *frame,
                          uint8_t **to)
{
    leati_wire *wire = user;
    // Relaxed: the reader has set it itself.
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_relaxed);
    if (!peer)
        return LEAT_ECLOSED;
    if (!sizes_fit(frame))
        return carry_out(connection, frame, &(verdict){.nonsense = "it is none of its kind"});
    if (frame->kind != LEATI_FRAME_DATA) {
        *to = wire->small;
        return LEAT_OK;
    }
    verdict what = {.nonsense = NULL};
    pthread_mutex_lock(&peer->lock);
    if (peer->wire == wire)
        place_data(wire, frame, &what);
    leati_peer_unlock(peer);
    leat_err err = carry_out(connection, frame, &what);
    if (err != LEAT_OK)
        return err;
    if (wire->segment) {
        *to = wire->segment->data;
        return LEAT_OK;
    }
    if (!wire->trash)
        wire->trash = leati_alloc(wire->exchange->allocator, wire->exchange->segment_size);
    if (!wire->trash)
        return LEAT_ENOMEM;
    *to = wire->trash;
    return LEAT_OK;
}

static void take_data(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame)
{
    if (!wire->segment)
        return;
    leati_segment *segment = wire->segment;
    leati_end *end = wire->reading;
    wire->segment = NULL;
    // Release: pairs with the load in leati_channel_peek.
    atomic_store_explicit(&segment->committed, frame->size | LEATI_SEGMENT_FINISHED,
                          memory_order_release);
    leati_channel_add_segment(end->channel, segment);
    pthread_mutex_lock(&peer->lock);
    hold(wire, end);
    // After the segment is in the ring: what is granted next counts either the one or the other.
    leati_grant_need need = leati_receiver_used(end, frame->more, frame->size > segment->size / 2);
    if (need != LEATI_GRANT_ENOUGH)
        wire->owes_send |= leati_end_ready_soon(peer, end) || need == LEATI_GRANT_NOW;
    release_receiver(wire, peer);
    leati_peer_unlock(peer);
}

static bool has_event_room(leati_end *end, const leati_event *event)
{
    if (!event->priority)
        return leati_channel_room(end->channel) > end->outstanding;
    pthread_mutex_lock(&end->channel->lock);
    bool room = end->channel->priority_count < LEATI_CHANNEL_MAX_PRIORITY;
    pthread_mutex_unlock(&end->channel->lock);
    return room;
}

static void take_event(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame,
                       verdict *what)
{
    const uint8_t *payload = wire->small;
    leati_event event = {
        .tag = payload[0],
        .priority = payload[1],
        .options = (uint16_t)(payload[2] | payload[3] << 8),
        .checkpoint = (uint64_t)leati_element_get_i64(payload + 8),
        .timestamp = leati_element_get_i64(payload + 16),
    };
    if (event.tag < LEATI_TAG_BARRIER || event.tag > LEATI_TAG_ANNOUNCEMENT || event.priority > 1) {
        what->nonsense = "there is no such event";
        return;
    }
    pthread_mutex_lock(&peer->lock);
    leati_end *end = peer->wire == wire ? find_receiver(wire, frame, what) : NULL;
    if (end && !has_event_room(end, &event)) {
        break_end(what, end, "has sent more events than a channel can hold");
        release_receiver(wire, peer);
        end = NULL;
    }
    leati_peer_unlock(peer);
    if (!end)
        return;
    leati_channel_add_event(end->channel, &event);
    pthread_mutex_lock(&peer->lock);
    if (event.tag == LEATI_TAG_END_OF_PARTITION) {
        end->finished = true;
        leati_end_ready_quietly(peer, end); // what was granted can go home
        wire->owes_send = true;
    }
    release_receiver(wire, peer);
    leati_peer_unlock(peer);
}

// --- frames about streams; under the lock ---

static void take_open(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame,
                      verdict *what)
{
    uint64_t attempt = (uint64_t)leati_element_get_i64(wire->small);
    uint64_t number = (uint64_t)leati_element_get_i64(wire->small + 8);
    leat_err err = number > UINT32_MAX ? LEAT_ECORRUPT
                                       : leati_outward_open(wire, frame->channel, attempt,
                                                            (uint32_t)number, frame->sequence);
    if (err != LEAT_OK) {
        what->nonsense = err == LEAT_ENOMEM ? "no memory for it" : "it cannot be opened";
        return;
    }
    leati_end *end = peer->lists[LEATI_LIST_UNOPENED].first;
    while (end && (end->number != number || end->link->attempt != attempt))
        end = end->next[LEATI_LIST_UNOPENED];
    if (!end) {
        what->waits = wire->pending.first == frame->channel;
        return;
    }
    leati_end_remove(peer, end, LEATI_LIST_UNOPENED);
    leati_sender_opened(peer, end, frame->channel);
    wire->owes_send = true;
}

// What the receiver has of what was sent. False when it cannot.
static bool note_delivered(leati_end *end, const uint8_t *payload)
{
    uint32_t delivered = 0;
    for (int i = LEATI_CREDIT_SIZE - 1; i >= 0; i--)
        delivered = delivered << 8 | payload[i];
    uint32_t sent = atomic_load_explicit(&end->sequence, memory_order_relaxed); // as it is counted
    // Of numbers that begin anew, those from the one to the other.
    if (delivered - end->delivered > sent - end->delivered)
        return false;
    end->progress += delivered - end->delivered;
    end->delivered = delivered;
    return true;
}

static void take_credit(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame,
                        verdict *what)
{
    leati_outward *slot = leati_outward_at(wire, frame->channel);
    if (!slot || slot->state == LEATI_OUTWARD_CLOSED)
        return; // it has crossed our CLOSED
    if (slot->state == LEATI_OUTWARD_PENDING) {
        slot->credit += frame->sequence;
        if (frame->sequence > LEATI_WIRE_MAX_CREDIT || slot->credit > LEATI_WIRE_MAX_CREDIT)
            what->nonsense = "it is too much credit";
        return;
    }
    if (!note_delivered(slot->end, wire->small)) {
        what->nonsense = "it confirms what was not sent";
        return;
    }
    // Relaxed: only this thread adds.
    uint32_t credit = atomic_load_explicit(&slot->end->credit, memory_order_relaxed);
    if (frame->sequence > LEATI_WIRE_MAX_CREDIT ||
        credit + frame->sequence > LEATI_WIRE_MAX_CREDIT) {
        what->nonsense = "it is too much credit";
        return;
    }
    // Release: pairs with the writer's load. A writer that still saw none looks again, because the
    // end is ready after this.
    atomic_fetch_add_explicit(&slot->end->credit, frame->sequence, memory_order_release);
    leati_channel_set_limit(slot->end->channel, (uint32_t)frame->more * LEATI_LIMIT_UNIT);
    leati_end_ready_quietly(peer, slot->end);
    wire->owes_send = true;
    wire->turns = slot->end->link->turns;
}

// The receiver wants no more: it has closed, or has got the end of the partition.
static void take_close(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame,
                       verdict *what)
{
    leati_outward *slot = leati_outward_at(wire, frame->channel);
    if (!slot || slot->state == LEATI_OUTWARD_CLOSED)
        return; // it has crossed our CLOSED
    leati_end *end = slot->end;
    leati_outward_close(wire, frame->channel, LEATI_CLOSED_ENDED);
    wire->owes_send = true;
    if (!end)
        return;
    end->state = LEATI_END_DEAD;
    end->opened = false;
    leati_end_remove(peer, end, LEATI_LIST_READY);
    pthread_cond_broadcast(&peer->changed);
    // Behind the end of the partition it says that all of it has come.
    end->delivered = atomic_load_explicit(&end->sequence, memory_order_relaxed);
    if (!end->ending)
        fail_link(what, end, LEAT_ECLOSED, "has closed a channel that is sent to it");
}

// The sender has nothing more, and has said its last about the stream.
static void take_closed(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame,
                        verdict *what)
{
    leati_inward *slot = leati_inward_at(wire, frame->channel);
    leati_end *end = slot ? slot->end : NULL;
    if (!slot || (end && end->refused)) {
        what->nonsense = "there is no such stream";
        return;
    }
    if (!end) {
        leati_inward_free(wire, frame->channel);
        return;
    }
    end->refused = true;
    leati_end_ready_quietly(peer, end); // what was granted can go home
    wire->owes_send = true;
    if (!end->finished && !end->broken)
        fail_link(what, end, LEAT_ECLOSED,
                  frame->more == LEATI_CLOSED_UNKNOWN
                      ? "knows nothing of a channel that it is to send"
                      : "has closed a channel before its end");
}

// That it came is all it says.
static void take_alive(leati_wire *wire, leati_exchange_peer *peer, const leati_frame *frame,
                       verdict *what)
{
}

leat_err leati_wire_arrived(leati_connection *connection, void *user, const leati_frame *frame)
{
    static void (*const takes[])(leati_wire *, leati_exchange_peer *, const leati_frame *,
                                 verdict *) = {
        [LEATI_FRAME_OPEN] = take_open,   [LEATI_FRAME_CREDIT] = take_credit,
        [LEATI_FRAME_CLOSE] = take_close, [LEATI_FRAME_CLOSED] = take_closed,
        [LEATI_FRAME_ALIVE] = take_alive,
    };
    leati_wire *wire = user;
    // Relaxed: the reader has set it itself.
    leati_exchange_peer *peer = atomic_load_explicit(&wire->peer, memory_order_relaxed);
    verdict what = {.nonsense = NULL};
    if (!peer)
        return LEAT_ECLOSED;
    // Relaxed: figures.
    atomic_fetch_add_explicit(&wire->exchange->frames_in, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&wire->exchange->bytes_in, LEATI_FRAME_SIZE + (uint64_t)frame->size,
                              memory_order_relaxed);
    if (!sizes_fit(frame)) {
        what.nonsense = "it is none of its kind";
    } else if (frame->kind == LEATI_FRAME_DATA) {
        take_data(wire, peer, frame);
    } else if (frame->kind == LEATI_FRAME_EVENT) {
        take_event(wire, peer, frame, &what);
    } else {
        pthread_mutex_lock(&peer->lock);
        if (peer->wire == wire)
            takes[frame->kind](wire, peer, frame, &what);
        leati_peer_unlock(peer);
        if (what.waits)
            leati_exchange_poke(wire->exchange);
    }
    return carry_out(connection, frame, &what);
}
