// SPDX-License-Identifier: Apache-2.0
// One peer: messages are encoded into chunks, which the connection sends one after the other, and
// come one frame a message.
//
// Small messages share a chunk, so that many of them cost one call of the system; a large one has a
// chunk of its own. What the connection is sending is not appended to.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/rpc_impl.h"

enum {
    CHUNK_SIZE = 8 << 10,    // of what small messages share
    MESSAGE_LEAST = 4 << 10, // room for a message, at least
    MESSAGE_KEPT = 64 << 10, // room for a message that is kept for the next one
};

struct leati_rpc_chunk {
    leati_rpc_chunk *next;
    size_t size, room;
    uint8_t data[];
};

// --- life ----------------------------------------------------------------------------------------

leat_err leati_rpc_create(const leat_allocator *allocator, const leati_rpc_handlers *handlers,
                          void *user, leati_rpc **rpc)
{
    leati_rpc *self = leati_calloc(allocator, 1, sizeof *self);
    if (!self)
        return LEAT_ENOMEM;
    self->allocator = allocator;
    self->handlers = handlers;
    atomic_init(&self->user, user);
    pthread_mutex_init(&self->lock, NULL);
    *rpc = self;
    return LEAT_OK;
}

static void free_chunks(leati_rpc *self, leati_rpc_chunk **first)
{
    while (*first) {
        leati_rpc_chunk *chunk = *first;
        *first = chunk->next;
        self->waiting_bytes -= chunk->size;
        leati_free(self->allocator, chunk);
    }
}

void leati_rpc_free(leati_rpc *rpc)
{
    free_chunks(rpc, &rpc->first);
    free_chunks(rpc, &rpc->sending);
    leati_free(rpc->allocator, rpc->spare);
    leati_free(rpc->allocator, rpc->message);
    pthread_mutex_destroy(&rpc->lock);
    leati_free(rpc->allocator, rpc);
}

leat_err leati_rpc_dial(const leati_rpc_options *options, leati_rpc **rpc, char *why,
                        size_t why_size)
{
    leati_rpc *self;
    const leat_allocator *allocator = leati_allocator_or_default(options->allocator);
    *rpc = NULL;
    leat_err err = leati_rpc_create(allocator, options->handlers, options->user, &self);
    if (err != LEAT_OK) {
        snprintf(why, why_size, "%s", leat_err_message(err));
        return err;
    }
    leati_connection_options connection = {
        .allocator = allocator,
        .address = options->address,
        .hello = options->hello,
        .auth = options->auth,
        .dial_timeout_ms = options->dial_timeout_ms,
        .hello_timeout_ms = options->hello_timeout_ms,
        .frame_max = LEATI_RPC_MESSAGE_MAX,
        .hooks = &leati_rpc_hooks,
        .user = self,
    };
    snprintf(connection.hello.purpose, sizeof connection.hello.purpose, "control");
    *rpc = self; // a handler may run before this returns, and needs it
    err = leati_connection_dial(&connection, &self->connection, why, why_size);
    if (err != LEAT_OK) {
        *rpc = NULL;
        leati_rpc_free(self);
    }
    return err;
}

// Nothing more is taken, and what has not begun to be sent is dropped.
static void end_queue(leati_rpc *self)
{
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    free_chunks(self, &self->first);
    self->last = NULL;
    pthread_mutex_unlock(&self->lock);
}

void leati_rpc_close(leati_rpc *rpc, leat_err err, const char *why)
{
    end_queue(rpc);
    leati_connection_close(rpc->connection, err, why);
}

void leati_rpc_destroy(leati_rpc **rpc)
{
    leati_rpc *self = *rpc;
    if (!self)
        return;
    *rpc = NULL;
    // A handler may be sending until the reader has ended: it is not to find the pointer gone.
    leati_connection *connection = self->connection;
    leati_connection_destroy(&connection);
    leati_rpc_free(self);
}

void leati_rpc_set_user(leati_rpc *rpc, void *user)
{
    // Release and acquire: whoever finds the user sees what was set up before.
    atomic_store_explicit(&rpc->user, user, memory_order_release);
}

void *leati_rpc_user(const leati_rpc *rpc)
{
    return atomic_load_explicit(&rpc->user, memory_order_acquire);
}

const char *leati_rpc_peer(const leati_rpc *rpc)
{
    return leati_connection_peer(rpc->connection);
}

// --- sending -------------------------------------------------------------------------------------

static leati_rpc_chunk *make_chunk(leati_rpc *self, size_t room)
{
    leati_rpc_chunk *chunk = leati_alloc(self->allocator, sizeof *chunk + room);
    if (chunk)
        *chunk = (leati_rpc_chunk){.room = room};
    return chunk;
}

// The frame at the end of the chunk, which has the room. False: the record has grown since its size
// was taken, or is none.
static bool encode(leati_rpc_chunk *chunk, uint32_t kind, const leat_type *type, const void *record,
                   size_t size)
{
    uint8_t *to = chunk->data + chunk->size;
    leati_frame_put(&(leati_frame){.size = (uint32_t)size, .kind = (uint8_t)kind}, to);
    to += LEATI_FRAME_SIZE;
    if (type && leat_record_encode(type, record, to, to + size) != to + size)
        return false;
    chunk->size += LEATI_FRAME_SIZE + size;
    return true;
}

static void append_locked(leati_rpc *self, leati_rpc_chunk *chunk)
{
    if (self->last)
        self->last->next = chunk;
    else
        self->first = chunk;
    self->last = chunk;
}

// A message that shares a chunk.
static leat_err put_small_locked(leati_rpc *self, uint32_t kind, const leat_type *type,
                                 const void *record, size_t size)
{
    leati_rpc_chunk *chunk = self->last;
    if (!chunk || chunk->room - chunk->size < LEATI_FRAME_SIZE + size) {
        chunk = self->spare ? self->spare : make_chunk(self, CHUNK_SIZE);
        if (!chunk)
            return LEAT_ENOMEM;
        self->spare = NULL;
        append_locked(self, chunk);
    }
    return encode(chunk, kind, type, record, size) ? LEAT_OK : LEAT_EINVAL;
}

// `large`: its own chunk, already encoded; taken over on success.
static leat_err put_locked(leati_rpc *self, uint32_t kind, const leat_type *type,
                           const void *record, size_t size, leati_rpc_chunk *large)
{
    size_t frame = LEATI_FRAME_SIZE + size;
    if (self->closed)
        return LEAT_ECLOSED;
    if (frame > LEATI_RPC_QUEUE_MAX - self->waiting_bytes)
        return LEAT_ENOBUFS;
    leat_err err = LEAT_OK;
    if (large)
        append_locked(self, large);
    else
        err = put_small_locked(self, kind, type, record, size);
    if (err == LEAT_OK)
        self->waiting_bytes += frame;
    return err;
}

leat_err leati_rpc_send(leati_rpc *rpc, uint32_t kind, const leat_type *type, const void *record)
{
    size_t size = type ? leat_record_encoded_size(type, record) : 0;
    leati_rpc_chunk *large = NULL;
    if (kind == 0 || kind > UINT8_MAX)
        return LEAT_EINVAL;
    if (size > LEATI_RPC_MESSAGE_MAX)
        return LEAT_ETOOBIG;
    if (LEATI_FRAME_SIZE + size > CHUNK_SIZE) {
        large = make_chunk(rpc, LEATI_FRAME_SIZE + size);
        if (!large)
            return LEAT_ENOMEM;
        if (!encode(large, kind, type, record, size)) {
            leati_free(rpc->allocator, large);
            return LEAT_EINVAL;
        }
    }
    pthread_mutex_lock(&rpc->lock);
    leat_err err = put_locked(rpc, kind, type, record, size, large);
    pthread_mutex_unlock(&rpc->lock);
    if (err == LEAT_OK) {
        leati_connection_kick(rpc->connection);
        return LEAT_OK;
    }
    leati_free(rpc->allocator, large);
    if (err == LEAT_ENOBUFS) {
        char why[256];
        snprintf(why, sizeof why, "%s does not read: %d MiB wait to be sent to it",
                 leati_rpc_peer(rpc), LEATI_RPC_QUEUE_MAX >> 20);
        leati_rpc_close(rpc, LEAT_ETOOBIG, why);
        return LEAT_ECLOSED;
    }
    return err;
}

size_t leati_rpc_queued(leati_rpc *rpc)
{
    pthread_mutex_lock(&rpc->lock);
    size_t bytes = rpc->closed ? 0 : rpc->waiting_bytes;
    pthread_mutex_unlock(&rpc->lock);
    return bytes;
}

static size_t fill(leati_connection *connection, void *user,
                   leati_part parts[LEATI_CONNECTION_PARTS])
{
    leati_rpc *self = user;
    size_t count = 0;
    pthread_mutex_lock(&self->lock);
    leati_rpc_chunk **end = &self->sending;
    while (count < LEATI_CONNECTION_PARTS && self->first) {
        leati_rpc_chunk *chunk = self->first;
        self->first = chunk->next;
        chunk->next = NULL;
        parts[count++] = (leati_part){.data = chunk->data, .size = chunk->size};
        *end = chunk;
        end = &chunk->next;
    }
    if (!self->first)
        self->last = NULL;
    pthread_mutex_unlock(&self->lock);
    return count;
}

static void sent(leati_connection *connection, void *user)
{
    leati_rpc *self = user;
    pthread_mutex_lock(&self->lock);
    leati_rpc_chunk *chunk = self->sending;
    if (!self->spare && chunk->room == CHUNK_SIZE) {
        self->sending = chunk->next;
        self->waiting_bytes -= chunk->size;
        *chunk = (leati_rpc_chunk){.room = CHUNK_SIZE};
        self->spare = chunk;
    }
    free_chunks(self, &self->sending);
    pthread_mutex_unlock(&self->lock);
}

// --- receiving -----------------------------------------------------------------------------------

static void opened(leati_connection *connection, void *user, const leati_hello *peer)
{
    leati_rpc *self = user;
    self->handlers->opened(self, leati_rpc_user(self), peer);
    // After the handler, so that a server that is being destroyed waits for it.
    if (self->server)
        leati_rpc_server_opened(self->server, self);
}

// The size has been checked against LEATI_RPC_MESSAGE_MAX.
static leat_err place(leati_connection *connection, void *user, const leati_frame *frame,
                      uint8_t **to)
{
    leati_rpc *self = user;
    if (frame->size > self->message_room) {
        size_t room = frame->size > MESSAGE_LEAST ? frame->size : MESSAGE_LEAST;
        uint8_t *message = leati_alloc(self->allocator, room);
        if (!message)
            return LEAT_ENOMEM;
        leati_free(self->allocator, self->message);
        self->message = message;
        self->message_room = room;
    }
    *to = self->message;
    return LEAT_OK;
}

static leat_err arrived(leati_connection *connection, void *user, const leati_frame *frame)
{
    leati_rpc *self = user;
    const uint8_t *bytes = frame->size ? self->message : (const uint8_t *)"";
    leat_err err =
        self->handlers->message(self, leati_rpc_user(self), frame->kind, bytes, frame->size);
    if (self->message_room > MESSAGE_KEPT) {
        leati_free(self->allocator, self->message);
        self->message = NULL;
        self->message_room = 0;
    }
    return err;
}

static void closed(leati_connection *connection, void *user, leat_err err, const char *why)
{
    leati_rpc *self = user;
    end_queue(self);
    if (self->server)
        leati_rpc_server_lost(self->server, self, err, why);
    else
        self->handlers->closed(self, leati_rpc_user(self), err, why);
}

const leati_connection_hooks leati_rpc_hooks = {
    .opened = opened,
    .place = place,
    .arrived = arrived,
    .fill = fill,
    .sent = sent,
    .closed = closed,
};

leat_err leati_rpc_decode(const leat_type *type, const uint8_t *bytes, size_t size, void *record,
                          leat_scratch *scratch)
{
    return leat_record_decode(type, bytes, size, record, scratch);
}
