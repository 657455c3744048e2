// SPDX-License-Identifier: Apache-2.0
// Questions of subtasks to the object that they share, where that is in another process.
//
// An object at home may be asked as soon as it is there; what comes earlier waits here. Everything
// is under one lock, which is held neither while an object is asked nor while a task is woken.
#include <string.h>

#include "base/alloc.h"
#include "runtime/placement_impl.h"

// Each subtask has one question under way, so what is above this is no sane job.
enum { WAITING_MOST = 4096 };

struct leati_question {
    leati_question *next;
    uint32_t process, node;
    uint64_t token;
    size_t size;
    uint8_t bytes[];
};

void leati_asking_init(leati_asking *asking)
{
    pthread_mutex_init(&asking->lock, NULL);
}

void leati_asking_fini(leati_asking *asking)
{
    pthread_mutex_destroy(&asking->lock);
}

static uint32_t self_of(const leat_job *job)
{
    return job->placed ? job->placed->self : 0;
}

// --- who is where ---

static uint32_t home_of(const leat_ctx *ctx)
{
    const leat_job *job = ctx->task->job;
    return job->placed ? leati_placed_process(job->placed, ctx->task->vertex->id, 0) : 0;
}

bool leati_ctx_is_home(const leat_ctx *ctx)
{
    return home_of(ctx) == self_of(ctx->task->job);
}

bool leati_ctx_is_alone(const leat_ctx *ctx)
{
    const leati_vertex *vertex = ctx->task->vertex;
    bool alone = true;
    for (uint32_t i = 0; i < vertex->parallelism; i++)
        alone &= leati_job_has_task(ctx->task->job, vertex->id, i);
    return alone;
}

uint64_t leati_ctx_attempt_token(const leat_ctx *ctx)
{
    const leati_placed *placed = ctx->task->job->placed;
    return placed ? placed->token : 0;
}

leat_job *leati_ctx_job(const leat_ctx *ctx)
{
    return ctx->task->job;
}

// --- at home ---

static leati_shared *find_locked(const leati_asking *asking, uint32_t node)
{
    leati_shared *shared = asking->objects;
    while (shared && shared->node_id != node)
        shared = shared->next_asked;
    return shared;
}

// Keeps a question until its object is there.
static leat_err keep_locked(leat_job *job, uint32_t process, uint32_t node, uint64_t token,
                            const uint8_t *bytes, size_t size)
{
    leati_asking *asking = &job->asking;
    if (asking->waiting >= WAITING_MOST)
        return LEAT_ETOOBIG;
    leati_question *question = leati_alloc(job->allocator, sizeof *question + size);
    if (!question)
        return LEAT_ENOMEM;
    *question = (leati_question){.process = process, .node = node, .token = token, .size = size};
    if (size)
        memcpy(question->bytes, bytes, size);
    if (asking->last)
        asking->last->next = question;
    else
        asking->first = question;
    asking->last = question;
    asking->waiting++;
    return LEAT_OK;
}

void leati_job_asked(leat_job *job, uint32_t process, uint32_t node, uint64_t token,
                     const uint8_t *bytes, size_t size)
{
    leati_asking *asking = &job->asking;
    leat_err err = size > LEATI_QUESTION_MAX ? LEAT_ETOOBIG : LEAT_OK;
    leati_shared *shared = NULL;
    pthread_mutex_lock(&asking->lock);
    if (!err && asking->ended)
        err = LEAT_ECLOSED;
    if (!err) {
        shared = find_locked(asking, node);
        err = shared ? LEAT_OK : keep_locked(job, process, node, token, bytes, size);
    }
    pthread_mutex_unlock(&asking->lock);
    if (err)
        leati_shared_answer(job, process, token, err, NULL, 0);
    else if (shared)
        shared->asked(shared->object, process, token, bytes, size);
}

// Takes the questions for one object off the queue, in order; all of them if `all`.
static leati_question *take_locked(leati_asking *asking, uint32_t node, bool all)
{
    leati_question *taken = NULL, **end = &taken, **at = &asking->first;
    asking->last = NULL;
    while (*at) {
        leati_question *question = *at;
        if (all || question->node == node) {
            *at = question->next;
            question->next = NULL;
            *end = question;
            end = &question->next;
            asking->waiting--;
        } else {
            asking->last = question;
            at = &question->next;
        }
    }
    return taken;
}

void leati_asking_add(leat_job *job, leati_shared *shared)
{
    leati_asking *asking = &job->asking;
    pthread_mutex_lock(&asking->lock);
    shared->next_asked = asking->objects;
    asking->objects = shared;
    leati_question *questions = take_locked(asking, shared->node_id, false);
    pthread_mutex_unlock(&asking->lock);
    while (questions) {
        leati_question *question = questions;
        questions = question->next;
        shared->asked(shared->object, question->process, question->token, question->bytes,
                      question->size);
        leati_free(job->allocator, question);
    }
}

void leati_asking_end(leat_job *job)
{
    leati_asking *asking = &job->asking;
    pthread_mutex_lock(&asking->lock);
    asking->ended = true;
    leati_question *questions = take_locked(asking, 0, true);
    pthread_mutex_unlock(&asking->lock);
    while (questions) {
        leati_question *question = questions;
        questions = question->next;
        leati_shared_answer(job, question->process, question->token, LEAT_ECLOSED, NULL, 0);
        leati_free(job->allocator, question);
    }
}

void leati_shared_answer(leat_job *job, uint32_t process, uint64_t token, leat_err err,
                         const uint8_t *answer, size_t size)
{
    if (process == self_of(job))
        leati_job_answered(job, token, err, answer, size);
    else
        job->placed->hooks->answer(job->placed->user, process, token, err, answer, size);
}

// --- who asks ---

static void register_answer(leat_job *job, leat_ctx *ctx, leati_answer *answer)
{
    leati_asking *asking = &job->asking;
    pthread_mutex_lock(&asking->lock);
    *answer = (leati_answer){
        .ctx = ctx,
        .token = ++asking->last_token,
        .next = asking->pending,
    };
    atomic_store_explicit(&answer->state, LEATI_ANSWER_PENDING, memory_order_relaxed);
    asking->pending = answer;
    pthread_mutex_unlock(&asking->lock);
}

static void unlink_locked(leati_asking *asking, const leati_answer *answer)
{
    for (leati_answer **at = &asking->pending; *at; at = &(*at)->next)
        if (*at == answer) {
            *at = answer->next;
            return;
        }
}

leat_err leati_ctx_ask(leat_ctx *ctx, const uint8_t *question, size_t size, leati_answer *answer)
{
    leat_job *job = ctx->task->job;
    if (size > LEATI_QUESTION_MAX)
        return LEAT_ETOOBIG;
    if (leati_answer_get(answer) == LEATI_ANSWER_PENDING)
        return LEAT_ESTATE;
    leati_answer_reset(answer);
    register_answer(job, ctx, answer);
    uint32_t home = home_of(ctx);
    if (home == self_of(job)) {
        leati_job_asked(job, home, ctx->node->id, answer->token, question, size);
        return LEAT_OK;
    }
    const leati_placed *placed = job->placed;
    leat_err err =
        placed->hooks->ask(placed->user, home, ctx->node->id, answer->token, question, size);
    if (err)
        leati_answer_reset(answer);
    return err;
}

void leati_job_answered(leat_job *job, uint64_t token, leat_err err, const uint8_t *bytes,
                        size_t size)
{
    leati_asking *asking = &job->asking;
    leati_task *task = NULL;
    pthread_mutex_lock(&asking->lock);
    leati_answer *answer = asking->pending;
    while (answer && answer->token != token)
        answer = answer->next;
    if (answer) {
        unlink_locked(asking, answer);
        task = answer->ctx->task;
        answer->bytes = err || !size ? NULL : leati_alloc(job->allocator, size);
        answer->err = !err && size && !answer->bytes ? LEAT_ENOMEM : err;
        if (answer->bytes) {
            memcpy(answer->bytes, bytes, size);
            answer->size = size;
        }
        // Pairs with the load in leati_answer_get.
        atomic_store_explicit(&answer->state,
                              answer->err ? LEATI_ANSWER_FAILED : LEATI_ANSWER_READY,
                              memory_order_release);
    }
    pthread_mutex_unlock(&asking->lock);
    if (task)
        leati_runnable_wake(&task->run);
}

void leati_answer_reset(leati_answer *answer)
{
    if (!answer->ctx)
        return;
    leat_job *job = answer->ctx->task->job;
    pthread_mutex_lock(&job->asking.lock);
    if (leati_answer_get(answer) == LEATI_ANSWER_PENDING)
        unlink_locked(&job->asking, answer);
    pthread_mutex_unlock(&job->asking.lock);
    leati_free(job->allocator, answer->bytes);
    *answer = (leati_answer){0};
}

bool leati_asking_is_pending(leat_job *job, const leati_task *task)
{
    bool pending = false;
    pthread_mutex_lock(&job->asking.lock);
    for (const leati_answer *a = job->asking.pending; a && !pending; a = a->next)
        pending = a->ctx->task == task;
    pthread_mutex_unlock(&job->asking.lock);
    return pending;
}
