// SPDX-License-Identifier: Apache-2.0
// Which pieces of files there are to read, and who reads which: files are listed, cut into splits,
// and handed out one at a time to the subtasks that ask. Watched paths are listed again and again;
// what is new or has changed since is handed out too.
//
// Threading. create and destroy: one thread. All else: any thread. A later listing is done by
// whoever finds it due, outside the lock, so that the others go on reading meanwhile. Of the
// subtasks that sleep because there is nothing to read, one is the watchman: it alone sets an alarm
// for the next listing, and gives the office up when it gets a split.
// Life cycle. create → start → next, release, scan → destroy, when every sleeper has left.
// Bounds. One entry for each file that is listed and not yet read; with watching one for each that
// is there. Files that have gone are forgotten.
#ifndef LEATI_OPERATORS_FILE_SPLITS_H
#define LEATI_OPERATORS_FILE_SPLITS_H

#include "leat/operator.h"
#include "operators/file_list.h"

typedef struct leati_file_splits leati_file_splits;

// What is read and how it may be cut.
typedef struct leati_file_rules {
    const char *const *paths;
    size_t path_count;
    // How a file is compressed, by its path; a file is cut only when this says 0.
    int (*compression)(const struct leati_file_rules *rules, const char *path);
    bool whole;                // no file is cut
    int64_t watch_interval_ms; // 0: list once
} leati_file_rules;

typedef struct leati_file_split {
    leati_file *file;   // held until release
    int compression;    // what the rules say
    int64_t start, end; // INT64_MAX when the end is not known; not for streams and the compressed
} leati_file_split;

// One subtask as the splits know it. Embedded in its owner.
typedef struct leati_file_sleeper {
    leat_waker *waker;
    // Under the lock of the splits.
    bool sleeping;
    struct leati_file_sleeper *next;
} leati_file_sleeper;

typedef enum leati_split_result {
    LEATI_SPLIT_FOUND = 0,
    LEATI_SPLIT_NONE = 1,  // nothing ever again
    LEATI_SPLIT_WAIT = 2,  // nothing now; the sleeper will be woken
    LEATI_SPLIT_WATCH = 3, // nothing now, and the caller is the watchman
    LEATI_SPLIT_LOST = 4,  // not to be read: from `start` on the file has changed since it was
                           // listed; ask again when the split is released
} leati_split_result;

// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_file_splits_create(const leat_allocator *allocator,
                                                int64_t split_size_bytes,
                                                leati_file_splits **splits);
void leati_file_splits_destroy(leati_file_splits **splits);

// Lists the paths for the first time, unless a call before has done so. The rules are borrowed
// until destroy. `now_ns` is the clock's. LEAT_ENOENT, LEAT_EIO, LEAT_ENOMEM, LEAT_ETOOBIG,
// LEAT_ECANCELLED with the listing's `why`.
LEAT_MUST_USE leat_err leati_file_splits_start(leati_file_splits *splits,
                                               const leati_file_rules *rules,
                                               const leati_file_listing *listing, int64_t now_ns);
// Lists them once more if that is due. Errors as above; in particular a path that was named and has
// gone is one.
LEAT_MUST_USE leat_err leati_file_splits_scan(leati_file_splits *splits,
                                              const leati_file_listing *listing, int64_t now_ns);
// Whether a listing is due. Cheap.
bool leati_file_splits_due(const leati_file_splits *splits, int64_t now_ns);
// When the next listing is due; INT64_MAX when there is none, or one is being made (the watchman is
// woken at its end).
int64_t leati_file_splits_due_ns(const leati_file_splits *splits);

// A subtask that takes part; it leaves in its dispose hook.
void leati_file_splits_join(leati_file_splits *splits, leati_file_sleeper *sleeper);
void leati_file_splits_leave(leati_file_splits *splits, leati_file_sleeper *sleeper);

// The next split for one who has joined.
leati_split_result leati_file_splits_next(leati_file_splits *splits, leati_file_sleeper *sleeper,
                                          leati_file_split *split);
// The same for one who has not, and is nobody's watchman: LEATI_SPLIT_WAIT, too, before the first
// listing is done; nobody will be woken.
leati_split_result leati_file_splits_take(leati_file_splits *splits, leati_file_split *split);
// The next split if it is the whole rest of a file, of at most `most` bytes; and how many files are
// still to be handed out.
bool leati_file_splits_take_small(leati_file_splits *splits, int64_t most, leati_file_split *split);
size_t leati_file_splits_left(leati_file_splits *splits);
void leati_file_splits_release(leati_file_splits *splits, leati_file_split *split);

// A file that another process has listed, as one of this object's: what `like` says, whose
// references do not count, at a path of so many bytes. The last few are kept, so that the splits of
// one file share its marks. LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_file_splits_adopt(leati_file_splits *splits, const leati_file *like,
                                               const char *path, size_t path_size,
                                               leati_file **file);

// Where in a file a line begins: what was counted for one split saves the next ones of the same
// file from counting from its start. The last few are kept.
typedef struct leati_line_mark {
    int64_t offset;     // so many bytes were counted
    int64_t lines;      // LFs in them
    int64_t line_start; // behind the last of them
} leati_line_mark;
void leati_file_splits_mark(leati_file_splits *splits, const leati_file *file,
                            const leati_line_mark *mark);
// The one nearest before `offset`; zeros when none is known.
leati_line_mark leati_file_splits_nearest(leati_file_splits *splits, const leati_file *file,
                                          int64_t offset);

#endif
