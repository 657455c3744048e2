// SPDX-License-Identifier: Apache-2.0
// Cooperative scheduling of runnables (tasks) on worker threads.
//
// Threading. A worker is a run queue and the right to serve it; a thread that holds a worker takes
// runnables from its queue and gives each one turn. A thread whose runnable must wait in the middle
// of a record lends its worker to a spare thread and serves that runnable alone until its turn
// ends; then it becomes a spare itself. So the threads are the workers plus those that wait
// mid-record, plus spares left over from earlier waits.
//
// Life cycle of a runnable, one atomic word: idle → (wake) → idle + notified = ready, in a queue →
// running → idle, or ready again when it was notified meanwhile or wants another turn → ... → done.
// While waiting mid-record it is neither idle nor ready, so that a waker cannot enqueue it; the
// notification itself ends the wait.
//
// Order. Every waker first publishes its cause, then sets the notified bit by a read-modify-write;
// the runner clears the bit by a read-modify-write, then looks for causes. So a cause is either
// seen or leaves the bit set.
//
// Bounds. A runnable stands in at most one queue, so queues need no memory of their own. Threads:
// workers + runnables that wait.
//
// Stepped. A scheduler can also do without threads: its owner gives the turns, one after the other,
// in an order that is always the same (step.c).
#ifndef LEATI_RUNTIME_SCHEDULER_H
#define LEATI_RUNTIME_SCHEDULER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_scheduler leati_scheduler;
typedef struct leati_runnable leati_runnable;
typedef struct leati_worker leati_worker;

typedef enum leati_turn {
    LEATI_TURN_AGAIN, // has more to do
    LEATI_TURN_SLEEP, // until it is woken
    LEATI_TURN_END,   // never again: `ended` is called, after which the scheduler does not touch it
} leati_turn;

struct leati_runnable {
    // Atomic: a phase and the notified bit.
    _Alignas(64) _Atomic uint32_t state;
    leati_worker *_Atomic home; // the worker it is queued at
    _Atomic bool urgent;        // goes to the head of the queue (control mail)
    leati_runnable *next;       // under the queue's lock
    leati_scheduler *scheduler; // immutable after init
    leati_turn (*turn)(leati_runnable *self);
    void (*ended)(leati_runnable *self);
};

// LEAT_ENOMEM, LEAT_ETHREAD. At least one worker.
LEAT_MUST_USE leat_err leati_scheduler_create(const leat_allocator *allocator, uint32_t workers,
                                              leati_scheduler **scheduler);
// All runnables must have ended. Joins the threads.
void leati_scheduler_destroy(leati_scheduler **scheduler);
uint32_t leati_scheduler_workers(const leati_scheduler *scheduler);
// Threads alive now, of all kinds.
uint32_t leati_scheduler_threads(leati_scheduler *scheduler);
// Makes sure that `count` threads beside the workers exist, so that waits need not create any.
LEAT_MUST_USE leat_err leati_scheduler_reserve(leati_scheduler *scheduler, uint32_t count);

// A worker with a thread of its own for runnables that are moved to it: nobody steals from it.
// Destroy waits until its thread has left it; its runnables must have ended.
LEAT_MUST_USE leat_err leati_worker_create(leati_scheduler *scheduler, leati_worker **worker);
void leati_worker_destroy(leati_worker **worker);
// Before the runnable is first woken.
void leati_runnable_move(leati_runnable *runnable, leati_worker *worker);

// Puts a zeroed runnable into the idle state. `home` is taken modulo the number of workers.
void leati_runnable_init(leati_runnable *runnable, leati_scheduler *scheduler, uint32_t home,
                         leati_turn (*turn)(leati_runnable *), void (*ended)(leati_runnable *));
// Before it is first woken: whoever wakes it from now on is remembered, but it does not run before
// it is released, once, which makes it ready.
void leati_runnable_hold(leati_runnable *runnable);
void leati_runnable_release(leati_runnable *runnable);
// Makes it run, or run again. Any thread; never blocks but on a run queue's lock. A no-op once it
// is done.
void leati_runnable_wake(leati_runnable *runnable);

// Whether a runnable whose state word is this stands in a queue, for no worker has taken it yet.
bool leati_runnable_is_ready(uint32_t state);

// --- from inside a turn ---

// A flag of the calling thread that says: end the turn after the record in hand. Raised by the
// monitor for turns of more than about 5 ms, and when the thread has lost or lent its worker, so
// that a slow user function holds up its task's own mail and timers for one record only. Looking at
// it is one relaxed load. Good until the turn ends. Never raised in a stepped scheduler.
const _Atomic bool *leati_scheduler_hurry(const leati_scheduler *scheduler);

// Has `fn(arg)` called when the calling thread's turn ends or waits, once however often it is
// asked; `fn` is called without locks, and what it brings up in its turn is not put off. False: the
// thread is in no turn, or has too much put off already.
bool leati_turn_later(void (*fn)(void *arg), void *arg);
// Does now what was put off. For who is about to wait in the middle of a turn.
void leati_turn_catch_up(void);

// --- from outside: guests ---

// A thread that is none of a scheduler, and has news for runnables, may give their turns itself:
// waking another thread for them often takes longer than they do. Between `begin` and `end` the
// first sleeping worker that would be roused for something that the calling thread wakes becomes
// its own, if it is a shared one; `end` gives turns of it, a few at most, and hands it back.
//
// `stuck(arg)` is called, perhaps several times, by any thread, when a turn waits or takes too long
// (about 5 to 10 ms), so that the guest does not come back soon: without locks of the guest, but
// perhaps with those of the scheduler; it does not wait. Not after `end`. False: not now, as turns
// have lasted long, or the thread is in a turn; then there is no `end`.
bool leati_visit_begin(void (*stuck)(void *arg), void *arg);
// Whether there is anything for `end` to do that may last.
bool leati_visit_has_worker(void);
void leati_visit_end(void);

// Waits in the middle of a turn until `ready(arg)` is true; the worker's other runnables go on
// meanwhile. `ready` registers for a wake-up of this runnable before it looks. `stop(arg)` ends the
// wait: LEAT_ECANCELLED. LEAT_ETHREAD when no thread could take over the worker; LEAT_EAGAIN, in a
// stepped scheduler, when no runnable is left that may run meanwhile.
LEAT_MUST_USE leat_err leati_scheduler_wait(leati_runnable *runnable, bool (*ready)(void *),
                                            void *arg, bool (*stop)(void *), void *stop_arg);
// Lends the worker for a call that may block, and takes it back if nobody needed it. LEAT_ETHREAD:
// not lent, go on regardless.
leat_err leati_scheduler_lend(leati_scheduler *scheduler);
void leati_scheduler_take_back(leati_scheduler *scheduler);

// --- without threads ---

LEAT_MUST_USE leat_err leati_scheduler_create_stepped(const leat_allocator *allocator,
                                                      leati_scheduler **scheduler);
bool leati_scheduler_is_stepped(const leati_scheduler *scheduler);
// From now on each turn goes to one of the ready runnables by chance, which the seed decides,
// instead of to the one that has been ready for longest. 0: not any more.
void leati_scheduler_shuffle(leati_scheduler *scheduler, uint64_t seed);
// Whether `candidate` may have turns while `waiting` is in the middle of one. All may unless this
// is set. What one waits for others must be able to bring about without it: the one that waits
// cannot go on before those that run meanwhile have ended their turns.
typedef bool (*leati_may_run_fn)(void *user, const leati_runnable *waiting,
                                 const leati_runnable *candidate);
void leati_scheduler_set_may_run(leati_scheduler *scheduler, leati_may_run_fn may_run, void *user);
// Gives one turn; NULL when nothing is ready, otherwise the runnable, of which only the address may
// be used if it has ended. May be called from inside a turn.
leati_runnable *leati_scheduler_step(leati_scheduler *scheduler);
// Whether anything is ready.
bool leati_scheduler_is_ready(const leati_scheduler *scheduler);

#endif
