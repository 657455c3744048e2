// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

static void fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 13 + size);
}

// Checks that the next element of channel 0 is a blob of that size; returns its payload.
static const uint8_t *expect(exchange *x, size_t size)
{
    leati_element element;
    cr_assert(get(x, 0, &element) == LEATI_READ_ELEMENT);
    const uint8_t *bytes = element.payload;
    size_t left = element.size;
    if (element.tag == LEATI_TAG_RECORD_AT) {
        cr_assert(leati_element_get_i64(bytes) == (int64_t)size);
        bytes += 8;
        left -= 8;
    }
    blob record;
    cr_assert(leat_record_decode(LEAT_TYPE(blob), bytes, left, &record, NULL) == LEAT_OK);
    cr_assert(record.bytes.size == size);
    for (size_t i = 0; i < size; i++)
        cr_assert(record.bytes.data[i] == (uint8_t)(i * 13 + size));
    return element.payload;
}

// A filler brings the second record to every position in the segment; that has every size from none
// to several segments. With and without timestamps, alone and shared.
Test(spanning, every_size_arrives_from_every_position)
{
    enum { SEGMENT = 64 };
    for (int variant = 0; variant < 4; variant++) {
        exchange x;
        bool shared = variant & 1;
        exchange_init(&x, shared ? LEATI_PARTITION_BROADCAST : LEATI_PARTITION_GLOBAL, 2);
        x.options.type = LEAT_TYPE(blob);
        x.segment_size = SEGMENT;
        x.segments = 14;
        exchange_open(&x);
        x.time.present = variant & 2;
        uint8_t bytes[4 * SEGMENT];
        for (size_t filler = 0; filler < SEGMENT; filler++) {
            for (size_t size = 0; size < 4 * SEGMENT; size += 1 + size / 70) {
                size_t sizes[] = {filler, size, 3};
                for (int i = 0; i < 3; i++) {
                    x.time.timestamp = (int64_t)sizes[i];
                    fill(bytes, sizes[i]);
                    cr_assert(put_blob(&x, bytes, sizes[i]) == LEAT_OK);
                }
                for (int i = 0; i < 3; i++)
                    expect(&x, sizes[i]);
                cr_assert(put_event(&x, LEATI_TAG_BARRIER, 0) == LEAT_OK);
                leati_element element;
                cr_assert(get(&x, 0, &element) == LEATI_READ_EVENT);
                leati_read read;
                do
                    read = get(&x, 1, &element);
                while (read == LEATI_READ_ELEMENT);
                cr_assert(read == LEATI_READ_EVENT);
                cr_assert(used_of(x.pool) == 0);
            }
        }
        exchange_close(&x);
    }
}

// 1024 bytes: records of up to 128 bytes are decoded in place.
Test(spanning, small_records_are_never_cut)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_GLOBAL, 1);
    x.options.type = LEAT_TYPE(blob);
    exchange_open(&x);
    uint8_t bytes[125]; // and a header of one and one of two bytes
    for (size_t n = 0; n < 2000; n++) {
        size_t size = n * 31 % (sizeof bytes + 1);
        fill(bytes, size);
        cr_assert(put_blob(&x, bytes, size) == LEAT_OK);
        const uint8_t *payload = expect(&x, size);
        cr_assert(payload != x.reader[0].partial && !x.reader[0].partial);
    }
    exchange_close(&x);
}

// A segment with less than five bytes left cannot take another element.
Test(spanning, a_full_segment_goes_out_by_itself)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_GLOBAL, 1);
    x.options.type = LEAT_TYPE(blob);
    x.options.buffer_timeout_ms = -1;
    exchange_open(&x);
    uint8_t bytes[1024];
    for (size_t left = 0; left < 8; left++) {
        // Element, array and bin16 header take 4 + 1 + 3 bytes.
        cr_assert(put_blob(&x, bytes, 1024 - 8 - left) == LEAT_OK);
        cr_assert(visit(&x, 0) == (left < 5));
        cr_assert(put_event(&x, LEATI_TAG_BARRIER, 0) == LEAT_OK);
        cr_assert(visit(&x, 0));
    }
    exchange_close(&x);
}

static bool read_some(void *arg)
{
    return visit(arg, 0);
}

// Each full segment is handed over at once, so a record needs no more segments than the pool has.
Test(spanning, a_record_larger_than_the_pool_passes)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_GLOBAL, 1);
    x.options.type = LEAT_TYPE(blob);
    x.options.buffer_timeout_ms = -1;
    x.segments = 2;
    exchange_open(&x);
    x.producer.meanwhile = read_some;
    x.producer.arg = &x;
    uint8_t *bytes = malloc(90000);
    fill(bytes, 90000);
    cr_assert(put_blob(&x, bytes, 90000) == LEAT_OK);
    cr_assert(x.producer.waits > 0);
    expect(&x, 90000);
    free(bytes);
    exchange_close(&x);
}

// The same when it is the ring that has no room.
Test(spanning, a_full_ring_is_waited_for)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_GLOBAL, 1);
    x.options.type = LEAT_TYPE(blob);
    x.options.max_segments = 1;
    x.segment_size = 64;
    x.segments = 100;
    exchange_open(&x);
    x.producer.meanwhile = read_some;
    x.producer.arg = &x;
    uint8_t bytes[4000];
    fill(bytes, sizeof bytes);
    cr_assert(put_blob(&x, bytes, sizeof bytes) == LEAT_OK);
    cr_assert(x.producer.waits > 0);
    expect(&x, sizeof bytes);
    // Events fill the slots that segments leave free, and then wait too.
    for (int i = 0; i < 40; i++)
        cr_assert(put_event(&x, LEATI_TAG_BARRIER, 0) == LEAT_OK);
    exchange_close(&x);
}
