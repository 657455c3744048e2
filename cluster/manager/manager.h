// SPDX-License-Identifier: Apache-2.0
// The job manager: who is registered, which jobs there are, and what is to happen next.
//
// Threading. One lock, `leati_manager.lock`, guards everything below; nothing waits while it is
// held but for memory. RPC handlers, the REST threads and the manager's own thread take it;
// messages are queued under it (leati_rpc_send never waits). Files are read and written without it.
//
// Life cycle. Jobs are held by the manager until they are forgotten (`cluster.jobs-kept` ended ones
// are kept); whoever needs one takes the lock and looks it up by id.
//
// Bounds. cluster.jobs-kept, cluster.job-output, cluster.artifact-store, and what RPC bounds.
#ifndef LEATI_CLUSTER_MANAGER_MANAGER_H
#define LEATI_CLUSTER_MANAGER_MANAGER_H

#include <pthread.h>

#include "base/strbuf.h"
#include "cluster/message.h"
#include "cluster/module.h"
#include "cluster/rpc.h"
#include "cluster/security.h"
#include "graph/job_graph.h"
#include "leat/metrics.h"

enum {
    LEATI_ID_SIZE = 33,
    LEATI_REASON_SIZE = 1200,
    LEATI_FAILURES_KEPT = 16,
    LEATI_LOG_LINES_KEPT = 500
};

typedef enum leati_job_phase { // cluster.md §3; the names are Flink's
    LEATI_PHASE_CREATED,       // waits for slots
    LEATI_PHASE_DEPLOYING,     // (shown as RUNNING) workers were told
    LEATI_PHASE_RUNNING,
    LEATI_PHASE_FAILING,
    LEATI_PHASE_CANCELLING,
    LEATI_PHASE_CONCLUDING, // (shown as RUNNING) all tasks have finished, outputs are made visible
    LEATI_PHASE_FINISHED,
    LEATI_PHASE_FAILED,
    LEATI_PHASE_CANCELED,
} leati_job_phase;

// A task manager.
typedef struct leati_member {
    leati_rpc *rpc; // NULL once it is lost
    char id[LEATI_ID_SIZE];
    char name[96]; // "taskmanager 2 (host, pid 4711)"
    char host[64], log_path[256];
    char data_address[300]; // "tcp://host:port", and for its own host " ipc:///path" behind it
    int64_t pid, started_ms, registered_ms;
    uint32_t index, slots, slots_used, workers, segment_size;
    uint64_t memory_network;
    int64_t heard_ns;          // leati_clock_ns of the last message
    leati_msg_heartbeat beat;  // the last one
    bool local;                // a child of this process
    char crash[400];           // what its last words (CRASH) were: 'signal 11 (SIGSEGV) in …'
    uint64_t crash_attempt;    // the attempt whose task it was in, or 0
    struct leati_member *next; // by index, then by registration
} leati_member;

typedef struct leati_task_view { // of each task of the newest attempt
    uint32_t process;            // index into the job's participants; UINT32_MAX: not deployed yet
    char state[16];
    int64_t state_ms;       // since when
    leati_msg_task figures; // its texts point to the two below
    char wait[16], wait_text[160];
    int64_t reported_ns; // leati_clock_ns; 0: never
    uint64_t last_busy_ns, last_idle_ns, last_soft_ns,
        last_hard_ns; // of the report before, for rates
    int64_t last_ns;
    uint64_t last_records_in, last_records_out, last_bytes_out;
    // Since when it has been busy and held back by its output (leati_task_view_track); 0: it is
    // not.
    int64_t busy_since_ns, held_since_ns;
} leati_task_view;

typedef struct leati_failure {
    int64_t time_ms;
    uint32_t vertex, subtask; // UINT32_MAX: of no task
    char worker[96];
    bool root;
    bool consequence; // only because a peer was lost
    char text[LEATI_REASON_SIZE];
} leati_failure;

typedef struct leati_participant { // a task manager's part in the newest attempt
    leati_member *member;          // NULL once it is lost
    char id[LEATI_ID_SIZE], name[96];
    uint32_t slots, tasks;
    bool over, finished, concluded; // finished: all its tasks have
    uint8_t *accumulators;          // the newest report's; leati_free
    size_t accumulators_size;
    uint64_t output_seen;  // bytes of OUTPUT received
    uint64_t output_taken; // and told
    char *line;            // what waits: for the end of its line, or of another's; leati_free
    size_t line_size;
    bool line_over;            // no more output of it will come
    leati_msg_metric *metrics; // one block with its texts, freed with leati_free
    size_t metric_count;
} leati_participant;

typedef struct leati_managed_job {
    struct leati_manager *manager;
    char id[LEATI_ID_SIZE];
    const char *name;
    leati_job_phase phase;
    leati_msg_job *submission; // a copy of its own (leat_record_copy)
    leati_job_graph *graph;    // decoded
    uint32_t slots_needed;
    int64_t submitted_ms, started_ms, ended_ms; // since the epoch; 0: not yet
    int64_t submitted_ns;                       // leati_clock_ns
    uint64_t attempt;
    uint32_t attempt_number;
    leati_participant *participants;
    uint32_t participant_count;
    leati_task_view *tasks; // vertex by vertex
    uint32_t *first_task;   // of each vertex
    uint32_t task_count;
    leati_failure failures[LEATI_FAILURES_KEPT]; // root first, then by time
    uint32_t failure_count;
    char *log[LEATI_LOG_LINES_KEPT]; // a ring
    uint64_t log_count;
    // Its output: a file that holds bytes [output_first, output_end) of all that was printed.
    int output_fd;
    uint64_t output_first, output_end, output_size_max;
    uint32_t line_writer; // the participant in the middle of whose line it ends, + 1; 0: of none's
    uint64_t output_read; // a waiting client has got everything before
    bool attached;        // a client waits: nothing is dropped that it has not got
    int64_t attached_seen_ns;       // when it was last heard of; after 15 s it counts as gone
    struct leati_managed_job *next; // newest first
    bool one_process;               // a loop's ends share memory: all slots in one task manager
    bool concluding;                // CONCLUDE was sent
    int64_t root_due_ns;            // when a mere consequence counts as the root; 0: not waiting
    uint32_t tasks_started;         // are, or were, RUNNING
    bool pinned;                    // its artifacts are
    uint32_t users;                 // threads that use it without the lock: not to be freed
    pthread_mutex_t output_lock;    // one thread at a time appends to the output
} leati_managed_job;

struct leati_peer;
struct leati_store;
struct leati_local;
struct leati_log_queue;

typedef struct leati_manager {
    const leat_allocator *allocator;
    leati_manager_options options;
    leati_auth auth; // immutable once it is open
    leati_refusals refusals;
    char cluster[LEATI_ID_SIZE];
    uint64_t term;
    int64_t started_ms;
    char rest_address[128], rpc_address[128];
    leati_rpc_server *rpc_server;
    pthread_mutex_t lock;
    pthread_cond_t
        changed; // broadcast on any change that somebody may wait for: states, output, members
    // Under the lock.
    leati_member *members;
    leati_managed_job *jobs;
    uint64_t next_attempt;
    bool stopping; // no more jobs and task managers; requests that wait must end
    // Of the core's own files (manager_impl.h).
    struct leati_peer *peers;
    struct leati_store *store;
    struct leati_local *local;
    struct leati_log_queue *log;
    bool scheduling, schedule_again;
    bool stop_wanted;
    int64_t next_beat_ns, checked_ns;
    int64_t away_ns, back_ns; // how long this process was stopped the last time, and until when
    int kick_fd, lock_fd;
    bool folder_made;       // was not there before
    char state_folder[448]; // options.folder
} leati_manager;

// --- for REST (cluster/manager/rest*.c); all but submit with the lock held ---

// Whether an artifact is there; where its file is or belongs (`path` of 512 bytes). Without the
// lock.
bool leati_artifact_path(const leati_manager *manager, const char *hash, char *path);
// Takes over a complete temporary file if its bytes have that hash: LEAT_ECORRUPT otherwise,
// LEAT_ENOBUFS when the store is full of artifacts in use. Without the lock; the file is moved or
// removed.
leat_err leati_artifact_put(leati_manager *manager, const char *hash, const char *temporary,
                            char *why, size_t why_size);
// Checks (graph, digest, artifacts there, no operator that needs the client's process) and queues a
// job; `id` gets its id. Takes the lock. LEAT_EINVAL and so on with a sentence: no job is created
// then.
leat_err leati_manager_submit(leati_manager *manager, const leati_msg_job *submission,
                              bool attached, char id[LEATI_ID_SIZE], char *why, size_t why_size);
// By id or a unique beginning of it of at least 4 digits. NULL: none, or several (`*several`).
leati_managed_job *leati_manager_find(leati_manager *manager, const char *id, bool *several);
// LEAT_ESTATE when it has ended.
leat_err leati_manager_cancel(leati_manager *manager, leati_managed_job *job);
const char *leati_phase_name(leati_job_phase phase); // as shown: "RUNNING"
bool leati_phase_is_final(leati_job_phase phase);
// Reads output from `offset` on, or from where what is kept begins. Gives how many bytes; `*first`
// is the offset of the first of them.
size_t leati_job_output(leati_managed_job *job, uint64_t offset, void *to, size_t size,
                        uint64_t *first);
// A waiting client has got everything up to there, or has come by: acknowledges to the workers.
void leati_job_output_read(leati_manager *manager, leati_managed_job *job, uint64_t offset);
// Wakes the manager's own thread.
void leati_manager_kick(leati_manager *manager);

// --- REST (cluster/manager/rest.c, view_why.c) ---

// To be called after each report that a task view has taken over, with `figures`, `reported_ns` and
// the `last_` figures set.
void leati_task_view_track(leati_task_view *view);

typedef struct leati_rest leati_rest;
// Listens at manager->options.bind and port; manager->rest_address gets the result.
leat_err leati_rest_start(leati_manager *manager, leati_rest **rest, char *why, size_t why_size);
void leati_rest_stop(leati_rest **rest);

#endif
