// SPDX-License-Identifier: Apache-2.0
// What the file formats share with the source that uses them.
#ifndef LEATI_OPERATORS_FILE_SOURCE_H
#define LEATI_OPERATORS_FILE_SOURCE_H

#include "leat/file_source.h"

// A copy of columns, with their names, in the environment's memory; NULL when there are none, or,
// with a fault, when out of memory.
const leat_column *leati_copy_columns(leat_env *env, const leat_column *columns, size_t count);
// The same for a text; NULL stays NULL.
const char *leati_copy_text(leat_env *env, const char *text);

#endif
