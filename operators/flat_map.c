// SPDX-License-Identifier: Apache-2.0
// leat_flat_map: one record in, any number of records out.
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

typedef struct flat_map_config {
    leat_flat_map_fn fn;
} flat_map_config;

typedef struct flat_map_operator {
    leat_operator base;
    leat_flat_map_fn fn;
} flat_map_operator;

static leat_err flat_map_element(leat_operator *self, const void *record, leat_out *out)
{
    flat_map_operator *op = (flat_map_operator *)self;
    int result = op->fn(self->ctx, record, out);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(self->ctx, record, "the flat_map function", result);
    return LEAT_OK;
}

static const leat_operator_ops flat_map_ops = {
    .kind = "flat_map",
    .element = flat_map_element,
    .dispose = leati_operator_dispose,
};

static leat_err flat_map_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const flat_map_config *config = factory->config;
    flat_map_operator *flat_map = leati_operator_create(ctx, sizeof *flat_map, &flat_map_ops);
    if (!flat_map)
        return LEAT_ENOMEM;
    flat_map->fn = config->fn;
    *op = &flat_map->base;
    return LEAT_OK;
}

leat_stream *leat_flat_map(leat_stream *in, leat_flat_map_fn fn, const leat_type *out_type)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!fn)
        return leati_builder_fault_on(in, "leat_flat_map", "the function is NULL");
    if (!out_type)
        return leati_builder_fault_on(in, "leat_flat_map", "the output type is NULL");
    flat_map_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->fn = fn;
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "flat_map",
                                              .out_type = out_type,
                                              .factory = {flat_map_create, config}});
}
