// SPDX-License-Identifier: Apache-2.0
// A peer, as rpc.c and rpc_server.c see it.
#ifndef LEATI_CLUSTER_RPC_IMPL_H
#define LEATI_CLUSTER_RPC_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/rpc.h"

// A run of encoded frames that goes out in one piece.
typedef struct leati_rpc_chunk leati_rpc_chunk;

struct leati_rpc {
    const leat_allocator *allocator; // immutable
    const leati_rpc_handlers *handlers;
    leati_rpc_server *server; // while it belongs to one: until it is open
    leati_connection *connection;
    void *_Atomic user;

    // The reader thread's: the message that is being read.
    uint8_t *message;
    size_t message_room;

    // Under `lock`.
    pthread_mutex_t lock;
    bool closed;
    leati_rpc_chunk *first, *last; // to be sent
    leati_rpc_chunk *sending;      // given to the connection; the writer thread's
    leati_rpc_chunk *spare;
    size_t waiting_bytes; // in all of them

    // Of a server's peer, under the server's lock.
    leati_rpc *previous, *next;
};

extern const leati_connection_hooks leati_rpc_hooks;

// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_rpc_create(const leat_allocator *allocator,
                                        const leati_rpc_handlers *handlers, void *user,
                                        leati_rpc **rpc);
// Of one that has no connection any more.
void leati_rpc_free(leati_rpc *rpc);

// A server's peer is open (it is the user's from now on), or has ended before.
void leati_rpc_server_opened(leati_rpc_server *server, leati_rpc *rpc);
void leati_rpc_server_lost(leati_rpc_server *server, leati_rpc *rpc, leat_err err, const char *why);

#endif
