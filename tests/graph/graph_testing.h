// SPDX-License-Identifier: Apache-2.0
// Tiny operators for tests of graphs: nothing ever runs, so a factory that cannot create is enough.
#ifndef TESTS_GRAPH_GRAPH_TESTING_H
#define TESTS_GRAPH_GRAPH_TESTING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_impl.h"
#include "leat/leat.h"

#define UNUSED __attribute__((unused))

UNUSED static leat_err refuse_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    return LEAT_ESTATE;
}

UNUSED static const leat_type *str_type(void)
{
    return leat_type_scalar(LEAT_STR);
}

UNUSED static leat_env *new_env(uint32_t parallelism)
{
    leat_env *env = NULL;
    leat_err err = leat_env_create(NULL, &env);
    cr_assert(err == LEAT_OK);
    leat_env_set_parallelism(env, parallelism);
    return env;
}

// An operator with its own choice of flags, strategy and output type.
UNUSED static leat_stream *add(leat_env *env, leat_stream *in, const char *kind, const char *name,
                               uint32_t flags, leati_chaining chaining, const leat_type *out)
{
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = kind,
                                              .name = name,
                                              .flags = flags,
                                              .out_type = out,
                                              .factory = {.create = refuse_create},
                                              .chaining = chaining});
}

UNUSED static leat_stream *source_of(leat_env *env, const char *name, const leat_type *type)
{
    return add(env, NULL, "source: test", name, LEATI_NODE_SOURCE, LEATI_CHAIN_ALWAYS, type);
}

UNUSED static leat_stream *source(leat_env *env, const char *name)
{
    return source_of(env, name, str_type());
}

UNUSED static leat_stream *legacy_source(leat_env *env, const char *name)
{
    return add(env, NULL, "source: legacy", name, LEATI_NODE_SOURCE | LEATI_NODE_LEGACY_SOURCE,
               LEATI_CHAIN_HEAD, str_type());
}

UNUSED static leat_stream *map(leat_stream *in, const char *name)
{
    return add(leati_stream_env(in), in, "map", name, 0, LEATI_CHAIN_ALWAYS, str_type());
}

UNUSED static leat_stream *keyed_op(leat_stream *in, const char *name)
{
    return add(leati_stream_env(in), in, "reduce", name, LEATI_NODE_NEEDS_KEY, LEATI_CHAIN_ALWAYS,
               str_type());
}

UNUSED static leat_stream *sink(leat_stream *in, const char *name)
{
    return add(leati_stream_env(in), in, "sink", name, LEATI_NODE_SINK, LEATI_CHAIN_ALWAYS, NULL);
}

UNUSED static leat_stream *join(leat_stream *a, leat_stream *b, const char *name,
                                leati_chaining chaining)
{
    leat_stream *ins[] = {a, b};
    return leati_graph_add_inputs(leati_stream_env(a), ins, 2,
                                  &(leati_node_spec){.kind = "join",
                                                     .name = name,
                                                     .out_type = str_type(),
                                                     .factory = {.create = refuse_create},
                                                     .chaining = chaining});
}

UNUSED static leat_stream *union_of(leat_stream *a, leat_stream *b)
{
    return leat_union((leat_stream *[]){a, b}, 2);
}

UNUSED static leati_job_graph *job_graph_of(leat_env *env)
{
    leati_job_graph *graph = NULL;
    leat_err err = leati_job_graph_create(env, &graph);
    cr_assert(err == LEAT_OK, "%s", leat_env_fault_count(env) ? leat_env_fault(env, 0) : "?");
    return graph;
}

// The vertices' names with " | " between.
UNUSED static void print_vertices(const leati_job_graph *graph, leati_strbuf *out)
{
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        leati_strbuf_puts(out, v ? " | " : "");
        leati_strbuf_puts(out, graph->vertices[v].name);
    }
}

// The exchanges as "from>to PARTITIONER" by the names of operators, with ", " between.
UNUSED static void print_edges(const leati_job_graph *graph, leati_strbuf *out)
{
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const leati_job_edge *edge = &graph->edges[e];
        leati_strbuf_printf(out, "%s%s>%s %s", e ? ", " : "",
                            graph->vertices[edge->from_vertex].ops[edge->from_op].name,
                            graph->vertices[edge->to_vertex].ops[0].name,
                            leati_partitioner_name(edge->partitioner));
        if (edge->key_text[0])
            leati_strbuf_printf(out, "(%s)", edge->key_text);
    }
}

#endif
