// SPDX-License-Identifier: Apache-2.0
// Random job graphs against a naive model. Each graph is described by a seed: sources, map,
// flat_map, filter, union, keyed folds, operators of two inputs, side outputs, rejected records,
// loops, broadcast variables, partitioners, blocking exchanges and sources, workers of
// their own, parallelism, chaining, buffer timeouts, slow and blocking functions, the smallest
// pools that the job admits (random_graph.h). It runs as a job, and every sink must get the records
// that the model says, in any order. Some jobs are cancelled at a random moment, some have a
// function that fails; every fourth runs in steps, in a test harness, and every fourth is spread
// over several processes, which are joined by a transport of the tests (tests/runtime/placed.h). A
// watchdog ends the program when a graph takes too long.
//
//     stress_graphs [GRAPHS [SEED]]
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "random_job.h"
#include "tests/runtime/placed.h"

#define STALL_SECONDS 60

static _Atomic uint64_t seed_now, deadline_s;

typedef struct totals {
    uint64_t finished, cancelled, failed, records;
} totals;

static leat_err start_and_wait(leat_env *env, const graph *g)
{
    leat_runtime *runtime;
    leat_job *job;
    if (leat_runtime_create(env, &runtime, NULL, 0))
        wrong(g, "no runtime", 0, 0);
    leat_err err = leat_start(runtime, env, &job);
    if (!err) {
        if (g->cancels) {
            usleep(g->cancel_us);
            leat_job_cancel(job);
        }
        // Destroying a job that still runs cancels it as well.
        if (!g->cancels || g->two_calls)
            err = leat_job_wait(job, -1);
        else
            err = LEAT_ECANCELLED;
        if (err && err != LEAT_ECANCELLED)
            leat_env_fail(env, err, "%s", leat_job_failure(job));
        leat_job_destroy(&job);
    }
    leat_runtime_destroy(&runtime);
    return err;
}

static void forget_results(graph *g)
{
    for (int i = 0; i < g->count; i++)
        g->ops[i].got.count = 0;
}

static leat_err run_on_threads(graph *g, char *why, size_t why_size)
{
    leat_env *env = build_job(g);
    leat_err err = g->cancels || g->two_calls ? start_and_wait(env, g) : leat_execute(env);
    snprintf(why, why_size, "%s", leat_env_fault_count(env) ? leat_env_fault(env, 0) : "");
    leat_env_destroy(&env);
    return err;
}

// Without threads a task that waits in the middle of a record, until a variable of its consumer is
// whole, waits for tasks only, and not for the thread of a blocking source.
static bool waits_for_threads(const graph *g)
{
    bool variable = false, threaded = false;
    for (int i = 0; i < g->count; i++) {
        variable |= g->ops[i].variable >= 0;
        threaded |= g->ops[i].threaded;
    }
    return variable && threaded;
}

static bool runs_in_steps(const graph *g)
{
    return g->seed % 4 == 3 && !waits_for_threads(g);
}

// Blocking sources still have threads, and loops wait for a time, by the harness' clock.
static leat_err run_in_steps(graph *g, char *why, size_t why_size)
{
    leat_harness *h;
    leat_harness_options options = {.seed = g->seed % 3 ? g->seed : 0,
                                    .turn_records = 1 + (uint32_t)(g->seed % 5) * 8};
    if (leat_harness_create(&options, &h))
        wrong(g, "no harness", 0, 0);
    build_job_in(leat_harness_env(h), g);
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; g->cancels && i < g->cancel_us && !err; i++)
        err = leat_harness_step(h);
    if (err == LEAT_EAGAIN)
        err = LEAT_OK;
    if (g->cancels && !err)
        leat_job_cancel(leat_harness_job(h));
    while (!err) {
        err = leat_harness_run(h);
        if (err || leat_job_get_state(leat_harness_job(h)) == LEAT_JOB_FINISHED)
            break;
        usleep(100);
        err = leat_harness_advance(h, 10000000);
    }
    snprintf(why, why_size, "%s", leat_harness_why(h));
    leat_harness_destroy(&h);
    return err;
}

// So many that each has a task: of what shares memory all is in the first.
static uint32_t count_processes(const graph *g)
{
    uint32_t most = 1;
    for (int i = 0; i < g->count; i++)
        if (g->ops[i].kind == SINK && g->ops[i].parallelism > most)
            most = g->ops[i].parallelism;
    uint32_t wanted = 2 + (uint32_t)(g->seed / 4 % 2);
    return most < wanted ? most : wanted;
}

static void build_in(leat_env *env, void *user)
{
    build_job_in(env, user);
}

// Asks all that can be asked of the jobs, over and over.
typedef struct watcher {
    placed_run *run;
    _Atomic bool enough;
} watcher;

static void *watch(void *arg)
{
    watcher *w = arg;
    while (!atomic_load(&w->enough)) {
        for (uint32_t p = 0; p < w->run->count; p++) {
            const leat_job *job = w->run->processes[p].job;
            for (uint32_t i = 0; i < leat_job_task_count(job); i++) {
                leati_wait wait;
                leat_task_stats stats;
                leati_job_task_wait(job, i, &wait);
                leat_job_task_stats(job, i, &stats);
            }
        }
        usleep(200);
    }
    return arg;
}

static leat_err run_placed(graph *g, char *why, size_t why_size)
{
    static placed_run run;
    watcher w = {.run = &run};
    pthread_t thread;
    leat_env *env = build_job(g);
    uint32_t processes = count_processes(g);
    uint32_t *places = placed_by_subtask(env, processes);
    leat_env_destroy(&env);
    leat_err err = placed_start(&run, processes, places, build_in, g);
    bool watched = !err && g->seed % 8 == 1 && !pthread_create(&thread, NULL, watch, &w);
    if (!err) {
        if (g->cancels) {
            usleep(g->cancel_us);
            placed_cancel(&run);
        }
        placed_wait_over(&run);
        err = placed_conclude(&run, true);
    }
    atomic_store(&w.enough, true);
    if (watched)
        pthread_join(thread, NULL);
    snprintf(why, why_size, "%s", run.failure_text);
    placed_destroy(&run);
    free(places);
    return err;
}

// Runs the graph. A job that is refused for its segments says how many it needs: it gets just them.
static leat_err run(graph *g, char *why, size_t why_size)
{
    if (g->segments * g->segment_size < 65536)
        g->segments = 65536 / g->segment_size;
    for (;;) {
        forget_results(g);
        leat_err err = runs_in_steps(g)   ? run_in_steps(g, why, why_size)
                       : g->seed % 4 == 1 ? run_placed(g, why, why_size)
                                          : run_on_threads(g, why, why_size);
        unsigned long long needed = 0;
        const char *number = strstr(why, "at least ");
        bool told = err == LEAT_ENOBUFS && number && sscanf(number, "at least %llu", &needed) == 1;
        if (!told)
            return err;
        if (needed <= g->segments)
            wrong(g, "refused although there are enough segments", needed, g->segments);
        g->segments = needed;
    }
}

// Of every group the largest record that came is the last one.
static void check_updates(const graph *g, op *o, const op *fold)
{
    uint64_t copies = o->route == BROADCAST ? o->parallelism : 1;
    if (o->got.count != fold->updates * copies)
        wrong(g, "the number of updates", o->got.count, fold->updates * copies);
    if (o->got.count == 0)
        return;
    qsort_r(o->got.at, o->got.count, sizeof(plain), compare_grouped, (void *)(uintptr_t)fold);
    list last = {0};
    for (size_t i = 0; i < o->got.count; i++)
        if (i + 1 == o->got.count || !same_group(&o->got.at[i], &o->got.at[i + 1], fold->keying))
            add_plain(&last, o->got.at[i]);
    if (last.count != fold->model.count)
        wrong(g, "the number of groups", last.count, fold->model.count);
    qsort_r(last.at, last.count, sizeof(plain), compare_grouped, (void *)(uintptr_t)fold);
    for (size_t i = 0; i < last.count; i++)
        if (compare_plain(&last.at[i], &fold->model.at[i]))
            wrong(g, "the last update of a group", (uint64_t)o->index, i);
    free(last.at);
}

static void check_sink(const graph *g, op *o)
{
    const op *from = &g->ops[o->inputs[0]];
    if ((from->kind == REDUCE || from->kind == AGGREGATE) && !from->final) {
        check_updates(g, o, from);
        return;
    }
    if (o->got.count != o->model.count)
        wrong(g, "the number of records", o->got.count, o->model.count);
    if (o->got.count == 0)
        return;
    qsort(o->got.at, o->got.count, sizeof(plain), compare_plain);
    qsort(o->model.at, o->model.count, sizeof(plain), compare_plain);
    for (size_t i = 0; i < o->got.count; i++)
        if (compare_plain(&o->got.at[i], &o->model.at[i]))
            wrong(g, "a record", (uint64_t)o->index, i);
}

static void run_and_check(graph *g, totals *t)
{
    char why[1200];
    leat_err err = run(g, why, sizeof why);
    if (g->cancels && err == LEAT_ECANCELLED) {
        t->cancelled++;
    } else if (g->fails && err == LEAT_EUSER && strstr(why, "told to fail at")) {
        t->failed++;
    } else if (!err && !g->fails) {
        t->finished++;
        for (int i = 0; i < g->count; i++)
            if (g->ops[i].kind == SINK) {
                check_sink(g, &g->ops[i]);
                t->records += g->ops[i].got.count;
            }
    } else {
        fprintf(stderr, "%s: %s\n", leat_err_name(err), why);
        wrong(g, g->fails ? "it should have failed" : "it should have finished", (uint64_t)err, 0);
    }
}

static int64_t clock_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void *watchdog(void *arg)
{
    for (;;) {
        sleep(1);
        if ((uint64_t)clock_s() <= atomic_load(&deadline_s))
            continue;
        fprintf(stderr, "seed %" PRIu64 ": no end after %d s\n", atomic_load(&seed_now),
                STALL_SECONDS);
        abort();
    }
    return arg;
}

int main(int argc, char **argv)
{
    uint64_t graphs = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    totals t = {0};
    pthread_t dog;
    atomic_store(&deadline_s, (uint64_t)clock_s() + STALL_SECONDS);
    if (pthread_create(&dog, NULL, watchdog, NULL))
        return 1;
    for (uint64_t i = 0; i < graphs; i++) {
        atomic_store(&seed_now, seed + i);
        atomic_store(&deadline_s, (uint64_t)clock_s() + STALL_SECONDS);
        describe_graph(&now, seed + i);
        run_and_check(&now, &t);
        free_graph(&now);
    }
    printf("%" PRIu64 " graphs from seed %" PRIu64 ": %" PRIu64 " finished with %" PRIu64
           " records, %" PRIu64 " cancelled, %" PRIu64 " failed as they were to\n",
           graphs, seed, t.finished, t.records, t.cancelled, t.failed);
    return 0;
}
