// SPDX-License-Identifier: Apache-2.0
// Connections that go well, and how they end.
#include <signal.h>

#include "leat/testing.h"
#include "tests/network/nng/side.h"
#include "tests/operators/tcp.h"

// Two sides joined: [0] was accepted, [1] has dialled.
typedef struct pair {
    hall door;
    side sides[2];
} pair;

static void pair_open(pair *self, uint32_t size_modulus)
{
    side_init(&self->sides[0], size_modulus);
    side_init(&self->sides[1], size_modulus);
    hall_open(&self->door, self->sides, 1);
    side_dial(&self->sides[1], self->door.address);
    side_await_opened(&self->sides[0]);
    side_await_opened(&self->sides[1]);
}

static void pair_close(pair *self)
{
    for (int i = 0; i < 2; i++) {
        side_fini(&self->sides[i]);
        cr_assert_eq(self->sides[i].closed, 1);
        cr_assert_eq(self->sides[i].opened, 1);
        cr_assert(!self->sides[i].wrong);
    }
    leati_listener_destroy(&self->door.listener);
}

Test(connection, both_sides_learn_who_the_other_is)
{
    pair both;
    pair_open(&both, 0);
    cr_assert_str_eq(both.sides[0].peer.process, "the dialler");
    cr_assert_str_eq(both.sides[1].peer.process, "the listener");
    cr_assert_eq(both.sides[1].peer.term, 3);
    cr_assert_str_eq(leati_connection_peer(both.sides[1].connection), both.door.address);
    cr_assert(strncmp(leati_connection_peer(both.sides[0].connection), "tcp://127.0.0.1:", 16) ==
              0);
    pair_close(&both);
}

// Frames without payload, small ones, and some of nearly a MiB, in both directions at once.
Test(connection, frames_of_all_sizes_arrive_in_order_and_whole)
{
    static const struct {
        uint32_t modulus, frames;
    } runs[] = {{0, 10000}, {100, 10000}, {LEATI_CONNECTION_BUFFER * 2, 1000}, {1 << 20, 40}};
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
        pair both;
        pair_open(&both, runs[run].modulus);
        for (int i = 0; i < 2; i++)
            side_send(&both.sides[i], runs[run].frames);
        for (int i = 0; i < 2; i++) {
            side_await_arrived(&both.sides[i], runs[run].frames);
            side_await_sent(&both.sides[i], runs[run].frames);
        }
        cr_assert_eq(both.sides[0].arrived, runs[run].frames);
        cr_assert_eq(both.sides[1].arrived, runs[run].frames);
        pair_close(&both);
    }
}

// The writer falls asleep between any two of them.
Test(connection, no_kick_is_lost)
{
    pair both;
    pair_open(&both, 10);
    for (uint32_t i = 1; i <= 3000; i++) {
        side_send(&both.sides[i % 2], (i + 1) / 2);
        if (i % 3 == 0)
            side_await_arrived(&both.sides[(i + 1) % 2], (i + 1) / 2);
    }
    side_await_arrived(&both.sides[0], 1500);
    side_await_arrived(&both.sides[1], 1500);
    pair_close(&both);
}

// --- sending on the spot ---

// Takes up what lies there when nothing is to be sent: soon after the last frame.
static void take(side *self)
{
    struct timespec pause = {.tv_nsec = 1000000};
    // Before that all of it is the writer's.
    while (atomic_load(&self->connection->stage) != LEATI_CONNECTION_OPEN)
        nanosleep(&pause, NULL);
    while (!leati_connection_take(self->connection))
        nanosleep(&pause, NULL);
}

Test(connection, who_takes_it_sends_what_there_is)
{
    pair both;
    pair_open(&both, 10);
    for (uint32_t i = 1; i <= 100; i++) {
        take(&both.sides[0]);
        // Nobody else sends now, whatever is brought.
        cr_assert(!leati_connection_take(both.sides[0].connection));
        side_send(&both.sides[0], i);
        cr_assert_eq(both.sides[0].sent, i - 1);
        leati_connection_serve(both.sides[0].connection);
        cr_assert_eq(both.sides[0].sent, i); // on this thread
    }
    side_await_arrived(&both.sides[1], 100);
    pair_close(&both);
}

static void ask(side *self, uint32_t frames)
{
    atomic_store_explicit(&self->to_send, frames, memory_order_release);
    if (leati_connection_take_or_ask(self->connection))
        leati_connection_serve(self->connection);
}

Test(connection, a_reader_at_work_sends_what_it_is_asked_to)
{
    pair both;
    pair_open(&both, 10);
    take(&both.sides[0]);
    leati_connection_serve(both.sides[0].connection); // it lies there again
    side_hold(&both.sides[0], true);
    side_send(&both.sides[1], 1);
    side_await_arrived(&both.sides[0], 1); // and stays there
    atomic_store(&both.sides[0].to_send, 1);
    cr_assert(!leati_connection_take_or_ask(both.sides[0].connection));
    cr_assert_eq(atomic_load(&both.sides[0].connection->word), 2); // nobody else was told
    side_hold(&both.sides[0], false);
    side_await_arrived(&both.sides[1], 1);
    pair_close(&both);
}

// The reader goes to work and to wait all the time.
Test(connection, nobody_asks_in_vain)
{
    pair both;
    pair_open(&both, 10);
    for (uint32_t i = 1; i <= 3000; i++) {
        side_send(&both.sides[1], i);
        ask(&both.sides[0], i);
        if (i % 3 == 0)
            side_await_arrived(&both.sides[1], i);
    }
    side_await_arrived(&both.sides[0], 3000);
    pair_close(&both);
}

// More than the system takes at once, and more sends than one is to make on the spot.
Test(connection, what_does_not_go_at_once_is_the_writers)
{
    static const uint32_t moduli[] = {1 << 20, 10};
    for (size_t i = 0; i < sizeof moduli / sizeof *moduli; i++) {
        pair both;
        pair_open(&both, moduli[i]);
        take(&both.sides[0]);
        side_send(&both.sides[0], 60);
        cr_assert_eq(both.sides[0].sent, 0);
        leati_connection_serve(both.sides[0].connection);
        side_await_sent(&both.sides[0], 60);
        side_await_arrived(&both.sides[1], 60);
        pair_close(&both);
    }
}

Test(connection, it_ends_when_who_has_taken_it_has_served)
{
    for (int silent = 0; silent < 2; silent++) {
        pair both;
        pair_open(&both, 10);
        take(&both.sides[0]);
        if (!silent)
            side_send(&both.sides[0], 5);
        leati_connection_close(both.sides[0].connection, LEAT_ECANCELLED, "enough");
        cr_assert_eq(both.sides[0].closed, 0); // it is still in use
        leati_connection_serve(both.sides[0].connection);
        side_await_closed(&both.sides[0]);
        cr_assert_eq(both.sides[0].sent, 0);
        pair_close(&both);
    }
}

Test(connection, works_over_ipc)
{
    pair both;
    char address[64];
    snprintf(address, sizeof address, "ipc:///tmp/leat-test-%ld", (long)getpid());
    side_init(&both.sides[0], 5000);
    side_init(&both.sides[1], 5000);
    leati_listener_options options = hall_options(&both.door, both.sides, 1);
    options.address = address;
    hall_open_with(&both.door, &options);
    cr_assert_str_eq(both.door.address, address);
    side_dial(&both.sides[1], address);
    side_await_opened(&both.sides[1]);
    side_send(&both.sides[1], 500);
    side_await_arrived(&both.sides[0], 500);
    pair_close(&both);
}

// A reader that has waited at its socket for long leaves the waiting to nng, until bytes come.
Test(connection, goes_on_and_ends_after_a_long_silence)
{
    enum { SILENCE_US = (LEATI_SOCKET_PATIENCE_MS + 300) * 1000 };
    pair both;
    pair_open(&both, 9000);
    for (uint32_t frames = 100; frames <= 300; frames += 100) {
        for (int i = 0; i < 2; i++)
            side_send(&both.sides[i], frames);
        for (int i = 0; i < 2; i++)
            side_await_arrived(&both.sides[i], frames);
        cr_assert_not(both.sides[0].wrong || both.sides[1].wrong);
        usleep(SILENCE_US);
    }
    leati_connection_close(both.sides[0].connection, LEAT_ECANCELLED, "enough");
    side_await_closed(&both.sides[0]);
    side_await_closed(&both.sides[1]);
    pair_close(&both);
}

// --- how it ends ---

Test(connection, close_tells_both_sides_once)
{
    pair both;
    pair_open(&both, 0);
    leati_connection_close(both.sides[0].connection, LEAT_ECANCELLED, "enough");
    leati_connection_close(both.sides[0].connection, LEAT_EIO, "too late");
    side_await_closed(&both.sides[0]);
    side_await_closed(&both.sides[1]);
    cr_assert_eq(both.sides[0].err, LEAT_ECANCELLED);
    cr_assert_str_eq(both.sides[0].why, "enough");
    cr_assert_eq(both.sides[1].err, LEAT_ECLOSED);
    cr_assert(strstr(both.sides[1].why, both.door.address), "%s", both.sides[1].why);
    leati_connection_close(both.sides[0].connection, LEAT_EIO, "much too late");
    leati_connection_kick(both.sides[0].connection);
    pair_close(&both);
}

// Joins a side to a socket that says no more than a hello.
static int join_bare(hall *door, side *taker, uint32_t size_modulus)
{
    side_init(taker, size_modulus);
    hall_open(door, taker, 1);
    int fd = bare_connect(door->address);
    bare_greet(fd);
    side_await_opened(taker);
    return fd;
}

static void part_bare(hall *door, side *taker)
{
    side_fini(taker);
    cr_assert_eq(taker->closed, 1);
    leati_listener_destroy(&door->listener);
}

Test(connection, close_ends_a_send_that_the_peer_does_not_take)
{
    hall door;
    side taker;
    int fd = join_bare(&door, &taker, 1 << 20);
    side_send(&taker, 100000); // far more than the system buffers
    side_await_sent(&taker, 1);
    leati_connection_close(taker.connection, LEAT_ECANCELLED, NULL);
    side_await_closed(&taker);
    cr_assert_eq(taker.err, LEAT_ECANCELLED);
    cr_assert(taker.sent < 100000);
    part_bare(&door, &taker);
    close(fd);
}

Test(connection, a_peer_that_goes_ends_a_send_that_it_did_not_take)
{
    hall door;
    side taker;
    int fd = join_bare(&door, &taker, 1 << 20);
    side_send(&taker, 100000);
    side_await_sent(&taker, 1);
    close(fd);
    side_await_closed(&taker);
    cr_assert(strstr(taker.why, "was lost") || strstr(taker.why, "was closed"), "%s", taker.why);
    part_bare(&door, &taker);
}

// What a dying process has sent is read, although sending to it fails already: more than the reader
// has in its buffer.
Test(connection, last_frames_of_a_peer_that_goes_are_read)
{
    static const uint8_t payload[1000];
    for (int round = 0; round < 10; round++) {
        hall door;
        side taker;
        int fd = join_bare(&door, &taker, 1 << 20);
        taker.wild = true;
        side_hold(&taker, true);
        for (int i = 0; i < 40; i++) {
            bare_frame(fd, (leati_frame){.kind = 1, .size = sizeof payload});
            bare_send(fd, payload, sizeof payload);
        }
        side_await_arrived(&taker, 1);
        side_send(&taker, 100000);
        side_await_sent(&taker, 1);
        close(fd); // with bytes unread: the other side is reset
        side_hold(&taker, false);
        side_await_closed(&taker);
        cr_assert_eq(taker.arrived, 40);
        part_bare(&door, &taker);
    }
}

Test(connection, end_between_frames_and_inside_one_are_told_apart)
{
    hall door;
    side taker;
    int fd = join_bare(&door, &taker, 0);
    close(fd);
    side_await_closed(&taker);
    cr_assert_eq(taker.err, LEAT_ECLOSED);
    cr_assert(!strstr(taker.why, "middle"), "%s", taker.why);
    part_bare(&door, &taker);
    static const size_t cut[] = {1, 15, 16, 20};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        uint8_t bytes[64] = {0};
        leati_frame_put(&(leati_frame){.kind = SIDE_KIND, .size = 48}, bytes);
        fd = join_bare(&door, &taker, 0);
        bare_send(fd, bytes, cut[i]);
        close(fd);
        side_await_closed(&taker);
        cr_assert_eq(taker.err, LEAT_EIO);
        cr_assert(strstr(taker.why, "middle of a frame"), "%s", taker.why);
        cr_assert_eq(taker.arrived, 0);
        part_bare(&door, &taker);
    }
}

Test(connection, destroy_ends_it_at_any_time)
{
    for (int round = 0; round < 60; round++) {
        hall door;
        side sides[2];
        side_init(&sides[0], 3000);
        side_init(&sides[1], 3000);
        hall_open(&door, sides, 1);
        side_dial(&sides[1], door.address);
        side_send(&sides[1], 1000);
        if (round % 3 == 1)
            side_await_opened(&sides[1]);
        if (round % 3 == 2)
            side_await_arrived(&sides[0], (uint32_t)round);
        side_fini(&sides[1]);
        cr_assert_eq(sides[1].closed, 1);
        leati_listener_destroy(&door.listener);
        if (atomic_load(&door.come) > 0)
            side_await_closed(&sides[0]);
        side_fini(&sides[0]);
        cr_assert(!sides[0].wrong && !sides[1].wrong);
    }
}

// --- dialling ---

Test(connection, address_that_is_none_is_refused_at_once)
{
    static const char addresses[][24] = {"", "127.0.0.1:80", "tcp://127.0.0.1:0", "udp://a:5"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        side dialler;
        char why[256] = "";
        side_init(&dialler, 0);
        leati_connection_options options = side_options(&dialler, addresses[i]);
        leat_err err = leati_connection_dial(&options, &dialler.connection, why, sizeof why);
        cr_assert_eq(err, LEAT_EINVAL);
        cr_assert(strstr(why, addresses[i]), "%s", why);
        cr_assert_null(dialler.connection);
        cr_assert_eq(dialler.closed, 0);
        side_fini(&dialler);
    }
}

static void dial_in_vain(const char *address, int64_t timeout_ms, const char *reason,
                         const char *or_reason)
{
    side dialler;
    side_init(&dialler, 0);
    leati_connection_options options = side_options(&dialler, address);
    options.dial_timeout_ms = options.hello_timeout_ms = timeout_ms;
    side_dial_with(&dialler, &options);
    side_await_closed(&dialler);
    cr_assert_eq(dialler.err, LEAT_EIO);
    cr_assert(strstr(dialler.why, address), "%s", dialler.why);
    cr_assert(strstr(dialler.why, reason) || strstr(dialler.why, or_reason), "%s", dialler.why);
    cr_assert_eq(dialler.opened, 0);
    side_fini(&dialler);
}

Test(connection, nobody_there_is_told)
{
    char address[64];
    uint32_t port = 0;
    int fd = tcp_bind(false, &port); // bound, so that nobody else gets it, and not listening
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", port);
    dial_in_vain(address, 10000, "nobody listens there", "nobody listens there");
    close(fd);
    dial_in_vain("ipc:///nowhere/at/all", 10000, "nobody listens there", "nobody listens there");
}

Test(connection, dial_that_nobody_answers_ends_in_time)
{
    int peers[TCP_DEAF_PEERS];
    uint32_t port = 0;
    int fd = tcp_deaf(&port, peers);
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", port);
    // The system may take it for connected all the same.
    dial_in_vain(address, 100, "no answer in time", "did not say who it is");
    // And one that is given up.
    side dialler;
    side_init(&dialler, 0);
    side_dial(&dialler, address);
    leati_connection_close(dialler.connection, LEAT_ECANCELLED, NULL);
    side_await_closed(&dialler);
    cr_assert_eq(dialler.err, LEAT_ECANCELLED);
    side_fini(&dialler);
    for (int i = 0; i < TCP_DEAF_PEERS; i++)
        close(peers[i]);
    close(fd);
}

// Any allocation may fail: then no hook has been called.
Test(connection, dial_survives_any_allocation_that_fails)
{
    hall door;
    side sides[2];
    side_init(&sides[0], 0);
    hall_open(&door, sides, 1);
    for (uint64_t nth = 1;; nth++) {
        leat_test_allocator *limited;
        char why[256] = "";
        cr_assert_eq(leat_test_allocator_create(NULL, &limited), LEAT_OK);
        leat_test_allocator_fail(limited, nth, 0);
        side_init(&sides[1], 0);
        leati_connection_options options = side_options(&sides[1], door.address);
        options.allocator = leat_test_allocator_hook(limited);
        leat_err err = leati_connection_dial(&options, &sides[1].connection, why, sizeof why);
        bool made = err == LEAT_OK;
        cr_assert(made || err == LEAT_ENOMEM);
        cr_assert(made || sides[1].closed == 0);
        side_fini(&sides[1]);
        leat_test_allocator_destroy(&limited);
        if (made)
            break;
    }
    leati_listener_destroy(&door.listener);
    side_fini(&sides[0]);
}
