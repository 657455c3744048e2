// SPDX-License-Identifier: Apache-2.0
// The numbers of the streams on a wire, in both directions. All of it under the peer's lock.
//
// The receiver of a stream chooses its number, says OPEN, and perhaps CLOSE; the sender says CLOSED
// once for each OPEN, last of all. So a number is free when CLOSED has come and the receiving end
// has gone: whatever still concerns its old use was sent before what concerns the new one. What has
// to be said of a stream whose end has gone already is noted in its slot, so that closing needs no
// memory.
#include "base/alloc.h"
#include "base/thread.h"
#include "network/nng/exchange_impl.h"

// --- in ---

leati_inward *leati_inward_at(leati_wire *wire, uint32_t stream)
{
    if (stream >= wire->inward_count || !wire->inward[stream].used)
        return NULL;
    return &wire->inward[stream];
}

leat_err leati_inward_take(leati_wire *wire, leati_end *end, uint32_t *stream)
{
    uint32_t taken = wire->inward_free;
    if (taken != LEATI_NO_STREAM) {
        wire->inward_free = wire->inward[taken].next;
    } else {
        if (wire->inward_count == LEATI_WIRE_MAX_STREAMS)
            return LEAT_ENOBUFS;
        if (!leati_grow(wire->exchange->allocator, (void **)&wire->inward, &wire->inward_capacity,
                        wire->inward_count + 1u, sizeof *wire->inward))
            return LEAT_ENOMEM;
        taken = wire->inward_count++;
        wire->inward[taken] = (leati_inward){.next = LEATI_NO_STREAM};
    }
    wire->inward[taken].end = end;
    wire->inward[taken].used = true;
    *stream = taken;
    return LEAT_OK;
}

// Not while it is listed: then whoever takes it off the list does this.
static void make_free(leati_wire *wire, uint32_t stream)
{
    wire->inward[stream].next = wire->inward_free;
    wire->inward_free = stream;
}

void leati_inward_free(leati_wire *wire, uint32_t stream)
{
    leati_inward *slot = &wire->inward[stream];
    slot->end = NULL;
    slot->used = false;
    slot->owes = false;
    if (!slot->listed)
        make_free(wire, stream);
}

void leati_inward_leave(leati_wire *wire, uint32_t stream, bool told, bool sender_gone)
{
    leati_inward *slot = &wire->inward[stream];
    if (sender_gone) {
        leati_inward_free(wire, stream);
        return;
    }
    slot->end = NULL;
    if (told)
        return;
    slot->owes = true;
    slot->listed = true;
    slot->next = LEATI_NO_STREAM;
    if (wire->inward_owing.last == LEATI_NO_STREAM)
        wire->inward_owing.first = stream;
    else
        wire->inward[wire->inward_owing.last].next = stream;
    wire->inward_owing.last = stream;
}

uint32_t leati_inward_pop_owing(leati_wire *wire)
{
    while (wire->inward_owing.first != LEATI_NO_STREAM) {
        uint32_t stream = wire->inward_owing.first;
        leati_inward *slot = &wire->inward[stream];
        wire->inward_owing.first = slot->next;
        if (slot->next == LEATI_NO_STREAM)
            wire->inward_owing.last = LEATI_NO_STREAM;
        slot->listed = false;
        if (slot->owes) {
            slot->owes = false;
            return stream;
        }
        make_free(wire, stream); // CLOSED came before CLOSE was sent
    }
    return LEATI_NO_STREAM;
}

// --- out ---

leati_outward *leati_outward_at(leati_wire *wire, uint32_t stream)
{
    if (stream >= wire->outward_count || wire->outward[stream].state == LEATI_OUTWARD_FREE)
        return NULL;
    return &wire->outward[stream];
}

static void append(leati_wire *wire, leati_stream_list *list, uint32_t stream)
{
    leati_outward *slot = &wire->outward[stream];
    slot->next = LEATI_NO_STREAM;
    slot->previous = list->last;
    if (list->last == LEATI_NO_STREAM)
        list->first = stream;
    else
        wire->outward[list->last].next = stream;
    list->last = stream;
}

static void take_off(leati_wire *wire, leati_stream_list *list, uint32_t stream)
{
    leati_outward *slot = &wire->outward[stream];
    if (slot->previous == LEATI_NO_STREAM)
        list->first = slot->next;
    else
        wire->outward[slot->previous].next = slot->next;
    if (slot->next == LEATI_NO_STREAM)
        list->last = slot->previous;
    else
        wire->outward[slot->next].previous = slot->previous;
}

static leat_err make_room(leati_wire *wire, uint32_t stream)
{
    if (stream < wire->outward_count)
        return LEAT_OK;
    if (!leati_grow(wire->exchange->allocator, (void **)&wire->outward, &wire->outward_capacity,
                    stream + 1u, sizeof *wire->outward))
        return LEAT_ENOMEM;
    while (wire->outward_count <= stream)
        wire->outward[wire->outward_count++] = (leati_outward){.state = LEATI_OUTWARD_FREE};
    return LEAT_OK;
}

leat_err leati_outward_open(leati_wire *wire, uint32_t stream, uint64_t attempt, uint32_t number,
                            uint32_t credit)
{
    if (stream >= LEATI_WIRE_MAX_STREAMS || credit > LEATI_WIRE_MAX_CREDIT)
        return LEAT_ECORRUPT;
    leat_err err = make_room(wire, stream);
    if (err != LEAT_OK)
        return err;
    leati_outward *slot = &wire->outward[stream];
    if (slot->state != LEATI_OUTWARD_FREE)
        return LEAT_ECORRUPT;
    *slot = (leati_outward){
        .state = LEATI_OUTWARD_PENDING,
        .attempt = attempt,
        .number = number,
        .credit = credit,
        .since_ns = leati_clock_ns(),
    };
    append(wire, &wire->pending, stream);
    return LEAT_OK;
}

// Both processes enumerate the channels of a job in the same order, so the one looked for is mostly
// the first.
uint32_t leati_outward_find(const leati_wire *wire, uint64_t attempt, uint32_t number)
{
    uint32_t stream = wire->pending.first;
    while (stream != LEATI_NO_STREAM &&
           (wire->outward[stream].number != number || wire->outward[stream].attempt != attempt))
        stream = wire->outward[stream].next;
    return stream;
}

void leati_outward_bind(leati_wire *wire, uint32_t stream, leati_end *end)
{
    leati_outward *slot = &wire->outward[stream];
    take_off(wire, &wire->pending, stream);
    slot->state = LEATI_OUTWARD_BOUND;
    slot->end = end;
}

void leati_outward_close(leati_wire *wire, uint32_t stream, uint8_t reason)
{
    leati_outward *slot = &wire->outward[stream];
    if (slot->state == LEATI_OUTWARD_PENDING)
        take_off(wire, &wire->pending, stream);
    slot->state = LEATI_OUTWARD_CLOSED;
    slot->reason = reason;
    slot->end = NULL;
    append(wire, &wire->outward_owing, stream);
}

uint32_t leati_outward_pop_owing(leati_wire *wire)
{
    uint32_t stream = wire->outward_owing.first;
    if (stream != LEATI_NO_STREAM)
        take_off(wire, &wire->outward_owing, stream);
    return stream;
}

void leati_outward_free(leati_wire *wire, uint32_t stream)
{
    wire->outward[stream].state = LEATI_OUTWARD_FREE;
}
