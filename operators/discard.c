// SPDX-License-Identifier: Apache-2.0
// leat_discard: a sink that drops everything.
#include "leat/stream.h"
#include "operators/builder.h"

static leat_err discard_element(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_OK;
}

static const leat_operator_ops discard_ops = {
    .kind = "discard",
    .element = discard_element,
    .dispose = leati_operator_dispose,
};

static leat_err discard_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    *op = leati_operator_create(ctx, sizeof **op, &discard_ops);
    return *op ? LEAT_OK : LEAT_ENOMEM;
}

leat_stream *leat_discard(leat_stream *in)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "discard",
                                              .flags = LEATI_NODE_SINK,
                                              .factory = {discard_create, NULL}});
}
