// SPDX-License-Identifier: Apache-2.0
// All metrics in the text format of Prometheus, version 0.0.4: families one after the other, each
// with its HELP and TYPE once. Of jobs that have ended there is nothing.
//
// Users name their metrics as they like. A name becomes part of the family's name with "_" for what
// may not be there, and is a label as it is; each kind has families of its own, so that no family
// has two types. Counters of users may fall, so they are gauges to Prometheus.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "cluster/manager/metrics.h"

enum { FAMILY_SIZE = 300 };

static void begin_family(leati_strbuf *out, const char *name, const char *type, const char *help)
{
    leati_strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// The value of a label, in quotes; what is no UTF-8 becomes "?".
static void put_label(leati_strbuf *out, const char *name, const char *text)
{
    leati_strbuf_printf(out, "%s=\"", name);
    for (size_t size = strlen(text), length; size; text += length, size -= length) {
        length = leati_utf8_length(text, size);
        if (length == 0) {
            length = 1;
            leati_strbuf_putc(out, '?');
        } else if (text[0] == '\n') {
            leati_strbuf_puts(out, "\\n");
        } else {
            if (text[0] == '\\' || text[0] == '"')
                leati_strbuf_putc(out, '\\');
            leati_strbuf_append(out, text, length);
        }
    }
    leati_strbuf_putc(out, '"');
}

// Numbers as in JSON, which has no words for what is not finite.
static void put_value(leati_strbuf *out, double value)
{
    char text[40];
    if (isnan(value))
        leati_strbuf_puts(out, " NaN\n");
    else if (isinf(value))
        leati_strbuf_puts(out, value > 0 ? " +Inf\n" : " -Inf\n");
    else {
        size_t size = leat_record_json(leat_type_scalar(LEAT_F64), &value, text, sizeof text);
        leati_strbuf_putc(out, ' ');
        leati_strbuf_append(out, text, size < sizeof text ? size : sizeof text);
        leati_strbuf_putc(out, '\n');
    }
}

static void put_plain(leati_strbuf *out, const char *name, const char *type, const char *help,
                      double value)
{
    begin_family(out, name, type, help);
    leati_strbuf_puts(out, name);
    put_value(out, value);
}

// --- tasks ---

static void put_job_labels(leati_strbuf *out, const leati_managed_job *job)
{
    put_label(out, "job", job->id);
    leati_strbuf_putc(out, ',');
    put_label(out, "job_name", job->name);
}

static void put_task(leati_strbuf *out, const leati_task_metric *m, const leati_managed_job *job,
                     uint32_t vertex, uint32_t subtask)
{
    const leati_task_view *task = &job->tasks[job->first_task[vertex] + subtask];
    leati_rates rates;
    if (!task->reported_ns)
        return;
    leati_view_rates(task, &rates);
    leati_strbuf_printf(out, "%s{", m->prometheus);
    put_job_labels(out, job);
    leati_strbuf_printf(out, ",vertex=\"%" PRIu32 "\",", vertex);
    put_label(out, "task", job->graph->vertices[vertex].name);
    leati_strbuf_printf(out, ",subtask=\"%" PRIu32 "\"}", subtask);
    put_value(out, m->read(task, &rates));
}

static bool is_shown(const leati_managed_job *job)
{
    return job->tasks && !leati_phase_is_final(job->phase);
}

static void put_tasks(leati_strbuf *out, const leati_manager *manager)
{
    for (const leati_task_metric *m = leati_task_metrics; m->name; m++) {
        begin_family(out, m->prometheus, m->form == LEATI_METRIC_TOTAL ? "counter" : "gauge",
                     m->help);
        for (const leati_managed_job *job = manager->jobs; job; job = job->next)
            for (uint32_t v = 0; is_shown(job) && v < job->graph->vertex_count; v++)
                for (uint32_t s = 0; s < job->graph->vertices[v].parallelism; s++)
                    put_task(out, m, job, v, s);
    }
}

// --- metrics of user functions ---

typedef struct sample {
    const leati_managed_job *job;
    const leati_msg_metric *metric;
    double value;
    size_t order; // of coming
    char family[FAMILY_SIZE];
} sample;

typedef struct samples {
    const leati_managed_job *job;
    sample *items;
    size_t count, capacity;
    const leat_allocator *allocator;
    bool failed;
} samples;

static void make_family(char *to, const leati_user_metric *m)
{
    static const char *const kinds[] = {"counter", "gauge", "meter", "histogram"};
    const char *kind = m->metric->kind < 4 ? kinds[m->metric->kind] : "other";
    int prefix = snprintf(to, FAMILY_SIZE, "leat_user_%s%s_", kind, m->suffix);
    snprintf(to + prefix, FAMILY_SIZE - (size_t)prefix, "%.*s", (int)m->metric->name.size,
             m->metric->name.data);
    for (char *at = to; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at))
            *at = '_';
}

static void take_sample(void *user, const leati_user_metric *m)
{
    samples *all = user;
    void *items = all->items;
    if (!leati_grow(all->allocator, &items, &all->capacity, all->count + 1, sizeof *all->items)) {
        all->failed = true;
        return;
    }
    all->items = items;
    sample *s = &all->items[all->count];
    *s = (sample){.job = all->job, .metric = m->metric, .value = m->value, .order = all->count};
    make_family(s->family, m);
    all->count++;
}

static int by_family(const void *left, const void *right)
{
    const sample *a = left, *b = right;
    int order = strcmp(a->family, b->family);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static void put_sample(leati_strbuf *out, const sample *s)
{
    leati_strbuf_printf(out, "%s{", s->family);
    put_job_labels(out, s->job);
    leati_strbuf_putc(out, ',');
    put_label(out, "operator", s->metric->op.data);
    leati_strbuf_printf(out, ",id=\"%" PRIu32 "\",subtask=\"%" PRIu32 "\",", s->metric->op_id,
                        s->metric->subtask);
    put_label(out, "name", s->metric->name.data);
    leati_strbuf_putc(out, '}');
    put_value(out, s->value);
}

static void put_user_metrics(leati_strbuf *out, const leati_manager *manager)
{
    samples all = {.allocator = manager->allocator};
    for (const leati_managed_job *job = manager->jobs; job; job = job->next) {
        all.job = job;
        if (is_shown(job))
            leati_each_user_metric(job, take_sample, &all);
    }
    if (all.count)
        qsort(all.items, all.count, sizeof *all.items, by_family);
    for (size_t i = 0; i < all.count; i++) {
        if (i == 0 || strcmp(all.items[i - 1].family, all.items[i].family) != 0)
            begin_family(out, all.items[i].family, "gauge", "A metric of a user function");
        put_sample(out, &all.items[i]);
    }
    out->failed |= all.failed;
    leati_free(manager->allocator, all.items);
}

// --- processes ---

typedef struct member_metric {
    const char *name, *type, *help;
    double (*read)(const leati_member *member);
} member_metric;

#define MEMBER(name, value)                                                                        \
    static double name(const leati_member *m)                                                      \
    {                                                                                              \
        return (double)(value);                                                                    \
    }
MEMBER(read_slots, m->slots)
MEMBER(read_slots_free, m->slots > m->slots_used ? m->slots - m->slots_used : 0)
MEMBER(read_resident, m->beat.resident_bytes)
MEMBER(read_cpu, (double)m->beat.cpu_ns / 1e9)
MEMBER(read_threads, m->beat.threads)
MEMBER(read_files, m->beat.files)
MEMBER(read_segments, m->beat.segments_total)
MEMBER(read_segments_free, m->beat.segments_free)
MEMBER(read_connections, m->beat.connections)
MEMBER(read_bytes_in, m->beat.network_bytes_in)
MEMBER(read_bytes_out, m->beat.network_bytes_out)

static const member_metric member_metrics[] = {
    {"leat_taskmanager_slots", "gauge", "Slots of a task manager", read_slots},
    {"leat_taskmanager_slots_free", "gauge", "Slots of a task manager without a job",
     read_slots_free},
    {"leat_taskmanager_resident_bytes", "gauge", "Memory of a task manager's process",
     read_resident},
    {"leat_taskmanager_cpu_seconds_total", "counter", "Processor time of a task manager's process",
     read_cpu},
    {"leat_taskmanager_threads", "gauge", "Threads of a task manager's process", read_threads},
    {"leat_taskmanager_open_files", "gauge", "Descriptors of a task manager's process", read_files},
    {"leat_taskmanager_segments", "gauge", "Memory segments that a task manager has",
     read_segments},
    {"leat_taskmanager_segments_free", "gauge", "Memory segments of a task manager not in use",
     read_segments_free},
    {"leat_taskmanager_connections", "gauge", "Data connections to other task managers",
     read_connections},
    {"leat_taskmanager_network_bytes_in_total", "counter", "Bytes from other task managers",
     read_bytes_in},
    {"leat_taskmanager_network_bytes_out_total", "counter", "Bytes to other task managers",
     read_bytes_out},
};

static void put_members(leati_strbuf *out, const leati_manager *manager)
{
    for (size_t i = 0; i < sizeof member_metrics / sizeof *member_metrics; i++) {
        const member_metric *metric = &member_metrics[i];
        begin_family(out, metric->name, metric->type, metric->help);
        for (const leati_member *m = manager->members; m; m = m->next) {
            if (!m->rpc)
                continue;
            leati_strbuf_printf(out, "%s{", metric->name);
            put_label(out, "taskmanager", m->id);
            leati_strbuf_putc(out, ',');
            put_label(out, "host", m->host);
            leati_strbuf_printf(out, ",index=\"%" PRIu32 "\"}", m->index);
            put_value(out, metric->read(m));
        }
    }
}

static void put_jobs(leati_strbuf *out, const leati_manager *manager)
{
    static const char *const states[] = {"CREATED",  "RUNNING", "FAILING", "CANCELLING",
                                         "FINISHED", "FAILED",  "CANCELED"};
    int64_t now_ms = leati_view_now_ms();
    begin_family(out, "leat_jobs", "gauge", "Jobs that the job manager knows, by state");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        uint64_t count = 0;
        for (const leati_managed_job *job = manager->jobs; job; job = job->next)
            count += !strcmp(leati_phase_name(job->phase), states[i]);
        leati_strbuf_printf(out, "leat_jobs{state=\"%s\"} %" PRIu64 "\n", states[i], count);
    }
    begin_family(out, "leat_job_uptime_seconds", "gauge", "Time since a job was deployed");
    for (const leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (!is_shown(job) || !job->started_ms)
            continue;
        leati_strbuf_puts(out, "leat_job_uptime_seconds{");
        put_job_labels(out, job);
        leati_strbuf_putc(out, '}');
        put_value(out, (double)(now_ms - job->started_ms) / 1000);
    }
}

void leati_view_prometheus(leati_strbuf *out, const leati_manager *manager,
                           const leati_process_figures *process)
{
    uint32_t members, total, available;
    leati_view_slots(manager, &members, &total, &available);
    put_plain(out, "leat_taskmanagers", "gauge", "Task managers that are registered", members);
    put_plain(out, "leat_slots", "gauge", "Slots of all task managers", total);
    put_plain(out, "leat_slots_free", "gauge", "Slots without a job", available);
    put_plain(out, "leat_jobmanager_uptime_seconds", "gauge", "Time since the job manager started",
              (double)(leati_view_now_ms() - manager->started_ms) / 1000);
    put_plain(out, "leat_jobmanager_resident_bytes", "gauge", "Memory of the job manager's process",
              (double)process->resident_bytes);
    put_plain(out, "leat_jobmanager_cpu_seconds_total", "counter",
              "Processor time of the job manager's process", process->cpu_seconds);
    put_plain(out, "leat_jobmanager_threads", "gauge", "Threads of the job manager's process",
              process->threads);
    put_plain(out, "leat_jobmanager_open_files", "gauge",
              "Descriptors of the job manager's process", process->files);
    put_jobs(out, manager);
    put_members(out, manager);
    put_tasks(out, manager);
    put_user_metrics(out, manager);
}
