// SPDX-License-Identifier: Apache-2.0
// The plan for Graphviz: a cluster per vertex, full arrows inside chains, labelled ones between.
#include <inttypes.h>
#include <string.h>

#include "graph/graph_impl.h"

static void put_quoted(leati_strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            leati_strbuf_putc(out, '\\');
        leati_strbuf_putc(out, (uint8_t)*text < 0x20 ? ' ' : *text);
    }
}

static void put_op(leati_strbuf *out, const leati_chain_op *op)
{
    leati_strbuf_printf(out, "    op%" PRIu32 " [label=\"", op->node_id);
    put_quoted(out, op->name);
    if (strcmp(op->name, op->kind) != 0) {
        leati_strbuf_puts(out, "\\n");
        put_quoted(out, op->kind);
    }
    leati_strbuf_puts(out, "\"];\n");
}

static void put_vertex(leati_strbuf *out, const leati_vertex *vertex)
{
    leati_strbuf_printf(out, "  subgraph cluster_%" PRIu32 " {\n    label=\"", vertex->id);
    leati_strbuf_printf(out, "vertex %" PRIu32 ", parallelism %" PRIu32, vertex->id,
                        vertex->parallelism);
    if (strcmp(vertex->slot_group, "default") != 0) {
        leati_strbuf_puts(out, ", slot group ");
        put_quoted(out, vertex->slot_group);
    }
    leati_strbuf_puts(out, "\";\n");
    for (uint32_t i = 0; i < vertex->op_count; i++)
        put_op(out, &vertex->ops[i]);
    for (uint32_t i = 1; i < vertex->op_count; i++) {
        uint32_t own = vertex->ops[i].node_id;
        uint32_t other = vertex->ops[vertex->ops[i].parent].node_id;
        bool absorbed = vertex->ops[i].absorbed;
        leati_strbuf_printf(out, "    op%" PRIu32 " -> op%" PRIu32, absorbed ? own : other,
                            absorbed ? other : own);
        if (vertex->ops[i].side[0]) {
            leati_strbuf_puts(out, " [label=\"");
            put_quoted(out, vertex->ops[i].side);
            leati_strbuf_puts(out, "\"]");
        }
        leati_strbuf_puts(out, ";\n");
    }
    leati_strbuf_puts(out, "  }\n");
}

static void put_edge(leati_strbuf *out, const leati_job_graph *graph, const leati_job_edge *edge)
{
    leati_strbuf_printf(out, "  op%" PRIu32 " -> op%" PRIu32 " [style=dashed, label=\"%s",
                        graph->vertices[edge->from_vertex].ops[edge->from_op].node_id,
                        graph->vertices[edge->to_vertex].ops[0].node_id,
                        leati_partitioner_name(edge->partitioner));
    if (edge->key_text[0]) {
        leati_strbuf_puts(out, "\\n");
        put_quoted(out, edge->key_text);
    }
    if (edge->side[0]) {
        leati_strbuf_puts(out, "\\n");
        put_quoted(out, edge->side);
    }
    const leati_chain_op *head = &graph->vertices[edge->to_vertex].ops[0];
    if (edge->input >= head->input_count) {
        leati_strbuf_puts(out, "\\nvariable ");
        put_quoted(out, head->variables[edge->input - head->input_count]);
    }
    leati_strbuf_puts(out, "\"];\n");
}

void leati_picture_dot(const leati_picture *picture, leati_strbuf *out)
{
    const leati_job_graph *graph = picture->graph;
    leati_strbuf_puts(out, "digraph \"");
    put_quoted(out, graph->name);
    leati_strbuf_puts(out, "\" {\n  rankdir=LR;\n  node [shape=box];\n");
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        put_vertex(out, &graph->vertices[v]);
    for (uint32_t e = 0; e < graph->edge_count; e++)
        put_edge(out, graph, &graph->edges[e]);
    leati_strbuf_printf(out, "  label=\"digest %s\";\n}\n", graph->digest);
}
