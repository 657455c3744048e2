// SPDX-License-Identifier: Apache-2.0
// A thread that must wait in the middle of a turn lends its worker to a spare, so that the worker's
// other runnables go on.
#include "runtime/scheduler_impl.h"

void leati_worker_rouse_for_backlog(leati_worker *w)
{
    leati_scheduler *s = w->scheduler;
    bool backlog = false;
    for (uint32_t i = 0; i < s->worker_count && !backlog; i++)
        backlog = atomic_load_explicit(&s->workers[i].length, memory_order_acquire) > 0;
    if (!backlog)
        return;
    pthread_mutex_lock(&w->lock);
    leati_thread *t = leati_worker_rouse_locked(w);
    pthread_mutex_unlock(&w->lock);
    leati_thread_rouse(t);
}

static void let_go_locked(leati_thread *self)
{
    atomic_store_explicit(&self->hurry, true, memory_order_relaxed);
    atomic_store_explicit(&self->worker, NULL, memory_order_relaxed);
}

// A new thread becomes the holder at once: it has never been parked, so the worker cannot be taken
// back.
static leat_err lend_to_new_thread_locked(leati_thread *self, leati_worker *w)
{
    leat_err err = leati_thread_create(self->scheduler, w);
    if (!err)
        let_go_locked(self);
    return err;
}

// True when somebody has to run at once.
static bool lend_to_spare_locked(leati_thread *self, leati_worker *w, leati_thread *spare)
{
    let_go_locked(self);
    self->lent = w;
    self->lent_to = spare;
    atomic_store_explicit(&spare->worker, w, memory_order_relaxed);
    w->holder = spare;
    if (w->head)
        return true;
    // With an empty queue nobody needs to run: the spare counts as a holder that sleeps, and this
    // thread can take the worker back later without anybody having been woken.
    w->sleeping = true;
    atomic_fetch_add_explicit(&self->scheduler->sleepers, 1, memory_order_acq_rel);
    return false;
}

leat_err leati_scheduler_lend(leati_scheduler *s)
{
    if (s->stepped)
        return LEAT_OK;
    leati_turn_catch_up();
    leati_thread *self = leati_thread_self();
    leati_worker *w = atomic_load_explicit(&self->worker, memory_order_relaxed);
    self->lent = NULL;
    // Already serving this runnable alone, or the worker serves nobody else.
    if (!w || w->own)
        return LEAT_OK;
    leati_guest_is_stuck(self);
    leat_err err = LEAT_OK;
    bool needed = false;
    pthread_mutex_lock(&w->lock);
    bool mine = w->holder == self; // the monitor may have taken it
    leati_thread *spare = mine ? leati_thread_heir_locked(self) : NULL;
    if (mine && spare)
        needed = lend_to_spare_locked(self, w, spare);
    else if (mine)
        err = lend_to_new_thread_locked(self, w);
    pthread_mutex_unlock(&w->lock);
    if (!spare)
        return err;
    if (needed)
        leati_thread_rouse(spare);
    else
        leati_worker_rouse_for_backlog(w);
    return LEAT_OK;
}

void leati_scheduler_take_back(leati_scheduler *s)
{
    if (s->stepped)
        return;
    leati_thread *self = leati_thread_self();
    leati_worker *w = self->lent;
    if (!w)
        return;
    leati_thread *holder = self->lent_to;
    pthread_mutex_lock(&w->lock);
    // A sleeping holder is parked, or on its way there without holding anything; it stays parked,
    // as a spare.
    bool taken = w->holder == holder && w->sleeping;
    if (taken) {
        leati_worker_rouse_locked(w);
        atomic_store_explicit(&holder->worker, NULL, memory_order_relaxed);
        w->holder = self;
        atomic_store_explicit(&self->worker, w, memory_order_relaxed);
        atomic_store_explicit(&self->hurry, false, memory_order_relaxed);
        if (!leati_guest_keep_host_locked(self, holder))
            leati_thread_add_spare(holder);
    }
    pthread_mutex_unlock(&w->lock);
    self->lent = NULL;
    if (!taken)
        return;
    leati_monitor_rouse(s);
}

leat_err leati_scheduler_wait(leati_runnable *r, bool (*ready)(void *), void *arg,
                              bool (*stop)(void *), void *stop_arg)
{
    if (r->scheduler->stepped)
        return leati_step_wait(r, ready, arg, stop, stop_arg);
    if (stop(stop_arg))
        return LEAT_ECANCELLED;
    if (ready(arg))
        return LEAT_OK;
    leat_err err = leati_scheduler_lend(r->scheduler);
    if (err)
        return err;
    // Whatever notified before is looked for below.
    atomic_exchange_explicit(&r->state, LEATI_RUN_WAITING, memory_order_acq_rel);
    for (;;) {
        if (stop(stop_arg)) {
            err = LEAT_ECANCELLED;
            break;
        }
        if (ready(arg))
            break;
        leati_futex_wait(&r->state, LEATI_RUN_WAITING);
        atomic_fetch_and_explicit(&r->state, ~(uint32_t)LEATI_RUN_NOTIFIED, memory_order_acq_rel);
    }
    // Notifications that were meant for the turn's own causes may have been swallowed here: look
    // for them after it.
    atomic_exchange_explicit(&r->state, LEATI_RUN_RUNNING | LEATI_RUN_NOTIFIED,
                             memory_order_acq_rel);
    leati_scheduler_take_back(r->scheduler);
    return err;
}
