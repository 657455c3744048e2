// SPDX-License-Identifier: Apache-2.0
// The plan for programs: one object; a node is a vertex, with its operators and its inputs.
#include <inttypes.h>
#include <string.h>

#include "graph/graph_impl.h"

static void put_string(leati_strbuf *out, const char *name, const char *text)
{
    leati_strbuf_printf(out, "\"%s\": ", name);
    if (text)
        leati_strbuf_json_string(out, text, strlen(text));
    else
        leati_strbuf_puts(out, "null");
}

static void put_type(leati_strbuf *out, const char *name, const char *type)
{
    put_string(out, name, type[0] ? type : NULL);
}

static void put_op(leati_strbuf *out, const leati_vertex *vertex, uint32_t i)
{
    const leati_chain_op *op = &vertex->ops[i];
    leati_strbuf_printf(out, "%s\n        {\"id\": %" PRIu32 ", ", i ? "," : "", op->node_id);
    put_string(out, "kind", op->kind);
    leati_strbuf_puts(out, ", ");
    put_string(out, "name", op->name);
    leati_strbuf_puts(out, ", ");
    put_string(out, "uid", op->uid);
    leati_strbuf_printf(out, ", \"hash\": \"%016" PRIx64 "%016" PRIx64 "\", ", op->uid_hash[0],
                        op->uid_hash[1]);
    put_string(out, "detail", op->detail);
    leati_strbuf_puts(out, ", ");
    put_type(out, "in_type", op->in_type);
    leati_strbuf_puts(out, ", ");
    put_type(out, "out_type", op->out_type);
    // What joins it to the others of the chain is always a forward.
    if (op->absorbed)
        leati_strbuf_printf(
            out, ", \"feeds\": %" PRIu32 ", \"input\": %" PRIu32 ", \"ship_strategy\": \"FORWARD\"",
            vertex->ops[0].node_id, op->absorbed_input);
    else if (i > 0)
        leati_strbuf_printf(out, ", \"parent\": %" PRIu32 ", \"ship_strategy\": \"FORWARD\"",
                            vertex->ops[op->parent].node_id);
    if (op->side[0]) {
        leati_strbuf_puts(out, ", ");
        put_string(out, "side_output", op->side);
    }
    leati_strbuf_putc(out, '}');
}

static void put_edge(leati_strbuf *out, const leati_job_graph *graph, const leati_job_edge *edge)
{
    leati_strbuf_printf(out,
                        "{\"node\": %" PRIu32 ", \"operator\": %" PRIu32 ", \"input\": %" PRIu32
                        ", \"ship_strategy\": \"%s\", ",
                        edge->from_vertex,
                        graph->vertices[edge->from_vertex].ops[edge->from_op].node_id, edge->input,
                        leati_partitioner_name(edge->partitioner));
    put_string(out, "key", edge->key_text[0] ? edge->key_text : NULL);
    const leati_chain_op *head = &graph->vertices[edge->to_vertex].ops[0];
    if (edge->input >= head->input_count) {
        leati_strbuf_puts(out, ", ");
        put_string(out, "variable", head->variables[edge->input - head->input_count]);
    }
    if (edge->side[0]) {
        leati_strbuf_puts(out, ", ");
        put_string(out, "side_output", edge->side);
    }
    leati_strbuf_printf(out, ", \"buffer_timeout_ms\": %" PRId64 ", \"blocking\": %s}",
                        edge->buffer_timeout_ms, edge->blocking ? "true" : "false");
}

static void put_vertex(leati_strbuf *out, const leati_picture *picture, const leati_vertex *vertex)
{
    leati_strbuf_printf(out, "%s\n    {\"id\": %" PRIu32 ", ", vertex->id ? "," : "", vertex->id);
    put_string(out, "name", vertex->name);
    leati_strbuf_printf(out, ", \"parallelism\": %" PRIu32 ", \"max_parallelism\": %" PRIu32 ", ",
                        vertex->parallelism, vertex->max_parallelism);
    put_string(out, "slot_group", vertex->slot_group);
    leati_strbuf_puts(out, ",\n      \"operators\": [");
    for (uint32_t i = 0; i < vertex->op_count; i++)
        put_op(out, vertex, i);
    leati_strbuf_puts(out, "],\n      \"inputs\": [");
    for (uint32_t i = picture->first_in[vertex->id]; i < picture->first_in[vertex->id + 1]; i++) {
        leati_strbuf_puts(out, i > picture->first_in[vertex->id] ? ",\n        " : "\n        ");
        put_edge(out, picture->graph, &picture->graph->edges[picture->in_edges[i]]);
    }
    leati_strbuf_puts(out, "]}");
}

void leati_picture_json(const leati_picture *picture, leati_strbuf *out)
{
    const leati_job_graph *graph = picture->graph;
    leati_strbuf_puts(out, "{");
    put_string(out, "name", graph->name);
    leati_strbuf_printf(out,
                        ", \"digest\": \"%s\", \"tasks\": %" PRIu64 ", \"slots\": %" PRIu32
                        ",\n  \"nodes\": [",
                        graph->digest, leati_job_graph_tasks(graph), leati_job_graph_slots(graph));
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        put_vertex(out, picture, &graph->vertices[v]);
    leati_strbuf_puts(out, "]}\n");
}
