// SPDX-License-Identifier: Apache-2.0
// Pictures and the digest of a job graph, without running it.
#ifndef LEAT_PLAN_H
#define LEAT_PLAN_H

#include "leat/env.h"

LEAT_BEGIN_DECLS

typedef enum leat_plan_format {
    LEAT_PLAN_TEXT = 0,
    LEAT_PLAN_JSON = 1,
    LEAT_PLAN_DOT = 2,
} leat_plan_format;

// Operators, chains, tasks, partitioners and the digest. `*text` is NUL-terminated and transferred
// to the caller, who gives it to leat_plan_free. A wrong graph gives its first fault's code.
LEAT_API LEAT_MUST_USE leat_err leat_plan(leat_env *env, leat_plan_format format, char **text);
LEAT_API void leat_plan_free(leat_env *env, char *text);

// 32 hexadecimal digits and a NUL: the same for the same graph in every process.
LEAT_API LEAT_MUST_USE leat_err leat_plan_digest(leat_env *env, char digest[33]);

LEAT_END_DECLS

#endif
