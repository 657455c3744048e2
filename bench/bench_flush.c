// SPDX-License-Identifier: Apache-2.0
// The price of handing over each record at once: a source and a sink in two tasks on one worker,
// with a buffer timeout of 0 against segments that go out when they are full.
#include "bench/harness.h"
#include "bench/job.h"

enum { DEFAULT_MILLIONS = 20, QUICK_RECORDS = 100000 };

static int run_with_timeout(int64_t records, int64_t timeout_ms, bench_outcome *outcome)
{
    bench_total total = {0};
    leat_env *env = bench_env(1, 1);
    if (!env)
        return -1;
    leat_env_set_buffer_timeout(env, timeout_ms);
    leat_disable_chaining(bench_add_up(leat_sequence(env, 0, records - 1), &total));
    int result = bench_execute(&env);
    *outcome =
        (bench_outcome){.items = atomic_load(&total.count), .checksum = atomic_load(&total.sum)};
    return result;
}

static int run_full(void *context, bench_outcome *outcome)
{
    return run_with_timeout(*(const int64_t *)context, -1, outcome);
}

static int run_each(void *context, bench_outcome *outcome)
{
    return run_with_timeout(*(const int64_t *)context, 0, outcome);
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
    static const bench_variant variants[] = {{"full segments", run_full, 0},
                                             {"timeout 0", run_each, 0.3}};
    bench_case cases[] = {{.name = "flush",
                           .unit = "records",
                           .variants = variants,
                           .variant_count = 2,
                           .setup = setup}};
    return bench_main(argc, argv, "flush", cases, 1);
}
