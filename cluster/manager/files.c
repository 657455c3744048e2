// SPDX-License-Identifier: Apache-2.0
// Folders and files of the job manager.
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/manager/manager_impl.h"

leat_err leati_make_folder(const char *path, char *why, size_t why_size)
{
    char part[LEATI_PATH_SIZE];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        snprintf(why, why_size, "the folder's name \"%.80s\" is %s", path,
                 length ? "too long" : "empty");
        return LEAT_EINVAL;
    }
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            snprintf(why, why_size, "the folder \"%s\" cannot be made: %s", part, strerror(errno));
            return LEAT_EIO;
        }
    }
    struct stat is;
    if (stat(path, &is) != 0 || !S_ISDIR(is.st_mode)) {
        snprintf(why, why_size, "\"%s\" is no folder", path);
        return LEAT_EIO;
    }
    return LEAT_OK;
}

static int remove_one(const char *path, const struct stat *is, int type, struct FTW *where)
{
    (void)is, (void)where;
    // A folder that a job has made unreadable is in the way of what is in it.
    if (type == FTW_DNR)
        (void)chmod(path, 0700);
    (void)remove(path);
    return 0;
}

void leati_remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(fd, data, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

leat_err leati_replace_file(const char *path, const void *data, size_t size, char *why,
                            size_t why_size)
{
    char aside[LEATI_PATH_SIZE];
    if ((size_t)snprintf(aside, sizeof aside, "%s.new", path) >= sizeof aside) {
        snprintf(why, why_size, "the name \"%.80s…\" is too long", path);
        return LEAT_EINVAL;
    }
    int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write_all(fd, data, size);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        error = errno;
        good = false;
    }
    if (good && rename(aside, path) != 0) {
        error = errno;
        good = false;
    }
    if (good)
        return LEAT_OK;
    (void)unlink(aside);
    snprintf(why, why_size, "\"%s\" cannot be written: %s", path, strerror(error));
    return LEAT_EIO;
}
