// SPDX-License-Identifier: Apache-2.0
// Deep copies. The struct is copied as it stands; then whatever it points to is moved behind a
// pointer that only goes up, in the order of the fields, arrays aligned for their items. Sizing and
// moving take the same steps from an address aligned for any type, so the one knows exactly what
// the other will use.
#include <string.h>

#include "base/alloc.h"
#include "record/value_impl.h"

#define BLOCK_ALIGN _Alignof(max_align_t)

static size_t align_up(size_t at, size_t align)
{
    return (at + align - 1) & ~(align - 1);
}

static size_t extra_of_items(const leat_type *type, const void *items, size_t count, size_t at)
{
    if (count == 0)
        return at;
    at = align_up(at, type->align) + count * type->size;
    if (leat_type_has_pointers(type))
        for (size_t i = 0; i < count; i++)
            at = leat_codec_extra(type, leati_item(items, type, i), at);
    return at;
}

size_t leat_codec_extra(const leat_type *type, const void *value, size_t at)
{
    switch (type->kind) {
    case LEAT_STR:
    case LEAT_BYTES:
        return at + ((const leat_str *)value)->size;
    case LEAT_LIST: {
        const leat_list *list = value;
        return extra_of_items(type->element, list->items, list->count, at);
    }
    case LEAT_MAP: {
        const leat_dict *map = value;
        at = extra_of_items(type->key, map->keys, map->count, at);
        return extra_of_items(type->element, map->values, map->count, at);
    }
    case LEAT_OPTIONAL:
        return extra_of_items(type->element, leati_present(value), leati_present(value) != NULL,
                              at);
    case LEAT_STRUCT:
        if (type->codec)
            return type->codec->extra_size(type, value, at);
        for (uint32_t i = 0; i < type->field_count; i++) {
            const leat_field *field = &type->fields[i];
            at = leat_codec_extra(field->type, leati_field_of(value, field), at);
        }
        return at;
    default:
        return at;
    }
}

// Moves an array behind `*to` and returns its new place; NULL for an empty one.
static const void *own_items(const leat_type *type, const void *items, size_t count, uint8_t **to)
{
    if (count == 0)
        return NULL;
    uint8_t *moved = *to + (-(uintptr_t)*to & (type->align - 1));
    memcpy(moved, items, count * type->size);
    *to = moved + count * type->size;
    if (leat_type_has_pointers(type))
        for (size_t i = 0; i < count; i++)
            *to = leat_codec_own(type, moved + i * type->size, *to);
    return moved;
}

uint8_t *leat_codec_own(const leat_type *type, void *value, uint8_t *to)
{
    switch (type->kind) {
    case LEAT_STR:
        return leati_own_LEAT_STR(value, to);
    case LEAT_BYTES:
        return leati_own_LEAT_BYTES(value, to);
    case LEAT_LIST: {
        leat_list *list = value;
        list->items = own_items(type->element, list->items, list->count, &to);
        return to;
    }
    case LEAT_MAP: {
        leat_dict *map = value;
        map->keys = own_items(type->key, map->keys, map->count, &to);
        map->values = own_items(type->element, map->values, map->count, &to);
        return to;
    }
    case LEAT_OPTIONAL: {
        const void **optional = value;
        *optional = own_items(type->element, *optional, *optional != NULL, &to);
        return to;
    }
    case LEAT_STRUCT:
        if (type->codec)
            return type->codec->own(type, value, to);
        for (uint32_t i = 0; i < type->field_count; i++) {
            const leat_field *field = &type->fields[i];
            to = leat_codec_own(field->type, (char *)value + field->offset, to);
        }
        return to;
    default:
        return to;
    }
}

static bool items_are_within(const leat_type *type, const void *items, size_t count,
                             const void *block, size_t size)
{
    if (!leati_is_within(items, count * type->size, block, size))
        return false;
    if (leat_type_has_pointers(type))
        for (size_t i = 0; i < count; i++)
            if (!leat_codec_is_within(type, leati_item(items, type, i), block, size))
                return false;
    return true;
}

bool leat_codec_is_within(const leat_type *type, const void *value, const void *block, size_t size)
{
    switch (type->kind) {
    case LEAT_STR:
        return leati_within_LEAT_STR(value, block, size);
    case LEAT_BYTES:
        return leati_within_LEAT_BYTES(value, block, size);
    case LEAT_LIST: {
        const leat_list *list = value;
        return items_are_within(type->element, list->items, list->count, block, size);
    }
    case LEAT_MAP: {
        const leat_dict *map = value;
        return items_are_within(type->key, map->keys, map->count, block, size) &&
               items_are_within(type->element, map->values, map->count, block, size);
    }
    case LEAT_OPTIONAL:
        return items_are_within(type->element, leati_present(value), leati_present(value) != NULL,
                                block, size);
    case LEAT_STRUCT:
        if (type->codec)
            return type->codec->is_within(type, value, block, size);
        for (uint32_t i = 0; i < type->field_count; i++) {
            const leat_field *field = &type->fields[i];
            if (!leat_codec_is_within(field->type, leati_field_of(value, field), block, size))
                return false;
        }
        return true;
    default:
        return true;
    }
}

size_t leat_record_extra_size(const leat_type *type, const void *record)
{
    return leat_codec_extra(type, record, 0);
}

void leat_record_copy_into(const leat_type *type, const void *record, void *copy, void *extra)
{
    if (copy != record)
        memcpy(copy, record, type->size);
    leat_codec_own(type, copy, extra);
}

leat_err leat_record_copy(const leat_allocator *allocator, const leat_type *type,
                          const void *record, void **copy)
{
    size_t extra_at = align_up(type->size, BLOCK_ALIGN);
    uint8_t *block = leati_alloc(allocator, extra_at + leat_record_extra_size(type, record));
    if (!block)
        return LEAT_ENOMEM;
    leat_record_copy_into(type, record, block, block + extra_at);
    *copy = block;
    return LEAT_OK;
}

void leat_record_free(const leat_allocator *allocator, void *copy)
{
    leati_free(allocator, copy);
}

bool leat_record_is_within(const leat_type *type, const void *record, const void *block,
                           size_t size_bytes)
{
    return leat_codec_is_within(type, record, block, size_bytes);
}
