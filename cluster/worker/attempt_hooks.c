// SPDX-License-Identifier: Apache-2.0
// Between a job's runtime and the job manager: stages, failures, questions.
#include <string.h>

#include "base/alloc.h"
#include "cluster/worker/worker_impl.h"
#include "runtime/task.h"

enum { EARLY_MOST = 4096 };

// --- from the runtime; threads of the job ---

static const char *stage_name(leati_stage stage)
{
    static const char *const names[] = {
        [LEATI_STAGE_OPENING] = "OPENING",   [LEATI_STAGE_RUNNING] = "RUNNING",
        [LEATI_STAGE_ENDING] = "ENDING",     [LEATI_STAGE_CLOSING] = "CLOSING",
        [LEATI_STAGE_FINISHED] = "FINISHED", [LEATI_STAGE_FAILED] = "FAILED",
        [LEATI_STAGE_CANCELED] = "CANCELED",
    };
    return names[stage];
}

static void task_stage(void *user, uint32_t vertex, uint32_t subtask, leati_stage stage)
{
    const leati_attempt *a = user;
    const char *name = stage_name(stage);
    (void)leati_control_send(
        a->tm, a->session, LEATI_MESSAGE_STAGE, LEAT_TYPE(leati_msg_stage),
        &(leati_msg_stage){
            .attempt = a->id, .vertex = vertex, .subtask = subtask, .stage = {name, strlen(name)}});
}

static void failed(void *user, leat_err err, const char *text, uint32_t vertex, uint32_t subtask)
{
    leati_attempt *a = user;
    leati_attempt_send_failed(a, err, text, vertex, subtask);
    leati_attempt_stop_output(a);
}

static void tasks_over(void *user, bool finished)
{
    leati_attempt *a = user;
    pthread_mutex_lock(&a->lock);
    a->tasks_over = true;
    a->finished = finished;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static leat_err ask(void *user, uint32_t process, uint32_t node, uint64_t token,
                    const uint8_t *question, size_t size)
{
    const leati_attempt *a = user;
    return leati_control_send(a->tm, a->session, LEATI_MESSAGE_ASK, LEAT_TYPE(leati_msg_ask),
                              &(leati_msg_ask){.attempt = a->id,
                                               .token = token,
                                               .process = process,
                                               .node = node,
                                               .bytes = {question, size}});
}

static void answer(void *user, uint32_t process, uint64_t token, leat_err err, const uint8_t *bytes,
                   size_t size)
{
    const leati_attempt *a = user;
    (void)leati_control_send(a->tm, a->session, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask),
                             &(leati_msg_ask){.attempt = a->id,
                                              .token = token,
                                              .process = process,
                                              .err = (uint32_t)err,
                                              .bytes = {bytes, err ? 0 : size}});
}

const leati_placement_hooks leati_attempt_hooks = {
    .task_stage = task_stage,
    .failed = failed,
    .tasks_over = tasks_over,
    .ask = ask,
    .answer = answer,
};

// --- from the job manager; the reader thread ---

// Another process has started the job before this one; or a task of this one has asked and been
// answered before the job is known here.
static leat_err keep_early_locked(leati_attempt *a, const leati_msg_ask *message, bool answers)
{
    if (a->early_count == EARLY_MOST)
        return LEAT_ENOBUFS;
    leati_early *early = leati_alloc(a->allocator, sizeof *early + message->bytes.size);
    if (!early)
        return LEAT_ENOMEM;
    *early = (leati_early){.answers = answers,
                           .err = (leat_err)message->err,
                           .token = message->token,
                           .process = message->process,
                           .node = message->node,
                           .size = message->bytes.size};
    if (early->size)
        memcpy(early->bytes, message->bytes.data, early->size);
    leati_early **end = &a->early;
    while (*end)
        end = &(*end)->next;
    *end = early;
    a->early_count++;
    return LEAT_OK;
}

void leati_attempt_asked(leati_attempt *a, const leati_msg_ask *message)
{
    leat_err err = LEAT_OK;
    pthread_mutex_lock(&a->lock);
    if (a->job)
        leati_job_asked(a->job, message->process, message->node, message->token,
                        message->bytes.data, message->bytes.size);
    else
        err = a->over || a->cancelled ? LEAT_ECLOSED : keep_early_locked(a, message, false);
    pthread_mutex_unlock(&a->lock);
    if (err)
        answer(a, message->process, message->token, err, NULL, 0);
}

leat_err leati_attempt_answered(leati_attempt *a, const leati_msg_ask *message)
{
    leat_err err = LEAT_OK;
    pthread_mutex_lock(&a->lock);
    if (a->job)
        leati_job_answered(a->job, message->token, (leat_err)message->err, message->bytes.data,
                           message->bytes.size);
    else if (!a->over && !a->cancelled)
        err = keep_early_locked(a, message, true);
    pthread_mutex_unlock(&a->lock);
    return err;
}

// --- early questions and answers ---

static leati_early *take_early_locked(leati_attempt *a)
{
    leati_early *early = a->early;
    if (early) {
        a->early = early->next;
        a->early_count--;
    }
    return early;
}

void leati_attempt_ask_early_locked(leati_attempt *a)
{
    for (leati_early *early; (early = take_early_locked(a));) {
        if (early->answers)
            leati_job_answered(a->job, early->token, early->err, early->bytes, early->size);
        else
            leati_job_asked(a->job, early->process, early->node, early->token, early->bytes,
                            early->size);
        leati_free(a->allocator, early);
    }
}

void leati_attempt_forget_early_locked(leati_attempt *a)
{
    for (leati_early *early; (early = take_early_locked(a));)
        leati_free(a->allocator, early);
}
