// SPDX-License-Identifier: Apache-2.0
// Streams and the operators between them. A node with a fault of its own still enters the graph
// (LEATI_NODE_BROKEN), so that it takes the name given to it later and that what follows it is
// checked too.
#include "leat/stream.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

leat_stream *leati_graph_inert(leat_env *env)
{
    // Never written to: every function looks for an inert stream first.
    static const leat_stream nowhere;
    return env ? &env->inert : (leat_stream *)&nowhere;
}

leat_env *leati_stream_env(const leat_stream *stream)
{
    return stream ? stream->env : NULL;
}

static bool is_sink(const leat_stream *stream)
{
    return stream->kind == LEATI_STREAM_OPERATOR && (stream->own.node->flags & LEATI_NODE_SINK);
}

static void refuse_sink(const leat_stream *stream)
{
    leati_fault_add(stream->env, stream->own.node, LEAT_EGRAPH,
                    "it is a sink and emits nothing, so its stream cannot be an input");
}

const leat_type *leati_stream_type(const leat_stream *stream)
{
    if (!stream || stream->kind == LEATI_STREAM_INERT)
        return NULL;
    if (is_sink(stream))
        refuse_sink(stream);
    return stream->type;
}

const leati_key_selector *leati_stream_key(const leat_stream *stream)
{
    return stream ? stream->key : NULL;
}

leati_node *leati_stream_node(const leat_stream *stream)
{
    return stream && stream->kind == LEATI_STREAM_OPERATOR ? stream->own.node : NULL;
}

const leati_node *leati_stream_maker(const leat_stream *stream)
{
    return stream && stream->leg_count ? stream->legs[0].node : NULL;
}

void leati_graph_fault(leat_stream *stream, leat_err err, const char *format, ...)
{
    if (!leati_stream_env(stream))
        return;
    va_list args;
    va_start(args, format);
    leati_fault_vadd(stream->env, stream->leg_count ? stream->legs[0].node : NULL, err, format,
                     args);
    va_end(args);
}

bool leati_graph_hold_type(leat_env *env, const leat_type *type)
{
    if (!type)
        return true;
    if (!leati_grow(&env->allocator, (void **)&env->types, &env->type_capacity, env->type_count + 1,
                    sizeof *env->types)) {
        leati_fault_no_memory(env);
        return false;
    }
    env->types[env->type_count++] = leat_type_hold(type);
    return true;
}

// --- operators ---

static leati_node *node_create(leat_env *env, const leati_node_spec *spec, uint32_t in_count)
{
    leati_node *node = leati_arena_alloc(&env->arena, sizeof *node);
    leati_input *inputs =
        in_count ? leati_arena_calloc(&env->arena, in_count, sizeof *inputs) : NULL;
    if (!node || (in_count && !inputs))
        return NULL;
    *node = (leati_node){
        .flags = spec->flags,
        .kind = spec->kind,
        .name =
            leati_arena_strdup(&env->arena, spec->name && *spec->name ? spec->name : spec->kind),
        .parallelism = spec->parallelism,
        .chaining = spec->chaining,
        .buffer_timeout_ms = INT64_MIN,
        .out_type = spec->out_type,
        .inputs = inputs,
        .input_count = in_count,
        .factory = spec->factory,
        .job_over = spec->job_over,
        .detail = spec->detail ? leati_arena_strdup(&env->arena, spec->detail) : NULL,
    };
    if (!node->name || (spec->detail && !node->detail) ||
        !leati_graph_hold_type(env, spec->out_type) ||
        !leati_grow(&env->allocator, (void **)&env->nodes, &env->node_capacity, env->node_count + 1,
                    sizeof(leati_node *)))
        return NULL;
    env->nodes[env->node_count++] = node;
    node->id = (uint32_t)env->node_count;
    return node;
}

static void break_node(leat_env *env, leati_node *node, leat_err err, const char *message)
{
    node->flags |= LEATI_NODE_BROKEN;
    leati_fault_add(env, node, err, "%s", message);
}

static void check_node(leat_env *env, leati_node *node, const leati_node_spec *spec)
{
    const char *why = NULL;
    if (spec->name && !*spec->name)
        leati_fault_add(env, node, LEAT_EINVAL, "its name is empty");
    if (!node->factory.create)
        break_node(env, node, LEAT_EINVAL, "it has no function that creates the operator (NULL)");
    if (node->input_count == 0 && !(node->flags & LEATI_NODE_SOURCE))
        break_node(env, node, LEAT_EINVAL, "its input is NULL");
    if (node->parallelism > LEATI_MAX_PARALLELISM)
        break_node(env, node, LEAT_EINVAL, "its parallelism is above 32768");
    if (node->flags & LEATI_NODE_SINK) {
        node->out_type = NULL;
    } else if (!node->out_type) {
        break_node(env, node, LEAT_EINVAL, "its output type is NULL");
    } else if (leat_type_check(node->out_type, &why) != LEAT_OK) {
        node->flags |= LEATI_NODE_BROKEN;
        leati_fault_add(env, node, LEAT_ETYPE, "its output type cannot be a record: %s",
                        why ? why : "invalid");
        node->out_type = NULL;
    }
}

static bool add_edges(leat_env *env, leati_node *node, uint32_t input, const leat_stream *in)
{
    if (!leati_grow(&env->allocator, (void **)&env->edges, &env->edge_capacity,
                    env->edge_count + in->leg_count, sizeof *env->edges))
        return false;
    for (size_t i = 0; i < in->leg_count; i++)
        env->edges[env->edge_count++] = (leati_edge){
            .from = in->legs[i].node,
            .side = in->legs[i].side,
            .type = in->legs[i].type,
            .to = node,
            .input = input,
            .partitioner = in->legs[i].partitioner,
            .key = in->legs[i].key,
            .custom = in->legs[i].custom,
            .blocking = in->legs[i].blocking,
        };
    return true;
}

bool leati_graph_add_variable_edges(leat_env *env, leati_node *node, uint32_t variable,
                                    const leat_stream *values)
{
    size_t first = env->edge_count;
    if (!add_edges(env, node, variable, values))
        return false;
    // Every subtask gets all records, however the stream was partitioned for others.
    for (size_t i = first; i < env->edge_count; i++) {
        env->edges[i].partitioner = LEATI_PARTITION_BROADCAST;
        env->edges[i].key = NULL;
        env->edges[i].custom = NULL;
        env->edges[i].is_variable = true;
    }
    return true;
}

static void connect(leat_env *env, leati_node *node, uint32_t input, const leat_stream *in)
{
    if (!in) {
        break_node(env, node, LEAT_EINVAL, "one of its inputs is NULL");
    } else if (in->env != env) {
        break_node(env, node, LEAT_EGRAPH, "its input belongs to another environment");
    } else if (is_sink(in)) {
        refuse_sink(in);
        node->flags |= LEATI_NODE_BROKEN;
    } else if (!in->type) {
        node->flags |= LEATI_NODE_BROKEN; // the input's own fault is recorded
    } else {
        leati_input *to = (leati_input *)&node->inputs[input];
        *to = (leati_input){.type = in->type, .key = in->key};
        if ((node->flags & LEATI_NODE_NEEDS_KEY) && !in->key)
            leati_fault_add(env, node, LEAT_EGRAPH,
                            "its input has no key: leat_key_by must come directly before it");
        if (!add_edges(env, node, input, in))
            leati_fault_no_memory(env);
    }
}

leat_stream *leati_graph_add_inputs(leat_env *env, leat_stream *const *ins, uint32_t in_count,
                                    const leati_node_spec *spec)
{
    if (!env)
        return leati_graph_inert(NULL);
    for (uint32_t i = 0; i < in_count; i++)
        if (ins[i] && ins[i]->kind == LEATI_STREAM_INERT)
            return leati_graph_inert(env);
    leat_stream *stream = leati_arena_alloc(&env->arena, sizeof *stream);
    leati_node *node = stream ? node_create(env, spec, in_count) : NULL;
    if (!node) {
        leati_fault_no_memory(env);
        return leati_graph_inert(env);
    }
    check_node(env, node, spec);
    for (uint32_t i = 0; i < in_count; i++)
        connect(env, node, i, ins[i]);
    if (in_count) {
        node->in_type = node->inputs[0].type;
        node->key = node->inputs[0].key;
    }
    *stream = (leat_stream){
        .env = env,
        .kind = LEATI_STREAM_OPERATOR,
        .type = node->out_type,
        .own = {.node = node, .type = node->out_type, .partitioner = LEATI_PARTITION_DEFAULT},
        .leg_count = 1,
    };
    stream->legs = &stream->own;
    return stream;
}

leat_stream *leati_graph_add(leat_env *env, leat_stream *in, const leati_node_spec *spec)
{
    return leati_graph_add_inputs(env, &in, in ? 1 : 0, spec);
}

// --- unions ---

static bool union_accepts(leat_env *env, const leat_stream *first, leat_stream *in)
{
    if (!in) {
        leati_graph_fault((leat_stream *)first, LEAT_EINVAL,
                          "leat_union: one of the streams is NULL");
    } else if (in->env != env) {
        leati_graph_fault((leat_stream *)first, LEAT_EGRAPH,
                          "leat_union: one of the streams belongs to another environment");
    } else if (leati_stream_type(in) && first->type && !leat_type_equal(first->type, in->type)) {
        leati_graph_fault(
            in, LEAT_ETYPE, "leat_union: its records are %s, those of the first stream are %s",
            leati_fault_type_text(env, in->type), leati_fault_type_text(env, first->type));
    } else {
        return in->type != NULL;
    }
    return false;
}

static leat_stream *union_create(leat_env *env, leat_stream *const *streams, size_t count,
                                 size_t leg_count)
{
    leat_stream *stream = leati_arena_alloc(&env->arena, sizeof *stream);
    leati_leg *legs = leati_arena_calloc(&env->arena, leg_count, sizeof *legs);
    if (!stream || !legs) {
        leati_fault_no_memory(env);
        return leati_graph_inert(env);
    }
    *stream = (leat_stream){.env = env,
                            .kind = LEATI_STREAM_UNION,
                            .type = streams[0]->type,
                            .legs = legs,
                            .leg_count = leg_count};
    for (size_t i = 0; i < count; i++) {
        memcpy(legs, streams[i]->legs, streams[i]->leg_count * sizeof *legs);
        legs += streams[i]->leg_count;
    }
    return stream;
}

leat_stream *leat_union(leat_stream *const *streams, size_t count)
{
    leat_stream *first = NULL; // with an environment
    for (size_t i = 0; streams && i < count && !first; i++)
        if (leati_stream_env(streams[i]))
            first = streams[i];
    if (!first)
        return leati_graph_inert(NULL);
    size_t leg_count = 0;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        good &= union_accepts(first->env, first, streams[i]);
        leg_count += streams[i] ? streams[i]->leg_count : 0;
    }
    if (leg_count > LEATI_MAX_LEGS) {
        leati_graph_fault(first, LEAT_EGRAPH, "leat_union: more than %d streams", LEATI_MAX_LEGS);
        good = false;
    }
    return good ? union_create(first->env, streams, count, leg_count)
                : leati_graph_inert(first->env);
}
