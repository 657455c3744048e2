// SPDX-License-Identifier: Apache-2.0
// A job while it runs: its tasks, its channels, its first failure.
#ifndef LEATI_RUNTIME_EXECUTION_H
#define LEATI_RUNTIME_EXECUTION_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/config.h"
#include "graph/job_graph.h"
#include "leat/execute.h"
#include "network/channel.h"
#include "runtime/context.h"
#include "runtime/scheduler.h"
#include "runtime/service.h"
#include "runtime/task.h"

struct leat_runtime {
    const leat_allocator *allocator;
    leat_allocator allocator_copy;
    leati_scheduler *scheduler;
    leati_service *service;
    leati_global_pool *pool;
    // Of a stepped runtime: how many records a turn takes. 0: turns go by the system's clock.
    uint32_t turn_records;
};

// A runtime without threads. Its tasks have their turns by leati_scheduler_step, in which they take
// `turn_records` records, at least 1, and in leat_job_wait and leat_job_destroy; its alarms run by
// leati_service_run_due. leat_job_wait says LEAT_EAGAIN when nothing is ready.
LEAT_MUST_USE leat_err leati_runtime_create_stepped(leat_env *env, uint32_t turn_records,
                                                    leat_runtime **runtime, char *why,
                                                    size_t why_size);

// What leati_ctx_shared has made for one operator.
typedef struct leati_shared {
    const void *key; // the operator's node, or what several know it by
    void *object;
    void (*destroy)(void *object);
    leat_err (*commit)(void *object, char *why, size_t why_size);
    struct leati_shared *next;
} leati_shared;

// All writers of a job with the same buffer timeout.
typedef struct leati_flusher {
    leati_tick tick;
    leat_job *job;
    int64_t timeout_ms;
    leati_writer **writers;
    uint32_t writer_count, writer_capacity;
    struct leati_flusher *next;
} leati_flusher;

struct leat_job {
    // Immutable after start.
    leat_runtime *runtime;
    leat_env *env;
    const leat_allocator *allocator;
    leati_config config;
    leati_job_graph *graph;
    leati_task *tasks; // grouped by vertex
    uint32_t task_count;
    uint32_t *first_task;     // of each vertex
    leati_channel **channels; // of all edges
    size_t channel_count;
    leati_flusher *flushers;
    leati_flusher *operators_flusher; // one of them, which also serves the operators' flush hooks
    uint32_t promised;                // segments reserved and not yet taken over by a pool
    // Atomic.
    _Atomic bool stopping;
    _Atomic int state; // a leat_job_state
    // Under print_lock: who may write to the job's outputs.
    pthread_mutex_t print_lock;
    // Under shared_lock.
    pthread_mutex_t shared_lock;
    leati_shared *shared;
    // Under lock.
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint32_t live; // tasks that have not ended
    bool done;     // the last task has left
    leat_err failure;
    char failure_text[LEATI_FAILURE_TEXT];
};

// The first failure wins; all tasks are told to stop.
void leati_job_fail(leat_job *job, leat_err err, const char *text);
// One line for the environment's log, with the job's name.
void leati_job_log(const leat_job *job, leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);
// A task has ended and will not touch the job any more after this call.
void leati_job_task_ended(leat_job *job);

// --- deploy.c ---

// Makes tasks, pools, channels, gates and writers of a job whose graph is there. LEAT_ENOBUFS with
// the numbers as a fault of the environment. On failure leati_job_undeploy frees what was made.
LEAT_MUST_USE leat_err leati_job_deploy(leat_job *job);
void leati_job_undeploy(leat_job *job);

#endif
