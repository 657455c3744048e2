// SPDX-License-Identifier: Apache-2.0
// Latency through one exchange, with the default flushing: a source follows a schedule, each record
// carries the time at which it was due, and a sink in another task reads the clock. Once at 1,000
// records a second, where it is the price of wake-ups, and once at half of the rate that the same
// job reaches without a schedule. The yardstick is a queue between two threads that are woken by
// futex: of one slot at the low rate, of many at the high one.
#include <stdio.h>
#include <stdlib.h>

#include "bench/harness.h"
#include "bench/job.h"
#include "bench/pacer.h"

enum { LOW_RATE = 1000, LOW_SECONDS = 4, HALF_SECONDS = 2, TRIES = 3 };

typedef struct load {
    schedule plan;
    uint32_t capacity; // of the bare queue
    uint64_t skip;
} load;

// --- the job -------------------------------------------------------------------------------------

static int arrive(leat_ctx *ctx, const void *in)
{
    const stamped *record = in;
    arrivals *result = leat_ctx_user_data(ctx);
    uint64_t index = (uint64_t)record->index;
    result->records++;
    result->sum += index;
    if ((index & result->skip) == 0)
        histogram_add(&result->latencies, bench_now_ns() - record->due_ns);
    return 0;
}

static int run_job(const schedule *plan, arrivals *result)
{
    leat_env *env = bench_env(2, 1);
    if (!env)
        return -1;
    leat_stream *records =
        leat_source(env, "schedule", &(leat_factory){pacer_create, plan}, LEAT_TYPE(stamped));
    leat_user_data(leat_sink(leat_rebalance(records), arrive), result);
    return bench_execute(&env);
}

// --- the cases -----------------------------------------------------------------------------------

typedef int (*measured)(const load *l, arrivals *result);

static int run_leat_load(const load *l, arrivals *result)
{
    return run_job(&l->plan, result);
}

static int run_bare_load(const load *l, arrivals *result)
{
    return bare_latency(&l->plan, l->capacity, result);
}

// The figures are in the order of the tables in `main`.
static int measure(const load *l, measured run, bench_outcome *outcome)
{
    static arrivals result;
    result = (arrivals){.skip = l->skip};
    double cpu = bench_cpu_seconds();
    int64_t start = bench_now_ns();
    if (run(l, &result) != 0)
        return -1;
    cpu = bench_cpu_seconds() - cpu;
    double wall = (double)(bench_now_ns() - start) * 1e-9;
    static const double shares[] = {0.5, 0.99, 0.999, 1};
    *outcome = (bench_outcome){.items = result.records, .checksum = result.sum};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        outcome->figures[i] = (double)histogram_quantile(&result.latencies, shares[i]) * 1e-3;
    outcome->figures[4] = cpu / wall * 100;
    return 0;
}

static int run_leat(void *context, bench_outcome *outcome)
{
    return measure(context, run_leat_load, outcome);
}

static int run_bare(void *context, bench_outcome *outcome)
{
    return measure(context, run_bare_load, outcome);
}

static void expect(bench_case *self, load *l)
{
    uint64_t n = l->plan.records;
    self->context = l;
    self->expected = (bench_outcome){.items = n, .checksum = n * (n - 1) / 2};
}

static double seconds_of(const bench_options *options, double usual)
{
    return options->quick ? 0.2 : options->size ? (double)options->size : usual;
}

static int setup_low(bench_case *self, const bench_options *options)
{
    static load low = {.capacity = 1};
    low.plan = (schedule){(uint64_t)(LOW_RATE * seconds_of(options, LOW_SECONDS)), 1e9 / LOW_RATE};
    expect(self, &low);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Records a second without a schedule, the middle of some tries; 0 when the job fails.
static double highest_rate(const bench_options *options, uint64_t skip)
{
    static arrivals result;
    double rates[TRIES];
    schedule all = {options->quick ? 200000 : 10000000, 0};
    for (int i = 0; i < TRIES; i++) {
        result = (arrivals){.skip = skip};
        int64_t start = bench_now_ns();
        if (run_job(&all, &result) != 0 || result.records != all.records)
            return 0;
        rates[i] = (double)all.records * 1e9 / (double)(bench_now_ns() - start);
    }
    qsort(rates, TRIES, sizeof *rates, ascending);
    return rates[TRIES / 2];
}

static int setup_half(bench_case *self, const bench_options *options)
{
    static load half = {.capacity = 4096, .skip = 63};
    static char note[96];
    double highest = highest_rate(options, half.skip), rate = highest / 2;
    if (highest <= 0)
        return -1;
    half.plan = (schedule){(uint64_t)(rate * seconds_of(options, HALF_SECONDS)), 1e9 / rate};
    expect(self, &half);
    snprintf(note, sizeof note, "%.2f million records a second, half of the highest rate",
             rate * 1e-6);
    self->note = note;
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_figure low_figures[] = {{"p50", "µs", 0},
                                               {"p99", "µs", 1000},
                                               {"p99.9", "µs", 0},
                                               {"max", "µs", 0},
                                               {"CPU", "% of a core", 5}};
    static const bench_figure half_figures[] = {{"p50", "µs", 0},
                                                {"p99", "µs", 1000},
                                                {"p99.9", "µs", 0},
                                                {"max", "µs", 0},
                                                {"CPU", "% of a core", 0}};
    static const bench_variant low[] = {{"one slot", run_bare, 0}, {"leat", run_leat, 0}};
    static const bench_variant half[] = {{"bare queue", run_bare, 0}, {"leat", run_leat, 0}};
    bench_case cases[] = {{.name = "1000/s",
                           .unit = "records",
                           .variants = low,
                           .variant_count = 2,
                           .figures = low_figures,
                           .figure_count = 5,
                           .setup = setup_low},
                          {.name = "half-rate",
                           .unit = "records",
                           .variants = half,
                           .variant_count = 2,
                           .figures = half_figures,
                           .figure_count = 5,
                           .setup = setup_half}};
    return bench_main(argc, argv, "latency", cases, 2);
}
