// SPDX-License-Identifier: Apache-2.0
// The insides of channels and gates, shared by channel.c and gate.c.
#ifndef LEATI_NETWORK_CHANNEL_IMPL_H
#define LEATI_NETWORK_CHANNEL_IMPL_H

#include <pthread.h>

#include "network/channel.h"

// Slots that segments leave free, so that an event can be queued behind a full channel.
#define LEATI_CHANNEL_EVENT_SLOTS 8
// Priority events that may wait on one channel: at most a barrier, its cancellation and an
// announcement for each of the checkpoints that are under way at once.
#define LEATI_CHANNEL_MAX_PRIORITY 16

// What `state` says of a channel's place in its gate's line (see channel.h).
enum {
    LEATI_CHANNEL_OUT = 0,      // not in line: whoever publishes puts it there
    LEATI_CHANNEL_IN_LINE = 1,  // in line or being read
    LEATI_CHANNEL_NOTIFIED = 2, // the same, and something was published since reading began
};

typedef struct leati_slot {
    leati_segment *segment; // NULL: an event
    leati_event event;
} leati_slot;

struct leati_channel {
    // Immutable; gate and index from when the channel is attached.
    const leat_allocator *allocator;
    leati_local_pool *pool;
    leati_slot *slots;
    uint32_t mask;
    uint32_t segment_slots; // capacity less LEATI_CHANNEL_EVENT_SLOTS
    leati_gate *gate;
    uint32_t index;
    leati_spool *spool; // NULL in a pipelined channel
    uint32_t spool_index;
    bool prompt;

    // Producer writes, consumer reads.
    _Alignas(LEATI_CACHE_LINE) _Atomic uint32_t tail;
    _Atomic uint32_t backlog; // segments that its sender, in another process, has queued

    // Consumer writes, producer reads.
    _Alignas(LEATI_CACHE_LINE) _Atomic uint32_t head;
    _Atomic uint32_t limit; // of bytes in a segment to come; 0: a whole one. Any thread writes
    // Consumer only.
    uint32_t tail_seen;
    uint32_t read; // position in the segment at the head
    bool in_line;
    bool jump; // goes to the front when it next enters the line
    leati_channel *next, *previous;
    // The piece of the spool at hand.
    uint8_t *piece;
    uint32_t piece_size;
    uint32_t piece_capacity;
    size_t piece_next;

    // Any thread.
    _Alignas(LEATI_CACHE_LINE) _Atomic uint32_t state;
    leati_channel *ready_next; // whoever moved `state` from OUT, until the consumer takes the stack
    _Atomic uint32_t urgent;   // stands in the gate's urgent stack
    leati_channel *urgent_next;
    _Atomic uint32_t has_priority; // the side queue is not empty
    pthread_mutex_t lock;
    // Under the lock.
    uint32_t priority_count;
    leati_event priority[LEATI_CHANNEL_MAX_PRIORITY];
};

struct leati_gate {
    // Immutable.
    const leat_allocator *allocator;
    leati_waiter *waiter;
    uint32_t count;
    leati_channel **channels;
    // Consumer.
    leati_channel *first, *last; // the line
    // Any thread pushes, the consumer takes all.
    _Alignas(LEATI_CACHE_LINE) _Atomic(leati_channel *) ready;
    _Atomic(leati_channel *) urgent;
};

// Puts a channel whose state has just left OUT in line. Any thread.
void leati_gate_push_ready(leati_gate *gate, leati_channel *channel);
// Lets a channel with priority events jump the line. Any thread.
void leati_gate_push_urgent(leati_gate *gate, leati_channel *channel);

#endif
