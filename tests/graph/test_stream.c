// SPDX-License-Identifier: Apache-2.0
#include "tests/graph/graph_testing.h"

static const leat_type *pair_type(const char *first, const char *second)
{
    const leat_type *type = NULL;
    leat_field_spec fields[] = {{first, leat_type_scalar(LEAT_STR)},
                                {second, leat_type_scalar(LEAT_I64)}};
    cr_assert(leat_type_struct_create(NULL, "pair", fields, 2, &type) == LEAT_OK);
    return type;
}

Test(stream, unions_and_partitionings_create_no_operator)
{
    leat_env *env = new_env(1);
    leat_stream *a = source(env, "a"), *b = source(env, "b");
    leat_stream *u = leat_rebalance(union_of(a, b));
    map(u, "m");
    cr_assert(env->node_count == 3 && env->edge_count == 2);
    cr_assert(!leati_stream_node(u) && leati_stream_type(u) == str_type());
    cr_assert(leati_stream_env(u) == env);
    leat_env_destroy(&env);
}

Test(stream, unions_nest_and_keep_order)
{
    leat_env *env = new_env(1);
    leat_stream *s[4] = {source(env, "a"), source(env, "b"), source(env, "c"), source(env, "d")};
    leat_stream *u = union_of(union_of(s[0], s[1]), union_of(s[2], s[3]));
    leat_stream *k = sink(u, "k");
    cr_assert(env->edge_count == 4);
    for (size_t e = 0; e < 4; e++) {
        cr_assert(env->edges[e].from == leati_stream_node(s[e]));
        cr_assert(env->edges[e].to == leati_stream_node(k) && env->edges[e].input == 0);
    }
    leat_env_destroy(&env);
}

Test(stream, a_union_of_too_many_streams_is_refused)
{
    // Doubling seventeen times makes more than 65536 edges.
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    for (int i = 0; i < 17; i++)
        s = union_of(s, s);
    cr_assert(leat_env_fault_count(env) == 1);
    cr_assert(strstr(leat_env_fault(env, 0), "65536"));
    leat_env_destroy(&env);
}

Test(stream, defaults_are_resolved_when_the_graph_is_finished)
{
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    sink(leat_buffer_timeout(leat_parallelism(map(s, "m"), 2), 0), "k");
    leat_env_set_parallelism(env, 3);
    leat_env_set_buffer_timeout(env, -1);
    cr_assert(leat_env_parallelism(env) == 3);
    leati_job_graph *graph = job_graph_of(env);
    cr_assert(graph->vertex_count == 3);
    cr_assert(graph->vertices[0].parallelism == 3 && graph->vertices[1].parallelism == 2);
    cr_assert(graph->edges[0].buffer_timeout_ms == -1); // the environment's
    cr_assert(graph->edges[1].buffer_timeout_ms == 0);  // the operator's own
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

Test(stream, settings_reach_the_configuration)
{
    leat_env *env = new_env(1);
    cr_assert(leat_env_set(env, "parallelism", "5") == LEAT_OK);
    cr_assert(leat_env_set(env, "buffer-timeout", "2 s") == LEAT_OK);
    cr_assert(leat_env_set(env, "memory.segment-size", "64 KiB") == LEAT_OK);
    cr_assert(leat_env_parallelism(env) == 5);
    const leati_config *config = leati_env_config(env);
    cr_assert(leati_config_get(config, LEATI_CONFIG_BUFFER_TIMEOUT) == 2000);
    cr_assert(leati_config_get(config, LEATI_CONFIG_SEGMENT_SIZE) == 65536);
    leat_env_destroy(&env);
}

Test(stream, an_operator_keeps_what_it_was_given)
{
    leat_env *env = new_env(1);
    leat_stream *m = map(source(env, "s"), "m");
    char name[] = "first", uid[] = "u", group[] = "g";
    int data;
    cr_assert(leat_name(m, name) == m && leat_uid(m, uid) == m && leat_slot_group(m, group) == m);
    cr_assert(leat_user_data(m, &data) == m);
    name[0] = uid[0] = group[0] = '?'; // they are copied
    const leati_node *node = leati_stream_node(m);
    cr_assert_str_eq(node->name, "first");
    cr_assert_str_eq(node->uid, "u");
    cr_assert_str_eq(node->slot_group, "g");
    cr_assert(node->user_data == &data);
    cr_assert(node->in_type == str_type() && node->out_type == str_type());
    leat_env_destroy(&env);
}

Test(stream, key_text_is_normal_and_keys_reach_operator_and_exchange)
{
    leat_env *env = new_env(1);
    const leat_type *pair = pair_type("user", "country");
    leat_stream *keyed = leat_key_by(source_of(env, "s", pair), " user ,\tcountry");
    const leati_key_selector *key = leati_stream_key(keyed);
    leat_stream *r = keyed_op(keyed, "r");
    sink(r, "k");
    cr_assert_str_eq(key->text, "user, country");
    cr_assert(key->fields.count == 2 && !key->fn);
    cr_assert(leati_stream_node(r)->key == key);
    cr_assert(!leati_stream_key(r));
    leati_job_graph *graph = job_graph_of(env);
    cr_assert(graph->edges[0].key == key && graph->edges[0].type == pair);
    cr_assert_str_eq(graph->edges[0].key_text, "user, country");
    leati_job_graph_destroy(&graph);
    leat_type_release(pair);
    leat_env_destroy(&env);
}

Test(stream, a_later_key_by_replaces_the_earlier)
{
    leat_env *env = new_env(1);
    const leat_type *pair = pair_type("a", "b");
    leat_stream *keyed = leat_key_by(leat_key_by(source_of(env, "s", pair), "a"), "b");
    keyed_op(keyed, "r");
    cr_assert_str_eq(leati_stream_key(keyed)->text, "b");
    cr_assert(env->edge_count == 1 && env->edges[0].key == leati_stream_key(keyed));
    leat_type_release(pair);
    leat_env_destroy(&env);
}

static int some_key(leat_ctx *ctx, const void *in, void *key)
{
    return 0;
}

// Equal structure, other places in memory: the key of each edge must be that of its producer.
Test(stream, keys_over_a_union_follow_each_layout)
{
    leat_env *env = new_env(1);
    const leat_type *pair = pair_type("a", "b");
    const leat_field fields[] = {
        {.name = "a", .type = leat_type_scalar(LEAT_STR), .offset = 8, .kind = LEAT_STR},
        {.name = "b", .type = leat_type_scalar(LEAT_I64), .offset = 0, .kind = LEAT_I64}};
    const leat_type swapped = {.kind = LEAT_STRUCT,
                               .size = 24,
                               .align = 8,
                               .field_count = 2,
                               .name = "swapped",
                               .fields = fields};
    leat_stream *x = source_of(env, "x", pair), *y = source_of(env, "y", &swapped);
    leat_stream *r = keyed_op(leat_key_by(union_of(x, y), "b"), "r");
    cr_assert(leat_env_fault_count(env) == 0);
    cr_assert(env->edges[0].key->fields.part[0].offset == 16);
    cr_assert(env->edges[1].key->fields.part[0].offset == 0);
    cr_assert(leati_stream_node(r)->key == env->edges[0].key);
    // A function is written for one layout only.
    leat_key_by_fn(union_of(x, y), some_key, str_type());
    cr_assert(leat_env_fault_count(env) == 1);
    cr_assert(strstr(leat_env_fault(env, 0), "\"y\""));
    leat_type_release(pair);
    leat_env_destroy(&env);
}

Test(stream, several_inputs_keep_their_ordinals)
{
    leat_env *env = new_env(1);
    const leat_type *pair = pair_type("a", "b");
    leat_stream *a = source(env, "a"), *b = leat_key_by(source_of(env, "b", pair), "a");
    leati_node *j = leati_stream_node(join(a, b, "j", LEATI_CHAIN_ALWAYS));
    cr_assert(j->input_count == 2 && j->in_type == str_type() && !j->key);
    cr_assert(j->inputs[1].type == pair && j->inputs[1].key == leati_stream_key(b));
    cr_assert(env->edges[0].input == 0 && env->edges[1].input == 1);
    leat_type_release(pair);
    leat_env_destroy(&env);
}

Test(stream, memory_of_the_environment_is_zeroed_and_aligned)
{
    leat_env *env = new_env(1);
    for (size_t size = 0; size < 100000; size = size * 3 + 1) {
        char *block = leat_env_alloc(env, size);
        cr_assert(block && (uintptr_t)block % _Alignof(max_align_t) == 0);
        for (size_t i = 0; i < size; i++)
            cr_assert(block[i] == 0);
        memset(block, 0xff, size);
    }
    leat_env_destroy(&env);
    leat_env_destroy(&env); // a second time does nothing
}
