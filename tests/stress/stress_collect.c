// SPDX-License-Identifier: Apache-2.0
// Collections, generators and file sinks under random bounds: one thread takes records while
// several subtasks put them, jobs come to their end, fail or are cancelled at a random moment, and
// whoever waits for a record must be told. A job that ended by itself must have given each number
// once and left its file; any other must have left none. A watchdog ends the program when a job
// takes too long.
//
//     stress_collect [SECONDS [SEED]]
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "leat/leat.h"
#include "seeded.h"

enum { MOST = 5000 };

static char output[64];

// What becomes of a job; each but the first at a random index.
typedef enum fate { ENDS, FAILS, CANCELLED } fate;

typedef struct plan {
    fate fate;
    int64_t count, at; // records; where it fails or is cancelled
    uint32_t parallelism;
    double per_second;
    leat_collection_options options;
    uint32_t exchange;
} plan;

static int generate(leat_ctx *ctx, int64_t index, void *out)
{
    const plan *p = leat_ctx_user_data(ctx);
    *(int64_t *)out = index;
    return p->fate == FAILS && index == p->at ? leat_fail(ctx, "as planned") : 0;
}

static leat_env *build(plan *p, leat_collection *collection)
{
    leat_env *env;
    if (leat_env_create(NULL, &env) != LEAT_OK)
        wrong("no environment", 0, 0);
    leat_env_set_parallelism(env, p->parallelism);
    leat_env_set(env, "workers", below(2) ? "1" : "3");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_stream *in =
        leat_generate(env, generate, p->count, p->per_second, leat_type_scalar(LEAT_I64));
    leat_user_data(in, p);
    leat_stream *moved = p->exchange == 0   ? in
                         : p->exchange == 1 ? leat_rebalance(in)
                                            : leat_blocking_exchange(in);
    leat_collect_records(moved, collection);
    leat_file_sink_options options = {.no_sync = true};
    leat_write_file(in, output, &options);
    return env;
}

typedef struct taker {
    leat_collection *collection;
    _Atomic int64_t taken;
    unsigned char seen[MOST];
} taker;

static void *take(void *arg)
{
    taker *t = arg;
    const void *record;
    leat_err err;
    while ((err = leat_collection_next(t->collection, t->taken % 3 ? -1 : 1, &record)) !=
           LEAT_ECLOSED) {
        if (err == LEAT_EAGAIN)
            continue;
        int64_t n = *(const int64_t *)record;
        if (n < 0 || n >= MOST || t->seen[n]++)
            wrong("a wrong number", n, t->taken);
        t->taken++;
    }
    return NULL;
}

static void check(const plan *p, leat_err result, const taker *t)
{
    bool there = access(output, F_OK) == 0;
    bool ended = result == LEAT_OK;
    if (p->fate == ENDS && !ended)
        wrong("a job that should end", result, 0);
    if (p->fate == FAILS && result != LEAT_EUSER)
        wrong("a job that should fail", result, 0);
    if (ended && t->taken != p->count)
        wrong("records are missing", t->taken, p->count);
    if (ended != there)
        wrong("the file of a job", result, there);
    char command[96];
    for (uint32_t i = 1; there && p->parallelism > 1 && i <= p->parallelism; i++) {
        snprintf(command, sizeof command, "%s/%u", output, i);
        if (unlink(command) != 0)
            wrong("a part is missing", i, p->parallelism);
    }
    if (there && (p->parallelism > 1 ? rmdir(output) : unlink(output)) != 0)
        wrong("more than the parts", 0, p->parallelism);
}

static void round_of(void)
{
    int64_t count = below(MOST);
    plan p = {.fate = (fate)below(3),
              .count = count,
              .parallelism = 1 + below(4),
              .per_second = below(3) ? 0 : 100000,
              .options = {.max_records = 1 + below(200), .max_bytes = 1 + below(10000)},
              .exchange = below(3)};
    p.at = count ? below((uint32_t)count) : 0;
    if (!count)
        p.fate = ENDS;
    taker *t = calloc(1, sizeof *t);
    leat_runtime *runtime;
    leat_job *job;
    pthread_t thread;
    if (!t || leat_collection_create(&p.options, &t->collection) != LEAT_OK)
        wrong("no memory", 0, 0);
    leat_env *env = build(&p, t->collection);
    if (leat_runtime_create(env, &runtime, NULL, 0) != LEAT_OK ||
        pthread_create(&thread, NULL, take, t) != 0 || leat_start(runtime, env, &job) != LEAT_OK)
        wrong("no job", 0, 0);
    if (p.fate == CANCELLED) {
        while (t->taken < p.at && leat_job_get_state(job) == LEAT_JOB_RUNNING)
            usleep(50);
        leat_job_cancel(job);
    }
    leat_err result = leat_job_wait(job, -1);
    pthread_join(thread, NULL);
    leat_job_destroy(&job);
    check(&p, result, t);
    leat_runtime_destroy(&runtime);
    leat_collection_destroy(&t->collection);
    leat_env_destroy(&env);
    free(t);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t end_s = clock_s() + seconds, rounds = 0;
    char folder[] = "/tmp/leat-collect-XXXXXX";
    if (!mkdtemp(folder))
        wrong("no folder", 0, 0);
    snprintf(output, sizeof output, "%s/out", folder);
    start_watchdog();
    do {
        random_now = seed_now = seed + (uint64_t)rounds;
        feed_watchdog();
        round_of();
        rounds++;
    } while (clock_s() < end_s);
    // Nothing may be left in it.
    if (rmdir(folder) != 0)
        wrong("files are left", rounds, 0);
    printf("%" PRId64 " jobs\n", rounds);
    return 0;
}
