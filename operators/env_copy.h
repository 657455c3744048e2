// SPDX-License-Identifier: Apache-2.0
// Copies of what builders are given, in the memory of the environment.
#ifndef LEATI_OPERATORS_ENV_COPY_H
#define LEATI_OPERATORS_ENV_COPY_H

#include <string.h>

#include "leat/env.h"

// NULL when out of memory, which is a fault of the environment then.
static inline const char *leati_env_copy(leat_env *env, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = (char *)leat_env_alloc(env, size);
    return copy ? (const char *)memcpy(copy, text, size) : NULL;
}

#endif
