// SPDX-License-Identifier: Apache-2.0
#include "runtime/scheduler.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <string.h>

static leati_scheduler *scheduler;
static sem_t entered, leave, ended;

static void set_up(void)
{
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    sem_init(&ended, 0, 0);
    cr_assert(leati_scheduler_create(NULL, 1, &scheduler) == LEAT_OK);
}

static void tear_down(void)
{
    leati_scheduler_destroy(&scheduler);
    cr_assert_null(scheduler);
}

TestSuite(scheduler, .init = set_up, .fini = tear_down, .timeout = 60);

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

// A runnable that announces each turn and does what it was told for it.
typedef struct script {
    leati_runnable run; // first
    const leati_turn *turns;
    bool waits; // inside each turn, until it may leave
    int count;
    char name;
    int ended_count;
} script;

static char order[64];

static leati_turn follow(leati_runnable *run)
{
    script *s = (script *)run;
    leati_turn turn = s->turns[s->count++];
    order[strlen(order)] = s->name;
    sem_post(&entered);
    if (s->waits)
        wait_for(&leave);
    return turn;
}

static void script_ended(leati_runnable *run)
{
    ((script *)run)->ended_count++;
    sem_post(&ended);
}

static void start(script *s)
{
    leati_runnable_init(&s->run, scheduler, 0, follow, script_ended);
}

Test(scheduler, a_runnable_has_turns_until_it_ends)
{
    static const leati_turn turns[] = {LEATI_TURN_AGAIN, LEATI_TURN_AGAIN, LEATI_TURN_SLEEP,
                                       LEATI_TURN_END};
    script s = {.turns = turns, .name = 'a'};
    start(&s);
    leati_runnable_wake(&s.run);
    for (int i = 0; i < 3; i++)
        wait_for(&entered);
    // It sleeps, or is about to: in both cases this makes it run again.
    leati_runnable_wake(&s.run);
    wait_for(&ended);
    cr_assert(s.count == 4 && s.ended_count == 1);
    // Waking it is harmless from now on.
    leati_runnable_wake(&s.run);
    leati_runnable_wake(&s.run);
    leati_scheduler_destroy(&scheduler);
    cr_assert(s.count == 4 && s.ended_count == 1);
}

Test(scheduler, one_that_is_held_runs_when_it_is_released)
{
    static const leati_turn turns[] = {LEATI_TURN_END};
    script held = {.turns = turns, .name = 'a'}, other = {.turns = turns, .name = 'b'};
    start(&held);
    start(&other);
    leati_runnable_hold(&held.run);
    leati_runnable_wake(&held.run);
    leati_runnable_wake(&other.run);
    wait_for(&ended);
    cr_assert_str_eq(order, "b");
    leati_runnable_release(&held.run);
    wait_for(&ended);
    cr_assert_str_eq(order, "ba");
    cr_assert(held.count == 1);
}

Test(scheduler, one_that_was_held_runs_though_nobody_has_woken_it)
{
    static const leati_turn turns[] = {LEATI_TURN_END};
    script held = {.turns = turns, .name = 'a'};
    start(&held);
    leati_runnable_hold(&held.run);
    leati_runnable_release(&held.run);
    wait_for(&ended);
    cr_assert(held.count == 1);
}

Test(scheduler, waking_a_running_one_makes_it_run_once_more)
{
    static const leati_turn turns[] = {LEATI_TURN_SLEEP, LEATI_TURN_END};
    script s = {.turns = turns, .waits = true, .name = 'a'};
    start(&s);
    leati_runnable_wake(&s.run);
    wait_for(&entered);
    for (int i = 0; i < 3; i++)
        leati_runnable_wake(&s.run);
    sem_post(&leave);
    wait_for(&entered);
    sem_post(&leave);
    wait_for(&ended);
    cr_assert(s.count == 2);
}

Test(scheduler, ready_ones_are_served_in_order_and_urgent_ones_first)
{
    static const leati_turn turns[] = {LEATI_TURN_SLEEP, LEATI_TURN_END};
    static const leati_turn once[] = {LEATI_TURN_END};
    script first = {.turns = turns, .waits = true, .name = 'a'};
    script others[3] = {
        {.turns = once, .name = 'b'}, {.turns = once, .name = 'c'}, {.turns = once, .name = 'd'}};
    start(&first);
    leati_runnable_wake(&first.run);
    wait_for(&entered);
    // The only worker is busy.
    for (int i = 0; i < 3; i++) {
        start(&others[i]);
        atomic_store(&others[i].run.urgent, i == 2);
        leati_runnable_wake(&others[i].run);
        leati_runnable_wake(&others[i].run);
    }
    sem_post(&leave);
    for (int i = 0; i < 3; i++)
        wait_for(&ended);
    sem_post(&leave);
    leati_runnable_wake(&first.run);
    wait_for(&ended);
    cr_assert_str_eq(order, "adbca");
}

// --- waiting ---

typedef struct waiter {
    leati_runnable run; // first
    _Atomic bool open, stops;
    _Atomic int looks;
    leat_err result;
} waiter;

static bool is_open(void *arg)
{
    waiter *w = arg;
    w->looks++;
    sem_post(&entered);
    return w->open;
}

static bool is_stopped(void *arg)
{
    return ((waiter *)arg)->stops;
}

static leati_turn wait_in_turn(leati_runnable *run)
{
    waiter *w = (waiter *)run;
    w->result = leati_scheduler_wait(run, is_open, w, is_stopped, w);
    return LEATI_TURN_END;
}

static void waiter_ended(leati_runnable *run)
{
    sem_post(&ended);
}

Test(scheduler, what_is_ready_or_stopped_at_once_does_not_wait)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        waiter w = {.open = true, .stops = stopped};
        leati_runnable_init(&w.run, scheduler, 0, wait_in_turn, waiter_ended);
        leati_runnable_wake(&w.run);
        wait_for(&ended);
        cr_assert(w.result == (stopped ? LEAT_ECANCELLED : LEAT_OK));
        // Stopping goes first.
        cr_assert(w.looks == (stopped ? 0 : 1));
        cr_assert(leati_scheduler_threads(scheduler) == 1);
    }
}

Test(scheduler, a_wait_ends_when_it_is_woken_with_a_reason)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        waiter w = {.result = LEAT_EINVAL};
        leati_runnable_init(&w.run, scheduler, 0, wait_in_turn, waiter_ended);
        leati_runnable_wake(&w.run);
        wait_for(&entered);
        wait_for(&entered);
        // Woken without a reason it looks and waits on.
        leati_runnable_wake(&w.run);
        wait_for(&entered);
        *(stopped ? &w.stops : &w.open) = true;
        leati_runnable_wake(&w.run);
        wait_for(&ended);
        cr_assert(w.result == (stopped ? LEAT_ECANCELLED : LEAT_OK));
        while (sem_trywait(&entered) == 0)
            ;
    }
}

Test(scheduler, others_of_the_worker_run_during_a_wait)
{
    static const leati_turn once[] = {LEATI_TURN_END};
    enum { WAITERS = 5 };
    waiter w[WAITERS] = {0};
    for (int i = 0; i < WAITERS; i++) {
        leati_runnable_init(&w[i].run, scheduler, 0, wait_in_turn, waiter_ended);
        leati_runnable_wake(&w[i].run);
        wait_for(&entered);
        wait_for(&entered);
    }
    script other = {.turns = once, .name = 'a'};
    start(&other);
    leati_runnable_wake(&other.run);
    wait_for(&ended);
    cr_assert(other.count == 1);
    for (int i = 0; i < WAITERS; i++) {
        w[i].open = true;
        leati_runnable_wake(&w[i].run);
        wait_for(&ended);
        cr_assert(w[i].result == LEAT_OK);
    }
    // The worker's thread and one more for each wait, at most.
    cr_assert(leati_scheduler_threads(scheduler) <= 1 + WAITERS);
}

// --- threads ---

Test(scheduler, a_reserve_is_made_once)
{
    cr_assert(leati_scheduler_workers(scheduler) == 1);
    cr_assert(leati_scheduler_threads(scheduler) == 1);
    for (int i = 0; i < 2; i++) {
        cr_assert(leati_scheduler_reserve(scheduler, 3) == LEAT_OK);
        cr_assert(leati_scheduler_threads(scheduler) == 4);
    }
    cr_assert(leati_scheduler_reserve(scheduler, 1) == LEAT_OK);
    cr_assert(leati_scheduler_threads(scheduler) == 4);
}

Test(scheduler, threads_of_own_workers_are_no_reserve)
{
    leati_worker *own[2];
    for (int i = 0; i < 2; i++)
        cr_assert(leati_worker_create(scheduler, &own[i]) == LEAT_OK);
    cr_assert(leati_scheduler_threads(scheduler) == 3);
    cr_assert(leati_scheduler_reserve(scheduler, 2) == LEAT_OK);
    cr_assert(leati_scheduler_threads(scheduler) == 5);
    for (int i = 0; i < 2; i++)
        leati_worker_destroy(&own[i]);
    // They are spares from now on.
    cr_assert(leati_scheduler_reserve(scheduler, 4) == LEAT_OK);
    cr_assert(leati_scheduler_threads(scheduler) == 5);
}

Test(scheduler, threads_of_own_workers_are_used_again)
{
    static const leati_turn turns[] = {LEATI_TURN_AGAIN, LEATI_TURN_END};
    for (int i = 0; i < 50; i++) {
        leati_worker *worker;
        cr_assert(leati_worker_create(scheduler, &worker) == LEAT_OK);
        script s = {.turns = turns, .name = 'a'};
        start(&s);
        leati_runnable_move(&s.run, worker);
        memset(order, 0, sizeof order);
        leati_runnable_wake(&s.run);
        wait_for(&ended);
        cr_assert(s.count == 2);
        leati_worker_destroy(&worker);
        cr_assert_null(worker);
        // The thread becomes a spare soon after; that it has, shows in the next round but one.
    }
    cr_assert(leati_scheduler_threads(scheduler) <= 10, "%u", leati_scheduler_threads(scheduler));
}

Test(scheduler, a_scheduler_without_work_can_be_destroyed)
{
    for (uint32_t workers = 1; workers <= 8; workers++) {
        leati_scheduler *other;
        cr_assert(leati_scheduler_create(NULL, workers, &other) == LEAT_OK);
        cr_assert(leati_scheduler_reserve(other, workers) == LEAT_OK);
        leati_scheduler_destroy(&other);
    }
}
