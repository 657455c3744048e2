// SPDX-License-Identifier: Apache-2.0
// The pages that show the job manager's state as it is now.
#include <string.h>

#include "base/alloc.h"
#include "cluster/manager/metrics.h"
#include "cluster/manager/rest_impl.h"

// --- the cluster; each takes the lock ---

// A page that any state has.
static unsigned show(leati_request *request,
                     void (*view)(leati_strbuf *out, const leati_manager *manager))
{
    pthread_mutex_lock(&request->manager->lock);
    view(&request->out, request->manager);
    pthread_mutex_unlock(&request->manager->lock);
    return MHD_HTTP_OK;
}

unsigned leati_rest_jobs(leati_request *request)
{
    return show(request, leati_view_jobs);
}

unsigned leati_rest_overview(leati_request *request)
{
    return show(request, leati_view_overview);
}

unsigned leati_rest_config(leati_request *request)
{
    return show(request, leati_view_config);
}

unsigned leati_rest_members(leati_request *request)
{
    return show(request, leati_view_members);
}

unsigned leati_rest_prometheus(leati_request *request)
{
    leati_process_figures process;
    leati_process_figures_read(&process);
    request->type = "text/plain; version=0.0.4; charset=utf-8";
    pthread_mutex_lock(&request->manager->lock);
    leati_view_prometheus(&request->out, request->manager, &process);
    pthread_mutex_unlock(&request->manager->lock);
    return MHD_HTTP_OK;
}

unsigned leati_rest_manager_metrics(leati_request *request)
{
    leati_process_figures process;
    leati_process_figures_read(&process);
    const char *get = leati_rest_query(request, "get");
    pthread_mutex_lock(&request->manager->lock);
    leati_view_manager_metrics(&request->out, request->manager, &process, get);
    pthread_mutex_unlock(&request->manager->lock);
    return MHD_HTTP_OK;
}

static unsigned show_member(leati_request *request, bool metrics)
{
    unsigned status = MHD_HTTP_OK;
    pthread_mutex_lock(&request->manager->lock);
    leati_member *member = leati_view_find_member(request->manager, request->args[0]);
    if (!member)
        status = leati_rest_error(request, MHD_HTTP_NOT_FOUND, "there is no task manager \"%.40s\"",
                                  request->args[0]);
    else if (metrics)
        leati_view_member_metrics(&request->out, member, leati_rest_query(request, "get"));
    else
        leati_view_member(&request->out, member);
    pthread_mutex_unlock(&request->manager->lock);
    return status;
}

unsigned leati_rest_member(leati_request *request)
{
    return show_member(request, false);
}

unsigned leati_rest_member_metrics(leati_request *request)
{
    return show_member(request, true);
}

unsigned leati_rest_health(leati_request *request)
{
    // Taking the lock shows that nothing holds it for ever.
    pthread_mutex_lock(&request->manager->lock);
    bool stopping = request->manager->stopping;
    pthread_mutex_unlock(&request->manager->lock);
    if (stopping)
        return leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "the job manager stops");
    leati_strbuf_puts(&request->out, "ok");
    request->type = "text/plain; charset=utf-8";
    return MHD_HTTP_OK;
}

unsigned leati_rest_index_page(leati_request *request)
{
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "service", "leat job manager");
    leati_put_text(&request->out, "version", leat_version());
    leati_put_text(&request->out, "overview", "/v1/overview");
    leati_put_close(&request->out, '}');
    return MHD_HTTP_OK;
}

// --- a job; all with the lock held ---

unsigned leati_rest_job(leati_request *request, leati_managed_job *job)
{
    leati_put_open(&request->out, NULL, '{');
    leati_view_job(&request->out, request->manager, job);
    leati_view_vertices(&request->out, job);
    leati_view_failures(&request->out, "failures", job);
    leati_put_close(&request->out, '}');
    return MHD_HTTP_OK;
}

unsigned leati_rest_job_log(leati_request *request, leati_managed_job *job)
{
    request->type = "text/plain; charset=utf-8";
    leati_view_log(&request->out, job);
    return MHD_HTTP_OK;
}

unsigned leati_rest_exceptions(leati_request *request, leati_managed_job *job)
{
    leati_view_exceptions(&request->out, job);
    return MHD_HTTP_OK;
}

unsigned leati_rest_accumulators(leati_request *request, leati_managed_job *job)
{
    leati_put_open(&request->out, NULL, '{');
    leati_view_accumulators(&request->out, request->manager, job);
    leati_put_close(&request->out, '}');
    return MHD_HTTP_OK;
}

unsigned leati_rest_plan(leati_request *request, leati_managed_job *job)
{
    char *text = NULL;
    const leat_allocator *allocator = request->manager->allocator;
    leat_err err = leati_job_graph_picture(job->graph, LEAT_PLAN_JSON, allocator, &text);
    if (err != LEAT_OK)
        return leati_rest_error(request, leati_rest_status_of(err), "%s", leat_err_message(err));
    leati_strbuf_puts(&request->out, text);
    leati_free(allocator, text);
    return MHD_HTTP_OK;
}

unsigned leati_rest_job_config(leati_request *request, leati_managed_job *job)
{
    leati_view_job_config(&request->out, job);
    return MHD_HTTP_OK;
}

unsigned leati_rest_result(leati_request *request, leati_managed_job *job)
{
    leati_view_result(&request->out, request->manager, job);
    return MHD_HTTP_OK;
}

unsigned leati_rest_why(leati_request *request, leati_managed_job *job)
{
    leati_view_why(&request->out, request->manager, job);
    return MHD_HTTP_OK;
}

unsigned leati_rest_cancel(leati_request *request, leati_managed_job *job)
{
    const char *mode = leati_rest_query(request, "mode");
    if (!mode)
        return leati_rest_error(request, MHD_HTTP_BAD_REQUEST,
                                "mode: it is missing, and \"cancel\" is what there is");
    if (strcmp(mode, "cancel") != 0)
        return leati_rest_error(request, MHD_HTTP_BAD_REQUEST, "mode: \"%.40s\" is not \"cancel\"",
                                mode);
    leat_err err = leati_manager_cancel(request->manager, job);
    if (err != LEAT_OK)
        return leati_rest_error(request, leati_rest_status_of(err), "the job is %s",
                                leati_phase_name(job->phase));
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "id", job->id);
    leati_put_text(&request->out, "state", leati_phase_name(job->phase));
    leati_put_close(&request->out, '}');
    return MHD_HTTP_ACCEPTED;
}

// --- a job's vertices and tasks ---

static bool find_vertex(leati_request *request, const leati_managed_job *job, uint32_t *vertex)
{
    return leati_rest_index(request, 1, "vertex", job->graph->vertex_count, vertex);
}

// Before the job has got its slots there are none.
static bool find_subtask(leati_request *request, const leati_managed_job *job, uint32_t *vertex,
                         uint32_t *subtask)
{
    return find_vertex(request, job, vertex) &&
           leati_rest_index(request, 2, "subtask",
                            job->tasks ? job->graph->vertices[*vertex].parallelism : 0, subtask);
}

unsigned leati_rest_vertex(leati_request *request, leati_managed_job *job)
{
    uint32_t vertex;
    if (!find_vertex(request, job, &vertex))
        return request->status;
    leati_view_vertex(&request->out, NULL, job, vertex);
    return MHD_HTTP_OK;
}

unsigned leati_rest_backpressure(leati_request *request, leati_managed_job *job)
{
    uint32_t vertex;
    if (!find_vertex(request, job, &vertex))
        return request->status;
    leati_view_backpressure(&request->out, job, vertex);
    return MHD_HTTP_OK;
}

unsigned leati_rest_subtask(leati_request *request, leati_managed_job *job)
{
    uint32_t vertex, subtask;
    if (!find_subtask(request, job, &vertex, &subtask))
        return request->status;
    leati_view_task(&request->out, NULL, job, vertex, subtask);
    return MHD_HTTP_OK;
}

static unsigned show_metrics(leati_request *request, const leati_managed_job *job, uint32_t vertex,
                             uint32_t subtask)
{
    char why[200];
    if (leati_view_metrics(&request->out, job, vertex, subtask, leati_rest_query(request, "get"),
                           leati_rest_query(request, "agg"), why, sizeof why))
        return MHD_HTTP_OK;
    return leati_rest_error(request, MHD_HTTP_BAD_REQUEST, "%s", why);
}

unsigned leati_rest_job_metrics(leati_request *request, leati_managed_job *job)
{
    return show_metrics(request, job, UINT32_MAX, UINT32_MAX);
}

unsigned leati_rest_vertex_metrics(leati_request *request, leati_managed_job *job)
{
    uint32_t vertex;
    if (!find_vertex(request, job, &vertex))
        return request->status;
    return show_metrics(request, job, vertex, UINT32_MAX);
}

unsigned leati_rest_subtask_metrics(leati_request *request, leati_managed_job *job)
{
    uint32_t vertex, subtask;
    if (!find_subtask(request, job, &vertex, &subtask))
        return request->status;
    return show_metrics(request, job, vertex, subtask);
}
