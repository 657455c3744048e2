// SPDX-License-Identifier: Apache-2.0
// The job graph: operators chained into vertices, each of which runs as `parallelism` tasks, and
// the exchanges between them. This is what is deployed, printed, digested and sent to a cluster.
#ifndef LEATI_GRAPH_JOB_GRAPH_H
#define LEATI_GRAPH_JOB_GRAPH_H

#include "base/export.h"
#include "graph/stream_graph.h"
#include "leat/plan.h"

// One operator of a chain. Chains are trees, in preorder: every operator but the head has one
// parent, which comes before it in the array. One exception: an operator of several inputs that is
// the head may have absorbed sources (LEATI_CHAIN_HEAD_WITH_SOURCES). They come last in the array;
// the `parent` of such a source is the head, which it feeds.
typedef struct leati_chain_op {
    const leati_node *node; // NULL in a graph that was decoded from bytes
    uint32_t parent;        // index in the chain; the head is its own parent
    const char *side; // the tag of the parent's side output that feeds it; "" for the main one
    // Copies that do not need the node, so that a decoded graph can be printed and scheduled.
    uint32_t node_id;
    const char *kind, *name, *uid, *detail;
    uint64_t uid_hash[2];           // of the uid, or of the operator's place in the graph
    const char *in_type, *out_type; // printed; "" when there is none; of the first input
    uint32_t input_count;           // 0 for sources
    bool absorbed;                  // a source that feeds input `absorbed_input` of the head
    uint32_t absorbed_input;
    uint32_t flags; // LEATI_NODE_*
    // The names of its broadcast variables, which only a head has: inputs from `input_count` on.
    const char **variables;
    uint32_t variable_count;
} leati_chain_op;

typedef struct leati_vertex leati_vertex;

// An exchange: all channels from the subtasks of one vertex to those of another.
typedef struct leati_job_edge {
    uint32_t from_vertex, from_op; // from_op: index of the emitting operator in its chain
    const char *side;              // the tag of its side output; "" for the main one
    uint32_t to_vertex, input;
    leati_partitioner partitioner;
    int64_t buffer_timeout_ms;
    const char *key_text;          // "" unless hashed
    const leat_type *type;         // of the records; NULL in a decoded graph
    const leati_key_selector *key; // LEATI_PARTITION_HASH; NULL in a decoded graph
    leat_partition_fn custom;      // LEATI_PARTITION_CUSTOM; NULL in a decoded graph
    bool blocking;                 // consumed when the producers have ended
} leati_job_edge;

struct leati_vertex {
    uint32_t id;      // index in the job graph
    const char *name; // "source: text -> flat_map", a tree as "a -> (b, c)"
    uint32_t parallelism, max_parallelism;
    const char *slot_group;
    leati_chain_op *ops;
    uint32_t op_count;
};

typedef struct leati_job_graph {
    const leat_allocator *allocator;
    const char *name;
    leati_vertex *vertices; // in topological order: edges go from lower to higher ids
    uint32_t vertex_count;
    leati_job_edge *edges; // grouped by from_vertex, then from_op
    uint32_t edge_count;
    char digest[33];
} leati_job_graph;

// Validates the stream graph and chains it. Faults are recorded with the environment, all of them;
// the first one's code is returned.
LEATI_SHARED LEAT_MUST_USE leat_err leati_job_graph_create(leat_env *env, leati_job_graph **graph);
LEATI_SHARED void leati_job_graph_destroy(leati_job_graph **graph);

// The msgpack form. Encoding transfers a buffer to the caller (leati_free with the graph's
// allocator). Decoding refuses anything that is malformed or not a valid job graph (indices,
// cycles, trees), with a reason in `why`; a decoded graph holds no pointers to user code.
LEATI_SHARED LEAT_MUST_USE leat_err leati_job_graph_encode(const leati_job_graph *graph,
                                                           uint8_t **bytes, size_t *size);
LEATI_SHARED LEAT_MUST_USE leat_err leati_job_graph_decode(const leat_allocator *allocator,
                                                           const uint8_t *bytes, size_t size,
                                                           leati_job_graph **graph, char *why,
                                                           size_t why_size);

// Where two graphs differ first: "" or a sentence ("operator 3 is \"a\" (map) here and \"b\"
// (filter) there"), in which here is `a`. They need not have their nodes. What does not enter the
// digest does not count.
LEATI_SHARED void leati_job_graph_difference(const leati_job_graph *a, const leati_job_graph *b,
                                             char *text, size_t text_size);

// A picture of the graph as LEAT_PLAN_*; `*text` is freed with leati_free of `allocator`.
LEATI_SHARED LEAT_MUST_USE leat_err leati_job_graph_picture(const leati_job_graph *graph,
                                                            leat_plan_format format,
                                                            const leat_allocator *allocator,
                                                            char **text);

// The word for a partitioner in pictures: "FORWARD", "HASH" …; static storage.
LEATI_SHARED const char *leati_partitioner_name(leati_partitioner partitioner);

// All subtasks of all vertices.
LEATI_SHARED uint64_t leati_job_graph_tasks(const leati_job_graph *graph);
// Slots that the job needs: the sum over sharing groups of the largest parallelism in each.
LEATI_SHARED uint32_t leati_job_graph_slots(const leati_job_graph *graph);

// Pointwise wiring of one exchange with U producers and D consumers: the consumers [*first, *first
// + *count) that producer `index` feeds. All-to-all partitioners give all D.
LEATI_SHARED void leati_edge_consumers(leati_partitioner partitioner, uint32_t producers,
                                       uint32_t consumers, uint32_t index, uint32_t *first,
                                       uint32_t *count);
// The producers that consumer `index` reads.
LEATI_SHARED void leati_edge_producers(leati_partitioner partitioner, uint32_t producers,
                                       uint32_t consumers, uint32_t index, uint32_t *first,
                                       uint32_t *count);

#endif
