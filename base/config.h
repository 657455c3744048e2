// SPDX-License-Identifier: Apache-2.0
// Settings by name: one table gives each key its type, range, default and meaning; files,
// environment, command line and API all end here.
#ifndef LEATI_BASE_CONFIG_H
#define LEATI_BASE_CONFIG_H

#include "leat/alloc.h"
#include "leat/error.h"

// key id, "name", kind, default, lowest, highest, "meaning". Sizes are bytes, durations ms, flags 0
// or 1. The order is that of the reference page, docs/configuration.md.
// clang-format off
#define LEATI_CONFIG_KEYS(K) \
    K(PARALLELISM, "parallelism", COUNT, 1, 1, 32768, "parallelism of operators that set none") \
    K(WORKERS, "workers", COUNT, 0, 0, 1024, "worker threads; 0 is one per processor") \
    K(SEGMENT_SIZE, "memory.segment-size", SIZE, 32768, 1024, 1048576, "size of a memory segment") \
    K(NETWORK_MEMORY, "memory.network", SIZE, 67108864, 65536, 1099511627776, \
      "bound of all memory segments together") \
    K(BUFFERS_PER_CHANNEL, "network.buffers-per-channel", COUNT, 2, 1, 1024, \
      "segments a channel may use beyond its minimum of one, as a share of its pool") \
    K(FLOATING_BUFFERS, "network.floating-buffers", COUNT, 8, 0, 65536, \
      "segments of a pool that any of its channels may use") \
    K(MAX_BUFFERS_PER_CHANNEL, "network.max-buffers-per-channel", COUNT, 10, 1, 1024, \
      "segments queued on one channel before no further record is started") \
    K(OVERDRAFT_BUFFERS, "network.overdraft-buffers", COUNT, 5, 0, 1024, \
      "segments beyond its limit that a pool may use to finish a record") \
    K(DEBLOAT, "network.debloat", FLAG, 0, 0, 1, \
      "whether segments shrink so that what is queued before a task takes the target time") \
    K(DEBLOAT_TARGET, "network.debloat-target", DURATION, 1000, 1, 3600000, \
      "how long a task is to need for what is queued before it") \
    K(IPC, "network.ipc", FLAG, 1, 0, 1, \
      "whether task managers of one host talk over socket files instead of TCP") \
    K(BUFFER_TIMEOUT, "buffer-timeout", DURATION, 100, -1, 86400000, \
      "how long a record may wait in a partly filled segment; 0 flushes each record, -1 " \
      "only full segments") \
    K(MAX_RECORD_SIZE, "record.max-size", SIZE, 67108864, 1024, 134217728, \
      "largest encoded record") \
    K(CHAINING, "chaining", FLAG, 1, 0, 1, "whether operators share tasks at all") \
    K(CHAIN_MIXED_MAX_PARALLELISM, "chaining.mixed-max-parallelism", FLAG, 1, 0, 1, \
      "whether operators of different max parallelism may share a chain") \
    K(SPLIT_SIZE, "source.split-size", SIZE, 8388608, 4096, 1099511627776, \
      "size of the pieces in which text files are read") \
    K(SOURCE_RECORD_MAX, "source.record-max-size", SIZE, 268435456, 1048576, 1073741824, \
      "longest record of a file, as it stands there") \
    K(FEEDBACK_MEMORY, "iteration.feedback-memory", SIZE, 67108864, 4096, 1099511627776, \
      "what may wait on its way back in a loop, in each subtask") \
    K(BROADCAST_MEMORY, "broadcast.memory", SIZE, 67108864, 4096, 1099511627776, \
      "what the records of one broadcast variable may take, in each subtask") \
    K(SLOTS, "taskmanager.slots", COUNT, 1, 1, 4096, "slots that a task manager offers") \
    K(CONNECT_TIMEOUT, "taskmanager.connect-timeout", DURATION, 10000, 100, 3600000, \
      "how long the task managers of a job may take to reach each other") \
    K(ARTIFACT_CACHE, "taskmanager.artifact-cache", SIZE, 1073741824, 65536, 1099511627776, \
      "job files and cached files that a task manager keeps when no job uses them") \
    K(CANCEL_TIMEOUT, "taskmanager.cancel-timeout", DURATION, 180000, 100, 86400000, \
      "how long tasks may take to stop before their task manager ends itself") \
    K(REGISTRATION_TIMEOUT, "taskmanager.registration-timeout", DURATION, 300000, 100, 86400000, \
      "how long a task manager looks for its job manager before it gives up") \
    K(HEARTBEAT_INTERVAL, "cluster.heartbeat-interval", DURATION, 1000, 20, 3600000, \
      "time between two signs of life of a process") \
    K(HEARTBEAT_TIMEOUT, "cluster.heartbeat-timeout", DURATION, 5000, 100, 86400000, \
      "silence after which a process counts as lost") \
    K(SLOT_TIMEOUT, "cluster.slot-timeout", DURATION, 300000, 0, 86400000, \
      "how long a job waits for its slots") \
    K(JOBS_KEPT, "cluster.jobs-kept", COUNT, 100, 0, 1000000, \
      "jobs that have ended and can still be asked about") \
    K(JOBS_MAX, "cluster.jobs-max", COUNT, 1000, 1, 1000000, \
      "jobs that have not ended; more are refused") \
    K(JOB_OUTPUT, "cluster.job-output", SIZE, 16777216, 4096, 1099511627776, \
      "what is kept of the output of a job that no client waits for") \
    K(ARTIFACT_STORE, "cluster.artifact-store", SIZE, 4294967296, 65536, 1099511627776, \
      "job files and cached files that a job manager takes in") \
    K(ARTIFACT_MAX, "cluster.artifact-max-size", SIZE, 1073741824, 4096, 1099511627776, \
      "largest of these files")
// clang-format on

typedef enum leati_config_key {
#define LEATI_CONFIG_ENUM(id, ...) LEATI_CONFIG_##id,
    LEATI_CONFIG_KEYS(LEATI_CONFIG_ENUM)
#undef LEATI_CONFIG_ENUM
        LEATI_CONFIG_COUNT
} leati_config_key;

typedef struct leati_config {
    int64_t value[LEATI_CONFIG_COUNT];
} leati_config;

void leati_config_init(leati_config *config); // the defaults
// Sets a key from text: "64 MiB", "100 ms", "-1", "4", "true". LEAT_ENOENT for an unknown key,
// LEAT_EINVAL for a bad value: nothing changes then, and `why` gets a sentence that names the key,
// what is wrong and, for a misspelt key, the nearest one.
LEAT_MUST_USE leat_err leati_config_set(leati_config *config, const char *name, const char *value,
                                        char *why, size_t why_size);
static inline int64_t leati_config_get(const leati_config *config, leati_config_key key)
{
    return config->value[key];
}

// For the reference page and `leat config`: the name, kind word, default, range and meaning of a
// key; static storage.
typedef struct leati_config_info {
    const char *name, *kind, *meaning;
    int64_t preset, lowest, highest;
} leati_config_info;
const leati_config_info *leati_config_describe(leati_config_key key);
// The key of exactly that name, or LEATI_CONFIG_COUNT.
leati_config_key leati_config_find(const char *name);

// Writes a value as the reference page does, "64 MiB", "100 ms", "true", as snprintf does.
size_t leati_config_print(leati_config_key key, int64_t value, char *buffer, size_t size);

#endif
