// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first one cancels the job, a second one ends the process at once.
// Programs such as timeout(1) send a signal to a process and right after it to its group: what
// comes within 50 ms of the first one is taken as part of it.
//
// Threading: one thread takes the signals with sigwait, all others block them, so no code ever runs
// in a handler. The main thread calls the functions here. Life cycle: init before any other thread
// exists; hold and watch around the start of the job; unwatch before the job is destroyed; fini
// last. Bounds: one thread.
#ifndef LEATI_TOOLS_SIGNALS_H
#define LEATI_TOOLS_SIGNALS_H

#include <pthread.h>

#include "leat/execute.h"

typedef struct leati_signals {
    pthread_t thread; // immutable after init
    pthread_mutex_t lock;
    // Under lock.
    // What the first signal calls, while there is something to be cancelled; must not block.
    void (*cancel)(void *user);
    void *user;
    bool held;         // there is, was, or will be a job: the first signal does not end the process
    bool ending;       // the thread is to end
    int caught;        // the first signal, or 0
    int64_t caught_ns; // when it came, on the monotonic clock
} leati_signals;

// From now on a signal ends the process at once, with status 128 + its number. SIGPIPE is ignored,
// so that a reader that has gone is an error of the write. LEAT_ETHREAD.
leat_err leati_signals_init(leati_signals *signals);
// From now on a first signal is remembered.
void leati_signals_hold(leati_signals *signals);
// The number of the first signal, or 0.
int leati_signals_caught(leati_signals *signals);
// From now on a first signal cancels the job; one that came since hold does so now.
void leati_signals_watch(leati_signals *signals, leat_job *job);
// The same for what is no job of this process.
void leati_signals_watch_with(leati_signals *signals, void (*cancel)(void *user), void *user);
// The job has ended. Returns the number of the first signal, or 0.
int leati_signals_unwatch(leati_signals *signals);
void leati_signals_fini(leati_signals *signals);

#endif
