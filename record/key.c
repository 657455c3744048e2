// SPDX-License-Identifier: Apache-2.0
// Keys: from names to the places of fields. Hashing and comparing keys stand beside those of whole
// records.
#include <string.h>

#include "record/value_impl.h"

static bool holds_map(const leat_type *type)
{
    if (type->kind == LEAT_LIST || type->kind == LEAT_OPTIONAL)
        return holds_map(type->element);
    if (type->kind == LEAT_STRUCT)
        for (uint32_t i = 0; i < type->field_count; i++)
            if (holds_map(type->fields[i].type))
                return true;
    return type->kind == LEAT_MAP;
}

// Adds one part; NULL, or what is wrong with it.
static const char *add_part(leat_key *key, const leat_type *type, uint32_t offset)
{
    if (holds_map(type))
        return "a map cannot be a key";
    if (key->count == LEAT_KEY_MAX_FIELDS)
        return "the key has too many fields";
    for (uint32_t i = 0; i < key->count; i++)
        if (key->part[i].offset == offset && key->part[i].type == type)
            return "a field is named twice";
    key->part[key->count].type = type;
    key->part[key->count].offset = offset;
    key->count++;
    return NULL;
}

// Every field, or the whole value as one part where that cannot be written otherwise; both hash
// alike.
static const char *add_all(leat_key *key)
{
    const leat_type *type = key->type;
    if (type->kind != LEAT_STRUCT || type->field_count > LEAT_KEY_MAX_FIELDS)
        return add_part(key, type, 0);
    const char *wrong = NULL;
    for (uint32_t i = 0; !wrong && i < type->field_count; i++)
        wrong = add_part(key, type->fields[i].type, type->fields[i].offset);
    return wrong;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The longest path that can be looked up; names of fields have no limit, but keys are named by
// people.
#define PATH_SIZE 1024

static const char *add_named(leat_key *key, const char *name, size_t length)
{
    char path[PATH_SIZE];
    if (length == 0)
        return "the name of a field is missing";
    if (length >= sizeof path)
        return "the name of a field is too long";
    memcpy(path, name, length);
    path[length] = '\0';
    uint32_t offset;
    const leat_field *field = leat_type_find(key->type, path, &offset);
    return field ? add_part(key, field->type, offset) : "there is no field of that name";
}

static const char *add_list(leat_key *key, const char *names, const char **at)
{
    for (;;) {
        while (is_space(*names))
            names++;
        size_t length = strcspn(names, ",");
        const char *next = names + length;
        while (length && is_space(names[length - 1]))
            length--;
        *at = names;
        const char *wrong = add_named(key, names, length);
        if (wrong || !*next)
            return wrong;
        names = next + 1;
    }
}

leat_err leat_key_init(leat_key *key, const leat_type *type, const char *names, const char **why,
                       const char **at)
{
    leat_key made = {.type = type};
    const char *place = names ? names : "";
    const char *wrong = names && *names ? add_list(&made, names, &place) : add_all(&made);
    if (!wrong) {
        *key = made;
        return LEAT_OK;
    }
    if (why)
        *why = wrong;
    if (at)
        *at = place;
    return LEAT_ETYPE;
}

bool leat_key_has_null(const leat_key *key, const void *record)
{
    for (uint32_t i = 0; i < key->count; i++)
        if (key->part[i].type->kind == LEAT_OPTIONAL &&
            !leati_present((const char *)record + key->part[i].offset))
            return true;
    return false;
}

bool leat_key_can_be_null(const leat_key *key)
{
    for (uint32_t i = 0; i < key->count; i++)
        if (key->part[i].type->kind == LEAT_OPTIONAL)
            return true;
    return false;
}
