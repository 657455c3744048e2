// SPDX-License-Identifier: Apache-2.0
// The first half of the way from a stream graph to a job graph: edges by node, an order in which
// inputs come first, and what nodes and edges inherit.
#include <string.h>

#include "graph/graph_impl.h"

// Key groups when nobody chose their number: 16 per subtask leaves room to grow, and a power of two
// makes the remainder a mask.
static uint32_t default_max_parallelism(uint32_t parallelism)
{
    uint32_t groups = 128;
    while (groups < 16 * parallelism && groups < LEATI_MAX_PARALLELISM)
        groups *= 2;
    return groups;
}

static void resolve_node(leati_layout *layout, leati_place *place)
{
    const leati_node *node = place->node->peer ? place->node->peer : place->node;
    uint32_t preset = node->flags & LEATI_NODE_NON_PARALLEL ? 1 : leat_env_parallelism(layout->env);
    place->parallelism = node->parallelism ? node->parallelism : preset;
    place->max_parallelism = node->max_parallelism ? node->max_parallelism
                             : layout->env->max_parallelism
                                 ? layout->env->max_parallelism
                                 : default_max_parallelism(place->parallelism);
}

// Counting sort of the edges by the node at one of their ends.
static void group_edges(leati_layout *layout)
{
    const leati_edge *edges = layout->env->edges;
    for (uint32_t e = 0; e < layout->edge_count; e++) {
        layout->places[leati_place_index(edges[e].to)].in_count++;
        layout->places[leati_place_index(edges[e].from)].out_count++;
    }
    uint32_t in = 0, out = 0;
    for (uint32_t n = 0; n < layout->node_count; n++) {
        leati_place *place = &layout->places[n];
        place->first_in = in;
        place->first_out = out;
        in += place->in_count;
        out += place->out_count;
        place->in_count = place->out_count = 0;
    }
    for (uint32_t e = 0; e < layout->edge_count; e++) {
        leati_place *to = &layout->places[leati_place_index(edges[e].to)];
        leati_place *from = &layout->places[leati_place_index(edges[e].from)];
        layout->in_edges[to->first_in + to->in_count++] = e;
        layout->out_edges[from->first_out + from->out_count++] = e;
    }
}

// Kahn's algorithm, for graphs whose ids are no order: the builder cannot make such, but a cycle
// must not be fatal.
static void sort_nodes(leati_layout *layout, uint32_t *waiting)
{
    for (uint32_t n = 0; n < layout->node_count; n++) {
        waiting[n] = layout->places[n].in_count;
        if (waiting[n] == 0)
            layout->order[layout->order_count++] = n;
    }
    for (uint32_t done = 0; done < layout->order_count; done++) {
        const leati_place *place = &layout->places[layout->order[done]];
        for (uint32_t i = 0; i < place->out_count; i++) {
            const leati_edge *edge = &layout->env->edges[layout->out_edges[place->first_out + i]];
            uint32_t to = leati_place_index(edge->to);
            if (--waiting[to] == 0)
                layout->order[layout->order_count++] = to;
        }
    }
}

// The builder makes nodes after their inputs, so the order of creation will do, and it is the one
// that people expect in pictures.
static void order_nodes(leati_layout *layout, uint32_t *waiting)
{
    for (uint32_t e = 0; e < layout->edge_count; e++) {
        if (layout->env->edges[e].from->id >= layout->env->edges[e].to->id) {
            sort_nodes(layout, waiting);
            return;
        }
    }
    for (uint32_t n = 0; n < layout->node_count; n++)
        layout->order[layout->order_count++] = n;
}

// An operator without a group of its own is in that of its inputs when they agree.
static void inherit_slot_group(leati_layout *layout, leati_place *place)
{
    place->slot_group = place->node->slot_group;
    bool first = true;
    for (uint32_t i = 0; i < place->in_count && !place->node->slot_group; i++) {
        const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
        const char *group = layout->places[leati_place_index(edge->from)].slot_group;
        if (edge->is_variable)
            continue;
        if (!first && strcmp(group, place->slot_group) != 0) {
            place->slot_group = NULL;
            break;
        }
        place->slot_group = group;
        first = false;
    }
    if (!place->slot_group)
        place->slot_group = "default";
}

static void resolve_partitioner(leati_layout *layout, uint32_t e)
{
    const leati_edge *edge = &layout->env->edges[e];
    uint32_t from = layout->places[leati_place_index(edge->from)].parallelism;
    uint32_t to = layout->places[leati_place_index(edge->to)].parallelism;
    layout->partitioners[e] = edge->partitioner != LEATI_PARTITION_DEFAULT ? edge->partitioner
                              : from == to                                 ? LEATI_PARTITION_FORWARD
                                           : LEATI_PARTITION_REBALANCE;
}

leat_err leati_layout_init(leati_layout *layout, leat_env *env, leati_arena *arena)
{
    if (env->node_count >= LEATI_NONE || env->edge_count >= LEATI_NONE)
        return LEAT_ENOMEM;
    uint32_t nodes = (uint32_t)env->node_count, edges = (uint32_t)env->edge_count;
    *layout = (leati_layout){
        .env = env,
        .arena = arena,
        .node_count = nodes,
        .edge_count = edges,
        .places = leati_arena_calloc(arena, nodes, sizeof *layout->places),
        .in_edges = leati_arena_calloc(arena, edges, sizeof *layout->in_edges),
        .out_edges = leati_arena_calloc(arena, edges, sizeof *layout->out_edges),
        .partitioners = leati_arena_calloc(arena, edges, sizeof *layout->partitioners),
        .blocking = leati_arena_calloc(arena, edges, sizeof *layout->blocking),
        .order = leati_arena_calloc(arena, nodes, sizeof *layout->order),
    };
    uint32_t *waiting = leati_arena_calloc(arena, nodes, sizeof *waiting);
    if (!layout->places || !layout->in_edges || !layout->out_edges || !layout->partitioners ||
        !layout->blocking || !layout->order || !waiting)
        return LEAT_ENOMEM;
    for (uint32_t n = 0; n < nodes; n++) {
        layout->places[n].node = env->nodes[n];
        layout->places[n].slot_group = "default"; // for nodes behind a cycle
        resolve_node(layout, &layout->places[n]);
    }
    group_edges(layout);
    order_nodes(layout, waiting);
    for (uint32_t i = 0; i < layout->order_count; i++)
        inherit_slot_group(layout, &layout->places[layout->order[i]]);
    for (uint32_t e = 0; e < edges; e++) {
        resolve_partitioner(layout, e);
        layout->blocking[e] = env->edges[e].blocking;
    }
    return leati_layout_broadcasts(layout);
}
