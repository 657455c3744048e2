// SPDX-License-Identifier: Apache-2.0
// Runnables that pass tokens to each other. A turn takes the tokens that are there, passes each on
// to a random runnable and wakes it; now and then it waits in the middle for a permit that another
// thread gives, lends its worker and takes it back, or blocks without saying so until the monitor
// takes the worker away. Some runnables have a worker of their own. In some games there are guests,
// which wake runnables and give their turns, up to the moment when the scheduler is destroyed.
// Every pass is counted, no runnable may be in two turns at once, and what only turns touch is not
// atomic, so that ThreadSanitizer sees whether turns are ordered. A lost wake-up stops the tokens,
// which the watchdog reports.
//
//     stress_scheduler [SECONDS [SEED]]
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "runtime/scheduler.h"

#define MAX_ACTORS    24
#define MAX_GUESTS    4
#define STALL_SECONDS 30

static _Atomic uint64_t progress, seed_now;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "seed %" PRIu64 ": %s:%d: %s\n", atomic_load(&seed_now), __FILE__,     \
                    __LINE__, #condition);                                                         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

typedef struct game game;

typedef struct actor {
    leati_runnable run; // first
    game *of;
    leati_worker *own; // NULL: a shared one
    // Turns only.
    uint64_t random, turns, passed;
    // Any thread.
    _Atomic int inside;
    _Atomic uint32_t tokens; // waiting to be passed on
    _Atomic int wants, permits;
} actor;

typedef struct guest {
    game *of;
    pthread_t thread;
    uint64_t random;
    _Atomic bool visiting; // between begin and end
} guest;

struct game {
    leati_scheduler *scheduler;
    actor actors[MAX_ACTORS];
    uint32_t count;
    uint32_t wait_every, lend_every, block_every; // turns; 0: never
    _Atomic int64_t left;                         // passes that are still to be made
    _Atomic uint32_t live;                        // tokens
    _Atomic bool over, stopping;
    _Atomic uint32_t ended;
    _Atomic uint64_t waits, cancelled;
    guest guests[MAX_GUESTS];
    uint32_t guest_count;
    _Atomic uint32_t wakers; // guests that may be waking runnables just now
    _Atomic uint64_t visits, stuck;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint32_t below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((next_random(state) >> 32) % bound);
}

static void wake_all(game *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        leati_runnable_wake(&g->actors[i].run);
}

// --- waiting in the middle of a turn ---

static bool permit_ready(void *arg)
{
    actor *a = arg;
    atomic_exchange(&a->wants, 1);
    return atomic_load(&a->permits) > 0;
}

static bool game_stops(void *arg)
{
    return atomic_load(&((game *)arg)->stopping);
}

static void wait_for_permit(actor *a)
{
    game *g = a->of;
    leat_err err = leati_scheduler_wait(&a->run, permit_ready, a, game_stops, g);
    CHECK(err == LEAT_OK || (err == LEAT_ECANCELLED && atomic_load(&g->stopping)));
    if (err) {
        atomic_fetch_add(&g->cancelled, 1);
        return;
    }
    atomic_fetch_add(&g->waits, 1);
    atomic_fetch_sub(&a->permits, 1);
}

static void *give_permits(void *arg)
{
    game *g = arg;
    uint64_t random = (uint64_t)(uintptr_t)g | 1;
    while (atomic_load(&g->ended) < g->count) {
        for (uint32_t i = 0; i < g->count; i++) {
            actor *a = &g->actors[i];
            if (!atomic_exchange(&a->wants, 0))
                continue;
            atomic_fetch_add(&a->permits, 1);
            leati_runnable_wake(&a->run);
        }
        if (below(&random, 4) == 0)
            usleep(below(&random, 200));
    }
    return NULL;
}

// --- turns ---

static bool now_and_then(actor *a, uint32_t every)
{
    return every && below(&a->random, every) == 0;
}

static void linger(actor *a)
{
    game *g = a->of;
    if (now_and_then(a, g->wait_every))
        wait_for_permit(a);
    if (now_and_then(a, g->lend_every)) {
        leat_err err = leati_scheduler_lend(g->scheduler);
        CHECK(err == LEAT_OK);
        if (below(&a->random, 2))
            usleep(below(&a->random, 100));
        leati_scheduler_take_back(g->scheduler);
    }
    if (now_and_then(a, g->block_every))
        usleep(30000);
}

static void pass_token(actor *a)
{
    game *g = a->of;
    if (atomic_fetch_sub(&g->left, 1) > 0) {
        actor *to = &g->actors[below(&a->random, g->count)];
        a->passed++;
        atomic_fetch_add(&progress, 1);
        atomic_fetch_add_explicit(&to->tokens, 1, memory_order_relaxed);
        leati_runnable_wake(&to->run);
    } else if (atomic_fetch_sub(&g->live, 1) == 1) {
        atomic_store(&g->over, true);
        wake_all(g);
    }
}

static leati_turn actor_turn(leati_runnable *run)
{
    actor *a = (actor *)run;
    game *g = a->of;
    CHECK(atomic_exchange(&a->inside, 1) == 0);
    a->turns++;
    leati_turn turn = LEATI_TURN_SLEEP;
    if (atomic_load(&g->over) || atomic_load(&g->stopping)) {
        turn = LEATI_TURN_END;
    } else {
        linger(a);
        // Not all at once, every other time.
        uint32_t tokens = atomic_load_explicit(&a->tokens, memory_order_relaxed);
        uint32_t taken = tokens > 1 && a->turns % 2 ? 1 : tokens;
        atomic_fetch_sub_explicit(&a->tokens, taken, memory_order_relaxed);
        for (uint32_t i = 0; i < taken; i++)
            pass_token(a);
        if (taken < tokens)
            turn = LEATI_TURN_AGAIN;
    }
    CHECK(atomic_exchange(&a->inside, 0) == 1);
    return turn;
}

static void actor_ended(leati_runnable *run)
{
    actor *a = (actor *)run;
    atomic_fetch_add(&a->of->ended, 1);
}

// --- guests ---

static void guest_stuck(void *arg)
{
    guest *v = arg;
    CHECK(atomic_load(&v->visiting));
    atomic_fetch_add(&v->of->stuck, 1);
}

// False: all have ended, and nobody is woken any more.
static bool wake_some(guest *v)
{
    game *g = v->of;
    atomic_fetch_add(&g->wakers, 1);
    bool goes_on = atomic_load(&g->ended) < g->count;
    for (uint32_t i = 0, n = goes_on ? 1 + below(&v->random, 3) : 0; i < n; i++)
        leati_runnable_wake(&g->actors[below(&v->random, g->count)].run);
    atomic_fetch_sub(&g->wakers, 1);
    return goes_on;
}

static void *visit(void *arg)
{
    guest *v = arg;
    bool goes_on = true;
    while (goes_on) {
        // Before the first call for it.
        atomic_store(&v->visiting, true);
        bool begun = leati_visit_begin(guest_stuck, v);
        goes_on = wake_some(v);
        if (begun) {
            if (leati_visit_has_worker())
                atomic_fetch_add(&v->of->visits, 1);
            leati_visit_end();
        }
        atomic_store(&v->visiting, false);
        if (below(&v->random, 4) == 0)
            usleep(below(&v->random, 200));
    }
    return NULL;
}

static void invite_guests(game *g, uint64_t *random)
{
    g->guest_count = below(random, 2) ? 1 + below(random, MAX_GUESTS) : 0;
    for (uint32_t i = 0; i < g->guest_count; i++) {
        guest *v = &g->guests[i];
        v->of = g;
        v->random = next_random(random) | 1;
        CHECK(pthread_create(&v->thread, NULL, visit, v) == 0);
    }
}

// --- a game ---

static void set_up(game *g, uint64_t seed, uint64_t *random)
{
    *g = (game){.count = 1 + below(random, MAX_ACTORS)};
    uint32_t workers = 1 + below(random, 4);
    CHECK(leati_scheduler_create(NULL, workers, &g->scheduler) == LEAT_OK);
    if (below(random, 2))
        CHECK(leati_scheduler_reserve(g->scheduler, below(random, 4)) == LEAT_OK);
    g->wait_every = below(random, 3) ? 1 + below(random, 200) : 0;
    g->lend_every = below(random, 3) ? 1 + below(random, 200) : 0;
    g->block_every = below(random, 4) ? 0 : 2000;
    g->left = 2000 + below(random, 20000);
    g->live = 1 + below(random, 30);
    for (uint32_t i = 0; i < g->count; i++) {
        actor *a = &g->actors[i];
        a->of = g;
        a->random = (seed * 1000 + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        leati_runnable_init(&a->run, g->scheduler, below(random, 8), actor_turn, actor_ended);
        if (below(random, 12) == 0) {
            CHECK(leati_worker_create(g->scheduler, &a->own) == LEAT_OK);
            leati_runnable_move(&a->run, a->own);
        }
    }
    for (uint32_t i = 0; i < g->live; i++)
        g->actors[below(random, g->count)].tokens++;
}

static void check_and_tear_down(game *g, uint64_t passes, bool stopped)
{
    uint64_t passed = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        passed += g->actors[i].passed;
        leati_worker_destroy(&g->actors[i].own);
    }
    CHECK(stopped ? passed <= passes : passed == passes);
    CHECK(g->ended == g->count);
    // Guests may still be on their way out, but have woken whom they wanted to.
    while (atomic_load(&g->wakers) > 0)
        leati_pause();
    leati_scheduler_destroy(&g->scheduler);
    for (uint32_t i = 0; i < g->guest_count; i++)
        pthread_join(g->guests[i].thread, NULL);
}

typedef struct totals {
    uint64_t waits, visits, stuck;
} totals;

static void play(uint64_t seed, totals *all)
{
    // In static memory, since a late waker may still wake a futex in it after the game.
    static game g;
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    set_up(&g, seed, &random);
    uint64_t passes = (uint64_t)g.left;
    pthread_t giver;
    CHECK(pthread_create(&giver, NULL, give_permits, &g) == 0);
    wake_all(&g);
    bool stops = below(&random, 5) == 0;
    invite_guests(&g, &random);
    if (stops) {
        usleep(below(&random, 3000));
        atomic_store(&g.stopping, true);
        wake_all(&g);
    }
    // The giver leaves when all have ended.
    pthread_join(giver, NULL);
    check_and_tear_down(&g, passes, stops);
    all->waits += g.waits;
    all->visits += g.visits;
    all->stuck += g.stuck;
}

static void *watchdog(void *arg)
{
    uint64_t before = 0;
    for (int still = 0; still < STALL_SECONDS;) {
        sleep(1);
        uint64_t at = atomic_load(&progress) + atomic_load(&seed_now);
        still = at == before ? still + 1 : 0;
        before = at;
    }
    fprintf(stderr, "seed %" PRIu64 ": no progress for %d s\n", atomic_load(&seed_now),
            STALL_SECONDS);
    abort();
    return arg;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, seed = first;
    totals all = {0};
    int64_t until = leati_clock_ns() + (int64_t)(seconds * 1e9);
    pthread_t dog;
    if (pthread_create(&dog, NULL, watchdog, NULL))
        return 1;
    for (; leati_clock_ns() < until || seed == first; seed++) {
        atomic_store(&seed_now, seed);
        play(seed, &all);
    }
    printf("%" PRIu64 " games from seed %" PRIu64 ", %" PRIu64 " tokens passed, %" PRIu64
           " waits in the middle of a turn, %" PRIu64 " visits, which were stuck %" PRIu64
           " times\n",
           seed - first, first, atomic_load(&progress), all.waits, all.visits, all.stuck);
    return 0;
}
