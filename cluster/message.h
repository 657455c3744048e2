// SPDX-License-Identifier: Apache-2.0
// The control messages, one record type each. W: task manager (worker) to job manager; M: job
// manager to task manager.
//
// An attempt is one execution of a job; its id is never used again in the life of a cluster, so
// that what comes late from an older one is told apart and dropped.
#ifndef LEATI_CLUSTER_MESSAGE_H
#define LEATI_CLUSTER_MESSAGE_H

#include "leat/record.h"

typedef enum leati_message_kind {
    LEATI_MESSAGE_REGISTER = 1,   // W, first of all
    LEATI_MESSAGE_REGISTERED = 2, // M, its answer
    LEATI_MESSAGE_HEARTBEAT = 3,  // both
    LEATI_MESSAGE_DEPLOY = 4,     // M
    LEATI_MESSAGE_CANCEL = 5,     // M: stop the tasks of an attempt
    LEATI_MESSAGE_CONCLUDE = 6,   // M: end of an attempt, after OVER of all
    LEATI_MESSAGE_STAGE = 7,      // W: a task has reached another stage
    LEATI_MESSAGE_FAILED = 8,     // W: an attempt has failed here
    LEATI_MESSAGE_OVER = 9,       // W: all its tasks here have ended
    LEATI_MESSAGE_CONCLUDED = 10, // W: and nothing of it is left here
    LEATI_MESSAGE_REPORT = 11, // W: figures of an attempt's tasks, every heartbeat and before OVER
    LEATI_MESSAGE_FETCH = 12,  // W: a piece of an artifact, please
    LEATI_MESSAGE_CHUNK = 13,  // M: the piece
    LEATI_MESSAGE_OUTPUT = 14, // W: what print sinks wrote
    LEATI_MESSAGE_TAKEN = 15,  // M: output up to there is safe, more may come
    LEATI_MESSAGE_LOG = 16,    // W: a line of a job's log
    LEATI_MESSAGE_ASK = 17,    // W to M to W: leati_ctx_ask
    LEATI_MESSAGE_ANSWER = 18, // W to M to W
    LEATI_MESSAGE_CRASH = 19,  // W: dying of a signal
    LEATI_MESSAGE_SHUTDOWN = 20, // M: cancel all and exit
} leati_message_kind;

typedef struct leati_msg_register {
    leat_str id, host, data_address, version, log_path;
    int64_t pid, started_ms; // since the epoch
    uint32_t slots, index;   // index: of a local cluster's worker, from 1; else 0
    uint64_t memory_network; // bytes of segments
    uint32_t segment_size, workers;
} leati_msg_register;
LEAT_RECORD(leati_msg_register, LEAT_FIELD(id, LEAT_STR), LEAT_FIELD(host, LEAT_STR),
            LEAT_FIELD(data_address, LEAT_STR), LEAT_FIELD(version, LEAT_STR),
            LEAT_FIELD(log_path, LEAT_STR), LEAT_FIELD(pid, LEAT_I64),
            LEAT_FIELD(started_ms, LEAT_I64), LEAT_FIELD(slots, LEAT_U32),
            LEAT_FIELD(index, LEAT_U32), LEAT_FIELD(memory_network, LEAT_U64),
            LEAT_FIELD(segment_size, LEAT_U32), LEAT_FIELD(workers, LEAT_U32));

typedef struct leati_msg_registered {
    leat_str refused; // "" or why
    leat_str cluster;
    uint64_t term;
    int64_t heartbeat_interval_ms, heartbeat_timeout_ms;
} leati_msg_registered;
LEAT_RECORD(leati_msg_registered, LEAT_FIELD(refused, LEAT_STR), LEAT_FIELD(cluster, LEAT_STR),
            LEAT_FIELD(term, LEAT_U64), LEAT_FIELD(heartbeat_interval_ms, LEAT_I64),
            LEAT_FIELD(heartbeat_timeout_ms, LEAT_I64));

// Of the process as a whole.
typedef struct leati_msg_heartbeat {
    int64_t sent_ns;
    uint64_t resident_bytes, cpu_ns;
    uint32_t threads, files, segments_total, segments_free, connections;
    uint64_t network_bytes_in, network_bytes_out;
} leati_msg_heartbeat;
LEAT_RECORD(leati_msg_heartbeat, LEAT_FIELD(sent_ns, LEAT_I64),
            LEAT_FIELD(resident_bytes, LEAT_U64), LEAT_FIELD(cpu_ns, LEAT_U64),
            LEAT_FIELD(threads, LEAT_U32), LEAT_FIELD(files, LEAT_U32),
            LEAT_FIELD(segments_total, LEAT_U32), LEAT_FIELD(segments_free, LEAT_U32),
            LEAT_FIELD(connections, LEAT_U32), LEAT_FIELD(network_bytes_in, LEAT_U64),
            LEAT_FIELD(network_bytes_out, LEAT_U64));

// A file that travels: by the hash of its bytes (32 hex digits of XXH3-128).
typedef struct leati_msg_file {
    leat_str name; // of the job file, "wordcount.so"; of a cached file, its name; in a directory
                   // "name/sub/file"
    leat_str hash;
    uint64_t size;
    bool executable;
} leati_msg_file;
LEAT_RECORD(leati_msg_file, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(hash, LEAT_STR),
            LEAT_FIELD(size, LEAT_U64), LEAT_FIELD(executable, LEAT_BOOL));

typedef struct leati_msg_setting {
    leat_str key, value;
} leati_msg_setting;
LEAT_RECORD(leati_msg_setting, LEAT_FIELD(key, LEAT_STR), LEAT_FIELD(value, LEAT_STR));

typedef struct leati_msg_process {
    leat_str id, name, address; // of a task manager that takes part
} leati_msg_process;
LEAT_RECORD(leati_msg_process, LEAT_FIELD(id, LEAT_STR), LEAT_FIELD(name, LEAT_STR),
            LEAT_FIELD(address, LEAT_STR));

// What a job is made of: as the client has submitted it.
typedef struct leati_msg_job {
    leat_str name;
    leati_msg_file job_file;
    leat_list libraries;  // of leati_msg_file
    leat_list cached;     // of leati_msg_file
    leat_list empty_dirs; // of leat_str: cached directories without files, "name" or "name/sub"
    leat_list args;       // of leat_str; argv[1] …
    leat_list settings;   // of leati_msg_setting
    leat_str folder;      // the client's working directory, for relative paths
    leat_str argv0;       // the job file as the user named it
    leat_str digest;
    leat_bytes graph; // msgpack
} leati_msg_job;
LEAT_RECORD(leati_msg_job, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD_STRUCT(job_file, leati_msg_file),
            LEAT_FIELD_LIST(libraries, LEAT_TYPE(leati_msg_file)),
            LEAT_FIELD_LIST(cached, LEAT_TYPE(leati_msg_file)),
            LEAT_FIELD_LIST(empty_dirs, LEAT_SCALAR(LEAT_STR)),
            LEAT_FIELD_LIST(args, LEAT_SCALAR(LEAT_STR)),
            LEAT_FIELD_LIST(settings, LEAT_TYPE(leati_msg_setting)), LEAT_FIELD(folder, LEAT_STR),
            LEAT_FIELD(argv0, LEAT_STR), LEAT_FIELD(digest, LEAT_STR),
            LEAT_FIELD(graph, LEAT_BYTES));

typedef struct leati_msg_deploy {
    uint64_t attempt;
    uint32_t number, self;
    leat_str job_id;
    leat_list processes;  // of leati_msg_process
    leat_list process_of; // of uint32_t, one a task
    leati_msg_job job;
} leati_msg_deploy;
LEAT_RECORD(leati_msg_deploy, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(number, LEAT_U32),
            LEAT_FIELD(self, LEAT_U32), LEAT_FIELD(job_id, LEAT_STR),
            LEAT_FIELD_LIST(processes, LEAT_TYPE(leati_msg_process)),
            LEAT_FIELD_LIST(process_of, LEAT_SCALAR(LEAT_U32)),
            LEAT_FIELD_STRUCT(job, leati_msg_job));

typedef struct leati_msg_end { // CANCEL: why; CONCLUDE: commit
    uint64_t attempt;
    bool commit;
    leat_str why;
} leati_msg_end;
LEAT_RECORD(leati_msg_end, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(commit, LEAT_BOOL),
            LEAT_FIELD(why, LEAT_STR));

typedef struct leati_msg_stage {
    uint64_t attempt;
    uint32_t vertex, subtask;
    leat_str stage; // "OPENING", "RUNNING" …, and before them "DEPLOYING"
} leati_msg_stage;
LEAT_RECORD(leati_msg_stage, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(vertex, LEAT_U32),
            LEAT_FIELD(subtask, LEAT_U32), LEAT_FIELD(stage, LEAT_STR));

typedef struct leati_msg_failed { // FAILED; CRASH; CONCLUDED (err 0: well)
    uint64_t attempt;             // CRASH: 0 when it was in no task
    uint32_t err;                 // a leat_err
    uint32_t vertex, subtask;     // UINT32_MAX: of no task
    bool consequence;             // only because a peer is lost: another failure is the root
    leat_str text;
} leati_msg_failed;
LEAT_RECORD(leati_msg_failed, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(err, LEAT_U32),
            LEAT_FIELD(vertex, LEAT_U32), LEAT_FIELD(subtask, LEAT_U32),
            LEAT_FIELD(consequence, LEAT_BOOL), LEAT_FIELD(text, LEAT_STR));

typedef struct leati_msg_over {
    uint64_t attempt;
    bool finished;           // all tasks have; else they were stopped
    leat_bytes accumulators; // leati_job_accumulators_encode
} leati_msg_over;
LEAT_RECORD(leati_msg_over, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(finished, LEAT_BOOL),
            LEAT_FIELD(accumulators, LEAT_BYTES));

typedef struct leati_msg_task {
    uint32_t vertex, subtask;
    leat_str state;
    uint64_t records_in, records_out, bytes_in, bytes_out;
    uint64_t busy_ns, idle_ns, soft_ns, hard_ns;
    uint32_t segments_used, segments_limit, queued; // queued: segments in its input
    uint32_t segment_size;                          // of its input, as debloated
    uint64_t drain_ms;                              // that what is queued will take; 0: not known
    leat_str wait;                                  // leati_wait_name
    int64_t wait_ns;                                // how long already
    uint32_t wait_vertex, wait_subtask;
    leat_str wait_text;
} leati_msg_task;
LEAT_RECORD(leati_msg_task, LEAT_FIELD(vertex, LEAT_U32), LEAT_FIELD(subtask, LEAT_U32),
            LEAT_FIELD(state, LEAT_STR), LEAT_FIELD(records_in, LEAT_U64),
            LEAT_FIELD(records_out, LEAT_U64), LEAT_FIELD(bytes_in, LEAT_U64),
            LEAT_FIELD(bytes_out, LEAT_U64), LEAT_FIELD(busy_ns, LEAT_U64),
            LEAT_FIELD(idle_ns, LEAT_U64), LEAT_FIELD(soft_ns, LEAT_U64),
            LEAT_FIELD(hard_ns, LEAT_U64), LEAT_FIELD(segments_used, LEAT_U32),
            LEAT_FIELD(segments_limit, LEAT_U32), LEAT_FIELD(queued, LEAT_U32),
            LEAT_FIELD(segment_size, LEAT_U32), LEAT_FIELD(drain_ms, LEAT_U64),
            LEAT_FIELD(wait, LEAT_STR), LEAT_FIELD(wait_ns, LEAT_I64),
            LEAT_FIELD(wait_vertex, LEAT_U32), LEAT_FIELD(wait_subtask, LEAT_U32),
            LEAT_FIELD(wait_text, LEAT_STR));

typedef struct leati_msg_metric { // leat_metric; of a histogram min, max, mean and percentiles too
    leat_str op;
    uint32_t op_id, subtask;
    leat_str name;
    uint32_t kind; // a leat_metric_kind
    int64_t count;
    double value;
    int64_t min, max, p50, p90, p99;
    bool built_in; // of the runtime, not of a user function
} leati_msg_metric;
LEAT_RECORD(leati_msg_metric, LEAT_FIELD(op, LEAT_STR), LEAT_FIELD(op_id, LEAT_U32),
            LEAT_FIELD(subtask, LEAT_U32), LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(kind, LEAT_U32),
            LEAT_FIELD(count, LEAT_I64), LEAT_FIELD(value, LEAT_F64), LEAT_FIELD(min, LEAT_I64),
            LEAT_FIELD(max, LEAT_I64), LEAT_FIELD(p50, LEAT_I64), LEAT_FIELD(p90, LEAT_I64),
            LEAT_FIELD(p99, LEAT_I64), LEAT_FIELD(built_in, LEAT_BOOL));

typedef struct leati_msg_report {
    uint64_t attempt;
    leat_list tasks;         // of leati_msg_task
    leat_list metrics;       // of leati_msg_metric; at most 10,000
    leat_bytes accumulators; // as they are now
} leati_msg_report;
LEAT_RECORD(leati_msg_report, LEAT_FIELD(attempt, LEAT_U64),
            LEAT_FIELD_LIST(tasks, LEAT_TYPE(leati_msg_task)),
            LEAT_FIELD_LIST(metrics, LEAT_TYPE(leati_msg_metric)),
            LEAT_FIELD(accumulators, LEAT_BYTES));

typedef struct leati_msg_piece { // FETCH: no bytes; CHUNK: bytes, or why not
    leat_str hash;
    uint64_t offset, total;
    leat_bytes bytes;
    leat_str refused;
} leati_msg_piece;
LEAT_RECORD(leati_msg_piece, LEAT_FIELD(hash, LEAT_STR), LEAT_FIELD(offset, LEAT_U64),
            LEAT_FIELD(total, LEAT_U64), LEAT_FIELD(bytes, LEAT_BYTES),
            LEAT_FIELD(refused, LEAT_STR));

typedef struct leati_msg_output { // OUTPUT; TAKEN: `offset` bytes of this worker are safe
    uint64_t attempt;
    uint32_t fd;
    uint64_t
        offset; // of the first byte, of all that this worker has sent of the attempt on both files
    leat_bytes bytes;
} leati_msg_output;
LEAT_RECORD(leati_msg_output, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(fd, LEAT_U32),
            LEAT_FIELD(offset, LEAT_U64), LEAT_FIELD(bytes, LEAT_BYTES));

// How much of OUTPUT a worker may have sent beyond what is TAKEN.
enum { LEATI_OUTPUT_WINDOW = 1 << 20 };

typedef struct leati_msg_log {
    uint64_t attempt;
    uint32_t level; // a leat_log_level
    int64_t time_ms;
    leat_str line;
} leati_msg_log;
LEAT_RECORD(leati_msg_log, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(level, LEAT_U32),
            LEAT_FIELD(time_ms, LEAT_I64), LEAT_FIELD(line, LEAT_STR));

typedef struct leati_msg_ask { // ASK; ANSWER
    uint64_t attempt, token;
    uint32_t process; // ASK: whom; as the job manager passes it on, and in ANSWER: who has asked
    uint32_t node, err;
    leat_bytes bytes;
} leati_msg_ask;
LEAT_RECORD(leati_msg_ask, LEAT_FIELD(attempt, LEAT_U64), LEAT_FIELD(token, LEAT_U64),
            LEAT_FIELD(process, LEAT_U32), LEAT_FIELD(node, LEAT_U32), LEAT_FIELD(err, LEAT_U32),
            LEAT_FIELD(bytes, LEAT_BYTES));

#endif
