// SPDX-License-Identifier: Apache-2.0
// Emitting several records at once in the test kit: with timestamps, with faults, and by the
// built-in sources, in turns of any length.
#include "harness.h"

TestSuite(collect_some_kit, .timeout = 120);

static leat_harness *tiny_harness(uint64_t seed, uint32_t turn_records)
{
    leat_harness *h =
        new_harness(&(leat_harness_options){.seed = seed, .turn_records = turn_records});
    cr_assert(leat_env_set(leat_harness_env(h), "memory.segment-size", "1 KiB") == LEAT_OK);
    cr_assert(leat_env_set(leat_harness_env(h), "memory.network", "64 KiB") == LEAT_OK);
    return h;
}

static const leat_test_element *element(leat_harness *h, const char *output, size_t index)
{
    static leat_test_element e;
    cr_assert(leat_harness_element(h, output, index, &e) == LEAT_OK, "%s %zu", output, index);
    return &e;
}

// --- timestamps ---

// For the number n, the numbers 1000 n, 1000 n + 1 … below 1000 n + FAN.
enum { FAN = 50 };

static leat_err fan_element(leat_operator *self, const void *record, leat_out *out)
{
    int64_t numbers[FAN];
    for (int i = 0; i < FAN; i++)
        numbers[i] = 1000 * *(const int64_t *)record + i;
    // Not asking whether there is room: each call emits one record at least.
    for (uint32_t done = 0, count; done < FAN; done += count) {
        count = FAN - done;
        leat_err err = leat_collect_some(self->ctx, out, numbers + done, &count);
        if (err)
            return err;
        cr_assert(count > 0 && count <= FAN - done);
    }
    return LEAT_OK;
}

// The same as strings of n letters.
static leat_err letters_element(leat_operator *self, const void *record, leat_out *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static char text[4000];
    size_t size = (size_t)(*(const int64_t *)record);
    for (size_t i = 0; i < size; i++)
        text[i] = letters[i % 26];
    leat_str both[2] = {{text, size}, {text, size}};
    for (uint32_t done = 0, count; done < 2; done += count) {
        count = 2 - done;
        leat_err err = leat_collect_some(self->ctx, out, both + done, &count);
        if (err)
            return err;
    }
    return LEAT_OK;
}

static void free_operator(leat_operator *self)
{
    free(self);
}

static const leat_operator_ops fan_ops = {
    .kind = "fan", .element = fan_element, .dispose = free_operator};
static const leat_operator_ops letters_ops = {
    .kind = "letters", .element = letters_element, .dispose = free_operator};

static leat_err create_fan(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    leat_operator *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->ops = factory->config;
    *op = made;
    return LEAT_OK;
}

static leat_stream *fan(leat_stream *in, const leat_operator_ops *ops, const leat_type *type)
{
    return leat_transform(in, ops->kind, &(leat_factory){create_fan, ops}, type);
}

// The input emits number n with the timestamp 10 n if it is odd, and without one if it is even.
static void feed_numbers(leat_harness *h, int64_t count, int64_t factor)
{
    for (int64_t n = 0; n < count; n++) {
        int64_t number = factor * n;
        if (n % 2)
            cr_assert(leat_harness_feed_at(h, "in", &number, 10 * n) == LEAT_OK);
        else
            feed(h, "in", number);
    }
    cr_assert(leat_harness_end(h, "in") == LEAT_OK);
}

Test(collect_some_kit, each_record_has_the_timestamp_of_the_one_in_hand)
{
    static const uint32_t turns[] = {1, 3, 100};
    for (int exchange = 0; exchange < 3; exchange++)
        for (int t = 0; t < 3; t++) {
            leat_harness *h = tiny_harness((uint64_t)t, turns[t]);
            leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
            leat_stream *out = fan(in, &fan_ops, NUMBER);
            if (exchange)
                out = exchange == 1 ? leat_forward(out) : leat_rebalance(out);
            leat_stream *sink = leat_test_output(out, "out");
            if (exchange)
                leat_disable_chaining(leat_parallelism(sink, 1));
            feed_numbers(h, 40, 1);
            run_ok(h);
            cr_assert(leat_harness_count(h, "out") >= 40 * FAN);
            for (int64_t i = 0; i < 40 * FAN; i++) {
                const leat_test_element *e = element(h, "out", (size_t)i);
                int64_t n = i / FAN;
                cr_assert(e->kind == LEAT_ELEMENT_RECORD);
                cr_assert(*(const int64_t *)e->record == 1000 * n + i % FAN);
                cr_assert(e->has_timestamp == (n % 2 == 1));
                cr_assert(e->time == (n % 2 ? 10 * n : INT64_MIN));
            }
            cr_assert(leat_job_get_state(leat_harness_job(h)) == LEAT_JOB_FINISHED);
            leat_harness_destroy(&h);
        }
}

// Strings of 0, 97, 194 … letters: some fit, some begin another segment, some are cut.
Test(collect_some_kit, cut_records_have_their_timestamps)
{
    leat_harness *h = tiny_harness(0, 10);
    leat_stream *in = leat_test_input(leat_harness_env(h), "in", NUMBER);
    leat_stream *texts = fan(in, &letters_ops, leat_type_scalar(LEAT_STR));
    leat_disable_chaining(leat_test_output(leat_forward(texts), "out"));
    feed_numbers(h, 40, 97);
    run_ok(h);
    for (int64_t i = 0; i < 80; i++) {
        const leat_test_element *e = element(h, "out", (size_t)i);
        const leat_str *text = e->record;
        int64_t n = i / 2;
        cr_assert(e->kind == LEAT_ELEMENT_RECORD && text->size == (size_t)(97 * n));
        for (uint32_t k = 0; k < text->size; k++)
            cr_assert(text->data[k] == (char)('a' + k % 26));
        cr_assert(e->has_timestamp == (n % 2 == 1) && e->time == (n % 2 ? 10 * n : INT64_MIN));
    }
    leat_harness_destroy(&h);
}

// --- faults ---

typedef struct counting {
    leat_operator base;
    int64_t next;
} counting;

enum { COUNT = 300 };

// Ten at a time, in polls that are asked for fewer, too.
static leat_err counting_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                              leat_poll *state)
{
    counting *c = (counting *)self;
    int64_t numbers[10];
    for (int i = 0; i < 10; i++)
        numbers[i] = c->next + i;
    uint32_t left = (uint32_t)(COUNT - c->next), count = max_records < 10 ? max_records : 10;
    count = count < left ? count : left;
    leat_err err = leat_collect_some(self->ctx, out, numbers, &count);
    c->next += count;
    *state = c->next < COUNT ? LEAT_POLL_MORE : LEAT_POLL_END;
    return err;
}

static const leat_operator_ops counting_ops = {
    .kind = "counting", .poll = counting_poll, .dispose = free_operator};

static leat_err create_counting(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    counting *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = &counting_ops;
    *op = &made->base;
    return LEAT_OK;
}

static leat_stream *count_up(leat_harness *h)
{
    leat_factory factory = {create_counting, NULL};
    return leat_name(leat_source(leat_harness_env(h), "counting", &factory, NUMBER), "counting");
}

// From `first` of what has come out, the numbers from `number` up to the last.
static void expect_rest(leat_harness *h, size_t first, int64_t number)
{
    for (size_t i = first; number < COUNT; i++, number++)
        cr_assert(*(const int64_t *)element(h, "out", i)->record == number);
}

Test(collect_some_kit, a_source_runs_in_turns_of_any_length)
{
    static const uint32_t turns[] = {1, 2, 9, 10, 11, 1000};
    for (int t = 0; t < 6; t++) {
        leat_harness *h = tiny_harness(0, turns[t]);
        leat_disable_chaining(leat_test_output(leat_forward(count_up(h)), "out"));
        run_ok(h);
        expect_rest(h, 0, 0);
        leat_harness_destroy(&h);
    }
}

Test(collect_some_kit, a_fault_hits_one_record_among_several)
{
    leat_harness *h = tiny_harness(0, 100);
    leat_stream *numbers = leat_on_error(count_up(h), LEAT_ON_ERROR_SKIP);
    leat_disable_chaining(leat_test_output(leat_forward(numbers), "out"));
    cr_assert(leat_harness_fail_operator(h, "counting", 46, NULL) == LEAT_OK);
    run_ok(h);
    cr_assert(*(const int64_t *)element(h, "out", 44)->record == 44);
    expect_rest(h, 45, 46);
    leat_harness_destroy(&h);

    h = tiny_harness(0, 100);
    leat_disable_chaining(leat_test_output(leat_forward(count_up(h)), "out"));
    cr_assert(leat_harness_fail_operator(h, "counting", 46, "no luck") == LEAT_OK);
    cr_assert(leat_harness_run(h) == LEAT_EUSER);
    cr_assert_str_eq(leat_harness_why(h), "counting (1/1): no luck");
    cr_assert(leat_harness_count(h, "out") <= 45);
    leat_harness_destroy(&h);
}

// --- the built-in sources ---

enum { NUMBERS = 4001, SUBTASKS = 3 };

typedef leat_stream *(*number_source)(leat_env *env);

static leat_stream *sequence(leat_env *env)
{
    return leat_parallelism(leat_sequence(env, -2000, 2000), SUBTASKS);
}

static leat_stream *items(leat_env *env)
{
    int64_t numbers[NUMBERS];
    for (int64_t i = 0; i < NUMBERS; i++)
        numbers[i] = i - 2000;
    return leat_from_items(env, NUMBER, numbers, NUMBERS);
}

// Where -2000 … 2000 come out of `sinks` subtasks, each number once. By `chance` a source is not
// asked before its reader has room, or finds it full.
static void expect_exactly(number_source source, uint32_t sinks, uint64_t seed, uint32_t turn)
{
    static int seen[NUMBERS];
    memset(seen, 0, sizeof seen);
    leat_harness *h = tiny_harness(seed, turn);
    cr_assert(leat_env_set(leat_harness_env(h), "network.max-buffers-per-channel", "1") == LEAT_OK);
    leat_stream *numbers = source(leat_harness_env(h));
    leat_stream *sink = leat_test_output(leat_rebalance(numbers), "out");
    leat_disable_chaining(leat_parallelism(sink, sinks));
    run_ok(h);
    for (size_t i = 0; i < leat_harness_count(h, "out"); i++) {
        const leat_test_element *e = element(h, "out", i);
        if (e->kind != LEAT_ELEMENT_RECORD)
            continue;
        int64_t number = *(const int64_t *)e->record;
        cr_assert(number >= -2000 && number <= 2000 && seen[number + 2000]++ == 0, "%ld",
                  (long)number);
    }
    for (int i = 0; i < NUMBERS; i++)
        cr_assert(seen[i] == 1, "%d", i - 2000);
    uint64_t in = 0, out = 0;
    for (uint32_t i = 0; i < leat_job_task_count(leat_harness_job(h)); i++) {
        leat_task_stats stats;
        leat_job_task_stats(leat_harness_job(h), i, &stats);
        in += stats.is_source ? stats.records_in : 0;
        out += stats.is_source ? stats.records_out : 0;
    }
    cr_assert(in == NUMBERS && out == NUMBERS);
    leat_harness_destroy(&h);
}

// A segment takes at most 200 of the numbers, so turns of 1,000 end for lack of room.
Test(collect_some_kit, sequences_and_items_give_exactly_their_records_whatever_is_taken)
{
    static const uint32_t turns[] = {1, 2, 31, 32, 33, 1000};
    for (int t = 0; t < 6; t++)
        for (uint64_t seed = 0; seed < 3; seed++)
            for (uint32_t sinks = 1; sinks <= 2; sinks++) {
                expect_exactly(sequence, sinks, seed, turns[t]);
                expect_exactly(items, sinks, seed, turns[t]);
            }
}
