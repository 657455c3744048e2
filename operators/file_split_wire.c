// SPDX-License-Identifier: Apache-2.0
#include "operators/file_split_wire.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "leat/record_macros.h"
#include "operators/file_inflate.h"

typedef struct split_record {
    leat_bytes path; // names of files are bytes
    int32_t compression;
    bool stream;
    int64_t start, end, size;
    uint64_t device, inode;
    int64_t born_s, born_ns;
} split_record;
LEAT_RECORD(split_record, LEAT_FIELD(path, LEAT_BYTES), LEAT_FIELD(compression, LEAT_I32),
            LEAT_FIELD(stream, LEAT_BOOL), LEAT_FIELD(start, LEAT_I64), LEAT_FIELD(end, LEAT_I64),
            LEAT_FIELD(size, LEAT_I64), LEAT_FIELD(device, LEAT_U64), LEAT_FIELD(inode, LEAT_U64),
            LEAT_FIELD(born_s, LEAT_I64), LEAT_FIELD(born_ns, LEAT_I64));

typedef struct batch_record {
    uint64_t machine;
    bool lost;
    leat_list splits;
} batch_record;
LEAT_RECORD(batch_record, LEAT_FIELD(machine, LEAT_U64), LEAT_FIELD(lost, LEAT_BOOL),
            LEAT_FIELD_LIST(splits, LEAT_TYPE(split_record)));

uint64_t leati_file_machine(void)
{
    char boot[64] = "", mounts[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t boot_size = fd >= 0 ? read(fd, boot, sizeof boot) : 0;
    if (fd >= 0)
        close(fd);
    ssize_t mounts_size = readlink("/proc/self/ns/mnt", mounts, sizeof mounts);
    return leat_hash_combine(leat_hash_bytes(boot, boot_size > 0 ? (size_t)boot_size : 0),
                             leat_hash_bytes(mounts, mounts_size > 0 ? (size_t)mounts_size : 0));
}

static split_record record_of(const leati_file_split *split)
{
    const leati_file *file = split->file;
    return (split_record){.path = {(const uint8_t *)file->path, strlen(file->path)},
                          .compression = split->compression,
                          .stream = file->stream,
                          .start = split->start,
                          .end = split->end,
                          .size = file->size,
                          .device = file->id.device,
                          .inode = file->id.inode,
                          .born_s = file->id.born_s,
                          .born_ns = file->id.born_ns};
}

leat_err leati_file_batch_encode(const leat_allocator *allocator, uint64_t machine,
                                 const leati_file_batch *batch, uint8_t **bytes, size_t *size)
{
    split_record splits[LEATI_FILE_BATCH];
    for (uint32_t i = 0; i < batch->count; i++)
        splits[i] = record_of(&batch->splits[i]);
    batch_record record = {
        .machine = machine, .lost = batch->lost, .splits = {splits, batch->count}};
    size_t needed = leat_record_encoded_size(LEAT_TYPE(batch_record), &record);
    uint8_t *made = leati_alloc(allocator, needed);
    if (!made)
        return LEAT_ENOMEM;
    leat_record_encode(LEAT_TYPE(batch_record), &record, made, made + needed);
    *bytes = made;
    *size = needed;
    return LEAT_OK;
}

// Whether home could have said so. Standard input is that of one process.
static bool is_sane(const split_record *split, bool lost)
{
    size_t size = split->path.size;
    bool whole = split->stream || split->compression != LEATI_PLAIN;
    if (size == 0 || size >= PATH_MAX || memchr(split->path.data, 0, size) ||
        (size == 1 && split->path.data[0] == '-'))
        return false;
    if (split->compression < LEATI_PLAIN || split->compression > LEATI_ZSTD || split->size < 0)
        return false;
    if (whole && !lost)
        return split->start == 0 && split->end == INT64_MAX;
    return split->start >= 0 && split->start <= split->end && split->end <= split->size;
}

static leat_err take_splits(leati_file_splits *splits, const batch_record *record, bool foreign,
                            leati_file_batch *batch)
{
    const split_record *items = record->splits.items;
    leat_err err = LEAT_OK;
    for (size_t i = 0; i < record->splits.count && err == LEAT_OK; i++) {
        const split_record *split = &items[i];
        leati_file like = {.stream = split->stream,
                           .foreign = foreign,
                           .size = split->size,
                           .id = {split->device, split->inode, split->born_s, split->born_ns}};
        leati_file *file;
        err = is_sane(split, record->lost)
                  ? leati_file_splits_adopt(splits, &like, (const char *)split->path.data,
                                            split->path.size, &file)
                  : LEAT_ECORRUPT;
        if (err == LEAT_OK)
            batch->splits[batch->count++] = (leati_file_split){.file = file,
                                                               .compression = split->compression,
                                                               .start = split->start,
                                                               .end = split->end};
    }
    return err;
}

leat_err leati_file_batch_decode(const leat_allocator *allocator, leati_file_splits *splits,
                                 uint64_t machine, const uint8_t *bytes, size_t size,
                                 leati_file_batch *batch)
{
    leat_scratch *scratch;
    batch_record record;
    leati_file_batch made = {.count = 0};
    leat_err err = leat_scratch_create(allocator, &scratch);
    if (err != LEAT_OK)
        return err;
    err = leat_record_decode(LEAT_TYPE(batch_record), bytes, size, &record, scratch);
    if (err == LEAT_OK && record.splits.count > LEATI_FILE_BATCH)
        err = LEAT_ECORRUPT;
    if (err == LEAT_OK)
        err = take_splits(splits, &record, record.machine != machine, &made);
    leat_scratch_destroy(&scratch);
    if (err != LEAT_OK) {
        while (made.count)
            leati_file_splits_release(splits, &made.splits[--made.count]);
        return err;
    }
    made.lost = record.lost;
    *batch = made;
    return LEAT_OK;
}
