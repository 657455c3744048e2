// SPDX-License-Identifier: Apache-2.0
// Records as text and as JSON.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "record/value_impl.h"

typedef struct sink {
    char *to;
    size_t room, length;
    char doubled; // written twice wherever it occurs; NUL: none
} sink;

static void put_run(sink *out, const void *data, size_t size)
{
    if (size && out->length < out->room) {
        size_t left = out->room - out->length;
        memcpy(out->to + out->length, data, size < left ? size : left);
    }
    out->length += size;
}

static void put(sink *out, const void *data, size_t size)
{
    const char *from = data, *quote;
    while (out->doubled && size && (quote = memchr(from, out->doubled, size))) {
        size_t run = (size_t)(quote - from) + 1;
        put_run(out, from, run);
        put_run(out, &out->doubled, 1);
        from += run;
        size -= run;
    }
    put_run(out, from, size);
}

static void put_text(sink *out, const char *text)
{
    put(out, text, strlen(text));
}

// A character at a time, each as a string of which the quotes are left out.
static void put_json_string_doubled(sink *out, const char *text, size_t size)
{
    put(out, "\"", 1);
    for (size_t i = 0; i < size;) {
        char one[16];
        size_t step = leati_utf8_length(text + i, size - i);
        step = step ? step : 1;
        size_t length = leati_json_string(text + i, step, one, sizeof one);
        put(out, one + 1, length - 2);
        i += step;
    }
    put(out, "\"", 1);
}

static void put_json_string(sink *out, const char *text, size_t size)
{
    if (out->doubled) {
        put_json_string_doubled(out, text, size);
        return;
    }
    size_t at = out->length < out->room ? out->length : out->room;
    char *to = out->to ? out->to + at : NULL;
    out->length += leati_json_string(text, size, to, out->room - at);
}

// --- numbers -------------------------------------------------------------------------------------

static void put_u64(sink *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    put(out, digits + at, sizeof digits - at);
}

static void put_i64(sink *out, int64_t value)
{
    if (value < 0)
        put(out, "-", 1);
    put_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

// The shortest form of a finite number that reads back as the same value. The C library prints the
// decimal point of the process's locale, which may be any character; it becomes a dot.
static void put_finite(sink *out, double value, bool is_f32)
{
    char text[64];
    int digits = is_f32 ? 6 : 15;
    for (;; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        bool same = is_f32 ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
        if (same || digits == 17)
            break;
    }
    bool in_point = false;
    for (const char *c = text; *c; c++) {
        bool is_ascii = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        if (is_ascii)
            put(out, c, 1);
        else if (!in_point)
            put(out, ".", 1);
        in_point = !is_ascii;
    }
}

static void put_real(sink *out, double value, bool is_f32, bool json)
{
    if (isfinite(value))
        put_finite(out, value, is_f32);
    else if (json)
        put_text(out, "null");
    else
        put_text(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

// Bool and numbers; false for other kinds.
static bool put_number(sink *out, uint32_t kind, const void *value, bool json)
{
    switch (kind) {
    case LEAT_BOOL:
        put_text(out, *(const bool *)value ? "true" : "false");
        return true;
#define INTEGER(K, put_it)                                                                         \
    case K:                                                                                        \
        put_it(out, *(const leati_ctype_##K *)value);                                              \
        return true;
        INTEGER(LEAT_I8, put_i64)
        INTEGER(LEAT_I16, put_i64)
        INTEGER(LEAT_I32, put_i64)
        INTEGER(LEAT_I64, put_i64)
        INTEGER(LEAT_TIMESTAMP, put_i64)
        INTEGER(LEAT_U8, put_u64)
        INTEGER(LEAT_U16, put_u64)
        INTEGER(LEAT_U32, put_u64)
        INTEGER(LEAT_U64, put_u64)
#undef INTEGER
    case LEAT_F32:
        put_real(out, (double)*(const float *)value, true, json);
        return true;
    case LEAT_F64:
        put_real(out, *(const double *)value, false, json);
        return true;
    default:
        return false;
    }
}

// --- JSON ----------------------------------------------------------------------------------------

static void put_base64(sink *out, const uint8_t *data, size_t size)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    put(out, "\"", 1);
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        char quad[4] = {alphabet[bits >> 18], alphabet[bits >> 12 & 63],
                        left > 1 ? alphabet[bits >> 6 & 63] : '=',
                        left > 2 ? alphabet[bits & 63] : '='};
        put(out, quad, sizeof quad);
    }
    put(out, "\"", 1);
}

static void put_json(sink *out, const leat_type *type, const void *value);

static void put_json_struct(sink *out, const leat_type *type, const void *record)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        put_text(out, i ? "," : "{");
        put_json_string(out, field->name, strlen(field->name));
        put(out, ":", 1);
        put_json(out, field->type, leati_field_of(record, field));
    }
    put(out, "}", 1);
}

static void put_json_list(sink *out, const leat_type *element, const leat_list *list)
{
    put(out, "[", 1);
    for (size_t i = 0; i < list->count; i++) {
        put_text(out, i ? "," : "");
        put_json(out, element, leati_item(list->items, element, i));
    }
    put(out, "]", 1);
}

// Members of a JSON object have strings for names.
static void put_json_key(sink *out, const leat_type *type, const void *key)
{
    bool quoted = type->kind == LEAT_STR || type->kind == LEAT_BYTES;
    put_text(out, quoted ? "" : "\"");
    put_json(out, type, key);
    put_text(out, quoted ? "" : "\"");
}

// An object; when the keys are structs, which no name can stand for, a list of {"key": ...,
// "value":
// ...}.
static void put_json_map(sink *out, const leat_type *type, const leat_dict *map)
{
    bool object = type->key->kind != LEAT_STRUCT;
    put_text(out, object ? "{" : "[");
    for (size_t i = 0; i < map->count; i++) {
        const void *key = leati_item(map->keys, type->key, i);
        put_text(out, i ? "," : "");
        if (object) {
            put_json_key(out, type->key, key);
            put_text(out, ":");
        } else {
            put_text(out, "{\"key\":");
            put_json(out, type->key, key);
            put_text(out, ",\"value\":");
        }
        put_json(out, type->element, leati_item(map->values, type->element, i));
        put_text(out, object ? "" : "}");
    }
    put_text(out, object ? "}" : "]");
}

static void put_json(sink *out, const leat_type *type, const void *value)
{
    switch (type->kind) {
    case LEAT_STR: {
        const leat_str *str = value;
        put_json_string(out, str->data, str->size);
        break;
    }
    case LEAT_BYTES: {
        const leat_bytes *bytes = value;
        put_base64(out, bytes->data, bytes->size);
        break;
    }
    case LEAT_LIST:
        put_json_list(out, type->element, value);
        break;
    case LEAT_MAP:
        put_json_map(out, type, value);
        break;
    case LEAT_OPTIONAL:
        if (leati_present(value))
            put_json(out, type->element, leati_present(value));
        else
            put_text(out, "null");
        break;
    case LEAT_STRUCT:
        put_json_struct(out, type, value);
        break;
    default:
        put_number(out, type->kind, value, true);
    }
}

size_t leat_record_json(const leat_type *type, const void *record, char *buffer, size_t size)
{
    sink out = {.to = buffer, .room = size};
    put_json(&out, type, record);
    return out.length;
}

size_t leati_json_doubled(const leat_type *type, const void *value, char quote, char *buffer,
                          size_t size)
{
    sink out = {.to = buffer, .room = size, .doubled = quote};
    put_json(&out, type, value);
    return out.length;
}

// --- text ----------------------------------------------------------------------------------------

static void put_column(sink *out, const leat_type *type, const void *value)
{
    if (type->kind == LEAT_OPTIONAL) {
        value = leati_present(value);
        type = type->element;
        if (!value) {
            put_text(out, "\\N");
            return;
        }
    }
    if (type->kind == LEAT_STR || type->kind == LEAT_BYTES) {
        const leat_str *str = value;
        put(out, str->data, str->size);
    } else if (!put_number(out, type->kind, value, false)) {
        put_json(out, type, value);
    }
}

size_t leat_record_text(const leat_type *type, const void *record, char *buffer, size_t size)
{
    sink out = {.to = buffer, .room = size};
    if (type->kind != LEAT_STRUCT)
        put_column(&out, type, record);
    for (uint32_t i = 0; type->kind == LEAT_STRUCT && i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        put_text(&out, i ? "\t" : "");
        put_column(&out, field->type, leati_field_of(record, field));
    }
    return out.length;
}
