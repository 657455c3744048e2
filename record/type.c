// SPDX-License-Identifier: Apache-2.0
// Types: comparing, checking, printing, finding fields.
#include <stdio.h>
#include <string.h>

#include "record/type_impl.h"
#include "record/value_impl.h"

#define SCALAR(K, ctype, text)                                                                     \
    [K] = {.kind = K, .size = sizeof(ctype), .align = _Alignof(ctype), .name = text}
const leat_type leat_scalar_types[16] = {
    SCALAR(LEAT_BOOL, bool, "bool"),         SCALAR(LEAT_I8, int8_t, "i8"),
    SCALAR(LEAT_I16, int16_t, "i16"),        SCALAR(LEAT_I32, int32_t, "i32"),
    SCALAR(LEAT_I64, int64_t, "i64"),        SCALAR(LEAT_U8, uint8_t, "u8"),
    SCALAR(LEAT_U16, uint16_t, "u16"),       SCALAR(LEAT_U32, uint32_t, "u32"),
    SCALAR(LEAT_U64, uint64_t, "u64"),       SCALAR(LEAT_F32, float, "f32"),
    SCALAR(LEAT_F64, double, "f64"),         SCALAR(LEAT_STR, leat_str, "str"),
    SCALAR(LEAT_BYTES, leat_bytes, "bytes"), SCALAR(LEAT_TIMESTAMP, int64_t, "timestamp"),
};

const leat_type *leat_type_scalar(leat_kind kind)
{
    return leati_is_scalar(kind) ? &leat_scalar_types[kind] : NULL;
}

// --- sameness ------------------------------------------------------------------------------------

static bool equal_at(const leat_type *a, const leat_type *b, uint32_t depth)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind || depth > LEAT_TYPE_MAX_DEPTH)
        return false;
    switch (a->kind) {
    case LEAT_LIST:
    case LEAT_OPTIONAL:
        return equal_at(a->element, b->element, depth + 1);
    case LEAT_MAP:
        return equal_at(a->key, b->key, depth + 1) && equal_at(a->element, b->element, depth + 1);
    case LEAT_STRUCT:
        if (a->field_count != b->field_count)
            return false;
        for (uint32_t i = 0; i < a->field_count; i++)
            if (strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
                !equal_at(a->fields[i].type, b->fields[i].type, depth + 1))
                return false;
        return true;
    default:
        return true;
    }
}

bool leat_type_equal(const leat_type *a, const leat_type *b)
{
    return equal_at(a, b, 0);
}

// --- checks --------------------------------------------------------------------------------------

void leati_type_facts_add(leati_type_facts *facts, const leati_type_facts *part)
{
    if (facts->depth < part->depth + 1)
        facts->depth = part->depth + 1;
    facts->nodes += part->nodes;
    facts->wire += part->wire;
    facts->is_key = facts->is_key && part->is_key;
}

// Room in memory for a byte on the wire. What LEAT_DECODE_AMPLIFICATION allows beyond it are the
// pointer of an optional and the alignment of an array.
#define SIZE_PER_WIRE_BYTE 40

const char *leati_type_rule_size(const leat_type *type, const leati_type_facts *facts)
{
    if (facts->depth > LEAT_TYPE_MAX_DEPTH)
        return "types are nested too deeply";
    if (facts->nodes > LEAT_TYPE_MAX_NODES)
        return "the type has too many parts";
    if (type->size > SIZE_PER_WIRE_BYTE * facts->wire)
        return "the struct has far more bytes than its fields need";
    if (type->align == 0 || (type->align & (type->align - 1)) != 0 ||
        type->align > _Alignof(max_align_t))
        return "the alignment is not one that malloc gives";
    if (type->size % type->align != 0)
        return "the size is not a multiple of the alignment";
    return NULL;
}

const char *leati_type_rule_optional(const leat_type *element)
{
    if (element->kind == LEAT_OPTIONAL)
        return "an optional of an optional cannot be told from an absent one";
    return NULL;
}

const char *leati_type_rule_key(const leati_type_facts *key)
{
    return key->is_key ? NULL : "a key of a map is or holds a float, list, map or optional";
}

static const char *examine(const leat_type *type, uint32_t above, leati_type_facts *facts);

static const char *examine_part(const leat_type *part, uint32_t above, leati_type_facts *whole,
                                leati_type_facts *facts)
{
    const char *why = examine(part, above + 1, facts);
    if (!why)
        leati_type_facts_add(whole, facts);
    if (!why && whole->nodes > LEAT_TYPE_MAX_NODES)
        why = "the type has too many parts";
    return why;
}

// Names are compared pairwise: static tables are short, and types of run time come with distinct
// names.
static const char *check_names(const leat_type *type)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const char *name = type->fields[i].name;
        if (!name || !*name)
            return "a field has no name";
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(name, type->fields[j].name) == 0)
                return "two fields have the same name";
    }
    return NULL;
}

static const char *examine_struct(const leat_type *type, uint32_t above, leati_type_facts *facts)
{
    if (type->field_count == 0 || !type->fields)
        return "a struct needs at least one field";
    if (type->field_count > LEAT_TYPE_MAX_FIELDS)
        return "a struct has too many fields";
    facts->wire = leati_header_size(type->field_count);
    const char *why = check_names(type);
    for (uint32_t i = 0; !why && i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        leati_type_facts part;
        why = examine_part(field->type, above, facts, &part);
        if (why)
            break;
        if (field->kind != field->type->kind)
            why = "a field is not of the kind of its type";
        else if ((uint64_t)field->offset + field->type->size > type->size ||
                 field->offset % field->type->align != 0 || field->type->align > type->align)
            why = "a field lies outside its struct";
    }
    return why;
}

static const char *examine_map(const leat_type *type, uint32_t above, leati_type_facts *facts)
{
    leati_type_facts key, value;
    const char *why = examine_part(type->key, above, facts, &key);
    if (!why)
        why = leati_type_rule_key(&key);
    if (!why)
        why = examine_part(type->element, above, facts, &value);
    return why;
}

static size_t size_of_kind(uint32_t kind)
{
    switch (kind) {
    case LEAT_LIST:
        return sizeof(leat_list);
    case LEAT_MAP:
        return sizeof(leat_dict);
    case LEAT_OPTIONAL:
        return sizeof(void *);
    default:
        return leat_scalar_types[kind].size;
    }
}

static const char *examine_composed(const leat_type *type, uint32_t above, leati_type_facts *facts)
{
    leati_type_facts part;
    const char *why;
    switch (type->kind) {
    case LEAT_LIST:
        why = examine_part(type->element, above, facts, &part);
        break;
    case LEAT_OPTIONAL:
        why = examine_part(type->element, above, facts, &part);
        if (!why)
            why = leati_type_rule_optional(type->element);
        break;
    case LEAT_MAP:
        why = examine_map(type, above, facts);
        break;
    default:
        return examine_struct(type, above, facts);
    }
    // Empty or absent it takes a byte.
    facts->wire = 1;
    facts->is_key = false;
    return why;
}

static const char *examine(const leat_type *type, uint32_t above, leati_type_facts *facts)
{
    if (!type)
        return "a part of the type is missing";
    if (above > LEAT_TYPE_MAX_DEPTH)
        return "types are nested too deeply";
    if (type->own) {
        *facts = type->own->facts;
        return NULL;
    }
    if (type->kind < LEAT_BOOL || type->kind > LEAT_STRUCT)
        return "the kind is unknown";
    *facts = (leati_type_facts){.nodes = 1, .wire = 1, .is_key = true};
    const char *why = NULL;
    if (leati_is_scalar(type->kind))
        facts->is_key = type->kind != LEAT_F32 && type->kind != LEAT_F64;
    else
        why = examine_composed(type, above, facts);
    if (!why)
        why = leati_type_rule_size(type, facts);
    if (!why && type->kind != LEAT_STRUCT && type->size != size_of_kind(type->kind))
        why = "the size is not that of the kind";
    return why;
}

const char *leati_type_examine(const leat_type *type, leati_type_facts *facts)
{
    return examine(type, 0, facts);
}

leat_err leat_type_check(const leat_type *type, const char **why)
{
    leati_type_facts facts;
    const char *wrong = leati_type_examine(type, &facts);
    if (!wrong)
        return LEAT_OK;
    if (why)
        *why = wrong;
    return LEAT_ETYPE;
}

bool leat_type_has_pointers(const leat_type *type)
{
    if (type->kind != LEAT_STRUCT)
        return type->kind >= LEAT_STR && type->kind != LEAT_TIMESTAMP;
    for (uint32_t i = 0; i < type->field_count; i++)
        if (leat_type_has_pointers(type->fields[i].type))
            return true;
    return false;
}

// --- text ----------------------------------------------------------------------------------------

typedef struct sink {
    char *to;
    size_t room, length;
} sink;

static void put(sink *out, const char *text)
{
    size_t size = strlen(text);
    if (out->length < out->room) {
        size_t left = out->room - out->length;
        memcpy(out->to + out->length, text, size < left ? size : left);
    }
    out->length += size;
}

static void print(sink *out, const leat_type *type)
{
    switch (type->kind) {
    case LEAT_LIST:
    case LEAT_OPTIONAL:
        put(out, type->kind == LEAT_LIST ? "list<" : "optional<");
        print(out, type->element);
        put(out, ">");
        break;
    case LEAT_MAP:
        put(out, "map<");
        print(out, type->key);
        put(out, ", ");
        print(out, type->element);
        put(out, ">");
        break;
    case LEAT_STRUCT:
        put(out, "{");
        for (uint32_t i = 0; i < type->field_count; i++) {
            put(out, i ? ", " : "");
            put(out, type->fields[i].name);
            put(out, ": ");
            print(out, type->fields[i].type);
        }
        put(out, "}");
        break;
    default:
        put(out, leat_scalar_types[type->kind].name);
    }
}

size_t leat_type_print(const leat_type *type, char *buffer, size_t size)
{
    // As snprintf: what does not fit is cut off, and there is a NUL in any case.
    sink out = {buffer, size ? size - 1 : 0, 0};
    print(&out, type);
    if (size)
        buffer[out.length < size ? out.length : size - 1] = '\0';
    return out.length;
}

// --- fields --------------------------------------------------------------------------------------

const leat_field *leat_type_find(const leat_type *type, const char *path, uint32_t *offset)
{
    if (type->kind != LEAT_STRUCT)
        return NULL;
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        size_t length = strlen(field->name);
        // A name may hold dots itself, so every name that the path begins with is tried.
        if (strncmp(path, field->name, length) != 0)
            continue;
        const leat_field *found = NULL;
        uint32_t inner = 0;
        if (path[length] == '\0')
            found = field;
        else if (path[length] == '.')
            found = leat_type_find(field->type, path + length + 1, &inner);
        if (found) {
            if (offset)
                *offset = field->offset + inner;
            return found;
        }
    }
    return NULL;
}
