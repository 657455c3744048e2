// SPDX-License-Identifier: Apache-2.0
// What the runtime needs of a transport between processes: channels whose two ends are in different
// ones.
//
// The producer's process makes a leati_channel as for a local reader and hands it over to be sent;
// the consumer's process makes one as for a local producer, attaches it to its gate, and hands it
// over to be filled. Both know the pair by the attempt and by a number that both compute from the
// job graph.
//
// Threading. Calls come from the thread that deploys or ends a job. The transport reads a sent
// channel, and fills a received one, on threads of its own: to the channel it is the consumer, or
// the producer.
//
// Life cycle. A leati_link is one job attempt's share of the transport: opened before its channels
// are made, closed when its tasks have ended. Until it is closed, channels and pools must live;
// after it the transport touches none of them. It closes the pools that it was given; one that was
// made with a waiter of the link and then not handed over must be closed before the link is.
//
// Turns. A task that fills segments or empties them does so in turns, and what it does is told to
// the peer at the end of its turn, by its own thread where that goes at once: waking another one
// for every segment takes longer than sending it. In turn, a thread of the transport that has news
// for a task whose worker sleeps gives the task's turn itself. A turn that takes long, as its
// function waits without having said so, is what `nudge` is for.
//
// Bounds. Data is sent with credit only: at most as many segments are on their way, or unread, as
// the receiver has granted. Events need no credit.
#ifndef LEATI_NETWORK_TRANSPORT_H
#define LEATI_NETWORK_TRANSPORT_H

#include "network/channel.h"

typedef struct leati_transport leati_transport;
typedef struct leati_link leati_link;

// What the runtime has to say about turns. Immutable, and never gone.
typedef struct leati_turns {
    // Has `fn(arg)` called at the end of the turn that the calling thread is giving to a task, once
    // however often it is asked; false when the thread gives none.
    bool (*later)(void (*fn)(void *arg), void *arg);
    // For a thread of the transport, as leati_visit_begin and so on (runtime/scheduler.h).
    bool (*visit)(void (*stuck)(void *arg), void *arg);
    bool (*has_worker)(void);
    void (*leave)(void);
} leati_turns;

typedef struct leati_link_options {
    uint64_t attempt; // unique in the cluster
    uint32_t process_count;
    uint32_t self;
    // Of each process: what it is called in messages, its identity, and where it listens
    // ("tcp://host:port").
    const char *const *names;
    const char *const *ids;
    const char *const *addresses;
    const leati_turns *turns; // may be NULL
    // A channel cannot go on: its connection was lost, the peer has refused it, a frame was wrong.
    // At most once a link, on a thread of the transport, without locks; `text` names the peer. Not
    // after close.
    void (*failed)(void *user, leat_err err, const char *text);
    void *user;
} leati_link_options;

// What one channel waits for, for `why`.
typedef struct leati_link_wait {
    bool no_credit;   // data is there and the receiver has granted nothing
    int64_t since_ns; // since when; leati_clock_ns
    uint32_t backlog; // segments queued at the sender
} leati_link_wait;

// The interface; `self` comes first in what implements it.
struct leati_transport {
    // Names are copied. Does not wait for the peers. LEAT_ENOMEM, LEAT_EIO.
    leat_err (*open)(leati_transport *self, const leati_link_options *options, leati_link **link);
    // Sends what is put on the channel to process `peer`. Nobody has attached it to a gate: the
    // transport does. Before the producing task starts.
    leat_err (*send)(leati_link *link, uint32_t number, uint32_t peer, leati_channel *channel);
    // Fills the channel, which is attached to its gate, with what process `peer` sends. `pool` is
    // of this channel alone and made with leati_link_waiter's waiter (below): the transport is its
    // owner and takes from it what it grants.
    leat_err (*receive)(leati_link *link, uint32_t number, uint32_t peer, leati_channel *channel,
                        leati_local_pool *pool);
    // A waiter for the pool of a received channel, before that exists:
    // `leati_local_pool_options.waiter`. It belongs to the link and to that number. NULL: no
    // memory.
    leati_waiter *(*waiter)(leati_link *link, uint32_t number);
    // Any thread: what a sent channel waits for.
    void (*look)(leati_link *link, uint32_t number, leati_link_wait *wait);
    // What waits for the end of a turn is sent now. Any thread, while no channels are added and the
    // link is not being closed.
    void (*nudge)(leati_link *link);
    // Ends all channels: cancels what is under way, waits until no thread of the transport touches
    // them, frees the link. What was sent and not yet delivered is only lost when the attempt has
    // failed or was cancelled: after success all events of the end have been received by then, or
    // are sent before this returns.
    void (*close)(leati_link **link);
};

#endif
