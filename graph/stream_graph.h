// SPDX-License-Identifier: Apache-2.0
// The stream graph: what the builder calls have described so far. Pure data; a node is an operator,
// an edge carries records to it. Unions and partitionings are no nodes: they decorate the edges of
// whatever consumes them.
#ifndef LEATI_GRAPH_STREAM_GRAPH_H
#define LEATI_GRAPH_STREAM_GRAPH_H

#include "base/export.h"
#include "leat/cache.h"
#include "leat/env.h"
#include "leat/operator.h"
#include "leat/record.h"
#include "leat/reject.h"
#include "leat/side_output.h"
#include "leat/stream.h"

// Values are frozen: they enter digests and the msgpack form.
typedef enum leati_partitioner {
    LEATI_PARTITION_DEFAULT =
        0, // forward if the parallelisms are equal, else rebalance; never in a job graph
    LEATI_PARTITION_FORWARD = 1,
    LEATI_PARTITION_REBALANCE = 2,
    LEATI_PARTITION_RESCALE = 3,
    LEATI_PARTITION_SHUFFLE = 4,
    LEATI_PARTITION_BROADCAST = 5,
    LEATI_PARTITION_GLOBAL = 6,
    LEATI_PARTITION_HASH = 7,
    LEATI_PARTITION_CUSTOM = 8,
} leati_partitioner;

typedef enum leati_chaining {
    LEATI_CHAIN_ALWAYS = 0,
    LEATI_CHAIN_HEAD = 1,
    LEATI_CHAIN_NEVER = 2,
    LEATI_CHAIN_HEAD_WITH_SOURCES = 3,
} leati_chaining;

// How the key of a record is found: chosen fields of it, or a user function's result over all
// fields of the key type.
typedef struct leati_key_selector {
    leat_key fields;           // over the record's type, or over the key type when `fn` is set
    leat_key_fn fn;            // NULL for fields
    const leat_type *key_type; // with fn
    const char *text;          // "word" or "<function>", for pictures and the digest
} leati_key_selector;

typedef struct leati_node leati_node;

// One input of an operator. Its edges may come from several operators (a union), all with records
// of this structure; each decodes into this type's layout.
typedef struct leati_input {
    const leat_type *type;
    const leati_key_selector *key; // NULL unless keyed
} leati_input;

// A broadcast variable of an operator: a further input, which stands in no list of inputs. It is
// read before the operator opens.
typedef struct leati_variable {
    const char *name;
    const leat_type *type;
} leati_variable;

typedef struct leati_edge {
    leati_node *from;
    const char *side;      // the tag of the side output of `from`, or NULL for its main output
    const leat_type *type; // of the records, in the layout of `from`
    leati_node *to;
    uint32_t input; // which input of `to`; a union gives several edges with the same ordinal
    leati_partitioner partitioner;
    const leati_key_selector *key; // LEATI_PARTITION_HASH; over the layout of `type`
    leat_partition_fn custom;      // LEATI_PARTITION_CUSTOM
    bool blocking;                 // consumed when the producers have ended
    bool is_variable; // it feeds a broadcast variable of `to`; `input` counts its variables then
} leati_edge;

// Bits of leati_node.flags.
enum {
    LEATI_NODE_SOURCE = 1, // no input
    LEATI_NODE_SINK = 2,   // no output
    LEATI_NODE_LEGACY_SOURCE =
        4, // a blocking source function: heads its chain, no yielding operator joins it
    LEATI_NODE_YIELDING = 8,      // may yield inside a record (async)
    LEATI_NODE_NON_PARALLEL = 16, // parallelism other than 1 is a fault
    LEATI_NODE_NEEDS_KEY = 32,    // its input must be keyed
    LEATI_NODE_OWN_WORKER = 64,   // its tasks get a worker each
    // A source that its consumer, an operator of several inputs, absorbs whatever the chaining is.
    LEATI_NODE_FEEDBACK = 128,
    LEATI_NODE_OPEN_LOOP = 256, // the head of a loop that is not closed: a fault
    // Needs the process of the program that built the graph (its memory, its standard input), so
    // that it cannot run in a cluster.
    LEATI_NODE_LOCAL = 512,
    LEATI_NODE_ENDLESS = 1024, // a source or loop that is known never to end
};

// The tag of the side output that rejected records go to; tags of users contain no blank.
#define LEATI_REJECTS "rejected records"

struct leati_node {
    uint32_t id; // 1, 2, … in the order of creation
    uint32_t flags;
    const char *kind;         // "map", "source: text" …; static storage
    char *name;               // the user's, or the kind
    char *uid;                // NULL when not set
    char *slot_group;         // NULL: inherited
    uint32_t parallelism;     // 0: the environment's
    uint32_t max_parallelism; // 0: derived
    leati_chaining chaining;
    int64_t buffer_timeout_ms;       // INT64_MIN: the environment's
    const leat_type *in_type;        // NULL for sources
    const leat_type *out_type;       // NULL for sinks
    const leati_key_selector *key;   // of its keyed input, or NULL
    const leati_input *inputs;       // all of them; in_type and key above are those of the first
    uint32_t input_count;            // 0 for sources
    const leati_variable *variables; // broadcast variables
    uint32_t variable_count;
    leat_factory factory;
    void (*job_over)(const void *config); // or NULL; see leati_node_spec
    void *user_data;
    leat_open_fn open;   // the user's, or NULL
    leat_close_fn close; // the user's, or NULL
    leat_on_error_policy on_error;
    const leat_type *reject_type; // {error, record}; NULL unless somebody reads the rejects
    // Its parallelism is always that of this node (the two ends of a feedback loop); or NULL.
    const leati_node *peer;
    // What of the operator's settings shows in pictures and enters the digest ("updates", the paths
    // of a source …); may be NULL.
    char *detail;
};

// What a builder function of operators/ says about the operator that it adds.
typedef struct leati_node_spec {
    const char *kind; // static storage
    const char *name; // NULL: the kind
    uint32_t flags;
    const leat_type *out_type; // NULL for sinks
    leat_factory factory;
    // Called with the factory's `config` when a job made from the graph is over, however it ended,
    // also if none of its operators was ever made; before whoever waits for the job is told. On a
    // thread of the job; must not wait. May be NULL.
    void (*job_over)(const void *config);
    uint32_t parallelism; // 0: the environment's
    leati_chaining chaining;
    const char *detail; // copied; may be NULL
} leati_node_spec;

// Adds an operator that reads `in` (NULL only with LEATI_NODE_SOURCE) and returns the stream of
// what it emits; never NULL. Records a fault, which names the operator, when the input is missing,
// a sink's stream or of another environment, when LEATI_NODE_NEEDS_KEY is set and an input is not
// keyed, when there is no factory, and when the output type is missing (without LEATI_NODE_SINK) or
// unfit for records. On an inert input nothing is added and an inert stream comes back.
leat_stream *leati_graph_add(leat_env *env, leat_stream *in, const leati_node_spec *spec);
// The same with several inputs, whose ordinals are their places in the array.
leat_stream *leati_graph_add_inputs(leat_env *env, leat_stream *const *ins, uint32_t in_count,
                                    const leati_node_spec *spec);
// A side output of the operator that made `stream`, which is a stream of an operator, under a name
// that is copied.
leat_stream *leati_graph_side(leat_stream *stream, const char *side, const leat_type *type);
// The inert stream that stands for a fault already recorded; never NULL. Without an environment
// (the caller was given a NULL stream) it is a constant that takes no faults.
leat_stream *leati_graph_inert(leat_env *env);
// Keeps a run-time type alive as long as the environment; for types in operators' settings (those
// of nodes, inputs and keys are held already). False, and a fault, when out of memory.
bool leati_graph_hold_type(leat_env *env, const leat_type *type);
// Records a fault that names the operator which made `stream` (or, for unions and partitionings,
// the first one behind it), under the name that it has in the end: `"name" (kind, operator 4): …`.
void leati_graph_fault(leat_stream *stream, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);

// NULL for NULL and for the inert stream without an environment.
leat_env *leati_stream_env(const leat_stream *stream);
// The type of a stream's records, for a builder that is about to use it as an input. NULL on inert
// streams and on sinks (which records a fault): the caller returns leati_graph_inert then.
const leat_type *leati_stream_type(const leat_stream *stream);
// The selector of a keyed stream, or NULL.
const leati_key_selector *leati_stream_key(const leat_stream *stream);
// The node that made the stream, or NULL for a union, a partitioning or an inert stream.
leati_node *leati_stream_node(const leat_stream *stream);
// For messages: the operator whose records the stream carries, the first of a union; NULL when
// inert.
const leati_node *leati_stream_maker(const leat_stream *stream);

// Whether values of both types, which are of equal structure, lie alike in memory: types are equal
// by structure, so C structs may differ.
bool leati_type_same_layout(const leat_type *a, const leat_type *b);

// The nodes so far, in the order of creation.
size_t leati_graph_node_count(const leat_env *env);
leati_node *leati_graph_node(leat_env *env, size_t index);

// The code of the first fault that was made in building, or LEAT_OK; its text is leat_env_fault's
// first.
leat_err leati_fault_built(const leat_env *env);
// Records why a run of the graph went wrong. As what validation finds, it is forgotten by the next
// check of the graph, so that the environment can be run again.
void leati_env_run_failed(leat_env *env, leat_err err, const char *format, ...) LEAT_PRINTF(3, 4);

// For those who run the graph.
const leat_env_options *leati_env_options(const leat_env *env);
struct leati_config;
struct leati_config *leati_env_config(leat_env *env);

// --- files ---

// Relative paths of file sources, file sinks and cached files that are named from now on belong to
// this folder instead of the process's; messages show paths as they were written. Copied; NULL for
// the process's. LEAT_ENOMEM.
LEATI_SHARED leat_err leati_env_set_folder(leat_env *env, const char *folder);
// NULL: the process's.
const char *leati_env_folder(const leat_env *env);

// A file or directory that a job brings along (leat_cache_file).
typedef struct leati_cached_file {
    const char *name;
    const char *path;  // as the job function wrote it; NULL when it names no such file
    const char *found; // where it is for this process: an absolute path
    bool replaced;     // by leati_env_set_cache, which leaves `path` as it is
} leati_cached_file;

LEATI_SHARED size_t leati_env_cached_count(const leat_env *env);
LEATI_SHARED const leati_cached_file *leati_env_cached_at(const leat_env *env, size_t index);
// NULL when there is none of this name.
const leati_cached_file *leati_env_cached(const leat_env *env, const char *name);
// Says where a name is found, whatever the job function says of it before or after. LEAT_EINVAL
// (the name or path cannot be one) and LEAT_ENOMEM, which are faults of the environment too.
LEATI_SHARED leat_err leati_env_set_cache(leat_env *env, const char *name, const char *path);
// Whether all of them exist; otherwise records why not as what went wrong with a run.
leat_err leati_env_check_cached(leat_env *env);

#endif
