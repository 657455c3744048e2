// SPDX-License-Identifier: Apache-2.0
// A queue between two threads that wake each other by futex. The one that finds it empty (or full)
// says that it sleeps, looks again, and sleeps; the other wakes it only then. Both sides have a
// full fence between what they write and what they read, so that one of them sees the other. Only
// the sleeper takes its word back: a waker that did so late would take back the next one.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/job.h"
#include "bench/schedule.h"

typedef struct item {
    uint64_t index;
    int64_t due_ns;
} item;

// A position that one side moves and the other may sleep on.
typedef struct position {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t asleep;
} position;

typedef struct queue {
    position written, read;
    uint32_t capacity;
    item *items;
    const schedule *plan;
    arrivals *result;
} queue;

static void move_to(position *p, uint32_t value)
{
    atomic_store(&p->value, value);
    if (atomic_load(&p->asleep))
        syscall(SYS_futex, &p->value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// Sleeps until the position is not `value` any more; what it is then.
static uint32_t wait_beyond(position *p, uint32_t value)
{
    uint32_t now;
    while ((now = atomic_load(&p->value)) == value) {
        atomic_store(&p->asleep, 1);
        if (atomic_load(&p->value) == value)
            syscall(SYS_futex, &p->value, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
        atomic_store(&p->asleep, 0);
    }
    return now;
}

static void sleep_until(int64_t at_ns)
{
    struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static void *produce(void *argument)
{
    queue *q = argument;
    const schedule *plan = q->plan;
    // Without this a sleep may last 50 µs longer than asked for.
    prctl(PR_SET_TIMERSLACK, 1);
    int64_t start = bench_now_ns();
    uint32_t written = 0, read = 0;
    for (uint64_t next = 0; next < plan->records;) {
        uint64_t owed = schedule_owed(plan, start, bench_now_ns());
        if (next >= owed) {
            sleep_until(schedule_due(plan, start, next));
            continue;
        }
        if (written - read == q->capacity)
            read = wait_beyond(&q->read, read);
        for (; next < owed && written - read < q->capacity; next++, written++)
            q->items[written & (q->capacity - 1)] = (item){next, schedule_due(plan, start, next)};
        move_to(&q->written, written);
    }
    return NULL;
}

static void *consume(void *argument)
{
    queue *q = argument;
    arrivals *result = q->result;
    uint32_t read = 0;
    while (result->records < q->plan->records) {
        uint32_t written = wait_beyond(&q->written, read);
        for (; read != written; read++) {
            const item *next = &q->items[read & (q->capacity - 1)];
            result->records++;
            result->sum += next->index;
            if ((next->index & result->skip) == 0)
                histogram_add(&result->latencies, bench_now_ns() - next->due_ns);
        }
        move_to(&q->read, read);
    }
    return NULL;
}

int bare_latency(const schedule *s, uint32_t capacity, arrivals *result)
{
    queue q = {.capacity = capacity, .plan = s, .result = result};
    pthread_t consumer, producer;
    q.items = malloc(capacity * sizeof *q.items);
    bool good = q.items && pthread_create(&consumer, NULL, consume, &q) == 0;
    if (good) {
        // The consumer waits for records that somebody must make.
        bool second = pthread_create(&producer, NULL, produce, &q) == 0;
        if (second)
            pthread_join(producer, NULL);
        else
            produce(&q);
        pthread_join(consumer, NULL);
    }
    free(q.items);
    if (!good)
        fprintf(stderr, "the bare queue failed\n");
    return good ? 0 : -1;
}
