// SPDX-License-Identifier: Apache-2.0
// What the tests of clusters submit: the first argument says which job.
//
//     sum COUNT RATE      the sums of 0 … COUNT-1 by last digit, printed at the end
//     stall COUNT SECONDS as sum, but one subtask sleeps at record 1000
//     print COUNT         the numbers 1 … COUNT
//     crash HOW AT        the operator "boom" dies at index AT: segv abort fpe overflow
//                         leap exit
//     fail AT             the same operator fails
//     slow MICROSECONDS   an endless source before "slow sink", which sleeps for each record
//     stuck               a sink that never returns
//     chat COUNT          a line of the log for each of so many records
//     random              a job function that is not deterministic
//     build fail|crash    a job function that goes well in the client only (LEAT_JOB_CLIENT is set
//     there)
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/leat.h"

typedef struct {
    int64_t digit, sum;
} sum;
LEAT_RECORD(sum, LEAT_FIELD(digit, LEAT_I64), LEAT_FIELD(sum, LEAT_I64));

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    *(sum *)out = (sum){index % 10, index};
    return 0;
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((sum *)accumulator)->sum += ((const sum *)in)->sum;
    return 0;
}

static int count(leat_ctx *ctx, const void *in)
{
    leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "records", LEAT_ACCUMULATOR_SUM_I64), 1);
    return 1;
}

static int hold(leat_ctx *ctx, const void *in)
{
    const int64_t *seconds = leat_ctx_user_data(ctx);
    if (((const sum *)in)->sum == 1000)
        sleep((unsigned)*seconds);
    return 1;
}

static void stalled(leat_env *env, int64_t records, int64_t seconds)
{
    int64_t *plan = leat_env_alloc(env, sizeof *plan);
    if (!plan)
        return;
    *plan = seconds;
    leat_stream *numbers = leat_generate(env, make, records, 0, LEAT_TYPE(sum));
    leat_stream *held = leat_name(leat_filter(leat_rebalance(numbers), hold), "hold");
    leat_user_data(held, plan);
    leat_stream *added = leat_final_only(leat_reduce(leat_key_by(held, "digit"), add));
    leat_parallelism(leat_print(added), 1);
}

static void sums(leat_env *env, int64_t records, double rate)
{
    leat_stream *numbers = leat_generate(env, make, records, rate, LEAT_TYPE(sum));
    leat_stream *counted = leat_name(leat_filter(numbers, count), "count");
    leat_stream *added = leat_final_only(leat_reduce(leat_key_by(counted, "digit"), add));
    leat_parallelism(leat_print(added), 1);
}

// --- operators that do harm ---

typedef struct harmful_plan {
    const char *how;
    int64_t at;
} harmful_plan;

// Each call has the frame of the one before, so that none can take the other's place.
static int overflow(int depth, const char *before)
{
    char frame[4096];
    if (depth < 0)
        return 0;
    memset(frame, depth + before[depth % 4096], sizeof frame);
    return overflow(depth + 1, frame) + frame[depth % 4096];
}

// The same with frames much larger than a page, of which only the far end is used, 64 bytes that
// each hand one on to the next.
__attribute__((noinline)) static int leap(int depth, const char *before)
{
    char frame[16 * 1024];
    if (depth < 0)
        return 0;
    frame[depth & 63] = (char)(depth + before[(depth - 1) & 63]);
    return leap(depth + 1, frame) + frame[depth & 63];
}

static int boom(leat_ctx *ctx, const void *in, void *out)
{
    const harmful_plan *harm = leat_ctx_user_data(ctx);
    const sum *record = in;
    *(sum *)out = *record;
    if (record->sum != harm->at)
        return 0;
    if (!strcmp(harm->how, "fail"))
        return leat_fail(ctx, "record %lld is the one", (long long)record->sum);
    if (!strcmp(harm->how, "segv"))
        raise(SIGSEGV);
    if (!strcmp(harm->how, "abort"))
        abort();
    if (!strcmp(harm->how, "fpe"))
        raise(SIGFPE);
    if (!strcmp(harm->how, "exit"))
        exit(7);
    if (!strcmp(harm->how, "leap"))
        return leap(0, (const char[64]){0}) == 1;
    return overflow(0, (const char[4096]){0}) == 1;
}

static void harmful(leat_env *env, const char *how, const char *at)
{
    harmful_plan *h = leat_env_alloc(env, sizeof *h);
    if (!h)
        return;
    *h = (harmful_plan){how, atoll(at)};
    leat_stream *numbers = leat_generate(env, make, LEAT_UNBOUNDED, 10000, LEAT_TYPE(sum));
    leat_stream *harmed = leat_map(leat_rebalance(numbers), boom, LEAT_TYPE(sum));
    leat_discard(leat_user_data(leat_name(harmed, "boom"), h));
}

static int slow(leat_ctx *ctx, const void *in)
{
    const harmful_plan *harm = leat_ctx_user_data(ctx);
    if (harm->at < 0)
        for (;;)
            pause();
    usleep((useconds_t)harm->at);
    return 0;
}

static void slowed(leat_env *env, int64_t microseconds)
{
    harmful_plan *h = leat_env_alloc(env, sizeof *h);
    if (!h)
        return;
    h->at = microseconds;
    leat_stream *numbers = leat_generate(env, make, LEAT_UNBOUNDED, 0, LEAT_TYPE(sum));
    leat_stream *sink = leat_sink(leat_rebalance(numbers), slow);
    leat_user_data(leat_name(sink, "slow sink"), h);
}

static int chat(leat_ctx *ctx, const void *in)
{
    leat_ctx_log(ctx, LEAT_LOG_WARN, "chatter");
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *first = argc > 2 ? argv[2] : "0";
    const char *second = argc > 3 ? argv[3] : "0";
    bool in_client = getenv("LEAT_JOB_CLIENT") != NULL;
    if (!strcmp(mode, "sum"))
        sums(env, atoll(first), strtod(second, NULL));
    else if (!strcmp(mode, "stall"))
        stalled(env, atoll(first), atoll(second));
    else if (!strcmp(mode, "print"))
        leat_print(leat_sequence(env, 1, atoll(first)));
    else if (!strcmp(mode, "crash"))
        harmful(env, first, second);
    else if (!strcmp(mode, "fail"))
        harmful(env, "fail", first);
    else if (!strcmp(mode, "slow"))
        slowed(env, atoll(first));
    else if (!strcmp(mode, "stuck"))
        slowed(env, -1);
    else if (!strcmp(mode, "chat"))
        leat_sink(leat_sequence(env, 1, atoll(first)), chat);
    else if (!strcmp(mode, "random"))
        leat_discard(leat_name(leat_sequence(env, 0, 10), in_client ? "one" : "other"));
    else if (!strcmp(mode, "build") && in_client)
        leat_discard(leat_sequence(env, 0, 10));
    else if (!strcmp(mode, "build") && !strcmp(first, "crash"))
        raise(SIGSEGV);
    else
        leat_env_fail(env, LEAT_EINVAL, "no such job: \"%s\"", mode);
}
