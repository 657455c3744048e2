// SPDX-License-Identifier: Apache-2.0
#include "runtime/scheduler.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

// Phases of a runnable, with the notified bit beside them. IDLE | NOTIFIED is "ready": only the
// waker that set the bit on an idle runnable puts it into a queue.
enum { NOTIFIED = 1, IDLE = 0, RUNNING = 2, WAITING = 4, DONE = 6, PHASE = 6 };

// How long a worker without work looks around before it sleeps: about 10 µs, the price of being
// woken.
enum { SPIN_ROUNDS = 256 };

typedef struct worker worker;
typedef struct thread thread;

// A run queue and who serves it.
struct worker {
    _Alignas(64) pthread_mutex_t lock;
    // Under the lock.
    leati_runnable *head, *tail;
    thread *holder; // NULL only while it is being handed over
    bool sleeping;  // the holder is parked, or will be at once
    // Written under the lock, read by anyone as a hint.
    _Atomic uint32_t length;
};

struct thread {
    leati_scheduler *scheduler;
    pthread_t id;
    leati_parker parker;
    // Written by the thread itself, or by another while it is parked; ordered by the worker's lock
    // and the parker.
    worker *worker; // NULL: a spare, or serving a waiting runnable
    // The thread's own: the worker it lent, and to whom.
    worker *lent;
    thread *lent_to;
    thread *next_spare; // under the scheduler's lock
    thread *next;       // of all threads; under the scheduler's lock
};

struct leati_scheduler {
    const leat_allocator *allocator;
    uint32_t worker_count;
    worker *workers;
    _Atomic uint32_t sleepers; // workers whose holder sleeps
    _Atomic bool stopping;
    pthread_mutex_t lock; // taken after a worker's lock, never before
    // Under the lock.
    thread *spares;
    thread *threads;
    uint32_t thread_count;
};

// The thread of a scheduler that the caller runs on. It is no global state of the library: it only
// says which of our own threads this is.
static _Thread_local thread *current;

// --- run queues
// ----------------------------------------------------------------------------------------------------------

static void push_locked(worker *w, leati_runnable *r)
{
    r->next = NULL;
    if (!w->head) {
        w->head = w->tail = r;
    } else if (atomic_load_explicit(&r->urgent, memory_order_relaxed)) {
        r->next = w->head;
        w->head = r;
    } else {
        w->tail->next = r;
        w->tail = r;
    }
    atomic_store_explicit(&w->length, atomic_load_explicit(&w->length, memory_order_relaxed) + 1,
                          memory_order_release);
}

static leati_runnable *pop_locked(worker *w)
{
    leati_runnable *r = w->head;
    if (!r)
        return NULL;
    w->head = r->next;
    if (!w->head)
        w->tail = NULL;
    atomic_store_explicit(&w->length, atomic_load_explicit(&w->length, memory_order_relaxed) - 1,
                          memory_order_relaxed);
    return r;
}

// Ends a worker's sleep and returns the thread to unpark once the lock is released, or NULL when it
// does not sleep.
static thread *rouse_locked(leati_scheduler *s, worker *w)
{
    if (!w->sleeping)
        return NULL;
    w->sleeping = false;
    atomic_fetch_sub_explicit(&s->sleepers, 1, memory_order_acq_rel);
    return w->holder;
}

// Wakes one sleeping worker other than `except`, for it to take work from a busy one.
static void rouse_another(leati_scheduler *s, const worker *except)
{
    for (uint32_t i = 0; i < s->worker_count; i++) {
        worker *w = &s->workers[i];
        if (w == except)
            continue;
        pthread_mutex_lock(&w->lock);
        thread *t = rouse_locked(s, w);
        pthread_mutex_unlock(&w->lock);
        if (t) {
            leati_unpark(&t->parker);
            return;
        }
    }
}

static void enqueue(leati_runnable *r)
{
    leati_scheduler *s = r->scheduler;
    worker *w = &s->workers[atomic_load_explicit(&r->home, memory_order_relaxed)];
    pthread_mutex_lock(&w->lock);
    push_locked(w, r);
    uint32_t length = atomic_load_explicit(&w->length, memory_order_relaxed);
    bool own = current && w->holder == current;
    thread *t = rouse_locked(s, w);
    pthread_mutex_unlock(&w->lock);
    if (t) {
        leati_unpark(&t->parker);
        return;
    }
    // The worker is busy. One runnable in the own queue is served when the present turn ends, which
    // is cheaper than waking somebody; more than that, or another worker's backlog, is worth it.
    // The read-modify-write orders the push before the look at the sleepers, as theirs orders the
    // announcement before their look at the queues.
    if ((!own || length > 1) &&
        atomic_fetch_add_explicit(&s->sleepers, 0, memory_order_acq_rel) > 0)
        rouse_another(s, w);
}

static leati_runnable *take_own(worker *w)
{
    if (atomic_load_explicit(&w->length, memory_order_acquire) == 0)
        return NULL;
    pthread_mutex_lock(&w->lock);
    leati_runnable *r = pop_locked(w);
    pthread_mutex_unlock(&w->lock);
    return r;
}

// Takes a runnable from another worker's queue; it stays with the thief.
static leati_runnable *steal(leati_scheduler *s, worker *self)
{
    uint32_t own = (uint32_t)(self - s->workers);
    for (uint32_t i = 1; i < s->worker_count; i++) {
        worker *victim = &s->workers[(own + i) % s->worker_count];
        leati_runnable *r = take_own(victim);
        if (r) {
            atomic_store_explicit(&r->home, own, memory_order_relaxed);
            return r;
        }
    }
    return NULL;
}

// --- runnables
// -----------------------------------------------------------------------------------------------------------

void leati_runnable_init(leati_runnable *runnable, leati_scheduler *scheduler, uint32_t home,
                         leati_turn (*turn)(leati_runnable *), void (*ended)(leati_runnable *))
{
    atomic_init(&runnable->state, IDLE);
    atomic_init(&runnable->home, home % scheduler->worker_count);
    atomic_init(&runnable->urgent, false);
    runnable->scheduler = scheduler;
    runnable->turn = turn;
    runnable->ended = ended;
}

void leati_runnable_wake(leati_runnable *r)
{
    uint32_t before = atomic_fetch_or_explicit(&r->state, NOTIFIED, memory_order_acq_rel);
    if (before == IDLE)
        enqueue(r);
    else if (before == WAITING)
        leati_futex_wake(&r->state);
}

static void give_turn(leati_runnable *r)
{
    // Clears the notification before the turn looks for its causes.
    atomic_exchange_explicit(&r->state, RUNNING, memory_order_acq_rel);
    leati_turn turn = r->turn(r);
    if (turn == LEATI_TURN_END) {
        atomic_exchange_explicit(&r->state, DONE, memory_order_acq_rel);
        r->ended(r);
        return;
    }
    uint32_t running = RUNNING;
    if (turn == LEATI_TURN_SLEEP &&
        atomic_compare_exchange_strong_explicit(&r->state, &running, IDLE, memory_order_acq_rel,
                                                memory_order_acquire))
        return;
    atomic_exchange_explicit(&r->state, IDLE | NOTIFIED, memory_order_acq_rel);
    enqueue(r);
}

// --- threads
// -------------------------------------------------------------------------------------------------------------

static leati_runnable *look_around(leati_scheduler *s, worker *w)
{
    leati_runnable *r = take_own(w);
    return r ? r : steal(s, w);
}

// Parks until there may be work. The announcement (sleeping, sleepers) comes before the last look.
static void sleep_until_roused(thread *t, worker *w)
{
    leati_scheduler *s = t->scheduler;
    pthread_mutex_lock(&w->lock);
    if (w->head) {
        pthread_mutex_unlock(&w->lock);
        return;
    }
    w->sleeping = true;
    atomic_fetch_add_explicit(&s->sleepers, 1, memory_order_acq_rel);
    pthread_mutex_unlock(&w->lock);

    bool found = atomic_load_explicit(&s->stopping, memory_order_acquire);
    for (uint32_t i = 0; i < s->worker_count && !found; i++)
        found = atomic_load_explicit(&s->workers[i].length, memory_order_acquire) > 0;
    if (found) {
        pthread_mutex_lock(&w->lock);
        bool still = w->sleeping;
        if (still)
            rouse_locked(s, w);
        pthread_mutex_unlock(&w->lock);
        if (still)
            return; // nobody has given a permit
    }
    leati_park(&t->parker);
}

static leati_runnable *find_work(thread *t, worker *w)
{
    leati_scheduler *s = t->scheduler;
    for (uint32_t round = 0; round < SPIN_ROUNDS; round++) {
        leati_runnable *r = look_around(s, w);
        if (r)
            return r;
        leati_pause();
    }
    sleep_until_roused(t, w);
    return NULL;
}

static void add_spare(leati_scheduler *s, thread *t)
{
    pthread_mutex_lock(&s->lock);
    t->next_spare = s->spares;
    s->spares = t;
    pthread_mutex_unlock(&s->lock);
}

static void *thread_main(void *arg)
{
    thread *t = arg;
    leati_scheduler *s = t->scheduler;
    current = t;
    while (!atomic_load_explicit(&s->stopping, memory_order_acquire)) {
        worker *w = t->worker;
        if (!w) {
            add_spare(s, t);
            leati_park(&t->parker);
            continue;
        }
        leati_runnable *r = find_work(t, w);
        if (r)
            give_turn(r);
    }
    return NULL;
}

// Starts a thread that serves `w`, or, without one, stands by as a spare.
static leat_err start_thread(leati_scheduler *s, worker *w, const char *name)
{
    thread *t = leati_calloc(s->allocator, 1, sizeof *t);
    if (!t)
        return LEAT_ENOMEM;
    t->scheduler = s;
    t->worker = w;
    if (w)
        w->holder = t;
    leat_err err = leati_thread_start(&t->id, name, thread_main, t);
    if (err) {
        leati_free(s->allocator, t);
        return err;
    }
    pthread_mutex_lock(&s->lock);
    t->next = s->threads;
    s->threads = t;
    s->thread_count++;
    pthread_mutex_unlock(&s->lock);
    return LEAT_OK;
}

// A parked spare, taken off the list, or NULL.
static thread *take_spare(leati_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    thread *t = s->spares;
    if (t)
        s->spares = t->next_spare;
    pthread_mutex_unlock(&s->lock);
    return t;
}

// A worker has fallen asleep without a last look at the others' queues, because its new holder was
// parked already.
static void rouse_for_backlog(leati_scheduler *s, worker *w)
{
    bool backlog = false;
    for (uint32_t i = 0; i < s->worker_count && !backlog; i++)
        backlog = atomic_load_explicit(&s->workers[i].length, memory_order_acquire) > 0;
    if (!backlog)
        return;
    pthread_mutex_lock(&w->lock);
    thread *t = rouse_locked(s, w);
    pthread_mutex_unlock(&w->lock);
    if (t)
        leati_unpark(&t->parker);
}

// A new thread becomes the holder at once: it has never been parked, so the worker cannot be taken
// back.
static leat_err lend_to_new_thread(leati_scheduler *s, thread *self, worker *w)
{
    pthread_mutex_lock(&w->lock);
    leat_err err = start_thread(s, w, "leat-worker");
    if (err)
        w->holder = self;
    else
        self->worker = NULL;
    pthread_mutex_unlock(&w->lock);
    return err;
}

leat_err leati_scheduler_lend(leati_scheduler *s)
{
    thread *self = current;
    worker *w = self->worker;
    self->lent = NULL;
    if (!w)
        return LEAT_OK; // already serving this runnable alone
    thread *spare = take_spare(s);
    if (!spare)
        return lend_to_new_thread(s, self, w);
    pthread_mutex_lock(&w->lock);
    self->worker = NULL;
    self->lent = w;
    self->lent_to = spare;
    spare->worker = w;
    w->holder = spare;
    // With an empty queue nobody needs to run: the spare counts as a holder that sleeps, and this
    // thread can take the worker back later without anybody having been woken.
    bool needed = w->head != NULL;
    if (!needed) {
        w->sleeping = true;
        atomic_fetch_add_explicit(&s->sleepers, 1, memory_order_acq_rel);
    }
    pthread_mutex_unlock(&w->lock);
    if (needed)
        leati_unpark(&spare->parker);
    else
        rouse_for_backlog(s, w);
    return LEAT_OK;
}

void leati_scheduler_take_back(leati_scheduler *s)
{
    thread *self = current;
    worker *w = self->lent;
    if (!w)
        return;
    thread *holder = self->lent_to;
    pthread_mutex_lock(&w->lock);
    // A sleeping holder is parked, or on its way there without holding anything; it stays parked,
    // as a spare.
    bool taken = w->holder == holder && w->sleeping;
    if (taken) {
        rouse_locked(s, w);
        holder->worker = NULL;
        w->holder = self;
        self->worker = w;
    }
    pthread_mutex_unlock(&w->lock);
    self->lent = NULL;
    if (taken)
        add_spare(s, holder);
}

leat_err leati_scheduler_wait(leati_runnable *r, bool (*ready)(void *), void *arg,
                              bool (*stop)(void *), void *stop_arg)
{
    if (stop(stop_arg))
        return LEAT_ECANCELLED;
    if (ready(arg))
        return LEAT_OK;
    leat_err err = leati_scheduler_lend(r->scheduler);
    if (err)
        return err;
    // Whatever notified before is looked for below.
    atomic_exchange_explicit(&r->state, WAITING, memory_order_acq_rel);
    for (;;) {
        if (stop(stop_arg)) {
            err = LEAT_ECANCELLED;
            break;
        }
        if (ready(arg))
            break;
        leati_futex_wait(&r->state, WAITING);
        atomic_fetch_and_explicit(&r->state, ~(uint32_t)NOTIFIED, memory_order_acq_rel);
    }
    // Notifications that were meant for the turn's own causes may have been swallowed here: look
    // for them after it.
    atomic_exchange_explicit(&r->state, RUNNING | NOTIFIED, memory_order_acq_rel);
    leati_scheduler_take_back(r->scheduler);
    return err;
}

// --- life
// ------------------------------------------------------------------------------------------------------------------

leat_err leati_scheduler_create(const leat_allocator *allocator, uint32_t workers,
                                leati_scheduler **scheduler)
{
    assert(workers > 0);
    leati_scheduler *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = allocator;
    s->worker_count = workers;
    pthread_mutex_init(&s->lock, NULL);
    leat_err err = LEAT_ENOMEM;
    s->workers = leati_alloc_aligned(allocator, _Alignof(worker), workers * sizeof *s->workers);
    if (s->workers) {
        memset(s->workers, 0, workers * sizeof *s->workers);
        for (uint32_t i = 0; i < workers; i++)
            pthread_mutex_init(&s->workers[i].lock, NULL);
        err = LEAT_OK;
        for (uint32_t i = 0; i < workers && !err; i++) {
            char name[16];
            snprintf(name, sizeof name, "leat-worker-%u", i % 1000);
            err = start_thread(s, &s->workers[i], name);
        }
    }
    if (err) {
        leati_scheduler_destroy(&s);
        return err;
    }
    *scheduler = s;
    return LEAT_OK;
}

void leati_scheduler_destroy(leati_scheduler **scheduler)
{
    leati_scheduler *s = *scheduler;
    if (!s)
        return;
    atomic_store_explicit(&s->stopping, true, memory_order_release);
    // No runnable is left, so no thread is started any more and the list is stable.
    for (thread *t = s->threads; t; t = t->next)
        leati_unpark(&t->parker);
    while (s->threads) {
        thread *t = s->threads;
        s->threads = t->next;
        pthread_join(t->id, NULL);
        leati_free(s->allocator, t);
    }
    for (uint32_t i = 0; s->workers && i < s->worker_count; i++)
        pthread_mutex_destroy(&s->workers[i].lock);
    leati_free_aligned(s->allocator, s->workers);
    pthread_mutex_destroy(&s->lock);
    leati_free(s->allocator, s);
    *scheduler = NULL;
}

uint32_t leati_scheduler_workers(const leati_scheduler *s)
{
    return s->worker_count;
}

uint32_t leati_scheduler_threads(leati_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    uint32_t count = s->thread_count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

leat_err leati_scheduler_reserve(leati_scheduler *s, uint32_t count)
{
    while (leati_scheduler_threads(s) < s->worker_count + count) {
        leat_err err = start_thread(s, NULL, "leat-spare");
        if (err)
            return err;
    }
    return LEAT_OK;
}
