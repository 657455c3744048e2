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
    // Of those that can be asked (ask.c).
    uint32_t node_id;
    void (*asked)(void *object, uint32_t process, uint64_t token, const uint8_t *question,
                  size_t size);
    struct leati_shared *next_asked;
} leati_shared;

typedef struct leati_question leati_question;

// Questions to shared objects and the answers to them (ask.c).
typedef struct leati_asking {
    pthread_mutex_t lock;
    // Under the lock.
    leati_shared *objects;        // that can be asked
    leati_question *first, *last; // that came before their object was there
    uint32_t waiting;             // how many of these
    leati_answer *pending;        // that tasks here wait for
    uint64_t last_token;
    bool ended; // nothing is asked any more
} leati_asking;

// How a job is spread over processes; runtime/placement_impl.h.
typedef struct leati_placed leati_placed;

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
    leati_task *tasks; // that run in this process, grouped by vertex
    uint32_t task_count;
    uint32_t *first_task;     // of each vertex, and task_count after the last
    leati_placed *placed;     // NULL: all tasks run here
    leati_channel **channels; // of all edges
    size_t channel_count;
    leati_flusher *flushers;
    struct leati_debloater *debloater; // debloat.h; NULL: it is off
    leati_flusher *operators_flusher;  // one of them, which also serves the operators' flush hooks
    bool ticking;                      // the flushers have been set going
    uint32_t promised;                 // segments reserved and not yet taken over by a pool
    // Atomic.
    _Atomic bool stopping;
    _Atomic int state; // a leat_job_state
    // Under print_lock: who may write to the job's outputs.
    pthread_mutex_t print_lock;
    // Under shared_lock.
    pthread_mutex_t shared_lock;
    leati_shared *shared;
    leati_asking asking; // has a lock of its own
    // Under lock.
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool started;  // tasks may be woken
    uint32_t live; // tasks that have not ended
    bool launched; // of a placed job: whoever has started it has left it
    bool over;     // of a placed job: the last task has left
    bool done;     // the job's state is final
    leat_err failure;
    char failure_text[LEATI_FAILURE_TEXT];
};

// The first failure wins; all tasks are told to stop. `task`: whose failure it is, or NULL.
void leati_job_fail(leat_job *job, leat_err err, const char *text, const leati_task *task);
// One line for the environment's log, with the job's name.
void leati_job_log(const leat_job *job, leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);
// A task has ended and will not touch the job any more after this call.
void leati_job_task_ended(leat_job *job);

// --- what leat_start and leati_start_placed, leat_job_wait and leati_job_conclude share ---

// Makes a job whose graph is there and whose tasks are not.
LEAT_MUST_USE leat_err leati_job_create(leat_runtime *runtime, leat_env *env, leat_job **job);
// Deploys its tasks and wakes them; on failure the job is freed and the faults are told.
LEAT_MUST_USE leat_err leati_job_launch(leat_job *job, leat_job **out);
void leati_job_free(leat_job *job);
// Whether all tasks here have finished, none having failed. Once the tasks are over.
bool leati_job_has_finished(const leat_job *job);
// Commits if it is asked to, tells the operators, and sets the final state: FINISHED if it has
// committed, otherwise FAILED or CANCELED. Once the tasks are over, on one thread.
void leati_job_end(leat_job *job, bool commit);
// Nothing is flushed by time any more. Once the tasks are over, on one thread.
void leati_job_stop_ticks(leat_job *job);
// Waits until the last task has left; in a stepped runtime it runs them, and LEAT_EAGAIN says that
// none is ready.
LEAT_MUST_USE leat_err leati_job_wait_over(leat_job *job);

// --- ask.c ---

void leati_asking_init(leati_asking *asking);
void leati_asking_fini(leati_asking *asking);
// An object that can be asked is there: it is asked what has waited for it.
void leati_asking_add(leat_job *job, leati_shared *shared);
// No object is asked any more; what waits for one is answered with LEAT_ECLOSED.
void leati_asking_end(leat_job *job);
// Whether a task waits for an answer. Any thread.
bool leati_asking_is_pending(leat_job *job, const leati_task *task);

// --- deploy.c ---

// Makes tasks, pools, channels, gates and writers of a job whose graph is there. LEAT_ENOBUFS with
// the numbers as a fault of the environment. On failure leati_job_undeploy frees what was made.
LEAT_MUST_USE leat_err leati_job_deploy(leat_job *job);
void leati_job_undeploy(leat_job *job);

#endif
