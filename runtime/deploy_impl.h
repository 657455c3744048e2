// SPDX-License-Identifier: Apache-2.0
// What the parts of deployment share: tasks (deploy.c) and exchanges (deploy_exchange.c).
#ifndef LEATI_RUNTIME_DEPLOY_IMPL_H
#define LEATI_RUNTIME_DEPLOY_IMPL_H

#include "runtime/placement_impl.h"

// What of a job's exchanges is in this process.
typedef struct leati_exchange_needs {
    uint64_t segments; // without which the job cannot run
    uint64_t channels; // with an end here
    uint64_t received; // those among them whose producer is elsewhere
    uint64_t numbers;  // channels of the whole job
} leati_exchange_needs;

void leati_deploy_count(const leat_job *job, leati_exchange_needs *needs);
// The producers of one edge that a consumer reads.
uint32_t leati_deploy_producers(const leati_job_graph *graph, const leati_job_edge *edge,
                                uint32_t consumer, uint32_t *first);
// Pools, channels, readers and writers of all exchanges, once the tasks are there.
LEAT_MUST_USE leat_err leati_deploy_exchanges(leat_job *job);
// Has a writer flushed after the edge's buffer timeout.
LEAT_MUST_USE leat_err leati_deploy_flusher(leat_job *job, const leati_job_edge *edge,
                                            leati_writer *writer);

// A task that runs here.
static inline leati_task *leati_deploy_task_of(const leat_job *job, uint32_t vertex,
                                               uint32_t subtask)
{
    const leati_placed *placed = job->placed;
    return &job->tasks[placed ? placed->local_of[placed->first_of[vertex] + subtask]
                              : job->first_task[vertex] + subtask];
}

#endif
