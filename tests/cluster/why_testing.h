// SPDX-License-Identifier: Apache-2.0
// Random job graphs with healthy figures, for tests of the search for bottlenecks.
#ifndef TESTS_CLUSTER_WHY_TESTING_H
#define TESTS_CLUSTER_WHY_TESTING_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/manager/why.h"

#define UNUSED __attribute__((unused))

enum { MAX_VERTICES = 8, MAX_PARALLELISM = 4, MAX_EDGES = 16, PROCESSES = 3 };

typedef struct scene {
    uint64_t seed;
    leati_job_graph graph;
    leati_vertex vertices[MAX_VERTICES];
    leati_chain_op ops[MAX_VERTICES];
    char names[MAX_VERTICES][16];
    leati_job_edge edges[MAX_EDGES];
    uint32_t first_task[MAX_VERTICES];
    leati_why_task tasks[MAX_VERTICES * MAX_PARALLELISM];
    char texts[MAX_VERTICES * MAX_PARALLELISM][64];
    leati_why_input in;
} scene;

UNUSED static const char *const process_names[PROCESSES] = {
    "taskmanager 1 (here, pid 1)", "taskmanager 2 (here, pid 2)", "taskmanager 3 (there, pid 3)"};

// splitmix64: `count` possibilities.
UNUSED static uint32_t pick(scene *s, uint32_t count)
{
    uint64_t z = s->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

UNUSED static leati_why_task *task_of(scene *s, uint32_t vertex, uint32_t subtask)
{
    return &s->tasks[s->first_task[vertex] + subtask];
}

UNUSED static bool is_last_vertex(const scene *s, uint32_t vertex)
{
    for (uint32_t e = 0; e < s->graph.edge_count; e++)
        if (s->edges[e].from_vertex == vertex)
            return false;
    return true;
}

UNUSED static bool is_source_vertex(const scene *s, uint32_t vertex)
{
    return s->ops[vertex].flags & LEATI_NODE_SOURCE;
}

static void add_edge(scene *s, uint32_t from, uint32_t to)
{
    static const leati_partitioner kinds[] = {LEATI_PARTITION_HASH,      LEATI_PARTITION_REBALANCE,
                                              LEATI_PARTITION_RESCALE,   LEATI_PARTITION_SHUFFLE,
                                              LEATI_PARTITION_BROADCAST, LEATI_PARTITION_FORWARD};
    uint32_t same = s->vertices[from].parallelism == s->vertices[to].parallelism;
    for (uint32_t e = 0; e < s->graph.edge_count; e++)
        if (s->edges[e].from_vertex == from && s->edges[e].to_vertex == to)
            return;
    s->edges[s->graph.edge_count++] = (leati_job_edge){
        .from_vertex = from, .to_vertex = to, .partitioner = kinds[pick(s, 5 + same)]};
}

static int by_from(const void *left, const void *right)
{
    const leati_job_edge *a = left, *b = right;
    return (a->from_vertex > b->from_vertex) - (a->from_vertex < b->from_vertex);
}

// A task that has little to do: some work, and nobody has to wait for it.
static leati_why_task calm(scene *s, uint32_t vertex)
{
    uint32_t busy = pick(s, 400);
    leati_why_task t = {.state = "RUNNING",
                        .state_ms = 60000,
                        .silent_ms = pick(s, 1000),
                        .process = pick(s, PROCESSES),
                        .busy = busy,
                        .idle = 1000 - busy,
                        .wait = LEATI_WAIT_INPUT,
                        .wait_ms = pick(s, 60000),
                        .wait_vertex = UINT32_MAX,
                        .wait_subtask = UINT32_MAX,
                        .wait_text = "no input",
                        .records_per_s = 1000};
    static const leati_wait_kind others[] = {LEATI_WAIT_NONE, LEATI_WAIT_WORKER, LEATI_WAIT_USER};
    if (pick(s, 3) == 0) { // at work at this moment
        t.wait = others[pick(s, 3)];
        t.wait_ms = pick(s, 900);
    }
    if (is_source_vertex(s, vertex) && pick(s, 3) == 0) { // nobody waits for a source that computes
        t.busy = 1000;
        t.idle = 0;
    }
    return t;
}

UNUSED static void make_scene(scene *s, uint64_t seed)
{
    *s = (scene){.seed = seed};
    s->graph.vertex_count = 2 + pick(s, MAX_VERTICES - 1);
    for (uint32_t v = 0; v < s->graph.vertex_count; v++) {
        snprintf(s->names[v], sizeof s->names[v], "op %u", v);
        s->ops[v] = (leati_chain_op){.kind = "map", .name = s->names[v]};
        s->vertices[v] = (leati_vertex){.id = v,
                                        .name = s->names[v],
                                        .parallelism = 1 + pick(s, MAX_PARALLELISM),
                                        .slot_group = "default",
                                        .ops = &s->ops[v],
                                        .op_count = 1};
    }
    for (uint32_t v = 1; v < s->graph.vertex_count; v++)
        if (v == 1 || pick(s, 5) != 0)
            for (uint32_t i = 0; i < 1 + pick(s, 2); i++)
                add_edge(s, pick(s, v), v);
    qsort(s->edges, s->graph.edge_count, sizeof *s->edges, by_from);
    for (uint32_t v = 0; v < s->graph.vertex_count; v++) {
        bool fed = false;
        for (uint32_t e = 0; e < s->graph.edge_count; e++)
            fed |= s->edges[e].to_vertex == v;
        s->ops[v].flags = fed ? 0 : LEATI_NODE_SOURCE;
    }
    s->graph.vertices = s->vertices;
    s->graph.edges = s->edges;
    for (uint32_t v = 0; v < s->graph.vertex_count; v++) {
        s->first_task[v] = s->in.task_count;
        for (uint32_t i = 0; i < s->vertices[v].parallelism; i++)
            s->tasks[s->in.task_count++] = calm(s, v);
    }
    s->in.graph = &s->graph;
    s->in.first_task = s->first_task;
    s->in.tasks = s->tasks;
    s->in.workers = process_names;
    s->in.worker_count = PROCESSES;
}

// The task waits for room towards one it feeds: its times say so, or its wait at this moment, or
// both; for whom it waits is known or not.
static void hold(scene *s, leati_why_task *t, uint32_t vertex, uint32_t subtask, int64_t ms)
{
    bool by_rate = pick(s, 2), known = pick(s, 2);
    if (t->held_ms >= ms)
        return;
    t->idle = pick(s, 50);
    t->held = by_rate ? 100 + pick(s, 850 - t->idle) : 50;
    t->busy = 1000 - t->idle - t->held < 450 ? 1000 - t->idle - t->held : 450;
    t->held_ms = ms;
    t->wait = by_rate ? LEATI_WAIT_NONE : pick(s, 2) ? LEATI_WAIT_BUFFER : LEATI_WAIT_CREDIT;
    t->wait_ms = by_rate ? 0 : LEATI_WHY_HELD_MS;
    t->silent_ms = 0;
    t->wait_vertex = known ? vertex : UINT32_MAX;
    t->wait_subtask = known && pick(s, 2) ? subtask : UINT32_MAX;
    t->wait_text = "room in its output";
}

// All that feed the task wait for it, for that long; those before them for a while less.
UNUSED static void hold_upstream(scene *s, uint32_t vertex, uint32_t subtask, int64_t ms)
{
    for (uint32_t e = 0; e < s->graph.edge_count; e++) {
        const leati_job_edge *edge = &s->edges[e];
        uint32_t first, count;
        if (edge->to_vertex != vertex)
            continue;
        leati_edge_producers(edge->partitioner, s->vertices[edge->from_vertex].parallelism,
                             s->vertices[vertex].parallelism, subtask, &first, &count);
        for (uint32_t i = first; i < first + count; i++) {
            hold(s, task_of(s, edge->from_vertex, i), vertex, subtask, ms);
            hold_upstream(s, edge->from_vertex, i, ms - 100);
        }
    }
}

#endif
