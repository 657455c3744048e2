// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/scheduler_impl.h"

// How long a worker without work looks around before it sleeps: about 10 µs, the price of being
// woken.
enum { SPIN_ROUNDS = 256 };

// It is no global state of the library: it only says which of our own threads this is.
static _Thread_local leati_thread *current;

leati_thread *leati_thread_self(void)
{
    return current;
}

void leati_thread_become(leati_thread *thread)
{
    current = thread;
}

// --- run queues ---

static void push_locked(leati_worker *w, leati_runnable *r)
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

static leati_runnable *pop_locked(leati_worker *w)
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

leati_thread *leati_worker_rouse_locked(leati_worker *w)
{
    if (!w->sleeping)
        return NULL;
    w->sleeping = false;
    if (!w->own)
        atomic_fetch_sub_explicit(&w->scheduler->sleepers, 1, memory_order_acq_rel);
    return w->holder;
}

// The monitor sleeps only when all workers do. It announces that before it counts the sleepers, and
// the rouser has lowered that count before it looks for the announcement.
void leati_monitor_rouse(leati_scheduler *s)
{
    if (atomic_load_explicit(&s->monitor_idle, memory_order_relaxed) &&
        atomic_exchange_explicit(&s->monitor_idle, 0, memory_order_acq_rel))
        leati_unpark(&s->monitor_parker);
}

void leati_thread_rouse(leati_thread *t)
{
    if (!t)
        return;
    leati_unpark(&t->parker);
    leati_monitor_rouse(t->scheduler);
}

// Wakes one sleeping worker other than `except`, for it to take work from a busy one.
static void rouse_another(leati_scheduler *s, const leati_worker *except)
{
    for (uint32_t i = 0; i < s->worker_count; i++) {
        leati_worker *w = &s->workers[i];
        if (w == except)
            continue;
        pthread_mutex_lock(&w->lock);
        leati_thread *t = leati_worker_rouse_locked(w);
        pthread_mutex_unlock(&w->lock);
        if (t) {
            leati_thread_rouse(t);
            return;
        }
    }
}

static void enqueue(leati_runnable *r)
{
    leati_scheduler *s = r->scheduler;
    leati_worker *w = atomic_load_explicit(&r->home, memory_order_relaxed);
    pthread_mutex_lock(&w->lock);
    push_locked(w, r);
    uint32_t length = atomic_load_explicit(&w->length, memory_order_relaxed);
    bool by_holder = current && w->holder == current, own = w->own;
    bool invited = w->sleeping && leati_guest_invite_locked(w);
    leati_thread *t = leati_worker_rouse_locked(w);
    pthread_mutex_unlock(&w->lock);
    if (s->stepped)
        return;
    if (invited) {
        leati_monitor_rouse(s);
        return;
    }
    if (t && own) { // the monitor has nothing to do with it
        leati_unpark(&t->parker);
        return;
    }
    if (t) {
        leati_thread_rouse(t);
        return;
    }
    // The worker is busy. One runnable in the own queue is served when the present turn ends, which
    // is cheaper than waking somebody; more than that, or another worker's backlog, is worth it.
    // The read-modify-write orders the push before the look at the sleepers, as theirs orders the
    // announcement before their look at the queues.
    if (!own && (!by_holder || length > 1) &&
        atomic_fetch_add_explicit(&s->sleepers, 0, memory_order_acq_rel) > 0)
        rouse_another(s, w);
}

leati_runnable *leati_worker_take(leati_worker *w)
{
    if (atomic_load_explicit(&w->length, memory_order_acquire) == 0)
        return NULL;
    pthread_mutex_lock(&w->lock);
    leati_runnable *r = pop_locked(w);
    pthread_mutex_unlock(&w->lock);
    return r;
}

// Takes a runnable from another worker's queue; it stays with the thief.
static leati_runnable *steal(leati_scheduler *s, leati_worker *self)
{
    uint32_t own = (uint32_t)(self - s->workers);
    for (uint32_t i = 1; i < s->worker_count; i++) {
        leati_runnable *r = leati_worker_take(&s->workers[(own + i) % s->worker_count]);
        if (r) {
            atomic_store_explicit(&r->home, self, memory_order_relaxed);
            return r;
        }
    }
    return NULL;
}

// --- runnables ---

void leati_runnable_init(leati_runnable *runnable, leati_scheduler *scheduler, uint32_t home,
                         leati_turn (*turn)(leati_runnable *), void (*ended)(leati_runnable *))
{
    atomic_init(&runnable->state, LEATI_RUN_IDLE);
    atomic_init(&runnable->home, &scheduler->workers[home % scheduler->worker_count]);
    atomic_init(&runnable->urgent, false);
    runnable->scheduler = scheduler;
    runnable->turn = turn;
    runnable->ended = ended;
}

// To wakers it looks as if somebody gave it a turn.
void leati_runnable_hold(leati_runnable *r)
{
    atomic_store_explicit(&r->state, LEATI_RUN_RUNNING, memory_order_relaxed);
}

void leati_runnable_release(leati_runnable *r)
{
    atomic_exchange_explicit(&r->state, LEATI_RUN_IDLE | LEATI_RUN_NOTIFIED, memory_order_acq_rel);
    enqueue(r);
}

void leati_runnable_wake(leati_runnable *r)
{
    uint32_t before = atomic_fetch_or_explicit(&r->state, LEATI_RUN_NOTIFIED, memory_order_acq_rel);
    if (before == LEATI_RUN_IDLE)
        enqueue(r);
    else if (before == LEATI_RUN_WAITING)
        leati_futex_wake(&r->state);
}

bool leati_runnable_is_ready(uint32_t state)
{
    return state == (LEATI_RUN_IDLE | LEATI_RUN_NOTIFIED);
}

const _Atomic bool *leati_scheduler_hurry(const leati_scheduler *s)
{
    static const _Atomic bool never = false;
    return s->stepped ? &never : &current->hurry;
}

void leati_runnable_turn(leati_runnable *r)
{
    // Clears the notification before the turn looks for its causes.
    atomic_exchange_explicit(&r->state, LEATI_RUN_RUNNING, memory_order_acq_rel);
    leati_turn_begin();
    leati_turn turn = r->turn(r);
    // Before it is known to have ended: what was put off may be about things that end with it.
    leati_turn_end();
    uint32_t running = LEATI_RUN_RUNNING;
    if (turn == LEATI_TURN_END) {
        atomic_exchange_explicit(&r->state, LEATI_RUN_DONE, memory_order_acq_rel);
        r->ended(r);
    } else if (turn == LEATI_TURN_AGAIN || !atomic_compare_exchange_strong_explicit(
                                               &r->state, &running, LEATI_RUN_IDLE,
                                               memory_order_acq_rel, memory_order_acquire)) {
        atomic_exchange_explicit(&r->state, LEATI_RUN_IDLE | LEATI_RUN_NOTIFIED,
                                 memory_order_acq_rel);
        enqueue(r);
    }
}

void leati_thread_give_turn(leati_thread *t, leati_runnable *r)
{
    atomic_store_explicit(&t->hurry, false, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->turns, 1, memory_order_relaxed);
    atomic_store_explicit(&t->running, r, memory_order_relaxed);
    leati_runnable_turn(r);
    atomic_store_explicit(&t->running, NULL, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->turns, 1, memory_order_relaxed);
}

// --- threads ---

static bool anyone_has_work(leati_scheduler *s)
{
    for (uint32_t i = 0; i < s->worker_count; i++)
        if (atomic_load_explicit(&s->workers[i].length, memory_order_acquire) > 0)
            return true;
    return false;
}

// Announces that the worker sleeps; false when there is a reason not to.
static bool announce_sleep(leati_thread *t, leati_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool sleeps = !w->head && w->holder == t && !w->closing;
    if (sleeps) {
        w->sleeping = true;
        if (!w->own)
            atomic_fetch_add_explicit(&t->scheduler->sleepers, 1, memory_order_acq_rel);
    }
    pthread_mutex_unlock(&w->lock);
    return sleeps;
}

// Parks until there may be work. The announcement comes before the last look.
static void sleep_until_roused(leati_thread *t, leati_worker *w)
{
    leati_scheduler *s = t->scheduler;
    if (!announce_sleep(t, w))
        return;
    if (atomic_load_explicit(&s->stopping, memory_order_acquire) ||
        (!w->own && anyone_has_work(s))) {
        pthread_mutex_lock(&w->lock);
        leati_thread *roused = w->holder == t ? leati_worker_rouse_locked(w) : NULL;
        pthread_mutex_unlock(&w->lock);
        if (roused) { // by itself: nobody has given a permit
            leati_monitor_rouse(s);
            return;
        }
    }
    leati_park(&t->parker);
}

static leati_runnable *find_work(leati_thread *t, leati_worker *w)
{
    leati_scheduler *s = t->scheduler;
    for (uint32_t round = 0; round < SPIN_ROUNDS; round++) {
        leati_runnable *r = leati_worker_take(w);
        if (!r && !w->own)
            r = steal(s, w);
        if (r)
            return r;
        leati_pause();
    }
    sleep_until_roused(t, w);
    return NULL;
}

// An own worker that is closing loses its thread once its queue is empty.
static bool leave_closing(leati_thread *t, leati_worker *w)
{
    if (!w->own)
        return false;
    pthread_mutex_lock(&w->lock);
    bool leave = w->closing && !w->head && w->holder == t;
    if (leave) {
        w->holder = NULL;
        atomic_store_explicit(&t->worker, NULL, memory_order_relaxed);
    }
    pthread_mutex_unlock(&w->lock);
    if (leave) {
        atomic_store_explicit(&w->closed, 1, memory_order_release);
        leati_futex_wake(&w->closed);
    }
    return leave;
}

// Without it the stack is not looked at.
void leati_thread_note_stack(leati_thread *t)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes))
        return;
    if (!pthread_attr_getstack(&attributes, &low, &size)) {
        t->stack_low = (uintptr_t)low;
        t->stack_high = t->stack_low + size;
    }
    pthread_attr_destroy(&attributes);
}

static void *thread_main(void *arg)
{
    leati_thread *t = arg;
    current = t;
    leati_thread_note_stack(t);
    void *signal_stack = leati_signal_stack_enter();
    atomic_store_explicit(&t->tid, gettid(), memory_order_relaxed);
    while (!atomic_load_explicit(&t->scheduler->stopping, memory_order_acquire)) {
        leati_worker *w = atomic_load_explicit(&t->worker, memory_order_relaxed);
        if (!w) {
            leati_thread_add_spare(t);
            leati_park(&t->parker);
            continue;
        }
        leati_runnable *r = find_work(t, w);
        if (r)
            leati_thread_give_turn(t, r);
        else
            leave_closing(t, w);
    }
    leati_signal_stack_leave(signal_stack);
    return NULL;
}

leat_err leati_thread_create(leati_scheduler *s, leati_worker *w)
{
    leati_thread *t = leati_calloc(s->allocator, 1, sizeof *t);
    if (!t)
        return LEAT_ENOMEM;
    t->scheduler = s;
    atomic_init(&t->worker, w);
    leati_thread *before = w ? w->holder : NULL;
    if (w)
        w->holder = t;
    leat_err err = leati_thread_start(&t->id, w ? "leat-worker" : "leat-spare", thread_main, t);
    if (err) {
        if (w)
            w->holder = before;
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

void leati_thread_add_spare(leati_thread *t)
{
    leati_scheduler *s = t->scheduler;
    pthread_mutex_lock(&s->lock);
    t->next_spare = s->spares;
    s->spares = t;
    pthread_mutex_unlock(&s->lock);
}

leati_thread *leati_thread_take_spare(leati_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    leati_thread *t = s->spares;
    if (t)
        s->spares = t->next_spare;
    pthread_mutex_unlock(&s->lock);
    return t;
}

// --- life ---

static void init_worker(leati_worker *w, leati_scheduler *s, bool own)
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->scheduler = s;
    w->own = own;
}

leat_err leati_scheduler_alloc(const leat_allocator *allocator, uint32_t workers,
                               leati_scheduler **scheduler)
{
    assert(workers > 0);
    leati_scheduler *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = allocator;
    s->workers =
        leati_alloc_aligned(allocator, _Alignof(leati_worker), workers * sizeof *s->workers);
    if (!s->workers) {
        leati_free(allocator, s);
        return LEAT_ENOMEM;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->worker_count = workers;
    for (uint32_t i = 0; i < workers; i++)
        init_worker(&s->workers[i], s, false);
    *scheduler = s;
    return LEAT_OK;
}

static leat_err start(leati_scheduler *s)
{
    for (uint32_t i = 0; i < s->worker_count; i++) {
        leat_err err = leati_thread_create(s, &s->workers[i]);
        if (err)
            return err;
    }
    leat_err err = leati_thread_start(&s->monitor, "leat-monitor", leati_monitor_main, s);
    s->monitor_started = !err;
    return err;
}

leat_err leati_scheduler_create(const leat_allocator *allocator, uint32_t workers,
                                leati_scheduler **scheduler)
{
    leati_scheduler *s;
    leat_err err = leati_scheduler_alloc(allocator, workers, &s);
    if (err)
        return err;
    err = start(s);
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
    // No runnable is left, so no guest comes any more; those that have ended the last may still be
    // on their way out.
    uint32_t guests =
        LEATI_GUESTS_AWAITED |
        atomic_fetch_or_explicit(&s->guests, LEATI_GUESTS_AWAITED, memory_order_acq_rel);
    for (; guests != LEATI_GUESTS_AWAITED;
         guests = atomic_load_explicit(&s->guests, memory_order_acquire))
        leati_futex_wait(&s->guests, guests);
    atomic_store_explicit(&s->stopping, true, memory_order_release);
    if (s->monitor_started) {
        leati_unpark(&s->monitor_parker);
        pthread_join(s->monitor, NULL);
    }
    // No runnable is left and the monitor has gone, so no thread is started any more and the list
    // is stable.
    for (leati_thread *t = s->threads; t; t = t->next)
        leati_unpark(&t->parker);
    // All have left before any is freed: one may be on its way to unpark another.
    for (leati_thread *t = s->threads; t; t = t->next)
        pthread_join(t->id, NULL);
    while (s->threads) {
        leati_thread *t = s->threads;
        s->threads = t->next;
        leati_free(s->allocator, t);
    }
    for (uint32_t i = 0; i < s->worker_count; i++)
        pthread_mutex_destroy(&s->workers[i].lock);
    leati_free_aligned(s->allocator, s->workers);
    pthread_mutex_destroy(&s->lock);
    leati_free(s->allocator, s);
    *scheduler = NULL;
}

static void count_own(leati_scheduler *s, uint32_t difference)
{
    pthread_mutex_lock(&s->lock);
    s->own_count += difference;
    pthread_mutex_unlock(&s->lock);
}

leat_err leati_worker_create(leati_scheduler *s, leati_worker **worker)
{
    leati_worker *w = leati_alloc_aligned(s->allocator, _Alignof(leati_worker), sizeof *w);
    if (!w)
        return LEAT_ENOMEM;
    init_worker(w, s, true);
    // A spare, if there is one: those who left own workers before are spares.
    leati_thread *spare = leati_thread_take_spare(s);
    leat_err err = LEAT_OK;
    if (spare) {
        w->holder = spare;
        atomic_store_explicit(&spare->worker, w, memory_order_relaxed);
        leati_unpark(&spare->parker); // which also publishes the two
    } else {
        err = leati_thread_create(s, w);
    }
    if (err) {
        pthread_mutex_destroy(&w->lock);
        leati_free_aligned(s->allocator, w);
        return err;
    }
    count_own(s, 1);
    *worker = w;
    return LEAT_OK;
}

void leati_worker_destroy(leati_worker **worker)
{
    leati_worker *w = *worker;
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    leati_thread *t = leati_worker_rouse_locked(w);
    pthread_mutex_unlock(&w->lock);
    leati_thread_rouse(t);
    while (!atomic_load_explicit(&w->closed, memory_order_acquire))
        leati_futex_wait(&w->closed, 0);
    count_own(w->scheduler, (uint32_t)-1);
    pthread_mutex_destroy(&w->lock);
    leati_free_aligned(w->scheduler->allocator, w);
    *worker = NULL;
}

void leati_runnable_move(leati_runnable *runnable, leati_worker *worker)
{
    atomic_store_explicit(&runnable->home, worker, memory_order_relaxed);
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

static bool has_reserve(leati_scheduler *s, uint32_t count)
{
    pthread_mutex_lock(&s->lock);
    bool has = s->thread_count >= s->worker_count + s->own_count + count;
    pthread_mutex_unlock(&s->lock);
    return has;
}

leat_err leati_scheduler_reserve(leati_scheduler *s, uint32_t count)
{
    while (!s->stepped && !has_reserve(s, count)) {
        leat_err err = leati_thread_create(s, NULL);
        if (err)
            return err;
    }
    return LEAT_OK;
}
