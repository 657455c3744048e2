// SPDX-License-Identifier: Apache-2.0
// Which pieces of text there are to read, and who reads which: files are listed once, cut into
// splits, and handed out one at a time to the subtasks that ask.
//
// Threading. create and destroy: one thread. list and next: any thread.
// Life cycle. create → list (the first call does it) → next until there is none → destroy.
// Bounds. One entry for each file, at most LEATI_TEXT_MAX_FILES.
#ifndef LEATI_OPERATORS_TEXT_SPLITS_H
#define LEATI_OPERATORS_TEXT_SPLITS_H

#include "leat/alloc.h"
#include "leat/error.h"

enum { LEATI_TEXT_MAX_FILES = 1 << 24 };

typedef struct leati_text_splits leati_text_splits;

typedef struct leati_text_split {
    const char *path; // borrowed from the splits; "-" is standard input
    bool stream;      // cannot be read at a position: the whole of it is one split
    int64_t start, end;
} leati_text_split;

// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_text_splits_create(const leat_allocator *allocator,
                                                int64_t split_size_bytes,
                                                leati_text_splits **splits);
void leati_text_splits_destroy(leati_text_splits **splits);

// Lists what the paths stand for, unless a call before has done so: files, directories (their
// regular files at any depth, by the bytes of their paths; names that start with "." or "_" are
// left out; each directory once, so that links which form a loop end) and "-" for standard input
// (once). `why` gets the reason of a failure, which names the file. LEAT_ENOENT, LEAT_EIO,
// LEAT_ENOMEM, LEAT_ETOOBIG.
LEAT_MUST_USE leat_err leati_text_splits_list(leati_text_splits *splits, const char *const *paths,
                                              size_t path_count, char *why, size_t why_size);

// The next split; false when all are handed out.
bool leati_text_splits_next(leati_text_splits *splits, leati_text_split *split);

// What a path is called in messages.
const char *leati_text_name(const char *path);
// "cannot open FILE: No such file or directory", and the code for the errno.
leat_err leati_text_error(int number, const char *what, const char *path, char *why,
                          size_t why_size);

#endif
