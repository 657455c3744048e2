// SPDX-License-Identifier: Apache-2.0
// What a receiver has told to have, and what is lost with a connection.
#include <criterion/criterion.h>

#include "tests/network/nng/impostor.h"

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

Test(exchange_confirm, what_was_sent_and_never_confirmed_fails_the_job)
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

Test(exchange_confirm, what_a_connection_loses_at_the_end_of_a_job_is_told)
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

Test(exchange_confirm, what_is_confirmed_is_done)
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

Test(exchange_confirm, confirming_what_was_not_sent_ends_the_connection)
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

Test(exchange_confirm, a_received_channel_that_has_not_begun_is_opened_again)
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

Test(exchange_confirm, a_sent_channel_that_has_not_begun_is_sent_over_the_next_connection)
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

Test(exchange_confirm, a_channel_is_not_opened_for_ever)
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

Test(exchange_confirm, a_channel_that_has_begun_is_not_opened_again)
{
    static scene s;
    scene_receives(&s);
    impostor_data(&s.peer, s.stream, 0, 10);
    scene_catch_up(&s);
    leati_connection_close(s.peer.connection, LEAT_ECLOSED, NULL);
    assert_failed(&s, LEAT_ECLOSED, "the connection to taskmanager 0 was lost");
    scene_end(&s);
}
