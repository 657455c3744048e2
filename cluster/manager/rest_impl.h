// SPDX-License-Identifier: Apache-2.0
// The parts of the REST interface among themselves.
//
// Threading. A thread a connection, made by libmicrohttpd; a request belongs to the thread of its
// connection from its first byte to its last. Pages about the manager's state are put together
// under its lock and sent without it.
//
// Bounds. LEATI_REST_CONNECTIONS connections; a body of JSON LEATI_REST_JSON_MAX bytes, an artifact
// cluster.artifact-max-size; a long poll LEATI_REST_WAIT_MAX_MS.
#ifndef LEATI_CLUSTER_MANAGER_REST_IMPL_H
#define LEATI_CLUSTER_MANAGER_REST_IMPL_H

#include <microhttpd.h>

#include "base/thread.h"
#include "cluster/manager/view.h"
#include "cluster/rest_code.h"

enum {
    LEATI_REST_CONNECTIONS = 1024, // at most,
    LEATI_REST_PART = 4,           // and that part of the process's files
    LEATI_REST_STACK = 512 << 10,
    LEATI_REST_TIMEOUT_S = 30,     // of silence
    LEATI_REST_HEADERS_MS = 60000, // for the headers of a request to come
    LEATI_REST_WAIT_MAX_MS = 30000,
    LEATI_REST_ATTACHED_WAIT_MAX_MS = 5000, // so that a waiting client is heard of often enough
    LEATI_REST_JSON_MAX = 16 << 20,
    LEATI_REST_OUTPUT_MAX = 512 << 10, // bytes of output in one answer
    LEATI_REST_LOG_MAX = 1 << 20,      // bytes of the job manager's log
    LEATI_REST_PARTS = 8
};

typedef struct leati_request leati_request;
typedef struct leati_route leati_route;

typedef enum leati_body { LEATI_BODY_NONE, LEATI_BODY_JSON, LEATI_BODY_FILE } leati_body;

// What a path and a method lead to. Both kinds of pages fill `out` and return the status.
struct leati_route {
    const char *method; // HEAD goes with GET
    const char *path;   // "jobs/*/vertices/*"; what a star stands for becomes an argument
    leati_body body;
    bool open;                                                       // to everybody
    unsigned (*page)(leati_request *request);                        // without the lock
    unsigned (*job)(leati_request *request, leati_managed_job *job); // with it; argument 0 is an id
};

struct leati_request {
    leati_rest *rest;
    leati_manager *manager;
    struct MHD_Connection *connection;
    bool begun;   // its headers have come
    char *target; // the path as it was sent, with what follows "?"
    const leati_route *route;
    char *path; // a copy, cut at its slashes
    const char *args[LEATI_REST_PARTS];
    int arg_count;
    int64_t started_ns;
    // The answer.
    unsigned status; // 0: not known yet
    leati_strbuf out;
    const char *type; // "application/json"
    char allow[64];
    struct {
        char name[24], value[72];
    } headers[6];
    int header_count;
    // With a secret, once it was shown to be known.
    bool claimed;
    bool is_head;
    leati_rest_claim claim;
    leati_sha256 *sum; // of the body so far
    // The body.
    uint64_t received;
    leati_strbuf body;
    int file; // of an upload, or -1
    char temporary[560];
};

typedef struct leati_rest_guest leati_rest_guest; // a connection, to the guard

struct leati_rest {
    leati_manager *manager;
    struct MHD_Daemon *daemon;
    bool stopping; // under the manager's lock
    pthread_t guard;
    leati_parker guard_parker;
    _Atomic bool guard_ends;
    pthread_mutex_t guard_lock; // the innermost of all
    // Immutable. From so many connections on, each that comes has one shut down that owes a
    // request.
    uint32_t crowd;
    // Under guard_lock.
    leati_rest_guest *guests;
    uint32_t guest_count;
    struct leati_rest_nonces *nonces;
};

// --- rest_guard.c ---

LEAT_MUST_USE leat_err leati_rest_guard_start(leati_rest *rest); // LEAT_ETHREAD
void leati_rest_guard_stop(leati_rest *rest);
// MHD_OPTION_NOTIFY_CONNECTION.
void leati_rest_guard_connection(void *user, struct MHD_Connection *connection, void **context,
                                 enum MHD_ConnectionNotificationCode code);
// A request is there, of somebody who may have an answer; its answer has been sent.
void leati_rest_guard_request(struct MHD_Connection *connection, bool begins);
// Shuts down what has owed a request for too long; how many. For the guard's thread, and tests.
uint32_t leati_rest_guard_sweep(leati_rest *rest, int64_t now_ns);

// --- rest_auth.c ---

LEAT_MUST_USE leat_err leati_rest_auth_create(leati_rest *rest, char *why, size_t why_size);
void leati_rest_auth_destroy(leati_rest *rest);
// When the headers have come: false when this request may not be; the error is set.
bool leati_rest_auth_check(leati_request *request, const char *method);
// When the body has come: whether it is the one that was announced.
bool leati_rest_auth_check_body(leati_request *request);
// Shows to who asks that this is the job manager.
void leati_rest_auth_answer(leati_request *request);
unsigned leati_rest_challenge(leati_request *request);
// For tests: as if it were so many ms later.
void leati_rest_auth_age(leati_rest *rest, int64_t ms);

// --- rest_request.c ---

// Ends the request with {"errors": [text]} and that status, which is returned.
unsigned leati_rest_error(leati_request *request, unsigned status, const char *format, ...)
    LEAT_PRINTF(3, 4);
unsigned leati_rest_status_of(leat_err err); // of HTTP
void leati_rest_header(leati_request *request, const char *name, const char *format, ...)
    LEAT_PRINTF(3, 4);
// NULL when it is not there.
const char *leati_rest_query(leati_request *request, const char *name);
// A number in a query: `preset` when it is not there. False: it is not one, or above `highest`; the
// error is set.
bool leati_rest_number(leati_request *request, const char *name, uint64_t preset, uint64_t highest,
                       uint64_t *value);
// By argument 0; NULL: the error is set. With the lock held.
leati_managed_job *leati_rest_find_job(leati_request *request);
// By argument `index`; false: the error is set.
bool leati_rest_index(leati_request *request, int index, const char *what, uint32_t count,
                      uint32_t *value);
// No time limit for silence while a request is being waited for; one again afterwards.
void leati_rest_pause(leati_request *request, bool paused);

// The numbers of an address, "[::1]". False: it has none.
bool leati_rest_host(const struct sockaddr *address, char *to, size_t size);

// --- rest_routes.c ---

// Finds the route of a path, which is cut up; NULL: the error is set (404 or 405).
const leati_route *leati_rest_route(leati_request *request, const char *method, const char *url);

// --- rest_body.c ---

// Before the body: false when it is known to be too large, with the error set.
bool leati_rest_body_begin(leati_request *request);
// False: the connection is to be closed.
bool leati_rest_body_take(leati_request *request, const char *data, size_t size);
void leati_rest_body_drop(leati_request *request); // and the temporary file
unsigned leati_rest_put_artifact(leati_request *request);
unsigned leati_rest_get_artifact(leati_request *request);
bool leati_rest_is_hash(const char *text);

// --- rest_submit.c ---

unsigned leati_rest_submit(leati_request *request);

// --- rest_wait.c ---

unsigned leati_rest_status(leati_request *request);
unsigned leati_rest_output(leati_request *request);

// --- rest_pages.c ---

unsigned leati_rest_jobs(leati_request *request);
unsigned leati_rest_overview(leati_request *request);
unsigned leati_rest_config(leati_request *request);
unsigned leati_rest_members(leati_request *request);
unsigned leati_rest_member(leati_request *request);
unsigned leati_rest_member_metrics(leati_request *request);
unsigned leati_rest_manager_metrics(leati_request *request);
unsigned leati_rest_manager_log(leati_request *request);
unsigned leati_rest_prometheus(leati_request *request);
unsigned leati_rest_health(leati_request *request);
unsigned leati_rest_index_page(leati_request *request);

unsigned leati_rest_job(leati_request *request, leati_managed_job *job);
unsigned leati_rest_job_log(leati_request *request, leati_managed_job *job);
unsigned leati_rest_exceptions(leati_request *request, leati_managed_job *job);
unsigned leati_rest_accumulators(leati_request *request, leati_managed_job *job);
unsigned leati_rest_plan(leati_request *request, leati_managed_job *job);
unsigned leati_rest_job_config(leati_request *request, leati_managed_job *job);
unsigned leati_rest_job_metrics(leati_request *request, leati_managed_job *job);
unsigned leati_rest_result(leati_request *request, leati_managed_job *job);
unsigned leati_rest_why(leati_request *request, leati_managed_job *job);
unsigned leati_rest_vertex(leati_request *request, leati_managed_job *job);
unsigned leati_rest_backpressure(leati_request *request, leati_managed_job *job);
unsigned leati_rest_vertex_metrics(leati_request *request, leati_managed_job *job);
unsigned leati_rest_subtask(leati_request *request, leati_managed_job *job);
unsigned leati_rest_subtask_metrics(leati_request *request, leati_managed_job *job);
unsigned leati_rest_cancel(leati_request *request, leati_managed_job *job);

#endif
