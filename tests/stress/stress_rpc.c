// SPDX-License-Identifier: Apache-2.0
// Peers that dial a server and send each other numbered messages of random sizes, two threads a
// peer. At a random moment, or never, a peer is closed or destroyed on one side, or the server
// goes, while others still dial. Each message comes once and in the order of its sender; all come
// where nobody has ended anything; a peer that was handed out is told of its end once. A watchdog
// ends the program when a round takes too long.
//
//     stress_rpc [SECONDS [SEED]]
#include <string.h>

#include "base/thread.h"
#include "cluster/message.h"
#include "cluster/rpc.h"
#include "nng_races.h"
#include "seeded.h"

enum { PEERS = 4, SENDERS = 2, MESSAGES = 200, SIZE_MAX_ = 30000, KIND = LEATI_MESSAGE_CHUNK };

static uint8_t pattern[SIZE_MAX_ + 256]; // byte i is i modulo 256

typedef struct peer {
    leati_rpc *_Atomic rpc;
    _Atomic uint32_t next[SENDERS]; // message that comes next of each sender
    _Atomic int opened, closed;
} peer;

typedef struct round {
    leati_rpc_server *server;
    uint32_t peers;
    peer dialled[PEERS], served[PEERS];
    _Atomic uint32_t come, refused;
} round;

typedef struct sender {
    peer *from;
    uint32_t number;
    uint64_t random;
} sender;

static void note_opened(peer *self, leati_rpc *rpc)
{
    atomic_store(&self->rpc, rpc);
    if (atomic_fetch_add(&self->opened, 1) || atomic_load(&self->closed))
        wrong("opened is not first", 0, 0);
}

static void dialled_opened(leati_rpc *rpc, void *user, const leati_hello *hello)
{
    note_opened(user, rpc);
    (void)hello;
}

static void served_opened(leati_rpc *rpc, void *user, const leati_hello *hello)
{
    round *self = user;
    peer *taker = &self->served[atomic_fetch_add(&self->come, 1)];
    leati_rpc_set_user(rpc, taker);
    note_opened(taker, rpc);
    (void)hello;
}

static leat_err on_message(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                           size_t size)
{
    peer *self = user;
    leati_msg_piece piece;
    if (kind != KIND || atomic_load(&self->closed))
        wrong("a message that is none", kind, 0);
    if (leati_rpc_decode(LEAT_TYPE(leati_msg_piece), bytes, size, &piece, NULL) != LEAT_OK)
        wrong("a message that cannot be decoded", (int64_t)size, 0);
    uint32_t number = atomic_load(&self->next[piece.total]);
    if (piece.offset != number)
        wrong("not the next message", (int64_t)piece.offset, number);
    if (memcmp(piece.bytes.data, pattern + number % 256, piece.bytes.size) != 0)
        wrong("not the bytes that were sent", number, 0);
    atomic_store(&self->next[piece.total], number + 1);
    (void)rpc;
    return LEAT_OK;
}

static void on_closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    peer *self = user;
    if (err == LEAT_OK || !*why)
        wrong("an end without a reason", err, 0);
    if (atomic_fetch_add(&self->closed, 1))
        wrong("closed twice", 0, 0);
    (void)rpc;
}

static void on_refused(void *user, leat_err err, const char *why)
{
    atomic_fetch_add(&((round *)user)->refused, 1);
    (void)err, (void)why;
}

static const leati_rpc_handlers dialled_handlers = {
    .opened = dialled_opened, .message = on_message, .closed = on_closed};
static const leati_rpc_handlers served_handlers = {
    .opened = served_opened, .message = on_message, .closed = on_closed, .refused = on_refused};

static void *send_all(void *arg)
{
    sender *self = arg;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t limit = next_random(&self->random, 10) == 0 ? SIZE_MAX_ : 100;
        leati_msg_piece piece = {
            .offset = i,
            .total = self->number,
            .bytes = {.data = pattern + i % 256, .size = next_random(&self->random, limit)}};
        leat_err err =
            leati_rpc_send(atomic_load(&self->from->rpc), KIND, LEAT_TYPE(leati_msg_piece), &piece);
        if (err == LEAT_ECLOSED)
            return NULL;
        if (err != LEAT_OK)
            wrong("a message was not taken", err, i);
    }
    return NULL;
}

static leati_rpc_options options_of(const char *address, const leati_rpc_handlers *handlers,
                                    void *user)
{
    return (leati_rpc_options){.address = address,
                               .hello = {.process = "stress"},
                               .dial_timeout_ms = 30000,
                               .hello_timeout_ms = 30000,
                               .handlers = handlers,
                               .user = user};
}

static void open_round(round *self)
{
    char why[256];
    memset(self, 0, sizeof *self);
    self->peers = 1 + below(PEERS);
    leati_rpc_options options = options_of("tcp://127.0.0.1:0", &served_handlers, self);
    if (leati_rpc_serve(&options, PEERS, &self->server, why, sizeof why) != LEAT_OK)
        wrong(why, 0, 0);
    options = options_of(leati_rpc_server_address(self->server), &dialled_handlers, NULL);
    for (uint32_t i = 0; i < self->peers; i++) {
        leati_rpc *rpc;
        options.user = &self->dialled[i];
        if (leati_rpc_dial(&options, &rpc, why, sizeof why) != LEAT_OK)
            wrong(why, 0, 0);
        atomic_store(&self->dialled[i].rpc, rpc);
    }
}

static void nap(uint32_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

static void await(_Atomic uint32_t *counter, uint32_t wanted)
{
    while (atomic_load(counter) < wanted)
        nap(200);
}

static void start_senders(sender *senders, pthread_t *threads, peer *from)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (sender){.from = from, .number = i, .random = below(1 << 30)};
        if (pthread_create(&threads[i], NULL, send_all, &senders[i]) != 0)
            wrong("no thread", 0, 0);
    }
}

static void disturb(round *self, uint32_t how)
{
    nap(below(3000));
    uint32_t victim = below(self->peers);
    leati_rpc *rpc = atomic_load(how == 2 ? &self->served[victim].rpc : &self->dialled[victim].rpc);
    if ((how == 1 || how == 2) && rpc)
        leati_rpc_close(rpc, LEAT_ECANCELLED, "stress");
    if (how == 3)
        leati_rpc_server_destroy(&self->server);
}

static void close_all(round *self)
{
    for (uint32_t i = 0; i < self->peers; i++) {
        leati_rpc *rpc = atomic_load(&self->dialled[i].rpc);
        leati_rpc_destroy(&rpc);
        if (atomic_load(&self->dialled[i].closed) != 1)
            wrong("not closed", i, 0);
    }
    leati_rpc_server_destroy(&self->server);
    uint32_t come = atomic_load(&self->come);
    if (come + atomic_load(&self->refused) > self->peers)
        wrong("more have come than were there", come, atomic_load(&self->refused));
    for (uint32_t i = 0; i < come; i++) {
        leati_rpc *rpc = atomic_load(&self->served[i].rpc);
        leati_rpc_destroy(&rpc);
        if (atomic_load(&self->served[i].closed) != 1)
            wrong("not closed", i, 1);
    }
}

static void try_round(round *self)
{
    pthread_t threads[2 * PEERS][SENDERS];
    sender senders[2 * PEERS][SENDERS];
    open_round(self);
    uint32_t how = below(4), peers = self->peers, count = 0;
    bool served = how == 0 || below(2);
    if (served)
        await(&self->come, peers);
    for (uint32_t i = 0; i < peers; i++, count++)
        start_senders(senders[count], threads[count], &self->dialled[i]);
    for (uint32_t i = 0; served && i < peers; i++, count++) {
        while (!atomic_load(&self->served[i].rpc)) // it has come, and is about to say so
            nap(100);
        start_senders(senders[count], threads[count], &self->served[i]);
    }
    disturb(self, how);
    for (uint32_t i = 0; i < count * SENDERS; i++)
        pthread_join(threads[i / SENDERS][i % SENDERS], NULL);
    for (uint32_t i = 0; how == 0 && i < peers * SENDERS; i++) {
        await(&self->dialled[i / SENDERS].next[i % SENDERS], MESSAGES);
        await(&self->served[i / SENDERS].next[i % SENDERS], MESSAGES);
    }
    close_all(self);
}

int main(int argc, char **argv)
{
    static round state;
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    int64_t until = clock_s() + seconds;
    int rounds = 0;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)i;
    start_watchdog();
    printf("seed %" PRIu64 "\n", seed);
    for (; clock_s() < until; seed++, rounds++) {
        seed_now = random_now = seed;
        feed_watchdog();
        try_round(&state);
    }
    printf("%d rounds\n", rounds);
    return 0;
}
