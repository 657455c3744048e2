// SPDX-License-Identifier: Apache-2.0
// The exchange between processes: what arrives, credit, opening and closing, and what the loss of a
// connection means. What a peer can do wrong is in test_exchange_peer.c.
#include <criterion/criterion.h>
#include <sched.h>

#include "network/nng/exchange_impl.h"
#include "tests/network/nng/flow.h"

// Two nodes with a share of one job each.
typedef struct pair {
    node nodes[2];
    share shares[2];
} pair;

static void pair_open(pair *self, int64_t connect_timeout_ms)
{
    node_open(&self->nodes[0], "one", connect_timeout_ms);
    node_open(&self->nodes[1], "two", connect_timeout_ms);
    for (uint32_t i = 0; i < 2; i++)
        share_open(&self->shares[i], self->nodes, 2, i, 77);
}

static void pair_close_shares(pair *self)
{
    share_close(&self->shares[0]);
    share_close(&self->shares[1]);
}

static void pair_close_nodes(pair *self)
{
    node_close(&self->nodes[0]);
    node_close(&self->nodes[1]);
}

// A flow from share `from` to the other one, both ends of it.
static void flow_open(flow *self, pair *of, uint32_t from, uint32_t number, uint64_t total)
{
    flow_init(self, &of->shares[from], &of->shares[1 - from], number, total);
    flow_receive(self, from, 8);
    flow_send(self, 1 - from);
}

static void flow_start(flow *self)
{
    flow_start_producer(self);
    flow_start_consumer(self);
}

static leati_link_wait look_at(const flow *self)
{
    leati_link_wait wait;
    self->from->of->transport->look(self->from->link, self->number, &wait);
    return wait;
}

// Until the condition holds; what it waits for happens on other threads and tells nobody.
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ns = leati_clock_ns() + FLOW_PATIENCE_MS * INT64_C(1000000);                 \
        while (!(condition)) {                                                                     \
            cr_assert(leati_clock_ns() < until_ns, "waited too long for " #condition);             \
            sched_yield();                                                                         \
        }                                                                                          \
    } while (0)

static leati_exchange_counts counts_of(const node *self)
{
    leati_exchange_counts counts;
    leati_exchange_count(self->transport, &counts);
    return counts;
}

// Closes all connections of a node.
static void cut_all(node *self)
{
    leati_exchange *exchange = (leati_exchange *)self->transport;
    pthread_mutex_lock(&exchange->lock);
    for (leati_wire *wire = exchange->wires; wire; wire = wire->next)
        if (!wire->over && atomic_load(&wire->peer))
            leati_connection_close(wire->connection, LEAT_EIO, "cut by the test");
    pthread_mutex_unlock(&exchange->lock);
}

// --- what arrives ---

Test(exchange, bytes_and_events_arrive_once_and_in_order)
{
    enum { FLOWS = 10 };
    static flow flows[FLOWS];
    pair both;
    pair_open(&both, 10000);
    for (uint32_t i = 0; i < FLOWS; i++) {
        flow_open(&flows[i], &both, i % 2, i * 1000, i * 50000);
        flows[i].events = i % 5;
        flows[i].urgent = i;
        flow_start(&flows[i]);
    }
    for (uint32_t i = 0; i < FLOWS; i++) {
        flow_await(&flows[i], UINT64_MAX);
        flow_join(&flows[i]);
    }
    // One connection serves them all.
    cr_assert_eq(counts_of(&both.nodes[0]).connections, 1);
    cr_assert_eq(counts_of(&both.nodes[1]).connections, 1);
    cr_assert_eq(counts_of(&both.nodes[1]).channels, FLOWS);
    cr_assert(counts_of(&both.nodes[0]).bytes_out > 50000 * (2 + 4 + 6 + 8));
    cr_assert(counts_of(&both.nodes[1]).bytes_in > 50000 * (2 + 4 + 6 + 8));
    pair_close_shares(&both);
    cr_assert_eq(counts_of(&both.nodes[1]).channels, 0);
    for (uint32_t i = 0; i < FLOWS; i++) {
        cr_assert_eq(flows[i].to->failures, 0);
        flow_fini(&flows[i]);
    }
    pair_close_nodes(&both);
}

// The same numbers in another attempt are other channels; stream numbers are used again.
Test(exchange, jobs_one_after_the_other_and_at_once_do_not_meet)
{
    pair both;
    static flow flows[2];
    share others[2];
    pair_open(&both, 10000);
    pair_close_shares(&both);
    for (uint64_t attempt = 1; attempt <= 20; attempt++) {
        for (uint32_t i = 0; i < 2; i++) {
            share_open(&both.shares[i], both.nodes, 2, i, attempt);
            share_open(&others[i], both.nodes, 2, i, attempt + 1000);
        }
        flow_open(&flows[0], &both, 0, 5, 3000);
        flow_init(&flows[1], &others[0], &others[1], 5, 7000);
        flow_send(&flows[1], 1);
        flow_receive(&flows[1], 0, 4);
        for (uint32_t i = 0; i < 2; i++)
            flow_start(&flows[i]);
        for (uint32_t i = 0; i < 2; i++) {
            flow_await(&flows[i], UINT64_MAX);
            flow_join(&flows[i]);
        }
        pair_close_shares(&both);
        share_close(&others[0]);
        share_close(&others[1]);
        flow_fini(&flows[0]);
        flow_fini(&flows[1]);
    }
    pair_close_nodes(&both);
}

Test(exchange, what_is_kept_in_a_file_arrives)
{
    enum { PIECES = 40 };
    pair both;
    static flow f;
    pair_open(&both, 10000);
    flow_init(&f, &both.shares[0], &both.shares[1], 0, PIECES * 1000);
    flow_receive(&f, 0, 4);
    f.out_pool = flow_pool(f.from->of, 2, 2, &f.producer.waiter);
    leati_spool *spool;
    cr_assert_eq(leati_spool_create(NULL, 1, &spool), LEAT_OK);
    cr_assert_eq(leati_channel_create(NULL, f.out_pool, 10, 0, &f.out), LEAT_OK);
    leati_channel_set_spool(f.out, spool, 0);
    cr_assert_eq(both.nodes[0].transport->send(f.from->link, 0, 1, f.out), LEAT_OK);
    uint8_t piece[1000];
    for (uint64_t position = 0; position < f.total; position += sizeof piece) {
        for (uint64_t i = 0; i < sizeof piece; i++)
            piece[i] = flow_byte(position + i);
        cr_assert_eq(leati_spool_append(spool, 0, 1, piece, sizeof piece), LEAT_OK);
    }
    leati_spool_complete(spool);
    atomic_store(&f.put, f.total);
    flow_put_event(&f, (leati_event){.tag = LEATI_TAG_END_OF_DATA, .options = 1});
    flow_put_event(&f, (leati_event){.tag = LEATI_TAG_END_OF_PARTITION});
    flow_start_consumer(&f);
    flow_await(&f, UINT64_MAX);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    leati_spool_destroy(&spool);
    pair_close_nodes(&both);
}

// --- credit ---

Test(exchange, a_consumer_that_stops_bounds_what_is_under_way)
{
    pair both;
    static flow f;
    pair_open(&both, 10000);
    flow_open(&f, &both, 0, 0, 200 * FLOW_SEGMENT);
    flow_hold(&f, true);
    int64_t before_ns = leati_clock_ns();
    flow_start(&f);
    AWAIT(look_at(&f).no_credit && look_at(&f).backlog >= 8);
    leati_link_wait wait = look_at(&f);
    cr_assert(wait.since_ns >= before_ns && wait.since_ns <= leati_clock_ns());
    // Eight segments at the receiver and eight at the sender.
    cr_assert(atomic_load(&f.put) <= 16 * FLOW_SEGMENT);
    uint32_t used, limit;
    leati_local_pool_counts(f.in_pool, &used, &limit);
    cr_assert(used <= 8 && leati_channel_length(f.in) <= 8);
    // It is not told of a job's other channels.
    both.nodes[0].transport->look(both.shares[0].link, 1, &wait);
    cr_assert(!wait.no_credit && wait.backlog == 0);
    flow_hold(&f, false);
    flow_await(&f, UINT64_MAX);
    cr_assert(!look_at(&f).no_credit);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

Test(exchange, a_channel_that_stands_still_does_not_stop_the_others)
{
    enum { FLOWS = 6 };
    static flow flows[FLOWS];
    pair both;
    pair_open(&both, 10000);
    for (uint32_t i = 0; i < FLOWS; i++) {
        flow_open(&flows[i], &both, 0, i, 300000);
        flow_hold(&flows[i], i < 2);
        flow_start(&flows[i]);
    }
    for (uint32_t i = 2; i < FLOWS; i++)
        flow_await(&flows[i], UINT64_MAX);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert(!atomic_load(&flows[i].ended));
        flow_hold(&flows[i], false);
        flow_await(&flows[i], UINT64_MAX);
    }
    for (uint32_t i = 0; i < FLOWS; i++)
        flow_join(&flows[i]);
    pair_close_shares(&both);
    for (uint32_t i = 0; i < FLOWS; i++)
        flow_fini(&flows[i]);
    pair_close_nodes(&both);
}

// Twice, because the second one comes upon a channel that has been put back already.
Test(exchange, an_event_that_overtakes_needs_no_credit)
{
    pair both;
    static flow f;
    leati_chunk chunk;
    pair_open(&both, 10000);
    flow_open(&f, &both, 0, 0, 100 * FLOW_SEGMENT);
    flow_start_producer(&f);
    AWAIT(look_at(&f).no_credit);
    for (uint64_t i = 1; i <= 3; i++) {
        leati_event event = {.tag = LEATI_TAG_BARRIER,
                             .priority = 1,
                             .options = 7,
                             .checkpoint = i << 33,
                             .timestamp = -5};
        leati_channel_add_event(f.out, &event);
        AWAIT(leati_channel_peek(f.in, &chunk) == LEATI_CHUNK_EVENT);
        cr_assert_eq(chunk.event.tag, LEATI_TAG_BARRIER);
        cr_assert_eq(chunk.event.priority, 1);
        cr_assert_eq(chunk.event.options, 7);
        cr_assert_eq(chunk.event.checkpoint, i << 33);
        cr_assert_eq(chunk.event.timestamp, -5);
    }
    flow_cancel(&f);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

// An idle channel holds no more than a busy one is granted in advance, whatever it once needed.
Test(exchange, credit_beyond_what_is_granted_in_advance_comes_back)
{
    pair both;
    static flow f;
    uint32_t used, limit;
    pair_open(&both, 10000);
    flow_open(&f, &both, 0, 0, 100000);
    f.no_end = true;
    flow_start(&f);
    flow_await(&f, 100000);
    do {
        leati_local_pool_counts(f.in_pool, &used, &limit);
        sched_yield();
    } while (used > LEATI_RECEIVE_BUSY);
    flow_cancel(&f);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

// --- opening and closing ---

Test(exchange, a_channel_may_be_opened_before_its_sender_is_there)
{
    pair both;
    static flow f;
    pair_open(&both, 10000);
    flow_init(&f, &both.shares[1], &both.shares[0], 3, 20000);
    flow_receive(&f, 1, 8);
    flow_start_consumer(&f);
    AWAIT(counts_of(&both.nodes[1]).frames_in > 0);
    flow_send(&f, 0);
    flow_start_producer(&f);
    flow_await(&f, UINT64_MAX);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

Test(exchange, a_channel_that_nobody_knows_is_refused_in_the_end)
{
    pair both;
    static flow f;
    pair_open(&both, 200);
    flow_init(&f, &both.shares[1], &both.shares[0], 3, 0);
    flow_receive(&f, 1, 8);
    share_await_failure(&both.shares[0]);
    cr_assert_eq(both.shares[0].err, LEAT_ECLOSED);
    cr_assert_str_eq(both.shares[0].text,
                     "taskmanager 1 knows nothing of a channel that it is to send");
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

Test(exchange, close_sends_what_is_queued_when_all_has_gone_well)
{
    pair both;
    static flow f;
    pair_open(&both, 10000);
    flow_open(&f, &both, 0, 0, 8 * FLOW_SEGMENT);
    flow_start_producer(&f);
    flow_start_consumer(&f);
    pthread_join(f.producer.thread, NULL);
    f.producing = false;
    share_close(&both.shares[0]);
    flow_await(&f, UINT64_MAX);
    cr_assert_eq(both.shares[1].failures, 0);
    flow_join(&f);
    share_close(&both.shares[1]);
    flow_fini(&f);
    pair_close_nodes(&both);
}

Test(exchange, who_closes_before_the_end_fails_the_other_side)
{
    for (uint32_t gone = 0; gone < 2; gone++) {
        pair both;
        static flow f;
        pair_open(&both, 10000);
        flow_open(&f, &both, 0, 0, 1000 * FLOW_SEGMENT);
        flow_start(&f);
        flow_await(&f, 10000);
        flow_cancel(&f);
        flow_join(&f);
        share_close(&both.shares[gone]);
        share_await_failure(&both.shares[1 - gone]);
        cr_assert_eq(both.shares[1 - gone].err, LEAT_ECLOSED);
        cr_assert_str_eq(both.shares[1 - gone].text,
                         gone == 0 ? "taskmanager 0 has closed a channel before its end"
                                   : "taskmanager 1 has closed a channel that is sent to it");
        share_close(&both.shares[1 - gone]);
        flow_fini(&f);
        pair_close_nodes(&both);
    }
}

Test(exchange, a_link_without_channels_or_with_a_waiter_only_can_be_closed)
{
    pair both;
    pair_open(&both, 10000);
    cr_assert(both.nodes[0].transport->waiter(both.shares[0].link, 9));
    pair_close_shares(&both);
    pair_close_nodes(&both);
}

// --- connections that are not there, or are lost ---

Test(exchange, a_lost_connection_fails_both_sides_and_not_the_next_job)
{
    pair both;
    static flow f;
    pair_open(&both, 10000);
    flow_open(&f, &both, 0, 0, 1000000);
    flow_start(&f);
    flow_await(&f, 20000);
    cut_all(&both.nodes[0]);
    for (uint32_t i = 0; i < 2; i++) {
        share_await_failure(&both.shares[i]);
        const char *start = i == 0 ? "the connection to taskmanager 1 was lost: "
                                   : "the connection to taskmanager 0 was lost: ";
        cr_assert(strncmp(both.shares[i].text, start, strlen(start)) == 0, "%s",
                  both.shares[i].text);
    }
    cr_assert(strstr(both.shares[0].text, "cut by the test"));
    flow_cancel(&f);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    for (uint32_t i = 0; i < 2; i++)
        share_open(&both.shares[i], both.nodes, 2, i, 78);
    flow_open(&f, &both, 1, 0, 10000);
    flow_start(&f);
    flow_await(&f, UINT64_MAX);
    flow_join(&f);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

// Whether the receiver of the only channel that is sent has told to have all of it.
static bool is_confirmed(share *self)
{
    leati_end *end = self->link->ends;
    leati_exchange_peer *peer = atomic_load(&end->peer);
    pthread_mutex_lock(&peer->lock);
    bool confirmed = end->state == LEATI_END_DEAD;
    pthread_mutex_unlock(&peer->lock);
    return confirmed;
}

Test(exchange, a_finished_job_does_not_fail_when_the_connection_is_lost)
{
    pair both;
    static flow f;
    pair_open(&both, 10000);
    flow_open(&f, &both, 0, 0, 10000);
    flow_start(&f);
    flow_await(&f, UINT64_MAX);
    flow_join(&f);
    AWAIT(is_confirmed(&both.shares[0]));
    cut_all(&both.nodes[0]);
    AWAIT(counts_of(&both.nodes[0]).connections == 0);
    AWAIT(counts_of(&both.nodes[1]).connections == 0);
    cr_assert_eq(both.shares[0].failures + both.shares[1].failures, 0);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

// --- what is put off to the end of a turn ---

typedef void (*action)(void *arg);
static _Atomic(action) put_off;
static _Atomic(void *) put_off_for;

// A turn that does not end.
static bool put_off_all(action fn, void *arg)
{
    atomic_store(&put_off_for, arg);
    atomic_store(&put_off, fn);
    return true;
}

static bool no_visit(void (*stuck)(void *arg), void *arg)
{
    return false;
}

static bool is_opened(share *self, bool and_ready)
{
    leati_end *end = self->link->ends;
    leati_exchange_peer *peer = atomic_load(&end->peer);
    pthread_mutex_lock(&peer->lock);
    bool ready = peer->lists[LEATI_LIST_READY].first == end;
    bool opened = end->opened && ready == and_ready;
    pthread_mutex_unlock(&peer->lock);
    return opened;
}

// It does so by a nudge, by its turn's end, or at once when it is to be prompt.
Test(exchange, what_a_task_sends_goes_when_its_turn_ends_or_is_nudged)
{
    enum { NUDGE, TURN, PROMPT, WAYS };
    static const leati_turns turns = {.later = put_off_all, .visit = no_visit};
    for (int way = 0; way < WAYS; way++) {
        pair both;
        static flow f;
        pair_open(&both, 10000);
        both.shares[0].link->turns = &turns;
        flow_init(&f, &both.shares[0], &both.shares[1], 0, 1000);
        f.prompt = way == PROMPT;
        flow_receive(&f, 0, 8);
        flow_send(&f, 1);
        AWAIT(is_opened(&both.shares[0], false));
        flow_start(&f);
        if (way != PROMPT) {
            AWAIT(is_opened(&both.shares[0], true));
            cr_assert_eq(atomic_load(&f.got), 0); // nothing else makes it go
        }
        for (bool over = false; !over; sched_yield()) {
            if (way == NUDGE)
                both.nodes[0].transport->nudge(both.shares[0].link);
            else if (way == TURN)
                atomic_load (&put_off)(atomic_load(&put_off_for));
            pthread_mutex_lock(&f.lock);
            over = atomic_load(&f.ended);
            pthread_mutex_unlock(&f.lock);
        }
        flow_join(&f);
        pair_close_shares(&both);
        flow_fini(&f);
        pair_close_nodes(&both);
    }
}

Test(exchange, a_peer_that_is_not_there_fails_the_link)
{
    pair both;
    node_open(&both.nodes[0], "one", 300);
    node_open(&both.nodes[1], "two", 300);
    // A port that was free a moment ago, and is not listened at.
    node gone;
    char nobody[64];
    node_open(&gone, "gone", 300);
    snprintf(nobody, sizeof nobody, "%s", leati_exchange_address(gone.transport));
    node_close(&gone);
    const char *addresses[2] = {nobody, nobody};
    for (uint32_t self = 0; self < 2; self++) {
        static flow f;
        share_open_at(&both.shares[self], both.nodes, 2, self, 5, addresses);
        flow_init(&f, NULL, &both.shares[self], 0, 0);
        flow_receive(&f, 1 - self, 4);
        share_await_failure(&both.shares[self]);
        cr_assert_eq(both.shares[self].err, LEAT_EIO);
        const char *start = self == 0 ? "no connection to taskmanager 1: tcp://"
                                      : "no connection to taskmanager 0 (tcp://";
        cr_assert(strncmp(both.shares[self].text, start, strlen(start)) == 0, "%s",
                  both.shares[self].text);
        if (self == 1) // "one" has to dial
            cr_assert(strstr(both.shares[self].text, "has not connected within 1800 ms"));
        share_close(&both.shares[self]);
        flow_fini(&f);
    }
    pair_close_nodes(&both);
}

Test(exchange, processes_of_two_clusters_do_not_talk)
{
    pair both;
    static flow f;
    pair_open(&both, 500);
    leati_exchange_set_cluster(both.nodes[0].transport, "red");
    leati_exchange_set_cluster(both.nodes[1].transport, "blue");
    flow_open(&f, &both, 0, 0, 100);
    share_await_failure(&both.shares[0]);
    share_await_failure(&both.shares[1]);
    cr_assert_eq(counts_of(&both.nodes[1]).frames_in, 0);
    pair_close_shares(&both);
    flow_fini(&f);
    pair_close_nodes(&both);
}

Test(exchange, an_address_in_use_is_told)
{
    node first;
    leati_transport *second = NULL;
    char why[256] = "";
    node_open(&first, "one", 1000);
    leati_exchange_options options = {
        .address = leati_exchange_address(first.transport),
        .process = "two",
        .segment_size = FLOW_SEGMENT,
        .connect_timeout_ms = 1000,
    };
    cr_assert_eq(leati_exchange_create(&options, &second, why, sizeof why), LEAT_EIO);
    cr_assert(!second && strstr(why, options.address), "%s", why);
    node_close(&first);
}
