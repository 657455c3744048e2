// SPDX-License-Identifier: Apache-2.0
// Small steps that all walks over values share. Private to record/.
#ifndef LEATI_RECORD_VALUE_IMPL_H
#define LEATI_RECORD_VALUE_IMPL_H

#include "leat/record.h"

// The item `index` of an array of values.
static inline const void *leati_item(const void *items, const leat_type *type, size_t index)
{
    return (const char *)items + index * type->size;
}

static inline const void *leati_field_of(const void *record, const leat_field *field)
{
    return (const char *)record + field->offset;
}

// What an optional points to; NULL when absent.
static inline const void *leati_present(const void *optional)
{
    return *(const void *const *)optional;
}

static inline bool leati_is_scalar(uint32_t kind)
{
    return kind >= LEAT_BOOL && kind <= LEAT_TIMESTAMP;
}

// The kinds of eight bytes are read and written alike but for their tag, without a jump through a
// table: most fields are of these or strings.
static inline bool leati_is_wide(uint32_t kind)
{
    return (1u << kind &
            (1u << LEAT_I64 | 1u << LEAT_U64 | 1u << LEAT_F64 | 1u << LEAT_TIMESTAMP)) != 0;
}

static inline uint8_t leati_wide_tag(uint32_t kind)
{
    return kind == LEAT_U64 ? 0xcf : kind == LEAT_F64 ? 0xcb : 0xd3;
}

// Calls CASE(kind) for each scalar kind, as the branches of a switch.
#define LEATI_SCALAR_KINDS(CASE)                                                                   \
    CASE(LEAT_BOOL)                                                                                \
    CASE(LEAT_I8)                                                                                  \
    CASE(LEAT_I16)                                                                                 \
    CASE(LEAT_I32)                                                                                 \
    CASE(LEAT_I64)                                                                                 \
    CASE(LEAT_U8)                                                                                  \
    CASE(LEAT_U16)                                                                                 \
    CASE(LEAT_U32)                                                                                 \
    CASE(LEAT_U64)                                                                                 \
    CASE(LEAT_F32)                                                                                 \
    CASE(LEAT_F64)                                                                                 \
    CASE(LEAT_STR)                                                                                 \
    CASE(LEAT_BYTES)                                                                               \
    CASE(LEAT_TIMESTAMP)

// leat_record_json with each `quote` in it doubled, as a quoted value of CSV has it.
size_t leati_json_doubled(const leat_type *type, const void *value, char quote, char *buffer,
                          size_t size);

// Memory from the scratch with an alignment of at most that of any type; NULL when out of memory.
void *leati_scratch_take(leat_scratch *scratch, size_t size_bytes, size_t align);

#endif
