// SPDX-License-Identifier: Apache-2.0
// What the job manager shows of its state, as JSON: one function a page of the REST interface.
//
// Threading. All but the writers of values are called with the manager's lock held and only read.
#ifndef LEATI_CLUSTER_MANAGER_VIEW_H
#define LEATI_CLUSTER_MANAGER_VIEW_H

#include "cluster/manager/manager.h"

struct leati_process_figures;

// --- view_json.c: values, with a comma before all but the first of an object or array ---

// `key` is NULL for items of an array. Texts that are no UTF-8 get U+FFFD.
void leati_put_open(leati_strbuf *out, const char *key, char bracket);
void leati_put_close(leati_strbuf *out, char bracket);
void leati_put_text(leati_strbuf *out, const char *key, const char *text);
void leati_put_str(leati_strbuf *out, const char *key, leat_str text);
void leati_put_i64(leati_strbuf *out, const char *key, int64_t value);
void leati_put_u64(leati_strbuf *out, const char *key, uint64_t value);
void leati_put_f64(leati_strbuf *out, const char *key, double value); // not finite: null
void leati_put_bool(leati_strbuf *out, const char *key, bool value);
void leati_put_null(leati_strbuf *out, const char *key);

// --- view_cluster.c ---

void leati_view_overview(leati_strbuf *out, const leati_manager *manager);
void leati_view_config(leati_strbuf *out, const leati_manager *manager);
void leati_view_members(leati_strbuf *out, const leati_manager *manager);
void leati_view_member(leati_strbuf *out, const leati_member *member);
// By id, a unique beginning of it, or its index in a local cluster; NULL: none or several.
leati_member *leati_view_find_member(leati_manager *manager, const char *id);
// Registered task managers that live, and what they offer.
void leati_view_slots(const leati_manager *manager, uint32_t *members, uint32_t *total,
                      uint32_t *available);

// The same for a job whose slots have to be in one task manager: what the largest has, and how many
// are free in the one with the most free.
void leati_view_largest(const leati_manager *manager, uint32_t *total, uint32_t *available);

// --- view_job.c ---

int64_t leati_view_now_ms(void); // since the epoch
// "" or "4 slots, 3 are free"; with a loop, what there is in one task manager.
void leati_view_waiting(const leati_manager *manager, const leati_managed_job *job, char *text,
                        size_t text_size);
// The members of JOB, without the brackets.
void leati_view_job(leati_strbuf *out, const leati_manager *manager, const leati_managed_job *job);
void leati_view_jobs(leati_strbuf *out, const leati_manager *manager);
void leati_view_job_config(leati_strbuf *out, const leati_managed_job *job);
// [{"time", "task", "worker", "text", "root"}]
void leati_view_failures(leati_strbuf *out, const char *key, const leati_managed_job *job);
void leati_view_exceptions(leati_strbuf *out, const leati_managed_job *job);
void leati_view_log(leati_strbuf *out, const leati_managed_job *job); // text
// Whether an operator of the vertex reads from outside; whether it feeds no other.
bool leati_view_is_source(const leati_job_graph *graph, uint32_t vertex);
bool leati_view_is_last(const leati_job_graph *graph, uint32_t vertex);

// --- view_vertex.c ---

void leati_view_vertices(leati_strbuf *out, const leati_managed_job *job);
void leati_view_vertex(leati_strbuf *out, const char *key, const leati_managed_job *job,
                       uint32_t vertex);
void leati_view_task(leati_strbuf *out, const char *key, const leati_managed_job *job,
                     uint32_t vertex, uint32_t subtask);
void leati_view_backpressure(leati_strbuf *out, const leati_managed_job *job, uint32_t vertex);
const char *leati_view_worker(const leati_managed_job *job, const leati_task_view *task);
// How long the task has been waiting already, in ms.
int64_t leati_view_wait_ms(const leati_task_view *task);

// Shares of the last interval, in permille; 0 before the first report.
typedef struct leati_rates {
    uint32_t busy, idle, soft, hard;
    double seconds; // between the two reports, or 0
    double records_in, records_out, bytes_out;
} leati_rates;
void leati_view_rates(const leati_task_view *task, leati_rates *rates);

// --- view_accumulators.c ---

// {"accumulators": […]} without the brackets; false when parts do not fit together or without
// memory: then there is an empty list and an "error".
bool leati_view_accumulators(leati_strbuf *out, const leati_manager *manager,
                             const leati_managed_job *job);
void leati_view_result(leati_strbuf *out, const leati_manager *manager,
                       const leati_managed_job *job);

// --- view_metrics.c ---

// Flink's pages of metrics: `get` is NULL (names only) or "a,b"; `agg` NULL or "min,max,sum,avg".
// `vertex` and `subtask` are UINT32_MAX for all. False: an unknown word in `agg`, told in `why`.
bool leati_view_metrics(leati_strbuf *out, const leati_managed_job *job, uint32_t vertex,
                        uint32_t subtask, const char *get, const char *agg, char *why,
                        size_t why_size);
void leati_view_member_metrics(leati_strbuf *out, const leati_member *member, const char *get);
void leati_view_manager_metrics(leati_strbuf *out, const leati_manager *manager,
                                const struct leati_process_figures *process, const char *get);

// --- prometheus.c ---

// The text exposition format, version 0.0.4.
void leati_view_prometheus(leati_strbuf *out, const leati_manager *manager,
                           const struct leati_process_figures *process);

// --- view_why.c ---

void leati_view_why(leati_strbuf *out, const leati_manager *manager, const leati_managed_job *job);

#endif
