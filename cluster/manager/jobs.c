// SPDX-License-Identifier: Apache-2.0
// Jobs: taken in, found, cancelled, forgotten.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "cluster/manager/manager_impl.h"

enum {
    PREFIX_LEAST = 4,
    ID_DIGITS = LEATI_ID_SIZE - 1,
    TASKS_MOST = 1 << 18,
    CLIENT_MS = 10000, // so long a job that has ended stays for the client that waited for it
};

const char *leati_phase_name(leati_job_phase phase)
{
    switch (phase) {
    case LEATI_PHASE_CREATED:
        return "CREATED";
    case LEATI_PHASE_DEPLOYING:
    case LEATI_PHASE_RUNNING:
    case LEATI_PHASE_CONCLUDING:
        return "RUNNING";
    case LEATI_PHASE_FAILING:
        return "FAILING";
    case LEATI_PHASE_CANCELLING:
        return "CANCELLING";
    case LEATI_PHASE_FINISHED:
        return "FINISHED";
    case LEATI_PHASE_FAILED:
        return "FAILED";
    case LEATI_PHASE_CANCELED:
        return "CANCELED";
    }
    return "?";
}

bool leati_phase_is_final(leati_job_phase phase)
{
    return phase >= LEATI_PHASE_FINISHED;
}

// --- checks ---

static const leati_chain_op *first_with(const leati_job_graph *graph, uint32_t flag)
{
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            if (graph->vertices[v].ops[i].flags & flag)
                return &graph->vertices[v].ops[i];
    return NULL;
}

// A relative path that stays below its folder; a plain name unless `deep`.
static bool is_name(const leat_str *name, bool deep)
{
    size_t start = 0;
    for (size_t i = 0; i <= name->size; i++) {
        if (i < name->size && name->data[i] == '\0')
            return false;
        if (i < name->size && name->data[i] != '/')
            continue;
        size_t size = i - start;
        const char *part = name->data + start;
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.') || (i < name->size && !deep))
            return false;
        start = i + 1;
    }
    return true;
}

static leat_err check_names(const leat_list *files, bool deep, const char *what, char *why,
                            size_t why_size)
{
    for (size_t i = 0; i < files->count; i++) {
        const leat_str *name = &((const leati_msg_file *)files->items)[i].name;
        if (is_name(name, deep))
            continue;
        snprintf(why, why_size, "%s \"%.*s\" has a name that is not allowed", what, (int)name->size,
                 name->data ? name->data : "");
        return LEAT_EINVAL;
    }
    return LEAT_OK;
}

static leat_err check_submission(const leati_msg_job *job, char *why, size_t why_size)
{
    leat_list file = {&job->job_file, 1};
    leat_err err = check_names(&file, false, "the job file", why, why_size);
    if (err == LEAT_OK)
        err = check_names(&job->libraries, false, "the library", why, why_size);
    if (err == LEAT_OK)
        err = check_names(&job->cached, true, "the cached file", why, why_size);
    for (size_t i = 0; err == LEAT_OK && i < job->empty_dirs.count; i++) {
        const leat_str *name = &((const leat_str *)job->empty_dirs.items)[i];
        if (is_name(name, true))
            continue;
        snprintf(why, why_size, "the cached directory \"%.*s\" has a name that is not allowed",
                 (int)name->size, name->data ? name->data : "");
        err = LEAT_EINVAL;
    }
    return err;
}

static leat_err decode_graph(leati_manager *manager, const leati_msg_job *job,
                             leati_job_graph **graph, char *why, size_t why_size)
{
    leati_job_graph *made = NULL;
    char reason[300] = "";
    leat_err err = leati_job_graph_decode(manager->allocator, job->graph.data, job->graph.size,
                                          &made, reason, sizeof reason);
    if (err != LEAT_OK) {
        snprintf(why, why_size, "the job graph cannot be read: %s", reason);
        return err;
    }
    const leati_chain_op *local = first_with(made, LEATI_NODE_LOCAL);
    if (strlen(made->digest) != job->digest.size ||
        memcmp(made->digest, job->digest.data, job->digest.size) != 0) {
        snprintf(why, why_size, "the job graph has the digest %s, and the submission says %.*s",
                 made->digest, (int)job->digest.size, job->digest.data ? job->digest.data : "");
        err = LEAT_ECORRUPT;
    } else if (local) {
        snprintf(why, why_size,
                 "operator \"%s\" (%s) needs the process that has built the job, and cannot run in"
                 " a cluster",
                 local->name, local->kind);
        err = LEAT_EGRAPH;
    } else if (leati_job_graph_tasks(made) > TASKS_MOST) {
        snprintf(why, why_size, "the job has %" PRIu64 " tasks, and %d is the most",
                 leati_job_graph_tasks(made), (int)TASKS_MOST);
        err = LEAT_ETOOBIG;
    }
    if (err == LEAT_OK)
        *graph = made;
    else
        leati_job_graph_destroy(&made);
    return err;
}

// --- making ---

static bool make_id(char id[LEATI_ID_SIZE])
{
    uint8_t bytes[ID_DIGITS / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static char *make_name(leati_manager *manager, const leati_managed_job *job)
{
    leat_str given = job->submission->name;
    if (given.size == 0)
        given = leati_text(job->graph->name ? job->graph->name : "");
    char *name = leati_alloc(manager->allocator, given.size + 1);
    if (!name)
        return NULL;
    memcpy(name, given.size ? given.data : "", given.size);
    name[given.size] = '\0';
    leati_text_clean(name);
    return name;
}

static bool make_tasks(leati_manager *manager, leati_managed_job *job)
{
    const leati_job_graph *graph = job->graph;
    job->task_count = (uint32_t)leati_job_graph_tasks(graph);
    job->tasks = leati_calloc(manager->allocator, job->task_count, sizeof *job->tasks);
    job->first_task = leati_calloc(manager->allocator, graph->vertex_count, sizeof(uint32_t));
    if (!job->tasks || !job->first_task)
        return false;
    uint32_t at = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        job->first_task[v] = at;
        for (uint32_t i = 0; i < graph->vertices[v].parallelism; i++, at++) {
            leati_task_view *task = &job->tasks[at];
            task->process = UINT32_MAX;
            task->state_ms = job->submitted_ms;
            snprintf(task->state, sizeof task->state, "CREATED");
            task->figures = (leati_msg_task){.vertex = v,
                                             .subtask = i,
                                             .state = leati_text(task->state),
                                             .wait = leati_text(task->wait),
                                             .wait_text = leati_text(task->wait_text),
                                             .wait_vertex = UINT32_MAX,
                                             .wait_subtask = UINT32_MAX};
        }
    }
    return true;
}

// Takes the graph over on success only.
static leati_managed_job *make_job(leati_manager *manager, const leati_msg_job *submission,
                                   leati_job_graph *graph, bool attached)
{
    leati_managed_job *job = leati_calloc(manager->allocator, 1, sizeof *job);
    if (!job)
        return NULL;
    void *copy = NULL;
    pthread_mutex_init(&job->output_lock, NULL);
    job->manager = manager;
    job->output_fd = -1;
    job->graph = graph;
    job->submitted_ns = leati_clock_ns();
    job->attached_seen_ns = attached ? job->submitted_ns : 0;
    job->submitted_ms = leati_now_ms();
    job->attached = attached;
    job->one_process = first_with(graph, LEATI_NODE_FEEDBACK) != NULL;
    job->slots_needed = leati_job_graph_slots(graph);
    bool made = leat_record_copy(manager->allocator, LEAT_TYPE(leati_msg_job), submission, &copy) ==
                LEAT_OK;
    job->submission = copy;
    made = made && (job->name = make_name(manager, job)) && make_tasks(manager, job) &&
           make_id(job->id);
    if (made)
        return job;
    job->graph = NULL;
    leati_managed_destroy(manager, &job);
    return NULL;
}

void leati_managed_destroy(leati_manager *manager, leati_managed_job **job)
{
    leati_managed_job *gone = *job;
    *job = NULL;
    if (!gone)
        return;
    const leat_allocator *allocator = manager->allocator;
    for (uint32_t i = 0; i < gone->participant_count; i++) {
        leati_free(allocator, gone->participants[i].accumulators);
        leati_free(allocator, gone->participants[i].metrics);
        leati_free(allocator, gone->participants[i].line);
    }
    leati_free(allocator, gone->participants);
    leati_free(allocator, gone->tasks);
    leati_free(allocator, gone->first_task);
    for (size_t i = 0; i < LEATI_LOG_LINES_KEPT; i++)
        leati_free(allocator, gone->log[i]);
    if (gone->output_fd >= 0)
        (void)close(gone->output_fd);
    pthread_mutex_destroy(&gone->output_lock);
    leati_job_graph_destroy(&gone->graph);
    leat_record_free(allocator, gone->submission);
    leati_free(allocator, (char *)gone->name);
    leati_free(allocator, gone);
}

// --- submission ---

static leat_err admit(leati_manager *manager, char *why, size_t why_size)
{
    int64_t most = leati_setting(manager, LEATI_CONFIG_JOBS_MAX), live = 0;
    for (const leati_managed_job *job = manager->jobs; job; job = job->next)
        live += !leati_phase_is_final(job->phase);
    if (manager->stopping) {
        snprintf(why, why_size, "the job manager is about to end");
        return LEAT_ECLOSED;
    }
    if (live >= most) {
        snprintf(why, why_size,
                 "%" PRId64 " jobs have not ended, and no more are taken (cluster.jobs-max)", live);
        return LEAT_ENOBUFS;
    }
    return LEAT_OK;
}

leat_err leati_manager_submit(leati_manager *manager, const leati_msg_job *submission,
                              bool attached, char id[LEATI_ID_SIZE], char *why, size_t why_size)
{
    leati_job_graph *graph = NULL;
    leati_managed_job *job = NULL;
    leat_err err = check_submission(submission, why, why_size);
    if (err == LEAT_OK)
        err = decode_graph(manager, submission, &graph, why, why_size);
    if (err == LEAT_OK && !(job = make_job(manager, submission, graph, attached))) {
        snprintf(why, why_size, "out of memory");
        leati_job_graph_destroy(&graph);
        err = LEAT_ENOMEM;
    }
    if (err == LEAT_OK)
        err = leati_store_pin(manager->store, job->submission, why, why_size);
    if (err != LEAT_OK) {
        leati_managed_destroy(manager, &job);
        return err;
    }
    job->pinned = true;
    memcpy(id, job->id, LEATI_ID_SIZE);
    pthread_mutex_lock(&manager->lock);
    err = admit(manager, why, why_size);
    if (err == LEAT_OK) {
        job->next = manager->jobs;
        manager->jobs = job;
        leati_managed_log(manager, job, LEAT_LOG_INFO, "submitted, needs %u slot%s",
                          job->slots_needed, job->slots_needed == 1 ? "" : "s");
        leati_manager_schedule(manager);
        pthread_cond_broadcast(&manager->changed);
        // The next time at which something is due may have come nearer.
        leati_manager_kick(manager);
        job = NULL;
    }
    pthread_mutex_unlock(&manager->lock);
    if (job) {
        leati_store_unpin(manager->store, job->submission);
        leati_managed_destroy(manager, &job);
    }
    return err;
}

// --- finding ---

leati_managed_job *leati_manager_find(leati_manager *manager, const char *id, bool *several)
{
    size_t length = strlen(id);
    leati_managed_job *found = NULL;
    *several = false;
    if (length < PREFIX_LEAST || length > ID_DIGITS)
        return NULL;
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (strncmp(job->id, id, length) != 0)
            continue;
        if (found) {
            *several = true;
            return NULL;
        }
        found = job;
    }
    return found;
}

leati_managed_job *leati_managed_by_attempt(leati_manager *manager, uint64_t attempt)
{
    for (leati_managed_job *job = manager->jobs; attempt && job; job = job->next)
        if (job->attempt == attempt)
            return job;
    return NULL;
}

uint32_t leati_managed_participant(const leati_managed_job *job, const leati_member *member)
{
    for (uint32_t i = 0; member && i < job->participant_count; i++)
        if (job->participants[i].member == member)
            return i;
    return UINT32_MAX;
}

leat_err leati_manager_cancel(leati_manager *manager, leati_managed_job *job)
{
    if (leati_phase_is_final(job->phase))
        return LEAT_ESTATE;
    leati_managed_cancel(manager, job);
    return LEAT_OK;
}

// --- forgetting ---

// Takes the oldest job that can be forgotten out of the list, when there are too many.
static leati_managed_job *take_oldest_ended(leati_manager *manager)
{
    const int64_t heard_ns = leati_clock_ns() - CLIENT_MS * INT64_C(1000000);
    int64_t ended = 0;
    leati_managed_job **oldest = NULL;
    for (leati_managed_job **at = &manager->jobs; *at; at = &(*at)->next) {
        if (!leati_phase_is_final((*at)->phase))
            continue;
        ended++;
        bool awaited = (*at)->attached_seen_ns && (*at)->attached_seen_ns > heard_ns;
        if ((*at)->users == 0 && !awaited && (!oldest || (*at)->ended_ms <= (*oldest)->ended_ms))
            oldest = at;
    }
    if (!oldest || ended <= leati_setting(manager, LEATI_CONFIG_JOBS_KEPT))
        return NULL;
    leati_managed_job *job = *oldest;
    *oldest = job->next;
    return job;
}

void leati_managed_forget(leati_manager *manager)
{
    for (;;) {
        char path[LEATI_PATH_SIZE];
        pthread_mutex_lock(&manager->lock);
        leati_managed_job *job = take_oldest_ended(manager);
        pthread_mutex_unlock(&manager->lock);
        if (!job)
            return;
        leati_output_path(job, path);
        if (job->output_end > 0)
            (void)unlink(path);
        leati_managed_destroy(manager, &job);
    }
}
