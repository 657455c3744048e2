// SPDX-License-Identifier: Apache-2.0
// A job over two processes: this one has its sources, and another one, which runs the same program,
// its sinks. Both do what task managers do: a runtime and an exchange each, and a placed job.
//
// The other process is started for each run, and gets what it needs over a socket that is its
// standard input.
#ifndef LEATI_BENCH_PAIR_H
#define LEATI_BENCH_PAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/schedule.h"

typedef struct pair_plan {
    uint32_t sources, sinks; // subtasks
    bool forward;            // i to i; else round robin to all
    bool stalls;             // sink 0 takes nothing until all others have ended
    bool alone;              // both in one process, for comparison
    bool near;               // over a socket file instead of TCP
    char certificates[64];   // with TLS: the folder of certificates.h; "": without
    uint32_t workers;        // a process
    uint32_t floating;       // segments of a channel or a gate beside two; 0: as is usual
    uint32_t body;           // bytes of a record beside 12 or 15 of its encoding
    uint64_t each, first;    // records of a source; of source 0
    schedule pace;           // with records: one source and one sink of stamped ones instead
} pair_plan;

typedef struct pair_result {
    uint64_t records, sum;
    arrivals arrivals; // with a pace
} pair_result;

// 0, or -1 after saying why. It is checked that the connection is of the kind that is wanted.
int pair_run(const pair_plan *plan, pair_result *result);
// What `records` and `sum` have to be.
void pair_expect(const pair_plan *plan, pair_result *result);

// --- the other process ---

typedef struct far_process {
    pid_t pid;
    int socket;
} far_process;

// Starts this program once more with the argument `role`.
int far_start(far_process *far, const char *role);
int far_finish(far_process *far);
// Whole messages; 0 or -1.
int far_put(int socket, const void *data, size_t size);
int far_get(int socket, void *data, size_t size);
// The main of the other process, for the role "--pair"; the socket is descriptor 0.
int pair_far_main(void);

#endif
