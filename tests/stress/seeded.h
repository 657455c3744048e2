// SPDX-License-Identifier: Apache-2.0
// What the programs share that try one seed after the other: a seed says all that happens in its
// round, what goes wrong is told with it, and a round without an end ends the program.
#ifndef TESTS_STRESS_SEEDED_H
#define TESTS_STRESS_SEEDED_H

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STALL_SECONDS = 60 };

static uint64_t seed_now, random_now;
static _Atomic int64_t deadline_s;

static _Noreturn void wrong(const char *what, int64_t a, int64_t b)
{
    fprintf(stderr, "seed %" PRIu64 ": %s (%" PRId64 ", %" PRId64 ")\n", seed_now, what, a, b);
    abort();
}

static inline uint32_t next_random(uint64_t *state, uint32_t bound)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % bound;
}

static inline uint32_t below(uint32_t bound)
{
    return next_random(&random_now, bound);
}

static inline int64_t clock_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static inline void *watchdog(void *arg)
{
    while (clock_s() <= atomic_load(&deadline_s))
        sleep(1);
    wrong("no end", STALL_SECONDS, 0);
    return arg;
}

// A round begins or has ended: the next may take as long again.
static inline void feed_watchdog(void)
{
    atomic_store(&deadline_s, clock_s() + STALL_SECONDS);
}

static inline void start_watchdog(void)
{
    pthread_t dog;
    feed_watchdog();
    if (pthread_create(&dog, NULL, watchdog, NULL) != 0 || pthread_detach(dog) != 0)
        wrong("no watchdog", 0, 0);
}

#endif
