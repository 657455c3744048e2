// SPDX-License-Identifier: Apache-2.0
// Answers that wait for something to happen: another state of a job, more of its output.
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/rest_impl.h"

// Until something changes. False: the time is over, or the job manager stops. A job may be
// forgotten meanwhile, so it has to be looked up again.
static bool wait_for_change(leati_request *request, const struct timespec *deadline)
{
    leati_manager *manager = request->manager;
    if (manager->stopping || request->rest->stopping)
        return false;
    return pthread_cond_timedwait(&manager->changed, &manager->lock, deadline) == 0;
}

static void put_status(leati_request *request, const leati_managed_job *job)
{
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "state", leati_phase_name(job->phase));
    leati_put_close(&request->out, '}');
}

static bool is_state(const char *name)
{
    for (leati_job_phase phase = LEATI_PHASE_CREATED; phase <= LEATI_PHASE_CANCELED; phase++)
        if (!strcmp(leati_phase_name(phase), name))
            return true;
    return false;
}

static unsigned wait_for_status(leati_request *request, const struct timespec *deadline)
{
    const char *unlike = leati_rest_query(request, "not");
    for (bool more = true;;) {
        leati_managed_job *job = leati_rest_find_job(request);
        if (!job)
            return request->status;
        if (!unlike || !more || strcmp(leati_phase_name(job->phase), unlike) != 0) {
            put_status(request, job);
            return MHD_HTTP_OK;
        }
        more = wait_for_change(request, deadline);
    }
}

unsigned leati_rest_status(leati_request *request)
{
    uint64_t wait_ms;
    if (!leati_rest_number(request, "wait", 0, UINT32_MAX, &wait_ms))
        return request->status;
    const char *unlike = leati_rest_query(request, "not");
    if (unlike && !is_state(unlike))
        return leati_rest_error(request, MHD_HTTP_BAD_REQUEST,
                                "not: \"%.40s\" is not a state of a job", unlike);
    if (wait_ms > LEATI_REST_WAIT_MAX_MS)
        wait_ms = LEATI_REST_WAIT_MAX_MS;
    struct timespec deadline = leati_deadline((int64_t)wait_ms);
    leati_rest_pause(request, true);
    pthread_mutex_lock(&request->manager->lock);
    unsigned status = wait_for_status(request, &deadline);
    pthread_mutex_unlock(&request->manager->lock);
    leati_rest_pause(request, false);
    return status;
}

// --- output ---

typedef struct window {
    uint64_t offset;
    bool attached;
    struct timespec deadline;
} window;

static unsigned give_output(leati_request *request, leati_managed_job *job, uint64_t offset,
                            char *buffer)
{
    uint64_t first = job->output_first;
    if (offset < first)
        offset = first; // what came before is no longer kept
    size_t size = leati_job_output(job, offset, buffer, LEATI_REST_OUTPUT_MAX, &first);
    if (first > offset)
        offset = first;
    leati_strbuf_append(&request->out, buffer, size);
    request->type = "application/octet-stream";
    leati_rest_header(request, "Leat-Offset", "%" PRIu64, offset);
    leati_rest_header(request, "Leat-End", "%" PRIu64, job->output_end);
    leati_rest_header(request, "Leat-State", "%s", leati_phase_name(job->phase));
    return MHD_HTTP_OK;
}

static unsigned wait_for_output(leati_request *request, const window *w, char *buffer)
{
    bool first = true;
    for (bool more = true;; first = false) {
        leati_managed_job *job = leati_rest_find_job(request);
        if (!job)
            return request->status;
        if (w->offset > job->output_end)
            return leati_rest_error(request, MHD_HTTP_RANGE_NOT_SATISFIABLE,
                                    "offset: %" PRIu64 " is beyond the end, %" PRIu64, w->offset,
                                    job->output_end);
        if (w->attached && first)
            leati_job_output_read(request->manager, job, w->offset);
        if (job->output_end > w->offset || leati_phase_is_final(job->phase) || !more)
            return give_output(request, job, w->offset, buffer);
        more = wait_for_change(request, &w->deadline);
    }
}

unsigned leati_rest_output(leati_request *request)
{
    uint64_t wait_ms, attached;
    window w = {0};
    if (!leati_rest_number(request, "offset", 0, UINT64_MAX, &w.offset) ||
        !leati_rest_number(request, "wait", 0, UINT32_MAX, &wait_ms) ||
        !leati_rest_number(request, "attached", 0, 1, &attached))
        return request->status;
    w.attached = attached;
    uint64_t most = attached ? LEATI_REST_ATTACHED_WAIT_MAX_MS : LEATI_REST_WAIT_MAX_MS;
    w.deadline = leati_deadline((int64_t)(wait_ms < most ? wait_ms : most));
    char *buffer = leati_alloc(request->manager->allocator, LEATI_REST_OUTPUT_MAX);
    if (!buffer)
        return leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    leati_rest_pause(request, true);
    pthread_mutex_lock(&request->manager->lock);
    unsigned status = wait_for_output(request, &w, buffer);
    pthread_mutex_unlock(&request->manager->lock);
    leati_rest_pause(request, false);
    leati_free(request->manager->allocator, buffer);
    return status;
}
