// SPDX-License-Identifier: Apache-2.0
// What task managers report of their tasks: kept as it was last told, and of the time before what
// rates need.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"

void leati_managed_keep_accumulators(leati_manager *manager, leati_participant *participant,
                                     const leat_bytes *bytes)
{
    if (bytes->size == 0)
        return;
    uint8_t *copy = leati_alloc(manager->allocator, bytes->size);
    if (!copy)
        return; // the older ones are the best there is
    memcpy(copy, bytes->data, bytes->size);
    leati_free(manager->allocator, participant->accumulators);
    participant->accumulators = copy;
    participant->accumulators_size = bytes->size;
}

static void copy_text(char *to, size_t size, leat_str *text)
{
    snprintf(to, size, "%.*s", (int)text->size, text->data ? text->data : "");
    *text = leati_text(to);
}

// What the other end of a wait is has been said by another process.
static void check_wait(const leati_job_graph *graph, leati_msg_task *figures)
{
    if (figures->wait_vertex < graph->vertex_count &&
        figures->wait_subtask < graph->vertices[figures->wait_vertex].parallelism)
        return;
    if (figures->wait_vertex >= graph->vertex_count)
        figures->wait_vertex = UINT32_MAX;
    figures->wait_subtask = UINT32_MAX;
}

static void keep_figures(const leati_job_graph *graph, leati_task_view *task,
                         const leati_msg_task *now, int64_t now_ns)
{
    const leati_msg_task *last = &task->figures;
    task->last_busy_ns = last->busy_ns;
    task->last_idle_ns = last->idle_ns;
    task->last_soft_ns = last->soft_ns;
    task->last_hard_ns = last->hard_ns;
    task->last_records_in = last->records_in;
    task->last_records_out = last->records_out;
    task->last_bytes_out = last->bytes_out;
    task->last_ns = task->reported_ns;
    task->figures = *now;
    task->reported_ns = now_ns;
    check_wait(graph, &task->figures);
    copy_text(task->wait, sizeof task->wait, &task->figures.wait);
    copy_text(task->wait_text, sizeof task->wait_text, &task->figures.wait_text);
    task->figures.state = leati_text(task->state);
    leati_task_view_track(task);
}

static char *put_text(char *at, leat_str *text)
{
    if (text->size)
        memcpy(at, text->data, text->size);
    at[text->size] = '\0';
    text->data = at;
    return at + text->size + 1;
}

static void keep_metrics(leati_manager *manager, leati_participant *p, const leat_list *metrics)
{
    const leati_msg_metric *items = metrics->items;
    size_t size = metrics->count * sizeof *items;
    for (size_t i = 0; i < metrics->count; i++)
        size += items[i].op.size + items[i].name.size + 2;
    leati_msg_metric *kept = leati_alloc(manager->allocator, size ? size : 1);
    if (!kept)
        return;
    char *at = (char *)(kept + metrics->count);
    for (size_t i = 0; i < metrics->count; i++) {
        kept[i] = items[i];
        at = put_text(at, &kept[i].op);
        at = put_text(at, &kept[i].name);
    }
    leati_free(manager->allocator, p->metrics);
    p->metrics = kept;
    p->metric_count = metrics->count;
}

void leati_managed_report(leati_manager *manager, leati_managed_job *job, uint32_t from,
                          const leati_msg_report *report)
{
    leati_participant *p = &job->participants[from];
    const leati_msg_task *tasks = report->tasks.items;
    int64_t now_ns = leati_clock_ns();
    for (size_t i = 0; i < report->tasks.count; i++) {
        const leati_msg_task *now = &tasks[i];
        if (now->vertex >= job->graph->vertex_count ||
            now->subtask >= job->graph->vertices[now->vertex].parallelism)
            continue;
        leati_task_view *task = &job->tasks[job->first_task[now->vertex] + now->subtask];
        if (task->process == from)
            keep_figures(job->graph, task, now, now_ns);
    }
    keep_metrics(manager, p, &report->metrics);
    leati_managed_keep_accumulators(manager, p, &report->accumulators);
}
