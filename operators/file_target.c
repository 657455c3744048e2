// SPDX-License-Identifier: Apache-2.0
#include "operators/file_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

// Of the hidden name; `.` and `.leat-XXXXXXXX` still fit the usual 255 bytes of a file name.
enum { NAME_KEPT = 200, HIDDEN_SIZE = 256, TRIES = 100 };

struct leati_file_target {
    const leat_allocator *allocator;
    leati_file_target_options options;
    char *parent;     // the path of the directory
    const char *name; // in it; inside options.path, which is a copy
    int parent_fd;
    int parts_fd; // the directory of parts, or -1
    bool aside;   // the hidden file or directory is there
    char hidden[HIDDEN_SIZE];
};

leat_err leati_file_error(int error, const char *what, const char *path, char *why, size_t why_size)
{
    snprintf(why, why_size, "cannot %s %s: %s", what, path, strerror(error));
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return LEAT_ENOENT;
    case EEXIST:
    case ENOTEMPTY:
        return LEAT_EEXIST;
    case ENOMEM:
        return LEAT_ENOMEM;
    default:
        return LEAT_EIO;
    }
}

// --- paths ---

// The size of a path without slashes at its end.
static size_t trimmed(const char *path)
{
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] == '/')
        size--;
    return size;
}

// Where the last component begins.
static size_t name_start(const char *path, size_t size)
{
    while (size > 0 && path[size - 1] != '/')
        size--;
    return size;
}

bool leati_file_target_path_ok(const char *path)
{
    size_t size = trimmed(path), start = name_start(path, size);
    const char *name = path + start;
    size_t length = size - start;
    return length > 0 && !(length == 1 && name[0] == '.') &&
           !(length == 2 && name[0] == '.' && name[1] == '.');
}

static leat_err copy_path(leati_file_target *t, const char *path)
{
    size_t size = trimmed(path), start = name_start(path, size);
    char *copy = leati_calloc(t->allocator, 1, size + 1);
    t->parent = leati_calloc(t->allocator, 1, start + 2);
    t->options.path = copy;
    if (!copy || !t->parent)
        return LEAT_ENOMEM;
    memcpy(copy, path, size);
    memcpy(t->parent, start ? path : ".", start ? start : 1);
    t->name = copy + start;
    return LEAT_OK;
}

// --- what is there already ---

static bool is_part_name(const char *name)
{
    if (*name < '1' || *name > '9')
        return false;
    while (*name >= '0' && *name <= '9')
        name++;
    return !*name;
}

// Calls `visit` for each entry of a directory until it says no; the entry where it did is copied to
// `at`. False with errno when the directory cannot be read.
static bool each_entry(int parent_fd, const char *name,
                       bool (*visit)(int directory, const char *entry), char *at, size_t at_size)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        errno = error;
        return false;
    }
    *at = 0;
    for (struct dirent *entry; !*at && (entry = readdir(directory)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !visit(fd, entry->d_name))
            snprintf(at, at_size, "%s", entry->d_name);
    closedir(directory);
    return true;
}

static bool is_part(int directory, const char *entry)
{
    struct stat status;
    return is_part_name(entry) && fstatat(directory, entry, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode);
}

static leat_err check_replaceable(leati_file_target *t, mode_t mode, char *why, size_t why_size)
{
    const char *path = t->options.path;
    char other[NAME_MAX + 1];
    if (S_ISREG(mode))
        return LEAT_OK;
    if (!S_ISDIR(mode)) {
        snprintf(why, why_size, "%s is neither a regular file nor a directory: it is not replaced",
                 path);
        return LEAT_EEXIST;
    }
    if (!each_entry(t->parent_fd, t->name, is_part, other, sizeof other))
        return leati_file_error(errno, "read the directory", path, why, why_size);
    if (!*other)
        return LEAT_OK;
    snprintf(why, why_size,
             "%s is a directory with %s in it, which is no part of an output: it is "
             "not replaced",
             path, other);
    return LEAT_EEXIST;
}

static leat_err check_free(leati_file_target *t, char *why, size_t why_size)
{
    struct stat status;
    if (fstatat(t->parent_fd, t->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? LEAT_OK
                               : leati_file_error(errno, "write", t->options.path, why, why_size);
    if (t->options.overwrite)
        return check_replaceable(t, status.st_mode, why, why_size);
    snprintf(why, why_size, "%s exists already, and overwriting was not asked for",
             t->options.path);
    return LEAT_EEXIST;
}

// --- aside ---

static void choose_hidden_name(leati_file_target *t)
{
    uint32_t number;
    // Any number does, as long as others are tried when it is taken.
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint32_t)leati_clock_ns();
    snprintf(t->hidden, sizeof t->hidden, ".%.*s.leat-%08" PRIx32, NAME_KEPT, t->name, number);
}

static bool create_hidden(leati_file_target *t)
{
    if (t->options.parts > 1)
        return mkdirat(t->parent_fd, t->hidden, 0777) == 0;
    int fd = openat(t->parent_fd, t->hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static leat_err create_aside(leati_file_target *t, char *why, size_t why_size)
{
    for (int i = 0; i < TRIES && !t->aside; i++) {
        choose_hidden_name(t);
        t->aside = create_hidden(t);
        if (!t->aside && errno != EEXIST)
            break;
    }
    if (!t->aside)
        return leati_file_error(errno, "make a file beside", t->options.path, why, why_size);
    if (t->options.parts == 1)
        return LEAT_OK;
    t->parts_fd = openat(t->parent_fd, t->hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return t->parts_fd >= 0 ? LEAT_OK
                            : leati_file_error(errno, "open the directory made beside",
                                               t->options.path, why, why_size);
}

leat_err leati_file_target_create(const leat_allocator *allocator,
                                  const leati_file_target_options *options,
                                  leati_file_target **target, char *why, size_t why_size)
{
    leati_file_target *t = leati_calloc(allocator, 1, sizeof *t);
    snprintf(why, why_size, "no memory to write %s", options->path);
    if (!t)
        return LEAT_ENOMEM;
    t->allocator = allocator;
    t->options = *options;
    t->parent_fd = t->parts_fd = -1;
    leat_err err = copy_path(t, options->path);
    if (!err) {
        // Searching and writing the directory is enough, it need not be readable.
        t->parent_fd = open(t->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (t->parent_fd < 0)
            err = leati_file_error(errno, "write into", t->parent, why, why_size);
    }
    if (!err)
        err = check_free(t, why, why_size);
    if (!err)
        err = create_aside(t, why, why_size);
    if (err) {
        leati_file_target_destroy(&t);
        return err;
    }
    *target = t;
    return LEAT_OK;
}

leat_err leati_file_target_open_part(leati_file_target *t, uint32_t part, int *fd, char *why,
                                     size_t why_size)
{
    char name[16];
    snprintf(name, sizeof name, "%" PRIu32, part + 1);
    bool file = t->options.parts == 1;
    int opened = file ? openat(t->parent_fd, t->hidden, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
                      : openat(t->parts_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (opened < 0)
        return leati_file_error(errno, file ? "open the file beside" : "make a part of",
                                t->options.path, why, why_size);
    *fd = opened;
    return LEAT_OK;
}

// --- the end ---

static bool remove_part(int directory, const char *entry)
{
    return !is_part(directory, entry) || unlinkat(directory, entry, 0) == 0;
}

// Removes a file, or a directory of parts; 0 or an errno.
static int remove_output(int parent_fd, const char *name)
{
    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    char other[NAME_MAX + 1];
    if ((errno != EISDIR && errno != EPERM) ||
        !each_entry(parent_fd, name, remove_part, other, sizeof other))
        return errno;
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

void leati_file_target_abandon(leati_file_target *t)
{
    if (!t->aside)
        return;
    t->aside = false;
    // There is nobody left who could do something about a failure.
    (void)remove_output(t->parent_fd, t->hidden);
}

void leati_file_target_destroy(leati_file_target **target)
{
    leati_file_target *t = *target;
    if (!t)
        return;
    leati_file_target_abandon(t);
    if (t->parts_fd >= 0)
        close(t->parts_fd);
    if (t->parent_fd >= 0)
        close(t->parent_fd);
    leati_free(t->allocator, t->parent);
    leati_free(t->allocator, (char *)t->options.path);
    leati_free(t->allocator, t);
    *target = NULL;
}

// Renames only where there is nothing; 0 or an errno.
static int rename_to_free(leati_file_target *t)
{
    if (renameat2(t->parent_fd, t->hidden, t->parent_fd, t->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    // A file system that cannot do that in one step.
    struct stat status;
    if (fstatat(t->parent_fd, t->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return EEXIST;
    return renameat(t->parent_fd, t->hidden, t->parent_fd, t->name) == 0 ? 0 : errno;
}

// A file replaces a file in one step; otherwise the two change places, and what was there is then
// found under the hidden name. 0 or an errno; `*old_left` when the latter is so.
static int rename_over(leati_file_target *t, mode_t old, bool *old_left)
{
    if (S_ISREG(old) && t->options.parts == 1)
        return renameat(t->parent_fd, t->hidden, t->parent_fd, t->name) == 0 ? 0 : errno;
    if (renameat2(t->parent_fd, t->hidden, t->parent_fd, t->name, RENAME_EXCHANGE) == 0) {
        *old_left = true;
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    int error = remove_output(t->parent_fd, t->name);
    return error ? error : rename_to_free(t);
}

static void sync_directory(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A directory that cannot be read or synced leaves it to the file system.
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

leat_err leati_file_target_commit(leati_file_target *t, char *why, size_t why_size)
{
    const char *path = t->options.path;
    struct stat status;
    bool old_left = false;
    bool replaces =
        t->options.overwrite && fstatat(t->parent_fd, t->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (replaces) {
        leat_err err = check_replaceable(t, status.st_mode, why, why_size);
        if (err)
            return err;
    }
    if (t->options.sync && t->parts_fd >= 0)
        (void)fsync(t->parts_fd);
    int error = replaces ? rename_over(t, status.st_mode, &old_left) : rename_to_free(t);
    if (error)
        return leati_file_error(error, "put in its place", path, why, why_size);
    t->aside = false;
    if (t->options.sync)
        sync_directory(t->parent_fd, ".");
    error = old_left ? remove_output(t->parent_fd, t->hidden) : 0;
    if (!error)
        return LEAT_OK;
    snprintf(why, why_size,
             "%s is written, but what it replaces could not be removed and is now %s"
             ": %s",
             path, t->hidden, strerror(error));
    return LEAT_EIO;
}
