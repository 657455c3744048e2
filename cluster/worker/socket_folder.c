// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/socket_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Removes sockets, and nothing else: what a user has put there is not to be lost.
static void clear(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        struct stat info;
        if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISSOCK(info.st_mode))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
}

bool leati_socket_folder_open(const char *folder, char *made, size_t size, char *why,
                              size_t why_size)
{
    char full[PATH_MAX];
    struct stat info;
    if (!realpath(folder, full)) {
        snprintf(why, why_size, "%s: %s", folder, strerror(errno));
        return false;
    }
    if ((size_t)snprintf(made, size, "%s/sockets", full) >= size) {
        snprintf(why, why_size, "%s: %s", full, strerror(ENAMETOOLONG));
        return false;
    }
    if (mkdir(made, 0700) == 0)
        return true;
    if (errno != EEXIST) {
        snprintf(why, why_size, "%s: %s", made, strerror(errno));
        return false;
    }
    if (lstat(made, &info) || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & (S_IRWXG | S_IRWXO))) {
        snprintf(why, why_size, "%s is no folder that only this user may enter (mode 0700)", made);
        return false;
    }
    clear(made);
    return true;
}

void leati_socket_folder_close(const char *made)
{
    rmdir(made);
}
