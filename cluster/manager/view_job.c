// SPDX-License-Identifier: Apache-2.0
// Jobs as a whole.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cluster/manager/view.h"

int64_t leati_view_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool leati_view_is_source(const leati_job_graph *graph, uint32_t vertex)
{
    const leati_vertex *v = &graph->vertices[vertex];
    for (uint32_t i = 0; i < v->op_count; i++)
        if (v->ops[i].flags & LEATI_NODE_SOURCE)
            return true;
    return false;
}

bool leati_view_is_last(const leati_job_graph *graph, uint32_t vertex)
{
    for (uint32_t i = 0; i < graph->edge_count; i++)
        if (graph->edges[i].from_vertex == vertex)
            return false;
    return true;
}

void leati_view_waiting(const leati_manager *manager, const leati_managed_job *job, char *text,
                        size_t text_size)
{
    uint32_t members, total, available;
    snprintf(text, text_size, "%s", "");
    if (job->phase != LEATI_PHASE_CREATED)
        return;
    const char *plural = job->slots_needed == 1 ? "" : "s";
    if (job->one_process) {
        leati_view_largest(manager, &total, &available);
        snprintf(text, text_size,
                 "%" PRIu32
                 " slot%s in one task manager, as it has a loop; the largest has %" PRIu32
                 " (at most %" PRIu32 " free in one)",
                 job->slots_needed, plural, total, available);
        return;
    }
    leati_view_slots(manager, &members, &total, &available);
    snprintf(text, text_size, "%" PRIu32 " slot%s, %" PRIu32 " %s free", job->slots_needed, plural,
             available, available == 1 ? "is" : "are");
}

// The root cause, or "".
static const char *failure_of(const leati_managed_job *job)
{
    bool failed = job->phase == LEATI_PHASE_FAILING || job->phase == LEATI_PHASE_FAILED;
    return failed && job->failure_count ? job->failures[0].text : "";
}

static void put_task_counts(leati_strbuf *out, const leati_managed_job *job)
{
    uint64_t running = 0, finished = 0, failed = 0, canceled = 0;
    for (uint32_t i = 0; i < job->task_count; i++) {
        const char *state = job->tasks[i].state;
        running +=
            !strcmp(state, "RUNNING") || !strcmp(state, "ENDING") || !strcmp(state, "CLOSING");
        finished += !strcmp(state, "FINISHED");
        failed += !strcmp(state, "FAILED");
        canceled += !strcmp(state, "CANCELED");
    }
    leati_put_open(out, "tasks", '{');
    leati_put_u64(out, "total", leati_job_graph_tasks(job->graph));
    leati_put_u64(out, "running", running);
    leati_put_u64(out, "finished", finished);
    leati_put_u64(out, "failed", failed);
    leati_put_u64(out, "canceled", canceled);
    leati_put_u64(out, "deploying", job->task_count - running - finished - failed - canceled);
    leati_put_close(out, '}');
}

// What came in at the sources, and what has reached the last vertices.
static void put_record_counts(leati_strbuf *out, const leati_managed_job *job)
{
    uint64_t in = 0, arrived = 0;
    for (uint32_t v = 0; job->tasks && v < job->graph->vertex_count; v++) {
        bool is_source = leati_view_is_source(job->graph, v);
        bool is_last = leati_view_is_last(job->graph, v);
        for (uint32_t s = 0; s < job->graph->vertices[v].parallelism; s++) {
            uint64_t records = job->tasks[job->first_task[v] + s].figures.records_in;
            in += is_source ? records : 0;
            arrived += is_last ? records : 0;
        }
    }
    leati_put_u64(out, "records_in", in);
    leati_put_u64(out, "records_out", arrived);
}

void leati_view_job(leati_strbuf *out, const leati_manager *manager, const leati_managed_job *job)
{
    char waiting[160];
    leati_view_waiting(manager, job, waiting, sizeof waiting);
    int64_t end_ms = job->ended_ms ? job->ended_ms : leati_view_now_ms();
    leati_put_text(out, "id", job->id);
    leati_put_text(out, "name", job->name);
    leati_put_text(out, "state", leati_phase_name(job->phase));
    leati_put_i64(out, "start_time", job->submitted_ms);
    leati_put_i64(out, "end_time", job->ended_ms);
    leati_put_i64(out, "duration", end_ms > job->submitted_ms ? end_ms - job->submitted_ms : 0);
    leati_put_i64(out, "deployed", job->started_ms);
    leati_put_u64(out, "slots", job->slots_needed);
    leati_put_text(out, "waiting_for", waiting);
    put_task_counts(out, job);
    put_record_counts(out, job);
    leati_put_text(out, "failure", failure_of(job));
    leati_put_u64(out, "attempt", job->attempt_number);
    leati_put_u64(out, "output_end", job->output_end);
}

void leati_view_jobs(leati_strbuf *out, const leati_manager *manager)
{
    leati_put_open(out, NULL, '{');
    leati_put_open(out, "jobs", '[');
    for (const leati_managed_job *job = manager->jobs; job; job = job->next) {
        leati_put_open(out, NULL, '{');
        leati_view_job(out, manager, job);
        leati_put_close(out, '}');
    }
    leati_put_close(out, ']');
    leati_put_close(out, '}');
}

// --- what it was submitted with ---

static void put_file(leati_strbuf *out, const char *key, const leati_msg_file *file)
{
    leati_put_open(out, key, '{');
    leati_put_str(out, "name", file->name);
    leati_put_str(out, "hash", file->hash);
    leati_put_u64(out, "size", file->size);
    leati_put_bool(out, "executable", file->executable);
    leati_put_close(out, '}');
}

static void put_files(leati_strbuf *out, const char *key, const leat_list *files)
{
    const leati_msg_file *file = files->items;
    leati_put_open(out, key, '[');
    for (size_t i = 0; i < files->count; i++)
        put_file(out, NULL, &file[i]);
    leati_put_close(out, ']');
}

static void put_texts(leati_strbuf *out, const char *key, const leat_list *texts)
{
    const leat_str *text = texts->items;
    leati_put_open(out, key, '[');
    for (size_t i = 0; i < texts->count; i++)
        leati_put_str(out, NULL, text[i]);
    leati_put_close(out, ']');
}

// But for what is nobody's business.
static void put_arguments(leati_strbuf *out, const leat_list *args)
{
    const leat_str *arg = args->items;
    bool follows = false;
    leati_strbuf shown;
    leati_put_open(out, "args", '[');
    for (size_t i = 0; i < args->count; i++) {
        leati_strbuf_init(&shown, out->allocator);
        leati_mask_argument(arg[i].data, arg[i].size, &follows, &shown);
        leati_put_str(out, NULL, (leat_str){leati_strbuf_text(&shown), shown.size});
        leati_strbuf_fini(&shown);
    }
    leati_put_close(out, ']');
}

void leati_view_job_config(leati_strbuf *out, const leati_managed_job *job)
{
    const leati_msg_job *s = job->submission;
    const leati_msg_setting *setting = s->settings.items;
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "id", job->id);
    leati_put_text(out, "name", job->name);
    put_file(out, "job_file", &s->job_file);
    put_files(out, "libraries", &s->libraries);
    put_files(out, "cached", &s->cached);
    put_texts(out, "empty_dirs", &s->empty_dirs);
    put_arguments(out, &s->args);
    leati_put_open(out, "settings", '[');
    for (size_t i = 0; i < s->settings.count; i++) {
        leati_put_open(out, NULL, '{');
        leati_put_str(out, "key", setting[i].key);
        if (leati_is_secret_name(setting[i].key.data, setting[i].key.size))
            leati_put_text(out, "value", "***");
        else
            leati_put_str(out, "value", setting[i].value);
        leati_put_close(out, '}');
    }
    leati_put_close(out, ']');
    leati_put_str(out, "folder", s->folder);
    leati_put_str(out, "argv0", s->argv0);
    leati_put_str(out, "digest", s->digest);
    leati_put_close(out, '}');
}

// --- what went wrong, and its log ---

static void put_failure(leati_strbuf *out, const leati_managed_job *job, const leati_failure *f)
{
    char task[400] = "";
    if (f->vertex < job->graph->vertex_count)
        snprintf(task, sizeof task, "%s (%" PRIu32 "/%" PRIu32 ")",
                 job->graph->vertices[f->vertex].name, f->subtask + 1,
                 job->graph->vertices[f->vertex].parallelism);
    leati_put_open(out, NULL, '{');
    leati_put_i64(out, "time", f->time_ms);
    leati_put_text(out, "task", task);
    leati_put_text(out, "worker", f->worker);
    leati_put_text(out, "text", f->text);
    leati_put_bool(out, "root", f->root);
    leati_put_close(out, '}');
}

void leati_view_failures(leati_strbuf *out, const char *key, const leati_managed_job *job)
{
    leati_put_open(out, key, '[');
    for (uint32_t i = 0; i < job->failure_count; i++)
        put_failure(out, job, &job->failures[i]);
    leati_put_close(out, ']');
}

void leati_view_exceptions(leati_strbuf *out, const leati_managed_job *job)
{
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "root", job->failure_count ? job->failures[0].text : "");
    leati_view_failures(out, "entries", job);
    leati_put_close(out, '}');
}

void leati_view_log(leati_strbuf *out, const leati_managed_job *job)
{
    uint64_t kept = job->log_count < LEATI_LOG_LINES_KEPT ? job->log_count : LEATI_LOG_LINES_KEPT;
    for (uint64_t i = job->log_count - kept; i < job->log_count; i++) {
        const char *line = job->log[i % LEATI_LOG_LINES_KEPT];
        if (!line)
            continue;
        leati_strbuf_puts(out, line);
        leati_strbuf_putc(out, '\n');
    }
}
