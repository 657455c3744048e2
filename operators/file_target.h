// SPDX-License-Identifier: Apache-2.0
// A file, or a directory of files, that is written aside and then put in its place.
//
// Everything is done relative to the parent directory as it was found by create, so that it does
// not matter whether the process changes its own directory meanwhile.
//
// The end of several targets that belong together: prepare for all, which finds nearly everything
// that can be wrong and puts nothing in its place, then commit for all, then finish for all.
//
// Threading. open_part and end_part may be called by several threads at a time, for different
// parts. The end, prepare or destroy, comes when nobody else uses the target.
#ifndef LEATI_OPERATORS_FILE_TARGET_H
#define LEATI_OPERATORS_FILE_TARGET_H

#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_file_target leati_file_target;

typedef struct leati_file_target_options {
    const char *path;   // borrowed
    const char *folder; // that a relative path belongs to; NULL: the process's
    uint32_t parts;     // 1: a file; more: a directory with files 1 … parts
    bool overwrite;
    bool sync;
    // Not 0: there are targets of the same path and parts in other processes, which have the same
    // number here, and each part is made by one of them. What is written aside has a name that
    // follows from it. Where they share a file system, the first to commit puts all in its place.
    uint64_t token;
} leati_file_target_options;

// Whether a path names something that can be created: not empty, not "/", not ending in "." or
// "..".
bool leati_file_target_path_ok(const char *path);

// Checks that the path is free, or may be overwritten, and creates what is written aside. On
// failure `why` says what is wrong with which file: LEAT_EEXIST, LEAT_ENOENT, LEAT_EIO,
// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_file_target_create(const leat_allocator *allocator,
                                                const leati_file_target_options *options,
                                                leati_file_target **target, char *why,
                                                size_t why_size);
// Frees it; abandons what was not committed.
void leati_file_target_destroy(leati_file_target **target);

// Whether both are the same name in the same directory, however their paths are spelt.
bool leati_file_target_same(const leati_file_target *a, const leati_file_target *b);
const char *leati_file_target_path(const leati_file_target *target);

// Makes a part, 0 being the first, for writing. The descriptor is the target's.
LEAT_MUST_USE leat_err leati_file_target_open_part(leati_file_target *target, uint32_t part,
                                                   int *fd, char *why, size_t why_size);
// Brings a part of this many bytes to the disk, if `sync` was asked for; prepare can then tell
// whether somebody has changed it. May block. 0 or an errno: some file systems tell only here that
// there was no room.
LEAT_MUST_USE int leati_file_target_end_part(leati_file_target *target, uint32_t part,
                                             int64_t size);

// Whether what was written is there still, as it was, and can be put in its place. It then has the
// mode of what it replaces. May block.
LEAT_MUST_USE leat_err leati_file_target_prepare(leati_file_target *target, char *why,
                                                 size_t why_size);
// Puts it in its place. After a failure it is still aside, and abandon follows.
LEAT_MUST_USE leat_err leati_file_target_commit(leati_file_target *target, char *why,
                                                size_t why_size);
// After commit: brings that to the disk and removes what was replaced. May block. A failure says
// that the output is in place and what is left beside it.
LEAT_MUST_USE leat_err leati_file_target_finish(leati_file_target *target, char *why,
                                                size_t why_size);
// Removes what was written aside, unless it was committed or removed already.
void leati_file_target_abandon(leati_file_target *target);

// A sentence about a file operation that failed with `error`, and the code for it.
leat_err leati_file_error(int error, const char *what, const char *path, char *why,
                          size_t why_size);

#endif
