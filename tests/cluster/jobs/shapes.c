// SPDX-License-Identifier: Apache-2.0
// A job of some random shape, whose result is always the same: the sums of 0 … COUNT-1 by last
// digit.
//
//     SEED COUNT RATE
//
// Between the source and the sums the numbers are split, sent on by exchanges of all kinds to
// operators of different parallelism, and put together again; each gets through once.
#include <stdlib.h>

#include "leat/leat.h"

typedef struct sum {
    int64_t digit, sum;
} sum;
LEAT_RECORD(sum, LEAT_FIELD(digit, LEAT_I64), LEAT_FIELD(sum, LEAT_I64));

// The same in the client and in each task manager, so it goes by nothing but the seed.
typedef struct dice {
    uint64_t state;
    uint32_t parallelism; // the most
} dice;

static uint32_t roll(dice *self, uint32_t sides)
{
    self->state = self->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(self->state >> 33) % sides;
}

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    *(sum *)out = (sum){index % 10, index};
    return 0;
}

static int pass(leat_ctx *ctx, const void *in, void *out)
{
    *(sum *)out = *(const sum *)in;
    return 0;
}

static int is_even(leat_ctx *ctx, const void *in)
{
    return ((const sum *)in)->sum % 2 == 0;
}

static int is_odd(leat_ctx *ctx, const void *in)
{
    return ((const sum *)in)->sum % 2 != 0;
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((sum *)accumulator)->sum += ((const sum *)in)->sum;
    return 0;
}

static leat_stream *exchanged(dice *d, leat_stream *in)
{
    switch (roll(d, 5)) {
    case 0:
        return leat_rebalance(in);
    case 1:
        return leat_shuffle(in);
    case 2:
        return leat_rescale(in);
    case 3:
        return leat_key_by(in, "digit");
    default:
        return leat_global(in);
    }
}

static leat_stream *passed(dice *d, leat_stream *in)
{
    leat_stream *out = leat_map(exchanged(d, in), pass, LEAT_TYPE(sum));
    leat_parallelism(out, 1 + roll(d, d->parallelism));
    return out;
}

static leat_stream *split(dice *d, leat_stream *in)
{
    leat_stream *halves[2];
    halves[0] = passed(d, leat_filter(in, is_even));
    halves[1] = passed(d, leat_filter(in, is_odd));
    return leat_union(halves, 2);
}

LEAT_JOB(env, argc, argv)
{
    dice d = {.state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, .parallelism = 3};
    int64_t count = argc > 2 ? atoll(argv[2]) : 1000;
    double rate = argc > 3 ? strtod(argv[3], NULL) : 0;
    leat_stream *stream = leat_generate(env, make, count, rate, LEAT_TYPE(sum));
    leat_parallelism(stream, 1 + roll(&d, d.parallelism));
    for (uint32_t left = 1 + roll(&d, 4); left > 0; left--)
        stream = roll(&d, 3) == 0 ? split(&d, stream) : passed(&d, stream);
    leat_stream *added = leat_final_only(leat_reduce(leat_key_by(stream, "digit"), add));
    leat_parallelism(added, 1 + roll(&d, d.parallelism));
    leat_parallelism(leat_print(added), 1);
}
