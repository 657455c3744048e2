// SPDX-License-Identifier: Apache-2.0
#include "leat/error.h"

#include <stddef.h>

static const struct {
    leat_err err;
    const char *name;
    const char *message;
} table[] = {
#define ROW(code, value, message) {code, #code, message},
    LEAT_ERRORS(ROW)
#undef ROW
};

const char *leat_err_name(leat_err err)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].name;
    return "LEAT_?";
}

const char *leat_err_message(leat_err err)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].err == err)
            return table[i].message;
    return "unknown error";
}
