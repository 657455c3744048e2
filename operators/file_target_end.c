// SPDX-License-Identifier: Apache-2.0
// Putting what was written aside in its place.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "operators/file_target_impl.h"

enum { LOCK_TRIES = 2000, LOCK_SLEEP_MS = 5 };

// --- whether it can be done ---

static leat_err appeared(const leati_file_target *t, char *why, size_t why_size)
{
    snprintf(why, why_size,
             "%s was made by somebody else while the job ran, and overwriting was not asked for",
             t->options.path);
    return LEAT_EEXIST;
}

static leat_err check_place(leati_file_target *t, char *why, size_t why_size)
{
    struct stat status;
    if (fstat(t->parent_fd, &status) == 0 && status.st_nlink == 0) {
        snprintf(why, why_size, "%s was removed while the job ran, with what was written for %s",
                 t->parent, t->options.path);
        return LEAT_ENOENT;
    }
    if (faccessat(t->parent_fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return leati_file_error(errno, "write into", t->parent, why, why_size);
    if (fstatat(t->parent_fd, t->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? LEAT_OK
                               : leati_file_error(errno, "write", t->options.path, why, why_size);
    if (leati_file_target_is_placed(t))
        return LEAT_OK;
    return t->options.overwrite
               ? leati_file_target_check_replaceable(t, status.st_mode, why, why_size)
               : appeared(t, why, why_size);
}

// The path of what is aside, or of an entry in it. A path that is too long is cut.
static const char *aside_path(const leati_file_target *t, const char *entry, char *to, size_t size)
{
    snprintf(to, size, "%s%s%s%s", strcmp(t->parent, ".") == 0 ? "" : t->parent, t->hidden,
             *entry ? "/" : "", entry);
    return to;
}

static leat_err tampered(const leati_file_target *t, const char *entry, leat_err err,
                         const char *what, char *why, size_t why_size)
{
    char path[600];
    snprintf(why, why_size, "%s, which was written for %s, %s while the job ran",
             aside_path(t, entry, path, sizeof path), t->options.path, what);
    return err;
}

static leat_err missing(const leati_file_target *t, const char *entry, int error, char *why,
                        size_t why_size)
{
    char path[600];
    return error == ENOENT
               ? tampered(t, entry, LEAT_ENOENT, "was removed", why, why_size)
               : leati_file_error(error, "find", aside_path(t, entry, path, sizeof path), why,
                                  why_size);
}

// `entry` is the part's name in the directory of parts, or empty for the only file.
static leat_err check_part(leati_file_target *t, const leati_file_part *part, const char *entry,
                           char *why, size_t why_size)
{
    struct stat status, own;
    char what[96];
    int directory = *entry ? t->parts_fd : t->parent_fd;
    const char *name = *entry ? entry : t->hidden;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return missing(t, entry, errno, why, why_size);
    if (fstat(part->fd, &own) != 0)
        return leati_file_error(errno, "find what was written for", t->options.path, why, why_size);
    if (status.st_dev != own.st_dev || status.st_ino != own.st_ino)
        return tampered(t, entry, LEAT_EIO, "was replaced by another file", why, why_size);
    if (status.st_nlink != 1)
        return tampered(t, entry, LEAT_EIO, "was given a second name", why, why_size);
    if (part->size >= 0 && status.st_size != part->size) {
        snprintf(what, sizeof what, "was changed (%" PRId64 " bytes instead of %" PRId64 ")",
                 (int64_t)status.st_size, part->size);
        return tampered(t, entry, LEAT_EIO, what, why, why_size);
    }
    if (!t->replaces || (status.st_mode & 07777) == t->file_mode ||
        fchmod(part->fd, t->file_mode) == 0)
        return LEAT_OK;
    return leati_file_error(errno, "keep the mode of", t->options.path, why, why_size);
}

// Whether the entry is one of those that were made, here or in another process.
static bool is_own_part(void *arg, int directory, const char *entry)
{
    const leati_file_target *t = arg;
    char name[LEATI_FILE_PART_NAME];
    uint64_t number = 0;
    for (const char *c = entry; *c >= '0' && *c <= '9' && number <= t->options.parts; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    snprintf(name, sizeof name, "%" PRIu32, (uint32_t)number);
    return number >= 1 && number <= t->options.parts && strcmp(name, entry) == 0 &&
           (t->options.token || t->parts[number - 1].fd >= 0);
}

// Whether the directory of parts stands where it was made.
static leat_err check_hidden(leati_file_target *t, char *why, size_t why_size)
{
    struct stat status, own;
    if (fstatat(t->parent_fd, t->hidden, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return missing(t, "", errno, why, why_size);
    if (fstat(t->parts_fd, &own) != 0)
        return leati_file_error(errno, "find the parts of", t->options.path, why, why_size);
    return status.st_dev == own.st_dev && status.st_ino == own.st_ino
               ? LEAT_OK
               : tampered(t, "", LEAT_EIO, "was replaced", why, why_size);
}

static leat_err check_directory(leati_file_target *t, char *why, size_t why_size)
{
    char other[NAME_MAX + 1];
    leat_err err = check_hidden(t, why, why_size);
    if (err && !leati_file_target_is_placed(t))
        return err;
    if (!leati_file_target_each(t->parts_fd, ".", is_own_part, t, other, sizeof other))
        return leati_file_error(errno, "read the parts of", t->options.path, why, why_size);
    if (*other)
        return tampered(t, other, LEAT_EIO, "was put there by somebody else", why, why_size);
    return LEAT_OK;
}

static leat_err check_aside(leati_file_target *t, char *why, size_t why_size)
{
    if (t->options.parts == 1)
        return check_part(t, &t->parts[0], "", why, why_size);
    leat_err err = check_directory(t, why, why_size);
    for (uint32_t i = 0; !err && i < t->options.parts; i++) {
        char name[LEATI_FILE_PART_NAME];
        snprintf(name, sizeof name, "%" PRIu32, i + 1);
        if (t->parts[i].fd >= 0)
            err = check_part(t, &t->parts[i], name, why, why_size);
    }
    if (!err && t->replaces && fchmod(t->parts_fd, t->directory_mode) != 0)
        return leati_file_error(errno, "keep the mode of", t->options.path, why, why_size);
    return err;
}

leat_err leati_file_target_prepare(leati_file_target *t, char *why, size_t why_size)
{
    leat_err err = check_place(t, why, why_size);
    if (!err)
        err = check_aside(t, why, why_size);
    if (!err && t->options.sync && t->parts_fd >= 0)
        (void)fsync(t->parts_fd);
    return err;
}

// --- renaming ---

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
// found under the hidden name. 0 or an errno.
static int rename_over(leati_file_target *t, mode_t old)
{
    if (S_ISREG(old) && t->options.parts == 1)
        return renameat(t->parent_fd, t->hidden, t->parent_fd, t->name) == 0 ? 0 : errno;
    if (renameat2(t->parent_fd, t->hidden, t->parent_fd, t->name, RENAME_EXCHANGE) == 0) {
        t->old_left = true;
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    int error = leati_file_target_remove(t->parent_fd, t->name);
    return error ? error : rename_to_free(t);
}

static leat_err put_in_place(leati_file_target *t, char *why, size_t why_size)
{
    struct stat status;
    char path[600];
    bool replaces =
        t->options.overwrite && fstatat(t->parent_fd, t->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (replaces) {
        leat_err err = leati_file_target_check_replaceable(t, status.st_mode, why, why_size);
        if (err)
            return err;
    }
    int error = replaces ? rename_over(t, status.st_mode) : rename_to_free(t);
    if (error == EEXIST && !t->options.overwrite)
        return appeared(t, why, why_size);
    if (error) {
        char what[700];
        snprintf(what, sizeof what, "rename %s to", aside_path(t, "", path, sizeof path));
        return leati_file_error(error, what, t->options.path, why, why_size);
    }
    t->aside = false;
    return LEAT_OK;
}

// Of the processes that share a directory one at a time may look whether it is in its place: who
// holds it is about to rename it, unless it was stopped. A file system without such locks has to do
// without.
static leat_err lock_shared(const leati_file_target *t, char *why, size_t why_size)
{
    const struct timespec pause = {.tv_nsec = LOCK_SLEEP_MS * 1000000L};
    for (int tries = 0; flock(t->parts_fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return LEAT_OK;
        if (tries == LOCK_TRIES) {
            snprintf(why, why_size, "%s: another process that writes a part of it hangs",
                     t->options.path);
            return LEAT_EIO;
        }
        (void)nanosleep(&pause, NULL);
    }
    return LEAT_OK;
}

static leat_err commit_shared(leati_file_target *t, char *why, size_t why_size)
{
    leat_err err = lock_shared(t, why, why_size);
    if (err)
        return err;
    if (leati_file_target_is_placed(t))
        t->aside = false;
    else
        err = put_in_place(t, why, why_size);
    (void)flock(t->parts_fd, LOCK_UN);
    return err;
}

leat_err leati_file_target_commit(leati_file_target *t, char *why, size_t why_size)
{
    return t->options.token && t->parts_fd >= 0 ? commit_shared(t, why, why_size)
                                                : put_in_place(t, why, why_size);
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

leat_err leati_file_target_finish(leati_file_target *t, char *why, size_t why_size)
{
    char path[600];
    leati_file_target_close_parts(t);
    if (t->options.sync)
        sync_directory(t->parent_fd, ".");
    int error = t->old_left ? leati_file_target_remove(t->parent_fd, t->hidden) : 0;
    t->old_left = false;
    if (!error)
        return LEAT_OK;
    snprintf(why, why_size,
             "%s is written, but what it replaces could not be removed and is now %s"
             ": %s",
             t->options.path, aside_path(t, "", path, sizeof path), strerror(error));
    return LEAT_EIO;
}
