// SPDX-License-Identifier: Apache-2.0
// The files that a job needs over there: the job file, libraries beside it, cached files.
#ifndef LEATI_CLUSTER_CLIENT_FILES_H
#define LEATI_CLUSTER_CLIENT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/alloc.h"
#include "leat/error.h"

enum { LEATI_HASH_SIZE = 33 };

// A file that travels.
typedef struct leati_sent_file {
    char *name; // over there: "wordcount.so", "dictionary", "models/en/words.bin"
    char *path; // here
    char hash[LEATI_HASH_SIZE];
    uint64_t size;
    bool executable;
} leati_sent_file;

typedef struct leati_sent_files {
    leati_sent_file *items;
    size_t count, capacity;
    char **empty_dirs; // names of directories without anything in them
    size_t empty_count, empty_capacity;
    char why[600]; // what went wrong
} leati_sent_files;

void leati_sent_files_fini(leati_sent_files *files);

// Adds one regular file. Errors: LEAT_EIO, LEAT_EINVAL, LEAT_ENOMEM, with a sentence in `why`.
LEAT_MUST_USE leat_err leati_sent_files_add(leati_sent_files *files, const char *name,
                                            const char *path);
// Adds a file, or a directory with all that is below it. Symbolic links are followed.
LEAT_MUST_USE leat_err leati_sent_files_add_tree(leati_sent_files *files, const char *name,
                                                 const char *path);
// Adds the shared libraries that a shared object needs and that lie in its folder, and those that
// they need and that lie there too.
LEAT_MUST_USE leat_err leati_sent_files_add_libraries(leati_sent_files *files, const char *object);

// The name under which bytes travel: 32 hex digits of XXH3-128.
void leati_hash_bytes(const void *bytes, size_t size, char hash[LEATI_HASH_SIZE]);

#endif
