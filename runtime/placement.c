// SPDX-License-Identifier: Apache-2.0
// A job of which only some tasks run in this process: its start, and its end, which somebody else
// decides.
#include "runtime/placement.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "leat/record_codec.h"
#include "runtime/deploy_impl.h"

// --- what is where ---

static bool is_together(const leati_placed *placed, const leati_vertex *vertex, uint32_t process)
{
    for (uint32_t i = 0; i < vertex->parallelism; i++)
        if (leati_placed_process(placed, vertex->id, i) != process)
            return false;
    return true;
}

static const leati_vertex *vertex_of(const leati_job_graph *graph, const leati_node *node)
{
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            if (graph->vertices[v].ops[i].node == node)
                return &graph->vertices[v];
    return NULL;
}

// The ends of a loop share memory.
static leat_err check_loops(const leat_job *job)
{
    const leati_job_graph *graph = job->graph;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++) {
            const leati_node *node = graph->vertices[v].ops[i].node;
            const leati_vertex *peer = node->peer ? vertex_of(graph, node->peer) : NULL;
            uint32_t process = leati_placed_process(job->placed, v, 0);
            if (!peer || (is_together(job->placed, &graph->vertices[v], process) &&
                          is_together(job->placed, peer, process)))
                continue;
            leati_env_run_failed(job->env, LEAT_EINVAL,
                                 "%s: both ends of a loop must be in one process, but they were "
                                 "placed in several",
                                 node->name);
            return LEAT_EINVAL;
        }
    return LEAT_OK;
}

static leat_err copy_places(leat_job *job, const leati_placement *placement)
{
    const leati_job_graph *graph = job->graph;
    leati_placed *placed = job->placed;
    uint64_t tasks = leati_job_graph_tasks(graph);
    if (tasks > UINT32_MAX / 2)
        return LEAT_ENOMEM;
    placed->process_of = leati_calloc(job->allocator, tasks, sizeof *placed->process_of);
    placed->first_of = leati_calloc(job->allocator, graph->vertex_count, sizeof *placed->first_of);
    placed->local_of = leati_calloc(job->allocator, tasks, sizeof *placed->local_of);
    if (!placed->process_of || !placed->first_of || !placed->local_of)
        return LEAT_ENOMEM;
    memcpy(placed->process_of, placement->process_of, tasks * sizeof *placed->process_of);
    uint32_t first = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        placed->first_of[v] = first;
        first += graph->vertices[v].parallelism;
    }
    bool here = false;
    for (uint64_t i = 0; i < tasks; i++) {
        here |= placed->process_of[i] == placed->self;
        if (placed->process_of[i] >= placement->link.process_count) {
            leati_env_run_failed(job->env, LEAT_EINVAL, "task %llu was placed in process %u of %u",
                                 (unsigned long long)i, placed->process_of[i],
                                 placement->link.process_count);
            return LEAT_EINVAL;
        }
    }
    if (here)
        return check_loops(job);
    leati_env_run_failed(job->env, LEAT_EINVAL, "no task of the job was placed in this process");
    return LEAT_EINVAL;
}

// Numbers of attempts begin anew with each cluster; who takes part is another process then.
static uint64_t token_of(const leati_placement *placement)
{
    uint64_t token = leat_hash_u64(placement->attempt);
    for (uint32_t i = 0; i < placement->link.process_count; i++) {
        const char *id = placement->link.ids[i];
        token = leat_hash_combine(token, leat_hash_bytes(id, strlen(id)));
    }
    return token ? token : 1;
}

// --- the link ---

static const leati_turns turns = {
    .later = leati_turn_later,
    .visit = leati_visit_begin,
    .has_worker = leati_visit_has_worker,
    .leave = leati_visit_end,
};

static void link_failed(void *user, leat_err err, const char *text)
{
    leati_job_fail(user, err, text, NULL);
}

leat_err leati_placed_create(leat_job *job, const leati_placement *placement)
{
    leati_placed *placed = leati_calloc(job->allocator, 1, sizeof *placed);
    if (!placed) {
        leati_env_run_failed(job->env, LEAT_ENOMEM, "the job: out of memory");
        return LEAT_ENOMEM;
    }
    placed->attempt = placement->attempt;
    placed->number = placement->number;
    placed->token = token_of(placement);
    placed->self = placement->self;
    placed->transport = placement->transport;
    placed->hooks = placement->hooks;
    placed->user = placement->user;
    placed->options = placement->link;
    placed->options.attempt = placement->attempt;
    placed->options.self = placement->self;
    placed->options.turns = &turns;
    placed->options.failed = link_failed;
    placed->options.user = job;
    pthread_mutex_init(&placed->link_lock, NULL);
    job->placed = placed;
    leat_err err = copy_places(job, placement);
    if (err == LEAT_ENOMEM)
        leati_env_run_failed(job->env, err, "the job: out of memory");
    return err;
}

void leati_placed_free(leat_job *job)
{
    leati_placed *placed = job->placed;
    if (!placed)
        return;
    pthread_mutex_destroy(&placed->link_lock);
    leati_free(job->allocator, placed->process_of);
    leati_free(job->allocator, placed->first_of);
    leati_free(job->allocator, placed->local_of);
    leati_free(job->allocator, placed->pools);
    leati_free(job->allocator, placed);
    job->placed = NULL;
}

leat_err leati_placed_open(leat_job *job, const leati_exchange_needs *needs)
{
    leati_placed *placed = job->placed;
    if (needs->numbers > UINT32_MAX) {
        leati_env_run_failed(job->env, LEAT_ETOOBIG,
                             "the job has %llu channels between tasks, more than can be numbered: "
                             "lower the parallelism",
                             (unsigned long long)needs->numbers);
        return LEAT_ETOOBIG;
    }
    placed->pools = leati_calloc(job->allocator, needs->received, sizeof(leati_local_pool *));
    if (!placed->pools)
        return LEAT_ENOMEM;
    leati_link *link = NULL;
    leat_err err = placed->transport->open(placed->transport, &placed->options, &link);
    // Their texts are the caller's.
    placed->options = (leati_link_options){0};
    if (err) {
        leati_env_run_failed(job->env, err, "the connections to other processes: %s",
                             leat_err_message(err));
        return err;
    }
    placed->link = link;
    return LEAT_OK;
}

void leati_placed_close(leat_job *job)
{
    leati_placed *placed = job->placed;
    if (!placed)
        return;
    pthread_mutex_lock(&placed->link_lock);
    leati_link *link = placed->link;
    placed->link = NULL;
    pthread_mutex_unlock(&placed->link_lock);
    if (link)
        placed->transport->close(&link);
}

// --- start and end ---

leat_err leati_start_placed(leat_runtime *runtime, leat_env *env, const leati_placement *placement,
                            leat_job **out)
{
    leat_job *job;
    leat_err err = leati_job_create(runtime, env, &job);
    if (err)
        return err;
    err = leati_placed_create(job, placement);
    if (err) {
        leati_job_free(job);
        return err;
    }
    return leati_job_launch(job, out);
}

void leati_job_fail_from_outside(leat_job *job, leat_err err, const char *text)
{
    leati_job_fail(job, err, text, NULL);
}

// Whether the caller is the first to conclude the job; otherwise it has been concluded.
static bool may_conclude(leat_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool first = !job->placed->concluding;
    job->placed->concluding = true;
    while (!first && !job->done)
        pthread_cond_wait(&job->ended, &job->lock);
    pthread_mutex_unlock(&job->lock);
    return first;
}

leat_err leati_job_conclude(leat_job *job, bool commit, char *why, size_t why_size)
{
    leat_err err = leati_job_wait_over(job);
    if (!err && !may_conclude(job))
        err = LEAT_ESTATE;
    if (err) {
        if (why && why_size)
            snprintf(why, why_size, "the job cannot be concluded now: %s", leat_err_message(err));
        return err;
    }
    // A tick would notify channels that the transport is about to leave.
    leati_job_stop_ticks(job);
    leati_placed_close(job);
    bool finished = leati_job_has_finished(job);
    leati_job_end(job, commit && finished);
    if (!commit)
        return LEAT_OK;
    err = finished || job->failure ? job->failure : LEAT_ESTATE;
    if (err && why && why_size)
        snprintf(why, why_size, "%s",
                 job->failure ? job->failure_text : "not all tasks have finished");
    return err;
}

void leati_job_task_place(const leat_job *job, uint32_t index, uint32_t *vertex, uint32_t *subtask)
{
    *vertex = job->tasks[index].vertex->id;
    *subtask = job->tasks[index].subtask;
}
