// SPDX-License-Identifier: Apache-2.0
// Files of which relative paths belong to a folder that need not be the process's own.
#ifndef LEATI_OPERATORS_FOLDER_H
#define LEATI_OPERATORS_FOLDER_H

#include "leat/base.h"

// What to open a path relative to, for openat and its kin: AT_FDCWD when that is the process's
// folder (`folder` is NULL) or does not matter (an absolute path), else a descriptor of the folder;
// -1 with errno when it cannot be opened.
int leati_folder_open(const char *folder, const char *path);
// Of what open returned; errno stays as it is.
void leati_folder_close(int at);

// As open(2), without a mode.
int leati_folder_open_file(const char *folder, const char *path, int flags);

#endif
