// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "fixture.h"
#include "network/channel.h"

// One channel between two fake tasks.
typedef struct setup {
    leati_global_pool *global;
    leati_local_pool *pool;
    fake_task producer, consumer;
    leati_channel *channel;
    leati_gate *gate;
} setup;

static void set_up(setup *s, uint32_t max_segments)
{
    s->producer = fake_task_make();
    s->consumer = fake_task_make();
    s->global = make_global(64, 40);
    s->pool = make_local(s->global, &s->producer, 40, 40, 0);
    cr_assert(leati_channel_create(NULL, s->pool, max_segments, 0, &s->channel) == LEAT_OK);
    cr_assert(leati_gate_create(NULL, &s->consumer.waiter, 1, &s->gate) == LEAT_OK);
    leati_gate_attach(s->gate, 0, s->channel);
}

static void tear_down(setup *s)
{
    leati_channel_destroy(&s->channel);
    leati_gate_destroy(&s->gate);
    end_local(&s->pool);
    leati_global_pool_destroy(&s->global);
}

static leati_segment *add_segment(setup *s)
{
    leati_segment *segment = leati_local_pool_request(s->pool, false);
    cr_assert(segment);
    leati_channel_add_segment(s->channel, segment);
    return segment;
}

static void commit(leati_segment *segment, uint32_t position)
{
    atomic_store(&segment->committed, position);
}

static void add_event(setup *s, uint64_t checkpoint, uint8_t priority)
{
    leati_event event = {.tag = LEATI_TAG_BARRIER, .priority = priority, .checkpoint = checkpoint};
    leati_channel_add_event(s->channel, &event);
}

Test(channel, a_segment_can_be_read_while_it_is_being_filled)
{
    setup s;
    set_up(&s, 4);
    leati_chunk chunk;
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_NONE);
    leati_segment *segment = add_segment(&s);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_NONE);
    commit(segment, 10);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(chunk.data == segment->data && chunk.size == 10 && !chunk.last);
    leati_channel_advance(s.channel, 4);
    commit(segment, 30 | LEATI_SEGMENT_FINISHED);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(chunk.data == segment->data + 4 && chunk.size == 26 && chunk.last);
    leati_channel_advance(s.channel, 26);
    cr_assert(used_of(s.pool) == 1 && leati_channel_length(s.channel) == 1);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_NONE);
    cr_assert(used_of(s.pool) == 0 && leati_channel_length(s.channel) == 0);
    tear_down(&s);
}

Test(channel, finished_and_empty_segments_are_skipped_and_events_keep_their_place)
{
    setup s;
    set_up(&s, 8);
    commit(add_segment(&s), LEATI_SEGMENT_FINISHED);
    leati_segment *full = add_segment(&s);
    commit(full, 5 | LEATI_SEGMENT_FINISHED);
    commit(add_segment(&s), LEATI_SEGMENT_FINISHED);
    add_event(&s, 1, 0);
    add_event(&s, 2, 0);
    commit(add_segment(&s), 6 | LEATI_SEGMENT_FINISHED);
    leati_chunk chunk;
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(chunk.data == full->data && chunk.size == 5 && chunk.last);
    leati_channel_advance(s.channel, 5);
    for (uint64_t i = 1; i <= 2; i++) {
        cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
        cr_assert(chunk.event.tag == LEATI_TAG_BARRIER && chunk.event.checkpoint == i);
    }
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA && chunk.size == 6);
    tear_down(&s);
}

Test(channel, events_find_room_behind_as_many_segments_as_fit)
{
    setup s;
    set_up(&s, 2); // 16 slots, of which 8 are for events
    cr_assert(leati_channel_room(s.channel) == 8 && leati_channel_event_room(s.channel) == 16);
    for (uint32_t i = 1; i <= 8; i++) {
        commit(add_segment(&s), 1 | LEATI_SEGMENT_FINISHED);
        cr_assert(leati_channel_room(s.channel) == 8 - i && leati_channel_length(s.channel) == i);
    }
    for (uint32_t i = 1; i <= 8; i++) {
        add_event(&s, i, 0);
        cr_assert(leati_channel_room(s.channel) == 0 &&
                  leati_channel_event_room(s.channel) == 8 - i);
    }
    add_event(&s, 99, 1); // needs none
    leati_chunk chunk;
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
    cr_assert(chunk.event.checkpoint == 99 && leati_channel_event_room(s.channel) == 0);
    tear_down(&s);
}

Test(channel, a_channel_for_more_segments_has_more_room)
{
    setup s;
    set_up(&s, 10); // 10 and 8 for events: 32 slots
    cr_assert(leati_channel_room(s.channel) == 24);
    tear_down(&s);
    leati_channel *channel;
    cr_assert(leati_channel_create(NULL, NULL, UINT32_MAX, 5, &channel) == LEAT_EINVAL);
}

Test(channel, the_reader_is_woken_once_until_it_has_looked)
{
    setup s;
    set_up(&s, 4);
    leati_segment *segment = add_segment(&s);
    commit(segment, 8);
    cr_assert(wakes_of(&s.consumer) == 0 && !leati_gate_has_data(s.gate));
    leati_channel_notify(s.channel);
    leati_channel_notify(s.channel);
    add_event(&s, 1, 0);
    cr_assert(wakes_of(&s.consumer) == 1 && leati_gate_has_data(s.gate));
    cr_assert(leati_gate_poll(s.gate) == s.channel);
    leati_gate_done(s.gate, s.channel, false);
    cr_assert(!leati_gate_has_data(s.gate) && !leati_gate_poll(s.gate));
    leati_channel_notify(s.channel);
    cr_assert(wakes_of(&s.consumer) == 1);
    tear_down(&s);
}

Test(channel, a_notification_during_reading_keeps_the_channel_in_line)
{
    setup s;
    set_up(&s, 4);
    leati_segment *segment = add_segment(&s);
    leati_channel_notify(s.channel);
    cr_assert(wakes_of(&s.consumer) == 1);
    leati_channel *polled = leati_gate_poll(s.gate);
    commit(segment, 8);
    leati_channel_notify(s.channel); // a flush after the reader has seen nothing
    cr_assert(wakes_of(&s.consumer) == 0);
    leati_gate_done(s.gate, polled, false);
    cr_assert(leati_gate_has_data(s.gate) && leati_gate_poll(s.gate) == s.channel);
    leati_gate_done(s.gate, polled, false);
    cr_assert(!leati_gate_has_data(s.gate));
    // What is only committed does not hold it: the writer will say when it is to be read.
    commit(segment, 16);
    cr_assert(!leati_gate_poll(s.gate));
    tear_down(&s);
}

Test(channel, a_waiting_producer_is_poked_by_whatever_drains)
{
    setup s;
    set_up(&s, 4);
    leati_segment *segment = add_segment(&s);
    commit(segment, 8 | LEATI_SEGMENT_FINISHED);
    add_event(&s, 1, 0);
    leati_chunk chunk;
    leati_local_pool_await(s.pool);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    leati_channel_advance(s.channel, 8);
    cr_assert(wakes_of(&s.producer) == 0);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
    cr_assert(wakes_of(&s.producer) == 1);
    add_event(&s, 2, 0);
    leati_local_pool_await(s.pool);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
    cr_assert(wakes_of(&s.producer) == 1);
    // A segment that others still read makes room in this channel all the same.
    leati_segment *shared = add_segment(&s);
    leati_segment_hold(shared);
    commit(shared, LEATI_SEGMENT_FINISHED);
    leati_local_pool_await(s.pool);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_NONE);
    cr_assert(wakes_of(&s.producer) == 1 && used_of(s.pool) == 1);
    leati_segment_release(shared);
    tear_down(&s);
}

Test(channel, priority_events_come_first_and_in_order)
{
    setup s;
    set_up(&s, 4);
    commit(add_segment(&s), 8 | LEATI_SEGMENT_FINISHED);
    add_event(&s, 1, 0);
    for (uint64_t i = 0; i < 16; i++)
        add_event(&s, 100 + i, 1);
    leati_chunk chunk;
    for (uint64_t i = 0; i < 16; i++) {
        cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
        cr_assert(chunk.event.priority && chunk.event.checkpoint == 100 + i);
    }
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA && chunk.size == 8);
    leati_channel_advance(s.channel, 8);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
    cr_assert(chunk.event.checkpoint == 1);
    tear_down(&s);
}

Test(channel, what_is_still_queued_goes_home_with_the_channel)
{
    setup s;
    set_up(&s, 4);
    commit(add_segment(&s), 8 | LEATI_SEGMENT_FINISHED);
    add_event(&s, 1, 0);
    commit(add_segment(&s), 3);
    cr_assert(used_of(s.pool) == 2);
    tear_down(&s); // asserts that nothing is out
}

Test(channel, the_ring_goes_round_many_times)
{
    setup s;
    set_up(&s, 4);
    leati_chunk chunk;
    for (uint32_t i = 0; i < 1000; i++) {
        leati_segment *segment = add_segment(&s);
        segment->data[0] = (uint8_t)i;
        commit(segment, 1 | LEATI_SEGMENT_FINISHED);
        if (i < 5)
            continue;
        cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
        cr_assert(chunk.data[0] == (uint8_t)(i - 5));
        leati_channel_advance(s.channel, 1);
    }
    tear_down(&s);
}

Test(channel, a_segment_that_is_taken_makes_room_and_stays_valid_until_it_is_given_back)
{
    setup s;
    set_up(&s, 4);
    leati_chunk chunk;
    leati_segment *first = add_segment(&s);
    memcpy(first->data, "abc", 3);
    commit(first, 3);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(!leati_channel_take(s.channel, &chunk)); // it still grows
    commit(first, 3 | LEATI_SEGMENT_FINISHED);
    leati_segment *second = add_segment(&s);
    commit(second, 5 | LEATI_SEGMENT_FINISHED);
    add_event(&s, 1, 0);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(leati_channel_length(s.channel) == 3);
    cr_assert(leati_channel_take(s.channel, &chunk) == first);
    cr_assert(leati_channel_length(s.channel) == 2);
    // What was read of a segment before is not taken again.
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(chunk.segment == second && chunk.size == 5);
    leati_channel_advance(s.channel, 2);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(chunk.size == 3 && chunk.data == second->data + 2);
    cr_assert(leati_channel_take(s.channel, &chunk) == second);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_EVENT);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_NONE);
    cr_assert(memcmp(first->data, "abc", 3) == 0);
    leati_local_pool_await(s.pool);
    leati_channel_give_back(first);
    cr_assert(wakes_of(&s.producer) == 1);
    leati_channel_give_back(second);
    tear_down(&s);
}

Test(channel, a_shared_segment_that_is_given_back_tells_the_producer_of_the_room)
{
    setup s;
    set_up(&s, 4);
    leati_chunk chunk;
    leati_segment *segment = add_segment(&s);
    leati_segment_hold(segment);
    commit(segment, 5 | LEATI_SEGMENT_FINISHED);
    cr_assert(leati_channel_peek(s.channel, &chunk) == LEATI_CHUNK_DATA);
    cr_assert(leati_channel_take(s.channel, &chunk) == segment);
    leati_local_pool_await(s.pool);
    leati_channel_give_back(segment);
    cr_assert(wakes_of(&s.producer) == 1);
    leati_segment_release(segment);
    tear_down(&s);
}
