// SPDX-License-Identifier: Apache-2.0
// What the files of the job manager's core share. All with the manager's lock held unless it is
// said otherwise.
//
// Locks, in this order: output_lock of a job, the manager's, the store's, the log queue's.
#ifndef LEATI_CLUSTER_MANAGER_MANAGER_IMPL_H
#define LEATI_CLUSTER_MANAGER_MANAGER_IMPL_H

#include <poll.h>

#include "cluster/manager/manager.h"

enum { LEATI_PATH_SIZE = 512, LEATI_ROOT_WAIT_MS = 500, LEATI_ATTACHED_GONE_MS = 15000 };

// Somebody who has connected: a task manager once it has registered.
typedef struct leati_peer {
    leati_manager *manager;
    leati_rpc *rpc;
    leat_scratch *scratch; // its reader thread's
    leati_member *member;  // NULL before it has registered and once it is lost
    int64_t opened_ns;
    bool dead; // `closed` was called: to be destroyed
    struct leati_peer *next;
} leati_peer;

static inline leat_str leati_text(const char *text)
{
    return (leat_str){text, __builtin_strlen(text)};
}

static inline int64_t leati_setting(const leati_manager *manager, leati_config_key key)
{
    return leati_config_get(&manager->options.config, key);
}

// --- manager.c: its life; without the lock ---

// Makes a manager that listens for task managers. leati_manager_loop serves it.
LEAT_MUST_USE leat_err leati_manager_open(const leati_manager_options *options,
                                          leati_manager **manager, char *why, size_t why_size);
// Until `leati_manager_stop` or until a signal comes by `signal_fd` (-1: none). All jobs have ended
// then, or have had their time to.
void leati_manager_loop(leati_manager *manager, int signal_fd);
void leati_manager_stop(leati_manager *manager);
void leati_manager_close(leati_manager **manager);
int64_t leati_now_ms(void); // since the epoch

// --- log.c ---

struct leati_log_queue *leati_log_queue_create(const leat_allocator *allocator);
void leati_log_queue_destroy(struct leati_log_queue **queue);
// Queues a line for the manager's log: the hook may wait for a disk or a terminal, so it is called
// by the manager's own thread, in leati_manager_flush_log. Any lock may be held.
void leati_manager_log(leati_manager *manager, leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);
// Somebody has connected who may not; "tcp://host:port" and why. Once a minute for each host.
void leati_manager_tell_refused(leati_manager *manager, const char *why);
void leati_manager_flush_log(leati_manager *manager); // without locks
// Adds a line to a job's log. `worker` may be NULL: the job manager itself.
void leati_managed_log_at(leati_manager *manager, leati_managed_job *job, leat_log_level level,
                          int64_t time_ms, const char *worker, const char *line);
// The same, now, by the job manager itself; and to its own log.
void leati_managed_log(leati_manager *manager, leati_managed_job *job, leat_log_level level,
                       const char *format, ...) LEAT_PRINTF(4, 5);

// --- files.c: without the lock ---

// Makes a directory with all that lead to it. LEAT_EIO with a sentence.
leat_err leati_make_folder(const char *path, char *why, size_t why_size);
void leati_remove_tree(const char *path); // what there is of it
// Replaces a file as a whole.
leat_err leati_replace_file(const char *path, const void *data, size_t size, char *why,
                            size_t why_size);

// --- artifacts.c: the store, with a lock of its own ---

leat_err leati_store_create(const leat_allocator *allocator, const char *folder, uint64_t limit,
                            struct leati_store **store, char *why, size_t why_size);
void leati_store_destroy(struct leati_store **store);
// Keeps all files of a job in the store until they are unpinned as often. LEAT_ENOENT when one is
// missing, LEAT_EINVAL when one has another size: none is pinned then.
leat_err leati_store_pin(struct leati_store *store, const leati_msg_job *job, char *why,
                         size_t why_size);
void leati_store_unpin(struct leati_store *store, const leati_msg_job *job);
// Answers a FETCH with a CHUNK. Without locks.
leat_err leati_artifact_fetched(leati_manager *manager, leati_rpc *rpc,
                                const leati_msg_piece *fetch);

// --- jobs.c ---

leati_managed_job *leati_managed_by_attempt(leati_manager *manager, uint64_t attempt);
// Which participant of the job's newest attempt a member is; UINT32_MAX: none.
uint32_t leati_managed_participant(const leati_managed_job *job, const leati_member *member);
void leati_managed_destroy(leati_manager *manager, leati_managed_job **job);
// Forgets ended jobs beyond cluster.jobs-kept. Takes the lock: it removes files.
void leati_managed_forget(leati_manager *manager);

// --- schedule.c ---

// Gives slots to jobs that wait for them, and deploys those.
void leati_manager_schedule(leati_manager *manager);
// Fails the jobs that have waited too long; when the next one will have (INT64_MAX: none waits).
int64_t leati_manager_slot_timeouts(leati_manager *manager, int64_t now_ns);

// --- attempts.c ---

typedef struct leati_job_fault {
    uint32_t vertex, subtask; // UINT32_MAX: of no task
    const char *worker;       // may be NULL
    bool consequence;
    const char *text;
} leati_job_fault;

// The job has slots: tells its participants. `process_of` has an item for each task.
void leati_managed_deploy(leati_manager *manager, leati_managed_job *job,
                          const uint32_t *process_of);
// Takes note of a failure; the first one makes a job that has not ended fail.
void leati_managed_fail(leati_manager *manager, leati_managed_job *job,
                        const leati_job_fault *fault);
// Does what has become due: concludes, ends.
void leati_managed_advance(leati_manager *manager, leati_managed_job *job);
void leati_managed_cancel(leati_manager *manager, leati_managed_job *job);
// Ends jobs that have waited for a root; when to look again.
int64_t leati_manager_roots_due(leati_manager *manager, int64_t now_ns);
// A member will not say anything any more.
void leati_managed_lost(leati_manager *manager, leati_managed_job *job, uint32_t participant,
                        const char *text);
// Messages of participant `from` of the job's newest attempt.
void leati_managed_stage(leati_manager *manager, leati_managed_job *job, uint32_t from,
                         const leati_msg_stage *stage);
void leati_managed_failed(leati_manager *manager, leati_managed_job *job, uint32_t from,
                          const leati_msg_failed *failed);
void leati_managed_over(leati_manager *manager, leati_managed_job *job, uint32_t from,
                        const leati_msg_over *over);
void leati_managed_concluded(leati_manager *manager, leati_managed_job *job, uint32_t from,
                             const leati_msg_failed *concluded);
void leati_managed_ask(leati_manager *manager, leati_managed_job *job, uint32_t from, uint32_t kind,
                       const leati_msg_ask *ask);

// --- report.c ---

void leati_managed_report(leati_manager *manager, leati_managed_job *job, uint32_t from,
                          const leati_msg_report *report);
void leati_managed_keep_accumulators(leati_manager *manager, leati_participant *participant,
                                     const leat_bytes *bytes);

// --- output.c ---

// Without the lock, which it takes: the bytes go to a file.
void leati_manager_output(leati_manager *manager, leati_peer *peer, const leati_msg_output *output);
// Nothing more of it will come: a last line without an end counts.
void leati_manager_output_over(leati_manager *manager, leati_peer *peer, uint64_t attempt);
// Tells the participants how much of their output is safe.
void leati_managed_take_output(leati_manager *manager, leati_managed_job *job);
void leati_output_path(const leati_managed_job *job, char *path);
// Gives the descriptor back once the job has ended and nobody writes.
void leati_output_close(leati_managed_job *job);
// Gives up clients that have not been heard of; when to look again.
int64_t leati_manager_attached_check(leati_manager *manager, int64_t now_ns);

// --- members.c ---

extern const leati_rpc_handlers leati_manager_handlers;
// Sends it a message. One that cannot be told (no memory) is closed: it will be lost, where waiting
// for its answer would have no end.
leat_err leati_member_tell(leati_member *member, uint32_t kind, const leat_type *type,
                           const void *record);
// Removes a member, fails its jobs with that sentence, and closes its connection.
void leati_member_lose(leati_manager *manager, leati_member *member, const char *text);
// Sends heartbeats, gives up who is silent; when to look again.
int64_t leati_members_check(leati_manager *manager, int64_t now_ns);
// Destroys what is dead. Without the lock. With `all`, closes the others first.
void leati_peers_reap(leati_manager *manager, bool all);

// --- local.c: the workers of a local cluster, children of this process ---

leat_err leati_local_start(leati_manager *manager, char *why, size_t why_size); // without the lock
void leati_local_destroy(leati_manager *manager);
// Descriptors that become readable when a worker dies; how many were put. Manager's thread.
uint32_t leati_local_poll(leati_manager *manager, struct pollfd *fds, uint32_t room);
uint32_t leati_local_count(const leati_manager *manager);
// Takes note of the dead, starts them again when it is time; when to look again. Manager's thread,
// takes the lock.
int64_t leati_local_check(leati_manager *manager, int64_t now_ns);
// Lets the workers go: SHUTDOWN, and after a while SIGKILL. Manager's thread, without the lock.
void leati_local_stop(leati_manager *manager, int64_t patience_ms);
bool leati_local_is_child(const leati_manager *manager, int64_t pid, uint32_t index);
// Waits a moment for the death of a child whose connection has ended, and tells what it died of:
// "died of signal 9 (SIGKILL)". False: it lives, or is none. The lock is given up meanwhile.
bool leati_local_death(leati_manager *manager, int64_t pid, char *text, size_t size);
// Writes the state file again, if there is one. Without the lock.
leat_err leati_manager_write_state(leati_manager *manager, char *why, size_t why_size);

#endif
