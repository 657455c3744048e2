// SPDX-License-Identifier: Apache-2.0
// Jobs that are spread over "processes" of this one: each has its own environment, runtime and
// placed job; a transport joins them, and what a job manager would do about them is done here.
//
// There are two nets. That of placed_net.c copies segments from one process to the other; that of
// tests/network/nng/placed_wires.c has the exchanges that task managers have. A program is linked
// with one of them.
#ifndef TESTS_RUNTIME_PLACED_H
#define TESTS_RUNTIME_PLACED_H

#include <pthread.h>
#include <stdbool.h>

#include "leat/leat.h"
#include "runtime/placement.h"

enum { PROCESSES_MOST = 4, STAGES_MOST = 4096 };

// --- the transport ---

typedef struct fake_net fake_net;

// `segment_size` is that of all runtimes.
fake_net *fake_net_create(uint32_t processes, uint32_t segment_size);
// All links must be closed.
void fake_net_destroy(fake_net *net);
leati_transport *fake_net_transport(fake_net *net, uint32_t process);
// From now on nothing is granted to who sends on that channel; or again.
void fake_net_block(fake_net *net, bool blocked);
// The link of a process fails.
void fake_net_cut(fake_net *net, uint32_t process, const char *text);
// Segments that have been copied.
uint64_t fake_net_segments(const fake_net *net);

// --- the run ---

typedef struct placed_stage {
    uint32_t process, vertex, subtask;
    leati_stage stage;
} placed_stage;

typedef struct placed_run placed_run;
typedef struct placed_process {
    placed_run *run;
    uint32_t index;
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
    bool over, finished;
} placed_process;

typedef struct placed_question {
    uint32_t from, to, node;
    uint64_t token;
    size_t size;
    uint8_t bytes[64];
} placed_question;

struct placed_run {
    uint32_t count;
    placed_process processes[PROCESSES_MOST];
    fake_net *net;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    bool started; // all of them
    uint32_t over;
    leat_err failure; // the first
    char failure_text[1024];
    uint32_t failure_vertex, failure_subtask, failures;
    placed_stage stages[STAGES_MOST];
    uint32_t stage_count;
    placed_question waiting[64]; // that came before all had started
    uint32_t waiting_count;
};

// Starts the job that `build` describes in each process; `process_of` as in leati_placement.
// Returns the first error; the others' jobs are cancelled then.
leat_err placed_start(placed_run *run, uint32_t processes, const uint32_t *process_of,
                      void (*build)(leat_env *env, void *user), void *user);
// Waits until all are over; a failure of one cancels the others.
void placed_wait_over(placed_run *run);
void placed_cancel(placed_run *run);
// Concludes all, with a commit if all have finished (and `commit`), and returns the first error.
leat_err placed_conclude(placed_run *run, bool commit);
// Destroys jobs, runtimes, environments and the net.
void placed_destroy(placed_run *run);
// All of the above. LEAT_OK: all have finished and were committed.
leat_err placed_execute(uint32_t processes, const uint32_t *process_of,
                        void (*build)(leat_env *env, void *user), void *user, char *why,
                        size_t why_size);

// Which process runs each task: subtask i of each vertex in process i modulo `processes`; those
// that share memory in process 0. The caller frees it.
uint32_t *placed_by_subtask(leat_env *env, uint32_t processes);

#endif
