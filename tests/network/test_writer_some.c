// SPDX-License-Identifier: Apache-2.0
// A writer that takes several records at once does what it does for one after the other.
#include "exchange.h"

enum { PIECE = 40, BLOB = 6000 };

static uint8_t bytes[BLOB];

static void fill_bytes(void)
{
    for (int i = 0; i < BLOB; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
}

// Of `records`, of which it has taken `*count` then.
static leat_err put_some(exchange *x, const void *records, uint32_t *count)
{
    leat_some_fn some = leati_writer_some(x->writer);
    cr_assert_not_null(some);
    return some(leati_writer_operator(x->writer), records, count);
}

static leat_err put_pairs(exchange *x, int64_t first, uint32_t *count)
{
    pair pairs[200];
    cr_assert(*count <= 200);
    for (uint32_t i = 0; i < *count; i++)
        pairs[i] = (pair){first + i, -first - i};
    return put_some(x, pairs, count);
}

// --- the same bytes ---

static blob blob_of(uint32_t i)
{
    static const uint32_t sizes[] = {0,    1,    2,   3,   10,   100,  110,  120,  124,  125,
                                     126,  130,  500, 990, 1000, 1010, 1011, 1012, 1013, 1014,
                                     1015, 1016, 0,   0,   4,    2100, 6000, 7,    8};
    return (blob){{bytes, sizes[i % (sizeof sizes / sizeof *sizes)]}};
}

static pair pair_of(uint32_t i)
{
    return (pair){i, INT64_MAX - i};
}

// Reads all that is there from both; the pieces in which it comes are the same, too. Returns how
// many bytes there were.
static uint64_t expect_same(exchange *a, exchange *b, uint32_t channel)
{
    uint64_t sum = 0;
    for (;;) {
        leati_chunk one, other;
        int kind = (int)leati_channel_peek(a->channel[channel], &one);
        cr_assert((int)leati_channel_peek(b->channel[channel], &other) == kind);
        if (kind != LEATI_CHUNK_DATA)
            return sum;
        cr_assert(one.size == other.size && memcmp(one.data, other.data, one.size) == 0);
        sum += one.size;
        leati_channel_advance(a->channel[channel], one.size);
        leati_channel_advance(b->channel[channel], other.size);
    }
}

typedef struct twins {
    exchange a, b; // by several, and one by one
    bool blobs;
    uint32_t put;
    uint64_t bytes; // of the first channel
} twins;

// The next `count` records at most, of which some may be left to the next call.
static void put_both(twins *t, uint32_t count)
{
    pair pairs[PIECE];
    blob blobs[PIECE];
    for (uint32_t i = 0; i < count; i++) {
        pairs[i] = pair_of(t->put + i);
        blobs[i] = blob_of(t->put + i);
    }
    uint32_t taken = count;
    cr_assert(put_some(&t->a, t->blobs ? (void *)blobs : pairs, &taken) == LEAT_OK);
    cr_assert(taken > 0 && (taken == count || (taken < count && t->a.maybe_blocked)));
    for (uint32_t i = 0; i < taken; i++) {
        cr_assert(!t->b.maybe_blocked, "it should have stopped before");
        cr_assert(put(&t->b, t->blobs ? (void *)&blobs[i] : &pairs[i]) == LEAT_OK);
    }
    cr_assert(t->a.maybe_blocked == t->b.maybe_blocked);
    t->put += taken;
}

static void read_both(twins *t)
{
    uint64_t sum = expect_same(&t->a, &t->b, 0);
    for (uint32_t c = 1; c < t->a.options.channels; c++) {
        uint64_t same = expect_same(&t->a, &t->b, c);
        cr_assert(t->a.options.partitioner == LEATI_PARTITION_BROADCAST ? same == sum : same == 0);
    }
    t->bytes += sum;
    t->a.maybe_blocked = t->b.maybe_blocked = false;
}

static void set_time(exchange *x, uint32_t round)
{
    bool present = round % 3 == 2;
    x->time =
        (leati_record_time){.timestamp = present ? 1000 + round : INT64_MIN, .present = present};
}

static void expect_counts(exchange *x, uint64_t records, uint64_t sum)
{
    uint64_t counted, counted_bytes;
    leati_writer_counts(x->writer, &counted, &counted_bytes);
    cr_assert(counted == records && counted_bytes == sum);
}

static void open_twin(exchange *x, leati_partitioner partitioner, uint32_t channels, bool blobs,
                      int64_t timeout)
{
    exchange_init(x, partitioner, channels);
    x->segments = 60;
    x->options.buffer_timeout_ms = timeout;
    if (blobs)
        x->options.type = LEAT_TYPE(blob);
    exchange_open(x);
}

static void compare(leati_partitioner partitioner, uint32_t channels, bool blobs, int64_t timeout)
{
    static twins t;
    t = (twins){.blobs = blobs};
    open_twin(&t.a, partitioner, channels, blobs, timeout);
    open_twin(&t.b, partitioner, channels, blobs, timeout);
    for (uint32_t round = 0; round < 300; round++) {
        set_time(&t.a, round);
        set_time(&t.b, round);
        put_both(&t, 1 + round % PIECE);
        if (t.a.maybe_blocked || round % 50 == 49)
            read_both(&t);
        // Readers that want less of a segment, and all of it again.
        if (round % 100 == 99)
            for (uint32_t c = 0; c < channels; c++) {
                leati_channel_set_limit(t.a.channel[c], round == 99 ? 256 : 0);
                leati_channel_set_limit(t.b.channel[c], round == 99 ? 256 : 0);
            }
    }
    cr_assert(leati_writer_flush(t.a.writer) == leati_writer_flush(t.b.writer));
    read_both(&t);
    cr_assert(put_event(&t.a, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    cr_assert(put_event(&t.b, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    expect_counts(&t.a, t.put, t.bytes);
    expect_counts(&t.b, t.put, t.bytes);
    exchange_close(&t.a);
    exchange_close(&t.b);
}

Test(writer_some, the_bytes_are_those_of_one_record_after_the_other)
{
    static const int64_t timeouts[] = {100, -1};
    fill_bytes();
    for (size_t t = 0; t < 2; t++)
        for (int blobs = 0; blobs < 2; blobs++) {
            compare(LEATI_PARTITION_FORWARD, 1, blobs, timeouts[t]);
            compare(LEATI_PARTITION_GLOBAL, 2, blobs, timeouts[t]);
            compare(LEATI_PARTITION_REBALANCE, 1, blobs, timeouts[t]);
            compare(LEATI_PARTITION_BROADCAST, 3, blobs, timeouts[t]);
        }
}

// --- how many it takes ---

Test(writer_some, it_stops_when_the_task_should_look_for_room)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    x.options.max_segments = 2;
    exchange_open(&x);
    // 1024 bytes take 44 records of 23: two full segments, and the first record of the third.
    uint32_t count = 200;
    cr_assert(put_pairs(&x, 0, &count) == LEAT_OK);
    cr_assert(x.maybe_blocked && count == 2 * 44 + 1);
    // A task that does not look gets what needs no room rid of, and no more.
    count = 200;
    cr_assert(put_pairs(&x, 89, &count) == LEAT_OK && count == 43);
    cr_assert(leati_channel_length(x.channel[0]) == 3 && x.producer.waits == 0);
    for (int64_t i = 0; i < 3 * 44; i++) {
        pair record;
        cr_assert(get_pair(&x, 0, &record) && record.a == i && record.b == -i);
    }
    pair none;
    cr_assert(!get_pair(&x, 0, &none));
    // There is room again; what fits is taken at once.
    x.maybe_blocked = false;
    count = 44;
    cr_assert(put_pairs(&x, 132, &count) == LEAT_OK && count == 44 && !x.maybe_blocked);
    for (int64_t i = 0; i < 44; i++) {
        pair record;
        cr_assert(get_pair(&x, 0, &record) && record.a == 132 + i);
    }
    cr_assert(leati_writer_flush(x.writer));
    expect_counts(&x, 4 * 44, 4 * 44 * 23);
    exchange_close(&x);
}

Test(writer_some, readers_are_not_notified_of_an_open_segment)
{
    static const struct {
        int64_t timeout;
        bool flush;
    } cases[] = {{100, true}, {-1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        exchange x;
        exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
        x.options.buffer_timeout_ms = cases[i].timeout;
        exchange_open(&x);
        uint32_t count = 1;
        cr_assert(put_pairs(&x, 0, &count) == LEAT_OK && count == 1);
        visit(&x, 0);
        wakes_of(&x.consumer[0]);
        count = 30;
        cr_assert(put_pairs(&x, 1, &count) == LEAT_OK && count == 30);
        cr_assert(wakes_of(&x.consumer[0]) == 0);
        cr_assert(leati_writer_flush(x.writer) == cases[i].flush);
        expect_counts(&x, cases[i].timeout < 0 ? 0 : 31, cases[i].timeout < 0 ? 0 : 31 * 23);
        exchange_close(&x);
    }
}

Test(writer_some, it_has_taken_those_before_one_that_is_too_large)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    x.options.type = LEAT_TYPE(blob);
    x.options.max_record_size = 5000;
    exchange_open(&x);
    static const uint32_t sizes[] = {1, 1100, 2, 4997, 3};
    blob blobs[5];
    for (int i = 0; i < 5; i++)
        blobs[i] = (blob){{bytes, sizes[i]}};
    uint32_t count = 5;
    cr_assert(put_some(&x, blobs, &count) == LEAT_ETOOBIG && count == 3);
    cr_assert(last_error == LEAT_ETOOBIG);
    cr_assert(strstr(last_message, "5001") && strstr(last_message, "5000"));
    // The same at once, and then those behind it.
    count = 2;
    cr_assert(put_some(&x, blobs + 3, &count) == LEAT_ETOOBIG && count == 0);
    count = 1;
    cr_assert(put_some(&x, blobs + 4, &count) == LEAT_OK && count == 1);
    // An array's header, and one of two or three bytes before the bytes.
    static const uint32_t elements[] = {1 + 2 + 1, 1 + 3 + 1100, 1 + 2 + 2, 1 + 2 + 3};
    for (int i = 0; i < 4; i++) {
        leati_element element;
        cr_assert(get(&x, 0, &element) == LEATI_READ_ELEMENT && element.size == elements[i]);
    }
    exchange_close(&x);
}

Test(writer_some, it_has_taken_those_before_a_wait_that_was_cancelled)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_FORWARD, 1);
    x.options.type = LEAT_TYPE(blob);
    x.segments = 2;
    exchange_open(&x);
    const blob blobs[] = {{{bytes, 1}}, {{bytes, 2}}, {{bytes, 5000}}, {{bytes, 3}}};
    uint32_t count = 4;
    cr_assert(put_some(&x, blobs, &count) == LEAT_ECANCELLED && count == 2);
    cr_assert(x.producer.waits == 1);
    count = 2;
    cr_assert(put_some(&x, blobs, &count) == LEAT_ECANCELLED && count == 0);
    cr_assert(x.producer.waits == 1);
    exchange_close(&x);
}

// --- which writers can ---

static int key_of(leat_ctx *ctx, const void *in, void *key)
{
    *(pair *)key = *(const pair *)in;
    return 0;
}

static int64_t first_of_all(leat_ctx *ctx, const void *in, uint32_t channels)
{
    return 0;
}

static bool takes_several(leati_partitioner partitioner, uint32_t channels, leat_key_fn fn,
                          int64_t timeout)
{
    const char *why, *at;
    exchange x;
    exchange_init(&x, partitioner, channels);
    leati_key_selector key = {.fn = fn, .key_type = LEAT_TYPE(pair)};
    cr_assert(leat_key_init(&key.fields, LEAT_TYPE(pair), "", &why, &at) == LEAT_OK);
    x.options.key = &key;
    x.options.custom = first_of_all;
    x.options.buffer_timeout_ms = timeout;
    exchange_open(&x);
    bool takes = leati_writer_some(x.writer) != NULL;
    exchange_close(&x);
    return takes;
}

Test(writer_some, only_where_there_is_nothing_to_choose)
{
    static const struct {
        leati_partitioner partitioner;
        bool one, several; // channels
    } cases[] = {
        {LEATI_PARTITION_FORWARD, true, true},   {LEATI_PARTITION_GLOBAL, true, true},
        {LEATI_PARTITION_BROADCAST, true, true}, {LEATI_PARTITION_REBALANCE, true, false},
        {LEATI_PARTITION_RESCALE, true, false},  {LEATI_PARTITION_SHUFFLE, true, false},
        {LEATI_PARTITION_CUSTOM, false, false},  {LEATI_PARTITION_HASH, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(takes_several(cases[i].partitioner, 1, NULL, 100) == cases[i].one, "%zu", i);
        if (cases[i].partitioner != LEATI_PARTITION_FORWARD)
            cr_assert(takes_several(cases[i].partitioner, 3, NULL, 100) == cases[i].several, "%zu",
                      i);
    }
    // A key function may fail.
    cr_assert(!takes_several(LEATI_PARTITION_HASH, 1, key_of, 100));
    // With these readers are told of each record, and never.
    cr_assert(!takes_several(LEATI_PARTITION_FORWARD, 1, NULL, 0));
    cr_assert(takes_several(LEATI_PARTITION_FORWARD, 1, NULL, -1));
}
