// SPDX-License-Identifier: Apache-2.0
#include "leat/cache.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "runtime/context.h"
#include "runtime/execution.h"

// --- the folder ---

// Absolute, or NULL after a failure.
static char *find_folder(leat_ctx *ctx)
{
    char working[PATH_MAX] = "";
    const leat_allocator *allocator = leat_ctx_allocator(ctx);
    const char *folder = leati_env_folder(ctx->task->job->env);
    if (!folder)
        folder = "";
    if (*folder != '/' && !getcwd(working, sizeof working)) {
        (void)leat_fail(ctx, "the working folder cannot be found: %s", strerror(errno));
        return NULL;
    }
    leati_strbuf path;
    leati_strbuf_init(&path, allocator);
    leati_strbuf_printf(&path, "%s%s%s", working, *folder && working[0] && working[1] ? "/" : "",
                        folder);
    char *found = path.failed ? NULL : leati_strdup(allocator, leati_strbuf_text(&path));
    leati_strbuf_fini(&path);
    if (!found)
        (void)leat_fail(ctx, "the folder of the job: out of memory");
    return found;
}

const char *leat_ctx_folder(leat_ctx *ctx)
{
    leati_task *t = ctx->task;
    if (!t->folder)
        t->folder = find_folder(ctx);
    return t->folder;
}

// --- cached files ---

// Says which names there are.
static void unknown(leat_ctx *ctx, const leat_env *env, const char *name)
{
    leati_strbuf names;
    leati_strbuf_init(&names, leat_ctx_allocator(ctx));
    for (size_t i = 0; i < leati_env_cached_count(env); i++)
        leati_strbuf_printf(&names, "%s\"%s\"", i ? ", " : "", leati_env_cached_at(env, i)->name);
    const char *text = leati_strbuf_text(&names);
    bool any = leati_env_cached_count(env) > 0;
    (void)leat_fail(ctx, "there is no cached file \"%s\": %s%s%s", name,
                    any ? "the job's are " : "the job has none", any ? text : "",
                    any ? "" : " (leat_cache_file names them, and --file)");
    leati_strbuf_fini(&names);
}

const char *leat_ctx_cached_file(leat_ctx *ctx, const char *name)
{
    const leat_env *env = ctx->task->job->env;
    const leati_cached_file *file = name ? leati_env_cached(env, name) : NULL;
    if (!file)
        unknown(ctx, env, name ? name : "");
    return file ? file->found : NULL;
}
