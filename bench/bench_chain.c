// SPDX-License-Identifier: Apache-2.0
// The chain sequence → map → filter → map → discard, which is one task on one worker, against a
// loop of C that makes one indirect call a stage. In both the last map adds up what it makes, so
// that nothing can be left out unnoticed.
#include "bench/harness.h"
#include "bench/job.h"

enum { STAGES = 4, DEFAULT_MILLIONS = 100, QUICK_RECORDS = 300000 };

// What came through the filter. One thread at a time runs the chain, and it is joined before this
// is read.
static struct {
    uint64_t count, sum;
} passed;

static uint64_t digest(uint64_t count, uint64_t sum)
{
    return sum * 31 + count;
}

// --- the loop ------------------------------------------------------------------------------------

// False drops the number.
typedef bool (*stage)(int64_t *number);

static bool twice(int64_t *number)
{
    *number *= 2;
    return true;
}

static bool not_by_three(int64_t *number)
{
    return *number % 3 != 0;
}

static bool one_more(int64_t *number)
{
    *number += 1;
    passed.sum += (uint64_t)*number;
    passed.count++;
    return true;
}

static bool drop(int64_t *number)
{
    return false;
}

static int run_loop(void *context, bench_outcome *outcome)
{
    const int64_t *records = context;
    stage table[STAGES] = {twice, not_by_three, one_more, drop};
    const stage *stages = table;
    // The compiler must not know what is called, as a runtime does not.
    __asm__("" : "+r"(stages) : : "memory");
    passed.count = passed.sum = 0;
    for (int64_t i = 0; i < *records; i++) {
        int64_t number = i;
        for (int s = 0; s < STAGES; s++)
            if (!stages[s](&number))
                break;
    }
    *outcome =
        (bench_outcome){.items = (uint64_t)*records, .checksum = digest(passed.count, passed.sum)};
    return 0;
}

// --- the job -------------------------------------------------------------------------------------

static int map_twice(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in * 2;
    return 0;
}

static int keep(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in % 3 != 0;
}

static int map_one_more(leat_ctx *ctx, const void *in, void *out)
{
    int64_t number = *(const int64_t *)in + 1;
    *(int64_t *)out = number;
    passed.sum += (uint64_t)number;
    passed.count++;
    return 0;
}

static int run_leat(void *context, bench_outcome *outcome)
{
    const int64_t *records = context;
    const leat_type *number = leat_type_scalar(LEAT_I64);
    leat_env *env = bench_env(1, 1);
    if (!env)
        return -1;
    leat_stream *numbers = leat_map(leat_sequence(env, 0, *records - 1), map_twice, number);
    leat_discard(leat_map(leat_filter(numbers, keep), map_one_more, number));
    passed.count = passed.sum = 0;
    int result = bench_execute(&env);
    *outcome =
        (bench_outcome){.items = (uint64_t)*records, .checksum = digest(passed.count, passed.sum)};
    return result;
}

static int setup(bench_case *self, const bench_options *options)
{
    static int64_t records;
    uint64_t n = options->quick
                     ? QUICK_RECORDS
                     : (options->size ? options->size : DEFAULT_MILLIONS) * UINT64_C(1000000);
    // Of 0 … n - 1 the multiples of three, 3k for k < m, are dropped; the others become 2i + 1.
    // The sum of that over all i is n², and over the dropped 3m(m - 1) + m.
    uint64_t m = (n + 2) / 3;
    records = (int64_t)n;
    self->context = &records;
    self->expected =
        (bench_outcome){.items = n, .checksum = digest(n - m, n * n - 3 * m * (m - 1) - m)};
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_variant variants[] = {{"indirect calls", run_loop, 0},
                                             {"leat", run_leat, 1 / 2.6}};
    bench_case cases[] = {{.name = "chain",
                           .unit = "records",
                           .variants = variants,
                           .variant_count = 2,
                           .setup = setup}};
    return bench_main(argc, argv, "chain", cases, 1);
}
