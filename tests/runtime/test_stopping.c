// SPDX-License-Identifier: Apache-2.0
// Cancelling and failing reach a task that does not look: nothing is emitted any more after the
// record in hand, wherever in a chain it is, and outputs that nobody reads lead nowhere.
#include "jobs.h"

TestSuite(stopping, .timeout = 60);

static _Atomic int64_t seen;
static leat_job *_Atomic running;

static void reset(void)
{
    atomic_store(&seen, 0);
    atomic_store(&running, NULL);
}

// Runs until the job is over; the function that is under test cancels it from inside.
static leat_err run_cancelling(leat_env *env)
{
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
    atomic_store(&running, job);
    leat_err err = leat_job_wait(job, -1);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    return err;
}

static void cancel_once(void)
{
    leat_job *job;
    while (!(job = atomic_load(&running)))
        ;
    leat_job_cancel(job);
}

static int endless(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0;; i++) {
        if (i == 1000)
            cancel_once();
        if (leat_collect(out, &i) != LEAT_OK)
            return -1;
    }
}

static int twice(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 2 * *(const int64_t *)in;
    return 0;
}

Test(stopping, a_flat_map_without_end_learns_of_it_in_its_next_emission)
{
    for (int exchange = 0; exchange < 2; exchange++) {
        reset();
        leat_env *env = new_env("2");
        leat_stream *numbers = leat_flat_map(leat_sequence(env, 0, 0), endless, NUMBER);
        leat_discard(exchange ? leat_rebalance(numbers) : leat_map(numbers, twice, NUMBER));
        cr_assert(run_cancelling(env) == LEAT_ECANCELLED);
    }
}

// Cancels in the tenth record.
static int count(leat_ctx *ctx, const void *in)
{
    if (atomic_fetch_add(&seen, 1) + 1 == 10)
        cancel_once();
    return 0;
}

static int count_fold(leat_ctx *ctx, void *accumulator, const void *in)
{
    return count(ctx, in);
}

static int same_key(leat_ctx *ctx, const void *in, void *key)
{
    return 0;
}

// One task each: a chain, a task behind an exchange, a fold that takes several records at once.
Test(stopping, no_record_follows_the_one_in_hand)
{
    static const int64_t last = 100000;
    for (int kind = 0; kind < 4; kind++) {
        reset();
        leat_env *env = new_env("1");
        leat_stream *numbers = leat_sequence(env, 1, last);
        if (kind < 2)
            leat_sink(kind ? leat_rebalance(numbers) : numbers, count);
        else if (kind == 2)
            leat_discard(leat_final_only(
                leat_reduce(leat_key_by_fn(numbers, same_key, NUMBER), count_fold)));
        else
            leat_discard(leat_final_only(
                leat_reduce(leat_key_by(leat_map(numbers, twice, NUMBER), ""), count_fold)));
        leat_err err = run_cancelling(env);
        // With distinct keys the last kind folds nothing, so it finishes.
        cr_assert(err == (kind == 3 ? LEAT_OK : LEAT_ECANCELLED), "kind %d", kind);
        cr_assert(atomic_load(&seen) == (kind == 3 ? 0 : 10), "kind %d: %ld", kind,
                  (long)atomic_load(&seen));
    }
}

static int only_count(leat_ctx *ctx, const void *in)
{
    atomic_fetch_add(&seen, 1);
    return 0;
}

static int sum(leat_ctx *ctx, void *accumulator, const void *in)
{
    *(int64_t *)accumulator += *(const int64_t *)in;
    return 0;
}

// Whatever makes records may be left unread beside a job that works.
Test(stopping, an_output_that_nobody_reads_leads_nowhere)
{
    static const int64_t items[] = {1, 2, 3};
    for (int kind = 0; kind < 6; kind++) {
        reset();
        leat_env *env = new_env("2");
        leat_stream *numbers = leat_sequence(env, 1, 100);
        leat_sink(numbers, only_count);
        leat_stream *keyed = leat_key_by(numbers, "");
        if (kind == 0)
            leat_map(numbers, twice, NUMBER);
        if (kind == 1)
            leat_reduce(keyed, sum);
        if (kind == 2)
            leat_final_only(leat_reduce(keyed, sum));
        if (kind == 3)
            leat_sequence(env, 1, 1000);
        if (kind == 4)
            leat_from_items(env, NUMBER, items, 3);
        if (kind == 5)
            leat_read_text(env, "/dev/null");
        cr_assert(leat_execute(env) == LEAT_OK, "kind %d: %s", kind, fault_of(env));
        cr_assert(atomic_load(&seen) == 100);
        leat_env_destroy(&env);
    }
}
