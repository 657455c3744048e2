// SPDX-License-Identifier: Apache-2.0
// The inside of connections, shared by connection.c, connection_io.c, connection_read.c,
// connection_send.c, handshake.c and listener.c; and the hello, which is in frame.c.
#ifndef LEATI_NETWORK_NNG_CONNECTION_IMPL_H
#define LEATI_NETWORK_NNG_CONNECTION_IMPL_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "network/nng/auth.h"
#include "network/nng/connection.h"
#include "network/nng/tls.h"

enum {
    LEATI_HELLO_SIZE = 328,             // the payload of a hello
    LEATI_CONNECTION_BUFFER = 16 << 10, // small frames are read so many bytes at a time
    LEATI_CONNECTION_BULK = 4 << 10,    // frames with no larger payload are small ones
    LEATI_ADDRESS_SIZE = 160,
    LEATI_WHY_SIZE = 512,
    // Connections of a listener that have not shaken hands yet, and their part of the files. When
    // one more comes, the oldest of them goes: who says nothing keeps nobody out.
    LEATI_GREETING_MOST = 512,
    LEATI_GREETING_PART = 8,
    // A hello, and a nonce behind it where there is a secret.
    LEATI_HELLO_MOST = LEATI_FRAME_SIZE + LEATI_HELLO_SIZE + LEATI_FRAME_SIZE + LEATI_NONCE_SIZE,
};

// The connections of a listener; they may outlive it.
typedef struct leati_listener_load {
    const leat_allocator *allocator;
    _Atomic uint32_t references;
    _Atomic uint32_t open;
    uint32_t greeting_most; // immutable
    // Those that have not shaken hands yet. Taken before the lock of a connection.
    pthread_mutex_t lock;
    uint32_t greeting;
    leati_connection *oldest, *newest;
} leati_listener_load;

void leati_listener_load_release(leati_listener_load *load);

// How far a connection has come; it only grows.
typedef enum leati_connection_stage {
    LEATI_CONNECTION_NEW,      // the reader waits to be told whether to go on
    LEATI_CONNECTION_REFUSED,  // it was told not to: no hook is called
    LEATI_CONNECTION_STARTED,  // it connects
    LEATI_CONNECTION_GREETING, // there is a stream; the writer sends our hello
    LEATI_CONNECTION_OPEN,     // both hellos fit; the writer asks `fill`
} leati_connection_stage;

// A send, of which the system has taken what is before `first`.
typedef struct leati_sending {
    nng_iov iov[LEATI_CONNECTION_PARTS];
    unsigned first, count;
    bool under_way; // the operation has to be waited for
} leati_sending;

// How far the reading of a frame has come; `to` is NULL before its header is complete.
typedef struct leati_reading {
    leati_frame frame;
    uint8_t *to;        // where the payload goes
    size_t there;       // bytes of it
    bool under_way;     // an operation has to be waited for
    uint32_t unsettled; // frames since the hook `settle` was called
    bool inside_tls;    // what is known of an operation is on the stack of its thread
} leati_reading;

// How a reader has waited at its socket; all zero at first.
typedef struct leati_waits {
    int64_t over_ns; // when the last wait was over, by leati_clock_ns
    bool short_ones; // it was not worth a sleep
} leati_waits;

struct leati_connection {
    // Immutable once the stage is STARTED.
    const leat_allocator *allocator;
    const leati_connection_hooks *hooks;
    void *user;
    leati_hello hello;
    const leati_auth *auth; // or NULL
    int64_t dial_timeout_ms, hello_timeout_ms;
    uint32_t frame_max;
    char peer[LEATI_ADDRESS_SIZE];
    leati_listener_load *load; // of an accepted one
    bool opened;               // the hook was called; the reader's
    bool drained;              // the last operation has got all that had come; the reader's
    pthread_t reader, second, writer;
    bool has_second; // set by the first reader before frames are read

    // Under the load's lock: whether it is in the list there, and its place.
    bool greeting;
    leati_connection *older, *newer;

    // The reader's; the streams are the writer's too, from GREETING until it is joined.
    nng_stream_dialer *dialer;
    nng_stream *stream;
    leati_tls_stream *tls; // NULL: none
    size_t begin, end;     // what has been read into `buffer` and not yet looked at
    leati_reading reading;

    // An operation is started, and aborted, under the lock of its direction: so that one that
    // begins after `closing` was set is never begun, and one that began before it is aborted.
    pthread_mutex_t in_lock, out_lock;
    int socket;        // where the reader waits, or -1; it writes to it, under in_lock
    leati_waits waits; // there; the reader's
    nng_aio *in, *out;

    // The first reason of the end. Taken before in_lock and out_lock.
    pthread_mutex_t lock;
    leat_err err;
    char why[LEATI_WHY_SIZE];

    _Atomic bool closing;
    _Atomic uint32_t stage;   // a leati_connection_stage; the reader sleeps on it while NEW
    _Atomic uint32_t greeted; // our hello was sent, or could not be; the reader sleeps on it
    _Atomic uint64_t heard;   // bytes that have come; the reader adds
    leati_parker reading_over;
    // Who reads (connection_read.c): who has the right to, how many threads wait for it, and
    // whether one has stepped aside and not come back.
    _Atomic uint32_t right, standing_by;
    _Atomic bool away;
    // Who has the baton: its own, from when it has taken it up until it gives it away
    // (connection_send.c).
    leati_sending sending;
    leati_part parts[LEATI_CONNECTION_PARTS];
    size_t filled; // parts of a send that is not complete

    // The word that is left to who has the baton, and what the writer waits for it with. On a line
    // of their own, as any thread writes to them.
    _Alignas(64) _Atomic uint32_t word;
    _Atomic uint32_t given; // the writer has got it
    _Atomic uint32_t asked; // of the reader (connection_read.c)

    size_t hello_size; // immutable, with what it is of
    _Alignas(64) uint8_t hello_frame[LEATI_HELLO_MOST];
    uint8_t buffer[LEATI_CONNECTION_BUFFER];
};

typedef struct leati_connection_setup {
    const leat_allocator *allocator;
    const leati_hello *hello;
    const leati_auth *auth;
    int64_t dial_timeout_ms, hello_timeout_ms;
    uint32_t frame_max;
    const char *peer;
} leati_connection_setup;

// Makes one with both threads, which wait in stage NEW. LEAT_ENOMEM, LEAT_ETHREAD.
LEAT_MUST_USE leat_err leati_connection_create(const leati_connection_setup *setup,
                                               leati_connection **connection);
// Ends stage NEW: STARTED or REFUSED.
void leati_connection_begin(leati_connection *connection, leati_connection_stage stage);
// As leati_connection_close, with a text made of the address of the peer and `format`; returns
// `err`.
leat_err leati_connection_fail(leati_connection *connection, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);

// The main functions of the threads (connection_read.c, connection_send.c).
void *leati_connection_read(void *connection);
void *leati_connection_write(void *connection);

// --- what handshake.c needs of connection_io.c, and the other way round; all for the reader ---

bool leati_connection_is_closing(leati_connection *self);
// A time for the two below; 0 means no limit.
int64_t leati_connection_deadline(int64_t timeout_ms);
// Reads until so many bytes, no more than the buffer's size, are in the buffer.
LEAT_MUST_USE leat_err leati_connection_buffer(leati_connection *self, size_t needed,
                                               int64_t deadline_ns);
// What is left until then, for an aio.
nng_duration leati_connection_time_left(int64_t deadline_ns);
// Sends all parts; an error of nng. For the writer, and before it sends frames for the reader too.
int leati_connection_transmit(leati_connection *self, const leati_part *parts, size_t count,
                              int64_t deadline_ns);
// Receives at least one byte, which is what `*got` says: an error of nng.
int leati_connection_receive(leati_connection *self, const nng_iov *iov, unsigned count,
                             int64_t deadline_ns, size_t *got);
// Waits at the socket, if the last operation has got all there was. It only saves time.
void leati_connection_await(leati_connection *self);
// The two halves of receiving, without TLS.
int leati_connection_begin_receive(leati_connection *self, const nng_iov *iov, unsigned count,
                                   int64_t deadline_ns);
int leati_connection_end_receive(leati_connection *self, const nng_iov *iov, unsigned count,
                                 size_t *got);
// The same below TLS.
int leati_connection_receive_bytes(leati_connection *self, const nng_iov *iov, unsigned count,
                                   int64_t deadline_ns, size_t *got);
int leati_connection_transmit_bytes(leati_connection *self, const leati_part *parts, size_t count,
                                    int64_t deadline_ns);
LEAT_MUST_USE leat_err leati_connection_connect(leati_connection *self);
// Calls the hook `settle`. False: another thread reads from here on.
bool leati_connection_settle(leati_connection *self);
// The reading has failed; `inside` a frame, or between two.
leat_err leati_connection_lost(leati_connection *self, int error, bool inside);
void leati_connection_enter(leati_connection *self, leati_connection_stage stage);

// --- socket.c ---

// How long to wait for bytes at the socket before nng is left to do so: should the descriptor ever
// be another one's, that is what it costs.
enum { LEATI_SOCKET_PATIENCE_MS = 1000 };
// The descriptor below a stream over TCP or a socket file, good as long as the stream; -1: there is
// no telling which it is.
int leati_socket_of(nng_stream *stream);
// Returns when bytes are there to be read, or the end; when the reading was shut down; and
// sometimes earlier. Where the last wait was a short one it looks for a moment before it sleeps:
// for 30 us at most, and three times as long as its thread has worked since that wait.
void leati_socket_await(int fd, leati_waits *waits);
// Calls `visit` for each descriptor of this process.
void leati_socket_each(void (*visit)(void *user, int fd), void *user);
// Whether this end of a socket, or the other one, is the socket file of that path.
bool leati_socket_is_called(int fd, bool other, const char *path);

// --- connection_tls.c; errors are those of nng ---

int leati_connection_shake_tls(leati_connection *self, int64_t deadline_ns);
int leati_connection_receive_tls(leati_connection *self, const nng_iov *iov, unsigned count,
                                 int64_t deadline_ns, size_t *got);
int leati_connection_transmit_tls(leati_connection *self, const leati_part *parts, size_t count,
                                  int64_t deadline_ns);

// --- handshake.c ---

// What is to be said first. LEAT_EIO: there are no random numbers.
LEAT_MUST_USE leat_err leati_connection_prepare_hello(leati_connection *self);
LEAT_MUST_USE leat_err leati_connection_greet(leati_connection *self, leati_hello *peer);
// The hand-shake is over, or will not be: it is none of those that may have to go for another one
// (listener.c). More than once is fine.
void leati_connection_greeted(leati_connection *self);

// What an error of nng means to people, and its code.
const char *leati_nng_text(int error);
leat_err leati_nng_error(int error);

// Whether it is "tcp://host:port", with a port of at least `lowest`, or "ipc://path"; else a
// sentence in `why`.
LEAT_MUST_USE leat_err leati_address_check(const char *address, long lowest, char *why,
                                           size_t why_size);
// "tcp://127.0.0.1:4711"; `fallback` when it is of another kind.
void leati_address_print(const nng_sockaddr *address, const char *fallback, char *to, size_t size);

// --- the hello (frame.c) ---

// Sets version and interface where the caller has left them out.
void leati_hello_complete(leati_hello *hello);
void leati_hello_put(const leati_hello *hello, uint8_t to[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE]);
// False: these bytes are no hello. Texts of the peer are made fit for a log.
bool leati_hello_get(leati_hello *hello, const uint8_t from[LEATI_HELLO_SIZE]);
// Whether the two may talk; else half a sentence in `why` that goes on after the peer's address.
LEAT_MUST_USE leat_err leati_hello_check(const leati_hello *ours, const leati_hello *theirs,
                                         char *why, size_t why_size);

#endif
