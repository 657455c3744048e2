// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Functions with more than a page of local variables may begin a frame beyond a guard of one page,
// and write to what is below it: the stack of another thread.
enum { GUARD_SIZE = 64 * 1024 };

leat_err leati_thread_start(pthread_t *thread, const char *name, void *(*main)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return LEAT_ETHREAD;
    pthread_attr_setguardsize(&attributes, GUARD_SIZE);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(thread, &attributes, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        return LEAT_ETHREAD;
    pthread_setname_np(*thread, name);
    return LEAT_OK;
}

enum { SIGNAL_STACK_SIZE = 128 * 1024 }; // only what is used of it takes memory

void *leati_signal_stack_enter(void)
{
    struct sigaction action;
    stack_t before;
    if (sigaction(SIGSEGV, NULL, &action) || !(action.sa_flags & SA_ONSTACK))
        return NULL;
    // A sanitizer has given the thread one already.
    if (sigaltstack(NULL, &before) || !(before.ss_flags & SS_DISABLE))
        return NULL;
    void *stack = mmap(NULL, SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    if (sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = SIGNAL_STACK_SIZE}, NULL)) {
        munmap(stack, SIGNAL_STACK_SIZE);
        return NULL;
    }
    return stack;
}

void leati_signal_stack_leave(void *stack)
{
    if (!stack)
        return;
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    munmap(stack, SIGNAL_STACK_SIZE);
}

void leati_futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void leati_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// The exchanges on both sides order what was written before unpark with what is read after park.
void leati_park(leati_parker *parker)
{
    while (atomic_exchange_explicit(&parker->permit, 0, memory_order_acq_rel) == 0)
        leati_futex_wait(&parker->permit, 0);
}

void leati_park_for(leati_parker *parker, int64_t timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000};
    if (atomic_exchange_explicit(&parker->permit, 0, memory_order_acq_rel))
        return;
    syscall(SYS_futex, &parker->permit, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
    atomic_exchange_explicit(&parker->permit, 0, memory_order_acq_rel);
}

void leati_unpark(leati_parker *parker)
{
    if (atomic_exchange_explicit(&parker->permit, 1, memory_order_acq_rel) == 0)
        leati_futex_wake(&parker->permit);
}

void leati_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec leati_deadline(int64_t timeout_ms)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += timeout_ms % 1000 * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    return deadline;
}

int64_t leati_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
