// SPDX-License-Identifier: Apache-2.0
// Records out of files: text, CSV, JSON lines, and formats of the user's own.
//
// A path is a file, a directory (its regular files at any depth; names that start with "." or "_"
// are left out) or "-" for standard input, which one subtask reads, once. Files whose names end in
// ".gz" or ".zst" are decompressed. All subtasks share the work in splits of `source.split-size`
// bytes; what cannot be cut (compressed files, pipes, standard input, formats without a sync hook)
// is one split. So the records of one file keep their order only at parallelism 1.
//
// Input that is no record is treated as the source's policy for errors says; the message names
// file, line and column, or file and byte. What concerns a file as a whole (it is missing, broken
// while compressed, truncated while it is read, its header is wrong) fails the job.
#ifndef LEAT_FILE_SOURCE_H
#define LEAT_FILE_SOURCE_H

#include "leat/csv.h"
#include "leat/operator.h"
#include "leat/parse.h"
#include "leat/stream.h"

LEAT_BEGIN_DECLS

// The most that `source.record-max-size` can be, in bytes: no record is longer than that setting,
// which is 256 MiB unless it is set.
#define LEAT_FILE_RECORD_MAX ((size_t)1 << 30)

// --- formats ---

// What a format's reader makes of the bytes at hand.
typedef enum leat_file_result {
    LEAT_FILE_RECORD = 0, // `*consumed` bytes (at least 1) are a record, and it is filled in
    LEAT_FILE_NONE = 1,   // `*consumed` bytes (at least 1) are none: a blank line, a comment
    LEAT_FILE_MORE = 2,   // the record is not whole yet; not with `at_end`
    LEAT_FILE_BAD = 3,    // `*consumed` bytes (at least 1) should be a record and are not; `error`
                          // says why, and where in `text`
    LEAT_FILE_FAIL = 4, // the reader cannot go on (no memory, say); `error` says why. The job fails
} leat_file_result;

// The bytes at hand. They begin where a record begins, or the header.
typedef struct leat_file_text {
    const char *data;
    size_t size;    // bytes; at least 1 for `next`
    size_t scanned; // so many of them were there when the reader last answered LEAT_FILE_MORE for
                    // this same record; 0 when it was not asked yet
    int64_t offset; // where in the (decompressed) file they begin
    bool at_end;    // the file ends with them
} leat_file_text;

// How files are cut and read. One of the user's own is a static constant, or a struct that begins
// with this and lives as long as the environment (leat_env_alloc).
typedef struct leat_file_format leat_file_format;
struct leat_file_format {
    // For pictures and messages: "text", "csv".
    const char *name;
    // Whether it is text in UTF-8: a byte-order mark at the start of a file is skipped, one of
    // UTF-16 or UTF-32 is an error, and messages count lines and columns instead of bytes.
    bool utf8;
    // How long before a record's first byte the sign lies by which `sync` knows it, in bytes; 1 for
    // the end of the line before.
    size_t sync_bytes;
    // Whether the format can have records of this type; `error` (zeroed) says why not. Called when
    // the graph is built. [yes]
    leat_err (*check)(const leat_file_format *format, const leat_type *type,
                      leat_parse_error *error);
    // Makes the reader of one subtask, which the hooks below are given; `ctx` can be asked for the
    // output type and the allocator. On failure leat_fail should have said why. [NULL]
    leat_err (*create)(const leat_file_format *format, leat_ctx *ctx, void **reader);
    void (*destroy)(void *reader);
    // Takes what stands at the start of each file before its first record. Called for every split,
    // also for those that begin further on. LEAT_FILE_RECORD or LEAT_FILE_NONE: done, `*consumed`
    // bytes (or 0) were the header; LEAT_FILE_BAD fails the job. [files have none]
    leat_file_result (*header)(void *reader, const leat_file_text *text, size_t *consumed,
                               leat_parse_error *error);
    // Where splits may begin. A record belongs to the split that holds its first byte. `text`
    // begins `sync_bytes` before a split that does not begin its file (or at the file's start, or
    // behind its header, where that is nearer). True when the first record of the split begins at
    // text->data + *skip, which may be behind the text at hand; false when that cannot be told yet:
    // then `*skip` bytes are not needed again. [files are not cut]
    bool (*sync)(void *reader, const leat_file_text *text, size_t *skip);
    // The next record. `record` is of the output type; it is zeroed before the first call only, so
    // all of it is to be filled in. What it points to must be valid until the next call: the text,
    // memory of the reader. When a file is left before its end, after LEAT_FILE_MORE too, the next
    // call is that of `header` or has `scanned` 0. Required.
    leat_file_result (*next)(void *reader, const leat_file_text *text, size_t *consumed,
                             void *record, leat_parse_error *error);
};

// The sync hook of formats whose records begin after an LF, with sync_bytes = 1.
LEAT_API bool leat_file_sync_lines(void *reader, const leat_file_text *text, size_t *skip);

// Lines, as leat_read_text gives them; for records of leat_type_scalar(LEAT_STR). Static.
LEAT_API const leat_file_format *leat_text_format(void);
// Comma-separated values and their relatives into structs, by the names in the header; see csv.h.
// Files are cut only with `no_multiline`, as a line break may lie inside quotes otherwise. The
// options are copied and may be NULL. NULL, and a fault, when something is wrong with them.
LEAT_API const leat_file_format *leat_csv_format(leat_env *env, const leat_csv_options *options);
// JSON lines: one JSON text a line, into structs by the names of its members; blank lines are
// skipped; see parse.h. The options are copied and may be NULL. NULL, and a fault, as above.
LEAT_API const leat_file_format *leat_json_format(leat_env *env, const leat_json_options *options);

// --- sources ---

typedef enum leat_file_compression {
    LEAT_FILE_BY_NAME = 0, // by the ending of each file's name: ".gz", ".zst", others are plain
    LEAT_FILE_PLAIN = 1,   // as they are, whatever their names
    LEAT_FILE_GZIP = 2,    // all are gzip; standard input too
    LEAT_FILE_ZSTD = 3,
} leat_file_compression;

typedef struct leat_file_options {
    const char *const *paths; // copied
    size_t path_count;        // at least 1
    const leat_file_format *format;
    leat_file_compression compression;
    // Above 0: the paths are watched, looked at again each time that this many ms have passed, and
    // the source does not end. A file is read when it is first seen, whatever its times say, and
    // wholly again when there is another file under its path or its size has changed since; one
    // that is to be read once is best written under a name that starts with "." and renamed when it
    // is complete. A path that was given and has gone fails the job. 0: they are listed once.
    int64_t watch_interval_ms;
} leat_file_options;

// The records of files in any format.
LEAT_API leat_stream *leat_read_files(leat_env *env, const leat_file_options *options,
                                      const leat_type *type);
// The lines of text files: records of leat_type_scalar(LEAT_STR), `const leat_str *`. Lines end at
// LF; one CR before it is dropped; other bytes are passed as they are. The paths are copied.
LEAT_API leat_stream *leat_read_text_files(leat_env *env, const char *const *paths,
                                           size_t path_count);
LEAT_API leat_stream *leat_read_text(leat_env *env, const char *path);
// The records of CSV files as structs of `type`; the options are copied and may be NULL.
LEAT_API leat_stream *leat_read_csv(leat_env *env, const char *path, const leat_type *type,
                                    const leat_csv_options *options);
// The same for JSON lines.
LEAT_API leat_stream *leat_read_json(leat_env *env, const char *path, const leat_type *type,
                                     const leat_json_options *options);

LEAT_END_DECLS

#endif
