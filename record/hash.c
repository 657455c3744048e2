// SPDX-License-Identifier: Apache-2.0
// The frozen hash, docs/design/hash.md. It decides where state lives, so no value may ever hash
// differently.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "record/value_impl.h"

// Far from anything that is likely to be hashed; frozen.
#define HASH_OF_ABSENT UINT64_C(0x6c6561742e6e696c)
#define HASH_OF_LIST   UINT64_C(0x6c6561742e6c7374)
#define HASH_OF_MAP    UINT64_C(0x6c6561742e6d6170)

uint64_t leat_hash_bytes(const void *data, size_t size)
{
    return XXH3_64bits(size ? data : "", size);
}

static uint64_t hash_list(const leat_type *element, const leat_list *list)
{
    uint64_t hash = HASH_OF_LIST;
    for (size_t i = 0; i < list->count; i++)
        hash =
            leat_hash_combine(hash, leat_codec_hash(element, leati_item(list->items, element, i)));
    return hash;
}

// A sum does not depend on the order of the entries.
static uint64_t hash_map(const leat_type *type, const leat_dict *map)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < map->count; i++) {
        uint64_t key = leat_codec_hash(type->key, leati_item(map->keys, type->key, i));
        sum += leat_hash_combine(
            key, leat_codec_hash(type->element, leati_item(map->values, type->element, i)));
    }
    return leat_hash_combine(leat_hash_combine(HASH_OF_MAP, map->count), sum);
}

static uint64_t hash_struct(const leat_type *type, const void *record)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        uint64_t next = leat_codec_hash(field->type, leati_field_of(record, field));
        hash = i ? leat_hash_combine(hash, next) : next;
    }
    return hash;
}

uint64_t leat_codec_hash(const leat_type *type, const void *value)
{
    switch (type->kind) {
#define HASH(K)                                                                                    \
    case K:                                                                                        \
        return leati_hash_##K(value);
        LEATI_SCALAR_KINDS(HASH)
#undef HASH
    case LEAT_LIST:
        return hash_list(type->element, value);
    case LEAT_MAP:
        return hash_map(type, value);
    case LEAT_OPTIONAL:
        return leati_present(value) ? leat_codec_hash(type->element, leati_present(value))
                                    : HASH_OF_ABSENT;
    default:
        return type->codec ? type->codec->hash(type, value) : hash_struct(type, value);
    }
}

uint64_t leat_record_hash(const leat_type *type, const void *record)
{
    return leat_codec_hash(type, record);
}

static __attribute__((noinline)) uint64_t hash_parts(const leat_key *key, const char *record)
{
    uint64_t hash = leat_codec_hash(key->part[0].type, record + key->part[0].offset);
    for (uint32_t i = 1; i < key->count; i++)
        hash = leat_hash_combine(hash,
                                 leat_codec_hash(key->part[i].type, record + key->part[i].offset));
    return hash;
}

// The most frequent keys by far are one string and one integer; they are spared the walk.
uint64_t leat_key_hash(const leat_key *key, const void *record)
{
    const void *part = (const char *)record + key->part[0].offset;
    if (LEAT_LIKELY(key->count == 1)) {
        uint32_t kind = key->part[0].type->kind;
        if (kind == LEAT_STR) {
            const leat_str *text = part;
            return leat_hash_bytes(text->data, text->size);
        }
        if (kind == LEAT_I64)
            return leat_hash_u64((uint64_t) * (const int64_t *)part);
    }
    return hash_parts(key, record);
}
