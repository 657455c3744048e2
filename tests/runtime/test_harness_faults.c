// SPDX-License-Identifier: Apache-2.0
// The test kit: faults of memory, segments and operators.
#include "harness.h"

TestSuite(harness_faults, .timeout = 120);

static int half(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in / 2;
    return 0;
}

static int plus(leat_ctx *ctx, void *accumulator, const void *in)
{
    *(int64_t *)accumulator += *(const int64_t *)in;
    return 0;
}

// --- the allocator ---

Test(harness_faults, an_allocator_fails_when_it_is_told_to_and_counts)
{
    leat_test_allocator *a;
    cr_assert(leat_test_allocator_create(NULL, &a) == LEAT_OK);
    const leat_allocator *hook = leat_test_allocator_hook(a);
    leat_test_allocator_fail(a, 2, 2);
    void *first = hook->allocate(hook->user, 10);
    cr_assert(first && !hook->allocate(hook->user, 10));
    cr_assert_null(hook->reallocate(hook->user, first, 20)); // `first` is as it was
    void *grown = hook->reallocate(hook->user, first, 20);
    void *second = hook->reallocate(hook->user, NULL, 5);
    cr_assert(grown && second);
    cr_assert(leat_test_allocator_tried(a) == 5 && leat_test_allocator_failed(a) == 2);
    cr_assert(leat_test_allocator_live(a) == 2);
    leat_test_allocator_fail(a, 1, 1);
    leat_test_allocator_fail(a, 0, 0); // takes it back
    void *third = hook->allocate(hook->user, 1);
    cr_assert_not_null(third);
    hook->release(hook->user, third);
    hook->release(hook->user, NULL);
    hook->release(hook->user, grown);
    hook->release(hook->user, second);
    cr_assert(leat_test_allocator_live(a) == 0);
    leat_test_allocator_destroy(&a);
    cr_assert_null(a);
}

// --- each allocation of a job ---

static leat_err sum_by_key(leat_harness *h)
{
    leat_env *env = leat_harness_env(h);
    leat_env_set_parallelism(env, 2);
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_stream *halves = leat_map(leat_rebalance(in), half, NUMBER);
    leat_test_output(leat_parallelism(leat_reduce(leat_key_by(halves, ""), plus), 1), "out");
    for (int64_t n = 0; n < 8 && leat_env_fault_count(env) == 0; n++)
        feed(h, "in", n);
    return leat_harness_run(h);
}

Test(harness_faults, whichever_allocation_fails_the_job_fails_or_is_right_and_all_is_freed)
{
    leat_test_allocator *all;
    cr_assert(leat_test_allocator_create(NULL, &all) == LEAT_OK);
    leat_harness_options options = {.allocator = leat_test_allocator_hook(all)};
    uint64_t failures = 0;
    for (uint64_t n = 1;; n++) {
        leat_harness *h = new_harness(&options);
        uint64_t before = leat_harness_allocations(h);
        leat_harness_fail_allocations(h, n, 1);
        leat_err err = sum_by_key(h);
        bool reached = leat_harness_allocations(h) - before >= n;
        cr_assert(err == LEAT_OK || (err == LEAT_ENOMEM && *leat_harness_why(h)), "%s: %s",
                  leat_err_name(err), leat_harness_why(h));
        // Twice each of 0, 1, 2, 3, in whichever order their two subtasks come.
        if (!err) {
            const char *text = leat_harness_text(h, "out");
            cr_assert(strlen(text) == 16 && strstr(text, "3\n") && strstr(text, "6\n"), "%s", text);
        }
        failures += err != LEAT_OK;
        leat_harness_destroy(&h);
        cr_assert(leat_test_allocator_live(all) == 0, "allocation %lu", (unsigned long)n);
        if (!reached)
            break;
    }
    cr_assert(failures > 50, "%lu", (unsigned long)failures);
    leat_test_allocator_destroy(&all);
}

// The harness' own memory too, of which the job knows nothing.
Test(harness_faults, without_memory_of_its_own_the_harness_says_so)
{
    leat_test_allocator *all;
    cr_assert(leat_test_allocator_create(NULL, &all) == LEAT_OK);
    leat_harness_options options = {.allocator = leat_test_allocator_hook(all)};
    for (uint64_t n = 1;; n++) {
        leat_test_allocator_fail(all, n, 1);
        leat_harness *h = NULL;
        leat_err err = leat_harness_create(&options, &h);
        if (!err) {
            leat_env *env = leat_harness_env(h);
            leat_test_output(leat_test_input(env, "in", NUMBER), "out");
            if (leat_env_fault_count(env) == 0)
                err = leat_harness_fail_operator(h, "out", 5, "never");
            for (int64_t i = 0; i < 3 && !err && leat_env_fault_count(env) == 0; i++)
                err = leat_harness_feed(h, "in", &i);
            if (!err)
                err = leat_harness_run(h);
            if (!err)
                err = leat_harness_text(h, "out") ? LEAT_OK : LEAT_ENOMEM;
            cr_assert(!err || *leat_harness_why(h));
        }
        uint64_t failed = leat_test_allocator_failed(all);
        cr_assert(err == LEAT_OK || err == LEAT_ENOMEM, "%s", leat_err_name(err));
        leat_harness_destroy(&h);
        cr_assert(leat_test_allocator_live(all) == 0);
        if (failed < n)
            break;
    }
    leat_test_allocator_destroy(&all);
}

// --- segments ---

enum { MANY = 3000 };

static int many(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0; i < MANY; i++)
        if (leat_collect(out, &i))
            return -1;
    return 0;
}

static leat_harness *fan_out(void)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_stream *all = leat_name(leat_flat_map(in, many, NUMBER), "fan");
    leat_test_output(leat_rebalance(all), "out");
    return h;
}

Test(harness_faults, whichever_segment_is_refused_once_the_result_is_the_same)
{
    for (uint64_t n = 1; n < 150; n++) {
        leat_harness *h = fan_out();
        cr_assert(leat_harness_fail_segments(h, n, 1) == LEAT_OK);
        feed(h, "in", 0);
        leat_harness_end(h, "in");
        cr_assert(leat_harness_run(h) == LEAT_OK, "%lu: %s", (unsigned long)n, leat_harness_why(h));
        cr_assert(leat_harness_count(h, "out") == MANY + 2, "%lu", (unsigned long)n);
        leat_harness_destroy(&h);
    }
}

Test(harness_faults, without_segments_a_task_fails_in_the_middle_of_a_record)
{
    leat_harness *h = fan_out();
    cr_assert(leat_harness_fail_segments(h, 20, UINT64_MAX) == LEAT_OK);
    feed(h, "in", 0);
    cr_assert(leat_harness_run(h) == LEAT_ENOBUFS);
    cr_assert(strstr(leat_harness_why(h), "in the middle of a record it waits for room"), "%s",
              leat_harness_why(h));
    leat_harness_destroy(&h);
}

// Before a record it waits, and goes on when there are segments again.
Test(harness_faults, without_segments_a_task_waits_before_the_next_record)
{
    leat_harness *h = new_harness(NULL);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_test_output(leat_rebalance(leat_map(in, half, NUMBER)), "out");
    // The first look opens a segment for the first record; the second would tell that there is
    // another.
    cr_assert(leat_harness_fail_segments(h, 2, UINT64_MAX) == LEAT_OK);
    for (int64_t n = 0; n < 4; n++)
        feed(h, "in", 2 * n);
    cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
    expect_text(h, "out", "0\n");
    cr_assert(leat_harness_advance(h, INT64_C(3600000000000)) == LEAT_OK);
    expect_text(h, "out", "");
    cr_assert(leat_harness_fail_segments(h, 0, 0) == LEAT_OK);
    cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
    expect_text(h, "out", "1\n2\n3\n");
    leat_harness_destroy(&h);
}

// --- operators ---

static const struct {
    const char *name, *out, *sink;
} faulty[] = {
    // The third record of each; the sink's are those that the reduce has let through.
    {"in", "1\n3\n", "1\n3\n"},
    {"halves", "1\n3\n", "1\n3\n"},
    {"sums", "1\n3\n", "1\n3\n"},
    {"kept", "1\n3\n6\n", "1\n3\n"},
};

static int keep(leat_ctx *ctx, const void *in)
{
    leat_harness *h = leat_ctx_user_data(ctx);
    return leat_harness_feed(h, "kept by the sink", in) ? -1 : 0;
}

static leat_harness *pipeline(leat_stream **stage)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    stage[0] = leat_test_input(env, "in", NUMBER);
    stage[1] = leat_name(leat_map(stage[0], half, NUMBER), "halves");
    leat_stream *keyed = leat_key_by(stage[1], "");
    stage[2] = leat_name(leat_map(keyed, half, NUMBER), "sums");
    leat_test_output(stage[2], "out");
    stage[3] = leat_name(leat_user_data(leat_sink(stage[2], keep), h), "kept");
    leat_test_output(leat_test_input(env, "kept by the sink", NUMBER), "sink");
    return h;
}

Test(harness_faults, a_named_operator_fails_at_its_nth_record)
{
    for (size_t i = 0; i < 4; i++) {
        leat_stream *stage[4];
        leat_harness *h = pipeline(stage);
        cr_assert(leat_harness_fail_operator(h, faulty[i].name, 3, i % 2 ? "out of luck" : NULL) ==
                  LEAT_OK);
        static const int64_t fed[] = {4, 12, 24, 40};
        for (int n = 0; n < 4; n++)
            feed(h, "in", fed[n]);
        cr_assert(leat_harness_run(h) == LEAT_EUSER);
        char expected[100];
        snprintf(expected, sizeof expected, "%s (1/1): %s", faulty[i].name,
                 i % 2 ? "out of luck" : "the test lets it fail for record 3");
        cr_assert_str_eq(leat_harness_why(h), expected);
        leat_harness_destroy(&h);
    }
}

Test(harness_faults, the_policy_of_the_operator_decides_what_becomes_of_the_record)
{
    for (size_t i = 0; i < 4; i++) {
        leat_stream *stage[4];
        leat_harness *h = pipeline(stage);
        leat_on_error(stage[i], LEAT_ON_ERROR_SKIP);
        // Two faults of one operator.
        cr_assert(leat_harness_fail_operator(h, faulty[i].name, 3, NULL) == LEAT_OK);
        cr_assert(leat_harness_fail_operator(h, faulty[i].name, 4, NULL) == LEAT_OK);
        static const int64_t fed[] = {4, 12, 24, 40, 60};
        for (int n = 0; n < 5; n++)
            feed(h, "in", fed[n]);
        cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
        expect_text(h, "sink", "1\n3\n15\n");
        expect_text(h, "out", i < 3 ? "1\n3\n15\n" : "1\n3\n6\n10\n15\n");
        leat_harness_destroy(&h);
    }
}

Test(harness_faults, rejects_show_the_record_and_the_reason)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_stream *halves = leat_name(leat_map(in, half, NUMBER), "halves");
    leat_discard(halves);
    leat_test_output(leat_rejects(halves), "rejects");
    leat_test_output(leat_rejects(in), "of the source");
    cr_assert(leat_harness_fail_operator(h, "halves", 2, "no") == LEAT_OK);
    cr_assert(leat_harness_fail_operator(h, "in", 1, "never") == LEAT_OK);
    for (int64_t n = 5; n < 9; n++)
        feed(h, "in", n);
    leat_harness_feed_watermark(h, "in", 33);
    cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
    expect_text(h, "rejects", "no\t7\nwatermark 33\n");
    expect_text(h, "of the source", "never\t5\nwatermark 33\n");
    leat_harness_destroy(&h);
}

static int pass(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

Test(harness_faults, operators_of_two_inputs_count_the_records_of_both)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *one = leat_test_input(env, "one", NUMBER);
    leat_stream *two = leat_test_input(env, "two", NUMBER);
    leat_test_output(leat_name(leat_co_map(leat_connect(one, two), pass, pass, NUMBER), "both"),
                     "out");
    cr_assert(leat_harness_fail_operator(h, "both", 3, "third") == LEAT_OK);
    feed(h, "one", 1);
    feed(h, "two", 2);
    cr_assert(leat_harness_run(h) == LEAT_OK);
    feed(h, "two", 3);
    cr_assert(leat_harness_run(h) == LEAT_EUSER);
    cr_assert_str_eq(leat_harness_why(h), "both (1/1): third");
    leat_harness_destroy(&h);
}

Test(harness_faults, faults_of_what_is_not_there_are_refused)
{
    leat_harness *h = new_harness(NULL);
    leat_discard(leat_test_input(leat_harness_env(h), "in", NUMBER));
    cr_assert(leat_harness_fail_operator(h, "out", 1, NULL) == LEAT_ENOENT);
    cr_assert(leat_harness_fail_operator(h, "in", 0, NULL) == LEAT_EINVAL);
    cr_assert(leat_harness_run(h) == LEAT_OK);
    cr_assert(leat_harness_fail_operator(h, "in", 1, NULL) == LEAT_ESTATE);
    leat_harness_destroy(&h);
}
