// SPDX-License-Identifier: Apache-2.0
// A connection between two processes of a cluster: an nng_stream that carries frames, for control
// messages (cluster/rpc.h) and for records (network/nng/exchange.h) alike.
//
// A frame is a header of 16 bytes, little endian, and its payload. The first frame in each
// direction is a hello; one that does not fit ends the connection with a reason that names both
// sides. With a secret (auth.h) each side shows that it knows it before the connection is open.
//
// Threading. A reader and a writer thread a connection, with no-callback aios. The hooks `place`,
// `arrived` and `settle` run on the reader, `fill` and `sent` on the writer, or on a thread that
// sends for it, never on two at once; `closed` runs once, last of all, on the reader. The reader
// never waits for anything but bytes; where there is a hook `settle`, a second thread stands by to
// be the reader while the first does something else. leati_connection_kick and _close may be called
// from any thread, hooks included.
//
// Life cycle. Made by a dialer or handed out by a listener; open after both hellos; closed by
// either side, by silence of the peer in the hand-shake, or by an error. leati_connection_destroy
// joins the threads: never from a hook.
//
// Bounds. One send under way, of at most LEATI_CONNECTION_PARTS parts; a hand-shake takes at most
// `hello_timeout_ms`, TLS included, and a listener has at most 512 under way, or one in eight of
// the process's files.
#ifndef LEATI_NETWORK_NNG_CONNECTION_H
#define LEATI_NETWORK_NNG_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/alloc.h"
#include "leat/error.h"
#include "network/nng/auth.h"

typedef struct leati_connection leati_connection;
typedef struct leati_listener leati_listener;

enum {
    LEATI_FRAME_SIZE = 16,
    LEATI_CONNECTION_PARTS = 8,
    LEATI_HELLO_TEXT = 128,
    LEATI_CONNECTION_UNSETTLED = 8
};

// As in memory; the wire form is little endian, in this order.
typedef struct leati_frame {
    uint32_t size; // of the payload
    uint8_t kind;  // 0 is the hello; the rest is the user's
    uint8_t flags;
    uint16_t more;     // the user's
    uint32_t channel;  // the user's
    uint32_t sequence; // the user's
} leati_frame;

void leati_frame_put(const leati_frame *frame, uint8_t to[LEATI_FRAME_SIZE]);
void leati_frame_get(leati_frame *frame, const uint8_t from[LEATI_FRAME_SIZE]);

// Who is speaking. Texts are NUL-terminated.
typedef struct leati_hello {
    char purpose[16];               // "control" or "data": the other side must have the same
    char version[32];               // leat_version(): must be equal
    uint32_t abi;                   // LEAT_ABI: must be equal
    uint32_t segment_size;          // data: must be equal; else 0
    char cluster[LEATI_HELLO_TEXT]; // must be equal where both are not empty
    char process[LEATI_HELLO_TEXT]; // who speaks: unique in the world
    uint64_t term;                  // of the job manager it belongs to, or 0
} leati_hello;

typedef struct leati_part {
    const void *data;
    size_t size;
} leati_part;

typedef struct leati_connection_hooks {
    // Open: the peer's hello has come and fits. Reader thread, before any other hook.
    void (*opened)(leati_connection *connection, void *user, const leati_hello *peer);
    // A header has come: where its payload is to go (`frame->size` bytes; not called for 0), or an
    // error that closes the connection. The memory must live until `arrived` or `closed`.
    leat_err (*place)(leati_connection *connection, void *user, const leati_frame *frame,
                      uint8_t **to);
    // A frame is complete. An error closes the connection.
    leat_err (*arrived)(leati_connection *connection, void *user, const leati_frame *frame);
    // The reader is about to wait for bytes, of which none are there, or has read
    // LEATI_CONNECTION_UNSETTLED frames since the last time: what was put off is to be done now.
    // False: this thread has stepped aside, and another one is the reader now. May be NULL.
    bool (*settle)(leati_connection *connection, void *user);
    // What to send now: up to LEATI_CONNECTION_PARTS parts, whole frames with their headers (a
    // frame may be split over parts). 0: nothing for now; the writer sleeps until it is kicked.
    // Parts must live until `sent`.
    size_t (*fill)(leati_connection *connection, void *user,
                   leati_part parts[LEATI_CONNECTION_PARTS]);
    // What `fill` gave has been handed to the system in full.
    void (*sent)(leati_connection *connection, void *user);
    // The end: the connection was lost, refused or closed; also when it never opened. `why` is a
    // sentence with the peer's address. Once; nothing is called after it. leati_connection_destroy
    // may be called from another thread from then on.
    void (*closed)(leati_connection *connection, void *user, leat_err err, const char *why);
} leati_connection_hooks;

typedef struct leati_connection_options {
    const leat_allocator *allocator;
    const char *address;    // "tcp://127.0.0.1:4711", "ipc:///path"
    leati_hello hello;      // ours
    const leati_auth *auth; // NULL: nothing is asked of the peer
    int64_t dial_timeout_ms, hello_timeout_ms;
    uint32_t frame_max; // a larger payload is refused, before any memory is taken
    const leati_connection_hooks *hooks;
    void *user;
} leati_connection_options;

// Starts to connect; the result comes by `opened` or `closed`. LEAT_EINVAL for an address that is
// none, LEAT_ENOMEM, LEAT_ETHREAD: then no hook is called.
LEAT_MUST_USE leat_err leati_connection_dial(const leati_connection_options *options,
                                             leati_connection **connection, char *why,
                                             size_t why_size);
// Something may be there to be sent. Any thread.
void leati_connection_kick(leati_connection *connection);
// Takes up what is needed for sending here and now, if it lies there: whoever gets it has to call
// leati_connection_serve. Otherwise it has the same effect as a kick. Any thread.
bool leati_connection_take(leati_connection *connection);
// The same for what may wait a little: a reader that is at work, and neither waits for bytes nor is
// away, is asked to send, which it does before it waits or after LEATI_CONNECTION_UNSETTLED frames.
// For nng reads and sends under one lock: who sent meanwhile would wait for the reading.
bool leati_connection_take_or_ask(leati_connection *connection);
// Sends what `fill` gives, on this thread as far as the system takes it at once, and the rest on
// the writer's. Without locks that the hooks take. The connection may have gone after it.
void leati_connection_serve(leati_connection *connection);
// A kick by who holds a lock that `fill` takes. Returns NULL, or what is to be given to
// leati_futex_wake once the lock is given up; that the connection has gone by then does no harm.
_Atomic uint32_t *leati_connection_mark(leati_connection *connection);
// For the hook `settle`. Whether there is another thread that could go on reading.
bool leati_connection_may_step_aside(const leati_connection *connection);
// From here on this thread may do what takes long, and must not touch what the hooks use.
void leati_connection_step_aside(leati_connection *connection);
// False: it is not the reader any more, and the hook has to return that. The connection may be
// over.
bool leati_connection_come_back(leati_connection *connection);
// Who has stepped aside does not come back soon: another thread is to read. Any thread, with locks
// or without, as long as that one is away; otherwise it does nothing. Closing does this as well.
void leati_connection_hand_on(void *connection);
// After `closed`: whether destroying it takes a moment only. Otherwise a thread that has stepped
// aside is not back yet.
bool leati_connection_is_left(const leati_connection *connection);
// Ends it soon, `closed` follows. Any thread; more than once is fine. `why` (may be NULL) is what
// `closed` gets.
void leati_connection_close(leati_connection *connection, leat_err err, const char *why);
// Closes, waits for `closed` to have returned, frees. Not from a hook.
void leati_connection_destroy(leati_connection **connection);
// How many bytes have come, for who wants to know whether the peer still speaks. Any thread.
uint64_t leati_connection_heard(const leati_connection *connection);
const char *leati_connection_peer(const leati_connection *connection); // its address, for messages

// Accepts connections at an address with port 0 for any. Each comes to `accepted` (on a thread of
// the listener), which sets hooks and user of the connection and takes it over, or returns an
// error, and it is closed. The hand-shake comes after that. At most `most` are open at once: more
// are closed unheard. LEAT_EIO with a reason ("address in use").
typedef struct leati_listener_options {
    const leat_allocator *allocator;
    const char *address;
    leati_hello hello;
    const leati_auth *auth; // NULL: nothing is asked of those who connect
    int64_t hello_timeout_ms;
    uint32_t frame_max;
    uint32_t most;
    leat_err (*accepted)(void *user, leati_connection *connection,
                         const leati_connection_hooks **hooks, void **connection_user);
    void *user;
} leati_listener_options;
LEAT_MUST_USE leat_err leati_listener_create(const leati_listener_options *options,
                                             leati_listener **listener, char *why, size_t why_size);
// The address it has really got, "tcp://127.0.0.1:40123".
const char *leati_listener_address(const leati_listener *listener);
// How many connections anybody may have: one in `part` of the files that this process may open now,
// and no more than `most`. So what strangers take is never all there is.
uint32_t leati_listener_share(uint32_t part, uint32_t most);
// Stops accepting. Connections that were taken over live on.
void leati_listener_destroy(leati_listener **listener);

#endif
