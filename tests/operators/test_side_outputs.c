// SPDX-License-Identifier: Apache-2.0
// Side outputs while a job runs: process functions, split and select, and open and close around
// them.
#include <stdatomic.h>

#include "run.h"

typedef struct {
    leat_str text;
} label;
LEAT_RECORD(label, LEAT_FIELD(text, LEAT_STR));

static const leat_tag odd = {.name = "odd", .type = LEAT_TYPE(label)};

// Even numbers go on, odd ones to the side as texts, and at the end their count in `local`.
static int route(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t n = *(const int64_t *)in;
    if (n % 2 == 0)
        return leat_collect(out, in);
    char text[32];
    label l = {{text, (size_t)snprintf(text, sizeof text, "odd %d", (int)n)}};
    return leat_collect_side(ctx, &odd, &l);
}

static int at_end(leat_ctx *ctx, leat_out *out)
{
    return leat_collect_side(ctx, &odd, &(label){LEAT_STR_LITERAL("end")});
}

static leat_stream *routed(leat_env *env)
{
    leat_process_fns fns = {.element = route, .end = at_end};
    return leat_process(leat_sequence(env, 1, 6), &fns, leat_type_scalar(LEAT_I64));
}

Test(side_outputs, neither_output_leaks_into_the_other)
{
    for (uint32_t p = 1; p <= 4; p++)
        for (int chained = 0; chained < 2; chained++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_env_set_chaining(env, chained);
            leat_stream *even = routed(env);
            leat_parallelism(leat_print(even), 1);
            leat_parallelism(leat_print_to_err(leat_side_output(even, &odd)), 1);
            cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
            char *first = strdup(leati_strbuf_text(&r.out[0]));
            char *second = strdup(leati_strbuf_text(&r.out[1]));
            run_sort(first);
            run_sort(second);
            cr_expect_str_eq(first, "2\n4\n6\n");
            // Each subtask has an end.
            static const char *const expected[] = {"", "end\nodd 1\nodd 3\nodd 5\n",
                                                   "end\nend\nodd 1\nodd 3\nodd 5\n",
                                                   "end\nend\nend\nodd 1\nodd 3\nodd 5\n",
                                                   "end\nend\nend\nend\nodd 1\nodd 3\nodd 5\n"};
            cr_expect_str_eq(second, expected[p]);
            free(first);
            free(second);
            run_end(&r);
        }
}

Test(side_outputs, every_reader_gets_all_and_nobody_is_needed)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *even = routed(env);
    leat_discard(even);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
    env = run_begin(&r, 1);
    even = routed(env);
    leat_stream *both[] = {leat_side_output(even, &odd), leat_side_output(even, &odd)};
    leat_print(leat_union(both, 2));
    leat_print(leat_side_output(even, &odd));
    run_expect_lines(
        &r, "odd 1\nodd 1\nodd 1\nodd 3\nodd 3\nodd 3\nodd 5\nodd 5\nodd 5\nend\nend\nend\n",
        "three readers");
}

static int wrong_type(leat_ctx *ctx, const void *in, leat_out *out)
{
    leat_tag other = {.name = "odd", .type = leat_type_scalar(LEAT_I64)};
    return leat_collect_side(ctx, &other, in);
}

Test(side_outputs, a_tag_of_another_type_fails_the_job)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_process_fns fns = {.element = wrong_type};
    leat_stream *s = leat_process(leat_sequence(env, 1, 3), &fns, leat_type_scalar(LEAT_I64));
    leat_print(leat_side_output(s, &odd));
    cr_assert_eq(run_execute(&r), LEAT_ETYPE);
    cr_expect(strstr(r.failure, "process (1/1): the tag \"odd\" has another type"), "%s",
              r.failure);
    run_end(&r);
}

// --- split and select ---

static int by_size(leat_ctx *ctx, const void *in, leat_choice *choice)
{
    int64_t n = *(const int64_t *)in;
    if (n % 2 == 0)
        leat_choose(choice, "even");
    if (n > 3)
        leat_choose(choice, "large");
    if (n == 5)
        leat_choose(choice, "even large"); // no name that anybody selects
    return 0;
}

static int above_five(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in > 5;
}

Test(side_outputs, split_records_go_to_each_name_once_per_selection)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *split = leat_split(leat_sequence(env, 1, 6), by_size);
    leat_print_as(leat_select(split, "even"), "e");
    leat_print_as(leat_select(split, " large "), "l");
    leat_print_as(leat_select(split, "even ,large"), "b");
    leat_print_as(leat_select(split, "small"), "s");
    leat_print(leat_filter(split, above_five));
    run_expect_lines(&r, "e> 2\ne> 4\ne> 6\nl> 4\nl> 5\nl> 6\nb> 2\nb> 4\nb> 5\nb> 6\n6\n",
                     "split");
}

static int too_many(leat_ctx *ctx, const void *in, leat_choice *choice)
{
    for (int i = 0; i < 65; i++)
        leat_choose(choice, "x");
    return 0;
}

static int no_name(leat_ctx *ctx, const void *in, leat_choice *choice)
{
    leat_choose(choice, "x");
    leat_choose(choice, NULL);
    return 0;
}

Test(side_outputs, wrong_splits_are_told)
{
    run r;
    leat_env *named = run_begin(&r, 1);
    leat_print(leat_select(leat_split(leat_sequence(named, 1, 6), no_name), "x"));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(strstr(r.failure, "split (1/1): the split function chose a name that is NULL"));
    run_end(&r);
    leat_env *env = run_begin(&r, 1);
    leat_print(leat_select(leat_split(leat_sequence(env, 1, 6), too_many), "x"));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(strstr(r.failure, "split (1/1): the split function chose 65 names, above 64"));
    run_end(&r);
    env = run_begin(&r, 1);
    leat_stream *numbers = leat_sequence(env, 1, 6);
    leat_print(leat_select(numbers, "x"));
    leat_print(leat_select(leat_split(numbers, by_size), "a,,b"));
    leat_print(leat_split(numbers, NULL));
    cr_assert_eq(run_execute(&r), LEAT_EINVAL);
    cr_expect(strstr(r.failure,
                     "leat_select on the output of \"source: sequence\" (operator 1): the "
                     "stream is not that of a split"));
    cr_expect(strstr(r.failure, "a name is empty or has blanks"));
    cr_expect(strstr(r.failure, "leat_split on the output"));
    run_end(&r);
}

// --- open and close ---

typedef struct life {
    atomic_int opened, closed, records;
} life;

static int life_open(leat_ctx *ctx)
{
    life *l = leat_ctx_user_data(ctx);
    int *count = calloc(1, sizeof *count);
    leat_ctx_set_local(ctx, count);
    l->opened++;
    return count ? 0 : -1;
}

static int life_close(leat_ctx *ctx)
{
    life *l = leat_ctx_user_data(ctx);
    l->closed++;
    l->records += *(int *)leat_ctx_local(ctx);
    free(leat_ctx_local(ctx));
    return 0;
}

static int life_element(leat_ctx *ctx, const void *in)
{
    ++*(int *)leat_ctx_local(ctx);
    return *(const int64_t *)in == 77 ? leat_fail(ctx, "seventy-seven") : 0;
}

Test(side_outputs, open_and_close_come_in_pairs_whatever_happens)
{
    for (int fails = 0; fails < 2; fails++) {
        run r;
        life l = {0};
        leat_env *env = run_begin(&r, 3);
        leat_stream *sink = leat_sink(leat_sequence(env, 1, fails ? 100 : 50), life_element);
        leat_rich(leat_user_data(sink, &l), life_open, life_close);
        leat_err err = run_execute(&r);
        cr_expect_eq(err, fails ? LEAT_EUSER : LEAT_OK, "%s", r.failure);
        cr_expect_eq(l.opened, l.closed);
        cr_expect(l.opened <= 3 && l.opened >= 1);
        if (!fails)
            cr_expect_eq(l.records, 50);
        run_end(&r);
    }
}

static int fail_open(leat_ctx *ctx)
{
    return leat_fail(ctx, "no key to the door");
}

static int fail_close(leat_ctx *ctx)
{
    return 3;
}

static int never_close(leat_ctx *ctx)
{
    abort();
}

// Whatever the policy for records is.
Test(side_outputs, failing_open_and_close_fail_the_job)
{
    for (int policy = 0; policy < 2; policy++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *s = leat_rich(leat_sequence(env, 1, 5), fail_open, never_close);
        leat_on_error(s, policy ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_FAIL);
        leat_discard(s);
        cr_expect_eq(run_execute(&r), LEAT_EUSER);
        cr_expect(strstr(r.failure, "source: sequence (1/1): no key to the door"), "%s", r.failure);
        run_end(&r);
        env = run_begin(&r, 1);
        s = leat_rich(leat_discard(leat_sequence(env, 1, 5)), NULL, fail_close);
        leat_on_error(s, policy ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_FAIL);
        cr_expect_eq(run_execute(&r), LEAT_EUSER);
        cr_expect(strstr(r.failure, "discard (1/1): close returned 3"), "%s", r.failure);
        run_end(&r);
    }
}

Test(side_outputs, non_parallel_operators_refuse_more)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_parallelism(leat_discard(leat_non_parallel(leat_sequence(env, 1, 5))), 1);
    cr_expect_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
    env = run_begin(&r, 2);
    leat_discard(leat_parallelism(leat_non_parallel(leat_sequence(env, 1, 5)), 2));
    cr_expect_eq(run_execute(&r), LEAT_EGRAPH);
    cr_expect(strstr(r.failure, "its parallelism is 2, but it can only run with parallelism 1"));
    run_end(&r);
}
