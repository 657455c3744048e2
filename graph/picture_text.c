// SPDX-License-Identifier: Apache-2.0
// The plan for people: a block per vertex with its operators and what leaves it, then the totals.
#include <inttypes.h>
#include <string.h>

#include "graph/graph_impl.h"

// Names and details come from users; a control character must not break the layout.
static void put_clean(leati_strbuf *out, const char *text)
{
    for (; *text; text++)
        leati_strbuf_putc(out, (uint8_t)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static size_t label_width(const leati_chain_op *op)
{
    size_t width = strlen(op->name);
    return strcmp(op->name, op->kind) == 0 ? width : width + strlen(" ()") + strlen(op->kind);
}

// The types of a vertex stand below each other unless a name is very long.
static size_t widest_label(const leati_vertex *vertex)
{
    size_t widest = 0;
    for (uint32_t i = 0; i < vertex->op_count; i++)
        if (label_width(&vertex->ops[i]) > widest)
            widest = label_width(&vertex->ops[i]);
    return widest < 40 ? widest : 40;
}

static void put_label(leati_strbuf *out, const leati_chain_op *op, size_t width)
{
    put_clean(out, op->name);
    if (strcmp(op->name, op->kind) != 0) {
        leati_strbuf_puts(out, " (");
        put_clean(out, op->kind);
        leati_strbuf_putc(out, ')');
    }
    for (size_t i = label_width(op); i < width; i++)
        leati_strbuf_putc(out, ' ');
}

static void put_types(leati_strbuf *out, const leati_chain_op *op)
{
    if (op->in_type[0]) {
        leati_strbuf_puts(out, "  ");
        put_clean(out, op->in_type);
    }
    if (op->out_type[0]) {
        leati_strbuf_puts(out, op->in_type[0] ? " -> " : "  -> ");
        put_clean(out, op->out_type);
    }
}

// "    3  count words (reduce)  {word: str, count: i64} -> {word: str, count: i64}  [updates]"
static void put_op(leati_strbuf *out, const leati_vertex *vertex, uint32_t i, size_t width)
{
    const leati_chain_op *op = &vertex->ops[i];
    leati_strbuf_printf(out, "    %" PRIu32 "  ", op->node_id);
    put_label(out, op, width);
    put_types(out, op);
    if (op->detail) {
        leati_strbuf_puts(out, "  [");
        put_clean(out, op->detail);
        leati_strbuf_putc(out, ']');
    }
    if (op->uid) {
        leati_strbuf_puts(out, "  uid ");
        put_clean(out, op->uid);
    }
    if (op->absorbed)
        leati_strbuf_printf(out, "  feeds input %" PRIu32 " of %" PRIu32, op->absorbed_input,
                            vertex->ops[0].node_id);
    else if (i > 0 && (op->parent != i - 1 || op->side[0]))
        leati_strbuf_printf(out, "  after %" PRIu32, vertex->ops[op->parent].node_id);
    if (op->side[0]) {
        leati_strbuf_puts(out, "'s side output ");
        put_clean(out, op->side);
    }
    leati_strbuf_putc(out, '\n');
}

static const char *way_of(leati_partitioner partitioner)
{
    static const char *const ways[] = {
        [LEATI_PARTITION_FORWARD] = "forward",     [LEATI_PARTITION_REBALANCE] = "rebalance",
        [LEATI_PARTITION_RESCALE] = "rescale",     [LEATI_PARTITION_SHUFFLE] = "shuffle",
        [LEATI_PARTITION_BROADCAST] = "broadcast", [LEATI_PARTITION_GLOBAL] = "global",
        [LEATI_PARTITION_HASH] = "hash of ",       [LEATI_PARTITION_CUSTOM] = "custom",
    };
    return ways[partitioner];
}

// "    => vertex 1 by hash of word, flushed after 100 ms"
static void put_edge(leati_strbuf *out, const leati_job_graph *graph, const leati_job_edge *edge)
{
    const leati_vertex *from = &graph->vertices[edge->from_vertex];
    const leati_vertex *to = &graph->vertices[edge->to_vertex];
    leati_strbuf_printf(out, "    => vertex %" PRIu32, edge->to_vertex);
    if (edge->input >= to->ops[0].input_count) {
        leati_strbuf_puts(out, " broadcast variable ");
        put_clean(out, to->ops[0].variables[edge->input - to->ops[0].input_count]);
    } else if (to->ops[0].input_count > 1) {
        leati_strbuf_printf(out, " input %" PRIu32, edge->input);
    }
    leati_strbuf_printf(out, " by %s", way_of(edge->partitioner));
    put_clean(out, edge->key_text);
    if (from->op_count > 1)
        leati_strbuf_printf(out, ", from %" PRIu32, from->ops[edge->from_op].node_id);
    if (edge->side[0]) {
        leati_strbuf_puts(out, ", side output ");
        put_clean(out, edge->side);
    }
    if (edge->blocking) {
        leati_strbuf_puts(out, ", read when complete\n");
        return;
    }
    if (edge->buffer_timeout_ms > 0)
        leati_strbuf_printf(out, ", flushed after %" PRId64 " ms\n", edge->buffer_timeout_ms);
    else
        leati_strbuf_puts(out, edge->buffer_timeout_ms ? ", flushed when full\n"
                                                       : ", flushed after each record\n");
}

static bool is_consumed(const leati_picture *picture, const leati_vertex *vertex, uint32_t i)
{
    const leati_job_graph *graph = picture->graph;
    for (uint32_t j = i + 1; j < vertex->op_count; j++)
        if (vertex->ops[j].parent == i && !vertex->ops[j].side[0])
            return true;
    for (uint32_t e = picture->first_edge[vertex->id]; e < picture->first_edge[vertex->id + 1]; e++)
        if (graph->edges[e].from_op == i && !graph->edges[e].side[0])
            return true;
    return vertex->ops[i].absorbed;
}

static void put_vertex(leati_strbuf *out, const leati_picture *picture, const leati_vertex *vertex)
{
    leati_strbuf_printf(out, "\nvertex %" PRIu32 ": ", vertex->id);
    put_clean(out, vertex->name);
    leati_strbuf_printf(out, "\n    parallelism %" PRIu32 ", max parallelism %" PRIu32,
                        vertex->parallelism, vertex->max_parallelism);
    if (strcmp(vertex->slot_group, "default") != 0) {
        leati_strbuf_puts(out, ", slot group ");
        put_clean(out, vertex->slot_group);
    }
    leati_strbuf_putc(out, '\n');
    size_t width = widest_label(vertex);
    for (uint32_t i = 0; i < vertex->op_count; i++)
        put_op(out, vertex, i, width);
    for (uint32_t e = picture->first_edge[vertex->id]; e < picture->first_edge[vertex->id + 1]; e++)
        put_edge(out, picture->graph, &picture->graph->edges[e]);
    for (uint32_t i = 0; i < vertex->op_count; i++)
        if (vertex->ops[i].out_type[0] && !is_consumed(picture, vertex, i))
            leati_strbuf_printf(out, "    the output of %" PRIu32 " is not used\n",
                                vertex->ops[i].node_id);
}

void leati_picture_text(const leati_picture *picture, leati_strbuf *out)
{
    const leati_job_graph *graph = picture->graph;
    leati_strbuf_puts(out, "job ");
    put_clean(out, graph->name);
    leati_strbuf_putc(out, '\n');
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        put_vertex(out, picture, &graph->vertices[v]);
    leati_strbuf_printf(out, "\ntasks   %" PRIu64 "\nslots   %" PRIu32 "\ndigest  %s\n",
                        leati_job_graph_tasks(graph), leati_job_graph_slots(graph), graph->digest);
}
