// SPDX-License-Identifier: Apache-2.0
// Whether docs/wire.md is true: two exchanges talk through a proxy that keeps every byte, and a
// decoder that was written from the page alone has to find in them what was sent, and nothing else.
#include <criterion/criterion.h>
#include <sched.h>

#include "leat/record.h"
#include "network/nng/exchange_impl.h"
#include "network/writer.h"
#include "tests/network/nng/decoder.h"
#include "tests/network/nng/flow.h"
#include "tests/network/nng/recorder.h"

typedef struct blob {
    leat_bytes bytes;
} blob;
LEAT_RECORD(blob, LEAT_FIELD(bytes, LEAT_BYTES));

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ns = leati_clock_ns() + FLOW_PATIENCE_MS * INT64_C(1000000);                 \
        while (!(condition)) {                                                                     \
            cr_assert(leati_clock_ns() < until_ns, "waited too long for " #condition);             \
            sched_yield();                                                                         \
        }                                                                                          \
    } while (0)

// --- what is said: a sequence of items, each of which follows from its number ---

enum { ITEM_MOST = 12000, READERS_MOST = 2 };

typedef struct item {
    enum { ITEM_RECORD, ITEM_RECORD_AT, ITEM_WATERMARK, ITEM_EVENT } what;
    int64_t time;  // of the record, the watermark, the event
    uint32_t size; // of the record's bytes
    leati_event event;
} item;

static uint64_t mixed(uint64_t seed, uint64_t number)
{
    uint64_t z = (seed << 32 | number) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// The last two are the end of the data and of the partition.
static item item_of(uint64_t seed, uint32_t number, uint32_t count)
{
    uint64_t random = mixed(seed, number);
    uint32_t dice = (uint32_t)(random % 100), size = (uint32_t)(random >> 32);
    item self = {.time = (int64_t)mixed(seed + 1000, number)};
    if (number + 2 >= count) {
        self.what = ITEM_EVENT;
        self.event.tag = number + 2 == count ? LEATI_TAG_END_OF_DATA : LEATI_TAG_END_OF_PARTITION;
        self.event.options = number + 2 == count;
    } else if (dice < 80) {
        self.what = dice < 20 ? ITEM_RECORD_AT : ITEM_RECORD;
        self.size = dice == 79 ? size % ITEM_MOST : dice > 70 ? size % 700 : size % 80;
    } else if (dice < 94) {
        self.what = ITEM_WATERMARK;
    } else {
        self.what = ITEM_EVENT;
        self.event = (leati_event){.tag = dice == 94 ? LEATI_TAG_CANCEL_BARRIER : LEATI_TAG_BARRIER,
                                   .options = (uint16_t)size,
                                   .checkpoint = random,
                                   .timestamp = self.time};
    }
    return self;
}

static void item_fill(uint64_t seed, uint32_t number, uint32_t size, uint8_t *bytes)
{
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(mixed(seed, number) >> (i % 8 * 8)) ^ (uint8_t)(i >> 3);
}

// The payload of the item's element, by docs/design/wire.md and records.md.
static uint32_t item_payload(uint64_t seed, uint32_t number, const item *of, uint8_t *to)
{
    uint32_t at = 0;
    if (of->what != ITEM_RECORD)
        for (; at < 8; at++)
            to[at] = (uint8_t)((uint64_t)of->time >> 8 * at);
    if (of->what == ITEM_WATERMARK)
        return at;
    to[at++] = 0x91; // a struct of one field, which is bytes
    to[at++] = of->size < 256 ? 0xc4 : 0xc5;
    if (of->size >= 256)
        to[at++] = (uint8_t)(of->size >> 8);
    to[at++] = (uint8_t)of->size;
    item_fill(seed, number, of->size, to + at);
    return at + of->size;
}

// --- who says it, and who listens ---

// A writer with a channel to each reader, all from one share to another.
typedef struct talk {
    uint64_t seed;
    uint32_t items, urgent, readers;
    uint32_t number; // of the first channel
    flow flows[READERS_MOST];
    leati_channel *out[READERS_MOST];
    leati_local_pool *pool;
    leati_writer *writer;
    leati_record_time time;
    bool maybe_blocked;
    flow_task task; // the producer
    // As heard on the wire, by the decoder.
    uint32_t heard[READERS_MOST], heard_urgent[READERS_MOST];
    uint64_t bytes[READERS_MOST];
} talk;

static leat_err talk_failed(leat_ctx *ctx, leat_err err, const char *format, ...)
{
    (void)ctx;
    fprintf(stderr, "%s\n", format);
    abort();
    return err;
}

static leat_err talk_wait(leati_waiter *waiter, bool (*ready)(void *arg), void *arg)
{
    while (!ready(arg))
        flow_sleep((flow_task *)waiter);
    return LEAT_OK;
}

static void talk_open(talk *self, share *from, share *to, uint32_t to_index)
{
    flow_task_init(&self->task, self->seed);
    self->task.waiter.wait = talk_wait;
    self->time.timestamp = INT64_MIN;
    self->pool = flow_pool(from->of, 4, 8, &self->task.waiter);
    for (uint32_t i = 0; i < self->readers; i++) {
        flow_init(&self->flows[i], from, to, self->number + i, 0);
        flow_receive(&self->flows[i], 1 - to_index, 8);
        cr_assert_eq(leati_channel_create(NULL, self->pool, 10, 0, &self->out[i]), LEAT_OK);
        cr_assert_eq(
            from->of->transport->send(from->link, self->number + i, to_index, self->out[i]),
            LEAT_OK);
    }
    leati_writer_options options = {
        .type = LEAT_TYPE(blob),
        .partitioner = self->readers > 1 ? LEATI_PARTITION_BROADCAST : LEATI_PARTITION_FORWARD,
        .channels = self->readers,
        .consumers = self->readers,
        .max_parallelism = 128,
        .buffer_timeout_ms = 100,
        .max_segments = 10,
        .max_record_size = 100000,
        .pool = self->pool,
        .waiter = &self->task.waiter,
        .time = &self->time,
        .maybe_blocked = &self->maybe_blocked,
        .failed = talk_failed,
    };
    cr_assert_eq(leati_writer_create(&options, self->out, &self->writer), LEAT_OK);
}

static void talk_put(talk *self, uint32_t number)
{
    uint8_t bytes[ITEM_MOST];
    leat_operator *op = leati_writer_operator(self->writer);
    item now = item_of(self->seed, number, self->items);
    if (now.what == ITEM_EVENT) {
        FLOW_CHECK(leati_writer_broadcast_event(self->writer, &now.event) == LEAT_OK);
        return;
    }
    if (now.what == ITEM_WATERMARK) {
        FLOW_CHECK(op->ops->watermark(op, now.time, NULL) == LEAT_OK);
        return;
    }
    item_fill(self->seed, number, now.size, bytes);
    self->time = (leati_record_time){.timestamp = now.what == ITEM_RECORD_AT ? now.time : INT64_MIN,
                                     .present = now.what == ITEM_RECORD_AT};
    FLOW_CHECK(op->ops->element(op, &(blob){{bytes, now.size}}, NULL) == LEAT_OK);
}

static void *talk_produce(void *arg)
{
    talk *self = arg;
    uint32_t urgent = 0;
    for (uint32_t i = 0; i < self->items; i++) {
        uint32_t dice = flow_random(&self->task, 1000);
        if (urgent < self->urgent && (dice < 20 || i + 2 == self->items)) {
            leati_event event = {
                .tag = LEATI_TAG_ANNOUNCEMENT, .priority = 1, .checkpoint = ++urgent};
            FLOW_CHECK(leati_writer_broadcast_event(self->writer, &event) == LEAT_OK);
        }
        talk_put(self, i);
        if (dice > 980)
            leati_writer_flush(self->writer);
    }
    return NULL;
}

// Takes everything, as far as the end of the partition; what it was does not matter here.
static void *talk_consume(void *arg)
{
    flow *self = arg;
    leati_chunk chunk;
    bool ended = false;
    while (!ended && !atomic_load(&self->cancelled)) {
        leati_channel *channel = leati_gate_poll(self->gate);
        leati_chunk_kind kind = LEATI_CHUNK_NONE;
        while (channel && !ended && (kind = leati_channel_peek(channel, &chunk))) {
            if (kind == LEATI_CHUNK_EVENT)
                ended = chunk.event.tag == LEATI_TAG_END_OF_PARTITION;
            else
                leati_channel_advance(channel, chunk.size);
        }
        if (channel)
            leati_gate_done(self->gate, channel, kind != LEATI_CHUNK_NONE);
        if (!ended && !leati_gate_has_data(self->gate))
            flow_sleep(&self->consumer);
    }
    return NULL;
}

static void talk_start(talk *self)
{
    FLOW_CHECK(pthread_create(&self->task.thread, NULL, talk_produce, self) == 0);
    for (uint32_t i = 0; i < self->readers; i++)
        FLOW_CHECK(pthread_create(&self->flows[i].consumer.thread, NULL, talk_consume,
                                  &self->flows[i]) == 0);
}

static void talk_join(talk *self)
{
    pthread_join(self->task.thread, NULL);
    for (uint32_t i = 0; i < self->readers; i++)
        pthread_join(self->flows[i].consumer.thread, NULL);
}

// After the links were closed.
static void talk_close(talk *self)
{
    leati_writer_destroy(&self->writer);
    leati_local_pool_close(self->pool);
    for (uint32_t i = 0; i < self->readers; i++) {
        leati_channel_destroy(&self->out[i]);
        flow_fini(&self->flows[i]);
    }
    leati_local_pool_destroy(&self->pool);
    flow_task_fini(&self->task);
}

// --- what the decoder finds ---

enum { TALKS = 5, ATTEMPTS_MOST = 4 };

typedef struct hearing {
    uint64_t attempts[ATTEMPTS_MOST]; // of `talks`, one after the other
    talk *talks[ATTEMPTS_MOST];
    uint32_t talk_counts[ATTEMPTS_MOST];
    uint32_t closed[2]; // for each reason
} hearing;

// The talk that has the channel, and which of its readers.
static talk *talk_of(hearing *self, const decoder_stream *stream, uint32_t *reader)
{
    for (uint32_t i = 0; i < ATTEMPTS_MOST; i++) {
        for (uint32_t j = 0; self->attempts[i] == stream->attempt && j < self->talk_counts[i];
             j++) {
            talk *candidate = &self->talks[i][j];
            *reader = stream->number - candidate->number;
            if (stream->number >= candidate->number && *reader < candidate->readers)
                return candidate;
        }
    }
    cr_assert(false, "attempt %llu has no channel %u", (unsigned long long)stream->attempt,
              stream->number);
    abort();
}

static void hear_element(void *user, int receiver, const decoder_stream *stream, uint32_t tag,
                         const uint8_t *payload, uint32_t size)
{
    static const uint32_t tags[] = {
        [ITEM_RECORD] = 0, [ITEM_RECORD_AT] = 1, [ITEM_WATERMARK] = 2, [ITEM_EVENT] = 99};
    uint8_t wanted[ITEM_MOST + 20];
    uint32_t reader;
    talk *of = talk_of(user, stream, &reader);
    uint32_t number = of->heard[reader]++;
    item next = item_of(of->seed, number, of->items);
    (void)receiver;
    cr_assert_eq(tag, tags[next.what], "item %u of channel %u has tag %u", number, stream->number,
                 tag);
    cr_assert_eq(size, item_payload(of->seed, number, &next, wanted));
    cr_assert(memcmp(payload, wanted, size) == 0, "item %u of channel %u", number, stream->number);
    of->bytes[reader] += 4 + size;
}

static void hear_event(void *user, int receiver, const decoder_stream *stream,
                       const decoder_event *event)
{
    uint32_t reader;
    talk *of = talk_of(user, stream, &reader);
    (void)receiver;
    if (event->priority) {
        cr_assert(event->tag == 12 && event->options == 0 && event->timestamp == 0);
        cr_assert_eq(event->checkpoint, ++of->heard_urgent[reader]);
        return;
    }
    uint32_t number = of->heard[reader]++;
    item next = item_of(of->seed, number, of->items);
    cr_assert(next.what == ITEM_EVENT, "item %u of channel %u", number, stream->number);
    cr_assert(event->tag == next.event.tag && event->options == next.event.options);
    cr_assert(event->checkpoint == next.event.checkpoint &&
              event->timestamp == next.event.timestamp);
}

static void hear_closed(void *user, int receiver, const decoder_stream *stream, uint32_t reason)
{
    hearing *self = user;
    (void)receiver;
    self->closed[reason]++;
    if (reason == 0 && stream->ended) {
        uint32_t reader;
        talk *of = talk_of(self, stream, &reader);
        cr_assert_eq(of->heard[reader], of->items);
        cr_assert_eq(of->heard_urgent[reader], of->urgent);
        cr_assert_eq(of->bytes[reader], stream->bytes);
    }
}

static decoder *decode(hearing *self, const recorder *notes)
{
    decoder *page = decoder_create(&(decoder_sink){
        .user = self, .element = hear_element, .event = hear_event, .closed = hear_closed});
    uint64_t bytes[2] = {0};
    for (size_t i = 0; i < notes->note_count; i++) {
        const recorder_note *note = &notes->notes[i];
        bytes[note->side] += note->size;
        cr_assert(decoder_feed(page, note->side, notes->bytes + note->start, note->size), "%s",
                  decoder_why(page));
    }
    cr_assert(decoder_end(page), "%s", decoder_why(page));
    for (int i = 0; i < 2; i++)
        cr_assert_eq(decoder_look(page, i)->bytes, bytes[i]);
    return page;
}

// --- two exchanges and what is between them ---

typedef struct pair {
    node nodes[2];
    recorder between;
    const char *addresses[2];
    share shares[2];
} pair;

static void pair_open(pair *self, int64_t connect_timeout_ms)
{
    node_open(&self->nodes[0], "one", connect_timeout_ms);
    node_open(&self->nodes[1], "two", connect_timeout_ms);
    recorder_open(&self->between, leati_exchange_address(self->nodes[1].transport));
    self->addresses[0] = leati_exchange_address(self->nodes[0].transport);
    self->addresses[1] = self->between.address;
}

static void pair_open_shares(pair *self, uint64_t attempt)
{
    for (uint32_t i = 0; i < 2; i++)
        share_open_at(&self->shares[i], self->nodes, 2, i, attempt, self->addresses);
}

static void pair_close_shares(pair *self)
{
    for (uint32_t i = 0; i < 2; i++)
        share_close(&self->shares[i]);
}

static void pair_close(pair *self)
{
    node_close(&self->nodes[0]);
    node_close(&self->nodes[1]);
    recorder_finish(&self->between);
}

static leati_exchange_counts counts_of(const node *self)
{
    leati_exchange_counts counts;
    leati_exchange_count(self->transport, &counts);
    return counts;
}

static void talk_in(pair *both, talk *talks, uint32_t count, uint64_t attempt, hearing *ears)
{
    for (uint32_t i = 0; i < ATTEMPTS_MOST; i++) {
        if (ears->talks[i])
            continue;
        ears->attempts[i] = attempt;
        ears->talks[i] = talks;
        ears->talk_counts[i] = count;
        break;
    }
    pair_open_shares(both, attempt);
    for (uint32_t i = 0; i < count; i++)
        talk_open(&talks[i], &both->shares[i % 2], &both->shares[1 - i % 2], 1 - i % 2);
    for (uint32_t i = 0; i < count; i++)
        talk_start(&talks[i]);
    for (uint32_t i = 0; i < count; i++)
        talk_join(&talks[i]);
    pair_close_shares(both);
    for (uint32_t i = 0; i < count; i++)
        talk_close(&talks[i]);
}

// Two jobs, one after the other, so that numbers of streams are used again.
Test(wire_page, every_byte_is_what_the_page_says)
{
    static talk first[TALKS], second[TALKS];
    pair both;
    hearing ears = {{0}};
    pair_open(&both, 10000);
    for (uint32_t i = 0; i < TALKS; i++) {
        first[i] = (talk){.seed = i + 1,
                          .items = 500 + i * 400,
                          .urgent = i,
                          .number = 10 * i,
                          .readers = 1 + i % 2};
        second[i] = (talk){.seed = i + 50, .items = 300, .number = 7 * i + 1, .readers = 1};
    }
    talk_in(&both, first, TALKS, UINT64_C(0x123456789abcdef0), &ears);
    talk_in(&both, second, TALKS, 2, &ears);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_eq(both.shares[i].failures, 0);
    // Then only signs of life are sent.
    for (uint32_t i = 0; i < 2; i++)
        leati_exchange_set_silence(both.nodes[i].transport, 10, 20000);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t before = counts_of(&both.nodes[i]).frames_in;
        AWAIT(counts_of(&both.nodes[i]).frames_in > before + 1);
    }
    pair_close(&both);

    decoder *page = decode(&ears, &both.between);
    const char *const names[2] = {"one", "two"};
    for (int i = 0; i < 2; i++) {
        const decoder_side *side = decoder_look(page, i);
        cr_assert_str_eq(side->hello.process, names[i]);
        cr_assert_str_eq(side->hello.version, leat_version());
        cr_assert_str_eq(side->hello.cluster, "");
        cr_assert(side->hello.abi == LEAT_ABI && side->hello.segment_size == FLOW_SEGMENT);
        cr_assert(side->frames[DECODER_DATA] > 0 && side->frames[DECODER_EVENT] > 0);
        cr_assert(side->frames[DECODER_ALIVE] > 1 && side->frames[DECODER_CREDIT] > 0);
        cr_assert_eq(side->frames[DECODER_HELLO], 1);
    }
    // The broadcasts have two channels each.
    cr_assert_eq(decoder_look(page, 1)->opened, 3 + 3);
    cr_assert_eq(decoder_look(page, 0)->opened, 4 + 2);
    cr_assert(ears.closed[0] == 12 && ears.closed[1] == 0);
    decoder_destroy(page);
    recorder_close(&both.between);
}
