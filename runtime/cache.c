// SPDX-License-Identifier: Apache-2.0
#include "leat/cache.h"

#include <string.h>

#include "base/strbuf.h"
#include "runtime/context.h"
#include "runtime/execution.h"

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
