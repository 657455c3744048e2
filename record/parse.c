// SPDX-License-Identifier: Apache-2.0
// Errors, names of fields in files, and the first bytes of a file.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "record/parse_impl.h"

void leati_parse_fail(leat_parse_error *error, size_t offset, const char *format, ...)
{
    if (!error)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    error->offset = offset;
}

const char *leati_show(leati_shown *shown, const char *text, size_t size)
{
    static const char ellipsis[] = "...";
    size_t length = 0;
    for (size_t i = 0; i < size;) {
        size_t step = leati_utf8_length(text + i, size - i);
        bool printable = step > 1 || (step == 1 && text[i] >= 0x20 && text[i] != 0x7f);
        if (length + 4 + sizeof ellipsis > sizeof shown->text) {
            memcpy(shown->text + length, ellipsis, sizeof ellipsis);
            return shown->text;
        }
        step = printable ? step : 1;
        memcpy(shown->text + length, printable ? text + i : "?", step);
        length += step;
        i += step;
    }
    shown->text[length] = '\0';
    return shown->text;
}

const char *leati_show_type(leati_shown *shown, const leat_type *type)
{
    char whole[sizeof shown->text];
    size_t size = leat_type_print(type, whole, sizeof whole);
    if (size < sizeof whole)
        return leati_show(shown, whole, size);
    return type->kind == LEAT_STRUCT ? "an object" : type->kind == LEAT_MAP ? "a map" : "a list";
}

// --- names ---------------------------------------------------------------------------------------

const char *leati_name_of_field(const leat_type *type, const leat_column *columns,
                                size_t column_count, uint32_t index)
{
    const char *name = type->fields[index].name;
    for (size_t i = 0; i < column_count; i++)
        if (strcmp(columns[i].field, name) == 0)
            return columns[i].name;
    return name;
}

static bool is_named(const char *name, const char *text, size_t size)
{
    return strncmp(name, text, size) == 0 && strnlen(name, size + 1) == size;
}

uint32_t leati_field_named(const leat_type *type, const leat_column *columns, size_t column_count,
                           const char *name, size_t size, uint32_t guess)
{
    uint32_t count = type->field_count;
    for (uint32_t tried = 0, i = guess; tried < count; tried++, i++) {
        i = i < count ? i : 0;
        if (is_named(leati_name_of_field(type, columns, column_count, i), name, size))
            return i;
    }
    return count;
}

leat_err leati_columns_check(const leat_type *type, const leat_column *columns, size_t column_count,
                             leat_parse_error *error)
{
    uint32_t count = type->kind == LEAT_STRUCT ? type->field_count : 0;
    for (size_t i = 0; i < column_count; i++) {
        const char *field = columns[i].field;
        if (leati_field_named(type, NULL, 0, field, strlen(field), 0) >= count) {
            leati_parse_fail(error, 0, "there is no field %s", field);
            return LEAT_ETYPE;
        }
        for (size_t j = 0; j < i; j++)
            if (strcmp(columns[j].field, field) == 0) {
                leati_parse_fail(error, 0, "field %s: two names are given", field);
                return LEAT_ETYPE;
            }
    }
    // Without columns the names are those of the type, which are distinct.
    for (uint32_t i = 0; column_count > 0 && i < count; i++) {
        const char *name = leati_name_of_field(type, columns, column_count, i);
        uint32_t other = leati_field_named(type, columns, column_count, name, strlen(name), i + 1);
        if (other != i) {
            leati_parse_fail(error, 0, "fields %s and %s: both are called \"%s\" in the file",
                             type->fields[i].name, type->fields[other].name, name);
            return LEAT_ETYPE;
        }
    }
    return LEAT_OK;
}

leat_err leat_json_options_check(const leat_type *type, const leat_json_options *options,
                                 leat_parse_error *error)
{
    if (!options)
        return LEAT_OK;
    return leati_columns_check(type, options->columns, options->column_count, error);
}

// --- the start of a file -------------------------------------------------------------------------

leat_err leat_text_start(const char *text, size_t size_bytes, size_t *skip, leat_parse_error *error)
{
    static const struct {
        const char *mark;
        size_t size;
        const char *name; // NULL: can be read
    } marks[] = {
        // UTF-32 stands before UTF-16, as its mark begins with the other.
        {"\xef\xbb\xbf", 3, NULL}, {"\xff\xfe\0\0", 4, "UTF-32"}, {"\0\0\xfe\xff", 4, "UTF-32"},
        {"\xff\xfe", 2, "UTF-16"}, {"\xfe\xff", 2, "UTF-16"},
    };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (size_bytes < marks[i].size || memcmp(text, marks[i].mark, marks[i].size) != 0)
            continue;
        if (marks[i].name) {
            leati_parse_fail(error, 0, "this is %s; only UTF-8 can be read", marks[i].name);
            return LEAT_ECORRUPT;
        }
        *skip = marks[i].size;
        return LEAT_OK;
    }
    *skip = 0;
    return LEAT_OK;
}
