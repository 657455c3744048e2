// SPDX-License-Identifier: Apache-2.0
// What the files of the task manager share: the process and its attempts.
//
// Threading.
//   main     leati_worker_run: signals, dialling, heartbeats and reports, the watchdog over tasks
//            that do not stop; joins the threads of attempts.
//   reader   the control connection's: messages are looked at and handed on; it waits for nothing.
//   attempt  one for each: fetches, loads, builds, starts, waits, concludes, unloads.
//   others   workers of the runtime and of the transport, in hooks.
// Locks in their order: the process's `lock`, an attempt's `lock`, what the runtime takes; then an
// attempt's `out_lock` or the process's `wire_lock`, inside of which no other is taken. A call into
// the runtime under an attempt's `lock` may call the log, `failed` or `answer` hook at once, so
// these take none but the last two.
//
// Life cycle. An attempt is made by DEPLOY and belongs to the connection (`session`) that it came
// by: when that is lost, it is cancelled and dropped, and says nothing any more. It is in the list
// until its thread has ended and was joined; whoever found it there holds it.
//
// Bounds. As many attempts as the job manager deploys; LEATI_OUTPUT_WINDOW of output, EARLY_MOST
// questions and LOG_MOST log lines a second for each.
#ifndef LEATI_CLUSTER_WORKER_WORKER_IMPL_H
#define LEATI_CLUSTER_WORKER_WORKER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/message.h"
#include "cluster/rpc.h"
#include "cluster/security.h"
#include "cluster/worker/artifact_cache.h"
#include "cluster/worker/job_loader.h"
#include "cluster/worker/worker.h"
#include "leat/execute.h"
#include "network/nng/exchange.h"
#include "runtime/placement.h"

enum { LEATI_WORKER_REASON = 1200 };

typedef struct leati_taskmanager leati_taskmanager;
typedef struct leati_attempt leati_attempt;

// How far the control connection is.
typedef enum leati_control {
    LEATI_CONTROL_NONE = 0,
    LEATI_CONTROL_DIALLING, // until it is registered
    LEATI_CONTROL_UP,
    LEATI_CONTROL_LOST, // `closed` has been called; the main thread has not seen it yet
} leati_control;

struct leati_taskmanager {
    // Immutable once the main loop runs.
    const leat_allocator *allocator;
    const leati_worker_options *options;
    leati_auth auth;
    leati_refusals refusals;
    char id[33], host[64], attempts_folder[LEATI_PATH_SIZE - 300];
    char socket_folder[LEATI_PATH_SIZE]; // to be removed at the end; "": none
    int64_t started_ms;
    leat_env *env; // of the runtime: its settings
    leat_runtime *runtime;
    leati_transport *exchange;
    leati_artifact_cache *cache;
    leati_library_table libraries;
    int signal_fd, wake_fd, folder_lock;
    // Main thread.
    int64_t next_dial_ns, back_off_ms, next_beat_ns;
    int64_t alone_since_ns; // since when it has no job manager
    char last_loss[400];
    // Under wire_lock.
    pthread_mutex_t wire_lock;
    leati_rpc *rpc;   // NULL: none
    uint64_t session; // counts connections; attempts know theirs
    // Reader thread.
    leat_scratch *scratch;
    // Atomic: leati_clock_ns of the last message.
    _Atomic int64_t heard_ns;
    // Under lock.
    pthread_mutex_t lock;
    leati_attempt *attempts;
    leati_control control;
    bool shutdown; // the job manager wants it
    bool ending;   // no more attempts
    bool refused;  // it does not, and `loss` says why
    int64_t heartbeat_interval_ns, heartbeat_timeout_ns;
    char loss[400]; // why the connection is lost
};

// A question that came before the job was started.
typedef struct leati_early {
    struct leati_early *next;
    bool answers; // a question of a task here
    leat_err err; // of an answer
    uint64_t token;
    uint32_t process, node;
    size_t size;
    uint8_t bytes[];
} leati_early;

struct leati_attempt {
    // Immutable.
    leati_taskmanager *tm;
    const leat_allocator *allocator;
    uint64_t id, session;
    leati_msg_deploy *deploy; // a copy of its own
    leati_job_graph *graph;   // the client's; the thread's until the job is started
    pthread_t thread;
    _Atomic uint32_t references;
    // Atomic: fetching is to stop (artifact_cache.h).
    _Atomic bool stop;
    // The thread's.
    leati_job_files files;
    leati_loaded loaded;
    leat_env *env;
    char **argv;
    // Under lock.
    pthread_mutex_t lock;
    pthread_cond_t changed;
    leat_job *job;             // NULL before it is started and once it is about to end
    bool cancelled;            // it is to stop
    bool dropped;              // its connection is lost: nobody waits for what it says
    bool tasks_over, finished; // as the hook has said
    bool over;                 // OVER was sent
    bool conclude, commit;
    bool ended;           // the thread is about to return
    int64_t cancelled_ns; // since when; 0: not
    leati_early *early;   // in order
    uint32_t early_count;
    // Under out_lock.
    pthread_mutex_t out_lock;
    pthread_cond_t room;
    bool job_stops; // the job was told to, or has failed: who prints is not to wait any more
    uint64_t output_sent, output_taken;
    int64_t log_second; // of the two below
    uint32_t log_count, log_dropped;
    // Under the process's lock.
    leati_attempt *next;
};

// --- worker.c ---

// Makes the main thread look.
void leati_taskmanager_kick(leati_taskmanager *tm);
void leati_taskmanager_log(const leati_taskmanager *tm, leat_log_level level, const char *format,
                           ...) LEAT_PRINTF(3, 4);

// --- control.c ---

// Starts to connect to the job manager. Main thread, with none there.
void leati_control_dial(leati_taskmanager *tm);
// Waits until what was said has been handed to the system, or so long. Main thread.
void leati_control_flush(leati_taskmanager *tm, int64_t most_ms);
// Frees a connection that is LOST, or closes it. Main thread.
void leati_control_drop(leati_taskmanager *tm, const char *why);
// Sends on the connection of that session (0: the present one); LEAT_ECLOSED when it is gone.
leat_err leati_control_send(leati_taskmanager *tm, uint64_t session, uint32_t kind,
                            const leat_type *type, const void *record);

// --- attempt.c ---

// DEPLOY: makes an attempt and starts its thread. What cannot even be started is told as FAILED and
// OVER. Reader thread. An error is one of the connection.
leat_err leati_attempt_deploy(leati_taskmanager *tm, uint64_t session,
                              const leati_msg_deploy *deploy);
// Held by the caller; NULL when there is none.
leati_attempt *leati_attempt_find(leati_taskmanager *tm, uint64_t id);
void leati_attempt_release(leati_attempt *attempt);
// `dropped`: nobody is to be told any more.
void leati_attempt_cancel(leati_attempt *attempt, bool dropped);
void leati_attempt_conclude(leati_attempt *attempt, bool commit);
// Cancels and drops all. Main thread.
void leati_attempts_drop(leati_taskmanager *tm);
// The process is to end: the same, but for those that conclude already; there are no more from here
// on. With `tell`, they fail for that reason. Main thread.
void leati_attempts_end(leati_taskmanager *tm, bool tell);
// Joins and frees those whose threads have ended; gives the number of those that are left. Main
// thread.
uint32_t leati_attempts_reap(leati_taskmanager *tm);
// What the job manager calls this process.
leat_str leati_deploy_self(const leati_msg_deploy *deploy);
void leati_attempt_send_failed(leati_attempt *attempt, leat_err err, const char *text,
                               uint32_t vertex, uint32_t subtask);

// --- attempt_job.c: the job of an attempt ---

// Fetches, loads, builds, compares and starts. LEAT_ECANCELLED, or another error with a sentence.
LEAT_MUST_USE leat_err leati_attempt_start(leati_attempt *attempt, char *why, size_t why_size);
// Frees what start has made, as far as it got. The job has ended.
void leati_attempt_unload(leati_attempt *attempt);

// --- attempt_hooks.c: between the runtime and the job manager ---

extern const leati_placement_hooks leati_attempt_hooks;
// ASK and ANSWER.
void leati_attempt_asked(leati_attempt *attempt, const leati_msg_ask *message);
leat_err leati_attempt_answered(leati_attempt *attempt, const leati_msg_ask *message);
// The job is there: questions that came early are put. With the attempt's lock held.
void leati_attempt_ask_early_locked(leati_attempt *attempt);
void leati_attempt_forget_early_locked(leati_attempt *attempt);

// --- output.c ---

// Who waits to print is to stop: the job is told to, or has failed.
void leati_attempt_stop_output(leati_attempt *attempt);

int leati_attempt_print(void *user, int fd, const char *data, size_t size);
void leati_attempt_log(void *user, leat_log_level level, const char *line);
// Tells of lines that were dropped and that no later line has told of.
void leati_attempt_log_dropped(leati_attempt *attempt);
// TAKEN.
void leati_attempt_taken(leati_attempt *attempt, uint64_t offset);

// --- report.c ---

void leati_heartbeat_send(leati_taskmanager *tm, uint64_t session);
// REPORT; `last`: OVER follows. The caller knows that the job stays: by the attempt's lock, or as
// its thread.
void leati_report_send(leati_attempt *attempt, leat_job *job, bool last);

#endif
