// SPDX-License-Identifier: Apache-2.0
#include "cluster/client/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/utf8.h"

// Deeper folders are taken for a loop of symbolic links.
enum { DEPTH_MAX = 64, PIECE = 65536 };

LEAT_PRINTF(3, 4)
static leat_err fail(leati_sent_files *files, leat_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(files->why, sizeof files->why, format, args);
    va_end(args);
    leati_text_clean(files->why);
    return err;
}

static leat_err no_memory(leati_sent_files *files)
{
    return fail(files, LEAT_ENOMEM, "%s", leat_err_message(LEAT_ENOMEM));
}

// --- hashes ---

static void print_hash(XXH128_hash_t hash, char to[LEATI_HASH_SIZE])
{
    snprintf(to, LEATI_HASH_SIZE, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

void leati_hash_bytes(const void *bytes, size_t size, char hash[LEATI_HASH_SIZE])
{
    print_hash(XXH3_128bits(size ? bytes : "", size), hash);
}

// Reads a file to its end; its size is that of what was read.
static int hash_file(int fd, leati_sent_file *file)
{
    XXH3_state_t state;
    uint8_t *piece = leati_alloc(NULL, PIECE);
    if (!piece)
        return ENOMEM;
    XXH3_128bits_reset(&state);
    file->size = 0;
    ssize_t got;
    while ((got = read(fd, piece, PIECE)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        XXH3_128bits_update(&state, piece, (size_t)got);
        file->size += (uint64_t)got;
    }
    int error = got < 0 ? errno : 0;
    print_hash(XXH3_128bits_digest(&state), file->hash);
    leati_free(NULL, piece);
    return error;
}

// --- the list ---

void leati_sent_files_fini(leati_sent_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        leati_free(NULL, files->items[i].name);
        leati_free(NULL, files->items[i].path);
    }
    for (size_t i = 0; i < files->empty_count; i++)
        leati_free(NULL, files->empty_dirs[i]);
    leati_free(NULL, files->items);
    leati_free(NULL, files->empty_dirs);
    *files = (leati_sent_files){0};
}

static leat_err look_at(leati_sent_files *files, leati_sent_file *file, const char *path)
{
    struct stat info;
    // Not to wait for the other end should it be a FIFO.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(files, LEAT_EIO, "%s: %s", path, strerror(errno));
    leat_err err = LEAT_OK;
    int error = fstat(fd, &info) ? errno : 0;
    if (!error && !S_ISREG(info.st_mode))
        err = fail(files, LEAT_EINVAL, "%s is neither a file nor a folder", path);
    else if (!error)
        error = hash_file(fd, file);
    if (error)
        err =
            fail(files, error == ENOMEM ? LEAT_ENOMEM : LEAT_EIO, "%s: %s", path, strerror(error));
    file->executable = !err && (info.st_mode & S_IXUSR);
    close(fd);
    return err;
}

leat_err leati_sent_files_add(leati_sent_files *files, const char *name, const char *path)
{
    leati_sent_file file = {0};
    leat_err err = look_at(files, &file, path);
    if (err)
        return err;
    if (!leati_grow(NULL, (void **)&files->items, &files->capacity, files->count + 1,
                    sizeof *files->items))
        return no_memory(files);
    file.name = leati_strdup(NULL, name);
    file.path = leati_strdup(NULL, path);
    if (!file.name || !file.path) {
        leati_free(NULL, file.name);
        leati_free(NULL, file.path);
        return no_memory(files);
    }
    files->items[files->count++] = file;
    return LEAT_OK;
}

static leat_err add_empty(leati_sent_files *files, const char *name)
{
    char *copy = leati_strdup(NULL, name);
    if (!copy || !leati_grow(NULL, (void **)&files->empty_dirs, &files->empty_capacity,
                             files->empty_count + 1, sizeof *files->empty_dirs)) {
        leati_free(NULL, copy);
        return no_memory(files);
    }
    files->empty_dirs[files->empty_count++] = copy;
    return LEAT_OK;
}

// --- directories ---

static leat_err add_below(leati_sent_files *files, const char *name, const char *path, int depth);

static leat_err add_entry(leati_sent_files *files, const char *name, const char *path,
                          const char *entry, int depth)
{
    leati_strbuf below, there;
    leati_strbuf_init(&below, NULL);
    leati_strbuf_init(&there, NULL);
    leati_strbuf_printf(&below, "%s/%s", name, entry);
    leati_strbuf_printf(&there, "%s/%s", path, entry);
    leat_err err = below.failed || there.failed ? no_memory(files)
                                                : add_below(files, leati_strbuf_text(&below),
                                                            leati_strbuf_text(&there), depth + 1);
    leati_strbuf_fini(&below);
    leati_strbuf_fini(&there);
    return err;
}

// The names in a folder, in order.
typedef struct listing {
    char **names;
    size_t count, capacity;
} listing;

static void listing_fini(listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        leati_free(NULL, l->names[i]);
    leati_free(NULL, l->names);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// 0 or an errno.
static int read_listing(DIR *folder, listing *l)
{
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (!leati_grow(NULL, (void **)&l->names, &l->capacity, l->count + 1, sizeof *l->names))
            return ENOMEM;
        l->names[l->count] = leati_strdup(NULL, entry->d_name);
        if (!l->names[l->count])
            return ENOMEM;
        l->count++;
    }
    return errno;
}

static leat_err add_directory(leati_sent_files *files, const char *name, const char *path,
                              int depth)
{
    if (depth > DEPTH_MAX)
        return fail(files, LEAT_EINVAL, "%s lies deeper than %d folders", path, DEPTH_MAX);
    listing l = {0};
    DIR *folder = opendir(path);
    int error = folder ? read_listing(folder, &l) : errno;
    if (folder)
        closedir(folder);
    leat_err err = LEAT_OK;
    if (error)
        err =
            fail(files, error == ENOMEM ? LEAT_ENOMEM : LEAT_EIO, "%s: %s", path, strerror(error));
    else if (l.count == 0)
        err = add_empty(files, name);
    else
        // So that the same folder is always sent alike.
        qsort(l.names, l.count, sizeof *l.names, by_name);
    for (size_t i = 0; !err && i < l.count; i++)
        err = add_entry(files, name, path, l.names[i], depth);
    listing_fini(&l);
    return err;
}

static leat_err add_below(leati_sent_files *files, const char *name, const char *path, int depth)
{
    struct stat info;
    if (stat(path, &info))
        return fail(files, LEAT_EIO, "%s: %s", path, strerror(errno));
    return S_ISDIR(info.st_mode) ? add_directory(files, name, path, depth)
                                 : leati_sent_files_add(files, name, path);
}

leat_err leati_sent_files_add_tree(leati_sent_files *files, const char *name, const char *path)
{
    return add_below(files, name, path, 0);
}
