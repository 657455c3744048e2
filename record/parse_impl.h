// SPDX-License-Identifier: Apache-2.0
// What the readers of text formats share. Private to record/.
#ifndef LEATI_RECORD_PARSE_IMPL_H
#define LEATI_RECORD_PARSE_IMPL_H

#include "leat/parse.h"

// Writes an error; does nothing when `error` is NULL.
void leati_parse_fail(leat_parse_error *error, size_t offset, const char *format, ...)
    LEAT_PRINTF(3, 4);

// A piece of the input as messages show it: one line of at most some 40 bytes.
typedef struct leati_shown {
    char text[56];
} leati_shown;
const char *leati_show(leati_shown *shown, const char *text, size_t size);

// The name of a type as messages show it, "u8" say.
const char *leati_show_type(leati_shown *shown, const leat_type *type);

// A member of a JSON object or a column of CSV: the index of the field that it stands for in
// `columns`, or in the type itself when no column renames that field; type->field_count when it is
// none. The search begins at the field `guess`.
uint32_t leati_field_named(const leat_type *type, const leat_column *columns, size_t column_count,
                           const char *name, size_t size, uint32_t guess);

// The name in the file of the field `index`.
const char *leati_name_of_field(const leat_type *type, const leat_column *columns,
                                size_t column_count, uint32_t index);

// Checks that the columns fit the type, as leat_json_options_check says.
leat_err leati_columns_check(const leat_type *type, const leat_column *columns, size_t column_count,
                             leat_parse_error *error);

#endif
