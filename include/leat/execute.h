// SPDX-License-Identifier: Apache-2.0
// Running jobs inside the own process.
#ifndef LEAT_EXECUTE_H
#define LEAT_EXECUTE_H

#include "leat/env.h"
#include "leat/stream.h"

LEAT_BEGIN_DECLS

// Worker threads, memory segments and the service thread that jobs run on. Several jobs may share
// one.
typedef struct leat_runtime leat_runtime;
// One execution of a graph.
typedef struct leat_job leat_job;

// Starts threads as configured in `env` ("workers", "memory.network", "memory.segment-size"); the
// environment is only read and may end earlier. Faults that it has (a setting that was refused,
// say) are an error: the first one's code. `why` (may be NULL) gets a sentence of at most
// `why_size` bytes on failure. LEAT_ENOMEM, LEAT_ETHREAD, LEAT_EINVAL.
LEAT_API LEAT_MUST_USE leat_err leat_runtime_create(leat_env *env, leat_runtime **runtime,
                                                    char *why, size_t why_size);
// All its jobs must have been destroyed. Joins the threads.
LEAT_API void leat_runtime_destroy(leat_runtime **runtime);

// Checks the graph, admits the job (LEAT_ENOBUFS, with the numbers, when its minimum of segments
// cannot be had) and starts it. Faults are kept with the environment, which must outlive the job.
// Any thread.
LEAT_API LEAT_MUST_USE leat_err leat_start(leat_runtime *runtime, leat_env *env, leat_job **job);

typedef enum leat_job_state {
    LEAT_JOB_RUNNING = 0,
    LEAT_JOB_FAILING = 1,
    LEAT_JOB_CANCELLING = 2,
    LEAT_JOB_FINISHED = 3,
    LEAT_JOB_FAILED = 4,
    LEAT_JOB_CANCELED = 5,
} leat_job_state;

// Any thread. "FINISHED" and so on; static storage.
LEAT_API leat_job_state leat_job_get_state(const leat_job *job);
LEAT_API const char *leat_job_state_name(leat_job_state state);
// Waits at most `timeout_ms` (-1: for ever) until the job has ended and all its threads have left
// it. LEAT_EAGAIN when it has not. Otherwise LEAT_OK for FINISHED, LEAT_ECANCELLED, or the code of
// the failure. Not from a thread of the job.
LEAT_API leat_err leat_job_wait(leat_job *job, int64_t timeout_ms);
// Asks the job to stop without emitting what it holds. Any thread, async-signal-unsafe; returns at
// once.
LEAT_API void leat_job_cancel(leat_job *job);
// The first failure, "operator (1/2): message", or "" — valid until destroy, once the job has
// ended.
LEAT_API const char *leat_job_failure(const leat_job *job);
// Cancels what still runs, waits for it, and frees the job.
LEAT_API void leat_job_destroy(leat_job **job);

// What one task (a chain of operators in one subtask) has done so far. Times in ns since the task
// was deployed; busy + idle + soft + hard = wall.
typedef struct leat_task_stats {
    const char *name; // of the chain; borrowed from the job
    uint32_t subtask; // from 0
    uint32_t parallelism;
    uint64_t records_in, records_out;
    uint64_t bytes_in, bytes_out; // encoded, as exchanged
    uint64_t busy_ns;
    uint64_t idle_ns;
    uint64_t soft_ns;                       // back-pressured before a record
    uint64_t hard_ns;                       // back-pressured inside a record
    uint32_t segments_used, segments_limit; // of its output pools
    uint32_t segments_peak;                 // the most that each pool had in use, summed
    bool is_source;
    const char *state; // "RUNNING", "FINISHED" …; static storage
} leat_task_stats;

// How many tasks the job has, and the figures of one of them, whole but not atomic as a set. Any
// thread.
LEAT_API uint32_t leat_job_task_count(const leat_job *job);
LEAT_API void leat_job_task_stats(const leat_job *job, uint32_t index, leat_task_stats *stats);

// Creates a runtime, runs the job to its end, and frees both. On failure the reasons are faults of
// the environment.
LEAT_API LEAT_MUST_USE leat_err leat_execute(leat_env *env);

LEAT_END_DECLS

#endif
