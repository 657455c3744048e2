// SPDX-License-Identifier: Apache-2.0
#include "operators/fold.h"

#include <string.h>

#include "base/alloc.h"

// What the operator's detail says; the shorter text replaces the longer one where it stands.
static const char every_update[] = "updates", final_values[] = "final";

static bool may_be_null(const leat_type *type)
{
    if (type->kind == LEAT_OPTIONAL)
        return true;
    for (uint32_t i = 0; i < type->field_count; i++)
        if (may_be_null(type->fields[i].type))
            return true;
    return false;
}

void leati_fold_init(leati_fold *fold, const leati_fold_config *config,
                     const leat_type *accumulator_type)
{
    fold->final_only = config->final_only;
    fold->accumulator_type = accumulator_type;
    fold->selector = leati_ctx_key(fold->base.ctx);
}

leat_err leati_fold_open(leat_operator *self)
{
    leati_fold *fold = (leati_fold *)self;
    const leati_key_selector *selector = fold->selector;
    const leat_allocator *allocator = leat_ctx_allocator(self->ctx);
    if (!selector)
        return leati_ctx_error(self->ctx, LEAT_ESTATE, "the input has no key");
    for (uint32_t i = 0; i < selector->fields.count; i++)
        fold->nullable |= may_be_null(selector->fields.part[i].type);
    if (selector->fn) {
        fold->key_record = leati_calloc(allocator, 1, selector->key_type->size);
        if (!fold->key_record)
            return leati_ctx_error(self->ctx, LEAT_ENOMEM, "no memory for a key");
    }
    leat_err err = leati_keyed_table_create(allocator, &selector->fields, fold->accumulator_type,
                                            &fold->table);
    if (err == LEAT_ETYPE)
        return leati_ctx_error(self->ctx, err,
                               "the key or the accumulator is aligned to more than 8 bytes");
    if (err != LEAT_OK)
        return leati_ctx_error(self->ctx, err, "no memory for the table of keys");
    return LEAT_OK;
}

void leati_fold_dispose(leat_operator *self)
{
    leati_fold *fold = (leati_fold *)self;
    leati_keyed_table_destroy(&fold->table);
    leati_free(leat_ctx_allocator(self->ctx), fold->key_record);
    leati_operator_dispose(self);
}

leat_err leati_fold_find(leati_fold *fold, const void *in, leati_fold_key *key, void **accumulator)
{
    const leati_key_selector *selector = fold->selector;
    key->record = in;
    if (selector->fn) {
        memset(fold->key_record, 0, selector->key_type->size);
        int result = selector->fn(fold->base.ctx, in, fold->key_record);
        if (LEAT_UNLIKELY(result != 0))
            return leati_ctx_user_failure(fold->base.ctx, "the key function", result);
        key->record = fold->key_record;
    }
    if (LEAT_UNLIKELY(fold->nullable) && leat_key_has_null(&selector->fields, key->record))
        return leati_ctx_error(fold->base.ctx, LEAT_EINVAL, "the key %s of a record is null",
                               selector->text);
    key->hash = leat_key_hash(&selector->fields, key->record);
    *accumulator = leati_keyed_table_find(fold->table, key->hash, key->record);
    return LEAT_OK;
}

static leat_err no_memory(leati_fold *fold)
{
    return leati_ctx_error(fold->base.ctx, LEAT_ENOMEM,
                           "no memory for another accumulator beside %zu keys in %zu bytes",
                           leati_keyed_table_count(fold->table),
                           leati_keyed_table_bytes(fold->table));
}

leat_err leati_fold_insert(leati_fold *fold, const leati_fold_key *key, const void *initial,
                           void **accumulator)
{
    *accumulator = leati_keyed_table_insert(fold->table, key->hash, key->record, initial);
    return LEAT_LIKELY(*accumulator != NULL) ? LEAT_OK : no_memory(fold);
}

leat_err leati_fold_own(leati_fold *fold, void **accumulator)
{
    *accumulator = leati_keyed_table_own(fold->table, *accumulator);
    return LEAT_LIKELY(*accumulator != NULL) ? LEAT_OK : no_memory(fold);
}

leat_err leati_fold_finish(leati_fold *fold, leati_fold_emit emit, leat_out *out)
{
    if (!fold->final_only)
        return LEAT_OK;
    if (fold->cursor == 0)
        leati_ctx_set_timestamp(fold->base.ctx, false, INT64_MIN);
    const void *accumulator;
    while ((accumulator = leati_keyed_table_next(fold->table, &fold->cursor)) != NULL) {
        leat_err err = emit(fold, accumulator, out);
        if (err != LEAT_OK)
            return err;
        if (!leat_out_available(fold->base.ctx))
            return LEAT_EAGAIN;
    }
    return LEAT_OK;
}

leat_stream *leat_final_only(leat_stream *folded)
{
    leati_node *node = leati_stream_node(folded);
    if (!node && !leati_stream_type(folded))
        return folded ? folded : leati_graph_inert(NULL);
    if (!node || (node->factory.create != leati_reduce_create &&
                  node->factory.create != leati_aggregate_create)) {
        leati_graph_fault(folded, LEAT_EGRAPH,
                          "leat_final_only: only reduce and aggregate have final values");
        return folded;
    }
    // The settings are written by the builder alone, which allocated them.
    ((leati_fold_config *)node->factory.config)->final_only = true;
    if (node->detail && strcmp(node->detail, every_update) == 0)
        memcpy(node->detail, final_values, sizeof final_values);
    return folded;
}
