// SPDX-License-Identifier: Apache-2.0
// Files that a task manager has fetched from its job manager, by the hash of their bytes.
//
// Threading. Any thread. One thread fetches an artifact; others that want it wait for that one.
// Pieces come from the control connection's reader, which never waits here for more than the lock.
// The lock is held for no input or output.
//
// Life cycle. What is taken is pinned, and its file stays, until it is dropped. What nobody has
// taken stays too, as long as there is room; what was used longest ago goes first. Files of an
// earlier process are found again and checked when they are first taken.
//
// Bounds. All files together take at most `limit` bytes, those under way included.
#ifndef LEATI_CLUSTER_WORKER_ARTIFACT_CACHE_H
#define LEATI_CLUSTER_WORKER_ARTIFACT_CACHE_H

#include <stdatomic.h>

#include "cluster/message.h"

enum { LEATI_HASH_SIZE = 33, LEATI_ARTIFACT_PIECE = 256 * 1024, LEATI_PATH_SIZE = 4096 };

typedef struct leati_artifact_cache leati_artifact_cache;

// How a thread that fetches asks for pieces, and when it is to stop.
typedef struct leati_artifact_asker {
    leat_err (*ask)(void *user, leat_str hash, uint64_t offset);
    void *user;
    const _Atomic bool *stop; // acquire; whoever sets it calls leati_artifact_cache_wake then
} leati_artifact_asker;

// Takes over the folder, which exists. LEAT_EIO, LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_artifact_cache_create(const leat_allocator *allocator,
                                                   const char *folder, uint64_t limit,
                                                   leati_artifact_cache **cache, char *why,
                                                   size_t why_size);
// Nothing may be pinned. The files stay.
void leati_artifact_cache_destroy(leati_artifact_cache **cache);

// Makes sure that the file is there and pins it; `path` of LEATI_PATH_SIZE bytes gets where it is.
// May take long. LEAT_ECANCELLED when it was stopped; otherwise a sentence in `why`.
LEAT_MUST_USE leat_err leati_artifact_cache_take(leati_artifact_cache *cache,
                                                 const leati_msg_file *file,
                                                 const leati_artifact_asker *asker, char *path,
                                                 char *why, size_t why_size);
void leati_artifact_cache_drop(leati_artifact_cache *cache, leat_str hash);

// A piece has come, or a refusal. What nobody waits for is dropped.
void leati_artifact_cache_piece(leati_artifact_cache *cache, const leati_msg_piece *piece);
// Somebody's `stop` was set.
void leati_artifact_cache_wake(leati_artifact_cache *cache);

#endif
