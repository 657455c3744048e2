// SPDX-License-Identifier: Apache-2.0
// Several jobs at once in one process: two runtimes, and on each several threads that build, run,
// watch and now and then cancel jobs of their own. What each job gives is worked out beforehand, so
// nothing of another job may show.
//
//     stress_jobs [SECONDS [SEED]]
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "leat/leat.h"

enum { RUNTIMES = 2, THREADS = 3, KEYS = 7 };

typedef struct {
    int64_t key, sum;
} total;
LEAT_RECORD(total, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(sum, LEAT_I64));

typedef struct client {
    leat_runtime *runtime;
    uint64_t random;
    int64_t factor; // tells the jobs of one client from those of all others
    uint64_t finished, cancelled;
} client;

static _Atomic bool over;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    abort();
}

static uint32_t below(client *c, uint32_t bound)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((c->random >> 33) % bound);
}

static int multiply(leat_ctx *ctx, const void *in, void *out)
{
    int64_t n = *(const int64_t *)in;
    *(total *)out = (total){n % KEYS, n * *(const int64_t *)leat_ctx_user_data(ctx)};
    leat_counter_add(leat_ctx_counter(ctx, "multiplied"), 1);
    return 0;
}

static leat_env *build(client *c, int64_t last, leat_collection **totals)
{
    leat_env *env = NULL;
    if (leat_env_create(NULL, &env) || leat_collection_create(NULL, totals))
        die("build", "out of memory");
    leat_env_set_parallelism(env, 1 + below(c, 3));
    leat_stream *numbers = leat_sequence(env, 1, last);
    leat_stream *products = leat_map(numbers, multiply, LEAT_TYPE(total));
    leat_user_data(products, &c->factor);
    leat_stream *sums = leat_final_only(leat_sum(leat_key_by(products, "key"), "sum"));
    leat_collect_records(sums, *totals);
    return env;
}

static int64_t take_all(leat_collection *totals)
{
    int64_t sum = 0;
    const void *record;
    while (leat_collection_next(totals, -1, &record) == LEAT_OK)
        sum += ((const total *)record)->sum;
    return sum;
}

static void run_one(client *c)
{
    int64_t last = 1 + below(c, 20000);
    bool cancel = below(c, 5) == 0;
    leat_collection *totals;
    leat_env *env = build(c, last, &totals);
    leat_job *job;
    if (leat_start(c->runtime, env, &job))
        die("start", leat_env_fault(env, 0));
    if (cancel)
        leat_job_cancel(job);
    for (uint32_t i = 0; i < leat_job_task_count(job); i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
    }
    int64_t sum = take_all(totals);
    leat_err err = leat_job_wait(job, -1);
    if (err && !(cancel && err == LEAT_ECANCELLED))
        die("job", leat_job_failure(job));
    if (!err && sum != c->factor * (last * (last + 1) / 2))
        die("job", "a wrong sum");
    c->finished += !err;
    c->cancelled += err != LEAT_OK;
    leat_job_destroy(&job);
    leat_collection_destroy(&totals);
    leat_env_destroy(&env);
}

static void *client_main(void *arg)
{
    while (!atomic_load(&over))
        run_one(arg);
    return NULL;
}

static leat_runtime *new_runtime(void)
{
    leat_env *env = NULL;
    leat_runtime *runtime = NULL;
    char why[200] = "";
    if (leat_env_create(NULL, &env))
        die("runtime", "out of memory");
    leat_env_set(env, "workers", "2");
    leat_env_set(env, "memory.segment-size", "4 KiB");
    if (leat_runtime_create(env, &runtime, why, sizeof why))
        die("runtime", why);
    leat_env_destroy(&env);
    return runtime;
}

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    leat_runtime *runtimes[RUNTIMES];
    client clients[RUNTIMES * THREADS];
    pthread_t threads[RUNTIMES * THREADS];
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    for (int i = 0; i < RUNTIMES; i++)
        runtimes[i] = new_runtime();
    for (int i = 0; i < RUNTIMES * THREADS; i++) {
        clients[i] = (client){.runtime = runtimes[i % RUNTIMES],
                              .random = seed + (uint64_t)i * 77,
                              .factor = 1000 + i};
        if (pthread_create(&threads[i], NULL, client_main, &clients[i]))
            die("thread", "cannot be made");
    }
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    atomic_store(&over, true);
    uint64_t finished = 0, cancelled = 0;
    for (int i = 0; i < RUNTIMES * THREADS; i++) {
        pthread_join(threads[i], NULL);
        finished += clients[i].finished;
        cancelled += clients[i].cancelled;
    }
    for (int i = 0; i < RUNTIMES; i++)
        leat_runtime_destroy(&runtimes[i]);
    printf("%" PRIu64 " jobs finished, %" PRIu64 " cancelled\n", finished, cancelled);
    return finished == 0;
}
