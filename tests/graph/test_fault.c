// SPDX-License-Identifier: Apache-2.0
// Every fault with its code and the essential words of its message, and that all are collected.
#include "tests/graph/graph_testing.h"

typedef struct rig {
    leat_env *env, *other;
    leat_type const *word_count, *with_map;
} rig;

typedef struct example {
    const char *claim;
    void (*build)(rig *r);
    leat_err err;
    const char *words[4]; // each is part of the first fault's text
} example;

static const leat_type *struct_type(const char *first, const leat_type *first_type,
                                    const char *second, const leat_type *second_type)
{
    const leat_type *type = NULL;
    leat_field_spec fields[] = {{first, first_type}, {second, second_type}};
    leat_err err = leat_type_struct_create(NULL, "t", fields, 2, &type);
    cr_assert(err == LEAT_OK);
    return type;
}

static void unequal_union(rig *r)
{
    leat_stream *a = source(r->env, "a"), *b = source_of(r->env, "b", r->word_count);
    sink(union_of(a, b), "k");
}

static void empty_union(rig *r)
{
    leat_stream *a = source(r->env, "a");
    sink(union_of(a, NULL), "k");
}

static void union_of_a_sink(rig *r)
{
    leat_stream *a = source(r->env, "a"), *k = sink(a, "k");
    sink(union_of(a, k), "l");
}

static void foreign_union(rig *r)
{
    leat_stream *a = source(r->env, "a");
    sink(union_of(a, source(r->other, "b")), "k");
}

static void foreign_input(rig *r)
{
    leat_stream *ins[] = {source(r->env, "a"), source(r->other, "b")};
    sink(leati_graph_add_inputs(r->env, ins, 2,
                                &(leati_node_spec){.kind = "join",
                                                   .name = "j",
                                                   .out_type = str_type(),
                                                   .factory = {.create = refuse_create}}),
         "k");
}

static void forward_unequal(rig *r)
{
    leat_stream *a = leat_parallelism(map(source(r->env, "s"), "a"), 2);
    leat_parallelism(sink(leat_forward(a), "b"), 3);
}

static void unknown_key(rig *r)
{
    leat_stream *s = source_of(r->env, "s", r->word_count);
    sink(keyed_op(leat_key_by(s, "count, wrod"), "r"), "k");
}

static void key_over_map(rig *r)
{
    sink(leat_key_by(source_of(r->env, "s", r->with_map), "tags"), "k");
}

static int key_fn(leat_ctx *ctx, const void *in, void *key)
{
    return 0;
}

static void key_fn_over_map(rig *r)
{
    sink(leat_key_by_fn(source(r->env, "s"), key_fn, r->with_map), "k");
}

static void key_fn_null(rig *r)
{
    sink(leat_key_by_fn(source(r->env, "s"), NULL, str_type()), "k");
}

static void key_type_null(rig *r)
{
    sink(leat_key_by_fn(source(r->env, "s"), key_fn, NULL), "k");
}

static void missing_key(rig *r)
{
    leat_stream *reduce = keyed_op(source(r->env, "s"), NULL);
    sink(leat_name(reduce, "count words"), "k");
}

static void key_lost(rig *r)
{
    sink(keyed_op(leat_rebalance(leat_key_by(source(r->env, "s"), "")), "r"), "k");
}

static void key_lost_in_union(rig *r)
{
    leat_stream *keyed = leat_key_by(source(r->env, "s"), "");
    sink(keyed_op(union_of(keyed, keyed), "r"), "k");
}

static void cycle(rig *r)
{
    leat_stream *a = map(source(r->env, "s"), "a"), *b = map(a, "b");
    sink(map(b, "behind"), "k");
    for (size_t e = 0; e < r->env->edge_count; e++)
        if (r->env->edges[e].to == leati_stream_node(a))
            r->env->edges[e].from = leati_stream_node(b);
}

static void no_sink(rig *r)
{
    map(source(r->env, "s"), "m");
}

static void nothing(rig *r)
{
}

static void same_uid(rig *r)
{
    leat_stream *m = leat_uid(map(source(r->env, "s"), "m"), "id");
    leat_uid(sink(m, "k"), "id");
}

static void sink_as_input(rig *r)
{
    leat_stream *k = sink(source(r->env, "s"), "k");
    sink(k, "after");
}

static void sink_as_typed_input(rig *r)
{
    leat_stream *k = sink(source(r->env, "s"), "k");
    if (!leati_stream_type(k))
        sink(leati_graph_inert(r->env), "after");
}

static void sink_partitioned(rig *r)
{
    leat_rebalance(sink(source(r->env, "s"), "k"));
}

static void parallelism_zero(rig *r)
{
    leat_parallelism(sink(source(r->env, "s"), "k"), 0);
}

static void parallelism_huge(rig *r)
{
    leat_parallelism(sink(source(r->env, "s"), "k"), 32769);
}

static void env_parallelism_zero(rig *r)
{
    leat_env_set_parallelism(r->env, 0);
}

static void env_max_huge(rig *r)
{
    leat_env_set_max_parallelism(r->env, 32769);
}

static void non_parallel(rig *r)
{
    leat_parallelism(add(r->env, source(r->env, "s"), "sink", "k",
                         LEATI_NODE_SINK | LEATI_NODE_NON_PARALLEL, LEATI_CHAIN_ALWAYS, NULL),
                     2);
}

static void max_below(rig *r)
{
    leat_max_parallelism(leat_parallelism(sink(source(r->env, "s"), "k"), 9), 8);
}

static void env_max_below(rig *r)
{
    leat_env_set_max_parallelism(r->env, 8);
    leat_parallelism(sink(source(r->env, "s"), "k"), 9);
}

static void max_zero(rig *r)
{
    leat_max_parallelism(sink(source(r->env, "s"), "k"), 0);
}

static void name_on_union(rig *r)
{
    leat_stream *s = source(r->env, "s");
    leat_name(union_of(s, s), "both");
}

static void parallelism_on_key_by(rig *r)
{
    leat_parallelism(leat_key_by(source(r->env, "s"), ""), 2);
}

static void empty_name(rig *r)
{
    leat_name(sink(source(r->env, "s"), "k"), "");
}

static void null_name(rig *r)
{
    leat_name(sink(source(r->env, "s"), "k"), NULL);
}

static void empty_uid(rig *r)
{
    leat_uid(sink(source(r->env, "s"), "k"), "");
}

static void empty_group(rig *r)
{
    leat_slot_group(sink(source(r->env, "s"), "k"), "");
}

static void empty_job_name(rig *r)
{
    leat_env_set_name(r->env, "");
}

static void timeout_out_of_range(rig *r)
{
    leat_buffer_timeout(sink(source(r->env, "s"), "k"), -2);
}

static void env_timeout_out_of_range(rig *r)
{
    leat_env_set_buffer_timeout(r->env, -2);
}

static void null_input(rig *r)
{
    add(r->env, NULL, "map", "m", 0, LEATI_CHAIN_ALWAYS, str_type());
}

static void null_type(rig *r)
{
    add(r->env, source(r->env, "s"), "map", "m", 0, LEATI_CHAIN_ALWAYS, NULL);
}

static void null_factory(rig *r)
{
    leati_graph_add(r->env, NULL,
                    &(leati_node_spec){
                        .kind = "source: x", .flags = LEATI_NODE_SOURCE, .out_type = str_type()});
}

static void bad_type(rig *r)
{
    static const leat_type wrong = {.kind = 99, .size = 1, .align = 1, .name = "wrong"};
    source_of(r->env, "s", &wrong);
}

static void unknown_setting(rig *r)
{
    cr_assert(leat_env_set(r->env, "paralelism", "2") == LEAT_ENOENT);
}

static void bad_setting(rig *r)
{
    cr_assert(leat_env_set(r->env, "parallelism", "two") == LEAT_EINVAL);
}

static void said_by_the_job(rig *r)
{
    leat_env_fail(r->env, LEAT_EIO, "--input %s: cannot be opened", "x.txt");
}

static const example examples[] = {
    {"union of different types",
     unequal_union,
     LEAT_ETYPE,
     {"\"b\" (source: test, operator 2)", "leat_union", "{word: str, count: i64}", "str"}},
    {"union with NULL", empty_union, LEAT_EINVAL, {"\"a\"", "leat_union", "NULL"}},
    {"union with a sink", union_of_a_sink, LEAT_EGRAPH, {"\"k\" (sink, operator 2)", "input"}},
    {"union across environments", foreign_union, LEAT_EGRAPH, {"\"a\"", "another environment"}},
    {"input across environments", foreign_input, LEAT_EGRAPH, {"\"j\"", "another environment"}},
    {"forward with unequal parallelism",
     forward_unequal,
     LEAT_EGRAPH,
     {"\"b\" (sink, operator 3)", "leat_forward", "\"a\" (operator 2) of parallelism 2", "3"}},
    {"unknown key field",
     unknown_key,
     LEAT_ETYPE,
     {"\"s\" (source: test, operator 1)", "leat_key_by(\"count, wrod\")", "\"wrod\"",
      "{word: str, count: i64}"}},
    {"key over a map", key_over_map, LEAT_ETYPE, {"\"s\"", "leat_key_by(\"tags\")", "map"}},
    {"key function over a map", key_fn_over_map, LEAT_ETYPE, {"\"s\"", "leat_key_by_fn", "map"}},
    {"key function NULL", key_fn_null, LEAT_EINVAL, {"\"s\"", "leat_key_by_fn", "NULL"}},
    {"key type NULL", key_type_null, LEAT_EINVAL, {"\"s\"", "leat_key_by_fn", "NULL"}},
    {"missing key, later name",
     missing_key,
     LEAT_EGRAPH,
     {"\"count words\" (reduce, operator 2)", "key"}},
    {"key lost by a partitioning", key_lost, LEAT_EGRAPH, {"\"r\"", "key"}},
    {"key lost in a union", key_lost_in_union, LEAT_EGRAPH, {"\"r\"", "key"}},
    {"cycle", cycle, LEAT_EGRAPH, {"\"a\" (map, operator 2)", "cycle"}},
    {"no sink", no_sink, LEAT_EGRAPH, {"no sink"}},
    {"nothing at all", nothing, LEAT_EGRAPH, {"no operators"}},
    {"duplicate uid", same_uid, LEAT_EGRAPH, {"\"k\" (sink, operator 3)", "\"id\"", "\"m\""}},
    {"sink as input", sink_as_input, LEAT_EGRAPH, {"\"k\" (sink, operator 2)", "input"}},
    {"sink as typed input", sink_as_typed_input, LEAT_EGRAPH, {"\"k\"", "input"}},
    {"sink partitioned", sink_partitioned, LEAT_EGRAPH, {"\"k\"", "input"}},
    {"parallelism 0", parallelism_zero, LEAT_EINVAL, {"\"k\"", "leat_parallelism", "0"}},
    {"parallelism 32769", parallelism_huge, LEAT_EINVAL, {"\"k\"", "32769", "32768"}},
    {"default parallelism 0", env_parallelism_zero, LEAT_EINVAL, {"leat_env_set_parallelism"}},
    {"default max 32769", env_max_huge, LEAT_EINVAL, {"leat_env_set_max_parallelism"}},
    {"non-parallel operator", non_parallel, LEAT_EGRAPH, {"\"k\"", "parallelism is 2"}},
    {"max below parallelism", max_below, LEAT_EGRAPH, {"\"k\"", "max parallelism 8", "9"}},
    {"default max below", env_max_below, LEAT_EGRAPH, {"\"k\"", "max parallelism 8", "9"}},
    {"max 0", max_zero, LEAT_EINVAL, {"\"k\"", "leat_max_parallelism"}},
    {"name on a union", name_on_union, LEAT_EGRAPH, {"\"s\"", "leat_name", "union"}},
    {"parallelism on key_by",
     parallelism_on_key_by,
     LEAT_EGRAPH,
     {"\"s\"", "leat_parallelism", "key_by"}},
    {"empty name", empty_name, LEAT_EINVAL, {"\"k\"", "leat_name", "empty"}},
    {"NULL name", null_name, LEAT_EINVAL, {"\"k\"", "leat_name", "empty"}},
    {"empty uid", empty_uid, LEAT_EINVAL, {"\"k\"", "leat_uid", "empty"}},
    {"empty group", empty_group, LEAT_EINVAL, {"\"k\"", "leat_slot_group", "empty"}},
    {"empty job name", empty_job_name, LEAT_EINVAL, {"leat_env_set_name", "empty"}},
    {"buffer timeout", timeout_out_of_range, LEAT_EINVAL, {"\"k\"", "leat_buffer_timeout", "-2"}},
    {"default buffer timeout", env_timeout_out_of_range, LEAT_EINVAL, {"buffer_timeout", "-2"}},
    {"NULL input", null_input, LEAT_EINVAL, {"\"m\" (map, operator 1)", "input", "NULL"}},
    {"NULL type", null_type, LEAT_EINVAL, {"\"m\" (map, operator 2)", "type", "NULL"}},
    {"NULL factory", null_factory, LEAT_EINVAL, {"\"source: x\"", "NULL"}},
    {"type that is none", bad_type, LEAT_ETYPE, {"\"s\"", "output type"}},
    {"unknown setting", unknown_setting, LEAT_ENOENT, {"paralelism", "\"parallelism\""}},
    {"bad setting", bad_setting, LEAT_EINVAL, {"parallelism", "two"}},
    {"said by the job", said_by_the_job, LEAT_EIO, {"--input x.txt: cannot be opened"}},
};

static void rig_init(rig *r)
{
    *r = (rig){.env = new_env(1), .other = new_env(1)};
    const leat_type *map_type = NULL;
    cr_assert(leat_type_map_create(NULL, str_type(), str_type(), &map_type) == LEAT_OK);
    r->word_count = struct_type("word", str_type(), "count", leat_type_scalar(LEAT_I64));
    r->with_map = struct_type("id", str_type(), "tags", map_type);
    leat_type_release(map_type);
}

static void rig_fini(rig *r)
{
    // The environments hold what their graphs use.
    leat_type_release(r->word_count);
    leat_type_release(r->with_map);
    leat_env_destroy(&r->env);
    leat_env_destroy(&r->other);
}

Test(fault, each_mistake_is_named_once_with_its_operator)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *x = &examples[i];
        rig r;
        rig_init(&r);
        x->build(&r);
        leat_err err = leat_env_check(r.env);
        cr_expect(err == x->err, "%s: %s", x->claim, leat_err_name(err));
        cr_expect(leat_env_fault_count(r.env) == 1, "%s: %zu faults", x->claim,
                  leat_env_fault_count(r.env));
        const char *text = leat_env_fault(r.env, 0);
        for (int w = 0; w < 4 && x->words[w] && text; w++)
            cr_expect(strstr(text, x->words[w]), "%s: \"%s\" not in: %s", x->claim, x->words[w],
                      text);
        err = leat_env_check(r.env);
        cr_expect(err == x->err && leat_env_fault_count(r.env) == 1, "%s: twice", x->claim);
        rig_fini(&r);
    }
}

Test(fault, a_refused_graph_gives_no_job_graph_plan_or_digest)
{
    leat_env *env = new_env(1);
    source(env, "s");
    leati_job_graph *graph = NULL;
    char *text = NULL, digest[33] = "untouched";
    cr_assert(leati_job_graph_create(env, &graph) == LEAT_EGRAPH && !graph);
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &text) == LEAT_EGRAPH && !text);
    cr_assert(leat_plan_digest(env, digest) == LEAT_EGRAPH);
    cr_assert_str_eq(digest, "untouched");
    leat_env_destroy(&env);
}

Test(fault, all_faults_are_collected_in_order)
{
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    leat_stream *r = keyed_op(map(leat_parallelism(s, 0), "m"), "r"); // two faults while building
    leat_uid(r, "same");
    leat_stream *k = leat_parallelism(leat_uid(sink(leat_forward(r), "k"), "same"), 2);
    leat_max_parallelism(k, 1);
    // Then, in validation: max below parallelism, forward, uid.
    static const char *const expected[] = {
        "\"s\" (source: test, operator 1): leat_parallelism",
        "\"r\" (reduce, operator 3): its input has no key",
        "\"k\" (sink, operator 4): its max parallelism 1 is below its parallelism 2",
        "\"k\" (sink, operator 4): leat_forward",
        "\"k\" (sink, operator 4): its uid \"same\"",
    };
    cr_assert(leat_env_check(env) == LEAT_EINVAL);
    cr_assert(leat_env_fault_count(env) == 5);
    for (size_t i = 0; i < 5; i++)
        cr_expect(strncmp(leat_env_fault(env, i), expected[i], strlen(expected[i])) == 0, "%s",
                  leat_env_fault(env, i));
    cr_assert(!leat_env_fault(env, 5));
    leat_env_destroy(&env);
}

Test(fault, validation_forgets_what_was_mended)
{
    leat_env *env = new_env(1);
    leat_stream *k = leat_max_parallelism(leat_parallelism(sink(source(env, "s"), "k"), 2), 1);
    cr_assert(leat_env_check(env) == LEAT_EGRAPH);
    leat_max_parallelism(k, 2);
    cr_assert(leat_env_check(env) == LEAT_OK);
    cr_assert(leat_env_fault_count(env) == 0);
    leat_env_destroy(&env);
}

Test(fault, inert_streams_take_every_call_silently)
{
    leat_env *env = new_env(1);
    leat_stream *bad = leat_key_by(source(env, "s"), "nothing"); // a str has no fields
    cr_assert(leat_env_fault_count(env) == 1);
    leat_stream *all[] = {bad, leati_graph_inert(NULL), NULL};
    for (size_t i = 0; i < 3; i++) {
        leat_stream *s = all[i];
        cr_assert(leat_name(s, "x") && leat_uid(s, "x") && leat_parallelism(s, 2));
        cr_assert(leat_max_parallelism(s, 2) && leat_start_new_chain(s));
        cr_assert(leat_disable_chaining(s) && leat_slot_group(s, "g") && leat_user_data(s, env));
        cr_assert(leat_buffer_timeout(s, 1) && leat_forward(s) && leat_rebalance(s));
        cr_assert(leat_rescale(s) && leat_shuffle(s) && leat_broadcast(s) && leat_global(s));
        cr_assert(leat_key_by(s, "") && leat_key_by_fn(s, NULL, NULL));
        cr_assert(leat_union(&s, 1) && leat_union(&s, 0) && leat_union(NULL, 3));
        cr_assert(!leati_stream_type(s) && !leati_stream_node(s) && !leati_stream_key(s));
    }
    cr_assert(sink(map(bad, "m"), "k") && leati_graph_add(NULL, NULL, NULL));
    cr_assert(leat_env_fault_count(env) == 1);
    leat_env_destroy(&env);
}
