// SPDX-License-Identifier: Apache-2.0
// Many tasks on few workers: 500 pairs of tasks, a source and a sink each, on two workers, against
// two pairs that pass the same number of records. What is lost is the price of scheduling and of
// caches that hold too little.
#include "bench/harness.h"
#include "bench/job.h"

enum { WORKERS = 2, FEW = 2, MANY = 500, DEFAULT_MILLIONS = 50, QUICK_RECORDS = 100000 };

static int run_pairs(int64_t records, uint32_t pairs, bench_outcome *outcome)
{
    bench_total total = {0};
    leat_env *env = bench_env(WORKERS, pairs);
    if (!env)
        return -1;
    leat_disable_chaining(bench_add_up(leat_forward(leat_sequence(env, 0, records - 1)), &total));
    int result = bench_execute(&env);
    *outcome =
        (bench_outcome){.items = atomic_load(&total.count), .checksum = atomic_load(&total.sum)};
    return result;
}

static int run_few(void *context, bench_outcome *outcome)
{
    return run_pairs(*(const int64_t *)context, FEW, outcome);
}

static int run_many(void *context, bench_outcome *outcome)
{
    return run_pairs(*(const int64_t *)context, MANY, outcome);
}

static int setup(bench_case *self, const bench_options *options)
{
    static int64_t records;
    uint64_t n = options->quick
                     ? QUICK_RECORDS
                     : (options->size ? options->size : DEFAULT_MILLIONS) * UINT64_C(1000000);
    records = (int64_t)n;
    self->context = &records;
    self->expected = (bench_outcome){.items = n, .checksum = n * (n - 1) / 2};
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_variant variants[] = {{"2 pairs", run_few, 0}, {"500 pairs", run_many, 0.8}};
    bench_case cases[] = {{.name = "pairs",
                           .unit = "records",
                           .variants = variants,
                           .variant_count = 2,
                           .setup = setup}};
    return bench_main(argc, argv, "pairs", cases, 1);
}
