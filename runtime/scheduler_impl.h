// SPDX-License-Identifier: Apache-2.0
// What the parts of the scheduler share: queues and threads (scheduler.c), waiting and lending
// (lend.c), guests (visit.c), the monitor (monitor.c), doing without threads (step.c).
#ifndef LEATI_RUNTIME_SCHEDULER_IMPL_H
#define LEATI_RUNTIME_SCHEDULER_IMPL_H

#include <pthread.h>

#include "base/thread.h"
#include "runtime/scheduler.h"

// Phases of a runnable, with the notified bit beside them. IDLE | NOTIFIED is "ready": only the
// waker that set the bit on an idle runnable puts it into a queue.
enum {
    LEATI_RUN_NOTIFIED = 1,
    LEATI_RUN_IDLE = 0,
    LEATI_RUN_RUNNING = 2,
    LEATI_RUN_WAITING = 4,
    LEATI_RUN_DONE = 6,
};

typedef struct leati_worker leati_worker;
typedef struct leati_thread leati_thread;

enum { LEATI_LATER_MOST = 8 };

// How `guests` counts, and beside the count: whether somebody sleeps until there is none.
enum { LEATI_GUESTS_AWAITED = 1, LEATI_GUEST = 2 };

typedef struct leati_later {
    void (*fn)(void *arg);
    void *arg;
} leati_later;

// A run queue and who serves it.
struct leati_worker {
    _Alignas(64) pthread_mutex_t lock;
    // Immutable.
    leati_scheduler *scheduler;
    bool own; // one runnable asked for it: it takes no part in stealing
    // Under the lock.
    leati_runnable *head, *tail;
    leati_thread *holder;
    bool sleeping; // the holder is parked, or will be at once
    bool closing;  // an own worker: its thread is to leave
    // Written under the lock, read by anyone as a hint.
    _Atomic uint32_t length;
    // The monitor's, under the lock: the turn it saw last, and since when.
    leati_thread *seen_holder;
    uint32_t seen_turn;
    int64_t seen_ns;
    // Atomic: 1 once an own worker's thread has left it.
    _Atomic uint32_t closed;
};

struct leati_thread {
    leati_scheduler *scheduler; // immutable
    pthread_t id;
    leati_parker parker;
    // The worker it serves; NULL: a spare, or a thread that serves one runnable only. Written under
    // the worker's lock; the thread that believes to hold a worker checks `holder` under the lock
    // before it relies on that.
    leati_worker *_Atomic worker;
    // Atomic: the present turn has lasted too long, or others do without it (see scheduler.h).
    _Atomic bool hurry;
    // Atomic: odd during a turn; what the kernel calls the thread.
    _Atomic uint32_t turns;
    _Atomic int tid;
    // Atomic, because a signal handler on this thread looks: whose turn it gives, or NULL.
    _Atomic(leati_runnable *) running;
    // The thread's own: its stack, for the same reader.
    uintptr_t stack_low, stack_high;
    // The thread's own: the worker it lent, and to whom.
    leati_worker *lent;
    leati_thread *lent_to;
    // Of a guest (visit.c): the parked thread whose worker it has, under the worker's lock; and
    // what to call when it does not come back soon, which is written while it has no worker.
    leati_thread *host;
    void (*stuck)(void *arg);
    void *stuck_arg;
    // The thread's own: what is to be done when its turn ends (turn_end.c).
    bool in_turn;
    uint32_t later_count;
    leati_later later[LEATI_LATER_MOST];
    // Under the scheduler's lock.
    leati_thread *next_spare;
    leati_thread *next; // of all threads
};

struct leati_scheduler {
    // Immutable.
    const leat_allocator *allocator;
    uint32_t worker_count;
    leati_worker *workers; // the shared ones
    pthread_t monitor;
    bool monitor_started;
    bool stepped; // there is one worker, and no thread
    // Of a stepped scheduler, its owner's.
    uint64_t random; // 0: turns are given in order
    leati_may_run_fn may_run;
    void *may_run_user;
    // Atomic.
    _Atomic uint32_t sleepers; // shared workers whose holder sleeps
    _Atomic uint32_t guests;   // that have had a worker and not left yet; see below
    _Atomic bool stopping;
    _Atomic uint32_t monitor_idle;
    leati_parker monitor_parker;
    // Under the lock, which is taken after a worker's lock, never before.
    pthread_mutex_t lock;
    leati_thread *spares;
    leati_thread *threads;
    uint32_t thread_count;
    uint32_t own_count; // workers that are not shared
};

// Allocates a scheduler with workers that nobody serves yet. Destroyed as any.
LEAT_MUST_USE leat_err leati_scheduler_alloc(const leat_allocator *allocator, uint32_t workers,
                                             leati_scheduler **scheduler);
// Gives a turn to a runnable that has been taken out of its queue.
void leati_runnable_turn(leati_runnable *runnable);
// leati_scheduler_wait of a stepped scheduler.
leat_err leati_step_wait(leati_runnable *runnable, bool (*ready)(void *), void *arg,
                         bool (*stop)(void *), void *stop_arg);

// The thread of a scheduler that the caller is.
leati_thread *leati_thread_self(void);

// Makes the calling thread, NULL: none, a thread of a scheduler.
void leati_thread_become(leati_thread *thread);
// For whoever looks for the reason of a crash: where the stack of the calling thread lies.
void leati_thread_note_stack(leati_thread *thread);
void leati_thread_give_turn(leati_thread *thread, leati_runnable *runnable);
// The runnable at the front of the queue, or NULL.
leati_runnable *leati_worker_take(leati_worker *worker);

// A guest that has no worker yet gets this one, which sleeps, instead of its holder being roused.
// Under the worker's lock; false when the caller is no such guest.
bool leati_guest_invite_locked(leati_worker *worker);
// Who takes over the worker of a thread that does not serve it any more: a parked thread, or NULL.
// Under the worker's lock.
leati_thread *leati_thread_heir_locked(leati_thread *thread);
// A guest has taken its worker back from there. False: it is no guest.
bool leati_guest_keep_host_locked(leati_thread *thread, leati_thread *holder);
// A guest, which holds its worker, does not come back soon. Nothing for other threads.
void leati_guest_is_stuck(leati_thread *thread);
// A worker has fallen asleep without a last look at the others' queues.
void leati_worker_rouse_for_backlog(leati_worker *worker);

// Ends a worker's sleep and returns the thread to be unparked once the lock is released, or NULL
// when it does not sleep.
leati_thread *leati_worker_rouse_locked(leati_worker *worker);
// Unparks a roused thread, and the monitor with the first one. NULL: nothing.
void leati_thread_rouse(leati_thread *thread);
// A worker is awake without having been roused by another thread: the monitor must not sleep.
void leati_monitor_rouse(leati_scheduler *scheduler);
// Starts a thread that serves `worker` (whose lock is held, if it is shared already), or, without
// one, stands by as a spare.
LEAT_MUST_USE leat_err leati_thread_create(leati_scheduler *scheduler, leati_worker *worker);
void leati_thread_add_spare(leati_thread *thread);
// A parked spare, taken off the list, or NULL.
leati_thread *leati_thread_take_spare(leati_scheduler *scheduler);

void *leati_monitor_main(void *arg);

// Around a turn (turn_end.c).
void leati_turn_begin(void);
void leati_turn_end(void);

#endif
