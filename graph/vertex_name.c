// SPDX-License-Identifier: Apache-2.0
// Names of vertices: the chain's operators, "source: text -> flat_map"; a tree as "a -> (b, c)".
// Absorbed sources stand in front of the head they feed: "[source: a, source: b] => join -> map".
#include "base/alloc.h"
#include "graph/graph_impl.h"

// Operators that are chained to each; absorbed sources are no children.
static uint32_t tree_size(const leati_vertex *vertex, uint32_t *children)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < vertex->op_count; i++)
        children[i] = 0;
    for (uint32_t i = 0; i < vertex->op_count; i++) {
        if (vertex->ops[i].absorbed)
            continue;
        size++;
        if (i > 0)
            children[vertex->ops[i].parent]++;
    }
    return size;
}

static void put_absorbed(const leati_vertex *vertex, uint32_t tree, leati_strbuf *out)
{
    for (uint32_t i = tree; i < vertex->op_count; i++) {
        leati_strbuf_puts(out, i == tree ? "[" : ", ");
        leati_strbuf_puts(out, vertex->ops[i].name);
    }
    if (tree < vertex->op_count)
        leati_strbuf_puts(out, "] => ");
}

// Closes the brackets between an operator and its ancestor `up`.
static void close_brackets(const leati_vertex *vertex, const uint32_t *children, uint32_t from,
                           uint32_t up, leati_strbuf *out)
{
    while (from != up) {
        from = vertex->ops[from].parent;
        if (from != up && children[from] > 1)
            leati_strbuf_putc(out, ')');
    }
}

// The array is in preorder, so the text is written in one pass.
static void put_tree(const leati_vertex *vertex, uint32_t tree, const uint32_t *children,
                     leati_strbuf *out)
{
    leati_strbuf_puts(out, vertex->ops[0].name);
    for (uint32_t i = 1; i < tree; i++) {
        uint32_t parent = vertex->ops[i].parent;
        if (parent == i - 1) {
            leati_strbuf_puts(out, children[parent] > 1 ? " -> (" : " -> ");
        } else {
            close_brackets(vertex, children, i - 1, parent, out);
            leati_strbuf_puts(out, ", ");
        }
        leati_strbuf_puts(out, vertex->ops[i].name);
    }
    close_brackets(vertex, children, tree - 1, 0, out);
    if (children[0] > 1)
        leati_strbuf_putc(out, ')');
}

leat_err leati_job_graph_name_vertices(leati_job_graph *graph, leati_arena *arena)
{
    uint32_t longest = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        if (graph->vertices[v].op_count > longest)
            longest = graph->vertices[v].op_count;
    uint32_t *children = leati_calloc(graph->allocator, longest, sizeof *children);
    leati_strbuf text;
    leati_strbuf_init(&text, graph->allocator);
    text.failed = !children;
    for (uint32_t v = 0; v < graph->vertex_count && !text.failed; v++) {
        leati_vertex *vertex = &graph->vertices[v];
        uint32_t tree = tree_size(vertex, children);
        text.size = 0;
        put_absorbed(vertex, tree, &text);
        put_tree(vertex, tree, children, &text);
        vertex->name = text.failed ? NULL : leati_arena_strndup(arena, text.data, text.size);
        text.failed |= !vertex->name;
    }
    leati_free(graph->allocator, children);
    leat_err err = text.failed ? LEAT_ENOMEM : LEAT_OK;
    leati_strbuf_fini(&text);
    return err;
}
