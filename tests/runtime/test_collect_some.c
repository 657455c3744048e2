// SPDX-License-Identifier: Apache-2.0
// Sources that emit several records at once, over each way that their records may take, through
// pools of the smallest size: all that a call says is out has come, and nothing else has.
#include <sched.h>

#include "jobs.h"

TestSuite(collect_some, .timeout = 120);

enum { PIECE_MOST = 200, SUBTASKS = 4, MOST = 20000, SUBTASK_SHIFT = 32 };

// --- the source ---

typedef struct maker {
    int64_t count; // records of each subtask
    uint32_t piece;
    bool text;            // record i is text i, instead of the number i with the subtask above it
    int64_t cancels_at;   // the job, before this record; or 0
    const leat_tag *side; // gets each record's number, too, one record a piece; or NULL
    leat_err expected;
} maker;

typedef struct making {
    leat_operator base;
    const maker *how;
    int64_t next;
} making;

// What the sources have done.
static _Atomic int64_t emitted, partial_takes, side_emitted, emitted_when_cancelled;
static _Atomic bool inside; // such a call, for the first time
static leat_job *_Atomic running;

static char *big_text;
// clang-format off
static const uint32_t sizes[] = {
    0, 1, 2, 0, 5, 100, 120, 127, 128, 129, 900, 1000, 1007, 1008, 1009, 1010, 1015, 1016, 1017,
    1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 2040, 2048, 5000, 3, 0, 0, 7, 70000, 200, 1, 2,
    3, 4,
};
// clang-format on
enum { SIZES = sizeof sizes / sizeof *sizes };

static leat_str text_of(int64_t i)
{
    return (leat_str){big_text + i % 23, sizes[i % SIZES]};
}

static void make_text(void)
{
    enum { LARGEST = 200000 };
    big_text = malloc(LARGEST + 23);
    cr_assert_not_null(big_text);
    for (int i = 0; i < LARGEST + 23; i++)
        big_text[i] = (char)('a' + i % 23);
}

static void cancel_running(void)
{
    leat_job *job;
    while (!(job = atomic_load(&running)))
        sched_yield();
    leat_job_cancel(job);
}

// One piece; `*count` records of it at most.
static leat_err make_piece(making *m, leat_out *out, uint32_t *count)
{
    static const char nothing[1];
    const maker *how = m->how;
    int64_t numbers[PIECE_MOST];
    leat_str texts[PIECE_MOST];
    for (uint32_t i = 0; i < *count; i++) {
        numbers[i] = ((int64_t)leat_ctx_subtask(m->base.ctx) << SUBTASK_SHIFT) + m->next + i;
        texts[i] = text_of(m->next + i);
    }
    uint32_t none = 0, wanted = *count;
    cr_assert(leat_collect_some(m->base.ctx, out, nothing, &none) == LEAT_OK && none == 0);
    atomic_store(&inside, true);
    leat_err err = leat_collect_some(m->base.ctx, out, how->text ? (void *)texts : numbers, count);
    cr_assert(*count <= wanted && (err || *count > 0));
    partial_takes += !err && *count < wanted;
    emitted += *count;
    if (!err && how->side) {
        err = leat_collect_side(m->base.ctx, how->side, &m->next);
        side_emitted += err == LEAT_OK;
    }
    return err;
}

static leat_err maker_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    making *m = (making *)self;
    const maker *how = m->how;
    int64_t end = how->count - m->next < max_records ? how->count : m->next + max_records;
    leat_err err = LEAT_OK;
    bool first = true;
    while (m->next < end && !err && (first || leat_out_available(self->ctx))) {
        first = false;
        if (how->cancels_at > 0 && m->next >= how->cancels_at) {
            emitted_when_cancelled = emitted;
            cancel_running();
        }
        uint32_t count = end - m->next < how->piece ? (uint32_t)(end - m->next) : how->piece;
        err = make_piece(m, out, &count);
        m->next += count;
        leat_ctx_count_in(self->ctx, count, 0);
    }
    cr_assert(err == LEAT_OK || err == how->expected);
    *state = m->next < how->count ? LEAT_POLL_MORE : LEAT_POLL_END;
    return err;
}

static void free_maker(leat_operator *self)
{
    free(self);
}

static const leat_operator_ops maker_ops = {
    .kind = "maker", .poll = maker_poll, .dispose = free_maker};

static leat_err create_maker(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    making *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = &maker_ops;
    made->how = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

static leat_stream *make(leat_env *env, const maker *how)
{
    return leat_source(env, "maker", &(leat_factory){create_maker, how},
                       how->text ? leat_type_scalar(LEAT_STR) : NUMBER);
}

// --- the sinks ---

static int64_t got[SUBTASKS][MOST];
static _Atomic int64_t got_count[SUBTASKS]; // of numbers or texts, by the sink's subtask
static _Atomic int64_t side_count, side_total;

static int note_number(leat_ctx *ctx, const void *in)
{
    uint32_t at = leat_ctx_subtask(ctx);
    if (got_count[at] == MOST)
        return leat_fail(ctx, "too many");
    got[at][got_count[at]++] = *(const int64_t *)in;
    return 0;
}

// Of one source.
static int note_text(leat_ctx *ctx, const void *in)
{
    const leat_str *text = in;
    leat_str expected = text_of(got_count[0]);
    if (text->size != expected.size)
        return leat_fail(ctx, "text %ld has %zu bytes", (long)got_count[0], text->size);
    if (text->size > 0 && memcmp(text->data, expected.data, text->size) != 0)
        return leat_fail(ctx, "the bytes of text %ld are wrong", (long)got_count[0]);
    got_count[0]++;
    return 0;
}

static int note_side(leat_ctx *ctx, const void *in)
{
    side_count++;
    side_total += *(const int64_t *)in;
    return 0;
}

// `count` numbers from `first` on, `step` apart, in this order and no others.
static void expect_numbers(uint32_t at, int64_t first, int64_t step, int64_t count)
{
    cr_assert(got_count[at] == count, "%ld instead of %ld", (long)got_count[at], (long)count);
    for (int64_t i = 0; i < count; i++)
        cr_assert(got[at][i] == first + i * step, "%u %ld", at, (long)i);
}

// Of `producers` subtasks, `copies` times each number below `count`; those that came the same way
// in order.
static void expect_all(uint32_t producers, uint32_t consumers, int64_t count, int copies)
{
    static int seen[SUBTASKS][MOST];
    memset(seen, 0, sizeof seen);
    for (uint32_t at = 0; at < consumers; at++) {
        int64_t last[SUBTASKS] = {-1, -1, -1, -1};
        for (int64_t i = 0; i < got_count[at]; i++) {
            uint32_t from = (uint32_t)(got[at][i] >> SUBTASK_SHIFT);
            int64_t number = got[at][i] & UINT32_MAX;
            cr_assert(from < producers && number < count && number > last[from]);
            last[from] = number;
            seen[from][number]++;
        }
    }
    for (uint32_t from = 0; from < producers; from++)
        for (int64_t i = 0; i < count; i++)
            cr_assert(seen[from][i] == copies, "%u %ld: %d", from, (long)i, seen[from][i]);
}

// --- running ---

static leat_env *tiny_env(const char *workers)
{
    emitted = partial_takes = side_emitted = side_count = side_total = 0;
    inside = false;
    running = NULL;
    for (int i = 0; i < SUBTASKS; i++)
        got_count[i] = 0;
    leat_env *env = new_env(workers);
    cr_assert(leat_env_set(env, "memory.network", "64 KiB") == LEAT_OK);
    cr_assert(leat_env_set(env, "memory.segment-size", "1 KiB") == LEAT_OK);
    return env;
}

typedef struct outcome {
    leat_err err;
    char why[500];
    uint32_t tasks;
    uint64_t source_in, source_out; // of all tasks with a source
} outcome;

// Cancels the job when `*when` is set, unless that is NULL.
static outcome run_until(leat_env *env, const _Atomic bool *when)
{
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
    atomic_store(&running, job);
    while (when && !*when)
        sched_yield();
    if (when)
        leat_job_cancel(job);
    outcome o = {.err = leat_job_wait(job, -1), .tasks = leat_job_task_count(job)};
    snprintf(o.why, sizeof o.why, "%s", leat_job_failure(job));
    for (uint32_t i = 0; i < o.tasks; i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
        o.source_in += stats.is_source ? stats.records_in : 0;
        o.source_out += stats.is_source ? stats.records_out : 0;
    }
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    return o;
}

static outcome run(leat_env *env)
{
    return run_until(env, NULL);
}

static outcome run_ok(leat_env *env)
{
    outcome o = run(env);
    cr_assert(o.err == LEAT_OK, "%s", o.why);
    return o;
}

// --- records of all sizes ---

static leat_stream *into_task(leat_stream *in)
{
    return leat_disable_chaining(leat_sink(in, note_text));
}

Test(collect_some, texts_of_all_sizes_arrive_whole_and_in_order_whatever_the_buffer_timeout)
{
    static const uint32_t pieces[] = {1, 2, 31, 32, 33, PIECE_MOST};
    static const int64_t timeouts[] = {100, 0, -1};
    make_text();
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
        for (size_t t = 0; t < sizeof timeouts / sizeof *timeouts; t++) {
            leat_env *env = tiny_env(p % 2 ? "2" : "1");
            maker how = {.count = 5 * SIZES, .piece = pieces[p], .text = true};
            leat_stream *texts = leat_buffer_timeout(make(env, &how), timeouts[t]);
            into_task(leat_forward(texts));
            outcome o = run_ok(env);
            cr_assert(o.tasks == 2 && got_count[0] == 5 * SIZES && emitted == 5 * SIZES);
            cr_assert(o.source_in == 5 * SIZES && o.source_out == 5 * SIZES);
        }
    free(big_text);
}

Test(collect_some, a_blocking_exchange_keeps_them_all)
{
    make_text();
    leat_env *env = tiny_env("1");
    maker how = {.count = 5 * SIZES, .piece = 50, .text = true};
    into_task(leat_blocking_exchange(leat_forward(make(env, &how))));
    outcome o = run_ok(env);
    cr_assert(o.tasks == 2 && got_count[0] == 5 * SIZES && o.source_out == 5 * SIZES);
    free(big_text);
}

// --- back-pressure ---

// Does not begin before output had no room for all of a piece.
static int note_after_partial(leat_ctx *ctx, const void *in)
{
    while (partial_takes == 0 && !leat_ctx_cancelled(ctx))
        sched_yield();
    return note_number(ctx, in);
}

Test(collect_some, a_source_goes_on_after_what_was_taken)
{
    // At most ten segments of 1 KiB are queued, so the one reader waits until some call has taken
    // less than it was given: polls are for up to 1,024 records then, which take 13 bytes each.
    leat_env *env = tiny_env("2");
    maker how = {.count = MOST, .piece = PIECE_MOST};
    leat_disable_chaining(leat_sink(leat_forward(make(env, &how)), note_after_partial));
    outcome o = run_ok(env);
    cr_assert(partial_takes > 0 && emitted == MOST && o.source_out == MOST);
    expect_numbers(0, 0, 1, MOST);
}

// With cut records a segment takes about one, so of the first sixteen not all have room.
Test(collect_some, a_source_goes_on_after_cut_records_too)
{
    make_text();
    leat_env *env = tiny_env("1");
    maker how = {.count = 20 * SIZES, .piece = PIECE_MOST, .text = true};
    into_task(leat_forward(make(env, &how)));
    outcome o = run_ok(env);
    cr_assert(partial_takes > 0 && emitted == 20 * SIZES && got_count[0] == 20 * SIZES);
    cr_assert(o.source_out == 20 * SIZES);
    free(big_text);
}

Test(collect_some, a_source_without_records_emits_none)
{
    leat_env *env = tiny_env("1");
    maker how = {.count = 0, .piece = 1};
    leat_disable_chaining(leat_sink(leat_forward(make(env, &how)), note_number));
    cr_assert(run_ok(env).source_out == 0 && got_count[0] == 0);
}

// --- ways ---

static int64_t modulo(leat_ctx *ctx, const void *in, uint32_t channels)
{
    return *(const int64_t *)in % channels;
}

static leat_stream *custom(leat_stream *in)
{
    return leat_partition_custom(in, modulo);
}

static leat_stream *hash(leat_stream *in)
{
    return leat_key_by(in, "");
}

static int itself(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = *(const int64_t *)in;
    return 0;
}

static leat_stream *hash_fn(leat_stream *in)
{
    return leat_key_by_fn(in, itself, NUMBER);
}

static leat_stream *(*const ways[])(leat_stream *) = {
    leat_rebalance, leat_rescale, leat_shuffle, leat_global, custom, hash, hash_fn, leat_broadcast};
enum { WAYS = sizeof ways / sizeof *ways };

Test(collect_some, each_way_takes_all_records_in_order)
{
    enum { COUNT = 3000 };
    for (size_t w = 0; w < WAYS; w++)
        for (uint32_t producers = 1; producers <= 2; producers++)
            for (uint32_t consumers = 1; consumers <= 3; consumers += 2) {
                leat_env *env = tiny_env(w % 2 ? "1" : "2");
                cr_assert(leat_env_set(env, "memory.network", "256 KiB") == LEAT_OK);
                maker how = {.count = COUNT, .piece = 77};
                leat_stream *source = leat_parallelism(make(env, &how), producers);
                leat_stream *sink = leat_sink(ways[w](source), note_number);
                leat_disable_chaining(leat_parallelism(sink, consumers));
                outcome o = run_ok(env);
                expect_all(producers, consumers, COUNT,
                           ways[w] == leat_broadcast ? (int)consumers : 1);
                // A broadcast record is counted once.
                cr_assert(o.source_out == (uint64_t)producers * COUNT, "%zu", w);
                cr_assert(o.source_in == (uint64_t)producers * COUNT);
                if (ways[w] == leat_global)
                    cr_assert(got_count[0] == (int64_t)producers * COUNT);
                if (ways[w] == custom && producers == 1 && consumers == 3)
                    for (uint32_t at = 0; at < 3; at++)
                        expect_numbers(at, at, 3, COUNT / 3);
                if (ways[w] == leat_rebalance && consumers == 3)
                    for (uint32_t at = 0; at < 3; at++)
                        cr_assert(got_count[at] == (int64_t)producers * COUNT / 3);
            }
}

static int add_million(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in + 1000000;
    return 0;
}

Test(collect_some, an_operator_of_the_same_task_gets_them_one_by_one)
{
    leat_env *env = tiny_env("1");
    maker how = {.count = 5000, .piece = 100};
    leat_sink(leat_map(make(env, &how), add_million, NUMBER), note_number);
    cr_assert(run_ok(env).tasks == 1);
    expect_numbers(0, 1000000, 1, 5000);
}

Test(collect_some, each_of_several_readers_gets_all_of_them)
{
    leat_env *env = tiny_env("2");
    maker how = {.count = 5000, .piece = 100};
    leat_stream *numbers = make(env, &how);
    leat_sink(numbers, note_side);                                        // same task
    leat_disable_chaining(leat_sink(leat_forward(numbers), note_number)); // one channel
    leat_parallelism(leat_sink(leat_rebalance(leat_rebalance(numbers)), note_side), 3); // several
    outcome o = run_ok(env);
    cr_assert(o.tasks == 5 && o.source_out == 3 * 5000);
    expect_numbers(0, 0, 1, 5000);
    cr_assert(side_count == 2 * 5000 && side_total == 2 * (INT64_C(5000) * 4999 / 2));
}

Test(collect_some, a_side_output_is_beside_it)
{
    for (int exchange = 0; exchange < 2; exchange++) {
        const leat_tag tag = {"starts", NUMBER};
        leat_env *env = tiny_env("2");
        maker how = {.count = 5000, .piece = 10, .side = &tag};
        leat_stream *numbers = make(env, &how);
        leat_stream *side = leat_sink(leat_side_output(numbers, &tag), note_side);
        if (exchange)
            leat_disable_chaining(side);
        leat_disable_chaining(leat_sink(leat_forward(numbers), note_number));
        outcome o = run_ok(env);
        expect_numbers(0, 0, 1, 5000);
        cr_assert(side_emitted >= 500 && side_count == side_emitted);
        cr_assert(o.source_out == 5000 + (uint64_t)side_count);
    }
}

// --- errors ---

static int reject_sevens(leat_ctx *ctx, const void *in, void *out)
{
    int64_t number = *(const int64_t *)in;
    *(int64_t *)out = number;
    return number % 7 == 0 ? leat_fail(ctx, "seven") : 0;
}

// 5,000 numbers, of which 715 can be divided by 7; the sum of those is 7 · 714 · 715 / 2.
Test(collect_some, what_an_operator_of_the_task_rejects_is_out_for_the_source)
{
    for (int guarded = 0; guarded < 2; guarded++) {
        leat_env *env = tiny_env("1");
        maker how = {.count = 5000, .piece = 100};
        leat_stream *numbers = make(env, &how);
        if (guarded)
            leat_on_error(numbers, LEAT_ON_ERROR_SKIP);
        leat_stream *kept = leat_map(numbers, reject_sevens, NUMBER);
        leat_on_error(kept, LEAT_ON_ERROR_SKIP);
        leat_disable_chaining(leat_sink(leat_forward(kept), note_side));
        outcome o = run_ok(env);
        cr_assert(o.tasks == 2 && emitted == 5000 && o.source_out == 5000 - 715);
        cr_assert(side_count == 5000 - 715);
        cr_assert(side_total == INT64_C(5000) * 4999 / 2 - INT64_C(7) * 714 * 715 / 2);
    }
}

Test(collect_some, a_source_that_may_reject_sends_them_all)
{
    leat_env *env = tiny_env("1");
    maker how = {.count = 5000, .piece = 100};
    leat_stream *numbers = leat_on_error(make(env, &how), LEAT_ON_ERROR_SKIP);
    leat_disable_chaining(leat_sink(leat_forward(numbers), note_number));
    cr_assert(run_ok(env).source_out == 5000);
    expect_numbers(0, 0, 1, 5000);
}

// The 35th text, of 70,000 bytes, is the first that is too large.
Test(collect_some, a_record_above_the_limit_fails_after_those_before_it)
{
    static const uint32_t pieces[] = {1, 32, 34, 35, PIECE_MOST};
    make_text();
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
        for (int several = 0; several < 2; several++) {
            leat_env *env = tiny_env("1");
            leat_env_set(env, "record.max-size", "60000");
            maker how = {
                .count = SIZES, .piece = pieces[p], .text = true, .expected = LEAT_ETOOBIG};
            leat_stream *texts = leat_name(make(env, &how), "texts");
            leat_stream *to = several ? leat_rebalance(texts) : leat_forward(texts);
            leat_parallelism(leat_disable_chaining(leat_discard(to)), several ? 3 : 1);
            outcome o = run(env);
            cr_assert(o.err == LEAT_ETOOBIG && emitted == 34, "%ld", (long)emitted);
            cr_assert(strncmp(o.why, "texts (1/1): ", 13) == 0, "%s", o.why);
            // With the header of a string.
            cr_assert(strstr(o.why, "70005") && strstr(o.why, "60000"), "%s", o.why);
        }
    free(big_text);
}

Test(collect_some, a_cancelled_job_takes_no_more)
{
    for (int kind = 0; kind < 3; kind++) {
        leat_env *env = tiny_env("2");
        maker how = {
            .count = INT64_MAX, .piece = 100, .cancels_at = 3000, .expected = LEAT_ECANCELLED};
        leat_stream *numbers = make(env, &how);
        if (kind > 0)
            numbers = leat_disable_chaining(
                leat_discard(kind == 1 ? leat_forward(numbers) : leat_rebalance(numbers)));
        else
            leat_discard(numbers);
        cr_assert(run(env).err == LEAT_ECANCELLED);
        // The call that finds the job cancelled takes none, however many there were before.
        cr_assert(emitted >= 3000 && emitted == emitted_when_cancelled, "%d: %ld", kind,
                  (long)(emitted - emitted_when_cancelled));
    }
}

static int cancel_at_tenth(leat_ctx *ctx, const void *in)
{
    if (++side_count == 10)
        cancel_running();
    return 0;
}

Test(collect_some, the_record_in_hand_when_a_job_is_cancelled_is_the_last)
{
    leat_env *env = tiny_env("1");
    maker how = {.count = INT64_MAX, .piece = 100, .expected = LEAT_ECANCELLED};
    leat_sink(make(env, &how), cancel_at_tenth);
    cr_assert(run(env).err == LEAT_ECANCELLED);
    cr_assert(side_count == 10 && emitted == 10);
}

// A source that waits for segments in the middle of a text, whose reader reads nothing.
static int wait_for_cancel(leat_ctx *ctx, const void *in)
{
    while (!leat_ctx_cancelled(ctx))
        sched_yield();
    return 0;
}

Test(collect_some, cancelling_ends_the_wait_of_a_call)
{
    make_text();
    leat_env *env = tiny_env("2");
    maker how = {
        .count = INT64_MAX, .piece = PIECE_MOST, .text = true, .expected = LEAT_ECANCELLED};
    leat_disable_chaining(leat_sink(leat_forward(make(env, &how)), wait_for_cancel));
    outcome o = run_until(env, &inside);
    cr_assert(o.err == LEAT_ECANCELLED && emitted < 16 * SIZES);
    free(big_text);
}
