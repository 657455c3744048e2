// SPDX-License-Identifier: Apache-2.0
#include "tools/signals.h"

#include <signal.h>
#include <unistd.h>

#include "base/thread.h"
#include "tools/verbs.h"

#define ONE_PRESS_NS INT64_C(50000000)

// A shell that starts a program in the background of a script has it ignore SIGINT. It is taken
// all the same: who sends it by number means this process.
static void wanted_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

// Without the destructors of anything: the job may hang in one of them.
static _Noreturn void end_at_once(int number)
{
    // The prompt of the shell is not to stand behind a progress line.
    if (isatty(STDERR_FILENO))
        (void)!write(STDERR_FILENO, "\n", 1);
    _exit(LEATI_EXIT_SIGNAL + number);
}

static void cancel_locked(leati_signals *signals, int number)
{
    signals->caught = number;
    signals->caught_ns = leati_clock_ns();
    // Cancelling returns at once and calls nothing of ours, so the lock can be held; it keeps the
    // job from being destroyed meanwhile.
    if (signals->cancel)
        signals->cancel(signals->user);
}

// Returns whether the thread goes on.
static bool handle(leati_signals *signals, int number)
{
    bool at_once = false;
    pthread_mutex_lock(&signals->lock);
    bool ending = signals->ending;
    if (!ending && !signals->held)
        at_once = true;
    else if (!ending && !signals->caught)
        cancel_locked(signals, number);
    else if (!ending)
        at_once = leati_clock_ns() - signals->caught_ns > ONE_PRESS_NS;
    pthread_mutex_unlock(&signals->lock);
    if (at_once)
        end_at_once(number);
    return !ending;
}

static void *serve(void *arg)
{
    leati_signals *signals = arg;
    sigset_t set;
    wanted_signals(&set);
    for (;;) {
        int number;
        if (sigwait(&set, &number) == 0 && !handle(signals, number))
            return NULL;
    }
}

leat_err leati_signals_init(leati_signals *signals)
{
    sigset_t set;
    *signals = (leati_signals){0};
    wanted_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&signals->lock, NULL);
    if (pthread_create(&signals->thread, NULL, serve, signals)) {
        pthread_mutex_destroy(&signals->lock);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        return LEAT_ETHREAD;
    }
    pthread_setname_np(signals->thread, "leat-signals");
    return LEAT_OK;
}

void leati_signals_hold(leati_signals *signals)
{
    pthread_mutex_lock(&signals->lock);
    signals->held = true;
    pthread_mutex_unlock(&signals->lock);
}

int leati_signals_caught(leati_signals *signals)
{
    pthread_mutex_lock(&signals->lock);
    int caught = signals->caught;
    pthread_mutex_unlock(&signals->lock);
    return caught;
}

void leati_signals_watch_with(leati_signals *signals, void (*cancel)(void *user), void *user)
{
    pthread_mutex_lock(&signals->lock);
    signals->cancel = cancel;
    signals->user = user;
    if (signals->caught)
        cancel(user);
    pthread_mutex_unlock(&signals->lock);
}

static void cancel_job(void *user)
{
    leat_job_cancel(user);
}

void leati_signals_watch(leati_signals *signals, leat_job *job)
{
    leati_signals_watch_with(signals, cancel_job, job);
}

int leati_signals_unwatch(leati_signals *signals)
{
    pthread_mutex_lock(&signals->lock);
    signals->cancel = NULL;
    int caught = signals->caught;
    pthread_mutex_unlock(&signals->lock);
    return caught;
}

void leati_signals_fini(leati_signals *signals)
{
    pthread_mutex_lock(&signals->lock);
    signals->ending = true;
    pthread_mutex_unlock(&signals->lock);
    pthread_kill(signals->thread, SIGINT); // wakes the thread, which sees that it is to end
    pthread_join(signals->thread, NULL);
    pthread_mutex_destroy(&signals->lock);
}
