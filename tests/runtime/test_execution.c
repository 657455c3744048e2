// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "jobs.h"

TestSuite(execution, .timeout = 120);

static int count_fn(leat_ctx *ctx, const void *in)
{
    atomic_fetch_add((_Atomic int64_t *)leat_ctx_user_data(ctx), 1);
    return 0;
}

static int slow_fn(leat_ctx *ctx, const void *in)
{
    usleep(1000);
    return count_fn(ctx, in);
}

static int many_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0; i < 1000; i++)
        if (leat_collect(out, &i))
            return -1;
    return 0;
}

static int every_fn(leat_ctx *ctx, const void *in)
{
    return 1;
}

static int bad_fn(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == 700 ? -1 : 1;
}

static void tiny_pools(leat_env *env)
{
    leat_env_set(env, "memory.network", "64 KiB");
    leat_env_set(env, "memory.segment-size", "1 KiB");
}

// Numbers without end, a thousand each, over an exchange into a slow sink: tasks that wait before a
// record, in the middle of one, and for input.
static leat_env *endless_env(const char *workers, _Atomic int64_t *count)
{
    leat_env *env = new_env(workers);
    tiny_pools(env);
    leat_env_set_buffer_timeout(env, 1);
    leat_stream *s = leat_flat_map(leat_sequence(env, 0, INT64_MAX), many_fn, NUMBER);
    s = leat_parallelism(leat_filter(leat_rebalance(s), every_fn), 2);
    leat_user_data(leat_sink(leat_rebalance(s), slow_fn), count);
    return env;
}

static leat_runtime *new_runtime(leat_env *env)
{
    leat_runtime *runtime;
    char why[200] = "";
    cr_assert(leat_runtime_create(env, &runtime, why, sizeof why) == LEAT_OK, "%s", why);
    return runtime;
}

static leat_job *start(leat_runtime *runtime, leat_env *env)
{
    leat_job *job;
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
    return job;
}

Test(execution, leat_execute_runs_a_job_to_its_end)
{
    _Atomic int64_t count = 0;
    leat_env *env = new_env("2");
    leat_user_data(leat_sink(leat_rebalance(leat_sequence(env, 1, 100000)), count_fn), &count);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    cr_assert(count == 100000);
    // An environment can be executed again.
    cr_assert(leat_execute(env) == LEAT_OK);
    cr_assert(count == 200000);
    leat_env_destroy(&env);
}

Test(execution, states_waits_and_results_of_a_job_that_finishes)
{
    _Atomic int64_t count = 0;
    leat_env *env = new_env("1");
    leat_user_data(leat_sink(leat_sequence(env, 1, 200), slow_fn), &count);
    leat_runtime *runtime = new_runtime(env);
    leat_job *job = start(runtime, env);
    // 200 records of at least a millisecond each.
    cr_assert(leat_job_wait(job, 0) == LEAT_EAGAIN);
    cr_assert(leat_job_wait(job, 20) == LEAT_EAGAIN);
    cr_assert(leat_job_get_state(job) == LEAT_JOB_RUNNING);
    cr_assert(leat_job_wait(job, INT64_MAX) == LEAT_OK);
    cr_assert(leat_job_get_state(job) == LEAT_JOB_FINISHED);
    cr_assert(leat_job_wait(job, 0) == LEAT_OK && leat_job_wait(job, -1) == LEAT_OK);
    cr_assert(count == 200);
    leat_job_cancel(job);
    cr_assert(leat_job_get_state(job) == LEAT_JOB_FINISHED);
    cr_assert_str_eq(leat_job_failure(job), "");
    leat_job_destroy(&job);
    leat_job_destroy(&job); // of NULL: nothing
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
}

Test(execution, states_have_names)
{
    const char *const names[] = {"RUNNING",  "FAILING", "CANCELLING",
                                 "FINISHED", "FAILED",  "CANCELED"};
    for (int i = 0; i < 6; i++)
        cr_assert_str_eq(leat_job_state_name((leat_job_state)i), names[i]);
    cr_assert_str_eq(leat_job_state_name((leat_job_state)6), "?");
}

Test(execution, statistics_count_what_went_through)
{
    _Atomic int64_t count = 0;
    leat_env *env = new_env("2");
    leat_stream *s = leat_rebalance(leat_parallelism(leat_sequence(env, 1, 1000), 2));
    leat_user_data(leat_parallelism(leat_sink(s, count_fn), 3), &count);
    leat_runtime *runtime = new_runtime(env);
    leat_job *job = start(runtime, env);
    cr_assert(leat_job_wait(job, -1) == LEAT_OK);
    cr_assert(leat_job_task_count(job) == 5);
    uint64_t in = 0, out = 0, bytes_in = 0, bytes_out = 0;
    for (uint32_t i = 0; i < 5; i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
        cr_assert_str_eq(stats.state, "FINISHED");
        cr_assert(stats.parallelism == (i < 2 ? 2 : 3));
        cr_assert(stats.subtask == (i < 2 ? i : i - 2));
        if (i < 2) {
            out += stats.records_out;
            bytes_out += stats.bytes_out;
            cr_assert(stats.segments_used == 0);
        } else {
            in += stats.records_in;
            bytes_in += stats.bytes_in;
        }
    }
    cr_assert(out == 1000 && in == 1000 && count == 1000);
    cr_assert(bytes_in == bytes_out && bytes_in > 1000);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
}

Test(execution, two_jobs_share_a_runtime)
{
    _Atomic int64_t counts[2] = {0, 0};
    leat_env *envs[2];
    leat_job *jobs[2];
    for (int i = 0; i < 2; i++) {
        envs[i] = new_env("2");
        tiny_pools(envs[i]);
        leat_stream *s = leat_flat_map(leat_sequence(envs[i], 1, 300), many_fn, NUMBER);
        leat_user_data(leat_parallelism(leat_sink(leat_rebalance(s), count_fn), 2), &counts[i]);
    }
    leat_runtime *runtime = new_runtime(envs[0]);
    for (int i = 0; i < 2; i++)
        jobs[i] = start(runtime, envs[i]);
    for (int i = 0; i < 2; i++) {
        cr_assert(leat_job_wait(jobs[i], -1) == LEAT_OK, "%s", leat_job_failure(jobs[i]));
        cr_assert(counts[i] == 300000);
        leat_job_destroy(&jobs[i]);
    }
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&envs[0]);
    leat_env_destroy(&envs[1]);
}

Test(execution, the_failure_of_one_job_leaves_the_other_alone)
{
    _Atomic int64_t count = 0;
    leat_env *good = new_env("2"), *bad = new_env("2");
    leat_user_data(leat_sink(leat_rebalance(leat_sequence(good, 1, 300000)), count_fn), &count);
    leat_discard(leat_rebalance(leat_filter(leat_sequence(bad, 0, 1000), bad_fn)));
    leat_runtime *runtime = new_runtime(good);
    leat_job *one = start(runtime, good), *other = start(runtime, bad);
    cr_assert(leat_job_wait(other, -1) == LEAT_EUSER);
    leat_job_destroy(&other);
    cr_assert(leat_job_wait(one, -1) == LEAT_OK);
    cr_assert(count == 300000);
    leat_job_destroy(&one);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&good);
    leat_env_destroy(&bad);
}

// --- cancelling ---

static void *cancel_later(void *arg)
{
    leat_job *job = arg;
    usleep((useconds_t)(rand() % 4000));
    leat_job_cancel(job);
    return NULL;
}

Test(execution, a_job_may_be_cancelled_at_any_moment)
{
    srand(7);
    for (int round = 0; round < 120; round++) {
        _Atomic int64_t count = 0;
        leat_env *env = endless_env(round % 2 ? "1" : "2", &count);
        leat_runtime *runtime = new_runtime(env);
        leat_job *job = start(runtime, env);
        pthread_t canceller;
        switch (round % 4) {
        case 0: // right after the start
            leat_job_cancel(job);
            break;
        case 1: // from two threads at once
            cr_assert(pthread_create(&canceller, NULL, cancel_later, job) == 0);
            usleep((useconds_t)(rand() % 4000));
            leat_job_cancel(job);
            pthread_join(canceller, NULL);
            break;
        case 2: // later
            usleep((useconds_t)(rand() % 20000));
            leat_job_cancel(job);
            break;
        default: // by destroying it
            usleep((useconds_t)(rand() % 4000));
            leat_job_destroy(&job);
        }
        if (job) {
            cr_assert(leat_job_wait(job, -1) == LEAT_ECANCELLED, "round %d", round);
            cr_assert(leat_job_get_state(job) == LEAT_JOB_CANCELED);
            cr_assert_str_eq(leat_job_failure(job), "");
            leat_job_destroy(&job);
        }
        leat_runtime_destroy(&runtime);
        leat_env_destroy(&env);
    }
}

static int sulks(leat_ctx *ctx, const void *in)
{
    while (!leat_ctx_cancelled(ctx))
        usleep(100);
    return leat_fail(ctx, "interrupted");
}

Test(execution, a_function_that_fails_because_it_was_cancelled_does_not_make_the_job_fail)
{
    leat_env *env = new_env("1");
    leat_sink(leat_sequence(env, 0, 9), sulks);
    leat_runtime *runtime = new_runtime(env);
    leat_job *job = start(runtime, env);
    cr_assert(leat_job_wait(job, 10) == LEAT_EAGAIN);
    leat_job_cancel(job);
    cr_assert(leat_job_wait(job, -1) == LEAT_ECANCELLED);
    cr_assert_str_eq(leat_job_failure(job), "");
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
}
