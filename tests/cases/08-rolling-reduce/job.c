// SPDX-License-Identifier: Apache-2.0
// Delays by airport: the figures so far, after each flight.
//
//     leat run job.so -- in.tsv          origin, count, sum, least and greatest delay
//     leat run job.so -- in.tsv sum      origin and one of them: sum, min or max
#include <leat/leat.h>
#include <string.h>

typedef struct {
    int64_t id;
    int64_t time;
    leat_str origin, destination;
    int64_t delay, distance;
} flight;
LEAT_RECORD(flight, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(time, LEAT_TIMESTAMP),
            LEAT_FIELD(origin, LEAT_STR), LEAT_FIELD(destination, LEAT_STR),
            LEAT_FIELD(delay, LEAT_I64), LEAT_FIELD(distance, LEAT_I64));

typedef struct {
    leat_str origin;
    int64_t count, sum, least, greatest;
} delays;
LEAT_RECORD(delays, LEAT_FIELD(origin, LEAT_STR), LEAT_FIELD(count, LEAT_I64),
            LEAT_FIELD(sum, LEAT_I64), LEAT_FIELD(least, LEAT_I64), LEAT_FIELD(greatest, LEAT_I64));

// Each flight is the figures of itself, so a reduce gives those of all.
static int of_one(leat_ctx *ctx, const void *in, void *out)
{
    const flight *f = in;
    *(delays *)out = (delays){f->origin, 1, f->delay, f->delay, f->delay};
    return 0;
}

static int merge(leat_ctx *ctx, void *accumulator, const void *in)
{
    delays *so_far = accumulator;
    const delays *one = in;
    so_far->count += one->count;
    so_far->sum += one->sum;
    if (one->least < so_far->least)
        so_far->least = one->least;
    if (one->greatest > so_far->greatest)
        so_far->greatest = one->greatest;
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    const leat_csv_options tsv = {.delimiter = '\t', .no_header = true, .missing = "\\N"};
    if (argc != 2 && argc != 3) {
        leat_env_fail(env, LEAT_EINVAL, "usage: job.so FILE [sum|min|max]");
        return;
    }
    // One reader, so that the flights of each airport stay in order.
    leat_stream *flights = leat_read_csv(env, argv[1], LEAT_TYPE(flight), &tsv);
    leat_parallelism(flights, 1);
    leat_stream *result;
    if (argc == 2) {
        leat_stream *ones = leat_parallelism(leat_map(flights, of_one, LEAT_TYPE(delays)), 1);
        result = leat_reduce(leat_key_by(ones, "origin"), merge);
    } else {
        leat_stream *keyed = leat_key_by(flights, "origin");
        leat_stream *one = strcmp(argv[2], "sum") == 0   ? leat_sum(keyed, "delay")
                           : strcmp(argv[2], "min") == 0 ? leat_min(keyed, "delay")
                                                         : leat_max(keyed, "delay");
        result = leat_project(one, "origin, delay", NULL);
    }
    leat_parallelism(leat_print(result), 1);
}
