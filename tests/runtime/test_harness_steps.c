// SPDX-License-Identifier: Apache-2.0
// The test kit: steps and time.
#include <semaphore.h>

#include "harness.h"

TestSuite(harness_steps, .timeout = 60);

// --- steps ---

static int count_turns_until_idle(leat_harness *h)
{
    int turns = 0;
    leat_err err;
    while ((err = leat_harness_step(h)) == LEAT_OK)
        turns++;
    cr_assert(err == LEAT_EAGAIN, "%s", leat_harness_why(h));
    return turns;
}

Test(harness_steps, a_step_takes_one_element_through_one_task)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_stream *doubled = leat_map(leat_rebalance(in), twice, NUMBER);
    leat_test_output(doubled, "out");
    count_turns_until_idle(h); // both have opened
    cr_assert(leat_job_task_count(leat_harness_job(h)) == 2);
    feed(h, "in", 1);
    feed(h, "in", 2);
    // The source takes one element, and has more; then the other, and tells its reader.
    leat_task_stats stats;
    static const struct {
        uint32_t task;
        uint64_t in;
        size_t out;
    } steps[] = {{0, 1, 0}, {0, 2, 0}, {1, 1, 1}, {1, 2, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        cr_assert(leat_harness_step(h) == LEAT_OK);
        cr_assert(leat_harness_last_task(h) == steps[i].task, "step %zu", i);
        leat_job_task_stats(leat_harness_job(h), steps[i].task, &stats);
        cr_assert(stats.records_in == steps[i].in, "step %zu", i);
        cr_assert(leat_harness_count(h, "out") == steps[i].out, "step %zu", i);
    }
    // One more finds that there is nothing.
    cr_assert(count_turns_until_idle(h) <= 1);
    expect_text(h, "out", "2\n4\n");
    leat_harness_destroy(&h);
}

Test(harness_steps, a_turn_takes_as_many_records_as_asked_for)
{
    leat_harness *h = new_harness(&(leat_harness_options){.turn_records = 10});
    leat_stream *numbers = leat_sequence(leat_harness_env(h), 1, 100);
    leat_test_output(numbers, "out");
    // One turn to open, ten for the records, of which the last finds the end, one to end and one
    // to close.
    cr_assert(count_turns_until_idle(h) == 13);
    cr_assert(leat_harness_count(h, "out") == 102);
    leat_harness_destroy(&h);
}

Test(harness_steps, a_job_that_never_rests_is_given_up)
{
    leat_harness *h = new_harness(&(leat_harness_options){.most_turns = 1000});
    leat_stream *numbers = leat_name(leat_sequence(leat_harness_env(h), 1, INT64_MAX), "endless");
    leat_discard(numbers);
    cr_assert(leat_harness_run(h) == LEAT_ETOOBIG);
    cr_assert(strstr(leat_harness_why(h), "within 1000 turns; the last was one of \"endless"), "%s",
              leat_harness_why(h));
    leat_job_cancel(leat_harness_job(h));
    cr_assert(leat_harness_run(h) == LEAT_ECANCELLED);
    leat_harness_destroy(&h);
}

enum { MANY = 20000 };

static int many(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0; i < MANY; i++)
        if (leat_collect(out, &i))
            return -1;
    return 0;
}

// 20,000 records of 13 bytes do not fit the few segments of 1 KiB, so the first task waits in the
// middle of its record again and again, and the others run meanwhile.
Test(harness_steps, a_task_that_waits_in_the_middle_of_a_record_has_those_behind_it_run)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        leat_harness *h = new_harness(&(leat_harness_options){.seed = seed});
        leat_env *env = leat_harness_env(h);
        leat_env_set(env, "memory.segment-size", "1 KiB");
        leat_env_set_parallelism(env, 2);
        leat_stream *in = leat_test_input(env, "in", NUMBER);
        leat_stream *first = leat_flat_map(leat_rebalance(in), many, NUMBER);
        leat_stream *second = leat_map(leat_rebalance(first), twice, NUMBER);
        leat_test_output(leat_parallelism(leat_map(leat_rebalance(second), twice, NUMBER), 3),
                         "out");
        feed(h, "in", 0);
        feed(h, "in", 0);
        run_ok(h);
        leat_harness_end(h, "in");
        run_ok(h);
        int64_t sum = 0;
        size_t records = 0;
        leat_test_element e;
        while (leat_harness_next(h, "out", &e) == LEAT_OK)
            if (e.kind == LEAT_ELEMENT_RECORD) {
                sum += *(const int64_t *)e.record;
                records++;
            }
        cr_assert(records == 2 * MANY);
        cr_assert(sum == 2 * 4 * (int64_t)MANY * (MANY - 1) / 2);
        leat_harness_destroy(&h);
    }
}

// --- time ---

static int remember_time(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = leat_ctx_now_ns(ctx);
    return 0;
}

Test(harness_steps, the_clock_stands_still_until_it_is_moved)
{
    leat_harness *h = new_harness(&(leat_harness_options){.start_ns = 500});
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_test_output(leat_map(in, remember_time, NUMBER), "out");
    feed(h, "in", 0);
    run_ok(h);
    feed(h, "in", 0);
    run_ok(h);
    cr_assert(leat_harness_advance(h, 7) == LEAT_OK);
    feed(h, "in", 0);
    cr_assert(leat_harness_now_ns(h) == 507);
    // What is ready has its turn before time passes.
    cr_assert(leat_harness_advance(h, INT64_C(3600000000000)) == LEAT_OK);
    expect_text(h, "out", "500\n500\n507\n");
    cr_assert(leat_harness_now_ns(h) == INT64_C(3600000000507));
    cr_assert(leat_harness_advance(h, -1) == LEAT_EINVAL);
    leat_harness_destroy(&h);
}

// Emits what the clock shows at the times that it has asked for.
typedef struct alarm_clock {
    leat_operator base;
    int at;
} alarm_clock;

static const int64_t times[] = {30, 31, 1000, 1000000};

static leat_err alarm_poll(leat_operator *self, leat_out *out, uint32_t max, leat_poll *state)
{
    alarm_clock *op = (alarm_clock *)self;
    int64_t now_ns = leat_ctx_now_ns(self->ctx);
    *state = LEAT_POLL_WAIT;
    if (now_ns >= times[op->at] && leat_collect(out, &now_ns) == LEAT_OK)
        op->at++;
    if (op->at == 4)
        *state = LEAT_POLL_END;
    else
        leat_ctx_wake_at(self->ctx, times[op->at]);
    return LEAT_OK;
}

static void alarm_dispose(leat_operator *self)
{
    free(self);
}

static leat_err alarm_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "alarm", .poll = alarm_poll, .dispose = alarm_dispose};
    alarm_clock *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = &ops;
    *op = &made->base;
    return LEAT_OK;
}

Test(harness_steps, what_is_due_comes_at_its_time)
{
    leat_harness *h = new_harness(NULL);
    leat_factory factory = {.create = alarm_create};
    leat_test_output(leat_source(leat_harness_env(h), "alarm", &factory, NUMBER), "out");
    cr_assert(leat_harness_advance(h, 29) == LEAT_OK);
    expect_text(h, "out", "");
    cr_assert(leat_harness_advance(h, 1) == LEAT_OK);
    expect_text(h, "out", "30\n");
    cr_assert(leat_harness_advance(h, 5000) == LEAT_OK);
    expect_text(h, "out", "31\n1000\n");
    cr_assert(leat_harness_advance(h, 1000000) == LEAT_OK);
    expect_text(h, "out", "1000000\nwatermark max\nend\n");
    leat_harness_destroy(&h);
}

static int mark(leat_ctx *ctx, const void *in)
{
    leat_meter_mark(leat_ctx_meter(ctx, "marks"), (uint64_t) * (const int64_t *)in);
    return 0;
}

Test(harness_steps, meters_go_by_the_clock)
{
    leat_harness *h = new_harness(NULL);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_name(leat_sink(in, mark), "marking");
    feed(h, "in", 30);
    run_ok(h);
    leat_metric metric;
    // 30 marks in 10 s; then none in the last minute.
    static const struct {
        int64_t advance_s;
        double rate;
    } cases[] = {{10, 3}, {20, 1}, {60, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(leat_harness_advance(h, cases[i].advance_s * 1000000000) == LEAT_OK);
        cr_assert(leat_job_find_metric(leat_harness_job(h), "marking", 0, "marks", &metric));
        cr_assert(metric.count == 30 && metric.value == cases[i].rate, "%g", metric.value);
    }
    leat_harness_destroy(&h);
}

// A function that takes a second, by the clock.
static int slow(leat_ctx *ctx, const void *in, leat_out *out)
{
    leat_harness *h = leat_ctx_user_data(ctx);
    return leat_collect(out, in) || leat_harness_advance(h, 1000000000) || leat_collect(out, in);
}

Test(harness_steps, a_function_that_lets_time_pass_stands_for_one_that_blocks)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_user_data(leat_test_output(leat_user_data(leat_flat_map(in, slow, NUMBER), h), "out"), h);
    leat_stream *other = leat_test_input(env, "other", NUMBER);
    leat_test_output(leat_map(other, remember_time, NUMBER), "times");
    feed(h, "in", 5);
    feed(h, "other", 0);
    run_ok(h);
    // The other task had its turn while the first one was inside of its function, or before.
    expect_text(h, "times", "0\n");
    expect_text(h, "out", "5\n5\n");
    cr_assert(leat_harness_now_ns(h) == 1000000000);
    leat_harness_destroy(&h);
}

static int many_or_one(leat_ctx *ctx, const void *in, leat_out *out)
{
    return *(const int64_t *)in ? many(ctx, in, out) : (int)leat_collect(out, in);
}

// The producer finds no room while its only reader is inside of a function below it on the stack.
Test(harness_steps, what_could_only_hang_fails_with_the_reason)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_stream *all = leat_name(leat_flat_map(in, many_or_one, NUMBER), "producer");
    leat_stream *slowed = leat_flat_map(leat_rebalance(all), slow, NUMBER);
    leat_test_output(leat_user_data(slowed, h), "out");
    feed(h, "in", 0);
    run_ok(h);
    feed(h, "in", 0);
    cr_assert(leat_harness_step(h) == LEAT_OK);
    feed(h, "in", 1);
    cr_assert(leat_harness_run(h) == LEAT_ENOBUFS);
    cr_assert_str_eq(leat_harness_why(h),
                     "in (1/1): in the middle of a record it waits for room in its output, "
                     "which no task that is ready can make");
    leat_harness_destroy(&h);
}

static sem_t emitted;

static int emit_three(const leat_ctx *ctx, leat_source_out *out)
{
    for (int64_t i = 1; i <= 3; i++)
        if (leat_source_emit(out, &i))
            return -1;
    sem_post(&emitted);
    return 0;
}

Test(harness_steps, sources_with_threads_work_though_not_in_a_fixed_order)
{
    sem_init(&emitted, 0, 0);
    leat_harness *h = new_harness(NULL);
    leat_blocking_source_fns fns = {.run = emit_three};
    leat_test_output(leat_blocking_source(leat_harness_env(h), "numbers", &fns, NUMBER), "out");
    run_ok(h); // the thread starts when the task opens
    while (sem_wait(&emitted))
        ;
    run_ok(h);
    cr_assert(leat_harness_count(h, "out") >= 3);
    leat_harness_destroy(&h);
}
