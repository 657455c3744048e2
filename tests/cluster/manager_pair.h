// SPDX-License-Identifier: Apache-2.0
// A job manager with two task managers and a job that runs on both.
#ifndef TESTS_CLUSTER_MANAGER_PAIR_H
#define TESTS_CLUSTER_MANAGER_PAIR_H

#include "tests/cluster/manager_testing.h"

// One job of parallelism 2 in two task managers with a slot each.
typedef struct pair {
    boss b;
    fake one, two;
    char id[LEATI_ID_SIZE];
    uint64_t attempt;
} pair;

UNUSED static void pair_start(pair *p)
{
    boss_init(&p->b);
    boss_start(&p->b);
    put_artifact(&p->b);
    fake_start(&p->one, &p->b, 1, 1);
    fake_start(&p->two, &p->b, 2, 1);
    submit_simple(&p->b, 2, p->id);
    p->attempt = expect_deploy(&p->one);
    cr_assert(expect_deploy(&p->two) == p->attempt);
}

UNUSED static void pair_stop(pair *p)
{
    fake_stop(&p->one);
    fake_stop(&p->two);
    boss_stop(&p->b);
}

UNUSED static void expect_failure(pair *p, uint32_t index, const char *text)
{
    char got[LEATI_REASON_SIZE];
    failure_of(&p->b, p->id, index, got);
    cr_expect_str_eq(got, text);
}

UNUSED static void end_without_commit(pair *p, fake *f)
{
    say_over(f, p->attempt, false);
    cr_expect(!expect_conclude(f, p->attempt));
    say_concluded(f, p->attempt, NULL);
}

#endif
