// SPDX-License-Identifier: Apache-2.0
// What a peer can do wrong: the test is the peer, and says what it likes over a connection.
#include <criterion/criterion.h>
#include <sched.h>
#include <unistd.h>

#include "network/nng/exchange_impl.h"
#include "tests/network/nng/flow.h"

enum { SAID = 1 << 16, HEARD = 64, ATTEMPT = 77 };

// --- the peer ---

typedef struct impostor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    leati_connection *connection;
    bool opened, closed;
    bool deaf; // stays in `arrived`
    uint8_t said[SAID];
    size_t say, sent, in_send;
    leati_frame heard[HEARD];
    uint8_t payload[HEARD][LEATI_EVENT_SIZE]; // as much as goes there
    uint32_t heard_count;
    // The reader's.
    uint8_t in[FLOW_SEGMENT];
} impostor;

static void was_opened(leati_connection *connection, void *user, const leati_hello *peer)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->opened = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static leat_err place(leati_connection *connection, void *user, const leati_frame *frame,
                      uint8_t **to)
{
    *to = ((impostor *)user)->in;
    return LEAT_OK;
}

static leat_err arrived(leati_connection *connection, void *user, const leati_frame *frame)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    if (self->heard_count == HEARD)
        self->heard_count = 0; // nobody looks any more
    memcpy(self->payload[self->heard_count], self->in, LEATI_EVENT_SIZE);
    self->heard[self->heard_count++] = *frame;
    pthread_cond_broadcast(&self->changed);
    while (self->deaf)
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return LEAT_OK;
}

static size_t fill(leati_connection *connection, void *user,
                   leati_part parts[LEATI_CONNECTION_PARTS])
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->in_send = self->say - self->sent;
    parts[0] = (leati_part){.data = self->said + self->sent, .size = self->in_send};
    pthread_mutex_unlock(&self->lock);
    return self->in_send > 0;
}

static void sent(leati_connection *connection, void *user)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->sent += self->in_send;
    pthread_mutex_unlock(&self->lock);
}

static void was_closed(leati_connection *connection, void *user, leat_err err, const char *why)
{
    impostor *self = user;
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static const leati_connection_hooks hooks = {.opened = was_opened,
                                             .place = place,
                                             .arrived = arrived,
                                             .fill = fill,
                                             .sent = sent,
                                             .closed = was_closed};

static void impostor_dial(impostor *self, const node *to, const char *process,
                          uint32_t segment_size)
{
    char why[256];
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    leati_cond_init(&self->changed);
    leati_connection_options options = {
        .address = leati_exchange_address(to->transport),
        .hello = {.purpose = "data", .abi = LEAT_ABI, .segment_size = segment_size},
        .dial_timeout_ms = FLOW_PATIENCE_MS,
        .hello_timeout_ms = FLOW_PATIENCE_MS,
        .frame_max = FLOW_SEGMENT,
        .hooks = &hooks,
        .user = self,
    };
    snprintf(options.hello.process, sizeof options.hello.process, "%s", process);
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    cr_assert_eq(leati_connection_dial(&options, &self->connection, why, sizeof why), LEAT_OK);
}

static void impostor_await(impostor *self, const bool *what)
{
    struct timespec deadline = leati_deadline(FLOW_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    while (!*what && error == 0)
        error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
    pthread_mutex_unlock(&self->lock);
    cr_assert(error == 0, "waited too long");
}

// Waits for the next frame of that kind from `*at` on, which is left behind it.
static uint32_t impostor_hear(impostor *self, uint32_t *at, uint8_t kind)
{
    struct timespec deadline = leati_deadline(FLOW_PATIENCE_MS);
    int error = 0;
    pthread_mutex_lock(&self->lock);
    for (;; (*at)++) {
        while (*at >= self->heard_count && error == 0)
            error = pthread_cond_timedwait(&self->changed, &self->lock, &deadline);
        if (error || self->heard[*at].kind == kind)
            break;
    }
    pthread_mutex_unlock(&self->lock);
    cr_assert(error == 0, "waited too long for a frame of kind %u", kind);
    return (*at)++;
}

// A frame that says to have `frame->size` bytes, and `size` bytes that follow.
static void impostor_say(impostor *self, const leati_frame *frame, const void *payload, size_t size)
{
    pthread_mutex_lock(&self->lock);
    cr_assert(self->say + LEATI_FRAME_SIZE + size <= SAID);
    leati_frame_put(frame, self->said + self->say);
    if (payload)
        memcpy(self->said + self->say + LEATI_FRAME_SIZE, payload, size);
    self->say += LEATI_FRAME_SIZE + size;
    pthread_mutex_unlock(&self->lock);
    leati_connection_kick(self->connection);
}

static void impostor_open(impostor *self, uint32_t stream, uint64_t attempt, uint64_t number,
                          uint32_t credit)
{
    uint8_t payload[LEATI_OPEN_SIZE];
    leati_element_put_i64(payload, (int64_t)attempt);
    leati_element_put_i64(payload + 8, (int64_t)number);
    leati_frame frame = {
        .size = sizeof payload, .kind = LEATI_FRAME_OPEN, .channel = stream, .sequence = credit};
    impostor_say(self, &frame, payload, sizeof payload);
}

static void impostor_credit(impostor *self, uint32_t stream, uint32_t credit, uint8_t delivered)
{
    const uint8_t payload[LEATI_CREDIT_SIZE] = {delivered};
    leati_frame frame = {
        .size = sizeof payload, .kind = LEATI_FRAME_CREDIT, .channel = stream, .sequence = credit};
    impostor_say(self, &frame, payload, sizeof payload);
}

static void impostor_data(impostor *self, uint32_t stream, uint32_t sequence, uint32_t size)
{
    static const uint8_t bytes[FLOW_SEGMENT];
    leati_frame frame = {
        .size = size, .kind = LEATI_FRAME_DATA, .channel = stream, .sequence = sequence};
    impostor_say(self, &frame, bytes, size);
}

static void impostor_event(impostor *self, uint32_t stream, uint32_t sequence, uint8_t tag,
                           uint8_t priority)
{
    uint8_t payload[LEATI_EVENT_SIZE] = {tag, priority};
    leati_frame frame = {
        .size = sizeof payload, .kind = LEATI_FRAME_EVENT, .channel = stream, .sequence = sequence};
    impostor_say(self, &frame, payload, sizeof payload);
}

static void impostor_end(impostor *self)
{
    leati_connection_destroy(&self->connection);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

// --- the honest side: node "two", and a job with a channel between the two ---

typedef struct scene {
    node nodes[2]; // [0] is only a name
    share share;
    flow flow;
    impostor peer;
    uint32_t at;     // in what the peer has heard
    uint32_t stream; // of the channel
} scene;

static void scene_begin(scene *self)
{
    memset(self, 0, sizeof *self);
    snprintf(self->nodes[0].id, sizeof self->nodes[0].id, "one");
    node_open(&self->nodes[1], "two", 10000);
    const char *addresses[2] = {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1"};
    share_open_at(&self->share, self->nodes, 2, 1, ATTEMPT, addresses);
    impostor_dial(&self->peer, &self->nodes[1], "one", FLOW_SEGMENT);
    impostor_await(&self->peer, &self->peer.opened);
}

static void scene_end(scene *self)
{
    flow_cancel(&self->flow);
    flow_join(&self->flow);
    share_close(&self->share);
    impostor_end(&self->peer);
    flow_fini(&self->flow);
    node_close(&self->nodes[1]);
}

// The node receives: the peer knows the stream then.
static void scene_receives(scene *self)
{
    scene_begin(self);
    flow_init(&self->flow, &self->share, &self->share, 4, 1 << 20);
    flow_receive(&self->flow, 0, 8);
    uint32_t open = impostor_hear(&self->peer, &self->at, LEATI_FRAME_OPEN);
    self->stream = self->peer.heard[open].channel;
    cr_assert_eq(self->peer.heard[open].sequence, LEATI_RECEIVE_STEADY);
    cr_assert_eq(leati_element_get_i64(self->peer.payload[open]), ATTEMPT);
    cr_assert_eq(leati_element_get_i64(self->peer.payload[open] + 8), 4);
}

static void scene_sends(scene *self)
{
    scene_begin(self);
    flow_init(&self->flow, &self->share, &self->share, 4, 1 << 20);
    flow_send(&self->flow, 0);
    flow_start_producer(&self->flow);
    self->stream = 9;
}

// The node has heard everything when it has answered this.
static void scene_catch_up(scene *self)
{
    impostor_open(&self->peer, 1, 5, 5, 0);
    leati_frame close = {.kind = LEATI_FRAME_CLOSE, .channel = 1};
    impostor_say(&self->peer, &close, NULL, 0);
    impostor_hear(&self->peer, &self->at, LEATI_FRAME_CLOSED);
}

static void assert_failed(scene *self, leat_err err, const char *text)
{
    share_await_failure(&self->share);
    cr_assert_eq(self->share.err, err, "%s: %s", leat_err_name(self->share.err), self->share.text);
    cr_assert(strstr(self->share.text, text), "%s", self->share.text);
}

// --- who may connect ---

Test(exchange_peer, hellos_that_do_not_fit_are_refused)
{
    static const struct {
        const char *process;
        uint32_t segment_size;
    } hellos[] = {
        {"one", 2 * FLOW_SEGMENT}, // another size of segments
        {"zoo", FLOW_SEGMENT},     // is to wait until it is dialled
        {"two", FLOW_SEGMENT},     // is who it dials
    };
    node honest;
    static impostor peer;
    node_open(&honest, "two", 10000);
    for (size_t i = 0; i < sizeof hellos / sizeof *hellos; i++) {
        impostor_dial(&peer, &honest, hellos[i].process, hellos[i].segment_size);
        impostor_await(&peer, &peer.closed);
        impostor_end(&peer);
    }
    node_close(&honest);
}

// --- frames that make no sense end the connection ---

Test(exchange_peer, frames_that_make_no_sense_end_the_connection)
{
    static const leati_frame frames[] = {
        {.kind = LEATI_FRAME_ALIVE + 1},
        {.kind = 255, .size = 3},
        {.kind = LEATI_FRAME_DATA, .size = 10},                  // no such stream
        {.kind = LEATI_FRAME_DATA, .size = 10, .channel = ~0u},  // the same
        {.kind = LEATI_FRAME_DATA},                              // without data
        {.kind = LEATI_FRAME_DATA, .size = FLOW_SEGMENT + 1},    // too much of it
        {.kind = LEATI_FRAME_DATA, .size = UINT32_MAX},          // the same
        {.kind = LEATI_FRAME_EVENT, .size = LEATI_EVENT_SIZE},   // an event of tag 0
        {.kind = LEATI_FRAME_EVENT, .size = 23},                 // cut off
        {.kind = LEATI_FRAME_CREDIT},                            // without payload
        {.kind = LEATI_FRAME_CREDIT, .size = 8},                 // with too much
        {.kind = LEATI_FRAME_CLOSE, .size = 1},                  // the same
        {.kind = LEATI_FRAME_CLOSED, .channel = 5},              // no such stream
        {.kind = LEATI_FRAME_OPEN},                              // without payload
        {.kind = LEATI_FRAME_OPEN, .size = 17},                  // with too much
        {.kind = LEATI_FRAME_OPEN, .size = 16, .channel = ~0u},  // too large a number
        {.kind = LEATI_FRAME_OPEN, .size = 16, .sequence = ~0u}, // too much credit
    };
    node honest;
    static impostor peer;
    static const uint8_t zeros[64];
    node_open(&honest, "two", 10000);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        impostor_dial(&peer, &honest, "one", FLOW_SEGMENT);
        impostor_await(&peer, &peer.opened);
        impostor_say(&peer, &frames[i], zeros, frames[i].size < 64 ? frames[i].size : 64);
        impostor_await(&peer, &peer.closed);
        impostor_end(&peer);
    }
    node_close(&honest);
}

Test(exchange_peer, a_stream_that_is_open_cannot_be_opened)
{
    static scene s;
    scene_sends(&s);
    impostor_open(&s.peer, 9, ATTEMPT, 4, 1);
    impostor_open(&s.peer, 9, ATTEMPT, 5, 1);
    assert_failed(&s, LEAT_ECORRUPT, "it cannot be opened");
    scene_end(&s);
}

Test(exchange_peer, credit_without_end_is_refused)
{
    for (uint64_t number = 4; number < 6; number++) { // known, and not
        static scene s;
        scene_sends(&s);
        impostor_open(&s.peer, 9, ATTEMPT, number, 0);
        impostor_credit(&s.peer, 9, LEATI_WIRE_MAX_CREDIT + 1, 0);
        assert_failed(&s, LEAT_ECORRUPT, "it is too much credit");
        scene_end(&s);
    }
}

Test(exchange_peer, data_without_credit_ends_the_connection)
{
    static scene s;
    scene_receives(&s);
    // Nobody reads, and the pool has eight segments.
    for (uint32_t i = 0; i < 9; i++)
        impostor_data(&s.peer, s.stream, i, 10);
    assert_failed(&s, LEAT_ECORRUPT, "without credit");
    scene_end(&s);
}

Test(exchange_peer, data_after_the_end_ends_the_connection)
{
    static scene s;
    scene_receives(&s);
    impostor_event(&s.peer, s.stream, 0, LEATI_TAG_END_OF_PARTITION, 0);
    uint32_t close = impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSE);
    cr_assert_eq(s.peer.heard[close].channel, s.stream);
    impostor_data(&s.peer, s.stream, 1, 10);
    impostor_await(&s.peer, &s.peer.closed);
    cr_assert_eq(s.share.failures, 0); // the channel itself is complete
    scene_end(&s);
}

// --- mistakes within a channel are the job's failure ---

Test(exchange_peer, frames_out_of_sequence_fail_the_job)
{
    static scene s;
    scene_receives(&s);
    impostor_data(&s.peer, s.stream, 0, 10);
    impostor_data(&s.peer, s.stream, 2, 10);
    assert_failed(&s, LEAT_ECORRUPT, "taskmanager 0 has sent frames that are not in sequence");
    impostor_data(&s.peer, s.stream, 3, 10); // is thrown away
    share_close(&s.share);
    impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSE);
    cr_assert(!s.peer.closed);
    impostor_end(&s.peer);
    flow_fini(&s.flow);
    node_close(&s.nodes[1]);
}

Test(exchange_peer, more_events_than_there_is_room_for_fail_the_job)
{
    for (uint8_t priority = 0; priority < 2; priority++) {
        static scene s;
        scene_receives(&s);
        for (uint32_t i = 0; i < 30; i++)
            impostor_event(&s.peer, s.stream, i, LEATI_TAG_BARRIER, priority);
        assert_failed(&s, LEAT_ECORRUPT,
                      "taskmanager 0 has sent more events than a channel can hold");
        scene_end(&s);
    }
}

Test(exchange_peer, a_sender_that_closes_or_knows_nothing_fails_the_job)
{
    for (uint16_t reason = 0; reason < 2; reason++) {
        static scene s;
        scene_receives(&s);
        leati_frame closed = {.kind = LEATI_FRAME_CLOSED, .channel = s.stream, .more = reason};
        impostor_say(&s.peer, &closed, NULL, 0);
        assert_failed(&s, LEAT_ECLOSED,
                      reason == LEATI_CLOSED_UNKNOWN ? "knows nothing of a channel"
                                                     : "has closed a channel before its end");
        scene_end(&s);
    }
}

// --- the other half of the protocol ---

Test(exchange_peer, a_sender_keeps_to_its_credit_and_says_closed_once)
{
    static scene s;
    scene_sends(&s);
    impostor_open(&s.peer, 9, ATTEMPT, 4, 3);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t heard = impostor_hear(&s.peer, &s.at, LEATI_FRAME_DATA);
        cr_assert_eq(s.peer.heard[heard].channel, 9);
        cr_assert_eq(s.peer.heard[heard].sequence, i);
    }
    // A channel that nobody knows is waited for; this answers.
    impostor_open(&s.peer, 1, 12345, 4, 3);
    leati_frame close = {.kind = LEATI_FRAME_CLOSE, .channel = 1};
    impostor_say(&s.peer, &close, NULL, 0);
    uint32_t heard = impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSED);
    cr_assert_eq(s.peer.heard[heard].channel, 1);
    cr_assert_eq(heard, 3);                 // no fourth piece of data
    impostor_say(&s.peer, &close, NULL, 0); // has crossed it
    impostor_credit(&s.peer, 9, 1, 3);
    heard = impostor_hear(&s.peer, &s.at, LEATI_FRAME_DATA);
    cr_assert_eq(heard, 4);
    cr_assert_eq(s.peer.heard[heard].sequence, 3);
    close.channel = 9;
    impostor_say(&s.peer, &close, NULL, 0);
    heard = impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSED);
    cr_assert_eq(heard, 5);
    cr_assert_eq(s.peer.heard[heard].channel, 9);
    assert_failed(&s, LEAT_ECLOSED, "taskmanager 0 has closed a channel that is sent to it");
    scene_end(&s);
}

Test(exchange_peer, a_stream_number_is_free_again_when_both_are_done_with_it)
{
    static scene s;
    static flow next;
    scene_receives(&s);
    share_close(&s.share);
    impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSE);
    flow_fini(&s.flow);
    // The peer has not answered, so the next channel gets another number; the one after that, when
    // it has, the old one.
    for (uint32_t i = 1; i < 3; i++) {
        const char *addresses[2] = {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1"};
        share_open_at(&s.share, s.nodes, 2, 1, ATTEMPT + i, addresses);
        flow_init(&next, &s.share, &s.share, 4, 0);
        flow_receive(&next, 0, 8);
        uint32_t open = impostor_hear(&s.peer, &s.at, LEATI_FRAME_OPEN);
        cr_assert_eq(s.peer.heard[open].channel == s.stream, i == 2);
        leati_frame closed = {.kind = LEATI_FRAME_CLOSED, .channel = s.stream};
        if (i == 1) {
            impostor_data(&s.peer, s.stream, 0, 10); // is thrown away
            impostor_say(&s.peer, &closed, NULL, 0);
        }
        // An answer to this says that the node has come to it.
        impostor_open(&s.peer, i, 5, 5, 0);
        leati_frame close = {.kind = LEATI_FRAME_CLOSE, .channel = i};
        impostor_say(&s.peer, &close, NULL, 0);
        impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSED);
        share_close(&s.share);
        flow_fini(&next);
    }
    impostor_end(&s.peer);
    node_close(&s.nodes[1]);
}

// --- what is confirmed ---

// The data and both events at the end are sent; the peer confirms nothing of it.
static void scene_sends_all(scene *self)
{
    scene_begin(self);
    flow_init(&self->flow, &self->share, &self->share, 4, 100);
    flow_send(&self->flow, 0);
    flow_start_producer(&self->flow);
    impostor_open(&self->peer, 9, ATTEMPT, 4, 100);
    uint32_t heard;
    do
        heard = impostor_hear(&self->peer, &self->at, LEATI_FRAME_EVENT);
    while (self->peer.payload[heard][0] != LEATI_TAG_END_OF_PARTITION);
    flow_join(&self->flow);
}

Test(exchange_peer, what_was_sent_and_never_confirmed_fails_the_job)
{
    static scene s;
    scene_sends_all(&s);
    cr_assert_eq(s.share.failures, 0);
    leati_transport *transport = s.nodes[1].transport;
    transport->close(&s.share.link);
    cr_assert_eq(s.share.failures, 1);
    cr_assert_str_eq(s.share.text, "taskmanager 0 has not confirmed within 3000 ms what was sent");
    scene_end(&s);
}

Test(exchange_peer, what_a_connection_loses_at_the_end_of_a_job_is_told)
{
    static scene s;
    scene_sends_all(&s);
    uint32_t frames = s.peer.heard[s.at - 1].sequence + 1;
    impostor_credit(&s.peer, 9, 1, (uint8_t)(frames - 2));
    scene_catch_up(&s);
    leati_connection_close(s.peer.connection, LEAT_ECLOSED, NULL);
    assert_failed(&s, LEAT_ECLOSED, "(2 buffers sent to it are not confirmed)");
    scene_end(&s);
}

Test(exchange_peer, what_is_confirmed_is_done)
{
    static scene s;
    scene_sends_all(&s);
    leati_frame close = {.kind = LEATI_FRAME_CLOSE, .channel = 9};
    impostor_say(&s.peer, &close, NULL, 0);
    uint32_t closed = impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSED);
    cr_assert(s.peer.heard[closed].channel == 9 && s.peer.heard[closed].more == 0);
    leati_connection_close(s.peer.connection, LEAT_ECLOSED, NULL);
    s.nodes[1].transport->close(&s.share.link);
    cr_assert_eq(s.share.failures, 0, "%s", s.share.text);
    scene_end(&s);
}

Test(exchange_peer, confirming_what_was_not_sent_ends_the_connection)
{
    static scene s;
    scene_sends(&s);
    impostor_open(&s.peer, 9, ATTEMPT, 4, 3);
    for (uint32_t i = 0; i < 3; i++)
        impostor_hear(&s.peer, &s.at, LEATI_FRAME_DATA);
    impostor_credit(&s.peer, 9, 0, 4);
    assert_failed(&s, LEAT_ECORRUPT, "it confirms what was not sent");
    scene_end(&s);
}

// --- a connection that is lost before the channel has begun ---

// The peer goes and comes back.
static void scene_reconnects(scene *self)
{
    impostor_end(&self->peer);
    impostor_dial(&self->peer, &self->nodes[1], "one", FLOW_SEGMENT);
    impostor_await(&self->peer, &self->peer.opened);
    self->at = 0;
}

Test(exchange_peer, a_received_channel_that_has_not_begun_is_opened_again)
{
    static scene s;
    scene_receives(&s);
    for (uint32_t i = 0; i < LEATI_END_MOVES; i++) {
        scene_reconnects(&s);
        uint32_t open = impostor_hear(&s.peer, &s.at, LEATI_FRAME_OPEN);
        cr_assert_eq(s.peer.heard[open].sequence, LEATI_RECEIVE_STEADY);
        cr_assert_eq(leati_element_get_i64(s.peer.payload[open] + 8), 4);
        s.stream = s.peer.heard[open].channel;
    }
    cr_assert_eq(s.share.failures, 0, "%s", s.share.text);
    impostor_data(&s.peer, s.stream, 0, 10); // what it was granted on the first wire is good here
    impostor_data(&s.peer, s.stream, 1, 10);
    impostor_event(&s.peer, s.stream, 2, LEATI_TAG_END_OF_PARTITION, 0);
    impostor_hear(&s.peer, &s.at, LEATI_FRAME_CLOSE);
    cr_assert_eq(s.share.failures, 0, "%s", s.share.text);
    scene_end(&s);
}

Test(exchange_peer, a_sent_channel_that_has_not_begun_is_sent_over_the_next_connection)
{
    static scene s;
    scene_begin(&s);
    flow_init(&s.flow, &s.share, &s.share, 4, 1 << 20);
    flow_send(&s.flow, 0);
    impostor_open(&s.peer, 9, ATTEMPT, 4, 3); // and there is nothing to be sent yet
    scene_catch_up(&s);
    scene_reconnects(&s);
    impostor_open(&s.peer, 7, ATTEMPT, 4, 1);
    flow_start_producer(&s.flow);
    uint32_t data = impostor_hear(&s.peer, &s.at, LEATI_FRAME_DATA);
    cr_assert(s.peer.heard[data].channel == 7 && s.peer.heard[data].sequence == 0);
    cr_assert_eq(s.share.failures, 0, "%s", s.share.text);
    scene_end(&s);
}

Test(exchange_peer, a_channel_is_not_opened_for_ever)
{
    static scene s;
    scene_receives(&s);
    for (uint32_t i = 0; i < LEATI_END_MOVES; i++) {
        scene_reconnects(&s);
        impostor_hear(&s.peer, &s.at, LEATI_FRAME_OPEN);
    }
    leati_connection_close(s.peer.connection, LEAT_ECLOSED, NULL);
    assert_failed(&s, LEAT_ECLOSED, "the connection to taskmanager 0 was lost");
    scene_end(&s);
}

Test(exchange_peer, a_channel_that_has_begun_is_not_opened_again)
{
    static scene s;
    scene_receives(&s);
    impostor_data(&s.peer, s.stream, 0, 10);
    scene_catch_up(&s);
    leati_connection_close(s.peer.connection, LEAT_ECLOSED, NULL);
    assert_failed(&s, LEAT_ECLOSED, "the connection to taskmanager 0 was lost");
    scene_end(&s);
}

// --- a peer that stops ---

Test(exchange_peer, close_gives_up_a_peer_that_stops_in_the_middle_of_a_frame)
{
    static scene s;
    scene_receives(&s);
    static const uint8_t bytes[100];
    leati_frame frame = {.size = FLOW_SEGMENT, .kind = LEATI_FRAME_DATA, .channel = s.stream};
    impostor_say(&s.peer, &frame, bytes, sizeof bytes);
    leati_end *end = s.share.link->ends;
    leati_exchange_peer *peer = atomic_load(&end->peer);
    bool reading = false;
    while (!reading) {
        pthread_mutex_lock(&peer->lock);
        reading = end->reading;
        pthread_mutex_unlock(&peer->lock);
        sched_yield();
    }
    share_close(&s.share);
    cr_assert_eq(s.share.failures, 0);
    impostor_await(&s.peer, &s.peer.closed);
    impostor_end(&s.peer);
    flow_fini(&s.flow);
    node_close(&s.nodes[1]);
}

// With so much credit that the system's buffers fill up first.
Test(exchange_peer, close_gives_up_a_peer_that_takes_nothing)
{
    static scene s;
    scene_begin(&s);
    s.peer.deaf = true;
    flow_init(&s.flow, &s.share, &s.share, 4, UINT64_C(1) << 40);
    flow_send(&s.flow, 0);
    flow_start_producer(&s.flow);
    impostor_open(&s.peer, 9, ATTEMPT, 4, LEATI_WIRE_MAX_CREDIT);
    // When the producer has not moved for a while, the writer is stuck in the middle of a send. If
    // it should only be slow, close has less to do than this test is about, and is right all the
    // same.
    uint64_t before;
    do {
        before = atomic_load(&s.flow.put);
        usleep(200000);
    } while (before == 0 || atomic_load(&s.flow.put) != before);
    flow_cancel(&s.flow);
    flow_join(&s.flow);
    share_close(&s.share);
    pthread_mutex_lock(&s.peer.lock);
    s.peer.deaf = false;
    pthread_cond_broadcast(&s.peer.changed);
    pthread_mutex_unlock(&s.peer.lock);
    impostor_end(&s.peer);
    flow_fini(&s.flow);
    node_close(&s.nodes[1]);
}
