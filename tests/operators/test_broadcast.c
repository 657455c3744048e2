// SPDX-License-Identifier: Apache-2.0
// Broadcast variables in jobs that run.
#include <stdatomic.h>

#include "leat/testing.h"
#include "run.h"

TestSuite(broadcast, .timeout = 120);

typedef struct {
    leat_str word;
    int64_t number;
} entry;
LEAT_RECORD(entry, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(number, LEAT_I64));

static const leat_type *i64(void)
{
    return leat_type_scalar(LEAT_I64);
}

// --- functions ---

// Adds the sum of the variable "add".
static int add_all(leat_ctx *ctx, const void *in, void *out)
{
    size_t count;
    const int64_t *add = leat_ctx_broadcast(ctx, "add", &count);
    if (!add)
        return -1;
    int64_t sum = *(const int64_t *)in;
    for (size_t i = 0; i < count; i++)
        sum += add[i];
    *(int64_t *)out = sum;
    return 0;
}

static int entry_of(leat_ctx *ctx, const void *in, void *out)
{
    int64_t number = *(const int64_t *)in;
    char *text = leat_ctx_scratch(ctx, 40);
    int size = snprintf(text, 40, "the word for number %lld", (long long)number);
    *(entry *)out = (entry){.word = {text, (size_t)size}, .number = number};
    return 0;
}

// The word for a number, from the variable "words".
static int look_up(leat_ctx *ctx, const void *in, void *out)
{
    size_t count;
    const entry *words = leat_ctx_broadcast(ctx, "words", &count);
    if (!words)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (words[i].number == *(const int64_t *)in) {
            *(leat_str *)out = words[i].word;
            return 0;
        }
    return leat_fail(ctx, "no word for %lld", (long long)*(const int64_t *)in);
}

static int open_counts(leat_ctx *ctx)
{
    size_t count;
    if (!leat_ctx_broadcast(ctx, "add", &count))
        return -1;
    return count == 3 ? 0 : leat_fail(ctx, "%zu values when it opens", count);
}

// --- what is there ---

Test(broadcast, every_subtask_has_all_values_before_it_opens)
{
    run r;
    leat_env *env = run_begin(&r, 4);
    leat_stream *values = leat_sequence(env, 1, 3);
    leat_stream *out = leat_map(leat_rebalance(leat_sequence(env, 10, 17)), add_all, i64());
    leat_rich(out, open_counts, NULL);
    leat_parallelism(leat_print(leat_broadcast_variable(out, "add", values)), 1);
    run_expect_lines(&r, "16\n17\n18\n19\n20\n21\n22\n23\n", "values");
}

Test(broadcast, what_records_point_to_is_kept)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_stream *words = leat_map(leat_sequence(env, 1, 5000), entry_of, LEAT_TYPE(entry));
    leat_stream *out = leat_map(leat_parallelism(leat_sequence(env, 4999, 5000), 1), look_up,
                                leat_type_scalar(LEAT_STR));
    leat_broadcast_variable(out, "words", words);
    leat_parallelism(leat_print(out), 1);
    run_expect_lines(&r, "the word for number 4999\nthe word for number 5000\n", "words");
}

Test(broadcast, several_variables_a_union_and_an_empty_stream)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_stream *both[] = {leat_sequence(env, 1, 2), leat_sequence(env, 3, 3)};
    leat_stream *out = leat_map(leat_sequence(env, 0, 0), add_all, i64());
    leat_broadcast_variable(out, "add", leat_union(both, 2));
    leat_broadcast_variable(out, "none", leat_sequence(env, 2, 1));
    leat_parallelism(leat_print(out), 1);
    run_expect_lines(&r, "6\n", "two variables");
    env = run_begin(&r, 2);
    out = leat_map(leat_sequence(env, 7, 7), add_all, i64());
    leat_broadcast_variable(out, "add", leat_sequence(env, 2, 1));
    leat_parallelism(leat_print(out), 1);
    run_expect_lines(&r, "7\n", "an empty one");
}

static int first_of_two(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t value;
    int result = add_all(ctx, in, &value);
    return result ? result : (int)leat_collect(out, &value);
}

Test(broadcast, operators_of_two_inputs_have_them_too)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_stream *left = leat_sequence(env, 1, 1), *right = leat_sequence(env, 100, 100);
    leat_stream *out =
        leat_co_flat_map(leat_connect(left, right), first_of_two, first_of_two, i64());
    leat_broadcast_variable(out, "add", leat_sequence(env, 10, 10));
    leat_parallelism(leat_print(out), 1);
    run_expect_lines(&r, "11\n110\n", "two inputs");
}

// --- nothing waits for itself ---

enum { MANY = 200000 };

static _Atomic int64_t total;

static int is_last(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == MANY;
}

static int add_to_total(leat_ctx *ctx, const void *in)
{
    int64_t sum;
    int result = add_all(ctx, in, &sum);
    atomic_fetch_add_explicit(&total, sum, memory_order_relaxed);
    return result;
}

static leat_env *begin_small(run *r)
{
    leat_env *env = run_begin(r, 2);
    leat_env_set(env, "memory.network", "1MiB");
    leat_env_set(env, "memory.segment-size", "4KiB");
    atomic_store(&total, 0);
    return env;
}

// Sums all of `in` and, for each, the last of `values`.
static void sum_with_last(leat_stream *in, leat_stream *values, const char *name)
{
    leat_stream *sink = leat_name(leat_sink(leat_rebalance(in), add_to_total), name);
    leat_broadcast_variable(sink, "add", leat_filter(values, is_last));
}

static const int64_t one_sum = (int64_t)MANY * (MANY + 1) / 2 + (int64_t)MANY * MANY;

Test(broadcast, an_input_and_a_variable_from_one_source_do_not_wait_for_each_other)
{
    run r;
    leat_env *env = begin_small(&r);
    leat_stream *numbers = leat_sequence(env, 1, MANY);
    sum_with_last(numbers, numbers, "sum");
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(atomic_load(&total), one_sum);
    run_end(&r);
}

// Each of two sources feeds the input of one operator and the variable of the other.
Test(broadcast, nor_do_they_when_crossed_over_two_operators)
{
    run r;
    leat_env *env = begin_small(&r);
    leat_stream *a = leat_sequence(env, 1, MANY), *b = leat_sequence(env, 1, MANY);
    sum_with_last(a, b, "first");
    sum_with_last(b, a, "second");
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(atomic_load(&total), 2 * one_sum);
    run_end(&r);
}

Test(broadcast, an_operator_with_a_variable_may_make_the_variable_of_another)
{
    run r;
    leat_env *env = begin_small(&r);
    leat_stream *numbers = leat_sequence(env, 1, MANY);
    leat_stream *raised = leat_map(leat_rebalance(numbers), add_all, i64());
    leat_broadcast_variable(raised, "add", leat_sequence(env, 0, 0));
    sum_with_last(numbers, raised, "sum");
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(atomic_load(&total), one_sum);
    run_end(&r);
}

// --- what goes wrong ---

Test(broadcast, one_that_is_too_large_fails_with_its_names)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_env_set(env, "broadcast.memory", "4KiB");
    leat_stream *out = leat_name(leat_map(leat_sequence(env, 1, 1), add_all, i64()), "adder");
    leat_print(leat_broadcast_variable(out, "add", leat_sequence(env, 1, 513)));
    cr_assert_eq(run_execute(&r), LEAT_ETOOBIG);
    cr_expect(strstr(r.failure, "adder") &&
                  strstr(r.failure, "broadcast variable \"add\": its records take more than "
                                    "broadcast.memory, which is 4096 bytes: 512 of them fit"),
              "%s", r.failure);
    run_end(&r);
    env = run_begin(&r, 1);
    leat_env_set(env, "broadcast.memory", "4KiB");
    out = leat_map(leat_sequence(env, 0, 0), add_all, i64());
    leat_print(leat_broadcast_variable(out, "add", leat_sequence(env, 1, 512)));
    run_expect_lines(&r, "131328\n", "as much as fits");
}

Test(broadcast, an_unknown_name_fails_the_job)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *out = leat_map(leat_sequence(env, 1, 1), look_up, leat_type_scalar(LEAT_STR));
    leat_print(leat_broadcast_variable(out, "add", leat_sequence(env, 1, 1)));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(strstr(r.failure, "it has no broadcast variable \"words\", but \"add\""), "%s",
              r.failure);
    run_end(&r);
    env = run_begin(&r, 1);
    leat_print(leat_map(leat_sequence(env, 1, 1), look_up, leat_type_scalar(LEAT_STR)));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(strstr(r.failure, "it has no broadcast variable \"words\" (leat_broadcast_variable"),
              "%s", r.failure);
    run_end(&r);
}

static int fail_always(leat_ctx *ctx, const void *in)
{
    return leat_fail(ctx, "no values");
}

Test(broadcast, a_failure_behind_the_variable_ends_who_waits_for_it)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_stream *out = leat_map(leat_sequence(env, 1, 10), add_all, i64());
    leat_print(
        leat_broadcast_variable(out, "add", leat_filter(leat_sequence(env, 1, 1), fail_always)));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(strstr(r.failure, "no values"), "%s", r.failure);
    run_end(&r);
}

static int once_more(leat_ctx *ctx, const void *in, leat_out *out)
{
    return 0;
}

Test(broadcast, what_never_ends_is_told_before_the_job_runs)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *loop = leat_name(leat_iterate(leat_sequence(env, 1, 1), 0), "loop");
    leat_stream *body = leat_flat_map(loop, once_more, i64());
    leat_close_with(loop, body);
    leat_stream *out = leat_map(leat_sequence(env, 1, 10), add_all, i64());
    leat_print(leat_broadcast_variable(out, "add", body));
    cr_assert_eq(run_execute(&r), LEAT_EGRAPH);
    cr_expect(strstr(r.failure, "its broadcast variable \"add\" comes from \"loop\""), "%s",
              r.failure);
    run_end(&r);
}

Test(broadcast, a_variable_in_a_loop_comes_from_outside)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *loop = leat_name(leat_iterate(leat_sequence(env, 1, 1), 100), "loop");
    leat_stream *other = leat_flat_map(loop, once_more, i64());
    leat_stream *body = leat_map(loop, add_all, i64());
    leat_broadcast_variable(body, "add", other);
    leat_close_with(loop, leat_filter(body, is_last));
    leat_print(body);
    cr_assert_eq(run_execute(&r), LEAT_EGRAPH);
    cr_expect(strstr(r.failure, "its broadcast variable \"add\" comes from the loop of \"loop\""),
              "%s", r.failure);
    run_end(&r);
    env = run_begin(&r, 1);
    loop = leat_iterate(leat_sequence(env, MANY, MANY), 200);
    body = leat_map(loop, add_all, i64());
    leat_broadcast_variable(body, "add", leat_sequence(env, 2, 2));
    leat_close_with(loop, leat_filter(body, is_last));
    leat_print(body);
    run_expect_lines(&r, "200002\n", "from outside");
}

// --- step by step ---

typedef struct bench {
    leat_harness *h;
} bench;

static void begin_steps(bench *b)
{
    cr_assert_eq(leat_harness_create(NULL, &b->h), LEAT_OK);
    leat_env *env = leat_harness_env(b->h);
    leat_env_set_parallelism(env, 2);
    leat_stream *in = leat_test_input(env, "in", i64());
    leat_stream *out = leat_map(in, add_all, i64());
    leat_broadcast_variable(out, "add", leat_test_input(env, "values", i64()));
    leat_test_output(out, "out");
}

Test(broadcast, the_input_waits_until_the_variable_has_ended)
{
    bench b;
    begin_steps(&b);
    cr_assert_eq(leat_harness_feed(b.h, "in", &(int64_t){1}), LEAT_OK);
    cr_assert_eq(leat_harness_feed(b.h, "values", &(int64_t){10}), LEAT_OK);
    cr_assert_eq(leat_harness_run(b.h), LEAT_OK, "%s", leat_harness_why(b.h));
    cr_assert_eq(leat_harness_count(b.h, "out"), 0);
    cr_assert_eq(leat_harness_feed(b.h, "values", &(int64_t){20}), LEAT_OK);
    cr_assert_eq(leat_harness_end(b.h, "values"), LEAT_OK);
    cr_assert_eq(leat_harness_run(b.h), LEAT_OK, "%s", leat_harness_why(b.h));
    cr_assert_str_eq(leat_harness_text(b.h, "out"), "31\n");
    cr_assert_eq(leat_harness_feed(b.h, "in", &(int64_t){2}), LEAT_OK);
    cr_assert_eq(leat_harness_end_all(b.h), LEAT_OK);
    cr_assert_eq(leat_harness_run(b.h), LEAT_OK, "%s", leat_harness_why(b.h));
    cr_assert(strncmp(leat_harness_text(b.h, "out"), "32\n", 3) == 0);
    leat_harness_destroy(&b.h);
}

Test(broadcast, a_job_that_is_cancelled_meanwhile_ends)
{
    bench b;
    begin_steps(&b);
    cr_assert_eq(leat_harness_feed(b.h, "values", &(int64_t){10}), LEAT_OK);
    cr_assert_eq(leat_harness_run(b.h), LEAT_OK, "%s", leat_harness_why(b.h));
    leat_job_cancel(leat_harness_job(b.h));
    cr_assert_eq(leat_job_wait(leat_harness_job(b.h), -1), LEAT_ECANCELLED);
    leat_harness_destroy(&b.h);
}

Test(broadcast, an_allocation_that_fails_fails_the_job)
{
    uint64_t tried = 0;
    bool finished = false;
    for (uint64_t nth = 1; !finished; nth++) {
        bench b;
        begin_steps(&b);
        leat_env *env = leat_harness_env(b.h);
        cr_assert_eq(leat_env_check(env), LEAT_OK);
        cr_assert_eq(leat_harness_feed(b.h, "values", &(int64_t){10}), LEAT_OK);
        cr_assert_eq(leat_harness_feed(b.h, "in", &(int64_t){1}), LEAT_OK);
        cr_assert_eq(leat_harness_end_all(b.h), LEAT_OK);
        leat_harness_fail_allocations(b.h, nth, 1);
        leat_err err = leat_harness_run(b.h);
        finished = err == LEAT_OK;
        cr_assert(finished || err == LEAT_ENOMEM, "allocation %d: %s", (int)nth,
                  leat_harness_why(b.h));
        tried = nth;
        leat_harness_destroy(&b.h);
    }
    cr_assert(tried > 20);
}
