// SPDX-License-Identifier: Apache-2.0
// The transport of placed.h. Each link has a thread that carries what its sent channels hold to the
// other ends, under one lock; so a received channel has one producer at a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "network/channel.h"
#include "placed.h"

typedef struct fake_end {
    leati_waiter waiter; // first; of a sent channel's gate, or a received channel's pool
    struct leati_link *link;
    uint32_t number, peer;
    bool received;
    leati_channel *channel;
    leati_local_pool *pool; // received
    leati_gate *gate;       // sent
    bool held;              // sent: polled and not given back
    bool no_credit;
    int64_t since_ns;
    struct fake_end *next;
} fake_end;

struct leati_link {
    fake_net *net;
    leati_link_options options;
    pthread_t thread;
    fake_end *ends;
    bool closing;
    const char *cut; // under the lock: to be told
};

typedef struct endpoint {
    leati_transport transport; // first
    fake_net *net;
    uint32_t process;
} endpoint;

struct fake_net {
    uint32_t count;
    endpoint endpoints[PROCESSES_MOST];
    pthread_mutex_t lock; // over all that is carried
    leati_link *links[PROCESSES_MOST];
    bool blocked;
    _Atomic uint64_t segments;
    // A lock of its own, for wakers that are called under the other.
    pthread_mutex_t wake_lock;
    pthread_cond_t woken;
    uint64_t wakes;
};

static void wake_all(fake_net *net)
{
    pthread_mutex_lock(&net->wake_lock);
    net->wakes++;
    pthread_cond_broadcast(&net->woken);
    pthread_mutex_unlock(&net->wake_lock);
}

static void wake_end(leati_waiter *waiter)
{
    wake_all(((fake_end *)waiter)->link->net);
}

static fake_end *find_end(leati_link *link, uint32_t number, bool received)
{
    fake_end *end = link ? link->ends : NULL;
    while (end && (end->number != number || end->received != received))
        end = end->next;
    return end;
}

// --- carrying ---

static bool copy(fake_net *net, fake_end *to, const leati_chunk *chunk)
{
    leati_segment *segment = NULL;
    if (!net->blocked && leati_channel_room(to->channel) > 0)
        segment = leati_local_pool_request(to->pool, false);
    if (!segment) {
        leati_local_pool_await(to->pool);
        if (!net->blocked && leati_channel_room(to->channel) > 0)
            segment = leati_local_pool_request(to->pool, false);
    }
    if (!segment)
        return false;
    memcpy(segment->data, chunk->data, chunk->size);
    atomic_store_explicit(&segment->committed, chunk->size | LEATI_SEGMENT_FINISHED,
                          memory_order_release);
    leati_channel_add_segment(to->channel, segment);
    leati_channel_notify(to->channel);
    atomic_fetch_add(&net->segments, 1);
    return true;
}

// Carries all that a sent channel has. False when it has to wait for credit.
static bool drain(fake_net *net, fake_end *from, fake_end *to)
{
    for (;;) {
        leati_chunk chunk;
        if (leati_channel_event_room(to->channel) < 2) {
            leati_local_pool_await(to->pool);
            if (leati_channel_event_room(to->channel) < 2)
                return false;
        }
        switch (leati_channel_peek(from->channel, &chunk)) {
        case LEATI_CHUNK_DATA:
            // A gathered piece of a spool may be larger than a segment is here.
            if (chunk.size > leati_local_pool_segment_size(to->pool))
                chunk.size = leati_local_pool_segment_size(to->pool);
            if (!copy(net, to, &chunk))
                return false;
            leati_channel_advance(from->channel, chunk.size);
            break;
        case LEATI_CHUNK_EVENT:
            leati_channel_add_event(to->channel, &chunk.event);
            break;
        default:
            return true;
        }
    }
}

static void carry(leati_link *link)
{
    fake_net *net = link->net;
    for (fake_end *end = link->ends; end; end = end->next) {
        if (end->received || !end->gate)
            continue;
        fake_end *to = find_end(net->links[end->peer], end->number, true);
        if (!to || !to->channel)
            continue; // the other process is not there yet, or has gone
        for (;;) {
            if (!end->held && !leati_gate_poll(end->gate))
                break;
            end->held = !drain(net, end, to);
            if (end->held && !end->no_credit)
                end->since_ns = leati_clock_ns();
            end->no_credit = end->held;
            if (end->held)
                break;
            leati_gate_done(end->gate, end->channel, false);
        }
    }
}

static void *carry_main(void *arg)
{
    leati_link *link = arg;
    fake_net *net = link->net;
    uint64_t seen = 0;
    for (;;) {
        pthread_mutex_lock(&net->wake_lock);
        while (net->wakes == seen)
            pthread_cond_wait(&net->woken, &net->wake_lock);
        seen = net->wakes;
        pthread_mutex_unlock(&net->wake_lock);
        pthread_mutex_lock(&net->lock);
        bool closing = link->closing;
        const char *cut = link->cut;
        link->cut = NULL;
        if (!closing)
            carry(link);
        pthread_mutex_unlock(&net->lock);
        if (cut)
            link->options.failed(link->options.user, LEAT_EPIPE, cut);
        if (closing)
            return NULL;
    }
}

// --- the interface ---

static leat_err net_open(leati_transport *self, const leati_link_options *options,
                         leati_link **link)
{
    endpoint *end = (endpoint *)self;
    leati_link *made = calloc(1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->net = end->net;
    made->options = *options;
    pthread_mutex_lock(&end->net->lock);
    end->net->links[end->process] = made;
    pthread_mutex_unlock(&end->net->lock);
    if (pthread_create(&made->thread, NULL, carry_main, made)) {
        free(made);
        return LEAT_ETHREAD;
    }
    *link = made;
    return LEAT_OK;
}

static fake_end *add_end(leati_link *link, uint32_t number, bool received)
{
    fake_end *end = calloc(1, sizeof *end);
    if (!end)
        return NULL;
    end->waiter.wake = wake_end;
    end->link = link;
    end->number = number;
    end->received = received;
    pthread_mutex_lock(&link->net->lock);
    end->next = link->ends;
    link->ends = end;
    pthread_mutex_unlock(&link->net->lock);
    return end;
}

static leat_err net_send(leati_link *link, uint32_t number, uint32_t peer, leati_channel *channel)
{
    fake_end *end = add_end(link, number, false);
    leati_gate *gate = NULL;
    leat_err err = end ? leati_gate_create(leati_allocator_or_default(NULL), &end->waiter, 1, &gate)
                       : LEAT_ENOMEM;
    if (err)
        return err;
    leati_gate_attach(gate, 0, channel);
    pthread_mutex_lock(&link->net->lock);
    end->peer = peer;
    end->channel = channel;
    end->gate = gate;
    pthread_mutex_unlock(&link->net->lock);
    wake_all(link->net);
    return LEAT_OK;
}

static leati_waiter *net_waiter(leati_link *link, uint32_t number)
{
    fake_end *end = add_end(link, number, true);
    return end ? &end->waiter : NULL;
}

static leat_err net_receive(leati_link *link, uint32_t number, uint32_t peer,
                            leati_channel *channel, leati_local_pool *pool)
{
    pthread_mutex_lock(&link->net->lock);
    fake_end *end = find_end(link, number, true);
    end->peer = peer;
    end->pool = pool;
    end->channel = channel;
    pthread_mutex_unlock(&link->net->lock);
    wake_all(link->net);
    return LEAT_OK;
}

// Nothing is put off here.
static void net_nudge(leati_link *link)
{
}

static void net_look(leati_link *link, uint32_t number, leati_link_wait *wait)
{
    pthread_mutex_lock(&link->net->lock);
    const fake_end *end = find_end(link, number, false);
    *wait =
        (leati_link_wait){.no_credit = end && end->no_credit, .since_ns = end ? end->since_ns : 0};
    pthread_mutex_unlock(&link->net->lock);
}

static void net_close(leati_link **link)
{
    leati_link *gone = *link;
    fake_net *net = gone->net;
    *link = NULL;
    pthread_mutex_lock(&net->lock);
    for (uint32_t i = 0; i < net->count; i++)
        if (net->links[i] == gone)
            net->links[i] = NULL;
    gone->closing = true;
    pthread_mutex_unlock(&net->lock);
    wake_all(net);
    pthread_join(gone->thread, NULL);
    while (gone->ends) {
        fake_end *end = gone->ends;
        gone->ends = end->next;
        leati_gate_destroy(&end->gate);
        // A pool may still wake its waiter until it is closed.
        if (end->pool)
            leati_local_pool_close(end->pool);
        free(end);
    }
    free(gone);
}

// --- the net ---

fake_net *fake_net_create(uint32_t processes, uint32_t segment_size)
{
    fake_net *net = calloc(1, sizeof *net);
    if (!net)
        abort();
    net->count = processes;
    pthread_mutex_init(&net->lock, NULL);
    pthread_mutex_init(&net->wake_lock, NULL);
    pthread_cond_init(&net->woken, NULL);
    for (uint32_t i = 0; i < processes; i++)
        net->endpoints[i] = (endpoint){.transport = {.open = net_open,
                                                     .send = net_send,
                                                     .receive = net_receive,
                                                     .waiter = net_waiter,
                                                     .look = net_look,
                                                     .nudge = net_nudge,
                                                     .close = net_close},
                                       .net = net,
                                       .process = i};
    return net;
}

void fake_net_destroy(fake_net *net)
{
    if (!net)
        return;
    pthread_mutex_destroy(&net->lock);
    pthread_mutex_destroy(&net->wake_lock);
    pthread_cond_destroy(&net->woken);
    free(net);
}

leati_transport *fake_net_transport(fake_net *net, uint32_t process)
{
    return &net->endpoints[process].transport;
}

void fake_net_block(fake_net *net, bool blocked)
{
    pthread_mutex_lock(&net->lock);
    net->blocked = blocked;
    pthread_mutex_unlock(&net->lock);
    wake_all(net);
}

void fake_net_cut(fake_net *net, uint32_t process, const char *text)
{
    pthread_mutex_lock(&net->lock);
    if (net->links[process])
        net->links[process]->cut = text;
    pthread_mutex_unlock(&net->lock);
    wake_all(net);
}

uint64_t fake_net_segments(const fake_net *net)
{
    return atomic_load(&((fake_net *)net)->segments);
}
