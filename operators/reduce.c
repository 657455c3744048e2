// SPDX-License-Identifier: Apache-2.0
// leat_reduce: folds the records of each key into one of the same type.
#include "operators/fold.h"

typedef struct reduce_config {
    leati_fold_config fold;
    leat_reduce_fn fn;
} reduce_config;

typedef struct reduce_operator {
    leati_fold fold;
    leat_reduce_fn fn;
} reduce_operator;

static leat_err reduce_fold(leati_fold *fold, const leati_fold_key *key, const void *record,
                            void **accumulator)
{
    reduce_operator *op = (reduce_operator *)fold;
    if (!*accumulator)
        return leati_fold_insert(fold, key, record, accumulator);
    int result = op->fn(fold->base.ctx, *accumulator, record);
    if (LEAT_UNLIKELY(result != 0))
        return leati_fold_reject(fold, record, accumulator, "the reduce function", result);
    return leati_fold_own(fold, accumulator);
}

static leat_err reduce_emit(leati_fold *fold, const void *record, const void *accumulator,
                            leat_out *out)
{
    return leat_collect(out, accumulator);
}

static const leati_fold_ops reduce_folding = {.fold = reduce_fold, .emit = reduce_emit};

static const leat_operator_ops reduce_updates_ops = {
    .kind = "reduce",
    .open = leati_fold_open,
    .element = leati_fold_element,
    .dispose = leati_fold_dispose,
};

static const leat_operator_ops reduce_final_ops = {
    .kind = "reduce",
    .open = leati_fold_open,
    .element = leati_fold_element,
    .elements = leati_fold_elements,
    .finish = leati_fold_finish,
    .dispose = leati_fold_dispose,
};

leat_err leati_reduce_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const reduce_config *config = factory->config;
    reduce_operator *reduce = leati_operator_create(
        ctx, sizeof *reduce, config->fold.final_only ? &reduce_final_ops : &reduce_updates_ops);
    if (!reduce)
        return LEAT_ENOMEM;
    reduce->fn = config->fn;
    leati_fold_init(&reduce->fold, &reduce_folding, &config->fold, leat_ctx_in_type(ctx));
    *op = &reduce->fold.base;
    return LEAT_OK;
}

leat_stream *leat_reduce(leat_stream *keyed, leat_reduce_fn fn)
{
    leat_env *env = leati_stream_env(keyed);
    if (!leati_builder_input(keyed))
        return leati_graph_inert(env);
    if (!fn)
        return leati_builder_fault_on(keyed, "leat_reduce", "the function is NULL");
    reduce_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->fn = fn;
    return leati_graph_add(env, keyed,
                           &(leati_node_spec){.kind = "reduce",
                                              .flags = LEATI_NODE_NEEDS_KEY,
                                              .out_type = leati_stream_type(keyed),
                                              .factory = {leati_reduce_create, config},
                                              .detail = "updates"});
}
