// SPDX-License-Identifier: Apache-2.0
// What an operator is matched by across versions of a job: its uid, or else its place in the graph.
// The place is what the operator is and what its inputs are, recursively, and which one it is among
// siblings that look alike; not its number, name, parallelism or consumers, so that changes
// elsewhere leave it alone. docs/design/graph.md gives the bytes.
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "graph/graph_impl.h"

static void hash128(const void *data, size_t size, uint64_t hash[2])
{
    XXH128_hash_t h = XXH3_128bits(data, size);
    hash[0] = h.high64;
    hash[1] = h.low64;
}

static void put_u64(leati_strbuf *out, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (56 - 8 * i));
    leati_strbuf_append(out, bytes, sizeof bytes);
}

static void put_text(leati_strbuf *out, const char *text)
{
    leati_strbuf_append(out, text, strlen(text) + 1);
}

static void put_place(const leati_layout *layout, const leati_place *place, leati_strbuf *out)
{
    const char *type = leati_type_text(layout->arena, place->node->out_type);
    out->size = 0;
    out->failed |= !type;
    put_text(out, place->node->kind);
    put_text(out, type ? type : "");
    for (uint32_t i = 0; i < place->in_count; i++) {
        const leati_edge *edge = &layout->env->edges[layout->in_edges[place->first_in + i]];
        const leati_place *from = &layout->places[leati_place_index(edge->from)];
        put_u64(out, from->hash[0]);
        put_u64(out, from->hash[1]);
        put_u64(out, edge->input);
        // As written and not as resolved: that would change with the parallelism.
        put_u64(out, edge->partitioner);
        put_text(out, edge->key ? edge->key->text : "");
        if (edge->side)
            put_text(out, edge->side);
        if (edge->is_variable)
            put_text(out, place->node->variables[edge->input].name);
    }
}

// How many operators with the same bytes came before: an open-addressing table from the hash of the
// bytes to a count.
typedef struct sibling {
    uint64_t hash[2];
    uint64_t count; // 0: free
} sibling;

static uint64_t next_ordinal(sibling *table, size_t mask, const uint64_t hash[2])
{
    size_t at = (size_t)hash[1] & mask;
    while (table[at].count && (table[at].hash[0] != hash[0] || table[at].hash[1] != hash[1]))
        at = (at + 1) & mask;
    memcpy(table[at].hash, hash, sizeof table[at].hash);
    return table[at].count++;
}

leat_err leati_layout_identify(leati_layout *layout)
{
    size_t slots = 8;
    while (slots < 2 * (size_t)layout->node_count)
        slots *= 2;
    sibling *table = leati_arena_calloc(layout->arena, slots, sizeof *table);
    if (!table)
        return LEAT_ENOMEM;
    leati_strbuf bytes;
    leati_strbuf_init(&bytes, layout->arena->allocator);
    for (uint32_t i = 0; i < layout->order_count; i++) {
        leati_place *place = &layout->places[layout->order[i]];
        if (place->node->uid) {
            hash128(place->node->uid, strlen(place->node->uid), place->hash);
            continue;
        }
        uint64_t alike[2];
        put_place(layout, place, &bytes);
        hash128(bytes.data, bytes.size, alike);
        put_u64(&bytes, next_ordinal(table, slots - 1, alike));
        hash128(bytes.data, bytes.size, place->hash);
    }
    leat_err err = bytes.failed ? LEAT_ENOMEM : LEAT_OK;
    leati_strbuf_fini(&bytes);
    return err;
}
