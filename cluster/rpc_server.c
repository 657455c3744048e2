// SPDX-License-Identifier: Apache-2.0
// Peers that connect. Until one is open it is the server's: in `greeting` while the hand-shake goes
// on, in `dead` when that has failed, where it waits for a thread that may join its threads.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/rpc_impl.h"

struct leati_rpc_server {
    const leat_allocator *allocator; // immutable
    const leati_rpc_handlers *handlers;
    void *user;
    leati_listener *listener;

    pthread_mutex_t lock;
    pthread_cond_t greeted; // `greeting` has become empty
    leati_rpc *greeting;
    leati_rpc *dead;
};

static void link_locked(leati_rpc **list, leati_rpc *rpc)
{
    rpc->previous = NULL;
    rpc->next = *list;
    if (*list)
        (*list)->previous = rpc;
    *list = rpc;
}

static void unlink_locked(leati_rpc_server *self, leati_rpc *rpc)
{
    if (rpc->previous)
        rpc->previous->next = rpc->next;
    else
        self->greeting = rpc->next;
    if (rpc->next)
        rpc->next->previous = rpc->previous;
    if (!self->greeting)
        pthread_cond_signal(&self->greeted);
}

void leati_rpc_server_opened(leati_rpc_server *server, leati_rpc *rpc)
{
    rpc->server = NULL;
    pthread_mutex_lock(&server->lock);
    unlink_locked(server, rpc);
    pthread_mutex_unlock(&server->lock);
}

void leati_rpc_server_lost(leati_rpc_server *server, leati_rpc *rpc, leat_err err, const char *why)
{
    if (server->handlers->refused)
        server->handlers->refused(server->user, err, why);
    // The last that is done with the server here: once the list is empty it may be destroyed.
    pthread_mutex_lock(&server->lock);
    unlink_locked(server, rpc);
    link_locked(&server->dead, rpc);
    pthread_mutex_unlock(&server->lock);
}

static void bury(leati_rpc_server *self)
{
    pthread_mutex_lock(&self->lock);
    leati_rpc *dead = self->dead;
    self->dead = NULL;
    pthread_mutex_unlock(&self->lock);
    while (dead) {
        leati_rpc *rpc = dead;
        dead = rpc->next;
        leati_rpc_destroy(&rpc);
    }
}

static leat_err accepted(void *user, leati_connection *connection,
                         const leati_connection_hooks **hooks, void **connection_user)
{
    leati_rpc_server *self = user;
    leati_rpc *rpc;
    bury(self);
    leat_err err = leati_rpc_create(self->allocator, self->handlers, self->user, &rpc);
    if (err != LEAT_OK)
        return err;
    rpc->server = self;
    rpc->connection = connection;
    pthread_mutex_lock(&self->lock);
    link_locked(&self->greeting, rpc);
    pthread_mutex_unlock(&self->lock);
    *hooks = &leati_rpc_hooks;
    *connection_user = rpc;
    return LEAT_OK;
}

leat_err leati_rpc_serve(const leati_rpc_options *options, uint32_t most_peers,
                         leati_rpc_server **server, char *why, size_t why_size)
{
    const leat_allocator *allocator = leati_allocator_or_default(options->allocator);
    leati_rpc_server *self = leati_calloc(allocator, 1, sizeof *self);
    if (!self) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    self->allocator = allocator;
    self->handlers = options->handlers;
    self->user = options->user;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->greeted, NULL);
    leati_listener_options listener = {
        .allocator = allocator,
        .address = options->address,
        .hello = options->hello,
        .auth = options->auth,
        .hello_timeout_ms = options->hello_timeout_ms,
        .frame_max = LEATI_RPC_MESSAGE_MAX,
        .most = most_peers,
        .accepted = accepted,
        .user = self,
    };
    snprintf(listener.hello.purpose, sizeof listener.hello.purpose, "control");
    leat_err err = leati_listener_create(&listener, &self->listener, why, why_size);
    if (err != LEAT_OK) {
        pthread_cond_destroy(&self->greeted);
        pthread_mutex_destroy(&self->lock);
        leati_free(allocator, self);
        return err;
    }
    *server = self;
    return LEAT_OK;
}

const char *leati_rpc_server_address(const leati_rpc_server *server)
{
    return leati_listener_address(server->listener);
}

void leati_rpc_server_destroy(leati_rpc_server **server)
{
    leati_rpc_server *self = *server;
    if (!self)
        return;
    *server = NULL;
    leati_listener_destroy(&self->listener);
    // Those that are not open yet are closed here; one that opens in this moment is the user's, and
    // is closed all the same.
    pthread_mutex_lock(&self->lock);
    for (leati_rpc *rpc = self->greeting; rpc; rpc = rpc->next)
        leati_connection_close(rpc->connection, LEAT_ECLOSED, NULL);
    while (self->greeting)
        pthread_cond_wait(&self->greeted, &self->lock);
    pthread_mutex_unlock(&self->lock);
    bury(self);
    pthread_cond_destroy(&self->greeted);
    pthread_mutex_destroy(&self->lock);
    leati_free(self->allocator, self);
}
