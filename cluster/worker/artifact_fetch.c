// SPDX-License-Identifier: Apache-2.0
// One file of the artifact cache: fetched piece by piece into a file with a name of its own, which
// gets the artifact's name only when all its bytes are there and have the right hash.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "cluster/worker/artifact_impl.h"

static void print_hash(XXH128_hash_t hash, char text[LEATI_HASH_SIZE])
{
    snprintf(text, LEATI_HASH_SIZE, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

static bool hash_is(const XXH3_state_t *state, const leati_artifact *a)
{
    char text[LEATI_HASH_SIZE];
    print_hash(XXH3_128bits_digest(state), text);
    return strcmp(text, a->hash) == 0;
}

bool leati_artifact_check(leati_artifact_cache *c, leati_artifact *a)
{
    int fd = openat(c->folder_fd, a->hash, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint8_t *buffer = leati_alloc(c->allocator, LEATI_ARTIFACT_PIECE);
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    ssize_t got = -1;
    uint64_t size = 0;
    while (fd >= 0 && buffer) {
        got = read(fd, buffer, LEATI_ARTIFACT_PIECE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        XXH3_128bits_update(&state, buffer, (size_t)got);
        size += (uint64_t)got;
    }
    if (fd >= 0)
        close(fd);
    leati_free(c->allocator, buffer);
    bool good = got == 0 && size == a->size && hash_is(&state, a);
    if (!good)
        unlinkat(c->folder_fd, a->hash, 0);
    return good;
}

// --- fetching ---

static leat_err explain(char *why, size_t why_size, leat_err err, const char *what, int error)
{
    snprintf(why, why_size, "%s: %s", what, error ? strerror(error) : leat_err_message(err));
    return err;
}

// Asks for the piece at `offset` and waits for it.
static leat_err next_piece(leati_artifact_cache *c, leati_artifact *a, uint64_t offset,
                           const leati_artifact_asker *asker, char *why, size_t why_size)
{
    pthread_mutex_lock(&c->lock);
    a->offset = offset;
    a->waiting = true;
    pthread_mutex_unlock(&c->lock);
    leat_err err = asker->ask(asker->user, (leat_str){a->hash, LEATI_HASH_SIZE - 1}, offset);
    pthread_mutex_lock(&c->lock);
    while (!err && a->waiting) {
        if (atomic_load_explicit(asker->stop, memory_order_acquire))
            err = LEAT_ECANCELLED;
        else
            pthread_cond_wait(&c->changed, &c->lock);
    }
    a->waiting = false;
    pthread_mutex_unlock(&c->lock);
    if (err)
        return explain(why, why_size, err, "asking the job manager for it", 0);
    if (a->refused[0]) {
        snprintf(why, why_size, "the job manager does not give it: %s", a->refused);
        return LEAT_ENOENT;
    }
    if (a->total != a->size || a->piece_size == 0 || a->piece_size > a->size - offset) {
        snprintf(why, why_size,
                 "the job manager has sent %zu bytes at %" PRIu64 " of a file of %" PRIu64
                 " bytes, which should have %" PRIu64,
                 a->piece_size, offset, a->total, a->size);
        return LEAT_ECORRUPT;
    }
    return LEAT_OK;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

static leat_err fetch_into(leati_artifact_cache *c, leati_artifact *a, int fd,
                           const leati_artifact_asker *asker, char *why, size_t why_size)
{
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (uint64_t offset = 0; offset < a->size; offset += a->piece_size) {
        leat_err err = next_piece(c, a, offset, asker, why, why_size);
        if (err)
            return err;
        XXH3_128bits_update(&state, a->piece, a->piece_size);
        int error = write_all(fd, a->piece, a->piece_size);
        if (error)
            return explain(why, why_size, LEAT_EIO, "it cannot be written to the artifact cache",
                           error);
    }
    if (hash_is(&state, a))
        return LEAT_OK;
    snprintf(why, why_size, "its bytes are not what was announced: the hash differs");
    return LEAT_ECORRUPT;
}

leat_err leati_artifact_fetch(leati_artifact_cache *c, leati_artifact *a,
                              const leati_artifact_asker *asker, char *why, size_t why_size)
{
    char name[LEATI_HASH_SIZE + 8];
    snprintf(name, sizeof name, ".%s", a->hash);
    uint8_t *piece = leati_alloc(c->allocator, LEATI_ARTIFACT_PIECE);
    if (!piece)
        return explain(why, why_size, LEAT_ENOMEM, "fetching it", 0);
    pthread_mutex_lock(&c->lock);
    a->piece = piece;
    pthread_mutex_unlock(&c->lock);
    unlinkat(c->folder_fd, name, 0);
    int fd = openat(c->folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    leat_err err = fd < 0 ? explain(why, why_size, LEAT_EIO,
                                    "it cannot be written to the artifact cache", errno)
                          : fetch_into(c, a, fd, asker, why, why_size);
    if (fd >= 0 && close(fd) && !err)
        err = explain(why, why_size, LEAT_EIO, "it cannot be written to the artifact cache", errno);
    if (!err && renameat(c->folder_fd, name, c->folder_fd, a->hash))
        err = explain(why, why_size, LEAT_EIO, "it cannot be put into the artifact cache", errno);
    if (err)
        unlinkat(c->folder_fd, name, 0);
    pthread_mutex_lock(&c->lock);
    a->piece = NULL;
    pthread_mutex_unlock(&c->lock);
    leati_free(c->allocator, piece);
    return err;
}
