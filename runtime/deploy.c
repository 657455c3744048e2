// SPDX-License-Identifier: Apache-2.0
// From a job graph to tasks with their pools, channels, gates and writers.
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/execution.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static leati_task *task_of(const leat_job *job, uint32_t vertex, uint32_t subtask)
{
    return &job->tasks[job->first_task[vertex] + subtask];
}

// --- how much ---

// Each channel may hold one partly filled segment, and a record is started only when one more is
// free. A broadcast fills one segment for all channels.
static uint32_t pool_minimum(const leati_job_edge *edge, uint32_t channels)
{
    return edge->partitioner == LEATI_PARTITION_BROADCAST ? 2 : channels + 1;
}

static uint32_t pool_maximum(const leati_config *config, uint32_t channels)
{
    return channels * (uint32_t)leati_config_get(config, LEATI_CONFIG_BUFFERS_PER_CHANNEL) +
           (uint32_t)leati_config_get(config, LEATI_CONFIG_FLOATING_BUFFERS);
}

static uint32_t consumers_of(const leati_job_graph *graph, const leati_job_edge *edge,
                             uint32_t producer, uint32_t *first)
{
    uint32_t count;
    leati_edge_consumers(edge->partitioner, graph->vertices[edge->from_vertex].parallelism,
                         graph->vertices[edge->to_vertex].parallelism, producer, first, &count);
    return count;
}

static uint32_t producers_of(const leati_job_graph *graph, const leati_job_edge *edge,
                             uint32_t consumer, uint32_t *first)
{
    uint32_t count;
    leati_edge_producers(edge->partitioner, graph->vertices[edge->from_vertex].parallelism,
                         graph->vertices[edge->to_vertex].parallelism, consumer, first, &count);
    return count;
}

// The segments without which the job cannot run, and the number of its channels.
static uint64_t count_minimum(const leati_job_graph *graph, uint64_t *channels)
{
    uint64_t segments = 0;
    *channels = 0;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        for (uint32_t p = 0; p < graph->vertices[edge->from_vertex].parallelism; p++) {
            uint32_t first, count = consumers_of(graph, edge, p, &first);
            segments += pool_minimum(edge, count);
            *channels += count;
        }
    }
    return segments;
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
        if (edge->to_vertex != t->vertex->id)
            continue;
        channels[edge->input] += producers_of(graph, edge, t->subtask, &first);
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

static leat_err deploy_task(leat_job *job, const leati_vertex *vertex, uint32_t subtask)
{
    const leati_job_graph *graph = job->graph;
    leati_task *t = task_of(job, vertex->id, subtask);
    // Subtasks of the same index share a worker, as they would share a slot; single ones are
    // spread.
    uint32_t home = vertex->parallelism > 1 ? subtask : vertex->id;
    leat_err err = leati_task_init(t, job, job->allocator, vertex, subtask, home);
    if (err)
        return err;
    uint32_t exits = count_exits(graph, vertex->id);
    t->writers = leati_calloc(job->allocator, exits, sizeof(leati_writer *));
    t->pools = leati_calloc(job->allocator, exits, sizeof(leati_local_pool *));
    t->exits = leati_calloc(job->allocator, exits, sizeof *t->exits);
    t->spools = leati_calloc(job->allocator, exits, sizeof(leati_spool *));
    if (!t->writers || !t->pools || !t->exits || !t->spools)
        return LEAT_ENOMEM;
    err = give_own_worker(job, t);
    if (err)
        return err;
    return t->is_source ? LEAT_OK : deploy_input(job, t);
}

static leat_err deploy_tasks(leat_job *job)
{
    const leati_job_graph *graph = job->graph;
    uint64_t count = 0;
    job->first_task = leati_calloc(job->allocator, graph->vertex_count, sizeof *job->first_task);
    if (!job->first_task)
        return LEAT_ENOMEM;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        job->first_task[v] = (uint32_t)count;
        count += graph->vertices[v].parallelism;
    }
    if (count > UINT32_MAX / 2)
        return LEAT_ENOMEM;
    job->tasks =
        leati_alloc_aligned(job->allocator, _Alignof(leati_task), count * sizeof *job->tasks);
    if (!job->tasks)
        return LEAT_ENOMEM;
    memset(job->tasks, 0, count * sizeof *job->tasks);
    job->task_count = (uint32_t)count;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].parallelism; i++) {
            leat_err err = deploy_task(job, &graph->vertices[v], i);
            if (err)
                return err;
        }
    return LEAT_OK;
}

// --- exchanges ---

// Where the channels of an edge begin in a consumer's gate: behind those of lower inputs, and of
// earlier edges of the same input.
static uint32_t gate_base(const leati_job_graph *graph, uint32_t edge_index, uint32_t consumer)
{
    const leati_job_edge *edge = &graph->edges[edge_index];
    uint32_t base = 0, first;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *other = &graph->edges[e];
        if (other->to_vertex == edge->to_vertex &&
            (other->input < edge->input || (other->input == edge->input && e < edge_index)))
            base += producers_of(graph, other, consumer, &first);
    }
    return base;
}

static leat_err connect(leat_job *job, uint32_t edge_index, uint32_t producer, uint32_t consumer,
                        leati_local_pool *pool)
{
    const leati_job_graph *graph = job->graph;
    const leati_job_edge *edge = &graph->edges[edge_index];
    leati_channel *channel;
    leat_err err = leati_channel_create(
        job->allocator, pool,
        (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_BUFFERS_PER_CHANNEL),
        (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_OVERDRAFT_BUFFERS), &channel);
    if (err)
        return err;
    job->channels[job->channel_count++] = channel;
    uint32_t first_producer;
    producers_of(graph, edge, consumer, &first_producer);
    uint32_t index = gate_base(graph, edge_index, consumer) + producer - first_producer;
    leati_task_input *input = &task_of(job, edge->to_vertex, consumer)->input;
    leati_gate_attach(input->gate, index, channel);
    // The timestamp of a record is part of its payload.
    uint32_t max_payload =
        (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_RECORD_SIZE) + 8;
    leati_reader_init(&input->readers[index], job->allocator, channel, max_payload);
    return LEAT_OK;
}

static leat_err create_pool(leat_job *job, leati_task *t, const leati_job_edge *edge,
                            uint32_t channels, leati_local_pool **pool)
{
    uint32_t minimum = pool_minimum(edge, channels), maximum = pool_maximum(&job->config, channels);
    leati_local_pool_options options = {
        .minimum = minimum,
        .maximum = maximum > minimum ? maximum : minimum,
        .overdraft = (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_OVERDRAFT_BUFFERS),
        .waiter = &t->waiter,
    };
    leat_err err = leati_local_pool_create(job->runtime->pool, &options, pool);
    if (!err)
        job->promised -= minimum;
    return err;
}

static leat_err create_spool(leat_job *job, const leati_task *t, const leati_job_edge *edge,
                             uint32_t channels, leati_spool **spool)
{
    leat_err err = leati_spool_create(job->allocator, channels, spool);
    if (err == LEAT_EIO)
        leati_env_run_failed(
            job->env, err,
            "%s: a file for its blocking exchange cannot be made in %s: %s; TMPDIR can "
            "name another folder",
            t->vertex->ops[edge->from_op].node->name, leati_spool_folder(), strerror(errno));
    return err;
}

static leat_err deploy_exit(leat_job *job, uint32_t edge_index, uint32_t producer)
{
    const leati_job_graph *graph = job->graph;
    const leati_job_edge *edge = &graph->edges[edge_index];
    const leati_vertex *to = &graph->vertices[edge->to_vertex];
    leati_task *t = task_of(job, edge->from_vertex, producer);
    uint32_t first, channels = consumers_of(graph, edge, producer, &first);
    uint32_t exit = t->exit_count;
    leat_err err = create_pool(job, t, edge, channels, &t->pools[exit]);
    if (err)
        return err;
    t->exit_count++;
    if (edge->blocking) {
        err = create_spool(job, t, edge, channels, &t->spools[exit]);
        if (err)
            return err;
    }
    size_t first_channel = job->channel_count;
    for (uint32_t c = 0; c < channels && !err; c++)
        err = connect(job, edge_index, producer, first + c, t->pools[exit]);
    if (err)
        return err;
    for (uint32_t c = 0; c < channels && t->spools[exit]; c++)
        leati_channel_set_spool(job->channels[first_channel + c], t->spools[exit], c);
    leati_writer_options options = {
        .allocator = job->allocator,
        .type = edge->type,
        .partitioner = edge->partitioner,
        .key = edge->key,
        .custom = edge->custom,
        .spool = t->spools[exit],
        .ctx = &t->chain.ctx[edge->from_op],
        .subtask = producer,
        .channels = channels,
        .consumers = to->parallelism,
        .max_parallelism = to->max_parallelism,
        .buffer_timeout_ms = edge->buffer_timeout_ms,
        .max_segments =
            (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_BUFFERS_PER_CHANNEL),
        .max_record_size = (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_RECORD_SIZE),
        .pool = t->pools[exit],
        .waiter = &t->waiter,
        .time = &t->time,
        .maybe_blocked = &t->maybe_blocked,
        .failed = leati_ctx_error,
    };
    err = leati_writer_create(&options, &job->channels[first_channel], &t->writers[exit]);
    if (!err)
        t->exits[exit] = (leati_chain_exit){.from_op = edge->from_op,
                                            .side = edge->side,
                                            .type = edge->type,
                                            .writer = leati_writer_operator(t->writers[exit])};
    return err;
}

// --- flushing ---

static void flush_tick(leati_tick *tick)
{
    leati_flusher *flusher = (leati_flusher *)tick;
    for (uint32_t i = 0; i < flusher->writer_count; i++)
        leati_writer_tick(flusher->writers[i]);
    leat_job *job = flusher->job;
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

static leat_err add_to_flusher(leat_job *job, const leati_job_edge *edge, leati_writer *writer)
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

// --- the whole ---

static leat_err deploy_exchanges(leat_job *job)
{
    const leati_job_graph *graph = job->graph;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        for (uint32_t p = 0; p < graph->vertices[edge->from_vertex].parallelism; p++) {
            leat_err err = deploy_exit(job, e, p);
            leati_task *t = task_of(job, edge->from_vertex, p);
            if (!err)
                err = add_to_flusher(job, edge, t->writers[t->exit_count - 1]);
            if (err)
                return err;
        }
    }
    int64_t timeout_ms = leati_config_get(&job->config, LEATI_CONFIG_BUFFER_TIMEOUT);
    job->operators_flusher = flusher_for(job, timeout_ms > 0 ? timeout_ms : 100);
    return job->operators_flusher ? LEAT_OK : LEAT_ENOMEM;
}

leat_err leati_job_deploy(leat_job *job)
{
    uint64_t channels;
    uint64_t minimum = count_minimum(job->graph, &channels);
    leat_err err = reserve_segments(job, minimum);
    if (err)
        return err;
    job->channels = leati_calloc(job->allocator, channels, sizeof(leati_channel *));
    err = job->channels ? deploy_tasks(job) : LEAT_ENOMEM;
    if (!err)
        err = deploy_exchanges(job);
    if (!err)
        err = leati_scheduler_reserve(job->runtime->scheduler, min_u32(job->task_count, 1));
    return err;
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
            if (t->pools[e]) {
                leati_local_pool_close(t->pools[e]);
                leati_local_pool_destroy(&t->pools[e]);
            }
        leati_free(job->allocator, t->pools);
    }
    leati_free_aligned(job->allocator, job->tasks);
    leati_free(job->allocator, job->first_task);
    while (job->flushers) {
        leati_flusher *flusher = job->flushers;
        job->flushers = flusher->next;
        leati_free(job->allocator, flusher->writers);
        leati_free(job->allocator, flusher);
    }
    if (job->promised)
        leati_global_pool_unreserve(job->runtime->pool, job->promised);
}
