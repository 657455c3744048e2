// SPDX-License-Identifier: Apache-2.0
// Takes one split of a file apart into records, by its format.
//
// A record belongs to the split that holds its first byte, and is read to its end wherever that
// lies. A split that does not begin its file is searched for the first record that begins in it, no
// further than its own end.
//
// The reader's bytes lie in one buffer, and the format sees all that are there: records may point
// into it until the next fill. What has been consumed is dropped when a fill needs the room.
//
// Threading. One thread. Bounds. A record is at most `record_max` bytes; the buffer holds one
// record and one block, and is at most half larger than what it has been needed for.
#ifndef LEATI_OPERATORS_FILE_READER_H
#define LEATI_OPERATORS_FILE_READER_H

#include "leat/file_source.h"
#include "operators/file_inflate.h"
#include "operators/file_splits.h"
#include "operators/file_text.h"

typedef enum leati_file_stage {
    LEATI_STAGE_START = 0,  // the byte-order mark comes next
    LEATI_STAGE_HEADER = 1, // then the header
    LEATI_STAGE_SYNC = 2,   // then, in a split that does not begin the file, the first record
    LEATI_STAGE_RECORDS = 3,
} leati_file_stage;

// What next has found.
typedef enum leati_read {
    LEATI_READ_RECORD = 0,
    LEATI_READ_NONE = 1, // no record here; ask again
    LEATI_READ_FILL = 2, // call fill, then ask again
    LEATI_READ_BAD = 3,  // `raw` is no record; the error says why; ask again for the next
    LEATI_READ_END = 4,  // the split has no more
    LEATI_READ_FAIL = 5, // it cannot be read: `failure` and `why`
} leati_read;

typedef struct leati_file_reader {
    const leat_allocator *allocator;
    size_t block_size; // bytes that one read asks for at most
    size_t record_max; // bytes; LEAT_FILE_RECORD_MAX unless the owner sets it after init
    const leat_file_format *format;
    void *format_reader;
    bool is_text; // the format is leat_text_format(): its lines are found without calls
    leati_file_splits *splits; // for the marks; may be NULL
    const char *folder;        // that relative paths belong to; NULL: the process's
    leati_file_split split;
    int64_t end; // of the split, INT64_MAX when that is the file's
    int fd;
    bool owns_fd; // it is not standard input's
    leati_file_stage stage;
    bool seekable; // read at positions
    bool ended;    // the file has no more bytes
    leat_file_text text;
    char *buffer;
    size_t capacity;
    size_t at, filled; // the unread part of the buffer
    size_t limit;      // records may begin before it: 0 while something else comes first
    size_t scanned;    // of it, how much the format has seen when it asked for more
    int64_t base;      // where in the (decompressed) file the buffer begins
    // Compressed files.
    leati_inflate *inflate;
    uint8_t *packed;     // a block of what is still compressed
    leat_bytes unpacked; // the part of it that comes next
    // Counted lines.
    leati_line_mark mark;
    // After LEATI_READ_BAD.
    leat_str raw;
    int64_t bad_offset;
    // After a failure.
    leat_err failure;
    char why[768];
} leati_file_reader;

enum { LEATI_FILE_BLOCK = 1 << 20 };

// `format_reader` is what the format's create hook has made; both are borrowed. `block_size` is
// usually LEATI_FILE_BLOCK; tests use less. Allocates nothing.
void leati_file_reader_init(leati_file_reader *reader, const leat_allocator *allocator,
                            const leat_file_format *format, void *format_reader, size_t block_size);
// Closes the file and frees the buffer.
void leati_file_reader_fini(leati_file_reader *reader);

// Opens the split's file; the split is copied, its file borrowed until close. On failure `why`
// names the file; LEAT_ENOENT when it has gone, LEAT_ESTATE when another stands in its place.
LEAT_MUST_USE leat_err leati_file_reader_open(leati_file_reader *reader,
                                              const leati_file_split *split);
void leati_file_reader_close(leati_file_reader *reader);

// Whether fill could read something, or see the end, without waiting. Always true for files.
bool leati_file_reader_ready(const leati_file_reader *reader);
// Reads one block, or some of it. LEAT_EAGAIN when a stream has nothing now; LEAT_EIO, LEAT_ENOMEM,
// LEAT_ETOOBIG, LEAT_ECORRUPT with `why` set; LEAT_ESTATE, too, when the file has become shorter.
LEAT_MUST_USE leat_err leati_file_reader_fill(leati_file_reader *reader);

// What next does when it is not just a record at hand.
leati_read leati_file_reader_next_slow(leati_file_reader *reader, void *record,
                                       leat_parse_error *error);
// The format has answered something else than a record.
leati_read leati_file_reader_answer(leati_file_reader *reader, leat_file_result result,
                                    size_t consumed, leat_parse_error *error);

// The next record. What it points to is valid until the next call of any function here.
static inline leati_read leati_file_reader_next(leati_file_reader *reader, void *record,
                                                leat_parse_error *error)
{
    if (LEAT_UNLIKELY(reader->at >= reader->limit))
        return leati_file_reader_next_slow(reader, record, error);
    if (reader->is_text) {
        size_t taken = leati_text_line(reader->buffer + reader->at, reader->filled - reader->at,
                                       reader->scanned, record);
        if (LEAT_LIKELY(taken > 0)) {
            reader->at += taken;
            reader->scanned = 0;
            return LEATI_READ_RECORD;
        }
    }
    leat_file_text *text = &reader->text;
    text->data = reader->buffer + reader->at;
    text->size = reader->filled - reader->at;
    text->scanned = reader->scanned;
    text->offset = reader->base + (int64_t)reader->at;
    text->at_end = reader->ended;
    size_t consumed = 0;
    leat_file_result result =
        reader->format->next(reader->format_reader, text, &consumed, record, error);
    if (LEAT_UNLIKELY(result != LEAT_FILE_RECORD || consumed - 1 >= text->size))
        return leati_file_reader_answer(reader, result, consumed, error);
    reader->at += consumed;
    reader->scanned = 0;
    return LEATI_READ_RECORD;
}

// Writes where LEATI_READ_BAD was, "FILE, line 3, column 5" or "FILE, byte 100", as snprintf does.
// Reads the file from the nearest place before whose line is known.
void leati_file_reader_place(leati_file_reader *reader, char *buffer, size_t size);

#endif
