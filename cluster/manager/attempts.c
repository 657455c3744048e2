// SPDX-License-Identifier: Apache-2.0
// One attempt of a job: from its deployment to its end.
//
// Every participant ends in two steps, OVER (no task of it runs any more) and CONCLUDED (nothing of
// it is left); one that is lost has done both. When all are over, they are told to conclude, with a
// commit if every task has finished; when all have concluded, the job has ended.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"

// --- states of tasks ---

static bool is_task_final(const leati_task_view *task)
{
    return !strcmp(task->state, "FINISHED") || !strcmp(task->state, "FAILED") ||
           !strcmp(task->state, "CANCELED");
}

static void set_state(leati_managed_job *job, leati_task_view *task, leat_str state)
{
    if (state.size == strlen(task->state) && !memcmp(task->state, state.data, state.size))
        return;
    bool opened = strcmp(task->state, "RUNNING") != 0;
    snprintf(task->state, sizeof task->state, "%.*s", (int)state.size, state.data);
    task->figures.state = leati_text(task->state);
    task->state_ms = leati_now_ms();
    if (opened && !strcmp(task->state, "RUNNING"))
        job->tasks_started++;
}

static void end_tasks(leati_managed_job *job, uint32_t process, const char *state)
{
    for (uint32_t i = 0; i < job->task_count; i++) {
        leati_task_view *task = &job->tasks[i];
        if ((process == UINT32_MAX || task->process == process) && !is_task_final(task))
            set_state(job, task, leati_text(state));
    }
}

// --- the end ---

static void end_job(leati_manager *manager, leati_managed_job *job, leati_job_phase phase)
{
    job->phase = phase;
    job->ended_ms = leati_now_ms();
    job->root_due_ns = 0;
    if (job->attached) // who has waited for it is about to ask
        job->attached_seen_ns = leati_clock_ns();
    job->attached = false;
    end_tasks(job, UINT32_MAX, phase == LEATI_PHASE_FINISHED ? "FINISHED" : "CANCELED");
    if (job->pinned)
        leati_store_unpin(manager->store, job->submission);
    job->pinned = false;
    leati_output_close(job);
    if (phase == LEATI_PHASE_FAILED)
        leati_managed_log(manager, job, LEAT_LOG_WARN, "FAILED: %s", job->failures[0].text);
    else
        leati_managed_log(manager, job, LEAT_LOG_INFO, "%s", leati_phase_name(phase));
    leati_manager_schedule(manager);
    pthread_cond_broadcast(&manager->changed);
    leati_manager_kick(manager); // to forget older ones
}

static bool all_over(const leati_managed_job *job, bool *finished)
{
    *finished = true;
    for (uint32_t i = 0; i < job->participant_count; i++) {
        if (!job->participants[i].over)
            return false;
        *finished = *finished && job->participants[i].finished;
    }
    return true;
}

static bool all_concluded(const leati_managed_job *job)
{
    for (uint32_t i = 0; i < job->participant_count; i++)
        if (!job->participants[i].concluded)
            return false;
    return true;
}

static void conclude(leati_manager *manager, leati_managed_job *job, bool commit)
{
    job->concluding = true;
    leati_msg_end end = {.attempt = job->attempt, .commit = commit};
    for (uint32_t i = 0; i < job->participant_count; i++) {
        leati_participant *p = &job->participants[i];
        // One that is about to be lost will be reported so.
        if (p->member && !p->concluded)
            (void)leati_member_tell(p->member, LEATI_MESSAGE_CONCLUDE, LEAT_TYPE(leati_msg_end),
                                    &end);
    }
}

static void end_when_concluded(leati_manager *manager, leati_managed_job *job)
{
    if (!all_concluded(job))
        return;
    switch (job->phase) {
    case LEATI_PHASE_CONCLUDING:
        end_job(manager, job, LEATI_PHASE_FINISHED);
        break;
    case LEATI_PHASE_CANCELLING:
        end_job(manager, job, LEATI_PHASE_CANCELED);
        break;
    case LEATI_PHASE_FAILING:
        // What is only a consequence waits a while for its cause to be told.
        if (!job->failures[0].consequence || leati_clock_ns() >= job->root_due_ns)
            end_job(manager, job, LEATI_PHASE_FAILED);
        else
            leati_manager_kick(manager);
        break;
    default:
        break;
    }
}

void leati_managed_advance(leati_manager *manager, leati_managed_job *job)
{
    if (job->phase == LEATI_PHASE_CREATED || leati_phase_is_final(job->phase))
        return;
    bool finished;
    if (!job->concluding) {
        if (!all_over(job, &finished))
            return;
        bool running = job->phase == LEATI_PHASE_DEPLOYING || job->phase == LEATI_PHASE_RUNNING;
        if (running && !finished) {
            leati_managed_fail(manager, job,
                               &(leati_job_fault){.vertex = UINT32_MAX,
                                                  .subtask = UINT32_MAX,
                                                  .text =
                                                      "its tasks have stopped, and no task manager"
                                                      " has said why"});
            return;
        }
        if (running)
            job->phase = LEATI_PHASE_CONCLUDING;
        conclude(manager, job, running);
    }
    end_when_concluded(manager, job);
}

// --- failures and cancellation ---

// The root is the first one, and the first that is no mere consequence.
static void note_failure(leati_manager *manager, leati_managed_job *job,
                         const leati_job_fault *fault)
{
    uint32_t at = job->failure_count;
    // The last words of a task manager, and then the end of its connection, tell of one failure.
    for (uint32_t i = 0; i < at; i++)
        if (!strcmp(job->failures[i].text, fault->text))
            return;
    bool root = at == 0 || (job->failures[0].consequence && !fault->consequence);
    bool named = !fault->worker || strstr(fault->text, fault->worker);
    leati_managed_log(manager, job, LEAT_LOG_WARN, "%s%s%s", named ? "" : fault->worker,
                      named ? "" : ": ", fault->text);
    if (root && at > 0) {
        uint32_t kept = at < LEATI_FAILURES_KEPT ? at : LEATI_FAILURES_KEPT - 1;
        memmove(&job->failures[1], &job->failures[0], kept * sizeof job->failures[0]);
        job->failures[1].root = false;
        at = 0;
    }
    if (at == LEATI_FAILURES_KEPT)
        return;
    if (job->failure_count < LEATI_FAILURES_KEPT)
        job->failure_count++;
    // Which task it is has been said by another process.
    bool of_task = fault->vertex < job->graph->vertex_count &&
                   fault->subtask < job->graph->vertices[fault->vertex].parallelism;
    leati_failure *failure = &job->failures[at];
    *failure = (leati_failure){.time_ms = leati_now_ms(),
                               .vertex = of_task ? fault->vertex : UINT32_MAX,
                               .subtask = of_task ? fault->subtask : UINT32_MAX,
                               .root = root,
                               .consequence = fault->consequence};
    snprintf(failure->worker, sizeof failure->worker, "%s", fault->worker ? fault->worker : "");
    snprintf(failure->text, sizeof failure->text, "%s", fault->text);
}

int64_t leati_manager_roots_due(leati_manager *manager, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (job->phase != LEATI_PHASE_FAILING || job->root_due_ns == 0)
            continue;
        if (now_ns < job->root_due_ns) {
            next_ns = job->root_due_ns < next_ns ? job->root_due_ns : next_ns;
            continue;
        }
        job->root_due_ns = 0;
        leati_managed_advance(manager, job);
    }
    return next_ns;
}

static void stop_participants(leati_manager *manager, leati_managed_job *job, const char *why)
{
    leati_msg_end cancel = {.attempt = job->attempt, .why = leati_text(why)};
    for (uint32_t i = 0; i < job->participant_count; i++) {
        leati_participant *p = &job->participants[i];
        if (p->member && !p->over)
            (void)leati_member_tell(p->member, LEATI_MESSAGE_CANCEL, LEAT_TYPE(leati_msg_end),
                                    &cancel);
    }
    // Nobody is to wait for a reader that may not come.
    job->attached = false;
    leati_managed_take_output(manager, job);
}

void leati_managed_fail(leati_manager *manager, leati_managed_job *job,
                        const leati_job_fault *fault)
{
    if (leati_phase_is_final(job->phase))
        return;
    leati_job_phase before = job->phase;
    note_failure(manager, job, fault);
    if (before == LEATI_PHASE_CREATED && job->participant_count == 0) {
        end_job(manager, job, LEATI_PHASE_FAILED);
        return;
    }
    if (before != LEATI_PHASE_CANCELLING)
        job->phase = LEATI_PHASE_FAILING;
    if (before != job->phase) {
        job->root_due_ns = leati_clock_ns() + LEATI_ROOT_WAIT_MS * INT64_C(1000000);
        stop_participants(manager, job, fault->text);
        pthread_cond_broadcast(&manager->changed);
    }
    leati_managed_advance(manager, job);
}

void leati_managed_cancel(leati_manager *manager, leati_managed_job *job)
{
    switch (job->phase) {
    case LEATI_PHASE_CREATED:
        end_job(manager, job, LEATI_PHASE_CANCELED);
        break;
    case LEATI_PHASE_DEPLOYING:
    case LEATI_PHASE_RUNNING:
        job->phase = LEATI_PHASE_CANCELLING;
        leati_managed_log(manager, job, LEAT_LOG_INFO, "is being cancelled");
        stop_participants(manager, job, "the job was cancelled");
        pthread_cond_broadcast(&manager->changed);
        leati_managed_advance(manager, job);
        break;
    default: // it ends by itself
        break;
    }
}

// Its slots are free, and nothing more is expected of it.
static void let_go(leati_participant *p)
{
    if (p->member && !p->concluded)
        p->member->slots_used -= p->slots;
    p->over = p->concluded = true;
}

void leati_managed_lost(leati_manager *manager, leati_managed_job *job, uint32_t participant,
                        const char *text)
{
    leati_participant *p = &job->participants[participant];
    // One may have given its part up without a reason, and nobody has told it to.
    bool running = job->phase == LEATI_PHASE_DEPLOYING || job->phase == LEATI_PHASE_RUNNING;
    bool done = p->concluded && (p->finished || !running);
    let_go(p);
    p->member = NULL;
    if (done || leati_phase_is_final(job->phase))
        return;
    end_tasks(job, participant, "FAILED");
    char longer[LEATI_REASON_SIZE];
    if (job->phase == LEATI_PHASE_CONCLUDING)
        snprintf(longer, sizeof longer,
                 "%s while the outputs of the job were made visible: some of them may be, and"
                 " others not",
                 text);
    else
        snprintf(longer, sizeof longer, "%s", text);
    leati_managed_fail(
        manager, job,
        &(leati_job_fault){
            .vertex = UINT32_MAX, .subtask = UINT32_MAX, .worker = p->name, .text = longer});
}

// --- deployment ---

static leat_err send_deploy(leati_managed_job *job, uint32_t self, const leati_msg_process *all,
                            const uint32_t *process_of)
{
    leati_msg_deploy deploy = {
        .attempt = job->attempt,
        .number = job->attempt_number,
        .self = self,
        .job_id = leati_text(job->id),
        .processes = {all, job->participant_count},
        .process_of = {process_of, job->task_count},
        .job = *job->submission,
    };
    return leati_rpc_send(job->participants[self].member->rpc, LEATI_MESSAGE_DEPLOY,
                          LEAT_TYPE(leati_msg_deploy), &deploy);
}

// A participant that cannot be told takes no part: nothing of the attempt is there.
static void deploy_failed(leati_manager *manager, leati_managed_job *job, uint32_t participant,
                          leat_err err)
{
    char text[200];
    snprintf(text, sizeof text, "could not be deployed: %s", leat_err_message(err));
    let_go(&job->participants[participant]);
    leati_managed_fail(manager, job,
                       &(leati_job_fault){.vertex = UINT32_MAX,
                                          .subtask = UINT32_MAX,
                                          .worker = job->participants[participant].name,
                                          .text = text});
}

static void size_output(const leati_manager *manager, leati_managed_job *job)
{
    // And the end of a line that each may have been cut off in.
    uint64_t windows = (uint64_t)job->participant_count * (LEATI_OUTPUT_WINDOW + 1);
    job->output_size_max = (uint64_t)leati_setting(manager, LEATI_CONFIG_JOB_OUTPUT);
    if (job->attached && job->output_size_max < windows)
        job->output_size_max = windows;
}

void leati_managed_deploy(leati_manager *manager, leati_managed_job *job,
                          const uint32_t *process_of)
{
    uint32_t count = job->participant_count;
    job->attempt = manager->next_attempt++;
    job->phase = LEATI_PHASE_DEPLOYING;
    job->started_ms = leati_now_ms();
    size_output(manager, job);
    for (uint32_t i = 0; i < job->task_count; i++) {
        job->tasks[i].process = process_of[i];
        set_state(job, &job->tasks[i], leati_text("DEPLOYING"));
    }
    leati_managed_log(manager, job, LEAT_LOG_INFO, "RUNNING with %u task%s in %u task manager%s",
                      job->task_count, job->task_count == 1 ? "" : "s", count,
                      count == 1 ? "" : "s");
    leati_msg_process *all = leati_calloc(manager->allocator, count, sizeof *all);
    for (uint32_t i = 0; all && i < count; i++)
        all[i] = (leati_msg_process){leati_text(job->participants[i].id),
                                     leati_text(job->participants[i].name),
                                     leati_text(job->participants[i].member->data_address)};
    for (uint32_t i = 0; i < count; i++) {
        leat_err err = LEAT_ENOMEM;
        if (all && job->phase == LEATI_PHASE_DEPLOYING)
            err = send_deploy(job, i, all, process_of);
        else if (all) // the job fails already
            err = LEAT_ECANCELLED;
        if (err == LEAT_ECANCELLED)
            let_go(&job->participants[i]);
        else if (err != LEAT_OK && err != LEAT_ECLOSED)
            deploy_failed(manager, job, i, err);
    }
    leati_free(manager->allocator, all);
    leati_managed_advance(manager, job);
    pthread_cond_broadcast(&manager->changed);
}

// --- what participants say ---

void leati_managed_stage(leati_manager *manager, leati_managed_job *job, uint32_t from,
                         const leati_msg_stage *stage)
{
    if (stage->vertex >= job->graph->vertex_count ||
        stage->subtask >= job->graph->vertices[stage->vertex].parallelism)
        return;
    leati_task_view *task = &job->tasks[job->first_task[stage->vertex] + stage->subtask];
    if (task->process != from)
        return;
    set_state(job, task, stage->stage);
    if (job->phase == LEATI_PHASE_DEPLOYING && job->tasks_started >= job->task_count)
        job->phase = LEATI_PHASE_RUNNING;
    pthread_cond_broadcast(&manager->changed);
}

void leati_managed_failed(leati_manager *manager, leati_managed_job *job, uint32_t from,
                          const leati_msg_failed *failed)
{
    char text[LEATI_REASON_SIZE];
    snprintf(text, sizeof text, "%.*s", (int)failed->text.size,
             failed->text.data ? failed->text.data : "");
    if (!text[0])
        snprintf(text, sizeof text, "%s", leat_err_message((leat_err)failed->err));
    leati_managed_fail(manager, job,
                       &(leati_job_fault){.vertex = failed->vertex,
                                          .subtask = failed->subtask,
                                          .worker = job->participants[from].name,
                                          .consequence = failed->consequence,
                                          .text = text});
}

void leati_managed_over(leati_manager *manager, leati_managed_job *job, uint32_t from,
                        const leati_msg_over *over)
{
    leati_participant *p = &job->participants[from];
    if (p->over)
        return;
    p->over = true;
    p->finished = over->finished;
    leati_managed_keep_accumulators(manager, p, &over->accumulators);
    leati_managed_advance(manager, job);
}

void leati_managed_concluded(leati_manager *manager, leati_managed_job *job, uint32_t from,
                             const leati_msg_failed *concluded)
{
    leati_participant *p = &job->participants[from];
    if (p->concluded)
        return;
    let_go(p);
    if (concluded->err != LEAT_OK && job->phase != LEATI_PHASE_CANCELLING)
        leati_managed_failed(manager, job, from, concluded);
    else
        leati_managed_advance(manager, job);
    leati_manager_schedule(manager);
}

// --- questions of subtasks to another process ---

static void refuse(leati_participant *asker, const leati_msg_ask *ask, uint32_t from, leat_err err)
{
    leati_msg_ask answer = {.attempt = ask->attempt,
                            .token = ask->token,
                            .process = from,
                            .node = ask->node,
                            .err = (uint32_t)err};
    (void)leati_member_tell(asker->member, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask), &answer);
}

void leati_managed_ask(leati_manager *manager, leati_managed_job *job, uint32_t from, uint32_t kind,
                       const leati_msg_ask *ask)
{
    (void)manager;
    assert(job->participants && from < job->participant_count);
    bool question = kind == LEATI_MESSAGE_ASK;
    leati_participant *to =
        ask->process < job->participant_count ? &job->participants[ask->process] : NULL;
    leat_err err = to ? LEAT_ECLOSED : LEAT_EINVAL;
    leati_msg_ask relayed = *ask;
    if (question)
        relayed.process = from;
    if (to && to->member)
        err = leati_rpc_send(to->member->rpc, kind, LEAT_TYPE(leati_msg_ask), &relayed);
    if (err != LEAT_OK && question)
        refuse(&job->participants[from], ask, from, err);
}
