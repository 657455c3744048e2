// SPDX-License-Identifier: Apache-2.0
// Where in a file something is. Lines are counted only when a message needs them, except in what
// cannot be read a second time: pipes and compressed files.
#include "operators/file_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { CHUNK_BYTES = 64 * 1024 };

static void count(leati_line_mark *mark, const char *data, size_t size)
{
    const char *at = data, *end = data + size, *lf;
    while (at < end && (lf = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at = lf + 1;
        mark->lines++;
        mark->line_start = mark->offset + (at - data);
    }
    mark->offset += (int64_t)size;
}

// What lies before the buffer. Where it cannot be read any more, the count stays behind.
static void count_in_file(leati_file_reader *reader, int64_t offset)
{
    leati_line_mark *mark = &reader->mark;
    char *chunk = leati_alloc(reader->allocator, CHUNK_BYTES);
    while (chunk && mark->offset < offset) {
        int64_t left = offset - mark->offset;
        ssize_t got =
            pread(reader->fd, chunk, left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES, mark->offset);
        if (got <= 0)
            break;
        count(mark, chunk, (size_t)got);
    }
    leati_free(reader->allocator, chunk);
    if (mark->offset < offset)
        mark->offset = offset;
}

void leati_file_count_lines(leati_file_reader *reader, int64_t offset)
{
    leati_line_mark *mark = &reader->mark;
    if (mark->offset < reader->base && reader->seekable)
        count_in_file(reader, offset < reader->base ? offset : reader->base);
    if (mark->offset < offset && mark->offset >= reader->base)
        count(mark, reader->buffer + (mark->offset - reader->base),
              (size_t)(offset - mark->offset));
}

// Characters from the start of the line, as far as that is at hand, else bytes.
static int64_t column(const leati_file_reader *reader, int64_t offset)
{
    int64_t from = reader->mark.line_start;
    if (from < reader->base)
        return offset - from + 1;
    const char *at = reader->buffer + (from - reader->base), *end = at + (offset - from);
    int64_t characters = 1;
    for (; at < end; at++)
        characters += ((unsigned char)*at & 0xc0) != 0x80;
    return characters;
}

void leati_file_reader_place(leati_file_reader *reader, char *buffer, size_t size)
{
    const leati_file *file = reader->split.file;
    const char *name = leati_file_name(file->path);
    int64_t offset = reader->bad_offset;
    if (!reader->format->utf8) {
        snprintf(buffer, size, "%.200s, byte %" PRId64, name, offset);
        return;
    }
    bool first = reader->mark.offset == 0;
    if (first && reader->seekable && reader->splits) {
        leati_line_mark nearest = leati_file_splits_nearest(reader->splits, file, offset);
        if (nearest.offset > 0)
            reader->mark = nearest;
    }
    // An error may lie before the one that was reported last, in the same line.
    if (reader->mark.offset > offset)
        offset = reader->mark.offset;
    leati_file_count_lines(reader, offset);
    if (first && reader->seekable && reader->splits)
        leati_file_splits_mark(reader->splits, file, &reader->mark);
    snprintf(buffer, size, "%.200s, line %" PRId64 ", column %" PRId64, name,
             reader->mark.lines + 1, column(reader, offset));
}
