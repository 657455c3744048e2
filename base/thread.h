// SPDX-License-Identifier: Apache-2.0
// Threads, parking and the monotonic clock.
#ifndef LEATI_BASE_THREAD_H
#define LEATI_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "leat/error.h"

// Starts a joinable thread with that name (at most 15 bytes) and all signals blocked, as they are
// the embedding program's business, but those that the thread's own faults raise: their handlers
// run nowhere else. LEAT_ETHREAD.
LEAT_MUST_USE leat_err leati_thread_start(pthread_t *thread, const char *name,
                                          void *(*main)(void *), void *arg);

// Gives the calling thread, which runs user code, a stack of its own for the handler of SIGSEGV if
// the process has one that wants it (SA_ONSTACK): a stack that has overflowed cannot serve it. Give
// the result (NULL: none was needed, or to be had) to leati_signal_stack_leave when the thread
// ends.
void *leati_signal_stack_enter(void);
void leati_signal_stack_leave(void *stack);

// Sleeps while `*word` is `expected`; may wake without cause.
void leati_futex_wait(_Atomic uint32_t *word, uint32_t expected);
// Wakes one sleeper.
void leati_futex_wake(_Atomic uint32_t *word);

// A place for one thread to sleep until another gives it a permit; a permit given early is kept (at
// most one).
typedef struct leati_parker {
    _Atomic uint32_t permit;
} leati_parker;

void leati_park(leati_parker *parker);
// At most that long, and perhaps shorter without cause.
void leati_park_for(leati_parker *parker, int64_t timeout_ms);
void leati_unpark(leati_parker *parker);

// A condition whose timed waits go by CLOCK_MONOTONIC, and the moment `timeout_ms` (0 or more) from
// now on that clock.
void leati_cond_init(pthread_cond_t *condition);
struct timespec leati_deadline(int64_t timeout_ms);

// CLOCK_MONOTONIC in ns.
int64_t leati_clock_ns(void);

// Tells the processor that this is a spin loop.
static inline void leati_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
