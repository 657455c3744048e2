// SPDX-License-Identifier: Apache-2.0
// A channel's ring: one producer, one consumer, no locks except for priority events.
//
// The producer's and the consumer's position are in cache lines of their own, and the consumer
// looks at the producer's only when it has used up what it saw the last time. The positions run on
// over 32 bits; their difference is what counts.
#include "network/channel_impl.h"

#include <assert.h>

#include "base/alloc.h"
#include "network/pool_impl.h"

leat_err leati_channel_create(const leat_allocator *allocator, leati_local_pool *pool,
                              uint32_t max_segments, uint32_t overdraft, leati_channel **channel)
{
    uint64_t needed = (uint64_t)max_segments + overdraft + LEATI_CHANNEL_EVENT_SLOTS;
    uint32_t capacity = 16;
    while (capacity < needed && capacity < 1u << 30)
        capacity *= 2;
    if (capacity < needed)
        return LEAT_EINVAL;
    leati_channel *made = leati_alloc_aligned(allocator, LEATI_CACHE_LINE, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (leati_channel){
        .allocator = allocator,
        .pool = pool,
        .mask = capacity - 1,
        .segment_slots = capacity - LEATI_CHANNEL_EVENT_SLOTS,
    };
    made->slots = leati_calloc(allocator, capacity, sizeof *made->slots);
    if (!made->slots)
        goto free_channel;
    if (pthread_mutex_init(&made->lock, NULL) != 0)
        goto free_slots;
    *channel = made;
    return LEAT_OK;

free_slots:
    leati_free(allocator, made->slots);
free_channel:
    leati_free_aligned(allocator, made);
    return LEAT_ENOMEM;
}

void leati_channel_destroy(leati_channel **channel)
{
    leati_channel *gone = *channel;
    if (!gone)
        return;
    *channel = NULL;
    uint32_t tail = atomic_load_explicit(&gone->tail, memory_order_acquire);
    uint32_t head = atomic_load_explicit(&gone->head, memory_order_acquire);
    for (; head != tail; head++) {
        leati_segment *segment = gone->slots[head & gone->mask].segment;
        if (segment)
            leati_segment_release(segment);
    }
    pthread_mutex_destroy(&gone->lock);
    leati_free(gone->allocator, gone->piece);
    leati_free(gone->allocator, gone->slots);
    leati_free_aligned(gone->allocator, gone);
}

void leati_channel_set_spool(leati_channel *channel, leati_spool *spool, uint32_t index)
{
    channel->spool = spool;
    channel->spool_index = index;
}

void leati_channel_set_prompt(leati_channel *channel)
{
    channel->prompt = true;
}

bool leati_channel_is_prompt(const leati_channel *channel)
{
    return channel->prompt;
}

// --- producer ---

uint32_t leati_channel_length(const leati_channel *channel)
{
    // Pairs with the store in pop: a slot that is seen to be free has been read.
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_acquire);
    return atomic_load_explicit(&channel->tail, memory_order_relaxed) - head;
}

uint32_t leati_channel_room(const leati_channel *channel)
{
    uint32_t length = leati_channel_length(channel);
    return length < channel->segment_slots ? channel->segment_slots - length : 0;
}

uint32_t leati_channel_event_room(const leati_channel *channel)
{
    return channel->mask + 1 - leati_channel_length(channel);
}

// Relaxed, all four: figures, which order nothing.

uint32_t leati_channel_limit(const leati_channel *channel)
{
    return atomic_load_explicit(&channel->limit, memory_order_relaxed);
}

void leati_channel_set_limit(leati_channel *channel, uint32_t limit)
{
    atomic_store_explicit(&channel->limit, limit, memory_order_relaxed);
}

uint32_t leati_channel_backlog(const leati_channel *channel)
{
    return atomic_load_explicit(&channel->backlog, memory_order_relaxed);
}

void leati_channel_set_backlog(leati_channel *channel, uint32_t backlog)
{
    atomic_store_explicit(&channel->backlog, backlog, memory_order_relaxed);
}

static void push(leati_channel *channel, leati_slot slot)
{
    uint32_t tail = atomic_load_explicit(&channel->tail, memory_order_relaxed);
    channel->slots[tail & channel->mask] = slot;
    // Pairs with the load in leati_channel_peek.
    atomic_store_explicit(&channel->tail, tail + 1, memory_order_release);
}

void leati_channel_add_segment(leati_channel *channel, leati_segment *segment)
{
    assert(leati_channel_room(channel) > 0);
    push(channel, (leati_slot){.segment = segment});
}

void leati_channel_notify(leati_channel *channel)
{
    // Pairs with the exchanges in leati_gate_poll and leati_gate_done: what was published before
    // this is seen by the reading that it causes or that is still going on.
    uint32_t was =
        atomic_exchange_explicit(&channel->state, LEATI_CHANNEL_NOTIFIED, memory_order_acq_rel);
    if (was == LEATI_CHANNEL_OUT)
        leati_gate_push_ready(channel->gate, channel);
}

static void add_priority_event(leati_channel *channel, const leati_event *event)
{
    pthread_mutex_lock(&channel->lock);
    assert(channel->priority_count < LEATI_CHANNEL_MAX_PRIORITY);
    channel->priority[channel->priority_count++] = *event;
    atomic_store_explicit(&channel->has_priority, 1, memory_order_release);
    pthread_mutex_unlock(&channel->lock);
    // In line first, so that the gate finds it there when it is told to move it.
    leati_channel_notify(channel);
    leati_gate_push_urgent(channel->gate, channel);
}

void leati_channel_add_event(leati_channel *channel, const leati_event *event)
{
    if (event->priority) {
        add_priority_event(channel, event);
        return;
    }
    assert(leati_channel_event_room(channel) > 0);
    push(channel, (leati_slot){.event = *event});
    leati_channel_notify(channel);
}

// --- consumer ---

uint32_t leati_channel_index(const leati_channel *channel)
{
    return channel->index;
}

static void take_priority_event(leati_channel *channel, leati_event *event)
{
    pthread_mutex_lock(&channel->lock);
    *event = channel->priority[0];
    channel->priority_count--;
    for (uint32_t i = 0; i < channel->priority_count; i++)
        channel->priority[i] = channel->priority[i + 1];
    atomic_store_explicit(&channel->has_priority, channel->priority_count > 0,
                          memory_order_relaxed);
    pthread_mutex_unlock(&channel->lock);
}

// Frees the slot at the head and tells the producer, who may wait for it. The segment is taken out
// first, because the slot may be used again at once.
static void pop(leati_channel *channel, leati_segment *segment)
{
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_relaxed);
    channel->read = 0;
    atomic_store_explicit(&channel->head, head + 1, memory_order_release);
    if (!segment || !leati_segment_drop(segment))
        leati_local_pool_poke(channel->pool);
}

static void drop_piece(leati_channel *channel)
{
    leati_free(channel->allocator, channel->piece);
    channel->piece = NULL;
    channel->piece_capacity = 0;
}

static leati_chunk_kind load_piece(leati_channel *channel, uint32_t size)
{
    if (size > channel->piece_capacity) {
        drop_piece(channel);
        channel->piece = leati_alloc(channel->allocator, size);
        if (!channel->piece)
            return LEATI_CHUNK_NO_MEMORY;
        channel->piece_capacity = size;
    }
    if (leati_spool_read(channel->spool, channel->spool_index, channel->piece_next,
                         channel->piece) != LEAT_OK)
        return LEATI_CHUNK_FAILED;
    channel->piece_next++;
    channel->piece_size = size;
    channel->read = 0;
    return LEATI_CHUNK_DATA;
}

// NONE: the spool is not complete yet, or all of it has been read.
static leati_chunk_kind peek_spool(leati_channel *channel, leati_chunk *chunk)
{
    if (!leati_spool_is_complete(channel->spool))
        return LEATI_CHUNK_NONE;
    if (channel->read == channel->piece_size) {
        uint32_t size =
            leati_spool_piece(channel->spool, channel->spool_index, channel->piece_next);
        leati_chunk_kind kind = size ? load_piece(channel, size) : LEATI_CHUNK_NONE;
        if (kind != LEATI_CHUNK_DATA) {
            drop_piece(channel);
            return kind;
        }
    }
    chunk->data = channel->piece + channel->read;
    chunk->size = channel->piece_size - channel->read;
    chunk->last = true;
    chunk->segment = NULL;
    return LEATI_CHUNK_DATA;
}

leati_chunk_kind leati_channel_peek(leati_channel *channel, leati_chunk *chunk)
{
    if (LEAT_UNLIKELY(atomic_load_explicit(&channel->has_priority, memory_order_acquire))) {
        take_priority_event(channel, &chunk->event);
        return LEATI_CHUNK_EVENT;
    }
    if (LEAT_UNLIKELY(channel->spool != NULL)) {
        leati_chunk_kind kind = peek_spool(channel, chunk);
        if (kind != LEATI_CHUNK_NONE)
            return kind;
        channel->read = channel->piece_size = 0;
    }
    for (;;) {
        uint32_t head = atomic_load_explicit(&channel->head, memory_order_relaxed);
        if (head == channel->tail_seen) {
            channel->tail_seen = atomic_load_explicit(&channel->tail, memory_order_acquire);
            if (head == channel->tail_seen)
                return LEATI_CHUNK_NONE;
        }
        const leati_slot *slot = &channel->slots[head & channel->mask];
        leati_segment *segment = slot->segment;
        if (!segment) {
            chunk->event = slot->event;
            pop(channel, NULL);
            return LEATI_CHUNK_EVENT;
        }
        // Pairs with the writer's store: the bytes below the position are there.
        uint32_t committed = atomic_load_explicit(&segment->committed, memory_order_acquire);
        uint32_t position = committed & ~LEATI_SEGMENT_FINISHED;
        if (channel->read < position) {
            chunk->data = segment->data + channel->read;
            chunk->size = position - channel->read;
            chunk->last = (committed & LEATI_SEGMENT_FINISHED) != 0;
            chunk->segment = segment;
            return LEATI_CHUNK_DATA;
        }
        if (!(committed & LEATI_SEGMENT_FINISHED))
            return LEATI_CHUNK_NONE;
        pop(channel, segment);
    }
}

leati_segment *leati_channel_take(leati_channel *channel, const leati_chunk *chunk)
{
    if (!chunk->last || !chunk->segment)
        return NULL;
    uint32_t head = atomic_load_explicit(&channel->head, memory_order_relaxed);
    channel->read = 0;
    atomic_store_explicit(&channel->head, head + 1, memory_order_release);
    return chunk->segment;
}

void leati_channel_give_back(leati_segment *segment)
{
    leati_local_pool *pool = segment->owner; // that of the channel
    if (!leati_segment_drop(segment))
        leati_local_pool_poke(pool);
}

void leati_channel_advance(leati_channel *channel, uint32_t size)
{
    channel->read += size;
}
