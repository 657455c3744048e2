// SPDX-License-Identifier: Apache-2.0
// Readers that step aside in their hook, and who reads meanwhile.
#include <sched.h>
#include <stdatomic.h>

#include "tests/network/nng/side.h"

TestSuite(connection_aside, .timeout = 100);

// The end that dials, whose reader steps aside. The other end is a plain one.
typedef struct aside {
    side side;                // first
    _Atomic bool steps;       // whether the hook is to step aside
    bool closes;              // and ends the connection just before
    bool varies;              // and stays away for longer or shorter
    bool by_nng;              // it waits for bytes by nng alone, not at its socket
    _Atomic pthread_t reader; // who was in the hook last
    // Under the lock of the side.
    bool held;                     // who is away stays away
    int away, steps_taken, denied; // now; ever; times that nobody else was there
    int found, lost;               // what coming back said
    int lost_operations;           // times that one was under way then
    bool lingers;                  // who is away, until the other one is in the hook
    int waits_at;                  // after so many frames it was about to wait for more
    pthread_t gone;                // who stepped aside last
} aside;

static void note(aside *self, int *counter)
{
    pthread_mutex_lock(&self->side.lock);
    (*counter)++;
    pthread_cond_broadcast(&self->side.changed);
    pthread_mutex_unlock(&self->side.lock);
}

static void note_waiting(aside *self)
{
    pthread_mutex_lock(&self->side.lock);
    self->waits_at = (int)self->side.arrived;
    pthread_cond_broadcast(&self->side.changed);
    pthread_mutex_unlock(&self->side.lock);
}

// Comes back at once; or has the right handed on; or waits for the other one to be in the hook,
// too.
static void stay_away(leati_connection *connection, aside *self)
{
    pthread_mutex_lock(&self->side.lock);
    uint32_t how = self->varies ? self->steps_taken * UINT32_C(2654435761) >> 30 : 0;
    int denied = self->denied;
    self->steps_taken++;
    self->away++;
    self->gone = pthread_self();
    pthread_cond_broadcast(&self->side.changed);
    if (how > 1)
        leati_connection_hand_on(connection);
    self->lingers = how == 3;
    while (self->held || (self->varies && how == 3 && self->denied == denied))
        pthread_cond_wait(&self->side.changed, &self->side.lock);
    self->lingers = false;
    self->away--;
    pthread_mutex_unlock(&self->side.lock);
}

static bool settle(leati_connection *connection, void *user)
{
    aside *self = user;
    bool under_way = connection->reading.under_way;
    self->reader = pthread_self();
    if (self->by_nng)
        connection->socket = -1; // as where there is no telling which it is
    if (under_way || (connection->drained && connection->socket >= 0))
        note_waiting(self);
    if (!leati_connection_may_step_aside(connection)) {
        note(self, &self->denied);
        return true;
    }
    if (!atomic_load(&self->steps))
        return true;
    if (self->closes)
        leati_connection_close(connection, LEAT_ECANCELLED, "closed by its reader");
    leati_connection_step_aside(connection);
    stay_away(connection, self);
    bool back = leati_connection_come_back(connection);
    // Counters are the test's, and it has them for as long as it has the connection.
    note(self, back ? &self->found : &self->lost);
    if (!back && under_way)
        note(self, &self->lost_operations);
    return back;
}

static const leati_connection_hooks aside_hooks = {SIDE_HOOKS, .settle = settle};

typedef struct stage {
    hall door;
    side sender;
    aside reader;
} stage;

static void open_stage(stage *self, uint32_t size_modulus)
{
    side_init(&self->sender, size_modulus);
    hall_open(&self->door, &self->sender, 1);
    memset(&self->reader, 0, sizeof self->reader);
    side_init(&self->reader.side, size_modulus);
    leati_connection_options options = side_options(&self->reader.side, self->door.address);
    options.hooks = &aside_hooks;
    side_dial_with(&self->reader.side, &options);
    side_await_opened(&self->reader.side);
    side_await_opened(&self->sender);
}

static void close_stage(stage *self)
{
    side_fini(&self->reader.side);
    side_fini(&self->sender);
    leati_listener_destroy(&self->door.listener);
}

// Until the second thread stands by, so that the hook may step aside whenever it is called next.
static void await_second(stage *self)
{
    while (!leati_connection_may_step_aside(self->reader.side.connection))
        sched_yield();
}

static void hold(aside *self, bool held)
{
    pthread_mutex_lock(&self->side.lock);
    self->held = held;
    pthread_cond_broadcast(&self->side.changed);
    pthread_mutex_unlock(&self->side.lock);
}

static int look(aside *self, const int *counter)
{
    pthread_mutex_lock(&self->side.lock);
    int value = *counter;
    pthread_mutex_unlock(&self->side.lock);
    return value;
}

// The thread that has just read a frame is away from here on, for as long as it is held.
static void send_away(stage *self, uint32_t frames)
{
    aside *reader = &self->reader;
    int steps = look(reader, &reader->steps_taken) + 1;
    hold(reader, true);
    await_second(self);
    atomic_store(&reader->steps, true);
    side_send(&self->sender, frames);
    side_await(&reader->side, "a thread that steps aside", &reader->steps_taken, steps);
}

// Until the other thread stands by, or waits for a frame to come.
static void await_other(aside *self)
{
    bool there = false;
    while (!there && !leati_connection_may_step_aside(self->side.connection)) {
        pthread_mutex_lock(&self->side.lock);
        there = self->lingers;
        pthread_mutex_unlock(&self->side.lock);
        sched_yield();
    }
}

// So many frames one at a time, and then so many as fast as they go.
static void change_hands(bool by_nng, uint32_t size_modulus, uint32_t single, uint32_t bulk)
{
    static stage at;
    aside *reader = &at.reader;
    open_stage(&at, size_modulus);
    await_second(&at);
    reader->varies = true;
    reader->by_nng = by_nng;
    atomic_store(&reader->steps, true);
    for (uint32_t i = 1; i <= single; i++) {
        side_send(&at.sender, i);
        side_await(&reader->side, "a reader that waits", &reader->waits_at, (int)i);
        await_other(reader);
    }
    side_send(&at.sender, single + bulk);
    side_await_arrived(&reader->side, single + bulk);
    cr_assert_not(reader->side.wrong);
    cr_assert(look(reader, &reader->found) > 0);
    cr_assert(!by_nng || look(reader, &reader->lost_operations) > 0);
    // Who is away may wait for a frame yet.
    pthread_mutex_lock(&reader->side.lock);
    reader->varies = false;
    pthread_cond_broadcast(&reader->side.changed);
    pthread_mutex_unlock(&reader->side.lock);
    close_stage(&at);
    cr_assert_eq(reader->side.closed, 1);
}

static void change_hands_of_all_sizes(bool by_nng)
{
    change_hands(by_nng, 0, 300, 3000); // of no payload
    change_hands(by_nng, 2, 300, 3000);
    change_hands(by_nng, 100, 300, 3000);
    // Small ones, and some that are not.
    change_hands(by_nng, LEATI_CONNECTION_BULK + 100, 300, 3000);
    change_hands(by_nng, 100000, 100, 500);
    change_hands(by_nng, SIDE_FRAME_MAX, 60, 20);
}

Test(connection_aside, frames_come_whole_and_in_order_whoever_reads)
{
    change_hands_of_all_sizes(false);
}

// With operations that are under way when another thread goes on.
Test(connection_aside, the_same_where_nng_waits_for_bytes)
{
    change_hands_of_all_sizes(true);
}

Test(connection_aside, another_thread_reads_while_one_is_away_and_then_they_change)
{
    static stage at;
    aside *reader = &at.reader;
    open_stage(&at, 9000);
    send_away(&at, 1);
    pthread_t first = reader->gone;
    leati_connection_hand_on(reader->side.connection);
    side_send(&at.sender, 200);
    side_await_arrived(&reader->side, 200);
    side_await(&reader->side, "a reader that has nobody", &reader->denied, 1);
    // Whoever reads now has found nobody to read for it.
    cr_assert_not(pthread_equal(reader->reader, first));
    cr_assert_eq(look(reader, &reader->steps_taken), 1);
    cr_assert_eq(look(reader, &reader->away), 1);
    atomic_store(&reader->steps, false);
    hold(reader, false);
    side_await(&reader->side, "one who is not the reader any more", &reader->lost, 1);
    // It stands by now, so that the other may go.
    send_away(&at, 201);
    cr_assert_not(pthread_equal(reader->gone, first));
    leati_connection_hand_on(reader->side.connection);
    side_send(&at.sender, 400);
    side_await_arrived(&reader->side, 400);
    cr_assert(pthread_equal(reader->reader, first));
    hold(reader, false);
    side_await(&reader->side, "the other one", &reader->lost, 2);
    cr_assert_not(reader->side.wrong);
    close_stage(&at);
}

Test(connection_aside, who_comes_back_in_time_reads_on)
{
    static stage at;
    aside *reader = &at.reader;
    open_stage(&at, 9000);
    send_away(&at, 1);
    pthread_t first = reader->gone;
    hold(reader, false);
    side_await(&reader->side, "the reader that was away", &reader->found, 1);
    side_send(&at.sender, 300);
    side_await_arrived(&reader->side, 300);
    cr_assert(pthread_equal(reader->reader, first));
    cr_assert_eq(look(reader, &reader->lost), 0);
    cr_assert_not(reader->side.wrong);
    close_stage(&at);
}

// --- the end while a thread is away ---

typedef enum ending {
    CLOSED_HERE,
    CLOSED_BEFORE, // by the reader itself, which then goes away
    CLOSED_LATER,  // once another thread reads
    LOST,
} ending;

static void end_it(stage *at, ending how)
{
    leati_connection *connection = at->reader.side.connection;
    if (how == CLOSED_HERE || how == CLOSED_LATER) {
        leati_connection_close(connection, LEAT_ECANCELLED, "enough");
    } else if (how == LOST) {
        leati_connection_destroy(&at->sender.connection);
        leati_connection_hand_on(connection);
    }
}

static void await_left(leati_connection *connection)
{
    while (!leati_connection_is_left(connection))
        sched_yield();
}

static void end_while_away(ending how)
{
    static stage at;
    aside *reader = &at.reader;
    open_stage(&at, 9000);
    reader->closes = how == CLOSED_BEFORE;
    send_away(&at, 1);
    if (how == CLOSED_LATER) {
        leati_connection_hand_on(reader->side.connection);
        side_send(&at.sender, 100);
        side_await_arrived(&reader->side, 100);
    }
    end_it(&at, how);
    side_await_closed(&reader->side);
    cr_assert_eq(reader->side.err, how == LOST ? LEAT_ECLOSED : LEAT_ECANCELLED, "%s",
                 reader->side.why);
    cr_assert_eq(look(reader, &reader->away), 1);
    cr_assert_not(leati_connection_is_left(reader->side.connection));
    hold(reader, false);
    await_left(reader->side.connection);
    cr_assert_eq(look(reader, &reader->found), 0);
    close_stage(&at);
    cr_assert_eq(reader->lost, 1);
    cr_assert_eq(reader->side.closed, 1);
    cr_assert_not(reader->side.wrong);
}

Test(connection_aside, the_end_does_not_wait_for_who_is_away)
{
    end_while_away(CLOSED_HERE);
    end_while_away(CLOSED_BEFORE);
    end_while_away(CLOSED_LATER);
    end_while_away(LOST);
}

static void *destroy(void *arg)
{
    aside *self = arg;
    leati_connection_destroy(&self->side.connection);
    return (void *)(uintptr_t)self->lost; // who was away is joined
}

Test(connection_aside, destroying_waits_for_who_is_away)
{
    static stage at;
    pthread_t destroyer;
    void *lost;
    open_stage(&at, 9000);
    send_away(&at, 1);
    cr_assert(pthread_create(&destroyer, NULL, destroy, &at.reader) == 0);
    side_await_closed(&at.reader.side);
    hold(&at.reader, false);
    pthread_join(destroyer, &lost);
    cr_assert_eq((uintptr_t)lost, 1);
    close_stage(&at);
}

Test(connection_aside, an_end_with_both_threads_there_is_left_at_once)
{
    static stage at;
    open_stage(&at, 9000);
    side_send(&at.sender, 100);
    side_await_arrived(&at.reader.side, 100);
    leati_connection_destroy(&at.sender.connection);
    side_await_closed(&at.reader.side);
    cr_assert(leati_connection_is_left(at.reader.side.connection));
    close_stage(&at);
}
