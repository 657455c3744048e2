// SPDX-License-Identifier: Apache-2.0
// A loop: how many steps numbers take to 1 when even ones are halved, and odd ones are tripled and
// one is added. The job file iterate.so:
//
//     leat run iterate.so -- 10      the numbers 1 … 10, each with its steps
//
// Each record goes round until it has arrived; what has not leaves the operator by a side output
// that leads back to the head of the loop.
#include <leat/leat.h>
#include <stdlib.h>

typedef struct {
    int64_t start, now, steps;
} walk;
LEAT_RECORD(walk, LEAT_FIELD(start, LEAT_I64), LEAT_FIELD(now, LEAT_I64),
            LEAT_FIELD(steps, LEAT_I64));

static const leat_tag again = {"again", LEAT_TYPE(walk)};

static int begin(leat_ctx *ctx, const void *in, void *out)
{
    int64_t start = *(const int64_t *)in;
    *(walk *)out = (walk){.start = start, .now = start};
    return 0;
}

static int step(leat_ctx *ctx, const void *in, leat_out *out)
{
    walk w = *(const walk *)in;
    if (w.now == 1) {
        (void)leat_collect(out, &w);
        return 0;
    }
    if (w.now % 2 && w.now > (INT64_MAX - 1) / 3)
        return leat_fail(ctx, "%lld leads too far", (long long)w.start);
    w.now = w.now % 2 ? 3 * w.now + 1 : w.now / 2;
    w.steps++;
    (void)leat_collect_side(ctx, &again, &w);
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    static const leat_process_fns stepping = {.element = step};
    int64_t last = argc == 2 ? strtoll(argv[1], NULL, 10) : 0;
    if (last < 1) {
        leat_env_fail(env, LEAT_EINVAL, "usage: iterate.so -- LAST, a number above 0");
        return;
    }
    leat_env_set_name(env, "steps to one");
    leat_stream *walks = leat_map(leat_sequence(env, 1, last), begin, LEAT_TYPE(walk));
    // The loop ends when nothing has come back for a second.
    leat_stream *loop = leat_iterate(walks, 1000);
    leat_stream *arrived = leat_name(leat_process(loop, &stepping, LEAT_TYPE(walk)), "one step");
    leat_close_with(loop, leat_side_output(arrived, &again));
    leat_parallelism(leat_print(leat_project(arrived, "start, steps", NULL)), 1);
}
