// SPDX-License-Identifier: Apache-2.0
// Accumulators merged over the subtasks and operators of a job.
#include <string.h>

#include "base/alloc.h"
#include "runtime/accumulators_impl.h"
#include "runtime/execution.h"
#include "runtime/histogram.h"
#include "runtime/metrics.h"

// --- merging ---

typedef struct merging {
    leat_accumulators *into;
    leat_err err;
} merging;

// Names of different kinds stand apart; the job is failing then.
leati_merged *leati_accumulators_find(leat_accumulators *all, const char *name,
                                      leat_accumulator_kind kind)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].value.kind == kind && !strcmp(all->items[i].value.name, name))
            return &all->items[i];
    if (!leati_grow(&all->allocator, (void **)&all->items, &all->capacity, all->count + 1,
                    sizeof *all->items))
        return NULL;
    leati_merged m = {.value = {.name = leati_arena_strdup(&all->arena, name), .kind = kind}};
    if (!m.value.name)
        return NULL;
    if (kind == LEAT_ACCUMULATOR_HISTOGRAM) {
        m.histogram = leati_arena_alloc(&all->arena, sizeof *m.histogram);
        if (!m.histogram)
            return NULL;
        m.value.histogram = m.histogram;
    }
    all->items[all->count] = m;
    return &all->items[all->count++];
}

leat_err leati_accumulators_add_item(leat_accumulators *all, leati_merged *m, const char *item,
                                     size_t *size)
{
    bool is_text = m->value.kind == LEAT_ACCUMULATOR_LIST_STR;
    size_t item_size = is_text ? sizeof(leat_str) : sizeof(int64_t);
    if (!leati_grow(&all->allocator, &m->list, &m->list_capacity, m->value.count + 1, item_size))
        return LEAT_ENOMEM;
    if (is_text) {
        uint64_t text_size;
        memcpy(&text_size, item, sizeof text_size);
        char *copy = leati_arena_strndup(&all->arena, item + sizeof text_size, text_size);
        if (!copy)
            return LEAT_ENOMEM;
        ((leat_str *)m->list)[m->value.count] = (leat_str){.data = copy, .size = text_size};
        *size = sizeof text_size + text_size;
    } else {
        memcpy((char *)m->list + m->value.count * item_size, item, item_size);
        *size = item_size;
    }
    m->value.count++;
    return LEAT_OK;
}

static leat_err merge_list(leat_accumulators *all, leati_merged *m, const leat_accumulator *a)
{
    leati_list_chunk *chunk = atomic_load_explicit(&a->first, memory_order_acquire);
    for (; chunk; chunk = atomic_load_explicit(&chunk->next, memory_order_acquire)) {
        size_t used = atomic_load_explicit(&chunk->used, memory_order_acquire), size;
        for (size_t at = 0; at < used; at += size) {
            leat_err err = leati_accumulators_add_item(all, m, chunk->data + at, &size);
            if (err)
                return err;
        }
    }
    return LEAT_OK;
}

void leati_merge_i64(leati_merged *m, int64_t value)
{
    if (m->value.kind == LEAT_ACCUMULATOR_SUM_I64)
        m->sum += value;
    else if (m->value.count == 0 ||
             leati_accumulator_better_i64(m->value.kind, value, m->value.i64))
        m->value.i64 = value;
}

void leati_merge_f64(leati_merged *m, double value)
{
    if (m->value.kind == LEAT_ACCUMULATOR_SUM_F64 || m->value.kind == LEAT_ACCUMULATOR_AVERAGE)
        m->value.f64 += value;
    else if (m->value.count == 0 ||
             leati_accumulator_better_f64(m->value.kind, value, m->value.f64))
        m->value.f64 = value;
}

bool leati_accumulator_is_list(leat_accumulator_kind kind)
{
    return kind == LEAT_ACCUMULATOR_LIST_I64 || kind == LEAT_ACCUMULATOR_LIST_F64 ||
           kind == LEAT_ACCUMULATOR_LIST_STR;
}

bool leati_accumulator_is_i64(leat_accumulator_kind kind)
{
    return kind == LEAT_ACCUMULATOR_SUM_I64 || kind == LEAT_ACCUMULATOR_MIN_I64 ||
           kind == LEAT_ACCUMULATOR_MAX_I64;
}

static leat_err merge(leat_accumulators *all, leati_merged *m, const leat_accumulator *a)
{
    // Acquire pairs with the release of whoever counts.
    uint64_t count = atomic_load_explicit(&a->count, memory_order_acquire);
    if (count == 0)
        return LEAT_OK;
    if (leati_accumulator_is_list(a->kind))
        return merge_list(all, m, a);
    if (a->kind == LEAT_ACCUMULATOR_HISTOGRAM) {
        leati_histogram_merge(m->histogram, a->histogram);
        m->value.count = leat_histogram_count(m->histogram);
        return LEAT_OK;
    }
    if (leati_accumulator_is_i64(a->kind))
        leati_merge_i64(m, atomic_load_explicit(&a->i64, memory_order_relaxed));
    else
        leati_merge_f64(m, atomic_load_explicit(&a->f64, memory_order_relaxed));
    m->value.count += count;
    return LEAT_OK;
}

static void merge_one(void *user, const leat_ctx *ctx, const leati_metric *metric)
{
    merging *to = user;
    if (!metric->is_accumulator || to->err)
        return;
    const leat_accumulator *a = metric->object;
    leati_merged *m = leati_accumulators_find(to->into, a->name, a->kind);
    to->err = m ? merge(to->into, m, a) : LEAT_ENOMEM;
}

static void complete(leati_merged *m)
{
    leat_accumulator_value *value = &m->value;
    switch (value->kind) {
    case LEAT_ACCUMULATOR_SUM_I64:
        value->overflow = m->sum > INT64_MAX || m->sum < INT64_MIN;
        value->i64 = m->sum > INT64_MAX   ? INT64_MAX
                     : m->sum < INT64_MIN ? INT64_MIN
                                          : (int64_t)m->sum;
        break;
    case LEAT_ACCUMULATOR_AVERAGE:
        if (value->count)
            value->f64 /= (double)value->count;
        break;
    case LEAT_ACCUMULATOR_LIST_I64:
        value->i64s = m->list;
        break;
    case LEAT_ACCUMULATOR_LIST_F64:
        value->f64s = m->list;
        break;
    case LEAT_ACCUMULATOR_LIST_STR:
        value->strs = m->list;
        break;
    default:
        break;
    }
}

void leati_accumulators_complete(leat_accumulators *all)
{
    for (size_t i = 0; i < all->count; i++)
        complete(&all->items[i]);
}

// --- the public face ---

leat_err leati_accumulators_create(const leat_allocator *allocator, leat_accumulators **out)
{
    leat_accumulators *all = leati_calloc(allocator, 1, sizeof *all);
    if (!all)
        return LEAT_ENOMEM;
    // The runtime, and its copy of the allocator, may end first.
    all->allocator = *allocator;
    leati_arena_init(&all->arena, &all->allocator);
    *out = all;
    return LEAT_OK;
}

leat_err leat_job_accumulators(const leat_job *job, leat_accumulators **accumulators)
{
    leat_accumulators *all;
    leat_err err = leati_accumulators_create(job->allocator, &all);
    if (err)
        return err;
    merging to = {.into = all};
    leati_metrics_each(job, merge_one, &to);
    if (to.err) {
        leat_accumulators_destroy(&all);
        return to.err;
    }
    leati_accumulators_complete(all);
    *accumulators = all;
    return LEAT_OK;
}

void leat_accumulators_destroy(leat_accumulators **accumulators)
{
    leat_accumulators *all = *accumulators;
    if (!all)
        return;
    for (size_t i = 0; i < all->count; i++)
        leati_free(&all->allocator, all->items[i].list);
    leati_free(&all->allocator, all->items);
    leati_arena_fini(&all->arena);
    leat_allocator allocator = all->allocator;
    leati_free(&allocator, all);
    *accumulators = NULL;
}

uint32_t leat_accumulators_count(const leat_accumulators *accumulators)
{
    return (uint32_t)accumulators->count;
}

bool leat_accumulators_get(const leat_accumulators *accumulators, uint32_t index,
                           leat_accumulator_value *value)
{
    if (index >= accumulators->count)
        return false;
    *value = accumulators->items[index].value;
    return true;
}

bool leat_accumulators_find(const leat_accumulators *accumulators, const char *name,
                            leat_accumulator_value *value)
{
    for (uint32_t i = 0; i < accumulators->count; i++)
        if (strcmp(accumulators->items[i].value.name, name) == 0)
            return leat_accumulators_get(accumulators, i, value);
    return false;
}

const char *leat_accumulator_kind_name(leat_accumulator_kind kind)
{
    static const char *const names[] = {"sum",     "sum",     "average", "minimum",
                                        "maximum", "minimum", "maximum", "histogram",
                                        "list",    "list",    "list"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "?";
}
