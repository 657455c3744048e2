// SPDX-License-Identifier: Apache-2.0
// Counts the words of standard input, one a line, by metrics and accumulators of every kind; the
// word "boom" makes the job fail, or with an argument is rejected.
#include <string.h>

#include "leat/leat.h"

static int is(const leat_str *word, const char *text)
{
    return word->size == strlen(text) && !memcmp(word->data, text, word->size);
}

static int count(leat_ctx *ctx, const void *in)
{
    const leat_str *word = in;
    int64_t size = (int64_t)word->size;
    if (is(word, "boom"))
        return leat_fail(ctx, "boom");
    leat_counter_add(leat_ctx_counter(ctx, "bytes"), size);
    leat_gauge_set(leat_ctx_gauge(ctx, "half"), (double)size / 2);
    leat_meter_mark(leat_ctx_meter(ctx, "words"), 1);
    leat_histogram_record(leat_ctx_histogram(ctx, "sizes"), size);
    static const struct {
        const char *name;
        leat_accumulator_kind kind;
    } kinds[] = {
        {"bytes", LEAT_ACCUMULATOR_SUM_I64},      {"half bytes", LEAT_ACCUMULATOR_SUM_F64},
        {"mean size", LEAT_ACCUMULATOR_AVERAGE},  {"shortest", LEAT_ACCUMULATOR_MIN_I64},
        {"longest", LEAT_ACCUMULATOR_MAX_F64},    {"sizes", LEAT_ACCUMULATOR_HISTOGRAM},
        {"all sizes", LEAT_ACCUMULATOR_LIST_I64},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        leat_accumulator *a = leat_ctx_accumulator(ctx, kinds[i].name, kinds[i].kind);
        if (kinds[i].kind == LEAT_ACCUMULATOR_SUM_F64)
            leat_accumulator_add_f64(a, (double)size / 2);
        else
            leat_accumulator_add_i64(a, size);
    }
    leat_ctx_accumulator(ctx, "nothing", LEAT_ACCUMULATOR_AVERAGE);
    leat_accumulator_add_str(leat_ctx_accumulator(ctx, "seen", LEAT_ACCUMULATOR_LIST_STR), *word);
    return 1;
}

LEAT_JOB(env, argc, argv)
{
    leat_stream *counted = leat_name(leat_filter(leat_read_text(env, "-"), count), "counting");
    if (argc > 1)
        leat_on_error(counted, LEAT_ON_ERROR_SKIP);
    leat_print(counted);
}
