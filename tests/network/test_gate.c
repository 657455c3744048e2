// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"
#include "network/channel.h"

enum { CHANNELS = 4 };

typedef struct setup {
    leati_global_pool *global;
    leati_local_pool *pool;
    fake_task producer, consumer;
    leati_channel *channels[CHANNELS];
    leati_gate *gate;
} setup;

static void set_up(setup *s)
{
    s->producer = fake_task_make();
    s->consumer = fake_task_make();
    s->global = make_global(64, 2);
    s->pool = make_local(s->global, &s->producer, 2, 2, 0);
    cr_assert(leati_gate_create(NULL, &s->consumer.waiter, CHANNELS, &s->gate) == LEAT_OK);
    for (uint32_t i = 0; i < CHANNELS; i++) {
        cr_assert(leati_channel_create(NULL, s->pool, 2, 0, &s->channels[i]) == LEAT_OK);
        leati_gate_attach(s->gate, i, s->channels[i]);
        cr_assert(leati_channel_index(s->channels[i]) == i);
    }
}

static void tear_down(setup *s)
{
    for (uint32_t i = 0; i < CHANNELS; i++)
        leati_channel_destroy(&s->channels[i]);
    leati_gate_destroy(&s->gate);
    end_local(&s->pool);
    leati_global_pool_destroy(&s->global);
}

static void add_urgent(leati_channel *channel)
{
    leati_event event = {.tag = LEATI_TAG_CANCEL_BARRIER, .priority = 1};
    leati_channel_add_event(channel, &event);
}

// Polls; the index of the channel or -1.
static int poll_index(setup *s)
{
    leati_channel *channel = leati_gate_poll(s->gate);
    return channel ? (int)leati_channel_index(channel) : -1;
}

Test(gate, channels_are_served_in_the_order_in_which_they_came)
{
    setup s;
    set_up(&s);
    static const int order[] = {2, 0, 3, 1};
    for (int i = 0; i < CHANNELS; i++)
        leati_channel_notify(s.channels[order[i]]);
    cr_assert(wakes_of(&s.consumer) == 1); // the first one; the others found it awake
    for (int i = 0; i < CHANNELS; i++) {
        cr_assert(poll_index(&s) == order[i]);
        leati_gate_done(s.gate, s.channels[order[i]], false);
    }
    cr_assert(poll_index(&s) == -1);
    tear_down(&s);
}

Test(gate, a_channel_with_more_goes_behind_those_that_came_meanwhile)
{
    setup s;
    set_up(&s);
    leati_channel_notify(s.channels[0]);
    cr_assert(poll_index(&s) == 0);
    leati_gate_done(s.gate, s.channels[0], true);
    leati_channel_notify(s.channels[1]);
    leati_channel_notify(s.channels[2]);
    static const int expected[] = {0, 1, 2, 0, 1, 2};
    for (int i = 0; i < 6; i++) {
        cr_assert(poll_index(&s) == expected[i]);
        leati_gate_done(s.gate, s.channels[expected[i]], true);
    }
    tear_down(&s);
}

Test(gate, a_channel_with_a_priority_event_jumps_the_line)
{
    setup s;
    set_up(&s);
    for (int i = 0; i < CHANNELS; i++)
        leati_channel_notify(s.channels[i]);
    add_urgent(s.channels[2]); // in the stack
    cr_assert(poll_index(&s) == 2);
    leati_gate_done(s.gate, s.channels[2], false);
    add_urgent(s.channels[3]); // in the line
    cr_assert(poll_index(&s) == 3);
    leati_gate_done(s.gate, s.channels[3], false);
    add_urgent(s.channels[2]); // out
    cr_assert(poll_index(&s) == 2);
    add_urgent(s.channels[2]); // being read
    leati_gate_done(s.gate, s.channels[2], true);
    cr_assert(poll_index(&s) == 2);
    leati_gate_done(s.gate, s.channels[2], false);
    cr_assert(poll_index(&s) == 0);
    leati_gate_done(s.gate, s.channels[0], false);
    cr_assert(poll_index(&s) == 1);
    leati_gate_done(s.gate, s.channels[1], false);
    cr_assert(poll_index(&s) == -1 && !leati_gate_has_data(s.gate));
    tear_down(&s);
}

Test(gate, a_priority_event_on_a_quiet_channel_wakes_the_reader)
{
    setup s;
    set_up(&s);
    add_urgent(s.channels[1]);
    cr_assert(wakes_of(&s.consumer) >= 1 && leati_gate_has_data(s.gate));
    cr_assert(poll_index(&s) == 1);
    leati_chunk chunk;
    cr_assert(leati_channel_peek(s.channels[1], &chunk) == LEATI_CHUNK_EVENT);
    cr_assert(leati_channel_peek(s.channels[1], &chunk) == LEATI_CHUNK_NONE);
    leati_gate_done(s.gate, s.channels[1], false);
    cr_assert(!leati_gate_has_data(s.gate));
    tear_down(&s);
}

Test(gate, any_failing_allocation_is_reported_and_leaks_nothing)
{
    fake_task task = fake_task_make();
    bool done = false;
    for (size_t n = 0; !done; n++) {
        meter memory;
        meter_init(&memory, n);
        leati_gate *gate = NULL;
        leati_channel *channel = NULL;
        leat_err err = leati_gate_create(&memory.hook, &task.waiter, 2, &gate);
        if (err == LEAT_OK)
            err = leati_channel_create(&memory.hook, NULL, 2, 2, &channel);
        done = err == LEAT_OK;
        cr_assert(done || err == LEAT_ENOMEM);
        leati_channel_destroy(&channel);
        leati_gate_destroy(&gate);
        cr_assert(memory.blocks == 0);
    }
}
