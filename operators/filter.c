// SPDX-License-Identifier: Apache-2.0
// leat_filter: passes the records on that its function keeps.
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

typedef struct filter_config {
    leat_filter_fn fn;
} filter_config;

typedef struct filter_operator {
    leat_operator base;
    leat_filter_fn fn;
} filter_operator;

static leat_err filter_element(leat_operator *self, const void *record, leat_out *out)
{
    filter_operator *op = (filter_operator *)self;
    int result = op->fn(self->ctx, record);
    if (LEAT_UNLIKELY(result < 0))
        return leati_ctx_reject(self->ctx, record, "the filter function", result);
    return result ? leat_collect(out, record) : LEAT_OK;
}

static const leat_operator_ops filter_ops = {
    .kind = "filter",
    .element = filter_element,
    .dispose = leati_operator_dispose,
};

static leat_err filter_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const filter_config *config = factory->config;
    filter_operator *filter = leati_operator_create(ctx, sizeof *filter, &filter_ops);
    if (!filter)
        return LEAT_ENOMEM;
    filter->fn = config->fn;
    *op = &filter->base;
    return LEAT_OK;
}

leat_stream *leat_filter(leat_stream *in, leat_filter_fn fn)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!fn)
        return leati_builder_fault_on(in, "leat_filter", "the function is NULL");
    filter_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->fn = fn;
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "filter",
                                              .out_type = leati_stream_type(in),
                                              .factory = {filter_create, config}});
}
