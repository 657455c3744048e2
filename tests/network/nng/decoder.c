// SPDX-License-Identifier: Apache-2.0
#include "decoder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Numbers of the pages.
enum {
    STREAMS_MOST = 1 << 18,
    CREDIT_MOST = 1 << 20,
    OPEN_SIZE = 16,
    EVENT_SIZE = 24,
    CREDIT_SIZE = 4,
    ELEMENT_HEADER = 4
};

enum {
    TAG_RECORD = 0,
    TAG_RECORD_AT = 1,
    TAG_WATERMARK = 2,
    TAG_STATUS = 3,
    TAG_LATENCY = 4,
    TAG_BARRIER = 8,
    TAG_END_OF_DATA = 10,
    TAG_END_OF_PARTITION = 11,
    TAG_ANNOUNCEMENT = 12
};

typedef struct frame {
    uint32_t size;
    uint8_t kind, flags;
    uint16_t more;
    uint32_t stream, sequence;
} frame;

// A side, the bytes of it that are no frame yet, and the streams that have its numbers.
typedef struct speaker {
    decoder_side seen;
    enum { AT_HELLO, AT_NONCE, AT_CODE, AT_FRAMES, AT_END } stage;
    uint8_t *bytes;
    size_t size, room;
    decoder_stream *streams;
    uint32_t stream_count;
} speaker;

struct decoder {
    decoder_sink sink;
    speaker sides[DECODER_SIDES];
    bool broken;
    char why[300];
};

static uint64_t little(const uint8_t *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | from[i];
    return value;
}

static bool wrong(decoder *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(decoder *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self->why, sizeof self->why, format, args);
    va_end(args);
    self->broken = true;
    return false;
}

static void *grown(void *memory, size_t size)
{
    void *larger = realloc(memory, size);
    if (!larger)
        abort();
    return larger;
}

decoder *decoder_create(const decoder_sink *sink)
{
    decoder *self = calloc(1, sizeof *self);
    if (!self)
        abort();
    self->sink = *sink;
    return self;
}

void decoder_destroy(decoder *self)
{
    for (int i = 0; i < DECODER_SIDES; i++) {
        for (uint32_t j = 0; j < self->sides[i].stream_count; j++)
            free(self->sides[i].streams[j].payload);
        free(self->sides[i].streams);
        free(self->sides[i].bytes);
    }
    free(self);
}

const char *decoder_why(const decoder *self)
{
    return self->why;
}

const decoder_side *decoder_look(const decoder *self, int side)
{
    return &self->sides[side].seen;
}

// --- greetings ---

// A text with zeros behind it, of which there is at least one.
static bool take_text(char *to, const uint8_t *from, size_t size)
{
    size_t length = 0;
    while (length < size && from[length])
        length++;
    for (size_t i = length; i < size; i++)
        if (from[i])
            return false;
    memcpy(to, from, length);
    to[length] = 0;
    return length < size;
}

static bool take_hello(decoder *self, speaker *from, const frame *head, const uint8_t *payload)
{
    decoder_hello *hello = &from->seen.hello;
    char purpose[17];
    if (head->size != DECODER_GREETING)
        return wrong(self, "a hello of %u bytes", head->size);
    hello->secret = head->flags == 1;
    hello->abi = (uint32_t)little(payload + 8, 4);
    hello->segment_size = (uint32_t)little(payload + 12, 4);
    if (memcmp(payload, "Leatnet\1", 8) != 0 || little(payload + 16, 8) != 0)
        return wrong(self, "a hello with another start or term");
    if (!take_text(purpose, payload + 24, 16) || !take_text(hello->version, payload + 40, 32) ||
        !take_text(hello->cluster, payload + 72, 128) ||
        !take_text(hello->process, payload + 200, 128))
        return wrong(self, "a text of a hello has something behind it");
    if (strcmp(purpose, "data") != 0)
        return wrong(self, "a hello for %s", purpose);
    from->stage = hello->secret ? AT_NONCE : AT_FRAMES;
    return true;
}

// Whether the two hellos fit each other, once both are there.
static bool hellos_fit(decoder *self)
{
    const decoder_hello *one = &self->sides[DECODER_DIALLER].seen.hello;
    const decoder_hello *two = &self->sides[DECODER_LISTENER].seen.hello;
    if (one->abi != two->abi || one->segment_size != two->segment_size ||
        strcmp(one->version, two->version) != 0 || one->secret != two->secret)
        return wrong(self, "the hellos do not fit each other");
    if (two->cluster[0])
        return wrong(self, "who was dialled has named a cluster");
    if (strcmp(one->process, two->process) >= 0)
        return wrong(self, "%s has dialled %s", one->process, two->process);
    return true;
}

static bool greet(decoder *self, int side, const frame *head, const uint8_t *payload)
{
    speaker *from = &self->sides[side], *other = &self->sides[1 - side];
    bool flag = from->stage == AT_CODE || (from->stage == AT_HELLO && head->flags == 1);
    if (head->kind != 0 || head->more || head->stream || head->sequence || head->flags != flag)
        return wrong(self, "a greeting with another header: kind %u, flags %u", head->kind,
                     head->flags);
    if (from->stage != AT_CODE) {
        uint32_t size = DECODER_HEADER + head->size;
        if (from->seen.said_size + size > DECODER_SAID)
            return wrong(self, "a greeting of %u bytes", head->size);
        memcpy(from->seen.said + from->seen.said_size, payload - DECODER_HEADER, size);
        from->seen.said_size += size;
    }
    switch (from->stage) {
    case AT_HELLO:
        if (!take_hello(self, from, head, payload))
            return false;
        if (other->stage != AT_HELLO && !hellos_fit(self))
            return false;
        break;
    case AT_NONCE:
        if (head->size != DECODER_NONCE)
            return wrong(self, "a nonce of %u bytes", head->size);
        from->stage = AT_CODE;
        break;
    default:
        // The dialling side shows its code first, and when it has heard everything of the other.
        if (from->stage != AT_CODE || other->stage < AT_CODE ||
            (side == DECODER_LISTENER && other->stage != AT_FRAMES))
            return wrong(self, "a code before its time");
        if (head->size == 0 && side == DECODER_LISTENER) {
            from->seen.refuses = true;
            from->stage = AT_END;
            return true;
        }
        if (head->size != DECODER_CODE)
            return wrong(self, "a code of %u bytes", head->size);
        memcpy(from->seen.code, payload, DECODER_CODE);
        from->seen.has_code = true;
        from->stage = AT_FRAMES;
    }
    from->seen.greeted = from->stage == AT_FRAMES;
    return true;
}

// --- elements ---

static bool element_fits(uint32_t tag, uint32_t size, const uint8_t *payload)
{
    switch (tag) {
    case TAG_RECORD:
        return true;
    case TAG_RECORD_AT:
        return size >= 8;
    case TAG_WATERMARK:
        return size == 8;
    case TAG_STATUS:
        return size == 1 && payload[0] <= 1;
    case TAG_LATENCY:
        return size == 28;
    default:
        return false;
    }
}

// One piece is one segment, or a part of one that has ended behind a whole element.
static bool take_piece(decoder *self, int receiver, decoder_stream *stream, const uint8_t *bytes,
                       uint32_t size)
{
    while (size > 0) {
        if (!stream->cut) {
            if (size < ELEMENT_HEADER)
                return wrong(self, "channel %u: %u bytes for a header", stream->number, size);
            uint32_t header = (uint32_t)little(bytes, 4);
            stream->tag = header & 15;
            stream->size = header >> 4;
            stream->have = 0;
            stream->cut = true;
            bytes += ELEMENT_HEADER;
            size -= ELEMENT_HEADER;
        }
        uint32_t part = stream->size - stream->have;
        if (part > size)
            part = size;
        if (part > 0) {
            stream->payload = grown(stream->payload, stream->have + part);
            memcpy(stream->payload + stream->have, bytes, part);
        }
        stream->have += part;
        bytes += part;
        size -= part;
        if (stream->have < stream->size)
            break;
        stream->cut = false;
        if (!element_fits(stream->tag, stream->size, stream->payload))
            return wrong(self, "channel %u: an element with tag %u and %u bytes", stream->number,
                         stream->tag, stream->size);
        self->sink.element(self->sink.user, receiver, stream, stream->tag, stream->payload,
                           stream->size);
    }
    return true;
}

// --- frames ---

// Of the stream that the receiver has given this number; NULL when it never has.
static decoder_stream *stream_of(speaker *receiver, uint32_t number)
{
    return number < receiver->stream_count ? &receiver->streams[number] : NULL;
}

static bool take_open(decoder *self, speaker *receiver, const frame *head, const uint8_t *payload)
{
    if (head->stream >= receiver->stream_count) {
        receiver->streams =
            grown(receiver->streams, (head->stream + 1) * sizeof *receiver->streams);
        memset(receiver->streams + receiver->stream_count, 0,
               (head->stream + 1 - receiver->stream_count) * sizeof *receiver->streams);
        receiver->stream_count = head->stream + 1;
    }
    decoder_stream *stream = &receiver->streams[head->stream];
    if (stream->open)
        return wrong(self, "stream %u is opened twice", head->stream);
    if (little(payload + 12, 4) != 0)
        return wrong(self, "stream %u is opened with something in the zeros", head->stream);
    free(stream->payload);
    *stream = (decoder_stream){.open = true,
                               .attempt = little(payload, 8),
                               .number = (uint32_t)little(payload + 8, 4),
                               .granted = head->sequence};
    receiver->seen.opened++;
    return true;
}

static bool take_credit(decoder *self, speaker *receiver, decoder_stream *stream, const frame *head,
                        const uint8_t *payload)
{
    receiver->seen.limits += head->more > 0;
    if (!stream->open)
        return true;
    // It counts as sequences do.
    uint32_t more = (uint32_t)little(payload, 4) - (uint32_t)stream->delivered;
    if (more > stream->sequence - stream->delivered)
        return wrong(self, "channel %u: confirms what was not sent", stream->number);
    stream->delivered += more;
    stream->granted += head->sequence;
    if (stream->granted - stream->used > CREDIT_MOST)
        return wrong(self, "channel %u: too much credit", stream->number);
    return true;
}

// Data or an event: the next one of its stream.
static bool count_frame(decoder *self, decoder_stream *stream, const frame *head)
{
    if (!stream->open)
        return wrong(self, "frames of channel %u after CLOSED", stream->number);
    if (stream->ended)
        return wrong(self, "channel %u goes on after its end", stream->number);
    if (head->sequence != (uint32_t)stream->sequence)
        return wrong(self, "channel %u: frame %u instead of %" PRIu64, stream->number,
                     head->sequence, stream->sequence);
    stream->sequence++;
    return true;
}

static bool take_data(decoder *self, int receiver, decoder_stream *stream, const frame *head,
                      const uint8_t *payload)
{
    speaker *sender = &self->sides[1 - receiver];
    if (!count_frame(self, stream, head))
        return false;
    if (++stream->used > stream->granted)
        return wrong(self, "channel %u: data without credit", stream->number);
    if (sender->seen.most_queued < head->more)
        sender->seen.most_queued = head->more;
    stream->bytes += head->size;
    return take_piece(self, receiver, stream, payload, head->size);
}

static bool take_event(decoder *self, int receiver, decoder_stream *stream, const frame *head,
                       const uint8_t *payload)
{
    decoder_event event = {.tag = payload[0],
                           .priority = payload[1],
                           .options = (uint16_t)little(payload + 2, 2),
                           .checkpoint = little(payload + 8, 8),
                           .timestamp = (int64_t)little(payload + 16, 8)};
    if (!count_frame(self, stream, head))
        return false;
    if (event.tag < TAG_BARRIER || event.tag > TAG_ANNOUNCEMENT || event.priority > 1 ||
        little(payload + 4, 4) != 0)
        return wrong(self, "channel %u: no event: tag %u, priority %u", stream->number, event.tag,
                     event.priority);
    if (stream->cut && !event.priority)
        return wrong(self, "channel %u: an event inside an element", stream->number);
    stream->ended = event.tag == TAG_END_OF_PARTITION;
    self->sink.event(self->sink.user, receiver, stream, &event);
    return true;
}

static bool take_closed(decoder *self, int receiver, decoder_stream *stream, const frame *head)
{
    if (!stream->open || head->more > 1)
        return wrong(self, "channel %u: CLOSED again, or for reason %u", stream->number,
                     head->more);
    if (head->more == 1 && stream->sequence > 0)
        return wrong(self, "channel %u: unknown, but was sent", stream->number);
    stream->open = false;
    self->sides[receiver].seen.closed++;
    self->sink.closed(self->sink.user, receiver, stream, head->more);
    return true;
}

// Whether the header is one of the table.
static bool header_fits(const frame *head, uint32_t segment_size)
{
    bool empty = head->size == 0, no_more = head->more == 0;
    if (head->flags != 0 || head->stream >= STREAMS_MOST)
        return false;
    switch (head->kind) {
    case DECODER_OPEN:
        return head->size == OPEN_SIZE && no_more && head->sequence <= CREDIT_MOST;
    case DECODER_DATA:
        return head->size > 0 && head->size <= segment_size;
    case DECODER_EVENT:
        return head->size == EVENT_SIZE && no_more;
    case DECODER_CREDIT:
        return head->size == CREDIT_SIZE;
    case DECODER_CLOSE:
        return empty && no_more && head->sequence == 0;
    case DECODER_CLOSED:
        return empty && head->sequence == 0;
    case DECODER_ALIVE:
        return empty && no_more && head->stream == 0 && head->sequence == 0;
    default:
        return false;
    }
}

static bool take_frame(decoder *self, int side, const frame *head, const uint8_t *payload)
{
    speaker *from = &self->sides[side];
    if (head->kind == DECODER_ALIVE)
        return true;
    if (head->kind == DECODER_OPEN)
        return take_open(self, from, head, payload);
    bool by_receiver = head->kind == DECODER_CREDIT || head->kind == DECODER_CLOSE;
    int receiver = by_receiver ? side : 1 - side;
    decoder_stream *stream = stream_of(&self->sides[receiver], head->stream);
    if (!stream)
        return wrong(self, "a frame of kind %u for stream %u, which was never opened", head->kind,
                     head->stream);
    switch (head->kind) {
    case DECODER_DATA:
        return take_data(self, receiver, stream, head, payload);
    case DECODER_EVENT:
        return take_event(self, receiver, stream, head, payload);
    case DECODER_CREDIT:
        return take_credit(self, from, stream, head, payload);
    case DECODER_CLOSE:
        stream->closing = true;
        return true;
    default:
        return take_closed(self, receiver, stream, head);
    }
}

// --- bytes ---

// What a header alone tells, before the payload has come.
static bool take_header(decoder *self, int side, const frame *head)
{
    const speaker *from = &self->sides[side];
    if (from->stage != AT_FRAMES)
        return head->size <= DECODER_GREETING || wrong(self, "a greeting of %u bytes", head->size);
    if (self->sides[1 - side].stage != AT_FRAMES)
        return wrong(self, "a frame of kind %u before the other side has greeted", head->kind);
    return header_fits(head, from->seen.hello.segment_size) ||
           wrong(self, "a frame of kind %u: size %u, flags %u, more %u, stream %u, %u", head->kind,
                 head->size, head->flags, head->more, head->stream, head->sequence);
}

// The size of the first frame there, or 0 when it is not complete.
static size_t take_first(decoder *self, int side, const uint8_t *bytes, size_t size)
{
    speaker *from = &self->sides[side];
    if (size < DECODER_HEADER)
        return 0;
    frame head = {.size = (uint32_t)little(bytes, 4),
                  .kind = bytes[4],
                  .flags = bytes[5],
                  .more = (uint16_t)little(bytes + 6, 2),
                  .stream = (uint32_t)little(bytes + 8, 4),
                  .sequence = (uint32_t)little(bytes + 12, 4)};
    if (!take_header(self, side, &head) || size - DECODER_HEADER < head.size)
        return 0;
    bool good = from->stage == AT_FRAMES ? take_frame(self, side, &head, bytes + DECODER_HEADER)
                                         : greet(self, side, &head, bytes + DECODER_HEADER);
    if (!good)
        return 0;
    from->seen.frames[head.kind]++;
    from->seen.bytes += DECODER_HEADER + head.size;
    return DECODER_HEADER + head.size;
}

bool decoder_feed(decoder *self, int side, const uint8_t *bytes, size_t size)
{
    speaker *from = &self->sides[side];
    if (from->room - from->size < size) {
        from->room = 2 * (from->size + size);
        from->bytes = grown(from->bytes, from->room);
    }
    if (size > 0)
        memcpy(from->bytes + from->size, bytes, size);
    from->size += size;
    size_t done = 0, step;
    while ((step = take_first(self, side, from->bytes + done, from->size - done)) > 0)
        done += step;
    from->size -= done;
    if (done > 0)
        memmove(from->bytes, from->bytes + done, from->size);
    return !self->broken;
}

bool decoder_end(decoder *self)
{
    for (int i = 0; i < DECODER_SIDES && !self->broken; i++) {
        const speaker *side = &self->sides[i];
        bool refused = self->sides[DECODER_LISTENER].stage == AT_END;
        if ((!side->seen.greeted && !refused) || side->size > 0)
            return wrong(self, "side %d ends with %zu bytes that are no frame", i, side->size);
        for (uint32_t j = 0; j < side->stream_count; j++)
            if (side->streams[j].open)
                return wrong(self, "channel %u was never closed by its sender",
                             side->streams[j].number);
    }
    return !self->broken;
}
