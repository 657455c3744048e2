// SPDX-License-Identifier: Apache-2.0
// leat_from_items: the records of an array, from one subtask.
#include <string.h>

#include "leat/record.h"
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

typedef struct items_config {
    const char *items;
    size_t count, size_bytes; // of one item
} items_config;

typedef struct items_operator {
    leat_operator base;
    const items_config *config;
    size_t at;
} items_operator;

static leat_err items_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    items_operator *op = (items_operator *)self;
    const items_config *config = op->config;
    size_t left = config->count - op->at;
    uint32_t count = left < max_records ? (uint32_t)left : max_records;
    leat_err err =
        leat_collect_some(self->ctx, out, config->items + op->at * config->size_bytes, &count);
    op->at += count;
    leat_ctx_count_in(self->ctx, count, count * config->size_bytes);
    *state = op->at < config->count ? LEAT_POLL_MORE : LEAT_POLL_END;
    return err;
}

static const leat_operator_ops items_ops = {
    .kind = "source: items",
    .poll = items_poll,
    .dispose = leati_operator_dispose,
};

static leat_err items_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    items_operator *items = leati_operator_create(ctx, sizeof *items, &items_ops);
    if (!items)
        return LEAT_ENOMEM;
    items->config = factory->config;
    *op = &items->base;
    return LEAT_OK;
}

static size_t align_up(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

// A copy of the array and behind it all that its records point to; NULL when out of memory.
static const char *copy_items(leat_env *env, const leat_type *type, const char *items, size_t count)
{
    size_t size;
    if (__builtin_mul_overflow(count, (size_t)type->size, &size) || size > SIZE_MAX / 2)
        return leat_env_alloc(env, SIZE_MAX);
    size = align_up(size);
    size_t extra = size;
    for (size_t i = 0; i < count; i++)
        size += align_up(leat_record_extra_size(type, items + i * type->size));
    char *copy = leat_env_alloc(env, size);
    for (size_t i = 0; copy && i < count; i++) {
        const char *item = items + i * type->size;
        leat_record_copy_into(type, item, copy + i * type->size, copy + extra);
        extra += align_up(leat_record_extra_size(type, item));
    }
    return copy;
}

leat_stream *leat_from_items(leat_env *env, const leat_type *type, const void *items, size_t count)
{
    const char *why = NULL;
    if (!type)
        return leati_builder_fault(env, "leat_from_items", "the type is NULL");
    if (leat_type_check(type, &why) != LEAT_OK)
        return leati_builder_fault(env, "leat_from_items", why);
    if (!items && count)
        return leati_builder_fault(env, "leat_from_items", "the items are NULL");
    if (!env)
        return leati_graph_inert(env);
    items_config *config = leat_env_alloc(env, sizeof *config);
    const char *copy = config ? copy_items(env, type, items, count) : NULL;
    if (!copy)
        return leati_graph_inert(env);
    *config = (items_config){.items = copy, .count = count, .size_bytes = type->size};
    return leati_graph_add(env, NULL,
                           &(leati_node_spec){.kind = "source: items",
                                              .flags = LEATI_NODE_SOURCE | LEATI_NODE_NON_PARALLEL,
                                              .out_type = type,
                                              .parallelism = 1,
                                              .factory = {items_create, config}});
}
