// SPDX-License-Identifier: Apache-2.0
// A job of which only some tasks run in this process; the others run in other processes that have
// built the same graph.
//
// leat_start runs all of a job here and needs none of this. leati_start_placed deploys the tasks of
// one process, joins exchanges that leave it to a transport, and leaves the job's end to somebody
// who sees all processes: when the last task here has ended, `tasks_over` is told and nothing else
// happens until leati_job_conclude.
//
// Threading. Hooks are called from threads of the job, without locks, and must not block nor
// conclude or destroy the job. They may come before leati_start_placed has returned. Order: stages
// of a task as it goes through them, `failed` before any task is stopped for it, `tasks_over` last.
#ifndef LEATI_RUNTIME_PLACEMENT_H
#define LEATI_RUNTIME_PLACEMENT_H

#include "base/export.h"
#include "leat/metrics.h"
#include "network/transport.h"
#include "runtime/execution.h"

typedef struct leati_placement_hooks {
    // A task here has reached another stage.
    void (*task_stage)(void *user, uint32_t vertex, uint32_t subtask, leati_stage stage);
    // The first failure here (the local tasks stop by themselves). `vertex` is UINT32_MAX when it
    // is of no task.
    void (*failed)(void *user, leat_err err, const char *text, uint32_t vertex, uint32_t subtask);
    // The last task here has ended; `finished`: all of them have finished.
    void (*tasks_over)(void *user, bool finished);
    // A question for the process that runs subtask 0 of operator `node` (leati_ctx_ask); it is
    // answered by leati_job_answered with the same token, at any time, from any thread. An error
    // fails the asking task.
    leat_err (*ask)(void *user, uint32_t process, uint32_t node, uint64_t token,
                    const uint8_t *question, size_t size);
    // The answer to a question that came by leati_job_asked.
    void (*answer)(void *user, uint32_t process, uint64_t token, leat_err err,
                   const uint8_t *answer, size_t size);
} leati_placement_hooks;

typedef struct leati_placement {
    uint64_t attempt; // unique in the cluster
    uint32_t number;  // of the attempt, for people, from 0: leat_ctx_attempt
    uint32_t self;    // this process
    // Of each task of the graph, vertex by vertex: the process that runs it.
    const uint32_t *process_of;
    leati_transport *transport;
    leati_link_options link; // names and addresses of the processes; `failed`, `user` and `attempt`
                             // are filled in here
    const leati_placement_hooks *hooks;
    void *user;
} leati_placement;

// As leat_start. What `placement` points to is copied, but for the transport and the hooks, which
// must outlive the job. The caller has compared the digests.
LEATI_SHARED LEAT_MUST_USE leat_err leati_start_placed(leat_runtime *runtime, leat_env *env,
                                                       const leati_placement *placement,
                                                       leat_job **job);
// Ends the job once `tasks_over` has been called. With `commit`, what operators have kept back
// becomes visible; otherwise it is dropped. The job's state is final afterwards, and it can be
// destroyed. The error of a commit, with a sentence in `why`. Any thread but those of the job; may
// block on files.
LEATI_SHARED leat_err leati_job_conclude(leat_job *job, bool commit, char *why, size_t why_size);
// Fails it from outside: a peer was lost, say. Any thread.
LEATI_SHARED void leati_job_fail_from_outside(leat_job *job, leat_err err, const char *text);
// A question of another process's subtask, to be answered by the `answer` hook, now or later. Any
// thread.
LEATI_SHARED void leati_job_asked(leat_job *job, uint32_t process, uint32_t node, uint64_t token,
                                  const uint8_t *question, size_t size);
LEATI_SHARED void leati_job_answered(leat_job *job, uint64_t token, leat_err err,
                                     const uint8_t *answer, size_t size);

// --- accumulators across processes ---

// What the subtasks here have accumulated, as bytes; freed with leati_free of the job's allocator.
LEATI_SHARED LEAT_MUST_USE leat_err leati_job_accumulators_encode(const leat_job *job,
                                                                  uint8_t **bytes, size_t *size);
// Merges parts of several processes. LEAT_ECORRUPT, LEAT_ETYPE (the same name, another kind),
// LEAT_ENOMEM.
LEATI_SHARED LEAT_MUST_USE leat_err leati_accumulators_decode(const leat_allocator *allocator,
                                                              const uint8_t *const *parts,
                                                              const size_t *sizes, uint32_t count,
                                                              leat_accumulators **accumulators);

// --- what a task waits for ---

typedef enum leati_wait_kind {
    LEATI_WAIT_NONE = 0,  // it works, or waits for a worker for a moment
    LEATI_WAIT_INPUT = 1, // records from `vertex` (a source: from outside)
    LEATI_WAIT_BUFFER =
        2, // room in its output to `vertex`: segments are queued there and not taken
    LEATI_WAIT_CREDIT = 3,   // the same, and the other process has granted no credit
    LEATI_WAIT_TIMER = 4,    // an alarm of its own
    LEATI_WAIT_USER = 5,     // a user function has not returned
    LEATI_WAIT_BLOCKING = 6, // the same, declared as blocking
    LEATI_WAIT_WORKER = 7,   // ready, and no worker has taken it
} leati_wait_kind;

typedef struct leati_wait {
    leati_wait_kind kind;
    int64_t since_ns;         // leati_clock_ns; of NONE: when it last went on after a wait
    uint32_t vertex, subtask; // of the other end, UINT32_MAX when there is none or several
    char text[160]; // for people: 'no input from "split" (all 3 subtasks)', 'user function of
                    // "slow"'
} leati_wait;

LEATI_SHARED const char *leati_wait_name(leati_wait_kind kind); // "INPUT" …
// Any thread, while the job lives. `index` as for leat_job_task_stats.
LEATI_SHARED void leati_job_task_wait(const leat_job *job, uint32_t index, leati_wait *wait);
// Which task of the graph that is.
LEATI_SHARED void leati_job_task_place(const leat_job *job, uint32_t index, uint32_t *vertex,
                                       uint32_t *subtask);

// --- crashes ---

// What the calling thread is working on, for a signal handler: async-signal-safe, takes no lock.
// False when it is on no task's turn. `text` gets 'operator "split" (2/3)' as far as it can be
// told; `attempt` that of the placement. `registers` (may be NULL) is the handler's ucontext_t: by
// it and the stack the one of a chain's operators is guessed that was running.
LEATI_SHARED bool leati_crash_place(const void *registers, uint64_t *attempt, uint32_t *vertex,
                                    uint32_t *subtask, char *text, size_t text_size);

#endif
