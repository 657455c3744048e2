// SPDX-License-Identifier: Apache-2.0
// TLS between the processes of a cluster: each has a certificate, and trusts those that were signed
// by the cluster's own authority, whatever name is in them. What that authority signs is a member.
//
// It is done here with libssl over the plain streams of nng, and not by nng's own: that of nng 1.5
// loses its place when the system takes a part of what it sends, which is what it does as soon as
// the receiver is slower, and there are operations that neither abort nor time limit end.
//
// A stream turns bytes into those of TLS and back; it does not send or receive itself.
#ifndef LEATI_NETWORK_NNG_TLS_H
#define LEATI_NETWORK_NNG_TLS_H

#include "leat/alloc.h"
#include "network/nng/auth.h"

LEAT_MUST_USE leat_err leati_tls_create(const leati_auth_files *files, leati_tls **tls, char *why,
                                        size_t why_size);
void leati_tls_destroy(leati_tls **tls);

// --- streams ---

// One side of a connection. Two threads may use it: one gets and feeds, the other puts and takes;
// the hand-shake is one thread's.
typedef struct leati_tls_stream leati_tls_stream;

enum {
    LEATI_TLS_CHUNK = 64 << 10, // bytes at most that are put at a time
    LEATI_TLS_ROOM = 64 << 10   // that are fed at a time
};

typedef enum leati_tls_state {
    LEATI_TLS_DONE,   // done what was wanted
    LEATI_TLS_WANTS,  // more bytes of the peer
    LEATI_TLS_ENDED,  // the peer has ended it in order
    LEATI_TLS_FAILED, // for good; leati_tls_stream_why says why
} leati_tls_state;

// NULL: out of memory.
leati_tls_stream *leati_tls_stream_create(const leati_tls *tls, const leat_allocator *allocator,
                                          bool dialed);
void leati_tls_stream_destroy(leati_tls_stream **stream);
// Goes on with the hand-shake; what it gives is to be sent also after it has failed.
leati_tls_state leati_tls_stream_shake(leati_tls_stream *stream);
// What is to be sent, until the next call; *size is 0 for nothing. False: out of memory.
LEAT_MUST_USE bool leati_tls_stream_take(leati_tls_stream *stream, const uint8_t **bytes,
                                         size_t *size);
// Encodes at most LEATI_TLS_CHUNK bytes.
LEAT_MUST_USE leati_tls_state leati_tls_stream_put(leati_tls_stream *stream, const void *bytes,
                                                   size_t size);
// Decodes what there is, up to so many bytes; DONE with at least one.
LEAT_MUST_USE leati_tls_state leati_tls_stream_get(leati_tls_stream *stream, void *to, size_t size,
                                                   size_t *got);
// Where LEATI_TLS_ROOM bytes of the peer may be put, and that so many were.
uint8_t *leati_tls_stream_room(leati_tls_stream *stream);
LEAT_MUST_USE bool leati_tls_stream_feed(leati_tls_stream *stream, size_t size);
// A part of a sentence; for the thread that gets and feeds.
const char *leati_tls_stream_why(const leati_tls_stream *stream);

// For tls_stream.c: what is common to all streams, an SSL_CTX.
void *leati_tls_context(const leati_tls *tls);

#endif
