// SPDX-License-Identifier: Apache-2.0
// leat_map: one record in, one record out.
#include <string.h>

#include "base/alloc.h"
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

// Records up to this size are zeroed by a few stores.
enum { SMALL = 32 };

typedef struct map_config {
    leat_map_fn fn;
} map_config;

typedef struct map_operator {
    leat_operator base;
    leat_map_fn fn;
    size_t size_bytes; // of `record`
    // What the function fills. Aligned for any type; at least SMALL bytes.
    _Alignas(max_align_t) char record[];
} map_operator;

static leat_err map_element(leat_operator *self, const void *record, leat_out *out)
{
    map_operator *op = (map_operator *)self;
    memset(op->record, 0, SMALL);
    if (op->size_bytes > SMALL)
        memset(op->record + SMALL, 0, op->size_bytes - SMALL);
    int result = op->fn(self->ctx, record, op->record);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(self->ctx, record, "the map function", result);
    return leat_collect(out, op->record);
}

static const leat_operator_ops map_ops = {
    .kind = "map",
    .element = map_element,
    .dispose = leati_operator_dispose,
};

static leat_err map_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const map_config *config = factory->config;
    size_t size = leat_ctx_out_type(ctx)->size;
    map_operator *map =
        leati_operator_create(ctx, sizeof *map + (size < SMALL ? SMALL : size), &map_ops);
    if (!map)
        return LEAT_ENOMEM;
    map->fn = config->fn;
    map->size_bytes = size;
    *op = &map->base;
    return LEAT_OK;
}

leat_stream *leat_map(leat_stream *in, leat_map_fn fn, const leat_type *out_type)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!fn)
        return leati_builder_fault_on(in, "leat_map", "the function is NULL");
    if (!out_type)
        return leati_builder_fault_on(in, "leat_map", "the output type is NULL");
    map_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->fn = fn;
    return leati_graph_add(
        env, in,
        &(leati_node_spec){.kind = "map", .out_type = out_type, .factory = {map_create, config}});
}
