// SPDX-License-Identifier: Apache-2.0
// What the files of graph/ share: the environment's body, streams, faults, and the layout that is
// computed from a stream graph on its way to a job graph.
#ifndef LEATI_GRAPH_GRAPH_IMPL_H
#define LEATI_GRAPH_GRAPH_IMPL_H

#include <stdarg.h>

#include "base/arena.h"
#include "base/config.h"
#include "base/strbuf.h"
#include "graph/job_graph.h"
#include "graph/stream_graph.h"

// A flag beside LEATI_NODE_*: building the node went wrong and the fault is recorded, so that
// checks which would only find the consequences leave it alone.
enum { LEATI_NODE_BROKEN = 1 << 16 };

// One way by which records reach a stream. A stream is a list of these, so that unions and
// partitionings of any nesting need no nodes and no recursion.
typedef struct leati_leg {
    leati_node *node;
    const char *side;      // the tag of the side output, or NULL for the main one
    const leat_type *type; // of the records, in the layout in which `node` emits them
    leati_partitioner partitioner;
    const leati_key_selector *key; // LEATI_PARTITION_HASH
    leat_partition_fn custom;      // LEATI_PARTITION_CUSTOM
    bool blocking;
} leati_leg;

typedef enum leati_stream_kind {
    LEATI_STREAM_INERT = 0, // so that a zeroed stream is inert
    LEATI_STREAM_OPERATOR,
    LEATI_STREAM_UNION,
    LEATI_STREAM_PARTITIONING,
    LEATI_STREAM_SIDE, // a side output
} leati_stream_kind;

struct leat_stream {
    leat_env *env;
    leati_stream_kind kind;
    const leat_type *type;         // NULL for sinks, inert streams and after a fault
    const leati_key_selector *key; // of a keyed stream
    leati_leg *legs;
    size_t leg_count;
    leati_leg own; // where `legs` points when there is one
};

// An input of one operator has at most so many edges.
#define LEATI_MAX_LEGS        65536
#define LEATI_MAX_PARALLELISM 32768

typedef struct leati_fault {
    leat_err err;
    const leati_node *node; // NULL: of the whole graph
    char *message;
    char *text; // the message with the operator's name
} leati_fault;

// Running out of memory is a fault that needs none; it is listed first.
typedef struct leati_fault_list {
    leati_fault *items;
    size_t count, capacity;
    bool out_of_memory;
} leati_fault_list;

struct leat_env {
    leat_allocator allocator;
    leat_env_options options;
    leati_config config;
    leati_arena arena;
    const char *name;
    uint32_t max_parallelism; // 0: derived

    leati_node **nodes; // by id - 1
    size_t node_count, node_capacity;
    leati_edge *edges; // in order of creation
    size_t edge_count, edge_capacity;
    const leat_type **types; // held
    size_t type_count, type_capacity;
    leati_cached_file *cached;
    size_t cached_count, cached_capacity;
    const char *folder; // or NULL

    bool checking; // where a new fault goes
    leati_fault_list built;
    leati_fault_list checked; // by the last validation; replaced by the next
    leati_arena check_arena;  // texts of `checked`
    leat_stream inert;
};

// --- faults ---

// Records a fault about `node` (NULL: about the whole graph). The same fault about the same node is
// recorded once.
void leati_fault_add(leat_env *env, const leati_node *node, leat_err err, const char *format, ...)
    LEAT_PRINTF(4, 5);
void leati_fault_vadd(leat_env *env, const leati_node *node, leat_err err, const char *format,
                      va_list args) LEAT_PRINTF(4, 0);
void leati_fault_no_memory(leat_env *env);
// The node has got another name: texts are made anew.
void leati_fault_renamed(leat_env *env, const leati_node *node);
// Forgets the last validation's.
void leati_fault_forget_checked(leat_env *env);
// The first fault's code, or LEAT_OK.
leat_err leati_fault_first(const leat_env *env);
// A type as text in the arena that faults use, for messages; never NULL.
const char *leati_fault_type_text(leat_env *env, const leat_type *type);

// A type as text, "" for NULL; NULL when out of memory.
char *leati_type_text(leati_arena *arena, const leat_type *type);

// --- streams ---

// The node whose settings a call named `call` changes, or NULL after recording the fault.
leati_node *leati_stream_settable(leat_stream *stream, const char *call);

// Joins a stream to a broadcast variable of `node`. False when out of memory.
bool leati_graph_add_variable_edges(leat_env *env, leati_node *node, uint32_t variable,
                                    const leat_stream *values);

// --- from the stream graph to the job graph ---

#define LEATI_NONE UINT32_MAX

// What is found out about one node.
typedef struct leati_place {
    leati_node *node;
    uint32_t parallelism, max_parallelism;
    const char *slot_group;
    uint64_t hash[2];
    uint32_t first_in, in_count;   // in layout.in_edges
    uint32_t first_out, out_count; // in layout.out_edges
    uint32_t head;                 // index of its chain's head
    uint32_t chained_edge;         // the edge that joins it to its parent, or LEATI_NONE
    uint32_t absorbed_by;          // index of the head that has absorbed this source, or LEATI_NONE
    uint32_t vertex, op;
} leati_place;

typedef struct leati_layout {
    leat_env *env;
    leati_arena *arena;
    uint32_t node_count, edge_count;
    leati_place *places;             // by node id - 1
    uint32_t *in_edges, *out_edges;  // indices of env->edges grouped by node, in order
    leati_partitioner *partitioners; // of each edge, the default resolved
    bool *blocking;                  // of each edge: as asked for, or because of a variable
    uint32_t *order;                 // indices of places, inputs first
    uint32_t order_count;            // less than node_count when there is a cycle
} leati_layout;

static inline uint32_t leati_place_index(const leati_node *node)
{
    return node->id - 1;
}

// Orders the nodes and resolves what they inherit. LEAT_ENOMEM. Works for wrong graphs too.
leat_err leati_layout_init(leati_layout *layout, leat_env *env, leati_arena *arena);
// Decides which exchanges must be blocking lest a broadcast variable and an input wait for each
// other. LEAT_ENOMEM.
leat_err leati_layout_broadcasts(leati_layout *layout);
// Records variables, and inputs that are kept because of them, which never end. LEAT_ENOMEM.
leat_err leati_layout_validate_broadcasts(leati_layout *layout);
// Records all faults that show in a finished graph only.
void leati_layout_validate(leati_layout *layout);
// Decides chaining: fills head, chained_edge and absorbed_by. Needs a valid graph.
void leati_layout_chain(leati_layout *layout);
// Fills hash. LEAT_ENOMEM.
leat_err leati_layout_identify(leati_layout *layout);

// A zeroed job graph whose memory is the arena that comes with it; LEAT_ENOMEM.
leat_err leati_job_graph_alloc(const leat_allocator *allocator, leati_job_graph **graph,
                               leati_arena **arena);
// Writes the names of the vertices from those of their operators.
leat_err leati_job_graph_name_vertices(leati_job_graph *graph, leati_arena *arena);
// Whether a decoded graph could have been built. LEAT_ECORRUPT or LEAT_ENOMEM with a static
// sentence.
leat_err leati_job_graph_verify(const leati_job_graph *graph, const char **why);
// Fills the digest. LEAT_ENOMEM.
leat_err leati_job_graph_seal(leati_job_graph *graph);

// --- pictures ---

typedef struct leati_picture {
    const leati_job_graph *graph;
    uint32_t *first_edge; // by vertex, vertex_count + 1 of them: where its edges start
    uint32_t *in_edges;   // indices of edges grouped by to_vertex
    uint32_t *first_in;   // by vertex, as first_edge
} leati_picture;

void leati_picture_text(const leati_picture *picture, leati_strbuf *out);
void leati_picture_json(const leati_picture *picture, leati_strbuf *out);
void leati_picture_dot(const leati_picture *picture, leati_strbuf *out);

#endif
