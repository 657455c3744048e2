// SPDX-License-Identifier: Apache-2.0
// Metrics and accumulators: what user functions count.
//
// Metrics (counters, gauges, meters, histograms) show how a job is doing while it runs; each
// belongs to one subtask of one operator. Accumulators are a result of the job: those of the same
// name are merged over all subtasks and operators.
//
// Both are made from a context, in the open hook best. Asking again for the same name in the same
// subtask gives the same object; asking for the same name as another kind fails the job. Metrics
// and accumulators have names of their own. A name is 1 to 255 bytes long, and an operator has at
// most 1000 of both together in each subtask. When one cannot be made, the job fails with the
// operator and the name, and NULL is returned; everything below takes that NULL and does nothing.
//
// Threads. An object is updated by one thread at a time: that which runs the user function, or that
// of a blocking source's `run`. Updates take no lock and tell nobody. Any thread may read at any
// time, until the job is destroyed; what it reads of one object (count and sum, say) need not be of
// the same moment while the job runs.
#ifndef LEAT_METRICS_H
#define LEAT_METRICS_H

#include "leat/execute.h"
#include "leat/function.h"

LEAT_BEGIN_DECLS

// --- counters, gauges, meters, histograms: updating ---

// The body is public only so that leat_counter_add can be inlined.
typedef struct leat_counter {
    int64_t value; // atomic
} leat_counter;
typedef struct leat_gauge leat_gauge;
typedef struct leat_meter leat_meter;
typedef struct leat_histogram leat_histogram;

// Makes or finds the metric of that name; the job owns it. NULL when it cannot be had, see above. A
// counter starts at 0 and a gauge at 0.0.
LEAT_API leat_counter *leat_ctx_counter(const leat_ctx *ctx, const char *name);
LEAT_API leat_gauge *leat_ctx_gauge(const leat_ctx *ctx, const char *name);
LEAT_API leat_meter *leat_ctx_meter(const leat_ctx *ctx, const char *name);
LEAT_API leat_histogram *leat_ctx_histogram(const leat_ctx *ctx, const char *name);

// Adds `n`, which may be negative; wraps around at 64 bits.
static inline void leat_counter_add(leat_counter *counter, int64_t n)
{
    if (LEAT_UNLIKELY(!counter))
        return;
    // One thread writes, so this needs no locked instruction.
    int64_t before = __atomic_load_n(&counter->value, __ATOMIC_RELAXED);
    __atomic_store_n(&counter->value, (int64_t)((uint64_t)before + (uint64_t)n), __ATOMIC_RELAXED);
}

// What is measured has this value now.
LEAT_API void leat_gauge_set(leat_gauge *gauge, double value);
// `n` events have happened now.
LEAT_API void leat_meter_mark(leat_meter *meter, uint64_t n);
// Takes one value, of any unit.
LEAT_API void leat_histogram_record(leat_histogram *histogram, int64_t value);

// --- reading histograms ---

// How many values there are, the smallest, the largest (exactly) and the mean. All 0 when there is
// none, and for NULL.
LEAT_API uint64_t leat_histogram_count(const leat_histogram *histogram);
LEAT_API int64_t leat_histogram_min(const leat_histogram *histogram);
LEAT_API int64_t leat_histogram_max(const leat_histogram *histogram);
LEAT_API double leat_histogram_mean(const leat_histogram *histogram);
// The value at rank ⌈percent / 100 · count⌉ of the sorted values (percent 0 … 100; rank 1 at
// least). Exact at the first and the last rank and for values from -64 to 63; otherwise at most
// 1/64 of the value (1.6 %) off. 0 when there is none.
LEAT_API int64_t leat_histogram_percentile(const leat_histogram *histogram, double percent);

// --- reading the metrics of a job ---

typedef enum leat_metric_kind {
    LEAT_METRIC_COUNTER = 0,
    LEAT_METRIC_GAUGE = 1,
    LEAT_METRIC_METER = 2,
    LEAT_METRIC_HISTOGRAM = 3,
} leat_metric_kind;

// Borrowed from the job.
typedef struct leat_metric {
    const char *op_name;  // the operator's
    uint32_t op_id;       // tells operators of the same name apart
    uint32_t subtask;     // from 0
    uint32_t parallelism; // of the operator
    const char *name;
    bool built_in; // the runtime's own: "rejected", see leat_job_each_metric
    leat_metric_kind kind;
    int64_t count; // of a counter; the events of a meter; the values of a histogram
    double value;  // of a gauge; events a second of a meter
    const leat_histogram *histogram; // or NULL; goes on changing while the job runs
} leat_metric;

// Calls `fn` for each metric that user functions have made so far, ordered by operator, subtask and
// time of making. The rate of a meter is that of the last minute, or of the meter's life where that
// is shorter (but taken for a second at least). After these comes, for each subtask whose operator
// has rejected records (leat_on_error), the built-in counter "rejected". Any thread; nothing is
// locked.
LEAT_API void leat_job_each_metric(const leat_job *job,
                                   void (*fn)(void *user, const leat_metric *metric), void *user);
// Looks up one by the operator's name; false when there is none. Of several operators of that name
// the first that has the metric counts.
LEAT_API bool leat_job_find_metric(const leat_job *job, const char *op_name, uint32_t subtask,
                                   const char *name, leat_metric *metric);

// --- accumulators: updating ---

// LIST_* keep every value, in the order of adding; of one subtask at most LEAT_ACCUMULATOR_LIST_MAX
// bytes, where each value counts 8 and a text its bytes as well.
typedef enum leat_accumulator_kind {
    LEAT_ACCUMULATOR_SUM_I64 = 0,
    LEAT_ACCUMULATOR_SUM_F64 = 1,
    LEAT_ACCUMULATOR_AVERAGE = 2, // in f64
    LEAT_ACCUMULATOR_MIN_I64 = 3,
    LEAT_ACCUMULATOR_MAX_I64 = 4,
    LEAT_ACCUMULATOR_MIN_F64 = 5, // NaN is above all numbers, as wherever Leat compares
    LEAT_ACCUMULATOR_MAX_F64 = 6,
    LEAT_ACCUMULATOR_HISTOGRAM = 7, // of i64
    LEAT_ACCUMULATOR_LIST_I64 = 8,
    LEAT_ACCUMULATOR_LIST_F64 = 9,
    LEAT_ACCUMULATOR_LIST_STR = 10,
} leat_accumulator_kind;

enum { LEAT_ACCUMULATOR_LIST_MAX = 16 << 20 };

typedef struct leat_accumulator leat_accumulator;

// Makes or finds the accumulator of that name; the job owns it. NULL when it cannot be had, also
// because another operator or subtask has the name for another kind.
LEAT_API leat_accumulator *leat_ctx_accumulator(const leat_ctx *ctx, const char *name,
                                                leat_accumulator_kind kind);
// Take one value. Those of f64 take i64 as well. A wrong type of value (LEAT_ETYPE), a sum that
// leaves 64 bits or a list that is full (LEAT_ETOOBIG), and LEAT_ENOMEM fail the job, so the result
// may be ignored; LEAT_EINVAL for NULL, for which the job has failed already. `text` is copied.
LEAT_API leat_err leat_accumulator_add_i64(leat_accumulator *accumulator, int64_t value);
LEAT_API leat_err leat_accumulator_add_f64(leat_accumulator *accumulator, double value);
LEAT_API leat_err leat_accumulator_add_str(leat_accumulator *accumulator, leat_str text);

// --- reading accumulators ---

// The merged accumulators of a job as they were at one moment. It outlives job and runtime.
typedef struct leat_accumulators leat_accumulators;

// Borrowed from the leat_accumulators.
typedef struct leat_accumulator_value {
    const char *name;
    leat_accumulator_kind kind;
    uint64_t count; // of values taken; minima, maxima and averages say nothing when it is 0
    int64_t i64;    // of SUM_I64, MIN_I64, MAX_I64
    double f64;     // of SUM_F64, AVERAGE, MIN_F64, MAX_F64
    bool overflow;  // the merged SUM_I64 does not fit; `i64` is the nearest that does
    const leat_histogram *histogram; // of HISTOGRAM
    const int64_t *i64s;             // of LIST_I64, `count` of them
    const double *f64s;              // of LIST_F64
    const leat_str *strs;            // of LIST_STR
} leat_accumulator_value;

// Merges what all subtasks have accumulated so far. Values of lists come by operator, subtask and
// order of adding. Once the job has ended this is its result; of a job that failed or was cancelled
// it is what had been counted up to then, by the last attempt alone. Any thread; LEAT_ENOMEM. The
// caller destroys it.
LEAT_API LEAT_MUST_USE leat_err leat_job_accumulators(const leat_job *job,
                                                      leat_accumulators **accumulators);
LEAT_API void leat_accumulators_destroy(leat_accumulators **accumulators);
// How many there are, and one of them, by operator and order of making. Any thread. False when
// `index` is too large or there is none of that name.
LEAT_API uint32_t leat_accumulators_count(const leat_accumulators *accumulators);
LEAT_API bool leat_accumulators_get(const leat_accumulators *accumulators, uint32_t index,
                                    leat_accumulator_value *value);
LEAT_API bool leat_accumulators_find(const leat_accumulators *accumulators, const char *name,
                                     leat_accumulator_value *value);
// "sum", "average", "list" and so on; static storage.
LEAT_API const char *leat_accumulator_kind_name(leat_accumulator_kind kind);

// leat_execute that also gives the accumulators of the job, if it finished (nothing is written
// otherwise). The caller destroys them.
LEAT_API LEAT_MUST_USE leat_err leat_execute_with_accumulators(leat_env *env,
                                                               leat_accumulators **accumulators);

LEAT_END_DECLS

#endif
