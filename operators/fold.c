// SPDX-License-Identifier: Apache-2.0
#include "operators/fold.h"

#include <string.h>

#include "base/alloc.h"

// What the operator's detail begins with; the shorter text replaces the longer one.
static const char every_update[] = "updates", final_values[] = "final";

// Records whose finds are overlapped.
enum { MOST_AT_ONCE = 32 };

void leati_fold_init(leati_fold *fold, const leati_fold_ops *ops, const leati_fold_config *config,
                     const leat_type *accumulator_type)
{
    fold->ops = ops;
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
    fold->nullable = leat_key_can_be_null(&selector->fields);
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

// Finds the accumulator of a record's key; NULL in `*accumulator` when there is none yet.
static leat_err find(leati_fold *fold, const void *in, leati_fold_key *key, void **accumulator)
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

leat_err leati_fold_reject(leati_fold *fold, const void *record, void **accumulator,
                           const char *function, int result)
{
    leat_err err = leati_ctx_reject(fold->base.ctx, record, function, result);
    if (err == LEAT_OK && *accumulator)
        err = leati_fold_own(fold, accumulator);
    *accumulator = NULL;
    return err;
}

void leati_fold_key_text(const leati_fold *fold, const leati_fold_key *key, char *text, size_t size)
{
    const leat_key *fields = &fold->selector->fields;
    size_t at = 0;
    for (uint32_t i = 0; i < fields->count && at < size; i++) {
        if (i > 0)
            text[at++] = ',';
        at += leat_record_json(fields->part[i].type,
                               (const char *)key->record + fields->part[i].offset, text + at,
                               size - at);
    }
    text[at < size ? at : size - 1] = '\0';
}

leat_err leati_fold_element(leat_operator *self, const void *record, leat_out *out)
{
    leati_fold *fold = (leati_fold *)self;
    leati_fold_key key;
    void *accumulator;
    leat_err err = find(fold, record, &key, &accumulator);
    if (LEAT_LIKELY(err == LEAT_OK))
        err = fold->ops->fold(fold, &key, record, &accumulator);
    if (LEAT_UNLIKELY(err != LEAT_OK) || fold->final_only || LEAT_UNLIKELY(!accumulator))
        return err;
    return fold->ops->emit(fold, record, accumulator, out);
}

static void hash_keys(const leati_fold *fold, const char *records, size_t size, uint32_t count,
                      uint64_t *hashes)
{
    const leat_key *key = &fold->selector->fields;
    uint32_t offset = key->part[0].offset;
    if (key->count == 1 && key->part[0].type->kind == LEAT_I64) {
        for (uint32_t i = 0; i < count; i++)
            hashes[i] =
                leat_hash_u64(*(const uint64_t *)(const void *)(records + i * size + offset));
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        hashes[i] = leat_key_hash(key, records + i * size);
}

// With many keys nearly every find misses the caches; asked for together, the misses overlap.
static void prefetch(leati_fold *fold, const char *records, size_t size, uint32_t count,
                     uint64_t *hashes)
{
    hash_keys(fold, records, size, count, hashes);
    for (uint32_t i = 0; i < count; i++)
        leati_keyed_table_prefetch_slot(fold->table, hashes[i]);
    for (uint32_t i = 0; i < count; i++)
        leati_keyed_table_prefetch_entry(fold->table, hashes[i]);
}

static leat_err fold_prefetched(leati_fold *fold, const char *records, size_t size, uint32_t count)
{
    uint64_t hashes[MOST_AT_ONCE];
    prefetch(fold, records, size, count, hashes);
    for (uint32_t i = 0; i < count; i++) {
        if (LEAT_UNLIKELY(leat_ctx_cancelled(fold->base.ctx)))
            return LEAT_ECANCELLED;
        leati_fold_key key = {hashes[i], records + i * size};
        void *accumulator = leati_keyed_table_find(fold->table, key.hash, key.record);
        leat_err err = fold->ops->fold(fold, &key, key.record, &accumulator);
        if (LEAT_UNLIKELY(err != LEAT_OK))
            return err;
    }
    return LEAT_OK;
}

leat_err leati_fold_elements(leat_operator *self, const void *records, uint32_t count,
                             leat_out *out)
{
    leati_fold *fold = (leati_fold *)self;
    size_t size = leat_ctx_in_type(self->ctx)->size;
    const char *from = records;
    leat_err err = LEAT_OK;
    if (fold->selector->fn || fold->nullable) {
        for (uint32_t i = 0; i < count && err == LEAT_OK; i++)
            err = leat_ctx_cancelled(self->ctx) ? LEAT_ECANCELLED
                                                : leati_fold_element(self, from + i * size, out);
        return err;
    }
    while (count > 0 && err == LEAT_OK) {
        uint32_t some = count < MOST_AT_ONCE ? count : MOST_AT_ONCE;
        err = fold_prefetched(fold, from, size, some);
        from += some * size;
        count -= some;
    }
    return err;
}

leat_err leati_fold_finish(leat_operator *self, leat_out *out)
{
    leati_fold *fold = (leati_fold *)self;
    if (!fold->final_only)
        return LEAT_OK;
    if (fold->cursor == 0)
        leati_ctx_set_timestamp(fold->base.ctx, false, INT64_MIN);
    const void *accumulator;
    while ((accumulator = leati_keyed_table_next(fold->table, &fold->cursor)) != NULL) {
        leat_err err = fold->ops->emit(fold, NULL, accumulator, out);
        if (err != LEAT_OK)
            return err;
        if (!leat_out_available(fold->base.ctx))
            return LEAT_EAGAIN;
    }
    return LEAT_OK;
}

static bool is_fold(const leati_node *node)
{
    return node && (node->factory.create == leati_reduce_create ||
                    node->factory.create == leati_aggregate_create ||
                    node->factory.create == leati_rolling_create);
}

leat_stream *leat_final_only(leat_stream *folded)
{
    leati_node *node = leati_stream_node(folded);
    if (!node && !leati_stream_type(folded))
        return folded ? folded : leati_graph_inert(NULL);
    if (!is_fold(node)) {
        leati_graph_fault(folded, LEAT_EGRAPH,
                          "leat_final_only: only reduce, aggregate, sum and its kin have final "
                          "values");
        return folded;
    }
    // The settings are written by the builder alone, which allocated them.
    ((leati_fold_config *)node->factory.config)->final_only = true;
    size_t length = sizeof every_update - 1;
    if (node->detail && strncmp(node->detail, every_update, length) == 0) {
        memmove(node->detail + sizeof final_values - 1, node->detail + length,
                strlen(node->detail) - length + 1);
        memcpy(node->detail, final_values, sizeof final_values - 1);
    }
    return folded;
}
