// SPDX-License-Identifier: Apache-2.0
// Text over TCP: a source that reads from a server, and a sink that writes to one. Both are the
// client. Hosts are names or addresses, IPv4 or IPv6; the addresses of a name are tried in turn.
//
// A connection that cannot be made at the start fails the job. One that is lost later is made again
// as often as the options say; that is counted anew once records have passed. Nothing is
// acknowledged in between, so what was under way when a connection broke may be lost.
//
// Cancelling the job ends every wait. A look-up of a name that is under way is then left to a
// thread of its own, which ends when the look-up does.
#ifndef LEAT_SOCKET_H
#define LEAT_SOCKET_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// For `max_retries`.
#define LEAT_RETRY_FOR_EVER (-1)

// Zeros are the defaults. Copied, with all that it points to.
typedef struct leat_socket_source_options {
    const char *delimiter;  // what ends a record, any text; NULL: a line break
    int32_t max_retries;    // attempts in a row to connect again; LEAT_RETRY_FOR_EVER
    int64_t retry_delay_ms; // before each of them; 0: 500
    // For each address of the host, and for looking these up; 0: the system's (some minutes).
    int64_t connect_timeout_ms;
} leat_socket_source_options;

// What a server sends, as records of leat_type_scalar(LEAT_STR) without the delimiter. If that is a
// line break, one CR directly before it is dropped. Bytes are passed as they are.
//
// The server's end of the connection is the end of the stream when there is no retry left; what
// follows the last delimiter is then a record if it is not empty. With retries an unfinished record
// goes on with what the next connection brings. A connection that breaks otherwise, and one that
// cannot be made again, fail the job when there is no retry left. So does a record that is longer
// than `record.max-size`.
//
// One subtask. `options` may be NULL. Faults: no host, a port that is not in 1 … 65535, an empty
// delimiter, negative retries, delay or timeout.
LEAT_API leat_stream *leat_read_socket(leat_env *env, const char *host, uint32_t port,
                                       const leat_socket_source_options *options);

// Zeros are the defaults. Copied.
typedef struct leat_socket_sink_options {
    bool json;              // records as JSON, else in text form
    bool flush_each;        // send after each record, else in batches
    int32_t max_retries;    // attempts in a row to connect again; LEAT_RETRY_FOR_EVER
    int64_t retry_delay_ms; // before each of them; 0: 500
    // For each address of the host, and for looking these up; 0: the system's (some minutes).
    int64_t connect_timeout_ms;
} leat_socket_sink_options;

// Sends each record as a line. Batches go out when they are full, and when the task has no more
// input for the moment; a slow server slows the job down. When a connection is lost, sending goes
// on from the last line that the system had not taken whole. What the server sends is dropped.
//
// One subtask unless leat_parallelism says otherwise; then each makes a connection of its own.
// `options` may be NULL. Faults: no host, a port that is not in 1 … 65535, negative retries,
// delay or timeout.
LEAT_API leat_stream *leat_write_socket(leat_stream *in, const char *host, uint32_t port,
                                        const leat_socket_sink_options *options);

LEAT_END_DECLS

#endif
