// SPDX-License-Identifier: Apache-2.0
// Threads of others that give turns.
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "base/thread.h"
#include "runtime/scheduler_impl.h"

static leati_scheduler *scheduler;
static sem_t entered, leave, ended, stuck_called;

static void set_up(void)
{
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    sem_init(&ended, 0, 0);
    sem_init(&stuck_called, 0, 0);
    cr_assert(leati_scheduler_create(NULL, 1, &scheduler) == LEAT_OK);
}

static void tear_down(void)
{
    leati_scheduler_destroy(&scheduler);
}

TestSuite(visit, .init = set_up, .fini = tear_down, .timeout = 60);

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

// Until all shared workers sleep, which goes on until something is woken.
static void await_sleep(void)
{
    while (atomic_load(&scheduler->sleepers) < scheduler->worker_count)
        sched_yield();
}

static bool sleeps(leati_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool sleeping = w->sleeping;
    pthread_mutex_unlock(&w->lock);
    return sleeping;
}

// A runnable that notes who gives its turns, and what it does in them.
typedef struct actor {
    leati_runnable run; // first
    enum { NOTHING, BLOCK, LEND, WAIT, COMPUTE, VISIT } does;
    _Atomic leati_turn then;
    _Atomic int turns;
    _Atomic bool open; // what WAIT waits for
    bool began;        // of VISIT
    bool lingers;      // after it has ended
    pthread_t thread, thread_after;
} actor;

static bool is_open(void *arg)
{
    return atomic_load(&((actor *)arg)->open);
}

static bool never(void *arg)
{
    return false;
}

static void on_stuck(void *arg)
{
    sem_post(arg);
}

// Longer than a visit is to last.
static void compute(void)
{
    int64_t until = leati_clock_ns() + 5000000;
    while (leati_clock_ns() < until)
        ;
}

static leati_turn act(leati_runnable *run)
{
    actor *a = (actor *)run;
    a->thread = pthread_self();
    atomic_fetch_add(&a->turns, 1);
    sem_post(&entered);
    if (a->does == BLOCK) {
        wait_for(&leave);
    } else if (a->does == LEND) {
        cr_assert(leati_scheduler_lend(run->scheduler) == LEAT_OK);
        while (!is_open(a))
            sched_yield();
        leati_scheduler_take_back(run->scheduler);
    } else if (a->does == WAIT) {
        cr_assert(leati_scheduler_wait(run, is_open, a, never, NULL) == LEAT_OK);
    } else if (a->does == COMPUTE) {
        compute();
    } else if (a->does == VISIT) {
        a->began = leati_visit_begin(on_stuck, &stuck_called);
    }
    a->thread_after = pthread_self();
    return a->then;
}

static void note_end(leati_runnable *run)
{
    // Whoever is told so may free the runnable.
    bool lingers = ((actor *)run)->lingers;
    sem_post(&ended);
    if (lingers)
        compute();
}

static void init_at(actor *a, uint32_t home)
{
    leati_runnable_init(&a->run, scheduler, home, act, note_end);
}

static void end_waits(actor *a)
{
    atomic_store(&a->open, true);
    leati_runnable_wake(&a->run);
}

static bool was_here(const actor *a)
{
    return pthread_equal(a->thread, pthread_self());
}

// Begins a visit, sooner or later.
static void begin(void)
{
    while (!leati_visit_begin(on_stuck, &stuck_called))
        ;
}

// A visit of a thread of its own, to a worker that sleeps.
typedef struct guest {
    pthread_t thread;
    actor *wakes;
    bool had_worker;
} guest;

static void *visit(void *arg)
{
    guest *g = arg;
    begin();
    leati_runnable_wake(&g->wakes->run);
    g->had_worker = leati_visit_has_worker();
    leati_visit_end();
    return NULL;
}

static void start_visit(guest *g, actor *wakes)
{
    g->wakes = wakes;
    cr_assert(pthread_create(&g->thread, NULL, visit, g) == 0);
}

static void join_visit(guest *g)
{
    pthread_join(g->thread, NULL);
    cr_assert(g->had_worker);
}

// That the worker is as it was: it sleeps in the end, and may be visited.
static void check_that_a_visit_goes_well(void)
{
    actor a = {.then = LEATI_TURN_END};
    init_at(&a, 0);
    await_sleep();
    begin();
    leati_runnable_wake(&a.run);
    cr_assert(leati_visit_has_worker());
    leati_visit_end();
    wait_for(&ended);
    cr_assert(a.turns == 1);
    cr_assert(was_here(&a));
    await_sleep();
    actor b = {.then = LEATI_TURN_END};
    init_at(&b, 0);
    leati_runnable_wake(&b.run);
    wait_for(&ended);
    cr_assert(!was_here(&b));
}

// --- who gives a turn ---

Test(visit, a_worker_that_sleeps_is_visited_by_who_wakes_its_runnable)
{
    actor a = {.then = LEATI_TURN_SLEEP};
    init_at(&a, 0);
    await_sleep();
    begin();
    cr_assert(!leati_visit_has_worker());
    leati_runnable_wake(&a.run);
    cr_assert(leati_visit_has_worker());
    cr_assert(a.turns == 0);
    leati_visit_end();
    cr_assert(!leati_visit_has_worker());
    cr_assert(a.turns == 1);
    cr_assert(was_here(&a));
    // Nobody else was woken for it.
    cr_assert(scheduler->sleepers == 1);
    cr_assert(leati_scheduler_threads(scheduler) == 1);
    a.then = LEATI_TURN_END;
    leati_runnable_wake(&a.run); // not in a visit
    wait_for(&ended);
    cr_assert(!was_here(&a));
}

Test(visit, without_news_nothing_happens)
{
    await_sleep();
    begin();
    leati_visit_end();
    cr_assert(scheduler->sleepers == 1);
    check_that_a_visit_goes_well();
}

Test(visit, a_busy_worker_is_not_visited)
{
    actor busy = {.does = BLOCK, .then = LEATI_TURN_END}, a = {.then = LEATI_TURN_END};
    init_at(&busy, 0);
    init_at(&a, 0);
    leati_runnable_wake(&busy.run);
    wait_for(&entered);
    begin();
    leati_runnable_wake(&a.run);
    cr_assert(!leati_visit_has_worker());
    leati_visit_end();
    sem_post(&leave);
    wait_for(&ended);
    wait_for(&ended);
    cr_assert(a.turns == 1);
    cr_assert(!was_here(&a));
}

Test(visit, an_own_worker_is_not_visited)
{
    leati_worker *own;
    actor a = {.then = LEATI_TURN_END};
    cr_assert(leati_worker_create(scheduler, &own) == LEAT_OK);
    init_at(&a, 0);
    leati_runnable_move(&a.run, own);
    while (!sleeps(own))
        sched_yield();
    begin();
    leati_runnable_wake(&a.run);
    cr_assert(!leati_visit_has_worker());
    leati_visit_end();
    wait_for(&ended);
    cr_assert(!was_here(&a));
    leati_worker_destroy(&own);
}

Test(visit, who_gives_turns_already_does_not_begin_a_visit)
{
    actor in_visit = {.does = VISIT, .then = LEATI_TURN_END}, in_worker = in_visit;
    init_at(&in_visit, 0);
    init_at(&in_worker, 0);
    await_sleep();
    begin();
    cr_assert(!leati_visit_begin(on_stuck, &stuck_called));
    leati_runnable_wake(&in_visit.run);
    leati_visit_end();
    wait_for(&ended);
    cr_assert(was_here(&in_visit));
    cr_assert(!in_visit.began);
    leati_runnable_wake(&in_worker.run);
    wait_for(&ended);
    cr_assert(!was_here(&in_worker));
    cr_assert(!in_worker.began);
}

Test(visit, one_worker_is_taken_and_others_are_roused)
{
    leati_scheduler_destroy(&scheduler);
    cr_assert(leati_scheduler_create(NULL, 2, &scheduler) == LEAT_OK);
    actor first = {.then = LEATI_TURN_END}, second = {.then = LEATI_TURN_END};
    init_at(&first, 0);
    init_at(&second, 1);
    await_sleep();
    begin();
    leati_runnable_wake(&first.run);
    cr_assert(leati_visit_has_worker());
    leati_runnable_wake(&second.run);
    // Before this thread gives any turn. The other worker may take both.
    wait_for(&ended);
    leati_visit_end();
    wait_for(&ended);
    cr_assert(first.turns == 1 && second.turns == 1);
    cr_assert(!was_here(&second));
    await_sleep();
}

Test(visit, one_guest_at_a_time_has_a_worker)
{
    actor a = {.then = LEATI_TURN_END}, b = {.then = LEATI_TURN_END};
    guest other = {0};
    init_at(&a, 0);
    init_at(&b, 0);
    await_sleep();
    begin();
    leati_runnable_wake(&a.run);
    start_visit(&other, &b);
    pthread_join(other.thread, NULL);
    cr_assert(!other.had_worker);
    cr_assert(b.turns == 0);
    leati_visit_end();
    wait_for(&ended);
    wait_for(&ended);
    cr_assert(was_here(&a));
    cr_assert(b.turns == 1);
    check_that_a_visit_goes_well();
}

// --- how much ---

Test(visit, who_is_never_done_goes_on_at_the_worker)
{
    actor a = {.then = LEATI_TURN_AGAIN};
    init_at(&a, 0);
    await_sleep();
    begin();
    leati_runnable_wake(&a.run);
    leati_visit_end();
    for (int i = 0; i < 1000; i++)
        wait_for(&entered);
    atomic_store(&a.then, LEATI_TURN_END);
    wait_for(&ended);
    cr_assert(!was_here(&a));
    check_that_a_visit_goes_well();
}

Test(visit, what_is_too_much_for_a_visit_is_left_to_the_worker)
{
    enum { COUNT = 40 };
    static actor actors[COUNT];
    await_sleep();
    begin();
    for (int i = 0; i < COUNT; i++) {
        actors[i].then = LEATI_TURN_END;
        init_at(&actors[i], 0);
        leati_runnable_wake(&actors[i].run);
    }
    leati_visit_end();
    for (int i = 0; i < COUNT; i++)
        wait_for(&ended);
    cr_assert(was_here(&actors[0]));
    cr_assert(!was_here(&actors[COUNT - 1]));
    for (int i = 0; i < COUNT; i++)
        cr_assert(actors[i].turns == 1);
    check_that_a_visit_goes_well();
}

Test(visit, after_a_long_visit_some_occasions_are_left_out)
{
    actor a = {.does = COMPUTE, .then = LEATI_TURN_END};
    init_at(&a, 0);
    await_sleep();
    cr_assert(leati_visit_begin(on_stuck, &stuck_called));
    leati_runnable_wake(&a.run);
    leati_visit_end();
    cr_assert(was_here(&a));
    wait_for(&ended);
    int left_out = 0;
    while (!leati_visit_begin(on_stuck, &stuck_called))
        cr_assert(++left_out < 100000);
    leati_visit_end();
    cr_assert(left_out > 0);
    check_that_a_visit_goes_well();
}

// --- turns that wait ---

// The worker is back with the guest when the turn goes on, or others have it.
static void check_wait(int does, bool others_have_it)
{
    actor waits = {.does = does, .then = LEATI_TURN_END};
    actor other = {.does = others_have_it ? BLOCK : NOTHING, .then = LEATI_TURN_END};
    guest g = {0};
    init_at(&waits, 0);
    init_at(&other, 0);
    await_sleep();
    start_visit(&g, &waits);
    wait_for(&entered);
    wait_for(&stuck_called);
    // It is lent from here on, or soon.
    leati_runnable_wake(&other.run);
    wait_for(&entered);
    if (others_have_it) {
        end_waits(&waits);
        join_visit(&g);
        sem_post(&leave);
    } else {
        wait_for(&ended);
        await_sleep();
        end_waits(&waits);
        join_visit(&g);
    }
    wait_for(&ended);
    if (others_have_it)
        wait_for(&ended);
    cr_assert(pthread_equal(waits.thread, g.thread));
    cr_assert(pthread_equal(waits.thread_after, g.thread));
    cr_assert(!pthread_equal(other.thread, g.thread));
    cr_assert(waits.turns == 1 && other.turns == 1);
    // The thread that slept took over, so there was none to be made.
    cr_assert(leati_scheduler_threads(scheduler) == 1);
    check_that_a_visit_goes_well();
}

Test(visit, others_go_on_while_a_turn_waits_that_has_its_worker_back_then)
{
    check_wait(WAIT, false);
}

Test(visit, others_go_on_while_a_turn_waits_and_keep_the_worker)
{
    check_wait(WAIT, true);
}

Test(visit, others_go_on_while_a_turn_blocks_that_has_its_worker_back_then)
{
    check_wait(LEND, false);
}

Test(visit, others_go_on_while_a_turn_blocks_and_keep_the_worker)
{
    check_wait(LEND, true);
}

Test(visit, a_worker_that_is_lent_by_a_guest_may_be_visited)
{
    actor waits = {.does = WAIT, .then = LEATI_TURN_END}, second = waits;
    guest g = {0}, h = {0};
    init_at(&waits, 0);
    init_at(&second, 0);
    await_sleep();
    start_visit(&g, &waits);
    wait_for(&entered);
    await_sleep();
    start_visit(&h, &second);
    wait_for(&entered);
    await_sleep();
    // The one that came first has it back first, and returns it before the other one looks.
    end_waits(&waits);
    join_visit(&g);
    end_waits(&second);
    join_visit(&h);
    wait_for(&ended);
    wait_for(&ended);
    cr_assert(pthread_equal(waits.thread_after, g.thread));
    cr_assert(pthread_equal(second.thread_after, h.thread));
    cr_assert(leati_scheduler_threads(scheduler) == 1);
    check_that_a_visit_goes_well();
}

Test(visit, a_turn_that_blocks_without_having_said_so_loses_the_worker)
{
    actor blocks = {.does = BLOCK, .then = LEATI_TURN_END}, other = {.then = LEATI_TURN_END};
    guest g = {0};
    init_at(&blocks, 0);
    init_at(&other, 0);
    await_sleep();
    start_visit(&g, &blocks);
    wait_for(&entered);
    wait_for(&stuck_called);
    leati_runnable_wake(&other.run);
    wait_for(&ended);
    cr_assert(other.turns == 1);
    cr_assert(!pthread_equal(other.thread, g.thread));
    sem_post(&leave);
    join_visit(&g);
    wait_for(&ended);
    cr_assert(pthread_equal(blocks.thread_after, g.thread));
    cr_assert(leati_scheduler_threads(scheduler) == 1);
    check_that_a_visit_goes_well();
}

Test(visit, a_turn_that_blocks_and_that_nobody_waits_for_keeps_the_worker)
{
    actor blocks = {.does = BLOCK, .then = LEATI_TURN_END};
    guest g = {0};
    init_at(&blocks, 0);
    await_sleep();
    start_visit(&g, &blocks);
    // As often as would be enough to lose it.
    for (int i = 0; i < 10; i++)
        wait_for(&stuck_called);
    cr_assert(scheduler->sleepers == 0);
    sem_post(&leave);
    join_visit(&g);
    wait_for(&ended);
    check_that_a_visit_goes_well();
}

// --- the end ---

Test(visit, a_scheduler_may_be_destroyed_when_the_last_has_ended_in_a_visit)
{
    for (int i = 0; i < 100; i++) {
        actor a = {.then = LEATI_TURN_END, .lingers = true};
        guest g = {0};
        init_at(&a, 0);
        await_sleep();
        start_visit(&g, &a);
        wait_for(&ended);
        leati_scheduler_destroy(&scheduler);
        join_visit(&g);
        cr_assert(leati_scheduler_create(NULL, 1, &scheduler) == LEAT_OK);
    }
}
