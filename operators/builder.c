// SPDX-License-Identifier: Apache-2.0
#include "operators/builder.h"

#include "base/alloc.h"

leat_stream *leati_builder_fault(leat_env *env, const char *call, const char *what)
{
    if (env)
        leat_env_fail(env, LEAT_EINVAL, "%s: %s", call, what);
    return leati_graph_inert(env);
}

leat_stream *leati_builder_fault_on(leat_stream *in, const char *call, const char *what)
{
    leat_env *env = leati_stream_env(in);
    const leati_node *node = leati_stream_maker(in);
    if (!node)
        return leati_builder_fault(env, call, what);
    leat_env_fail(env, LEAT_EINVAL, "%s on the output of \"%s\" (operator %u): %s", call,
                  node->name, node->id, what);
    return leati_graph_inert(env);
}

const char *leati_builder_type_text(leat_env *env, const leat_type *type)
{
    size_t size = leat_type_print(type, NULL, 0);
    char *text = leat_env_alloc(env, size + 1);
    if (!text)
        return "?";
    leat_type_print(type, text, size + 1);
    return text;
}

bool leati_builder_input(leat_stream *in)
{
    return leati_stream_type(in) != NULL;
}

void *leati_operator_create(leat_ctx *ctx, size_t size_bytes, const leat_operator_ops *ops)
{
    leat_operator *op = leati_calloc(leat_ctx_allocator(ctx), 1, size_bytes);
    if (op)
        *op = (leat_operator){.ops = ops, .ctx = ctx};
    return op;
}

void leati_operator_dispose(leat_operator *self)
{
    leati_free(leat_ctx_allocator(self->ctx), self);
}
