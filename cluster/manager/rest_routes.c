// SPDX-License-Identifier: Apache-2.0
// Which path leads to which page.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/manager/rest_impl.h"

// The first that fits counts. Everything is also there without its "v1/".
static const leati_route routes[] = {
    {.method = "GET", .path = "", .page = leati_rest_index_page},
    {.method = "GET", .path = "health", .open = true, .page = leati_rest_health},
    {.method = "GET", .path = "challenge", .open = true, .page = leati_rest_challenge},
    {.method = "GET", .path = "metrics", .page = leati_rest_prometheus},
    {.method = "GET", .path = "overview", .page = leati_rest_overview},
    {.method = "GET", .path = "config", .page = leati_rest_config},
    {.method = "GET", .path = "jobmanager/config", .page = leati_rest_config},
    {.method = "GET", .path = "jobmanager/log", .page = leati_rest_manager_log},
    {.method = "GET", .path = "jobmanager/metrics", .page = leati_rest_manager_metrics},
    {.method = "GET", .path = "taskmanagers", .page = leati_rest_members},
    {.method = "GET", .path = "taskmanagers/*", .page = leati_rest_member},
    {.method = "GET", .path = "taskmanagers/*/metrics", .page = leati_rest_member_metrics},
    {.method = "GET", .path = "artifacts/*", .page = leati_rest_get_artifact},
    {.method = "PUT",
     .path = "artifacts/*",
     .body = LEATI_BODY_FILE,
     .page = leati_rest_put_artifact},
    {.method = "GET", .path = "jobs", .page = leati_rest_jobs},
    {.method = "POST", .path = "jobs", .body = LEATI_BODY_JSON, .page = leati_rest_submit},
    {.method = "GET", .path = "jobs/overview", .page = leati_rest_jobs},
    {.method = "GET", .path = "jobs/*", .job = leati_rest_job},
    {.method = "PATCH", .path = "jobs/*", .job = leati_rest_cancel},
    {.method = "GET", .path = "jobs/*/status", .page = leati_rest_status},
    {.method = "GET", .path = "jobs/*/output", .page = leati_rest_output},
    {.method = "GET", .path = "jobs/*/log", .job = leati_rest_job_log},
    {.method = "GET", .path = "jobs/*/exceptions", .job = leati_rest_exceptions},
    {.method = "GET", .path = "jobs/*/accumulators", .job = leati_rest_accumulators},
    {.method = "GET", .path = "jobs/*/plan", .job = leati_rest_plan},
    {.method = "GET", .path = "jobs/*/config", .job = leati_rest_job_config},
    {.method = "GET", .path = "jobs/*/metrics", .job = leati_rest_job_metrics},
    {.method = "GET", .path = "jobs/*/execution-result", .job = leati_rest_result},
    {.method = "GET", .path = "jobs/*/why", .job = leati_rest_why},
    {.method = "GET", .path = "jobs/*/vertices/*", .job = leati_rest_vertex},
    {.method = "GET", .path = "jobs/*/vertices/*/backpressure", .job = leati_rest_backpressure},
    {.method = "GET", .path = "jobs/*/vertices/*/metrics", .job = leati_rest_vertex_metrics},
    {.method = "GET",
     .path = "jobs/*/vertices/*/subtasks/metrics",
     .job = leati_rest_vertex_metrics},
    {.method = "GET", .path = "jobs/*/vertices/*/subtasks/*", .job = leati_rest_subtask},
    {.method = "GET",
     .path = "jobs/*/vertices/*/subtasks/*/metrics",
     .job = leati_rest_subtask_metrics},
};
enum { ROUTES = sizeof routes / sizeof *routes };

// Cuts the path at its slashes. False: too many parts.
static bool cut(char *path, char *parts[LEATI_REST_PARTS], int *count)
{
    *count = 0;
    for (char *part = path; part[0];) {
        if (*count == LEATI_REST_PARTS)
            return false;
        parts[(*count)++] = part;
        char *slash = strchr(part, '/');
        if (!slash)
            break;
        slash[0] = '\0';
        part = slash + 1;
    }
    return true;
}

// Whether the parts fit the pattern; then `args` gets what its stars stand for.
static bool fits(const char *pattern, char *const *parts, int count, const char **args,
                 int *arg_count)
{
    int used = 0;
    *arg_count = 0;
    while (pattern[0]) {
        size_t size = strcspn(pattern, "/");
        if (used == count)
            return false;
        const char *part = parts[used++];
        if (size == 1 && pattern[0] == '*' && part[0])
            args[(*arg_count)++] = part;
        else if (strlen(part) != size || strncmp(part, pattern, size) != 0)
            return false;
        pattern += size + (pattern[size] == '/');
    }
    return used == count;
}

static bool same_method(const char *route, const char *method)
{
    return !strcmp(route, method) || (!strcmp(route, "GET") && !strcmp(method, "HEAD"));
}

static void allow(leati_request *request, const char *method)
{
    size_t size = strlen(request->allow);
    const char *both = strcmp(method, "GET") != 0 ? method : "GET, HEAD";
    snprintf(request->allow + size, sizeof request->allow - size, "%s%s", size ? ", " : "", both);
}

// The path ends there once it is decoded, and would be another one.
static bool has_nul(const char *target)
{
    const char *nul = strstr(target, "%00");
    return nul && (size_t)(nul - target) < strcspn(target, "?");
}

const leati_route *leati_rest_route(leati_request *request, const char *method, const char *url)
{
    char *parts[LEATI_REST_PARTS];
    int count;
    if (has_nul(request->target)) {
        leati_rest_error(request, MHD_HTTP_BAD_REQUEST, "the path has a NUL in it");
        return NULL;
    }
    request->path = leati_strdup(request->manager->allocator, url);
    if (!request->path) {
        leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return NULL;
    }
    char *path = request->path + (request->path[0] == '/');
    if (!strncmp(path, "v1/", 3) || !strcmp(path, "v1"))
        path += path[2] ? 3 : 2;
    bool fitting = cut(path, parts, &count);
    for (int i = 0; fitting && i < ROUTES; i++) {
        int arg_count;
        if (!fits(routes[i].path, parts, count, request->args, &arg_count))
            continue;
        request->arg_count = arg_count;
        if (same_method(routes[i].method, method))
            return &routes[i];
        allow(request, routes[i].method);
    }
    if (request->allow[0])
        leati_rest_error(request, MHD_HTTP_METHOD_NOT_ALLOWED, "%.20s is not for %.200s: %s are",
                         method, url, request->allow);
    else
        leati_rest_error(request, MHD_HTTP_NOT_FOUND, "there is nothing at %.200s", url);
    return NULL;
}
