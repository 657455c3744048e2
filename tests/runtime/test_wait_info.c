// SPDX-License-Identifier: Apache-2.0
// What tasks are said to wait for, in jobs that were stopped at known places.
#include <semaphore.h>

#include "base/thread.h"
#include "jobs.h"
#include "placed.h"

TestSuite(wait_info, .timeout = 120);

// The wait of a task, once it is of that kind; the test's limit ends what never comes.
static leati_wait await_kind(const leat_job *job, uint32_t task, leati_wait_kind kind)
{
    leati_wait wait;
    for (;;) {
        leati_job_task_wait(job, task, &wait);
        if (wait.kind == kind)
            return wait;
        sched_yield();
    }
}

// --- operators that stop where they are told ---

static sem_t stop; // taken by whoever is to go on

static int wait_fn(leat_ctx *ctx, const void *in)
{
    while (sem_trywait(&stop) != 0 && !leat_ctx_cancelled(ctx))
        sched_yield();
    return 0;
}

static int blocking_fn(leat_ctx *ctx, const void *in)
{
    leat_blocking_begin(ctx);
    wait_fn(ctx, in);
    leat_blocking_end(ctx);
    return 0;
}

static int open_fn(leat_ctx *ctx)
{
    return wait_fn(ctx, NULL);
}

static int any_fn(leat_ctx *ctx, const void *in)
{
    return 0;
}

typedef enum quiet_kind { OUTSIDE, ALARM } quiet_kind;

static leat_err quiet_poll(leat_operator *self, leat_out *out, uint32_t most, leat_poll *state)
{
    *state = LEAT_POLL_WAIT;
    return LEAT_OK;
}

// Never, but it is an alarm.
static leat_err alarm_poll(leat_operator *self, leat_out *out, uint32_t most, leat_poll *state)
{
    leat_ctx_wake_at(self->ctx, leat_ctx_now_ns(self->ctx) + INT64_C(3600) * 1000000000);
    *state = LEAT_POLL_WAIT;
    return LEAT_OK;
}

static void quiet_dispose(leat_operator *self)
{
    free(self);
}

static leat_err quiet_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops outside = {
        .kind = "quiet", .poll = quiet_poll, .dispose = quiet_dispose};
    static const leat_operator_ops alarm = {
        .kind = "quiet", .poll = alarm_poll, .dispose = quiet_dispose};
    *op = calloc(1, sizeof **op);
    (*op)->ops = *(const quiet_kind *)factory->config == ALARM ? &alarm : &outside;
    return LEAT_OK;
}

static leat_stream *quiet(leat_env *env, const quiet_kind *kind)
{
    return leat_source(env, "quiet", &(leat_factory){.create = quiet_create, .config = kind},
                       NUMBER);
}

typedef struct run {
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
} run;

static leat_env *begin(run *r)
{
    sem_init(&stop, 0, 0);
    r->env = new_env("2");
    leat_env_set(r->env, "memory.network", "1 MiB");
    leat_env_set(r->env, "memory.segment-size", "4 KiB");
    return r->env;
}

static void start(run *r)
{
    char why[200] = "";
    cr_assert(leat_runtime_create(r->env, &r->runtime, why, sizeof why) == LEAT_OK, "%s", why);
    cr_assert(leat_start(r->runtime, r->env, &r->job) == LEAT_OK, "%s", fault_of(r->env));
}

static void end(run *r)
{
    leat_job_destroy(&r->job);
    leat_runtime_destroy(&r->runtime);
    leat_env_destroy(&r->env);
}

// --- the kinds ---

Test(wait_info, kinds_have_names)
{
    cr_assert_str_eq(leati_wait_name(LEATI_WAIT_NONE), "NONE");
    cr_assert_str_eq(leati_wait_name(LEATI_WAIT_CREDIT), "CREDIT");
    cr_assert_str_eq(leati_wait_name(LEATI_WAIT_WORKER), "WORKER");
    cr_assert_str_eq(leati_wait_name((leati_wait_kind)99), "?");
}

Test(wait_info, a_source_waits_for_the_outside_and_its_reader_for_the_source)
{
    static const quiet_kind kind = OUTSIDE;
    run r;
    leat_stream *source = leat_parallelism(quiet(begin(&r), &kind), 2);
    leat_parallelism(leat_sink(leat_rebalance(source), any_fn), 1);
    int64_t before = leati_clock_ns();
    start(&r);
    leati_wait wait = await_kind(r.job, 0, LEATI_WAIT_INPUT);
    cr_assert(wait.vertex == UINT32_MAX && wait.subtask == UINT32_MAX);
    cr_assert_str_eq(wait.text, "nothing from outside for \"quiet\"");
    wait = await_kind(r.job, 2, LEATI_WAIT_INPUT);
    cr_assert(wait.vertex == 0 && wait.subtask == UINT32_MAX);
    cr_assert_str_eq(wait.text, "no input from \"quiet\" (all 2 subtasks)");
    cr_assert(wait.since_ns >= before && wait.since_ns <= leati_clock_ns());
    end(&r);
}

Test(wait_info, one_producer_is_named)
{
    static const quiet_kind kind = OUTSIDE;
    run r;
    leat_stream *source = leat_parallelism(quiet(begin(&r), &kind), 2);
    leat_parallelism(leat_sink(leat_start_new_chain(
                                   leat_parallelism(leat_filter(leat_forward(source), any_fn), 2)),
                               any_fn),
                     2);
    leat_env_set_chaining(r.env, false);
    start(&r);
    leati_wait wait = await_kind(r.job, 3, LEATI_WAIT_INPUT);
    cr_assert(wait.vertex == 0 && wait.subtask == 1);
    cr_assert_str_eq(wait.text, "no input from \"quiet\" (2/2)");
    end(&r);
}

Test(wait_info, who_has_ended_is_not_waited_for)
{
    static const quiet_kind kind = OUTSIDE;
    run r;
    leat_stream *source = quiet(begin(&r), &kind);
    leat_stream *both[] = {leat_name(leat_sequence(r.env, 1, 3), "short"), source};
    leat_sink(leat_rebalance(leat_union(both, 2)), any_fn);
    start(&r);
    leati_wait wait;
    do { // first it waits for both
        wait = await_kind(r.job, 2, LEATI_WAIT_INPUT);
    } while (strstr(wait.text, "other"));
    cr_assert(strstr(wait.text, "no input from \"quiet\""), "%s", wait.text);
    end(&r);
}

Test(wait_info, a_wait_goes_on_though_the_task_is_woken_for_nothing)
{
    static const quiet_kind kind = OUTSIDE;
    run r;
    quiet(begin(&r), &kind);
    leat_sink(leat_rebalance(quiet(r.env, &kind)), any_fn);
    start(&r);
    int64_t since = await_kind(r.job, 0, LEATI_WAIT_INPUT).since_ns;
    leat_task_stats stats;
    leat_job_task_stats(r.job, 0, &stats);
    uint64_t busy = stats.busy_ns;
    // It has had a turn when its time of work has grown.
    while (stats.busy_ns == busy) {
        leati_runnable_wake(&r.job->tasks[0].run);
        leat_job_task_stats(r.job, 0, &stats);
    }
    cr_assert(await_kind(r.job, 0, LEATI_WAIT_INPUT).since_ns == since);
    end(&r);
}

Test(wait_info, a_source_may_wait_for_a_time)
{
    static const quiet_kind kind = ALARM;
    run r;
    leat_sink(leat_rebalance(quiet(begin(&r), &kind)), any_fn);
    start(&r);
    leati_wait wait = await_kind(r.job, 0, LEATI_WAIT_TIMER);
    cr_assert(strstr(wait.text, "an alarm of \"quiet\", due in 3"), "%s", wait.text);
    end(&r);
}

Test(wait_info, a_slow_function_and_who_feeds_it)
{
    run r;
    leat_stream *numbers = leat_sequence(begin(&r), 0, INT64_MAX);
    leat_stream *sink = leat_sink(leat_rebalance(numbers), wait_fn);
    leat_name(leat_parallelism(sink, 2), "slow");
    int64_t before = leati_clock_ns();
    start(&r);
    leati_wait wait = await_kind(r.job, 1, LEATI_WAIT_USER);
    cr_assert_str_eq(wait.text, "a user function of \"slow\"");
    cr_assert(wait.since_ns >= before && leati_clock_ns() - wait.since_ns >= 50000000);
    wait = await_kind(r.job, 0, LEATI_WAIT_BUFFER);
    cr_assert(wait.vertex == 1, "%s", wait.text);
    cr_assert(strstr(wait.text, "room in its output to \"slow\""), "%s", wait.text);
    cr_assert(wait.since_ns >= before);
    end(&r);
}

Test(wait_info, the_one_slow_reader_of_several_is_named)
{
    run r;
    leat_stream *numbers = leat_sequence(begin(&r), 0, INT64_MAX);
    leat_stream *sink = leat_sink(leat_global(numbers), wait_fn);
    leat_parallelism(sink, 2);
    start(&r);
    leati_wait wait = await_kind(r.job, 0, LEATI_WAIT_BUFFER);
    cr_assert(wait.vertex == 1 && wait.subtask == 0, "%s", wait.text);
    end(&r);
}

Test(wait_info, declared_blocking_is_told_apart)
{
    run r;
    leat_stream *numbers = leat_sequence(begin(&r), 0, INT64_MAX);
    leat_name(leat_sink(leat_rebalance(numbers), blocking_fn), "slow");
    start(&r);
    leati_wait wait = await_kind(r.job, 1, LEATI_WAIT_BLOCKING);
    cr_assert_str_eq(wait.text, "a blocking call of \"slow\"");
    end(&r);
}

Test(wait_info, an_open_function_that_does_not_return)
{
    run r;
    leat_stream *numbers = leat_sequence(begin(&r), 0, 1);
    leat_name(leat_rich(leat_sink(leat_rebalance(numbers), any_fn), open_fn, NULL), "slow");
    start(&r);
    leati_wait wait = await_kind(r.job, 1, LEATI_WAIT_USER);
    cr_assert_str_eq(wait.text, "an open function of \"slow\"");
    end(&r);
}

Test(wait_info, the_end_of_a_blocking_exchange)
{
    static const quiet_kind kind = OUTSIDE;
    run r;
    leat_sink(leat_blocking_exchange(leat_rebalance(quiet(begin(&r), &kind))), any_fn);
    start(&r);
    leati_wait wait = await_kind(r.job, 1, LEATI_WAIT_INPUT);
    cr_assert(strstr(wait.text, "the end of \"quiet\""), "%s", wait.text);
    end(&r);
}

// The other part of the variable never ends, so at every moment it is what the task waits for.
Test(wait_info, a_broadcast_variable_while_it_is_read)
{
    static const quiet_kind kind = OUTSIDE;
    run r;
    leat_env *env = begin(&r);
    leat_stream *parts[] = {leat_sequence(env, 1, 100000), quiet(env, &kind)};
    leat_stream *reader = leat_sink(leat_rebalance(leat_sequence(env, 0, 1)), any_fn);
    leat_broadcast_variable(leat_name(reader, "reader"), "all", leat_union(parts, 2));
    start(&r);
    uint32_t index = 0;
    while (strcmp(r.job->tasks[index].vertex->name, "reader") != 0)
        index++;
    leati_wait wait;
    for (int i = 0; i < 20000; i++) {
        leati_job_task_wait(r.job, index, &wait);
        cr_assert(wait.kind != LEATI_WAIT_NONE);
    }
    wait = await_kind(r.job, index, LEATI_WAIT_INPUT);
    cr_assert(strstr(wait.text, "no input from"), "%s", wait.text);
    end(&r);
}

Test(wait_info, a_task_that_has_ended_waits_for_nothing)
{
    run r;
    leat_sink(leat_rebalance(leat_sequence(begin(&r), 0, 9)), any_fn);
    start(&r);
    cr_assert(leat_job_wait(r.job, -1) == LEAT_OK);
    leati_wait wait;
    leati_job_task_wait(r.job, 1, &wait);
    cr_assert(wait.kind == LEATI_WAIT_NONE && wait.vertex == UINT32_MAX && !wait.text[0]);
    end(&r);
}

static void build_far(leat_env *env, void *user)
{
    leat_env_set(env, "memory.segment-size", "4 KiB");
    leat_env_set(env, "memory.network", "1 MiB");
    leat_stream *numbers = leat_sequence(env, 0, INT64_MAX);
    leat_name(leat_parallelism(leat_sink(leat_rebalance(numbers), any_fn), 2), "far");
}

Test(wait_info, no_credit_from_another_process)
{
    static placed_run run_far;
    const uint32_t process_of[] = {0, 1, 1};
    int64_t before = leati_clock_ns();
    cr_assert(placed_start(&run_far, 2, process_of, build_far, NULL) == LEAT_OK);
    fake_net_block(run_far.net, true);
    leati_wait wait = await_kind(run_far.processes[0].job, 0, LEATI_WAIT_CREDIT);
    cr_assert(wait.vertex == 1 && wait.subtask < 2);
    cr_assert(strstr(wait.text, "credit from \"far\" ("), "%s", wait.text);
    cr_assert(wait.since_ns >= before);
    leati_wait input = await_kind(run_far.processes[1].job, 0, LEATI_WAIT_INPUT);
    cr_assert(input.vertex == 0 && input.subtask == 0, "%s", input.text);
    // It goes on once there is credit.
    uint64_t segments = fake_net_segments(run_far.net);
    fake_net_block(run_far.net, false);
    while (fake_net_segments(run_far.net) == segments)
        sched_yield();
    placed_destroy(&run_far);
    leati_wait none = {0};
    cr_assert(none.kind == LEATI_WAIT_NONE);
}
