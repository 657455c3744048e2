// SPDX-License-Identifier: Apache-2.0
// Records as lines of CSV.
#include <string.h>

#include "record/csv_impl.h"
#include "record/value_impl.h"

typedef struct sink {
    const leat_csv *csv;
    char *to;
    size_t room, length;
} sink;

static void put(sink *out, const char *data, size_t size)
{
    if (out->to && size && out->length < out->room) {
        size_t left = out->room - out->length;
        memcpy(out->to + out->length, data, size < left ? size : left);
    }
    out->length += size;
}

static void put_quoted(sink *out, const char *data, size_t size)
{
    char quote = out->csv->quote;
    put(out, &quote, 1);
    while (size > 0) {
        const char *inner = memchr(data, quote, size);
        size_t run = inner ? (size_t)(inner - data) + 1 : size;
        put(out, data, run);
        if (inner)
            put(out, &quote, 1);
        data += run;
        size -= run;
    }
    put(out, &quote, 1);
}

static bool has_special(const leat_csv *csv, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] == csv->delimiter || data[i] == csv->quote || data[i] == '\n' ||
            data[i] == '\r')
            return true;
    return false;
}

// At the start of a file these would be taken for a byte-order mark.
static bool is_mark(const char *data, size_t size)
{
    size_t skip = 0;
    return leat_text_start(data, size, &skip, NULL) != LEAT_OK || skip > 0;
}

static void put_value(sink *out, const char *data, size_t size, bool quote)
{
    if (quote || has_special(out->csv, data, size) || (out->length == 0 && is_mark(data, size)))
        put_quoted(out, data, size);
    else
        put(out, data, size);
}

// Text that would be taken for missing needs quotes, unless the field makes no difference between
// the two: then only the text that the options name does, and what would leave a blank line.
static void put_text(sink *out, const leat_str *text, bool is_optional)
{
    bool quote = leati_csv_is_missing(out->csv, text->data, text->size) &&
                 (text->size > 0 || is_optional || out->csv->type->field_count == 1);
    put_value(out, text->data, text->size, quote);
}

static void put_composed(sink *out, const leat_type *type, const void *value)
{
    size_t at = out->length + 1 < out->room ? out->length + 1 : out->room;
    put(out, &out->csv->quote, 1);
    out->length += leati_json_doubled(type, value, out->csv->quote, out->to ? out->to + at : NULL,
                                      out->room - at);
    put(out, &out->csv->quote, 1);
}

static void put_field(sink *out, const leat_field *field, const void *value)
{
    const leat_type *type = field->type;
    bool is_optional = type->kind == LEAT_OPTIONAL;
    char number[64];
    if (is_optional) {
        value = leati_present(value);
        type = type->element;
        if (!value) {
            put(out, out->csv->missing.data, out->csv->missing.size);
            return;
        }
    }
    if (type->kind == LEAT_STR || type->kind == LEAT_BYTES) {
        put_text(out, value, is_optional);
    } else if (leati_is_scalar(type->kind)) {
        size_t size = leat_record_text(type, value, number, sizeof number);
        bool is_missing = leati_csv_is_missing(out->csv, number, size);
        put_value(out, number, size, is_missing);
    } else {
        put_composed(out, type, value);
    }
}

size_t leat_csv_write(const leat_csv *csv, const void *record, char *buffer, size_t size)
{
    sink out = {csv, buffer, size, 0};
    for (uint32_t i = 0; i < csv->type->field_count; i++) {
        const leat_field *field = &csv->type->fields[i];
        if (i > 0)
            put(&out, &csv->delimiter, 1);
        put_field(&out, field, leati_field_of(record, field));
    }
    return out.length;
}

size_t leat_csv_write_header(const leat_csv *csv, char *buffer, size_t size)
{
    sink out = {csv, buffer, size, 0};
    for (uint32_t i = 0; i < csv->type->field_count; i++) {
        const char *name = leati_name_of_field(csv->type, csv->columns, csv->column_count, i);
        if (i > 0)
            put(&out, &csv->delimiter, 1);
        put_value(&out, name, strlen(name), *name == '\0');
    }
    return out.length;
}
