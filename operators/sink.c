// SPDX-License-Identifier: Apache-2.0
// leat_sink: hands each record to a function of the user's.
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

typedef struct sink_config {
    leat_sink_fn fn;
} sink_config;

typedef struct sink_operator {
    leat_operator base;
    leat_sink_fn fn;
    uint64_t taken; // records not yet added to the task's count
} sink_operator;

static leat_err sink_element(leat_operator *self, const void *record, leat_out *out)
{
    sink_operator *op = (sink_operator *)self;
    int result = op->fn(self->ctx, record);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(self->ctx, record, "the sink function", result);
    op->taken++;
    return LEAT_OK;
}

// Also the close hook.
static leat_err sink_flush(leat_operator *self)
{
    sink_operator *op = (sink_operator *)self;
    leat_ctx_count_out(self->ctx, op->taken, 0);
    op->taken = 0;
    return LEAT_OK;
}

// A job that is stopped has counted too.
static void sink_dispose(leat_operator *self)
{
    (void)sink_flush(self);
    leati_operator_dispose(self);
}

static const leat_operator_ops sink_ops = {
    .kind = "sink",
    .element = sink_element,
    .flush = sink_flush,
    .close = sink_flush,
    .dispose = sink_dispose,
};

static leat_err sink_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const sink_config *config = factory->config;
    sink_operator *sink = leati_operator_create(ctx, sizeof *sink, &sink_ops);
    if (!sink)
        return LEAT_ENOMEM;
    sink->fn = config->fn;
    *op = &sink->base;
    return LEAT_OK;
}

leat_stream *leat_sink(leat_stream *in, leat_sink_fn fn)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!fn)
        return leati_builder_fault_on(in, "leat_sink", "the function is NULL");
    sink_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->fn = fn;
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "sink",
                                              .flags = LEATI_NODE_SINK,
                                              .factory = {sink_create, config}});
}
