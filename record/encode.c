// SPDX-License-Identifier: Apache-2.0
// Encoding by walking a type's description, and the exact size of what encoding writes.
#include "record/value_impl.h"

static uint8_t *encode_scalar(uint32_t kind, const void *value, uint8_t *to, uint8_t *end)
{
    size_t room = (size_t)(end - to);
    switch (kind) {
#define ENCODE(K)                                                                                  \
    case K:                                                                                        \
        if (LEAT_UNLIKELY(room < leati_size_##K(value)))                                           \
            return NULL;                                                                           \
        return leati_put_##K(to, value);
        LEATI_SCALAR_KINDS(ENCODE)
#undef ENCODE
    default:
        return NULL;
    }
}

static inline uint8_t *encode_wide(uint32_t kind, const void *value, uint8_t *to, uint8_t *end)
{
    if (LEAT_UNLIKELY((size_t)(end - to) < 9))
        return NULL;
    uint64_t raw;
    __builtin_memcpy(&raw, value, sizeof raw);
    raw = leati_big64(raw);
    *to = leati_wide_tag(kind);
    __builtin_memcpy(to + 1, &raw, sizeof raw);
    return to + 9;
}

static inline uint8_t *encode_str(const leat_str *value, uint8_t *to, uint8_t *end)
{
    if (LEAT_UNLIKELY((size_t)(end - to) < leati_size_LEAT_STR(value)))
        return NULL;
    return leati_put_LEAT_STR(to, value);
}

// The header of a list or a map: `fixed` is the tag that holds small counts itself, `tag16` the one
// of 16-bit counts.
static uint8_t *encode_count(size_t count, uint8_t fixed, uint8_t tag16, uint8_t *to, uint8_t *end)
{
    size_t room = (size_t)(end - to);
    if (count < 16) {
        if (room < 1)
            return NULL;
        *to = (uint8_t)(fixed | count);
        return to + 1;
    }
    if (count <= 0xffff) {
        if (room < 3)
            return NULL;
        uint16_t raw = leati_big16((uint16_t)count);
        *to = tag16;
        __builtin_memcpy(to + 1, &raw, sizeof raw);
        return to + 3;
    }
    // An item takes a byte at least, so a count that does not fit 32 bits does not fit the room
    // either.
    if (room < 5 || count > room)
        return NULL;
    uint32_t raw = leati_big32((uint32_t)count);
    *to = (uint8_t)(tag16 + 1);
    __builtin_memcpy(to + 1, &raw, sizeof raw);
    return to + 5;
}

static uint8_t *encode_list(const leat_type *element, const leat_list *list, uint8_t *to,
                            uint8_t *end)
{
    to = encode_count(list->count, 0x90, 0xdc, to, end);
    for (size_t i = 0; to && i < list->count; i++)
        to = leat_codec_encode(element, leati_item(list->items, element, i), to, end);
    return to;
}

static uint8_t *encode_map(const leat_type *type, const leat_dict *map, uint8_t *to, uint8_t *end)
{
    to = encode_count(map->count, 0x80, 0xde, to, end);
    for (size_t i = 0; to && i < map->count; i++) {
        to = leat_codec_encode(type->key, leati_item(map->keys, type->key, i), to, end);
        if (to)
            to = leat_codec_encode(type->element, leati_item(map->values, type->element, i), to,
                                   end);
    }
    return to;
}

static uint8_t *encode_optional(const leat_type *element, const void *present, uint8_t *to,
                                uint8_t *end)
{
    if (present)
        return leat_codec_encode(element, present, to, end);
    if (to == end)
        return NULL;
    *to = 0xc0;
    return to + 1;
}

uint8_t *leat_codec_encode(const leat_type *type, const void *value, uint8_t *to, uint8_t *end)
{
    switch (type->kind) {
    case LEAT_LIST:
        return encode_list(type->element, value, to, end);
    case LEAT_MAP:
        return encode_map(type, value, to, end);
    case LEAT_OPTIONAL:
        return encode_optional(type->element, leati_present(value), to, end);
    case LEAT_STRUCT:
        if (type->codec)
            return type->codec->encode(type, value, to, end);
        return leat_codec_encode_struct(type, value, to, end);
    default:
        return encode_scalar(type->kind, value, to, end);
    }
}

uint8_t *leat_codec_encode_from(const leat_type *type, uint32_t index, const void *record,
                                uint8_t *to, uint8_t *end)
{
    const leat_field *last = type->fields + type->field_count;
    for (const leat_field *field = type->fields + index; field < last; field++) {
        const void *value = leati_field_of(record, field);
        if (leati_is_wide(field->kind))
            to = encode_wide(field->kind, value, to, end);
        else if (field->kind == LEAT_STR)
            to = encode_str(value, to, end);
        else if (leati_is_scalar(field->kind))
            to = encode_scalar(field->kind, value, to, end);
        else
            to = leat_codec_encode(field->type, value, to, end);
        if (LEAT_UNLIKELY(!to))
            return NULL;
    }
    return to;
}

uint8_t *leat_codec_encode_struct(const leat_type *type, const void *record, uint8_t *to,
                                  uint8_t *end)
{
    if ((size_t)(end - to) < leati_header_size(type->field_count))
        return NULL;
    to = leati_put_header(to, type->field_count);
    return leat_codec_encode_from(type, 0, record, to, end);
}

uint8_t *leat_record_encode(const leat_type *type, const void *record, uint8_t *to, uint8_t *end)
{
    // Sizes and counts are 32 bits on the wire; in less room than that none of them can be larger.
    if ((size_t)(end - to) > UINT32_MAX)
        end = to + UINT32_MAX;
    if (LEAT_LIKELY(type->codec != NULL))
        return type->codec->encode(type, record, to, end);
    if (type->kind == LEAT_STRUCT)
        return leat_codec_encode_struct(type, record, to, end);
    return leat_codec_encode(type, record, to, end);
}

static size_t count_size(size_t count)
{
    return count < 16 ? 1 : count <= 0xffff ? 3 : 5;
}

static size_t items_size(const leat_type *type, const void *items, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += leat_codec_size(type, leati_item(items, type, i));
    return size;
}

static size_t struct_size(const leat_type *type, const void *record)
{
    size_t size = leati_header_size(type->field_count);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        size += leat_codec_size(field->type, leati_field_of(record, field));
    }
    return size;
}

size_t leat_codec_size(const leat_type *type, const void *value)
{
    switch (type->kind) {
#define SIZE(K)                                                                                    \
    case K:                                                                                        \
        return leati_size_##K(value);
        LEATI_SCALAR_KINDS(SIZE)
#undef SIZE
    case LEAT_LIST: {
        const leat_list *list = value;
        return count_size(list->count) + items_size(type->element, list->items, list->count);
    }
    case LEAT_MAP: {
        const leat_dict *map = value;
        return count_size(map->count) + items_size(type->key, map->keys, map->count) +
               items_size(type->element, map->values, map->count);
    }
    case LEAT_OPTIONAL:
        return leati_present(value) ? leat_codec_size(type->element, leati_present(value)) : 1;
    case LEAT_STRUCT:
        if (type->codec)
            return type->codec->encoded_size(type, value);
        return struct_size(type, value);
    default:
        return 0;
    }
}

size_t leat_record_encoded_size(const leat_type *type, const void *record)
{
    return leat_codec_size(type, record);
}
