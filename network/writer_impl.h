// SPDX-License-Identifier: Apache-2.0
// The insides of a writer. writer.c has its life and everything rare, partition.c the element
// functions, one a partitioner, which are the hot path.
//
// A lane is one open segment and where in it the next element goes. A writer has one lane a
// channel; a broadcast writer has one in all, whose segments are queued on every channel.
#ifndef LEATI_NETWORK_WRITER_IMPL_H
#define LEATI_NETWORK_WRITER_IMPL_H

#include "leat/record_codec.h"
#include "network/writer.h"

// A record is only tried where there is room for headers, timestamp and a little more.
#define LEATI_LANE_MINIMUM 16
// With less room than a header and one byte a segment is full.
#define LEATI_LANE_FULL (LEATI_ELEMENT_HEADER + 1)
// In so many places the processor follows by itself where bytes are written in a row.
#define LEATI_LANES_FOLLOWED 16

// Two to a cache line would be enough room, but everything a record touches is then in one.
typedef struct leati_lane {
    _Alignas(LEATI_CACHE_LINE) uint8_t *at; // where the next element goes, and
    uint8_t *end;                           // the end of the segment; both NULL when none is open
    // Publishing a position beyond this takes more than a store: the segment is full, or (timeout
    // 0, then it is the segment's start) the reader is to see it at once.
    uint8_t *mark;
    uint8_t *start;
    leati_segment *segment;
    _Atomic uint8_t *dirty; // this lane's place in the writer's array; immutable
    // What has not been added to the writer's counters yet.
    uint64_t records;
    uint8_t *counted; // bytes up to here are in the counters
} leati_lane;

struct leati_writer {
    leat_operator op; // first: the writer is an operator
    // Immutable, hot.
    leati_lane *lanes;
    // One a lane: something is committed that no reader was notified of. Set and cleared by the
    // task; the timer looks.
    _Atomic uint8_t *dirty;
    const leat_type *type;
    uint8_t *(*encode)(const leat_type *type, const void *record, uint8_t *to, uint8_t *end);
    const leati_record_time *time;
    const uint16_t *route; // key group to channel
    uint32_t max_parallelism;
    uint32_t count; // channels
    uint32_t key_offset;
    // Task.
    uint32_t next; // the channel whose turn it is
    uint64_t random;
    // Written by the task only, when a segment is finished or flushed.
    _Atomic uint64_t records, bytes;

    // Immutable, rarely needed.
    leati_writer_options options;
    leati_channel **channels;
    uint32_t lane_count;
    bool shared;          // broadcast: lane 0 stands for all channels
    bool nullable;        // a key may be null
    uint32_t small_bytes; // elements up to this size are never cut
    leat_operator_ops ops;
    // Task.
    bool broken; // an element was begun and not ended: nothing may follow
    uint8_t *scratch;
    size_t scratch_capacity;
    void *key_record;
};

// Chooses the element function. False for partitioners that writers do not know.
bool leati_writer_choose(leati_writer *writer);
// Writes a record that did not fit the open segment of its lane.
leat_err leati_writer_write_slow(leati_writer *writer, leati_lane *lane, const void *record);
// Writes a record with a timestamp.
leat_err leati_writer_write_stamped(leati_writer *writer, leati_lane *lane, const void *record);
// A position beyond the lane's mark was published.
void leati_writer_beyond_mark(leati_writer *writer, leati_lane *lane);

// Ends an element at `at`.
static inline void leati_writer_publish(leati_writer *writer, leati_lane *lane, uint8_t *at)
{
    lane->at = at;
    // Pairs with the load in leati_channel_peek.
    atomic_store_explicit(&lane->segment->committed, (uint32_t)(at - lane->start),
                          memory_order_release);
    // Pairs with the load in leati_writer_tick: whoever sees it finds the position above.
    atomic_store_explicit(lane->dirty, 1, memory_order_release);
    if (LEAT_UNLIKELY(at > lane->mark))
        leati_writer_beyond_mark(writer, lane);
}

// Inlined into each partitioner's element function: a call less for each record.
__attribute__((always_inline)) static inline leat_err
leati_writer_write(leati_writer *writer, leati_lane *lane, const void *record)
{
    uint8_t *at = lane->at;
    if (LEAT_UNLIKELY(lane->end - at < LEATI_LANE_MINIMUM))
        return leati_writer_write_slow(writer, lane, record);
    if (writer->time->present)
        return leati_writer_write_stamped(writer, lane, record);
    uint8_t *end = writer->encode(writer->type, record, at + LEATI_ELEMENT_HEADER, lane->end);
    if (LEAT_UNLIKELY(!end))
        return leati_writer_write_slow(writer, lane, record);
    leati_element_put_header(at, LEATI_TAG_RECORD, (uint32_t)(end - at) - LEATI_ELEMENT_HEADER);
    lane->records++;
    leati_writer_publish(writer, lane, end);
    return LEAT_OK;
}

// For partitioners that send one record here and the next one there. With many lanes each record
// would begin with waiting for a line of its segment. So the lines are asked for that the lane's
// next record will be written to, about as many as this one took: with 40 lanes and records of 100
// bytes that is worth an eighth of the whole.
__attribute__((always_inline)) static inline leat_err
leati_writer_write_spread(leati_writer *writer, leati_lane *lane, const void *record)
{
    const uint8_t *before = lane->at;
    leat_err err = leati_writer_write(writer, lane, record);
    const uint8_t *at = lane->at;
    if (writer->lane_count > LEATI_LANES_FOLLOWED && at) {
        __builtin_prefetch(at + LEATI_CACHE_LINE, 1);
        if (at - before > LEATI_CACHE_LINE)
            __builtin_prefetch(at + 2 * LEATI_CACHE_LINE, 1);
    }
    return err;
}

#endif
