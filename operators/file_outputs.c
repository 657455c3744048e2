// SPDX-License-Identifier: Apache-2.0
#include "operators/file_outputs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { WHY_SIZE = 1024 };

typedef struct output output;
struct output {
    const void *key;
    const char *name; // of the operator; the environment's
    uint32_t operator_id;
    leati_file_target *target;
    bool placed;
    output *next; // by operator_id
};

typedef struct outputs {
    const leat_allocator *allocator;
    pthread_mutex_t lock;
    output *first;
} outputs;

static leat_err outputs_create(leat_ctx *ctx, void **object)
{
    outputs *all = leati_calloc(leat_ctx_allocator(ctx), 1, sizeof *all);
    if (!all)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory for an output");
    all->allocator = leat_ctx_allocator(ctx);
    pthread_mutex_init(&all->lock, NULL);
    *object = all;
    return LEAT_OK;
}

static void free_output(const outputs *all, output *o)
{
    leati_file_target_destroy(&o->target);
    leati_free(all->allocator, o);
}

static void outputs_destroy(void *object)
{
    outputs *all = object;
    for (output *o; (o = all->first) != NULL;) {
        all->first = o->next;
        free_output(all, o);
    }
    pthread_mutex_destroy(&all->lock);
    leati_free(all->allocator, all);
}

// --- the end of the job ---

// Begins a message as those of subtasks begin, and returns its size so far.
static size_t begin_why(const output *o, char *why, size_t why_size)
{
    int used = snprintf(why, why_size, "%s (end of the job): ", o->name);
    return used > 0 && (size_t)used < why_size ? (size_t)used : 0;
}

static leat_err on_output(const output *o,
                          leat_err (*step)(leati_file_target *target, char *why, size_t why_size),
                          char *why, size_t why_size)
{
    size_t used = begin_why(o, why, why_size);
    return step(o->target, why + used, why_size - used);
}

// Adds to a message which outputs have their names already, as far as there is room.
static void add_placed(const outputs *all, char *why, size_t why_size)
{
    const char *before = "; in place already: ";
    for (const output *o = all->first; o; o = o->next) {
        size_t used = strlen(why);
        if (!o->placed)
            continue;
        snprintf(why + used, why_size - used, "%s%s", before, leati_file_target_path(o->target));
        before = ", ";
    }
}

static leat_err finish_placed(outputs *all, char *why, size_t why_size)
{
    char unheard[WHY_SIZE] = "";
    leat_err first = LEAT_OK;
    for (output *o = all->first; o; o = o->next) {
        if (!o->placed)
            continue;
        leat_err err = on_output(o, leati_file_target_finish, first ? unheard : why,
                                 first ? sizeof unheard : why_size);
        first = first ? first : err;
    }
    return first;
}

static leat_err outputs_commit(void *object, char *why, size_t why_size)
{
    outputs *all = object;
    char unheard[WHY_SIZE] = "";
    leat_err err = LEAT_OK;
    for (output *o = all->first; o && !err; o = o->next)
        err = on_output(o, leati_file_target_prepare, why, why_size);
    if (err)
        return err;
    for (output *o = all->first; o && !err; o = o->next) {
        err = on_output(o, leati_file_target_commit, why, why_size);
        o->placed = !err;
    }
    if (!err)
        return finish_placed(all, why, why_size);
    add_placed(all, why, why_size);
    (void)finish_placed(all, unheard, sizeof unheard);
    return err;
}

// --- opening ---

static output *find(const outputs *all, const void *key)
{
    output *o = all->first;
    while (o && o->key != key)
        o = o->next;
    return o;
}

// No two outputs may be the same file.
static leat_err check_alone(const outputs *all, const output *made, char *why, size_t why_size)
{
    for (const output *o = all->first; o; o = o->next)
        if (leati_file_target_same(o->target, made->target)) {
            snprintf(why, why_size,
                     "%s is also what \"%s\" (operator %" PRIu32
                     ") writes, as %s: no two sinks of a "
                     "job can write one output",
                     leati_file_target_path(made->target), o->name, o->operator_id,
                     leati_file_target_path(o->target));
            return LEAT_EINVAL;
        }
    return LEAT_OK;
}

static void insert(outputs *all, output *made)
{
    output **at = &all->first;
    while (*at && (*at)->operator_id < made->operator_id)
        at = &(*at)->next;
    made->next = *at;
    *at = made;
}

// Under the lock.
static leat_err add(outputs *all, output **found, const leati_file_target_options *options,
                    char *why, size_t why_size)
{
    output *made = leati_calloc(all->allocator, 1, sizeof *made);
    snprintf(why, why_size, "no memory for an output");
    if (!made)
        return LEAT_ENOMEM;
    leat_err err = leati_file_target_create(all->allocator, options, &made->target, why, why_size);
    if (!err)
        err = check_alone(all, made, why, why_size);
    if (err) {
        free_output(all, made);
        return err;
    }
    *found = made;
    return LEAT_OK;
}

leat_err leati_file_outputs_open(leat_ctx *ctx, const void *key, uint32_t operator_id,
                                 const leati_file_target_options *options,
                                 leati_file_target **target)
{
    // Its address is the key that all file sinks know.
    static const leati_shared_ops shared = {
        .create = outputs_create, .destroy = outputs_destroy, .commit = outputs_commit};
    void *object;
    leat_err err = leati_ctx_shared_by(ctx, &shared, &shared, &object);
    if (err)
        return err;
    outputs *all = object;
    char why[WHY_SIZE];
    pthread_mutex_lock(&all->lock);
    output *o = find(all, key);
    if (!o) {
        err = add(all, &o, options, why, sizeof why);
        if (!err) {
            o->key = key;
            o->name = leat_ctx_name(ctx);
            o->operator_id = operator_id;
            insert(all, o);
        }
    }
    pthread_mutex_unlock(&all->lock);
    if (err)
        return leati_ctx_error(ctx, err, "%s", why);
    *target = o->target;
    return LEAT_OK;
}
