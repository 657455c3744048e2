// SPDX-License-Identifier: Apache-2.0
// The life of an attempt: made by DEPLOY, its thread goes from fetching to CONCLUDED, whatever
// happens on the way.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/worker/worker_impl.h"

// --- the list ---

static void free_attempt(leati_attempt *a)
{
    leati_attempt_forget_early_locked(a);
    leat_record_free(a->allocator, a->deploy);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->out_lock);
    pthread_cond_destroy(&a->room);
    leati_free(a->allocator, a);
}

void leati_attempt_release(leati_attempt *a)
{
    // What others did before they released it comes before it is freed.
    if (atomic_fetch_sub_explicit(&a->references, 1, memory_order_acq_rel) == 1)
        free_attempt(a);
}

leati_attempt *leati_attempt_find(leati_taskmanager *tm, uint64_t id)
{
    pthread_mutex_lock(&tm->lock);
    leati_attempt *a = tm->attempts;
    while (a && a->id != id)
        a = a->next;
    if (a)
        atomic_fetch_add_explicit(&a->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&tm->lock);
    return a;
}

void leati_attempts_drop(leati_taskmanager *tm)
{
    pthread_mutex_lock(&tm->lock);
    for (leati_attempt *a = tm->attempts; a; a = a->next)
        leati_attempt_cancel(a, true);
    pthread_mutex_unlock(&tm->lock);
}

leat_str leati_deploy_self(const leati_msg_deploy *deploy)
{
    const leati_msg_process *all = deploy->processes.items;
    if (deploy->self < deploy->processes.count && all[deploy->self].name.size)
        return all[deploy->self].name;
    return LEAT_STR_LITERAL("the task manager");
}

static void say_end(const leati_msg_deploy *deploy, char *why, size_t why_size)
{
    leat_str name = leati_deploy_self(deploy);
    snprintf(why, why_size, "%.*s was told to end", (int)name.size, name.data);
}

// Others may already have made visible what this one is to: an attempt that concludes goes on.
static void end_attempt(leati_attempt *a, bool tell)
{
    char why[LEATI_WORKER_REASON];
    pthread_mutex_lock(&a->lock);
    bool concludes = a->conclude || a->ended;
    tell = tell && !a->cancelled;
    pthread_mutex_unlock(&a->lock);
    if (concludes)
        return;
    say_end(a->deploy, why, sizeof why);
    if (tell)
        leati_attempt_send_failed(a, LEAT_ECANCELLED, why, UINT32_MAX, UINT32_MAX);
    leati_attempt_cancel(a, true);
}

void leati_attempts_end(leati_taskmanager *tm, bool tell)
{
    pthread_mutex_lock(&tm->lock);
    tm->ending = true;
    for (leati_attempt *a = tm->attempts; a; a = a->next)
        end_attempt(a, tell);
    pthread_mutex_unlock(&tm->lock);
}

static bool has_ended(leati_attempt *a)
{
    pthread_mutex_lock(&a->lock);
    bool ended = a->ended;
    pthread_mutex_unlock(&a->lock);
    return ended;
}

uint32_t leati_attempts_reap(leati_taskmanager *tm)
{
    uint32_t left = 0;
    leati_attempt *ended = NULL;
    pthread_mutex_lock(&tm->lock);
    for (leati_attempt **at = &tm->attempts; *at;) {
        leati_attempt *a = *at;
        if (!has_ended(a)) {
            left++;
            at = &a->next;
            continue;
        }
        *at = a->next;
        a->next = ended;
        ended = a;
    }
    pthread_mutex_unlock(&tm->lock);
    while (ended) {
        leati_attempt *a = ended;
        ended = a->next;
        pthread_join(a->thread, NULL);
        leati_attempt_release(a);
    }
    return left;
}

// --- from outside ---

void leati_attempt_cancel(leati_attempt *a, bool dropped)
{
    atomic_store_explicit(&a->stop, true, memory_order_release);
    pthread_mutex_lock(&a->lock);
    a->dropped |= dropped;
    if (!a->cancelled) {
        a->cancelled = true;
        a->cancelled_ns = leati_clock_ns();
    }
    if (a->job) {
        leat_job_cancel(a->job);
        leati_attempt_stop_output(a);
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    leati_artifact_cache_wake(a->tm->cache);
}

void leati_attempt_conclude(leati_attempt *a, bool commit)
{
    pthread_mutex_lock(&a->lock);
    a->conclude = true;
    a->commit = commit;
    bool early = !a->over;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    // The job manager does not wait for its tasks.
    if (early)
        leati_attempt_cancel(a, false);
}

// --- what it says ---

static void send(const leati_attempt *a, uint32_t kind, const leat_type *type, const void *record)
{
    // A lost connection ends the attempt anyway; one that does not take a message is closed.
    leat_err err = leati_control_send(a->tm, a->session, kind, type, record);
    if (err && err != LEAT_ECLOSED)
        leati_taskmanager_log(a->tm, LEAT_LOG_ERROR, "job %.*s: a message could not be sent: %s",
                              (int)a->deploy->job_id.size, a->deploy->job_id.data,
                              leat_err_message(err));
}

// The same by the connection only: nothing of the attempt is there yet.
static leat_err send_failed(leati_taskmanager *tm, uint64_t session, uint64_t attempt, leat_err err,
                            const char *text, uint32_t vertex, uint32_t subtask)
{
    // A peer that is gone shows in the connection and in what was asked of it; who has gone, and
    // why, somebody else knows better.
    bool of_task = vertex != UINT32_MAX;
    const leati_msg_failed message = {
        .attempt = attempt,
        .err = (uint32_t)err,
        .vertex = vertex,
        .subtask = subtask,
        .consequence = err == LEAT_ECLOSED || (err == LEAT_EIO && !of_task),
        .text = {text, strlen(text)},
    };
    return leati_control_send(tm, session, LEATI_MESSAGE_FAILED, LEAT_TYPE(leati_msg_failed),
                              &message);
}

void leati_attempt_send_failed(leati_attempt *a, leat_err err, const char *text, uint32_t vertex,
                               uint32_t subtask)
{
    (void)send_failed(a->tm, a->session, a->id, err, text, vertex, subtask);
}

static void send_deploying(const leati_attempt *a)
{
    const uint32_t *process_of = a->deploy->process_of.items;
    size_t task = 0, count = a->deploy->process_of.count;
    for (uint32_t v = 0; v < a->graph->vertex_count; v++) {
        for (uint32_t i = 0; i < a->graph->vertices[v].parallelism && task < count; i++, task++) {
            if (process_of[task] != a->deploy->self)
                continue;
            send(a, LEATI_MESSAGE_STAGE, LEAT_TYPE(leati_msg_stage),
                 &(leati_msg_stage){.attempt = a->id,
                                    .vertex = v,
                                    .subtask = i,
                                    .stage = LEAT_STR_LITERAL("DEPLOYING")});
        }
    }
}

static void send_over(leati_attempt *a)
{
    leati_msg_over message = {.attempt = a->id, .finished = a->finished};
    uint8_t *bytes = NULL;
    size_t size = 0;
    leati_attempt_log_dropped(a);
    if (a->job) {
        leati_report_send(a, a->job, true);
        if (leati_job_accumulators_encode(a->job, &bytes, &size) == LEAT_OK)
            message.accumulators = (leat_bytes){bytes, size};
    }
    send(a, LEATI_MESSAGE_OVER, LEAT_TYPE(leati_msg_over), &message);
    leati_free(a->allocator, bytes);
}

static void send_concluded(leati_attempt *a, leat_err err, const char *why)
{
    send(a, LEATI_MESSAGE_CONCLUDED, LEAT_TYPE(leati_msg_failed),
         &(leati_msg_failed){.attempt = a->id,
                             .err = (uint32_t)err,
                             .vertex = UINT32_MAX,
                             .subtask = UINT32_MAX,
                             .text = {why, err ? strlen(why) : 0}});
}

// --- its thread ---

static void start(leati_attempt *a)
{
    char why[LEATI_WORKER_REASON] = "";
    leat_err err = leati_attempt_start(a, why, sizeof why);
    if (err && err != LEAT_ECANCELLED)
        leati_attempt_send_failed(a, err, why, UINT32_MAX, UINT32_MAX);
}

static void wait_for_tasks(leati_attempt *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->job && !a->tasks_over)
        pthread_cond_wait(&a->changed, &a->lock);
    // Before OVER is sent: from then on CONCLUDE may come.
    a->over = true;
    pthread_mutex_unlock(&a->lock);
}

static bool wait_for_conclusion(leati_attempt *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->conclude && !a->dropped)
        pthread_cond_wait(&a->changed, &a->lock);
    bool commit = a->conclude && a->commit && !a->dropped;
    pthread_mutex_unlock(&a->lock);
    return commit;
}

// The job goes; nobody finds it any more.
static leat_err end_job(leati_attempt *a, bool commit, char *why, size_t why_size)
{
    pthread_mutex_lock(&a->lock);
    leat_job *job = a->job;
    a->job = NULL;
    leati_attempt_forget_early_locked(a);
    pthread_mutex_unlock(&a->lock);
    if (!job)
        return LEAT_OK;
    leat_err err = leati_job_conclude(job, commit, why, why_size);
    leat_job_destroy(&job);
    // That tasks were stopped is no failure of the end.
    return commit ? err : LEAT_OK;
}

static void *attempt_main(void *arg)
{
    leati_attempt *a = arg;
    char why[LEATI_WORKER_REASON] = "";
    void *signal_stack = leati_signal_stack_enter();
    send_deploying(a);
    start(a);
    wait_for_tasks(a);
    send_over(a);
    bool commit = wait_for_conclusion(a);
    leat_err err = end_job(a, commit, why, sizeof why);
    leati_attempt_unload(a);
    leati_job_graph_destroy(&a->graph);
    send_concluded(a, err, why);
    leati_signal_stack_leave(signal_stack);
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    pthread_mutex_unlock(&a->lock);
    leati_taskmanager_kick(a->tm);
    return NULL;
}

// --- deploying ---

// What comes from the job manager fits together: it may be of the same version and wrong all the
// same.
static leat_err check(const leati_attempt *a, char *why, size_t why_size)
{
    const uint32_t *process_of = a->deploy->process_of.items;
    uint64_t tasks = leati_job_graph_tasks(a->graph);
    if (a->deploy->process_of.count != tasks || a->deploy->self >= a->deploy->processes.count) {
        snprintf(why, why_size, "the job manager has placed other tasks than the job has");
        return LEAT_ECORRUPT;
    }
    for (uint64_t i = 0; i < tasks; i++) {
        if (process_of[i] >= a->deploy->processes.count) {
            snprintf(why, why_size, "the job manager has placed a task nowhere");
            return LEAT_ECORRUPT;
        }
    }
    return LEAT_OK;
}

static leat_err copy_deploy(leati_attempt *a, const leati_msg_deploy *deploy, char *why,
                            size_t why_size)
{
    void *copy;
    leat_err err = leat_record_copy(a->allocator, LEAT_TYPE(leati_msg_deploy), deploy, &copy);
    if (err) {
        snprintf(why, why_size, "%s", leat_err_message(err));
        return err;
    }
    a->deploy = copy;
    err = leati_job_graph_decode(a->allocator, a->deploy->job.graph.data, a->deploy->job.graph.size,
                                 &a->graph, why, why_size);
    return err ? err : check(a, why, why_size);
}

// In the list before its thread runs: a message for it may be the next one.
static leat_err launch(leati_attempt *a, char *why, size_t why_size)
{
    leati_taskmanager *tm = a->tm;
    pthread_mutex_lock(&tm->lock);
    bool ending = tm->ending;
    leat_err err =
        ending ? LEAT_ECANCELLED : leati_thread_start(&a->thread, "leat-attempt", attempt_main, a);
    if (!err) {
        a->next = tm->attempts;
        tm->attempts = a;
    }
    pthread_mutex_unlock(&tm->lock);
    if (ending)
        say_end(a->deploy, why, why_size);
    else if (err)
        snprintf(why, why_size, "%s", leat_err_message(err));
    return err;
}

static leat_err make(leati_taskmanager *tm, uint64_t session, const leati_msg_deploy *deploy,
                     char *why, size_t why_size)
{
    leati_attempt *a = leati_calloc(tm->allocator, 1, sizeof *a);
    if (!a) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    a->tm = tm;
    a->allocator = tm->allocator;
    a->id = deploy->attempt;
    a->session = session;
    atomic_init(&a->references, 1);
    pthread_mutex_init(&a->lock, NULL);
    leati_cond_init(&a->changed);
    pthread_mutex_init(&a->out_lock, NULL);
    leati_cond_init(&a->room);
    leat_err err = copy_deploy(a, deploy, why, why_size);
    if (!err)
        err = launch(a, why, why_size);
    if (err) {
        leati_job_graph_destroy(&a->graph);
        leati_attempt_release(a);
    }
    return err;
}

leat_err leati_attempt_deploy(leati_taskmanager *tm, uint64_t session,
                              const leati_msg_deploy *deploy)
{
    leati_attempt *same = leati_attempt_find(tm, deploy->attempt);
    if (same) {
        leati_attempt_release(same);
        return LEAT_ECORRUPT;
    }
    char why[LEATI_WORKER_REASON];
    leat_err err = make(tm, session, deploy, why, sizeof why);
    if (!err)
        return LEAT_OK;
    err = send_failed(tm, session, deploy->attempt, err, why, UINT32_MAX, UINT32_MAX);
    if (err)
        return err;
    return leati_control_send(tm, session, LEATI_MESSAGE_OVER, LEAT_TYPE(leati_msg_over),
                              &(leati_msg_over){.attempt = deploy->attempt});
}
