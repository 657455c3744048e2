// SPDX-License-Identifier: Apache-2.0
// Control messages between peers of one process.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/message.h"
#include "cluster/rpc.h"
#include "leat/testing.h"
#include "tests/network/nng/side.h"

enum { PEERS = 30, KIND = LEATI_MESSAGE_CHUNK };

// What is known of one peer, or of all of a server.
typedef struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    int opened, closed, refused, messages;
    uint64_t bytes;
    bool wrong; // a message was not the next one, or its bytes were
    leat_err err;
    char why[512], process[LEATI_HELLO_TEXT];
    leati_rpc *peers[PEERS + 1];
    uint32_t last_kind;
    // Before it begins.
    leat_err says;
    bool wild;
} seen;

static void seen_opened(leati_rpc *rpc, void *user, const leati_hello *peer)
{
    seen *self = user;
    pthread_mutex_lock(&self->lock);
    if (self->opened <= PEERS)
        self->peers[self->opened] = rpc;
    self->opened++;
    snprintf(self->process, sizeof self->process, "%s", peer->process);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

// A chunk's `offset` counts, and its bytes follow from it.
static bool is_next(const seen *self, const uint8_t *bytes, size_t size)
{
    leati_msg_piece piece;
    if (leati_rpc_decode(LEAT_TYPE(leati_msg_piece), bytes, size, &piece, NULL) != LEAT_OK ||
        piece.offset != (uint64_t)self->messages)
        return false;
    for (uint32_t i = 0; i < piece.bytes.size; i++)
        if (piece.bytes.data[i] != (uint8_t)(piece.offset + i))
            return false;
    return true;
}

static leat_err seen_message(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                             size_t size)
{
    seen *self = user;
    pthread_mutex_lock(&self->lock);
    if (!self->wild)
        self->wrong |= self->closed || kind != KIND || !is_next(self, bytes, size);
    self->messages++;
    self->bytes += size;
    self->last_kind = kind;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return self->says;
}

static void seen_end(seen *self, int *counter, leat_err err, const char *why)
{
    pthread_mutex_lock(&self->lock);
    ++*counter;
    self->err = err;
    snprintf(self->why, sizeof self->why, "%s", why);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void seen_closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    seen_end(user, &((seen *)user)->closed, err, why);
}

static void seen_refused(void *user, leat_err err, const char *why)
{
    seen_end(user, &((seen *)user)->refused, err, why);
}

static const leati_rpc_handlers handlers = {
    .opened = seen_opened, .message = seen_message, .closed = seen_closed, .refused = seen_refused};

static void seen_init(seen *self)
{
    *self = (seen){.says = LEAT_OK};
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
}

static void await(seen *self, const int *counter, int wanted)
{
    struct timespec deadline = leati_deadline(SIDE_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    while (*counter < wanted && error == 0)
        error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
    pthread_mutex_unlock(&self->lock);
    cr_assert(error == 0, "waited too long: \"%s\"", self->why);
}

static leati_rpc_options options_of(const char *address, const char *process, seen *user)
{
    leati_rpc_options options = {
        .address = address,
        .dial_timeout_ms = 10000,
        .hello_timeout_ms = 10000,
        .handlers = &handlers,
        .user = user,
    };
    snprintf(options.hello.process, sizeof options.hello.process, "%s", process);
    return options;
}

static leati_rpc_server *serve(seen *user)
{
    char why[256] = "";
    leati_rpc_server *server;
    leati_rpc_options options = options_of("tcp://127.0.0.1:0", "the server", user);
    seen_init(user);
    leat_err err = leati_rpc_serve(&options, PEERS + 1, &server, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    return server;
}

static leati_rpc *dial(const leati_rpc_server *server, seen *user)
{
    char why[256] = "";
    leati_rpc *rpc;
    leati_rpc_options options = options_of(leati_rpc_server_address(server), "a client", user);
    seen_init(user);
    leat_err err = leati_rpc_dial(&options, &rpc, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    return rpc;
}

static leat_err send_chunk(leati_rpc *rpc, uint64_t number, const uint8_t *pattern, uint32_t size)
{
    leati_msg_piece piece = {.offset = number,
                             .bytes = {.data = pattern + (number & 255), .size = size}};
    return leati_rpc_send(rpc, KIND, LEAT_TYPE(leati_msg_piece), &piece);
}

// Byte i is i modulo 256.
static uint8_t *make_pattern(size_t size)
{
    uint8_t *pattern = malloc(size + 256);
    cr_assert(pattern);
    for (size_t i = 0; i < size + 256; i++)
        pattern[i] = (uint8_t)i;
    return pattern;
}

// A server with one peer of each side.
typedef struct couple {
    leati_rpc_server *server;
    leati_rpc *client, *served;
    seen at_server, at_client;
} couple;

static void couple_open(couple *self)
{
    self->server = serve(&self->at_server);
    self->client = dial(self->server, &self->at_client);
    await(&self->at_client, &self->at_client.opened, 1);
    await(&self->at_server, &self->at_server.opened, 1);
    self->served = self->at_server.peers[0];
}

static void couple_close(couple *self)
{
    leati_rpc_destroy(&self->client);
    leati_rpc_destroy(&self->served);
    leati_rpc_server_destroy(&self->server);
    cr_assert_eq(self->at_client.closed, 1);
    cr_assert_eq(self->at_server.closed, 1);
    cr_assert(!self->at_client.wrong && !self->at_server.wrong);
}

Test(rpc, both_learn_who_the_other_is)
{
    couple both;
    couple_open(&both);
    cr_assert_str_eq(both.at_server.process, "a client");
    cr_assert_str_eq(both.at_client.process, "the server");
    cr_assert_str_eq(leati_rpc_peer(both.client), leati_rpc_server_address(both.server));
    couple_close(&both);
}

Test(rpc, ten_thousand_small_messages_both_ways_arrive_in_order)
{
    couple both;
    couple_open(&both);
    uint8_t *pattern = make_pattern(100);
    for (uint64_t i = 0; i < 10000; i++) {
        cr_assert_eq(send_chunk(both.client, i, pattern, (uint32_t)(i % 100)), LEAT_OK);
        cr_assert_eq(send_chunk(both.served, i, pattern, (uint32_t)(i % 50)), LEAT_OK);
    }
    await(&both.at_server, &both.at_server.messages, 10000);
    await(&both.at_client, &both.at_client.messages, 10000);
    couple_close(&both);
    cr_assert_eq(both.at_server.messages, 10000);
    cr_assert_eq(both.at_client.messages, 10000);
    free(pattern);
}

// Around the size that shares a chunk, and far beyond it.
Test(rpc, messages_of_all_sizes_arrive_whole)
{
    couple both;
    couple_open(&both);
    uint8_t *pattern = make_pattern(30 << 20);
    uint64_t count = 0;
    for (uint32_t size = 8000; size < 8300; size += 3)
        cr_assert_eq(send_chunk(both.client, count++, pattern, size), LEAT_OK);
    cr_assert_eq(send_chunk(both.client, count++, pattern, 30 << 20), LEAT_OK);
    for (uint32_t size = 1; size < 300000; size *= 3)
        cr_assert_eq(send_chunk(both.client, count++, pattern, size), LEAT_OK);
    await(&both.at_server, &both.at_server.messages, (int)count);
    couple_close(&both);
    free(pattern);
}

Test(rpc, message_beyond_the_limit_is_refused_and_harms_nothing)
{
    couple both;
    couple_open(&both);
    uint8_t *pattern = make_pattern(LEATI_RPC_MESSAGE_MAX);
    cr_assert_eq(send_chunk(both.client, 0, pattern, LEATI_RPC_MESSAGE_MAX), LEAT_ETOOBIG);
    cr_assert_eq(leati_rpc_send(both.client, 0, NULL, NULL), LEAT_EINVAL);
    cr_assert_eq(leati_rpc_send(both.client, 256, NULL, NULL), LEAT_EINVAL);
    // The largest that fits: all but the few bytes of the other fields.
    cr_assert_eq(send_chunk(both.client, 0, pattern, LEATI_RPC_MESSAGE_MAX - 64), LEAT_OK);
    await(&both.at_server, &both.at_server.messages, 1);
    couple_close(&both);
    free(pattern);
}

Test(rpc, message_without_a_body_arrives)
{
    couple both;
    couple_open(&both);
    both.at_client.wild = true;
    cr_assert_eq(leati_rpc_send(both.served, LEATI_MESSAGE_SHUTDOWN, NULL, NULL), LEAT_OK);
    await(&both.at_client, &both.at_client.messages, 1);
    cr_assert_eq(both.at_client.last_kind, LEATI_MESSAGE_SHUTDOWN);
    cr_assert_eq(both.at_client.bytes, 0);
    couple_close(&both);
}

Test(rpc, what_is_sent_before_it_is_open_is_kept)
{
    seen at_server, at_client;
    leati_rpc_server *server = serve(&at_server);
    uint8_t *pattern = make_pattern(100);
    leati_rpc *client = dial(server, &at_client);
    for (uint64_t i = 0; i < 100; i++)
        cr_assert_eq(send_chunk(client, i, pattern, 10), LEAT_OK);
    await(&at_server, &at_server.messages, 100);
    leati_rpc_destroy(&client);
    leati_rpc_destroy(&at_server.peers[0]);
    leati_rpc_server_destroy(&server);
    cr_assert(!at_server.wrong);
    free(pattern);
}

Test(rpc, queue_is_empty_when_all_has_gone_out)
{
    couple both;
    couple_open(&both);
    uint8_t *pattern = make_pattern(1 << 20);
    for (uint64_t i = 0; i < 20; i++)
        cr_assert_eq(send_chunk(both.client, i, pattern, 1 << 20), LEAT_OK);
    await(&both.at_server, &both.at_server.messages, 20);
    while (leati_rpc_queued(both.client) > 0) // the writer has still to say so
        sched_yield();
    couple_close(&both);
    free(pattern);
}

// --- the end ---

Test(rpc, close_tells_both_and_sends_are_refused)
{
    couple both;
    couple_open(&both);
    leati_rpc_close(both.served, LEAT_ECANCELLED, "no more of it");
    await(&both.at_server, &both.at_server.closed, 1);
    await(&both.at_client, &both.at_client.closed, 1);
    cr_assert_str_eq(both.at_server.why, "no more of it");
    cr_assert_eq(both.at_client.err, LEAT_ECLOSED);
    cr_assert_eq(leati_rpc_send(both.served, KIND, NULL, NULL), LEAT_ECLOSED);
    cr_assert_eq(leati_rpc_send(both.client, KIND, NULL, NULL), LEAT_ECLOSED);
    cr_assert_eq(leati_rpc_queued(both.client), 0);
    couple_close(&both);
}

Test(rpc, handler_that_refuses_ends_the_connection)
{
    couple both;
    couple_open(&both);
    both.at_server.wild = true;
    both.at_server.says = LEAT_ECORRUPT;
    cr_assert_eq(leati_rpc_send(both.client, KIND, NULL, NULL), LEAT_OK);
    await(&both.at_server, &both.at_server.closed, 1);
    await(&both.at_client, &both.at_client.closed, 1);
    cr_assert_eq(both.at_server.err, LEAT_ECORRUPT);
    cr_assert_eq(both.at_server.messages, 1);
    couple_close(&both);
}

// A peer that does not read: what waits is bounded.
Test(rpc, queue_that_overflows_closes_the_connection)
{
    seen at_server;
    leati_rpc_server *server = serve(&at_server);
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    leati_hello hello = {.purpose = "control", .process = "a deaf one"};
    leati_hello_complete(&hello);
    leati_hello_put(&hello, bytes);
    int fd = bare_connect(leati_rpc_server_address(server));
    bare_send(fd, bytes, sizeof bytes);
    await(&at_server, &at_server.opened, 1);
    leati_rpc *served = at_server.peers[0];
    uint8_t *pattern = make_pattern(16 << 20);
    leat_err err = LEAT_OK;
    int sent = 0;
    for (; err == LEAT_OK; sent++)
        err = send_chunk(served, 0, pattern, 16 << 20);
    cr_assert_eq(err, LEAT_ECLOSED);
    // 256 MiB wait at most; beside them is what the system has taken.
    cr_assert(sent > 14 && sent < 40, "%d", sent);
    await(&at_server, &at_server.closed, 1);
    cr_assert_eq(at_server.err, LEAT_ETOOBIG);
    cr_assert(strstr(at_server.why, "does not read: 256 MiB"), "%s", at_server.why);
    close(fd);
    leati_rpc_destroy(&served);
    leati_rpc_server_destroy(&server);
    free(pattern);
}

// --- servers ---

Test(rpc, who_does_not_fit_is_refused_and_the_server_goes_on)
{
    seen at_server, at_client;
    leati_rpc_server *server = serve(&at_server);
    char why[256] = "";
    for (int i = 0; i < 5; i++) {
        leati_rpc *client;
        leati_rpc_options options =
            options_of(leati_rpc_server_address(server), "an old one", &at_client);
        seen_init(&at_client);
        snprintf(options.hello.version, sizeof options.hello.version, "%s", "0.0.1-old");
        cr_assert_eq(leati_rpc_dial(&options, &client, why, sizeof why), LEAT_OK);
        await(&at_client, &at_client.closed, 1);
        cr_assert_eq(at_client.err, LEAT_EABI);
        cr_assert_eq(at_client.opened, 0);
        leati_rpc_destroy(&client);
        int fd = bare_connect(leati_rpc_server_address(server));
        shutdown(fd, SHUT_WR);
        bare_await_end(fd);
    }
    await(&at_server, &at_server.refused, 10);
    cr_assert_eq(at_server.opened + at_server.closed, 0);
    leati_rpc_server_destroy(&server);
}

// All dial at once, each is served, and each end is told once.
Test(rpc, many_clients_at_once_are_served)
{
    static seen at_server, at_client[PEERS];
    leati_rpc *clients[PEERS];
    leati_rpc_server *server = serve(&at_server);
    at_server.wild = true;
    uint8_t *pattern = make_pattern(1000);
    for (int i = 0; i < PEERS; i++)
        clients[i] = dial(server, &at_client[i]);
    for (uint64_t number = 0; number < 100; number++)
        for (int i = 0; i < PEERS; i++)
            cr_assert_eq(send_chunk(clients[i], number, pattern, 500), LEAT_OK);
    await(&at_server, &at_server.messages, 100 * PEERS);
    await(&at_server, &at_server.opened, PEERS);
    // Peers outlive their server.
    leati_rpc_server_destroy(&server);
    for (int i = 0; i < PEERS; i++)
        cr_assert_eq(send_chunk(at_server.peers[i], 0, pattern, 10), LEAT_OK);
    for (int i = 0; i < PEERS; i++) {
        await(&at_client[i], &at_client[i].messages, 1);
        leati_rpc_destroy(&clients[i]);
    }
    await(&at_server, &at_server.closed, PEERS);
    for (int i = 0; i < PEERS; i++)
        leati_rpc_destroy(&at_server.peers[i]);
    cr_assert_eq(at_server.closed, PEERS);
    cr_assert_eq(at_server.messages, 100 * PEERS);
    free(pattern);
}

Test(rpc, server_that_ends_takes_what_is_not_open_with_it)
{
    for (int round = 0; round < 20; round++) {
        seen at_server;
        int fds[5];
        leati_rpc_server *server = serve(&at_server);
        for (int i = 0; i < 5; i++)
            fds[i] = bare_connect(leati_rpc_server_address(server));
        leati_rpc_server_destroy(&server);
        for (int i = 0; i < 5; i++)
            bare_await_end(fds[i]);
        cr_assert_eq(at_server.opened + at_server.closed, 0);
        cr_assert(at_server.refused <= 5);
    }
}

Test(rpc, user_of_a_peer_can_be_changed)
{
    couple both;
    seen other;
    couple_open(&both);
    seen_init(&other);
    cr_assert(leati_rpc_user(both.served) == &both.at_server);
    leati_rpc_set_user(both.served, &other);
    uint8_t *pattern = make_pattern(10);
    cr_assert_eq(send_chunk(both.client, 0, pattern, 10), LEAT_OK);
    await(&other, &other.messages, 1);
    leati_rpc_destroy(&both.client);
    await(&other, &other.closed, 1);
    leati_rpc_destroy(&both.served);
    leati_rpc_server_destroy(&both.server);
    cr_assert_eq(both.at_server.closed, 0);
    free(pattern);
}

Test(rpc, any_allocation_may_fail)
{
    seen at_server;
    leati_rpc_server *server = serve(&at_server);
    for (uint64_t nth = 1;; nth++) {
        leat_test_allocator *limited;
        seen at_client;
        leati_rpc *client;
        char why[256] = "";
        seen_init(&at_client);
        cr_assert_eq(leat_test_allocator_create(NULL, &limited), LEAT_OK);
        leat_test_allocator_fail(limited, nth, 1);
        leati_rpc_options options =
            options_of(leati_rpc_server_address(server), "a client", &at_client);
        options.allocator = leat_test_allocator_hook(limited);
        leat_err err = leati_rpc_dial(&options, &client, why, sizeof why);
        leat_err sent = LEAT_ENOMEM;
        if (err == LEAT_OK) {
            sent = leati_rpc_send(client, KIND, NULL, NULL);
            cr_assert(sent == LEAT_OK || sent == LEAT_ENOMEM);
            leati_rpc_destroy(&client);
        } else {
            cr_assert(err == LEAT_ENOMEM && !client);
        }
        leat_test_allocator_destroy(&limited);
        if (sent == LEAT_OK)
            break;
    }
    leati_rpc_server_destroy(&server);
    for (int i = 0; i < at_server.opened; i++)
        leati_rpc_destroy(&at_server.peers[i]);
}
