// SPDX-License-Identifier: Apache-2.0
// The transport between task managers over nng_stream: one connection for each pair of them,
// whatever the number of jobs and channels.
//
// Of two processes the one with the smaller id dials: the socket file of the other, where that is
// on the same host, else its port. Frames: see docs/wire.md.
#ifndef LEATI_NETWORK_NNG_EXCHANGE_H
#define LEATI_NETWORK_NNG_EXCHANGE_H

#include "network/nng/auth.h"
#include "network/transport.h"

typedef struct leati_exchange_options {
    const leat_allocator *allocator;
    const char *address; // where to listen: "tcp://127.0.0.1:0"
    // Where to listen as well, for processes of this host: a path that nothing has yet, in a folder
    // that nobody but this user may enter. NULL: not, and the sockets of others are not dialled.
    const char *socket_path;
    const char *process;    // this process's id, unique in the world
    const leati_auth *auth; // what peers must know too; or NULL
    uint32_t segment_size;  // of the runtime's pool; peers must have the same
    // How long a peer may take to be there before the job fails: to answer when it is dialled. It
    // may take six times as long to deploy its part, before which it neither dials nor knows the
    // job's channels.
    int64_t connect_timeout_ms;
    // Somebody has connected who did not fit: a sentence for the log. Any thread; may be NULL.
    void (*refused)(void *user, const char *why);
    void *user;
} leati_exchange_options;

// Starts to listen. LEAT_EIO and so on with a sentence in `why`. With LEAT_OK `why` is empty, or
// says why it does without the socket.
LEAT_MUST_USE leat_err leati_exchange_create(const leati_exchange_options *options,
                                             leati_transport **transport, char *why,
                                             size_t why_size);
// Where it listens, which is what its peers are to be given: "tcp://127.0.0.1:40123", or with a
// socket "tcp://127.0.0.1:40123 ipc:///path".
enum { LEATI_EXCHANGE_ADDRESS = 280 }; // bytes at most, with the NUL
const char *leati_exchange_address(const leati_transport *transport);
// The cluster (may be "") that peers must be of too, from now on.
void leati_exchange_set_cluster(leati_transport *transport, const char *cluster);
// Each side of a connection gives a sign of life at this interval, and gives the other up that has
// sent nothing at all for the time of silence, which fails the jobs between the two. Not before
// this is called.
void leati_exchange_set_silence(leati_transport *transport, int64_t interval_ms,
                                int64_t silence_ms);
// All links must be closed.
void leati_exchange_destroy(leati_transport **transport);

// For metrics. Any thread.
typedef struct leati_exchange_counts {
    uint32_t connections, channels;
    uint64_t bytes_in, bytes_out, frames_in, frames_out;
} leati_exchange_counts;
void leati_exchange_count(const leati_transport *transport, leati_exchange_counts *counts);

#endif
