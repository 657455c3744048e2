// SPDX-License-Identifier: Apache-2.0
#include "leat/env.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

leat_err leat_env_create(const leat_env_options *options, leat_env **env)
{
    const leat_allocator *allocator =
        leati_allocator_or_default(options ? options->allocator : NULL);
    leat_env *made = leati_calloc(allocator, 1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = *allocator;
    if (options)
        made->options = *options;
    made->options.allocator = &made->allocator;
    leati_config_init(&made->config);
    leati_arena_init(&made->arena, &made->allocator);
    leati_arena_init(&made->check_arena, &made->allocator);
    made->name = "job";
    made->inert = (leat_stream){.env = made, .kind = LEATI_STREAM_INERT};
    *env = made;
    return LEAT_OK;
}

void leat_env_destroy(leat_env **env)
{
    leat_env *gone = *env;
    if (!gone)
        return;
    *env = NULL;
    for (size_t i = 0; i < gone->type_count; i++)
        leat_type_release(gone->types[i]);
    const leat_allocator allocator = gone->allocator;
    leati_free(&allocator, gone->types);
    leati_free(&allocator, gone->nodes);
    leati_free(&allocator, gone->edges);
    leati_free(&allocator, gone->cached);
    leati_free(&allocator, gone->built.items);
    leati_free(&allocator, gone->checked.items);
    leati_arena_fini(&gone->check_arena);
    leati_arena_fini(&gone->arena);
    leati_free(&allocator, gone);
}

void leat_env_set_name(leat_env *env, const char *name)
{
    if (!name || !*name) {
        leati_fault_add(env, NULL, LEAT_EINVAL, "leat_env_set_name: the job's name is empty");
        return;
    }
    char *copy = leati_arena_strdup(&env->arena, name);
    if (copy)
        env->name = copy;
    else
        leati_fault_no_memory(env);
}

void leat_env_set_parallelism(leat_env *env, uint32_t parallelism)
{
    if (parallelism == 0 || parallelism > LEATI_MAX_PARALLELISM)
        leati_fault_add(env, NULL, LEAT_EINVAL,
                        "leat_env_set_parallelism: %u is not within 1 and %d", parallelism,
                        LEATI_MAX_PARALLELISM);
    else
        env->config.value[LEATI_CONFIG_PARALLELISM] = parallelism;
}

uint32_t leat_env_parallelism(const leat_env *env)
{
    return (uint32_t)leati_config_get(&env->config, LEATI_CONFIG_PARALLELISM);
}

void leat_env_set_max_parallelism(leat_env *env, uint32_t max_parallelism)
{
    if (max_parallelism > LEATI_MAX_PARALLELISM)
        leati_fault_add(env, NULL, LEAT_EINVAL, "leat_env_set_max_parallelism: %u is above %d",
                        max_parallelism, LEATI_MAX_PARALLELISM);
    else
        env->max_parallelism = max_parallelism;
}

void leat_env_set_chaining(leat_env *env, bool enabled)
{
    env->config.value[LEATI_CONFIG_CHAINING] = enabled;
}

void leat_env_set_buffer_timeout(leat_env *env, int64_t timeout_ms)
{
    const leati_config_info *info = leati_config_describe(LEATI_CONFIG_BUFFER_TIMEOUT);
    if (timeout_ms < info->lowest || timeout_ms > info->highest)
        leati_fault_add(env, NULL, LEAT_EINVAL,
                        "leat_env_set_buffer_timeout: %lld ms is not within %lld and %lld",
                        (long long)timeout_ms, (long long)info->lowest, (long long)info->highest);
    else
        env->config.value[LEATI_CONFIG_BUFFER_TIMEOUT] = timeout_ms;
}

leat_err leat_env_set(leat_env *env, const char *key, const char *value)
{
    char why[400];
    leat_err err = leati_config_set(&env->config, key, value, why, sizeof why);
    if (err != LEAT_OK)
        leati_fault_add(env, NULL, err, "%s", why);
    return err;
}

void *leat_env_alloc(leat_env *env, size_t size_bytes)
{
    void *ptr = leati_arena_alloc(&env->arena, size_bytes);
    if (!ptr)
        leati_fault_no_memory(env);
    return ptr;
}

const leat_allocator *leat_env_allocator(const leat_env *env)
{
    return &env->allocator;
}

leat_err leat_env_check(leat_env *env)
{
    leati_fault_forget_checked(env);
    env->checking = true;
    leati_arena arena;
    leati_arena_init(&arena, &env->allocator);
    leati_layout layout;
    if (leati_layout_init(&layout, env, &arena) == LEAT_OK)
        leati_layout_validate(&layout);
    else
        leati_fault_no_memory(env);
    leati_arena_fini(&arena);
    env->checking = false;
    return leati_fault_first(env);
}

size_t leati_graph_node_count(const leat_env *env)
{
    return env->node_count;
}

leati_node *leati_graph_node(leat_env *env, size_t index)
{
    return env->nodes[index];
}

const leat_env_options *leati_env_options(const leat_env *env)
{
    return &env->options;
}

struct leati_config *leati_env_config(leat_env *env)
{
    return &env->config;
}
