// SPDX-License-Identifier: Apache-2.0
// The code of one attempt, loaded from its own copies.
//
// The loader tells job files apart by their inodes, but finds the libraries that they need by name
// among all that is loaded. So two attempts at the same time share a library of the same name. If
// their bytes are equal, that is a matter of memory (and of the library's variables); if not, the
// second attempt would run with the first one's: it is refused.
//
// Threading. The table has a lock of its own; a leati_loaded belongs to one thread.
#ifndef LEATI_CLUSTER_WORKER_JOB_LOADER_H
#define LEATI_CLUSTER_WORKER_JOB_LOADER_H

#include <pthread.h>

#include "base/job_file.h"
#include "cluster/worker/job_files.h"

typedef struct leati_library {
    char *name;
    char hash[LEATI_HASH_SIZE];
    uint32_t users; // attempts; 0: it could not be unloaded, and stays
    struct leati_library *next;
} leati_library;

typedef struct leati_library_table {
    const leat_allocator *allocator;
    pthread_mutex_t lock;
    leati_library *libraries; // under the lock
} leati_library_table;

void leati_library_table_init(leati_library_table *table, const leat_allocator *allocator);
void leati_library_table_fini(leati_library_table *table);

typedef struct leati_loaded {
    leati_library_table *table;
    const leati_job_files *files; // borrowed
    void **handles;               // of the libraries; NULL for one that could not be opened
    size_t registered;            // so many of the libraries, in order, are in the table
    leati_job_file file;
} leati_loaded;

// Runs constructors of the user's. On failure a sentence in `why`, and nothing is loaded.
LEAT_MUST_USE leat_err leati_job_load(leati_loaded *loaded, leati_library_table *table,
                                      const leati_job_files *files, char *why, size_t why_size);
// Nothing may point into the code any more. True when all of it has gone; destructors of the user's
// and libraries that are marked so may keep it.
bool leati_job_unload(leati_loaded *loaded);

#endif
