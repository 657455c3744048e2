// SPDX-License-Identifier: Apache-2.0
// Control messages between the job manager and task managers: records (cluster/message.h) over a
// connection.
//
// Threading. Sending copies the encoded message to a queue and returns; any thread. Handlers run on
// the connection's reader thread, one at a time for each peer, and must not wait for the peer.
//
// Life cycle. A peer is made by leati_rpc_dial, or by a server for whoever connects; sends before
// `opened` are kept until then. After `closed` it is dead: sends say LEAT_ECLOSED. Destroy it once
// `closed` has returned or after leati_rpc_close; destroy waits, never from a handler.
//
// Ownership. Who dials owns the peer from the return of leati_rpc_dial on (handlers may run before
// it returns; `*rpc` is set by then, and NULL after an error). A peer of a server is the server's
// until `opened`, which hands it over: the user destroys it, after `closed` or at any time before.
// One that ends before it is open is told to `refused` and freed by the server.
//
// Bounds. LEATI_RPC_MESSAGE_MAX bytes a message, LEATI_RPC_QUEUE_MAX bytes waiting to be sent to
// one peer; beyond it the connection is closed, as the peer does not read.
#ifndef LEATI_CLUSTER_RPC_H
#define LEATI_CLUSTER_RPC_H

#include "leat/record.h"
#include "network/nng/connection.h"

enum { LEATI_RPC_MESSAGE_MAX = 64 << 20, LEATI_RPC_QUEUE_MAX = 256 << 20 };

typedef struct leati_rpc leati_rpc;
typedef struct leati_rpc_server leati_rpc_server;

typedef struct leati_rpc_handlers {
    void (*opened)(leati_rpc *rpc, void *user, const leati_hello *peer);
    // `kind` is a leati_message_kind. The bytes are the handler's until it returns. An error closes
    // the connection.
    leat_err (*message)(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                        size_t size);
    // Once, the last. Of a dialled peer also when it never opened.
    void (*closed)(leati_rpc *rpc, void *user, leat_err err, const char *why);
    // Of a server, or NULL: somebody has connected who did not fit, for the log. `user` is that of
    // the options. Any thread.
    void (*refused)(void *user, leat_err err, const char *why);
} leati_rpc_handlers;

typedef struct leati_rpc_options {
    const leat_allocator *allocator;
    const char *address;
    leati_hello hello;      // purpose is set here
    const leati_auth *auth; // or NULL; outlives all peers
    int64_t dial_timeout_ms, hello_timeout_ms;
    const leati_rpc_handlers *handlers;
    void *user; // of all peers of a server, until leati_rpc_set_user
} leati_rpc_options;

LEAT_MUST_USE leat_err leati_rpc_dial(const leati_rpc_options *options, leati_rpc **rpc, char *why,
                                      size_t why_size);
LEAT_MUST_USE leat_err leati_rpc_serve(const leati_rpc_options *options, uint32_t most_peers,
                                       leati_rpc_server **server, char *why, size_t why_size);
const char *leati_rpc_server_address(const leati_rpc_server *server);
// Stops accepting; peers that are open live on. Waits for those that are not, and for `opened`
// where it is under way: none is opened or refused after it returns.
void leati_rpc_server_destroy(leati_rpc_server **server);

// Encodes and queues; `type` NULL is a message without a body. LEAT_ECLOSED, LEAT_ENOMEM,
// LEAT_ETOOBIG. Any thread.
leat_err leati_rpc_send(leati_rpc *rpc, uint32_t kind, const leat_type *type, const void *record);
// Bytes that have not been handed to the system yet. Any thread; 0 after `closed`, or when all has
// gone out.
size_t leati_rpc_queued(leati_rpc *rpc);
void leati_rpc_set_user(leati_rpc *rpc, void *user); // from a handler
void *leati_rpc_user(const leati_rpc *rpc);
const char *leati_rpc_peer(const leati_rpc *rpc);
void leati_rpc_close(leati_rpc *rpc, leat_err err,
                     const char *why); // any thread; what is queued is dropped
void leati_rpc_destroy(leati_rpc **rpc);

// Decodes a message; what it points to lies in `bytes` and `scratch`.
LEAT_MUST_USE leat_err leati_rpc_decode(const leat_type *type, const uint8_t *bytes, size_t size,
                                        void *record, leat_scratch *scratch);

#endif
