// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "graph/job_graph.h"
#include "leat/leat.h"

TestSuite(difference, .timeout = 60);

#define NUMBER leat_type_scalar(LEAT_I64)

static int map_fn(leat_ctx *ctx, const void *in, void *out)
{
    return 0;
}

static int filter_fn(leat_ctx *ctx, const void *in)
{
    return 1;
}

static int sink_fn(leat_ctx *ctx, const void *in)
{
    return 0;
}

typedef struct variant {
    bool filters, longer, shuffles;
    const char *name;
    uint32_t parallelism;
    int64_t timeout_ms;
} variant;

static leati_job_graph *build(variant v, leat_env **env)
{
    cr_assert(leat_env_create(NULL, env) == LEAT_OK);
    leat_stream *s = leat_sequence(*env, 0, 9);
    s = v.filters ? leat_filter(s, filter_fn) : leat_map(s, map_fn, NUMBER);
    if (v.name)
        leat_name(s, v.name);
    s = v.shuffles ? leat_shuffle(s) : leat_rebalance(s);
    s = leat_map(s, map_fn, NUMBER);
    if (v.timeout_ms)
        leat_buffer_timeout(s, v.timeout_ms);
    if (v.longer)
        s = leat_map(s, map_fn, NUMBER);
    s = leat_sink(s, sink_fn);
    if (v.parallelism)
        leat_parallelism(s, v.parallelism);
    leati_job_graph *graph;
    cr_assert(leati_job_graph_create(*env, &graph) == LEAT_OK);
    return graph;
}

// The difference of two variants, the other one decoded from its bytes, as a job manager has it.
static const char *differ(variant a, variant b)
{
    static char text[300];
    char why[100];
    leat_env *env_a, *env_b;
    leati_job_graph *here = build(a, &env_a), *made = build(b, &env_b), *there;
    uint8_t *bytes;
    size_t size;
    cr_assert(leati_job_graph_encode(made, &bytes, &size) == LEAT_OK);
    cr_assert(leati_job_graph_decode(made->allocator, bytes, size, &there, why, sizeof why) ==
              LEAT_OK);
    leati_job_graph_difference(here, there, text, sizeof text);
    cr_assert((text[0] == '\0') == (strcmp(here->digest, there->digest) == 0));
    leati_free(made->allocator, bytes);
    leati_job_graph_destroy(&there);
    leati_job_graph_destroy(&made);
    leati_job_graph_destroy(&here);
    leat_env_destroy(&env_a);
    leat_env_destroy(&env_b);
    return text;
}

Test(difference, equal_graphs_have_none)
{
    cr_assert_str_eq(differ((variant){0}, (variant){0}), "");
}

Test(difference, another_operator)
{
    cr_assert_str_eq(differ((variant){0}, (variant){.filters = true}),
                     "operator 2 is \"map\" (map) here and \"filter\" (filter) there");
}

Test(difference, another_name_or_parallelism)
{
    cr_assert_str_eq(differ((variant){.name = "a"}, (variant){.name = "b"}),
                     "operator 2, \"a\": its name is \"a\" here and \"b\" there");
    cr_assert_str_eq(differ((variant){.parallelism = 2}, (variant){.parallelism = 3}),
                     "operator 4, \"sink\": its parallelism is 2 here and 3 there");
}

Test(difference, an_operator_more)
{
    cr_assert_str_eq(differ((variant){.longer = true}, (variant){0}),
                     "operator 4 is \"map\" (map) here and \"sink\" (sink) there");
    cr_assert_str_eq(differ((variant){0}, (variant){.longer = true}),
                     "operator 4 is \"sink\" (sink) here and \"map\" (map) there");
}

Test(difference, another_exchange)
{
    cr_assert_str_eq(differ((variant){0}, (variant){.shuffles = true}),
                     "the exchange from \"map\" to \"map\" is REBALANCE here and SHUFFLE there");
}

Test(difference, a_short_buffer_gets_what_fits)
{
    char text[9];
    leat_env *env_a, *env_b;
    leati_job_graph *a = build((variant){0}, &env_a),
                    *b = build((variant){.filters = true}, &env_b);
    leati_job_graph_difference(a, b, text, sizeof text);
    cr_assert_str_eq(text, "operator");
    leati_job_graph_difference(a, b, text, 0);
    leati_job_graph_destroy(&a);
    leati_job_graph_destroy(&b);
    leat_env_destroy(&env_a);
    leat_env_destroy(&env_b);
}
