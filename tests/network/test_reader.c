// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "fixture.h"
#include "network/reader.h"

enum { SEGMENT = 64, LIMIT = 4 << 20 };

typedef struct setup {
    leati_global_pool *global;
    leati_local_pool *pool;
    fake_task producer, consumer;
    leati_channel *channel;
    leati_gate *gate;
    meter memory;
    leati_reader reader;
} setup;

static void set_up(setup *s, size_t segment_size)
{
    s->producer = fake_task_make();
    s->consumer = fake_task_make();
    s->global = make_global(segment_size, 64);
    s->pool = make_local(s->global, &s->producer, 64, 64, 0);
    cr_assert(leati_channel_create(NULL, s->pool, 40, 0, &s->channel) == LEAT_OK);
    cr_assert(leati_gate_create(NULL, &s->consumer.waiter, 1, &s->gate) == LEAT_OK);
    leati_gate_attach(s->gate, 0, s->channel);
    meter_init(&s->memory, SIZE_MAX);
    leati_reader_init(&s->reader, &s->memory.hook, s->channel, LIMIT);
}

static void tear_down(setup *s)
{
    leati_reader_fini(&s->reader);
    cr_assert(s->memory.blocks == 0);
    leati_channel_destroy(&s->channel);
    leati_gate_destroy(&s->gate);
    end_local(&s->pool);
    leati_global_pool_destroy(&s->global);
}

static leati_segment *add(setup *s, const void *bytes, uint32_t size, bool finished)
{
    leati_segment *segment = leati_local_pool_request(s->pool, false);
    cr_assert(segment && size <= segment->size);
    memcpy(segment->data, bytes, size);
    atomic_store(&segment->committed, size | (finished ? LEATI_SEGMENT_FINISHED : 0));
    leati_channel_add_segment(s->channel, segment);
    return segment;
}

static leati_read next(setup *s, leati_element *element)
{
    return leati_reader_next(&s->reader, element);
}

Test(reader, elements_are_found_in_place)
{
    setup s;
    set_up(&s, SEGMENT);
    // A record of 3 bytes, an empty one, a watermark of -2, a status.
    static const uint8_t bytes[] = {0x30, 0,    0,    0,    'a', 'b',  'c',  0x00, 0,    0,
                                    0,    0x82, 0,    0,    0,   0xfe, 0xff, 0xff, 0xff, 0xff,
                                    0xff, 0xff, 0xff, 0x13, 0,   0,    0,    1};
    leati_segment *segment = add(&s, bytes, sizeof bytes, false);
    leati_element element;
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(element.tag == LEATI_TAG_RECORD && element.size == 3);
    cr_assert(element.payload == segment->data + 4);
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(element.tag == LEATI_TAG_RECORD && element.size == 0);
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(element.tag == LEATI_TAG_WATERMARK && element.size == 8);
    cr_assert(leati_element_get_i64(element.payload) == -2);
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(element.tag == LEATI_TAG_STATUS && element.size == 1 && element.payload[0] == 1);
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    cr_assert(s.reader.bytes == sizeof bytes);
    tear_down(&s);
}

// What the definition of the wire form says, byte by byte: a filler element, then one with
// `payload` bytes, cut at the ends of segments.
static void write_naively(setup *s, uint32_t filler, uint32_t payload)
{
    uint8_t segment[SEGMENT];
    uint32_t at = 0;
    for (int element = 0; element < 2; element++) {
        uint32_t size = element == 0 ? filler : payload;
        if (at + 4 > SEGMENT) {
            add(s, segment, at, true);
            at = 0;
        }
        uint32_t header = size << 4;
        for (int i = 0; i < 4; i++)
            segment[at++] = (uint8_t)(header >> (8 * i));
        for (uint32_t i = 0; i < size; i++) {
            if (at == SEGMENT) {
                add(s, segment, at, true);
                at = 0;
            }
            segment[at++] = (uint8_t)(i * 7 + size);
        }
    }
    add(s, segment, at, true);
}

Test(reader, payloads_are_put_together_wherever_they_are_cut)
{
    setup s;
    set_up(&s, SEGMENT);
    for (uint32_t filler = 0; filler <= SEGMENT; filler++) {
        for (uint32_t payload = 0; payload <= 4 * SEGMENT; payload++) {
            write_naively(&s, filler, payload);
            leati_element element;
            for (int i = 0; i < 2; i++) {
                uint32_t size = i == 0 ? filler : payload;
                cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
                cr_assert(element.tag == LEATI_TAG_RECORD && element.size == size);
                for (uint32_t k = 0; k < size; k++)
                    cr_assert(element.payload[k] == (uint8_t)(k * 7 + size));
            }
            cr_assert(next(&s, &element) == LEATI_READ_NONE);
            cr_assert(used_of(s.pool) == 0);
        }
    }
    tear_down(&s);
}

// A header for 100 bytes and the first of them.
static const uint8_t half[] = {0x40, 6, 0, 0, 'x', 'y'};

Test(reader, a_partial_payload_does_not_hold_its_segments)
{
    setup s;
    set_up(&s, SEGMENT);
    add(&s, half, sizeof half, true);
    leati_element element;
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    cr_assert(used_of(s.pool) == 0);
    tear_down(&s);
}

Test(reader, an_event_inside_a_payload_is_corruption_unless_it_overtook)
{
    setup s;
    set_up(&s, SEGMENT);
    add(&s, half, sizeof half, true);
    leati_element element;
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    leati_event urgent = {.tag = LEATI_TAG_BARRIER, .priority = 1, .checkpoint = 7};
    leati_channel_add_event(s.channel, &urgent);
    cr_assert(next(&s, &element) == LEATI_READ_EVENT && element.event.checkpoint == 7);
    leati_event end = {.tag = LEATI_TAG_END_OF_PARTITION};
    leati_channel_add_event(s.channel, &end);
    cr_assert(next(&s, &element) == LEATI_READ_CORRUPT);
    tear_down(&s);
}

Test(reader, events_come_between_elements)
{
    setup s;
    set_up(&s, SEGMENT);
    static const uint8_t record[] = {0x10, 0, 0, 0, 'a'};
    add(&s, record, sizeof record, true);
    leati_event event = {.tag = LEATI_TAG_END_OF_DATA, .options = 1};
    leati_channel_add_event(s.channel, &event);
    add(&s, record, sizeof record, true);
    leati_element element;
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(next(&s, &element) == LEATI_READ_EVENT);
    cr_assert(element.tag == LEATI_TAG_END_OF_DATA && element.event.options == 1);
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    tear_down(&s);
}

Test(reader, a_cut_header_is_corruption)
{
    static const uint8_t bytes[] = {0x00, 0, 0, 0, 0x10, 0, 0};
    for (uint32_t size = 5; size <= 7; size++) {
        setup s;
        set_up(&s, SEGMENT);
        add(&s, bytes, size, true);
        leati_element element;
        cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
        cr_assert(next(&s, &element) == LEATI_READ_CORRUPT);
        tear_down(&s);
    }
}

Test(reader, an_incomplete_element_in_an_open_segment_is_waited_for)
{
    setup s;
    set_up(&s, SEGMENT);
    static const uint8_t bytes[] = {0x40, 0, 0, 0, 'a', 'b', 'c', 'd'};
    leati_segment *segment = add(&s, bytes, sizeof bytes, false);
    atomic_store(&segment->committed, 6);
    leati_element element;
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    atomic_store(&segment->committed, 8);
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT && element.size == 4);
    cr_assert(element.payload == segment->data + 4);
    tear_down(&s);
}

Test(reader, memory_follows_what_has_come_not_what_a_header_says)
{
    setup s;
    set_up(&s, SEGMENT);
    uint8_t bytes[SEGMENT] = {0};
    leati_element_put_header(bytes, LEATI_TAG_RECORD, LIMIT);
    add(&s, bytes, SEGMENT, true);
    leati_element element;
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    cr_assert(s.memory.largest <= 4096);
    tear_down(&s);

    set_up(&s, SEGMENT);
    leati_element_put_header(bytes, LEATI_TAG_RECORD, LIMIT + 1);
    add(&s, bytes, SEGMENT, true);
    cr_assert(next(&s, &element) == LEATI_READ_TOO_BIG);
    cr_assert(s.memory.largest == 0);
    tear_down(&s);

    set_up(&s, SEGMENT);
    s.memory.left = 0;
    add(&s, half, sizeof half, true);
    cr_assert(next(&s, &element) == LEATI_READ_NO_MEMORY);
    tear_down(&s);
}

Test(reader, a_large_gathering_buffer_is_freed_after_use)
{
    enum { LARGE = 1 << 18, PIECES = 5 };
    setup s;
    set_up(&s, LARGE);
    uint8_t *bytes = calloc(1, LARGE);
    leati_element_put_header(bytes, LEATI_TAG_RECORD, PIECES * LARGE - 4);
    leati_element element;
    for (int i = 0; i < PIECES; i++) {
        bytes[LARGE - 1] = (uint8_t)i;
        cr_assert(next(&s, &element) == LEATI_READ_NONE);
        add(&s, bytes, LARGE, true);
    }
    cr_assert(next(&s, &element) == LEATI_READ_ELEMENT);
    cr_assert(element.size == PIECES * LARGE - 4);
    for (int i = 0; i < PIECES; i++)
        cr_assert(element.payload[(i + 1) * LARGE - 5] == i);
    cr_assert(s.memory.blocks == 1);
    cr_assert(next(&s, &element) == LEATI_READ_NONE);
    cr_assert(s.memory.blocks == 0);
    free(bytes);
    tear_down(&s);
}
