// SPDX-License-Identifier: Apache-2.0
// From a job graph to tasks; deploy_exchange.c makes what joins them.
#include <string.h>

#include "base/alloc.h"
#include "runtime/broadcast.h"
#include "runtime/debloat.h"
#include "runtime/deploy_impl.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static leat_err reserve_segments(leat_job *job, uint64_t minimum)
{
    leati_global_pool *pool = job->runtime->pool;
    if (minimum <= UINT32_MAX && leati_global_pool_reserve(pool, (uint32_t)minimum) == LEAT_OK) {
        job->promised = (uint32_t)minimum;
        return LEAT_OK;
    }
    uint32_t total, unreserved;
    leati_global_pool_counts(pool, &total, &unreserved);
    leati_env_run_failed(
        job->env, LEAT_ENOBUFS,
        "the job needs at least %llu memory segments of %zu bytes, but only %u of all %u "
        "are free: raise memory.network, or lower the parallelism",
        (unsigned long long)minimum, leati_global_pool_segment_size(pool), unreserved, total);
    return LEAT_ENOBUFS;
}

// --- tasks ---

static uint32_t count_exits(const leati_job_graph *graph, uint32_t vertex)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < graph->edge_count; e++)
        count += graph->edges[e].from_vertex == vertex;
    return count;
}

// An operator that asked for a worker of its own gets it for its whole task.
static leat_err give_own_worker(leat_job *job, leati_task *t)
{
    bool asked = false;
    for (uint32_t i = 0; i < t->vertex->op_count; i++)
        asked |= (t->vertex->ops[i].flags & LEATI_NODE_OWN_WORKER) != 0;
    if (!asked || leati_scheduler_is_stepped(job->runtime->scheduler))
        return LEAT_OK;
    leat_err err = leati_worker_create(job->runtime->scheduler, &t->own_worker);
    if (!err)
        leati_runnable_move(&t->run, t->own_worker);
    return err;
}

static leat_err deploy_input(leat_job *job, leati_task *t)
{
    const leati_job_graph *graph = job->graph;
    uint32_t count = t->vertex->ops[0].input_count;
    const leat_type **types = leati_calloc(job->allocator, count, sizeof *types);
    uint32_t *channels = leati_calloc(job->allocator, count, sizeof *channels);
    leat_err err = types && channels ? LEAT_OK : LEAT_ENOMEM;
    for (uint32_t e = 0; e < graph->edge_count && !err; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        uint32_t first;
        if (edge->to_vertex != t->vertex->id || edge->input >= count)
            continue;
        channels[edge->input] += leati_deploy_producers(graph, edge, t->subtask, &first);
        // All edges of an input carry the same structure; it is decoded into the layout of those
        // who take it.
        types[edge->input] = t->vertex->ops[0].node->inputs[edge->input].type;
    }
    if (!err)
        err = leati_input_init(&t->input, job->allocator, count, types, channels, &t->waiter);
    leati_free(job->allocator, types);
    leati_free(job->allocator, channels);
    return err;
}

static leat_err deploy_broadcasts(leat_job *job, leati_task *t)
{
    const leati_job_graph *graph = job->graph;
    const leati_chain_op *head = &t->vertex->ops[0];
    uint32_t *channels = leati_calloc(job->allocator, head->variable_count, sizeof *channels);
    if (!channels)
        return LEAT_ENOMEM;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        uint32_t first;
        if (edge->to_vertex == t->vertex->id && edge->input >= head->input_count)
            channels[edge->input - head->input_count] +=
                leati_deploy_producers(graph, edge, t->subtask, &first);
    }
    leat_err err = leati_broadcasts_create(t, channels, &t->broadcasts);
    leati_free(job->allocator, channels);
    return err;
}

static leat_err deploy_task(leat_job *job, const leati_vertex *vertex, uint32_t subtask)
{
    const leati_job_graph *graph = job->graph;
    leati_task *t = leati_deploy_task_of(job, vertex->id, subtask);
    // Subtasks of the same index share a worker, as they would share a slot; single ones are
    // spread.
    uint32_t place = (uint32_t)(t - &job->tasks[job->first_task[vertex->id]]);
    uint32_t home = vertex->parallelism > 1 ? place : vertex->id;
    leat_err err = leati_task_init(t, job, job->allocator, vertex, subtask, home);
    if (err)
        return err;
    uint32_t exits = count_exits(graph, vertex->id);
    t->writers = leati_calloc(job->allocator, exits, sizeof(leati_writer *));
    t->pools = leati_calloc(job->allocator, exits, sizeof(leati_local_pool *));
    t->exits = leati_calloc(job->allocator, exits, sizeof *t->exits);
    t->spools = leati_calloc(job->allocator, exits, sizeof(leati_spool *));
    t->exchanges = leati_calloc(job->allocator, exits, sizeof *t->exchanges);
    if (!t->writers || !t->pools || !t->exits || !t->spools || !t->exchanges)
        return LEAT_ENOMEM;
    err = give_own_worker(job, t);
    if (err)
        return err;
    if (t->is_source)
        return LEAT_OK;
    err = deploy_input(job, t);
    return err || !vertex->ops[0].variable_count ? err : deploy_broadcasts(job, t);
}

// Where the tasks of each vertex begin, and how many run here.
static leat_err count_tasks(leat_job *job, uint64_t *count)
{
    const leati_job_graph *graph = job->graph;
    job->first_task =
        leati_calloc(job->allocator, graph->vertex_count + 1u, sizeof *job->first_task);
    if (!job->first_task || leati_job_graph_tasks(graph) > UINT32_MAX / 2)
        return LEAT_ENOMEM;
    uint32_t here = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        job->first_task[v] = here;
        for (uint32_t i = 0; i < graph->vertices[v].parallelism; i++)
            if (leati_job_has_task(job, v, i)) {
                if (job->placed)
                    job->placed->local_of[job->placed->first_of[v] + i] = here;
                here++;
            }
    }
    job->first_task[graph->vertex_count] = here;
    *count = here;
    return LEAT_OK;
}

static leat_err deploy_tasks(leat_job *job)
{
    const leati_job_graph *graph = job->graph;
    uint64_t count;
    leat_err err = count_tasks(job, &count);
    if (err)
        return err;
    job->tasks =
        leati_alloc_aligned(job->allocator, _Alignof(leati_task), count * sizeof *job->tasks);
    if (!job->tasks)
        return LEAT_ENOMEM;
    memset(job->tasks, 0, count * sizeof *job->tasks);
    job->task_count = (uint32_t)count;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].parallelism && !err; i++)
            if (leati_job_has_task(job, v, i))
                err = deploy_task(job, &graph->vertices[v], i);
    return err;
}

// --- flushing ---

static void flush_tick(leati_tick *tick)
{
    leati_flusher *flusher = (leati_flusher *)tick;
    for (uint32_t i = 0; i < flusher->writer_count; i++)
        leati_writer_tick(flusher->writers[i]);
    leat_job *job = flusher->job;
    if (job->placed)
        job->placed->transport->nudge(job->placed->link);
    if (flusher != job->operators_flusher)
        return;
    for (uint32_t i = 0; i < job->task_count; i++) {
        leati_task *t = &job->tasks[i];
        if (atomic_load_explicit(&t->can_flush, memory_order_relaxed) &&
            atomic_load_explicit(&t->held_back, memory_order_relaxed)) {
            atomic_store_explicit(&t->flush_due, true, memory_order_relaxed);
            leati_runnable_wake(&t->run);
        }
    }
}

static leati_flusher *flusher_for(leat_job *job, int64_t timeout_ms)
{
    for (leati_flusher *flusher = job->flushers; flusher; flusher = flusher->next)
        if (flusher->timeout_ms == timeout_ms)
            return flusher;
    leati_flusher *flusher = leati_calloc(job->allocator, 1, sizeof *flusher);
    if (!flusher)
        return NULL;
    flusher->tick = (leati_tick){.interval_ns = timeout_ms * 1000000, .run = flush_tick};
    flusher->job = job;
    flusher->timeout_ms = timeout_ms;
    flusher->next = job->flushers;
    job->flushers = flusher;
    return flusher;
}

leat_err leati_deploy_flusher(leat_job *job, const leati_job_edge *edge, leati_writer *writer)
{
    if (edge->buffer_timeout_ms <= 0)
        return LEAT_OK;
    leati_flusher *flusher = flusher_for(job, edge->buffer_timeout_ms);
    if (!flusher)
        return LEAT_ENOMEM;
    size_t capacity = flusher->writer_capacity;
    if (!leati_grow(job->allocator, (void **)&flusher->writers, &capacity,
                    flusher->writer_count + 1u, sizeof *flusher->writers))
        return LEAT_ENOMEM;
    flusher->writer_capacity = (uint32_t)capacity;
    flusher->writers[flusher->writer_count++] = writer;
    return LEAT_OK;
}

static leat_err deploy_operators_flusher(leat_job *job)
{
    int64_t timeout_ms = leati_config_get(&job->config, LEATI_CONFIG_BUFFER_TIMEOUT);
    job->operators_flusher = flusher_for(job, timeout_ms > 0 ? timeout_ms : 100);
    return job->operators_flusher ? LEAT_OK : LEAT_ENOMEM;
}

// --- the whole ---

leat_err leati_job_deploy(leat_job *job)
{
    leati_exchange_needs needs;
    leati_deploy_count(job, &needs);
    leat_err err = reserve_segments(job, needs.segments);
    if (err)
        return err;
    job->channels = leati_calloc(job->allocator, needs.channels, sizeof(leati_channel *));
    err = job->channels ? deploy_tasks(job) : LEAT_ENOMEM;
    if (!err && job->placed)
        err = leati_placed_open(job, &needs);
    if (!err)
        err = leati_deploy_exchanges(job);
    if (!err)
        err = deploy_operators_flusher(job);
    if (!err)
        err = leati_debloater_create(job, &job->debloater);
    if (!err)
        err = leati_scheduler_reserve(job->runtime->scheduler, min_u32(job->task_count, 1));
    return err;
}

static void undeploy_pool(leati_local_pool **pool)
{
    if (!*pool)
        return;
    leati_local_pool_close(*pool);
    leati_local_pool_destroy(pool);
}

void leati_job_undeploy(leat_job *job)
{
    // Readers may hold bytes of segments, channels hold segments, segments belong to pools: in this
    // order.
    for (uint32_t i = 0; i < job->task_count; i++)
        leati_task_fini(&job->tasks[i]);
    for (size_t i = 0; i < job->channel_count; i++)
        leati_channel_destroy(&job->channels[i]);
    leati_free(job->allocator, job->channels);
    for (uint32_t i = 0; i < job->task_count; i++) {
        leati_task *t = &job->tasks[i];
        for (uint32_t e = 0; t->pools && e < t->exit_count; e++)
            undeploy_pool(&t->pools[e]);
        leati_free(job->allocator, t->pools);
    }
    for (size_t i = 0; job->placed && i < job->placed->pool_count; i++)
        undeploy_pool(&job->placed->pools[i]);
    leati_free_aligned(job->allocator, job->tasks);
    leati_free(job->allocator, job->first_task);
    leati_debloater_destroy(&job->debloater);
    while (job->flushers) {
        leati_flusher *flusher = job->flushers;
        job->flushers = flusher->next;
        leati_free(job->allocator, flusher->writers);
        leati_free(job->allocator, flusher);
    }
    if (job->promised)
        leati_global_pool_unreserve(job->runtime->pool, job->promised);
}
