// SPDX-License-Identifier: Apache-2.0
// A gate: the line of channels that have something to read.
//
// Producers push channels on a stack; the consumer takes the whole stack, turns it round and
// appends it to its own list, so channels are served in the order in which they came. It looks at
// the stack with every poll, or a channel that always has more would keep the others out.
//
// The consumer is woken by whoever pushes on an empty stack: those who find it not empty came after
// somebody who has woken it or is about to.
#include <assert.h>

#include "base/alloc.h"
#include "network/channel_impl.h"

leat_err leati_gate_create(const leat_allocator *allocator, leati_waiter *waiter, uint32_t channels,
                           leati_gate **gate)
{
    leati_gate *made = leati_alloc_aligned(allocator, LEATI_CACHE_LINE, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (leati_gate){.allocator = allocator, .waiter = waiter, .count = channels};
    made->channels = leati_calloc(allocator, channels, sizeof(leati_channel *));
    if (!made->channels) {
        leati_free_aligned(allocator, made);
        return LEAT_ENOMEM;
    }
    *gate = made;
    return LEAT_OK;
}

void leati_gate_destroy(leati_gate **gate)
{
    leati_gate *gone = *gate;
    if (!gone)
        return;
    *gate = NULL;
    leati_free(gone->allocator, gone->channels);
    leati_free_aligned(gone->allocator, gone);
}

void leati_gate_attach(leati_gate *gate, uint32_t index, leati_channel *channel)
{
    assert(index < gate->count && !gate->channels[index] && !channel->gate);
    gate->channels[index] = channel;
    channel->gate = gate;
    channel->index = index;
}

// --- any thread ---

void leati_gate_push_ready(leati_gate *gate, leati_channel *channel)
{
    leati_channel *top = atomic_load_explicit(&gate->ready, memory_order_relaxed);
    do {
        channel->ready_next = top;
    } while (!atomic_compare_exchange_weak_explicit(&gate->ready, &top, channel,
                                                    memory_order_release, memory_order_relaxed));
    if (!top)
        gate->waiter->wake(gate->waiter);
}

void leati_gate_push_urgent(leati_gate *gate, leati_channel *channel)
{
    if (atomic_exchange_explicit(&channel->urgent, 1, memory_order_acq_rel))
        return;
    leati_channel *top = atomic_load_explicit(&gate->urgent, memory_order_relaxed);
    do {
        channel->urgent_next = top;
    } while (!atomic_compare_exchange_weak_explicit(&gate->urgent, &top, channel,
                                                    memory_order_release, memory_order_relaxed));
    if (!top)
        gate->waiter->wake(gate->waiter);
}

// --- consumer ---

static void append(leati_gate *gate, leati_channel *channel)
{
    channel->next = NULL;
    channel->previous = gate->last;
    if (gate->last)
        gate->last->next = channel;
    else
        gate->first = channel;
    gate->last = channel;
    channel->in_line = true;
}

static void prepend(leati_gate *gate, leati_channel *channel)
{
    channel->previous = NULL;
    channel->next = gate->first;
    if (gate->first)
        gate->first->previous = channel;
    else
        gate->last = channel;
    gate->first = channel;
    channel->in_line = true;
}

static void leave(leati_gate *gate, leati_channel *channel)
{
    if (channel->previous)
        channel->previous->next = channel->next;
    else
        gate->first = channel->next;
    if (channel->next)
        channel->next->previous = channel->previous;
    else
        gate->last = channel->previous;
    channel->in_line = false;
}

static void enter(leati_gate *gate, leati_channel *channel)
{
    if (LEAT_UNLIKELY(channel->jump)) {
        channel->jump = false;
        prepend(gate, channel);
    } else {
        append(gate, channel);
    }
}

// Channels that got a priority event: those in line go to its front, the others when they enter.
static void take_urgent(leati_gate *gate)
{
    leati_channel *channel = atomic_exchange_explicit(&gate->urgent, NULL, memory_order_acquire);
    while (channel) {
        leati_channel *next = channel->urgent_next;
        // From here on another producer may push it again.
        atomic_exchange_explicit(&channel->urgent, 0, memory_order_acq_rel);
        if (channel->in_line) {
            leave(gate, channel);
            prepend(gate, channel);
        } else {
            channel->jump = true;
        }
        channel = next;
    }
}

static void take_ready(leati_gate *gate)
{
    leati_channel *channel = atomic_exchange_explicit(&gate->ready, NULL, memory_order_acquire);
    leati_channel *oldest = NULL;
    while (channel) {
        leati_channel *next = channel->ready_next;
        channel->ready_next = oldest;
        oldest = channel;
        channel = next;
    }
    while (oldest) {
        leati_channel *next = oldest->ready_next;
        enter(gate, oldest);
        oldest = next;
    }
}

leati_channel *leati_gate_poll(leati_gate *gate)
{
    // Urgent ones first: a channel is pushed there after it has been put in line.
    if (LEAT_UNLIKELY(atomic_load_explicit(&gate->urgent, memory_order_relaxed) != NULL))
        take_urgent(gate);
    if (atomic_load_explicit(&gate->ready, memory_order_relaxed))
        take_ready(gate);
    leati_channel *channel = gate->first;
    if (!channel)
        return NULL;
    leave(gate, channel);
    // What is published after this shows as NOTIFIED; what was published before is going to be
    // read.
    atomic_exchange_explicit(&channel->state, LEATI_CHANNEL_IN_LINE, memory_order_acq_rel);
    return channel;
}

void leati_gate_done(leati_gate *gate, leati_channel *channel, bool more)
{
    uint32_t state = LEATI_CHANNEL_IN_LINE;
    if (!more &&
        atomic_compare_exchange_strong_explicit(&channel->state, &state, LEATI_CHANNEL_OUT,
                                                memory_order_acq_rel, memory_order_acquire))
        return;
    enter(gate, channel);
}

bool leati_gate_has_data(const leati_gate *gate)
{
    return gate->first || atomic_load_explicit(&gate->ready, memory_order_acquire) ||
           atomic_load_explicit(&gate->urgent, memory_order_acquire);
}
