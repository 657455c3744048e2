// SPDX-License-Identifier: Apache-2.0
// Broadcast variables where the subtasks are in several processes, and what a task says while it
// gathers one.
#include <inttypes.h>
#include <stdatomic.h>

#include "leat/testing.h"
#include "placed.h"
#include <criterion/criterion.h>

TestSuite(broadcast_placed, .timeout = 120);

enum { VALUES = 5000, NUMBERS = 50000 };

static _Atomic int64_t total;
static _Atomic uint32_t opened;

static int open_summed(leat_ctx *ctx)
{
    size_t count;
    const int64_t *values = leat_ctx_broadcast(ctx, "values", &count);
    if (!values)
        return -1;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    if (sum != (int64_t)VALUES * (VALUES + 1) / 2)
        return leat_fail(ctx, "%zu values give %" PRId64, count, sum);
    atomic_fetch_add_explicit(&opened, 1, memory_order_relaxed);
    return 0;
}

static int add_to_total(leat_ctx *ctx, const void *in)
{
    atomic_fetch_add_explicit(&total, *(const int64_t *)in, memory_order_relaxed);
    return 0;
}

// The values come from subtasks in all processes; the numbers, too, and from the same source if
// asked for.
static void build_job(leat_env *env, void *user)
{
    const bool *shared = user;
    leat_env_set_parallelism(env, 3);
    leat_env_set(env, "workers", "2");
    leat_env_set(env, "memory.network", "4MiB");
    leat_stream *values = leat_sequence(env, 1, VALUES);
    leat_stream *numbers = *shared ? values : leat_sequence(env, 1, NUMBERS);
    leat_stream *sink =
        leat_rich(leat_sink(leat_rebalance(numbers), add_to_total), open_summed, NULL);
    leat_broadcast_variable(sink, "values", values);
}

static void run_over(uint32_t processes, bool shared)
{
    char why[1024] = "";
    leat_env *env;
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    build_job(env, &shared);
    uint32_t *process_of = placed_by_subtask(env, processes);
    leat_env_destroy(&env);
    atomic_store(&total, 0);
    atomic_store(&opened, 0);
    leat_err err = placed_execute(processes, process_of, build_job, &shared, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    int64_t last = shared ? VALUES : NUMBERS;
    cr_assert(atomic_load(&total) == last * (last + 1) / 2 && atomic_load(&opened) == 3);
    free(process_of);
}

Test(broadcast_placed, every_subtask_in_every_process_has_all_values)
{
    run_over(1, false);
    run_over(2, false);
    run_over(3, false);
}

Test(broadcast_placed, an_input_from_the_same_source_is_kept_where_it_is_made)
{
    run_over(2, true);
    run_over(3, true);
}

// --- one process ---

Test(broadcast_placed, a_task_that_gathers_one_says_whom_it_waits_for)
{
    leat_harness *h;
    cr_assert(leat_harness_create(NULL, &h) == LEAT_OK);
    leat_env *env = leat_harness_env(h);
    const leat_type *i64 = leat_type_scalar(LEAT_I64);
    leat_stream *out = leat_sink(leat_test_input(env, "in", i64), add_to_total);
    leat_broadcast_variable(out, "values", leat_test_input(env, "table", i64));
    cr_assert(leat_harness_feed(h, "in", &(int64_t){1}) == LEAT_OK);
    cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
    const leat_job *job = leat_harness_job(h);
    bool found = false;
    for (uint32_t i = 0; i < leat_job_task_count(job); i++) {
        leat_task_stats stats;
        leati_wait wait;
        leat_job_task_stats(job, i, &stats);
        leati_job_task_wait(job, i, &wait);
        if (strcmp(stats.name, "sink") != 0)
            continue;
        found = true;
        cr_expect(wait.kind == LEATI_WAIT_INPUT && strstr(wait.text, "no input from \"table\""),
                  "%s", wait.text);
    }
    cr_assert(found);
    leat_harness_destroy(&h);
}
