// SPDX-License-Identifier: Apache-2.0
// Takes one split of a text apart into lines.
//
// A line belongs to the split that holds its first byte, and is read to its end wherever that lies.
// So a split that does not begin the file looks from one byte before its start for the end of a
// line, no further than its own end, and begins behind it.
//
// Lines end at LF; one CR directly before it is dropped. What follows the last LF is a line too, if
// it is not empty.
//
// Threading. One thread. Bounds. A line is at most LEATI_LINE_MAX bytes; the buffer holds one line
// and one block.
#ifndef LEATI_OPERATORS_LINE_READER_H
#define LEATI_OPERATORS_LINE_READER_H

#include <string.h>

#include "leat/alloc.h"
#include "leat/error.h"
#include "operators/text_splits.h"

#define LEATI_LINE_MAX ((size_t)1 << 30)

typedef struct leati_line_reader {
    const leat_allocator *allocator;
    size_t block_size; // how much one read asks for
    leati_text_split split;
    int fd;
    char *buffer;
    size_t capacity;
    size_t at, filled; // the unread part of the buffer
    size_t scanned;    // of it, how much is known to hold no LF
    int64_t base;      // where in the file the buffer begins
    bool skipping;     // still looking for the first line
    bool ended;        // the file has no more bytes
    char why[512];     // after a failure
} leati_line_reader;

typedef enum leati_line {
    LEATI_LINE_FOUND = 0,
    LEATI_LINE_NEEDS_FILL = 1, // call fill, then ask again
    LEATI_LINE_END = 2,        // the split has no more lines
} leati_line;

// `block_size` is usually LEATI_LINE_BLOCK; tests use less. Allocates nothing.
enum { LEATI_LINE_BLOCK = 1 << 20 };
void leati_line_reader_init(leati_line_reader *reader, const leat_allocator *allocator,
                            size_t block_size);
// Closes the file and frees the buffer.
void leati_line_reader_fini(leati_line_reader *reader);

// Opens the split's file; the path is borrowed until close. On failure `why` names the file.
LEAT_MUST_USE leat_err leati_line_reader_open(leati_line_reader *reader,
                                              const leati_text_split *split);
void leati_line_reader_close(leati_line_reader *reader);

// Whether fill could read something, or see the end, without waiting. Always true for files.
bool leati_line_reader_ready(const leati_line_reader *reader);
// Reads one block. LEAT_EAGAIN when a stream has nothing now; LEAT_EIO, LEAT_ENOMEM, LEAT_ETOOBIG
// with `why` set.
LEAT_MUST_USE leat_err leati_line_reader_fill(leati_line_reader *reader);

// What next does when there is no whole line in the buffer.
leati_line leati_line_reader_next_slow(leati_line_reader *reader, leat_str *line);

// The next line, valid until the next fill or close.
static inline leati_line leati_line_reader_next(leati_line_reader *reader, leat_str *line)
{
    size_t from = reader->at + reader->scanned;
    const char *lf = NULL;
    if (LEAT_LIKELY(!reader->skipping && reader->filled > from &&
                    reader->base + (int64_t)reader->at < reader->split.end))
        lf = memchr(reader->buffer + from, '\n', reader->filled - from);
    if (LEAT_UNLIKELY(!lf))
        return leati_line_reader_next_slow(reader, line);
    line->data = reader->buffer + reader->at;
    line->size = (size_t)(lf - line->data);
    reader->at += line->size + 1;
    reader->scanned = 0;
    line->size -= line->size > 0 && lf[-1] == '\r';
    return LEATI_LINE_FOUND;
}

#endif
