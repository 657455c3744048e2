// SPDX-License-Identifier: Apache-2.0
#include "cluster/manager/why.h"

#include <string.h>

#include "base/alloc.h"

// What is worked out of each task.
typedef struct mark {
    bool active, held, reached;
    int64_t held_ms;       // of those that wait for it, the longest
    leati_why_cause cause; // of its own
} mark;

typedef struct search {
    const leati_why_input *input;
    mark *marks;
} search;

const char *leati_why_cause_name(leati_why_cause cause)
{
    static const char *const names[] = {"",         "slots",   "silent",    "stuck",
                                        "output",   "opening", "worker",    "network",
                                        "blocking", "skew",    "slow task", "slow"};
    return (unsigned)cause < sizeof names / sizeof *names ? names[cause] : "?";
}

static bool is_state(const leati_why_task *t, const char *state)
{
    return t->state && !strcmp(t->state, state);
}

static bool has_ended(const leati_why_task *t)
{
    return is_state(t, "FINISHED") || is_state(t, "FAILED") || is_state(t, "CANCELED");
}

static bool is_opening(const leati_why_task *t)
{
    return is_state(t, "CREATED") || is_state(t, "SCHEDULED") || is_state(t, "DEPLOYING") ||
           is_state(t, "OPENING");
}

static bool waits_for_room(const leati_why_task *t)
{
    return t->wait == LEATI_WAIT_BUFFER || t->wait == LEATI_WAIT_CREDIT;
}

static bool is_source(const leati_vertex *vertex)
{
    for (uint32_t i = 0; i < vertex->op_count; i++)
        if (vertex->ops[i].flags & LEATI_NODE_SOURCE)
            return true;
    return false;
}

static bool is_last(const leati_job_graph *graph, uint32_t vertex)
{
    for (uint32_t e = 0; e < graph->edge_count; e++)
        if (graph->edges[e].from_vertex == vertex)
            return false;
    return true;
}

// --- faults that a task shows by itself ---

// The operator whose name the text of the wait has in quotes, or NULL.
static const leati_chain_op *quoted_op(const leati_why_task *t, const leati_vertex *vertex)
{
    for (uint32_t i = 0; t->wait_text && i < vertex->op_count; i++) {
        const char *name = vertex->ops[i].name, *at = name[0] ? strstr(t->wait_text, name) : NULL;
        if (at && at > t->wait_text && at[-1] == '"' && at[strlen(name)] == '"')
            return &vertex->ops[i];
    }
    return NULL;
}

// Whether a user function has hung. A blocking source waits for the world, which is its right.
static bool is_stuck(const leati_why_task *t, const leati_vertex *vertex)
{
    if (t->wait_ms < LEATI_WHY_STUCK_MS)
        return false;
    if (t->wait != LEATI_WAIT_BLOCKING)
        return t->wait == LEATI_WAIT_USER;
    const leati_chain_op *op = quoted_op(t, vertex);
    return op ? !(op->flags & LEATI_NODE_SOURCE) : !is_source(vertex);
}

// Whether a task without followers is held back all the same: by what is outside of the job.
static bool waits_for_outside(const leati_why_task *t, const leati_job_graph *graph,
                              uint32_t vertex)
{
    return is_last(graph, vertex) &&
           (t->held >= LEATI_WHY_HELD || (waits_for_room(t) && t->wait_ms >= LEATI_WHY_HELD_MS));
}

// Whether it waits in an operator of Leat's own that writes to somebody who does not read.
static bool waits_in_output(const leati_why_task *t, const leati_vertex *vertex)
{
    static const char *const kinds[] = {"print", "socket", "file"};
    const leati_chain_op *op = t->wait == LEATI_WAIT_BLOCKING ? quoted_op(t, vertex) : NULL;
    for (size_t k = 0; op && k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(op->kind, kinds[k]))
            return true;
    return false;
}

// Whether the task, which has not opened, waits for a broadcast variable, or reads one just now.
static bool waits_for_broadcast(const leati_why_task *t, const leati_job_graph *graph,
                                uint32_t vertex)
{
    bool reads = graph->vertices[vertex].ops[0].variable_count > 0;
    return t->wait == LEATI_WAIT_INPUT || (reads && t->wait == LEATI_WAIT_NONE);
}

static leati_why_cause own_cause(const leati_why_input *in, const leati_why_task *t,
                                 uint32_t vertex)
{
    if (has_ended(t))
        return LEATI_WHY_NOTHING;
    if (t->slow_report)
        return LEATI_WHY_SILENT;
    if (is_stuck(t, &in->graph->vertices[vertex]))
        return waits_in_output(t, &in->graph->vertices[vertex]) ? LEATI_WHY_OUTPUT
                                                                : LEATI_WHY_STUCK;
    if (is_opening(t))
        return t->state_ms >= LEATI_WHY_OPENING_MS && !waits_for_broadcast(t, in->graph, vertex)
                   ? LEATI_WHY_OPENING
                   : LEATI_WHY_NOTHING;
    if (waits_for_outside(t, in->graph, vertex))
        return LEATI_WHY_OUTPUT;
    if (t->wait == LEATI_WAIT_WORKER && t->wait_ms >= LEATI_WHY_WORKER_MS)
        return LEATI_WHY_WORKER;
    return LEATI_WHY_NOTHING;
}

static void mark_tasks(search *s)
{
    const leati_why_input *in = s->input;
    for (uint32_t v = 0; v < in->graph->vertex_count; v++) {
        for (uint32_t i = 0; i < in->graph->vertices[v].parallelism; i++) {
            uint32_t index = in->first_task[v] + i;
            const leati_why_task *t = &in->tasks[index];
            mark *m = &s->marks[index];
            m->active = !has_ended(t) && !is_opening(t);
            m->cause = own_cause(in, t, v);
            m->held = m->active && m->cause == LEATI_WHY_NOTHING &&
                      (t->held >= LEATI_WHY_HELD ||
                       (waits_for_room(t) && t->wait_ms >= LEATI_WHY_HELD_MS));
        }
    }
}

// --- from held tasks downstream ---

// For how long the task has been held: by its rates, or by what it waits for now.
static int64_t held_for(const leati_why_task *t)
{
    int64_t waiting = waits_for_room(t) ? t->wait_ms + t->silent_ms : 0;
    return t->held_ms > waiting ? t->held_ms : waiting;
}

// Whether the held task may wait for a subtask of this vertex: where it is known for which it waits
// now, for no other. (The subtask it names is only the worst of them.)
static bool may_wait_for(const leati_why_task *t, uint32_t vertex)
{
    bool known = waits_for_room(t) && t->wait_ms >= LEATI_WHY_HELD_MS;
    return !known || t->wait_vertex == UINT32_MAX || t->wait_vertex == vertex;
}

// Whether records cannot be sent to just this consumer, which waits for them.
static bool does_not_arrive(const search *s, const leati_why_task *from, uint32_t vertex,
                            uint32_t subtask)
{
    const leati_why_task *to = &s->input->tasks[s->input->first_task[vertex] + subtask];
    bool waits = waits_for_room(from) && from->wait_ms >= LEATI_WHY_NETWORK_MS &&
                 from->wait_vertex == vertex && from->wait_subtask == subtask;
    bool starves = to->wait == LEATI_WAIT_INPUT && to->queued == 0 &&
                   to->wait_ms >= LEATI_WHY_NETWORK_MS && to->busy < LEATI_WHY_HELD;
    return waits && starves && from->process != to->process;
}

static void reach(search *s, uint32_t from, const leati_job_edge *edge, uint32_t subtask)
{
    const leati_why_input *in = s->input;
    const leati_why_task *t = &in->tasks[from];
    uint32_t consumers = in->graph->vertices[edge->to_vertex].parallelism, first, count;
    leati_edge_consumers(edge->partitioner, in->graph->vertices[edge->from_vertex].parallelism,
                         consumers, subtask, &first, &count);
    int64_t held_ms = s->marks[from].held_ms > held_for(t) ? s->marks[from].held_ms : held_for(t);
    for (uint32_t i = first; i < first + count && i < consumers; i++) {
        mark *m = &s->marks[in->first_task[edge->to_vertex] + i];
        if (!may_wait_for(t, edge->to_vertex))
            continue;
        m->reached = true;
        m->held_ms = held_ms > m->held_ms ? held_ms : m->held_ms;
        if (m->active && m->cause == LEATI_WHY_NOTHING && does_not_arrive(s, t, edge->to_vertex, i))
            m->cause = LEATI_WHY_NETWORK;
    }
}

// Vertices come in topological order, so one pass reaches everything.
static void walk(search *s)
{
    const leati_job_graph *graph = s->input->graph;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        if (edge->blocking)
            continue;
        for (uint32_t i = 0; i < graph->vertices[edge->from_vertex].parallelism; i++) {
            uint32_t from = s->input->first_task[edge->from_vertex] + i;
            if (s->marks[from].held)
                reach(s, from, edge, i);
        }
    }
}

// --- what the walk ends at ---

typedef struct siblings {
    uint32_t busy, others;
    double busy_share, other_share;     // permille, summed
    double busy_records, other_records; // as leati_why_load has them, summed
} siblings;

static siblings compare_siblings(const search *s, uint32_t vertex)
{
    siblings sum = {0};
    for (uint32_t i = 0; i < s->input->graph->vertices[vertex].parallelism; i++) {
        const leati_why_task *t = &s->input->tasks[s->input->first_task[vertex] + i];
        const mark *m = &s->marks[s->input->first_task[vertex] + i];
        if (m->reached && !m->held && t->busy >= LEATI_WHY_BUSY) {
            sum.busy++;
            sum.busy_share += t->busy;
            sum.busy_records += leati_why_load(s->input, vertex, i);
        } else {
            sum.others++;
            sum.other_share += t->busy;
            sum.other_records += leati_why_load(s->input, vertex, i);
        }
    }
    return sum;
}

// Why busy subtasks of a vertex are what others wait for.
static leati_why_cause busy_cause(const search *s, uint32_t vertex, const leati_why_task *t)
{
    siblings sum = compare_siblings(s, vertex);
    bool few = sum.busy && sum.others && sum.busy <= sum.others &&
               sum.busy_share / sum.busy > 2 * sum.other_share / sum.others;
    if (waits_in_output(t, &s->input->graph->vertices[vertex]))
        return LEATI_WHY_OUTPUT;
    if (t->wait == LEATI_WAIT_BLOCKING && !few)
        return LEATI_WHY_BLOCKING;
    if (!few)
        return LEATI_WHY_SLOW;
    return sum.busy_records / sum.busy > 1.5 * sum.other_records / sum.others ? LEATI_WHY_SKEW
                                                                              : LEATI_WHY_SLOW_TASK;
}

// Tasks that are the end of the walk. `also_held`: those that are held a little themselves, when
// nothing else explains what is seen.
static void name_busy(search *s, bool also_held)
{
    const leati_why_input *in = s->input;
    for (uint32_t v = 0; v < in->graph->vertex_count; v++) {
        for (uint32_t i = 0; i < in->graph->vertices[v].parallelism; i++) {
            mark *m = &s->marks[in->first_task[v] + i];
            const leati_why_task *t = &in->tasks[in->first_task[v] + i];
            bool open = m->active && m->reached && m->cause == LEATI_WHY_NOTHING;
            if (open && (!m->held || also_held) && t->busy >= LEATI_WHY_BUSY)
                m->cause = busy_cause(s, v, t);
        }
    }
}

// --- the answer ---

// What stops everything goes before what slows it down.
static int weight(leati_why_cause cause)
{
    switch (cause) {
    case LEATI_WHY_SILENT:
    case LEATI_WHY_STUCK:
        return 3;
    case LEATI_WHY_OUTPUT:
    case LEATI_WHY_OPENING:
    case LEATI_WHY_WORKER:
    case LEATI_WHY_NETWORK:
        return 2;
    case LEATI_WHY_NOTHING:
        return 0;
    default:
        return 1;
    }
}

// A sink that takes a little now and then waits anew each time; those who wait for it know better.
static int64_t since_output(const leati_why_task *t, const mark *m)
{
    int64_t since = t->wait == LEATI_WAIT_BLOCKING ? t->wait_ms + t->silent_ms : held_for(t);
    return since > m->held_ms ? since : m->held_ms;
}

static int64_t since_of(const leati_why_task *t, const mark *m)
{
    switch (m->cause) {
    case LEATI_WHY_SILENT:
        return t->silent_ms;
    case LEATI_WHY_STUCK:
    case LEATI_WHY_WORKER:
        return t->wait_ms + t->silent_ms;
    case LEATI_WHY_OPENING:
        return t->state_ms;
    case LEATI_WHY_OUTPUT:
        return since_output(t, m);
    default:
        return m->held_ms ? m->held_ms : t->busy_ms;
    }
}

// The first task of the weightiest cause, and its siblings with the same.
static void choose(const search *s, leati_why_result *result)
{
    const leati_why_input *in = s->input;
    for (uint32_t v = 0; v < in->graph->vertex_count; v++) {
        for (uint32_t i = 0; i < in->graph->vertices[v].parallelism; i++) {
            const mark *m = &s->marks[in->first_task[v] + i];
            if (weight(m->cause) <= weight(result->cause))
                continue;
            result->cause = m->cause;
            result->vertex = v;
        }
    }
    if (result->cause == LEATI_WHY_NOTHING)
        return;
    for (uint32_t i = 0; i < in->graph->vertices[result->vertex].parallelism; i++) {
        uint32_t index = in->first_task[result->vertex] + i;
        if (s->marks[index].cause != result->cause)
            continue;
        int64_t since = since_of(&in->tasks[index], &s->marks[index]);
        result->named[index] = true;
        result->since_ms = since > result->since_ms ? since : result->since_ms;
    }
}

static bool anything_named(const search *s)
{
    for (uint32_t i = 0; i < s->input->task_count; i++)
        if (s->marks[i].cause != LEATI_WHY_NOTHING)
            return true;
    return false;
}

leat_err leati_why(const leat_allocator *allocator, const leati_why_input *input,
                   leati_why_result *result)
{
    *result = (leati_why_result){.vertex = UINT32_MAX, .allocator = allocator};
    if (input->slots_needed) {
        result->cause = LEATI_WHY_SLOTS;
        result->since_ms = input->slots_ms;
        leati_why_explain(input, result);
        return LEAT_OK;
    }
    if (!input->tasks)
        return LEAT_OK;
    search s = {.input = input};
    s.marks = leati_calloc(allocator, (size_t)input->task_count + 1, sizeof *s.marks);
    result->named = leati_calloc(allocator, (size_t)input->task_count + 1, sizeof *result->named);
    if (!s.marks || !result->named) {
        leati_free(allocator, s.marks);
        leati_why_fini(result);
        return LEAT_ENOMEM;
    }
    mark_tasks(&s);
    walk(&s);
    name_busy(&s, false);
    if (!anything_named(&s))
        name_busy(&s, true);
    choose(&s, result);
    leati_why_explain(input, result);
    leati_free(allocator, s.marks);
    return LEAT_OK;
}

void leati_why_fini(leati_why_result *result)
{
    leati_free(result->allocator, result->named);
    result->named = NULL;
}
