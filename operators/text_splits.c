// SPDX-License-Identifier: Apache-2.0
#include "operators/text_splits.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

typedef struct text_file {
    char *path;
    int64_t size; // STREAM when it cannot be read at a position
} text_file;

enum { STREAM = -1 };

typedef struct directory_id {
    dev_t device;
    ino_t inode;
    bool used;
} directory_id;

struct leati_text_splits {
    const leat_allocator *allocator;
    int64_t split_size;
    pthread_mutex_t lock;
    // Under the lock; the files do not change once they are listed.
    bool listed;
    text_file *files;
    size_t file_count, file_capacity;
    size_t next_file; // what comes next
    int64_t next_start;
};

// What listing needs beside the result.
typedef struct listing {
    leati_text_splits *splits;
    // Directories still to be read, and those that were met.
    char **pending;
    size_t pending_count, pending_capacity;
    directory_id *seen; // a hash table; a power of two of slots
    size_t seen_count, seen_slots;
    bool has_stdin;
    char *why;
    size_t why_size;
} listing;

const char *leati_text_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

leat_err leati_text_error(int number, const char *what, const char *path, char *why,
                          size_t why_size)
{
    char text[128];
    snprintf(why, why_size, "%s %s: %s", what, leati_text_name(path),
             strerror_r(number, text, sizeof text));
    return number == ENOENT ? LEAT_ENOENT : number == ENOMEM ? LEAT_ENOMEM : LEAT_EIO;
}

static leat_err no_memory(listing *list)
{
    snprintf(list->why, list->why_size, "no memory for the list of files");
    return LEAT_ENOMEM;
}

// Takes over `path`, also on failure.
static leat_err add_file(listing *list, char *path, int64_t size)
{
    leati_text_splits *splits = list->splits;
    leat_err err = LEAT_OK;
    if (splits->file_count == LEATI_TEXT_MAX_FILES) {
        snprintf(list->why, list->why_size, "more than %d files", LEATI_TEXT_MAX_FILES);
        err = LEAT_ETOOBIG;
    } else if (!leati_grow(splits->allocator, (void **)&splits->files, &splits->file_capacity,
                           splits->file_count + 1, sizeof *splits->files)) {
        err = no_memory(list);
    }
    if (err == LEAT_OK)
        splits->files[splits->file_count++] = (text_file){.path = path, .size = size};
    else
        leati_free(splits->allocator, path);
    return err;
}

static directory_id *seen_slot(const listing *list, directory_id id)
{
    uint64_t hash = ((uint64_t)id.inode ^ (uint64_t)id.device << 32) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (list->seen_slots - 1);
    while (list->seen[at].used &&
           (list->seen[at].device != id.device || list->seen[at].inode != id.inode))
        at = (at + 1) & (list->seen_slots - 1);
    return &list->seen[at];
}

static bool seen_grow(listing *list)
{
    listing old = *list;
    list->seen_slots = old.seen_slots ? old.seen_slots * 2 : 64;
    list->seen = leati_calloc(list->splits->allocator, list->seen_slots, sizeof *list->seen);
    if (!list->seen) {
        *list = old;
        return false;
    }
    for (size_t i = 0; i < old.seen_slots; i++)
        if (old.seen[i].used)
            *seen_slot(list, old.seen[i]) = old.seen[i];
    leati_free(list->splits->allocator, old.seen);
    return true;
}

// Notes a directory for reading unless it was met before. Takes over `path`, also on failure.
static leat_err add_directory(listing *list, char *path, const struct stat *status)
{
    const leat_allocator *allocator = list->splits->allocator;
    directory_id id = {.device = status->st_dev, .inode = status->st_ino, .used = true};
    if ((list->seen_count + 1) * 2 > list->seen_slots && !seen_grow(list)) {
        leati_free(allocator, path);
        return no_memory(list);
    }
    directory_id *seen = seen_slot(list, id);
    if (seen->used) {
        leati_free(allocator, path);
        return LEAT_OK;
    }
    if (!leati_grow(allocator, (void **)&list->pending, &list->pending_capacity,
                    list->pending_count + 1, sizeof *list->pending)) {
        leati_free(allocator, path);
        return no_memory(list);
    }
    *seen = id;
    list->seen_count++;
    list->pending[list->pending_count++] = path;
    return LEAT_OK;
}

// Adds what a path stands for. `named`: the user named it, so that a pipe or a device counts; in a
// directory only files and directories do. Takes over `path`, also on failure.
static leat_err add_path(listing *list, char *path, bool named)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        leat_err err = leati_text_error(errno, "cannot read", path, list->why, list->why_size);
        leati_free(list->splits->allocator, path);
        return err;
    }
    if (S_ISDIR(status.st_mode))
        return add_directory(list, path, &status);
    // Files of /proc say that they are empty; as streams they are read until they end.
    if (S_ISREG(status.st_mode))
        return add_file(list, path, status.st_size > 0 ? status.st_size : STREAM);
    if (named)
        return add_file(list, path, STREAM);
    leati_free(list->splits->allocator, path);
    return LEAT_OK;
}

static char *join(const leat_allocator *allocator, const char *directory, const char *name)
{
    size_t length = strlen(directory), size = length + strlen(name) + 2;
    char *path = leati_alloc(allocator, size);
    if (path)
        snprintf(path, size, "%s%s%s", directory, length && directory[length - 1] == '/' ? "" : "/",
                 name);
    return path;
}

static leat_err read_directory(listing *list, const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return leati_text_error(errno, "cannot read", path, list->why, list->why_size);
    leat_err err = LEAT_OK;
    while (err == LEAT_OK) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            if (errno)
                err = leati_text_error(errno, "cannot read", path, list->why, list->why_size);
            break;
        }
        if (entry->d_name[0] == '.' || entry->d_name[0] == '_')
            continue;
        char *inner = join(list->splits->allocator, path, entry->d_name);
        err = inner ? add_path(list, inner, false) : no_memory(list);
    }
    closedir(directory);
    return err;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const text_file *)a)->path, ((const text_file *)b)->path);
}

// One of the paths given: itself, or all that is in it.
static leat_err list_argument(listing *list, const char *argument)
{
    leati_text_splits *splits = list->splits;
    size_t first = splits->file_count;
    bool is_stdin = strcmp(argument, "-") == 0;
    if (is_stdin && list->has_stdin)
        return LEAT_OK;
    char *path = leati_strdup(splits->allocator, argument);
    if (!path)
        return no_memory(list);
    list->has_stdin |= is_stdin;
    leat_err err = is_stdin ? add_file(list, path, STREAM) : add_path(list, path, true);
    while (err == LEAT_OK && list->pending_count) {
        char *directory = list->pending[--list->pending_count];
        err = read_directory(list, directory);
        leati_free(splits->allocator, directory);
    }
    // A directory that is named twice is read twice.
    if (list->seen_count)
        memset(list->seen, 0, list->seen_slots * sizeof *list->seen);
    list->seen_count = 0;
    if (err == LEAT_OK && splits->file_count - first > 1)
        qsort(splits->files + first, splits->file_count - first, sizeof *splits->files,
              compare_paths);
    return err;
}

leat_err leati_text_splits_create(const leat_allocator *allocator, int64_t split_size_bytes,
                                  leati_text_splits **splits)
{
    leati_text_splits *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = allocator;
    s->split_size = split_size_bytes;
    pthread_mutex_init(&s->lock, NULL);
    *splits = s;
    return LEAT_OK;
}

static void drop_files(leati_text_splits *splits)
{
    for (size_t i = 0; i < splits->file_count; i++)
        leati_free(splits->allocator, splits->files[i].path);
    splits->file_count = 0;
}

static leat_err list_locked(leati_text_splits *splits, const char *const *paths, size_t path_count,
                            char *why, size_t why_size)
{
    listing list = {.splits = splits, .why = why, .why_size = why_size};
    leat_err err = LEAT_OK;
    for (size_t i = 0; i < path_count && err == LEAT_OK; i++)
        err = list_argument(&list, paths[i]);
    while (list.pending_count)
        leati_free(splits->allocator, list.pending[--list.pending_count]);
    leati_free(splits->allocator, list.pending);
    leati_free(splits->allocator, list.seen);
    if (err != LEAT_OK)
        drop_files(splits);
    return err;
}

leat_err leati_text_splits_list(leati_text_splits *splits, const char *const *paths,
                                size_t path_count, char *why, size_t why_size)
{
    pthread_mutex_lock(&splits->lock);
    leat_err err = splits->listed ? LEAT_OK : list_locked(splits, paths, path_count, why, why_size);
    splits->listed = err == LEAT_OK;
    pthread_mutex_unlock(&splits->lock);
    return err;
}

void leati_text_splits_destroy(leati_text_splits **splits)
{
    leati_text_splits *s = *splits;
    if (!s)
        return;
    drop_files(s);
    leati_free(s->allocator, s->files);
    pthread_mutex_destroy(&s->lock);
    leati_free(s->allocator, s);
    *splits = NULL;
}

bool leati_text_splits_next(leati_text_splits *splits, leati_text_split *split)
{
    pthread_mutex_lock(&splits->lock);
    bool found = splits->next_file < splits->file_count;
    if (found) {
        const text_file *file = &splits->files[splits->next_file];
        int64_t left = file->size - splits->next_start;
        *split = (leati_text_split){.path = file->path,
                                    .stream = file->size == STREAM,
                                    .start = splits->next_start,
                                    .end = file->size};
        if (file->size != STREAM && left > splits->split_size) {
            split->end = splits->next_start + splits->split_size;
            splits->next_start = split->end;
        } else {
            splits->next_file++;
            splits->next_start = 0;
        }
    }
    pthread_mutex_unlock(&splits->lock);
    return found;
}
