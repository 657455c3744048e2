// SPDX-License-Identifier: Apache-2.0
// The exchanges of a job: pools, channels, readers and writers. A channel with one end in another
// process is made here and given to the transport, under a number that both processes know: its
// place among all channels of the job, edge by edge, producer by producer, consumer by consumer.
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/broadcast.h"
#include "runtime/deploy_impl.h"

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

uint32_t leati_deploy_producers(const leati_job_graph *graph, const leati_job_edge *edge,
                                uint32_t consumer, uint32_t *first)
{
    uint32_t count;
    leati_edge_producers(edge->partitioner, graph->vertices[edge->from_vertex].parallelism,
                         graph->vertices[edge->to_vertex].parallelism, consumer, first, &count);
    return count;
}

// A received channel has one segment that is being filled, and one to go on with.
enum { RECEIVED_MINIMUM = 2 };

void leati_deploy_count(const leat_job *job, leati_exchange_needs *needs)
{
    const leati_job_graph *graph = job->graph;
    *needs = (leati_exchange_needs){0};
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        for (uint32_t p = 0; p < graph->vertices[edge->from_vertex].parallelism; p++) {
            uint32_t first, count = consumers_of(graph, edge, p, &first);
            needs->numbers += count;
            if (leati_job_has_task(job, edge->from_vertex, p)) {
                needs->segments += pool_minimum(edge, count);
                needs->channels += count;
                continue;
            }
            for (uint32_t c = 0; c < count; c++)
                needs->received += leati_job_has_task(job, edge->to_vertex, first + c);
        }
    }
    needs->channels += needs->received;
    needs->segments += needs->received * RECEIVED_MINIMUM;
}

// --- the consumer's end ---

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
            base += leati_deploy_producers(graph, other, consumer, &first);
    }
    return base;
}

// Where a consumer that runs here reads the channel.
static void attach(leat_job *job, uint32_t edge_index, uint32_t producer, uint32_t consumer,
                   leati_channel *channel)
{
    const leati_job_graph *graph = job->graph;
    const leati_job_edge *edge = &graph->edges[edge_index];
    uint32_t first_producer;
    leati_deploy_producers(graph, edge, consumer, &first_producer);
    uint32_t index = gate_base(graph, edge_index, consumer) + producer - first_producer;
    leati_task *t = leati_deploy_task_of(job, edge->to_vertex, consumer);
    leati_task_input *input = &t->input;
    if (edge->input >= t->vertex->ops[0].input_count) {
        // Variables come behind all inputs, at a gate of their own.
        index -= t->input.channels;
        input = leati_broadcasts_input(t->broadcasts);
    }
    leati_gate_attach(input->gate, index, channel);
    // The timestamp of a record is part of its payload.
    uint32_t max_payload =
        (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_RECORD_SIZE) + 8;
    leati_reader_init(&input->readers[index], job->allocator, channel, max_payload);
}

static leat_err create_channel(leat_job *job, leati_local_pool *pool, uint32_t least_room,
                               leati_channel **channel)
{
    uint32_t most = (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_BUFFERS_PER_CHANNEL);
    leat_err err = leati_channel_create(
        job->allocator, pool, most > least_room ? most : least_room,
        (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_OVERDRAFT_BUFFERS), channel);
    if (!err)
        job->channels[job->channel_count++] = *channel;
    return err;
}

// What a received channel may hold: its own buffers, and its part of what floats among those of a
// producer that would be here.
static uint32_t received_maximum(const leati_config *config, uint32_t producers)
{
    uint32_t floating = (uint32_t)leati_config_get(config, LEATI_CONFIG_FLOATING_BUFFERS);
    uint32_t most = (uint32_t)leati_config_get(config, LEATI_CONFIG_BUFFERS_PER_CHANNEL) +
                    (floating + producers - 1) / producers;
    return most > RECEIVED_MINIMUM ? most : RECEIVED_MINIMUM;
}

// A channel whose producer is elsewhere: its segments come from a pool of its own, which the
// transport owns.
static leat_err receive_into(leat_job *job, uint32_t edge_index, uint32_t producer,
                             uint32_t consumer, uint32_t number, leati_local_pool *pool,
                             uint32_t most)
{
    leati_placed *placed = job->placed;
    uint32_t from = job->graph->edges[edge_index].from_vertex;
    leati_channel *channel;
    leat_err err = create_channel(job, pool, most, &channel);
    if (err)
        return err;
    attach(job, edge_index, producer, consumer, channel);
    return placed->transport->receive(placed->link, number,
                                      leati_placed_process(placed, from, producer), channel, pool);
}

// A channel whose producer is elsewhere: its segments come from a pool of its own, which the
// transport owns.
static leat_err receive(leat_job *job, uint32_t edge_index, uint32_t producer, uint32_t consumer,
                        uint32_t number)
{
    const leati_job_edge *edge = &job->graph->edges[edge_index];
    leati_placed *placed = job->placed;
    uint32_t first, producers = leati_deploy_producers(job->graph, edge, consumer, &first);
    leati_local_pool_options options = {
        .minimum = RECEIVED_MINIMUM,
        .maximum = received_maximum(&job->config, producers),
        .waiter = placed->transport->waiter(placed->link, number),
    };
    if (!options.waiter)
        return LEAT_ENOMEM;
    leati_local_pool *pool;
    leat_err err = leati_local_pool_create(job->runtime->pool, &options, &pool);
    if (err)
        return err;
    job->promised -= options.minimum;
    placed->pools[placed->pool_count++] = pool;
    err = receive_into(job, edge_index, producer, consumer, number, pool, options.maximum);
    // Not handed over: nobody may wake its waiter once the link is closed.
    if (err)
        leati_local_pool_close(pool);
    return err;
}

// --- the producer's end ---

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

static leat_err deploy_writer(leat_job *job, const leati_job_edge *edge, leati_task *t,
                              uint32_t exit, uint32_t channels)
{
    const leati_vertex *to = &job->graph->vertices[edge->to_vertex];
    leati_writer_options options = {
        .allocator = job->allocator,
        .type = edge->type,
        .partitioner = edge->partitioner,
        .key = edge->key,
        .custom = edge->custom,
        .spool = t->spools[exit],
        .ctx = &t->chain.ctx[edge->from_op],
        .subtask = t->subtask,
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
        .maybe_blocked = &t->allowance.unsure,
        .failed = leati_ctx_error,
    };
    leat_err err = leati_writer_create(&options, t->exchanges[exit].channels, &t->writers[exit]);
    if (!err)
        t->exits[exit] = (leati_chain_exit){.from_op = edge->from_op,
                                            .side = edge->side,
                                            .type = edge->type,
                                            .writer = leati_writer_operator(t->writers[exit]),
                                            .some = leati_writer_some(t->writers[exit])};
    return err;
}

// The channels of one producer that runs here. Those that lead to another process are attached
// there, when all of them are ready.
static leat_err make_channels(leat_job *job, uint32_t edge_index, leati_task *t, uint32_t exit,
                              uint32_t first, uint32_t count)
{
    const leati_job_edge *edge = &job->graph->edges[edge_index];
    t->exchanges[exit].channels = &job->channels[job->channel_count];
    for (uint32_t c = 0; c < count; c++) {
        leati_channel *channel;
        leat_err err = create_channel(job, t->pools[exit], 0, &channel);
        if (err)
            return err;
        if (leati_job_has_task(job, edge->to_vertex, first + c))
            attach(job, edge_index, t->subtask, first + c, channel);
        if (t->spools[exit])
            leati_channel_set_spool(channel, t->spools[exit], c);
    }
    return LEAT_OK;
}

static leat_err send_channels(const leat_job *job, const leati_job_edge *edge,
                              const leati_task_exchange *exchange)
{
    const leati_placed *placed = job->placed;
    leat_err err = LEAT_OK;
    for (uint32_t c = 0; c < exchange->count && !err; c++) {
        uint32_t consumer = exchange->first + c;
        if (leati_job_has_task(job, edge->to_vertex, consumer))
            continue;
        if (edge->buffer_timeout_ms == 0)
            leati_channel_set_prompt(exchange->channels[c]);
        err = placed->transport->send(placed->link, exchange->number + c,
                                      leati_placed_process(placed, edge->to_vertex, consumer),
                                      exchange->channels[c]);
    }
    return err;
}

static leat_err deploy_exit(leat_job *job, uint32_t edge_index, uint32_t producer, uint32_t number)
{
    const leati_job_edge *edge = &job->graph->edges[edge_index];
    leati_task *t = leati_deploy_task_of(job, edge->from_vertex, producer);
    uint32_t first, count = consumers_of(job->graph, edge, producer, &first);
    uint32_t exit = t->exit_count;
    leat_err err = create_pool(job, t, edge, count, &t->pools[exit]);
    if (err)
        return err;
    t->exit_count++;
    t->exchanges[exit] =
        (leati_task_exchange){.edge = edge, .first = first, .count = count, .number = number};
    if (edge->blocking)
        err = create_spool(job, t, edge, count, &t->spools[exit]);
    if (!err)
        err = make_channels(job, edge_index, t, exit, first, count);
    if (!err)
        err = deploy_writer(job, edge, t, exit, count);
    if (!err)
        err = leati_deploy_flusher(job, edge, t->writers[exit]);
    return err ? err : send_channels(job, edge, &t->exchanges[exit]);
}

static leat_err deploy_received(leat_job *job, uint32_t edge_index, uint32_t producer,
                                uint32_t number)
{
    const leati_job_edge *edge = &job->graph->edges[edge_index];
    uint32_t first, count = consumers_of(job->graph, edge, producer, &first);
    leat_err err = LEAT_OK;
    for (uint32_t c = 0; c < count && !err; c++)
        if (leati_job_has_task(job, edge->to_vertex, first + c))
            err = receive(job, edge_index, producer, first + c, number + c);
    return err;
}

leat_err leati_deploy_exchanges(leat_job *job)
{
    const leati_job_graph *graph = job->graph;
    uint32_t number = 0;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        for (uint32_t p = 0; p < graph->vertices[edge->from_vertex].parallelism; p++) {
            uint32_t first, count = consumers_of(graph, edge, p, &first);
            leat_err err = leati_job_has_task(job, edge->from_vertex, p)
                               ? deploy_exit(job, e, p, number)
                               : deploy_received(job, e, p, number);
            if (err)
                return err;
            number += count; // does not wrap: placed jobs of so many channels are refused
        }
    }
    return LEAT_OK;
}
