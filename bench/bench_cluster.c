// SPDX-License-Identifier: Apache-2.0
// What a local cluster of three costs: the time from the start of the client to the moment when all
// tasks of its job run; what a task manager that has nothing to do uses; and whether a thousand
// short jobs, one after the other, leave anything behind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/cluster.h"
#include "bench/harness.h"
#include "bench/job.h"
#include "bench/process.h"

enum { WORKERS = 3, SUBMITS = 11, JOBS = 1000, WARM_JOBS = 100, IDLE_SECONDS = 5, BODY = 1 << 20 };

static char tool[] = LEAT_BENCH_TOOL, many_job[] = LEAT_BENCH_MANY_JOB;

typedef struct bench_state {
    cluster cluster;
    unsigned submits, jobs, warm_jobs, idle_seconds;
    char *body;
} bench_state;

static void pause_us(long us)
{
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// --- the yardstick: a program that is started and does nothing ---

static int start_tool(void *context, bench_outcome *outcome)
{
    const bench_state *state = context;
    double took[SUBMITS] = {0};
    char out[256], verb[] = "version";
    char *argv[] = {tool, verb, NULL};
    for (unsigned i = 0; i < state->submits; i++) {
        int64_t started = bench_now_ns();
        if (cluster_run(argv, out, sizeof out) != 0)
            return -1;
        took[i] = (double)(bench_now_ns() - started) * 1e-6;
    }
    qsort(took, state->submits, sizeof *took, ascending);
    *outcome = (bench_outcome){.items = state->submits,
                               .figures = {took[state->submits / 2], took[state->submits - 1]}};
    return 0;
}

// --- submitting ---

static int all_running(bench_state *state, char *id, bool *running)
{
    char verb[] = "status", json[] = "--json";
    char *argv[] = {tool, verb, json, id, NULL};
    if (cluster_run(argv, state->body, BODY) != 0)
        return -1;
    const char *tasks = strstr(state->body, "\"tasks\"");
    if (!tasks)
        return -1;
    *running = cluster_number(tasks, "total") == cluster_number(tasks, "running");
    return 0;
}

static int cancel(bench_state *state, char *id)
{
    char out[256], verb[] = "cancel", of[] = "cluster", status[] = "status", json[] = "--json";
    char *argv[] = {tool, verb, id, NULL}, *look[] = {tool, of, status, json, NULL};
    if (cluster_run(argv, out, sizeof out) != 0)
        return -1;
    do {
        if (cluster_run(look, state->body, BODY) != 0)
            return -1;
    } while (cluster_number(state->body, "slots_free") != WORKERS);
    return 0;
}

static int submit_once(bench_state *state, double *ms)
{
    char id[64], verb[] = "submit", detach[] = "--detach", p[] = "-p", three[] = "3", rest[] = "--";
    char mode[] = "slow", us[] = "100";
    char *argv[] = {tool, verb, detach, p, three, many_job, rest, mode, us, NULL};
    bool running = false;
    int64_t started = bench_now_ns();
    if (cluster_run(argv, id, sizeof id) != 0)
        return -1;
    id[strcspn(id, "\n")] = '\0';
    while (!running)
        if (all_running(state, id, &running) != 0)
            return -1;
    *ms = (double)(bench_now_ns() - started) * 1e-6;
    return cancel(state, id);
}

static int submit(void *context, bench_outcome *outcome)
{
    bench_state *state = context;
    double took[SUBMITS] = {0};
    for (unsigned i = 0; i < state->submits; i++)
        if (submit_once(state, &took[i]) != 0)
            return -1;
    qsort(took, state->submits, sizeof *took, ascending);
    *outcome = (bench_outcome){.items = state->submits,
                               .figures = {took[state->submits / 2], took[state->submits - 1]}};
    return 0;
}

// --- doing nothing ---

// How `memory.network` is mapped: 64 MiB in segments of 32 KiB, each with 64 bytes before it.
static const uint64_t pool_size = UINT64_C(2048) * (32 * 1024 + 64);

static double cpu_seconds(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    char text[1024];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unsigned long user, system;
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                        &system) != 2)
        return -1;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static int idle_of(bench_state *state, size_t index, bench_outcome *outcome)
{
    process p = {.pid = state->cluster.pids[index]};
    memory_use use;
    double before = cpu_seconds(p.pid);
    pause_us((long)state->idle_seconds * 1000000);
    double after = cpu_seconds(p.pid);
    if (before < 0 || after < 0 || process_idle_memory(&p, pool_size, &use) != 0)
        return -1;
    *outcome = (bench_outcome){.items = 1,
                               .figures = {(double)(use.resident - use.big) * 1e-6,
                                           100 * (after - before) / state->idle_seconds}};
    return 0;
}

static int idle_manager(void *context, bench_outcome *outcome)
{
    return idle_of(context, 0, outcome);
}

static int idle_worker(void *context, bench_outcome *outcome)
{
    return idle_of(context, 1, outcome);
}

// --- a thousand jobs ---

static int run_jobs(bench_state *state, unsigned count)
{
    char out[256], verb[] = "submit", p[] = "-p", three[] = "3", rest[] = "--", mode[] = "sum";
    char records[] = "1000", rate[] = "0", quiet[] = "--quiet";
    char *argv[] = {tool, verb, quiet, p, three, many_job, rest, mode, records, rate, NULL};
    for (unsigned i = 0; i < count; i++)
        if (cluster_run(argv, out, sizeof out) != 0)
            return -1;
    return cluster_look(&state->cluster, &(cluster_use){0});
}

static int churn(void *context, bench_outcome *outcome)
{
    bench_state *state = context;
    cluster_use before, after;
    if (run_jobs(state, state->warm_jobs) != 0 || cluster_look(&state->cluster, &before) != 0)
        return -1;
    int64_t started = bench_now_ns();
    if (run_jobs(state, state->jobs) != 0 || cluster_look(&state->cluster, &after) != 0)
        return -1;
    double seconds = (double)(bench_now_ns() - started) * 1e-9;
    *outcome =
        (bench_outcome){.items = state->jobs,
                        .figures = {1000 * seconds / state->jobs,
                                    ((double)after.resident - (double)before.resident) * 1e-6,
                                    (double)after.threads - (double)before.threads,
                                    (double)after.files - (double)before.files,
                                    (double)after.processes - (double)before.processes}};
    return 0;
}

static int no_jobs(void *context, bench_outcome *outcome)
{
    const bench_state *state = context;
    *outcome = (bench_outcome){.items = state->jobs};
    return 0;
}

// --- cases ---

static bench_state shared;
static unsigned users;

static int setup(bench_case *self, const bench_options *options)
{
    shared.submits = options->quick ? 3 : SUBMITS;
    shared.jobs = options->quick ? 10 : JOBS;
    shared.warm_jobs = options->quick ? 5 : WARM_JOBS;
    shared.idle_seconds = options->quick ? 1 : IDLE_SECONDS;
    self->context = &shared;
    users++;
    if (!shared.body)
        shared.body = malloc(BODY);
    return shared.body ? cluster_start(&shared.cluster, tool, WORKERS) : -1;
}

static void teardown(bench_case *self)
{
    cluster_stop(&shared.cluster, tool);
    if (--users == 0) {
        free(shared.body);
        shared.body = NULL;
    }
}

int main(int argc, char **argv)
{
    static const bench_figure submit_figures[] = {{"all running", "ms", 100}, {"slowest", "ms", 0}};
    static const bench_variant submits[] = {{"leat version", start_tool, 0},
                                            {"leat submit", submit, 0}};
    static const bench_figure idle_figures[] = {{"resident", "MB", 15}, {"processor", "%", 1}};
    static const bench_variant idles[] = {{"job manager", idle_manager, 0},
                                          {"task manager", idle_worker, 0}};
    static const bench_figure churn_figures[] = {{"a job", "ms", 0},
                                                 {"memory", "MB", 1},
                                                 {"threads", "", 0.5},
                                                 {"files", "", 0.5},
                                                 {"processes", "", 0.5}};
    static const bench_variant churns[] = {{"nothing", no_jobs, 0}, {"jobs in turn", churn, 0}};
    bench_case cases[] = {{.name = "submit",
                           .unit = "submissions",
                           .variants = submits,
                           .variant_count = 2,
                           .figures = submit_figures,
                           .figure_count = 2,
                           .setup = setup,
                           .teardown = teardown,
                           .note = "seen by `leat status`, which takes some of the time itself"},
                          {.name = "idle",
                           .unit = "processes",
                           .variants = idles,
                           .variant_count = 2,
                           .figures = idle_figures,
                           .figure_count = 2,
                           .setup = setup,
                           .teardown = teardown,
                           .note = "resident is beside the segments in use"},
                          {.name = "churn",
                           .unit = "jobs",
                           .variants = churns,
                           .variant_count = 2,
                           .figures = churn_figures,
                           .figure_count = 5,
                           .setup = setup,
                           .teardown = teardown,
                           .note = "what the processes of the cluster use more after the jobs than "
                                   "before, after some jobs to warm up"}};
    return bench_main(argc, argv, "cluster", cases, 3);
}
