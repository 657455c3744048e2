// SPDX-License-Identifier: Apache-2.0
// A local cluster that a bench starts, asks and stops.
#ifndef LEATI_BENCH_CLUSTER_H
#define LEATI_BENCH_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CLUSTER_MAX_PROCESSES = 8 };

typedef struct cluster {
    char folder[256]; // its state
    // The job manager first, then the task managers.
    pid_t pids[CLUSTER_MAX_PROCESSES];
    size_t count;
} cluster;

// Starts one of so many task managers with a slot each, with the program `tool`. All return 0, or
// -1 after saying why.
int cluster_start(cluster *c, char *tool, unsigned workers);
void cluster_stop(cluster *c, char *tool);
// Runs a program to its end, which must be a success, and keeps the first bytes of its standard
// output (NUL-terminated).
int cluster_run(char *const argv[], char *out, size_t out_size);
// The number that follows "name": in JSON text; -1 when there is none.
int64_t cluster_number(const char *json, const char *name);

// What all its processes use now, together.
typedef struct cluster_use {
    uint64_t resident; // bytes
    uint64_t threads, files, processes;
} cluster_use;
int cluster_look(const cluster *c, cluster_use *use);

#endif
