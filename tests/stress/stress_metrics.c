// SPDX-License-Identifier: Apache-2.0
// Metrics and accumulators while they change: jobs of random size whose functions update one of
// each kind, and readers that look at all of them all the time. What the readers see must not run
// backwards, and the last look must find exactly what was done.
//
//     stress_metrics [SECONDS [SEED]]
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "leat/leat.h"

enum { READERS = 2, MOST_SUBTASKS = 4 };

static uint64_t seed_now, random_now;

static void wrong(const char *what, int64_t got, int64_t expected)
{
    fprintf(stderr, "seed %" PRIu64 ": %s: %" PRId64 ", not %" PRId64 "\n", seed_now, what, got,
            expected);
    exit(1);
}

static uint32_t below(uint32_t limit)
{
    random_now = random_now * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_now >> 33) % limit;
}

// --- the functions of the job ---

static int update(leat_ctx *ctx, const void *in)
{
    int64_t number = *(const int64_t *)in;
    // Names are looked up each time: registering races with readers and with other subtasks.
    leat_counter_add(leat_ctx_counter(ctx, "records"), 1);
    leat_gauge_set(leat_ctx_gauge(ctx, "last"), (double)number);
    leat_meter_mark(leat_ctx_meter(ctx, "marks"), 1);
    leat_histogram_record(leat_ctx_histogram(ctx, "values"), number);
    char name[30], text[40];
    // Some appear late.
    snprintf(name, sizeof name, "late %" PRId64, number / 1000);
    leat_counter_add(leat_ctx_counter(ctx, name), 1);
    int size = snprintf(text, sizeof text, "%0*" PRId64, (int)(number % 30) + 1, number);
    leat_str str = {text, (size_t)size};
    if (leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "sum", LEAT_ACCUMULATOR_SUM_I64),
                                 number) ||
        leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "most", LEAT_ACCUMULATOR_MAX_I64),
                                 number) ||
        leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "mean", LEAT_ACCUMULATOR_AVERAGE),
                                 number) ||
        leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "all", LEAT_ACCUMULATOR_HISTOGRAM),
                                 number) ||
        leat_accumulator_add_str(leat_ctx_accumulator(ctx, "texts", LEAT_ACCUMULATOR_LIST_STR),
                                 str))
        return -1;
    return 0;
}

static int pass(leat_ctx *ctx, const void *in)
{
    return update(ctx, in) ? -1 : 1;
}

// --- readers ---

typedef struct reader {
    pthread_t thread;
    const leat_job *job;
    const _Atomic bool *ended;
    int64_t records; // as the last look found them
    uint64_t texts, looks;
} reader;

typedef struct look {
    int64_t records, late, marks;
    uint64_t values;
} look;

static void see(void *user, const leat_metric *m)
{
    look *l = user;
    if (strcmp(m->name, "records") == 0)
        l->records += m->count;
    else if (strncmp(m->name, "late ", 5) == 0)
        l->late += m->count;
    else if (strcmp(m->name, "marks") == 0)
        l->marks += m->count;
    if (!m->histogram)
        return;
    l->values += leat_histogram_count(m->histogram);
    int64_t middle = leat_histogram_percentile(m->histogram, 50);
    if (middle < 0 || middle > leat_histogram_max(m->histogram))
        wrong("median", middle, leat_histogram_max(m->histogram));
}

static uint64_t check_texts(const leat_accumulators *all)
{
    leat_accumulator_value v;
    if (!leat_accumulators_find(all, "texts", &v))
        return 0;
    for (uint64_t i = 0; i < v.count; i++) {
        char text[41] = "";
        if (v.strs[i].size > 40)
            wrong("size of a text", (int64_t)v.strs[i].size, 40);
        memcpy(text, v.strs[i].data, v.strs[i].size);
        int64_t number = strtoll(text, NULL, 10);
        char expected[41];
        snprintf(expected, sizeof expected, "%0*" PRId64, (int)(number % 30) + 1, number);
        if (strcmp(text, expected) != 0)
            wrong(text, number, -1);
    }
    return v.count;
}

static void look_once(reader *r)
{
    look l = {0};
    leat_job_each_metric(r->job, see, &l);
    if (l.records < r->records)
        wrong("records run backwards", l.records, r->records);
    r->records = l.records;
    leat_accumulators *all;
    leat_err err = leat_job_accumulators(r->job, &all);
    if (err)
        wrong("merging", err, 0);
    uint64_t texts = check_texts(all);
    if (texts < r->texts)
        wrong("texts run backwards", (int64_t)texts, (int64_t)r->texts);
    r->texts = texts;
    leat_accumulators_destroy(&all);
    r->looks++;
}

static void *read_all(void *arg)
{
    reader *r = arg;
    while (!atomic_load_explicit(r->ended, memory_order_acquire))
        look_once(r);
    return NULL;
}

// --- jobs ---

static void expect(const leat_accumulators *all, const char *name, leat_accumulator_value *v,
                   uint64_t count)
{
    if (!leat_accumulators_find(all, name, v))
        wrong(name, 0, (int64_t)count);
    if (v->count != count)
        wrong(name, (int64_t)v->count, (int64_t)count);
}

// `updates` of each number from 1 to `last`.
static void check_end(const leat_job *job, int64_t last, int64_t updates)
{
    int64_t all_updates = last * updates;
    look l = {0};
    leat_job_each_metric(job, see, &l);
    if (l.records != all_updates || l.late != all_updates || l.marks != all_updates ||
        l.values != (uint64_t)all_updates)
        wrong("metrics at the end", l.records, all_updates);
    leat_accumulators *all;
    leat_err err = leat_job_accumulators(job, &all);
    if (err)
        wrong("merging at the end", err, 0);
    leat_accumulator_value v;
    expect(all, "sum", &v, (uint64_t)all_updates);
    if (v.i64 != updates * (last * (last + 1) / 2))
        wrong("sum", v.i64, updates * (last * (last + 1) / 2));
    expect(all, "most", &v, (uint64_t)all_updates);
    if (v.i64 != last)
        wrong("most", v.i64, last);
    expect(all, "mean", &v, (uint64_t)all_updates);
    if (v.f64 != (double)(last + 1) / 2)
        wrong("mean, in whole numbers", (int64_t)v.f64, (last + 1) / 2);
    expect(all, "all", &v, (uint64_t)all_updates);
    if (leat_histogram_min(v.histogram) != 1 || leat_histogram_max(v.histogram) != last)
        wrong("largest of the histogram", leat_histogram_max(v.histogram), last);
    expect(all, "texts", &v, (uint64_t)all_updates);
    check_texts(all);
    leat_accumulators_destroy(&all);
}

static uint64_t run_job(void)
{
    int64_t last = 1 + (int64_t)below(below(2) ? 50 : 8000);
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
    if (leat_env_create(NULL, &env))
        wrong("no environment", 0, 0);
    leat_env_set(env, "workers", below(2) ? "2" : "3");
    leat_stream *s = leat_filter(leat_rebalance(leat_sequence(env, 1, last)), pass);
    s = leat_sink(leat_rebalance(leat_parallelism(s, 1 + below(MOST_SUBTASKS))), update);
    leat_parallelism(s, 1 + below(MOST_SUBTASKS));
    leat_err err = leat_runtime_create(env, &runtime, NULL, 0);
    err = err ? err : leat_start(runtime, env, &job);
    if (err)
        wrong("no job", err, 0);
    _Atomic bool ended = false;
    reader readers[READERS] = {0};
    for (int i = 0; i < READERS; i++) {
        readers[i].job = job;
        readers[i].ended = &ended;
        if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i]))
            wrong("no thread", i, 0);
    }
    err = leat_job_wait(job, -1);
    atomic_store_explicit(&ended, true, memory_order_release);
    uint64_t looks = 0;
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        looks += readers[i].looks;
    }
    if (err)
        wrong(leat_job_failure(job), err, 0);
    check_end(job, last, 2);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    return looks;
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    seed_now = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    time_t end = time(NULL) + seconds;
    uint64_t jobs = 0, looks = 0;
    for (; time(NULL) <= end; seed_now++, jobs++) {
        random_now = seed_now * UINT64_C(0x9e3779b97f4a7c15);
        looks += run_job();
    }
    printf("%" PRIu64 " jobs up to seed %" PRIu64 ", %" PRIu64 " looks\n", jobs, seed_now - 1,
           looks);
    return 0;
}
