// SPDX-License-Identifier: Apache-2.0
// Broadcast variables in the graph: faults, the plan, and which exchanges they make blocking.
#include "graph_testing.h"

static void expect_fault(leat_env *env, const char *part)
{
    leat_err err = leat_env_check(env);
    cr_assert(err != LEAT_OK, "nothing is wrong, but should be: %s", part);
    for (size_t i = 0; i < leat_env_fault_count(env); i++)
        if (strstr(leat_env_fault(env, i), part))
            return;
    cr_assert(false, "no fault says \"%s\", the first is: %s", part, leat_env_fault(env, 0));
}

static void expect_refused(leat_env *env, const char *part)
{
    expect_fault(env, part);
    leat_env_destroy(&env);
}

// "from>to" of the blocking exchanges, with ", " between.
static void expect_blocking(leat_env *env, const char *expected)
{
    leati_job_graph *graph = job_graph_of(env);
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        if (edge->blocking)
            leati_strbuf_printf(&text, "%s%s>%s", text.size ? ", " : "",
                                graph->vertices[edge->from_vertex].ops[edge->from_op].name,
                                graph->vertices[edge->to_vertex].ops[0].name);
    }
    cr_expect_str_eq(leati_strbuf_text(&text), expected);
    leati_strbuf_fini(&text);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

static leat_stream *with(leat_stream *stream, leat_stream *values)
{
    return leat_broadcast_variable(stream, "v", values);
}

static leat_stream *endless_source(leat_env *env, const char *name)
{
    return add(env, NULL, "source: test", name, LEATI_NODE_SOURCE | LEATI_NODE_ENDLESS,
               LEATI_CHAIN_ALWAYS, str_type());
}

// --- building ---

Test(broadcast, what_cannot_be_a_variable_is_a_fault)
{
    leat_env *env = new_env(1), *other = new_env(1);
    leat_stream *s = source(env, "s"), *m = map(s, "m");
    with(s, m);
    expect_fault(env, "a source cannot have broadcast variables");
    leat_broadcast_variable(m, "", s);
    expect_fault(env, "the variable's name is empty");
    leat_broadcast_variable(m, NULL, s);
    with(with(m, s), s);
    expect_fault(env, "it has a broadcast variable \"v\" already");
    leat_broadcast_variable(m, "w", NULL);
    expect_fault(env, "the stream for \"w\" is NULL");
    leat_broadcast_variable(m, "w", source(other, "t"));
    expect_fault(env, "belongs to another environment");
    leat_broadcast_variable(m, "w", sink(m, "k"));
    expect_fault(env, "it is a sink and emits nothing");
    leat_broadcast_variable(leat_rebalance(m), "w", s);
    expect_fault(env, "leat_broadcast_variable");
    cr_assert(leat_broadcast_variable(NULL, "w", s) != NULL);
    leat_env_destroy(&env);
    leat_env_destroy(&other);
}

Test(broadcast, an_operator_that_makes_its_own_variable_is_a_cycle)
{
    leat_env *env = new_env(1);
    leat_stream *m = map(source(env, "s"), "m");
    leat_stream *n = map(m, "n");
    sink(n, "k");
    with(m, n);
    expect_refused(env, "it is part of a cycle");
}

Test(broadcast, it_begins_a_chain_and_shows_in_the_plan)
{
    leat_env *env = new_env(2);
    leat_stream *m = map(source(env, "s"), "m");
    leat_broadcast_variable(m, "rates", leat_rebalance(source(env, "t")));
    sink(m, "k");
    static const char *const expected[] = {
        [LEAT_PLAN_TEXT] = "=> vertex 2 broadcast variable rates by broadcast",
        [LEAT_PLAN_JSON] = "\"BROADCAST\", \"key\": null, \"variable\": \"rates\"",
        [LEAT_PLAN_DOT] = "label=\"BROADCAST\\nvariable rates\"",
    };
    leati_job_graph *graph = job_graph_of(env);
    cr_expect(graph->vertex_count == 3);
    leati_job_graph_destroy(&graph);
    for (int format = LEAT_PLAN_TEXT; format <= LEAT_PLAN_DOT; format++) {
        char *text = NULL;
        cr_assert(leat_plan(env, (leat_plan_format)format, &text) == LEAT_OK);
        cr_expect(strstr(text, expected[format]), "%s", text);
        leat_plan_free(env, text);
    }
    leat_env_destroy(&env);
}

Test(broadcast, graphs_that_differ_in_a_variable_are_told_apart)
{
    static const char *const names[] = {"a", "b"};
    leat_env *envs[2];
    leati_job_graph *graphs[2];
    for (int i = 0; i < 2; i++) {
        envs[i] = new_env(1);
        leat_stream *m = map(source(envs[i], "s"), "m");
        leat_broadcast_variable(m, names[i], source(envs[i], "t"));
        sink(m, "k");
        graphs[i] = job_graph_of(envs[i]);
    }
    char text[300];
    leati_job_graph_difference(graphs[0], graphs[1], text, sizeof text);
    cr_expect(strstr(text, "its broadcast variable is \"a\" here and \"b\" there"), "%s", text);
    cr_expect(strcmp(graphs[0]->digest, graphs[1]->digest) != 0);
    for (int i = 0; i < 2; i++) {
        leati_job_graph_destroy(&graphs[i]);
        leat_env_destroy(&envs[i]);
    }
}

// --- blocking exchanges ---

Test(broadcast, a_variable_from_elsewhere_makes_nothing_blocking)
{
    leat_env *env = new_env(2);
    sink(with(map(source(env, "s"), "m"), source(env, "t")), "k");
    expect_blocking(env, "");
}

Test(broadcast, an_input_from_where_the_variable_comes_from_is_kept)
{
    leat_env *env = new_env(2);
    leat_stream *s = source(env, "s");
    leat_stream *n = map(leat_rebalance(map(s, "m")), "n");
    sink(with(n, map(leat_rebalance(s), "v")), "k");
    expect_blocking(env, "m>n");
}

// Of a union only the part that comes from there.
Test(broadcast, other_parts_of_a_union_are_not_kept)
{
    leat_env *env = new_env(2);
    leat_stream *s = source(env, "s"), *t = source(env, "t");
    sink(with(map(union_of(s, t), "n"), map(s, "v")), "k");
    expect_blocking(env, "s>n");
}

Test(broadcast, of_two_operators_that_would_wait_for_each_other_one_is_kept)
{
    leat_env *env = new_env(2);
    leat_stream *a = source(env, "a"), *b = source(env, "b");
    sink(with(map(a, "m"), b), "k");
    sink(with(map(b, "n"), a), "l");
    expect_blocking(env, "a>m");
}

// s feeds m, m waits for v, and v waits for s, which is blocked by m through p.
Test(broadcast, what_waits_through_others_is_found)
{
    leat_env *env = new_env(2);
    leat_stream *s = source(env, "s");
    leat_stream *p = map(leat_rebalance(s), "p");
    leat_stream *v = map(leat_rebalance(source(env, "t")), "v");
    leat_stream *q = with(map(leat_rebalance(s), "q"), source(env, "u"));
    leat_stream *m = join(p, v, "m", LEATI_CHAIN_ALWAYS);
    sink(with(m, q), "k");
    expect_blocking(env, "p>m");
}

// --- what never ends ---

Test(broadcast, a_variable_that_never_ends_is_a_fault)
{
    leat_env *env = new_env(1);
    leat_stream *m = map(source(env, "s"), "m");
    sink(with(m, map(endless_source(env, "clock"), "ticks")), "k");
    expect_refused(env, "its broadcast variable \"v\" comes from \"clock\" (operator 3), which "
                        "never ends");
}

Test(broadcast, an_input_that_never_ends_is_not_kept)
{
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    leat_stream *mixed = map(union_of(s, endless_source(env, "clock")), "mixed");
    sink(with(map(leat_rebalance(mixed), "m"), map(s, "v")), "k");
    expect_refused(env, "\"clock\" (operator 2) behind it never ends");
    env = new_env(1);
    sink(with(map(endless_source(env, "clock"), "m"), source(env, "s")), "k");
    cr_expect(leat_env_check(env) == LEAT_OK);
    leat_env_destroy(&env);
}
