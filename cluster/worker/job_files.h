// SPDX-License-Identifier: Apache-2.0
// The folder of one attempt: private copies of its job file and libraries, and its cached files.
//
//     job/wordcount.so, job/libhelper.so   copies: the loader knows files by their inodes, so that
//                                          each attempt needs ones of its own
//     files/NAME                           cached files: links into the artifact cache, and copies
//                                          of those that are executable
//
// One thread, the attempt's.
#ifndef LEATI_CLUSTER_WORKER_JOB_FILES_H
#define LEATI_CLUSTER_WORKER_JOB_FILES_H

#include "cluster/worker/artifact_cache.h"

typedef struct leati_job_files {
    leati_artifact_cache *cache;
    const leati_msg_job *job; // borrowed
    char folder[LEATI_PATH_SIZE];
    size_t pinned; // so many of the job's files, in the order of leati_job_files_at
} leati_job_files;

// Fetches what is missing and makes the folder, which must not exist. LEAT_ECANCELLED, or another
// error with a sentence in `why`. Call remove in any case.
LEAT_MUST_USE leat_err leati_job_files_make(leati_job_files *files, leati_artifact_cache *cache,
                                            const leati_msg_job *job, const char *folder,
                                            const leati_artifact_asker *asker, char *why,
                                            size_t why_size);
void leati_job_files_remove(leati_job_files *files);

// The job file, then its libraries, then cached files; NULL behind the last.
const leati_msg_file *leati_job_files_at(const leati_msg_job *job, size_t index);
// Where a file (of the job or a library) or the cached entry of that name is.
bool leati_job_files_path(const leati_job_files *files, bool cached, leat_str name,
                          char path[LEATI_PATH_SIZE]);
// Calls `fn` for each name under which cached files are known: the first part of their names, each
// once. Ends with the first error.
leat_err leati_job_files_each_cached(const leati_job_files *files,
                                     leat_err (*fn)(void *user, leat_str name), void *user);

// Removes a folder and all that is in it; what is not there is removed already.
void leati_folder_remove(const char *path);
// Makes it and the folders above it. 0 or an errno.
int leati_folder_make(const char *path);

#endif
