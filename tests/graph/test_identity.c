// SPDX-License-Identifier: Apache-2.0
// Digests and the hashes by which operators are matched: what changes them and what does not.
#include <xxhash.h>

#include "tests/graph/graph_testing.h"

static const leat_type *pair_type(const char *first, const char *second)
{
    const leat_type *type = NULL;
    leat_field_spec fields[] = {{first, leat_type_scalar(LEAT_STR)},
                                {second, leat_type_scalar(LEAT_I64)}};
    cr_assert(leat_type_struct_create(NULL, "pair", fields, 2, &type) == LEAT_OK);
    return type;
}

// What may vary of one small job: source -> map -> key_by -> reduce -> sink, and a branch.
typedef struct variant {
    const char *field, *key, *map_name, *uid, *detail, *job_name, *map_kind, *group;
    uint32_t parallelism, max_parallelism;
    int64_t timeout_ms;
    bool unchained, rebalanced, branch_first, branch_last;
} variant;

static const variant plain = {
    .field = "b", .key = "a", .map_name = "m", .map_kind = "map", .parallelism = 2};

static void build(leat_env *env, const variant *v)
{
    const leat_type *pair = pair_type("a", v->field);
    leat_env_set_parallelism(env, v->parallelism);
    leat_env_set_max_parallelism(env, v->max_parallelism);
    leat_env_set_chaining(env, !v->unchained);
    if (v->job_name)
        leat_env_set_name(env, v->job_name);
    if (v->branch_first)
        sink(map(source(env, "x"), "y"), "z");
    leat_stream *s = source_of(env, "s", pair);
    leat_stream *m = leati_graph_add(env, v->rebalanced ? leat_rebalance(s) : s,
                                     &(leati_node_spec){.kind = v->map_kind,
                                                        .name = v->map_name,
                                                        .out_type = pair,
                                                        .factory = {.create = refuse_create},
                                                        .detail = v->detail});
    if (v->timeout_ms)
        leat_buffer_timeout(m, v->timeout_ms);
    if (v->group)
        leat_slot_group(m, v->group);
    leat_stream *r = keyed_op(leat_key_by(m, v->key), "r");
    if (v->uid)
        leat_uid(r, v->uid);
    sink(r, "k");
    if (v->branch_last)
        sink(map(source(env, "x"), "y"), "z");
    leat_type_release(pair);
}

typedef struct outcome {
    char digest[33];
    uint64_t map_hash[2], reduce_hash[2], sink_hash[2];
} outcome;

static void note(const leati_chain_op *op, const variant *v, outcome *o)
{
    if (!strcmp(op->name, v->map_name))
        memcpy(o->map_hash, op->uid_hash, 16);
    if (!strcmp(op->name, "r"))
        memcpy(o->reduce_hash, op->uid_hash, 16);
    if (!strcmp(op->name, "k"))
        memcpy(o->sink_hash, op->uid_hash, 16);
}

static outcome outcome_of(const variant *v)
{
    leat_env *env = new_env(1);
    build(env, v);
    leati_job_graph *graph = job_graph_of(env);
    outcome o = {0};
    for (uint32_t i = 0; i < graph->vertex_count; i++)
        for (uint32_t j = 0; j < graph->vertices[i].op_count; j++)
            note(&graph->vertices[i].ops[j], v, &o);
    memcpy(o.digest, graph->digest, sizeof o.digest);
    char again[33];
    cr_assert(leat_plan_digest(env, again) == LEAT_OK);
    cr_assert_str_eq(again, o.digest);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
    return o;
}

#define SAME(a, b, what) (memcmp((a).what, (b).what, sizeof(a).what) == 0)

Test(identity, the_digest_is_32_hexadecimal_digits_and_the_same_every_time)
{
    outcome a = outcome_of(&plain), b = outcome_of(&plain);
    cr_assert(strlen(a.digest) == 32 && strspn(a.digest, "0123456789abcdef") == 32);
    cr_assert_str_eq(a.digest, b.digest);
}

Test(identity, the_digest_follows_whatever_decides_how_the_job_runs)
{
    outcome base = outcome_of(&plain);
    enum { CHANGES = 12 };
    variant v[CHANGES];
    for (int i = 0; i < CHANGES; i++)
        v[i] = plain;
    v[0].field = "c";
    v[1].key = "a, b";
    v[2].map_name = "n";
    v[3].uid = "u";
    v[4].detail = "d";
    v[5].map_kind = "filter";
    v[6].parallelism = 3;
    v[7].max_parallelism = 64;
    v[8].timeout_ms = 5;
    v[9].unchained = true;
    v[10].rebalanced = true;
    v[11].group = "g";
    for (int i = 0; i < CHANGES; i++) {
        outcome o = outcome_of(&v[i]);
        cr_expect(!SAME(base, o, digest), "change %d", i);
    }
}

Test(identity, the_digest_ignores_the_jobs_name_and_how_a_key_is_spelt)
{
    outcome base = outcome_of(&plain);
    variant v = plain;
    v.job_name = "another";
    v.key = " a ";
    outcome o = outcome_of(&v);
    cr_assert_str_eq(base.digest, o.digest);
}

Test(identity, an_operator_is_the_same_after_changes_elsewhere)
{
    outcome base = outcome_of(&plain);
    enum { CHANGES = 6 };
    variant v[CHANGES];
    for (int i = 0; i < CHANGES; i++)
        v[i] = plain;
    v[0].parallelism = 7;
    v[1].unchained = true;
    v[2].branch_first = true; // moves all numbers
    v[3].branch_last = true;
    v[4].map_name = "renamed";
    v[5].detail = "other settings";
    for (int i = 0; i < CHANGES; i++) {
        outcome o = outcome_of(&v[i]);
        cr_expect(SAME(base, o, map_hash) && SAME(base, o, reduce_hash) && SAME(base, o, sink_hash),
                  "change %d", i);
    }
}

Test(identity, an_operator_is_another_when_it_or_what_leads_to_it_changes)
{
    outcome base = outcome_of(&plain);
    enum { CHANGES = 4 };
    variant v[CHANGES];
    for (int i = 0; i < CHANGES; i++)
        v[i] = plain;
    v[0].map_kind = "filter";
    v[1].field = "c";
    v[2].key = "a, b";
    v[3].rebalanced = true;
    for (int i = 0; i < CHANGES; i++) {
        outcome o = outcome_of(&v[i]);
        cr_expect(!SAME(base, o, reduce_hash) && !SAME(base, o, sink_hash), "change %d", i);
        cr_expect(SAME(base, o, map_hash) == (i == 2), "change %d", i);
    }
}

Test(identity, a_uid_is_hashed_as_it_is_and_shields_from_changes_upstream)
{
    variant v = plain;
    v.uid = "count words";
    outcome o = outcome_of(&v);
    XXH128_hash_t expected = XXH3_128bits("count words", strlen("count words"));
    cr_assert(o.reduce_hash[0] == expected.high64 && o.reduce_hash[1] == expected.low64);
    v.map_kind = "filter";
    outcome p = outcome_of(&v);
    cr_assert(SAME(o, p, reduce_hash) && SAME(o, p, sink_hash));
}

Test(identity, siblings_that_look_alike_are_told_apart_by_their_order)
{
    leat_env *env = new_env(1);
    leat_stream *s = source(env, "s");
    for (int i = 0; i < 100; i++)
        sink(map(s, "m"), "k");
    leati_job_graph *graph = job_graph_of(env);
    const leati_vertex *v = &graph->vertices[0];
    cr_assert(v->op_count == 201);
    for (uint32_t i = 0; i < v->op_count; i++)
        for (uint32_t j = 0; j < i; j++)
            cr_assert(!SAME(v->ops[i], v->ops[j], uid_hash));
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}
