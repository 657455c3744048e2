// SPDX-License-Identifier: Apache-2.0
#include "graph_testing.h"

static leat_tag tag_of(const char *name)
{
    return (leat_tag){.name = name, .type = leat_type_scalar(LEAT_I64)};
}

static leat_stream *reader(leat_env *env, leat_stream *in, const char *name)
{
    return add(env, in, "sink", name, LEATI_NODE_SINK, LEATI_CHAIN_ALWAYS, NULL);
}

static void expect_fault(leat_env *env, const char *part)
{
    leat_err err = leat_env_check(env);
    cr_assert(err != LEAT_OK);
    for (size_t i = 0; i < leat_env_fault_count(env); i++)
        if (strstr(leat_env_fault(env, i), part))
            return;
    cr_assert(false, "no fault says \"%s\", the first is: %s", part, leat_env_fault(env, 0));
}

Test(side_output, joins_the_chain_and_shows_in_the_plan)
{
    leat_env *env = new_env(1);
    leat_stream *source_stream = source(env, "s");
    leat_tag late = tag_of("late");
    reader(env, source_stream, "main");
    reader(env, leat_side_output(source_stream, &late), "lates");
    char *text = NULL;
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &text) == LEAT_OK);
    cr_expect(strstr(text, "vertex 0: s -> (main, lates)"), "%s", text);
    cr_expect(strstr(text, "i64  after 1's side output late\n"), "%s", text);
    leat_plan_free(env, text);
    leat_env_destroy(&env);
}

Test(side_output, crosses_an_exchange_with_its_own_type_and_key)
{
    leat_env *env = new_env(2);
    leat_stream *source_stream = source(env, "s");
    leat_tag late = tag_of("late");
    reader(env, leat_key_by(leat_side_output(source_stream, &late), ""), "lates");
    leati_job_graph *graph = NULL;
    cr_assert(leati_job_graph_create(env, &graph) == LEAT_OK);
    cr_assert(graph->edge_count == 1);
    cr_expect_str_eq(graph->edges[0].side, "late");
    cr_expect(graph->edges[0].type == leat_type_scalar(LEAT_I64));
    cr_expect(graph->edges[0].partitioner == LEATI_PARTITION_HASH);
    char *text = NULL;
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &text) == LEAT_OK);
    cr_expect(strstr(text, "=> vertex 1 by hash of <record>, side output late, flushed"), "%s",
              text);
    cr_expect(strstr(text, "the output of 1 is not used"), "%s", text);
    leat_plan_free(env, text);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

Test(side_output, may_be_of_a_sink_and_part_of_a_union)
{
    leat_env *env = new_env(1);
    leat_stream *s = source_of(env, "s", leat_type_scalar(LEAT_I64));
    leat_tag a = tag_of("a"), b = tag_of("b");
    leat_stream *sink = reader(env, s, "k");
    leat_stream *all[] = {s, leat_side_output(sink, &a), leat_side_output(s, &b)};
    reader(env, leat_union(all, 3), "all");
    cr_expect(leat_env_check(env) == LEAT_OK, "%s", leat_env_fault(env, 0));
    leat_env_destroy(&env);
}

Test(side_output, digest_and_hashes_tell_the_outputs_apart)
{
    char digests[3][33];
    uint64_t hashes[3];
    static const char *const names[] = {"late", "early"};
    for (int i = 0; i < 3; i++) {
        leat_env *env = new_env(1);
        leat_stream *s = source_of(env, "s", leat_type_scalar(LEAT_I64));
        leat_tag tag = tag_of(names[i % 2]);
        reader(env, i == 2 ? s : leat_side_output(s, &tag), "k");
        leati_job_graph *graph = NULL;
        cr_assert(leati_job_graph_create(env, &graph) == LEAT_OK);
        memcpy(digests[i], graph->digest, 33);
        hashes[i] = graph->vertices[0].ops[1].uid_hash[0];
        leati_job_graph_destroy(&graph);
        leat_env_destroy(&env);
    }
    for (int i = 0; i < 3; i++) {
        cr_expect(strcmp(digests[i], digests[(i + 1) % 3]) != 0);
        cr_expect(hashes[i] != hashes[(i + 1) % 3]);
    }
}

Test(side_output, wrong_tags_are_faults)
{
    static const char *const names[] = {"", "two words", NULL};
    for (size_t i = 0; i < 3; i++) {
        leat_env *env = new_env(1);
        leat_tag tag = tag_of(names[i]);
        leat_stream *s = source(env, "s");
        reader(env, s, "k");
        reader(env, leat_side_output(s, &tag), "r");
        expect_fault(env, "\"s\" (source: test, operator 1): leat_side_output: the tag's name");
        leat_env_destroy(&env);
    }
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    leat_tag tag = {.name = "t", .type = NULL};
    leat_side_output(s, &tag);
    leat_side_output(s, NULL);
    tag.type = str_type();
    leat_side_output(leat_rebalance(s), &tag);
    reader(env, s, "k");
    expect_fault(env, "the tag's type is NULL");
    expect_fault(env, "the tag is NULL");
    expect_fault(env, "partitioning or key_by of its output, which is no operator");
    leat_env_destroy(&env);
}

Test(side_output, two_types_for_one_tag_are_a_fault)
{
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    leat_tag number = tag_of("t"), text = {.name = "t", .type = str_type()};
    reader(env, leat_side_output(s, &number), "a");
    reader(env, leat_side_output(s, &text), "b");
    expect_fault(env, "its side output \"t\" is read with two types: i64 and str");
    leat_env_destroy(&env);
}

// The rejects of an operator with one input carry its records, those of others text.
Test(side_output, rejects_are_typed_by_the_input)
{
    leat_env *env = new_env(1);
    leat_stream *s = source_of(env, "s", leat_type_scalar(LEAT_I64));
    reader(env, leat_rejects(s), "texts");
    leat_stream *k = reader(env, s, "k");
    reader(env, leat_rejects(k), "numbers");
    char *text = NULL;
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &text) == LEAT_OK, "%s", leat_env_fault(env, 0));
    cr_expect(strstr(text, "texts (sink)      {error: str, record: str}  after 1"), "%s", text);
    cr_expect(strstr(text, "numbers (sink)    {error: str, record: i64}  after 3"), "%s", text);
    leat_plan_free(env, text);
    leat_env_destroy(&env);
}
