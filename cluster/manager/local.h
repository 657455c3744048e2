// SPDX-License-Identifier: Apache-2.0
// The children of a local cluster's job manager, and the state file that names them.
#ifndef LEATI_CLUSTER_MANAGER_LOCAL_H
#define LEATI_CLUSTER_MANAGER_LOCAL_H

#include "cluster/manager/manager_impl.h"

// Deaths of more children than that are found by looking from time to time.
enum { LEATI_LOCAL_POLLED = 256 };

typedef struct leati_child {
    uint32_t index; // from 1
    int64_t pid;    // 0: it is dead
    int pidfd;      // or -1
    int64_t started_ns;
    uint64_t start_ticks;
    // Of the last that died.
    int64_t dead_pid;
    char death[80];
    int64_t restart_ns, delay_ms;
} leati_child;

struct leati_local {
    leati_child *children;
    uint32_t count;
    bool changed; // since the state file was written; the manager's thread
};

// When a process was started, in ticks since the machine was; with the pid it names a process for
// good. 0 when it cannot be told.
uint64_t leati_start_ticks(int64_t pid);
// "…/taskmanager-N" and a suffix, beside the manager's folder; `path` of LEATI_PATH_SIZE.
void leati_local_folder(const leati_manager *manager, uint32_t index, const char *suffix,
                        char *path);

#endif
