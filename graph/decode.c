// SPDX-License-Identifier: Apache-2.0
// Reads the msgpack form of a job graph from bytes that nobody vouches for. The form has no
// recursion, so a cursor of our own is simpler than msgpack-c's unpacker and bounds the memory: a
// count is believed only if the bytes that are left can hold so many elements at their smallest.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"
#include "graph/wire_impl.h"

// The smallest encodings: a header and one byte a field (seventeen more for the hash of an
// operator, which is a bin of 16), with at least one operator in a vertex.
#define SMALLEST_OP     (1 + LEATI_WIRE_OP_FIELDS + 17)
#define SMALLEST_VERTEX (1 + LEATI_WIRE_VERTEX_FIELDS + SMALLEST_OP)
#define SMALLEST_EDGE   (1 + LEATI_WIRE_EDGE_FIELDS)

// The first failure sticks; everything read after it is zero or empty.
typedef struct cursor {
    const uint8_t *at, *end;
    leati_arena *arena;
    leat_err err;
    char *why;
    size_t why_size;
} cursor;

static void fail(cursor *in, leat_err err, const char *format, ...) LEAT_PRINTF(3, 4);

static void fail(cursor *in, leat_err err, const char *format, ...)
{
    if (in->err != LEAT_OK)
        return;
    in->err = err;
    in->at = in->end;
    va_list args;
    va_start(args, format);
    if (in->why_size)
        vsnprintf(in->why, in->why_size, format, args);
    va_end(args);
}

static size_t left(const cursor *in)
{
    return (size_t)(in->end - in->at);
}

// A big-endian number of `size` bytes.
static uint64_t take_big(cursor *in, size_t size)
{
    if (left(in) < size) {
        fail(in, LEAT_ECORRUPT, "the bytes end early");
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | *in->at++;
    return value;
}

static uint8_t take_tag(cursor *in)
{
    return (uint8_t)take_big(in, 1);
}

static bool at_nil(cursor *in)
{
    if (left(in) == 0 || *in->at != 0xc0)
        return false;
    in->at++;
    return true;
}

static int64_t take_int(cursor *in, const char *what, int64_t lowest, int64_t highest)
{
    uint8_t tag = take_tag(in);
    uint64_t raw = 0;
    int64_t value = 0;
    if (tag <= 0x7f) {
        value = tag;
    } else if (tag >= 0xe0) {
        value = (int64_t)tag - 256;
    } else if (tag >= 0xcc && tag <= 0xcf) {
        raw = take_big(in, (size_t)1 << (tag - 0xcc));
        value = raw > INT64_MAX ? INT64_MAX : (int64_t)raw;
    } else if (tag >= 0xd0 && tag <= 0xd3) {
        unsigned unused = 64 - (8U << (tag - 0xd0));
        raw = take_big(in, (size_t)1 << (tag - 0xd0));
        value = (int64_t)(raw << unused) >> unused;
    } else {
        fail(in, LEAT_ECORRUPT, "%s is not a number", what);
    }
    if (in->err == LEAT_OK && (value < lowest || value > highest))
        fail(in, LEAT_ECORRUPT, "%s is out of range", what);
    return in->err == LEAT_OK ? value : 0;
}

static uint32_t take_u32(cursor *in, const char *what, uint32_t lowest, uint32_t highest)
{
    return (uint32_t)take_int(in, what, lowest, highest);
}

// The length in the header of a str or bin.
static size_t take_length(cursor *in, const char *what, bool text)
{
    uint8_t tag = take_tag(in), first = text ? 0xd9 : 0xc4;
    size_t size = 0;
    if (text && tag >= 0xa0 && tag <= 0xbf)
        size = tag & 0x1f;
    else if (tag >= first && tag <= first + 2)
        size = take_big(in, (size_t)1 << (tag - first));
    else
        fail(in, LEAT_ECORRUPT, "%s is not %s", what, text ? "a text" : "binary");
    if (in->err == LEAT_OK && size > left(in))
        fail(in, LEAT_ECORRUPT, "%s is longer than the bytes that are left", what);
    return in->err == LEAT_OK ? size : 0;
}

// A copy with a NUL, never NULL; texts with a NUL inside are refused.
static const char *take_text(cursor *in, const char *what, bool may_be_empty)
{
    size_t size = take_length(in, what, true);
    if (in->err != LEAT_OK)
        return "";
    if ((size == 0 && !may_be_empty) || memchr(in->at, '\0', size)) {
        fail(in, LEAT_ECORRUPT, "%s is %s", what, size ? "not a text" : "empty");
        return "";
    }
    const char *copy = leati_arena_strndup(in->arena, (const char *)in->at, size);
    in->at += size;
    if (!copy)
        fail(in, LEAT_ENOMEM, "out of memory");
    return copy ? copy : "";
}

static const char *take_optional_text(cursor *in, const char *what)
{
    return at_nil(in) ? NULL : take_text(in, what, false);
}

static uint32_t take_array(cursor *in, const char *what, size_t smallest_element)
{
    uint8_t tag = take_tag(in);
    uint64_t count = 0;
    if (tag >= 0x90 && tag <= 0x9f)
        count = tag & 0x0f;
    else if (tag == 0xdc || tag == 0xdd)
        count = take_big(in, tag == 0xdc ? 2 : 4);
    else
        fail(in, LEAT_ECORRUPT, "%s is not an array", what);
    if (in->err == LEAT_OK && count > left(in) / smallest_element)
        fail(in, LEAT_ECORRUPT, "%s has more elements than the bytes can hold", what);
    return in->err == LEAT_OK ? (uint32_t)count : 0;
}

static void take_fields(cursor *in, const char *what, uint32_t count)
{
    if (take_array(in, what, 1) != count)
        fail(in, LEAT_ECORRUPT, "%s has another number of fields", what);
}

static void *take_memory(cursor *in, size_t count, size_t size)
{
    void *memory = in->err == LEAT_OK ? leati_arena_calloc(in->arena, count, size) : NULL;
    if (!memory)
        fail(in, LEAT_ENOMEM, "out of memory");
    return memory;
}

// --- the graph ---

static void take_op(cursor *in, leati_chain_op *op)
{
    take_fields(in, "an operator", LEATI_WIRE_OP_FIELDS);
    op->node_id = take_u32(in, "an operator's number", 1, UINT32_MAX);
    op->parent = take_u32(in, "an operator's parent", 0, UINT32_MAX);
    op->kind = take_text(in, "an operator's kind", false);
    op->name = take_text(in, "an operator's name", false);
    op->uid = take_optional_text(in, "an operator's uid");
    op->detail = take_optional_text(in, "an operator's detail");
    if (take_length(in, "an operator's hash", false) != 16)
        fail(in, LEAT_ECORRUPT, "an operator's hash does not have 16 bytes");
    op->uid_hash[0] = take_big(in, 8);
    op->uid_hash[1] = take_big(in, 8);
    op->in_type = take_text(in, "an operator's input type", true);
    op->out_type = take_text(in, "an operator's output type", true);
    op->input_count = take_u32(in, "an operator's number of inputs", 0, LEATI_MAX_LEGS);
    op->flags = take_u32(in, "an operator's flags", 0, LEATI_NODE_BROKEN - 1);
    op->absorbed = !at_nil(in);
    if (op->absorbed)
        op->absorbed_input = take_u32(in, "an absorbed source's input", 0, LEATI_MAX_LEGS);
    op->side = take_text(in, "an operator's side output", true);
    uint32_t count = take_array(in, "an operator's broadcast variables", 1);
    op->variables = take_memory(in, count, sizeof(char *));
    for (; in->err == LEAT_OK && op->variable_count < count; op->variable_count++)
        op->variables[op->variable_count] = take_text(in, "a broadcast variable's name", false);
}

static void take_vertex(cursor *in, leati_vertex *vertex)
{
    take_fields(in, "a vertex", LEATI_WIRE_VERTEX_FIELDS);
    vertex->parallelism = take_u32(in, "a vertex's parallelism", 1, LEATI_MAX_PARALLELISM);
    vertex->max_parallelism =
        take_u32(in, "a vertex's max parallelism", vertex->parallelism, LEATI_MAX_PARALLELISM);
    vertex->slot_group = take_text(in, "a vertex's slot group", false);
    uint32_t count = take_array(in, "a vertex's operators", SMALLEST_OP);
    vertex->ops = take_memory(in, count, sizeof *vertex->ops);
    for (; in->err == LEAT_OK && vertex->op_count < count; vertex->op_count++)
        take_op(in, &vertex->ops[vertex->op_count]);
}

static void take_edge(cursor *in, leati_job_edge *edge)
{
    take_fields(in, "an exchange", LEATI_WIRE_EDGE_FIELDS);
    edge->from_vertex = take_u32(in, "an exchange's producer", 0, UINT32_MAX);
    edge->from_op = take_u32(in, "an exchange's operator", 0, UINT32_MAX);
    edge->to_vertex = take_u32(in, "an exchange's consumer", 0, UINT32_MAX);
    edge->input = take_u32(in, "an exchange's input", 0, LEATI_MAX_LEGS);
    edge->partitioner = (leati_partitioner)take_u32(
        in, "an exchange's partitioner", LEATI_PARTITION_FORWARD, LEATI_PARTITION_CUSTOM);
    edge->buffer_timeout_ms = take_int(in, "an exchange's buffer timeout", -1, 86400000);
    edge->key_text = take_text(in, "an exchange's key", true);
    edge->blocking = take_u32(in, "whether an exchange is blocking", 0, 1);
    edge->side = take_text(in, "an exchange's side output", true);
}

static void take_graph(cursor *in, leati_job_graph *graph)
{
    take_fields(in, "the job graph", LEATI_WIRE_GRAPH_FIELDS);
    if (strcmp(take_text(in, "the first field", true), LEATI_WIRE_MAGIC) != 0)
        fail(in, LEAT_ECORRUPT, "the bytes are not a job graph");
    take_u32(in, "the version of the form", LEATI_WIRE_VERSION, LEATI_WIRE_VERSION);
    graph->name = take_text(in, "the job's name", false);
    uint32_t vertices = take_array(in, "the vertices", SMALLEST_VERTEX);
    graph->vertices = take_memory(in, vertices, sizeof *graph->vertices);
    for (; in->err == LEAT_OK && graph->vertex_count < vertices; graph->vertex_count++) {
        graph->vertices[graph->vertex_count].id = graph->vertex_count;
        take_vertex(in, &graph->vertices[graph->vertex_count]);
    }
    uint32_t edges = take_array(in, "the exchanges", SMALLEST_EDGE);
    graph->edges = take_memory(in, edges, sizeof *graph->edges);
    for (; in->err == LEAT_OK && graph->edge_count < edges; graph->edge_count++)
        take_edge(in, &graph->edges[graph->edge_count]);
    if (left(in))
        fail(in, LEAT_ECORRUPT, "bytes follow the job graph");
}

leat_err leati_job_graph_decode(const leat_allocator *allocator, const uint8_t *bytes, size_t size,
                                leati_job_graph **graph, char *why, size_t why_size)
{
    leati_job_graph *made = NULL;
    cursor in = {.at = bytes, .end = bytes + size, .why = why, .why_size = why_size};
    if (leati_job_graph_alloc(allocator, &made, &in.arena) != LEAT_OK) {
        fail(&in, LEAT_ENOMEM, "out of memory");
        return in.err;
    }
    take_graph(&in, made);
    if (in.err == LEAT_OK) {
        const char *wrong = NULL;
        leat_err err = leati_job_graph_verify(made, &wrong);
        if (err != LEAT_OK)
            fail(&in, err, "%s", wrong);
    }
    if (in.err == LEAT_OK && (leati_job_graph_name_vertices(made, in.arena) != LEAT_OK ||
                              leati_job_graph_seal(made) != LEAT_OK))
        fail(&in, LEAT_ENOMEM, "out of memory");
    if (in.err == LEAT_OK)
        *graph = made;
    else
        leati_job_graph_destroy(&made);
    return in.err;
}
