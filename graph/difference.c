// SPDX-License-Identifier: Apache-2.0
// Where two job graphs that should be one and the same differ first: for a job function that has
// built another graph than before.
//
// Operators are compared in the order in which the program has made them, so that what comes first
// is what the program did differently; then the exchanges. Only what enters the digest counts.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/job_graph.h"

typedef struct report {
    char *text;
    size_t size;
    bool found;
} report;

static void tell(report *to, const char *format, ...) LEAT_PRINTF(2, 3);
static void tell(report *to, const char *format, ...)
{
    va_list args;
    if (to->found)
        return;
    to->found = true;
    va_start(args, format);
    vsnprintf(to->text, to->size, format, args);
    va_end(args);
}

// --- operators ---

// An operator and the vertex that it is in.
typedef struct place {
    const leati_vertex *vertex;
    const leati_chain_op *op;
} place;

// The operator with that id. It is looked for first where the other graph has it.
static place find(const leati_job_graph *graph, uint32_t node_id, uint32_t vertex, uint32_t index)
{
    if (vertex < graph->vertex_count && index < graph->vertices[vertex].op_count &&
        graph->vertices[vertex].ops[index].node_id == node_id)
        return (place){&graph->vertices[vertex], &graph->vertices[vertex].ops[index]};
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            if (graph->vertices[v].ops[i].node_id == node_id)
                return (place){&graph->vertices[v], &graph->vertices[v].ops[i]};
    return (place){0};
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void compare_text(report *to, const leati_chain_op *op, const char *what, const char *a,
                         const char *b)
{
    if (strcmp(or_empty(a), or_empty(b)) != 0)
        tell(to, "operator %" PRIu32 ", \"%s\": its %s is \"%s\" here and \"%s\" there",
             op->node_id, op->name, what, or_empty(a), or_empty(b));
}

static void compare_number(report *to, const leati_chain_op *op, const char *what, uint32_t a,
                           uint32_t b)
{
    if (a != b)
        tell(to, "operator %" PRIu32 ", \"%s\": its %s is %" PRIu32 " here and %" PRIu32 " there",
             op->node_id, op->name, what, a, b);
}

static void compare_operators(report *to, place a, place b)
{
    const leati_chain_op *x = a.op, *y = b.op;
    if (strcmp(x->kind, y->kind) != 0)
        tell(to, "operator %" PRIu32 " is \"%s\" (%s) here and \"%s\" (%s) there", x->node_id,
             x->name, x->kind, y->name, y->kind);
    compare_text(to, x, "name", x->name, y->name);
    compare_text(to, x, "uid", x->uid, y->uid);
    compare_text(to, x, "description", x->detail, y->detail);
    compare_text(to, x, "input type", x->in_type, y->in_type);
    compare_text(to, x, "output type", x->out_type, y->out_type);
    compare_text(to, x, "side output", x->side, y->side);
    compare_number(to, x, "number of inputs", x->input_count, y->input_count);
    compare_number(to, x, "number of broadcast variables", x->variable_count, y->variable_count);
    for (uint32_t i = 0; i < x->variable_count && i < y->variable_count; i++)
        compare_text(to, x, "broadcast variable", x->variables[i], y->variables[i]);
    compare_number(to, x, "parallelism", a.vertex->parallelism, b.vertex->parallelism);
    compare_number(to, x, "max parallelism", a.vertex->max_parallelism, b.vertex->max_parallelism);
    compare_text(to, x, "slot group", a.vertex->slot_group, b.vertex->slot_group);
    compare_number(to, x, "task", a.vertex->id, b.vertex->id);
    compare_number(to, x, "place in its task", (uint32_t)(x - a.vertex->ops),
                   (uint32_t)(y - b.vertex->ops));
    compare_number(to, x, "predecessor's place", x->parent, y->parent);
    compare_number(to, x, "set of flags", x->flags, y->flags);
    if (x->absorbed != y->absorbed || x->absorbed_input != y->absorbed_input)
        tell(to, "operator %" PRIu32 ", \"%s\", feeds another input there", x->node_id, x->name);
}

// The hash follows what stands before an operator, which tells less than what that is.
static void compare_hashes(report *to, place a, place b)
{
    if (memcmp(a.op->uid_hash, b.op->uid_hash, sizeof a.op->uid_hash) != 0)
        tell(to, "operator %" PRIu32 ", \"%s\", stands in another place of the graph there",
             a.op->node_id, a.op->name);
}

// The operator with the lowest id that `b` does not have, or that is another there.
static void find_operator(report *to, const leati_job_graph *a, const leati_job_graph *b,
                          void (*compare)(report *to, place a, place b), const char *where)
{
    // Trials would overwrite what has been told.
    if (to->found)
        return;
    place first = {0}, other = {0};
    for (uint32_t v = 0; v < a->vertex_count; v++)
        for (uint32_t i = 0; i < a->vertices[v].op_count; i++) {
            place here = {&a->vertices[v], &a->vertices[v].ops[i]};
            place there = find(b, here.op->node_id, v, i);
            report trial = {.text = to->text, .size = to->size}; // overwritten in the end
            if (there.op && compare)
                compare(&trial, here, there);
            if ((!there.op || trial.found) && (!first.op || here.op->node_id < first.op->node_id)) {
                first = here;
                other = there;
            }
        }
    if (!first.op)
        return;
    to->text[0] = '\0';
    if (other.op)
        compare(to, first, other);
    else
        tell(to, "operator %" PRIu32 ", \"%s\" (%s), is only %s", first.op->node_id, first.op->name,
             first.op->kind, where);
}

// --- exchanges ---

static void compare_edges(report *to, const leati_job_graph *graph, const leati_job_edge *a,
                          const leati_job_edge *b)
{
    const char *from = graph->vertices[a->from_vertex].ops[a->from_op].name;
    const char *into = graph->vertices[a->to_vertex].ops[0].name;
    if (a->from_vertex != b->from_vertex || a->from_op != b->from_op ||
        a->to_vertex != b->to_vertex || a->input != b->input)
        tell(to, "the exchange from \"%s\" to \"%s\" joins other operators there", from, into);
    if (a->partitioner != b->partitioner)
        tell(to, "the exchange from \"%s\" to \"%s\" is %s here and %s there", from, into,
             leati_partitioner_name(a->partitioner), leati_partitioner_name(b->partitioner));
    if (strcmp(a->key_text, b->key_text) != 0)
        tell(to, "the exchange from \"%s\" to \"%s\" is by the key \"%s\" here and \"%s\" there",
             from, into, a->key_text, b->key_text);
    if (a->buffer_timeout_ms != b->buffer_timeout_ms)
        tell(to,
             "the exchange from \"%s\" to \"%s\" has a buffer timeout of %" PRId64
             " ms here and %" PRId64 " ms there",
             from, into, a->buffer_timeout_ms, b->buffer_timeout_ms);
    if (a->blocking != b->blocking || strcmp(a->side, b->side) != 0)
        tell(to, "the exchange from \"%s\" to \"%s\" is of another kind there", from, into);
}

void leati_job_graph_difference(const leati_job_graph *a, const leati_job_graph *b, char *text,
                                size_t text_size)
{
    if (text_size == 0)
        return;
    text[0] = '\0';
    report to = {.text = text, .size = text_size};
    find_operator(&to, a, b, compare_operators, "here");
    find_operator(&to, b, a, NULL, "there");
    if (a->edge_count != b->edge_count)
        tell(&to, "there are %" PRIu32 " exchanges here and %" PRIu32 " there", a->edge_count,
             b->edge_count);
    for (uint32_t e = 0; e < a->edge_count && !to.found; e++)
        compare_edges(&to, a, &a->edges[e], &b->edges[e]);
    find_operator(&to, a, b, compare_hashes, "here");
    if (!to.found && strcmp(a->digest, b->digest) != 0)
        tell(&to, "the digest is %s here and %s there", a->digest, b->digest);
}
