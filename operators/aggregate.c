// SPDX-License-Identifier: Apache-2.0
// leat_aggregate: folds the records of each key into an accumulator of a type of its own.
#include <string.h>

#include "base/alloc.h"
#include "operators/fold.h"

typedef struct aggregate_config {
    leati_fold_config fold;
    leat_aggregate_fns fns;
    const leat_type *accumulator_type;
} aggregate_config;

typedef struct aggregate_operator {
    leati_fold fold;
    leat_aggregate_fns fns;
    void *fresh;  // an accumulator in the making, before it enters the table
    void *result; // what the result function fills; NULL when there is none
} aggregate_operator;

static leat_err aggregate_open(leat_operator *self)
{
    aggregate_operator *op = (aggregate_operator *)self;
    const leat_allocator *allocator = leat_ctx_allocator(self->ctx);
    op->fresh = leati_calloc(allocator, 1, op->fold.accumulator_type->size);
    if (op->fns.result)
        op->result = leati_calloc(allocator, 1, leat_ctx_out_type(self->ctx)->size);
    if (!op->fresh || (op->fns.result && !op->result))
        return leati_ctx_error(self->ctx, LEAT_ENOMEM, "no memory for an accumulator");
    return leati_fold_open(self);
}

// The first record of a key: what it gives may point to anything, so it is made aside and enters
// the table as a copy; a key whose first record is rejected stays unknown.
static leat_err aggregate_first(aggregate_operator *op, const leati_fold_key *key,
                                const void *record, void **accumulator)
{
    leat_ctx *ctx = op->fold.base.ctx;
    const char *function = "the create function";
    memset(op->fresh, 0, op->fold.accumulator_type->size);
    int result = op->fns.create ? op->fns.create(ctx, op->fresh) : 0;
    if (result == 0) {
        function = "the add function";
        result = op->fns.add(ctx, op->fresh, record);
    }
    if (LEAT_UNLIKELY(result != 0))
        return leati_fold_reject(&op->fold, record, accumulator, function, result);
    return leati_fold_insert(&op->fold, key, op->fresh, accumulator);
}

static leat_err aggregate_fold(leati_fold *fold, const leati_fold_key *key, const void *record,
                               void **accumulator)
{
    aggregate_operator *op = (aggregate_operator *)fold;
    if (!*accumulator)
        return aggregate_first(op, key, record, accumulator);
    int result = op->fns.add(fold->base.ctx, *accumulator, record);
    if (LEAT_UNLIKELY(result != 0))
        return leati_fold_reject(fold, record, accumulator, "the add function", result);
    return leati_fold_own(fold, accumulator);
}

static leat_err aggregate_emit(leati_fold *fold, const void *record, const void *accumulator,
                               leat_out *out)
{
    aggregate_operator *op = (aggregate_operator *)fold;
    leat_ctx *ctx = fold->base.ctx;
    if (!op->fns.result)
        return leat_collect(out, accumulator);
    memset(op->result, 0, leat_ctx_out_type(ctx)->size);
    int result = op->fns.result(ctx, accumulator, op->result);
    if (LEAT_LIKELY(result == 0))
        return leat_collect(out, op->result);
    // There is no record to reject when a final value cannot be made.
    return record ? leati_ctx_reject(ctx, record, "the result function", result)
                  : leati_ctx_user_failure(ctx, "the result function", result);
}

static const leati_fold_ops aggregate_folding = {.fold = aggregate_fold, .emit = aggregate_emit};

static void aggregate_dispose(leat_operator *self)
{
    aggregate_operator *op = (aggregate_operator *)self;
    leati_free(leat_ctx_allocator(self->ctx), op->fresh);
    leati_free(leat_ctx_allocator(self->ctx), op->result);
    leati_fold_dispose(self);
}

static const leat_operator_ops aggregate_updates_ops = {
    .kind = "aggregate",
    .open = aggregate_open,
    .element = leati_fold_element,
    .dispose = aggregate_dispose,
};

static const leat_operator_ops aggregate_final_ops = {
    .kind = "aggregate",
    .open = aggregate_open,
    .element = leati_fold_element,
    .elements = leati_fold_elements,
    .finish = leati_fold_finish,
    .dispose = aggregate_dispose,
};

leat_err leati_aggregate_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const aggregate_config *config = factory->config;
    aggregate_operator *aggregate = leati_operator_create(
        ctx, sizeof *aggregate,
        config->fold.final_only ? &aggregate_final_ops : &aggregate_updates_ops);
    if (!aggregate)
        return LEAT_ENOMEM;
    aggregate->fns = config->fns;
    leati_fold_init(&aggregate->fold, &aggregate_folding, &config->fold, config->accumulator_type);
    *op = &aggregate->fold.base;
    return LEAT_OK;
}

// What is wrong with the arguments, or NULL.
static const char *aggregate_fault(const leat_aggregate_fns *fns, const leat_type *accumulator_type,
                                   const leat_type *out_type)
{
    const char *why = "the accumulator type cannot be used";
    if (!fns || !fns->add)
        return "the add function is NULL";
    if (!accumulator_type)
        return "the accumulator type is NULL";
    if (!out_type)
        return "the output type is NULL";
    if (leat_type_check(accumulator_type, &why) != LEAT_OK)
        return why;
    if (leat_type_check(out_type, &why) != LEAT_OK)
        return why;
    // The accumulator is emitted where it lies, so equal structure is not enough.
    if (!fns->result && accumulator_type != out_type)
        return "without a result function the output type must be the accumulator type";
    return NULL;
}

leat_stream *leat_aggregate(leat_stream *keyed, const leat_aggregate_fns *fns,
                            const leat_type *accumulator_type, const leat_type *out_type)
{
    leat_env *env = leati_stream_env(keyed);
    if (!leati_builder_input(keyed))
        return leati_graph_inert(env);
    const char *fault = aggregate_fault(fns, accumulator_type, out_type);
    if (fault)
        return leati_builder_fault_on(keyed, "leat_aggregate", fault);
    aggregate_config *config = leat_env_alloc(env, sizeof *config);
    if (!config || !leati_graph_hold_type(env, accumulator_type))
        return leati_graph_inert(env);
    config->fns = *fns;
    config->accumulator_type = accumulator_type;
    return leati_graph_add(env, keyed,
                           &(leati_node_spec){.kind = "aggregate",
                                              .flags = LEATI_NODE_NEEDS_KEY,
                                              .out_type = out_type,
                                              .factory = {leati_aggregate_create, config},
                                              .detail = "updates"});
}
