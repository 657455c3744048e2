// SPDX-License-Identifier: Apache-2.0
// A writer's life, and what happens when a record does not simply fit: opening and finishing
// segments, waiting, cutting large records.
//
// A segment is queued on its channel as soon as it is opened, unfinished. From then on the reader
// may follow it; it is told to when the segment is finished or flushed.
#include "network/writer_impl.h"

#include <errno.h>

#include "base/alloc.h"

// A scratch buffer above this size is freed after use.
#define KEEP_SCRATCH ((size_t)1 << 20)

static const leati_record_time no_time = {.timestamp = INT64_MIN};

// --- segments ---

static uint32_t first_channel(const leati_writer *writer, const leati_lane *lane)
{
    return writer->shared ? 0 : (uint32_t)(lane - writer->lanes);
}

static uint32_t after_last_channel(const leati_writer *writer, const leati_lane *lane)
{
    return writer->shared ? writer->count : (uint32_t)(lane - writer->lanes) + 1;
}

static void notify_lane(leati_writer *writer, const leati_lane *lane)
{
    for (uint32_t i = first_channel(writer, lane); i < after_last_channel(writer, lane); i++)
        leati_channel_notify(writer->channels[i]);
}

static void add_to(_Atomic uint64_t *counter, uint64_t more)
{
    // One writer only, so it needs no read-modify-write.
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static void count_lane(leati_writer *writer, leati_lane *lane)
{
    add_to(&writer->records, lane->records);
    add_to(&writer->bytes, (uint64_t)(lane->at - lane->counted));
    lane->records = 0;
    lane->counted = lane->at;
}

// A blocking exchange: the segment's bytes go to the spool, and the segment home.
static void spool_lane(leati_writer *writer, const leati_lane *lane, leati_segment *segment,
                       uint32_t size)
{
    const leati_writer_options *options = &writer->options;
    uint32_t first = first_channel(writer, lane);
    leat_err err = leati_spool_append(
        options->spool, first, after_last_channel(writer, lane) - first, segment->data, size);
    if (err) {
        writer->broken = true;
        options->failed(options->ctx, err, "writing to a temporary file: %s",
                        err == LEAT_EIO ? strerror(errno) : leat_err_message(err));
    }
    leati_segment_release(segment);
}

static void finish_lane(leati_writer *writer, leati_lane *lane)
{
    leati_segment *segment = lane->segment;
    if (!segment)
        return;
    count_lane(writer, lane);
    uint32_t position = (uint32_t)(lane->at - lane->start);
    lane->at = lane->end = NULL;
    lane->segment = NULL;
    atomic_store_explicit(lane->dirty, 0, memory_order_relaxed);
    if (writer->options.spool) {
        spool_lane(writer, lane, segment, position);
        return;
    }
    // The reader may let go of the segment from here on.
    atomic_store_explicit(&segment->committed, position | LEATI_SEGMENT_FINISHED,
                          memory_order_release);
    notify_lane(writer, lane);
}

static void flush_lane(leati_writer *writer, leati_lane *lane)
{
    count_lane(writer, lane);
    atomic_store_explicit(lane->dirty, 0, memory_order_relaxed);
    notify_lane(writer, lane);
}

void leati_writer_beyond_mark(leati_writer *writer, leati_lane *lane)
{
    if (lane->end - lane->at < LEATI_LANE_FULL)
        finish_lane(writer, lane);
    else
        flush_lane(writer, lane);
}

static bool lane_has_room(const leati_writer *writer, const leati_lane *lane)
{
    for (uint32_t i = first_channel(writer, lane); i < after_last_channel(writer, lane); i++)
        if (leati_channel_room(writer->channels[i]) == 0)
            return false;
    return true;
}

// Whether a channel has as much queued as it may before a record is started. The open segment does
// not count: with timeout -1 nobody may ever ask for it, and a writer that waited for its reader
// would wait for itself.
static bool channel_is_full(const leati_writer *writer, uint32_t channel)
{
    uint32_t length = leati_channel_length(writer->channels[channel]);
    uint32_t open = writer->lanes[writer->shared ? 0 : channel].segment ? 1 : 0;
    return length >= writer->options.max_segments + open;
}

typedef struct waiting {
    leati_writer *writer;
    const leati_lane *lane;       // for a segment
    const leati_channel *channel; // for an event
} waiting;

static bool segment_ready(void *arg)
{
    waiting *what = arg;
    leati_local_pool *pool = what->writer->options.pool;
    leati_local_pool_await(pool);
    return lane_has_room(what->writer, what->lane) && leati_local_pool_available(pool);
}

static bool event_ready(void *arg)
{
    waiting *what = arg;
    leati_local_pool_await(what->writer->options.pool);
    return leati_channel_event_room(what->channel) > 0;
}

static leat_err wait_for(bool (*ready)(void *arg), waiting *what)
{
    leati_waiter *waiter = what->writer->options.waiter;
    leat_err err = waiter->wait(waiter, ready, what);
    if (err != LEAT_OK)
        what->writer->broken = true;
    return err;
}

static leati_segment *request_segment(leati_writer *writer, const leati_lane *lane)
{
    if (!lane_has_room(writer, lane))
        return NULL;
    leati_segment *segment = leati_local_pool_request(writer->options.pool, false);
    return segment ? segment : leati_local_pool_request(writer->options.pool, true);
}

static void enqueue_segment(leati_writer *writer, const leati_lane *lane, leati_segment *segment)
{
    uint32_t first = first_channel(writer, lane);
    uint32_t last = after_last_channel(writer, lane);
    for (uint32_t i = first + 1; i < last; i++)
        leati_segment_hold(segment);
    bool full = false;
    for (uint32_t i = first; i < last; i++) {
        leati_channel_add_segment(writer->channels[i], segment);
        full = full || channel_is_full(writer, i);
    }
    if (full || !leati_local_pool_available(writer->options.pool))
        *writer->options.maybe_blocked = true;
}

// How many bytes of a segment to use: all, or what the reader that wants least of them wants. What
// is kept in a file does not wait for anybody.
static uint32_t usable_bytes(const leati_writer *writer, const leati_lane *lane, uint32_t all)
{
    uint32_t least = all;
    if (writer->options.spool)
        return all;
    for (uint32_t i = first_channel(writer, lane); i < after_last_channel(writer, lane); i++) {
        uint32_t limit = leati_channel_limit(writer->channels[i]);
        if (limit > 0 && limit < least)
            least = limit;
    }
    return least;
}

// With room for `needed` bytes, of which a segment has as many.
static leat_err open_lane(leati_writer *writer, leati_lane *lane, uint32_t needed)
{
    leati_segment *segment;
    while (!(segment = request_segment(writer, lane))) {
        leat_err err = wait_for(segment_ready, &(waiting){.writer = writer, .lane = lane});
        if (err != LEAT_OK)
            return err;
    }
    lane->segment = segment;
    lane->at = lane->start = lane->counted = segment->data;
    uint32_t usable = usable_bytes(writer, lane, segment->size);
    lane->end = segment->data + (usable > needed ? usable : needed);
    lane->mark =
        writer->options.buffer_timeout_ms == 0 ? segment->data : lane->end - LEATI_LANE_FULL;
    if (!writer->options.spool)
        enqueue_segment(writer, lane, segment);
    return writer->broken ? LEAT_ECANCELLED : LEAT_OK;
}

// A lane with room for `size` bytes in one piece.
static leat_err ensure_room(leati_writer *writer, leati_lane *lane, uint32_t size)
{
    if (lane->end - lane->at >= (ptrdiff_t)size)
        return LEAT_OK;
    finish_lane(writer, lane);
    return open_lane(writer, lane, size);
}

// --- records that do not fit ---

// Cuts an element at the borders of segments. Each one that it fills goes out at once.
static leat_err write_pieces(leati_writer *writer, leati_lane *lane, leati_tag tag,
                             const uint8_t *payload, uint32_t size)
{
    leat_err err = ensure_room(writer, lane, LEATI_ELEMENT_HEADER);
    if (err != LEAT_OK)
        return err;
    leati_element_put_header(lane->at, tag, size);
    lane->at += LEATI_ELEMENT_HEADER;
    lane->records++;
    uint32_t left = size, whole = leati_local_pool_segment_size(writer->options.pool);
    for (;;) {
        size_t room = (size_t)(lane->end - lane->at);
        uint32_t piece = left < room ? left : (uint32_t)room;
        memcpy(lane->at, payload, piece);
        lane->at += piece;
        payload += piece;
        left -= piece;
        if (left == 0)
            break;
        finish_lane(writer, lane);
        // A large record comes in whole segments, whatever the reader wants of others: all of it
        // has to be there before any of it can be used.
        err = open_lane(writer, lane, left < whole ? left : whole);
        if (err != LEAT_OK)
            return err;
    }
    leati_writer_publish(writer, lane, lane->at);
    return LEAT_OK;
}

static bool reserve_scratch(leati_writer *writer, size_t size)
{
    if (size <= writer->scratch_capacity)
        return true;
    leati_free(writer->options.allocator, writer->scratch);
    writer->scratch_capacity = 0;
    writer->scratch = leati_alloc(writer->options.allocator, size);
    if (!writer->scratch)
        return false;
    writer->scratch_capacity = size;
    return true;
}

static leat_err write_cut(leati_writer *writer, leati_lane *lane, const void *record, size_t size)
{
    const leati_writer_options *options = &writer->options;
    size_t stamp = writer->time->present ? sizeof(int64_t) : 0;
    if (!reserve_scratch(writer, stamp + size))
        return options->failed(options->ctx, LEAT_ENOMEM,
                               "no memory for encoding a record of %zu bytes", size);
    if (stamp > 0)
        leati_element_put_i64(writer->scratch, writer->time->timestamp);
    uint8_t *body = writer->scratch + stamp;
    if (!writer->encode(writer->type, record, body, body + size))
        return options->failed(options->ctx, LEAT_EINVAL,
                               "a record is not what its type says: %zu bytes are not enough for "
                               "it",
                               size);
    leat_err err = write_pieces(writer, lane, stamp > 0 ? LEATI_TAG_RECORD_AT : LEATI_TAG_RECORD,
                                writer->scratch, (uint32_t)(stamp + size));
    if (writer->scratch_capacity > KEEP_SCRATCH) {
        leati_free(options->allocator, writer->scratch);
        writer->scratch = NULL;
        writer->scratch_capacity = 0;
    }
    return err;
}

leat_err leati_writer_write_slow(leati_writer *writer, leati_lane *lane, const void *record)
{
    if (writer->broken)
        return LEAT_ECANCELLED;
    const leati_writer_options *options = &writer->options;
    size_t size = leat_record_encoded_size(writer->type, record);
    if (size > options->max_record_size)
        return options->failed(options->ctx, LEAT_ETOOBIG,
                               "a record of %zu bytes is larger than record.max-size, %u bytes",
                               size, options->max_record_size);
    if (size > writer->small_bytes)
        return write_cut(writer, lane, record, size);
    finish_lane(writer, lane);
    // It fits then, with header, timestamp and what is never tried for less.
    leat_err err =
        open_lane(writer, lane, LEATI_ELEMENT_HEADER + LEATI_LANE_MINIMUM + (uint32_t)size);
    return err == LEAT_OK ? leati_writer_write(writer, lane, record) : err;
}

leat_err leati_writer_write_stamped(leati_writer *writer, leati_lane *lane, const void *record)
{
    uint8_t *payload = lane->at + LEATI_ELEMENT_HEADER;
    uint8_t *end = writer->encode(writer->type, record, payload + sizeof(int64_t), lane->end);
    if (LEAT_UNLIKELY(!end))
        return leati_writer_write_slow(writer, lane, record);
    leati_element_put_header(lane->at, LEATI_TAG_RECORD_AT, (uint32_t)(end - payload));
    leati_element_put_i64(payload, writer->time->timestamp);
    lane->records++;
    leati_writer_publish(writer, lane, end);
    return LEAT_OK;
}

// --- the task's other calls ---

static leat_err write_watermark(leat_operator *op, int64_t watermark, leat_out *out)
{
    leati_writer *writer = (leati_writer *)op;
    if (writer->broken)
        return LEAT_ECANCELLED;
    for (uint32_t i = 0; i < writer->lane_count; i++) {
        leati_lane *lane = &writer->lanes[i];
        leat_err err = ensure_room(writer, lane, LEATI_ELEMENT_HEADER + sizeof watermark);
        if (err != LEAT_OK)
            return err;
        leati_element_put_header(lane->at, LEATI_TAG_WATERMARK, sizeof watermark);
        leati_element_put_i64(lane->at + LEATI_ELEMENT_HEADER, watermark);
        leati_writer_publish(writer, lane, lane->at + LEATI_ELEMENT_HEADER + sizeof watermark);
    }
    return LEAT_OK;
}

bool leati_writer_available(leati_writer *writer)
{
    if (!leati_local_pool_available(writer->options.pool))
        return false;
    for (uint32_t i = 0; i < writer->count; i++)
        if (channel_is_full(writer, i))
            return false;
    return true;
}

void leati_writer_await(leati_writer *writer)
{
    leati_local_pool_await(writer->options.pool);
}

bool leati_writer_flush(leati_writer *writer)
{
    leati_local_pool_trim(writer->options.pool);
    if (writer->options.buffer_timeout_ms < 0)
        return false;
    bool any = false;
    for (uint32_t i = 0; i < writer->lane_count; i++) {
        if (!atomic_load_explicit(&writer->dirty[i], memory_order_relaxed))
            continue;
        flush_lane(writer, &writer->lanes[i]);
        any = true;
    }
    return any;
}

void leati_writer_tick(leati_writer *writer)
{
    if (writer->options.buffer_timeout_ms <= 0)
        return;
    // The mark stays: the task may be about to set it for something newer, which clearing it here
    // would hide. The price is a needless notification or two.
    for (uint32_t i = 0; i < writer->lane_count; i++)
        if (atomic_load_explicit(&writer->dirty[i], memory_order_acquire))
            notify_lane(writer, &writer->lanes[i]);
}

leat_err leati_writer_broadcast_event(leati_writer *writer, const leati_event *event)
{
    if (writer->broken)
        return LEAT_ECANCELLED;
    for (uint32_t i = 0; !event->priority && i < writer->lane_count; i++)
        finish_lane(writer, &writer->lanes[i]);
    if (writer->broken)
        return LEAT_ECANCELLED;
    if (writer->options.spool && event->tag == LEATI_TAG_END_OF_DATA)
        leati_spool_complete(writer->options.spool);
    for (uint32_t i = 0; i < writer->count; i++) {
        while (!event->priority && leati_channel_event_room(writer->channels[i]) == 0) {
            leat_err err =
                wait_for(event_ready, &(waiting){.writer = writer, .channel = writer->channels[i]});
            if (err != LEAT_OK)
                return err;
        }
        leati_channel_add_event(writer->channels[i], event);
    }
    return LEAT_OK;
}

void leati_writer_counts(const leati_writer *writer, uint64_t *records, uint64_t *bytes)
{
    *records = atomic_load_explicit(&writer->records, memory_order_relaxed);
    *bytes = atomic_load_explicit(&writer->bytes, memory_order_relaxed);
}

// --- life ---

static void dispose_nothing(leat_operator *op)
{
}

static uint16_t *make_route(const leati_writer_options *options)
{
    uint16_t *route =
        leati_alloc(options->allocator, (size_t)options->max_parallelism * sizeof *route);
    for (uint32_t group = 0; route && group < options->max_parallelism; group++)
        route[group] = (uint16_t)leat_key_group_to_subtask(group, options->consumers,
                                                           options->max_parallelism);
    return route;
}

static bool prepare_hash(leati_writer *writer)
{
    const leati_writer_options *options = &writer->options;
    if (options->key->fn) {
        writer->key_record = leati_alloc(options->allocator, options->key->key_type->size);
        if (!writer->key_record)
            return false;
    }
    writer->max_parallelism = options->max_parallelism;
    writer->route = make_route(options);
    return writer->route != NULL;
}

static bool allocate_parts(leati_writer *writer, leati_channel *const *channels)
{
    const leat_allocator *allocator = writer->options.allocator;
    writer->lanes = leati_alloc_aligned(allocator, LEATI_CACHE_LINE,
                                        writer->lane_count * sizeof *writer->lanes);
    writer->dirty = leati_calloc(allocator, writer->lane_count, sizeof *writer->dirty);
    writer->channels = leati_calloc(allocator, writer->count, sizeof(leati_channel *));
    // First, because destroying looks at them.
    for (uint32_t i = 0; writer->lanes && i < writer->lane_count; i++)
        writer->lanes[i] = (leati_lane){.dirty = writer->dirty ? &writer->dirty[i] : NULL};
    if (!writer->lanes || !writer->dirty || !writer->channels)
        return false;
    memcpy(writer->channels, channels, writer->count * sizeof(leati_channel *));
    return writer->options.partitioner != LEATI_PARTITION_HASH || prepare_hash(writer);
}

static bool options_are_right(const leati_writer_options *options)
{
    if (options->channels == 0 || options->max_record_size > LEATI_ELEMENT_MAX_PAYLOAD - 8)
        return false;
    if (options->partitioner == LEATI_PARTITION_CUSTOM)
        return options->custom != NULL;
    if (options->partitioner != LEATI_PARTITION_HASH)
        return true;
    return options->key && options->channels == options->consumers &&
           options->consumers <= options->max_parallelism && options->max_parallelism <= 32768;
}

leat_err leati_writer_create(const leati_writer_options *options, leati_channel *const *channels,
                             leati_writer **writer)
{
    if (!options_are_right(options))
        return LEAT_EINVAL;
    leati_writer *made = leati_alloc_aligned(options->allocator, LEATI_CACHE_LINE, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    const leat_type *type = options->type;
    *made = (leati_writer){
        .type = type,
        .encode = type->codec ? type->codec->encode : leat_codec_encode,
        .time = options->time ? options->time : &no_time,
        .count = options->channels,
        .options = *options,
        .shared = options->partitioner == LEATI_PARTITION_BROADCAST,
        .ops = {.kind = "writer", .watermark = write_watermark, .dispose = dispose_nothing},
    };
    made->op.ops = &made->ops;
    made->op.ctx = options->ctx;
    made->lane_count = made->shared ? 1 : made->count;
    made->small_bytes = leati_local_pool_segment_size(options->pool) / 8;
    leat_err err = LEAT_OK;
    if (!allocate_parts(made, channels))
        err = LEAT_ENOMEM;
    else if (!leati_writer_choose(made))
        err = LEAT_EINVAL;
    if (err != LEAT_OK) {
        leati_writer_destroy(&made);
        return err;
    }
    *writer = made;
    return LEAT_OK;
}

void leati_writer_destroy(leati_writer **writer)
{
    leati_writer *gone = *writer;
    if (!gone)
        return;
    *writer = NULL;
    const leat_allocator *allocator = gone->options.allocator;
    // Open segments are on no channel when they are to go to a spool: those of a task that did not
    // come to its end are the writer's still.
    for (uint32_t i = 0; gone->lanes && gone->options.spool && i < gone->lane_count; i++)
        if (gone->lanes[i].segment)
            leati_segment_release(gone->lanes[i].segment);
    leati_free_aligned(allocator, gone->lanes);
    leati_free(allocator, (void *)gone->dirty);
    leati_free(allocator, gone->channels);
    leati_free(allocator, (void *)(uintptr_t)gone->route);
    leati_free(allocator, gone->scratch);
    leati_free(allocator, gone->key_record);
    leati_free_aligned(allocator, gone);
}

leat_operator *leati_writer_operator(leati_writer *writer)
{
    return &writer->op;
}
