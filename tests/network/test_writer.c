// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

Test(writer, records_and_watermarks_have_the_wire_form)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    exchange_open(&x);
    cr_assert(put(&x, &(pair){1, -2}) == LEAT_OK);
    x.time = (leati_record_time){.timestamp = 0x0102, .present = true};
    cr_assert(put(&x, &(pair){3, 4}) == LEAT_OK);
    cr_assert(put_watermark(&x, -1) == LEAT_OK);
    static const uint8_t expected[] = {// 19 bytes of record: an array of two 64-bit integers.
                                       0x30, 1, 0, 0, 0x92, 0xd3, 0, 0, 0, 0, 0, 0, 0, 1, 0xd3,
                                       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
                                       // The same with a timestamp: 27 bytes.
                                       0xb1, 1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0x92, 0xd3, 0, 0, 0,
                                       0, 0, 0, 0, 3, 0xd3, 0, 0, 0, 0, 0, 0, 0, 4,
                                       // A watermark.
                                       0x82, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff};
    leati_chunk chunk;
    cr_assert(leati_channel_peek(x.channel[0], &chunk) == LEATI_CHUNK_DATA);
    cr_assert(chunk.size == sizeof expected);
    cr_assert(memcmp(chunk.data, expected, sizeof expected) == 0);
    exchange_close(&x);
}

Test(writer, readers_are_notified_by_flush_tick_and_full_segments_as_the_timeout_says)
{
    static const struct {
        int64_t timeout;
        bool each, flush, tick;
    } cases[] = {{100, false, true, true}, {0, true, false, false}, {-1, false, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        exchange x;
        exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
        x.options.buffer_timeout_ms = cases[i].timeout;
        exchange_open(&x);
        cr_assert(!leati_writer_flush(x.writer));
        cr_assert(put_pair(&x, 1) == LEAT_OK);
        cr_assert(visit(&x, 0) == cases[i].each);
        cr_assert(put_pair(&x, 2) == LEAT_OK);
        cr_assert(visit(&x, 0) == cases[i].each);
        leati_writer_tick(x.writer);
        cr_assert(visit(&x, 0) == cases[i].tick);
        cr_assert(leati_writer_flush(x.writer) ==
                  cases[i].flush); // the tick leaves that to the task
        cr_assert(visit(&x, 0) == cases[i].flush);
        cr_assert(!leati_writer_flush(x.writer));
        leati_writer_tick(x.writer);
        cr_assert(!visit(&x, 0));
        // 1024 bytes take 44 records of 23.
        wakes_of(&x.consumer[0]);
        for (int64_t k = 3; k <= 44; k++)
            cr_assert(put_pair(&x, k) == LEAT_OK);
        cr_assert(wakes_of(&x.consumer[0]) == (cases[i].each ? 1 : 0));
        cr_assert(put_pair(&x, 45) == LEAT_OK);
        cr_assert(visit(&x, 0));
        exchange_close(&x);
    }
}

Test(writer, an_event_finishes_segments_and_a_priority_event_does_not)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 2);
    x.options.buffer_timeout_ms = -1;
    exchange_open(&x);
    for (int64_t i = 0; i < 4; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    cr_assert(put_event(&x, LEATI_TAG_BARRIER, 1) == LEAT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        leati_element element;
        cr_assert(wakes_of(&x.consumer[i]) >= 1);
        cr_assert(get(&x, i, &element) == LEATI_READ_EVENT && element.event.priority);
    }
    cr_assert(used_of(x.pool) == 2);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_PARTITION, 0) == LEAT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        pair record;
        leati_element element;
        cr_assert(get_pair(&x, i, &record) && get_pair(&x, i, &record));
        cr_assert(get(&x, i, &element) == LEATI_READ_EVENT);
        cr_assert(element.tag == LEATI_TAG_END_OF_PARTITION);
    }
    cr_assert(used_of(x.pool) == 0);
    uint64_t records, bytes;
    leati_writer_counts(x.writer, &records, &bytes);
    cr_assert(records == 4 && bytes == 4 * 23);
    exchange_close(&x);
}

Test(writer, watermarks_go_to_every_channel)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 3);
    exchange_open(&x);
    cr_assert(put_watermark(&x, 42) == LEAT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        leati_element element;
        cr_assert(get(&x, i, &element) == LEATI_READ_ELEMENT);
        cr_assert(element.tag == LEATI_TAG_WATERMARK);
        cr_assert(leati_element_get_i64(element.payload) == 42);
    }
    exchange_close(&x);
}

Test(writer, a_record_above_the_limit_is_refused_and_changes_nothing)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    x.options.type = LEAT_TYPE(blob);
    x.options.max_record_size = 5000;
    exchange_open(&x);
    static const uint8_t bytes[5000];
    // Array header, bin16 header of three bytes.
    cr_assert(put_blob(&x, bytes, 4996) == LEAT_OK);
    cr_assert(put_blob(&x, bytes, 4997) == LEAT_ETOOBIG);
    cr_assert(last_error == LEAT_ETOOBIG);
    cr_assert(strstr(last_message, "5001") && strstr(last_message, "5000"));
    cr_assert(put_blob(&x, bytes, 1) == LEAT_OK);
    leati_element element;
    cr_assert(get(&x, 0, &element) == LEATI_READ_ELEMENT && element.size == 5000);
    cr_assert(get(&x, 0, &element) == LEATI_READ_ELEMENT && element.size == 4);
    cr_assert(get(&x, 0, &element) == LEATI_READ_NONE);
    exchange_close(&x);
}

Test(writer, a_cancelled_wait_ends_the_writer)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    x.options.type = LEAT_TYPE(blob);
    x.segments = 2;
    exchange_open(&x);
    static const uint8_t bytes[5000];
    cr_assert(put_blob(&x, bytes, sizeof bytes) == LEAT_ECANCELLED);
    cr_assert(x.producer.waits == 1);
    cr_assert(put_blob(&x, bytes, sizeof bytes) == LEAT_ECANCELLED);
    cr_assert(put_blob(&x, bytes, 1) == LEAT_ECANCELLED);
    cr_assert(put_watermark(&x, 1) == LEAT_ECANCELLED);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_ECANCELLED);
    cr_assert(x.producer.waits == 1);
    exchange_close(&x);
}

Test(writer, output_is_available_while_a_segment_is_idle_and_no_channel_is_at_its_bound)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_GLOBAL, 2);
    x.options.max_segments = 2;
    exchange_open(&x);
    int64_t count = 0;
    while (!x.maybe_blocked)
        cr_assert(put_pair(&x, count++) == LEAT_OK);
    // Two finished ones and the one just opened.
    cr_assert(leati_channel_length(x.channel[0]) == 3 && count == 2 * 44 + 1);
    cr_assert(!leati_writer_available(x.writer));
    leati_writer_await(x.writer);
    cr_assert(!leati_writer_available(x.writer) && wakes_of(&x.producer) == 0);
    leati_channel *polled = leati_gate_poll(x.gate[0]);
    for (int64_t i = 0; i < 45; i++) {
        pair record;
        cr_assert(get_pair(&x, 0, &record) && record.a == i && record.b == -i);
    }
    cr_assert(polled && wakes_of(&x.producer) == 1 && leati_writer_available(x.writer));
    exchange_close(&x);

    exchange_init(&x, LEATI_PARTITION_GLOBAL, 1);
    x.segments = 2;
    exchange_open(&x);
    cr_assert(put_pair(&x, 0) == LEAT_OK && !x.maybe_blocked && leati_writer_available(x.writer));
    for (int64_t i = 1; i < 45; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    cr_assert(x.maybe_blocked && !leati_writer_available(x.writer));
    cr_assert(visit(&x, 0) && leati_writer_available(x.writer));
    exchange_close(&x);
}

// With timeout -1 nobody is told of an open segment, so it must not be what blocks its own writer.
Test(writer, an_open_segment_does_not_count_against_the_bound)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_GLOBAL, 1);
    x.options.max_segments = 1;
    x.options.buffer_timeout_ms = -1;
    exchange_open(&x);
    cr_assert(put_pair(&x, 0) == LEAT_OK);
    cr_assert(leati_writer_available(x.writer));
    exchange_close(&x);
}

Test(writer, a_broadcast_record_is_encoded_once_into_a_shared_segment)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_BROADCAST, 3);
    exchange_open(&x);
    for (int64_t i = 0; i < 3; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    cr_assert(put_watermark(&x, 5) == LEAT_OK);
    cr_assert(used_of(x.pool) == 1);
    cr_assert(leati_writer_flush(x.writer));
    const uint8_t *data = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(wakes_of(&x.consumer[i]) == 1);
        leati_chunk chunk;
        cr_assert(leati_channel_peek(x.channel[i], &chunk) == LEATI_CHUNK_DATA);
        cr_assert(chunk.size == 3 * 23 + 12);
        cr_assert(!data || data == chunk.data);
        data = chunk.data;
    }
    uint64_t records, bytes;
    leati_writer_counts(x.writer, &records, &bytes);
    cr_assert(records == 3 && bytes == 3 * 23 + 12);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(used_of(x.pool) == 1);
        leati_writer_await(x.writer);
        cr_assert(visit(&x, i));
        cr_assert(wakes_of(&x.producer) == 1);
    }
    cr_assert(used_of(x.pool) == 0);
    exchange_close(&x);
}

static int fail_key(leat_ctx *ctx, const void *in, void *key)
{
    const pair *record = in;
    *(pair *)key = (pair){record->a % 10, 0};
    return record->a < 0 ? -1 : 0;
}

typedef struct maybe {
    const int64_t *value;
} maybe;
LEAT_RECORD(maybe, LEAT_FIELD_OPTIONAL(value, LEAT_SCALAR(LEAT_I64)));

Test(writer, null_keys_and_failing_key_functions_are_refused)
{
    const char *why, *at;
    for (uint32_t channels = 1; channels <= 2; channels++) {
        exchange x;
        exchange_init(&x, LEATI_PARTITION_HASH, channels);
        leati_key_selector key = {.fn = fail_key, .key_type = LEAT_TYPE(pair)};
        cr_assert(leat_key_init(&key.fields, LEAT_TYPE(pair), "", &why, &at) == LEAT_OK);
        x.options.key = &key;
        exchange_open(&x);
        cr_assert(put_pair(&x, 1) == LEAT_OK);
        cr_assert(put_pair(&x, -1) == LEAT_EUSER && last_error == LEAT_EUSER);
        exchange_close(&x);

        exchange_init(&x, LEATI_PARTITION_HASH, channels);
        key = (leati_key_selector){.text = "value"};
        cr_assert(leat_key_init(&key.fields, LEAT_TYPE(maybe), "value", &why, &at) == LEAT_OK);
        x.options.key = &key;
        x.options.type = LEAT_TYPE(maybe);
        exchange_open(&x);
        cr_assert(put(&x, &(maybe){&(int64_t){7}}) == LEAT_OK);
        cr_assert(put(&x, &(maybe){NULL}) == LEAT_EINVAL);
        cr_assert(strstr(last_message, "null") && strstr(last_message, "value"));
        cr_assert(put(&x, &(maybe){&(int64_t){8}}) == LEAT_OK);
        exchange_close(&x);
    }
}

Test(writer, what_does_not_fit_together_is_refused)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    exchange_open(&x);
    leati_writer *writer = NULL;
    leati_writer_options bad = x.options;
    bad.partitioner = LEATI_PARTITION_CUSTOM;
    cr_assert(leati_writer_create(&bad, x.channel, &writer) == LEAT_EINVAL);
    bad.partitioner = LEATI_PARTITION_DEFAULT;
    cr_assert(leati_writer_create(&bad, x.channel, &writer) == LEAT_EINVAL);
    bad.partitioner = LEATI_PARTITION_HASH; // without a key
    cr_assert(leati_writer_create(&bad, x.channel, &writer) == LEAT_EINVAL);
    bad = x.options;
    bad.channels = 0;
    cr_assert(leati_writer_create(&bad, x.channel, &writer) == LEAT_EINVAL);
    bad = x.options;
    bad.max_record_size = LEATI_ELEMENT_MAX_PAYLOAD;
    cr_assert(leati_writer_create(&bad, x.channel, &writer) == LEAT_EINVAL);
    cr_assert(!writer);
    exchange_close(&x);
}

Test(writer, any_failing_allocation_is_reported_and_leaks_nothing)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_HASH, 2);
    const char *why, *at;
    leati_key_selector key = {.fn = fail_key, .key_type = LEAT_TYPE(pair)};
    cr_assert(leat_key_init(&key.fields, LEAT_TYPE(pair), "", &why, &at) == LEAT_OK);
    x.options.key = &key;
    exchange_open(&x);
    bool done = false;
    for (size_t n = 0; !done; n++) {
        meter memory;
        meter_init(&memory, n);
        leati_writer_options options = x.options;
        options.allocator = &memory.hook;
        leati_writer *writer = NULL;
        leat_err err = leati_writer_create(&options, x.channel, &writer);
        done = err == LEAT_OK;
        cr_assert(done || (err == LEAT_ENOMEM && !writer));
        leati_writer_destroy(&writer);
        cr_assert(memory.blocks == 0);
    }
    exchange_close(&x);
}

// --- what a reader wishes ---

// The bytes of the segments that stand in a channel, one after the other; 0: no more.
static uint32_t next_segment(exchange *x, uint32_t channel)
{
    leati_chunk chunk;
    if (leati_channel_peek(x->channel[channel], &chunk) != LEATI_CHUNK_DATA)
        return 0;
    leati_channel_advance(x->channel[channel], chunk.size);
    return chunk.size;
}

Test(writer, new_segments_are_used_as_far_as_the_reader_wishes)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    exchange_open(&x);
    cr_assert(put_pair(&x, 0) == LEAT_OK);
    leati_channel_set_limit(x.channel[0], 256);
    // 44 records of 23 bytes fill the segment that was open, 11 the next.
    for (int64_t i = 1; i < 44 + 11 + 1; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    leati_channel_set_limit(x.channel[0], 0);
    for (int64_t i = 0; i < 10 + 44; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    cr_assert_eq(next_segment(&x, 0), 44 * 23);
    cr_assert_eq(next_segment(&x, 0), 11 * 23);
    cr_assert_eq(next_segment(&x, 0), 11 * 23); // which was open when it wished for all again
    cr_assert_eq(next_segment(&x, 0), 44 * 23);
    cr_assert_eq(next_segment(&x, 0), 0);
    exchange_close(&x);
}

Test(writer, a_record_that_is_larger_than_the_reader_wishes_gets_the_room_it_needs)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    x.options.type = LEAT_TYPE(blob);
    x.segment_size = 8192;
    exchange_open(&x);
    leati_channel_set_limit(x.channel[0], 256);
    static const uint8_t bytes[40000];
    // Array header, bin header of three bytes: up to an eighth of a segment it is not cut.
    cr_assert(put_blob(&x, bytes, 1000) == LEAT_OK);
    cr_assert_eq(next_segment(&x, 0), LEATI_ELEMENT_HEADER + 4 + 1000);
    cr_assert(put_blob(&x, bytes, 1) == LEAT_OK);
    cr_assert_eq(next_segment(&x, 0), LEATI_ELEMENT_HEADER + 3 + 1);
    // What does not fit its segment goes on in whole ones.
    cr_assert(put_blob(&x, bytes, 40000) == LEAT_OK);
    uint32_t first = next_segment(&x, 0), all = first, piece;
    cr_assert(first <= 256);
    for (uint32_t left = 40000 - first; (piece = next_segment(&x, 0)) > 0; left -= piece) {
        all += piece;
        cr_assert(piece == 8192 || left < 8192);
    }
    cr_assert_eq(all, LEATI_ELEMENT_HEADER + 4 + 40000);
    exchange_close(&x);
}

Test(writer, of_several_readers_the_one_that_wants_least_decides)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_BROADCAST, 3);
    exchange_open(&x);
    leati_channel_set_limit(x.channel[0], 512);
    leati_channel_set_limit(x.channel[2], 256);
    for (int64_t i = 0; i < 12; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    for (uint32_t c = 0; c < 3; c++)
        cr_assert_eq(next_segment(&x, c), 11 * 23);
    exchange_close(&x);
}
