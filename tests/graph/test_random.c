// SPDX-License-Identifier: Apache-2.0
// Seeded random graphs: what must hold of every job graph, whatever was built.
#include <stdio.h>

#include "tests/graph/graph_testing.h"

enum { MOST_STREAMS = 40 };

static uint32_t next(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % below;
}

static leat_stream *partitioned(uint32_t *seed, leat_stream *s)
{
    switch (next(seed, 12)) {
    case 0:
        return leat_rebalance(s);
    case 1:
        return leat_rescale(s);
    case 2:
        return leat_shuffle(s);
    case 3:
        return leat_broadcast(s);
    case 4:
        return leat_global(s);
    case 5:
        return leat_key_by(s, "");
    default:
        return s;
    }
}

static leat_stream *with_settings(uint32_t *seed, leat_stream *s)
{
    if (next(seed, 4) == 0)
        leat_parallelism(s, 1 + next(seed, 4));
    if (next(seed, 8) == 0)
        leat_start_new_chain(s);
    if (next(seed, 10) == 0)
        leat_disable_chaining(s);
    if (next(seed, 8) == 0)
        leat_slot_group(s, next(seed, 2) ? "g" : "h");
    if (next(seed, 10) == 0)
        leat_max_parallelism(s, 64);
    if (next(seed, 10) == 0)
        leat_buffer_timeout(s, (int64_t)next(seed, 3) - 1);
    return s;
}

static leat_env *random_job(uint32_t seed)
{
    leat_env *env = new_env(1 + next(&seed, 3));
    leat_env_set_chaining(env, next(&seed, 10) != 0);
    leat_stream *streams[MOST_STREAMS];
    size_t count = 0;
    streams[count++] = with_settings(&seed, source(env, "s"));
    size_t wanted = 2 + next(&seed, MOST_STREAMS - 2);
    while (count < wanted) {
        leat_stream *in = partitioned(&seed, streams[next(&seed, (uint32_t)count)]);
        leat_stream *other = partitioned(&seed, streams[next(&seed, (uint32_t)count)]);
        leati_chaining chaining = (leati_chaining)next(&seed, 4);
        uint32_t what = next(&seed, 10);
        leat_stream *made = what == 0   ? source(env, "source")
                            : what == 1 ? legacy_source(env, "legacy")
                            : what == 2 ? map(union_of(in, other), "after union")
                            : what == 3 ? join(in, other, "join", chaining)
                            : what == 4 ? add(env, in, "async", NULL, LEATI_NODE_YIELDING,
                                              LEATI_CHAIN_ALWAYS, str_type())
                                        : map(in, "map");
        streams[count++] = with_settings(&seed, made);
    }
    sink(streams[count - 1], "k");
    return env;
}

// Every node is in one chain, and every edge is either inside a chain or one exchange.
static void expect_partition_of_the_graph(leat_env *env, const leati_job_graph *graph)
{
    size_t ops = 0, inside = 0;
    bool *seen = calloc(env->node_count + 1, sizeof *seen);
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        const leati_vertex *vertex = &graph->vertices[v];
        cr_assert(vertex->id == v && vertex->op_count > 0 && vertex->ops[0].parent == 0);
        ops += vertex->op_count;
        inside += vertex->op_count - 1;
        for (uint32_t i = 0; i < vertex->op_count; i++) {
            cr_assert(!seen[vertex->ops[i].node_id]);
            seen[vertex->ops[i].node_id] = true;
            cr_assert(i == 0 || vertex->ops[i].parent < i);
        }
    }
    free(seen);
    cr_assert(ops == env->node_count);
    cr_assert(inside + graph->edge_count == env->edge_count);
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        cr_assert(edge->from_vertex < edge->to_vertex);
        cr_assert(edge->partitioner != LEATI_PARTITION_DEFAULT);
        cr_assert(e == 0 || graph->edges[e - 1].from_vertex <= edge->from_vertex);
    }
}

static void expect_round_trip(const leati_job_graph *graph)
{
    uint8_t *first = NULL, *second = NULL;
    size_t first_size, second_size;
    leati_job_graph *copy = NULL;
    char why[200] = "";
    cr_assert(leati_job_graph_encode(graph, &first, &first_size) == LEAT_OK);
    cr_assert(leati_job_graph_decode(NULL, first, first_size, &copy, why, sizeof why) == LEAT_OK,
              "%s", why);
    cr_assert(leati_job_graph_encode(copy, &second, &second_size) == LEAT_OK);
    cr_assert(first_size == second_size && memcmp(first, second, first_size) == 0);
    cr_assert_str_eq(graph->digest, copy->digest);
    char *a = NULL, *b = NULL;
    cr_assert(leati_job_graph_picture(graph, LEAT_PLAN_TEXT, NULL, &a) == LEAT_OK);
    cr_assert(leati_job_graph_picture(copy, LEAT_PLAN_TEXT, NULL, &b) == LEAT_OK);
    cr_assert_str_eq(a, b);
    free(a);
    free(b);
    free(first);
    free(second);
    leati_job_graph_destroy(&copy);
}

Test(random, job_graphs_cover_their_graph_and_round_trip)
{
    size_t valid = 0;
    for (uint32_t seed = 1; seed <= 2000; seed++) {
        leat_env *env = random_job(seed);
        leati_job_graph *graph = NULL;
        // A max parallelism or none at all never clashes here, so every graph is valid.
        leat_err err = leati_job_graph_create(env, &graph);
        cr_assert(err == LEAT_OK, "seed %u: %s", seed, leat_env_fault(env, 0));
        valid++;
        expect_partition_of_the_graph(env, graph);
        expect_round_trip(graph);
        leati_job_graph_destroy(&graph);
        leat_env_destroy(&env);
    }
    cr_assert(valid == 2000);
}
