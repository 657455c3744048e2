// SPDX-License-Identifier: Apache-2.0
// Last words: what is told when user code kills the process.
//
// A handler of the signals that faults raise runs on the stack of its own that each thread with
// user code has (leati_signal_stack_enter). It finds out what the thread was doing, writes a line
// to standard error (and the log), has a thread that is there for nothing else tell the job
// manager, waits for that for a moment, and lets the signal kill the process. exit() called by user
// code is told in the same way.
//
// One at a time in a process: it is the signal handlers' nature.
#ifndef LEATI_CLUSTER_WORKER_CRASH_H
#define LEATI_CLUSTER_WORKER_CRASH_H

#include <stdint.h>
#include <stdnoreturn.h>

#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_last_words {
    uint64_t attempt;         // 0: none
    uint32_t vertex, subtask; // UINT32_MAX: of no task
    char text[480];           // 'signal 11 (SIGSEGV) in operator "split" (2/3)'
} leati_last_words;

// From now on crashes are told by `tell`, on the thread for that; it may wait, but for
// LEATI_CRASH_WAIT_MS at most is it waited for. `log_path` (or NULL) gets the line as well.
// LEAT_ENOMEM, LEAT_ETHREAD, LEAT_EEXIST.
enum { LEATI_CRASH_WAIT_MS = 300 };
LEAT_MUST_USE leat_err leati_crash_install(const leat_allocator *allocator, const char *log_path,
                                           void (*tell)(void *user, const leati_last_words *words),
                                           void *user);
// No user code may run any more. Signals do what they did before.
void leati_crash_remove(void);

// The calling thread runs user code outside of any task from here to leave; `what` is static.
void leati_crash_enter(uint64_t attempt, const char *what);
void leati_crash_leave(void);

// Says that, as of a crash, and ends the process with status 70.
noreturn void leati_crash_give_up(const leati_last_words *words);

#endif
