// SPDX-License-Identifier: Apache-2.0
// The monitor gives a worker to another thread when its holder has been in one turn for too long
// while others wait in the queue: a user function blocks without having said so. One that computes
// gets more time, because a thread that is ready but kept from its processor by other programs
// looks the same, and a further thread would not help it. It sleeps while all workers do.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/scheduler_impl.h"

enum { TICK_MS = 5, BLOCKED_MS = 20, COMPUTING_MS = 200 };

// Whether the kernel says that the thread is ready to run. False when it cannot be told.
static bool is_ready(int tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    // The name stands in parentheses before the state and may hold anything.
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'R';
}

static bool takes_too_long(const leati_worker *w, int64_t now)
{
    int64_t since_ms = (now - w->seen_ns) / 1000000;
    if (!w->head || since_ms < BLOCKED_MS)
        return false;
    return since_ms >= COMPUTING_MS ||
           !is_ready(atomic_load_explicit(&w->holder->tid, memory_order_relaxed));
}

static void let_go_locked(leati_thread *blocked)
{
    atomic_store_explicit(&blocked->hurry, true, memory_order_relaxed);
    atomic_store_explicit(&blocked->worker, NULL, memory_order_relaxed);
}

// Takes the worker from a holder that did not end its turn. The holder learns of it when it next
// looks.
static leati_thread *take_away_locked(leati_worker *w)
{
    leati_scheduler *s = w->scheduler;
    leati_thread *blocked = w->holder;
    leati_thread *spare = leati_thread_heir_locked(blocked);
    if (!spare) {
        // Without memory or threads for a new one the others have to wait; the next tick tries
        // again.
        if (leati_thread_create(s, w) == LEAT_OK)
            let_go_locked(blocked);
        return NULL;
    }
    let_go_locked(blocked);
    atomic_store_explicit(&spare->worker, w, memory_order_relaxed);
    w->holder = spare;
    return spare;
}

// Whether the worker is awake.
static bool look_at(leati_worker *w, int64_t now)
{
    leati_thread *next = NULL;
    pthread_mutex_lock(&w->lock);
    bool awake = !w->sleeping;
    uint32_t turn = atomic_load_explicit(&w->holder->turns, memory_order_relaxed);
    bool same = w->seen_holder == w->holder && w->seen_turn == turn;
    if (awake && (turn & 1) && same) {
        atomic_store_explicit(&w->holder->hurry, true, memory_order_relaxed);
        leati_guest_is_stuck(w->holder);
    }
    if (!awake || !(turn & 1) || !same) {
        w->seen_holder = w->holder;
        w->seen_turn = turn;
        w->seen_ns = now;
    } else if (takes_too_long(w, now)) {
        next = take_away_locked(w);
    }
    pthread_mutex_unlock(&w->lock);
    leati_thread_rouse(next);
    return awake;
}

void *leati_monitor_main(void *arg)
{
    leati_scheduler *s = arg;
    while (!atomic_load_explicit(&s->stopping, memory_order_acquire)) {
        bool awake = false;
        int64_t now = leati_clock_ns();
        for (uint32_t i = 0; i < s->worker_count; i++)
            awake |= look_at(&s->workers[i], now);
        if (awake) {
            leati_park_for(&s->monitor_parker, TICK_MS);
            continue;
        }
        atomic_exchange_explicit(&s->monitor_idle, 1, memory_order_acq_rel);
        if (atomic_fetch_add_explicit(&s->sleepers, 0, memory_order_acq_rel) == s->worker_count)
            leati_park(&s->monitor_parker);
        atomic_exchange_explicit(&s->monitor_idle, 0, memory_order_acq_rel);
    }
    return NULL;
}
