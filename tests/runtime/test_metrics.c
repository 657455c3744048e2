// SPDX-License-Identifier: Apache-2.0
// Counters, gauges, meters and histograms of user functions, and how they are read.
#include <math.h>
#include <stdlib.h>

#include "jobs.h"
#include "runtime/execution.h"
#include "runtime/histogram.h"
#include "runtime/metrics.h"

TestSuite(metrics, .timeout = 60);

// Starts a job and waits for its end; what it did can be read until end_job.
typedef struct running {
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
    leat_err err;
} running;

static running run_job(leat_env *env)
{
    running r = {.env = env};
    char why[200] = "";
    cr_assert(leat_runtime_create(env, &r.runtime, why, sizeof why) == LEAT_OK, "%s", why);
    cr_assert(leat_start(r.runtime, env, &r.job) == LEAT_OK, "%s", fault_of(env));
    r.err = leat_job_wait(r.job, -1);
    return r;
}

static void end_job(running *r)
{
    leat_job_destroy(&r->job);
    leat_runtime_destroy(&r->runtime);
    leat_env_destroy(&r->env);
}

// --- counters and gauges ---

static int count_sink(leat_ctx *ctx, const void *in)
{
    int64_t number = *(const int64_t *)in;
    leat_counter *all = leat_ctx_counter(ctx, "all");
    if (all != leat_ctx_counter(ctx, "all") || (void *)all == leat_ctx_counter(ctx, "down"))
        return leat_fail(ctx, "a name is not one counter");
    leat_counter_add(all, 1);
    leat_counter_add(leat_ctx_counter(ctx, "down"), -number);
    leat_gauge_set(leat_ctx_gauge(ctx, "last"), (double)number / 2);
    return 0;
}

Test(metrics, counters_and_gauges_are_kept_for_each_subtask)
{
    leat_env *env = new_env("2");
    leat_stream *sink = leat_sink(leat_rebalance(leat_sequence(env, 1, 30)), count_sink);
    leat_parallelism(leat_name(sink, "counting"), 3);
    running r = run_job(env);
    cr_assert(r.err == LEAT_OK, "%s", leat_job_failure(r.job));
    // Thirty numbers dealt out to three; their sum is 465.
    int64_t down = 0;
    for (uint32_t subtask = 0; subtask < 3; subtask++) {
        leat_metric m;
        cr_assert(leat_job_find_metric(r.job, "counting", subtask, "all", &m));
        cr_assert(m.kind == LEAT_METRIC_COUNTER && m.count == 10 && !m.built_in);
        cr_assert(m.subtask == subtask && m.parallelism == 3 && !m.histogram);
        cr_assert_str_eq(m.op_name, "counting");
        cr_assert(leat_job_find_metric(r.job, "counting", subtask, "down", &m));
        down += m.count;
        cr_assert(leat_job_find_metric(r.job, "counting", subtask, "last", &m));
        // The last number of a subtask is one of 28, 29, 30.
        cr_assert(m.kind == LEAT_METRIC_GAUGE && m.value >= 14 && m.value <= 15);
    }
    cr_assert(down == -465);
    leat_metric m = {.count = 77};
    cr_assert(!leat_job_find_metric(r.job, "counting", 3, "all", &m));
    cr_assert(!leat_job_find_metric(r.job, "counting", 0, "none", &m));
    cr_assert(!leat_job_find_metric(r.job, "other", 0, "all", &m));
    cr_assert(m.count == 77);
    end_job(&r);
}

static void list_metric(void *user, const leat_metric *m)
{
    char *text = user;
    size_t used = strlen(text);
    snprintf(text + used, 400 - used, "%s/%u/%s ", m->op_name, m->subtask, m->name);
}

static int count_map(leat_ctx *ctx, const void *in, void *out)
{
    leat_counter_add(leat_ctx_counter(ctx, "z"), 1);
    leat_counter_add(leat_ctx_counter(ctx, "a"), 1);
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

Test(metrics, are_visited_by_operator_subtask_and_order_of_making)
{
    leat_env *env = new_env("2");
    leat_env_set_parallelism(env, 2);
    leat_stream *first = leat_name(leat_map(leat_sequence(env, 1, 4), count_map, NUMBER), "first");
    leat_stream *second = leat_name(leat_map(first, count_map, NUMBER), "second");
    leat_discard(leat_rebalance(second));
    running r = run_job(env);
    cr_assert(r.err == LEAT_OK, "%s", leat_job_failure(r.job));
    char text[400] = "";
    leat_job_each_metric(r.job, list_metric, text);
    cr_assert_str_eq(text, "first/0/z first/0/a first/1/z first/1/a "
                           "second/0/z second/0/a second/1/z second/1/a ");
    end_job(&r);
}

Test(metrics, updating_null_does_nothing)
{
    leat_counter_add(NULL, 1);
    leat_gauge_set(NULL, 1);
    leat_meter_mark(NULL, 1);
    leat_histogram_record(NULL, 1);
    cr_assert(leat_histogram_count(NULL) == 0);
    cr_assert(leat_histogram_min(NULL) == 0 && leat_histogram_max(NULL) == 0);
    cr_assert(leat_histogram_mean(NULL) == 0 && leat_histogram_percentile(NULL, 50) == 0);
}

Test(metrics, a_counter_wraps_around)
{
    leat_counter counter = {.value = INT64_MAX};
    leat_counter_add(&counter, 1);
    cr_assert(counter.value == INT64_MIN);
}

// --- meters ---

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

#define AT(seconds) ((int64_t)((seconds)*1e9))

Test(metrics, a_meter_gives_the_rate_of_the_last_minute)
{
    leat_meter *m = calloc(1, sizeof *m);
    m->start_ns = AT(1000);
    cr_assert(leati_meter_rate_at(m, AT(1000)) == 0);
    // Younger than a second: taken for one.
    leati_meter_mark_at(m, 5, AT(1000.25));
    cr_assert(near(leati_meter_rate_at(m, AT(1000.5)), 5));
    // Ten a second for 20 seconds, in halves.
    for (int i = 2; i < 42; i++)
        leati_meter_mark_at(m, 5, AT(1000 + i * 0.5));
    cr_assert(near(leati_meter_rate_at(m, AT(1020.5)), (5 + 200) / 20.5));
    // At 1070 the window begins with second 1011: of the marks those at 1011, 1011.5 … 1020.5.
    cr_assert(near(leati_meter_rate_at(m, AT(1070)), 20 * 5 / 59.0));
    cr_assert(near(leati_meter_rate_at(m, AT(1070.75)), 20 * 5 / 59.75));
    // A slot is taken over by a second 64 later; the others have left the window by then.
    leati_meter_mark_at(m, 7, AT(1084));
    cr_assert(near(leati_meter_rate_at(m, AT(1084)), 7 / 59.0));
    cr_assert(leati_meter_rate_at(m, AT(1144)) == 0);
    // Far later, in the same slot.
    leati_meter_mark_at(m, 3, AT(1084 + 64 * 100));
    cr_assert(near(leati_meter_rate_at(m, AT(1084 + 64 * 100)), 3 / 59.0));
    cr_assert(m->count == 5 + 200 + 7 + 3);
    free(m);
}

static int meter_sink(leat_ctx *ctx, const void *in)
{
    leat_meter_mark(leat_ctx_meter(ctx, "marks"), 2);
    return 0;
}

Test(metrics, a_meter_counts_marks)
{
    leat_env *env = new_env("1");
    leat_name(leat_sink(leat_sequence(env, 1, 50), meter_sink), "metered");
    running r = run_job(env);
    leat_metric m;
    cr_assert(leat_job_find_metric(r.job, "metered", 0, "marks", &m));
    cr_assert(m.kind == LEAT_METRIC_METER && m.count == 100);
    cr_assert(m.value > 0 && m.value <= 100);
    end_job(&r);
}

// --- histograms ---

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t random_now = 7;

static uint64_t next_random(void)
{
    random_now = random_now * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_now >> 11;
}

// Of any magnitude up to 2^bits.
static int64_t random_value(unsigned bits, bool negative)
{
    uint64_t magnitude = (next_random() << 11 | next_random() >> 42) >> (64 - bits);
    magnitude >>= next_random() % bits;
    return negative && next_random() % 2 ? -(int64_t)magnitude : (int64_t)magnitude;
}

static bool within_error(int64_t value, int64_t exact)
{
    double off = fabs((double)value - (double)exact);
    return exact >= -64 && exact < 64 ? off == 0 : off <= fabs((double)exact) / 64;
}

Test(metrics, percentiles_of_a_histogram_agree_with_sorting)
{
    enum { MOST = 5000 };
    static const double percents[] = {0, 0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};
    static int64_t values[MOST];
    for (int round = 0; round < 60; round++) {
        size_t count = round < 5 ? (size_t)round + 1 : 1 + next_random() % MOST;
        unsigned bits = 1 + (unsigned)round % 63;
        leat_histogram *h = calloc(1, sizeof *h);
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            values[i] = random_value(bits, round % 2);
            leat_histogram_record(h, values[i]);
            sum += (double)values[i];
        }
        qsort(values, count, sizeof *values, by_value);
        cr_assert(leat_histogram_count(h) == count);
        cr_assert(leat_histogram_min(h) == values[0]);
        cr_assert(leat_histogram_max(h) == values[count - 1]);
        cr_assert(near(leat_histogram_mean(h), sum / (double)count) || sum == 0);
        for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
            // The rank in whole numbers: hundredths of a percent, rounded up.
            size_t hundredths = (size_t)(percents[i] * 100 + 0.5);
            size_t rank = (hundredths * count + 9999) / 10000;
            int64_t exact = values[rank ? rank - 1 : 0];
            int64_t value = leat_histogram_percentile(h, percents[i]);
            cr_assert(within_error(value, exact), "round %d, %g %% of %zu: %lld, not %lld", round,
                      percents[i], count, (long long)value, (long long)exact);
        }
        free(h);
    }
}

Test(metrics, a_histogram_takes_the_extremes)
{
    static const int64_t values[] = {INT64_MAX, INT64_MIN, 0, -1, 1, INT64_MAX, INT64_MIN};
    leat_histogram *h = calloc(1, sizeof *h);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        leat_histogram_record(h, values[i]);
    cr_assert(leat_histogram_count(h) == 7);
    cr_assert(leat_histogram_min(h) == INT64_MIN && leat_histogram_max(h) == INT64_MAX);
    // Sorted: the smallest twice, -1, 0, 1, the largest twice; ranks 2 to 6.
    static const int64_t sorted[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < 5; i++)
        cr_assert(within_error(leat_histogram_percentile(h, (double)(i + 2) / 7 * 100), sorted[i]));
    cr_assert(leat_histogram_percentile(h, NAN) == INT64_MIN);
    cr_assert(leat_histogram_percentile(h, -5) == INT64_MIN);
    cr_assert(leat_histogram_percentile(h, 200) == INT64_MAX);
    free(h);
}

Test(metrics, buckets_of_a_histogram_are_in_order_and_narrow)
{
    cr_assert(leati_histogram_bucket((uint64_t)INT64_MAX) == LEATI_HISTOGRAM_BUCKETS - 1);
    for (uint32_t bucket = 0; bucket < LEATI_HISTOGRAM_BUCKETS; bucket++)
        cr_assert(leati_histogram_bucket(leati_histogram_middle(bucket)) == bucket);
    // At each power of two and its neighbours a bucket ends or begins.
    for (int power = 6; power < 63; power++) {
        uint64_t edge = UINT64_C(1) << power;
        cr_assert(leati_histogram_bucket(edge) == leati_histogram_bucket(edge - 1) + 1);
        cr_assert(leati_histogram_bucket(edge + edge / 32) == leati_histogram_bucket(edge) + 1);
        cr_assert(leati_histogram_bucket(edge + edge / 32 - 1) == leati_histogram_bucket(edge));
    }
}

static int histogram_sink(leat_ctx *ctx, const void *in)
{
    leat_histogram_record(leat_ctx_histogram(ctx, "sizes"), *(const int64_t *)in);
    return 0;
}

Test(metrics, a_histogram_is_read_through_the_job)
{
    leat_env *env = new_env("1");
    leat_name(leat_sink(leat_sequence(env, 1, 60), histogram_sink), "sized");
    running r = run_job(env);
    leat_metric m;
    cr_assert(leat_job_find_metric(r.job, "sized", 0, "sizes", &m));
    cr_assert(m.kind == LEAT_METRIC_HISTOGRAM && m.count == 60);
    cr_assert(leat_histogram_percentile(m.histogram, 50) == 30);
    cr_assert(leat_histogram_percentile(m.histogram, 95) == 57);
    cr_assert(near(leat_histogram_mean(m.histogram), 30.5));
    end_job(&r);
}

// --- what cannot be had ---

static int clash(leat_ctx *ctx, const void *in)
{
    leat_ctx_counter(ctx, "twice");
    leat_gauge *gauge = leat_ctx_gauge(ctx, "twice");
    leat_gauge_set(gauge, 1);
    return gauge ? leat_fail(ctx, "one name, two kinds") : 0;
}

static int no_name(leat_ctx *ctx, const void *in)
{
    return leat_ctx_meter(ctx, "") ? leat_fail(ctx, "without a name") : 0;
}

static int null_name(leat_ctx *ctx, const void *in)
{
    return leat_ctx_histogram(ctx, NULL) ? leat_fail(ctx, "without a name") : 0;
}

static int long_name(leat_ctx *ctx, const void *in)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    if (!leat_ctx_counter(ctx, name))
        return leat_fail(ctx, "255 bytes are refused");
    name[255] = 'n';
    name[256] = '\0';
    return leat_ctx_counter(ctx, name) ? leat_fail(ctx, "256 bytes") : 0;
}

static int too_many(leat_ctx *ctx, const void *in)
{
    char name[20];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (!leat_ctx_counter(ctx, name))
            return leat_fail(ctx, "number %d is refused", i);
    }
    if (!leat_ctx_counter(ctx, "999"))
        return leat_fail(ctx, "it was there");
    return leat_ctx_counter(ctx, "1000") ? leat_fail(ctx, "one too many") : 0;
}

static _Thread_local bool starving;

static void *starved_allocate(void *user, size_t size_bytes)
{
    return starving ? NULL : malloc(size_bytes);
}

static void *starved_reallocate(void *user, void *ptr, size_t size_bytes)
{
    return starving ? NULL : realloc(ptr, size_bytes);
}

static void starved_release(void *user, void *ptr)
{
    free(ptr);
}

static int starved(leat_ctx *ctx, const void *in)
{
    starving = true;
    leat_counter *counter = leat_ctx_counter(ctx, "hungry");
    starving = false;
    leat_counter_add(counter, 1);
    return counter ? leat_fail(ctx, "memory out of nothing") : 0;
}

Test(metrics, what_cannot_be_had_fails_the_job_even_if_the_function_goes_on)
{
    static const struct {
        leat_sink_fn fn;
        leat_err err;
        const char *failure;
    } cases[] = {
        {clash, LEAT_EEXIST, "bad (1/1): metric \"twice\" is of another kind in \"bad\""},
        {no_name, LEAT_EINVAL, "bad (1/1): the name of a metric must have 1 to 255 bytes"},
        {null_name, LEAT_EINVAL, "bad (1/1): the name of a metric must have 1 to 255 bytes"},
        {long_name, LEAT_EINVAL, "bad (1/1): the name of a metric must have 1 to 255 bytes"},
        {too_many, LEAT_ETOOBIG,
         "bad (1/1): metric \"1000\": an operator has at most 1000 metrics and accumulators"},
        {starved, LEAT_ENOMEM, "bad (1/1): metric \"hungry\": out of memory"},
    };
    static const leat_allocator allocator = {starved_allocate, starved_reallocate, starved_release,
                                             NULL};
    leat_env_options options = {.allocator = &allocator};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_env *env;
        cr_assert(leat_env_create(&options, &env) == LEAT_OK);
        leat_name(leat_sink(leat_sequence(env, 1, 1), cases[i].fn), "bad");
        running r = run_job(env);
        cr_assert(r.err == cases[i].err, "case %zu: %s", i, leat_err_name(r.err));
        cr_assert_str_eq(leat_job_failure(r.job), cases[i].failure);
        end_job(&r);
    }
}

// --- opened functions, blocking sources, rejected records ---

typedef struct counts {
    leat_counter *seen;
    leat_accumulator *largest;
} counts;

static int open_counts(leat_ctx *ctx)
{
    counts *c = malloc(sizeof *c);
    if (!c)
        return leat_fail(ctx, "out of memory");
    c->seen = leat_ctx_counter(ctx, "seen");
    c->largest = leat_ctx_accumulator(ctx, "largest", LEAT_ACCUMULATOR_MAX_I64);
    leat_ctx_set_local(ctx, c);
    return 0;
}

static int close_counts(leat_ctx *ctx)
{
    counts *c = leat_ctx_local(ctx);
    leat_counter_add(c->seen, 1000);
    free(c);
    return 0;
}

static int count_open(leat_ctx *ctx, const void *in)
{
    counts *c = leat_ctx_local(ctx);
    leat_counter_add(c->seen, 1);
    leat_accumulator_add_i64(c->largest, *(const int64_t *)in);
    return 1;
}

Test(metrics, are_made_in_open_and_updated_until_close)
{
    leat_env *env = new_env("2");
    leat_stream *s = leat_filter(leat_rebalance(leat_sequence(env, 1, 20)), count_open);
    leat_discard(leat_rich(leat_parallelism(leat_name(s, "rich"), 4), open_counts, close_counts));
    running r = run_job(env);
    cr_assert(r.err == LEAT_OK, "%s", leat_job_failure(r.job));
    for (uint32_t subtask = 0; subtask < 4; subtask++) {
        leat_metric m;
        cr_assert(leat_job_find_metric(r.job, "rich", subtask, "seen", &m));
        cr_assert(m.count == 1005);
    }
    leat_accumulators *all;
    leat_accumulator_value largest;
    cr_assert(leat_job_accumulators(r.job, &all) == LEAT_OK);
    cr_assert(leat_accumulators_find(all, "largest", &largest));
    cr_assert(largest.i64 == 20 && largest.count == 20);
    leat_accumulators_destroy(&all);
    end_job(&r);
}

static int count_and_emit(const leat_ctx *ctx, leat_source_out *out)
{
    leat_counter *emitted = leat_ctx_counter(ctx, "emitted");
    for (int64_t i = 0; i < 12; i++) {
        if (leat_source_emit(out, &i))
            return -1;
        leat_counter_add(emitted, 1);
    }
    return 0;
}

Test(metrics, a_blocking_source_has_them_on_its_own_thread)
{
    static const leat_blocking_source_fns fns = {.run = count_and_emit};
    leat_env *env = new_env("1");
    leat_discard(leat_blocking_source(env, "emitter", &fns, NUMBER));
    running r = run_job(env);
    cr_assert(r.err == LEAT_OK, "%s", leat_job_failure(r.job));
    leat_metric m;
    cr_assert(leat_job_find_metric(r.job, "emitter", 0, "emitted", &m));
    cr_assert(m.count == 12);
    end_job(&r);
}

static int refuse_even(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in % 2 ? 0 : leat_fail(ctx, "even");
}

Test(metrics, rejected_records_are_a_built_in_counter)
{
    leat_env *env = new_env("1");
    leat_stream *sink = leat_name(leat_sink(leat_sequence(env, 1, 9), refuse_even), "odd only");
    leat_on_error(sink, LEAT_ON_ERROR_SKIP);
    running r = run_job(env);
    cr_assert(r.err == LEAT_OK, "%s", leat_job_failure(r.job));
    leat_metric m;
    cr_assert(leat_job_find_metric(r.job, "odd only", 0, "rejected", &m));
    cr_assert(m.built_in && m.kind == LEAT_METRIC_COUNTER && m.count == 4);
    char text[400] = "";
    leat_job_each_metric(r.job, list_metric, text);
    cr_assert_str_eq(text, "odd only/0/rejected ");
    end_job(&r);
}
