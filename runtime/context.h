// SPDX-License-Identifier: Apache-2.0
// What built-in operators may ask of the runtime beyond the public context.
#ifndef LEATI_RUNTIME_CONTEXT_H
#define LEATI_RUNTIME_CONTEXT_H

#include <stdatomic.h>

#include "base/config.h"
#include "graph/stream_graph.h"
#include "leat/execute.h"
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
    // A question that a subtask in process `process` has asked (leati_ctx_ask); may be NULL. Only
    // where subtask 0 of the operator runs, on any thread, without locks of the runtime, several
    // threads at once. It is answered once by leati_shared_answer, in here or at any time until the
    // object is destroyed. The bytes are borrowed for the call. Only for objects that
    // leati_ctx_shared has made.
    void (*asked)(void *object, uint32_t process, uint64_t token, const uint8_t *question,
                  size_t size);
} leati_shared_ops;
LEAT_MUST_USE leat_err leati_ctx_shared(leat_ctx *ctx, const leati_shared_ops *ops, void **object);
// The same for several operators that know the same `key`, an address of the environment's.
LEAT_MUST_USE leat_err leati_ctx_shared_by(leat_ctx *ctx, const void *key,
                                           const leati_shared_ops *ops, void **object);

// --- what is shared across processes ---
//
// A job may run in several processes (runtime/placement.h); an object that subtasks share is then
// one in each. The one in the process of subtask 0 is at home: where there must be one for the
// whole job, subtasks in other processes ask it.

// Whether subtask 0 of this operator runs in this process; always in a job that is in one process.
bool leati_ctx_is_home(const leat_ctx *ctx);
// Whether all subtasks of this operator do: then nobody will ask.
bool leati_ctx_is_alone(const leat_ctx *ctx);
// The same number in all processes of a job attempt, and, as good as certainly, in no other attempt
// anywhere; 0 in a job that is in one process.
uint64_t leati_ctx_attempt_token(const leat_ctx *ctx);
// The job, for leati_shared_answer. It outlives all shared objects.
leat_job *leati_ctx_job(const leat_ctx *ctx);

typedef enum leati_answer_state {
    LEATI_ANSWER_NONE = 0, // nothing was asked; what a zeroed answer is
    LEATI_ANSWER_PENDING = 1,
    LEATI_ANSWER_READY = 2,  // `bytes`, `size`
    LEATI_ANSWER_FAILED = 3, // `err`
} leati_answer_state;

// Embedded in the operator that asks, zeroed at first.
typedef struct leati_answer {
    _Atomic int state; // a leati_answer_state: leati_answer_get
    leat_err err;
    uint8_t *bytes; // the answer's own
    size_t size;
    // The runtime's.
    leat_ctx *ctx;
    uint64_t token;
    struct leati_answer *next;
} leati_answer;

// Asks the object at home (of leati_ctx_shared, which has an `asked` hook). The answer's state
// becomes PENDING, and READY or FAILED later, perhaps before this returns; then the task is woken,
// which polls its source. Before the home object exists questions wait for it. The bytes are
// copied. One question at a time for each answer. At home it works too, without a way through
// other processes. LEAT_ESTATE: one is pending already; LEAT_ETOOBIG: above LEATI_QUESTION_MAX;
// LEAT_ENOMEM; what the way to the other process says. On failure the answer is as before.
enum { LEATI_QUESTION_MAX = 64 * 1024 };
LEAT_MUST_USE leat_err leati_ctx_ask(leat_ctx *ctx, const uint8_t *question, size_t size,
                                     leati_answer *answer);
// Once it is not PENDING any more, the other members may be read.
static inline leati_answer_state leati_answer_get(const leati_answer *answer)
{
    // Pairs with the store in leati_job_answered.
    return (leati_answer_state)atomic_load_explicit(&answer->state, memory_order_acquire);
}
// Frees the bytes and withdraws a question that is pending; the answer is zeroed. Before the answer
// goes (in the dispose hook), and before the next question. On the task's thread.
void leati_answer_reset(leati_answer *answer);
// Answers a question: `err` or, with LEAT_OK, bytes, which are copied. Any thread.
void leati_shared_answer(leat_job *job, uint32_t process, uint64_t token, leat_err err,
                         const uint8_t *answer, size_t size);

// Writes whole lines to the job's standard output (fd 1) or error (fd 2) through the environment's
// print hook, one writer at a time. May block: another thread serves the worker meanwhile.
// LEAT_EPIPE when the reader has gone, LEAT_EIO otherwise (both recorded with the operator).
LEAT_MUST_USE leat_err leati_ctx_print(leat_ctx *ctx, int fd, const char *data, size_t size);

// Says for which operator the calling thread, which it has started, works: if it crashes, that is
// known (leati_crash_place). NULL: for none any more, before the thread ends.
void leati_crash_works_for(const leat_ctx *ctx);

// Sets the timestamp that records emitted from now on carry; operators that set their own restore
// the former one afterwards.
void leati_ctx_set_timestamp(leat_ctx *ctx, bool present, int64_t timestamp);

#endif
