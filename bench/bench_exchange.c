// SPDX-License-Identifier: Apache-2.0
// Keyed exchange of {i64, i64}: two source tasks make records with 10,000 different keys, and two
// aggregating tasks count and sum by key, on two workers; against two bare threads that do the same
// with msgpack in segments through rings.
#include <stdio.h>
#include <stdlib.h>

#include "bench/bare_exchange.h"
#include "bench/harness.h"
#include "bench/job.h"

enum { PARALLELISM = 2, DEFAULT_MILLIONS = 40, QUICK_RECORDS = 200000, AVAILABLE_EVERY = 64 };

typedef struct pair {
    int64_t key, value;
} pair;
LEAT_RECORD(pair, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(value, LEAT_I64));

typedef struct folded {
    int64_t key, count, sum;
} folded;
LEAT_RECORD(folded, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(count, LEAT_I64),
            LEAT_FIELD(sum, LEAT_I64));

// --- the source ----------------------------------------------------------------------------------

typedef struct maker {
    leat_operator base;
    uint64_t next, end;
} maker;

static leat_err maker_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    maker *own = (maker *)self;
    uint64_t left = own->end - own->next, count = left < max_records ? left : max_records, i = 0;
    leat_err err = LEAT_OK;
    while (i < count && !err) {
        pair record = {exchange_key(own->next + i), (int64_t)(own->next + i)};
        err = leat_collect(out, &record);
        if (++i % AVAILABLE_EVERY == 0 && !leat_out_available(self->ctx))
            break;
    }
    own->next += i;
    *state = own->next == own->end ? LEAT_POLL_END : LEAT_POLL_MORE;
    leat_ctx_count_in(self->ctx, i, i * sizeof(pair));
    return err;
}

static void maker_dispose(leat_operator *self)
{
    free(self);
}

static leat_err maker_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "source: pairs", .poll = maker_poll, .dispose = maker_dispose};
    uint64_t records = *(const uint64_t *)factory->config;
    maker *made = malloc(sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    uint32_t subtask = leat_ctx_subtask(ctx);
    *made = (maker){.base = {.ops = &ops},
                    .next = records * subtask / PARALLELISM,
                    .end = records * (subtask + 1) / PARALLELISM};
    *op = &made->base;
    return LEAT_OK;
}

// --- the job -------------------------------------------------------------------------------------

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    folded *sums = accumulator;
    const pair *record = in;
    sums->key = record->key;
    sums->count++;
    sums->sum += record->value;
    return 0;
}

// What one subtask of the sink has seen; on a cache line of its own.
typedef struct tally {
    _Alignas(64) bare_sums sums;
} tally;

static int check(leat_ctx *ctx, const void *in)
{
    const folded *sums = in;
    tally *own = (tally *)leat_ctx_user_data(ctx) + leat_ctx_subtask(ctx);
    own->sums.records += (uint64_t)sums->count;
    own->sums.checksum += exchange_digest(sums->key, sums->count, sums->sum);
    return 0;
}

static int run_leat(void *context, bench_outcome *outcome)
{
    static const leat_aggregate_fns fns = {.add = add};
    tally tallies[PARALLELISM] = {0};
    leat_env *env = bench_env(2, PARALLELISM);
    if (!env)
        return -1;
    leat_stream *pairs =
        leat_source(env, "pairs", &(leat_factory){maker_create, context}, LEAT_TYPE(pair));
    leat_stream *sums =
        leat_aggregate(leat_key_by(pairs, "key"), &fns, LEAT_TYPE(folded), LEAT_TYPE(folded));
    leat_user_data(leat_sink(leat_final_only(sums), check), tallies);
    int result = bench_execute(&env);
    for (int i = 0; i < PARALLELISM; i++) {
        outcome->items += tallies[i].sums.records;
        outcome->checksum += tallies[i].sums.checksum;
    }
    return result;
}

static int run_bare(void *context, bench_outcome *outcome)
{
    bare_sums sums;
    if (bare_exchange(*(const uint64_t *)context, &sums) != 0)
        return -1;
    *outcome = (bench_outcome){.items = sums.records, .checksum = sums.checksum};
    return 0;
}

// What must come out, by counting without any exchange.
static int setup(bench_case *self, const bench_options *options)
{
    static uint64_t records;
    static int64_t counts[EXCHANGE_KEYS], sums[EXCHANGE_KEYS];
    records = options->quick
                  ? QUICK_RECORDS
                  : (options->size ? options->size : DEFAULT_MILLIONS) * UINT64_C(1000000);
    for (uint64_t i = 0; i < records; i++) {
        counts[exchange_key(i)]++;
        sums[exchange_key(i)] += (int64_t)i;
    }
    self->context = &records;
    self->expected = (bench_outcome){.items = records};
    for (int64_t key = 0; key < EXCHANGE_KEYS; key++)
        if (counts[key] > 0)
            self->expected.checksum += exchange_digest(key, counts[key], sums[key]);
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_variant variants[] = {{"bare threads", run_bare, 0},
                                             {"leat", run_leat, 1 / 2.5}};
    bench_case cases[] = {
        {.name = "keyed",
         .unit = "records",
         .variants = variants,
         .variant_count = 2,
         .setup = setup,
         .note = "the aim on two cores is 60 million a second; 90 million would be ahead of C++ "
                 "libraries that batch by hand"},
    };
    return bench_main(argc, argv, "exchange", cases, 1);
}
