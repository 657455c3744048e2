// SPDX-License-Identifier: Apache-2.0
// What user functions have registered: the list of each operator in each subtask.
//
// Threading. A list hangs off the operator's leat_ctx, which lives as long as the job. Whoever
// registers appends with a compare-and-swap, nothing is taken out before the job is freed, and so
// readers follow the list without a lock. The objects are written by one thread each.
//
// Life cycle. Registered at any time while the task runs; freed by leati_metrics_free, when the
// tasks have ended and nobody reads any more.
//
// Bounds. LEATI_METRICS_MAX entries a list; the size of each is fixed, but for the lists among the
// accumulators, which have a bound of their own.
#ifndef LEATI_RUNTIME_METRICS_H
#define LEATI_RUNTIME_METRICS_H

#include <stdatomic.h>

#include "leat/metrics.h"
#include "runtime/chain.h"

enum { LEATI_METRICS_MAX = 1000, LEATI_METRIC_NAME_MAX = 255 };

typedef struct leati_metric leati_metric;
struct leati_metric {
    // Atomic.
    _Atomic(leati_metric *) next;
    // Immutable.
    bool is_accumulator;
    int kind;     // a leat_metric_kind or a leat_accumulator_kind
    void *object; // in the same block, as is the name
    const char *name;
};

struct leat_gauge {
    _Atomic double value;
};

// Marks by the second in which they came, of the last LEATI_METER_SLOTS seconds that had any.
enum { LEATI_METER_WINDOW_S = 60, LEATI_METER_SLOTS = 64 };
struct leat_meter {
    // Immutable.
    int64_t start_ns;
    const leati_service *hooked; // whose clock it goes by; NULL: the system's
    // Atomic.
    _Atomic uint64_t count;
    struct {
        _Atomic int64_t second;
        _Atomic uint64_t marks;
    } slots[LEATI_METER_SLOTS];
};

// With the time given. A meter starts zeroed but for its start.
void leati_meter_mark_at(leat_meter *meter, uint64_t n, int64_t now_ns);
double leati_meter_rate_at(const leat_meter *meter, int64_t now_ns);

// Calls `fn` for each entry of a job, by vertex, operator, subtask and time of making.
typedef void (*leati_metric_fn)(void *user, const leat_ctx *ctx, const leati_metric *metric);
void leati_metrics_each(const leat_job *job, leati_metric_fn fn, void *user);
// Makes or finds an entry and returns its object, which `size` bytes and `prepare` make; NULL when
// that is refused, and the job has failed then.
typedef struct leati_metric_spec {
    bool is_accumulator;
    int kind;
    size_t size_bytes;
    void (*prepare)(void *object, const leat_ctx *ctx, const leati_metric *metric); // or NULL
} leati_metric_spec;
void *leati_metric_register(const leat_ctx *ctx, const char *name, const leati_metric_spec *spec);
// Fails the job on behalf of an operator, from any thread: "operator (1/2): …".
void leati_metric_fail(const leat_ctx *ctx, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);
// Frees all entries; those of tasks that were never prepared are none.
void leati_metrics_free(leat_job *job);

// --- accumulator.c ---

// One piece of a list: items one after another.
typedef struct leati_list_chunk leati_list_chunk;
struct leati_list_chunk {
    _Atomic(leati_list_chunk *) next;
    size_t capacity; // bytes
    _Atomic size_t used;
    char data[];
};

struct leat_accumulator {
    // Immutable.
    const leat_ctx *ctx;
    const char *name;
    leat_accumulator_kind kind;
    // Written by the task, read by anyone.
    _Atomic uint64_t count;
    _Atomic int64_t i64;
    _Atomic double f64;
    _Atomic(leati_list_chunk *) first;
    // Task.
    leati_list_chunk *last;
    size_t list_bytes;
    // Of HISTOGRAM, behind the accumulator in the same block; or NULL.
    leat_histogram *histogram;
};

void leati_accumulator_prepare(void *object, const leat_ctx *ctx, const leati_metric *metric);
void leati_accumulator_fini(leat_accumulator *accumulator, const leat_allocator *allocator);
// Whether `value` replaces `best` in a MIN_* or MAX_* accumulator.
bool leati_accumulator_better_i64(leat_accumulator_kind kind, int64_t value, int64_t best);
bool leati_accumulator_better_f64(leat_accumulator_kind kind, double value, double best);

#endif
