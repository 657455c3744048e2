// SPDX-License-Identifier: Apache-2.0
// Vertices and their tasks, and how busy these are.
#include <string.h>

#include "base/thread.h"
#include "cluster/manager/view.h"

const char *leati_view_worker(const leati_managed_job *job, const leati_task_view *task)
{
    return task->process < job->participant_count ? job->participants[task->process].name : "";
}

static bool has_ended(const leati_task_view *task)
{
    return !strcmp(task->state, "FINISHED") || !strcmp(task->state, "FAILED") ||
           !strcmp(task->state, "CANCELED");
}

int64_t leati_view_wait_ms(const leati_task_view *task)
{
    if (has_ended(task) || !task->reported_ns || !task->wait[0] || !strcmp(task->wait, "NONE"))
        return 0;
    // It has waited on since it told of it.
    return (task->figures.wait_ns + leati_clock_ns() - task->reported_ns) / 1000000;
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static uint32_t permille(uint64_t part, uint64_t whole)
{
    return whole ? (uint32_t)((part * 1000 + whole / 2) / whole) : 0;
}

// The four times of a task add up to all time; taking shares of their sum makes the rates
// independent of how evenly reports arrive here.
void leati_view_rates(const leati_task_view *task, leati_rates *rates)
{
    *rates = (leati_rates){0};
    if (has_ended(task) || !task->reported_ns)
        return;
    const leati_msg_task *f = &task->figures;
    uint64_t busy = since(f->busy_ns, task->last_busy_ns) / 1000;
    uint64_t idle = since(f->idle_ns, task->last_idle_ns) / 1000;
    uint64_t soft = since(f->soft_ns, task->last_soft_ns) / 1000;
    uint64_t hard = since(f->hard_ns, task->last_hard_ns) / 1000;
    uint64_t all = busy + idle + soft + hard;
    rates->busy = permille(busy, all);
    rates->idle = permille(idle, all);
    rates->soft = permille(soft, all);
    rates->hard = permille(hard, all);
    rates->seconds = (double)all / 1e6;
    if (all == 0)
        return;
    rates->records_in = (double)since(f->records_in, task->last_records_in) / rates->seconds;
    rates->records_out = (double)since(f->records_out, task->last_records_out) / rates->seconds;
    rates->bytes_out = (double)since(f->bytes_out, task->last_bytes_out) / rates->seconds;
}

void leati_view_task(leati_strbuf *out, const char *key, const leati_managed_job *job,
                     uint32_t vertex, uint32_t subtask)
{
    const leati_task_view *t = &job->tasks[job->first_task[vertex] + subtask];
    bool ended = has_ended(t);
    leati_rates rates;
    leati_view_rates(t, &rates);
    leati_put_open(out, key, '{');
    leati_put_u64(out, "subtask", subtask);
    leati_put_text(out, "state", t->state);
    leati_put_i64(out, "state_since", t->state_ms);
    leati_put_text(out, "worker", leati_view_worker(job, t));
    leati_put_u64(out, "records_in", t->figures.records_in);
    leati_put_u64(out, "records_out", t->figures.records_out);
    leati_put_u64(out, "bytes_in", t->figures.bytes_in);
    leati_put_u64(out, "bytes_out", t->figures.bytes_out);
    leati_put_u64(out, "busy", rates.busy);
    leati_put_u64(out, "idle", rates.idle);
    leati_put_u64(out, "soft", rates.soft);
    leati_put_u64(out, "hard", rates.hard);
    leati_put_u64(out, "queued", ended ? 0 : t->figures.queued);
    leati_put_u64(out, "segments_used", ended ? 0 : t->figures.segments_used);
    leati_put_u64(out, "segments_limit", t->figures.segments_limit);
    leati_put_text(out, "wait", ended ? "" : t->wait);
    leati_put_text(out, "wait_text", ended ? "" : t->wait_text);
    leati_put_i64(out, "wait_time", leati_view_wait_ms(t));
    leati_put_close(out, '}');
}

void leati_view_vertex(leati_strbuf *out, const char *key, const leati_managed_job *job,
                       uint32_t vertex)
{
    const leati_vertex *v = &job->graph->vertices[vertex];
    leati_put_open(out, key, '{');
    leati_put_u64(out, "id", vertex);
    leati_put_text(out, "name", v->name);
    leati_put_u64(out, "parallelism", v->parallelism);
    leati_put_u64(out, "max_parallelism", v->max_parallelism);
    leati_put_text(out, "slot_group", v->slot_group);
    leati_put_open(out, "tasks", '[');
    for (uint32_t s = 0; job->tasks && s < v->parallelism; s++)
        leati_view_task(out, NULL, job, vertex, s);
    leati_put_close(out, ']');
    leati_put_close(out, '}');
}

void leati_view_vertices(leati_strbuf *out, const leati_managed_job *job)
{
    leati_put_open(out, "vertices", '[');
    for (uint32_t v = 0; v < job->graph->vertex_count; v++)
        leati_view_vertex(out, NULL, job, v);
    leati_put_close(out, ']');
}

// As Flink's: up to 10 % is none, up to 50 % is low.
static const char *level_of(uint32_t held_permille)
{
    return held_permille <= 100 ? "ok" : held_permille <= 500 ? "low" : "high";
}

static uint32_t held_of(const leati_managed_job *job, uint32_t vertex, uint32_t subtask,
                        leati_rates *rates)
{
    leati_view_rates(&job->tasks[job->first_task[vertex] + subtask], rates);
    return rates->soft + rates->hard;
}

void leati_view_backpressure(leati_strbuf *out, const leati_managed_job *job, uint32_t vertex)
{
    const leati_vertex *v = &job->graph->vertices[vertex];
    uint32_t count = job->tasks ? v->parallelism : 0, most = 0;
    leati_rates rates;
    for (uint32_t s = 0; s < count; s++) {
        uint32_t held = held_of(job, vertex, s, &rates);
        most = held > most ? held : most;
    }
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "status", count ? "ok" : "none");
    leati_put_text(out, "level", level_of(most));
    leati_put_i64(out, "time", leati_view_now_ms());
    leati_put_open(out, "subtasks", '[');
    for (uint32_t s = 0; s < count; s++) {
        uint32_t held = held_of(job, vertex, s, &rates);
        leati_put_open(out, NULL, '{');
        leati_put_u64(out, "subtask", s);
        leati_put_text(out, "level", level_of(held));
        leati_put_f64(out, "ratio", held / 1000.0);
        leati_put_f64(out, "busy_ratio", rates.busy / 1000.0);
        leati_put_f64(out, "idle_ratio", rates.idle / 1000.0);
        leati_put_close(out, '}');
    }
    leati_put_close(out, ']');
    leati_put_close(out, '}');
}
