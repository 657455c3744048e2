// SPDX-License-Identifier: Apache-2.0
// What a peer can do wrong.
#include <criterion/criterion.h>
#include <sched.h>
#include <unistd.h>

#include "tests/network/nng/impostor.h"

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
