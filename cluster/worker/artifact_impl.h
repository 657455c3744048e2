// SPDX-License-Identifier: Apache-2.0
// What the two files of the artifact cache share.
#ifndef LEATI_CLUSTER_WORKER_ARTIFACT_IMPL_H
#define LEATI_CLUSTER_WORKER_ARTIFACT_IMPL_H

#include <pthread.h>

#include "cluster/worker/artifact_cache.h"

typedef enum leati_artifact_state {
    LEATI_ARTIFACT_ABSENT = 0,
    LEATI_ARTIFACT_FOUND,   // an earlier process has left it: not checked yet
    LEATI_ARTIFACT_BUSY,    // a thread checks or fetches it
    LEATI_ARTIFACT_PRESENT, // good
} leati_artifact_state;

typedef struct leati_artifact {
    // Immutable.
    char hash[LEATI_HASH_SIZE];
    uint64_t size;
    // Under the lock.
    struct leati_artifact *next;
    leati_artifact_state state;
    uint32_t pins;
    int64_t used_ns; // when it was last dropped
    // Under the lock, of one that is BUSY: the piece that is asked for, or has come.
    bool waiting;
    uint64_t offset, total;
    uint8_t *piece; // of LEATI_ARTIFACT_PIECE bytes; read by the fetching thread when not `waiting`
    size_t piece_size;
    char refused[200];
} leati_artifact;

struct leati_artifact_cache {
    // Immutable.
    const leat_allocator *allocator;
    char *folder;
    int folder_fd;
    uint64_t limit;
    pthread_mutex_t lock;
    pthread_cond_t changed; // a piece has come, an artifact is BUSY no more, somebody is to stop
    // Under the lock.
    leati_artifact *artifacts;
    uint64_t total; // bytes of all of them
};

bool leati_hash_is_valid(leat_str hash);
// Whether the file that was found is what its name says. Without the lock, as the next one.
bool leati_artifact_check(leati_artifact_cache *cache, leati_artifact *artifact);
LEAT_MUST_USE leat_err leati_artifact_fetch(leati_artifact_cache *cache, leati_artifact *artifact,
                                            const leati_artifact_asker *asker, char *why,
                                            size_t why_size);

#endif
