// SPDX-License-Identifier: Apache-2.0
// Which operators share a task. An edge is chained iff all rules below hold; they are numbered as
// in docs/design/graph.md, where the reasons stand.
#include <string.h>

#include "graph/graph_impl.h"

static bool is_new_style_source(const leati_node *node)
{
    return (node->flags & LEATI_NODE_SOURCE) && !(node->flags & LEATI_NODE_LEGACY_SOURCE);
}

static bool strategies_allow(const leati_node *from, const leati_node *to)
{
    if (!from->factory.create || !to->factory.create || from->chaining == LEATI_CHAIN_NEVER)
        return false;
    return to->chaining == LEATI_CHAIN_ALWAYS ||
           (to->chaining == LEATI_CHAIN_HEAD_WITH_SOURCES && is_new_style_source(from));
}

static bool parallelism_allows(const leati_layout *layout, const leati_place *from,
                               const leati_place *to)
{
    bool mixed =
        leati_config_get(&layout->env->config, LEATI_CONFIG_CHAIN_MIXED_MAX_PARALLELISM) != 0;
    return from->parallelism == to->parallelism &&
           (mixed || from->max_parallelism == to->max_parallelism);
}

static bool shares_input(const leati_layout *layout, const leati_place *to, uint32_t e)
{
    for (uint32_t i = 0; i < to->in_count; i++) {
        uint32_t other = layout->in_edges[to->first_in + i];
        const leati_edge *edge = &layout->env->edges[other];
        if (other != e && !edge->is_variable && edge->input == layout->env->edges[e].input)
            return true;
    }
    return false;
}

// Rules 2 to 8.
static bool chainable(const leati_layout *layout, uint32_t e)
{
    const leati_edge *edge = &layout->env->edges[e];
    const leati_place *from = &layout->places[leati_place_index(edge->from)];
    const leati_place *to = &layout->places[leati_place_index(edge->to)];
    const leati_node *head = layout->places[from->head].node;
    if (!leati_config_get(&layout->env->config, LEATI_CONFIG_CHAINING)) // 2
        return false;
    if (strcmp(from->slot_group, to->slot_group) != 0) // 3
        return false;
    if (!strategies_allow(from->node, to->node)) // 4
        return false;
    if ((to->node->flags & LEATI_NODE_YIELDING) && (head->flags & LEATI_NODE_LEGACY_SOURCE)) // 5
        return false;
    if (!parallelism_allows(layout, from, to)) // 6
        return false;
    if (layout->partitioners[e] != LEATI_PARTITION_FORWARD || layout->blocking[e]) // 7
        return false;
    return !shares_input(layout, to, e); // 8
}

// An operator of several inputs with HEAD_WITH_SOURCES takes in, per input, a source that feeds
// nothing else; and any such operator the end of its feedback loop.
static void absorb_sources(leati_layout *layout, uint32_t n)
{
    const leati_place *place = &layout->places[n];
    bool with_sources = place->node->chaining == LEATI_CHAIN_HEAD_WITH_SOURCES;
    for (uint32_t i = 0; i < place->in_count; i++) {
        uint32_t e = layout->in_edges[place->first_in + i];
        uint32_t source = leati_place_index(layout->env->edges[e].from);
        if (layout->env->edges[e].is_variable)
            continue;
        bool feedback = layout->places[source].node->flags & LEATI_NODE_FEEDBACK;
        if (feedback || (with_sources && layout->places[source].out_count == 1 &&
                         is_new_style_source(layout->places[source].node) && chainable(layout, e)))
            layout->places[source].absorbed_by = n;
    }
}

void leati_layout_chain(leati_layout *layout)
{
    for (uint32_t i = 0; i < layout->order_count; i++) {
        uint32_t n = layout->order[i];
        leati_place *place = &layout->places[n];
        place->head = n;
        place->chained_edge = place->absorbed_by = LEATI_NONE;
        uint32_t e = place->in_count == 1 ? layout->in_edges[place->first_in] : LEATI_NONE; // 1
        if (e != LEATI_NONE && chainable(layout, e)) {
            place->chained_edge = e;
            place->head = layout->places[leati_place_index(layout->env->edges[e].from)].head;
        } else if (place->node->input_count > 1) {
            absorb_sources(layout, n);
        }
    }
}
