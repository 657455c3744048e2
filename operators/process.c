// SPDX-License-Identifier: Apache-2.0
// leat_process, and operators of the user's own with several inputs.
#include "leat/process.h"

#include "operators/builder.h"
#include "runtime/context.h"

enum { MOST_INPUTS = 64 };

typedef struct process_operator {
    leat_operator base;
    const leat_process_fns *fns;
} process_operator;

static leat_err process_element(leat_operator *self, const void *record, leat_out *out)
{
    int result = ((process_operator *)self)->fns->element(self->ctx, record, out);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(self->ctx, record, "the process function", result);
    return LEAT_OK;
}

static leat_err process_end_input(leat_operator *self, leat_out *out)
{
    const leat_process_fns *fns = ((process_operator *)self)->fns;
    int result = fns->end ? fns->end(self->ctx, out) : 0;
    return result ? leati_ctx_user_failure(self->ctx, "the end of the process function", result)
                  : LEAT_OK;
}

static const leat_operator_ops process_ops = {
    .kind = "process",
    .element = process_element,
    .end_input = process_end_input,
    .dispose = leati_operator_dispose,
};

static leat_err process_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    process_operator *made = leati_operator_create(ctx, sizeof *made, &process_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->fns = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

leat_stream *leat_process(leat_stream *in, const leat_process_fns *fns, const leat_type *out_type)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!fns || !fns->element)
        return leati_builder_fault_on(in, "leat_process", "the element function is NULL");
    leat_process_fns *copy = leat_env_alloc(env, sizeof *copy);
    if (!copy)
        return leati_graph_inert(env);
    *copy = *fns;
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "process",
                                              .out_type = out_type,
                                              .factory = {process_create, copy}});
}

// --- several inputs ---

leat_stream *leat_transform_inputs(leat_stream *const *inputs, size_t count, const char *name,
                                   const leat_factory *factory, const leat_type *out_type)
{
    leat_env *env = inputs && count ? leati_stream_env(inputs[0]) : NULL;
    if (!env)
        return leati_graph_inert(NULL);
    if (count > MOST_INPUTS)
        return leati_builder_fault_on(inputs[0], "leat_transform_inputs", "more than 64 inputs");
    for (size_t i = 0; i < count; i++)
        if (!inputs[i])
            return leati_builder_fault_on(inputs[0], "leat_transform_inputs",
                                          "one of the inputs is NULL");
    if (!factory || !factory->create)
        return leati_builder_fault_on(inputs[0], "leat_transform_inputs", "the factory is NULL");
    return leati_graph_add_inputs(
        env, inputs, (uint32_t)count,
        &(leati_node_spec){
            .kind = "transform", .name = name, .out_type = out_type, .factory = *factory});
}

leat_stream *leat_chain_with_sources(leat_stream *stream)
{
    leati_node *node = leati_stream_node(stream);
    if (node)
        node->chaining = LEATI_CHAIN_HEAD_WITH_SOURCES;
    else if (leati_stream_env(stream))
        leati_graph_fault(stream, LEAT_EGRAPH,
                          "leat_chain_with_sources: the stream is not that of an operator");
    return stream ? stream : leati_graph_inert(NULL);
}
