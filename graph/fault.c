// SPDX-License-Identifier: Apache-2.0
// Faults stick to the environment until it is destroyed; those that validation finds, and what went
// wrong in a run, are replaced by the next validation, so that checking twice says nothing twice. A
// fault refers to its operator and not to its name: in leat_name(leat_reduce(...), "count words")
// the name comes last.
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "graph/graph_impl.h"

static leati_fault_list *list_of(leat_env *env)
{
    return env->checking ? &env->checked : &env->built;
}

static leati_arena *arena_of(leat_env *env)
{
    return env->checking ? &env->check_arena : &env->arena;
}

void leati_fault_no_memory(leat_env *env)
{
    list_of(env)->out_of_memory = true;
}

static char *text_of(leati_arena *arena, const leati_fault *fault)
{
    const leati_node *node = fault->node;
    if (!node)
        return fault->message;
    return leati_arena_printf(arena, "\"%s\" (%s, operator %u): %s", node->name, node->kind,
                              node->id, fault->message);
}

static bool is_listed(const leati_fault_list *list, const leati_node *node, const char *message)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].node == node && !strcmp(list->items[i].message, message))
            return true;
    return false;
}

void leati_fault_vadd(leat_env *env, const leati_node *node, leat_err err, const char *format,
                      va_list args)
{
    leati_fault fault = {.err = err, .node = node};
    leati_fault_list *list = list_of(env);
    fault.message = leati_arena_vprintf(arena_of(env), format, args);
    // It may quote paths and arguments.
    if (fault.message)
        leati_text_clean(fault.message);
    if (fault.message && node && is_listed(list, node, fault.message))
        return;
    fault.text = fault.message ? text_of(arena_of(env), &fault) : NULL;
    if (!fault.text || !leati_grow(&env->allocator, (void **)&list->items, &list->capacity,
                                   list->count + 1, sizeof *list->items)) {
        leati_fault_no_memory(env);
        return;
    }
    list->items[list->count++] = fault;
}

void leati_fault_add(leat_env *env, const leati_node *node, leat_err err, const char *format, ...)
{
    // While a graph is built it says nothing of interest what the memory was for.
    if (err == LEAT_ENOMEM) {
        leati_fault_no_memory(env);
        return;
    }
    va_list args;
    va_start(args, format);
    leati_fault_vadd(env, node, err, format, args);
    va_end(args);
}

void leati_fault_renamed(leat_env *env, const leati_node *node)
{
    for (size_t i = 0; i < env->built.count; i++) {
        leati_fault *fault = &env->built.items[i];
        if (fault->node != node)
            continue;
        char *text = text_of(&env->arena, fault);
        if (text)
            fault->text = text;
        else
            leati_fault_no_memory(env);
    }
}

void leati_fault_forget_checked(leat_env *env)
{
    env->checked.count = 0;
    env->checked.out_of_memory = false;
    leati_arena_fini(&env->check_arena);
}

char *leati_type_text(leati_arena *arena, const leat_type *type)
{
    size_t size = type ? leat_type_print(type, NULL, 0) : 0;
    char *text = leati_arena_alloc(arena, size + 1);
    if (text && size)
        leat_type_print(type, text, size + 1);
    return text;
}

const char *leati_fault_type_text(leat_env *env, const leat_type *type)
{
    const char *text = leati_type_text(arena_of(env), type);
    return text ? text : "?";
}

// --- the public side ---

size_t leat_env_fault_count(const leat_env *env)
{
    return (size_t)env->built.out_of_memory + env->built.count +
           (size_t)env->checked.out_of_memory + env->checked.count;
}

// The fault at `*index` of the list; else moves the index into the next list's numbering.
static const leati_fault *find(const leati_fault_list *list, size_t *index)
{
    static const leati_fault no_memory = {.err = LEAT_ENOMEM, .text = (char *)"out of memory"};
    if (list->out_of_memory && *index == 0)
        return &no_memory;
    *index -= list->out_of_memory;
    if (*index < list->count)
        return &list->items[*index];
    *index -= list->count;
    return NULL;
}

static const leati_fault *fault_at(const leat_env *env, size_t index)
{
    const leati_fault *fault = find(&env->built, &index);
    return fault ? fault : find(&env->checked, &index);
}

const char *leat_env_fault(const leat_env *env, size_t index)
{
    const leati_fault *fault = fault_at(env, index);
    return fault ? fault->text : NULL;
}

leat_err leati_fault_first(const leat_env *env)
{
    const leati_fault *fault = fault_at(env, 0);
    return fault ? fault->err : LEAT_OK;
}

void leat_env_fail(leat_env *env, leat_err err, const char *format, ...)
{
    if (!format) {
        leat_env_fail(env, err, "no reason given");
        return;
    }
    va_list args;
    va_start(args, format);
    leati_fault_vadd(env, NULL, err == LEAT_OK ? LEAT_EINVAL : err, format, args);
    va_end(args);
}

void leati_env_run_failed(leat_env *env, leat_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    env->checking = true;
    leati_fault_vadd(env, NULL, err, format, args);
    env->checking = false;
    va_end(args);
}

leat_err leati_fault_built(const leat_env *env)
{
    return env->built.out_of_memory || env->built.count ? leati_fault_first(env) : LEAT_OK;
}
