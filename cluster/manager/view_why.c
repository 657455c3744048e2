// SPDX-License-Identifier: Apache-2.0
// The page of `why`: what each task does, and which one the others wait for.
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/view.h"
#include "cluster/manager/why.h"

// A state that has begun ends a little below where it began, so that it does not flicker.
enum { BUSY_END = 300, HELD_END = 50 };

static void track(int64_t *since_ns, uint32_t share, uint32_t begin, uint32_t end, int64_t from_ns)
{
    if (share >= begin && !*since_ns)
        *since_ns = from_ns;
    else if (share < end)
        *since_ns = 0;
}

void leati_task_view_track(leati_task_view *view)
{
    leati_rates rates;
    leati_view_rates(view, &rates);
    int64_t from_ns = view->last_ns ? view->last_ns : view->reported_ns;
    track(&view->busy_since_ns, rates.busy, LEATI_WHY_BUSY, BUSY_END, from_ns);
    track(&view->held_since_ns, rates.soft + rates.hard, LEATI_WHY_HELD, HELD_END, from_ns);
}

// --- from the manager's state to the analysis ---

static leati_wait_kind wait_kind(const char *name)
{
    for (leati_wait_kind kind = LEATI_WAIT_INPUT; kind <= LEATI_WAIT_WORKER; kind++)
        if (!strcmp(leati_wait_name(kind), name))
            return kind;
    return LEATI_WAIT_NONE;
}

static int64_t ms_since(int64_t ns, int64_t now_ns)
{
    return ns && now_ns > ns ? (now_ns - ns) / 1000000 : 0;
}

static void fill_task(leati_why_task *to, const leati_manager *manager, const leati_task_view *from,
                      int64_t now_ns, int64_t now_ms)
{
    leati_rates rates;
    leati_view_rates(from, &rates);
    int64_t state_ms = from->state_ms && now_ms > from->state_ms ? now_ms - from->state_ms : 0;
    // One that runs and has never reported has been silent since it runs.
    int64_t silent_ms = ms_since(from->reported_ns, now_ns);
    if (!from->reported_ns && strcmp(from->state, "RUNNING") == 0)
        silent_ms = state_ms;
    int64_t interval_ms =
        leati_config_get(&manager->options.config, LEATI_CONFIG_HEARTBEAT_INTERVAL);
    *to = (leati_why_task){
        .state = from->state,
        .state_ms = state_ms,
        .silent_ms = silent_ms,
        // Three reports are missing; not when they are due so often that a busy machine is late.
        .slow_report = silent_ms > 3 * interval_ms && silent_ms > 2000,
        .process = from->process,
        .busy = rates.busy,
        .idle = rates.idle,
        .held = rates.soft + rates.hard,
        .busy_ms = ms_since(from->busy_since_ns, now_ns),
        .held_ms = ms_since(from->held_since_ns, now_ns),
        .wait = wait_kind(from->wait),
        .wait_ms = from->figures.wait_ns / 1000000,
        .wait_vertex = from->figures.wait_vertex,
        .wait_subtask = from->figures.wait_subtask,
        .wait_text = from->wait_text,
        .queued = from->figures.queued,
        .records_per_s = rates.records_in,
        .records = from->figures.records_in,
    };
}

typedef struct inputs {
    leati_why_task *tasks;
    const char **workers;
    leati_why_input in;
} inputs;

static bool fill(inputs *all, const leati_manager *manager, const leati_managed_job *job)
{
    int64_t now_ns = leati_clock_ns(), now_ms = leati_view_now_ms();
    bool has_tasks = job->tasks && !leati_phase_is_final(job->phase);
    uint32_t members;
    all->tasks = leati_calloc(manager->allocator, (size_t)job->task_count + 1, sizeof *all->tasks);
    all->workers =
        leati_calloc(manager->allocator, (size_t)job->participant_count + 1, sizeof *all->workers);
    if (!all->tasks || !all->workers)
        return false;
    for (uint32_t i = 0; i < job->participant_count; i++)
        all->workers[i] = job->participants[i].name;
    for (uint32_t i = 0; has_tasks && i < job->task_count; i++)
        fill_task(&all->tasks[i], manager, &job->tasks[i], now_ns, now_ms);
    all->in = (leati_why_input){
        .graph = job->graph,
        .first_task = job->first_task,
        .tasks = has_tasks ? all->tasks : NULL,
        .task_count = job->task_count,
        .workers = all->workers,
        .worker_count = job->participant_count,
    };
    if (job->phase == LEATI_PHASE_CREATED) {
        all->in.slots_needed = job->slots_needed;
        all->in.one_process = job->one_process;
        if (job->one_process)
            leati_view_largest(manager, &all->in.slots_total, &all->in.slots_free);
        else
            leati_view_slots(manager, &members, &all->in.slots_total, &all->in.slots_free);
        all->in.slots_ms = ms_since(job->submitted_ns, now_ns);
    }
    return true;
}

// --- the page ---

static void put_bottleneck(leati_strbuf *out, const inputs *all, const leati_why_result *result)
{
    if (result->cause == LEATI_WHY_NOTHING) {
        leati_put_null(out, "bottleneck");
        return;
    }
    const leati_job_graph *graph = all->in.graph;
    leati_put_open(out, "bottleneck", '{');
    if (result->vertex < graph->vertex_count)
        leati_put_u64(out, "vertex", result->vertex);
    else
        leati_put_null(out, "vertex");
    leati_put_text(out, "name",
                   result->vertex < graph->vertex_count ? graph->vertices[result->vertex].name
                                                        : "");
    leati_put_open(out, "subtasks", '[');
    for (uint32_t i = 0;
         result->vertex < graph->vertex_count && i < graph->vertices[result->vertex].parallelism;
         i++)
        if (result->named[all->in.first_task[result->vertex] + i])
            leati_put_u64(out, NULL, i);
    leati_put_close(out, ']');
    leati_put_text(out, "cause", leati_why_cause_name(result->cause));
    leati_put_i64(out, "since", leati_view_now_ms() - result->since_ms);
    leati_put_text(out, "text", result->text);
    leati_put_close(out, '}');
}

static bool has_waited(const leati_why_task *t)
{
    return t->wait != LEATI_WAIT_NONE && t->wait_ms > 0;
}

static void put_task(leati_strbuf *out, const inputs *all, uint32_t vertex, uint32_t subtask)
{
    char text[300];
    const leati_why_task *t = &all->in.tasks[all->in.first_task[vertex] + subtask];
    leati_why_task_text(&all->in, vertex, subtask, text, sizeof text);
    leati_put_open(out, NULL, '{');
    leati_put_u64(out, "vertex", vertex);
    leati_put_text(out, "name", all->in.graph->vertices[vertex].name);
    leati_put_u64(out, "subtask", subtask);
    leati_put_text(out, "worker",
                   t->process < all->in.worker_count ? all->workers[t->process] : "");
    leati_put_text(out, "state", t->state);
    leati_put_text(out, "wait", leati_wait_name(t->wait));
    leati_put_i64(out, "since",
                  has_waited(t) ? leati_view_now_ms() - t->wait_ms - t->silent_ms : 0);
    leati_put_text(out, "text", text);
    leati_put_u64(out, "busy", t->busy);
    leati_put_u64(out, "backpressured", t->held);
    leati_put_u64(out, "idle", t->idle);
    leati_put_close(out, '}');
}

static void put_tasks(leati_strbuf *out, const inputs *all)
{
    leati_put_open(out, "tasks", '[');
    for (uint32_t v = 0; all->in.tasks && v < all->in.graph->vertex_count; v++)
        for (uint32_t i = 0; i < all->in.graph->vertices[v].parallelism; i++)
            put_task(out, all, v, i);
    leati_put_close(out, ']');
}

void leati_view_why(leati_strbuf *out, const leati_manager *manager, const leati_managed_job *job)
{
    inputs all = {0};
    leati_why_result result = {0};
    bool good =
        fill(&all, manager, job) && leati_why(manager->allocator, &all.in, &result) == LEAT_OK;
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "job", job->id);
    leati_put_text(out, "state", leati_phase_name(job->phase));
    if (good) {
        put_bottleneck(out, &all, &result);
        put_tasks(out, &all);
        leati_why_fini(&result);
    } else {
        out->failed = true; // out of memory, which the answer will say
    }
    leati_put_close(out, '}');
    leati_free(manager->allocator, all.tasks);
    leati_free(manager->allocator, all.workers);
}
