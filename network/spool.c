// SPDX-License-Identifier: Apache-2.0
#include "network/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"

typedef struct piece {
    uint64_t offset;
    uint32_t size;
} piece;

typedef struct piece_list {
    piece *items;
    size_t count, capacity;
} piece_list;

struct leati_spool {
    const leat_allocator *allocator;
    int fd;
    uint64_t size;
    _Atomic bool complete;
    uint32_t channel_count;
    piece_list channels[];
};

const char *leati_spool_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

static int open_nameless(void)
{
    const char *folder = leati_spool_folder();
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    // Not every file system knows files without a name.
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/leat-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

leat_err leati_spool_create(const leat_allocator *allocator, uint32_t channels, leati_spool **spool)
{
    leati_spool *made =
        leati_calloc(allocator, 1, sizeof *made + (size_t)channels * sizeof *made->channels);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = allocator;
    made->channel_count = channels;
    made->fd = open_nameless();
    if (made->fd < 0) {
        leati_free(allocator, made);
        return LEAT_EIO;
    }
    *spool = made;
    return LEAT_OK;
}

void leati_spool_destroy(leati_spool **spool)
{
    leati_spool *gone = *spool;
    if (!gone)
        return;
    *spool = NULL;
    for (uint32_t i = 0; i < gone->channel_count; i++)
        leati_free(gone->allocator, gone->channels[i].items);
    close(gone->fd);
    leati_free(gone->allocator, gone);
}

static leat_err write_all(int fd, const char *data, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t written = pwrite(fd, data, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return LEAT_EIO;
        data += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return LEAT_OK;
}

leat_err leati_spool_append(leati_spool *spool, uint32_t first, uint32_t count, const void *data,
                            uint32_t size)
{
    if (size == 0)
        return LEAT_OK;
    for (uint32_t i = first; i < first + count; i++) {
        piece_list *list = &spool->channels[i];
        if (!leati_grow(spool->allocator, (void **)&list->items, &list->capacity, list->count + 1,
                        sizeof *list->items))
            return LEAT_ENOMEM;
    }
    leat_err err = write_all(spool->fd, data, size, spool->size);
    if (err)
        return err;
    for (uint32_t i = first; i < first + count; i++) {
        piece_list *list = &spool->channels[i];
        list->items[list->count++] = (piece){spool->size, size};
    }
    spool->size += size;
    return LEAT_OK;
}

// Pairs with the load below: who sees it sees all pieces.
void leati_spool_complete(leati_spool *spool)
{
    atomic_store_explicit(&spool->complete, true, memory_order_release);
}

bool leati_spool_is_complete(const leati_spool *spool)
{
    return atomic_load_explicit(&spool->complete, memory_order_acquire);
}

uint32_t leati_spool_piece(const leati_spool *spool, uint32_t channel, size_t index)
{
    const piece_list *list = &spool->channels[channel];
    return index < list->count ? list->items[index].size : 0;
}

leat_err leati_spool_read(const leati_spool *spool, uint32_t channel, size_t index, void *to)
{
    piece at = spool->channels[channel].items[index];
    char *data = to;
    while (at.size > 0) {
        ssize_t got = pread(spool->fd, data, at.size, (off_t)at.offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return LEAT_EIO;
        data += got;
        at.size -= (uint32_t)got;
        at.offset += (uint64_t)got;
    }
    return LEAT_OK;
}
