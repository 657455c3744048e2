// SPDX-License-Identifier: Apache-2.0
// Files that a job brings along: models, dictionaries, programs. They are named where the job is
// built and found by that name where it runs, in this process or on another machine.
//
//     leat_cache_file(env, "dictionary", "data/words.txt");
//     …
//     const char *path = leat_ctx_cached_file(ctx, "dictionary");
//     if (!path)
//         return -1; // the failure is recorded
#ifndef LEAT_CACHE_H
#define LEAT_CACHE_H

#include "leat/env.h"
#include "leat/function.h"

LEAT_BEGIN_DECLS

// Names a file, or a directory with all that is in it. A relative path belongs to the folder in
// which the job is built. `leat submit` sends it along with the job, executable files as such; what
// is given there or to `leat run` with --file NAME=PATH takes the place of what is named here. The
// name is not empty, has at most 200 bytes and none of "/", "=" and control characters; each is
// used once. Both are copied.
LEAT_API void leat_cache_file(leat_env *env, const char *name, const char *path);

// Where a file of that name is: an absolute path, for reading, which is valid until the job ends.
// NULL when there is none; the failure that says so is recorded, and the function is to return -1.
// From any function of an operator.
LEAT_API const char *leat_ctx_cached_file(leat_ctx *ctx, const char *name);

LEAT_END_DECLS

#endif
