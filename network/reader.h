// SPDX-License-Identifier: Apache-2.0
// Takes a channel's bytes apart into stream elements. One reader a channel, used by the consumer
// only.
//
// The common case, a whole element inside the bytes at hand, is inlined into the task's loop; a
// payload that goes on in the next segment is gathered in a buffer of the reader's own, at once, so
// that the segments go home. The buffer grows with what has come, never with what a header says.
#ifndef LEATI_NETWORK_READER_H
#define LEATI_NETWORK_READER_H

#include "network/channel.h"

typedef struct leati_reader {
    const uint8_t *at, *end; // unread part of the current chunk
    const uint8_t *start;    // [start, at) was read but not yet reported to the channel
    bool last;               // of the current chunk
    leati_channel *channel;
    uint32_t max_payload;
    // The payload being gathered.
    uint8_t *partial;
    size_t partial_capacity;
    uint32_t partial_size, partial_needed;
    uint8_t partial_tag;
    bool gathering;
    const leat_allocator *allocator;
    uint64_t bytes; // consumed so far and reported to the channel
} leati_reader;

typedef enum leati_read {
    LEATI_READ_NONE = 0,    // the channel has no more for now
    LEATI_READ_ELEMENT = 1, // an element: tag, payload
    LEATI_READ_EVENT = 2,
    LEATI_READ_CORRUPT = 3, // the bytes are no elements, or an event came inside a record
    LEATI_READ_TOO_BIG = 4, // a payload above the limit
    LEATI_READ_NO_MEMORY = 5,
    LEATI_READ_FAILED = 6, // what was kept in a file cannot be read
} leati_read;

typedef struct leati_element {
    leati_tag tag;
    uint32_t size;
    const uint8_t *payload; // valid until the next read
    leati_event event;
} leati_element;

void leati_reader_init(leati_reader *reader, const leat_allocator *allocator,
                       leati_channel *channel, uint32_t max_payload);
void leati_reader_fini(leati_reader *reader);
// The general case. After LEATI_READ_NONE the channel may leave the line (leati_gate_done); a
// reader that stops earlier has more, and goes on where it stopped. After CORRUPT, TOO_BIG and
// NO_MEMORY the reader cannot go on. Priority events come as soon as the bytes at hand are used up,
// also in the middle of a payload.
leati_read leati_reader_next_slow(leati_reader *reader, leati_element *element);

// Bytes consumed so far.
static inline uint64_t leati_reader_bytes(const leati_reader *reader)
{
    return reader->bytes + (uint64_t)(reader->at - reader->start);
}

static inline leati_read leati_reader_next(leati_reader *reader, leati_element *element)
{
    size_t left = (size_t)(reader->end - reader->at);
    if (LEAT_LIKELY(left >= LEATI_ELEMENT_HEADER)) {
        uint32_t header = leati_element_get_header(reader->at);
        uint32_t size = header >> 4;
        // A gathering reader has no bytes at hand, so it cannot come here.
        if (LEAT_LIKELY(size <= left - LEATI_ELEMENT_HEADER)) {
            element->tag = (leati_tag)(header & 15);
            element->size = size;
            element->payload = reader->at + LEATI_ELEMENT_HEADER;
            reader->at += LEATI_ELEMENT_HEADER + size;
            return LEATI_READ_ELEMENT;
        }
    }
    return leati_reader_next_slow(reader, element);
}

#endif
