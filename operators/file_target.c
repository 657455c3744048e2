// SPDX-License-Identifier: Apache-2.0
// Making what is written aside, and removing it; the rest is in file_target_end.c.
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
#include "leat/record_codec.h"
#include "operators/file_target_impl.h"
#include "operators/folder.h"

// Of the hidden name; `.` and `.leat-XXXXXXXX` still fit the usual 255 bytes of a file name.
enum { NAME_KEPT = 200, TRIES = 100 };
enum { ALL_MODES = 0177777 }; // no file has it

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

bool leati_file_target_each(int parent_fd, const char *name, leati_file_visit visit, void *arg,
                            char *at, size_t at_size)
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
            !visit(arg, fd, entry->d_name))
            snprintf(at, at_size, "%s", entry->d_name);
    closedir(directory);
    return true;
}

// `arg`: NULL, or a mode that keeps only what all parts allow.
static bool is_part(void *arg, int directory, const char *entry)
{
    struct stat status;
    mode_t *common = arg;
    if (!is_part_name(entry) || fstatat(directory, entry, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
        return false;
    if (common)
        *common &= status.st_mode;
    return true;
}

// Whoever could not get at what is replaced shall not get at what replaces it.
static void keep_modes_of_file(leati_file_target *t, mode_t file)
{
    t->file_mode = file & 0777;
    // To read a file stands for reading and searching the directory.
    t->directory_mode = t->file_mode | ((file & 0444) >> 2);
}

static void keep_modes_of_directory(leati_file_target *t, mode_t directory, mode_t parts)
{
    t->directory_mode = directory & 07777;
    // Without a part the directory says who may read.
    t->file_mode = parts == ALL_MODES ? directory & 0666 : parts & 0777;
    mode_t searched = directory & 0111;
    if (t->options.parts == 1)
        t->file_mode &= searched | searched << 1 | searched << 2;
}

leat_err leati_file_target_check_replaceable(leati_file_target *t, mode_t mode, char *why,
                                             size_t why_size)
{
    const char *path = t->options.path;
    char other[NAME_MAX + 1];
    mode_t parts = ALL_MODES;
    t->replaces = true;
    if (S_ISREG(mode)) {
        keep_modes_of_file(t, mode);
        return LEAT_OK;
    }
    if (!S_ISDIR(mode)) {
        snprintf(why, why_size, "%s is neither a regular file nor a directory: it is not replaced",
                 path);
        return LEAT_EEXIST;
    }
    if (!leati_file_target_each(t->parent_fd, t->name, is_part, &parts, other, sizeof other))
        return leati_file_error(errno, "read the directory", path, why, why_size);
    if (!*other) {
        keep_modes_of_directory(t, mode, parts);
        return LEAT_OK;
    }
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
        return leati_file_target_check_replaceable(t, status.st_mode, why, why_size);
    snprintf(why, why_size, "%s exists already, and overwriting was not asked for",
             t->options.path);
    return LEAT_EEXIST;
}

// --- aside ---

// As others make it that write the same output.
static void share_hidden_name(leati_file_target *t)
{
    uint64_t number =
        leat_hash_combine(t->options.token, leat_hash_bytes(t->name, strlen(t->name)));
    snprintf(t->hidden, sizeof t->hidden, ".%.*s.leat-%016" PRIx64, NAME_KEPT, t->name, number);
}

static void choose_hidden_name(leati_file_target *t)
{
    uint32_t number;
    // Any number does, as long as others are tried when it is taken.
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint32_t)leati_clock_ns();
    snprintf(t->hidden, sizeof t->hidden, ".%.*s.leat-%08" PRIx32, NAME_KEPT, t->name, number);
}

// What replaces something is for its owner only until it takes the other's mode in the end.
static int create_file(const leati_file_target *t, int directory, const char *name)
{
    return openat(directory, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC,
                  t->replaces ? 0600 : 0666);
}

static bool create_hidden(leati_file_target *t)
{
    if (t->options.parts > 1)
        return mkdirat(t->parent_fd, t->hidden, t->replaces ? 0700 : 0777) == 0;
    t->parts[0].fd = create_file(t, t->parent_fd, t->hidden);
    return t->parts[0].fd >= 0;
}

static void create_under_free_name(leati_file_target *t)
{
    for (int i = 0; i < TRIES && !t->aside; i++) {
        choose_hidden_name(t);
        t->aside = create_hidden(t);
        if (!t->aside && errno != EEXIST)
            break;
    }
}

// Somebody else may have made the directory already.
static void create_shared(leati_file_target *t)
{
    share_hidden_name(t);
    t->aside = create_hidden(t) || (t->options.parts > 1 && errno == EEXIST);
}

static leat_err other_sink(const leati_file_target *t, char *why, size_t why_size)
{
    snprintf(why, why_size,
             "what is being written for %s is there already: another sink of the job writes the "
             "same output",
             t->options.path);
    return LEAT_EINVAL;
}

static leat_err create_aside(leati_file_target *t, char *why, size_t why_size)
{
    if (t->options.token)
        create_shared(t);
    else
        create_under_free_name(t);
    if (!t->aside && t->options.token && errno == EEXIST)
        return other_sink(t, why, why_size);
    if (!t->aside)
        return leati_file_error(errno, "make a file beside", t->options.path, why, why_size);
    if (t->options.parts == 1)
        return LEAT_OK;
    t->parts_fd = openat(t->parent_fd, t->hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (t->parts_fd >= 0)
        return LEAT_OK;
    if (t->options.token && (errno == ENOTDIR || errno == ELOOP)) {
        t->aside = false; // it is not this target's
        return other_sink(t, why, why_size);
    }
    return leati_file_error(errno, "open the directory made beside", t->options.path, why,
                            why_size);
}

static leat_err make_parts(leati_file_target *t)
{
    t->parts = leati_calloc(t->allocator, t->options.parts, sizeof *t->parts);
    for (uint32_t i = 0; t->parts && i < t->options.parts; i++)
        t->parts[i] = (leati_file_part){.fd = -1, .size = -1};
    return t->parts ? LEAT_OK : LEAT_ENOMEM;
}

static leat_err find_parent(leati_file_target *t, char *why, size_t why_size)
{
    struct stat status;
    // Searching and writing the directory is enough, it need not be readable.
    t->parent_fd =
        leati_folder_open_file(t->options.folder, t->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (t->parent_fd < 0 || fstat(t->parent_fd, &status) != 0)
        return leati_file_error(errno, "write into", t->parent, why, why_size);
    t->parent_device = status.st_dev;
    t->parent_inode = status.st_ino;
    return LEAT_OK;
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
    if (!err)
        err = make_parts(t);
    if (!err)
        err = find_parent(t, why, why_size);
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

bool leati_file_target_same(const leati_file_target *a, const leati_file_target *b)
{
    return a->parent_device == b->parent_device && a->parent_inode == b->parent_inode &&
           strcmp(a->name, b->name) == 0;
}

const char *leati_file_target_path(const leati_file_target *t)
{
    return t->options.path;
}

leat_err leati_file_target_open_part(leati_file_target *t, uint32_t part, int *fd, char *why,
                                     size_t why_size)
{
    leati_file_part *made = &t->parts[part];
    char name[LEATI_FILE_PART_NAME];
    snprintf(name, sizeof name, "%" PRIu32, part + 1);
    if (t->options.parts > 1)
        made->fd = create_file(t, t->parts_fd, name);
    if (made->fd < 0 && t->options.token && errno == EEXIST)
        return other_sink(t, why, why_size);
    if (made->fd < 0)
        return leati_file_error(errno, "make a part of", t->options.path, why, why_size);
    *fd = made->fd;
    return LEAT_OK;
}

int leati_file_target_end_part(leati_file_target *t, uint32_t part, int64_t size)
{
    leati_file_part *written = &t->parts[part];
    written->size = size;
    if (t->options.sync)
        return fsync(written->fd) == 0 ? 0 : errno;
    // What a file system has to say at the closing it says for any descriptor of the file.
    int other = fcntl(written->fd, F_DUPFD_CLOEXEC, 0);
    return other >= 0 && (close(other) == 0 || errno == EINTR) ? 0 : errno;
}

// --- the end ---

static bool remove_part(void *arg, int directory, const char *entry)
{
    // Another process may be removing them as well.
    return !is_part(NULL, directory, entry) || unlinkat(directory, entry, 0) == 0 ||
           errno == ENOENT;
}

int leati_file_target_remove(int parent_fd, const char *name)
{
    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    char other[NAME_MAX + 1];
    if ((errno != EISDIR && errno != EPERM) ||
        !leati_file_target_each(parent_fd, name, remove_part, NULL, other, sizeof other))
        return errno;
    return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

bool leati_file_target_is_placed(const leati_file_target *t)
{
    struct stat placed, own;
    return t->options.token && t->parts_fd >= 0 && fstat(t->parts_fd, &own) == 0 &&
           fstatat(t->parent_fd, t->name, &placed, AT_SYMLINK_NOFOLLOW) == 0 &&
           placed.st_dev == own.st_dev && placed.st_ino == own.st_ino;
}

void leati_file_target_abandon(leati_file_target *t)
{
    if (!t->aside)
        return;
    t->aside = false;
    if (leati_file_target_is_placed(t))
        return;
    // It may have taken a mode by which its parts cannot be removed.
    if (t->replaces && t->parts_fd >= 0)
        (void)fchmod(t->parts_fd, 0700);
    // There is nobody left who could do something about a failure.
    (void)leati_file_target_remove(t->parent_fd, t->hidden);
}

void leati_file_target_close_parts(leati_file_target *t)
{
    for (uint32_t i = 0; t->parts && i < t->options.parts; i++) {
        if (t->parts[i].fd >= 0)
            close(t->parts[i].fd);
        t->parts[i].fd = -1;
    }
}

void leati_file_target_destroy(leati_file_target **target)
{
    leati_file_target *t = *target;
    if (!t)
        return;
    leati_file_target_abandon(t);
    leati_file_target_close_parts(t);
    if (t->parts_fd >= 0)
        close(t->parts_fd);
    if (t->parent_fd >= 0)
        close(t->parent_fd);
    leati_free(t->allocator, t->parts);
    leati_free(t->allocator, t->parent);
    leati_free(t->allocator, (char *)t->options.path);
    leati_free(t->allocator, t);
    *target = NULL;
}
