// SPDX-License-Identifier: Apache-2.0
// Maps from JSON: objects, or lists of {"key": ..., "value": ...} where the keys are structs.
//
// No key may stand twice. A few are compared with each other; where there are more, their indices
// are sorted in the end, which bad input cannot make slow, as it could a hash table.
#include <string.h>

#include "record/json_read.h"

enum { FEW = 16 };

typedef struct entries {
    const leat_type *type; // the map
    char *keys, *values;
    size_t count, capacity;
} entries;

static char *key_at(const entries *e, size_t index)
{
    return e->keys + index * e->type->key->size;
}

// --- keys ----------------------------------------------------------------------------------------

// The names in an object are strings whatever the type of the keys is.
static bool key_of_name(leati_json *json, const char *at, const leat_type *type, leat_str name,
                        void *key)
{
    leati_shown found, wanted;
    leati_number number;
    const char *end = name.data + name.size;
    bool good;
    if (type->kind == LEAT_STR) {
        *(leat_str *)key = name;
        return true;
    }
    if (type->kind == LEAT_BYTES)
        return leati_json_bytes_of(json, at, name, key);
    if (type->kind == LEAT_BOOL) {
        *(bool *)key = name.size == 4;
        good = (name.size == 4 && memcmp(name.data, "true", 4) == 0) ||
               (name.size == 5 && memcmp(name.data, "false", 5) == 0);
    } else {
        good = leati_number_scan(name.data, end, LEATI_STRICT, &number) == end &&
               leati_number_store(type->kind, &number, key);
    }
    return good || leati_json_fail(json, at, "the key \"%s\" does not fit %s",
                                   leati_show(&found, name.data, name.size),
                                   leati_show_type(&wanted, type));
}

static bool fail_twice(leati_json *json, const char *at, const leat_type *type, const void *key)
{
    char text[64];
    leati_shown shown;
    size_t size = leat_record_json(type, key, text, sizeof text);
    return leati_json_fail(json, at, "the key %s is there twice",
                           leati_show(&shown, text, size < sizeof text ? size : sizeof text));
}

// --- many keys -----------------------------------------------------------------------------------

static int compare(const entries *e, uint32_t a, uint32_t b)
{
    return leat_record_compare(e->type->key, key_at(e, a), key_at(e, b));
}

// Lets an index sink to its place in a heap with the largest key on top.
static void sink(const entries *e, uint32_t *heap, size_t count, size_t at)
{
    for (size_t child; (child = at * 2 + 1) < count; at = child) {
        if (child + 1 < count && compare(e, heap[child], heap[child + 1]) < 0)
            child++;
        if (compare(e, heap[at], heap[child]) >= 0)
            return;
        uint32_t larger = heap[child];
        heap[child] = heap[at];
        heap[at] = larger;
    }
}

static bool check_many(leati_json *json, const char *at, const entries *e)
{
    if (e->count > UINT32_MAX)
        return leati_json_fail(json, at, "a map of more than 2^32 - 1 entries");
    uint32_t *heap = leati_json_take(json, e->count, sizeof *heap, _Alignof(uint32_t));
    if (!heap)
        return false;
    for (size_t i = 0; i < e->count; i++)
        heap[i] = (uint32_t)i;
    for (size_t i = e->count / 2; i-- > 0;)
        sink(e, heap, e->count, i);
    // The keys leave the heap in their order, so equal ones follow each other.
    for (size_t left = e->count - 1; left > 0; left--) {
        uint32_t largest = heap[0];
        heap[0] = heap[left];
        sink(e, heap, left, 0);
        if (compare(e, largest, heap[0]) == 0)
            return fail_twice(json, at, e->type->key, key_at(e, largest));
    }
    return true;
}

static bool check_few(leati_json *json, const char *at, const entries *e)
{
    const leat_type *type = e->type->key;
    for (size_t i = 0; i < e->count; i++)
        if (leat_record_equal(type, key_at(e, i), key_at(e, e->count)))
            return fail_twice(json, at, type, key_at(e, e->count));
    return true;
}

// --- entries -------------------------------------------------------------------------------------

// Room for one more entry.
static bool grow(leati_json *json, entries *e)
{
    const leat_type *key = e->type->key, *value = e->type->element;
    if (e->count < e->capacity)
        return true;
    size_t capacity = e->capacity ? e->capacity * 2 : 4;
    char *keys = leati_json_take(json, capacity, key->size, key->align);
    char *values = keys ? leati_json_take(json, capacity, value->size, value->align) : NULL;
    if (!values)
        return false;
    if (e->count > 0) {
        memcpy(keys, e->keys, e->count * key->size);
        memcpy(values, e->values, e->count * value->size);
    }
    e->keys = keys;
    e->values = values;
    e->capacity = capacity;
    return true;
}

static bool read_value(leati_json *json, entries *e, const leat_str *name)
{
    leati_json_place here = {.outer = json->place, .key = name, .index = e->count};
    leati_json_enter(json, &here);
    leati_json_blanks(json);
    if (!leati_json_read_value(json, e->type->element,
                               e->values + e->count * e->type->element->size))
        return false;
    leati_json_leave(json);
    return true;
}

static bool read_named(leati_json *json, entries *e)
{
    const char *at = json->at;
    leat_str name;
    if (!leati_json_read_string(json, &name) ||
        !key_of_name(json, at, e->type->key, name, key_at(e, e->count)))
        return false;
    if (e->count < FEW && !check_few(json, at, e))
        return false;
    if (!leati_json_take_char(json, ':'))
        return leati_json_expected(json, "':'");
    return read_value(json, e, &name);
}

// {"key": ..., "value": ...} in either order.
static bool read_pair(leati_json *json, entries *e)
{
    static const leat_str key_name = {"key", 3}, value_name = {"value", 5};
    const char *at = json->at;
    bool has_key = false, has_value = false;
    if (!leati_json_take_char(json, '{'))
        return leati_json_expected(json, "an object of \"key\" and \"value\"");
    do {
        leat_str name;
        leati_json_blanks(json);
        const char *member = json->at;
        if (!leati_json_read_string(json, &name))
            return false;
        bool is_key = name.size == 3 && memcmp(name.data, key_name.data, 3) == 0;
        bool is_value = name.size == 5 && memcmp(name.data, value_name.data, 5) == 0;
        if ((is_key && has_key) || (is_value && has_value) || (!is_key && !is_value))
            return leati_json_fail(json, member, "an entry has one \"key\" and one \"value\"");
        if (!leati_json_take_char(json, ':'))
            return leati_json_expected(json, "':'");
        leati_json_blanks(json);
        if (is_key ? !leati_json_read_value(json, e->type->key, key_at(e, e->count))
                   : !read_value(json, e, &value_name))
            return false;
        has_key = has_key || is_key;
        has_value = has_value || is_value;
    } while (leati_json_take_char(json, ','));
    if (!leati_json_take_char(json, '}'))
        return leati_json_expected(json, "',' or '}'");
    if (!has_key || !has_value)
        return leati_json_fail(json, at, "an entry has one \"key\" and one \"value\"");
    return e->count >= FEW || check_few(json, at, e);
}

bool leati_json_read_map(leati_json *json, const leat_type *type, leat_dict *map)
{
    bool object = type->key->kind != LEAT_STRUCT;
    char open = object ? '{' : '[', close = object ? '}' : ']';
    const char *at = json->at;
    entries e = {.type = type};
    if (!leati_json_take_char(json, open))
        return leati_json_expected(json, object ? "an object" : "a list of entries");
    *map = (leat_dict){NULL, NULL, 0};
    if (leati_json_take_char(json, close))
        return true;
    do {
        if (!grow(json, &e))
            return false;
        leati_json_blanks(json);
        if (object ? !read_named(json, &e) : !read_pair(json, &e))
            return false;
        e.count++;
    } while (leati_json_take_char(json, ','));
    if (!leati_json_take_char(json, close))
        return leati_json_expected(json, object ? "',' or '}'" : "',' or ']'");
    if (e.count > FEW && !check_many(json, at, &e))
        return false;
    *map = (leat_dict){e.keys, e.values, e.count};
    return true;
}
