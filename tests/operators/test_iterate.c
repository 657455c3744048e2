// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>

#include <unistd.h>

#include "run.h"

static const int64_t MS = 1000000;

static const leat_tag again = {.name = "again", .type = &leat_scalar_types[LEAT_I64]};

static const leat_type *number(void)
{
    return leat_type_scalar(LEAT_I64);
}

// Subtracts one until zero is left.
static int subtract(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t n = *(const int64_t *)in - 1;
    return n > 0 ? leat_collect_side(ctx, &again, &n) : leat_collect(out, &n);
}

static leat_stream *countdown(leat_env *env, leat_stream *in, bool spread)
{
    leat_stream *loop = leat_iterate(in, 1000);
    leat_process_fns fns = {.element = subtract};
    leat_stream *less = leat_process(spread ? leat_rebalance(loop) : loop, &fns, number());
    leat_stream *back = leat_side_output(less, &again);
    leat_close_with(loop, spread ? leat_shuffle(back) : back);
    return less;
}

Test(iterate, records_go_round_until_they_leave)
{
    for (uint32_t p = 1; p <= 4; p += p)
        for (int how = 0; how < 4; how++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_env_set_chaining(env, how & 1);
            leat_parallelism(leat_print(countdown(env, leat_sequence(env, 1, 40), how & 2)), 1);
            char expected[2 * 40 + 1] = "";
            for (int i = 0; i < 40; i++)
                memcpy(expected + (size_t)2 * i, "0\n", 3);
            run_expect_lines(&r, expected, "countdown");
        }
}

static int count_rounds(leat_ctx *ctx, const void *in, leat_out *out)
{
    atomic_fetch_add((atomic_long *)leat_ctx_user_data(ctx), 1);
    return subtract(ctx, in, out);
}

// 3,000 records of up to 300 rounds each, with small segments: many times what the lanes hold.
Test(iterate, long_loops_with_much_input_neither_lose_nor_hang)
{
    run r;
    atomic_long rounds = 0;
    leat_env *env = run_begin(&r, 2);
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_env_set(env, "iteration.feedback-memory", "256 KiB");
    leat_stream *in = leat_sequence(env, 1, 3000);
    leat_stream *loop = leat_iterate(in, 1500);
    leat_process_fns fns = {.element = count_rounds};
    leat_stream *less = leat_process(leat_rebalance(loop), &fns, number());
    leat_user_data(less, &rounds);
    leat_close_with(loop, leat_side_output(less, &again));
    leat_discard(less);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    // 1 + 2 + … + 3000.
    cr_expect_eq(rounds, 3000L * 3001 / 2);
    run_end(&r);
}

static int amplify(leat_ctx *ctx, const void *in, leat_out *out)
{
    return leat_collect(out, in) || leat_collect(out, in);
}

Test(iterate, a_loop_that_amplifies_ends_in_an_error_that_names_it)
{
    for (uint32_t p = 1; p <= 2; p++)
        for (int chained = 0; chained < 2; chained++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_env_set_chaining(env, chained);
            leat_env_set(env, "iteration.feedback-memory", "1 MiB");
            leat_stream *loop = leat_name(leat_iterate(leat_sequence(env, 1, 9), 0), "grower");
            leat_stream *twice = leat_flat_map(loop, amplify, number());
            leat_close_with(loop, twice);
            cr_expect_eq(run_execute(&r), LEAT_ENOBUFS);
            cr_expect(strstr(r.failure,
                             "1048576 bytes wait to come back to \"grower\": the loop makes "
                             "more records than leave it"),
                      "%s", r.failure);
            run_end(&r);
        }
}

static int copy(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

// Takes 150 ms, in which the rest of the job goes on.
static int slowly(leat_ctx *ctx, const void *in, leat_out *out)
{
    leat_harness *h = leat_ctx_user_data(ctx);
    return leat_harness_advance(h, 150 * MS) || leat_collect(out, in);
}

Test(iterate, what_comes_back_too_late_is_not_lost_silently)
{
    leat_harness *h;
    cr_assert_eq(leat_harness_create(NULL, &h), LEAT_OK);
    leat_stream *loop = leat_iterate(leat_sequence(leat_harness_env(h), 1, 1), 10);
    leat_stream *late = leat_flat_map(leat_rebalance(loop), slowly, number());
    leat_close_with(loop, leat_user_data(late, h));
    cr_expect_eq(leat_harness_run(h), LEAT_ESTATE);
    cr_expect_str_eq(
        leat_harness_why(h),
        "close_with (1/1): a record comes back to \"iterate\" after the loop has ended: "
        "its longest wait, 10 ms, is too short");
    leat_harness_destroy(&h);
}

Test(iterate, the_loop_ends_when_nothing_has_come_back_for_its_time)
{
    leat_harness *h;
    cr_assert_eq(leat_harness_create(NULL, &h), LEAT_OK);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", number());
    leat_test_output(countdown(leat_harness_env(h), in, true), "out");
    cr_assert_eq(leat_harness_feed(h, "in", &(int64_t){3}), LEAT_OK);
    // While the outside goes on it does not end.
    cr_assert_eq(leat_harness_advance(h, 5000 * MS), LEAT_OK);
    cr_assert_eq(leat_harness_feed(h, "in", &(int64_t){2}), LEAT_OK);
    cr_assert_eq(leat_harness_end(h, "in"), LEAT_OK);
    cr_assert_eq(leat_harness_advance(h, 1000 * MS - 1), LEAT_OK);
    cr_assert_str_eq(leat_harness_text(h, "out"), "0\n0\n");
    cr_assert_eq(leat_harness_advance(h, 1), LEAT_OK);
    cr_assert_str_eq(leat_harness_text(h, "out"), "watermark max\nend\n");
    cr_assert_eq(leat_job_get_state(leat_harness_job(h)), LEAT_JOB_FINISHED);
    leat_harness_destroy(&h);
}

// One record goes round in the first subtask for longer than the wait, each time in a tenth of it,
// and then comes to the second.
static int hop(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t n = *(const int64_t *)in - 1;
    leat_blocking_begin(ctx);
    usleep(100000);
    leat_blocking_end(ctx);
    return n > 0 ? leat_collect_side(ctx, &again, &n) : leat_collect(out, &n);
}

static int64_t last_to_the_second(leat_ctx *ctx, const void *in, uint32_t channels)
{
    return *(const int64_t *)in == 1;
}

Test(iterate, a_loop_ends_in_all_its_subtasks_at_once)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_env_set_buffer_timeout(env, 0);
    leat_stream *loop = leat_iterate(leat_sequence(env, 16, 16), 1000);
    leat_process_fns fns = {.element = hop};
    leat_stream *less = leat_process(loop, &fns, number());
    leat_stream *back = leat_side_output(less, &again);
    leat_close_with(loop, leat_partition_custom(back, last_to_the_second));
    leat_parallelism(leat_print(less), 1);
    run_expect_lines(&r, "0\n", "one record, two subtasks");
}

Test(iterate, what_could_never_come_round_is_a_fault)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *loop = leat_name(leat_iterate(leat_sequence(env, 1, 1), 10), "round");
    leat_stream *first = leat_flat_map(leat_blocking_exchange(loop), amplify, number());
    leat_stream *second = leat_buffer_timeout(leat_flat_map(first, amplify, number()), -1);
    leat_close_with(loop, leat_rebalance(second));
    // Outside the loop both are allowed.
    leat_discard(leat_blocking_exchange(leat_buffer_timeout(leat_map(first, copy, number()), -1)));
    cr_expect_eq(run_execute(&r), LEAT_EGRAPH);
    cr_expect_str_eq(
        r.failure,
        "\"flat_map\" (flat_map, operator 4): a blocking exchange leads to it inside the loop of "
        "\"round\" "
        "(operator 3), which could never go on\n"
        "\"flat_map\" (flat_map, operator 5): its buffer timeout is -1, but it is inside the loop "
        "of "
        "\"round\" "
        "(operator 3), whose records would wait for ever in segments that are not full: "
        "leat_buffer_timeout can give it another\n");
    run_end(&r);
}

// --- feedback of another type ---

typedef struct {
    leat_str word;
    int64_t left;
} task;
LEAT_RECORD(task, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(left, LEAT_I64));

static const leat_tag todo = {.name = "todo", .type = LEAT_TYPE(task)};

static int start_task(leat_ctx *ctx, const void *in, leat_out *out)
{
    return leat_collect_side(ctx, &todo, &(task){LEAT_STR_LITERAL("x"), *(const int64_t *)in});
}

static int go_on(leat_ctx *ctx, const void *in, leat_out *out)
{
    task t = *(const task *)in;
    char word[64];
    memcpy(word, t.word.data, t.word.size);
    word[t.word.size] = 'y';
    t = (task){{word, t.word.size + 1}, t.left - 1};
    return t.left > 0 ? leat_collect_side(ctx, &todo, &t) : leat_collect(out, &t.word);
}

Test(iterate, feedback_of_another_type_enters_a_second_input)
{
    for (uint32_t p = 1; p <= 2; p++) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_stream *loop = leat_iterate_with(leat_sequence(env, 1, 4), LEAT_TYPE(task), 1000);
        leat_connected *both = leat_connect(loop, leat_feedback(loop));
        leat_stream *done = leat_co_flat_map(both, start_task, go_on, leat_type_scalar(LEAT_STR));
        leat_close_with(loop, leat_side_output(done, &todo));
        leat_parallelism(leat_print(done), 1);
        run_expect_lines(&r, "xy\nxyy\nxyyy\nxyyyy\n", "typed feedback");
    }
}

// --- ends ---

static int stop_job(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t n = *(const int64_t *)in;
    if (n == 100000)
        return leat_fail(ctx, "far enough");
    n++;
    return leat_collect(out, &n);
}

Test(iterate, a_loop_without_end_can_be_stopped)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *loop = leat_iterate(leat_sequence(env, 1, 1), 0);
    leat_close_with(loop, leat_flat_map(leat_rebalance(loop), stop_job, number()));
    cr_expect_eq(run_execute(&r), LEAT_EUSER);
    run_end(&r);
    // Cancelled from outside while nothing moves.
    env = run_begin(&r, 2);
    leat_discard(countdown(env, leat_iterate(leat_sequence(env, 1, 5), 0), false));
    leat_close_with(leat_iterate(leat_sequence(env, 1, 1), 0), leat_sequence(env, 1, 0));
    run_end(&r);
}

Test(iterate, cancelling_ends_a_loop_that_waits_for_ever)
{
    leat_harness *h;
    cr_assert_eq(leat_harness_create(NULL, &h), LEAT_OK);
    leat_env *env = leat_harness_env(h);
    leat_env_set_parallelism(env, 2);
    leat_stream *loop = leat_iterate(leat_sequence(env, 1, 5), 0);
    leat_process_fns fns = {.element = subtract};
    leat_stream *less = leat_process(loop, &fns, number());
    leat_close_with(loop, leat_side_output(less, &again));
    leat_discard(less);
    cr_expect_eq(leat_harness_advance(h, 3600000 * MS), LEAT_OK);
    cr_expect_eq(leat_job_get_state(leat_harness_job(h)), LEAT_JOB_RUNNING);
    leat_job_cancel(leat_harness_job(h));
    cr_expect_eq(leat_harness_run(h), LEAT_ECANCELLED);
    leat_harness_destroy(&h);
}

Test(iterate, wrong_uses_are_faults)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *n = leat_sequence(env, 1, 3);
    leat_stream *open = leat_name(leat_iterate(n, 10), "open");
    leat_discard(open);
    leat_close_with(n, n);
    leat_stream *typed = leat_name(leat_iterate_with(n, LEAT_TYPE(task), 10), "typed");
    leat_close_with(typed, n);
    leat_stream *twice = leat_iterate(n, 10);
    leat_close_with(twice, twice);
    leat_close_with(twice, twice);
    leat_feedback(twice);
    leat_discard(leat_iterate(n, -1));
    cr_expect(run_execute(&r) != LEAT_OK);
    cr_expect(strstr(r.failure, "the stream is not that of an iteration"), "%s", r.failure);
    cr_expect(
        strstr(r.failure, "what comes back is i64, but the loop takes {word: str, left: i64}"),
        "%s", r.failure);
    cr_expect(strstr(r.failure, "the loop is closed already"), "%s", r.failure);
    run_end(&r);
    env = run_begin(&r, 1);
    open = leat_name(leat_iterate(leat_sequence(env, 1, 3), 10), "open");
    leat_discard(open);
    cr_expect_eq(run_execute(&r), LEAT_EGRAPH);
    cr_expect(strstr(r.failure, "\"open\" (iterate, operator 3): its loop is not closed"), "%s",
              r.failure);
    run_end(&r);
}
