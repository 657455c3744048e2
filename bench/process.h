// SPDX-License-Identifier: Apache-2.0
// Programs that a bench starts and looks at from outside.
#ifndef LEATI_BENCH_PROCESS_H
#define LEATI_BENCH_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct process {
    pid_t pid;
    int input;          // the writing end of its standard input
    int64_t started_ns; // just before it was started
} process;

// Starts the program `argv[0]` with an empty but open standard input and its standard output thrown
// away. The descriptor `inherited` (-1: none) is open in it. 0, or -1 after saying why.
int process_start(process *p, char *const argv[], int inherited);
// Closes its input and waits for its end. 0 when that was a success, else -1 after saying so.
int process_finish(process *p);

typedef struct memory_use {
    uint64_t resident; // bytes
    uint64_t big;      // of which in the mapping of the size that was asked for
} memory_use;

// Waits until the process has used no processor time for a while (at most some seconds), then reads
// what memory it uses. `big_size`: the size in bytes of the one mapping to be told apart, 0 for
// none.
int process_idle_memory(const process *p, uint64_t big_size, memory_use *use);

#endif
