// SPDX-License-Identifier: Apache-2.0
#include "leat/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

const char *leati_partitioner_name(leati_partitioner partitioner)
{
    static const char *const names[] = {
        [LEATI_PARTITION_DEFAULT] = "DEFAULT",     [LEATI_PARTITION_FORWARD] = "FORWARD",
        [LEATI_PARTITION_REBALANCE] = "REBALANCE", [LEATI_PARTITION_RESCALE] = "RESCALE",
        [LEATI_PARTITION_SHUFFLE] = "SHUFFLE",     [LEATI_PARTITION_BROADCAST] = "BROADCAST",
        [LEATI_PARTITION_GLOBAL] = "GLOBAL",       [LEATI_PARTITION_HASH] = "HASH",
        [LEATI_PARTITION_CUSTOM] = "CUSTOM",
    };
    return names[partitioner];
}

// Where the edges of each vertex start, for both of an edge's ends. `first` has two more entries
// than there are vertices.
static void index_edges(leati_picture *picture)
{
    const leati_job_graph *graph = picture->graph;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        picture->first_edge[graph->edges[e].from_vertex + 1]++;
        picture->first_in[graph->edges[e].to_vertex + 2]++;
    }
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        picture->first_edge[v + 1] += picture->first_edge[v];
        picture->first_in[v + 2] += picture->first_in[v + 1];
    }
    // Shifted by one, the starts serve as places to write to and end up right.
    for (uint32_t e = 0; e < graph->edge_count; e++)
        picture->in_edges[picture->first_in[graph->edges[e].to_vertex + 1]++] = e;
}

leat_err leati_job_graph_picture(const leati_job_graph *graph, leat_plan_format format,
                                 const leat_allocator *allocator, char **text)
{
    static void (*const draw[])(const leati_picture *, leati_strbuf *) = {
        [LEAT_PLAN_TEXT] = leati_picture_text,
        [LEAT_PLAN_JSON] = leati_picture_json,
        [LEAT_PLAN_DOT] = leati_picture_dot,
    };
    if ((size_t)format >= sizeof draw / sizeof *draw)
        return LEAT_EINVAL;
    leati_arena work;
    leati_arena_init(&work, allocator);
    size_t starts = (size_t)graph->vertex_count + 2;
    leati_picture picture = {
        .graph = graph,
        .first_edge = leati_arena_calloc(&work, starts, sizeof *picture.first_edge),
        .first_in = leati_arena_calloc(&work, starts, sizeof *picture.first_in),
        .in_edges = leati_arena_calloc(&work, graph->edge_count, sizeof *picture.in_edges),
    };
    char *drawn = NULL;
    if (picture.first_edge && picture.first_in && picture.in_edges) {
        leati_strbuf out;
        leati_strbuf_init(&out, allocator);
        index_edges(&picture);
        draw[format](&picture, &out);
        drawn = leati_strbuf_take(&out);
    }
    leati_arena_fini(&work);
    if (!drawn)
        return LEAT_ENOMEM;
    *text = drawn;
    return LEAT_OK;
}

leat_err leat_plan(leat_env *env, leat_plan_format format, char **text)
{
    leati_job_graph *graph = NULL;
    leat_err err = leati_job_graph_create(env, &graph);
    if (err != LEAT_OK)
        return err;
    err = leati_job_graph_picture(graph, format, leat_env_allocator(env), text);
    leati_job_graph_destroy(&graph);
    return err;
}

void leat_plan_free(leat_env *env, char *text)
{
    leati_free(leat_env_allocator(env), text);
}

leat_err leat_plan_digest(leat_env *env, char digest[33])
{
    leati_job_graph *graph = NULL;
    leat_err err = leati_job_graph_create(env, &graph);
    if (err != LEAT_OK)
        return err;
    memcpy(digest, graph->digest, sizeof graph->digest);
    leati_job_graph_destroy(&graph);
    return LEAT_OK;
}
