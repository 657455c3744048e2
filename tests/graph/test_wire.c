// SPDX-License-Identifier: Apache-2.0
// The msgpack form: written as documented, read back to the same bytes and pictures, and refused
// when it is anything else.
#include <msgpack.h>
#include <stdio.h>

#include "graph/wire_impl.h"
#include "tests/graph/graph_testing.h"

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static bytes encoded(const leati_job_graph *graph)
{
    bytes b = {0};
    cr_assert(leati_job_graph_encode(graph, &b.data, &b.size) == LEAT_OK);
    return b;
}

static leati_job_graph *sample(leat_env **env)
{
    *env = new_env(2);
    leat_env_set_name(*env, "job \xc3\xa9");
    leat_stream *s = source(*env, "s"), *t = source(*env, "t"), *u = source(*env, "u");
    leat_stream *m = leat_uid(map(s, "m"), "uid of m");
    sink(leat_buffer_timeout(m, -1), "k");
    leat_stream *r = keyed_op(leat_key_by(union_of(m, t), ""), "r");
    leat_slot_group(join(r, u, "j", LEATI_CHAIN_HEAD_WITH_SOURCES), "g");
    leat_parallelism(sink(r, "l"), 5);
    leat_stream *a = leat_rebalance(source(*env, "a")), *b = source(*env, "b");
    leat_stream *absorbing = join(a, b, "absorbing", LEATI_CHAIN_HEAD_WITH_SOURCES);
    leat_broadcast_variable(absorbing, "table", source(*env, "v"));
    sink(absorbing, "n");
    return job_graph_of(*env);
}

static void expect_same_pictures(const leati_job_graph *a, const leati_job_graph *b)
{
    for (int format = LEAT_PLAN_TEXT; format <= LEAT_PLAN_DOT; format++) {
        char *x = NULL, *y = NULL;
        cr_assert(leati_job_graph_picture(a, (leat_plan_format)format, NULL, &x) == LEAT_OK);
        cr_assert(leati_job_graph_picture(b, (leat_plan_format)format, NULL, &y) == LEAT_OK);
        cr_expect_str_eq(x, y);
        free(x);
        free(y);
    }
}

Test(wire, decoding_gives_the_same_bytes_pictures_digest_and_no_pointers)
{
    leat_env *env;
    leati_job_graph *graph = sample(&env), *copy = NULL;
    bytes first = encoded(graph);
    char why[200] = "";
    cr_assert(leati_job_graph_decode(NULL, first.data, first.size, &copy, why, sizeof why) ==
                  LEAT_OK,
              "%s", why);
    bytes second = encoded(copy);
    cr_assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    cr_assert_str_eq(graph->digest, copy->digest);
    expect_same_pictures(graph, copy);
    for (uint32_t v = 0; v < copy->vertex_count; v++)
        for (uint32_t i = 0; i < copy->vertices[v].op_count; i++)
            cr_assert(!copy->vertices[v].ops[i].node);
    for (uint32_t e = 0; e < copy->edge_count; e++)
        cr_assert(!copy->edges[e].type && !copy->edges[e].key);
    free(first.data);
    free(second.data);
    leati_job_graph_destroy(&copy);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

// msgpack-c prints it in a JSON-like form, which is written here by hand; the hashes are replaced.
Test(wire, msgpack_c_reads_the_documented_form)
{
    static const char expected[] =
        "[\"leat-job-graph\", 3, \"j\", ["
        "[3, 128, \"default\", ["
        "[1, 0, \"source: test\", \"s\", nil, nil, \"#\", \"\", \"str\", 0, 1, nil, \"\", []]]], "
        "[3, 64, \"default\", ["
        "[2, 0, \"reduce\", \"r\", \"id\", nil, \"#\", \"str\", \"str\", 1, 32, nil, \"\", []], "
        "[3, 0, \"sink\", \"k\", nil, nil, \"#\", \"str\", \"\", 1, 2, nil, \"\", []]]]], "
        "[[0, 0, 1, 0, 7, -1, \"<record>\", 0, \"\"]]]";
    leat_env *env = new_env(3);
    leat_env_set_name(env, "j");
    leat_stream *s = leat_buffer_timeout(source(env, "s"), -1);
    leat_stream *r = leat_max_parallelism(keyed_op(leat_key_by(s, ""), "r"), 64);
    sink(leat_uid(r, "id"), "k");
    leati_job_graph *graph = job_graph_of(env);
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint32_t i = 0; i < graph->vertices[v].op_count; i++)
            memset(graph->vertices[v].ops[i].uid_hash, '#', 16);
    bytes b = encoded(graph);
    msgpack_unpacked result;
    msgpack_unpacked_init(&result);
    size_t offset = 0;
    cr_assert(msgpack_unpack_next(&result, (const char *)b.data, b.size, &offset) ==
              MSGPACK_UNPACK_SUCCESS);
    cr_assert(offset == b.size);
    char text[2048];
    msgpack_object_print_buffer(text, sizeof text, result.data);
    char *hash;
    while ((hash = strstr(text, "################")))
        memmove(hash + 1, hash + 16, strlen(hash + 16) + 1);
    cr_expect_str_eq(text, expected, "%s", text);
    msgpack_unpacked_destroy(&result);
    free(b.data);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

static leat_err decode(const uint8_t *data, size_t size, char *why, size_t why_size)
{
    // A block of its own, so that AddressSanitizer sees every over-read.
    uint8_t *block = malloc(size ? size : 1);
    memcpy(block, data, size);
    leati_job_graph *graph = NULL;
    leat_err err = leati_job_graph_decode(NULL, block, size, &graph, why, why_size);
    cr_assert((err == LEAT_OK) == (graph != NULL));
    leati_job_graph_destroy(&graph);
    free(block);
    return err;
}

Test(wire, every_truncation_and_every_extra_byte_is_refused)
{
    leat_env *env;
    leati_job_graph *graph = sample(&env);
    bytes b = encoded(graph);
    char why[200];
    for (size_t size = 0; size < b.size; size++)
        cr_assert(decode(b.data, size, why, sizeof why) == LEAT_ECORRUPT, "%zu", size);
    uint8_t *longer = malloc(b.size + 1);
    memcpy(longer, b.data, b.size);
    longer[b.size] = 0;
    cr_assert(decode(longer, b.size + 1, why, sizeof why) == LEAT_ECORRUPT);
    cr_assert(strstr(why, "follow"));
    free(longer);
    free(b.data);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

Test(wire, every_changed_byte_is_refused_or_read_without_harm)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0x90, 0xa0, 0xc0, 0xc4, 0xcc,
                                     0xcf, 0xd0, 0xd3, 0xd9, 0xdb, 0xdc, 0xdd, 0xdf, 0xff};
    leat_env *env;
    leati_job_graph *graph = sample(&env);
    bytes b = encoded(graph);
    char why[200];
    for (size_t at = 0; at < b.size; at++) {
        uint8_t kept = b.data[at];
        for (size_t v = 0; v < sizeof values; v++) {
            b.data[at] = values[v];
            leat_err err = decode(b.data, b.size, why, sizeof why);
            cr_assert(err == LEAT_OK || err == LEAT_ECORRUPT);
        }
        b.data[at] = kept;
    }
    free(b.data);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

// A count that the bytes cannot hold must be refused before any memory is asked for it.
typedef struct counting {
    size_t largest;
} counting;

static void *counting_alloc(void *user, size_t size)
{
    counting *c = user;
    c->largest = size > c->largest ? size : c->largest;
    return malloc(size);
}

static void *counting_realloc(void *user, void *ptr, size_t size)
{
    counting *c = user;
    c->largest = size > c->largest ? size : c->largest;
    return realloc(ptr, size);
}

static void counting_free(void *user, void *ptr)
{
    free(ptr);
}

Test(wire, a_boastful_count_costs_no_memory)
{
    static const uint8_t head[] = "\x95\xaeleat-job-graph\x03\xa1j\xdd\xff\xff\xff\xff";
    counting c = {0};
    leat_allocator allocator = {counting_alloc, counting_realloc, counting_free, &c};
    leati_job_graph *graph = NULL;
    char why[200];
    cr_assert(leati_job_graph_decode(&allocator, head, sizeof head - 1, &graph, why, sizeof why) ==
              LEAT_ECORRUPT);
    cr_assert(strstr(why, "vertices"));
    cr_assert(c.largest < 4096);
}

// --- graphs that are well-formed msgpack but not job graphs: one thing of a good graph changed ---

static void backward_edge(leati_job_graph *g)
{
    g->edges[0].from_vertex = g->edges[0].to_vertex;
}

static void edge_to_nowhere(leati_job_graph *g)
{
    g->edges[0].to_vertex = g->vertex_count;
}

static void edge_from_no_op(leati_job_graph *g)
{
    g->edges[0].from_op = 99;
}

static void edge_from_sink(leati_job_graph *g)
{
    for (uint32_t i = 0; i < g->vertices[0].op_count; i++)
        g->vertices[0].ops[i].out_type = "";
}

static void edge_to_no_input(leati_job_graph *g)
{
    g->edges[0].input = 7;
}

static void edge_of_other_type(leati_job_graph *g)
{
    g->vertices[g->edges[0].to_vertex].ops[0].in_type = "i64";
}

static void edge_by_default(leati_job_graph *g)
{
    g->edges[0].partitioner = LEATI_PARTITION_DEFAULT;
}

static void edge_with_unknown_partitioner(leati_job_graph *g)
{
    g->edges[0].partitioner = (leati_partitioner)9;
}

static void key_without_hash(leati_job_graph *g)
{
    g->edges[0].partitioner = LEATI_PARTITION_REBALANCE;
    g->edges[0].key_text = "word";
}

static void hash_without_key(leati_job_graph *g)
{
    g->edges[0].partitioner = LEATI_PARTITION_HASH;
    g->edges[0].key_text = "";
}

static void unequal_forward(leati_job_graph *g)
{
    g->edges[0].partitioner = LEATI_PARTITION_FORWARD;
    g->edges[0].key_text = "";
    g->vertices[g->edges[0].from_vertex].parallelism = 3;
}

static void edges_out_of_order(leati_job_graph *g)
{
    leati_job_edge first = g->edges[0];
    g->edges[0] = g->edges[g->edge_count - 1];
    g->edges[g->edge_count - 1] = first;
}

static void missing_edge(leati_job_graph *g)
{
    g->edge_count--;
}

static void no_vertices(leati_job_graph *g)
{
    g->vertex_count = g->edge_count = 0;
}

static void no_operators(leati_job_graph *g)
{
    g->vertices[0].op_count = 0;
}

static void parallelism_zero(leati_job_graph *g)
{
    g->vertices[0].parallelism = 0;
}

static void max_below(leati_job_graph *g)
{
    g->vertices[0].max_parallelism = 1;
}

static void own_parent(leati_job_graph *g)
{
    g->vertices[0].ops[1].parent = 1;
}

static void late_parent(leati_job_graph *g)
{
    g->vertices[0].ops[1].parent = 2;
}

static void head_with_parent(leati_job_graph *g)
{
    g->vertices[0].ops[0].parent = 1;
}

static void chained_source(leati_job_graph *g)
{
    g->vertices[0].ops[1].input_count = 0;
    g->vertices[0].ops[1].in_type = "";
}

static void chain_of_other_type(leati_job_graph *g)
{
    g->vertices[0].ops[1].in_type = "bool";
}

static void same_number(leati_job_graph *g)
{
    g->vertices[0].ops[1].node_id = g->vertices[0].ops[0].node_id;
}

static void empty_name(leati_job_graph *g)
{
    g->vertices[0].ops[0].name = "";
}

static void head_absorbed(leati_job_graph *g)
{
    g->vertices[0].ops[0].absorbed = true;
}

static void absorbed_by_one_input(leati_job_graph *g)
{
    g->vertices[0].ops[1].absorbed = true;
}

static void head_behind_a_side_output(leati_job_graph *g)
{
    g->vertices[0].ops[0].side = "late";
}

static void broken_flag(leati_job_graph *g)
{
    g->vertices[0].ops[0].flags = LEATI_NODE_BROKEN;
}

static void bad_timeout(leati_job_graph *g)
{
    g->edges[0].buffer_timeout_ms = -2;
}

static leati_job_edge *edge_of_variable(leati_job_graph *g)
{
    for (uint32_t e = 0; e < g->edge_count; e++)
        if (g->edges[e].input >= g->vertices[g->edges[e].to_vertex].ops[0].input_count)
            return &g->edges[e];
    cr_assert(false, "no edge feeds a broadcast variable");
    return NULL;
}

static void variable_by_another_way(leati_job_graph *g)
{
    edge_of_variable(g)->partitioner = LEATI_PARTITION_REBALANCE;
}

static void variable_without_an_edge(leati_job_graph *g)
{
    static const char *names[] = {"table", "other"};
    leati_chain_op *head = &g->vertices[edge_of_variable(g)->to_vertex].ops[0];
    head->variables = names;
    head->variable_count = 2;
}

static void edge_to_a_variable_too_many(leati_job_graph *g)
{
    edge_of_variable(g)->input++;
}

static void variable_inside_a_chain(leati_job_graph *g)
{
    static const char *names[] = {"table"};
    g->vertices[0].ops[1].variables = names;
    g->vertices[0].ops[1].variable_count = 1;
}

static void variable_of_a_source(leati_job_graph *g)
{
    static const char *names[] = {"table"};
    g->vertices[0].ops[0].variables = names;
    g->vertices[0].ops[0].variable_count = 1;
}

static void variable_without_a_name(leati_job_graph *g)
{
    g->vertices[edge_of_variable(g)->to_vertex].ops[0].variables[0] = "";
}

Test(wire, what_could_not_have_been_built_is_refused)
{
    static void (*const changes[])(leati_job_graph *) = {
        backward_edge,
        edge_to_nowhere,
        edge_from_no_op,
        edge_from_sink,
        edge_to_no_input,
        edge_of_other_type,
        edge_by_default,
        edge_with_unknown_partitioner,
        key_without_hash,
        hash_without_key,
        unequal_forward,
        edges_out_of_order,
        missing_edge,
        no_vertices,
        no_operators,
        parallelism_zero,
        max_below,
        own_parent,
        late_parent,
        head_with_parent,
        chained_source,
        chain_of_other_type,
        same_number,
        empty_name,
        head_absorbed,
        absorbed_by_one_input,
        broken_flag,
        bad_timeout,
        head_behind_a_side_output,
        variable_by_another_way,
        variable_without_an_edge,
        edge_to_a_variable_too_many,
        variable_inside_a_chain,
        variable_of_a_source,
        variable_without_a_name,
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        leat_env *env;
        leati_job_graph *graph = sample(&env);
        changes[i](graph);
        bytes b = encoded(graph);
        char why[200] = "";
        cr_expect(decode(b.data, b.size, why, sizeof why) == LEAT_ECORRUPT, "change %zu", i);
        cr_expect(strlen(why) > 0);
        free(b.data);
        leati_job_graph_destroy(&graph);
        leat_env_destroy(&env);
    }
}
