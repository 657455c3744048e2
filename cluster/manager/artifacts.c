// SPDX-License-Identifier: Apache-2.0
// The store of artifacts: files by the hash of their bytes, XXH3-128. Files of jobs that have not
// ended stay; the others go, the one used longest ago first, when room is needed.
//
// Whoever has sent a file, or has asked whether it is here, is about to name it in a job: until a
// job does, but not for longer than LEASE_MS, it stays as well. Else clients that submit at the
// same time would push each other's files out before any of them has a job. A lease is not
// prolonged by asking again, so that two clients whose files do not fit together do not hold each
// other up.
//
// What is there is known by a table: what an earlier job manager has left in the folder is removed
// at the start, as nothing says whether it is whole.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"

enum {
    HASH_DIGITS = LEATI_ID_SIZE - 1,
    READ_SIZE = 65536,
    PIECE_SIZE = 262144,
    LEASE_MS = 5000,
};

typedef struct artifact {
    char hash[LEATI_ID_SIZE];
    uint64_t size;
    uint32_t pins;
    int64_t used_ns;
    int64_t leased_ns; // until when it stays for a job that is about to come; 0: none is
} artifact;

struct leati_store {
    leat_allocator allocator;
    char folder[LEATI_PATH_SIZE - LEATI_ID_SIZE];
    uint64_t limit;
    pthread_mutex_t lock;
    // Under the lock.
    artifact *items;
    size_t count, capacity;
    uint64_t total;
};

leat_err leati_store_create(const leat_allocator *allocator, const char *folder, uint64_t limit,
                            struct leati_store **store, char *why, size_t why_size)
{
    struct leati_store *made = leati_calloc(allocator, 1, sizeof *made);
    if (!made) {
        snprintf(why, why_size, "out of memory");
        return LEAT_ENOMEM;
    }
    made->allocator = *allocator;
    made->limit = limit;
    pthread_mutex_init(&made->lock, NULL);
    leat_err err = LEAT_OK;
    if ((size_t)snprintf(made->folder, sizeof made->folder, "%s/artifacts", folder) >=
        sizeof made->folder) {
        snprintf(why, why_size, "the folder's name \"%.80s…\" is too long", folder);
        err = LEAT_EINVAL;
    } else {
        leati_remove_tree(made->folder);
        err = leati_make_folder(made->folder, why, why_size);
    }
    if (err == LEAT_OK)
        *store = made;
    else
        leati_store_destroy(&made);
    return err;
}

void leati_store_destroy(struct leati_store **store)
{
    struct leati_store *gone = *store;
    *store = NULL;
    if (!gone)
        return;
    const leat_allocator allocator = gone->allocator;
    leati_free(&allocator, gone->items);
    pthread_mutex_destroy(&gone->lock);
    leati_free(&allocator, gone);
}

static bool is_hash(const char *text, size_t size)
{
    return size == HASH_DIGITS && strspn(text, "0123456789abcdef") >= size;
}

static artifact *find(struct leati_store *store, const char *hash)
{
    for (size_t i = 0; i < store->count; i++)
        if (!memcmp(store->items[i].hash, hash, HASH_DIGITS))
            return &store->items[i];
    return NULL;
}

static void path_of(const struct leati_store *store, const char *hash, char *path)
{
    snprintf(path, LEATI_PATH_SIZE, "%s/%.*s", store->folder, HASH_DIGITS, hash);
}

// Somebody is about to name it in a job.
static void lease(artifact *item)
{
    int64_t now_ns = leati_clock_ns();
    item->used_ns = now_ns;
    if (item->leased_ns <= now_ns)
        item->leased_ns = now_ns + LEASE_MS * INT64_C(1000000);
}

static bool has_to_stay(const artifact *item, int64_t now_ns)
{
    return item->pins || item->leased_ns > now_ns;
}

bool leati_artifact_path(const leati_manager *manager, const char *hash, char *path)
{
    struct leati_store *store = manager->store;
    path[0] = '\0';
    if (!is_hash(hash, strlen(hash)))
        return false;
    path_of(store, hash, path);
    pthread_mutex_lock(&store->lock);
    artifact *found = find(store, hash);
    if (found)
        lease(found);
    pthread_mutex_unlock(&store->lock);
    return found != NULL;
}

// --- putting ---

static void print_hash(XXH128_hash_t digest, char hash[LEATI_ID_SIZE])
{
    snprintf(hash, LEATI_ID_SIZE, "%016" PRIx64 "%016" PRIx64, (uint64_t)digest.high64,
             (uint64_t)digest.low64);
}

static leat_err hash_file(const char *path, char hash[LEATI_ID_SIZE], uint64_t *size, char *why,
                          size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    XXH3_state_t state;
    uint8_t bytes[READ_SIZE];
    ssize_t got = -1;
    *size = 0;
    XXH3_128bits_reset(&state);
    while (fd >= 0 && ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))) {
        if (got < 0)
            continue;
        XXH3_128bits_update(&state, bytes, (size_t)got);
        *size += (uint64_t)got;
    }
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    if (got < 0) {
        snprintf(why, why_size, "the artifact's bytes cannot be read again: %s", strerror(error));
        return LEAT_EIO;
    }
    print_hash(XXH3_128bits_digest(&state), hash);
    return LEAT_OK;
}

static artifact *oldest_unused(struct leati_store *store, int64_t now_ns)
{
    artifact *oldest = NULL;
    for (size_t i = 0; i < store->count; i++) {
        artifact *item = &store->items[i];
        if (!has_to_stay(item, now_ns) && (!oldest || item->used_ns < oldest->used_ns))
            oldest = item;
    }
    return oldest;
}

// Evicts until there is room. Nothing is evicted when that would not do.
static leat_err make_room(struct leati_store *store, uint64_t size, char *why, size_t why_size)
{
    int64_t now_ns = leati_clock_ns();
    uint64_t staying = 0;
    for (size_t i = 0; i < store->count; i++)
        staying += has_to_stay(&store->items[i], now_ns) ? store->items[i].size : 0;
    if (size > store->limit || staying > store->limit - size) {
        snprintf(why, why_size,
                 "an artifact of %" PRIu64 " bytes does not fit: %" PRIu64 " bytes are in use by"
                 " jobs that have not ended or are being submitted, and the store takes %" PRIu64
                 " (cluster.artifact-store)",
                 size, staying, store->limit);
        return LEAT_ENOBUFS;
    }
    while (store->total > store->limit - size) {
        artifact *gone = oldest_unused(store, now_ns);
        assert(gone); // or all that is there would have to stay, and be small enough
        char path[LEATI_PATH_SIZE];
        path_of(store, gone->hash, path);
        (void)unlink(path);
        store->total -= gone->size;
        *gone = store->items[--store->count];
    }
    return LEAT_OK;
}

static leat_err put_locked(struct leati_store *store, const char *hash, uint64_t size,
                           const char *temporary, char *why, size_t why_size)
{
    artifact *there = find(store, hash);
    if (there) {
        lease(there);
        return LEAT_OK;
    }
    leat_err err = make_room(store, size, why, why_size);
    if (err != LEAT_OK)
        return err;
    if (!leati_grow(&store->allocator, (void **)&store->items, &store->capacity, store->count + 1,
                    sizeof *store->items)) {
        snprintf(why, why_size, "out of memory");
        return LEAT_ENOMEM;
    }
    char path[LEATI_PATH_SIZE];
    path_of(store, hash, path);
    if (rename(temporary, path) != 0) {
        snprintf(why, why_size, "the artifact cannot be stored: %s", strerror(errno));
        return LEAT_EIO;
    }
    artifact *item = &store->items[store->count++];
    *item = (artifact){.size = size};
    memcpy(item->hash, hash, HASH_DIGITS);
    lease(item);
    store->total += size;
    return LEAT_OK;
}

leat_err leati_artifact_put(leati_manager *manager, const char *hash, const char *temporary,
                            char *why, size_t why_size)
{
    struct leati_store *store = manager->store;
    char found[LEATI_ID_SIZE];
    uint64_t size = 0;
    leat_err err = LEAT_OK;
    if (!is_hash(hash, strlen(hash))) {
        snprintf(why, why_size, "\"%.40s\" is no hash: it needs 32 digits 0-9 a-f", hash);
        err = LEAT_EINVAL;
    }
    if (err == LEAT_OK)
        err = hash_file(temporary, found, &size, why, why_size);
    if (err == LEAT_OK && strcmp(found, hash) != 0) {
        snprintf(why, why_size,
                 "the bytes are not those of %s: what came, %" PRIu64 " bytes, has the hash %s",
                 hash, size, found);
        err = LEAT_ECORRUPT;
    }
    if (err == LEAT_OK) {
        pthread_mutex_lock(&store->lock);
        err = put_locked(store, hash, size, temporary, why, why_size);
        pthread_mutex_unlock(&store->lock);
    }
    (void)unlink(temporary);
    return err;
}

// --- pins ---

static leat_err pin_file(struct leati_store *store, const leati_msg_file *file, char *why,
                         size_t why_size)
{
    artifact *found =
        is_hash(file->hash.data, file->hash.size) ? find(store, file->hash.data) : NULL;
    if (!found) {
        snprintf(why, why_size,
                 "the file \"%.*s\" (%.*s) is not in the store: it has not been sent, or has made"
                 " room for those of other jobs since (cluster.artifact-store)",
                 (int)file->name.size, file->name.data, (int)file->hash.size, file->hash.data);
        return LEAT_ENOENT;
    }
    if (found->size != file->size) {
        snprintf(why, why_size,
                 "the file \"%.*s\" is said to have %" PRIu64 " bytes, and has %" PRIu64,
                 (int)file->name.size, file->name.data, file->size, found->size);
        return LEAT_EINVAL;
    }
    found->pins++;
    found->used_ns = leati_clock_ns();
    return LEAT_OK;
}

static uint64_t file_count(const leati_msg_job *job)
{
    return 1 + job->libraries.count + job->cached.count;
}

static const leati_msg_file *file_at(const leati_msg_job *job, uint64_t index)
{
    if (index == 0)
        return &job->job_file;
    index--;
    if (index < job->libraries.count)
        return &((const leati_msg_file *)job->libraries.items)[index];
    return &((const leati_msg_file *)job->cached.items)[index - job->libraries.count];
}

static void unpin_first(struct leati_store *store, const leati_msg_job *job, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        artifact *found = find(store, file_at(job, i)->hash.data);
        if (found && found->pins > 0)
            found->pins--;
    }
}

// The job that they were for is there; when it has ended they may go.
static void end_leases(struct leati_store *store, const leati_msg_job *job)
{
    for (uint64_t i = 0; i < file_count(job); i++) {
        artifact *found = find(store, file_at(job, i)->hash.data);
        if (found)
            found->leased_ns = 0;
    }
    char graph[LEATI_ID_SIZE];
    print_hash(XXH3_128bits(job->graph.data, job->graph.size), graph);
    artifact *found = find(store, graph);
    if (found)
        found->leased_ns = 0;
}

leat_err leati_store_pin(struct leati_store *store, const leati_msg_job *job, char *why,
                         size_t why_size)
{
    uint64_t pinned = 0, count = file_count(job);
    leat_err err = LEAT_OK;
    pthread_mutex_lock(&store->lock);
    while (pinned < count &&
           (err = pin_file(store, file_at(job, pinned), why, why_size)) == LEAT_OK)
        pinned++;
    if (err != LEAT_OK)
        unpin_first(store, job, pinned);
    else
        end_leases(store, job);
    pthread_mutex_unlock(&store->lock);
    return err;
}

void leati_store_unpin(struct leati_store *store, const leati_msg_job *job)
{
    pthread_mutex_lock(&store->lock);
    unpin_first(store, job, file_count(job));
    pthread_mutex_unlock(&store->lock);
}

// --- pieces for task managers ---

// 0, or an error of the system.
static int read_piece(const char *path, uint64_t offset, uint8_t *to, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    if (fd < 0)
        return errno;
    do
        got = pread(fd, to, *size, (off_t)offset);
    while (got < 0 && errno == EINTR);
    int error = got < 0 ? errno : 0;
    (void)close(fd);
    if (!error)
        *size = (size_t)got;
    return error;
}

leat_err leati_artifact_fetched(leati_manager *manager, leati_rpc *rpc,
                                const leati_msg_piece *fetch)
{
    struct leati_store *store = manager->store;
    char path[LEATI_PATH_SIZE] = "", why[160];
    int error;
    leati_msg_piece chunk = {.hash = fetch->hash, .offset = fetch->offset};
    pthread_mutex_lock(&store->lock);
    artifact *found =
        is_hash(fetch->hash.data, fetch->hash.size) ? find(store, fetch->hash.data) : NULL;
    if (found) {
        path_of(store, found->hash, path);
        chunk.total = found->size;
    }
    pthread_mutex_unlock(&store->lock);
    size_t size = PIECE_SIZE;
    uint8_t *bytes = path[0] ? leati_alloc(manager->allocator, size) : NULL;
    if (!path[0])
        chunk.refused = leati_text("it is not in the job manager's store");
    else if (!bytes)
        chunk.refused = leati_text("the job manager is out of memory");
    else if ((error = read_piece(path, fetch->offset, bytes, &size)) != 0) {
        snprintf(why, sizeof why, "the job manager cannot read it: %s", strerror(error));
        chunk.refused = leati_text(why);
    } else {
        chunk.bytes = (leat_bytes){bytes, size};
    }
    leat_err err = leati_rpc_send(rpc, LEATI_MESSAGE_CHUNK, LEAT_TYPE(leati_msg_piece), &chunk);
    leati_free(manager->allocator, bytes);
    return err;
}
