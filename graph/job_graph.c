// SPDX-License-Identifier: Apache-2.0
#include "graph/job_graph.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

// A job graph and all that it points to live in one arena.
typedef struct owned_graph {
    leati_job_graph graph; // first, so that the two are found from each other
    leat_allocator allocator;
    leati_arena arena;
} owned_graph;

leat_err leati_job_graph_alloc(const leat_allocator *allocator, leati_job_graph **graph,
                               leati_arena **arena)
{
    allocator = leati_allocator_or_default(allocator);
    owned_graph *made = leati_calloc(allocator, 1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = *allocator;
    made->graph.allocator = &made->allocator;
    leati_arena_init(&made->arena, &made->allocator);
    *graph = &made->graph;
    *arena = &made->arena;
    return LEAT_OK;
}

void leati_job_graph_destroy(leati_job_graph **graph)
{
    owned_graph *gone = (owned_graph *)*graph;
    *graph = NULL;
    if (!gone)
        return;
    const leat_allocator allocator = gone->allocator;
    leati_arena_fini(&gone->arena);
    leati_free(&allocator, gone);
}

// --- vertices ---

typedef struct builder {
    leati_layout *layout;
    leati_job_graph *graph;
    leati_arena *arena;
    uint32_t *stack; // place indices, for walking trees
} builder;

static bool is_head(const leati_place *place)
{
    return place->chained_edge == LEATI_NONE && place->absorbed_by == LEATI_NONE;
}

// NULL stays NULL; running out of memory is noted.
static const char *copy_text(builder *b, const char *text, leat_err *err)
{
    const char *copy = text ? leati_arena_strdup(b->arena, text) : NULL;
    if (text && !copy)
        *err = LEAT_ENOMEM;
    return copy;
}

static const char *type_text(builder *b, const leat_type *type, leat_err *err)
{
    const char *text = leati_type_text(b->arena, type);
    if (!text)
        *err = LEAT_ENOMEM;
    return text;
}

static leat_err fill_op(builder *b, const leati_place *place, uint32_t parent, leati_chain_op *op)
{
    const leati_node *node = place->node;
    leat_err err = LEAT_OK;
    *op = (leati_chain_op){
        .node = node,
        .parent = parent,
        .side = "",
        .node_id = node->id,
        .kind = copy_text(b, node->kind, &err),
        .name = copy_text(b, node->name, &err),
        .uid = copy_text(b, node->uid, &err),
        .detail = copy_text(b, node->detail, &err),
        .uid_hash = {place->hash[0], place->hash[1]},
        .in_type = type_text(b, node->in_type, &err),
        .out_type = type_text(b, node->out_type, &err),
        .input_count = node->input_count,
        .flags = node->flags,
        .variable_count = node->variable_count,
    };
    op->variables = leati_arena_calloc(b->arena, node->variable_count, sizeof(char *));
    if (node->variable_count && !op->variables)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < node->variable_count; i++)
        op->variables[i] = copy_text(b, node->variables[i].name, &err);
    return err;
}

// Calls visit for each operator that is chained to the head, in preorder. Chains may be long, hence
// no recursion.
static leat_err walk_chain(builder *b, uint32_t head,
                           leat_err (*visit)(builder *b, leati_vertex *vertex, uint32_t place),
                           leati_vertex *vertex)
{
    const leati_layout *layout = b->layout;
    uint32_t depth = 0;
    leat_err err = LEAT_OK;
    b->stack[depth++] = head;
    while (depth > 0 && err == LEAT_OK) {
        uint32_t n = b->stack[--depth];
        const leati_place *place = &layout->places[n];
        err = visit(b, vertex, n);
        for (uint32_t i = place->out_count; i-- > 0;) {
            uint32_t e = layout->out_edges[place->first_out + i];
            uint32_t to = leati_place_index(layout->env->edges[e].to);
            if (layout->places[to].chained_edge == e)
                b->stack[depth++] = to;
        }
    }
    return err;
}

static leat_err count_op(builder *b, leati_vertex *vertex, uint32_t n)
{
    leati_place *place = &b->layout->places[n];
    place->vertex = vertex->id;
    place->op = vertex->op_count++;
    return LEAT_OK;
}

static leat_err place_op(builder *b, leati_vertex *vertex, uint32_t n)
{
    const leati_place *place = &b->layout->places[n];
    leati_chain_op *op = &vertex->ops[place->op];
    if (place->chained_edge == LEATI_NONE)
        return fill_op(b, place, 0, op);
    const leati_edge *edge = &b->layout->env->edges[place->chained_edge];
    leat_err err = fill_op(b, place, b->layout->places[leati_place_index(edge->from)].op, op);
    if (edge->side)
        op->side = copy_text(b, edge->side, &err);
    return err;
}

// Absorbed sources come after the tree, in the order of their inputs.
static leat_err place_absorbed(builder *b, leati_vertex *vertex, uint32_t head, bool fill)
{
    leati_layout *layout = b->layout;
    const leati_place *place = &layout->places[head];
    uint32_t at = vertex->op_count;
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; i < place->in_count && err == LEAT_OK; i++) {
        const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
        leati_place *source = &layout->places[leati_place_index(edge->from)];
        if (source->absorbed_by != head)
            continue;
        if (!fill) {
            source->vertex = vertex->id;
            source->op = at++;
            continue;
        }
        leati_chain_op *op = &vertex->ops[source->op];
        err = fill_op(b, source, 0, op);
        op->absorbed = true;
        op->absorbed_input = edge->input;
    }
    if (!fill)
        vertex->op_count = at;
    return err;
}

static leat_err fill_vertex(builder *b, leati_vertex *vertex, uint32_t head)
{
    const leati_place *place = &b->layout->places[head];
    leat_err err = LEAT_OK;
    vertex->parallelism = place->parallelism;
    vertex->max_parallelism = place->max_parallelism;
    vertex->slot_group = copy_text(b, place->slot_group, &err);
    if (walk_chain(b, head, count_op, vertex) != LEAT_OK ||
        place_absorbed(b, vertex, head, false) != LEAT_OK)
        return LEAT_ENOMEM;
    vertex->ops = leati_arena_calloc(b->arena, vertex->op_count, sizeof *vertex->ops);
    if (!vertex->ops || walk_chain(b, head, place_op, vertex) != LEAT_OK)
        return LEAT_ENOMEM;
    return err == LEAT_OK ? place_absorbed(b, vertex, head, true) : err;
}

// The heads in topological order give the vertices in topological order: an edge into a vertex
// always enters its head, and comes from an operator behind the head of its own vertex.
static leat_err build_vertices(builder *b)
{
    leati_layout *layout = b->layout;
    for (uint32_t i = 0; i < layout->order_count; i++)
        b->graph->vertex_count += is_head(&layout->places[layout->order[i]]);
    b->graph->vertices =
        leati_arena_calloc(b->arena, b->graph->vertex_count, sizeof *b->graph->vertices);
    if (!b->graph->vertices)
        return LEAT_ENOMEM;
    uint32_t id = 0;
    for (uint32_t i = 0; i < layout->order_count; i++) {
        if (!is_head(&layout->places[layout->order[i]]))
            continue;
        leati_vertex *vertex = &b->graph->vertices[id];
        vertex->id = id++;
        if (fill_vertex(b, vertex, layout->order[i]) != LEAT_OK)
            return LEAT_ENOMEM;
    }
    return leati_job_graph_name_vertices(b->graph, b->arena);
}

// --- edges ---

static bool is_exchange(const leati_layout *layout, uint32_t e)
{
    const leati_edge *edge = &layout->env->edges[e];
    return layout->places[leati_place_index(edge->to)].chained_edge != e &&
           layout->places[leati_place_index(edge->from)].absorbed_by == LEATI_NONE;
}

static leat_err fill_edge(builder *b, uint32_t e, leati_job_edge *to)
{
    const leati_layout *layout = b->layout;
    const leati_edge *edge = &layout->env->edges[e];
    const leati_place *from = &layout->places[leati_place_index(edge->from)];
    bool hashed = layout->partitioners[e] == LEATI_PARTITION_HASH;
    leat_err err = LEAT_OK;
    *to = (leati_job_edge){
        .from_vertex = from->vertex,
        .from_op = from->op,
        .side = copy_text(b, edge->side ? edge->side : "", &err),
        .to_vertex = layout->places[leati_place_index(edge->to)].vertex,
        .input = edge->is_variable ? edge->to->input_count + edge->input : edge->input,
        .partitioner = layout->partitioners[e],
        // A blocking exchange is read when all is there, so there is nothing to flush.
        .buffer_timeout_ms =
            layout->blocking[e] ? -1
            : edge->from->buffer_timeout_ms != INT64_MIN
                ? edge->from->buffer_timeout_ms
                : leati_config_get(&layout->env->config, LEATI_CONFIG_BUFFER_TIMEOUT),
        .key_text = copy_text(b, hashed ? edge->key->text : "", &err),
        .type = edge->type,
        .key = hashed ? edge->key : NULL,
        .custom = edge->custom,
        .blocking = layout->blocking[e],
    };
    return err;
}

static leat_err build_edges(builder *b)
{
    const leati_layout *layout = b->layout;
    leati_job_graph *graph = b->graph;
    uint32_t count = 0;
    for (uint32_t e = 0; e < layout->edge_count; e++)
        count += is_exchange(layout, e);
    graph->edges = leati_arena_calloc(b->arena, count, sizeof *graph->edges);
    if (!graph->edges)
        return LEAT_ENOMEM;
    for (const leati_vertex *v = graph->vertices; v < graph->vertices + graph->vertex_count; v++) {
        for (const leati_chain_op *op = v->ops; op < v->ops + v->op_count; op++) {
            const leati_place *place = &layout->places[leati_place_index(op->node)];
            for (uint32_t i = 0; i < place->out_count; i++) {
                uint32_t e = layout->out_edges[place->first_out + i];
                if (is_exchange(layout, e) &&
                    fill_edge(b, e, &graph->edges[graph->edge_count++]) != LEAT_OK)
                    return LEAT_ENOMEM;
            }
        }
    }
    return LEAT_OK;
}

// --- the whole ---

static leat_err build(leat_env *env, leati_arena *work, leati_job_graph *graph, leati_arena *arena)
{
    leati_layout layout;
    if (leati_layout_init(&layout, env, work) != LEAT_OK)
        return LEAT_ENOMEM;
    leati_layout_chain(&layout);
    builder b = {.layout = &layout,
                 .graph = graph,
                 .arena = arena,
                 .stack = leati_arena_calloc(work, layout.node_count, sizeof *b.stack)};
    graph->name = leati_arena_strdup(arena, env->name);
    if (!b.stack || !graph->name || leati_layout_identify(&layout) != LEAT_OK ||
        build_vertices(&b) != LEAT_OK || build_edges(&b) != LEAT_OK)
        return LEAT_ENOMEM;
    return leati_job_graph_seal(graph);
}

leat_err leati_job_graph_create(leat_env *env, leati_job_graph **graph)
{
    leat_err err = leat_env_check(env);
    if (err != LEAT_OK)
        return err;
    leati_job_graph *made = NULL;
    leati_arena *arena = NULL;
    leati_arena work;
    leati_arena_init(&work, &env->allocator);
    err = leati_job_graph_alloc(&env->allocator, &made, &arena);
    if (err == LEAT_OK)
        err = build(env, &work, made, arena);
    leati_arena_fini(&work);
    if (err == LEAT_OK) {
        *graph = made;
        return LEAT_OK;
    }
    leati_job_graph_destroy(&made);
    // A valid graph fails for want of memory only; it is listed like what validation finds.
    env->checked.out_of_memory = true;
    return err;
}

uint64_t leati_job_graph_tasks(const leati_job_graph *graph)
{
    uint64_t tasks = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        tasks += graph->vertices[v].parallelism;
    return tasks;
}

// Groups are few, so each vertex looks for an earlier one of its group.
uint32_t leati_job_graph_slots(const leati_job_graph *graph)
{
    uint64_t slots = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        const char *group = graph->vertices[v].slot_group;
        uint32_t first = 0, most = 0;
        while (strcmp(graph->vertices[first].slot_group, group) != 0)
            first++;
        if (first != v)
            continue;
        for (uint32_t w = v; w < graph->vertex_count; w++)
            if (!strcmp(graph->vertices[w].slot_group, group) &&
                graph->vertices[w].parallelism > most)
                most = graph->vertices[w].parallelism;
        slots += most;
    }
    return slots > UINT32_MAX ? UINT32_MAX : (uint32_t)slots;
}
