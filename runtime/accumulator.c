// SPDX-License-Identifier: Apache-2.0
// Accumulators as one subtask updates them.
#include <string.h>

#include "base/alloc.h"
#include "runtime/execution.h"
#include "runtime/histogram.h"
#include "runtime/metrics.h"

enum { CHUNK_BYTES = 4096, ITEM_BYTES = 8 };

// --- making ---

leat_accumulator *leat_ctx_accumulator(const leat_ctx *ctx, const char *name,
                                       leat_accumulator_kind kind)
{
    if ((unsigned)kind > LEAT_ACCUMULATOR_LIST_STR) {
        leati_metric_fail(ctx, LEAT_EINVAL, "accumulator \"%s\": there is no kind %d",
                          name ? name : "", (int)kind);
        return NULL;
    }
    bool histogram = kind == LEAT_ACCUMULATOR_HISTOGRAM;
    leati_metric_spec spec = {.is_accumulator = true,
                              .kind = (int)kind,
                              .size_bytes = sizeof(leat_accumulator) +
                                            (histogram ? sizeof(leat_histogram) : 0),
                              .prepare = leati_accumulator_prepare};
    return leati_metric_register(ctx, name, &spec);
}

void leati_accumulator_prepare(void *object, const leat_ctx *ctx, const leati_metric *metric)
{
    leat_accumulator *a = object;
    a->ctx = ctx;
    a->name = metric->name;
    a->kind = (leat_accumulator_kind)metric->kind;
    if (a->kind == LEAT_ACCUMULATOR_HISTOGRAM)
        a->histogram = (leat_histogram *)(a + 1);
}

void leati_accumulator_fini(leat_accumulator *a, const leat_allocator *allocator)
{
    leati_list_chunk *chunk = atomic_load_explicit(&a->first, memory_order_relaxed);
    while (chunk) {
        leati_list_chunk *next = atomic_load_explicit(&chunk->next, memory_order_relaxed);
        leati_free(allocator, chunk);
        chunk = next;
    }
}

// --- single values ---

static leat_err wrong_type(const leat_accumulator *a, const char *type)
{
    leati_metric_fail(a->ctx, LEAT_ETYPE, "accumulator \"%s\": %s %s takes no %s", a->name,
                      a->kind == LEAT_ACCUMULATOR_AVERAGE ? "an" : "a",
                      leat_accumulator_kind_name(a->kind), type);
    return LEAT_ETYPE;
}

static uint64_t count_of(const leat_accumulator *a)
{
    return atomic_load_explicit(&a->count, memory_order_relaxed);
}

// Release pairs with the acquire of readers: what has been counted is there.
static leat_err counted(leat_accumulator *a)
{
    atomic_store_explicit(&a->count, count_of(a) + 1, memory_order_release);
    return LEAT_OK;
}

static leat_err add_to_sum(leat_accumulator *a, int64_t value)
{
    int64_t sum;
    if (__builtin_add_overflow(atomic_load_explicit(&a->i64, memory_order_relaxed), value, &sum)) {
        leati_metric_fail(a->ctx, LEAT_ETOOBIG, "accumulator \"%s\": the sum leaves 64 bits",
                          a->name);
        return LEAT_ETOOBIG;
    }
    atomic_store_explicit(&a->i64, sum, memory_order_relaxed);
    return counted(a);
}

bool leati_accumulator_better_i64(leat_accumulator_kind kind, int64_t value, int64_t best)
{
    return kind == LEAT_ACCUMULATOR_MIN_I64 ? value < best : value > best;
}

bool leati_accumulator_better_f64(leat_accumulator_kind kind, double value, double best)
{
    // NaN is above all numbers, so it loses every minimum and wins every maximum.
    bool nan = value != value, best_nan = best != best;
    if (nan || best_nan)
        return kind == LEAT_ACCUMULATOR_MIN_F64 ? best_nan && !nan : nan && !best_nan;
    return kind == LEAT_ACCUMULATOR_MIN_F64 ? value < best : value > best;
}

static leat_err keep_i64(leat_accumulator *a, int64_t value)
{
    int64_t best = atomic_load_explicit(&a->i64, memory_order_relaxed);
    if (count_of(a) == 0 || leati_accumulator_better_i64(a->kind, value, best))
        atomic_store_explicit(&a->i64, value, memory_order_relaxed);
    return counted(a);
}

static leat_err keep_f64(leat_accumulator *a, double value)
{
    double best = atomic_load_explicit(&a->f64, memory_order_relaxed);
    if (count_of(a) == 0 || leati_accumulator_better_f64(a->kind, value, best))
        atomic_store_explicit(&a->f64, value, memory_order_relaxed);
    return counted(a);
}

// --- lists ---

static leat_err list_failed(const leat_accumulator *a, leat_err err)
{
    if (err == LEAT_ETOOBIG)
        leati_metric_fail(a->ctx, err, "accumulator \"%s\": a list of more than %d bytes", a->name,
                          LEAT_ACCUMULATOR_LIST_MAX);
    else
        leati_metric_fail(a->ctx, err, "accumulator \"%s\": %s", a->name, leat_err_message(err));
    return err;
}

// Room for `size` bytes in one piece, at the end; NULL when out of memory.
static leati_list_chunk *reserve(leat_accumulator *a, size_t size)
{
    leati_list_chunk *last = a->last;
    if (last && last->capacity - atomic_load_explicit(&last->used, memory_order_relaxed) >= size)
        return last;
    size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    leati_list_chunk *chunk = leati_alloc(a->ctx->task->allocator, sizeof *chunk + capacity);
    if (!chunk)
        return NULL;
    chunk->capacity = capacity;
    atomic_init(&chunk->next, NULL);
    atomic_init(&chunk->used, 0);
    // Release pairs with the acquire of readers: the chunk is ready to be read.
    atomic_store_explicit(last ? &last->next : &a->first, chunk, memory_order_release);
    a->last = chunk;
    return chunk;
}

// An item is eight bytes, the value itself or the size of a text, and the text.
static leat_err append(leat_accumulator *a, const void *item, leat_str text)
{
    size_t size = ITEM_BYTES + text.size;
    if (text.size > LEAT_ACCUMULATOR_LIST_MAX || size > LEAT_ACCUMULATOR_LIST_MAX - a->list_bytes)
        return list_failed(a, LEAT_ETOOBIG);
    leati_list_chunk *chunk = reserve(a, size);
    if (!chunk)
        return list_failed(a, LEAT_ENOMEM);
    size_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
    memcpy(chunk->data + used, item, ITEM_BYTES);
    if (text.size)
        memcpy(chunk->data + used + ITEM_BYTES, text.data, text.size);
    // Release pairs with the acquire of readers: the item is whole.
    atomic_store_explicit(&chunk->used, used + size, memory_order_release);
    a->list_bytes += size;
    return counted(a);
}

// --- adding ---

leat_err leat_accumulator_add_i64(leat_accumulator *a, int64_t value)
{
    if (!a)
        return LEAT_EINVAL;
    switch (a->kind) {
    case LEAT_ACCUMULATOR_SUM_I64:
        return add_to_sum(a, value);
    case LEAT_ACCUMULATOR_MIN_I64:
    case LEAT_ACCUMULATOR_MAX_I64:
        return keep_i64(a, value);
    case LEAT_ACCUMULATOR_HISTOGRAM:
        leat_histogram_record(a->histogram, value);
        return counted(a);
    case LEAT_ACCUMULATOR_LIST_I64:
        return append(a, &value, (leat_str){0});
    case LEAT_ACCUMULATOR_LIST_STR:
        return wrong_type(a, "i64");
    default:
        return leat_accumulator_add_f64(a, (double)value);
    }
}

leat_err leat_accumulator_add_f64(leat_accumulator *a, double value)
{
    if (!a)
        return LEAT_EINVAL;
    switch (a->kind) {
    case LEAT_ACCUMULATOR_SUM_F64:
    case LEAT_ACCUMULATOR_AVERAGE:
        atomic_store_explicit(&a->f64, atomic_load_explicit(&a->f64, memory_order_relaxed) + value,
                              memory_order_relaxed);
        return counted(a);
    case LEAT_ACCUMULATOR_MIN_F64:
    case LEAT_ACCUMULATOR_MAX_F64:
        return keep_f64(a, value);
    case LEAT_ACCUMULATOR_LIST_F64:
        return append(a, &value, (leat_str){0});
    default:
        return wrong_type(a, "f64");
    }
}

leat_err leat_accumulator_add_str(leat_accumulator *a, leat_str text)
{
    if (!a)
        return LEAT_EINVAL;
    if (a->kind != LEAT_ACCUMULATOR_LIST_STR)
        return wrong_type(a, "text");
    uint64_t size = text.size;
    return append(a, &size, text);
}
