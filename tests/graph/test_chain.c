// SPDX-License-Identifier: Apache-2.0
// Every rule of chaining as a tiny graph with the vertices that it must give, worked out by hand.
#include "tests/graph/graph_testing.h"

#define ALWAYS            LEATI_CHAIN_ALWAYS
#define HEAD_WITH_SOURCES LEATI_CHAIN_HEAD_WITH_SOURCES

typedef struct example {
    const char *claim;
    void (*build)(leat_env *env);
    const char *vertices;
    const char *edges;
} example;

static void line(leat_env *env)
{
    sink(map(map(source(env, "s"), "m"), "n"), "k");
}

static void line_unchained(leat_env *env)
{
    line(env);
    leat_env_set_chaining(env, false);
}

static void union_of_two(leat_env *env)
{
    leat_stream *a = source(env, "a"), *b = source(env, "b");
    sink(map(union_of(a, b), "m"), "k");
}

static void union_of_one(leat_env *env)
{
    leat_stream *a = source(env, "a");
    sink(map(leat_union(&a, 1), "m"), "k");
}

static void union_with_itself(leat_env *env)
{
    leat_stream *a = source(env, "a");
    sink(union_of(a, a), "k");
}

static void two_inputs(leat_env *env)
{
    leat_stream *a = source(env, "a"), *b = source(env, "b");
    sink(join(a, b, "j", ALWAYS), "k");
}

static void new_chain(leat_env *env)
{
    leat_stream *m2 = leat_start_new_chain(map(map(source(env, "s"), "m1"), "m2"));
    sink(map(m2, "m3"), "k");
}

static void disabled(leat_env *env)
{
    leat_stream *m2 = leat_disable_chaining(map(map(source(env, "s"), "m1"), "m2"));
    sink(map(m2, "m3"), "k");
}

static void head_strategy(leat_env *env)
{
    sink(add(env, source(env, "s"), "op", "h", 0, LEATI_CHAIN_HEAD, str_type()), "k");
}

static void never_strategy(leat_env *env)
{
    sink(add(env, source(env, "s"), "op", "h", 0, LEATI_CHAIN_NEVER, str_type()), "k");
}

static void with_sources_after_source(leat_env *env)
{
    sink(add(env, source(env, "s"), "op", "h", 0, HEAD_WITH_SOURCES, str_type()), "k");
}

static void with_sources_after_map(leat_env *env)
{
    sink(add(env, map(source(env, "s"), "m"), "op", "h", 0, HEAD_WITH_SOURCES, str_type()), "k");
}

static void with_sources_after_legacy(leat_env *env)
{
    sink(add(env, legacy_source(env, "l"), "op", "h", 0, HEAD_WITH_SOURCES, str_type()), "k");
}

static void absorbs_both(leat_env *env)
{
    leat_stream *a = source(env, "a"), *b = source(env, "b");
    sink(join(a, b, "j", HEAD_WITH_SOURCES), "k");
}

static void absorbs_only_single_consumers(leat_env *env)
{
    leat_stream *a = source(env, "a"), *b = source(env, "b");
    sink(a, "x");
    sink(join(a, b, "j", HEAD_WITH_SOURCES), "k");
}

static void absorbs_no_legacy(leat_env *env)
{
    leat_stream *l = legacy_source(env, "l"), *b = source(env, "b");
    sink(join(l, b, "j", HEAD_WITH_SOURCES), "k");
}

static void absorbs_no_map(leat_env *env)
{
    leat_stream *m = map(source(env, "a"), "m"), *b = source(env, "b");
    sink(join(m, b, "j", HEAD_WITH_SOURCES), "k");
}

static void absorbs_no_rebalance(leat_env *env)
{
    leat_stream *a = leat_rebalance(source(env, "a")), *b = source(env, "b");
    sink(join(a, b, "j", HEAD_WITH_SOURCES), "k");
}

static void absorbs_no_union(leat_env *env)
{
    leat_stream *a = source(env, "a"), *b = source(env, "b"), *c = source(env, "c");
    sink(join(union_of(a, b), c, "j", HEAD_WITH_SOURCES), "k");
}

static void absorbs_no_never(leat_env *env)
{
    leat_stream *a = leat_disable_chaining(source(env, "a")), *b = source(env, "b");
    sink(join(a, b, "j", HEAD_WITH_SOURCES), "k");
}

static leat_stream *yielding(leat_stream *in)
{
    return add(leati_stream_env(in), in, "async", "y", LEATI_NODE_YIELDING, ALWAYS, str_type());
}

static void yielding_after_source(leat_env *env)
{
    sink(yielding(source(env, "s")), "k");
}

static void yielding_after_legacy(leat_env *env)
{
    sink(yielding(legacy_source(env, "l")), "k");
}

static void yielding_in_legacy_chain(leat_env *env)
{
    sink(yielding(map(legacy_source(env, "l"), "m")), "k");
}

static void yielding_behind_new_head(leat_env *env)
{
    sink(yielding(leat_start_new_chain(map(legacy_source(env, "l"), "m"))), "k");
}

static void unequal_parallelism(leat_env *env)
{
    leat_stream *m = leat_parallelism(map(source(env, "s"), "m"), 2);
    leat_parallelism(sink(m, "k"), 2);
}

static void mixed_max(leat_env *env)
{
    sink(leat_max_parallelism(map(source(env, "s"), "m"), 256), "k");
}

static void mixed_max_refused(leat_env *env)
{
    mixed_max(env);
    cr_assert(leat_env_set(env, "chaining.mixed-max-parallelism", "false") == LEAT_OK);
}

static void forward(leat_env *env)
{
    sink(leat_forward(source(env, "s")), "k");
}

static void each_partitioner(leat_env *env)
{
    leat_stream *s = source(env, "s");
    sink(leat_rebalance(s), "a");
    sink(leat_rescale(s), "b");
    sink(leat_shuffle(s), "c");
    sink(leat_broadcast(s), "d");
    sink(leat_global(s), "e");
    sink(leat_key_by(s, ""), "f");
}

static void last_partitioner_wins(leat_env *env)
{
    leat_stream *s = source(env, "s");
    sink(leat_forward(leat_rebalance(s)), "a");
    sink(leat_shuffle(leat_key_by(s, "")), "b");
    sink(leat_key_by(leat_global(s), ""), "c");
}

static void slot_group(leat_env *env)
{
    sink(leat_slot_group(map(source(env, "s"), "m"), "g"), "k");
}

static void slot_group_left_again(leat_env *env)
{
    leat_stream *m = leat_slot_group(map(source(env, "s"), "m"), "g");
    leat_slot_group(sink(m, "k"), "default");
}

static void no_factory(leat_env *env)
{
    leat_stream *m = map(source(env, "s"), "m");
    sink(m, "k");
    leati_stream_node(m)->factory.create = NULL;
}

static void fan_out(leat_env *env)
{
    leat_stream *s = source(env, "s");
    sink(s, "a");
    sink(s, "b");
}

static void tree(leat_env *env)
{
    leat_stream *s = source(env, "s"), *m = map(s, "m");
    sink(m, "a");
    sink(leat_rebalance(m), "r");
    sink(map(m, "b"), "c");
    sink(s, "d");
}

static void deep_tree(leat_env *env)
{
    leat_stream *s = source(env, "s"), *m = map(s, "m"), *n = map(m, "n");
    sink(n, "a");
    sink(n, "b");
    sink(m, "c");
    sink(map(s, "d"), "e");
}

static void non_parallel(leat_env *env)
{
    leat_env_set_parallelism(env, 4);
    add(env, source(env, "s"), "sink", "k", LEATI_NODE_SINK | LEATI_NODE_NON_PARALLEL, ALWAYS,
        NULL);
}

static void union_keeps_partitionings(leat_env *env)
{
    leat_stream *a = leat_rebalance(source(env, "a")), *b = leat_key_by(source(env, "b"), "");
    leat_stream *c = source(env, "c");
    sink(union_of(union_of(a, b), c), "k");
}

static void union_repartitioned(leat_env *env)
{
    leat_stream *a = leat_rebalance(source(env, "a")), *b = source(env, "b");
    sink(leat_key_by(union_of(a, b), ""), "k");
}

static void diamond(leat_env *env)
{
    leat_stream *s = source(env, "s"), *l = map(s, "l"), *r = map(s, "r");
    sink(union_of(l, r), "k");
}

static const example examples[] = {
    {"operators of equal parallelism chain", line, "s -> m -> n -> k", ""},
    {"2: chaining off", line_unchained, "s | m | n | k", "s>m FORWARD, m>n FORWARD, n>k FORWARD"},
    {"1, 8: a union", union_of_two, "a | b | m -> k", "a>m FORWARD, b>m FORWARD"},
    {"8: a union of one is none", union_of_one, "a -> m -> k", ""},
    {"8: twice the same input", union_with_itself, "a | k", "a>k FORWARD, a>k FORWARD"},
    {"1: two inputs", two_inputs, "a | b | j -> k", "a>j FORWARD, b>j FORWARD"},
    {"4: start_new_chain", new_chain, "s -> m1 | m2 -> m3 -> k", "m1>m2 FORWARD"},
    {"4: disable_chaining", disabled, "s -> m1 | m2 | m3 -> k", "m1>m2 FORWARD, m2>m3 FORWARD"},
    {"4: HEAD", head_strategy, "s | h -> k", "s>h FORWARD"},
    {"4: NEVER", never_strategy, "s | h | k", "s>h FORWARD, h>k FORWARD"},
    {"4: HEAD_WITH_SOURCES, source", with_sources_after_source, "s -> h -> k", ""},
    {"4: HEAD_WITH_SOURCES, map", with_sources_after_map, "s -> m | h -> k", "m>h FORWARD"},
    {"4: HEAD_WITH_SOURCES, legacy", with_sources_after_legacy, "l | h -> k", "l>h FORWARD"},
    {"absorbs a source per input", absorbs_both, "[a, b] => j -> k", ""},
    {"absorbs no shared source", absorbs_only_single_consumers, "a -> x | [b] => j -> k",
     "a>j FORWARD"},
    {"absorbs no legacy source", absorbs_no_legacy, "l | [b] => j -> k", "l>j FORWARD"},
    {"absorbs no map", absorbs_no_map, "a -> m | [b] => j -> k", "m>j FORWARD"},
    {"absorbs nothing repartitioned", absorbs_no_rebalance, "a | [b] => j -> k", "a>j REBALANCE"},
    {"absorbs no union", absorbs_no_union, "a | b | [c] => j -> k", "a>j FORWARD, b>j FORWARD"},
    {"absorbs no NEVER", absorbs_no_never, "a | [b] => j -> k", "a>j FORWARD"},
    {"5: yielding, new source", yielding_after_source, "s -> y -> k", ""},
    {"5: yielding, legacy source", yielding_after_legacy, "l | y -> k", "l>y FORWARD"},
    {"5: yielding, legacy head", yielding_in_legacy_chain, "l -> m | y -> k", "m>y FORWARD"},
    {"5: yielding, other head", yielding_behind_new_head, "l | m -> y -> k", "l>m FORWARD"},
    {"6: parallelism", unequal_parallelism, "s | m -> k", "s>m REBALANCE"},
    {"6: mixed max parallelism", mixed_max, "s -> m -> k", ""},
    {"6: mixed refused", mixed_max_refused, "s | m | k", "s>m FORWARD, m>k FORWARD"},
    {"7: forward", forward, "s -> k", ""},
    {"7: other partitioners", each_partitioner, "s | a | b | c | d | e | f",
     "s>a REBALANCE, s>b RESCALE, s>c SHUFFLE, s>d BROADCAST, s>e GLOBAL, s>f HASH(<record>)"},
    {"7: the last one wins", last_partitioner_wins, "s -> a | b | c",
     "s>b SHUFFLE, s>c HASH(<record>)"},
    {"3: slot group, inherited", slot_group, "s | m -> k", "s>m FORWARD"},
    {"3: slot group, left again", slot_group_left_again, "s | m | k", "s>m FORWARD, m>k FORWARD"},
    {"4: no factory", no_factory, "s | m | k", "s>m FORWARD, m>k FORWARD"},
    {"two chained consumers", fan_out, "s -> (a, b)", ""},
    {"a tree", tree, "s -> (m -> (a, b -> c), d) | r", "m>r REBALANCE"},
    {"brackets close in order", deep_tree, "s -> (m -> (n -> (a, b), c), d -> e)", ""},
    {"non-parallel operators", non_parallel, "s | k", "s>k REBALANCE"},
    {"a union keeps partitionings", union_keeps_partitionings, "a | b | c | k",
     "a>k REBALANCE, b>k HASH(<record>), c>k FORWARD"},
    {"a union is repartitioned whole", union_repartitioned, "a | b | k",
     "a>k HASH(<record>), b>k HASH(<record>)"},
    {"a diamond", diamond, "s -> (l, r) | k", "l>k FORWARD, r>k FORWARD"},
};

Test(chain, examples_give_the_vertices_and_exchanges_worked_out_by_hand)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *x = &examples[i];
        leat_env *env = new_env(1);
        x->build(env);
        leati_job_graph *graph = job_graph_of(env);
        leati_strbuf vertices, edges;
        leati_strbuf_init(&vertices, NULL);
        leati_strbuf_init(&edges, NULL);
        print_vertices(graph, &vertices);
        print_edges(graph, &edges);
        cr_expect_str_eq(leati_strbuf_text(&vertices), x->vertices, "%s: %s", x->claim,
                         leati_strbuf_text(&vertices));
        cr_expect_str_eq(leati_strbuf_text(&edges), x->edges, "%s: %s", x->claim,
                         leati_strbuf_text(&edges));
        leati_strbuf_fini(&vertices);
        leati_strbuf_fini(&edges);
        leati_job_graph_destroy(&graph);
        leat_env_destroy(&env);
    }
}

Test(chain, parents_and_absorbed_sources_are_placed)
{
    leat_env *env = new_env(1);
    absorbs_both(env);
    leati_job_graph *graph = job_graph_of(env);
    const leati_vertex *v = &graph->vertices[0];
    cr_assert(v->op_count == 4);
    cr_assert_str_eq(v->ops[0].name, "j");
    cr_assert_str_eq(v->ops[1].name, "k");
    cr_assert(v->ops[1].parent == 0 && !v->ops[1].absorbed);
    for (uint32_t i = 2; i < 4; i++)
        cr_assert(v->ops[i].absorbed && v->ops[i].parent == 0 && v->ops[i].absorbed_input == i - 2);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

Test(chain, a_chain_of_twenty_thousand_operators_is_one_vertex)
{
    enum { LENGTH = 20000 };
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    for (int i = 0; i < LENGTH; i++)
        s = map(s, "m");
    sink(s, "k");
    leati_job_graph *graph = job_graph_of(env);
    cr_assert(graph->vertex_count == 1 && graph->edge_count == 0);
    cr_assert(graph->vertices[0].op_count == LENGTH + 2);
    cr_assert(strlen(graph->vertices[0].name) == 1 + (LENGTH + 1) * strlen(" -> m"));
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

// --- slots, parallelism, max parallelism ---

Test(chain, slots_are_the_sum_of_the_largest_parallelism_of_each_group)
{
    // default: s (3) and k (2); g: m (5), n (4), which inherits it.
    leat_env *env = new_env(3);
    leat_stream *m = leat_parallelism(leat_slot_group(map(source(env, "s"), "m"), "g"), 5);
    leat_stream *n = leat_parallelism(map(m, "n"), 4);
    leat_parallelism(leat_slot_group(sink(n, "k"), "default"), 2);
    leati_job_graph *graph = job_graph_of(env);
    cr_assert(leati_job_graph_slots(graph) == 3 + 5);
    cr_assert(leati_job_graph_tasks(graph) == 3 + 5 + 4 + 2);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

Test(chain, inputs_of_different_groups_give_the_default_group)
{
    leat_env *env = new_env(1);
    leat_stream *g = leat_slot_group(source(env, "a"), "g");
    leat_stream *h = leat_slot_group(source(env, "b"), "h");
    leat_stream *i = leat_slot_group(source(env, "c"), "g");
    leat_name(sink(union_of(g, h), "mixed"), "mixed");
    sink(union_of(g, i), "same");
    leati_job_graph *graph = job_graph_of(env);
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        if (!strcmp(graph->vertices[v].name, "mixed"))
            cr_assert_str_eq(graph->vertices[v].slot_group, "default");
        if (!strcmp(graph->vertices[v].name, "same"))
            cr_assert_str_eq(graph->vertices[v].slot_group, "g");
    }
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

Test(chain, max_parallelism_is_sixteen_groups_a_subtask_as_a_power_of_two)
{
    static const struct {
        uint32_t parallelism, expected;
    } rows[] = {{1, 128},    {8, 128},      {9, 256},      {16, 256},     {100, 2048},
                {128, 2048}, {2048, 32768}, {2049, 32768}, {32768, 32768}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_env *env = new_env(rows[i].parallelism);
        sink(source(env, "s"), "k");
        leati_job_graph *graph = job_graph_of(env);
        cr_expect(graph->vertices[0].max_parallelism == rows[i].expected, "%u: %u",
                  rows[i].parallelism, graph->vertices[0].max_parallelism);
        leati_job_graph_destroy(&graph);
        leat_env_destroy(&env);
    }
}
