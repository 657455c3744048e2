// SPDX-License-Identifier: Apache-2.0
// What built-in operators may ask of the runtime beyond the public context.
#ifndef LEATI_RUNTIME_CONTEXT_H
#define LEATI_RUNTIME_CONTEXT_H

#include "base/config.h"
#include "graph/stream_graph.h"
#include "leat/function.h"
#include "leat/operator.h"

// Records an error of the operator and returns its code; like leat_fail with a code of one's own.
leat_err leati_ctx_error(leat_ctx *ctx, leat_err err, const char *format, ...) LEAT_PRINTF(3, 4);
// A user function returned `result` (not 0): records "<function> returned <result>" unless it said
// why itself. Returns LEAT_EUSER, or LEAT_ECANCELLED when the task is being cancelled.
leat_err leati_ctx_user_failure(leat_ctx *ctx, const char *function, int result);

// The same where the function rejects `record` of the operator's input: LEAT_OK when the operator's
// policy has taken care of it (leat/reject.h) and the next record is to follow.
LEAT_MUST_USE leat_err leati_ctx_reject(leat_ctx *ctx, const void *record, const char *function,
                                        int result);
// The same for a source whose function rejects what it was to make a record of.
LEAT_MUST_USE leat_err leati_ctx_reject_raw(leat_ctx *ctx, leat_str raw, const char *function,
                                            int result);

// How the operator's input is keyed, or NULL.
const leati_key_selector *leati_ctx_key(const leat_ctx *ctx);
// The type of one of its inputs.
const leat_type *leati_ctx_input_type(const leat_ctx *ctx, uint32_t input);
// The side outputs that somebody reads, for operators that choose among them by name.
uint32_t leati_ctx_side_count(const leat_ctx *ctx);
const char *leati_ctx_side_name(const leat_ctx *ctx, uint32_t index);
leat_err leati_ctx_collect_side(leat_ctx *ctx, uint32_t index, const void *record);
const leati_config *leati_ctx_config(const leat_ctx *ctx);

// One object per operator and job attempt, shared by its subtasks: who comes first creates it
// (under a lock; `create` may take its time), the job destroys it when all tasks have ended.
// `commit` (may be NULL) is called once all tasks of the job have finished, by the last of them and
// before the job counts as finished: for what must not be seen of a job that failed elsewhere. Its
// error, which it explains in `why` with the operator's name, is the job's.
typedef struct leati_shared_ops {
    leat_err (*create)(leat_ctx *ctx, void **object);
    void (*destroy)(void *object);
    leat_err (*commit)(void *object, char *why, size_t why_size);
} leati_shared_ops;
LEAT_MUST_USE leat_err leati_ctx_shared(leat_ctx *ctx, const leati_shared_ops *ops, void **object);
// The same for several operators that know the same `key`, an address of the environment's.
LEAT_MUST_USE leat_err leati_ctx_shared_by(leat_ctx *ctx, const void *key,
                                           const leati_shared_ops *ops, void **object);

// Writes whole lines to the job's standard output (fd 1) or error (fd 2) through the environment's
// print hook, one writer at a time. May block: another thread serves the worker meanwhile.
// LEAT_EPIPE when the reader has gone, LEAT_EIO otherwise (both recorded with the operator).
LEAT_MUST_USE leat_err leati_ctx_print(leat_ctx *ctx, int fd, const char *data, size_t size);

// Sets the timestamp that records emitted from now on carry; operators that set their own restore
// the former one afterwards.
void leati_ctx_set_timestamp(leat_ctx *ctx, bool present, int64_t timestamp);

#endif
