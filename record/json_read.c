// SPDX-License-Identifier: Apache-2.0
// JSON into values of a type. The type directs the reader, so nesting is bounded by the type; only
// what is passed over nests as it likes, up to a limit. A struct expects its members in the order
// of its fields, compares the name that comes with the one that should, and searches only when they
// differ.
#include <string.h>

#include "record/json_read.h"

// --- scalars -------------------------------------------------------------------------------------

static bool read_bool(leati_json *json, bool *value)
{
    size_t left = (size_t)(json->end - json->at);
    if (left >= 4 && memcmp(json->at, "true", 4) == 0) {
        json->at += 4;
        *value = true;
    } else if (left >= 5 && memcmp(json->at, "false", 5) == 0) {
        json->at += 5;
        *value = false;
    } else {
        return leati_json_expected(json, "bool");
    }
    return true;
}

static bool read_number(leati_json *json, const leat_type *type, void *value)
{
    leati_number number;
    leati_shown found, wanted;
    const char *at = json->at;
    const char *next = leati_number_scan(at, json->end, LEATI_STRICT, &number);
    if (!next && at < json->end && (*at == '-' || leati_is_digit(*at)))
        return leati_json_fail(json, at, "a number that JSON does not have");
    if (!next)
        return leati_json_expected(json, leati_show_type(&wanted, type));
    if (!leati_number_store(type->kind, &number, value))
        return leati_json_fail(json, at, "%s does not fit %s",
                               leati_show(&found, at, (size_t)(next - at)),
                               leati_show_type(&wanted, type));
    json->at = next;
    return true;
}

static bool read_scalar(leati_json *json, const leat_type *type, void *value)
{
    switch (type->kind) {
    case LEAT_I64:
    case LEAT_TIMESTAMP: {
        const char *next = leati_integer_scan(json->at, json->end, value);
        if (LEAT_UNLIKELY(!next))
            return read_number(json, type, value);
        json->at = next;
        return true;
    }
    case LEAT_F64: {
        const char *next = leati_real_scan(json->at, json->end, value);
        if (LEAT_UNLIKELY(!next))
            return read_number(json, type, value);
        json->at = next;
        return true;
    }
    case LEAT_STR:
        return leati_json_read_string(json, value);
    case LEAT_BYTES:
        return leati_json_read_bytes(json, value);
    case LEAT_BOOL:
        return read_bool(json, value);
    default:
        return read_number(json, type, value);
    }
}

// --- lists and optionals -------------------------------------------------------------------------

// Room for one more of `count` items. The rooms that are outgrown stay in the scratch; together
// they are smaller than the last one.
static void *grow(leati_json *json, const leat_type *type, void *items, size_t count,
                  size_t *capacity)
{
    if (count < *capacity)
        return items;
    size_t more = *capacity ? *capacity * 2 : type->size < 64 ? 64 / type->size : 1;
    void *grown = leati_json_take(json, more, type->size, type->align);
    if (!grown)
        return NULL;
    if (count > 0)
        memcpy(grown, items, count * type->size);
    *capacity = more;
    return grown;
}

static bool read_list(leati_json *json, const leat_type *element, leat_list *list)
{
    if (!leati_json_take_char(json, '['))
        return leati_json_expected(json, "a list");
    leati_json_place here = {.outer = json->place};
    size_t capacity = 0;
    char *items = NULL;
    *list = (leat_list){NULL, 0};
    if (leati_json_take_char(json, ']'))
        return true;
    do {
        items = grow(json, element, items, here.index, &capacity);
        if (!items)
            return false;
        leati_json_enter(json, &here);
        leati_json_blanks(json);
        if (!leati_json_read_value(json, element, items + here.index * element->size))
            return false;
        leati_json_leave(json);
        here.index++;
    } while (leati_json_take_char(json, ','));
    if (!leati_json_take_char(json, ']'))
        return leati_json_expected(json, "',' or ']'");
    *list = (leat_list){items, here.index};
    return true;
}

static bool read_optional(leati_json *json, const leat_type *element, const void **optional)
{
    if (json->end - json->at >= 4 && memcmp(json->at, "null", 4) == 0) {
        json->at += 4;
        *optional = NULL;
        return true;
    }
    void *present = leati_json_take(json, 1, element->size, element->align);
    if (!present)
        return false;
    *optional = present;
    return leati_json_read_value(json, element, present);
}

// --- structs -------------------------------------------------------------------------------------

// Whether the member that begins at json->at is that of a field with this name; if so it is passed
// over. A member with escapes in it, or with bytes that have to be checked, is never taken for one.
static inline bool take_name(leati_json *json, const char *name)
{
    const char *at = json->at + 1;
    for (; at < json->end && *at == *name && *at != '\\' && (signed char)*at >= 0x20; at++, name++)
        if (*at == '"')
            return false;
    if (*name || at == json->end || *at != '"')
        return false;
    json->at = at + 1;
    return true;
}

// The fields of a struct that have been read. One word will do for most types.
typedef struct progress {
    const leat_type *type;
    const leat_column *columns; // that rename its fields
    size_t column_count;
    uint32_t next;  // the field that is expected
    uint32_t count; // fields that were read
    uint64_t word, *seen;
} progress;

static bool begin(leati_json *json, const leat_type *type, progress *p)
{
    *p = (progress){.type = type, .seen = &p->word};
    if (json->options && !json->place) {
        p->columns = json->options->columns;
        p->column_count = json->options->column_count;
    }
    if (type->field_count > 64) {
        size_t words = (type->field_count + 63) / 64;
        p->seen = leati_json_take(json, words, sizeof *p->seen, _Alignof(uint64_t));
        if (p->seen)
            memset(p->seen, 0, words * sizeof *p->seen);
    }
    return p->seen != NULL;
}

// The name of a member, up to its value: `*index` is that of its field, or the number of fields.
static bool read_name(leati_json *json, progress *p, uint32_t *index)
{
    const char *at = json->at;
    uint32_t next = p->next < p->type->field_count ? p->next : 0;
    const char *expected = LEAT_LIKELY(p->column_count == 0)
                               ? p->type->fields[next].name
                               : leati_name_of_field(p->type, p->columns, p->column_count, next);
    *index = next;
    if (LEAT_UNLIKELY(at == json->end || *at != '"'))
        return leati_json_expected(json, "the name of a member");
    if (LEAT_UNLIKELY(!take_name(json, expected))) {
        leat_str name;
        leati_shown shown;
        if (!leati_json_read_string(json, &name))
            return false;
        *index =
            leati_field_named(p->type, p->columns, p->column_count, name.data, name.size, next);
        if (*index == p->type->field_count && json->options && json->options->refuse_unknown)
            return leati_json_fail(json, at, "there is no field %s",
                                   leati_show(&shown, name.data, name.size));
    }
    if (!leati_json_take_char(json, ':'))
        return leati_json_expected(json, "':'");
    leati_json_blanks(json);
    return true;
}

static bool read_member(leati_json *json, progress *p, leati_json_place *here, void *record)
{
    const char *at = json->at;
    uint32_t index;
    if (!read_name(json, p, &index))
        return false;
    if (index == p->type->field_count)
        return leati_json_skip(json);
    const leat_field *field = &p->type->fields[index];
    here->field = field->name;
    leati_json_enter(json, here);
    uint64_t bit = UINT64_C(1) << (index % 64);
    if (LEAT_UNLIKELY(p->seen[index / 64] & bit))
        return leati_json_fail(json, at, "it is there twice");
    p->seen[index / 64] |= bit;
    p->count++;
    p->next = index + 1;
    void *value = (char *)record + field->offset;
    bool good = leati_is_scalar(field->kind) ? read_scalar(json, field->type, value)
                                             : leati_json_read_value(json, field->type, value);
    if (LEAT_LIKELY(good))
        leati_json_leave(json);
    return good;
}

// What was not there is absent, if it can be.
static bool fill_rest(leati_json *json, const progress *p, const char *at, void *record)
{
    for (uint32_t i = 0; i < p->type->field_count; i++) {
        const leat_field *field = &p->type->fields[i];
        if (p->seen[i / 64] >> (i % 64) & 1)
            continue;
        if (field->kind != LEAT_OPTIONAL) {
            leati_json_place missing = {.outer = json->place, .field = field->name};
            leati_json_enter(json, &missing);
            leati_json_fail(json, at, "it is missing");
            leati_json_leave(json);
            return false;
        }
        *(const void **)((char *)record + field->offset) = NULL;
    }
    return true;
}

static bool read_struct(leati_json *json, const leat_type *type, void *record)
{
    const char *opened = json->at;
    progress p;
    leati_json_place here = {.outer = json->place};
    if (!leati_json_take_char(json, '{'))
        return leati_json_expected(json, "an object");
    if (!begin(json, type, &p))
        return false;
    if (!leati_json_take_char(json, '}')) {
        do {
            leati_json_blanks(json);
            if (LEAT_UNLIKELY(!read_member(json, &p, &here, record)))
                return false;
        } while (leati_json_take_char(json, ','));
        if (!leati_json_take_char(json, '}'))
            return leati_json_expected(json, "',' or '}'");
    }
    return LEAT_LIKELY(p.count == type->field_count) || fill_rest(json, &p, opened, record);
}

// --- any value -----------------------------------------------------------------------------------

static bool read_composed(leati_json *json, const leat_type *type, void *value)
{
    switch (type->kind) {
    case LEAT_LIST:
        return read_list(json, type->element, value);
    case LEAT_MAP:
        return leati_json_read_map(json, type, value);
    case LEAT_OPTIONAL:
        return read_optional(json, type->element, value);
    default:
        return read_struct(json, type, value);
    }
}

bool leati_json_read_value(leati_json *json, const leat_type *type, void *value)
{
    if (leati_is_scalar(type->kind))
        return read_scalar(json, type, value);
    // Checked types cannot get here; one that contains itself would otherwise overrun the stack.
    if (json->depth > LEAT_TYPE_MAX_DEPTH)
        return leati_json_fail(json, json->at, "nested deeper than %d", LEAT_TYPE_MAX_DEPTH);
    json->depth++;
    bool good = read_composed(json, type, value);
    json->depth--;
    return good;
}

bool leati_json_read_all(leati_json *json, const leat_type *type, void *value)
{
    leati_json_blanks(json);
    if (json->at == json->end)
        return leati_json_fail(json, json->at, "the text is empty");
    if (!leati_json_read_value(json, type, value))
        return false;
    leati_json_blanks(json);
    return json->at == json->end || leati_json_expected(json, "the end of the text");
}

leat_err leat_record_from_json(const leat_type *type, const leat_json_options *options,
                               const char *text, size_t size_bytes, void *record,
                               leat_scratch *scratch, leat_parse_error *error)
{
    leati_json json = {.text = text,
                       .at = text,
                       .end = text + size_bytes,
                       .scratch = scratch,
                       .options = options,
                       .error = error,
                       .err = LEAT_ECORRUPT};
    return LEAT_LIKELY(leati_json_read_all(&json, type, record)) ? LEAT_OK : json.err;
}
