// SPDX-License-Identifier: Apache-2.0
// Links: a job attempt's share of the exchange, and the calls of the interface.
//
// Closing. A link that has gone well first lets its senders send what is still queued, of which the
// end of the partition is the last, and waits until the receivers have told to have it: what a
// connection loses after that was delivered. Then every end is taken from its peer, which waits
// until the threads of the wire have let go of it. They hold it while a frame of it is being sent
// or received and no longer, so that only a peer that has stopped in the middle of a frame makes
// close wait; after LEATI_STALL_MS the wire is given up.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "network/channel_impl.h"
#include "network/nng/exchange_impl.h"

// --- open ---

static void free_texts(const leat_allocator *allocator, char **texts, uint32_t count)
{
    for (uint32_t i = 0; texts && i < count; i++)
        leati_free(allocator, texts[i]);
    leati_free(allocator, texts);
}

static char **copy_texts(const leat_allocator *allocator, const char *const *texts, uint32_t count)
{
    char **copies = leati_calloc(allocator, count, sizeof *copies);
    for (uint32_t i = 0; copies && i < count; i++) {
        copies[i] = leati_strdup(allocator, texts[i]);
        if (!copies[i]) {
            free_texts(allocator, copies, i);
            return NULL;
        }
    }
    return copies;
}

static void free_link(leati_link *link)
{
    const leat_allocator *allocator = link->exchange->allocator;
    free_texts(allocator, link->names, link->process_count);
    free_texts(allocator, link->ids, link->process_count);
    free_texts(allocator, link->addresses, link->process_count);
    leati_free(allocator, link->buckets);
    pthread_cond_destroy(&link->quiet);
    pthread_mutex_destroy(&link->lock);
    leati_free(allocator, link);
}

leat_err leati_exchange_open(leati_transport *self, const leati_link_options *options,
                             leati_link **link)
{
    leati_exchange *exchange = (leati_exchange *)self;
    const leat_allocator *allocator = exchange->allocator;
    leati_link *made = leati_calloc(allocator, 1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (leati_link){
        .exchange = exchange,
        .attempt = options->attempt,
        .process_count = options->process_count,
        .self = options->self,
        .turns = options->turns,
        .failed = options->failed,
        .user = options->user,
        .names = copy_texts(allocator, options->names, options->process_count),
        .ids = copy_texts(allocator, options->ids, options->process_count),
        .addresses = copy_texts(allocator, options->addresses, options->process_count),
    };
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->quiet, NULL);
    if (!made->names || !made->ids || !made->addresses) {
        free_link(made);
        return LEAT_ENOMEM;
    }
    *link = made;
    return LEAT_OK;
}

// --- failure ---

bool leati_link_claim(leati_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool mine = !link->has_failed && !link->closing;
    if (mine) {
        link->has_failed = true;
        link->calls++;
    }
    pthread_mutex_unlock(&link->lock);
    return mine;
}

void leati_link_report(leati_link *link, leat_err err, const char *format, ...)
{
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    link->failed(link->user, err, text);
    // Close may free the link as soon as the lock is given up.
    pthread_mutex_lock(&link->lock);
    if (--link->calls == 0)
        pthread_cond_broadcast(&link->quiet);
    pthread_mutex_unlock(&link->lock);
}

// --- ends ---

static void serve(leati_exchange_peer *peer, bool (*take)(leati_connection *connection))
{
    pthread_mutex_lock(&peer->lock);
    leati_connection *connection = peer->connection;
    // Who has taken it keeps it from going.
    bool mine = connection && take(connection);
    leati_peer_unlock(peer);
    if (mine)
        leati_connection_serve(connection);
}

// At the end of a turn that has filled segments for the peer. They are in this thread's cache.
static void serve_filled(void *arg)
{
    serve(arg, leati_connection_take);
}

// At the end of a turn that has emptied some. What is to be told of that is small.
static void serve_emptied(void *arg)
{
    serve(arg, leati_connection_take_or_ask);
}

// The peer lives as long as the task that has called this is in its turn: so long is its link open.
static void wake(leati_waiter *waiter)
{
    leati_end *end = (leati_end *)waiter;
    // Acquire: pairs with the store when it is registered.
    leati_exchange_peer *peer = atomic_load_explicit(&end->peer, memory_order_acquire);
    if (!peer)
        return;
    pthread_mutex_lock(&peer->lock);
    const leati_turns *turns = end->link->turns;
    if (!end->prompt && turns && turns->later(end->sends ? serve_filled : serve_emptied, peer))
        leati_end_ready_quietly(peer, end);
    else
        leati_end_ready(peer, end);
    leati_peer_unlock(peer);
}

static leati_end *find(const leati_link *link, uint32_t number)
{
    if (link->bucket_count == 0)
        return NULL;
    leati_end *end = link->buckets[number & (link->bucket_count - 1)];
    while (end && end->number != number)
        end = end->next_in_bucket;
    return end;
}

static bool grow_buckets(leati_link *link)
{
    if (link->end_count < link->bucket_count)
        return true;
    uint32_t count = link->bucket_count ? link->bucket_count * 2 : 16;
    leati_end **buckets = leati_calloc(link->exchange->allocator, count, sizeof(leati_end *));
    if (!buckets)
        return false;
    for (leati_end *end = link->ends; end; end = end->next_of_link) {
        leati_end **bucket = &buckets[end->number & (count - 1)];
        end->next_in_bucket = *bucket;
        *bucket = end;
    }
    leati_free(link->exchange->allocator, link->buckets);
    link->buckets = buckets;
    link->bucket_count = count;
    return true;
}

// The end of that number, which is made if there is none; NULL: no memory.
static leati_end *end_of(leati_link *link, uint32_t number)
{
    pthread_mutex_lock(&link->lock);
    leati_end *end = find(link, number);
    if (!end && grow_buckets(link)) {
        end = leati_calloc(link->exchange->allocator, 1, sizeof *end);
        if (end) {
            end->waiter.wake = wake;
            end->link = link;
            end->number = number;
            end->next_of_link = link->ends;
            link->ends = end;
            leati_end **bucket = &link->buckets[number & (link->bucket_count - 1)];
            end->next_in_bucket = *bucket;
            *bucket = end;
            link->end_count++;
        }
    }
    pthread_mutex_unlock(&link->lock);
    return end;
}

leati_waiter *leati_exchange_waiter(leati_link *link, uint32_t number)
{
    leati_end *end = end_of(link, number);
    return end ? &end->waiter : NULL;
}

static leati_exchange_peer *peer_of(leati_link *link, uint32_t process)
{
    return leati_exchange_find_peer(link->exchange, link->ids[process], link->addresses[process]);
}

leat_err leati_exchange_send(leati_link *link, uint32_t number, uint32_t peer,
                             leati_channel *channel)
{
    leati_end *end = end_of(link, number);
    if (!end)
        return LEAT_ENOMEM;
    leat_err err = leati_gate_create(link->exchange->allocator, &end->waiter, 1, &end->gate);
    if (err != LEAT_OK)
        return err;
    leati_exchange_peer *to = peer_of(link, peer);
    if (!to) {
        leati_gate_destroy(&end->gate);
        return LEAT_ENOMEM;
    }
    leati_gate_attach(end->gate, 0, channel);
    end->sends = true;
    end->prompt = leati_channel_is_prompt(channel);
    end->process = peer;
    end->channel = channel;
    leati_exchange_register(to, end);
    return LEAT_OK;
}

leat_err leati_exchange_receive(leati_link *link, uint32_t number, uint32_t peer,
                                leati_channel *channel, leati_local_pool *pool)
{
    if (leati_local_pool_segment_size(pool) != link->exchange->segment_size)
        return LEAT_EINVAL;
    leati_end *end = end_of(link, number);
    if (!end)
        return LEAT_ENOMEM;
    uint32_t slots = leati_channel_room(channel);
    uint32_t margin = slots / 2 < LEATI_RECEIVE_MARGIN ? slots / 2 : LEATI_RECEIVE_MARGIN;
    end->granted = leati_calloc(link->exchange->allocator, slots - margin, sizeof(leati_segment *));
    if (!end->granted)
        return LEAT_ENOMEM;
    leati_exchange_peer *from = peer_of(link, peer);
    if (!from) {
        leati_free(link->exchange->allocator, end->granted);
        end->granted = NULL;
        return LEAT_ENOMEM;
    }
    end->grant_capacity = slots - margin;
    end->margin = margin;
    end->steady = LEATI_RECEIVE_STEADY;
    end->process = peer;
    end->channel = channel;
    end->pool = pool;
    leati_exchange_register(from, end);
    return LEAT_OK;
}

void leati_exchange_nudge(leati_link *link)
{
    leati_exchange_peer *last = NULL;
    for (leati_end *end = link->ends; end; end = end->next_of_link) {
        // Acquire: pairs with the store when it is registered. It lives as long as its ends.
        leati_exchange_peer *peer = atomic_load_explicit(&end->peer, memory_order_acquire);
        if (!peer || peer == last)
            continue;
        last = peer;
        pthread_mutex_lock(&peer->lock);
        if (peer->wire && peer->lists[LEATI_LIST_READY].first)
            leati_peer_kick(peer);
        leati_peer_unlock(peer);
    }
}

void leati_exchange_look(leati_link *link, uint32_t number, leati_link_wait *wait)
{
    *wait = (leati_link_wait){.no_credit = false};
    pthread_mutex_lock(&link->lock);
    leati_end *end = find(link, number);
    // Acquire: the end is complete once it is registered.
    if (end && atomic_load_explicit(&end->peer, memory_order_acquire) && end->sends) {
        // Relaxed: the time stands for itself.
        int64_t since_ns = atomic_load_explicit(&end->starved_since, memory_order_relaxed);
        wait->no_credit = since_ns != 0;
        wait->since_ns = since_ns;
        wait->backlog = leati_channel_length(end->channel);
    }
    pthread_mutex_unlock(&link->lock);
}

// --- close ---

// Waits for the peer until then; false when the time is over.
static bool await_peer(leati_exchange_peer *peer, int64_t until_ns)
{
    int64_t left_ms = (until_ns - leati_clock_ns()) / 1000000;
    if (left_ms <= 0)
        return false;
    struct timespec until = leati_deadline(left_ms);
    leati_peer_wake(peer);
    pthread_cond_timedwait(&peer->changed, &peer->lock, &until);
    return true;
}

// Whether the last that the producer, which has ended, has put on the channel is the end of the
// partition. A slot keeps what it had when it has been read.
static bool ends_well(const leati_channel *channel)
{
    uint32_t tail = atomic_load_explicit(&channel->tail, memory_order_acquire);
    const leati_slot *last = &channel->slots[(tail - 1) & channel->mask];
    return tail != 0 && !last->segment && last->event.tag == LEATI_TAG_END_OF_PARTITION;
}

static leati_exchange_peer *registered_with(const leati_end *end)
{
    return atomic_load_explicit(&end->peer, memory_order_relaxed); // set by the caller of close
}

// Whether what is still to be sent is worth it: all ends have come to, or will come to, the end of
// their partition.
static bool has_gone_well(leati_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool well = !link->has_failed;
    pthread_mutex_unlock(&link->lock);
    for (leati_end *end = link->ends; well && end; end = end->next_of_link) {
        leati_exchange_peer *peer = registered_with(end);
        if (!peer)
            continue;
        pthread_mutex_lock(&peer->lock);
        well = end->sends ? end->ending || ends_well(end->channel) : end->finished;
        leati_peer_unlock(peer);
    }
    return well;
}

// How long a peer may take to confirm something more: a network that is away for a shorter time
// than that after which a peer counts as lost leaves no trace.
static int64_t patience_ms(const leati_exchange *exchange)
{
    // Relaxed: a number.
    return LEATI_DRAIN_MS +
           atomic_load_explicit(&exchange->silence_ns, memory_order_relaxed) / 1000000;
}

// Waits until the receiver has all that the end has to send, or the link has failed for this end.
// False when there is no progress for too long.
static bool drain(leati_end *end, leati_exchange_peer *peer)
{
    bool in_time = true;
    pthread_mutex_lock(&peer->lock);
    uint32_t progress = end->progress;
    int64_t patience_ns = patience_ms(peer->exchange) * 1000000;
    int64_t until_ns = leati_clock_ns() + patience_ns;
    while (in_time && end->state != LEATI_END_DEAD) {
        in_time = await_peer(peer, until_ns);
        if (end->progress == progress)
            continue;
        progress = end->progress;
        until_ns = leati_clock_ns() + patience_ns;
    }
    leati_peer_unlock(peer);
    return in_time;
}

// Takes the end from its peer. Nobody can come upon it then but those that hold it already.
static void take_out(leati_end *end, leati_exchange_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    end->closing = true;
    for (int list = 0; list < LEATI_LISTS; list++)
        leati_end_remove(peer, end, list);
    if (end->state == LEATI_END_BOUND && end->opened) {
        if (end->sends)
            leati_outward_close(peer->wire, end->stream, LEATI_CLOSED_ENDED);
        else
            leati_inward_leave(peer->wire, end->stream, end->told, end->refused);
        end->opened = false;
        leati_peer_kick(peer);
    }
    leati_peer_unlock(peer);
}

static bool is_held(const leati_end *end)
{
    return end->writing || end->reading;
}

static void await_release(leati_end *end, leati_exchange_peer *peer, int64_t until_ns)
{
    pthread_mutex_lock(&peer->lock);
    while (is_held(end) && await_peer(peer, until_ns))
        continue;
    if (is_held(end) && peer->connection && end->state == LEATI_END_BOUND)
        leati_connection_close(peer->connection, LEAT_EIO,
                               "the other side has stopped in the middle of a frame");
    leati_peer_wake(peer);
    while (is_held(end))
        pthread_cond_wait(&peer->changed, &peer->lock);
    leati_peer_unlock(peer);
}

static void free_end(leati_end *end)
{
    const leat_allocator *allocator = end->link->exchange->allocator;
    for (uint32_t i = 0; i < end->grant_count; i++)
        leati_segment_release(end->granted[(end->grant_first + i) % end->grant_capacity]);
    // From here on nobody wakes the end.
    if (end->pool)
        leati_local_pool_close(end->pool);
    leati_free(allocator, end->granted);
    leati_gate_destroy(&end->gate);
    leati_exchange_peer *peer = registered_with(end);
    if (peer) {
        atomic_fetch_sub_explicit(&end->link->exchange->channels, 1, memory_order_relaxed);
        leati_exchange_drop_peer(peer);
    }
    leati_free(allocator, end);
}

// Sends the rest, for which there is no other place than the receivers.
static void drain_all(leati_link *link)
{
    for (leati_end *end = link->ends; end; end = end->next_of_link) {
        if (!registered_with(end) || !end->sends || drain(end, registered_with(end)))
            continue;
        if (leati_link_claim(link))
            leati_link_report(link, LEAT_EIO, "%s has not confirmed within %lld ms what was sent",
                              link->names[end->process], (long long)patience_ms(link->exchange));
        return;
    }
}

void leati_exchange_close(leati_link **link)
{
    leati_link *gone = *link;
    if (!gone)
        return;
    *link = NULL;
    leati_end *end;
    if (has_gone_well(gone))
        drain_all(gone);
    pthread_mutex_lock(&gone->lock);
    gone->closing = true;
    while (gone->calls > 0)
        pthread_cond_wait(&gone->quiet, &gone->lock);
    pthread_mutex_unlock(&gone->lock);
    for (end = gone->ends; end; end = end->next_of_link)
        if (registered_with(end))
            take_out(end, registered_with(end));
    int64_t until_ns = leati_clock_ns() + LEATI_STALL_MS * INT64_C(1000000);
    for (end = gone->ends; end; end = end->next_of_link)
        if (registered_with(end))
            await_release(end, registered_with(end), until_ns);
    while ((end = gone->ends) != NULL) {
        gone->ends = end->next_of_link;
        free_end(end);
    }
    free_link(gone);
}
