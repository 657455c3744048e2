// SPDX-License-Identifier: Apache-2.0
#include "network/reader.h"

#include "base/alloc.h"

// A gathering buffer above this size is freed after use.
#define KEEP_PARTIAL  (1u << 20)
#define FIRST_PARTIAL 4096u

void leati_reader_init(leati_reader *reader, const leat_allocator *allocator,
                       leati_channel *channel, uint32_t max_payload)
{
    *reader =
        (leati_reader){.channel = channel, .max_payload = max_payload, .allocator = allocator};
}

static void drop_partial(leati_reader *reader)
{
    leati_free(reader->allocator, reader->partial);
    reader->partial = NULL;
    reader->partial_capacity = 0;
}

void leati_reader_fini(leati_reader *reader)
{
    drop_partial(reader);
}

// Tells the channel what was read of the chunk at hand, and lets go of it.
static void report(leati_reader *reader)
{
    size_t taken = (size_t)(reader->at - reader->start);
    if (taken > 0) {
        leati_channel_advance(reader->channel, (uint32_t)taken);
        reader->bytes += taken;
    }
    reader->at = reader->end = reader->start = NULL;
}

static bool reserve_partial(leati_reader *reader, uint32_t size)
{
    if (size <= reader->partial_capacity)
        return true;
    size_t capacity = reader->partial_capacity * 2;
    if (capacity < FIRST_PARTIAL)
        capacity = FIRST_PARTIAL;
    if (capacity < size)
        capacity = size;
    // Never more than the whole payload, which is within the limit.
    if (capacity > reader->partial_needed)
        capacity = reader->partial_needed;
    uint8_t *grown = leati_realloc(reader->allocator, reader->partial, capacity);
    if (!grown)
        return false;
    reader->partial = grown;
    reader->partial_capacity = capacity;
    return true;
}

// Takes what the chunk has of the payload being gathered. ELEMENT when it is whole, NONE when the
// chunk is used up before.
static leati_read gather(leati_reader *reader, leati_element *element)
{
    size_t left = (size_t)(reader->end - reader->at);
    uint32_t missing = reader->partial_needed - reader->partial_size;
    uint32_t piece = left < missing ? (uint32_t)left : missing;
    if (!reserve_partial(reader, reader->partial_size + piece))
        return LEATI_READ_NO_MEMORY;
    if (piece > 0)
        memcpy(reader->partial + reader->partial_size, reader->at, piece);
    reader->partial_size += piece;
    reader->at += piece;
    if (piece < missing)
        return LEATI_READ_NONE;
    reader->gathering = false;
    element->tag = (leati_tag)reader->partial_tag;
    element->size = reader->partial_needed;
    element->payload = reader->partial;
    return LEATI_READ_ELEMENT;
}

// Begins to gather the element at the head of the chunk, which does not hold all of it.
static leati_read begin_gathering(leati_reader *reader, uint32_t header)
{
    if (header >> 4 > reader->max_payload)
        return LEATI_READ_TOO_BIG;
    reader->at += LEATI_ELEMENT_HEADER;
    reader->partial_tag = header & 15;
    reader->partial_needed = header >> 4;
    reader->partial_size = 0;
    reader->gathering = true;
    return LEATI_READ_ELEMENT;
}

// What to do with the bytes at hand. NONE: nothing more can be made of them, look for others.
static leati_read use_chunk(leati_reader *reader, leati_element *element)
{
    size_t left = (size_t)(reader->end - reader->at);
    if (left == 0)
        return LEATI_READ_NONE;
    if (!reader->gathering) {
        // A header stands in one piece, and it is published together with what follows it.
        if (left < LEATI_ELEMENT_HEADER)
            return LEATI_READ_CORRUPT;
        uint32_t header = leati_element_get_header(reader->at);
        uint32_t size = header >> 4;
        if (size <= left - LEATI_ELEMENT_HEADER) {
            element->tag = (leati_tag)(header & 15);
            element->size = size;
            element->payload = reader->at + LEATI_ELEMENT_HEADER;
            reader->at += LEATI_ELEMENT_HEADER + size;
            return LEATI_READ_ELEMENT;
        }
        // More of it may be coming in this very segment: it stays in place until then.
        if (!reader->last)
            return LEATI_READ_NONE;
        leati_read begun = begin_gathering(reader, header);
        if (begun != LEATI_READ_ELEMENT)
            return begun;
    }
    return gather(reader, element);
}

leati_read leati_reader_next_slow(leati_reader *reader, leati_element *element)
{
    if (!reader->gathering && reader->partial_capacity > KEEP_PARTIAL)
        drop_partial(reader);
    size_t unfinished = SIZE_MAX;
    for (;;) {
        leati_read read = use_chunk(reader, element);
        if (read != LEATI_READ_NONE)
            return read;
        size_t left = (size_t)(reader->end - reader->at);
        report(reader);
        // Looked twice at the same incomplete element: its rest has not been written yet.
        if (left > 0 && left == unfinished)
            return LEATI_READ_NONE;
        unfinished = left > 0 ? left : SIZE_MAX;
        leati_chunk chunk;
        switch (leati_channel_peek(reader->channel, &chunk)) {
        case LEATI_CHUNK_NONE:
            return LEATI_READ_NONE;
        case LEATI_CHUNK_EVENT:
            if (reader->gathering && !chunk.event.priority)
                return LEATI_READ_CORRUPT;
            element->event = chunk.event;
            element->tag = (leati_tag)chunk.event.tag;
            element->size = 0;
            element->payload = NULL;
            return LEATI_READ_EVENT;
        case LEATI_CHUNK_FAILED:
            return LEATI_READ_FAILED;
        case LEATI_CHUNK_NO_MEMORY:
            return LEATI_READ_NO_MEMORY;
        default:
            reader->start = reader->at = chunk.data;
            reader->end = chunk.data + chunk.size;
            reader->last = chunk.last;
        }
    }
}
