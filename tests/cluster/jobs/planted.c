// SPDX-License-Identifier: Apache-2.0
// A random graph of calm operators, and one, "planted", that begins to misbehave at a given time.
//
//     planted SEED KIND BEGIN    BEGIN in ms since the epoch, 0: never
//
// KIND: slow (each record takes 20 ms), blocking (200 ms, and says so), stuck (never returns),
// stuck-blocking, skew (all records have one key; each takes 4 ms), slow-task (its first subtask
// takes 20 ms), print (what it prints becomes much), opening (its open function takes until BEGIN),
// calm.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "leat/leat.h"

enum { RATE = 400, SLOW_MS = 20, BLOCKING_MS = 200, SKEW_MS = 4, TEXT_SIZE = 8000, MOST_OPS = 5 };

typedef struct {
    int64_t index, key;
    leat_str text;
} item;
LEAT_RECORD(item, LEAT_FIELD(index, LEAT_I64), LEAT_FIELD(key, LEAT_I64),
            LEAT_FIELD(text, LEAT_STR));

// Written by the job function, before anything runs.
static const char *kind;
static int64_t begin_ms;
static char filler[TEXT_SIZE];

static bool has_begun(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return begin_ms && (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 >= begin_ms;
}

static void pause_ms(int ms)
{
    struct timespec rest = {.tv_nsec = ms * 1000000L};
    while (nanosleep(&rest, &rest) != 0)
        ;
}

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    bool skewed = !strcmp(kind, "skew") && has_begun();
    // Large ones, so that they do not wait in buffers for long.
    bool quiet = !strcmp(kind, "print") && !has_begun();
    *(item *)out = (item){index, skewed ? 0 : index, {filler, quiet ? 0 : TEXT_SIZE}};
    return 0;
}

static int calm(leat_ctx *ctx, const void *in, void *out)
{
    *(item *)out = *(const item *)in;
    return 0;
}

static void be_slow(leat_ctx *ctx, bool stuck, bool declared)
{
    if (declared)
        leat_blocking_begin(ctx);
    do
        pause_ms(declared ? BLOCKING_MS : SLOW_MS);
    while (stuck && !leat_ctx_cancelled(ctx));
    if (declared)
        leat_blocking_end(ctx);
}

static int planted(leat_ctx *ctx, const void *in, void *out)
{
    *(item *)out = *(const item *)in;
    if (!strcmp(kind, "skew"))
        pause_ms(SKEW_MS);
    if (!has_begun())
        return 0;
    bool stuck = !strncmp(kind, "stuck", 5);
    bool declared = !strcmp(kind, "blocking") || !strcmp(kind, "stuck-blocking");
    bool chosen = !strcmp(kind, "slow-task") && leat_ctx_subtask(ctx) == 0;
    if (stuck || declared || chosen || !strcmp(kind, "slow"))
        be_slow(ctx, stuck, declared);
    return 0;
}

static int open_planted(leat_ctx *ctx)
{
    while (!strcmp(kind, "opening") && !has_begun() && !leat_ctx_cancelled(ctx))
        pause_ms(SLOW_MS);
    return 0;
}

static int close_planted(leat_ctx *ctx)
{
    return 0;
}

// --- the graph ---

static uint32_t pick(uint64_t *seed, uint32_t count)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

static leat_stream *connect(uint64_t *seed, leat_stream *from, bool uneven)
{
    if (uneven)
        return !strcmp(kind, "skew") ? leat_key_by(from, "key") : leat_rebalance(from);
    switch (pick(seed, 4)) {
    case 0:
        return leat_key_by(from, "key");
    case 1:
        return leat_shuffle(from);
    default:
        return leat_rebalance(from);
    }
}

static leat_stream *add_planted(uint64_t *seed, leat_stream *from)
{
    bool uneven = !strcmp(kind, "skew") || !strcmp(kind, "slow-task");
    leat_stream *op = leat_map(connect(seed, from, uneven), planted, LEAT_TYPE(item));
    leat_rich(op, open_planted, close_planted);
    leat_disable_chaining(leat_name(op, "planted"));
    return leat_parallelism(op, uneven ? 3 : 1 + pick(seed, 3));
}

LEAT_JOB(env, argc, argv)
{
    if (argc != 4) {
        leat_env_fail(env, LEAT_EINVAL, "usage: planted SEED KIND BEGIN");
        return;
    }
    uint64_t seed = strtoull(argv[1], NULL, 10);
    kind = argv[2];
    begin_ms = strtoll(argv[3], NULL, 10);
    memset(filler, 'x', sizeof filler);
    leat_stream *ops[MOST_OPS + 1];
    bool used[MOST_OPS + 1] = {false};
    uint32_t count = 2 + pick(&seed, MOST_OPS - 1), place = 1 + pick(&seed, count);
    ops[0] = leat_generate(env, make, LEAT_UNBOUNDED, RATE, LEAT_TYPE(item));
    leat_parallelism(leat_name(ops[0], "source"), 1);
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t from = pick(&seed, 3) ? i - 1 : pick(&seed, i);
        used[from] = true;
        if (i == place && strcmp(kind, "print") != 0) {
            ops[i] = add_planted(&seed, ops[from]);
            continue;
        }
        ops[i] = leat_map(connect(&seed, ops[from], false), calm, LEAT_TYPE(item));
        leat_parallelism(leat_disable_chaining(leat_name(ops[i], "calm")), 1 + pick(&seed, 3));
    }
    if (!strcmp(kind, "print")) {
        leat_stream *loud = leat_print(leat_rebalance(ops[place]));
        leat_parallelism(leat_name(loud, "planted"), 1);
        used[place] = true;
    }
    for (uint32_t i = 0; i <= count; i++)
        if (!used[i])
            leat_name(leat_discard(ops[i]), "end");
}
