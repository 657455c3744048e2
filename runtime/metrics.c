// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "runtime/execution.h"
#include "runtime/histogram.h"

enum { LINE = 64, SECOND_NS = 1000000000 };

// --- registering ---

void leati_metric_fail(const leat_ctx *ctx, leat_err err, const char *format, ...)
{
    char text[LEATI_FAILURE_TEXT];
    int length = snprintf(text, sizeof text, "%s (%u/%u): ", leat_ctx_name(ctx),
                          leat_ctx_subtask(ctx) + 1, leat_ctx_parallelism(ctx));
    if (length < 0 || (size_t)length >= sizeof text)
        length = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, sizeof text - (size_t)length, format, args);
    va_end(args);
    leati_job_fail(ctx->task->job, err, text, ctx->task);
}

static size_t in_lines(size_t size_bytes)
{
    return (size_bytes + LINE - 1) / LINE * LINE;
}

// Entries have cache lines of their own, since their subtasks run on different processors.
static leati_metric *make(const leat_ctx *ctx, const char *name, const leati_metric_spec *spec)
{
    size_t name_size = strlen(name) + 1, head = in_lines(sizeof(leati_metric));
    size_t size = in_lines(head + spec->size_bytes + name_size);
    char *block = leati_alloc_aligned(ctx->task->allocator, LINE, size);
    if (!block)
        return NULL;
    memset(block, 0, size);
    char *own_name = block + head + spec->size_bytes;
    memcpy(own_name, name, name_size);
    leati_metric *metric = (leati_metric *)block;
    metric->is_accumulator = spec->is_accumulator;
    metric->kind = spec->kind;
    metric->object = block + head;
    metric->name = own_name;
    if (spec->prepare)
        spec->prepare(metric->object, ctx, metric);
    return metric;
}

// The entry of that name; made and appended when there is none. NULL with `*err`.
static leati_metric *find_or_append(const leat_ctx *ctx, const char *name,
                                    const leati_metric_spec *spec, bool *appended, leat_err *err)
{
    leati_metric *made = NULL;
    uint32_t count = 0;
    // A context is const for those who may not emit with it; what is registered is not part of
    // that.
    _Atomic(leati_metric *) *link = &((leat_ctx *)ctx)->metrics;
    for (;;) {
        // In one order with the other subtasks' appends: see find_conflict.
        leati_metric *at = atomic_load_explicit(link, memory_order_seq_cst);
        if (!at && count == LEATI_METRICS_MAX) {
            *err = LEAT_ETOOBIG;
            break;
        }
        if (!at) {
            made = made ? made : make(ctx, name, spec);
            if (!made) {
                *err = LEAT_ENOMEM;
                break;
            }
            // Release: readers that acquire the link find the entry complete.
            if (atomic_compare_exchange_strong_explicit(link, &at, made, memory_order_seq_cst,
                                                        memory_order_seq_cst)) {
                *appended = true;
                return made;
            }
        }
        if (at->is_accumulator == spec->is_accumulator && strcmp(at->name, name) == 0) {
            leati_free_aligned(ctx->task->allocator, made);
            return at;
        }
        count++;
        link = &at->next;
    }
    leati_free_aligned(ctx->task->allocator, made);
    return NULL;
}

typedef struct conflict {
    const char *name;
    int kind;
    const leat_ctx *with;
} conflict;

static void find_conflict(void *user, const leat_ctx *ctx, const leati_metric *metric)
{
    conflict *c = user;
    if (metric->is_accumulator && metric->kind != c->kind && strcmp(metric->name, c->name) == 0)
        c->with = ctx;
}

void *leati_metric_register(const leat_ctx *ctx, const char *name, const leati_metric_spec *spec)
{
    const char *what = spec->is_accumulator ? "accumulator" : "metric";
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > LEATI_METRIC_NAME_MAX) {
        leati_metric_fail(ctx, LEAT_EINVAL, "the name of a%s %s must have 1 to %d bytes",
                          spec->is_accumulator ? "n" : "", what, LEATI_METRIC_NAME_MAX);
        return NULL;
    }
    leat_err err = LEAT_OK;
    bool appended = false;
    leati_metric *metric = find_or_append(ctx, name, spec, &appended, &err);
    if (err == LEAT_ETOOBIG)
        leati_metric_fail(ctx, err,
                          "%s \"%s\": an operator has at most %d metrics and accumulators", what,
                          name, LEATI_METRICS_MAX);
    else if (err)
        leati_metric_fail(ctx, err, "%s \"%s\": %s", what, name, leat_err_message(err));
    if (!metric)
        return NULL;
    conflict found = {.name = name, .kind = spec->kind};
    if (metric->kind != spec->kind)
        found.with = ctx;
    else if (appended && spec->is_accumulator)
        // Of two that register at the same time, at least the later one sees the other.
        leati_metrics_each(ctx->task->job, find_conflict, &found);
    if (found.with) {
        leati_metric_fail(ctx, LEAT_EEXIST, "%s \"%s\" is of another kind in \"%s\"", what, name,
                          leat_ctx_name(found.with));
        return NULL;
    }
    return metric->object;
}

static void each_context(const leat_job *job, void (*fn)(void *user, const leat_ctx *ctx),
                         void *user)
{
    for (uint32_t v = 0; v < job->graph->vertex_count; v++) {
        const leati_vertex *vertex = &job->graph->vertices[v];
        for (uint32_t op = 0; op < vertex->op_count; op++)
            for (uint32_t t = job->first_task[v]; t < job->first_task[v + 1]; t++)
                fn(user, &job->tasks[t].chain.ctx[op]);
    }
}

typedef struct walk {
    leati_metric_fn fn;
    void *user;
} walk;

static void walk_list(void *user, const leat_ctx *ctx)
{
    const walk *w = user;
    leati_metric *at = atomic_load_explicit(&ctx->metrics, memory_order_seq_cst);
    for (; at; at = atomic_load_explicit(&at->next, memory_order_seq_cst))
        w->fn(w->user, ctx, at);
}

void leati_metrics_each(const leat_job *job, leati_metric_fn fn, void *user)
{
    each_context(job, walk_list, &(walk){fn, user});
}

static void free_list(leat_ctx *ctx, const leat_allocator *allocator)
{
    leati_metric *at = atomic_load_explicit(&ctx->metrics, memory_order_acquire);
    atomic_store_explicit(&ctx->metrics, NULL, memory_order_relaxed);
    while (at) {
        leati_metric *next = atomic_load_explicit(&at->next, memory_order_relaxed);
        if (at->is_accumulator)
            leati_accumulator_fini(at->object, allocator);
        leati_free_aligned(allocator, at);
        at = next;
    }
}

void leati_metrics_free(leat_job *job)
{
    for (uint32_t i = 0; job->tasks && i < job->task_count; i++) {
        leati_chain *chain = &job->tasks[i].chain;
        for (uint32_t op = 0; chain->ctx && op < chain->count; op++)
            free_list(&chain->ctx[op], job->tasks[i].allocator);
    }
}

// --- the metrics of users ---

static void *metric(const leat_ctx *ctx, const char *name, leat_metric_kind kind, size_t size_bytes,
                    void (*prepare)(void *, const leat_ctx *, const leati_metric *))
{
    leati_metric_spec spec = {.kind = (int)kind, .size_bytes = size_bytes, .prepare = prepare};
    return leati_metric_register(ctx, name, &spec);
}

static void start_meter(void *object, const leat_ctx *ctx, const leati_metric *m)
{
    const leati_service *service = ctx->task->job->runtime->service;
    leat_meter *meter = object;
    meter->start_ns = leati_service_now_ns(service);
    meter->hooked = leati_service_has_own_clock(service) ? service : NULL;
}

leat_counter *leat_ctx_counter(const leat_ctx *ctx, const char *name)
{
    return metric(ctx, name, LEAT_METRIC_COUNTER, sizeof(leat_counter), NULL);
}

leat_gauge *leat_ctx_gauge(const leat_ctx *ctx, const char *name)
{
    return metric(ctx, name, LEAT_METRIC_GAUGE, sizeof(leat_gauge), NULL);
}

leat_meter *leat_ctx_meter(const leat_ctx *ctx, const char *name)
{
    return metric(ctx, name, LEAT_METRIC_METER, sizeof(leat_meter), start_meter);
}

leat_histogram *leat_ctx_histogram(const leat_ctx *ctx, const char *name)
{
    return metric(ctx, name, LEAT_METRIC_HISTOGRAM, sizeof(leat_histogram), NULL);
}

void leat_gauge_set(leat_gauge *gauge, double value)
{
    if (gauge)
        atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

// --- meters ---

void leati_meter_mark_at(leat_meter *meter, uint64_t n, int64_t now_ns)
{
    int64_t second = now_ns / SECOND_NS;
    uint32_t slot = (uint32_t)(second % LEATI_METER_SLOTS);
    _Atomic uint64_t *marks = &meter->slots[slot].marks;
    if (atomic_load_explicit(&meter->slots[slot].second, memory_order_relaxed) != second) {
        // A reader that still sees the old second ignores the slot: it is out of the window.
        atomic_store_explicit(marks, 0, memory_order_relaxed);
        // Release pairs with the acquire in leati_meter_rate_at: the marks are this second's.
        atomic_store_explicit(&meter->slots[slot].second, second, memory_order_release);
    }
    atomic_store_explicit(marks, atomic_load_explicit(marks, memory_order_relaxed) + n,
                          memory_order_relaxed);
    atomic_store_explicit(&meter->count,
                          atomic_load_explicit(&meter->count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

double leati_meter_rate_at(const leat_meter *meter, int64_t now_ns)
{
    int64_t first = now_ns / SECOND_NS - LEATI_METER_WINDOW_S + 1, from_ns = first * SECOND_NS;
    uint64_t marks = 0;
    for (uint32_t i = 0; i < LEATI_METER_SLOTS; i++)
        if (atomic_load_explicit(&meter->slots[i].second, memory_order_acquire) >= first)
            marks += atomic_load_explicit(&meter->slots[i].marks, memory_order_relaxed);
    int64_t elapsed_ns = now_ns - (from_ns > meter->start_ns ? from_ns : meter->start_ns);
    return (double)marks * SECOND_NS / (double)(elapsed_ns > SECOND_NS ? elapsed_ns : SECOND_NS);
}

void leat_meter_mark(leat_meter *meter, uint64_t n)
{
    if (!meter)
        return;
    if (meter->hooked) {
        leati_meter_mark_at(meter, n, leati_service_now_ns(meter->hooked));
        return;
    }
    // The coarse clock is a few ms behind, and an order cheaper.
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    leati_meter_mark_at(meter, n, (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec);
}

// --- reading ---

typedef struct visit {
    const leat_job *job;
    int64_t now_ns;
    void (*fn)(void *user, const leat_metric *metric);
    void *user;
} visit;

static leat_metric describe(const leat_ctx *ctx, const char *name, leat_metric_kind kind)
{
    return (leat_metric){.op_name = ctx->node->name,
                         .op_id = ctx->node->id,
                         .subtask = ctx->task->subtask,
                         .parallelism = ctx->task->vertex->parallelism,
                         .name = name,
                         .kind = kind};
}

static void show(void *user, const leat_ctx *ctx, const leati_metric *m)
{
    const visit *v = user;
    if (m->is_accumulator)
        return;
    leat_metric shown = describe(ctx, m->name, (leat_metric_kind)m->kind);
    switch (shown.kind) {
    case LEAT_METRIC_COUNTER:
        shown.count = __atomic_load_n(&((leat_counter *)m->object)->value, __ATOMIC_RELAXED);
        break;
    case LEAT_METRIC_GAUGE:
        shown.value = atomic_load_explicit(&((leat_gauge *)m->object)->value, memory_order_relaxed);
        break;
    case LEAT_METRIC_METER:
        shown.count =
            (int64_t)atomic_load_explicit(&((leat_meter *)m->object)->count, memory_order_relaxed);
        shown.value = leati_meter_rate_at(m->object, v->now_ns);
        break;
    case LEAT_METRIC_HISTOGRAM:
        shown.histogram = m->object;
        shown.count = (int64_t)leat_histogram_count(shown.histogram);
        break;
    }
    v->fn(v->user, &shown);
}

static void show_rejected(void *user, const leat_ctx *ctx)
{
    const visit *v = user;
    leat_metric shown = describe(ctx, "rejected", LEAT_METRIC_COUNTER);
    shown.built_in = true;
    shown.count = (int64_t)atomic_load_explicit(&ctx->rejected, memory_order_relaxed);
    if (shown.count)
        v->fn(v->user, &shown);
}

void leat_job_each_metric(const leat_job *job, void (*fn)(void *user, const leat_metric *metric),
                          void *user)
{
    visit v = {.now_ns = leati_service_now_ns(job->runtime->service), .fn = fn, .user = user};
    leati_metrics_each(job, show, &v);
    each_context(job, show_rejected, &v);
}

typedef struct lookup {
    const char *op_name, *name;
    uint32_t subtask;
    bool found;
    leat_metric metric;
} lookup;

static void look(void *user, const leat_metric *m)
{
    lookup *l = user;
    if (l->found || m->subtask != l->subtask || strcmp(m->op_name, l->op_name) != 0 ||
        strcmp(m->name, l->name) != 0)
        return;
    l->found = true;
    l->metric = *m;
}

bool leat_job_find_metric(const leat_job *job, const char *op_name, uint32_t subtask,
                          const char *name, leat_metric *found)
{
    lookup l = {.op_name = op_name, .name = name, .subtask = subtask};
    leat_job_each_metric(job, look, &l);
    if (l.found)
        *found = l.metric;
    return l.found;
}
