// SPDX-License-Identifier: Apache-2.0
// What the parts of the exchange between processes know of each other.
//
// A *peer* is another process, as long as somebody has to do with it. A *wire* is a connection to
// it; it has one at a time, and a wire that was lost is not mended: the next one serves later
// links. An *end* is this process's end of one channel. Channels are *streams* on a wire, under
// numbers that the receiver chooses: `inward` has the slots of the streams that come in, `outward`
// those of the streams that go out.
//
// Threading. A wire's *writer* is the consumer of the channels that are sent over it, and the owner
// of the pools of those that come in: the thread that has the connection's baton, be it a task's at
// the end of its turn, the reader, or the connection's own. The reader, of the connection's two
// threads for it the one that has the right to read, is the producer of the channels that come in.
// Writer and reader hold the peer's lock only to look up and to note things, never while they are
// inside a channel, a gate or a pool: these may wake ends, which takes the lock. An end that a
// thread works on outside the lock is pinned (`writing`, `reading`); who wants to be rid of it
// waits for that. The housekeeper dials, watches times and destroys wires.
//
// Locks: the exchange's, a peer's, a link's; only the last is taken under another one, a peer's.
#ifndef LEATI_NETWORK_NNG_EXCHANGE_IMPL_H
#define LEATI_NETWORK_NNG_EXCHANGE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "network/nng/connection.h"
#include "network/nng/exchange.h"

typedef struct leati_exchange leati_exchange;
typedef struct leati_exchange_peer leati_exchange_peer;
typedef struct leati_wire leati_wire;
typedef struct leati_end leati_end;

// Of frames (docs/wire.md).
enum {
    LEATI_FRAME_OPEN = 1,
    LEATI_FRAME_DATA = 2,
    LEATI_FRAME_EVENT = 3,
    LEATI_FRAME_CREDIT = 4,
    LEATI_FRAME_CLOSE = 5,
    LEATI_FRAME_CLOSED = 6,
    LEATI_FRAME_ALIVE = 7,
};
enum { LEATI_OPEN_SIZE = 16, LEATI_EVENT_SIZE = 24, LEATI_CREDIT_SIZE = 4 };
// What `more` of CREDIT counts.
enum { LEATI_LIMIT_UNIT = 16 };
// Why a stream was closed by its sender: `more` of CLOSED.
enum { LEATI_CLOSED_ENDED = 0, LEATI_CLOSED_UNKNOWN = 1 };

enum {
    LEATI_WIRE_MAX_STREAMS = 1 << 18, // each direction
    LEATI_WIRE_MAX_CREDIT = 1 << 20,  // that a sender may have
    LEATI_WIRE_SCRATCH = 8192,        // headers and small frames of one send
    LEATI_WIRE_COPIED = 1024,         // chunks of at most so many bytes are copied there
    LEATI_WIRE_FLIGHTS = LEATI_WIRE_SCRATCH / LEATI_FRAME_SIZE,
    // Segments that a receiver has granted and the sender has not used, when that one has nothing
    // queued: one on its way while the other is being announced. A received channel's pool has at
    // least as many.
    LEATI_RECEIVE_STEADY = 2,
    // The same for a channel whose segments come full, so that granting needs no frame for each.
    LEATI_RECEIVE_BUSY = 8,
    // Slots of a received channel's ring that are kept for events; fewer in a small ring.
    LEATI_RECEIVE_MARGIN = 8,
    // Credit that is not urgent waits until so many channels have some, or that share of all.
    LEATI_SOON_MOST = 8,
    LEATI_SOON_SHARE = 8,
    LEATI_DRAIN_MS = 3000, // besides the time of silence, until close gives up sending the rest
    LEATI_STALL_MS = 2000, // in the middle of a frame, until close gives up the wire
    // How much longer than the connect timeout another process may take to deploy its part of a
    // job: to dial, if that is for it to do, and to know a channel that was opened.
    LEATI_PEER_PATIENCE = 6,
    LEATI_END_MOVES = 3, // wires that a channel may lose before it begins
};

// The lists that an end can be in.
enum { LEATI_LIST_ALL = 0, LEATI_LIST_READY = 1, LEATI_LIST_UNOPENED = 2, LEATI_LISTS = 3 };

typedef struct leati_end_list {
    leati_end *first, *last;
} leati_end_list;

typedef enum leati_end_state {
    LEATI_END_NEW = 0,     // only its waiter is in use
    LEATI_END_WAITING = 1, // for a wire
    LEATI_END_BOUND = 2,   // to the peer's wire
    LEATI_END_DEAD = 3,    // the wire was lost, or the other end has gone, or has all of it
} leati_end_state;

struct leati_end {
    leati_waiter waiter; // first: of the gate of a sent channel, of the pool of a received one
    // Immutable from when it is registered with a peer.
    leati_link *link;
    uint32_t number;
    uint32_t process; // in the link's table
    bool sends;
    bool prompt; // sender: what comes does not wait for the end of a turn
    leati_channel *channel;
    leati_gate *gate;       // sender
    leati_local_pool *pool; // receiver
    uint32_t margin;        // receiver: slots of the ring kept for events
    // Set once; before that a wake-up has nobody to go to.
    _Atomic(leati_exchange_peer *) peer;
    leati_end *next_of_link, *next_in_bucket; // under the link's lock

    // Under the peer's lock.
    leati_end_state state;
    bool writing;        // the writer works on it, or has bytes of it in the send that is under way
    bool reading;        // the reader fills a segment of it, is inside its channel, or holds it
    bool held;           // the reader has not told the gate yet what it has put on the channel
    bool closing;        // close waits for it
    bool opened;         // it has a stream number
    bool ending;         // sender: the end of the partition is in the send under way, or was sent
    bool finished;       // receiver: the end of the partition has come
    bool told;           // receiver: CLOSE was sent, which says so
    uint8_t moves;       // to another wire
    bool broken;         // receiver: a frame was wrong; what comes is thrown away
    bool refused;        // receiver: the sender has closed
    int64_t deadline_ns; // until when the peer has to be there
    uint32_t stream;
    uint32_t in_list[LEATI_LISTS];
    leati_end *next[LEATI_LISTS], *previous[LEATI_LISTS];
    uint32_t progress; // sender: grows with each send that had something of it
    uint32_t flight;   // sender: which one of the wire's, while `writing`
    // Of the next frame. The sender's writer counts, without the lock; the receiver's reader.
    _Atomic uint32_t sequence;
    uint32_t delivered; // sender: frames that the receiver has told to have
    // Receiver: segments ready to be filled, a ring.
    leati_segment **granted;
    uint32_t grant_capacity, grant_first, grant_count;
    uint32_t outstanding; // granted, or being filled
    uint32_t announce;    // granted and not yet told
    uint32_t backlog;     // of the sender, as it said last
    uint32_t steady;      // segments to be ready besides, from STEADY to BUSY

    // Sender.
    _Atomic uint32_t credit;       // the reader adds, the writer takes
    _Atomic int64_t starved_since; // 0: it is not; written by the writer, read by look
};

// A stream that comes in. Its number is used again when the sender has said CLOSED and the end has
// gone.
typedef struct leati_inward {
    leati_end *end; // NULL when it has gone
    bool used;
    bool owes; // CLOSE has to be sent
    bool listed;
    uint32_t next; // in the list of those that owe, or of free ones
} leati_inward;

typedef enum leati_outward_state {
    LEATI_OUTWARD_FREE = 0,
    LEATI_OUTWARD_PENDING = 1, // opened by the receiver, and nobody here knows the channel yet
    LEATI_OUTWARD_BOUND = 2,
    LEATI_OUTWARD_CLOSED = 3, // CLOSED has to be sent
} leati_outward_state;

typedef struct leati_outward {
    leati_outward_state state;
    uint8_t reason; // of CLOSED
    leati_end *end;
    uint64_t attempt;
    uint32_t number;
    uint32_t credit;
    int64_t since_ns;        // PENDING
    uint32_t next, previous; // in the list of those that owe CLOSED, or of pending ones
} leati_outward;

#define LEATI_NO_STREAM UINT32_MAX

typedef struct leati_stream_list {
    uint32_t first, last;
} leati_stream_list;

// What the send under way has of an end.
typedef struct leati_flight {
    leati_end *end;
    uint32_t size; // to advance the channel by; then the gate is to be given back, too
} leati_flight;

struct leati_wire {
    leati_exchange *exchange;
    leati_wire *next;             // under the exchange's lock
    bool over;                    // under the exchange's lock: `closed` was called
    leati_exchange_peer *dialed;  // that it was dialed for; NULL: accepted
    leati_connection *connection; // for destroying it; the housekeeper's once `over`
    // Set by `opened`, under the peer's lock; before that it serves nobody.
    _Atomic(leati_exchange_peer *) peer;

    // Under the peer's lock.
    leati_inward *inward;
    size_t inward_capacity;
    uint32_t inward_count;
    uint32_t inward_free; // list
    leati_stream_list inward_owing;
    leati_outward *outward;
    size_t outward_capacity;
    uint32_t outward_count;
    leati_stream_list pending, outward_owing;
    bool owes_sign;      // ALIVE has to be sent
    uint64_t heard;      // bytes that had come when it was last watched
    int64_t silent_ns;   // since then, as far as this process has been running
    int64_t watched_ns;  // when that was; 0: never
    int64_t sign_due_ns; // when to say ALIVE again

    // Reader.
    leati_end *reading; // for which it reads a frame
    leati_end *held[LEATI_CONNECTION_UNSETTLED];
    uint32_t held_count;
    bool owes_send;           // somebody is to send what was made ready
    const leati_turns *turns; // of whom it has news for; or NULL
    leati_segment *segment;   // being filled
    uint8_t *trash;           // for what nobody wants any more; a segment's size
    uint8_t small[LEATI_EVENT_SIZE];

    // Writer, from fill to sent.
    uint8_t scratch[LEATI_WIRE_SCRATCH];
    uint32_t scratch_used, scratch_cut; // bytes before the cut are in parts
    uint32_t part_count, flight_count, taken_count;
    uint32_t frame_count;
    leati_part *parts;
    leati_segment *taken[LEATI_CONNECTION_PARTS]; // to be released when they are sent
    leati_flight flights[LEATI_WIRE_FLIGHTS];
};

struct leati_exchange_peer {
    leati_exchange *exchange;
    char *id;
    bool we_dial;
    // Under the exchange's lock.
    leati_exchange_peer *next;
    uint32_t references; // of ends, of wires, and of the housekeeper

    pthread_mutex_t lock;
    pthread_cond_t changed; // an end was let go, was refused, has progressed
    // Under the lock.
    char *address;                // one or two: leati_exchange_address
    leati_wire *wire;             // open
    leati_connection *connection; // of that wire
    leati_end_list lists[LEATI_LISTS];
    _Atomic uint32_t *to_wake; // what the writer sleeps on, once the lock is given up; or NULL
    uint32_t soon;             // ends that became ready for later, since the writer has looked last
    bool dialing;
    bool dials_near;  // its socket file; what that gives in the end is no failure to be told
    bool passes_near; // that was in vain, and the next dialing is the other address
    int64_t dial_at_ns;
    uint32_t dial_failures;
    char trouble[256]; // why the last dialing failed
};

struct leati_link {
    leati_exchange *exchange;
    uint64_t attempt;
    uint32_t process_count, self;
    char **names, **ids, **addresses;
    const leati_turns *turns;
    void (*failed)(void *user, leat_err err, const char *text);
    void *user;
    // Of the one who claimed the failure: its list, and the process that the failure is about.
    leati_link *next_failed;
    uint32_t failed_process;
    uint32_t unconfirmed; // frames sent to it that it has not told to have

    pthread_mutex_t lock;
    pthread_cond_t quiet; // `calls` has become 0
    // Under the lock.
    bool has_failed, closing;
    uint32_t calls;
    leati_end *ends;
    leati_end **buckets; // by number
    uint32_t bucket_count, end_count;
};

struct leati_exchange {
    leati_transport transport; // first
    const leat_allocator *allocator;
    char *process;
    const leati_auth *auth;
    void (*refused)(void *user, const char *why);
    void *user; // of `refused`
    uint32_t segment_size;
    int64_t connect_timeout_ms;
    leati_listener *listener;
    leati_listener *near; // at a socket file; NULL: neither this nor dialing such a one
    char address[LEATI_EXCHANGE_ADDRESS]; // of both
    pthread_t housekeeper;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    char cluster[LEATI_HELLO_TEXT];
    bool stopping, poked;
    leati_exchange_peer *peers; // only the housekeeper takes peers out
    leati_wire *wires;

    // Relaxed: numbers. 0: wires are not watched.
    _Atomic int64_t sign_interval_ns, silence_ns;

    _Atomic uint32_t open_wires, channels;
    _Atomic uint64_t bytes_in, bytes_out, frames_in, frames_out;
};

// --- the peer's lock (exchange_peer.c) ---

// The writer of the peer's wire has something to do. It is woken when the lock is given up, which
// it takes at once.
void leati_peer_kick(leati_exchange_peer *peer);
// Gives up the lock.
void leati_peer_unlock(leati_exchange_peer *peer);
// Wakes the writer already now, before the lock is given up by waiting.
void leati_peer_wake(leati_exchange_peer *peer);

// --- lists (exchange_peer.c); under the peer's lock ---

void leati_end_append(leati_exchange_peer *peer, leati_end *end, int list);
void leati_end_remove(leati_exchange_peer *peer, leati_end *end, int list);
// Puts it where the writer looks, and wakes that. Nothing when it has no wire.
void leati_end_ready(leati_exchange_peer *peer, leati_end *end);
// Only puts it there: the caller sees to it that somebody looks.
void leati_end_ready_quietly(leati_exchange_peer *peer, leati_end *end);
// The same for what can wait until something cannot wait. True: there are some of them by now, as
// many as a wire of so many channels makes it worth to wait for.
bool leati_end_ready_soon(leati_exchange_peer *peer, leati_end *end);

// --- peers (exchange_peer.c) ---

// With a reference more, or NULL: no memory. `address` may be NULL.
leati_exchange_peer *leati_exchange_find_peer(leati_exchange *exchange, const char *id,
                                              const char *address);
void leati_exchange_drop_peer(leati_exchange_peer *peer);
void leati_exchange_free_peer(leati_exchange_peer *peer);
// A wire that `hooks` will serve; NULL: no memory. It is in the exchange's list.
leati_wire *leati_wire_create(leati_exchange *exchange, leati_exchange_peer *dialed);
void leati_wire_free(leati_wire *wire);
extern const leati_connection_hooks leati_wire_hooks;
// The receiver has opened the channel as that stream, which is pending. Under the peer's lock; the
// caller sees to it that somebody looks.
void leati_sender_opened(leati_exchange_peer *peer, leati_end *end, uint32_t stream);
// Registers an end with its peer, which has been found, and binds it if there is a wire.
void leati_exchange_register(leati_exchange_peer *peer, leati_end *end);
// --- what is due (exchange_due.c) ---

// Dialing has failed, and is to be tried again after a pause.
void leati_peer_dialing_failed(leati_exchange_peer *peer, const char *why);
// What is due at the peer: dialing, channels that have waited for too long. Returns when it is to
// be called again, INT64_MAX for never. Housekeeper.
int64_t leati_exchange_tend(leati_exchange_peer *peer, int64_t now_ns);

// --- socket files (near.c) ---

// How long it may be, with its NUL: one of two in a list.
enum { LEATI_EXCHANGE_ADDRESS_ONE = 160 };
// Of a list as leati_exchange_address gives it, with `near` the address of the socket file, if
// there is one that this process may trust; else the other one. Returns which.
bool leati_address_choose(const char *list, bool near, char to[LEATI_EXCHANGE_ADDRESS_ONE]);
// Whether a socket can have that path; else a sentence in `why`.
bool leati_socket_path_fits(const char *path, char *why, size_t why_size);
// Gives the connections of this process at that address as much room as those by TCP have. Of
// another address: nothing.
void leati_near_widen(const char *address);

// --- signs of life (exchange_alive.c) ---

// Says ALIVE when it is time, and closes a wire on which the peer has said nothing for too long.
// Returns when it is to be called again. Housekeeper, under the peer's lock; the peer has a wire.
int64_t leati_wire_watch(leati_exchange_peer *peer, int64_t now_ns);

// --- streams (exchange_stream.c); under the peer's lock ---

// The number of a new stream that comes in. LEAT_ENOMEM, LEAT_ENOBUFS.
LEAT_MUST_USE leat_err leati_inward_take(leati_wire *wire, leati_end *end, uint32_t *stream);
leati_inward *leati_inward_at(leati_wire *wire, uint32_t stream); // NULL: no stream
// The end goes. Owes CLOSE unless that was said, or the sender has closed already.
void leati_inward_leave(leati_wire *wire, uint32_t stream, bool told, bool sender_gone);
void leati_inward_free(leati_wire *wire, uint32_t stream);
uint32_t leati_inward_pop_owing(leati_wire *wire);
leati_outward *leati_outward_at(leati_wire *wire, uint32_t stream); // NULL: no stream
// A stream that the peer opens. LEAT_ECORRUPT when it is open, LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_outward_open(leati_wire *wire, uint32_t stream, uint64_t attempt,
                                          uint32_t number, uint32_t credit);
// The pending stream of a channel, or LEATI_NO_STREAM.
uint32_t leati_outward_find(const leati_wire *wire, uint64_t attempt, uint32_t number);
void leati_outward_bind(leati_wire *wire, uint32_t stream, leati_end *end);
// Lets go of it: CLOSED is owed.
void leati_outward_close(leati_wire *wire, uint32_t stream, uint8_t reason);
uint32_t leati_outward_pop_owing(leati_wire *wire);
void leati_outward_free(leati_wire *wire, uint32_t stream);

// --- failure (exchange_link.c) ---

// Under the peer's lock: true when the caller is the one who has to report it, by
// leati_link_report, without the lock. The link lives until then.
bool leati_link_claim(leati_link *link);
void leati_link_report(leati_link *link, leat_err err, const char *format, ...) LEAT_PRINTF(3, 4);

// --- the writer's and the reader's work ---

bool leati_wire_settle(leati_connection *connection, void *user);
// The same at the end, when there is nothing to be sent any more. Not under the lock.
void leati_wire_let_go(leati_wire *wire, leati_exchange_peer *peer);
size_t leati_wire_fill(leati_connection *connection, void *user,
                       leati_part parts[LEATI_CONNECTION_PARTS]);
void leati_wire_sent(leati_connection *connection, void *user);
// The segments of the send under way go home. Not under a lock.
void leati_wire_release_taken(leati_wire *wire);
// Lets go of the ends that were in the send under way. After the last call of the two above.
void leati_wire_drop_flights(leati_wire *wire, leati_exchange_peer *peer);
// A frame at the end of the scratch, which must have room (LEATI_FRAME_SIZE + size).
void leati_wire_put(leati_wire *wire, const leati_frame *frame, const uint8_t *payload);
bool leati_wire_has_room(const leati_wire *wire, uint32_t size);
// A segment of a received channel has been filled; whether more is to be granted. Under the lock.
typedef enum leati_grant_need {
    LEATI_GRANT_ENOUGH,
    LEATI_GRANT_SOON,
    LEATI_GRANT_NOW, // the sender has nothing left
} leati_grant_need;
leati_grant_need leati_receiver_used(leati_end *end, uint16_t backlog, bool full);
// One turn of a received channel: grants what its pool has, and announces it. The scratch has room
// for a frame. Under the lock, which it gives up on its way. True when the caller has to report a
// failure of the link.
bool leati_receiver_step(leati_wire *wire, leati_exchange_peer *peer, leati_end *end,
                         leat_err *err);

leat_err leati_wire_place(leati_connection *connection, void *user, const leati_frame *frame,
                          uint8_t **to);
leat_err leati_wire_arrived(leati_connection *connection, void *user, const leati_frame *frame);

// --- the housekeeper (exchange.c) ---

// Something has changed that it should look at. Any thread, not under the exchange's lock.
void leati_exchange_poke(leati_exchange *exchange);
// Who we are, for a peer.
void leati_exchange_hello(leati_exchange *exchange, leati_hello *hello);

// --- the interface (exchange_link.c) ---

leat_err leati_exchange_open(leati_transport *self, const leati_link_options *options,
                             leati_link **link);
leat_err leati_exchange_send(leati_link *link, uint32_t number, uint32_t peer,
                             leati_channel *channel);
leat_err leati_exchange_receive(leati_link *link, uint32_t number, uint32_t peer,
                                leati_channel *channel, leati_local_pool *pool);
leati_waiter *leati_exchange_waiter(leati_link *link, uint32_t number);
void leati_exchange_look(leati_link *link, uint32_t number, leati_link_wait *wait);
void leati_exchange_nudge(leati_link *link);
void leati_exchange_close(leati_link **link);

#endif
