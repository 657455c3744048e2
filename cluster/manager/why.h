// SPDX-License-Identifier: Apache-2.0
// Why a job is slow: the bottleneck, found from the figures of its tasks and the shape of its
// graph.
//
// A task that is held back by its output names nobody by itself: what it waits for may be held back
// too. So the analysis goes from tasks that are held downstream, as long as it meets others that
// are; the first ones that are not, and that work or hang, are the bottleneck. A task whose user
// function has hung, or that cannot be heard of, is one even before anybody has to wait for it.
//
// Healthy are: sources that wait for input, tasks that wait for records, alarms of their own,
// consumers of a blocking exchange whose producers still run, and a task that is busy while nobody
// waits for it.
//
// Pure functions: no clock, no lock.
#ifndef LEATI_CLUSTER_MANAGER_WHY_H
#define LEATI_CLUSTER_MANAGER_WHY_H

#include "base/strbuf.h"
#include "graph/job_graph.h"
#include "runtime/placement.h"

// What counts: from these shares of the last interval on (permille), or for so long.
enum {
    LEATI_WHY_HELD = 100, // as Flink's: up to 10 % is no back-pressure
    LEATI_WHY_BUSY = 500,
    LEATI_WHY_HELD_MS = 1000,    // waits for room in its output
    LEATI_WHY_STUCK_MS = 5000,   // a user function has not returned
    LEATI_WHY_WORKER_MS = 2000,  // ready, and no worker takes it
    LEATI_WHY_OPENING_MS = 3000, // being deployed or opened
    LEATI_WHY_NETWORK_MS = 2000, // records do not arrive that wait to be sent
};

typedef enum leati_why_cause {
    LEATI_WHY_NOTHING = 0,
    LEATI_WHY_SLOTS,     // "slots": not enough of them
    LEATI_WHY_SILENT,    // "silent": its task manager does not report
    LEATI_WHY_STUCK,     // "stuck": a user function does not return
    LEATI_WHY_OUTPUT,    // "output": a sink cannot get rid of what it has
    LEATI_WHY_OPENING,   // "opening": it has not begun
    LEATI_WHY_WORKER,    // "worker": no worker thread has time for it
    LEATI_WHY_NETWORK,   // "network": nothing comes through between two task managers
    LEATI_WHY_BLOCKING,  // "blocking": a blocking user function takes the time
    LEATI_WHY_SKEW,      // "skew": it gets more records than its siblings
    LEATI_WHY_SLOW_TASK, // "slow task": it is slower than its siblings
    LEATI_WHY_SLOW,      // "slow": a user function takes the time
} leati_why_cause;

// A task as it was last heard of.
typedef struct leati_why_task {
    const char *state; // "RUNNING" …
    int64_t state_ms;  // how long it has been in that
    int64_t silent_ms; // since its report
    uint32_t process;
    uint32_t busy, idle, held; // permille of the last interval
    int64_t busy_ms, held_ms;  // for how long it has been so, 0: it is not
    leati_wait_kind wait;
    int64_t wait_ms;                    // at the time of its report
    uint32_t wait_vertex, wait_subtask; // of the other end, or UINT32_MAX
    const char *wait_text;
    uint32_t queued;      // segments in its input
    double records_per_s; // in
    uint64_t records;     // in, since it began
    bool slow_report;     // silent for too long
} leati_why_task;

typedef struct leati_why_input {
    const leati_job_graph *graph;
    const uint32_t *first_task;  // of each vertex
    const leati_why_task *tasks; // NULL: it has none yet
    uint32_t task_count;
    const char *const *workers; // names of the processes
    uint32_t worker_count;
    uint32_t slots_needed, slots_free, slots_total; // needed: 0 unless it waits for them
    bool one_process; // all in one task manager: free and total are of the largest
    int64_t slots_ms; // for how long
} leati_why_input;

typedef struct leati_why_result {
    leati_why_cause cause;
    uint32_t vertex;  // UINT32_MAX: of none
    int64_t since_ms; // how long ago it began
    char text[1000];  // in plain words
    bool *named;      // of each task: whether it is part of the bottleneck
    const leat_allocator *allocator;
} leati_why_result;

// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_why(const leat_allocator *allocator, const leati_why_input *input,
                                 leati_why_result *result);
void leati_why_fini(leati_why_result *result);
const char *leati_why_cause_name(leati_why_cause cause);

// --- why_text.c ---

// How many records subtasks of the vertex get, to be compared with each other. All since they
// began, if there are any: while one holds up those that feed them, the others get nothing for an
// interval and then much at once.
double leati_why_load(const leati_why_input *input, uint32_t vertex, uint32_t subtask);
// The sentence of the bottleneck that `result` names.
void leati_why_explain(const leati_why_input *input, leati_why_result *result);
// What a task does or waits for.
void leati_why_task_text(const leati_why_input *input, uint32_t vertex, uint32_t subtask,
                         char *text, size_t text_size);
// "340 ms", "12 s", "5 min", "3 h".
void leati_why_duration(int64_t ms, char *text, size_t text_size);

#endif
