// SPDX-License-Identifier: Apache-2.0
// The wire form of stream elements (docs/design/wire.md).
//
// In a segment: a header of four bytes, little endian, the tag in the low four bits and the
// payload's length in the upper 28, then the payload. Elements follow each other without padding. A
// header never straddles two segments. A payload that does not fit the segment goes on at the start
// of the channel's next ones. Events are not in segments: they stand between them.
#ifndef LEATI_NETWORK_ELEMENT_H
#define LEATI_NETWORK_ELEMENT_H

#include <stdint.h>
#include <string.h>

#define LEATI_ELEMENT_HEADER      4
#define LEATI_ELEMENT_MAX_PAYLOAD ((1u << 28) - 1)

// Tags are frozen: they are what travels between processes.
typedef enum leati_tag {
    LEATI_TAG_RECORD = 0,    // payload: the record
    LEATI_TAG_RECORD_AT = 1, // payload: timestamp (8 bytes, little endian), the record
    LEATI_TAG_WATERMARK = 2, // payload: 8 bytes
    LEATI_TAG_STATUS = 3,    // payload: 1 byte, 0 active, 1 idle
    LEATI_TAG_LATENCY = 4,   // payload: emit time 8, source id 16, subtask 4 bytes
    // Events.
    LEATI_TAG_BARRIER = 8,
    LEATI_TAG_CANCEL_BARRIER = 9,
    LEATI_TAG_END_OF_DATA = 10, // options: 1 = drain
    LEATI_TAG_END_OF_PARTITION = 11,
    LEATI_TAG_ANNOUNCEMENT = 12, // a barrier is queued
} leati_tag;

// An event, small enough to be kept in a queue's slot.
typedef struct leati_event {
    uint8_t tag;
    uint8_t priority; // 1: goes ahead of everything that is queued
    uint16_t options;
    uint32_t reserved;
    uint64_t checkpoint; // barriers
    int64_t timestamp;   // barriers
} leati_event;

static inline void leati_element_put_header(uint8_t *to, leati_tag tag, uint32_t payload)
{
    uint32_t header = (payload << 4) | (uint32_t)tag;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    header = __builtin_bswap32(header);
#endif
    memcpy(to, &header, sizeof header);
}

static inline uint32_t leati_element_get_header(const uint8_t *from)
{
    uint32_t header;
    memcpy(&header, from, sizeof header);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    header = __builtin_bswap32(header);
#endif
    return header;
}

static inline void leati_element_put_i64(uint8_t *to, int64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = (int64_t)__builtin_bswap64((uint64_t)value);
#endif
    memcpy(to, &value, sizeof value);
}

static inline int64_t leati_element_get_i64(const uint8_t *from)
{
    int64_t value;
    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = (int64_t)__builtin_bswap64((uint64_t)value);
#endif
    return value;
}

#endif
