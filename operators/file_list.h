// SPDX-License-Identifier: Apache-2.0
// What files some paths stand for.
//
// Threading. One thread a list. Bounds. At most LEATI_FILE_MAX files; directories that are still to
// be read are kept besides, and what identifies those that were met.
#ifndef LEATI_OPERATORS_FILE_LIST_H
#define LEATI_OPERATORS_FILE_LIST_H

#include <sys/stat.h>

#include "leat/function.h"

enum { LEATI_FILE_MAX = 1 << 24 };

// What file it is. A new one may get the inode of another that was removed, but not its time of
// birth, which file systems that have no such thing leave at 0.
typedef struct leati_file_id {
    uint64_t device, inode;
    int64_t born_s, born_ns;
} leati_file_id;

// One file as it was found. Shared by those who have it in a list of theirs, under their lock.
typedef struct leati_file {
    uint32_t references;
    bool stale;   // watched: has changed since, and is listed once more
    bool lost;    // and what it held is not there any more, or not all of it
    bool broken;  // watched: a link that leads nowhere, for now; not to be read
    bool stream;  // cannot be read at a position: standard input, a pipe, a file of /proc
    bool foreign; // was listed by another machine, so that `id` says nothing here
    int64_t size;
    leati_file_id id;
    int64_t modified_s, modified_ns;
    char path[]; // "-" is standard input
} leati_file;

typedef struct leati_file_list {
    const leat_allocator *allocator;
    leati_file **files; // each holds a reference
    size_t count, capacity;
} leati_file_list;

// How paths are listed.
typedef struct leati_file_listing {
    // Files that vanish while they are listed, and empty ones, are left out; links in directories
    // that lead nowhere are listed as broken. What is named must not be a pipe or a device.
    bool watching;
    const char *folder; // that relative paths belong to; NULL: the process's
    leat_ctx *ctx;      // asked whether it is cancelled, and for the time; may be NULL
    char *why;          // gets the reason of a failure, which names the file
    size_t why_size;
} leati_file_listing;

// Adds what the paths stand for, in their order: files, directories (their regular files at any
// depth, by the bytes of their paths; names that start with "." or "_" are left out; each directory
// once for each path, so that links which form a loop end) and "-" for standard input (once). On
// failure some may have been added. LEAT_ENOENT, LEAT_EIO, LEAT_EINVAL, LEAT_ENOMEM, LEAT_ETOOBIG,
// LEAT_ECANCELLED.
LEAT_MUST_USE leat_err leati_file_list_paths(leati_file_list *list,
                                             const leati_file_listing *listing,
                                             const char *const *paths, size_t path_count);
// Releases all files of the list.
void leati_file_list_fini(leati_file_list *list);

static inline leati_file *leati_file_hold(leati_file *file)
{
    file->references++;
    return file;
}
void leati_file_release(const leat_allocator *allocator, leati_file *file);

// What an open file is. An errno; 0 for success.
int leati_file_identify(int fd, leati_file_id *id);
static inline bool leati_file_same(const leati_file_id *a, const leati_file_id *b)
{
    return a->device == b->device && a->inode == b->inode && a->born_s == b->born_s &&
           a->born_ns == b->born_ns;
}

// What a path is called in messages.
const char *leati_file_name(const char *path);
// Writes "cannot open FILE: No such file or directory", and returns the code for the errno.
leat_err leati_file_why(int number, const char *what, const char *path, char *why, size_t why_size);

#endif
