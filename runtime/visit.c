// SPDX-License-Identifier: Apache-2.0
// Guests: threads of others that give turns (scheduler.h has what for).
//
// A guest holds a worker as other threads do; so it may lend it, and the monitor may take it away.
// The thread that slept with the worker, its *host*, stays parked meanwhile, and is the first to
// take over: when the guest leaves, waits in a turn, or is too long in one.
#include <unistd.h>

#include "runtime/scheduler_impl.h"

enum {
    MOST_TURNS = 4,
    // No further turn after so long, which is what a turn is to last.
    ENOUGH_NS = 100000,
    // A guest whose visit has lasted so long leaves out some occasions, and more each time.
    LONG_NS = 1000000,
    LEAST_REST = 16,
    MOST_REST = 4096,
};

typedef struct guest {
    leati_thread thread; // a member of no list, and not joined
    bool visiting, known;
    int64_t since_ns;
    uint32_t rest, next_rest;
} guest;

// It says which guest this thread is, if any. Others see it while it holds a worker, under that
// one's lock.
static _Thread_local guest self;

bool leati_visit_begin(void (*stuck)(void *arg), void *arg)
{
    // A thread of a scheduler, or a guest that has begun already, gives turns as it is.
    if (leati_thread_self())
        return false;
    if (self.rest > 0) {
        self.rest--;
        return false;
    }
    if (!self.known) {
        leati_thread_note_stack(&self.thread);
        atomic_store_explicit(&self.thread.tid, gettid(), memory_order_relaxed);
        self.known = true;
    }
    self.thread.stuck = stuck;
    self.thread.stuck_arg = arg;
    self.visiting = true;
    leati_thread_become(&self.thread);
    return true;
}

bool leati_visit_has_worker(void)
{
    return atomic_load_explicit(&self.thread.worker, memory_order_relaxed) != NULL;
}

bool leati_guest_invite_locked(leati_worker *w)
{
    leati_thread *t = &self.thread;
    if (!self.visiting || w->own || atomic_load_explicit(&t->worker, memory_order_relaxed))
        return false;
    t->scheduler = w->scheduler;
    t->host = w->holder;
    atomic_store_explicit(&t->host->worker, NULL, memory_order_relaxed);
    atomic_store_explicit(&t->worker, w, memory_order_relaxed);
    w->holder = t;
    // Acquire and release are with the leaving, which destroy waits for.
    atomic_fetch_add_explicit(&w->scheduler->guests, LEATI_GUEST, memory_order_relaxed);
    return true;
}

leati_thread *leati_thread_heir_locked(leati_thread *t)
{
    leati_thread *host = t->host;
    t->host = NULL;
    return host ? host : leati_thread_take_spare(t->scheduler);
}

bool leati_guest_keep_host_locked(leati_thread *t, leati_thread *holder)
{
    if (t != &self.thread)
        return false;
    t->host = holder;
    return true;
}

void leati_guest_is_stuck(leati_thread *t)
{
    if (t->stuck)
        t->stuck(t->stuck_arg);
}

// The worker goes back to its host, unless the guest has lost it.
static void hand_back(leati_thread *t, leati_worker *w)
{
    pthread_mutex_lock(&w->lock);
    // The guest's thread may end, and another one have its address and begin its turns anew.
    if (w->seen_holder == t)
        w->seen_holder = NULL;
    bool mine = w->holder == t;
    leati_thread *host = mine ? t->host : NULL;
    bool busy = mine && w->head;
    if (mine) {
        t->host = NULL;
        atomic_store_explicit(&t->worker, NULL, memory_order_relaxed);
        atomic_store_explicit(&host->worker, w, memory_order_relaxed);
        w->holder = host;
    }
    if (mine && !busy) {
        w->sleeping = true;
        atomic_fetch_add_explicit(&w->scheduler->sleepers, 1, memory_order_acq_rel);
    }
    pthread_mutex_unlock(&w->lock);
    if (busy)
        leati_thread_rouse(host);
    else if (mine)
        leati_worker_rouse_for_backlog(w);
}

static void give_turns(leati_thread *t, leati_worker *w)
{
    for (int i = 0; i < MOST_TURNS; i++) {
        leati_runnable *r = leati_worker_take(w);
        if (!r)
            return;
        leati_thread_give_turn(t, r);
        // Another thread may serve the queue from here on.
        if (atomic_load_explicit(&t->worker, memory_order_relaxed) != w)
            return;
        if (leati_clock_ns() - self.since_ns > ENOUGH_NS)
            return;
    }
}

static void note_time(void)
{
    if (leati_clock_ns() - self.since_ns <= LONG_NS) {
        self.next_rest /= 2;
        return;
    }
    self.next_rest = self.next_rest < LEAST_REST ? LEAST_REST : self.next_rest * 2;
    if (self.next_rest > MOST_REST)
        self.next_rest = MOST_REST;
    self.rest = self.next_rest;
}

void leati_visit_end(void)
{
    leati_thread *t = &self.thread;
    leati_worker *w = atomic_load_explicit(&t->worker, memory_order_relaxed);
    self.visiting = false;
    if (w) {
        leati_scheduler *s = w->scheduler;
        self.since_ns = leati_clock_ns();
        give_turns(t, w);
        hand_back(t, w);
        note_time();
        // Release: nothing of the scheduler is touched after it, but that the word is woken.
        uint32_t before = atomic_fetch_sub_explicit(&s->guests, LEATI_GUEST, memory_order_acq_rel);
        if (before == (LEATI_GUEST | LEATI_GUESTS_AWAITED))
            leati_futex_wake(&s->guests);
    }
    leati_thread_become(NULL);
}
