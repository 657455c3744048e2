// SPDX-License-Identifier: Apache-2.0
// What a user function sees while it runs: its context, and the output it emits to.
//
// Everything here is called on the thread that runs the task, from inside a user function or an
// operator's hook, unless a function says otherwise. Records are const and borrowed for the call:
// what is handed to a user function, and what it hands to leat_collect, is valid until that call
// returns.
#ifndef LEAT_FUNCTION_H
#define LEAT_FUNCTION_H

#include "leat/alloc.h"
#include "leat/base.h"
#include "leat/error.h"
#include "leat/log.h"
#include "leat/type.h"

LEAT_BEGIN_DECLS

typedef struct leat_ctx leat_ctx;
typedef struct leat_operator leat_operator;
typedef struct leat_out leat_out;

typedef leat_err (*leat_element_fn)(leat_operator *self, const void *record, leat_out *out);
// Takes several records; `*count` becomes how many it has taken.
typedef leat_err (*leat_some_fn)(leat_operator *self, const void *records, uint32_t *count);

// Where an operator's records go: straight into the next operator of the chain, or into a record
// writer, which is an operator too. Public only so that leat_collect can be inlined.
struct leat_out {
    leat_element_fn element; // target->ops->element
    leat_operator *target;
    leat_out *next;       // the target's own output
    leat_ctx *from;       // of the operator whose main output this is, if it has side outputs
    const bool *stopping; // atomic, of the job: nothing more is to be emitted
    leat_some_fn some;    // of a target that takes several at once, or NULL
};

// Emits one record downstream. When it returns, the record has been processed by the rest of the
// chain and, where it left the task, encoded; the caller may reuse its memory. A result other than
// LEAT_OK means that the task is ending (it failed or was cancelled, and that is already recorded):
// return as soon as possible; emitting more is harmless. May block until a memory segment is free
// (back-pressure); cancelling ends the wait.
static inline leat_err leat_collect(leat_out *out, const void *record)
{
    if (LEAT_UNLIKELY(__atomic_load_n(out->stopping, __ATOMIC_RELAXED)))
        return LEAT_ECANCELLED;
    return out->element(out->target, record, out->next);
}

// The same with a timestamp of its own instead of that of the input record.
LEAT_API leat_err leat_collect_at(leat_ctx *ctx, leat_out *out, const void *record,
                                  int64_t timestamp);

// --- user functions ---
// All return 0 for success; anything else fails the task, best through `return leat_fail(ctx,
// "…")`.

// Fills `out`, a zeroed record of the output type. What it points to must live until the function's
// caller has emitted it: the input, static data, leat_ctx_scratch.
typedef int (*leat_map_fn)(leat_ctx *ctx, const void *in, void *out);
// Emits any number of records.
typedef int (*leat_flat_map_fn)(leat_ctx *ctx, const void *in, leat_out *out);
// 1 keeps the record, 0 drops it; a negative result fails the task.
typedef int (*leat_filter_fn)(leat_ctx *ctx, const void *in);
// Fills `key`, a zeroed record of the key type. Must be deterministic: it runs on both sides of the
// exchange.
typedef int (*leat_key_fn)(leat_ctx *ctx, const void *in, void *key);
// Chooses the consuming subtask, 0 … channels - 1, that a record goes to. Any other number fails
// the task.
typedef int64_t (*leat_partition_fn)(leat_ctx *ctx, const void *in, uint32_t channels);
// Folds `in` into `accumulator`, both of the stream's type; the first record of a key becomes the
// accumulator as it is. The function may store pointers into `in` (its strings, say): the runtime
// takes copies after the call.
typedef int (*leat_reduce_fn)(leat_ctx *ctx, void *accumulator, const void *in);
// Where a blocking source puts its records; see leat_blocking_source.
typedef struct leat_source_out leat_source_out;
// The functions of a blocking source. `run` is called once a subtask, on a thread of its own, and
// may block as it likes; it returns 0 at its end, or anything else for failure. It must return soon
// once an emit has failed or `cancel` was called. `cancel` (may be NULL) is called once, from
// another thread, when the job ends before `run` has, to get it out of whatever it waits in: the
// job cannot end before. `run` may return at that very moment, so what `cancel` uses must outlive
// it. Of the context, both may use the functions that are for any thread, and those that tell who
// and where.
typedef struct leat_blocking_source_fns {
    int (*run)(const leat_ctx *ctx, leat_source_out *out);
    void (*cancel)(const leat_ctx *ctx);
} leat_blocking_source_fns;
// Consumes a record.
typedef int (*leat_sink_fn)(leat_ctx *ctx, const void *in);
// The open and close of any operator's function (leat_rich).
typedef int (*leat_open_fn)(leat_ctx *ctx);
typedef int (*leat_close_fn)(leat_ctx *ctx);

// Names a side output and says what its records are. The name is not empty and has no blanks.
typedef struct leat_tag {
    const char *name;
    const leat_type *type;
} leat_tag;

// Emits a record to the side output that `tag` names, from inside any function of the operator; as
// leat_collect in all else. Where nobody reads that side output the record is dropped.
LEAT_API leat_err leat_collect_side(leat_ctx *ctx, const leat_tag *tag, const void *record);

// An aggregation with an accumulator of its own type. `create` may be NULL: the accumulator starts
// zeroed. `merge` folds `other` into `accumulator`; it may be NULL until something must merge
// (sessions, pre-aggregation). `result` may be NULL when the accumulator's type is the output type:
// the accumulator is then emitted as it is. As with reduce, stored pointers are made the runtime's
// own after each call.
typedef struct leat_aggregate_fns {
    int (*create)(leat_ctx *ctx, void *accumulator);
    int (*add)(leat_ctx *ctx, void *accumulator, const void *in);
    int (*merge)(leat_ctx *ctx, void *accumulator, const void *other);
    int (*result)(leat_ctx *ctx, const void *accumulator, void *out);
} leat_aggregate_fns;

// --- the context ---

// Records why the function cannot go on and returns -1, to be returned by the user function. The
// message (at most 1000 bytes are kept) is shown with job, operator and subtask. The first failure
// of a job wins.
LEAT_API int leat_fail(leat_ctx *ctx, const char *format, ...) LEAT_PRINTF(2, 3);

// The operator's name; the subtask's index from 0; how many subtasks there are; the attempt from 0.
LEAT_API const char *leat_ctx_name(const leat_ctx *ctx);
LEAT_API uint32_t leat_ctx_subtask(const leat_ctx *ctx);
LEAT_API uint32_t leat_ctx_parallelism(const leat_ctx *ctx);
LEAT_API uint32_t leat_ctx_max_parallelism(const leat_ctx *ctx);
LEAT_API uint32_t leat_ctx_attempt(const leat_ctx *ctx);
// What leat_user_data gave to this operator, or NULL. Shared by all its subtasks.
LEAT_API void *leat_ctx_user_data(const leat_ctx *ctx);
// The folder that relative paths of the job belong to: the one in which it was built, which on a
// cluster is that of `leat submit` and seldom the process's. Sources and sinks of the library go by
// it; functions that open files themselves put it in front. An absolute path, valid until the job
// ends. NULL when the process's folder is gone; the failure that says so is recorded.
LEAT_API const char *leat_ctx_folder(leat_ctx *ctx);
// A pointer of the function's own in this subtask, NULL at first: what `open` made and `close`
// frees.
LEAT_API void leat_ctx_set_local(leat_ctx *ctx, void *local);
LEAT_API void *leat_ctx_local(const leat_ctx *ctx);
// The types of what comes in (on the first input) and goes out; NULL where there is none (sources,
// sinks).
LEAT_API const leat_type *leat_ctx_in_type(const leat_ctx *ctx);
LEAT_API const leat_type *leat_ctx_out_type(const leat_ctx *ctx);
// The environment's allocator; never NULL. Any thread.
LEAT_API const leat_allocator *leat_ctx_allocator(const leat_ctx *ctx);
// Memory that is valid until the current record (of the task's input or source) has been processed;
// NULL when out of memory.
LEAT_API void *leat_ctx_scratch(leat_ctx *ctx, size_t size_bytes);
// The timestamp of the record being processed; false, and INT64_MIN, when it has none.
LEAT_API bool leat_ctx_timestamp(const leat_ctx *ctx, int64_t *timestamp);
// The operator's event time: the largest watermark that has reached it, or INT64_MIN.
LEAT_API int64_t leat_ctx_watermark(const leat_ctx *ctx);
// What the runtime's clock shows (leat_env_options.clock), in nanoseconds; by default since some
// moment before the program began. Any thread.
LEAT_API int64_t leat_ctx_now_ns(const leat_ctx *ctx);
// True once the job is being cancelled or has failed elsewhere: long computations should look now
// and then. Any thread.
LEAT_API bool leat_ctx_cancelled(const leat_ctx *ctx);
// Logs one line, prefixed with operator and subtask.
LEAT_API void leat_ctx_log(leat_ctx *ctx, leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);

// Of a blocking source's `run`, on its thread. Emits a copy of a record, with or without a
// timestamp; waits while the task is more than about 256 KiB behind. LEAT_ECANCELLED: the job is
// ending, return.
LEAT_API LEAT_MUST_USE leat_err leat_source_emit(leat_source_out *out, const void *record);
LEAT_API LEAT_MUST_USE leat_err leat_source_emit_at(leat_source_out *out, const void *record,
                                                    int64_t timestamp);
// The same thread: no record with a timestamp up to `watermark` will follow.
LEAT_API LEAT_MUST_USE leat_err leat_source_emit_watermark(leat_source_out *out, int64_t watermark);
// As leat_fail: records why the source cannot go on, and returns -1 to be returned by `run`.
LEAT_API int leat_source_fail(leat_source_out *out, const char *format, ...) LEAT_PRINTF(2, 3);

// Brackets a call that may block (a read, a lock, a sleep): the other tasks of this worker go on
// meanwhile on a spare thread. Between the two nothing may be emitted. Pairs do not nest.
LEAT_API void leat_blocking_begin(leat_ctx *ctx);
LEAT_API void leat_blocking_end(leat_ctx *ctx);

LEAT_END_DECLS

#endif
