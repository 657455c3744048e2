// SPDX-License-Identifier: Apache-2.0
// Whether a decoded job graph could have been built: what those who schedule and print it rely on.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

// Chains: preorder trees of operators with one input, then absorbed sources. In preorder an
// operator's parent is the one before it or one of that one's ancestors.
static const char *verify_parent(const leati_vertex *vertex, uint32_t i)
{
    const leati_chain_op *op = &vertex->ops[i];
    if (op->parent >= i)
        return "an operator comes before its parent";
    uint32_t at = i - 1;
    while (at != op->parent && at != 0)
        at = vertex->ops[at].parent;
    return at == op->parent ? NULL : "a chain is not in preorder";
}

static const char *verify_absorbed(const leati_vertex *vertex, const leati_chain_op *op)
{
    if (op->parent != 0 || op->input_count != 0 || op->out_type[0] == '\0')
        return "an absorbed operator is not a source of the head";
    if (vertex->ops[0].input_count < 2 || op->absorbed_input >= vertex->ops[0].input_count)
        return "a source is absorbed by an operator that has no such input";
    return NULL;
}

static const char *verify_op(const leati_vertex *vertex, uint32_t i)
{
    const leati_chain_op *op = &vertex->ops[i];
    if ((op->input_count == 0) != (op->in_type[0] == '\0'))
        return "an operator's input type does not go with its number of inputs";
    if ((i == 0 || op->absorbed) && op->side[0])
        return "an operator that no other feeds has a side output for its input";
    if (op->variable_count && (i > 0 || op->input_count == 0))
        return "an operator that cannot have broadcast variables has some";
    if (i == 0)
        return op->absorbed || op->parent != 0 ? "a chain does not begin with its head" : NULL;
    if (op->absorbed)
        return verify_absorbed(vertex, op);
    const char *wrong = verify_parent(vertex, i);
    if (wrong)
        return wrong;
    if (vertex->ops[i - 1].absorbed)
        return "an operator comes after an absorbed source";
    if (op->input_count != 1)
        return "a chained operator does not have one input";
    // The types of side outputs are not in the graph.
    return op->side[0] == '\0' && strcmp(op->in_type, vertex->ops[op->parent].out_type) != 0
               ? "a chained operator does not take its parent's records"
               : NULL;
}

static const char *verify_vertex(const leati_vertex *vertex)
{
    const char *wrong = vertex->op_count ? NULL : "a vertex has no operators";
    for (uint32_t i = 0; i < vertex->op_count && !wrong; i++)
        wrong = verify_op(vertex, i);
    return wrong;
}

// Ids going up along every edge is what rules out cycles.
static const char *verify_edge(const leati_job_graph *graph, const leati_job_edge *edge)
{
    if (edge->to_vertex >= graph->vertex_count || edge->from_vertex >= edge->to_vertex)
        return "an exchange does not lead to a later vertex";
    const leati_vertex *from = &graph->vertices[edge->from_vertex];
    const leati_vertex *to = &graph->vertices[edge->to_vertex];
    if (edge->from_op >= from->op_count || from->ops[edge->from_op].absorbed)
        return "an exchange comes from no operator";
    const char *out_type = from->ops[edge->from_op].out_type;
    if (out_type[0] == '\0' && edge->side[0] == '\0')
        return "an exchange comes from an operator without output";
    if (edge->input >= (uint64_t)to->ops[0].input_count + to->ops[0].variable_count)
        return "an exchange leads to an input that is not there";
    if (edge->input >= to->ops[0].input_count && edge->partitioner != LEATI_PARTITION_BROADCAST)
        return "an exchange to a broadcast variable is no broadcast";
    if (edge->input == 0 && edge->side[0] == '\0' && strcmp(out_type, to->ops[0].in_type) != 0)
        return "an exchange carries records that its consumer does not take";
    if (edge->partitioner == LEATI_PARTITION_FORWARD && from->parallelism != to->parallelism)
        return "a forward exchange joins unequal parallelisms";
    if ((edge->partitioner == LEATI_PARTITION_HASH) != (edge->key_text[0] != '\0'))
        return "an exchange's key does not go with its partitioner";
    return NULL;
}

static int compare_edges(const leati_job_edge *a, const leati_job_edge *b)
{
    if (a->from_vertex != b->from_vertex)
        return a->from_vertex < b->from_vertex ? -1 : 1;
    return (a->from_op > b->from_op) - (a->from_op < b->from_op);
}

static const char *verify_edges(const leati_job_graph *graph)
{
    const char *wrong = NULL;
    for (uint32_t e = 0; e < graph->edge_count && !wrong; e++) {
        wrong = verify_edge(graph, &graph->edges[e]);
        if (!wrong && e > 0 && compare_edges(&graph->edges[e - 1], &graph->edges[e]) > 0)
            wrong = "the exchanges are not grouped by their producers";
    }
    return wrong;
}

// --- what needs memory: numbers that must be distinct, inputs that must be served ---

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool has_duplicates(uint64_t *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, compare_u64);
    for (size_t i = 1; i < count; i++)
        if (numbers[i] == numbers[i - 1])
            return true;
    return false;
}

static size_t distinct(uint64_t *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, compare_u64);
    size_t kept = count ? 1 : 0;
    for (size_t i = 1; i < count; i++)
        kept += numbers[i] != numbers[i - 1];
    return kept;
}

// Every input of every head is served by an exchange or an absorbed source: as each server names an
// input that is there, counting distinct ones is enough.
static const char *verify_served(const leati_job_graph *graph, uint64_t *numbers)
{
    size_t count = 0;
    uint64_t wanted = 0;
    for (uint32_t e = 0; e < graph->edge_count; e++)
        numbers[count++] = (uint64_t)graph->edges[e].to_vertex << 32 | graph->edges[e].input;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        const leati_vertex *vertex = &graph->vertices[v];
        wanted += (uint64_t)vertex->ops[0].input_count + vertex->ops[0].variable_count;
        for (uint32_t i = 0; i < vertex->op_count; i++)
            if (vertex->ops[i].absorbed)
                numbers[count++] = (uint64_t)v << 32 | vertex->ops[i].absorbed_input;
    }
    return distinct(numbers, count) == wanted ? NULL : "an operator's input is not connected";
}

static const char *verify_numbers(const leati_job_graph *graph, uint64_t *numbers)
{
    size_t count = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            numbers[count++] = graph->vertices[v].ops[i].node_id;
    return has_duplicates(numbers, count) ? "two operators have the same number" : NULL;
}

leat_err leati_job_graph_verify(const leati_job_graph *graph, const char **why)
{
    const char *wrong = graph->vertex_count ? NULL : "the job graph has no vertices";
    size_t ops = 0;
    for (uint32_t v = 0; v < graph->vertex_count && !wrong; v++) {
        wrong = verify_vertex(&graph->vertices[v]);
        ops += graph->vertices[v].op_count;
    }
    if (!wrong)
        wrong = verify_edges(graph);
    if (!wrong) {
        uint64_t *numbers =
            leati_calloc(graph->allocator, ops + graph->edge_count, sizeof *numbers);
        if (!numbers) {
            *why = "out of memory";
            return LEAT_ENOMEM;
        }
        wrong = verify_numbers(graph, numbers);
        if (!wrong)
            wrong = verify_served(graph, numbers);
        leati_free(graph->allocator, numbers);
    }
    *why = wrong;
    return wrong ? LEAT_ECORRUPT : LEAT_OK;
}
