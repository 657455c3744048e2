// SPDX-License-Identifier: Apache-2.0
#include "placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/job_graph.h"
#include "runtime/execution.h"

// --- hooks ---

static void on_stage(void *user, uint32_t vertex, uint32_t subtask, leati_stage stage)
{
    placed_process *p = user;
    pthread_mutex_lock(&p->run->lock);
    if (p->run->stage_count < STAGES_MOST)
        p->run->stages[p->run->stage_count++] = (placed_stage){p->index, vertex, subtask, stage};
    pthread_mutex_unlock(&p->run->lock);
}

static void on_failed(void *user, leat_err err, const char *text, uint32_t vertex, uint32_t subtask)
{
    placed_run *run = ((placed_process *)user)->run;
    pthread_mutex_lock(&run->lock);
    if (run->failures++ == 0) {
        run->failure = err;
        snprintf(run->failure_text, sizeof run->failure_text, "%s", text);
        run->failure_vertex = vertex;
        run->failure_subtask = subtask;
    }
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static void on_tasks_over(void *user, bool finished)
{
    placed_process *p = user;
    pthread_mutex_lock(&p->run->lock);
    p->over = true;
    p->finished = finished;
    p->run->over++;
    pthread_cond_broadcast(&p->run->changed);
    pthread_mutex_unlock(&p->run->lock);
}

static leat_err on_ask(void *user, uint32_t process, uint32_t node, uint64_t token,
                       const uint8_t *question, size_t size)
{
    placed_process *p = user;
    placed_run *run = p->run;
    placed_question q = {p->index, process, node, token, size, {0}};
    if (size > sizeof q.bytes)
        return LEAT_ETOOBIG;
    if (size > 0)
        memcpy(q.bytes, question, size);
    pthread_mutex_lock(&run->lock);
    bool started = run->started;
    if (!started && run->waiting_count < 64)
        run->waiting[run->waiting_count++] = q;
    pthread_mutex_unlock(&run->lock);
    if (started)
        leati_job_asked(run->processes[process].job, p->index, node, token, question, size);
    return LEAT_OK;
}

static void on_answer(void *user, uint32_t process, uint64_t token, leat_err err,
                      const uint8_t *answer, size_t size)
{
    placed_run *run = ((placed_process *)user)->run;
    leati_job_answered(run->processes[process].job, token, err, answer, size);
}

static const leati_placement_hooks hooks = {
    .task_stage = on_stage,
    .failed = on_failed,
    .tasks_over = on_tasks_over,
    .ask = on_ask,
    .answer = on_answer,
};

// --- the run ---

static leat_err start_process(placed_run *run, uint32_t i, const uint32_t *process_of)
{
    static const char *const names[] = {"process 0", "process 1", "process 2", "process 3"};
    placed_process *p = &run->processes[i];
    char why[256] = "";
    leat_err err = leat_runtime_create(p->env, &p->runtime, why, sizeof why);
    if (err) {
        snprintf(run->failure_text, sizeof run->failure_text, "%s", why);
        return err;
    }
    if (!run->net)
        run->net =
            fake_net_create(run->count, (uint32_t)leati_global_pool_segment_size(p->runtime->pool));
    leati_placement placement = {
        .attempt = 77,
        .number = 3,
        .self = i,
        .process_of = process_of,
        .transport = fake_net_transport(run->net, i),
        .link = {.process_count = run->count, .names = names, .ids = names, .addresses = names},
        .hooks = &hooks,
        .user = p,
    };
    err = leati_start_placed(p->runtime, p->env, &placement, &p->job);
    if (err)
        snprintf(run->failure_text, sizeof run->failure_text, "%s",
                 leat_env_fault_count(p->env) ? leat_env_fault(p->env, 0) : "");
    return err;
}

static void deliver_waiting(placed_run *run)
{
    pthread_mutex_lock(&run->lock);
    run->started = true;
    uint32_t count = run->waiting_count;
    pthread_mutex_unlock(&run->lock);
    for (uint32_t i = 0; i < count; i++) {
        const placed_question *q = &run->waiting[i];
        leati_job_asked(run->processes[q->to].job, q->from, q->node, q->token, q->bytes, q->size);
    }
}

leat_err placed_start(placed_run *run, uint32_t processes, const uint32_t *process_of,
                      void (*build)(leat_env *env, void *user), void *user)
{
    *run = (placed_run){.count = processes, .failure_vertex = UINT32_MAX};
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; i < processes && !err; i++) {
        placed_process *p = &run->processes[i];
        p->run = run;
        p->index = i;
        err = leat_env_create(NULL, &p->env);
        if (!err)
            build(p->env, user);
        if (!err)
            err = start_process(run, i, process_of);
    }
    if (!err)
        deliver_waiting(run);
    return err;
}

void placed_cancel(placed_run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (run->processes[i].job)
            leat_job_cancel(run->processes[i].job);
}

void placed_wait_over(placed_run *run)
{
    bool told = false;
    pthread_mutex_lock(&run->lock);
    while (run->over < run->count) {
        if (run->failures && !told) {
            told = true;
            pthread_mutex_unlock(&run->lock);
            placed_cancel(run);
            pthread_mutex_lock(&run->lock);
            continue;
        }
        pthread_cond_wait(&run->changed, &run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

leat_err placed_conclude(placed_run *run, bool commit)
{
    leat_err first = run->failure;
    for (uint32_t i = 0; i < run->count; i++)
        commit &= run->processes[i].finished;
    for (uint32_t i = 0; i < run->count; i++) {
        char why[256] = "";
        leat_err err = leati_job_conclude(run->processes[i].job, commit, why, sizeof why);
        if (err && !first) {
            first = err;
            snprintf(run->failure_text, sizeof run->failure_text, "%s", why);
        }
    }
    return first || commit ? first : LEAT_ECANCELLED;
}

void placed_destroy(placed_run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        leat_job_destroy(&run->processes[i].job);
        leat_runtime_destroy(&run->processes[i].runtime);
    }
    for (uint32_t i = 0; i < run->count; i++)
        leat_env_destroy(&run->processes[i].env);
    fake_net_destroy(run->net);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->changed);
}

leat_err placed_execute(uint32_t processes, const uint32_t *process_of,
                        void (*build)(leat_env *env, void *user), void *user, char *why,
                        size_t why_size)
{
    placed_run *run = malloc(sizeof *run);
    if (!run)
        return LEAT_ENOMEM;
    leat_err err = placed_start(run, processes, process_of, build, user);
    if (!err) {
        placed_wait_over(run);
        err = placed_conclude(run, true);
    }
    snprintf(why, why_size, "%s", run->failure_text);
    placed_destroy(run);
    free(run);
    return err;
}

// --- placing ---

static bool shares_memory(const leati_job_graph *graph, const leati_vertex *vertex)
{
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++) {
            const leati_node *node = graph->vertices[v].ops[i].node;
            if (!node->peer)
                continue;
            if (v == vertex->id)
                return true;
            for (uint32_t k = 0; k < vertex->op_count; k++)
                if (vertex->ops[k].node == node->peer)
                    return true;
        }
    return false;
}

uint32_t *placed_by_subtask(leat_env *env, uint32_t processes)
{
    leati_job_graph *graph;
    if (leati_job_graph_create(env, &graph))
        abort();
    uint32_t *places = calloc(leati_job_graph_tasks(graph) + 1, sizeof *places);
    if (!places)
        abort();
    uint32_t at = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        bool together = shares_memory(graph, &graph->vertices[v]);
        for (uint32_t i = 0; i < graph->vertices[v].parallelism; i++)
            places[at++] = together ? 0 : i % processes;
    }
    leati_job_graph_destroy(&graph);
    return places;
}
