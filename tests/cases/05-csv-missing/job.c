// SPDX-License-Identifier: Apache-2.0
// Bird strikes by state: rows, cost and speed, where missing values do not count.
//
//     leat run job.so -- in.csv                    everything, by an aggregation of one's own
//     leat run job.so -- in.csv sum cost           one value of each state: sum, min or max
#include <leat/leat.h>
#include <string.h>

typedef struct {
    leat_str state;
    const int64_t *cost, *speed;
} strike;
LEAT_RECORD(strike, LEAT_FIELD(state, LEAT_STR), LEAT_FIELD_OPTIONAL(cost, LEAT_SCALAR(LEAT_I64)),
            LEAT_FIELD_OPTIONAL(speed, LEAT_SCALAR(LEAT_I64)));

typedef struct {
    leat_str state;
    int64_t rows;
    int64_t costs, cost_sum, cost_max;
    int64_t speeds, speed_min, speed_max;
} totals;
LEAT_RECORD(totals, LEAT_FIELD(state, LEAT_STR), LEAT_FIELD(rows, LEAT_I64),
            LEAT_FIELD(costs, LEAT_I64), LEAT_FIELD(cost_sum, LEAT_I64),
            LEAT_FIELD(cost_max, LEAT_I64), LEAT_FIELD(speeds, LEAT_I64),
            LEAT_FIELD(speed_min, LEAT_I64), LEAT_FIELD(speed_max, LEAT_I64));

typedef struct {
    leat_str state;
    int64_t rows;
    const int64_t *cost_sum, *cost_max;
    int64_t speeds;
    const int64_t *speed_min, *speed_max;
} summary;
LEAT_RECORD(summary, LEAT_FIELD(state, LEAT_STR), LEAT_FIELD(rows, LEAT_I64),
            LEAT_FIELD_OPTIONAL(cost_sum, LEAT_SCALAR(LEAT_I64)),
            LEAT_FIELD_OPTIONAL(cost_max, LEAT_SCALAR(LEAT_I64)), LEAT_FIELD(speeds, LEAT_I64),
            LEAT_FIELD_OPTIONAL(speed_min, LEAT_SCALAR(LEAT_I64)),
            LEAT_FIELD_OPTIONAL(speed_max, LEAT_SCALAR(LEAT_I64)));

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    totals *t = accumulator;
    const strike *s = in;
    t->state = s->state;
    t->rows++;
    if (s->cost) {
        t->cost_sum += *s->cost;
        if (t->costs++ == 0 || *s->cost > t->cost_max)
            t->cost_max = *s->cost;
    }
    if (s->speed) {
        bool first = t->speeds++ == 0;
        if (first || *s->speed < t->speed_min)
            t->speed_min = *s->speed;
        if (first || *s->speed > t->speed_max)
            t->speed_max = *s->speed;
    }
    return 0;
}

static int summarise(leat_ctx *ctx, const void *accumulator, void *out)
{
    const totals *t = accumulator;
    *(summary *)out = (summary){
        .state = t->state,
        .rows = t->rows,
        .cost_sum = t->costs ? &t->cost_sum : NULL,
        .cost_max = t->costs ? &t->cost_max : NULL,
        .speeds = t->speeds,
        .speed_min = t->speeds ? &t->speed_min : NULL,
        .speed_max = t->speeds ? &t->speed_max : NULL,
    };
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    static const leat_column columns[] = {
        {"state", "Origin State"},
        {"cost", "Cost Total $"},
        {"speed", "Speed IAS in knots"},
    };
    // No value holds a line break, so that the file may be read in parallel.
    const leat_csv_options csv = {.columns = columns, .column_count = 3, .no_multiline = true};
    if (argc != 2 && argc != 4) {
        leat_env_fail(env, LEAT_EINVAL, "usage: job.so FILE [sum|min|max cost|speed]");
        return;
    }
    leat_stream *strikes = leat_read_csv(env, argv[1], LEAT_TYPE(strike), &csv);
    leat_stream *keyed = leat_key_by(strikes, "state");
    leat_stream *result;
    if (argc == 2) {
        leat_aggregate_fns fns = {.add = add, .result = summarise};
        result = leat_aggregate(keyed, &fns, LEAT_TYPE(totals), LEAT_TYPE(summary));
        leat_final_only(result);
    } else {
        leat_stream *one = strcmp(argv[2], "sum") == 0   ? leat_sum(keyed, argv[3])
                           : strcmp(argv[2], "min") == 0 ? leat_min(keyed, argv[3])
                                                         : leat_max(keyed, argv[3]);
        leat_final_only(one);
        result =
            leat_project(one, strcmp(argv[3], "cost") == 0 ? "state, cost" : "state, speed", NULL);
    }
    leat_parallelism(leat_print(result), 1);
}
