// SPDX-License-Identifier: Apache-2.0
// Settings of the operator that made a stream. Each call returns its argument, and a wrong one
// leaves the operator as it was.
#include "base/alloc.h"
#include "base/config.h"
#include "graph/graph_impl.h"

leati_node *leati_stream_settable(leat_stream *stream, const char *call)
{
    static const char *const what[] = {[LEATI_STREAM_UNION] = "union",
                                       [LEATI_STREAM_PARTITIONING] = "partitioning or key_by",
                                       [LEATI_STREAM_SIDE] = "side output"};
    if (!stream || stream->kind == LEATI_STREAM_INERT)
        return NULL;
    if (stream->kind == LEATI_STREAM_OPERATOR)
        return stream->own.node;
    leati_graph_fault(stream, LEAT_EGRAPH,
                      "%s was called on a %s of its output, which is no operator and has no "
                      "settings",
                      call, what[stream->kind]);
    return NULL;
}

static leat_stream *same(leat_stream *stream)
{
    return stream ? stream : leati_graph_inert(NULL);
}

static bool set_text(leat_stream *stream, const leati_node *node, const char *call, char **to,
                     const char *text)
{
    if (!text || !*text) {
        leati_fault_add(stream->env, node, LEAT_EINVAL, "%s: the text is empty", call);
        return false;
    }
    char *copy = leati_arena_strdup(&stream->env->arena, text);
    if (!copy) {
        leati_fault_no_memory(stream->env);
        return false;
    }
    *to = copy;
    return true;
}

leat_stream *leat_name(leat_stream *stream, const char *name)
{
    leati_node *node = leati_stream_settable(stream, "leat_name");
    if (node && set_text(stream, node, "leat_name", &node->name, name))
        leati_fault_renamed(stream->env, node);
    return same(stream);
}

leat_stream *leat_uid(leat_stream *stream, const char *uid)
{
    leati_node *node = leati_stream_settable(stream, "leat_uid");
    if (node)
        (void)set_text(stream, node, "leat_uid", &node->uid, uid);
    return same(stream);
}

leat_stream *leat_slot_group(leat_stream *stream, const char *group)
{
    leati_node *node = leati_stream_settable(stream, "leat_slot_group");
    if (node)
        (void)set_text(stream, node, "leat_slot_group", &node->slot_group, group);
    return same(stream);
}

static void set_count(leat_stream *stream, const leati_node *node, const char *call, uint32_t *to,
                      uint32_t count)
{
    if (count == 0 || count > LEATI_MAX_PARALLELISM)
        leati_fault_add(stream->env, node, LEAT_EINVAL, "%s: %u is not within 1 and %d", call,
                        count, LEATI_MAX_PARALLELISM);
    else
        *to = count;
}

leat_stream *leat_parallelism(leat_stream *stream, uint32_t parallelism)
{
    leati_node *node = leati_stream_settable(stream, "leat_parallelism");
    if (node)
        set_count(stream, node, "leat_parallelism", &node->parallelism, parallelism);
    return same(stream);
}

leat_stream *leat_max_parallelism(leat_stream *stream, uint32_t max_parallelism)
{
    leati_node *node = leati_stream_settable(stream, "leat_max_parallelism");
    if (node)
        set_count(stream, node, "leat_max_parallelism", &node->max_parallelism, max_parallelism);
    return same(stream);
}

leat_stream *leat_start_new_chain(leat_stream *stream)
{
    leati_node *node = leati_stream_settable(stream, "leat_start_new_chain");
    if (node)
        node->chaining = LEATI_CHAIN_HEAD;
    return same(stream);
}

leat_stream *leat_disable_chaining(leat_stream *stream)
{
    leati_node *node = leati_stream_settable(stream, "leat_disable_chaining");
    if (node)
        node->chaining = LEATI_CHAIN_NEVER;
    return same(stream);
}

leat_stream *leat_buffer_timeout(leat_stream *stream, int64_t timeout_ms)
{
    leati_node *node = leati_stream_settable(stream, "leat_buffer_timeout");
    const leati_config_info *info = leati_config_describe(LEATI_CONFIG_BUFFER_TIMEOUT);
    if (node && (timeout_ms < info->lowest || timeout_ms > info->highest))
        leati_fault_add(stream->env, node, LEAT_EINVAL,
                        "leat_buffer_timeout: %lld ms is not within %lld and %lld",
                        (long long)timeout_ms, (long long)info->lowest, (long long)info->highest);
    else if (node)
        node->buffer_timeout_ms = timeout_ms;
    return same(stream);
}

leat_stream *leat_own_worker(leat_stream *stream)
{
    leati_node *node = leati_stream_settable(stream, "leat_own_worker");
    if (node)
        node->flags |= LEATI_NODE_OWN_WORKER;
    return same(stream);
}

leat_stream *leat_non_parallel(leat_stream *stream)
{
    leati_node *node = leati_stream_settable(stream, "leat_non_parallel");
    if (node)
        node->flags |= LEATI_NODE_NON_PARALLEL;
    return same(stream);
}

leat_stream *leat_rich(leat_stream *stream, leat_open_fn open, leat_close_fn close)
{
    leati_node *node = leati_stream_settable(stream, "leat_rich");
    if (node) {
        node->open = open;
        node->close = close;
    }
    return same(stream);
}

leat_stream *leat_on_error(leat_stream *stream, leat_on_error_policy policy)
{
    leati_node *node = leati_stream_settable(stream, "leat_on_error");
    if (node && policy != LEAT_ON_ERROR_FAIL && policy != LEAT_ON_ERROR_SKIP)
        leati_fault_add(stream->env, node, LEAT_EINVAL, "leat_on_error: %d is no policy", policy);
    else if (node)
        node->on_error = policy;
    return same(stream);
}

leat_stream *leat_user_data(leat_stream *stream, void *user_data)
{
    leati_node *node = leati_stream_settable(stream, "leat_user_data");
    if (node)
        node->user_data = user_data;
    return same(stream);
}
