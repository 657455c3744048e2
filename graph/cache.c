// SPDX-License-Identifier: Apache-2.0
// The files that a job brings along, and the folder that relative paths belong to.
#include "leat/cache.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

enum { NAME_MAX_BYTES = 200 };

// --- the folder ---

leat_err leati_env_set_folder(leat_env *env, const char *folder)
{
    char *copy = folder ? leati_arena_strdup(&env->arena, folder) : NULL;
    if (folder && !copy) {
        leati_fault_no_memory(env);
        return LEAT_ENOMEM;
    }
    env->folder = copy;
    return LEAT_OK;
}

const char *leati_env_folder(const leat_env *env)
{
    return env->folder;
}

// Absolute at once: the process may change its folder before the job runs. NULL after a fault.
static const char *absolute(leat_env *env, const char *call, const char *path)
{
    char working[PATH_MAX] = "";
    const char *folder = *path != '/' && env->folder ? env->folder : "";
    if (*path != '/' && *folder != '/' && !getcwd(working, sizeof working)) {
        leati_fault_add(env, NULL, LEAT_EIO, "%s: %s: the working folder cannot be found: %s", call,
                        path, strerror(errno));
        return NULL;
    }
    const char *made =
        leati_arena_printf(&env->arena, "%s%s%s%s%s", working, *working && working[1] ? "/" : "",
                           folder, *folder ? "/" : "", path);
    if (!made)
        leati_fault_no_memory(env);
    return made;
}

// --- the names ---

static bool name_ok(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_MAX_BYTES || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f || *at == '/' || *at == '=')
            return false;
    return true;
}

static leat_err check(leat_env *env, const char *call, const char *name, const char *path)
{
    if (!name || !name_ok(name)) {
        leati_fault_add(env, NULL, LEAT_EINVAL,
                        "%s: \"%s\" is no name for a cached file: it must have 1 to %d bytes and "
                        "none of \"/\", \"=\" and control characters",
                        call, name ? name : "", NAME_MAX_BYTES);
        return LEAT_EINVAL;
    }
    if (!path || !*path) {
        leati_fault_add(env, NULL, LEAT_EINVAL, "%s: the path of the cached file \"%s\" is empty",
                        call, name);
        return LEAT_EINVAL;
    }
    return LEAT_OK;
}

static leati_cached_file *find(const leat_env *env, const char *name)
{
    for (size_t i = 0; i < env->cached_count; i++)
        if (strcmp(env->cached[i].name, name) == 0)
            return &env->cached[i];
    return NULL;
}

// The entry of a name, made if need be; NULL after a fault.
static leati_cached_file *entry(leat_env *env, const char *name)
{
    leati_cached_file *file = find(env, name);
    if (file)
        return file;
    const char *copy = leati_arena_strdup(&env->arena, name);
    if (!copy || !leati_grow(&env->allocator, (void **)&env->cached, &env->cached_capacity,
                             env->cached_count + 1, sizeof *env->cached)) {
        leati_fault_no_memory(env);
        return NULL;
    }
    file = &env->cached[env->cached_count++];
    *file = (leati_cached_file){.name = copy};
    return file;
}

void leat_cache_file(leat_env *env, const char *name, const char *path)
{
    static const char call[] = "leat_cache_file";
    if (check(env, call, name, path) != LEAT_OK)
        return;
    leati_cached_file *file = find(env, name);
    if (file && file->path) {
        leati_fault_add(env, NULL, LEAT_EINVAL,
                        "%s: \"%s\" is %s already: a name stands for one file", call, name,
                        file->path);
        return;
    }
    const char *found = absolute(env, call, path);
    const char *copy = found ? leati_arena_strdup(&env->arena, path) : NULL;
    file = copy ? entry(env, name) : NULL;
    if (!file) {
        if (found)
            leati_fault_no_memory(env);
        return;
    }
    file->path = copy;
    if (!file->replaced)
        file->found = found;
}

leat_err leati_env_set_cache(leat_env *env, const char *name, const char *path)
{
    static const char call[] = "--file";
    leat_err err = check(env, call, name, path);
    if (err)
        return err;
    const char *found = absolute(env, call, path);
    leati_cached_file *file = found ? entry(env, name) : NULL;
    if (!file)
        return found ? LEAT_ENOMEM : leati_fault_first(env);
    file->found = found;
    file->replaced = true;
    return LEAT_OK;
}

size_t leati_env_cached_count(const leat_env *env)
{
    return env->cached_count;
}

const leati_cached_file *leati_env_cached_at(const leat_env *env, size_t index)
{
    return &env->cached[index];
}

const leati_cached_file *leati_env_cached(const leat_env *env, const char *name)
{
    return find(env, name);
}

leat_err leati_env_check_cached(leat_env *env)
{
    leat_err first = LEAT_OK;
    for (size_t i = 0; i < env->cached_count; i++) {
        const leati_cached_file *file = &env->cached[i];
        struct stat status;
        if (stat(file->found, &status) == 0)
            continue;
        leat_err err = errno == ENOENT || errno == ENOTDIR ? LEAT_ENOENT : LEAT_EIO;
        leati_env_run_failed(env, err, "the cached file \"%s\" cannot be found at %s: %s",
                             file->name, file->found, strerror(errno));
        first = first ? first : err;
    }
    return first;
}
