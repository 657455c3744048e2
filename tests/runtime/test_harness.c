// SPDX-License-Identifier: Apache-2.0
// The test kit: inputs, outputs, steps, time.
#include <semaphore.h>

#include "jobs.h"

TestSuite(harness, .timeout = 60);

static leat_harness *new_harness(const leat_harness_options *options)
{
    leat_harness *h;
    cr_assert(leat_harness_create(options, &h) == LEAT_OK);
    return h;
}

static void expect_text(leat_harness *h, const char *output, const char *expected)
{
    const char *text = leat_harness_text(h, output);
    cr_assert_not_null(text, "%s", leat_harness_why(h));
    cr_assert_str_eq(text, expected, "%s: %s", output, text);
}

static void run_ok(leat_harness *h)
{
    cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
}

static void feed(leat_harness *h, const char *input, int64_t number)
{
    cr_assert(leat_harness_feed(h, input, &number) == LEAT_OK, "%s", leat_harness_why(h));
}

static int twice(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 2 * *(const int64_t *)in;
    return 0;
}

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

Test(harness, a_step_takes_one_element_through_one_task)
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

Test(harness, a_turn_takes_as_many_records_as_asked_for)
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

Test(harness, a_job_that_never_rests_is_given_up)
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
Test(harness, a_task_that_waits_in_the_middle_of_a_record_has_those_behind_it_run)
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

Test(harness, the_clock_stands_still_until_it_is_moved)
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

Test(harness, what_is_due_comes_at_its_time)
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

// A function that takes a second, by the clock.
static int slow(leat_ctx *ctx, const void *in, leat_out *out)
{
    leat_harness *h = leat_ctx_user_data(ctx);
    return leat_collect(out, in) || leat_harness_advance(h, 1000000000) || leat_collect(out, in);
}

Test(harness, a_function_that_lets_time_pass_stands_for_one_that_blocks)
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
Test(harness, what_could_only_hang_fails_with_the_reason)
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

Test(harness, sources_with_threads_work_though_not_in_a_fixed_order)
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
