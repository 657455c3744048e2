// SPDX-License-Identifier: Apache-2.0
// The cache's list of artifacts; artifact_fetch.c has what happens to one file.
#include "cluster/worker/artifact_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/worker/artifact_impl.h"

bool leati_hash_is_valid(leat_str hash)
{
    if (hash.size != LEATI_HASH_SIZE - 1)
        return false;
    for (size_t i = 0; i < hash.size; i++)
        if (!(hash.data[i] >= '0' && hash.data[i] <= '9') &&
            !(hash.data[i] >= 'a' && hash.data[i] <= 'f'))
            return false;
    return true;
}

static leati_artifact *find_locked(leati_artifact_cache *c, leat_str hash)
{
    leati_artifact *a = c->artifacts;
    while (a && (hash.size != LEATI_HASH_SIZE - 1 || memcmp(a->hash, hash.data, hash.size) != 0))
        a = a->next;
    return a;
}

static leati_artifact *add_locked(leati_artifact_cache *c, leat_str hash, uint64_t size)
{
    leati_artifact *a = leati_calloc(c->allocator, 1, sizeof *a);
    if (!a)
        return NULL;
    memcpy(a->hash, hash.data, LEATI_HASH_SIZE - 1);
    a->size = size;
    a->next = c->artifacts;
    c->artifacts = a;
    c->total += size;
    return a;
}

static void remove_locked(leati_artifact_cache *c, leati_artifact *gone)
{
    leati_artifact **at = &c->artifacts;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    c->total -= gone->size;
    leati_free(c->allocator, gone->piece);
    leati_free(c->allocator, gone);
}

static leati_artifact *oldest_unused_locked(leati_artifact_cache *c)
{
    leati_artifact *oldest = NULL;
    for (leati_artifact *a = c->artifacts; a; a = a->next)
        if (a->pins == 0 && a->state != LEATI_ARTIFACT_BUSY &&
            (!oldest || a->used_ns < oldest->used_ns))
            oldest = a;
    return oldest;
}

// Unlinking is the one thing that is done to files with the lock held: nobody may take what is
// going.
static void evict_locked(leati_artifact_cache *c, uint64_t size)
{
    leati_artifact *oldest;
    while (c->total + size > c->limit && (oldest = oldest_unused_locked(c))) {
        unlinkat(c->folder_fd, oldest->hash, 0);
        remove_locked(c, oldest);
    }
}

static leat_err refuse_size(const leati_artifact_cache *c, uint64_t size, char *why,
                            size_t why_size)
{
    snprintf(why, why_size,
             "the artifact cache is full: %" PRIu64 " bytes are needed, and of "
             "taskmanager.artifact-cache (%" PRIu64 " bytes) jobs use %" PRIu64,
             size, c->limit, c->total);
    return LEAT_ETOOBIG;
}

// --- taking and dropping ---

// With the lock; gives it up meanwhile. The artifact is busy, which keeps it in the list.
static leat_err bring_locked(leati_artifact_cache *c, leati_artifact *a,
                             const leati_artifact_asker *asker, char *why, size_t why_size)
{
    bool found = a->state == LEATI_ARTIFACT_FOUND;
    a->state = LEATI_ARTIFACT_BUSY;
    pthread_mutex_unlock(&c->lock);
    bool good = found && leati_artifact_check(c, a);
    leat_err err = good ? LEAT_OK : leati_artifact_fetch(c, a, asker, why, why_size);
    pthread_mutex_lock(&c->lock);
    a->state = LEATI_ARTIFACT_PRESENT;
    if (err)
        remove_locked(c, a);
    pthread_cond_broadcast(&c->changed);
    return err;
}

static leat_err make_locked(leati_artifact_cache *c, const leati_msg_file *file,
                            leati_artifact **made, char *why, size_t why_size)
{
    if (file->size <= c->limit)
        evict_locked(c, file->size);
    if (file->size > c->limit || c->total > c->limit - file->size)
        return refuse_size(c, file->size, why, why_size);
    *made = add_locked(c, file->hash, file->size);
    if (*made)
        return LEAT_OK;
    snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
    return LEAT_ENOMEM;
}

static leat_err take_locked(leati_artifact_cache *c, const leati_msg_file *file,
                            const leati_artifact_asker *asker, char *why, size_t why_size)
{
    for (;;) {
        if (atomic_load_explicit(asker->stop, memory_order_acquire))
            return LEAT_ECANCELLED;
        leati_artifact *a = find_locked(c, file->hash);
        if (a && a->state == LEATI_ARTIFACT_BUSY) {
            // Should whoever fetches it give up, the next one that waits has its turn.
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        leat_err err = LEAT_OK;
        if (a && a->size != file->size) {
            snprintf(why, why_size, "it is said to have %" PRIu64 " bytes, and has %" PRIu64,
                     file->size, a->size);
            return LEAT_ECORRUPT;
        }
        if (!a)
            err = make_locked(c, file, &a, why, why_size);
        if (!err && a->state != LEATI_ARTIFACT_PRESENT)
            err = bring_locked(c, a, asker, why, why_size);
        if (err)
            return err;
        a->pins++;
        return LEAT_OK;
    }
}

leat_err leati_artifact_cache_take(leati_artifact_cache *c, const leati_msg_file *file,
                                   const leati_artifact_asker *asker, char *path, char *why,
                                   size_t why_size)
{
    if (!leati_hash_is_valid(file->hash)) {
        snprintf(why, why_size, "its hash is none: 32 hexadecimal digits are wanted");
        return LEAT_EINVAL;
    }
    pthread_mutex_lock(&c->lock);
    leat_err err = take_locked(c, file, asker, why, why_size);
    pthread_mutex_unlock(&c->lock);
    if (!err)
        snprintf(path, LEATI_PATH_SIZE, "%s/%.*s", c->folder, (int)file->hash.size,
                 file->hash.data);
    return err;
}

void leati_artifact_cache_drop(leati_artifact_cache *c, leat_str hash)
{
    pthread_mutex_lock(&c->lock);
    leati_artifact *a = find_locked(c, hash);
    if (a) {
        a->pins--;
        a->used_ns = leati_clock_ns();
    }
    pthread_mutex_unlock(&c->lock);
}

// --- from the connection ---

void leati_artifact_cache_piece(leati_artifact_cache *c, const leati_msg_piece *piece)
{
    pthread_mutex_lock(&c->lock);
    leati_artifact *a = find_locked(c, piece->hash);
    if (a && a->waiting && a->offset == piece->offset) {
        a->waiting = false;
        a->total = piece->total;
        a->piece_size = 0;
        a->refused[0] = '\0';
        if (piece->refused.size)
            snprintf(a->refused, sizeof a->refused, "%.*s", (int)piece->refused.size,
                     piece->refused.data);
        else if (piece->bytes.size <= LEATI_ARTIFACT_PIECE) {
            memcpy(a->piece, piece->bytes.data, piece->bytes.size);
            a->piece_size = piece->bytes.size;
        }
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
}

void leati_artifact_cache_wake(leati_artifact_cache *c)
{
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

// --- the whole ---

// What an earlier process has left. A file whose name is no hash was on its way.
static void adopt(leati_artifact_cache *c, const char *name)
{
    struct stat info;
    leat_str hash = {name, strlen(name)};
    if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
        return;
    bool good = leati_hash_is_valid(hash) &&
                fstatat(c->folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG(info.st_mode);
    leati_artifact *a = good ? add_locked(c, hash, (uint64_t)info.st_size) : NULL;
    if (a)
        a->state = LEATI_ARTIFACT_FOUND;
    else
        unlinkat(c->folder_fd, name, 0);
}

static leat_err open_folder(leati_artifact_cache *c, char *why, size_t why_size)
{
    c->folder_fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int again = c->folder_fd < 0 ? -1 : openat(c->folder_fd, ".", O_RDONLY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    if (!entries) {
        snprintf(why, why_size, "%s cannot be read: %s", c->folder, strerror(errno));
        if (again >= 0)
            close(again);
        return LEAT_EIO;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        adopt(c, entry->d_name);
    closedir(entries);
    evict_locked(c, 0);
    return LEAT_OK;
}

leat_err leati_artifact_cache_create(const leat_allocator *allocator, const char *folder,
                                     uint64_t limit, leati_artifact_cache **cache, char *why,
                                     size_t why_size)
{
    leati_artifact_cache *c = leati_calloc(allocator, 1, sizeof *c);
    if (!c || !(c->folder = leati_strdup(allocator, folder))) {
        leati_free(allocator, c);
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    c->allocator = allocator;
    c->limit = limit;
    pthread_mutex_init(&c->lock, NULL);
    leati_cond_init(&c->changed);
    leat_err err = open_folder(c, why, why_size);
    if (err)
        leati_artifact_cache_destroy(&c);
    else
        *cache = c;
    return err;
}

void leati_artifact_cache_destroy(leati_artifact_cache **cache)
{
    leati_artifact_cache *c = *cache;
    if (!c)
        return;
    while (c->artifacts)
        remove_locked(c, c->artifacts);
    if (c->folder_fd >= 0)
        close(c->folder_fd);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    leati_free(c->allocator, c->folder);
    leati_free(c->allocator, c);
    *cache = NULL;
}
