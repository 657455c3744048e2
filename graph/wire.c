// SPDX-License-Identifier: Apache-2.0
// The msgpack form of a job graph and its digest. Both sides of the form are documented in
// docs/design/graph.md; decode.c reads it.
#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "graph/graph_impl.h"
#include "graph/wire_impl.h"

// msgpack-c's own buffer takes memory from malloc; this one comes from the graph's allocator and
// remembers failures.
static int write_bytes(void *data, const char *bytes, size_t size)
{
    leati_strbuf *out = data;
    leati_strbuf_append(out, bytes, size);
    return out->failed ? -1 : 0;
}

static void put_text(msgpack_packer *to, const char *text)
{
    if (text)
        msgpack_pack_str_with_body(to, text, strlen(text));
    else
        msgpack_pack_nil(to);
}

static void put_hash(msgpack_packer *to, const uint64_t hash[2])
{
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(hash[i / 8] >> (56 - 8 * (i % 8)));
    msgpack_pack_bin_with_body(to, bytes, sizeof bytes);
}

static void put_op(msgpack_packer *to, const leati_chain_op *op)
{
    msgpack_pack_array(to, LEATI_WIRE_OP_FIELDS);
    msgpack_pack_uint32(to, op->node_id);
    msgpack_pack_uint32(to, op->parent);
    put_text(to, op->kind);
    put_text(to, op->name);
    put_text(to, op->uid);
    put_text(to, op->detail);
    put_hash(to, op->uid_hash);
    put_text(to, op->in_type);
    put_text(to, op->out_type);
    msgpack_pack_uint32(to, op->input_count);
    msgpack_pack_uint32(to, op->flags);
    if (op->absorbed)
        msgpack_pack_uint32(to, op->absorbed_input);
    else
        msgpack_pack_nil(to);
    put_text(to, op->side);
    msgpack_pack_array(to, op->variable_count);
    for (uint32_t i = 0; i < op->variable_count; i++)
        put_text(to, op->variables[i]);
}

static void put_vertex(msgpack_packer *to, const leati_vertex *vertex)
{
    msgpack_pack_array(to, LEATI_WIRE_VERTEX_FIELDS);
    msgpack_pack_uint32(to, vertex->parallelism);
    msgpack_pack_uint32(to, vertex->max_parallelism);
    put_text(to, vertex->slot_group);
    msgpack_pack_array(to, vertex->op_count);
    for (uint32_t i = 0; i < vertex->op_count; i++)
        put_op(to, &vertex->ops[i]);
}

static void put_edge(msgpack_packer *to, const leati_job_edge *edge)
{
    msgpack_pack_array(to, LEATI_WIRE_EDGE_FIELDS);
    msgpack_pack_uint32(to, edge->from_vertex);
    msgpack_pack_uint32(to, edge->from_op);
    msgpack_pack_uint32(to, edge->to_vertex);
    msgpack_pack_uint32(to, edge->input);
    msgpack_pack_uint32(to, (uint32_t)edge->partitioner);
    msgpack_pack_int64(to, edge->buffer_timeout_ms);
    put_text(to, edge->key_text);
    msgpack_pack_uint32(to, edge->blocking);
    put_text(to, edge->side);
}

// All but the job's name, which is for people and may differ between processes.
static void put_body(msgpack_packer *to, const leati_job_graph *graph)
{
    msgpack_pack_array(to, graph->vertex_count);
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        put_vertex(to, &graph->vertices[v]);
    msgpack_pack_array(to, graph->edge_count);
    for (uint32_t e = 0; e < graph->edge_count; e++)
        put_edge(to, &graph->edges[e]);
}

leat_err leati_job_graph_encode(const leati_job_graph *graph, uint8_t **bytes, size_t *size)
{
    leati_strbuf out;
    msgpack_packer to;
    leati_strbuf_init(&out, graph->allocator);
    msgpack_packer_init(&to, &out, write_bytes);
    msgpack_pack_array(&to, LEATI_WIRE_GRAPH_FIELDS);
    put_text(&to, LEATI_WIRE_MAGIC);
    msgpack_pack_uint32(&to, LEATI_WIRE_VERSION);
    put_text(&to, graph->name);
    put_body(&to, graph);
    size_t length = out.size;
    char *taken = leati_strbuf_take(&out);
    if (!taken)
        return LEAT_ENOMEM;
    *bytes = (uint8_t *)taken;
    *size = length;
    return LEAT_OK;
}

leat_err leati_job_graph_seal(leati_job_graph *graph)
{
    leati_strbuf out;
    msgpack_packer to;
    leati_strbuf_init(&out, graph->allocator);
    msgpack_packer_init(&to, &out, write_bytes);
    msgpack_pack_uint32(&to, LEATI_WIRE_VERSION);
    put_body(&to, graph);
    XXH128_hash_t hash = XXH3_128bits(out.data, out.failed ? 0 : out.size);
    leat_err err = out.failed ? LEAT_ENOMEM : LEAT_OK;
    leati_strbuf_fini(&out);
    snprintf(graph->digest, sizeof graph->digest, "%016" PRIx64 "%016" PRIx64, hash.high64,
             hash.low64);
    return err;
}
