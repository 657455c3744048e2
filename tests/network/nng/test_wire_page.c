// SPDX-License-Identifier: Apache-2.0
// Whether docs/wire.md is true: two exchanges talk through a proxy that keeps every byte, and a
// decoder that was written from the page alone has to find in them what was sent, and nothing else.
#include <criterion/criterion.h>
#include <sched.h>

#include "network/nng/exchange_impl.h"
#include "tests/network/nng/decoder.h"
#include "tests/network/nng/recorder.h"
#include "tests/network/nng/talk.h"

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ns = leati_clock_ns() + FLOW_PATIENCE_MS * INT64_C(1000000);                 \
        while (!(condition)) {                                                                     \
            cr_assert(leati_clock_ns() < until_ns, "waited too long for " #condition);             \
            sched_yield();                                                                         \
        }                                                                                          \
    } while (0)

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

static void hear_nothing(void *user, int receiver, const decoder_stream *stream, uint32_t tag,
                         const uint8_t *payload, uint32_t size)
{
    (void)user, (void)receiver, (void)stream, (void)tag, (void)payload, (void)size;
}

static void hear_no_event(void *user, int receiver, const decoder_stream *stream,
                          const decoder_event *event)
{
    (void)user, (void)receiver, (void)stream, (void)event;
}

static void hear_no_end(void *user, int receiver, const decoder_stream *stream, uint32_t reason)
{
    (void)user, (void)receiver, (void)stream, (void)reason;
}

static decoder *decoder_create_silent(void)
{
    return decoder_create(
        &(decoder_sink){.element = hear_nothing, .event = hear_no_event, .closed = hear_no_end});
}

// Whether so many signs of life of both sides have passed, and every stream that was opened has
// been closed, so far.
static bool has_passed(recorder *notes, uint64_t alive)
{
    decoder *page = decoder_create_silent();
    pthread_mutex_lock(&notes->lock);
    for (size_t i = 0; i < notes->note_count; i++)
        decoder_feed(page, notes->notes[i].side, notes->bytes + notes->notes[i].start,
                     notes->notes[i].size);
    pthread_mutex_unlock(&notes->lock);
    bool passed = true;
    for (int i = 0; i < 2; i++) {
        const decoder_side *side = decoder_look(page, i);
        passed &= side->opened == side->closed && side->frames[DECODER_ALIVE] >= alive;
    }
    // What is wrong is told by who decodes it all.
    passed |= decoder_why(page)[0] != 0;
    decoder_destroy(page);
    return passed;
}

// --- two exchanges and what is between them ---

typedef struct pair {
    node nodes[2];
    recorder between;
    const char *addresses[2];
    share shares[2];
} pair;

static leati_auth auth_of(const char *secret)
{
    leati_auth auth = {.secret.size = strlen(secret)};
    memcpy(auth.secret.bytes, secret, auth.secret.size);
    return auth;
}

// A node that knows a secret, as node_open makes one without.
static void node_open_with(node *self, const char *id, int64_t connect_timeout_ms,
                           const leati_auth *auth)
{
    char why[256] = "";
    snprintf(self->id, sizeof self->id, "%s", id);
    cr_assert_eq(leati_global_pool_create(NULL, FLOW_SEGMENT, 2000, &self->global), LEAT_OK);
    leati_exchange_options options = {
        .address = "tcp://127.0.0.1:0",
        .process = self->id,
        .segment_size = FLOW_SEGMENT,
        .connect_timeout_ms = connect_timeout_ms,
        .auth = auth,
    };
    leat_err err = leati_exchange_create(&options, &self->transport, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
}

static void pair_open(pair *self, int64_t connect_timeout_ms, const leati_auth auths[2])
{
    node_open_with(&self->nodes[0], "one", connect_timeout_ms, auths ? &auths[0] : NULL);
    node_open_with(&self->nodes[1], "two", connect_timeout_ms, auths ? &auths[1] : NULL);
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

// When all links are closed. The last word about a stream may come a little later than that.
static void pair_close(pair *self)
{
    AWAIT(has_passed(&self->between, 0));
    node_close(&self->nodes[0]);
    node_close(&self->nodes[1]);
    recorder_finish(&self->between);
}

// Talks in both directions, which the ears expect.
static void talk_begin(pair *both, talk *talks, uint32_t count, uint64_t attempt, hearing *ears)
{
    uint32_t place = 0;
    while (ears->talks[place])
        place++;
    ears->attempts[place] = attempt;
    ears->talks[place] = talks;
    ears->talk_counts[place] = count;
    pair_open_shares(both, attempt);
    for (uint32_t i = 0; i < count; i++)
        talk_open(&talks[i], &both->shares[i % 2], &both->shares[1 - i % 2], 1 - i % 2);
    // Readers may wish for less of a segment.
    leati_channel_set_limit(talks[0].flows[0].in, FLOW_SEGMENT / 4);
    for (uint32_t i = 0; i < count; i++)
        talk_start(&talks[i]);
}

static void talk_in(pair *both, talk *talks, uint32_t count, uint64_t attempt, hearing *ears)
{
    talk_begin(both, talks, count, attempt, ears);
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
    pair_open(&both, 10000, NULL);
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
    AWAIT(has_passed(&both.between, 2));
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
    cr_assert(decoder_look(page, 1)->limits > 0 && decoder_look(page, 0)->limits == 0);
    // The broadcasts have two channels each.
    cr_assert_eq(decoder_look(page, 1)->opened, 3 + 3);
    cr_assert_eq(decoder_look(page, 0)->opened, 4 + 2);
    cr_assert(ears.closed[0] == 12 && ears.closed[1] == 0);
    decoder_destroy(page);
    recorder_close(&both.between);
}

// Who stops before the end: the sender, whose last word comes too early, or the receiver, who says
// CLOSE. And the page's reason 1.
Test(wire_page, streams_that_end_too_early_are_closed_as_the_page_says)
{
    for (uint32_t gone = 0; gone < 2; gone++) {
        static talk one;
        static flow unknown;
        pair both;
        hearing ears = {{0}};
        one = (talk){.seed = 7, .items = 1000000, .number = 3, .readers = 2};
        pair_open(&both, 200, NULL);
        talk_begin(&both, &one, 1, 5, &ears);
        AWAIT(atomic_load(&one.flows[1].got) > 100000);
        talk_cancel(&one);
        talk_join(&one);
        share_close(&both.shares[gone]);
        share_await_failure(&both.shares[1 - gone]);
        share_close(&both.shares[1 - gone]);
        talk_close(&one);
        pair_open_shares(&both, 6);
        flow_init(&unknown, &both.shares[1], &both.shares[0], 9, 0);
        flow_receive(&unknown, 1, 8);
        share_await_failure(&both.shares[0]);
        pair_close_shares(&both);
        flow_fini(&unknown);
        pair_close(&both);

        decoder *page = decode(&ears, &both.between);
        cr_assert_eq(decoder_look(page, 0)->frames[DECODER_OPEN], 1);
        cr_assert_eq(decoder_look(page, 1)->frames[DECODER_OPEN], 2);
        cr_assert(ears.closed[0] == 2 && ears.closed[1] == 1);
        if (gone == 1)
            cr_assert_eq(decoder_look(page, 1)->frames[DECODER_CLOSE], 2);
        decoder_destroy(page);
        recorder_close(&both.between);
    }
}

static void check_code(const leati_auth *auth, const char *role, const decoder *page, int side)
{
    const decoder_side *one = decoder_look(page, DECODER_DIALLER);
    const decoder_side *two = decoder_look(page, DECODER_LISTENER);
    const leati_bytes parts[] = {{"Leat hand-shake 1", 18},
                                 {role, strlen(role)},
                                 {one->said, one->said_size},
                                 {two->said, two->said_size}};
    uint8_t code[LEATI_MAC_SIZE];
    cr_assert(leati_secret_mac(&auth->secret, parts, 4, code));
    cr_assert(decoder_look(page, side)->has_code);
    cr_assert(memcmp(code, decoder_look(page, side)->code, sizeof code) == 0);
}

Test(wire_page, the_codes_of_a_secret_are_those_of_the_page)
{
    static talk talks[2];
    pair both;
    hearing ears = {{0}};
    leati_auth auths[2] = {auth_of("what nobody else knows"), auth_of("what nobody else knows")};
    pair_open(&both, 10000, auths);
    for (uint32_t i = 0; i < 2; i++) {
        leati_exchange_set_cluster(both.nodes[i].transport, "blue");
        talks[i] = (talk){.seed = i, .items = 100, .number = i, .readers = 1};
    }
    talk_in(&both, talks, 2, 1, &ears);
    pair_close(&both);
    decoder *page = decode(&ears, &both.between);
    cr_assert_str_eq(decoder_look(page, 0)->hello.cluster, "blue");
    cr_assert_eq(decoder_look(page, 0)->frames[DECODER_HELLO], 3);
    cr_assert_eq(decoder_look(page, 1)->frames[DECODER_HELLO], 3);
    check_code(&auths[0], "dialer", page, DECODER_DIALLER);
    check_code(&auths[1], "listener", page, DECODER_LISTENER);
    decoder_destroy(page);
    recorder_close(&both.between);
}

Test(wire_page, a_wrong_secret_is_answered_as_the_page_says)
{
    static flow alone;
    pair both;
    hearing ears = {{0}};
    leati_auth auths[2] = {auth_of("what nobody else knows"), auth_of("what somebody knows")};
    pair_open(&both, 300, auths);
    pair_open_shares(&both, 1);
    flow_init(&alone, &both.shares[1], &both.shares[0], 9, 0);
    flow_receive(&alone, 1, 8);
    share_await_failure(&both.shares[0]);
    pair_close_shares(&both);
    flow_fini(&alone);
    pair_close(&both);
    decoder *page = decode(&ears, &both.between);
    cr_assert_eq(decoder_look(page, 0)->frames[DECODER_HELLO], 3);
    cr_assert_eq(decoder_look(page, 1)->frames[DECODER_HELLO], 3);
    check_code(&auths[0], "dialer", page, DECODER_DIALLER);
    cr_assert(decoder_look(page, 1)->refuses && !decoder_look(page, 1)->has_code);
    decoder_destroy(page);
    recorder_close(&both.between);
}

// --- the decoder is not blind ---

enum { FRAMES_MOST = 5000 };

// One that was recorded, in the order in which they were complete.
typedef struct said_frame {
    int side;
    size_t size;
    uint8_t *bytes;
} said_frame;

static uint32_t frames_of(const recorder *notes, said_frame frames[FRAMES_MOST])
{
    uint32_t count = 0;
    uint8_t *waiting[2] = {malloc(notes->size), malloc(notes->size)};
    size_t sizes[2] = {0}, done[2] = {0};
    for (size_t i = 0; i < notes->note_count; i++) {
        const recorder_note *note = &notes->notes[i];
        int side = note->side;
        memcpy(waiting[side] + sizes[side], notes->bytes + note->start, note->size);
        sizes[side] += note->size;
        while (sizes[side] - done[side] >= DECODER_HEADER) {
            const uint8_t *at = waiting[side] + done[side];
            size_t size = DECODER_HEADER + at[0] + at[1] * 256u;
            if (sizes[side] - done[side] < size)
                break;
            cr_assert(count < FRAMES_MOST);
            frames[count] = (said_frame){.side = side, .size = size, .bytes = malloc(size)};
            memcpy(frames[count++].bytes, at, size);
            done[side] += size;
        }
    }
    free(waiting[0]);
    free(waiting[1]);
    return count;
}

// Something that is changed in what was said: in the first frame of a kind, or in all.
typedef struct change {
    uint32_t kind, at;
    uint8_t flip;     // of the byte there
    bool gone, twice; // instead: the frame is
    bool all;
    const char *why; // a part of it
} change;

static void check_change(const said_frame *frames, uint32_t count, const change *what)
{
    decoder *page = decoder_create(
        &(decoder_sink){.element = hear_nothing, .event = hear_no_event, .closed = hear_no_end});
    bool good = true, changed = false;
    for (uint32_t i = 0; i < count && good; i++) {
        const said_frame *now = &frames[i];
        bool here = now->bytes[4] == what->kind && (what->all || !changed);
        changed |= here;
        if (here && what->gone)
            continue;
        now->bytes[what->at] ^= here ? what->flip : 0;
        for (int times = here && what->twice ? 2 : 1; times > 0 && good; times--)
            good = decoder_feed(page, now->side, now->bytes, now->size);
        now->bytes[what->at] ^= here ? what->flip : 0;
    }
    good = good && decoder_end(page);
    cr_assert(changed);
    cr_assert_eq(good, what->why == NULL, "kind %u at %u: %s", what->kind, what->at,
                 decoder_why(page));
    cr_assert(!what->why || strstr(decoder_why(page), what->why), "%s instead of %s",
              decoder_why(page), what->why);
    decoder_destroy(page);
}

Test(wire_page, decoder_finds_what_is_not_as_the_page_says)
{
    static const change changes[] = {
        {.kind = DECODER_DATA}, // none
        {.kind = DECODER_HELLO, .at = 16, .flip = 1, .why = "start"},
        {.kind = DECODER_HELLO, .at = 24, .flip = 1, .why = "do not fit"},
        {.kind = DECODER_HELLO, .at = 28, .flip = 1, .why = "do not fit"},
        {.kind = DECODER_HELLO, .at = 32, .flip = 1, .why = "start or term"},
        {.kind = DECODER_HELLO, .at = 40, .flip = 1, .why = "a hello for"},
        {.kind = DECODER_HELLO, .at = 56, .flip = 1, .why = "do not fit"},
        {.kind = DECODER_HELLO, .at = 216, .flip = 0x18, .why = "has dialled"},
        {.kind = DECODER_HELLO, .at = 343, .flip = 1, .why = "something behind it"},
        {.kind = DECODER_HELLO, .gone = true, .why = "greet"},
        {.kind = DECODER_OPEN, .at = 5, .flip = 1, .why = "frame of kind 1"},
        {.kind = DECODER_OPEN, .at = 10, .flip = 4, .why = "frame of kind 1"},
        {.kind = DECODER_OPEN, .at = 31, .flip = 1, .why = "zeros"},
        {.kind = DECODER_OPEN, .gone = true, .why = "never opened"},
        {.kind = DECODER_OPEN, .twice = true, .why = "opened twice"},
        {.kind = DECODER_DATA, .at = 4, .flip = 8, .why = "frame of kind 10"},
        {.kind = DECODER_DATA, .at = 12, .flip = 1, .why = "instead of"},
        {.kind = DECODER_DATA, .at = 16, .flip = 7, .why = "element with tag"},
        {.kind = DECODER_DATA, .gone = true, .why = "instead of"},
        {.kind = DECODER_DATA, .twice = true, .why = "instead of"},
        {.kind = DECODER_EVENT, .at = 16, .flip = 15, .why = "no event"},
        {.kind = DECODER_EVENT, .at = 17, .flip = 2, .why = "no event"},
        {.kind = DECODER_EVENT, .at = 6, .flip = 1, .why = "frame of kind 3"},
        {.kind = DECODER_EVENT, .gone = true, .why = "instead of"},
        {.kind = DECODER_CREDIT, .at = 0, .flip = 1, .why = "frame of kind"},
        {.kind = DECODER_CREDIT, .at = 14, .flip = 32, .why = "too much credit"},
        {.kind = DECODER_CREDIT, .at = 18, .flip = 1, .why = "not sent"},
        {.kind = DECODER_CREDIT, .gone = true, .all = true, .why = "without credit"},
        {.kind = DECODER_CLOSED, .at = 6, .flip = 2, .why = "for reason 2"},
        {.kind = DECODER_CLOSED, .gone = true, .why = "never closed"},
        {.kind = DECODER_CLOSED, .twice = true, .why = "CLOSED again"},
    };
    static talk one;
    static said_frame frames[FRAMES_MOST];
    pair both;
    hearing ears = {{0}};
    one = (talk){.seed = 3, .items = 1500, .urgent = 2, .number = 3, .readers = 1};
    pair_open(&both, 10000, NULL);
    talk_in(&both, &one, 1, 5, &ears);
    pair_close(&both);
    uint32_t count = frames_of(&both.between, frames);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        check_change(frames, count, &changes[i]);
    // A byte that is missing at the end.
    frames[count - 1].size--;
    check_change(frames, count, &(change){.kind = DECODER_OPEN, .why = "no frame"});
    for (uint32_t i = 0; i < count; i++)
        free(frames[i].bytes);
    recorder_close(&both.between);
}
