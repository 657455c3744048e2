// SPDX-License-Identifier: Apache-2.0
// Readers that step aside in their hook, and who reads meanwhile.
#include <sched.h>
#include <stdatomic.h>

#include "tests/network/nng/side.h"

TestSuite(connection_aside, .timeout = 100);

// The end that dials, whose reader steps aside. The other end is a plain one.
typedef struct aside {
    side side; // first
    // Whether the hook is to step aside, and in how many calls of it one does.
    _Atomic bool steps;
    bool closes; // and ends the connection just before
    _Atomic uint32_t stays;
    _Atomic uint32_t hands; // calls of leati_connection_hand_on that have returned
    _Atomic bool over;
    _Atomic pthread_t reader; // who was in the hook last
    // Under the lock of the side.
    bool held;                       // who is away stays away
    int away, steps_taken, denied;   // now; ever; times that nobody else was there
    int with_operation, lost, found; // while one was under way; what coming back said
    pthread_t gone;                  // who stepped aside last
} aside;

static void note(aside *self, int *counter)
{
    pthread_mutex_lock(&self->side.lock);
    (*counter)++;
    pthread_cond_broadcast(&self->side.changed);
    pthread_mutex_unlock(&self->side.lock);
}

static void stay_away(aside *self)
{
    pthread_mutex_lock(&self->side.lock);
    self->away++;
    self->steps_taken++;
    self->gone = pthread_self();
    pthread_cond_broadcast(&self->side.changed);
    while (self->held)
        pthread_cond_wait(&self->side.changed, &self->side.lock);
    self->away--;
    pthread_mutex_unlock(&self->side.lock);
    // Where somebody hands on all the time: until that was done after this one has gone.
    uint32_t seen = atomic_load(&self->hands);
    uint32_t wanted = atomic_load(&self->stays) ? seen % 3 : 0;
    while (atomic_load(&self->hands) - seen < wanted && !atomic_load(&self->over))
        sched_yield();
}

static bool settle(leati_connection *connection, void *user)
{
    aside *self = user;
    self->reader = pthread_self();
    if (!leati_connection_may_step_aside(connection)) {
        note(self, &self->denied);
        return true;
    }
    if (!atomic_load(&self->steps))
        return true;
    if (connection->reading.under_way)
        note(self, &self->with_operation);
    if (self->closes)
        leati_connection_close(connection, LEAT_ECANCELLED, "closed by its reader");
    leati_connection_step_aside(connection);
    stay_away(self);
    bool back = leati_connection_come_back(connection);
    // Counters are the test's, and it has them for as long as it has the connection.
    note(self, back ? &self->found : &self->lost);
    return back;
}

static const leati_connection_hooks aside_hooks = {
    .opened = side_opened,
    .place = side_place,
    .arrived = side_arrived,
    .settle = settle,
    .fill = side_fill,
    .sent = side_sent,
    .closed = side_closed,
};

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

static void *hand_on_all_the_time(void *arg)
{
    aside *self = arg;
    while (!atomic_load(&self->over)) {
        leati_connection_hand_on(self->side.connection);
        atomic_fetch_add(&self->hands, 1);
        sched_yield();
    }
    return NULL;
}

static bool all_happened(aside *self)
{
    pthread_mutex_lock(&self->side.lock);
    bool all = self->with_operation > 0 && self->found > 0 && self->lost > 0 && self->denied > 0;
    pthread_mutex_unlock(&self->side.lock);
    return all;
}

// So many frames one at a time at least, and then so many as fast as they go.
static void change_hands(uint32_t size_modulus, uint32_t single, uint32_t bulk)
{
    enum { MOST = 20000 };
    static stage at;
    pthread_t hander;
    uint32_t sent = 0;
    open_stage(&at, size_modulus);
    await_second(&at);
    atomic_store(&at.reader.stays, 1);
    atomic_store(&at.reader.steps, true);
    cr_assert(pthread_create(&hander, NULL, hand_on_all_the_time, &at.reader) == 0);
    while (sent < single || (!all_happened(&at.reader) && sent < MOST)) {
        side_send(&at.sender, ++sent);
        side_await_arrived(&at.reader.side, sent);
    }
    side_send(&at.sender, sent + bulk);
    side_await_arrived(&at.reader.side, sent + bulk);
    atomic_store(&at.reader.over, true);
    pthread_join(hander, NULL);
    cr_assert_not(at.reader.side.wrong);
    cr_assert(all_happened(&at.reader));
    close_stage(&at);
    cr_assert_eq(at.reader.side.closed, 1);
}

Test(connection_aside, frames_come_whole_and_in_order_whoever_reads)
{
    change_hands(0, 300, 3000); // of no payload
    change_hands(2, 300, 3000);
    change_hands(100, 300, 3000);
    change_hands(LEATI_CONNECTION_BULK + 100, 300, 3000); // small ones, and some that are not
    change_hands(100000, 100, 500);
    change_hands(SIDE_FRAME_MAX, 10, 40);
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
