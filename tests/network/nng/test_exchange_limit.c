// SPDX-License-Identifier: Apache-2.0
// What the reader of a channel and its writer in another process learn of each other for
// debloating.
#include <criterion/criterion.h>
#include <sched.h>

#include "tests/network/nng/flow.h"

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ns = leati_clock_ns() + FLOW_PATIENCE_MS * INT64_C(1000000);                 \
        while (!(condition)) {                                                                     \
            cr_assert(leati_clock_ns() < until_ns, "waited too long for " #condition);             \
            sched_yield();                                                                         \
        }                                                                                          \
    } while (0)

typedef struct couple {
    node nodes[2];
    share shares[2];
    flow flow;
} couple;

static void couple_meet(couple *self, uint64_t total)
{
    node_open(&self->nodes[0], "one", 10000);
    node_open(&self->nodes[1], "two", 10000);
    for (uint32_t i = 0; i < 2; i++)
        share_open(&self->shares[i], self->nodes, 2, i, 77);
    flow_init(&self->flow, &self->shares[0], &self->shares[1], 0, total);
}

static void couple_open(couple *self, uint64_t total)
{
    couple_meet(self, total);
    flow_receive(&self->flow, 0, 8);
    flow_send(&self->flow, 1);
}

static void couple_end(couple *self)
{
    flow_hold(&self->flow, false);
    flow_await(&self->flow, UINT64_MAX);
    flow_join(&self->flow);
    share_close(&self->shares[0]);
    share_close(&self->shares[1]);
    flow_fini(&self->flow);
    node_close(&self->nodes[0]);
    node_close(&self->nodes[1]);
}

Test(exchange_limit, the_size_that_the_reader_wishes_gets_to_the_writer)
{
    static couple both;
    couple_open(&both, 3000000);
    flow *f = &both.flow;
    leati_channel_set_limit(f->in, 500);
    flow_start_producer(f);
    flow_start_consumer(f);
    flow_await(f, UINT64_MAX);
    cr_assert_eq(leati_channel_limit(f->out), 512); // in units of 16 bytes
    couple_end(&both);
}

Test(exchange_limit, a_reader_that_wishes_for_whole_segments_again_gets_them)
{
    static couple both;
    couple_open(&both, 3000000);
    flow *f = &both.flow;
    leati_channel_set_limit(f->out, 512);
    flow_start_producer(f);
    flow_start_consumer(f);
    flow_await(f, UINT64_MAX);
    cr_assert_eq(leati_channel_limit(f->out), 0);
    couple_end(&both);
}

// The sender has as much queued as its pool has before the reader opens the channel, and the reader
// has two segments, which nobody empties: the frames that fill them are the last ones.
Test(exchange_limit, the_reader_learns_how_much_is_queued_before_it)
{
    static couple both;
    couple_meet(&both, 200000);
    flow *f = &both.flow;
    flow_send(f, 1);
    flow_start_producer(f);
    AWAIT(leati_channel_length(f->out) >= 8);
    flow_hold(f, true);
    flow_receive(f, 0, 2);
    flow_start_consumer(f);
    AWAIT(leati_channel_backlog(f->in) >= 6);
    cr_assert(leati_channel_backlog(f->in) <= 16);
    couple_end(&both);
}
