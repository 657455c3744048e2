// SPDX-License-Identifier: Apache-2.0
// The operator interface: what the runtime calls. The built-in operators use it, and so do
// operators of the user's own (leat_transform, leat_source).
#ifndef LEAT_OPERATOR_H
#define LEAT_OPERATOR_H

#include "leat/function.h"

LEAT_BEGIN_DECLS

// The largest watermark: no further record will come.
#define LEAT_WATERMARK_MAX INT64_MAX
// "No watermark yet".
#define LEAT_WATERMARK_MIN INT64_MIN

// What a source's poll hook reports.
typedef enum leat_poll {
    LEAT_POLL_MORE = 0, // call again: there is more, or may be
    LEAT_POLL_WAIT = 1, // nothing now; a wake-up has been arranged (leat_ctx_wait_readable,
                        // leat_ctx_wake_at, leat_ctx_waker)
    LEAT_POLL_END = 2,  // nothing ever again
} leat_poll;

// The hooks of an operator. All run on the thread that runs the task at that moment, one at a time;
// NULL means the default in brackets. A hook that returns other than LEAT_OK fails the task; it
// should have said why with leat_fail.
//
// Life cycle: create (by the factory) → open → element* … → end_input → finish → close, and dispose
// always, once, whatever failed where. Within a chain open runs from the tail to the head,
// end_input/finish/close from the head to the tail. On cancellation or failure only dispose is
// called.
typedef struct leat_operator_ops {
    // Short word for pictures and messages, "map" say.
    const char *kind;
    // Acquire what is needed; self->ctx is set. [nothing]
    leat_err (*open)(leat_operator *self);
    // One record of the input. Required, except in sources.
    leat_element_fn element;
    // Several records of the input at once, one after the other in memory: an operator that can
    // overlap its work on them is faster that way. None has a timestamp. [element, for each]
    leat_err (*elements)(leat_operator *self, const void *records, uint32_t count, leat_out *out);
    // One record of an operator with several inputs; `input` counts from 0. Required there, instead
    // of `element`.
    leat_err (*element_of)(leat_operator *self, uint32_t input, const void *record, leat_out *out);
    // Of several inputs one has ended; may emit. When the last has, end_input follows. [nothing]
    leat_err (*input_ended)(leat_operator *self, uint32_t input, leat_out *out);
    // An operator with several inputs that has absorbed sources: whether it wants records from
    // outside its task now. Asked again after each round over the sources. [yes]
    bool (*accepts)(leat_operator *self);
    // Sources: emit at most `max_records` records, then return; `*state` says how to go on. Must
    // not block, except between leat_blocking_begin and end.
    leat_err (*poll)(leat_operator *self, leat_out *out, uint32_t max_records, leat_poll *state);
    // The operator's event time advanced to `watermark`. To pass it on, call leat_emit_watermark.
    // [pass it on]
    leat_err (*watermark)(leat_operator *self, int64_t watermark, leat_out *out);
    // No more input will come; may emit. [nothing]
    leat_err (*end_input)(leat_operator *self, leat_out *out);
    // The last chance to emit. An operator with much to emit does so in slices: it returns
    // LEAT_EAGAIN after some records, best when leat_out_available says no, and is called again
    // when output is available. [nothing]
    leat_err (*finish)(leat_operator *self, leat_out *out);
    // The task has run out of input for now, or the buffer timeout has expired: hand on what is
    // held back for efficiency only (a sink's write buffer). [nothing]
    leat_err (*flush)(leat_operator *self);
    // Orderly end: everything was emitted. Errors count (a file that cannot be closed). [nothing]
    leat_err (*close)(leat_operator *self);
    // Frees the operator itself. Required. Must not emit or fail.
    void (*dispose)(leat_operator *self);
} leat_operator_ops;

// Every operator's struct starts with this.
struct leat_operator {
    const leat_operator_ops *ops; // set by the factory
    leat_ctx *ctx;                // set by the runtime before open
};

// Makes operators, one per subtask and attempt, on the thread that runs the task. The struct is
// copied into the graph; `config` must live as long as the environment (leat_env_alloc).
typedef struct leat_factory leat_factory;
struct leat_factory {
    // Transfers the new operator to the runtime, which disposes it. `ctx` can be asked for types,
    // indices and the allocator.
    leat_err (*create)(const leat_factory *factory, leat_ctx *ctx, leat_operator **op);
    const void *config;
};

// Sends a watermark downstream. Values that do not advance are the caller's mistake and are ignored
// by the receiver.
LEAT_API leat_err leat_emit_watermark(leat_out *out, int64_t watermark);
// What a task may do in its present turn. Public, with the fact that a context begins with the
// address of its task's, only so that leat_out_available can be inlined.
typedef struct leat_allowance {
    const bool *over; // atomic: the turn is to end after the record in hand
    bool unsure;      // its output may have no room
} leat_allowance;
// Its second half, which looks at the channels.
LEAT_API bool leat_out_has_room(const leat_ctx *ctx);
// Whether the task may start another record now: its output has room and its turn is not over.
// Cheap; sources ask it between records, and return when it says no.
static inline bool leat_out_available(const leat_ctx *ctx)
{
    const leat_allowance *allowance = *(const leat_allowance *const *)(const void *)ctx;
    return !__atomic_load_n(allowance->over, __ATOMIC_RELAXED) &&
           (LEAT_LIKELY(!allowance->unsure) || leat_out_has_room(ctx));
}
// Emits up to `*count` records of the output's type, which lie one after the other in memory, as
// long as leat_out_available says yes; the first in any case. `*count` becomes the number of those
// that are out, also on failure; results as of leat_collect, and records may be reused as there.
// Faster than leat_collect for each where they leave the task.
LEAT_API leat_err leat_collect_some(const leat_ctx *ctx, leat_out *out, const void *records,
                                    uint32_t *count);
// Arranges one wake-up of this task when `fd` becomes readable or reports an error; then poll is
// called again. The descriptor must stay open until then or until dispose. LEAT_EINVAL for
// descriptors that cannot be watched (regular files: they never block).
LEAT_API LEAT_MUST_USE leat_err leat_ctx_wait_readable(leat_ctx *ctx, int fd);
// Arranges one wake-up of this task when the runtime's clock (leat_ctx_now_ns) has reached
// `time_ns`, at most about 1 ms later when the workers are free; then poll is called again. It may
// be called earlier as well, for other reasons: look at the clock. This replaces the time that this
// operator has arranged before and that has not come yet; INT64_MAX takes that back. It ends with
// the operator.
LEAT_API void leat_ctx_wake_at(leat_ctx *ctx, int64_t time_ns);
// A handle by which any thread can make this task's poll hook be called again. Valid until the
// operator's dispose hook returns.
typedef struct leat_waker leat_waker;
LEAT_API leat_waker *leat_ctx_waker(leat_ctx *ctx);
LEAT_API void leat_wake(leat_waker *waker);
// Adds to the task's count of records: sources call it for what they read, sinks for what they
// write.
LEAT_API void leat_ctx_count_in(leat_ctx *ctx, uint64_t records, uint64_t bytes);
LEAT_API void leat_ctx_count_out(leat_ctx *ctx, uint64_t records, uint64_t bytes);

LEAT_END_DECLS

#endif
