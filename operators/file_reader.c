// SPDX-License-Identifier: Apache-2.0
#include "operators/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/config.h"
#include "operators/file_place.h"
#include "operators/folder.h"

// PACKED: how much is read of a compressed file at once. HEAD: how much of a file's start, for the
// header that a split further on needs. TAIL: how much behind its end a split reads at first to
// find the end of its last record.
enum { PACKED_BYTES = 64 * 1024, HEAD_BYTES = 4096, TAIL_BYTES = 1024, BYTE_ORDER_MARK_MAX = 4 };

void leati_file_reader_init(leati_file_reader *reader, const leat_allocator *allocator,
                            const leat_file_format *format, void *format_reader, size_t block_size)
{
    *reader = (leati_file_reader){.allocator = allocator,
                                  .block_size = block_size,
                                  .record_max = LEAT_FILE_RECORD_MAX,
                                  .format = format,
                                  .format_reader = format_reader,
                                  .is_text = format == leat_text_format(),
                                  .fd = -1};
}

void leati_file_reader_fini(leati_file_reader *reader)
{
    leati_file_reader_close(reader);
    leati_free(reader->allocator, reader->buffer);
    leati_free(reader->allocator, reader->packed);
    reader->buffer = NULL;
    reader->packed = NULL;
    reader->capacity = 0;
}

static const char *name_of(const leati_file_reader *reader)
{
    return leati_file_name(reader->split.file->path);
}

static leat_err fail(leati_file_reader *reader, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);

// Writes `why`, with the file's name ahead.
static leat_err fail(leati_file_reader *reader, leat_err err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(reader->why, sizeof reader->why, "%.200s: %s", name_of(reader), text);
    return err;
}

static leat_err fail_errno(leati_file_reader *reader, const char *what)
{
    return leati_file_why(errno, what, reader->split.file->path, reader->why, sizeof reader->why);
}

// To be called whenever the stage, the split or what is in the buffer has changed.
static void set_limit(leati_file_reader *reader)
{
    int64_t left = reader->end - reader->base;
    if (reader->stage != LEATI_STAGE_RECORDS || left <= 0)
        reader->limit = 0;
    else
        reader->limit = left < (int64_t)reader->filled ? (size_t)left : reader->filled;
}

// --- opening ---

// Whether the file is the one that was listed.
static leat_err check_identity(leati_file_reader *reader)
{
    const leati_file *file = reader->split.file;
    leati_file_id id;
    // Files of /proc get a new inode now and then.
    if (file->stream || file->foreign)
        return LEAT_OK;
    errno = leati_file_identify(reader->fd, &id);
    if (errno)
        return fail_errno(reader, "cannot read");
    if (!leati_file_same(&id, &file->id))
        return fail(reader, LEAT_ESTATE, "another file has taken its place since it was listed");
    return LEAT_OK;
}

static leat_err open_file(leati_file_reader *reader)
{
    const leati_file *file = reader->split.file;
    reader->owns_fd = strcmp(file->path, "-") != 0;
    if (!reader->owns_fd) {
        reader->fd = STDIN_FILENO;
        return LEAT_OK;
    }
    // Without O_NONBLOCK opening a pipe would wait for its writer.
    reader->fd = leati_folder_open_file(reader->folder, file->path,
                                        O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (reader->fd >= 0)
        return check_identity(reader);
    // A directory or a link on the way that has become something else: the file has gone.
    bool gone = errno == ENOTDIR || errno == ELOOP;
    leat_err err = fail_errno(reader, "cannot open");
    return gone ? LEAT_ENOENT : err;
}

static leat_err open_inflate(leati_file_reader *reader)
{
    if (!reader->packed)
        reader->packed = leati_alloc(reader->allocator, PACKED_BYTES);
    reader->unpacked = (leat_bytes){.data = reader->packed, .size = 0};
    leat_err err =
        reader->packed
            ? leati_inflate_create(reader->allocator, (leati_compression)reader->split.compression,
                                   &reader->inflate)
            : LEAT_ENOMEM;
    return err ? fail(reader, err, "no memory for decompressing") : LEAT_OK;
}

// Where reading begins: at the file's start as long as there is a header to be read.
static void set_start(leati_file_reader *reader)
{
    int64_t start = reader->split.start, lookback = (int64_t)reader->format->sync_bytes;
    bool from_start = start == 0 || reader->format->header;
    reader->base = from_start || start < lookback ? 0 : start - lookback;
    reader->stage = from_start ? LEATI_STAGE_START : LEATI_STAGE_SYNC;
    reader->at = reader->filled = reader->scanned = 0;
    reader->ended = false;
    reader->mark = (leati_line_mark){.offset = 0};
    set_limit(reader);
}

leat_err leati_file_reader_open(leati_file_reader *reader, const leati_file_split *split)
{
    leati_file_reader_close(reader);
    reader->split = *split;
    reader->end = split->end;
    reader->seekable = !split->file->stream && !split->compression;
    set_start(reader);
    leat_err err = open_file(reader);
    if (err == LEAT_OK && split->compression)
        err = open_inflate(reader);
    if (err != LEAT_OK)
        leati_file_reader_close(reader);
    return err;
}

void leati_file_reader_close(leati_file_reader *reader)
{
    if (reader->fd >= 0 && reader->owns_fd)
        close(reader->fd);
    reader->fd = -1;
    leati_inflate_destroy(&reader->inflate);
    // What an unusually long record needed is given back.
    if (reader->capacity > 4 * reader->block_size) {
        leati_free(reader->allocator, reader->buffer);
        reader->buffer = NULL;
        reader->capacity = 0;
    }
}

// --- reading ---

bool leati_file_reader_ready(const leati_file_reader *reader)
{
    if (!reader->split.file->stream || reader->ended || reader->unpacked.size > 0)
        return true;
    struct pollfd one = {.fd = reader->fd, .events = POLLIN};
    return poll(&one, 1, 0) != 0;
}

// Drops what was consumed. Lines of what cannot be read again are counted first.
static void drop_consumed(leati_file_reader *reader)
{
    size_t unread = reader->filled - reader->at;
    if (reader->format->utf8 && !reader->seekable)
        leati_file_count_lines(reader, reader->base + (int64_t)reader->at);
    memmove(reader->buffer, reader->buffer + reader->at, unread);
    reader->base += (int64_t)reader->at;
    reader->at = 0;
    reader->filled = unread;
}

static leat_err fail_too_long(leati_file_reader *reader)
{
    char place[300], limit[32];
    reader->bad_offset = reader->base;
    leati_file_reader_place(reader, place, sizeof place);
    leati_config_print(LEATI_CONFIG_SOURCE_RECORD_MAX, (int64_t)reader->record_max, limit,
                       sizeof limit);
    snprintf(reader->why, sizeof reader->why,
             "%s: the record that begins here is longer than %s, the source.record-max-size", place,
             limit);
    return LEAT_ETOOBIG;
}

// Makes room for a block behind the unread part. The buffer grows by half, so that a long record is
// copied a few times only, and no further than the longest record needs.
static leat_err make_room(leati_file_reader *reader)
{
    if (reader->at)
        drop_consumed(reader);
    size_t unread = reader->filled;
    if (unread > reader->record_max)
        return fail_too_long(reader);
    size_t needed = unread + reader->block_size;
    if (needed <= reader->capacity)
        return LEAT_OK;
    size_t capacity = reader->capacity + reader->capacity / 2, most = reader->record_max;
    most += reader->block_size;
    capacity = capacity < needed ? needed : capacity < most ? capacity : most;
    char *buffer = leati_realloc(reader->allocator, reader->buffer, capacity);
    if (!buffer)
        return fail(reader, LEAT_ENOMEM,
                    "no memory for the record at byte %" PRId64 ", which is longer than %zu bytes",
                    reader->base, unread);
    reader->buffer = buffer;
    reader->capacity = capacity;
    return LEAT_OK;
}

// The file had at least `end` bytes when it was listed.
static leat_err check_end(leati_file_reader *reader)
{
    struct stat status;
    int64_t offset = reader->base + (int64_t)reader->filled;
    if (!reader->seekable || offset >= reader->end)
        return LEAT_OK;
    // Some files of /sys claim more than they ever give; they end where they end.
    if (fstat(reader->fd, &status) == 0 && status.st_size >= reader->end)
        return LEAT_OK;
    return fail(reader, LEAT_ESTATE,
                "ended at byte %" PRId64 ": it was truncated while it was read", offset);
}

// LEAT_EAGAIN; LEAT_EIO with `why`.
static leat_err read_some(leati_file_reader *reader, void *to, size_t room, size_t *size)
{
    ssize_t got;
    do {
        got = reader->seekable ? pread(reader->fd, to, room, reader->base + (int64_t)reader->filled)
                               : read(reader->fd, to, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? LEAT_EAGAIN
                                                       : fail_errno(reader, "cannot read");
    *size = (size_t)got;
    return LEAT_OK;
}

static leat_err fill_plain(leati_file_reader *reader, size_t room)
{
    size_t got = 0;
    leat_err err = read_some(reader, reader->buffer + reader->filled, room, &got);
    if (err != LEAT_OK)
        return err;
    reader->filled += got;
    reader->ended = got == 0;
    return reader->ended ? check_end(reader) : LEAT_OK;
}

// At most one block is read and one is unpacked, so that a turn stays short.
static leat_err fill_inflate(leati_file_reader *reader, size_t room)
{
    char why[256];
    uint8_t *to = (uint8_t *)reader->buffer + reader->filled, *begun = to;
    leat_err err =
        leati_inflate_run(reader->inflate, &reader->unpacked, &to, &room, why, sizeof why);
    if (err == LEAT_OK && to == begun && reader->unpacked.size == 0) {
        size_t got = 0;
        err = read_some(reader, reader->packed, PACKED_BYTES, &got);
        if (err != LEAT_OK)
            return err;
        reader->unpacked = (leat_bytes){.data = reader->packed, .size = got};
        reader->ended = got == 0;
        err = reader->ended ? leati_inflate_end(reader->inflate, why, sizeof why)
                            : leati_inflate_run(reader->inflate, &reader->unpacked, &to, &room, why,
                                                sizeof why);
    }
    reader->filled += (size_t)(to - begun);
    return err == LEAT_OK ? LEAT_OK : fail(reader, err, "%s", why);
}

// How much to read at once: a block, but of a split no more than it is likely to need. Behind its
// end it needs the rest of one record, which is probably short; the longer that turns out to be,
// the more is read.
static size_t wanted(const leati_file_reader *reader)
{
    size_t room = reader->block_size, rest = reader->filled - reader->at;
    if (reader->stage <= LEATI_STAGE_HEADER && reader->split.start > 0)
        return room < HEAD_BYTES ? room : HEAD_BYTES;
    if (!reader->seekable)
        return room;
    int64_t left = reader->end - reader->base - (int64_t)reader->filled;
    if (left <= 0 && rest > TAIL_BYTES)
        return rest < room ? rest : room;
    int64_t needed = (left > 0 ? left : 0) + TAIL_BYTES;
    return needed < (int64_t)room ? (size_t)needed : room;
}

leat_err leati_file_reader_fill(leati_file_reader *reader)
{
    if (reader->ended)
        return LEAT_OK;
    leat_err err = make_room(reader);
    if (err != LEAT_OK)
        return err;
    size_t room = wanted(reader);
    err = reader->inflate ? fill_inflate(reader, room) : fill_plain(reader, room);
    set_limit(reader);
    return err;
}

// --- what stands before the records ---

static leati_read failed(leati_file_reader *reader, leat_err err)
{
    reader->failure = err;
    return LEATI_READ_FAIL;
}

static void see(leati_file_reader *reader, size_t size)
{
    reader->text = (leat_file_text){.data = reader->buffer + reader->at,
                                    .size = size,
                                    .scanned = reader->scanned < size ? reader->scanned : size,
                                    .offset = reader->base + (int64_t)reader->at,
                                    .at_end = reader->ended};
}

// Whether there are enough bytes to tell what mark, if any, the file begins with. What cannot be
// one is not waited for: somebody may be typing.
static bool can_tell_mark(const leati_file_reader *reader)
{
    if (reader->ended || reader->filled >= BYTE_ORDER_MARK_MAX)
        return true;
    if (reader->filled == 0)
        return false;
    unsigned char first = (unsigned char)reader->buffer[0];
    return first != 0xef && first != 0xfe && first != 0xff && first != 0;
}

static leati_read pass_mark(leati_file_reader *reader, leat_parse_error *error)
{
    size_t skip = 0;
    if (reader->format->utf8) {
        if (!can_tell_mark(reader))
            return LEATI_READ_FILL;
        leat_err err = leat_text_start(reader->buffer, reader->filled, &skip, error);
        if (err != LEAT_OK)
            return failed(reader, fail(reader, err, "%s", error->text));
    }
    reader->at = skip;
    reader->mark.line_start = (int64_t)skip;
    reader->stage = LEATI_STAGE_HEADER;
    return LEATI_READ_NONE;
}

// Goes from the header to where the split's records may begin.
static void leave_header(leati_file_reader *reader)
{
    int64_t here = reader->base + (int64_t)reader->at;
    reader->scanned = 0;
    if (here >= reader->split.start) {
        reader->stage = LEATI_STAGE_RECORDS;
        set_limit(reader);
        return;
    }
    int64_t from = reader->split.start - (int64_t)reader->format->sync_bytes;
    reader->base = from > here ? from : here;
    reader->at = reader->filled = 0;
    reader->ended = false;
    reader->stage = LEATI_STAGE_SYNC;
}

static leati_read read_header(leati_file_reader *reader, leat_parse_error *error)
{
    if (!reader->format->header) {
        leave_header(reader);
        return LEATI_READ_NONE;
    }
    if (reader->at == reader->filled && !reader->ended)
        return LEATI_READ_FILL;
    size_t consumed = 0, size = reader->filled - reader->at;
    see(reader, size);
    error->text[0] = 0;
    leat_file_result result =
        reader->format->header(reader->format_reader, &reader->text, &consumed, error);
    if (result == LEAT_FILE_MORE && !reader->ended) {
        reader->scanned = size;
        return LEATI_READ_FILL;
    }
    if ((result == LEAT_FILE_RECORD || result == LEAT_FILE_NONE) && consumed <= size) {
        reader->at += consumed;
        leave_header(reader);
        return LEATI_READ_NONE;
    }
    if (result != LEAT_FILE_BAD)
        return failed(reader, fail(reader, result == LEAT_FILE_FAIL ? LEAT_ENOMEM : LEAT_EINVAL,
                                   "reading the header: %s",
                                   error->text[0] ? error->text : "the format answers nonsense"));
    if (!error->text[0])
        snprintf(error->text, sizeof error->text,
                 "the format \"%.80s\" finds no header here, and does not say why",
                 reader->format->name);
    char place[300];
    reader->bad_offset =
        reader->text.offset + (int64_t)(error->offset < size ? error->offset : size);
    leati_file_reader_place(reader, place, sizeof place);
    snprintf(reader->why, sizeof reader->why, "%s: %s", place, error->text);
    return failed(reader, LEAT_ECORRUPT);
}

// Only what lies before the split's last byte can tell that a record begins in the split.
static leati_read synchronise(leati_file_reader *reader)
{
    int64_t here = reader->base + (int64_t)reader->at, last = reader->end - 1;
    size_t size = reader->filled - reader->at, skip = 0;
    bool all = here + (int64_t)size >= last;
    if (all)
        size = here < last ? (size_t)(last - here) : 0;
    see(reader, size);
    if (reader->format->sync(reader->format_reader, &reader->text, &skip)) {
        if (skip > (size_t)(reader->end - here))
            return LEATI_READ_END;
        reader->stage = LEATI_STAGE_RECORDS;
        reader->scanned = 0;
        if (skip <= reader->filled - reader->at) {
            reader->at += skip;
        } else {
            reader->base = here + (int64_t)skip;
            reader->at = reader->filled = 0;
        }
        set_limit(reader);
        return LEATI_READ_NONE;
    }
    reader->scanned = size;
    if (skip > size)
        return failed(reader, fail(reader, LEAT_EINVAL, "the format skips more than there is"));
    reader->at += skip;
    reader->scanned -= skip;
    return all || reader->ended ? LEATI_READ_END : LEATI_READ_FILL;
}

leati_read leati_file_reader_next_slow(leati_file_reader *reader, void *record,
                                       leat_parse_error *error)
{
    switch (reader->stage) {
    case LEATI_STAGE_START:
        return pass_mark(reader, error);
    case LEATI_STAGE_HEADER:
        return read_header(reader, error);
    case LEATI_STAGE_SYNC:
        return synchronise(reader);
    case LEATI_STAGE_RECORDS:
        break;
    }
    bool over = reader->base + (int64_t)reader->at >= reader->end || reader->ended;
    return over ? LEATI_READ_END : LEATI_READ_FILL;
}

leati_read leati_file_reader_answer(leati_file_reader *reader, leat_file_result result,
                                    size_t consumed, leat_parse_error *error)
{
    size_t size = reader->text.size;
    if (result == LEAT_FILE_MORE && !reader->ended) {
        reader->scanned = size;
        return LEATI_READ_FILL;
    }
    if (!error->text[0])
        snprintf(error->text, sizeof error->text, "the format \"%.80s\" %s, and does not say why",
                 reader->format->name,
                 result == LEAT_FILE_BAD ? "finds no record here" : "cannot go on");
    if (result == LEAT_FILE_FAIL)
        return failed(reader, fail(reader, LEAT_ENOMEM, "at byte %" PRId64 ": %s",
                                   reader->text.offset, error->text));
    if ((result != LEAT_FILE_NONE && result != LEAT_FILE_BAD) || consumed == 0 || consumed > size)
        return failed(reader, fail(reader, LEAT_EINVAL,
                                   "at byte %" PRId64 ": the format \"%s\" answers nonsense",
                                   reader->text.offset, reader->format->name));
    reader->at += consumed;
    reader->scanned = 0;
    if (result == LEAT_FILE_NONE)
        return LEATI_READ_NONE;
    reader->raw = (leat_str){.data = reader->text.data, .size = consumed};
    if (reader->format->utf8 && reader->raw.data[consumed - 1] == '\n')
        reader->raw.size -= 1 + (consumed > 1 && reader->raw.data[consumed - 2] == '\r');
    reader->bad_offset =
        reader->text.offset + (int64_t)(error->offset < consumed ? error->offset : consumed);
    return LEATI_READ_BAD;
}
