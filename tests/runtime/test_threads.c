// SPDX-License-Identifier: Apache-2.0
// Threads that cannot be created. The linker leads pthread_create here (--wrap).
#include <errno.h>

#include "jobs.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*main)(void *), void *arg);

static _Atomic int left = INT32_MAX; // threads that may still be created

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*main)(void *), void *arg)
{
    if (atomic_fetch_sub(&left, 1) <= 0)
        return EAGAIN;
    return __real_pthread_create(thread, attributes, main, arg);
}

TestSuite(threads, .timeout = 120);

static _Atomic int64_t count;

static int count_fn(leat_ctx *ctx, const void *in)
{
    leat_blocking_begin(ctx);
    count++;
    leat_blocking_end(ctx);
    return 0;
}

static int many_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0; i < 3000; i++)
        if (leat_collect(out, &i))
            return -1;
    return 0;
}

// Three subtasks that wait in the middle of a record at the same time, on one worker.
static leat_env *waiting_job(void)
{
    leat_env *env = new_env("1");
    leat_env_set(env, "memory.network", "64 KiB");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_env_set(env, "network.floating-buffers", "0");
    leat_env_set(env, "network.overdraft-buffers", "0");
    leat_stream *s = leat_rebalance(leat_sequence(env, 0, 8));
    s = leat_parallelism(leat_flat_map(s, many_fn, NUMBER), 3);
    leat_parallelism(leat_sink(leat_rebalance(s), count_fn), 2);
    return env;
}

Test(threads, a_job_without_enough_threads_is_refused_or_fails_with_the_reason)
{
    int refused = 0, failed = 0, finished = 0;
    for (int allowed = 0; allowed < 14; allowed++) {
        count = 0;
        leat_env *env = waiting_job();
        left = allowed;
        leat_err err = leat_execute(env);
        left = INT32_MAX;
        const char *why = fault_of(env);
        if (err == LEAT_OK) {
            finished++;
            cr_assert(count == 27000);
        } else {
            cr_assert(err == LEAT_ETHREAD, "%d threads: %s: %s", allowed, leat_err_name(err), why);
            bool in_the_middle = strstr(why, "no thread for the worker's other tasks") != NULL;
            failed += in_the_middle;
            refused += !in_the_middle;
            cr_assert(in_the_middle || strstr(why, "a thread could not be created"), "%s", why);
        }
        leat_env_destroy(&env);
    }
    // The service, the worker and the monitor, and one in reserve, are there before it starts.
    cr_assert(refused == 4, "%d refused, %d failed, %d finished", refused, failed, finished);
    cr_assert(finished > 0);
}
