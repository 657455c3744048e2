// SPDX-License-Identifier: Apache-2.0
// Figures: of the process with each heartbeat, of the tasks of each attempt beside it.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/worker/worker_impl.h"
#include "runtime/debloat.h"
#include "runtime/execution.h"

enum {
    METRICS_MOST = 10000,
    // Accumulators beyond this travel only once, at the end.
    ACCUMULATORS_MOST = 64 * 1024,
};

// --- the process ---

static size_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

// The fields of /proc/self/stat behind the name: 3 is the first of them. 0 when there is none.
static uint64_t stat_field(const char *text, int number)
{
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < number; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static uint32_t count_files(void)
{
    DIR *entries = opendir("/proc/self/fd");
    uint32_t count = 0;
    if (!entries)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count - 1; // the one that is open for this
}

void leati_heartbeat_send(leati_taskmanager *tm, uint64_t session)
{
    char text[1024];
    struct timespec cpu = {0};
    leati_exchange_counts counts = {0};
    leati_msg_heartbeat message = {.sent_ns = leati_clock_ns(), .files = count_files()};
    read_file("/proc/self/stat", text, sizeof text);
    message.threads = (uint32_t)stat_field(text, 20);
    message.resident_bytes = stat_field(text, 24) * (uint64_t)sysconf(_SC_PAGESIZE);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    message.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
    leati_global_pool_counts(tm->runtime->pool, &message.segments_total, &message.segments_free);
    leati_exchange_count(tm->exchange, &counts);
    message.connections = counts.connections;
    message.network_bytes_in = counts.bytes_in;
    message.network_bytes_out = counts.bytes_out;
    (void)leati_control_send(tm, session, LEATI_MESSAGE_HEARTBEAT, LEAT_TYPE(leati_msg_heartbeat),
                             &message);
}

// --- tasks ---

static leat_str str(const char *text)
{
    return (leat_str){text, strlen(text)};
}

// Segments that wait in a task's input. Its channels live as long as the job, and tell their length
// to anyone.
static uint32_t count_queued(const leat_job *job, uint32_t index)
{
    const leati_task_input *input = &job->tasks[index].input;
    uint32_t queued = 0;
    for (uint32_t i = 0; i < input->channels; i++)
        if (input->readers[i].channel)
            queued += leati_channel_length(input->readers[i].channel);
    return queued;
}

static void fill_task(const leat_job *job, uint32_t index, int64_t now, leati_wait *wait,
                      leati_msg_task *task)
{
    leat_task_stats stats;
    leat_job_task_stats(job, index, &stats);
    leati_job_task_wait(job, index, wait);
    uint32_t segment_size;
    int64_t drain_ms;
    leati_job_task_debloat(job, index, &segment_size, &drain_ms);
    *task = (leati_msg_task){
        .state = str(stats.state),
        .records_in = stats.records_in,
        .records_out = stats.records_out,
        .bytes_in = stats.bytes_in,
        .bytes_out = stats.bytes_out,
        .busy_ns = stats.busy_ns,
        .idle_ns = stats.idle_ns,
        .soft_ns = stats.soft_ns,
        .hard_ns = stats.hard_ns,
        .segments_used = stats.segments_used,
        .segments_limit = stats.segments_limit,
        .queued = count_queued(job, index),
        .segment_size = segment_size,
        .drain_ms = (uint64_t)drain_ms,
        .wait = str(leati_wait_name(wait->kind)),
        .wait_ns = now > wait->since_ns ? now - wait->since_ns : 0,
        .wait_vertex = wait->vertex,
        .wait_subtask = wait->subtask,
        .wait_text = str(wait->text),
    };
    leati_job_task_place(job, index, &task->vertex, &task->subtask);
}

typedef struct metric_list {
    const leat_allocator *allocator;
    leati_msg_metric *items;
    size_t count, capacity;
} metric_list;

static void add_metric(void *user, const leat_metric *metric)
{
    metric_list *list = user;
    void *items = list->items;
    if (list->count == METRICS_MOST ||
        !leati_grow(list->allocator, &items, &list->capacity, list->count + 1, sizeof *list->items))
        return;
    list->items = items;
    leati_msg_metric *to = &list->items[list->count++];
    *to = (leati_msg_metric){
        .op = str(metric->op_name),
        .op_id = metric->op_id,
        .subtask = metric->subtask,
        .name = str(metric->name),
        .kind = (uint32_t)metric->kind,
        .count = metric->count,
        .value = metric->value,
        .built_in = metric->built_in,
    };
    if (!metric->histogram)
        return;
    to->value = leat_histogram_mean(metric->histogram);
    to->min = leat_histogram_min(metric->histogram);
    to->max = leat_histogram_max(metric->histogram);
    to->p50 = leat_histogram_percentile(metric->histogram, 50);
    to->p90 = leat_histogram_percentile(metric->histogram, 90);
    to->p99 = leat_histogram_percentile(metric->histogram, 99);
}

void leati_report_send(leati_attempt *a, leat_job *job, bool last)
{
    uint32_t count = leat_job_task_count(job);
    leati_msg_task *tasks = leati_calloc(a->allocator, count + 1, sizeof *tasks);
    leati_wait *waits = leati_calloc(a->allocator, count + 1, sizeof *waits);
    uint8_t *bytes = NULL;
    size_t size = 0;
    metric_list metrics = {.allocator = a->allocator};
    if (tasks && waits) {
        int64_t now = leati_clock_ns();
        for (uint32_t i = 0; i < count; i++)
            fill_task(job, i, now, &waits[i], &tasks[i]);
        leat_job_each_metric(job, add_metric, &metrics);
        leati_msg_report message = {
            .attempt = a->id, .tasks = {tasks, count}, .metrics = {metrics.items, metrics.count}};
        // OVER, which follows the last one, has them.
        if (!last && leati_job_accumulators_encode(job, &bytes, &size) == LEAT_OK &&
            size <= ACCUMULATORS_MOST)
            message.accumulators = (leat_bytes){bytes, size};
        (void)leati_control_send(a->tm, a->session, LEATI_MESSAGE_REPORT,
                                 LEAT_TYPE(leati_msg_report), &message);
    }
    leati_free(a->allocator, bytes);
    leati_free(a->allocator, metrics.items);
    leati_free(a->allocator, waits);
    leati_free(a->allocator, tasks);
}
