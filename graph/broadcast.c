// SPDX-License-Identifier: Apache-2.0
// Broadcast variables in the graph, and which exchanges must be blocking because of them.
//
// An operator with a variable takes nothing of its input before the variable has ended. Whoever
// feeds its input then waits for room, and may be the one that the variable waits for. So: that
// operator n *finishes* needs that its producers finish and that its consumers *accept* what it
// emits; that an operator accepts needs that the producers of its variables finish and that its own
// consumers accept. Where these needs form a circle through an input of an operator with variables,
// that exchange is made blocking: it takes everything at once, into a file.
#include "leat/broadcast.h"

#include <string.h>

#include "graph/graph_impl.h"

// --- building ---

static bool has_variable(const leati_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->variable_count; i++)
        if (strcmp(node->variables[i].name, name) == 0)
            return true;
    return false;
}

static bool check(leat_env *env, const leati_node *node, const char *name,
                  const leat_stream *values)
{
    static const char call[] = "leat_broadcast_variable";
    if (!name || !*name)
        leati_fault_add(env, node, LEAT_EINVAL, "%s: the variable's name is empty", call);
    else if (node->flags & LEATI_NODE_SOURCE)
        leati_fault_add(env, node, LEAT_EGRAPH, "%s: a source cannot have broadcast variables",
                        call);
    else if (has_variable(node, name))
        leati_fault_add(env, node, LEAT_EINVAL, "%s: it has a broadcast variable \"%s\" already",
                        call, name);
    else if (!values)
        leati_fault_add(env, node, LEAT_EINVAL, "%s: the stream for \"%s\" is NULL", call, name);
    else if (values->env != env)
        leati_fault_add(env, node, LEAT_EGRAPH,
                        "%s: the stream for \"%s\" belongs to another environment", call, name);
    else
        return leati_stream_type(values) != NULL;
    return false;
}

static bool add_variable(leat_env *env, leati_node *node, const char *name, const leat_type *type)
{
    // There are few, and an arena does not give back.
    leati_variable *all = leati_arena_calloc(&env->arena, node->variable_count + 1u, sizeof *all);
    const char *copy = all ? leati_arena_strdup(&env->arena, name) : NULL;
    if (!copy)
        return false;
    if (node->variable_count)
        memcpy(all, node->variables, node->variable_count * sizeof *all);
    all[node->variable_count++] = (leati_variable){.name = copy, .type = type};
    node->variables = all;
    return true;
}

leat_stream *leat_broadcast_variable(leat_stream *stream, const char *name, leat_stream *values)
{
    leat_env *env = leati_stream_env(stream);
    leati_node *node = leati_stream_settable(stream, "leat_broadcast_variable");
    if (!node || (values && values->env && values->kind == LEATI_STREAM_INERT) ||
        !check(env, node, name, values))
        return stream ? stream : leati_graph_inert(NULL);
    if (!add_variable(env, node, name, values->type) ||
        !leati_graph_add_variable_edges(env, node, node->variable_count - 1, values))
        leati_fault_no_memory(env);
    return stream;
}

// --- who waits for whom ---

// A need: that a node finishes (2n), or accepts (2n + 1).
static uint32_t finishes(uint32_t n)
{
    return 2 * n;
}

static uint32_t accepts(uint32_t n)
{
    return 2 * n + 1;
}

typedef struct search {
    const leati_layout *layout;
    bool *seen;
    uint32_t *stack;
    uint32_t depth;
} search;

static void need(search *s, uint32_t what)
{
    if (s->seen[what])
        return;
    s->seen[what] = true;
    s->stack[s->depth++] = what;
}

// What `what` needs directly.
static void add_needs(search *s, uint32_t what)
{
    const leati_layout *layout = s->layout;
    const leati_place *place = &layout->places[what / 2];
    bool accepting = what & 1;
    for (uint32_t i = 0; i < place->in_count; i++) {
        const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
        if (!accepting || edge->is_variable)
            need(s, finishes(leati_place_index(edge->from)));
    }
    for (uint32_t i = 0; i < place->out_count; i++) {
        uint32_t e = layout->out_edges[place->first_out + i];
        const leati_edge *edge = &layout->env->edges[e];
        if (!layout->blocking[e] && !edge->is_variable)
            need(s, accepts(leati_place_index(edge->to)));
    }
}

// Everything that is needed for node `n` to accept.
static void search_from(search *s, uint32_t n)
{
    memset(s->seen, 0, 2 * (size_t)s->layout->node_count * sizeof *s->seen);
    need(s, accepts(n));
    while (s->depth > 0)
        add_needs(s, s->stack[--s->depth]);
}

static void break_circles(search *s, leati_layout *layout, uint32_t n)
{
    const leati_place *place = &layout->places[n];
    for (uint32_t i = 0; i < place->in_count; i++) {
        uint32_t e = layout->in_edges[place->first_in + i];
        const leati_edge *edge = &layout->env->edges[e];
        uint32_t from = leati_place_index(edge->from);
        if (edge->is_variable || layout->blocking[e])
            continue;
        search_from(s, n);
        layout->blocking[e] = s->seen[finishes(from)] || s->seen[accepts(from)];
    }
}

leat_err leati_layout_broadcasts(leati_layout *layout)
{
    bool any = false;
    for (uint32_t n = 0; n < layout->node_count; n++)
        any |= layout->places[n].node->variable_count > 0;
    if (!any)
        return LEAT_OK;
    size_t needs = 2 * (size_t)layout->node_count;
    search s = {.layout = layout,
                .seen = leati_arena_calloc(layout->arena, needs, sizeof *s.seen),
                .stack = leati_arena_calloc(layout->arena, needs, sizeof *s.stack)};
    if (!s.seen || !s.stack)
        return LEAT_ENOMEM;
    for (uint32_t n = 0; n < layout->node_count; n++)
        if (layout->places[n].node->variable_count > 0)
            break_circles(&s, layout, n);
    return LEAT_OK;
}

// --- what never ends ---

// What has no end and `n` is or comes from; NULL when none is known.
static const leati_node *endless(const leati_layout *layout, uint32_t n, bool *seen,
                                 uint32_t *stack)
{
    uint32_t depth = 0;
    memset(seen, 0, layout->node_count * sizeof *seen);
    stack[depth++] = n;
    seen[n] = true;
    while (depth > 0) {
        const leati_place *place = &layout->places[stack[--depth]];
        if (place->node->flags & LEATI_NODE_ENDLESS)
            return place->node;
        for (uint32_t i = 0; i < place->in_count; i++) {
            const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
            uint32_t from = leati_place_index(edge->from);
            if (!seen[from]) {
                seen[from] = true;
                stack[depth++] = from;
            }
        }
    }
    return NULL;
}

static void check_edge(leati_layout *layout, uint32_t e, bool *seen, uint32_t *stack)
{
    const leati_edge *edge = &layout->env->edges[e];
    bool kept = layout->blocking[e] && !edge->blocking;
    if (!edge->is_variable && !kept)
        return;
    const leati_node *source = endless(layout, leati_place_index(edge->from), seen, stack);
    if (!source)
        return;
    if (edge->is_variable)
        leati_fault_add(layout->env, edge->to, LEAT_EGRAPH,
                        "its broadcast variable \"%s\" comes from \"%s\" (operator %u), which "
                        "never ends",
                        edge->to->variables[edge->input].name, source->name, source->id);
    else
        leati_fault_add(layout->env, edge->to, LEAT_EGRAPH,
                        "its input from \"%s\" (operator %u) would have to be kept whole, as it "
                        "and a broadcast variable wait for each other, but \"%s\" (operator %u) "
                        "behind it never ends",
                        edge->from->name, edge->from->id, source->name, source->id);
}

leat_err leati_layout_validate_broadcasts(leati_layout *layout)
{
    bool *seen = leati_arena_calloc(layout->arena, layout->node_count, sizeof *seen);
    uint32_t *stack = leati_arena_calloc(layout->arena, layout->node_count, sizeof *stack);
    if (!seen || !stack)
        return LEAT_ENOMEM;
    for (uint32_t e = 0; e < layout->edge_count; e++)
        check_edge(layout, e, seen, stack);
    return LEAT_OK;
}
