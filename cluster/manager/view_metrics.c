// SPDX-License-Identifier: Apache-2.0
// The pages of metrics, as Flink's: without `get` the ids that there are, with it the values;
// values are strings there. An id is a name after what it is of, as far as the page leaves that
// open:
//
//     a job       "vertex.subtask.numRecordsIn"   "operator.subtask.name"
//     a vertex    "subtask.numRecordsIn"          "subtask.operator.name"
//     a subtask   "numRecordsIn"                  "operator.name"
//
// With `agg`, ids are those of a subtask, and values are taken over all subtasks. Commas, which
// divide the ids of `get`, are underscores in ids. Where several vertices or operators of the job
// have the same name, "#" and their number in the plan follow it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/manager/metrics.h"

enum {
    NAME_MOST = 300,
    LABEL_SIZE = NAME_MOST + 16,
    ID_SIZE = 700,
    AGG_MIN = 1,
    AGG_MAX = 2,
    AGG_SUM = 4,
    AGG_AVG = 8
};

typedef struct aggregate {
    char *id;
    double min, max, sum;
    uint64_t count;
} aggregate;

typedef struct page {
    leati_strbuf *out;
    const leati_managed_job *job;
    uint32_t vertex, subtask; // or UINT32_MAX
    const char *get;          // or NULL
    unsigned agg;             // AGG_*, or 0
    aggregate *all;           // by id, in the order of coming
    size_t count, capacity, next;
    const leat_allocator *allocator;
    char label[LABEL_SIZE]; // the name of what is being listed, as it is in ids
    uint32_t label_of;      // the operator's number, or UINT32_MAX
} page;

// Whether the list "a,b" has the id.
static bool is_wanted(const char *get, const char *id)
{
    size_t size = strlen(id);
    for (const char *at = get; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, id, size) && (at[size] == ',' || at[size] == '\0'))
            return true;
    }
    return false;
}

static void print_value(char *text, size_t size, double value)
{
    if (!isfinite(value))
        snprintf(text, size, "NaN");
    else if (fabs(value) < 9e15 && value == (double)(int64_t)value)
        snprintf(text, size, "%" PRId64, (int64_t)value);
    else
        snprintf(text, size, "%.10g", value);
}

static void put_metric(leati_strbuf *out, const char *get, const char *id, double value)
{
    char text[40];
    if (get && !is_wanted(get, id))
        return;
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "id", id);
    if (get) {
        print_value(text, sizeof text, value);
        leati_put_text(out, "value", text);
    }
    leati_put_close(out, '}');
}

// --- aggregates ---

// Ids come in the same order for each task, so the one after the last is tried first.
static aggregate *find_aggregate(page *p, const char *id)
{
    for (size_t i = 0; i < p->count; i++) {
        aggregate *a = &p->all[(p->next + i) % p->count];
        if (strcmp(a->id, id) != 0)
            continue;
        p->next = (size_t)(a - p->all) + 1;
        return a;
    }
    void *items = p->all;
    if (!leati_grow(p->allocator, &items, &p->capacity, p->count + 1, sizeof *p->all))
        return NULL;
    p->all = items;
    char *copy = leati_strdup(p->allocator, id);
    if (!copy)
        return NULL;
    p->all[p->count] = (aggregate){.id = copy};
    p->next = p->count + 1;
    return &p->all[p->count++];
}

static void add_value(page *p, const char *id, double value)
{
    aggregate *a = find_aggregate(p, id);
    if (!a) {
        p->out->failed = true;
        return;
    }
    a->min = a->count && a->min < value ? a->min : value;
    a->max = a->count && a->max > value ? a->max : value;
    a->sum += value;
    a->count++;
}

static void put_aggregates(page *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const aggregate *a = &p->all[i];
        if (!p->get || is_wanted(p->get, a->id)) {
            leati_put_open(p->out, NULL, '{');
            leati_put_text(p->out, "id", a->id);
            if (p->get && (p->agg & AGG_MIN))
                leati_put_f64(p->out, "min", a->min);
            if (p->get && (p->agg & AGG_MAX))
                leati_put_f64(p->out, "max", a->max);
            if (p->get && (p->agg & AGG_AVG))
                leati_put_f64(p->out, "avg", a->sum / (double)a->count);
            if (p->get && (p->agg & AGG_SUM))
                leati_put_f64(p->out, "sum", a->sum);
            leati_put_close(p->out, '}');
        }
        leati_free(p->allocator, a->id);
    }
    leati_free(p->allocator, p->all);
}

// --- what there is ---

// Whether two names are the same in ids.
static bool same_names(const char *a, const char *b)
{
    size_t i = 0;
    while (i < NAME_MOST && a[i] && (a[i] == ',' ? '_' : a[i]) == (b[i] == ',' ? '_' : b[i]))
        i++;
    return i == NAME_MOST || (!a[i] && !b[i]);
}

static void make_label(page *p, const char *name, bool several, uint32_t number)
{
    if (several)
        snprintf(p->label, LABEL_SIZE, "%.*s#%" PRIu32, NAME_MOST, name, number);
    else
        snprintf(p->label, LABEL_SIZE, "%.*s", NAME_MOST, name);
}

static void label_vertex(page *p, uint32_t vertex)
{
    const leati_job_graph *graph = p->job->graph;
    const char *name = graph->vertices[vertex].name;
    bool several = false;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        several |= v != vertex && same_names(name, graph->vertices[v].name);
    make_label(p, name, several, vertex);
    p->label_of = UINT32_MAX;
}

// The metrics of an operator come one after another.
static void label_op(page *p, const char *name, uint32_t op_id)
{
    const leati_job_graph *graph = p->job->graph;
    bool several = false;
    if (p->label_of == op_id)
        return;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            several |= graph->vertices[v].ops[i].node_id != op_id &&
                       same_names(name, graph->vertices[v].ops[i].name);
    make_label(p, name, several, op_id);
    p->label_of = op_id;
}

// The id of a metric of the task or operator that the label names.
static void make_id(const page *p, char id[ID_SIZE], uint32_t subtask, bool of_op, const char *name,
                    const char *suffix)
{
    const char *label = of_op ? p->label : "", *dot = of_op ? "." : "";
    if (p->agg || p->subtask != UINT32_MAX)
        snprintf(id, ID_SIZE, "%s%s%s%s", label, dot, name, suffix);
    else if (p->vertex != UINT32_MAX)
        snprintf(id, ID_SIZE, "%" PRIu32 ".%s%s%s%s", subtask, label, dot, name, suffix);
    else
        snprintf(id, ID_SIZE, "%s.%" PRIu32 ".%s%s", p->label, subtask, name, suffix);
    for (char *at = strchr(id, ','); at; at = strchr(at, ','))
        *at = '_';
}

static void put_value(page *p, const char *id, double value)
{
    if (p->agg)
        add_value(p, id, value);
    else
        put_metric(p->out, p->get, id, value);
}

static void put_task(page *p, uint32_t vertex, uint32_t subtask)
{
    const leati_task_view *task = &p->job->tasks[p->job->first_task[vertex] + subtask];
    leati_rates rates;
    leati_view_rates(task, &rates);
    for (const leati_task_metric *m = leati_task_metrics; m->name; m++) {
        char id[ID_SIZE];
        make_id(p, id, subtask, false, m->name, "");
        put_value(p, id, m->read(task, &rates));
    }
}

static void put_user_metric(void *user, const leati_user_metric *m)
{
    page *p = user;
    char id[ID_SIZE];
    if ((p->vertex != UINT32_MAX && m->vertex != p->vertex) ||
        (p->subtask != UINT32_MAX && m->metric->subtask != p->subtask))
        return;
    label_op(p, m->metric->op.data, m->metric->op_id);
    make_id(p, id, m->metric->subtask, true, m->metric->name.data, m->suffix);
    put_value(p, id, m->value);
}

static void put_job(const page *p)
{
    const leati_managed_job *job = p->job;
    uint64_t in = 0, emitted = 0;
    for (uint32_t i = 0; job->tasks && i < job->task_count; i++) {
        in += job->tasks[i].figures.records_in;
        emitted += job->tasks[i].figures.records_out;
    }
    int64_t end_ms = job->ended_ms ? job->ended_ms : leati_view_now_ms();
    put_metric(p->out, p->get, "uptime",
               job->started_ms && end_ms > job->started_ms ? (double)(end_ms - job->started_ms)
                                                           : 0);
    put_metric(p->out, p->get, "numRestarts", job->attempt_number);
    put_metric(p->out, p->get, "numRecordsIn", (double)in);
    put_metric(p->out, p->get, "numRecordsOut", (double)emitted);
}

static bool read_agg(const char *agg, unsigned *bits, char *why, size_t why_size)
{
    static const struct {
        const char *name;
        unsigned bit;
    } words[] = {{"min", AGG_MIN}, {"max", AGG_MAX}, {"sum", AGG_SUM}, {"avg", AGG_AVG}};
    while (*agg) {
        size_t size = strcspn(agg, ","), i = 0;
        while (i < 4 && (strlen(words[i].name) != size || strncmp(words[i].name, agg, size) != 0))
            i++;
        if (i == 4) {
            snprintf(why, why_size, "agg: \"%.*s\" is not min, max, sum or avg",
                     size < 40 ? (int)size : 40, agg);
            return false;
        }
        *bits |= words[i].bit;
        agg += size + (agg[size] == ',');
    }
    return true;
}

bool leati_view_metrics(leati_strbuf *out, const leati_managed_job *job, uint32_t vertex,
                        uint32_t subtask, const char *get, const char *agg, char *why,
                        size_t why_size)
{
    page p = {.out = out,
              .job = job,
              .vertex = vertex,
              .subtask = subtask,
              .get = get,
              .allocator = out->allocator};
    if (agg && !read_agg(agg, &p.agg, why, why_size))
        return false;
    leati_put_open(out, NULL, '[');
    if (!p.agg && vertex == UINT32_MAX)
        put_job(&p);
    for (uint32_t v = 0; job->tasks && v < job->graph->vertex_count; v++) {
        if (vertex != UINT32_MAX && v != vertex)
            continue;
        label_vertex(&p, v);
        for (uint32_t s = 0; s < job->graph->vertices[v].parallelism; s++)
            if (subtask == UINT32_MAX || s == subtask)
                put_task(&p, v, s);
    }
    leati_each_user_metric(job, put_user_metric, &p);
    put_aggregates(&p);
    leati_put_close(out, ']');
    return true;
}

// --- processes ---

void leati_view_member_metrics(leati_strbuf *out, const leati_member *m, const char *get)
{
    const leati_msg_heartbeat *b = &m->beat;
    leati_put_open(out, NULL, '[');
    put_metric(out, get, "Status.Process.ResidentBytes", (double)b->resident_bytes);
    put_metric(out, get, "Status.Process.CPU.Time", (double)b->cpu_ns);
    put_metric(out, get, "Status.Process.Threads.Count", b->threads);
    put_metric(out, get, "Status.Process.Files.Count", b->files);
    put_metric(out, get, "Status.Network.TotalMemorySegments", b->segments_total);
    put_metric(out, get, "Status.Network.AvailableMemorySegments", b->segments_free);
    put_metric(out, get, "Status.Network.UsedMemorySegments",
               b->segments_total > b->segments_free ? b->segments_total - b->segments_free : 0);
    put_metric(out, get, "Status.Network.Connections", b->connections);
    put_metric(out, get, "Status.Network.BytesIn", (double)b->network_bytes_in);
    put_metric(out, get, "Status.Network.BytesOut", (double)b->network_bytes_out);
    put_metric(out, get, "taskSlotsTotal", m->slots);
    put_metric(out, get, "taskSlotsAvailable",
               m->slots > m->slots_used ? m->slots - m->slots_used : 0);
    leati_put_close(out, ']');
}

void leati_view_manager_metrics(leati_strbuf *out, const leati_manager *manager,
                                const leati_process_figures *process, const char *get)
{
    uint32_t members, total, available, running = 0;
    leati_view_slots(manager, &members, &total, &available);
    for (const leati_managed_job *job = manager->jobs; job; job = job->next)
        running += !leati_phase_is_final(job->phase);
    leati_put_open(out, NULL, '[');
    put_metric(out, get, "numRegisteredTaskManagers", members);
    put_metric(out, get, "numRunningJobs", running);
    put_metric(out, get, "taskSlotsTotal", total);
    put_metric(out, get, "taskSlotsAvailable", available);
    put_metric(out, get, "Status.Process.ResidentBytes", (double)process->resident_bytes);
    put_metric(out, get, "Status.Process.CPU.Time", process->cpu_seconds * 1e9);
    put_metric(out, get, "Status.Process.Threads.Count", process->threads);
    put_metric(out, get, "Status.Process.Files.Count", process->files);
    leati_put_close(out, ']');
}
