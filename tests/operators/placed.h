// SPDX-License-Identifier: Apache-2.0
// One job over two "processes", which are two environments and runtimes of this one: for operators
// whose subtasks share something. Tasks of different processes must not be joined by an exchange:
// there is no transport.
#ifndef LEATI_TESTS_OPERATORS_PLACED_H
#define LEATI_TESTS_OPERATORS_PLACED_H

#include <pthread.h>

#include "runtime/placement.h"

#include "run.h"

enum { PLACED_SIDES = 2, PLACED_TASKS = 16 };

typedef struct placed placed;

typedef struct placed_side {
    placed *job;
    uint32_t self;
    run run;
    leat_runtime *runtime;
    leat_job *handle;
    // Under the lock of `job`.
    bool over, finished;
    char failure[1200];
} placed_side;

// A question or an answer on its way.
typedef struct placed_message {
    struct placed_message *next;
    bool is_answer;
    uint32_t from, to, node;
    uint64_t token;
    leat_err err;
    size_t size;
    uint8_t bytes[];
} placed_message;

struct placed {
    placed_side sides[PLACED_SIDES];
    uint32_t process_of[PLACED_TASKS];
    // Answers are changed by it on their way; NULL: they are not.
    void (*tamper)(uint8_t *bytes, size_t *size);
    leati_transport transport;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // Under the lock.
    placed_message *first, **last;
    uint32_t questions;
    bool stop;
};

// --- the way between them ---

static void placed_send(placed *p, const placed_message *head, const uint8_t *bytes)
{
    placed_message *message = calloc(1, sizeof *message + head->size);
    cr_assert(message);
    *message = *head;
    if (head->size)
        memcpy(message->bytes, bytes, head->size);
    pthread_mutex_lock(&p->lock);
    p->questions += !head->is_answer;
    *p->last = message;
    p->last = &message->next;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static leat_err placed_ask(void *user, uint32_t process, uint32_t node, uint64_t token,
                           const uint8_t *question, size_t size)
{
    placed_side *side = user;
    placed_send(side->job,
                &(placed_message){
                    .from = side->self, .to = process, .node = node, .token = token, .size = size},
                question);
    return LEAT_OK;
}

static void placed_answer(void *user, uint32_t process, uint64_t token, leat_err err,
                          const uint8_t *answer, size_t size)
{
    placed_side *side = user;
    placed_send(side->job,
                &(placed_message){.is_answer = true,
                                  .from = side->self,
                                  .to = process,
                                  .token = token,
                                  .err = err,
                                  .size = size},
                answer);
}

static void placed_deliver(placed *p, placed_message *message)
{
    leat_job *to = p->sides[message->to].handle;
    if (!message->is_answer) {
        leati_job_asked(to, message->from, message->node, message->token, message->bytes,
                        message->size);
        return;
    }
    if (p->tamper)
        p->tamper(message->bytes, &message->size);
    leati_job_answered(to, message->token, message->err, message->bytes, message->size);
}

// Runs once both sides are there.
static void *placed_relay(void *arg)
{
    placed *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        placed_message *message = p->first;
        if (!message && p->stop)
            break;
        if (!message) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        p->first = message->next;
        if (!p->first)
            p->last = &p->first;
        pthread_mutex_unlock(&p->lock);
        placed_deliver(p, message);
        free(message);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

// --- what the sides tell ---

static void placed_stage(void *user, uint32_t vertex, uint32_t subtask, leati_stage stage)
{
}

// As a job manager would: a failure ends the other side as well.
static void placed_failed(void *user, leat_err err, const char *text, uint32_t vertex,
                          uint32_t subtask)
{
    placed_side *side = user;
    pthread_mutex_lock(&side->job->lock);
    snprintf(side->failure, sizeof side->failure, "%s", text);
    pthread_cond_broadcast(&side->job->changed);
    pthread_mutex_unlock(&side->job->lock);
}

static void placed_over(void *user, bool finished)
{
    placed_side *side = user;
    pthread_mutex_lock(&side->job->lock);
    side->over = true;
    side->finished = finished;
    pthread_cond_broadcast(&side->job->changed);
    pthread_mutex_unlock(&side->job->lock);
}

static const leati_placement_hooks placed_hooks = {
    .task_stage = placed_stage,
    .failed = placed_failed,
    .tasks_over = placed_over,
    .ask = placed_ask,
    .answer = placed_answer,
};

// --- no transport ---

static leat_err placed_open(leati_transport *self, const leati_link_options *options,
                            leati_link **link)
{
    *link = (leati_link *)self;
    return LEAT_OK;
}

// A turn that takes long makes the service look for what it holds back: nothing here.
static void placed_nudge(leati_link *link)
{
}

static void placed_close(leati_link **link)
{
    *link = NULL;
}

// --- the life of a job ---

// The graph is then built in both environments, p->sides[i].run.env, in the same way.
static inline void placed_begin(placed *p, uint32_t parallelism)
{
    *p = (placed){.transport = {.open = placed_open, .nudge = placed_nudge, .close = placed_close}};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->last = &p->first;
    for (uint32_t i = 0; i < PLACED_SIDES; i++) {
        p->sides[i].job = p;
        p->sides[i].self = i;
        run_begin(&p->sides[i].run, parallelism);
    }
}

static inline leat_err placed_start_side(placed *p, uint32_t i)
{
    static const char *const names[] = {"first", "second"};
    placed_side *side = &p->sides[i];
    char why[400] = "";
    leati_placement placement = {.attempt = 7,
                                 .self = i,
                                 .process_of = p->process_of,
                                 .transport = &p->transport,
                                 .link = {.process_count = PLACED_SIDES,
                                          .self = i,
                                          .names = names,
                                          .ids = names,
                                          .addresses = names},
                                 .hooks = &placed_hooks,
                                 .user = side};
    cr_assert_eq(leat_runtime_create(side->run.env, &side->runtime, why, sizeof why), LEAT_OK, "%s",
                 why);
    return leati_start_placed(side->runtime, side->run.env, &placement, &side->handle);
}

static inline bool placed_is_over(const placed *p)
{
    return p->sides[0].over && p->sides[1].over;
}

// Waits until both are over; the first failure of one cancels the other.
static inline void placed_wait(placed *p)
{
    pthread_mutex_lock(&p->lock);
    while (!placed_is_over(p)) {
        bool failed = p->sides[0].failure[0] || p->sides[1].failure[0];
        pthread_mutex_unlock(&p->lock);
        for (uint32_t i = 0; failed && i < PLACED_SIDES; i++)
            leat_job_cancel(p->sides[i].handle);
        pthread_mutex_lock(&p->lock);
        if (!placed_is_over(p))
            pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

// Runs the job to its end and concludes it; `between` (may be NULL) is called while it runs. True
// when both sides have finished.
static inline bool placed_run(placed *p, void (*between)(placed *p))
{
    pthread_t relay;
    for (uint32_t i = 0; i < PLACED_SIDES; i++) {
        leat_err err = placed_start_side(p, i);
        cr_assert_eq(err, LEAT_OK, "%s", leat_env_fault(p->sides[i].run.env, 0));
    }
    cr_assert(pthread_create(&relay, NULL, placed_relay, p) == 0);
    if (between)
        between(p);
    placed_wait(p);
    bool commit = p->sides[0].finished && p->sides[1].finished;
    bool good = commit;
    for (uint32_t i = 0; i < PLACED_SIDES; i++) {
        placed_side *side = &p->sides[i];
        char why[sizeof side->failure] = "";
        if (leati_job_conclude(side->handle, commit, why, sizeof why) == LEAT_OK)
            continue;
        good = false;
        snprintf(side->failure, sizeof side->failure, "%s", why);
    }
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(relay, NULL);
    for (uint32_t i = 0; i < PLACED_SIDES; i++) {
        leat_job_destroy(&p->sides[i].handle);
        leat_runtime_destroy(&p->sides[i].runtime);
    }
    return good;
}

static inline void placed_end(placed *p)
{
    for (uint32_t i = 0; i < PLACED_SIDES; i++)
        run_end(&p->sides[i].run);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

// What both have printed, sorted, to be freed.
static inline char *placed_lines(const placed *p)
{
    const char *a = leati_strbuf_text(&p->sides[0].run.out[0]);
    const char *b = leati_strbuf_text(&p->sides[1].run.out[0]);
    size_t size = strlen(a) + strlen(b) + 1;
    char *all = malloc(size);
    snprintf(all, size, "%s%s", a, b);
    run_sort(all);
    return all;
}

#endif
