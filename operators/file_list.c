// SPDX-License-Identifier: Apache-2.0
#include "operators/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "operators/folder.h"

// A slot of the table of directories.
typedef struct met {
    leati_file_id id;
    bool used;
} met;

// What the walk through one path needs beside the list.
typedef struct walk {
    leati_file_list *list;
    const leati_file_listing *how;
    int at; // what paths are relative to
    // Directories still to be read, and those that were met.
    char **pending;
    size_t pending_count, pending_capacity;
    met *seen; // a hash table; a power of two of slots
    size_t seen_count, seen_slots;
} walk;

const char *leati_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

leat_err leati_file_why(int number, const char *what, const char *path, char *why, size_t why_size)
{
    char text[128];
    snprintf(why, why_size, "%s %s: %s", what, leati_file_name(path),
             strerror_r(number, text, sizeof text));
    return number == ENOENT ? LEAT_ENOENT : number == ENOMEM ? LEAT_ENOMEM : LEAT_EIO;
}

void leati_file_release(const leat_allocator *allocator, leati_file *file)
{
    if (--file->references == 0)
        leati_free(allocator, file);
}

void leati_file_list_fini(leati_file_list *list)
{
    while (list->count)
        leati_file_release(list->allocator, list->files[--list->count]);
    leati_free(list->allocator, list->files);
    list->files = NULL;
    list->capacity = 0;
}

static leat_err no_memory(const walk *w)
{
    snprintf(w->how->why, w->how->why_size, "no memory for the list of files");
    return LEAT_ENOMEM;
}

static leat_err failed(const walk *w, const char *path)
{
    return leati_file_why(errno, "cannot read", path, w->how->why, w->how->why_size);
}

static leati_file_id id_of(const struct statx *status)
{
    bool has_birth = status->stx_mask & STATX_BTIME;
    return (leati_file_id){.device = (uint64_t)status->stx_dev_major << 32 | status->stx_dev_minor,
                           .inode = status->stx_ino,
                           .born_s = has_birth ? status->stx_btime.tv_sec : 0,
                           .born_ns = has_birth ? status->stx_btime.tv_nsec : 0};
}

int leati_file_identify(int fd, leati_file_id *id)
{
    struct statx status;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0)
        return errno;
    *id = id_of(&status);
    return 0;
}

// Whether what could not be found may have gone since it was listed, which is no mistake in a
// directory that is watched.
static bool vanished(const walk *w, bool named)
{
    return w->how->watching && !named && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
}

// `status` is NULL for standard input.
static leat_err add_file(walk *w, const char *path, const struct statx *status)
{
    leati_file_list *list = w->list;
    if (list->count == LEATI_FILE_MAX) {
        snprintf(w->how->why, w->how->why_size, "more than %d files", LEATI_FILE_MAX);
        return LEAT_ETOOBIG;
    }
    size_t size = strlen(path) + 1;
    leati_file *file = leati_calloc(list->allocator, 1, sizeof *file + size);
    if (!file || !leati_grow(list->allocator, (void **)&list->files, &list->capacity,
                             list->count + 1, sizeof *list->files)) {
        leati_free(list->allocator, file);
        return no_memory(w);
    }
    memcpy(file->path, path, size);
    file->references = 1;
    file->stream = true;
    if (status) {
        file->id = id_of(status);
        file->modified_s = status->stx_mtime.tv_sec;
        file->modified_ns = status->stx_mtime.tv_nsec;
        // Files of /proc say that they are empty; as streams they are read until they end.
        file->stream = !S_ISREG(status->stx_mode) || status->stx_size == 0;
        file->size = file->stream ? 0 : (int64_t)status->stx_size;
        file->broken = S_ISLNK(status->stx_mode);
    }
    list->files[list->count++] = file;
    return LEAT_OK;
}

static met *seen_slot(const walk *w, const leati_file_id *id)
{
    uint64_t hash = (id->inode ^ id->device << 32) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (w->seen_slots - 1);
    while (w->seen[at].used && !leati_file_same(&w->seen[at].id, id))
        at = (at + 1) & (w->seen_slots - 1);
    return &w->seen[at];
}

static bool seen_grow(walk *w)
{
    walk old = *w;
    w->seen_slots = old.seen_slots ? old.seen_slots * 2 : 64;
    w->seen = leati_calloc(w->list->allocator, w->seen_slots, sizeof *w->seen);
    if (!w->seen) {
        *w = old;
        return false;
    }
    for (size_t i = 0; i < old.seen_slots; i++)
        if (old.seen[i].used)
            *seen_slot(w, &old.seen[i].id) = old.seen[i];
    leati_free(w->list->allocator, old.seen);
    return true;
}

// Notes a directory for reading unless it was met before.
static leat_err add_directory(walk *w, const char *path, const struct statx *status)
{
    const leat_allocator *allocator = w->list->allocator;
    leati_file_id id = id_of(status);
    if ((w->seen_count + 1) * 2 > w->seen_slots && !seen_grow(w))
        return no_memory(w);
    met *seen = seen_slot(w, &id);
    if (seen->used)
        return LEAT_OK;
    if (!leati_grow(allocator, (void **)&w->pending, &w->pending_capacity, w->pending_count + 1,
                    sizeof *w->pending))
        return no_memory(w);
    char *copy = leati_strdup(allocator, path);
    if (!copy)
        return no_memory(w);
    *seen = (met){.id = id, .used = true};
    w->seen_count++;
    w->pending[w->pending_count++] = copy;
    return LEAT_OK;
}

// What could not be found has gone, or is a link that leads nowhere or to itself. Such a link may
// lead somewhere later, so it is listed too.
static leat_err add_vanished(walk *w, const char *path)
{
    struct statx status;
    if (statx(w->at, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &status) != 0 ||
        !S_ISLNK(status.stx_mode))
        return LEAT_OK;
    return add_file(w, path, &status);
}

// Adds what a path stands for. `named`: the user named it, so that a pipe or a device counts; in a
// directory only files and directories do.
static leat_err add_path(walk *w, const char *path, bool named)
{
    struct statx status;
    if (statx(w->at, path, 0, STATX_BASIC_STATS | STATX_BTIME, &status) != 0)
        return vanished(w, named) ? add_vanished(w, path) : failed(w, path);
    if (S_ISDIR(status.stx_mode))
        return add_directory(w, path, &status);
    bool regular = S_ISREG(status.stx_mode);
    // What has passed through these once never comes again, so that there is nothing to look for.
    if (named && !regular && w->how->watching) {
        snprintf(w->how->why, w->how->why_size, "%s is a pipe or a device, which cannot be watched",
                 path);
        return LEAT_EINVAL;
    }
    // An empty file that is watched is one that is about to be written.
    if ((!named && !regular) || (w->how->watching && regular && status.stx_size == 0))
        return LEAT_OK;
    return add_file(w, path, &status);
}

static bool cancelled(const walk *w)
{
    return w->how->ctx && leat_ctx_cancelled(w->how->ctx);
}

static leat_err read_entries(walk *w, const char *path, DIR *directory)
{
    const leat_allocator *allocator = w->list->allocator;
    leat_err err = LEAT_OK;
    while (err == LEAT_OK && !cancelled(w)) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry)
            return errno ? failed(w, path) : LEAT_OK;
        if (entry->d_name[0] == '.' || entry->d_name[0] == '_')
            continue;
        size_t length = strlen(path), size = length + strlen(entry->d_name) + 2;
        char *inner = leati_alloc(allocator, size);
        if (!inner)
            return no_memory(w);
        snprintf(inner, size, "%s%s%s", path, path[length - 1] == '/' ? "" : "/", entry->d_name);
        err = add_path(w, inner, false);
        leati_free(allocator, inner);
    }
    return err;
}

static DIR *open_directory(const walk *w, const char *path)
{
    int fd = openat(w->at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !directory) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return directory;
}

static leat_err read_directory(walk *w, const char *path, bool named)
{
    DIR *directory = open_directory(w, path);
    if (!directory)
        return vanished(w, named) ? LEAT_OK : failed(w, path);
    leat_err err = read_entries(w, path, directory);
    closedir(directory);
    return err;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp((*(leati_file *const *)a)->path, (*(leati_file *const *)b)->path);
}

// One of the paths given: itself, or all that is in it.
static leat_err list_path(walk *w, const char *path)
{
    leati_file_list *list = w->list;
    size_t first = list->count;
    if (!*path) {
        errno = ENOENT;
        return failed(w, path);
    }
    leat_err err = add_path(w, path, true);
    for (bool named = true; err == LEAT_OK && w->pending_count > 0; named = false) {
        char *directory = w->pending[--w->pending_count];
        err = cancelled(w) ? LEAT_ECANCELLED : read_directory(w, directory, named);
        leati_free(list->allocator, directory);
    }
    if (err == LEAT_OK && list->count > first)
        qsort(list->files + first, list->count - first, sizeof *list->files, compare_paths);
    return err;
}

static leat_err list_stdin(walk *w)
{
    for (size_t i = 0; i < w->list->count; i++)
        if (strcmp(w->list->files[i]->path, "-") == 0)
            return LEAT_OK;
    return add_file(w, "-", NULL);
}

leat_err leati_file_list_paths(leati_file_list *list, const leati_file_listing *listing,
                               const char *const *paths, size_t path_count)
{
    walk w = {.list = list, .how = listing};
    leat_err err = LEAT_OK;
    for (size_t i = 0; i < path_count && err == LEAT_OK; i++) {
        if (strcmp(paths[i], "-") == 0) {
            err = list_stdin(&w);
            continue;
        }
        int at = leati_folder_open(listing->folder, paths[i]);
        if (at == -1) {
            err = leati_file_why(errno, "cannot open the folder of the job,", listing->folder,
                                 listing->why, listing->why_size);
            break;
        }
        w.at = at;
        // What is named twice is read twice.
        if (w.seen)
            memset(w.seen, 0, w.seen_slots * sizeof *w.seen);
        w.seen_count = 0;
        err = list_path(&w, paths[i]);
        leati_folder_close(at);
    }
    while (w.pending_count)
        leati_free(list->allocator, w.pending[--w.pending_count]);
    leati_free(list->allocator, w.pending);
    leati_free(list->allocator, w.seen);
    return err == LEAT_OK && cancelled(&w) ? LEAT_ECANCELLED : err;
}
