// SPDX-License-Identifier: Apache-2.0
// Signs of life between the processes of a cluster.
#include <criterion/criterion.h>

#include "tests/network/nng/flow.h"

// Two nodes, and a job between them that sends nothing.
typedef struct couple {
    node nodes[2];
    share shares[2];
    flow idle;
} couple;

static void couple_open(couple *self)
{
    node_open(&self->nodes[0], "one", 10000);
    node_open(&self->nodes[1], "two", 10000);
    for (uint32_t i = 0; i < 2; i++)
        share_open(&self->shares[i], self->nodes, 2, i, 77);
    flow_init(&self->idle, &self->shares[0], &self->shares[1], 0, 0);
    flow_receive(&self->idle, 0, 8);
    flow_send(&self->idle, 1);
}

static void couple_close(couple *self)
{
    share_close(&self->shares[0]);
    share_close(&self->shares[1]);
    flow_fini(&self->idle);
    node_close(&self->nodes[0]);
    node_close(&self->nodes[1]);
}

static leati_exchange_counts counts_of(const node *self)
{
    leati_exchange_counts counts;
    leati_exchange_count(self->transport, &counts);
    return counts;
}

Test(exchange_alive, who_says_nothing_is_given_up_and_the_job_fails_at_both_sides)
{
    static couple both;
    couple_open(&both);
    leati_exchange_set_silence(both.nodes[0].transport, 20, 200);
    for (uint32_t i = 0; i < 2; i++) {
        share_await_failure(&both.shares[i]);
        const char *start = i == 0 ? "the connection to taskmanager 1 was lost: "
                                   : "the connection to taskmanager 0 was lost: ";
        cr_assert(strncmp(both.shares[i].text, start, strlen(start)) == 0, "%s",
                  both.shares[i].text);
    }
    cr_assert_eq(both.shares[0].err, LEAT_EIO);
    cr_assert(strstr(both.shares[0].text, "has been silent for "), "%s", both.shares[0].text);
    couple_close(&both);
}

Test(exchange_alive, an_idle_connection_lives_on_while_both_give_signs)
{
    static couple both;
    couple_open(&both);
    for (uint32_t i = 0; i < 2; i++)
        leati_exchange_set_silence(both.nodes[i].transport, 20, 1000);
    // 100 signs at 20 ms take longer than the silence that is borne.
    int64_t until_ns = leati_clock_ns() + FLOW_PATIENCE_MS * INT64_C(1000000);
    while (counts_of(&both.nodes[1]).frames_in < 100) {
        cr_assert(leati_clock_ns() < until_ns);
        leati_parker parker = {0};
        leati_park_for(&parker, 10);
    }
    cr_assert_eq(both.shares[0].failures + both.shares[1].failures, 0);
    cr_assert_eq(counts_of(&both.nodes[0]).connections, 1);
    couple_close(&both);
}

Test(exchange_alive, a_connection_without_jobs_is_watched_too)
{
    static couple both;
    couple_open(&both);
    int64_t until_ns = leati_clock_ns() + FLOW_PATIENCE_MS * INT64_C(1000000);
    while (counts_of(&both.nodes[0]).connections + counts_of(&both.nodes[1]).connections < 2)
        cr_assert(leati_clock_ns() < until_ns);
    share_close(&both.shares[0]);
    share_close(&both.shares[1]);
    leati_exchange_set_silence(both.nodes[1].transport, 20, 200);
    while (counts_of(&both.nodes[0]).connections + counts_of(&both.nodes[1]).connections > 0)
        cr_assert(leati_clock_ns() < until_ns);
    flow_fini(&both.idle);
    node_close(&both.nodes[0]);
    node_close(&both.nodes[1]);
}
