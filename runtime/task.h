// SPDX-License-Identifier: Apache-2.0
// A task: one chain of operators in one subtask, with its input gate, its record writers and its
// mailbox.
//
// Threading. A task is scheduled cooperatively; whatever is marked "task" below is touched only by
// the thread that gives it its turn. Others reach it by mail, by making a channel or a pool
// available, and by the job's stop flag; then they wake it.
//
// Life cycle, a stage a turn or many: opening → running → ending (end_input and finish of each
// operator, head first) → closing (end events to all readers, close of each operator) → ended. Any
// error, or the job's stop flag, leads straight to disposal. See docs/threads.md for the steps of a
// turn.
//
// Bounds. What a task holds beside its pools: one decoded record, the readers' partial records
// (each at most record.max-size), scratch memory.
#ifndef LEATI_RUNTIME_TASK_H
#define LEATI_RUNTIME_TASK_H

#include <stdarg.h>
#include <stddef.h>

#include "leat/execute.h"
#include "network/reader.h"
#include "network/writer.h"
#include "runtime/chain.h"
#include "runtime/mailbox.h"
#include "runtime/scheduler.h"
#include "runtime/service.h"
#include "runtime/valve.h"

// Records that are decoded before the head's `elements` hook gets them.
enum { LEATI_INPUT_BATCH = 32 };

// One input of the chain's head: the channels of all in-edges with the same ordinal.
typedef struct leati_task_port {
    const leat_type *type; // NULL when it has no channels (a source of the chain feeds it)
    uint32_t first, channels;
    leati_valve *valve;
    void *record;      // decoded into; room for LEATI_INPUT_BATCH of them
    bool uses_scratch; // decoding takes scratch memory
    leat_out to;       // what takes the records
    uint32_t open;     // channels that have not ended
} leati_task_port;

// All inputs of a task behind one gate: its channels are served in turn, so no input starves.
typedef struct leati_task_input {
    uint32_t port_count; // 0 in sources
    leati_task_port *ports;
    uint32_t channels;
    leati_gate *gate;
    leati_reader *readers;  // one a channel
    uint32_t *port_of;      // of each channel
    _Atomic bool *ended;    // of each channel; written by the task, read by anyone (relaxed)
    leati_channel *current; // polled from the gate and not given back, or NULL
    uint32_t open;          // channels that have not ended
    uint64_t records;
} leati_task_input;

typedef enum leati_stage {
    LEATI_STAGE_OPENING,
    LEATI_STAGE_RUNNING,
    LEATI_STAGE_ENDING,
    LEATI_STAGE_CLOSING,
    LEATI_STAGE_FINISHED,
    LEATI_STAGE_FAILED,
    LEATI_STAGE_CANCELED,
} leati_stage;

// What time that is not spent working is spent on.
typedef enum leati_gap {
    LEATI_GAP_READY, // waiting for a worker: counts as busy
    LEATI_GAP_IDLE,
    LEATI_GAP_SOFT,
    LEATI_GAP_HARD, // inside a turn, in the middle of a record
} leati_gap;

enum { LEATI_FAILURE_TEXT = 1024 };

// Where one of the task's writers leads.
typedef struct leati_task_exchange {
    const leati_job_edge *edge;
    uint32_t first, count;    // the consumers that it feeds
    uint32_t number;          // of the first channel, among all of the job
    leati_channel **channels; // one a consumer; borrowed from the job
} leati_task_exchange;

struct leati_task {
    leati_waiter waiter; // first: pools, gates and writers know the task by it
    leati_runnable run;
    // Immutable after deployment.
    leat_job *job;
    const leat_allocator *allocator;
    const leati_vertex *vertex;
    uint32_t subtask;
    uint32_t exit_count; // writers, and what belongs to each
    leati_writer **writers;
    leati_local_pool **pools;
    leati_chain_exit *exits;
    leati_spool **spools; // of blocking exchanges
    leati_task_exchange *exchanges;
    leati_worker *own_worker; // NULL: a shared one
    bool is_source;           // the head is a source
    bool is_mixed;            // the head has absorbed sources
    // Any thread.
    leati_mailbox mailbox;
    _Atomic bool flush_due; // the timer asks for the operators' flush hooks
    _Atomic bool held_back; // something was processed since the last flush
    _Atomic bool can_flush; // some operator has a flush hook; known once the chain is open
    // Task.
    leati_chain chain;
    leati_task_input input;
    struct leati_broadcasts *broadcasts; // of the head, or NULL; complete once the chain is open
    uint32_t ending_at;                  // how many operators have ended
    bool ending_begun;
    uint32_t ended_sources; // of those absorbed
    bool source_ended;
    leat_allowance allowance; // `over` is of the present turn; writers set `unsure`
    leati_record_time time;
    leat_scratch *scratch;
    bool scratch_used;
    char *folder;     // of the job's relative paths, once a function has asked for it
    uint32_t batch;   // records between two looks at the clock
    leat_err failure; // the first error of this task, and its text
    char failure_text[LEATI_FAILURE_TEXT];
    int64_t flushed_ns;   // when readers were last notified because input had run out
    leati_gap next_gap;   // what the time after the present turn is spent on
    leati_gap waited_for; // when it slept last, and what had gone in and out by then
    uint64_t waited_at;
    // What leat_fail has said in an operator whose policy is not to fail, and which operator it
    // was.
    const leat_ctx *reject_ctx;
    char reject_text[LEATI_FAILURE_TEXT];
    uint64_t extra_in, extra_bytes_in, extra_out, extra_bytes_out; // counted by sources and sinks
    // Written by the task, read by anyone (relaxed).
    _Atomic int stage;
    _Atomic int gap;          // a leati_gap: what the time since `stamp_ns` goes to
    _Atomic int64_t stamp_ns; // up to when time has been accounted for; 0 before deployment
    _Atomic int64_t busy_ns, idle_ns, soft_ns, hard_ns;
    // Since when it waits for what it sleeps for, though it may have been woken for nothing in
    // between, and since when it has not slept.
    _Atomic int64_t wait_since_ns, busy_since_ns;
    _Atomic(const leat_ctx *) blocking; // who is in a declared blocking call, since blocking_ns
    _Atomic int64_t blocking_ns;
    _Atomic uint64_t records_in, bytes_in, records_out, bytes_out;
};

// Prepares a zeroed task; what its deployment adds (input, writers) comes afterwards.
LEAT_MUST_USE leat_err leati_task_init(leati_task *task, leat_job *job,
                                       const leat_allocator *allocator, const leati_vertex *vertex,
                                       uint32_t subtask, uint32_t home);
// Frees everything; also a task that was only partly prepared.
void leati_task_fini(leati_task *task);

// Records the first error of the task. Returns `err`.
leat_err leati_task_record_failure(leati_task *task, leat_err err, const leat_ctx *ctx,
                                   const char *format, va_list args);
// Records an error that came without a reason, unless there is one already.
void leati_task_note_failure(leati_task *task, leat_err err);
// Whether the present turn is to end after the record in hand.
static inline bool leati_task_hurries(const leati_task *task)
{
    return __atomic_load_n(task->allowance.over, __ATOMIC_RELAXED);
}
// Whether another record may be started.
bool leati_task_output_available(leati_task *task);
bool leati_task_is_stopping(const leati_task *task);

// --- input.c ---

typedef enum leati_step {
    LEATI_STEP_MORE,    // the budget is used up
    LEATI_STEP_IDLE,    // no input for now
    LEATI_STEP_BLOCKED, // output is not available
    LEATI_STEP_END,     // no input ever again
} leati_step;

// `types[i]` and `channels[i]` are those of input i; a type is NULL where there are no channels.
LEAT_MUST_USE leat_err leati_input_init(leati_task_input *input, const leat_allocator *allocator,
                                        uint32_t port_count, const leat_type *const *types,
                                        const uint32_t *channels, leati_waiter *waiter);
// Once the chain is open: joins the inputs to it.
void leati_input_join(leati_task *task);
void leati_input_fini(leati_task_input *input, const leat_allocator *allocator);
// Processes at most `max` records. `*step` says nothing on failure.
LEAT_MUST_USE leat_err leati_input_step(leati_task *task, uint32_t max, leati_step *step);
LEAT_MUST_USE leat_err leati_source_step(leati_task *task, uint32_t max, leati_step *step);
// The same of a head with sources of its own: they and the exchanges are served in turn.
LEAT_MUST_USE leat_err leati_mixed_step(leati_task *task, uint32_t max, leati_step *step);

static inline leati_task *leati_task_of_waiter(leati_waiter *waiter)
{
    return (leati_task *)waiter;
}

// Whether a runnable is that of a task.
bool leati_task_is(const leati_runnable *run);
static inline leati_task *leati_task_of_runnable(leati_runnable *run)
{
    return (leati_task *)((char *)run - offsetof(leati_task, run));
}

#endif
