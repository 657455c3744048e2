// SPDX-License-Identifier: Apache-2.0
// What a job that is spread over processes has beside its tasks: runtime/placement.h.
#ifndef LEATI_RUNTIME_PLACEMENT_IMPL_H
#define LEATI_RUNTIME_PLACEMENT_IMPL_H

#include "runtime/execution.h"
#include "runtime/placement.h"

struct leati_placed {
    // Immutable from when the job is deployed.
    uint64_t attempt;
    uint32_t number, self;
    uint64_t token;       // leati_ctx_attempt_token
    uint32_t *process_of; // of each task of the graph, vertex by vertex
    uint32_t *first_of;   // of each vertex: its first task in `process_of`
    uint32_t *local_of;   // of those that run here: the index into the job's tasks
    leati_transport *transport;
    const leati_placement_hooks *hooks;
    void *user;
    leati_local_pool **pools; // one a received channel
    size_t pool_count;
    // Only while it is being deployed.
    leati_link_options options;
    // Under link_lock: whoever looks at a channel's wait must not meet the link's end.
    pthread_mutex_t link_lock;
    leati_link *link;
    // Under the job's lock: somebody concludes it.
    bool concluding;
};

// The process that runs a task of the graph.
static inline uint32_t leati_placed_process(const leati_placed *placed, uint32_t vertex,
                                            uint32_t subtask)
{
    return placed->process_of[placed->first_of[vertex] + subtask];
}

// Whether a task of the graph runs in this process.
static inline bool leati_job_has_task(const leat_job *job, uint32_t vertex, uint32_t subtask)
{
    return !job->placed || leati_placed_process(job->placed, vertex, subtask) == job->placed->self;
}

// Before deployment; checks that what shares memory is in one process.
LEAT_MUST_USE leat_err leati_placed_create(leat_job *job, const leati_placement *placement);
void leati_placed_free(leat_job *job);
// Opens the link, before channels are made.
struct leati_exchange_needs;
LEAT_MUST_USE leat_err leati_placed_open(leat_job *job, const struct leati_exchange_needs *needs);
// Ends it: nothing of the transport touches the job's channels any more.
void leati_placed_close(leat_job *job);

#endif
