// SPDX-License-Identifier: Apache-2.0
// The test kit: inputs, outputs, whole jobs, mistakes.
#include "harness.h"

TestSuite(harness, .timeout = 60);

static int plus(leat_ctx *ctx, void *accumulator, const void *in)
{
    *(int64_t *)accumulator += *(const int64_t *)in;
    return 0;
}

// --- elements ---

Test(harness, an_operator_shows_each_kind_of_element)
{
    leat_harness *h = new_harness(NULL);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_test_output(leat_map(in, twice, NUMBER), "out");
    feed(h, "in", 4);
    cr_assert(leat_harness_feed_at(h, "in", &(int64_t){5}, 70) == LEAT_OK);
    cr_assert(leat_harness_feed_watermark(h, "in", 60) == LEAT_OK);
    cr_assert(leat_harness_count(h, "out") == 0);
    run_ok(h);
    leat_test_element e;
    cr_assert(leat_harness_next(h, "out", &e) == LEAT_OK);
    cr_assert(e.kind == LEAT_ELEMENT_RECORD && *(const int64_t *)e.record == 8);
    cr_assert(!e.has_timestamp && e.time == INT64_MIN && e.subtask == 0);
    cr_assert(leat_harness_next(h, "out", &e) == LEAT_OK);
    cr_assert(*(const int64_t *)e.record == 10 && e.has_timestamp && e.time == 70);
    cr_assert(leat_harness_next(h, "out", &e) == LEAT_OK);
    cr_assert(e.kind == LEAT_ELEMENT_WATERMARK && e.time == 60 && !e.record);
    cr_assert(leat_harness_next(h, "out", &e) == LEAT_EAGAIN);
    cr_assert(leat_harness_end(h, "in") == LEAT_OK);
    run_ok(h);
    expect_text(h, "out", "watermark max\nend\n");
    expect_text(h, "out", "");
    cr_assert(leat_harness_count(h, "out") == 5);
    cr_assert(leat_harness_element(h, "out", 1, &e) == LEAT_OK && e.time == 70);
    cr_assert(leat_harness_element(h, "out", 5, &e) == LEAT_ENOENT);
    leat_harness_clear(h, "out");
    cr_assert(leat_harness_count(h, "out") == 0);
    cr_assert(leat_job_get_state(leat_harness_job(h)) == LEAT_JOB_FINISHED);
    leat_harness_destroy(&h);
    cr_assert_null(h);
}

typedef struct {
    leat_str word;
    int64_t count;
} word_count;
LEAT_RECORD(word_count, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(count, LEAT_I64));

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((word_count *)accumulator)->count += ((const word_count *)in)->count;
    return 0;
}

static void feed_words(leat_harness *h, const char *text)
{
    char copy[300];
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy, *word;
    while ((word = strsep(&rest, " ")))
        cr_assert(leat_harness_feed(h, "words", &(word_count){{word, strlen(word)}, 1}) == LEAT_OK);
    // What was fed has been copied.
    memset(copy, 'x', sizeof copy);
}

// Counts words over an exchange to two subtasks and returns all that came out.
static leat_harness *count_words(uint64_t seed)
{
    leat_harness *h = new_harness(&(leat_harness_options){.seed = seed});
    leat_env *env = leat_harness_env(h);
    leat_env_set_parallelism(env, 2);
    leat_stream *words = leat_test_input(env, "words", LEAT_TYPE(word_count));
    leat_test_output(leat_reduce(leat_key_by(words, "word"), add), "counts");
    feed_words(h, "to be or not to be");
    run_ok(h);
    cr_assert(leat_harness_end_all(h) == LEAT_OK);
    run_ok(h);
    return h;
}

// What came out of each subtask, one behind the other.
static void text_by_subtask(leat_harness *h, char *text, size_t size)
{
    size_t at = 0;
    for (uint32_t subtask = 0; subtask < 2; subtask++)
        for (size_t i = 0; i < leat_harness_count(h, "counts"); i++) {
            leat_test_element e;
            cr_assert(leat_harness_element(h, "counts", i, &e) == LEAT_OK);
            if (e.subtask != subtask)
                continue;
            if (e.kind == LEAT_ELEMENT_RECORD)
                at += leat_record_text(LEAT_TYPE(word_count), e.record, text + at, size - at);
            at += (size_t)snprintf(text + at, size - at, e.kind == LEAT_ELEMENT_END ? "end" : ", ");
        }
}

Test(harness, a_seed_changes_the_order_of_turns_and_nothing_else)
{
    char first[500] = "", orders[20][500];
    int different = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        leat_harness *h = count_words(seed), *again = count_words(seed);
        char text[500];
        text_by_subtask(h, text, sizeof text);
        if (seed == 0)
            snprintf(first, sizeof first, "%s", text);
        cr_assert_str_eq(text, first);
        snprintf(orders[seed], sizeof orders[0], "%s", leat_harness_text(h, "counts"));
        cr_assert_str_eq(leat_harness_text(again, "counts"), orders[seed]);
        different += strcmp(orders[seed], orders[0]) != 0;
        leat_harness_destroy(&h);
        leat_harness_destroy(&again);
    }
    static const char *const all[] = {"be\t1, ", "be\t2, ", "not\t1, ",
                                      "or\t1, ", "to\t1, ", "to\t2, "};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cr_assert(strstr(first, all[i]), "%s", first);
    cr_assert(different > 0);
}

static int first_in(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t n = 100 + *(const int64_t *)in;
    return leat_collect(out, &n);
}

static int second_in(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t n = 200 + *(const int64_t *)in;
    return leat_collect(out, &n);
}

static int first_ended(leat_ctx *ctx, leat_out *out)
{
    return leat_collect(out, &(int64_t){-1});
}

static int second_ended(leat_ctx *ctx, leat_out *out)
{
    return leat_collect(out, &(int64_t){-2});
}

Test(harness, two_inputs_are_fed_in_any_order)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *one = leat_test_input(env, "one", NUMBER);
    leat_stream *two = leat_test_input(env, "two", NUMBER);
    leat_co_process_fns fns = {first_in, second_in, first_ended, second_ended, NULL};
    leat_test_output(leat_co_process(leat_connect(one, two), &fns, NUMBER), "out");
    feed(h, "two", 1);
    run_ok(h);
    feed(h, "one", 2);
    run_ok(h);
    feed(h, "two", 3);
    run_ok(h);
    expect_text(h, "out", "201\n102\n203\n");
    // The operator's time is the smaller one of its inputs'.
    leat_harness_feed_watermark(h, "one", 50);
    run_ok(h);
    expect_text(h, "out", "");
    leat_harness_feed_watermark(h, "two", 40);
    run_ok(h);
    expect_text(h, "out", "watermark 40\n");
    leat_harness_end(h, "two");
    run_ok(h);
    expect_text(h, "out", "watermark 50\n-2\n");
    feed(h, "one", 4);
    leat_harness_end(h, "one");
    run_ok(h);
    expect_text(h, "out", "104\nwatermark max\n-1\nend\n");
    leat_harness_destroy(&h);
}

static const leat_tag odd = {"odd", &leat_scalar_types[LEAT_I64]};

static int route(leat_ctx *ctx, const void *in, leat_out *out)
{
    return *(const int64_t *)in % 2 ? leat_collect_side(ctx, &odd, in) : leat_collect(out, in);
}

Test(harness, side_outputs_and_unions_are_read_like_any_stream)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *ins[] = {leat_test_input(env, "a", NUMBER), leat_test_input(env, "b", NUMBER),
                          leat_test_input(env, "c", NUMBER)};
    leat_process_fns fns = {.element = route};
    leat_stream *even = leat_process(leat_union(ins, 3), &fns, NUMBER);
    leat_test_output(even, "even");
    leat_test_output(leat_side_output(even, &odd), "odd");
    for (int64_t n = 1; n <= 6; n++) {
        feed(h, n % 3 == 0 ? "a" : n % 3 == 1 ? "b" : "c", n);
        run_ok(h);
    }
    expect_text(h, "even", "2\n4\n6\n");
    expect_text(h, "odd", "1\n3\n5\n");
    leat_harness_destroy(&h);
}

// --- whole jobs ---

static void whole_job(leat_env *env)
{
    leat_env_set_parallelism(env, 2);
    leat_stream *numbers = leat_name(leat_sequence(env, 1, 10), "numbers");
    leat_stream *sums = leat_reduce(leat_key_by(leat_map(numbers, twice, NUMBER), ""), plus);
    leat_name(leat_parallelism(leat_print(sums), 1), "result");
}

Test(harness, a_finished_job_gets_inputs_and_outputs_for_its_sources_and_sinks)
{
    leat_harness *h = new_harness(NULL);
    whole_job(leat_harness_env(h));
    cr_assert(leat_harness_replace(h, "numbers") == LEAT_OK, "%s", leat_harness_why(h));
    cr_assert(leat_harness_replace(h, "result") == LEAT_OK, "%s", leat_harness_why(h));
    feed(h, "numbers", 7);
    feed(h, "numbers", 7);
    run_ok(h);
    expect_text(h, "result", "14\n28\n");
    leat_harness_destroy(&h);
}

Test(harness, what_is_printed_is_kept)
{
    leat_harness *h = new_harness(NULL);
    leat_print(leat_test_input(leat_harness_env(h), "in", NUMBER));
    cr_assert_str_eq(leat_harness_printed(h, 1), "");
    feed(h, "in", 42);
    run_ok(h);
    cr_assert_str_eq(leat_harness_printed(h, 1), "42\n");
    cr_assert_str_eq(leat_harness_printed(h, 2), "");
    leat_harness_destroy(&h);
}

// --- mistakes ---

static void expect_why(leat_harness *h, leat_err got, leat_err expected, const char *why)
{
    cr_assert(got == expected, "%s: %s", leat_err_name(got), leat_harness_why(h));
    cr_assert_str_eq(leat_harness_why(h), why);
}

Test(harness, mistakes_are_told_in_words)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *a = leat_test_input(env, "a", NUMBER), *b = leat_test_input(env, "b", NUMBER);
    leat_stream *maps[] = {leat_map(a, twice, NUMBER), leat_map(b, twice, NUMBER)};
    leat_test_output(leat_union(maps, 2), "sum");
    leat_test_element e;
    int64_t n = 0;
    expect_why(h, leat_harness_feed(h, "c", &n), LEAT_ENOENT,
               "there is no input \"c\"; there is \"a\", \"b\"");
    expect_why(h, leat_harness_next(h, "a", &e), LEAT_ENOENT,
               "there is no output \"a\"; there is \"sum\"");
    cr_assert_null(leat_harness_text(h, "a"));
    expect_why(h, leat_harness_replace(h, "x"), LEAT_ENOENT, "no operator is called \"x\"");
    expect_why(h, leat_harness_replace(h, "map"), LEAT_EEXIST,
               "two operators are called \"map\": give them names");
    leat_name(maps[0], "doubling");
    expect_why(h, leat_harness_replace(h, "doubling"), LEAT_EINVAL,
               "\"doubling\" is neither a source nor a sink");
    cr_assert(leat_harness_end(h, "a") == LEAT_OK);
    expect_why(h, leat_harness_feed(h, "a", &n), LEAT_ESTATE, "the input \"a\" has ended");
    run_ok(h);
    expect_why(h, leat_harness_replace(h, "b"), LEAT_ESTATE, "the job has been started");
    leat_harness_destroy(&h);
}

Test(harness, wrong_graphs_do_not_start)
{
    leat_harness *h = new_harness(NULL);
    leat_env *env = leat_harness_env(h);
    leat_stream *in = leat_test_input(env, "in", NUMBER);
    leat_test_input(env, "in", NUMBER);
    leat_test_input(env, "", NUMBER);
    leat_test_output(in, "out");
    leat_test_output(leat_map(in, NULL, NUMBER), "inert");
    leat_test_output(in, "out");
    cr_assert(leat_harness_run(h) == LEAT_EEXIST);
    static const char *const said[] = {"leat_test_input: there are two of the name \"in\"",
                                       "leat_test_input: the name is empty", "leat_map",
                                       "leat_test_output: there are two of the name \"out\""};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        cr_assert(strstr(leat_harness_why(h), said[i]), "%s", leat_harness_why(h));
    leat_harness_destroy(&h);
    env = new_env("1");
    leat_test_output(leat_test_input(env, "in", NUMBER), "out");
    cr_assert(leat_env_fault_count(env) == 1);
    cr_assert_str_eq(fault_of(env),
                     "leat_test_input: the environment is not one of a test harness");
    leat_env_destroy(&env);
}

static int refuse_three(leat_ctx *ctx, const void *in, void *out)
{
    int64_t n = *(const int64_t *)in;
    *(int64_t *)out = n;
    return n == 3 ? leat_fail(ctx, "not %d", 3) : 0;
}

Test(harness, the_failure_of_the_job_is_the_result)
{
    leat_harness *h = new_harness(NULL);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_test_output(leat_name(leat_map(in, refuse_three, NUMBER), "picky"), "out");
    for (int64_t n = 1; n < 6; n++)
        feed(h, "in", n);
    for (int again = 0; again < 2; again++)
        expect_why(h, leat_harness_run(h), LEAT_EUSER, "picky (1/1): not 3");
    expect_text(h, "out", "1\n2\n");
    leat_harness_destroy(&h);
}

// --- what is asked for in vain ---

Test(harness, what_is_missing_or_comes_too_late_is_told)
{
    leat_harness *h = new_harness(NULL);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_stream *out = leat_map(in, twice, NUMBER);
    leat_test_output(out, "out");
    cr_expect(leat_harness_count(h, NULL) == 0);
    cr_expect_null(leat_harness_text(h, NULL));
    leat_harness_clear(h, NULL);
    cr_expect(leat_harness_feed(h, "in", NULL) == LEAT_EINVAL);
    cr_expect(strstr(leat_harness_why(h), "the record for \"in\" is NULL"));
    feed(h, "in", 1);
    run_ok(h);
    expect_text(h, "out", "2\n");
    leat_test_output(out, "late");
    cr_expect(leat_harness_count(h, "late") == 0);
    bool told = false;
    for (size_t i = 0; i < leat_env_fault_count(leat_harness_env(h)); i++)
        told |= strstr(leat_env_fault(leat_harness_env(h), i), "\"late\" comes too late") != NULL;
    cr_expect(told);
    leat_harness_destroy(&h);
}

// Of a finished job nothing is due, however far the clock is moved.
Test(harness, the_clock_of_a_finished_job_moves_at_once)
{
    leat_harness *h = new_harness(NULL);
    leat_test_output(leat_sequence(leat_harness_env(h), 1, 3), "out");
    run_ok(h);
    cr_assert(leat_job_get_state(leat_harness_job(h)) == LEAT_JOB_FINISHED);
    cr_expect(leat_harness_advance(h, INT64_MAX) == LEAT_OK);
    cr_expect(leat_harness_now_ns(h) == INT64_MAX);
    leat_harness_destroy(&h);
}
