// SPDX-License-Identifier: Apache-2.0
// Sinks that write files: a line for each record, as text, CSV or JSON.
//
// At parallelism 1 the path becomes a file. Above, it becomes a directory with the files 1 … n, one
// from each subtask. A path that exists already is refused when the first subtask opens, before
// anything is written, unless overwriting was asked for.
//
// What is written stands beside the path under a hidden name, `.NAME.leat-XXXXXXXX` in the same
// directory, and gets its own name when the whole job has come to its end, before the job counts as
// finished: whoever finds the path finds the whole output, also after a crash of the machine. The
// outputs of all file sinks of a job are looked at before the first of them gets its name: if one
// cannot, or its hidden file is not what was written, none does. When the job fails or is
// cancelled, the hidden file or directory is removed with the job (leat_job_destroy, leat_execute).
// Only a process that is killed leaves it behind.
//
// The streams that come back can be named and the like; they cannot be inputs.
#ifndef LEAT_FILE_SINK_H
#define LEAT_FILE_SINK_H

#include "leat/csv.h"
#include "leat/stream.h"

LEAT_BEGIN_DECLS

typedef enum leat_line_format {
    LEAT_LINE_TEXT = 0, // leat_record_text
    LEAT_LINE_CSV = 1,  // leat_csv_write, below a header in each file unless `csv` says no_header
    LEAT_LINE_JSON = 2, // leat_record_json
} leat_line_format;

// Zeros are the defaults. Copied, with all that it points to.
typedef struct leat_file_sink_options {
    leat_line_format format;
    const leat_csv_options *csv; // for LEAT_LINE_CSV; may be NULL
    // Replaces a regular file, or a directory that holds nothing but what such a sink writes
    // (regular files named 1, 2, …). Anything else is refused: other directories, links, devices.
    // What was there stays until the new output takes its place, and its mode.
    bool overwrite;
    // Leaves out the fsync of files and directory before and after the renaming: faster for small
    // outputs, but after a crash of the machine a file may be there without its contents.
    bool no_sync;
} leat_file_sink_options;

// Writes the records of `in` to `path`, which is copied; `options` may be NULL. Faults: no path or
// one without a file name, the path of another sink, a type that the format cannot write (CSV wants
// a struct). A path that is another sink's in a different spelling fails the job. Errors of the
// files fail the job with the file's name.
LEAT_API leat_stream *leat_write_file(leat_stream *in, const char *path,
                                      const leat_file_sink_options *options);
// The same with defaults: the text form of each record, CSV (`options` may be NULL), JSON lines.
LEAT_API leat_stream *leat_write_text(leat_stream *in, const char *path);
LEAT_API leat_stream *leat_write_csv(leat_stream *in, const char *path,
                                     const leat_csv_options *options);
LEAT_API leat_stream *leat_write_json(leat_stream *in, const char *path);

LEAT_END_DECLS

#endif
