// SPDX-License-Identifier: Apache-2.0
// Faults that show only in the finished graph. All are recorded, operator by operator.
#include <stdlib.h>
#include <string.h>

#include "graph/graph_impl.h"

static void check_parallelism(leati_layout *layout, const leati_place *place)
{
    const leati_node *node = place->node;
    if ((node->flags & LEATI_NODE_NON_PARALLEL) && place->parallelism != 1)
        leati_fault_add(layout->env, node, LEAT_EGRAPH,
                        "its parallelism is %u, but it can only run with parallelism 1",
                        place->parallelism);
    if (place->max_parallelism < place->parallelism)
        leati_fault_add(layout->env, node, LEAT_EGRAPH,
                        "its max parallelism %u is below its parallelism %u",
                        place->max_parallelism, place->parallelism);
}

static void check_loop(leati_layout *layout, const leati_place *place)
{
    if (place->node->flags & LEATI_NODE_OPEN_LOOP)
        leati_fault_add(layout->env, place->node, LEAT_EGRAPH,
                        "its loop is not closed: leat_close_with must lead something back to it");
}

static const leat_type *input_type(const leati_edge *edge)
{
    const leati_node *to = edge->to;
    if (edge->is_variable)
        return edge->input < to->variable_count ? to->variables[edge->input].type : NULL;
    return edge->input < to->input_count ? to->inputs[edge->input].type : NULL;
}

static void check_edge(leati_layout *layout, const leati_place *place, uint32_t e)
{
    const leati_edge *edge = &layout->env->edges[e];
    const leati_place *from = &layout->places[leati_place_index(edge->from)];
    if (layout->partitioners[e] == LEATI_PARTITION_FORWARD &&
        from->parallelism != place->parallelism)
        leati_fault_add(layout->env, place->node, LEAT_EGRAPH,
                        "leat_forward joins it to \"%s\" (operator %u) of parallelism %u, but its "
                        "own parallelism is %u; the two must be equal",
                        edge->from->name, edge->from->id, from->parallelism, place->parallelism);
    // The builder makes sure of the following two.
    if (layout->partitioners[e] == LEATI_PARTITION_HASH && !edge->key)
        leati_fault_add(layout->env, place->node, LEAT_EGRAPH,
                        "its input is partitioned by hash without a key");
    const leat_type *type = input_type(edge);
    if (!type || !edge->type || !leat_type_equal(type, edge->type))
        leati_fault_add(layout->env, place->node, LEAT_ETYPE,
                        "its input does not take the records of \"%s\" (operator %u)",
                        edge->from->name, edge->from->id);
}

// Every input ordinal needs an edge; the edges of a node are few.
static void check_inputs_connected(leati_layout *layout, const leati_place *place)
{
    for (uint32_t input = 0; input < place->node->input_count; input++) {
        bool found = false;
        for (uint32_t i = 0; i < place->in_count && !found; i++) {
            const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
            found = !edge->is_variable && edge->input == input;
        }
        if (!found)
            leati_fault_add(layout->env, place->node, LEAT_EGRAPH, "its input %u is not connected",
                            input);
    }
}

// A tag stands for one type: readers of the same side output must agree.
static void check_sides(leati_layout *layout, const leati_place *place)
{
    const leati_edge *edges = layout->env->edges;
    for (uint32_t i = 1; i < place->out_count; i++) {
        const leati_edge *edge = &edges[layout->out_edges[place->first_out + i]];
        for (uint32_t j = 0; j < i && edge->side; j++) {
            const leati_edge *other = &edges[layout->out_edges[place->first_out + j]];
            if (!other->side || strcmp(edge->side, other->side) != 0)
                continue;
            if (!leat_type_equal(edge->type, other->type))
                leati_fault_add(layout->env, place->node, LEAT_ETYPE,
                                "its side output \"%s\" is read with two types: %s and %s",
                                edge->side, leati_fault_type_text(layout->env, other->type),
                                leati_fault_type_text(layout->env, edge->type));
            break;
        }
    }
}

// A node that Kahn's algorithm could not order lies on a cycle or behind one; walking backwards
// through such nodes ends on a cycle, whose lowest id names it.
static leat_err check_cycle(leati_layout *layout)
{
    if (layout->order_count == layout->node_count)
        return LEAT_OK;
    uint32_t *seen = leati_arena_calloc(layout->arena, layout->node_count, sizeof *seen);
    if (!seen)
        return LEAT_ENOMEM;
    const uint32_t ordered = UINT32_MAX;
    for (uint32_t i = 0; i < layout->order_count; i++)
        seen[layout->order[i]] = ordered;
    uint32_t at = 0, lowest = LEATI_NONE;
    while (seen[at] == ordered)
        at++;
    // Times seen: 0 on the way to the cycle, 1 in its first round, 2 once the round is closed.
    while (seen[at] < 2) {
        seen[at]++;
        if (at < lowest && seen[at] == 2)
            lowest = at;
        const leati_place *place = &layout->places[at];
        for (uint32_t i = 0; i < place->in_count; i++) {
            const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
            if (seen[leati_place_index(edge->from)] == ordered)
                continue;
            at = leati_place_index(edge->from);
            break;
        }
    }
    leati_fault_add(layout->env, layout->places[lowest].node, LEAT_EGRAPH,
                    "it is part of a cycle: its output reaches its own input");
    return LEAT_OK;
}

// --- loops ---

// Marks with `bit` what is reached from `place` along the edges, or against them. `stack` has room
// for every node.
static void mark_reached(const leati_layout *layout, uint32_t place, bool forwards, uint8_t *marks,
                         uint8_t bit, uint32_t *stack)
{
    const leati_edge *edges = layout->env->edges;
    uint32_t depth = 0;
    marks[place] |= bit;
    stack[depth++] = place;
    while (depth > 0) {
        const leati_place *at = &layout->places[stack[--depth]];
        uint32_t count = forwards ? at->out_count : at->in_count;
        const uint32_t *next =
            forwards ? &layout->out_edges[at->first_out] : &layout->in_edges[at->first_in];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t n = leati_place_index(forwards ? edges[next[i]].to : edges[next[i]].from);
            if (!(marks[n] & bit)) {
                marks[n] |= bit;
                stack[depth++] = n;
            }
        }
    }
}

// What waits on an edge of a loop for the end of its producer, or for a full segment, never comes
// round: the loop itself keeps the producer from its end.
static void check_loop_edges(leati_layout *layout, const uint8_t *marks, const leati_node *head)
{
    for (uint32_t e = 0; e < layout->edge_count; e++) {
        const leati_edge *edge = &layout->env->edges[e];
        bool is_inside = marks[leati_place_index(edge->to)] == 3;
        if (edge->is_variable && is_inside && (marks[leati_place_index(edge->from)] & 1))
            leati_fault_add(layout->env, edge->to, LEAT_EGRAPH,
                            "its broadcast variable \"%s\" comes from the loop of \"%s\" (operator "
                            "%u), inside which it is itself",
                            edge->to->variables[edge->input].name, head->name, head->id);
        if (!is_inside || marks[leati_place_index(edge->from)] != 3 || edge->is_variable)
            continue;
        // Inside a task nothing waits.
        if (layout->places[leati_place_index(edge->to)].chained_edge == e)
            continue;
        int64_t timeout_ms = edge->from->buffer_timeout_ms;
        if (timeout_ms == INT64_MIN)
            timeout_ms = leati_config_get(&layout->env->config, LEATI_CONFIG_BUFFER_TIMEOUT);
        if (layout->blocking[e])
            leati_fault_add(layout->env, edge->to, LEAT_EGRAPH,
                            "a blocking exchange leads to it inside the loop of \"%s\" (operator "
                            "%u), which could never go on",
                            head->name, head->id);
        else if (timeout_ms < 0)
            leati_fault_add(layout->env, edge->from, LEAT_EGRAPH,
                            "its buffer timeout is -1, but it is inside the loop of \"%s\" "
                            "(operator %u), whose records would wait for ever in segments that are "
                            "not full: leat_buffer_timeout can give it another",
                            head->name, head->id);
    }
}

static leat_err check_loops(leati_layout *layout)
{
    // Which edges are exchanges is known for graphs that are right in all else.
    if (leat_env_fault_count(layout->env) > 0)
        return LEAT_OK;
    leati_layout_chain(layout);
    uint8_t *marks = leati_arena_calloc(layout->arena, layout->node_count, sizeof *marks);
    uint32_t *stack = leati_arena_calloc(layout->arena, layout->node_count, sizeof *stack);
    if (!marks || !stack)
        return LEAT_ENOMEM;
    for (uint32_t n = 0; n < layout->node_count; n++) {
        const leati_node *tail = layout->places[n].node;
        if (!tail->peer || !(tail->flags & LEATI_NODE_SINK))
            continue;
        memset(marks, 0, layout->node_count);
        mark_reached(layout, leati_place_index(tail->peer), true, marks, 1, stack);
        mark_reached(layout, n, false, marks, 2, stack);
        check_loop_edges(layout, marks, tail->peer);
    }
    return LEAT_OK;
}

static int compare_uids(const void *a, const void *b)
{
    const leati_node *x = *(leati_node *const *)a, *y = *(leati_node *const *)b;
    int order = strcmp(x->uid, y->uid);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static leat_err check_uids(leati_layout *layout)
{
    leati_node **nodes = leati_arena_calloc(layout->arena, layout->node_count, sizeof *nodes);
    if (!nodes)
        return LEAT_ENOMEM;
    size_t count = 0;
    for (uint32_t n = 0; n < layout->node_count; n++)
        if (layout->places[n].node->uid)
            nodes[count++] = layout->places[n].node;
    qsort(nodes, count, sizeof *nodes, compare_uids);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(nodes[i]->uid, nodes[i - 1]->uid))
            leati_fault_add(layout->env, nodes[i], LEAT_EGRAPH,
                            "its uid \"%s\" is also that of \"%s\" (operator %u)", nodes[i]->uid,
                            nodes[i - 1]->name, nodes[i - 1]->id);
    return LEAT_OK;
}

// Without a sink the job has no effect. After another fault this may be its consequence, and is not
// worth saying.
static void check_sink(leati_layout *layout)
{
    if (leat_env_fault_count(layout->env) > 0)
        return;
    for (uint32_t n = 0; n < layout->node_count; n++)
        if (layout->places[n].node->flags & LEATI_NODE_SINK)
            return;
    leati_fault_add(layout->env, NULL, LEAT_EGRAPH,
                    layout->node_count ? "the job has no sink, so nothing would come of it"
                                       : "the job is empty: it has no operators");
}

void leati_layout_validate(leati_layout *layout)
{
    for (uint32_t n = 0; n < layout->node_count; n++) {
        const leati_place *place = &layout->places[n];
        check_parallelism(layout, place);
        check_loop(layout, place);
        if (place->node->flags & LEATI_NODE_BROKEN)
            continue;
        for (uint32_t i = 0; i < place->in_count; i++)
            check_edge(layout, place, layout->in_edges[place->first_in + i]);
        check_inputs_connected(layout, place);
        check_sides(layout, place);
    }
    if (check_cycle(layout) != LEAT_OK || check_uids(layout) != LEAT_OK)
        leati_fault_no_memory(layout->env);
    check_sink(layout);
    if (leati_layout_validate_broadcasts(layout) != LEAT_OK || check_loops(layout) != LEAT_OK)
        leati_fault_no_memory(layout->env);
}
