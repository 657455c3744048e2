// SPDX-License-Identifier: Apache-2.0
#include "operators/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int leati_folder_open(const char *folder, const char *path)
{
    // To look up names in it is enough, it need not be readable.
    return !folder || *path == '/' ? AT_FDCWD : open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void leati_folder_close(int at)
{
    int error = errno;
    if (at >= 0)
        close(at);
    errno = error;
}

int leati_folder_open_file(const char *folder, const char *path, int flags)
{
    int at = leati_folder_open(folder, path);
    if (at == -1)
        return -1;
    int fd = openat(at, path, flags);
    leati_folder_close(at);
    return fd;
}
