// SPDX-License-Identifier: Apache-2.0
// Loads a job file and finds its job function.
#ifndef LEATI_BASE_JOB_FILE_H
#define LEATI_BASE_JOB_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "leat/env.h"

typedef struct leati_job_file {
    void *handle;
    void (*main)(leat_env *env, int argc, char **argv);
} leati_job_file;

// What can be said of a shared object without loading it, which a damaged one might not survive: it
// is a whole one for this machine. On failure `why` gets a sentence without the file's name.
bool leati_job_file_check(const char *path, char *why, size_t why_size);
// Only a shared object for this machine that states this library's interface number and has a job
// function is taken. A name without a slash is a file of the current directory. On failure `why`
// gets a sentence without the file's name, and false is returned.
bool leati_job_file_open(const char *path, leati_job_file *file, char *why, size_t why_size);
// The graph made by the job function must be gone: it holds pointers into the file.
void leati_job_file_close(leati_job_file *file);

#endif
