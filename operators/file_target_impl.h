// SPDX-License-Identifier: Apache-2.0
// What file_target.c and file_target_end.c share.
#ifndef LEATI_OPERATORS_FILE_TARGET_IMPL_H
#define LEATI_OPERATORS_FILE_TARGET_IMPL_H

#include <stdint.h>
#include <sys/types.h>

#include "operators/file_target.h"

enum { LEATI_FILE_HIDDEN_SIZE = 256, LEATI_FILE_PART_NAME = 16 };

// A file that was made. It is kept open to the end: so its inode's number cannot become that of
// another file, and what stands under its name can be compared with it.
typedef struct leati_file_part {
    int fd;       // or -1
    int64_t size; // -1: not known
} leati_file_part;

struct leati_file_target {
    const leat_allocator *allocator;
    leati_file_target_options options;
    char *parent;     // the path of the directory
    const char *name; // in it; inside options.path, which is a copy
    int parent_fd;
    dev_t parent_device;
    ino_t parent_inode;
    int parts_fd;  // the directory of parts, or -1
    bool aside;    // the hidden file or directory is there
    bool old_left; // what was replaced is there, under the hidden name
    bool replaces; // there is, or was, something to replace; the modes follow from it
    mode_t file_mode, directory_mode;
    leati_file_part *parts; // options.parts of them
    char hidden[LEATI_FILE_HIDDEN_SIZE];
};

// Calls `visit` for each entry of a directory until it says no; the entry where it did is copied to
// `at`, which is empty otherwise. False with errno when the directory cannot be read.
typedef bool (*leati_file_visit)(void *arg, int directory, const char *entry);
bool leati_file_target_each(int parent_fd, const char *name, leati_file_visit visit, void *arg,
                            char *at, size_t at_size);

// Whether what stands at the path, whose mode this is, may be replaced; notes the modes that its
// replacement gets.
LEAT_MUST_USE leat_err leati_file_target_check_replaceable(leati_file_target *target, mode_t mode,
                                                           char *why, size_t why_size);
// Removes a file, or a directory of parts; 0 or an errno.
int leati_file_target_remove(int parent_fd, const char *name);
// Whether a target of another process has put the directory that it shares with this one in its
// place.
bool leati_file_target_is_placed(const leati_file_target *target);
void leati_file_target_close_parts(leati_file_target *target);

#endif
