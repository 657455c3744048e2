// SPDX-License-Identifier: Apache-2.0
// Side outputs of operators. Like unions and partitionings they are no nodes: a leg says which
// output of its operator it reads.
#include "leat/side_output.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

static leat_stream *side_create(leat_env *env, leati_node *node, const char *side,
                                const leat_type *type)
{
    leat_stream *stream = leati_arena_alloc(&env->arena, sizeof *stream);
    char *name = leati_arena_strdup(&env->arena, side);
    if (!stream || !name) {
        leati_fault_no_memory(env);
        return leati_graph_inert(env);
    }
    *stream = (leat_stream){
        .env = env,
        .kind = LEATI_STREAM_SIDE,
        .type = type,
        .own = {.node = node, .side = name, .type = type, .partitioner = LEATI_PARTITION_DEFAULT},
        .leg_count = 1,
    };
    stream->legs = &stream->own;
    return stream;
}

static bool is_tag_name(const char *name)
{
    return name && *name && !strpbrk(name, " \t\r\n");
}

static const char *wrong_tag(const leat_tag *tag, const char **why)
{
    if (!tag)
        return "the tag is NULL";
    if (!is_tag_name(tag->name))
        return "the tag's name is empty or has blanks";
    if (!tag->type)
        return "the tag's type is NULL";
    if (leat_type_check(tag->type, why) != LEAT_OK)
        return "the tag's type cannot be a record: ";
    return NULL;
}

leat_stream *leat_side_output(leat_stream *stream, const leat_tag *tag)
{
    leat_env *env = leati_stream_env(stream);
    leati_node *node = leati_stream_settable(stream, "leat_side_output");
    if (!node)
        return leati_graph_inert(env);
    const char *why = NULL;
    const char *wrong = wrong_tag(tag, &why);
    if (wrong) {
        leati_fault_add(env, node, LEAT_EINVAL, "leat_side_output: %s%s", wrong, why ? why : "");
        return leati_graph_inert(env);
    }
    if (!leati_graph_hold_type(env, tag->type))
        return leati_graph_inert(env);
    return side_create(env, node, tag->name, tag->type);
}

leat_stream *leati_graph_side(leat_stream *stream, const char *side, const leat_type *type)
{
    return side_create(stream->env, stream->own.node, side, type);
}

// --- rejected records ---

static const leat_type *reject_type_create(leat_env *env, const leati_node *node)
{
    const leat_type *record = node->input_count == 1 ? node->in_type : leat_type_scalar(LEAT_STR);
    const leat_field_spec fields[] = {
        {.name = "error", .type = leat_type_scalar(LEAT_STR)},
        {.name = "record", .type = record},
    };
    const leat_type *type = NULL;
    leat_err err = leat_type_struct_create(&env->allocator, "rejected", fields, 2, &type);
    if (err == LEAT_ENOMEM)
        leati_fault_no_memory(env);
    else if (err != LEAT_OK)
        leati_fault_add(env, node, err,
                        "leat_rejects: its records cannot be part of another record");
    if (err == LEAT_OK && !leati_graph_hold_type(env, type)) {
        leat_type_release(type);
        return NULL;
    }
    // The environment holds it now.
    leat_type_release(type);
    return type;
}

leat_stream *leat_rejects(leat_stream *stream)
{
    leat_env *env = leati_stream_env(stream);
    leati_node *node = leati_stream_settable(stream, "leat_rejects");
    if (!node || (node->flags & LEATI_NODE_BROKEN))
        return leati_graph_inert(env);
    if (!node->reject_type)
        node->reject_type = reject_type_create(env, node);
    if (!node->reject_type)
        return leati_graph_inert(env);
    node->on_error = LEAT_ON_ERROR_SKIP;
    return side_create(env, node, LEATI_REJECTS, node->reject_type);
}
