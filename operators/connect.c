// SPDX-License-Identifier: Apache-2.0
// leat_connect and the operators that read two streams: co_map, co_flat_map, co_process.
#include "leat/connect.h"

#include <string.h>

#include "base/alloc.h"
#include "leat/process.h"
#include "operators/builder.h"
#include "runtime/context.h"

struct leat_connected {
    leat_env *env;
    leat_stream *in[2]; // inert after a fault
};

// Co_map has `map`, the others `fns`.
typedef struct co_config {
    leat_map_fn map[2];
    leat_co_process_fns fns;
} co_config;

typedef struct co_operator {
    leat_operator base;
    const co_config *config;
    size_t size_bytes; // of `record`, co_map only
    _Alignas(max_align_t) char record[];
} co_operator;

static const char *const of_input[] = {"the function of the first input",
                                       "the function of the second input"};

// --- co_map ---

static leat_err map_element_of(leat_operator *self, uint32_t input, const void *record,
                               leat_out *out)
{
    co_operator *op = (co_operator *)self;
    memset(op->record, 0, op->size_bytes);
    int result = op->config->map[input](self->ctx, record, op->record);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(self->ctx, record, of_input[input], result);
    return leat_collect(out, op->record);
}

static const leat_operator_ops co_map_ops = {
    .kind = "co_map",
    .element_of = map_element_of,
    .dispose = leati_operator_dispose,
};

static leat_err co_map_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    size_t size = leat_ctx_out_type(ctx)->size;
    co_operator *made = leati_operator_create(ctx, sizeof *made + size, &co_map_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    made->size_bytes = size;
    *op = &made->base;
    return LEAT_OK;
}

// --- co_flat_map and co_process ---

static leat_err process_element_of(leat_operator *self, uint32_t input, const void *record,
                                   leat_out *out)
{
    const leat_co_process_fns *fns = &((co_operator *)self)->config->fns;
    int result = (input == 0 ? fns->first : fns->second)(self->ctx, record, out);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(self->ctx, record, of_input[input], result);
    return LEAT_OK;
}

static leat_err call_end(leat_operator *self, int (*end)(leat_ctx *ctx, leat_out *out),
                         leat_out *out)
{
    int result = end ? end(self->ctx, out) : 0;
    return result ? leati_ctx_user_failure(self->ctx, "the function of the input's end", result)
                  : LEAT_OK;
}

static leat_err process_input_ended(leat_operator *self, uint32_t input, leat_out *out)
{
    const leat_co_process_fns *fns = &((co_operator *)self)->config->fns;
    return call_end(self, input == 0 ? fns->first_end : fns->second_end, out);
}

static leat_err process_end_input(leat_operator *self, leat_out *out)
{
    return call_end(self, ((co_operator *)self)->config->fns.end, out);
}

static const leat_operator_ops co_process_ops = {
    .kind = "co_process",
    .element_of = process_element_of,
    .input_ended = process_input_ended,
    .end_input = process_end_input,
    .dispose = leati_operator_dispose,
};

static leat_err co_process_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    co_operator *made = leati_operator_create(ctx, sizeof *made, &co_process_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

// --- building ---

// Whether both streams are keyed by parts of equal types, or neither is; records what is wrong.
static bool keys_agree(leat_stream *first, leat_stream *second)
{
    const leati_key_selector *a = leati_stream_key(first), *b = leati_stream_key(second);
    if (!a && !b)
        return true;
    if (!a || !b) {
        leati_builder_fault_on(first, "leat_connect",
                               "only one of the streams is keyed; both must be, or neither");
        return false;
    }
    if (a->fields.count != b->fields.count) {
        leati_graph_fault(first, LEAT_ETYPE,
                          "leat_connect: the keys %s and %s have different numbers of parts",
                          a->text, b->text);
        return false;
    }
    leat_env *env = leati_stream_env(first);
    for (uint32_t i = 0; i < a->fields.count; i++) {
        const leat_type *x = a->fields.part[i].type, *y = b->fields.part[i].type;
        if (leat_type_equal(x, y))
            continue;
        leati_graph_fault(
            first, LEAT_ETYPE, "leat_connect: the keys %s and %s are of different types: %s and %s",
            a->text, b->text, leati_builder_type_text(env, x), leati_builder_type_text(env, y));
        return false;
    }
    return true;
}

leat_connected *leat_connect(leat_stream *first, leat_stream *second)
{
    // Never written to: without an environment nothing is added.
    static const leat_connected nowhere;
    leat_env *env = leati_stream_env(first) ? leati_stream_env(first) : leati_stream_env(second);
    leat_connected *made = env ? leat_env_alloc(env, sizeof *made) : NULL;
    if (!made)
        return (leat_connected *)&nowhere;
    *made = (leat_connected){.env = env, .in = {leati_graph_inert(env), leati_graph_inert(env)}};
    leat_stream *there = first ? first : second;
    if (!first || !second) {
        leati_builder_fault_on(there, "leat_connect", "one of the streams is NULL");
        return made;
    }
    // Both are asked, so that the faults of both are recorded.
    bool good = leati_builder_input(first);
    good &= leati_builder_input(second);
    if (!good)
        return made;
    if (keys_agree(first, second))
        *made = (leat_connected){.env = env, .in = {first, second}};
    return made;
}

static leat_stream *build(const leat_connected *in, const char *call, const leati_node_spec *spec,
                          const co_config *config)
{
    if (!in || !in->env)
        return leati_graph_inert(NULL);
    if (!leati_stream_type(in->in[0]))
        return leati_graph_inert(in->env);
    if (!(config->map[0] && config->map[1]) && !(config->fns.first && config->fns.second))
        return leati_builder_fault_on(in->in[0], call, "a function is NULL");
    co_config *copy = leat_env_alloc(in->env, sizeof *copy);
    if (!copy)
        return leati_graph_inert(in->env);
    *copy = *config;
    leati_node_spec with = *spec;
    with.factory.config = copy;
    return leati_graph_add_inputs(in->env, in->in, 2, &with);
}

leat_stream *leat_co_map(leat_connected *in, leat_map_fn first, leat_map_fn second,
                         const leat_type *out_type)
{
    return build(
        in, "leat_co_map",
        &(leati_node_spec){.kind = "co_map", .out_type = out_type, .factory = {co_map_create, 0}},
        &(co_config){.map = {first, second}});
}

leat_stream *leat_co_flat_map(leat_connected *in, leat_flat_map_fn first, leat_flat_map_fn second,
                              const leat_type *out_type)
{
    return build(in, "leat_co_flat_map",
                 &(leati_node_spec){.kind = "co_flat_map",
                                    .out_type = out_type,
                                    .factory = {co_process_create, 0}},
                 &(co_config){.fns = {.first = first, .second = second}});
}

leat_stream *leat_co_process(leat_connected *in, const leat_co_process_fns *fns,
                             const leat_type *out_type)
{
    return build(in, "leat_co_process",
                 &(leati_node_spec){
                     .kind = "co_process", .out_type = out_type, .factory = {co_process_create, 0}},
                 &(co_config){.fns = fns ? *fns : (leat_co_process_fns){0}});
}
