// SPDX-License-Identifier: Apache-2.0
// The test harness: a job on a runtime without threads, by a clock that its owner moves.
#include "runtime/harness_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { MOST_TURNS = 10000000 };

// --- saying why ---

leat_err leati_harness_fail(leat_harness *h, leat_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(h->why, sizeof h->why, format, args);
    va_end(args);
    return err;
}

const char *leat_harness_why(const leat_harness *h)
{
    return h->why;
}

// All faults of the environment, a line each.
static leat_err tell_faults(leat_harness *h, leat_err err)
{
    size_t at = 0, count = leat_env_fault_count(h->env);
    h->why[0] = '\0';
    for (size_t i = 0; i < count && at < sizeof h->why; i++)
        at += (size_t)snprintf(h->why + at, sizeof h->why - at, "%s%s", i ? "\n" : "",
                               leat_env_fault(h->env, i));
    return err;
}

// --- life ---

static int64_t show_time(void *user)
{
    return atomic_load_explicit(&((leat_harness *)user)->now_ns, memory_order_relaxed);
}

static int keep_printed(void *user, int fd, const char *data, size_t size)
{
    leati_strbuf_append(&((leat_harness *)user)->printed[fd == 2], data, size);
    return 0;
}

leat_harness *leati_harness_of(const leat_env *env)
{
    const leat_env_options *options = leati_env_options(env);
    return options->clock.now_ns == show_time ? options->clock.user : NULL;
}

leat_err leat_harness_create(const leat_harness_options *options, leat_harness **harness)
{
    static const leat_harness_options defaults;
    options = options ? options : &defaults;
    const leat_allocator *allocator = leati_allocator_or_default(options->allocator);
    leat_harness *h = leati_calloc(allocator, 1, sizeof *h);
    if (!h)
        return LEAT_ENOMEM;
    h->allocator_copy = *allocator;
    h->allocator = &h->allocator_copy;
    h->options = *options;
    if (h->options.turn_records == 0)
        h->options.turn_records = 1;
    if (h->options.most_turns == 0)
        h->options.most_turns = MOST_TURNS;
    atomic_init(&h->now_ns, options->start_ns);
    for (int i = 0; i < 2; i++)
        leati_strbuf_init(&h->printed[i], h->allocator);
    leat_err err = leat_test_allocator_create(h->allocator, &h->failing);
    if (!err) {
        leat_env_options env_options = {.allocator = leat_test_allocator_hook(h->failing),
                                        .logger = options->logger,
                                        .print = keep_printed,
                                        .print_user = h,
                                        .clock = {.now_ns = show_time, .user = h}};
        err = leat_env_create(&env_options, &h->env);
    }
    if (err) {
        leat_harness_destroy(&h);
        return err;
    }
    *harness = h;
    return LEAT_OK;
}

void leat_harness_destroy(leat_harness **harness)
{
    leat_harness *h = *harness;
    if (!h)
        return;
    assert(h->depth == 0);
    // The job's end must not fail in ways that it was not asked to.
    if (h->failing)
        leat_test_allocator_fail(h->failing, 0, 0);
    if (h->job)
        leat_job_destroy(&h->job);
    leat_runtime_destroy(&h->runtime);
    leat_env_destroy(&h->env);
    leati_harness_free_ports(h);
    leati_harness_free_faults(h);
    leat_test_allocator_destroy(&h->failing);
    for (int i = 0; i < 2; i++)
        leati_strbuf_fini(&h->printed[i]);
    leati_free(h->allocator, h->helpers);
    leat_allocator allocator = h->allocator_copy;
    leati_free(&allocator, h);
    *harness = NULL;
}

leat_env *leat_harness_env(leat_harness *h)
{
    return h->env;
}

leat_job *leat_harness_job(leat_harness *h)
{
    return h->job;
}

const char *leat_harness_printed(const leat_harness *h, int fd)
{
    return leati_strbuf_text(&h->printed[fd == 2]);
}

// --- start ---

// Rows of n vertices each.
typedef struct ways {
    const leati_job_graph *graph;
    size_t n;
    bool *downstream; // [a * n + b]: whether records of a get to b
    bool *helpers;    // [a * n + b]: whether b may run while a waits for room
    bool *needed;     // [a * n + b]: whether b must run for a to end
    bool changed;
} ways;

static void add(ways *w, bool *row, size_t v)
{
    w->changed |= !row[v];
    row[v] = true;
}

static void add_row(ways *w, bool *row, const bool *other)
{
    for (size_t v = 0; v < w->n; v++)
        if (other[v])
            add(w, row, v);
}

static bool feeds_variable(const ways *w, const leati_job_edge *edge)
{
    return edge->input >= w->graph->vertices[edge->to_vertex].ops[0].input_count;
}

static void follow(ways *w, const leati_job_edge *edge)
{
    size_t n = w->n, from = edge->from_vertex * n, to = edge->to_vertex * n;
    add(w, w->downstream + from, edge->to_vertex);
    add_row(w, w->downstream + from, w->downstream + to);
    add_row(w, w->helpers + from, w->downstream + from);
    add_row(w, w->needed + to, w->needed + from);
    // What is read when complete, or into a variable, is taken whatever the consumer waits for.
    if (edge->blocking || feeds_variable(w, edge))
        return;
    add_row(w, w->helpers + from, w->helpers + to);
    for (uint32_t e = 0; e < w->graph->edge_count; e++) {
        const leati_job_edge *other = &w->graph->edges[e];
        if (other->to_vertex == edge->to_vertex && feeds_variable(w, other))
            add_row(w, w->helpers + from, w->needed + other->from_vertex * n);
    }
}

// Only those may run while a task waits in the middle of a record that make room for it: its
// records get to them, or a broadcast variable of such a one needs them. None of them waits for it:
// the graph sees to that (graph/broadcast.c).
static leat_err find_ways(leat_harness *h)
{
    const leati_job_graph *graph = h->job->graph;
    size_t n = graph->vertex_count;
    bool *all = leati_calloc(h->allocator, 3 * n * n, sizeof *all);
    if (!all)
        return leati_harness_fail(h, LEAT_ENOMEM, "no memory for the harness");
    ways w = {.graph = graph,
              .n = n,
              .helpers = all,
              .downstream = all + n * n,
              .needed = all + 2 * n * n,
              .changed = true};
    while (w.changed) {
        w.changed = false;
        for (size_t v = 0; v < n; v++) {
            add(&w, w.needed + v * n, v);
            add_row(&w, w.needed + v * n, w.helpers + v * n);
        }
        for (uint32_t e = 0; e < graph->edge_count; e++)
            follow(&w, &graph->edges[e]);
    }
    h->helpers = all; // the others stand behind it
    return LEAT_OK;
}

static const leati_task *task_of(const leati_runnable *r)
{
    return (const leati_task *)((const char *)r - offsetof(leati_task, run));
}

static bool may_run(void *user, const leati_runnable *waiting, const leati_runnable *candidate)
{
    const leat_harness *h = user;
    // Before the job has been handed out nothing waits.
    size_t n = h->job->graph->vertex_count;
    return h->helpers[task_of(waiting)->vertex->id * n + task_of(candidate)->vertex->id];
}

leat_err leat_harness_start(leat_harness *h)
{
    if (h->job && h->helpers)
        return LEAT_OK;
    if (h->runtime)
        return tell_faults(h, LEAT_ESTATE);
    leat_err err = leat_env_check(h->env);
    if (err)
        return tell_faults(h, err);
    leati_harness_set_faults(h);
    err = leati_runtime_create_stepped(h->env, h->options.turn_records, &h->runtime, h->why,
                                       sizeof h->why);
    if (err)
        return err;
    leati_scheduler_shuffle(h->runtime->scheduler, h->options.seed);
    leati_scheduler_set_may_run(h->runtime->scheduler, may_run, h);
    err = leat_start(h->runtime, h->env, &h->job);
    return err ? tell_faults(h, err) : find_ways(h);
}

// --- running ---

static leat_err result_of(leat_harness *h)
{
    leat_job_state state = leat_job_get_state(h->job);
    if (state == LEAT_JOB_CANCELED)
        return leati_harness_fail(h, LEAT_ECANCELLED, "the job was cancelled");
    if (state != LEAT_JOB_FAILED)
        return LEAT_OK;
    return leati_harness_fail(h, h->job->failure, "%s", leat_job_failure(h->job));
}

static bool give_turn(leat_harness *h)
{
    h->depth++;
    leati_runnable *r = leati_scheduler_step(h->runtime->scheduler);
    h->depth--;
    if (r)
        h->last_task = (uint32_t)(task_of(r) - h->job->tasks);
    return r != NULL;
}

leat_err leat_harness_step(leat_harness *h)
{
    leat_err err = leat_harness_start(h);
    if (err)
        return err;
    leati_service_poll(h->runtime->service);
    bool given = give_turn(h);
    err = result_of(h);
    return err || given ? err : LEAT_EAGAIN;
}

uint32_t leat_harness_last_task(const leat_harness *h)
{
    return h->last_task;
}

// Runs until nothing is ready; counts the turns on.
static leat_err run_down(leat_harness *h, uint64_t *turns)
{
    do {
        while (give_turn(h))
            if (++*turns > h->options.most_turns)
                return leati_harness_fail(h, LEAT_ETOOBIG,
                                          "the job has not come to rest within %llu turns; the "
                                          "last was one of \"%s\"",
                                          (unsigned long long)h->options.most_turns,
                                          h->job->tasks[h->last_task].vertex->name);
        leati_service_poll(h->runtime->service);
    } while (leati_scheduler_is_ready(h->runtime->scheduler));
    return result_of(h);
}

leat_err leat_harness_run(leat_harness *h)
{
    leat_err err = leat_harness_start(h);
    uint64_t turns = 0;
    return err ? err : run_down(h, &turns);
}

// --- time ---

int64_t leat_harness_now_ns(const leat_harness *h)
{
    return atomic_load_explicit(&h->now_ns, memory_order_relaxed);
}

static void show(leat_harness *h, int64_t now_ns)
{
    // A function that has let time pass may have been further already.
    if (now_ns > leat_harness_now_ns(h))
        atomic_store_explicit(&h->now_ns, now_ns, memory_order_relaxed);
}

leat_err leat_harness_advance(leat_harness *h, int64_t ns)
{
    if (ns < 0)
        return leati_harness_fail(h, LEAT_EINVAL, "time does not go back");
    leat_err err = leat_harness_start(h);
    if (err)
        return err;
    int64_t until_ns;
    if (__builtin_add_overflow(leat_harness_now_ns(h), ns, &until_ns))
        until_ns = INT64_MAX;
    uint64_t turns = 0;
    leati_service_poll(h->runtime->service);
    // Of a job that has ended nothing is due but looks at buffers.
    while (leat_job_get_state(h->job) < LEAT_JOB_FINISHED) {
        // Most of what is due is a look at buffers that nobody has written to.
        if (leati_scheduler_is_ready(h->runtime->scheduler))
            err = run_down(h, &turns);
        int64_t due_ns = leati_service_due_ns(h->runtime->service);
        if (err || due_ns > until_ns || due_ns == INT64_MAX)
            break;
        if (due_ns > leat_harness_now_ns(h))
            turns = 0;
        show(h, due_ns);
        leati_service_run_due(h->runtime->service);
    }
    if (!err)
        show(h, until_ns);
    return err ? err : result_of(h);
}

// --- faults of memory ---

void leat_harness_fail_allocations(leat_harness *h, uint64_t nth, uint64_t count)
{
    leat_test_allocator_fail(h->failing, nth, count);
}

uint64_t leat_harness_allocations(const leat_harness *h)
{
    return leat_test_allocator_tried(h->failing);
}

leat_err leat_harness_fail_segments(leat_harness *h, uint64_t nth, uint64_t count)
{
    leat_err err = leat_harness_start(h);
    if (err)
        return err;
    leati_global_pool_refuse(h->runtime->pool, nth, count);
    for (uint32_t i = 0; i < h->job->task_count; i++)
        leati_runnable_wake(&h->job->tasks[i].run);
    return LEAT_OK;
}
