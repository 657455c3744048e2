// SPDX-License-Identifier: Apache-2.0
#include "operators/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

void leati_line_reader_init(leati_line_reader *reader, const leat_allocator *allocator,
                            size_t block_size)
{
    *reader = (leati_line_reader){.allocator = allocator, .block_size = block_size, .fd = -1};
}

void leati_line_reader_fini(leati_line_reader *reader)
{
    leati_line_reader_close(reader);
    leati_free(reader->allocator, reader->buffer);
    reader->buffer = NULL;
    reader->capacity = 0;
}

leat_err leati_line_reader_open(leati_line_reader *reader, const leati_text_split *split)
{
    leati_line_reader_close(reader);
    reader->split = *split;
    if (split->stream)
        reader->split.end = INT64_MAX;
    reader->skipping = split->start > 0;
    reader->base = split->start - reader->skipping;
    reader->at = reader->filled = reader->scanned = 0;
    reader->ended = false;
    if (strcmp(split->path, "-") == 0) {
        reader->fd = STDIN_FILENO;
        return LEAT_OK;
    }
    // Without O_NONBLOCK opening a pipe would wait for its writer.
    reader->fd = open(split->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (reader->fd < 0)
        return leati_text_error(errno, "cannot open", split->path, reader->why, sizeof reader->why);
    return LEAT_OK;
}

void leati_line_reader_close(leati_line_reader *reader)
{
    if (reader->fd >= 0 && strcmp(reader->split.path, "-") != 0)
        close(reader->fd);
    reader->fd = -1;
    // What an unusually long line needed is given back.
    if (reader->capacity > 4 * reader->block_size) {
        leati_free(reader->allocator, reader->buffer);
        reader->buffer = NULL;
        reader->capacity = 0;
    }
}

bool leati_line_reader_ready(const leati_line_reader *reader)
{
    if (!reader->split.stream || reader->ended)
        return true;
    struct pollfd one = {.fd = reader->fd, .events = POLLIN};
    return poll(&one, 1, 0) != 0;
}

// Makes room for a block behind the unread part.
static leat_err make_room(leati_line_reader *reader)
{
    size_t unread = reader->filled - reader->at;
    if (reader->at) {
        memmove(reader->buffer, reader->buffer + reader->at, unread);
        reader->base += (int64_t)reader->at;
        reader->at = 0;
        reader->filled = unread;
    }
    if (unread > LEATI_LINE_MAX) {
        snprintf(reader->why, sizeof reader->why,
                 "%s: the line at byte %" PRId64 " is longer than %zu bytes", reader->split.path,
                 reader->base, LEATI_LINE_MAX);
        return LEAT_ETOOBIG;
    }
    size_t needed = unread + reader->block_size;
    if (needed <= reader->capacity)
        return LEAT_OK;
    size_t capacity = needed > 2 * reader->capacity ? needed : 2 * reader->capacity;
    char *buffer = leati_realloc(reader->allocator, reader->buffer, capacity);
    if (!buffer) {
        snprintf(reader->why, sizeof reader->why,
                 "%s: no memory for the line at byte %" PRId64 ", which is longer than %zu bytes",
                 leati_text_name(reader->split.path), reader->base, unread);
        return LEAT_ENOMEM;
    }
    reader->buffer = buffer;
    reader->capacity = capacity;
    return LEAT_OK;
}

// The file had at least `split.end` bytes when it was listed.
static leat_err check_end(leati_line_reader *reader)
{
    struct stat status;
    int64_t offset = reader->base + (int64_t)reader->filled;
    if (reader->split.stream || offset >= reader->split.end)
        return LEAT_OK;
    // Some files of /sys claim more than they ever give; they end where they end.
    if (fstat(reader->fd, &status) == 0 && status.st_size >= reader->split.end)
        return LEAT_OK;
    snprintf(reader->why, sizeof reader->why,
             "%s: ended at byte %" PRId64 ": it was truncated while it was read",
             reader->split.path, offset);
    return LEAT_EIO;
}

leat_err leati_line_reader_fill(leati_line_reader *reader)
{
    if (reader->ended)
        return LEAT_OK;
    leat_err err = make_room(reader);
    if (err != LEAT_OK)
        return err;
    char *to = reader->buffer + reader->filled;
    size_t room = reader->block_size;
    ssize_t got;
    do {
        got = reader->split.stream
                  ? read(reader->fd, to, room)
                  : pread(reader->fd, to, room, reader->base + (int64_t)reader->filled);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return LEAT_EAGAIN;
    if (got < 0)
        return leati_text_error(errno, "cannot read", reader->split.path, reader->why,
                                sizeof reader->why);
    if (got > 0) {
        reader->filled += (size_t)got;
        return LEAT_OK;
    }
    reader->ended = true;
    return check_end(reader);
}

// Drops what belongs to a line of the split before. Only an LF before the split's last byte can
// begin a line of this split, so nothing behind it is looked at.
static leati_line skip(leati_line_reader *reader)
{
    int64_t last = reader->split.end - 1;
    int64_t limit = reader->base + (int64_t)reader->filled;
    bool all = limit >= last;
    size_t upto = all ? (size_t)(last - reader->base) : reader->filled;
    const char *lf =
        upto > reader->at ? memchr(reader->buffer + reader->at, '\n', upto - reader->at) : NULL;
    if (lf) {
        reader->at = (size_t)(lf - reader->buffer) + 1;
        reader->skipping = false;
        return LEATI_LINE_FOUND;
    }
    if (all || reader->ended)
        return LEATI_LINE_END;
    reader->at = reader->filled;
    return LEATI_LINE_NEEDS_FILL;
}

leati_line leati_line_reader_next_slow(leati_line_reader *reader, leat_str *line)
{
    if (reader->skipping) {
        leati_line skipped = skip(reader);
        return skipped == LEATI_LINE_FOUND ? leati_line_reader_next(reader, line) : skipped;
    }
    if (reader->base + (int64_t)reader->at >= reader->split.end)
        return LEATI_LINE_END;
    reader->scanned = reader->filled - reader->at;
    if (!reader->ended)
        return LEATI_LINE_NEEDS_FILL;
    if (reader->scanned == 0)
        return LEATI_LINE_END;
    *line = (leat_str){.data = reader->buffer + reader->at, .size = reader->scanned};
    reader->at = reader->filled;
    reader->scanned = 0;
    return LEATI_LINE_FOUND;
}
