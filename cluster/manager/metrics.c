// SPDX-License-Identifier: Apache-2.0
#include "cluster/manager/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// --- of tasks ---

#define TOTAL(name, field, scale)                                                                  \
    static double name(const leati_task_view *task, const leati_rates *rates)                      \
    {                                                                                              \
        return (double)task->figures.field / (scale);                                              \
    }
#define LEVEL(name, value)                                                                         \
    static double name(const leati_task_view *task, const leati_rates *rates)                      \
    {                                                                                              \
        return (double)(value);                                                                    \
    }
TOTAL(records_in, records_in, 1)
TOTAL(records_out, records_out, 1)
TOTAL(bytes_in, bytes_in, 1)
TOTAL(bytes_out, bytes_out, 1)
TOTAL(busy_ms, busy_ns, 1e6)
TOTAL(idle_ms, idle_ns, 1e6)
TOTAL(soft_ms, soft_ns, 1e6)
TOTAL(hard_ms, hard_ns, 1e6)
TOTAL(queued, queued, 1)
LEVEL(records_in_rate, rates->records_in)
LEVEL(records_out_rate, rates->records_out)
LEVEL(bytes_out_rate, rates->bytes_out)
LEVEL(busy_rate, rates->busy)
LEVEL(idle_rate, rates->idle)
LEVEL(soft_rate, rates->soft)
LEVEL(hard_rate, rates->hard)
LEVEL(held_rate, rates->soft + rates->hard)
LEVEL(is_held, rates->soft + rates->hard > 100)
LEVEL(held_ms, (double)(task->figures.soft_ns + task->figures.hard_ns) / 1e6)
LEVEL(output_used, task->figures.segments_limit
                       ? (double)task->figures.segments_used / task->figures.segments_limit
                       : 0)
LEVEL(output_queued, task->figures.segments_used)
TOTAL(segment_size, segment_size, 1)
TOTAL(drain_ms, drain_ms, 1)

const leati_task_metric leati_task_metrics[] = {
    {"numRecordsIn", "leat_task_records_in_total", "Records that a task has taken in",
     LEATI_METRIC_TOTAL, records_in},
    {"numRecordsOut", "leat_task_records_out_total", "Records that a task has emitted",
     LEATI_METRIC_TOTAL, records_out},
    {"numBytesIn", "leat_task_bytes_in_total", "Encoded bytes that a task has taken in",
     LEATI_METRIC_TOTAL, bytes_in},
    {"numBytesOut", "leat_task_bytes_out_total", "Encoded bytes that a task has emitted",
     LEATI_METRIC_TOTAL, bytes_out},
    {"accumulateBusyTimeMs", "leat_task_busy_milliseconds_total", "Time that a task has worked",
     LEATI_METRIC_TOTAL, busy_ms},
    {"accumulateIdleTimeMs", "leat_task_idle_milliseconds_total",
     "Time that a task has waited for input", LEATI_METRIC_TOTAL, idle_ms},
    {"accumulateBackPressuredTimeMs", "leat_task_backpressured_milliseconds_total",
     "Time that a task was held back by its output", LEATI_METRIC_TOTAL, held_ms},
    {"accumulateSoftBackPressuredTimeMs", "leat_task_soft_backpressured_milliseconds_total",
     "Time that a task was held back before a record", LEATI_METRIC_TOTAL, soft_ms},
    {"accumulateHardBackPressuredTimeMs", "leat_task_hard_backpressured_milliseconds_total",
     "Time that a task was held back inside a record", LEATI_METRIC_TOTAL, hard_ms},
    {"numRecordsInPerSecond", "leat_task_records_in_per_second",
     "Records a second that a task takes in, of the last interval", LEATI_METRIC_LEVEL,
     records_in_rate},
    {"numRecordsOutPerSecond", "leat_task_records_out_per_second",
     "Records a second that a task emits, of the last interval", LEATI_METRIC_LEVEL,
     records_out_rate},
    {"numBytesOutPerSecond", "leat_task_bytes_out_per_second",
     "Encoded bytes a second that a task emits, of the last interval", LEATI_METRIC_LEVEL,
     bytes_out_rate},
    {"busyTimeMsPerSecond", "leat_task_busy_milliseconds_per_second",
     "Time that a task works, of the last interval", LEATI_METRIC_LEVEL, busy_rate},
    {"idleTimeMsPerSecond", "leat_task_idle_milliseconds_per_second",
     "Time that a task waits for input, of the last interval", LEATI_METRIC_LEVEL, idle_rate},
    {"backPressuredTimeMsPerSecond", "leat_task_backpressured_milliseconds_per_second",
     "Time that a task is held back by its output, of the last interval", LEATI_METRIC_LEVEL,
     held_rate},
    {"softBackPressuredTimeMsPerSecond", "leat_task_soft_backpressured_milliseconds_per_second",
     "Time that a task is held back before a record, of the last interval", LEATI_METRIC_LEVEL,
     soft_rate},
    {"hardBackPressuredTimeMsPerSecond", "leat_task_hard_backpressured_milliseconds_per_second",
     "Time that a task is held back inside a record, of the last interval", LEATI_METRIC_LEVEL,
     hard_rate},
    {"isBackPressured", "leat_task_is_backpressured",
     "Whether a task is held back for more than a tenth of the time", LEATI_METRIC_LEVEL, is_held},
    {"outPoolUsage", "leat_task_output_pool_usage",
     "Share of its output segments that a task uses; above 1 with overdraft", LEATI_METRIC_LEVEL,
     output_used},
    {"inputQueueLength", "leat_task_input_queue_segments", "Segments queued in the input of a task",
     LEATI_METRIC_LEVEL, queued},
    {"outputQueueLength", "leat_task_output_queue_segments",
     "Segments of a task's output that are in use", LEATI_METRIC_LEVEL, output_queued},
    {"debloatedBufferSize", "leat_task_debloated_segment_bytes",
     "Bytes that are used of each segment before a task", LEATI_METRIC_LEVEL, segment_size},
    {"estimatedTimeToConsumeBuffersMs", "leat_task_input_drain_milliseconds",
     "Time that a task will need for what is queued before it, with debloating; 0: not known",
     LEATI_METRIC_LEVEL, drain_ms},
    {0},
};

// --- of user functions ---

static uint32_t vertex_of(const leati_job_graph *graph, uint32_t node_id)
{
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            if (graph->vertices[v].ops[i].node_id == node_id)
                return v;
    return UINT32_MAX;
}

typedef struct part {
    const char *suffix;
    double value;
} part;

void leati_each_user_metric(const leati_managed_job *job,
                            void (*fn)(void *user, const leati_user_metric *metric), void *user)
{
    uint32_t last_op = UINT32_MAX, vertex = UINT32_MAX;
    for (uint32_t p = 0; p < job->participant_count; p++) {
        for (size_t i = 0; i < job->participants[p].metric_count; i++) {
            const leati_msg_metric *m = &job->participants[p].metrics[i];
            const part parts[] = {
                {m->kind == LEAT_METRIC_COUNTER ? "" : NULL, (double)m->count},
                {m->kind == LEAT_METRIC_GAUGE || m->kind == LEAT_METRIC_METER ? "" : NULL,
                 m->value},
                {m->kind == LEAT_METRIC_METER || m->kind == LEAT_METRIC_HISTOGRAM ? "_count" : NULL,
                 (double)m->count},
                {m->kind == LEAT_METRIC_HISTOGRAM ? "_min" : NULL, (double)m->min},
                {m->kind == LEAT_METRIC_HISTOGRAM ? "_mean" : NULL, m->value},
                {m->kind == LEAT_METRIC_HISTOGRAM ? "_p50" : NULL, (double)m->p50},
                {m->kind == LEAT_METRIC_HISTOGRAM ? "_p90" : NULL, (double)m->p90},
                {m->kind == LEAT_METRIC_HISTOGRAM ? "_p99" : NULL, (double)m->p99},
                {m->kind == LEAT_METRIC_HISTOGRAM ? "_max" : NULL, (double)m->max},
            };
            if (i == 0 || m->op_id != last_op)
                vertex = vertex_of(job->graph, m->op_id);
            last_op = m->op_id;
            for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
                if (parts[k].suffix)
                    fn(user, &(leati_user_metric){m, vertex, parts[k].suffix, parts[k].value});
        }
    }
}

// --- of this process ---

void leati_process_figures_read(leati_process_figures *figures)
{
    struct timespec cpu = {0};
    char text[256] = "";
    unsigned long long total = 0, resident = 0;
    *figures = (leati_process_figures){0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    figures->cpu_seconds = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm && fgets(text, sizeof text, statm) &&
        sscanf(text, "%llu %llu", &total, &resident) == 2)
        figures->resident_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
    if (statm)
        fclose(statm);
    static const char *const folders[] = {"/proc/self/task", "/proc/self/fd"};
    uint32_t *const counts[] = {&figures->threads, &figures->files};
    for (int i = 0; i < 2; i++) {
        DIR *dir = opendir(folders[i]);
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
            *counts[i] += e->d_name[0] != '.';
        if (dir)
            closedir(dir);
    }
    figures->files -= figures->files > 0; // that of the folder itself
}
