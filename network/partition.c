// SPDX-License-Identifier: Apache-2.0
// Which channel a record takes: one element function a partitioner, so that none of them asks at
// run time which one it is.
#include "network/writer_impl.h"

#include <inttypes.h>

static leati_writer *writer_of(leat_operator *op)
{
    return (leati_writer *)op;
}

// One channel, or one lane for all.
static leat_err element_single(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    return leati_writer_write(writer, &writer->lanes[0], record);
}

// As many of them as fit the open segment, which are published together. Returns how many.
static uint32_t write_run(leati_writer *writer, leati_lane *lane, const char *record,
                          uint32_t count)
{
    const leat_type *type = writer->type;
    uint8_t *at = lane->at, *end = lane->end, *next;
    uint32_t done = 0;
    while (done < count && end - at >= LEATI_LANE_MINIMUM &&
           (next = writer->encode(type, record, at + LEATI_ELEMENT_HEADER, end))) {
        leati_element_put_header(at, LEATI_TAG_RECORD,
                                 (uint32_t)(next - at) - LEATI_ELEMENT_HEADER);
        at = next;
        record += type->size;
        done++;
    }
    if (done > 0) {
        lane->records += done;
        leati_writer_publish(writer, lane, at);
    }
    return done;
}

static leat_err some_single(leat_operator *op, const void *records, uint32_t *count)
{
    leati_writer *writer = writer_of(op);
    leati_lane *lane = &writer->lanes[0];
    const char *record = records;
    uint32_t left = *count;
    leat_err err = LEAT_OK;
    do {
        uint32_t done = writer->time->present ? 0 : write_run(writer, lane, record, left);
        record += (size_t)done * writer->type->size;
        left -= done;
        // What still fitted needed no room; one more may have to wait for it.
        if (left == 0 || (done > 0 && *writer->options.maybe_blocked))
            break;
        // One that has a timestamp, or does not fit.
        err = leati_writer_write(writer, lane, record);
        record += writer->type->size;
        left -= err == LEAT_OK;
    } while (left > 0 && !err && !*writer->options.maybe_blocked);
    *count -= left;
    return err;
}

leat_some_fn leati_writer_some(const leati_writer *writer)
{
    // With timeout 0 readers are told of each record.
    return writer->ops.element == element_single && writer->options.buffer_timeout_ms != 0
               ? some_single
               : NULL;
}

// Rebalance and rescale: one after the other.
static leat_err element_turns(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    uint32_t index = writer->next;
    writer->next = index + 1 < writer->count ? index + 1 : 0;
    return leati_writer_write_spread(writer, &writer->lanes[index], record);
}

// xorshift64: cheap, and even enough to spread records.
static uint64_t next_random(leati_writer *writer)
{
    uint64_t x = writer->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    writer->random = x;
    return x;
}

// Maps a random number to [0, count) by its upper half, without a division.
static uint32_t random_channel(leati_writer *writer)
{
    return (uint32_t)(((next_random(writer) >> 32) * writer->count) >> 32);
}

static leat_err element_shuffle(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    return leati_writer_write_spread(writer, &writer->lanes[random_channel(writer)], record);
}

__attribute__((always_inline)) static inline leat_err
write_by_hash(leati_writer *writer, uint64_t hash, const void *record)
{
    uint32_t group = leat_key_group(hash, writer->max_parallelism);
    return leati_writer_write_spread(writer, &writer->lanes[writer->route[group]], record);
}

// The user's function chooses.
static leat_err element_custom(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = (leati_writer *)op;
    const leati_writer_options *options = &writer->options;
    int64_t channel = options->custom(options->ctx, record, writer->count);
    if (LEAT_UNLIKELY(channel < 0 || channel >= writer->count))
        return options->failed(options->ctx, LEAT_EUSER,
                               "the partitioner chose subtask %" PRId64 " of %u", channel,
                               writer->count);
    return leati_writer_write_spread(writer, &writer->lanes[channel], record);
}

// A key of one 64-bit integer.
static leat_err element_hash_i64(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    uint64_t value;
    memcpy(&value, (const char *)record + writer->key_offset, sizeof value);
    return write_by_hash(writer, leat_hash_u64(value), record);
}

// A key of one string.
static leat_err element_hash_str(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    const leat_str *text = (const void *)((const char *)record + writer->key_offset);
    return write_by_hash(writer, leat_hash_bytes(text->data, text->size), record);
}

// Fields that cannot be null.
static leat_err element_hash_fields(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    return write_by_hash(writer, leat_key_hash(&writer->options.key->fields, record), record);
}

// Key functions, and keys that may be null.
static leat_err element_hash_any(leat_operator *op, const void *record, leat_out *out)
{
    leati_writer *writer = writer_of(op);
    const leati_writer_options *options = &writer->options;
    const leati_key_selector *key = options->key;
    const void *keyed = record;
    if (key->fn) {
        memset(writer->key_record, 0, key->key_type->size);
        if (key->fn(options->ctx, record, writer->key_record) != 0)
            return options->failed(options->ctx, LEAT_EUSER, "the key function failed");
        keyed = writer->key_record;
    }
    if (writer->nullable && leat_key_has_null(&key->fields, keyed))
        return options->failed(options->ctx, LEAT_EINVAL, "the key %s of a record is null",
                               key->text ? key->text : "");
    return write_by_hash(writer, leat_key_hash(&key->fields, keyed), record);
}

static leat_element_fn choose_hash(leati_writer *writer)
{
    const leati_key_selector *key = writer->options.key;
    writer->nullable = leat_key_can_be_null(&key->fields);
    if (writer->nullable || key->fn)
        return element_hash_any;
    if (writer->count == 1)
        return element_single;
    writer->key_offset = key->fields.part[0].offset;
    uint32_t kind = key->fields.count == 1 ? key->fields.part[0].type->kind : 0;
    // Integers hash by their value as 64 bits, so these three are the same.
    if (kind == LEAT_I64 || kind == LEAT_U64 || kind == LEAT_TIMESTAMP)
        return element_hash_i64;
    return kind == LEAT_STR ? element_hash_str : element_hash_fields;
}

bool leati_writer_choose(leati_writer *writer)
{
    // Any seed but 0; different for each subtask, the same in each run.
    writer->random = (writer->options.subtask + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    leat_element_fn single = writer->lane_count == 1 ? element_single : NULL;
    switch (writer->options.partitioner) {
    case LEATI_PARTITION_FORWARD:
    case LEATI_PARTITION_GLOBAL:
    case LEATI_PARTITION_BROADCAST:
        writer->ops.element = element_single;
        return true;
    case LEATI_PARTITION_REBALANCE:
        writer->next = random_channel(writer);
        writer->ops.element = single ? single : element_turns;
        return true;
    case LEATI_PARTITION_RESCALE:
        writer->ops.element = single ? single : element_turns;
        return true;
    case LEATI_PARTITION_SHUFFLE:
        writer->ops.element = single ? single : element_shuffle;
        return true;
    case LEATI_PARTITION_CUSTOM:
        writer->ops.element = element_custom;
        return true;
    case LEATI_PARTITION_HASH:
        writer->ops.element = choose_hash(writer);
        return true;
    default:
        return false;
    }
}
