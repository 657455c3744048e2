// SPDX-License-Identifier: Apache-2.0
// Random job graphs for stress_graphs: the description that a seed stands for, and the model that
// evaluates it, one record after the other, on plain arrays.
#ifndef TESTS_STRESS_RANDOM_GRAPH_H
#define TESTS_STRESS_RANDOM_GRAPH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_OPS    40
#define MAX_INPUTS 3
#define MAX_PAD    8192
#define TAGS       5000

// An item as the model has it.
typedef struct plain {
    int64_t key, value, tag;
} plain;

typedef struct list {
    plain *at;
    size_t count, capacity;
} list;

typedef enum kind {
    SEQUENCE,
    ITEMS,
    MAP,
    FLAT_MAP,
    FILTER,
    REDUCE,
    AGGREGATE,
    UNION,
    CO,    // a function for each of two inputs
    PARTS, // keeps some records, the others go to the side
    LOOP,  // records go round until they are done
    SINK,
    SIDE, // what a PARTS puts aside
} kind;
typedef enum route {
    DEFAULT,
    FORWARD,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    BROADCAST,
    GLOBAL,
    CUSTOM, // by a function of its own
} route;
typedef enum keying { BY_KEY, BY_PAD, BY_BOTH, BY_FUNCTION } keying;

typedef struct op {
    kind kind;
    int index;
    int inputs[MAX_INPUTS], input_count;
    int variable; // the operator whose records it has as a broadcast variable; -1: none
    route route;
    keying keying;
    uint32_t parallelism; // 0 for unions
    bool new_chain, alone, sets_timeout;
    bool own_worker;
    bool spooled;  // its inputs are blocking exchanges
    bool threaded; // ITEMS: a blocking source
    int64_t timeout_ms;
    bool final;
    bool rejects;                 // PARTS: by rejecting
    list aside;                   // PARTS: what the model puts aside
    uint32_t slow_every, slow_us; // 0: never
    bool blocking;                // declares that it sleeps
    bool fails;
    uint64_t salt;
    list model;     // what it emits; of updates the last values
    size_t updates; // how many records an updating fold emits
    pthread_mutex_t lock;
    list got; // under the lock: what a sink was given
} op;

typedef struct graph {
    uint64_t seed, random;
    op ops[MAX_OPS];
    int count;
    bool chaining, cancels, fails;
    uint32_t workers, segment_size, cancel_us, two_calls;
    int64_t timeout_ms;
    uint32_t buffers, floating, most, overdraft;
    uint64_t segments; // 0: as few as the settings allow
} graph;

void describe_graph(graph *g, uint64_t seed);
void free_graph(graph *g);

// Ends the program with the seed.
void wrong(const graph *g, const char *what, uint64_t a, uint64_t b);
void add_plain(list *l, plain p);
uint64_t mix(uint64_t x);
int compare_plain(const void *a, const void *b);
// By the fold's groups, then as compare_plain; for qsort_r, with the fold.
int compare_grouped(const void *a, const void *b, void *fold);
bool same_group(const plain *a, const plain *b, keying how);

// A pad is a string that spells out a tag; they have all sizes from nothing to several segments.
uint32_t pad_size(int64_t tag);
void pad_fill(int64_t tag, char *to);

// What the operators do, for the model and for the job.
plain from_number(const op *o, int64_t n);
plain mapped(const op *o, plain p, uint64_t nth);
// Whether a record goes round once more; it is changed then.
bool goes_round(const op *o, plain *p);
size_t multiplied(const op *o, plain p);
bool kept(const op *o, plain p);
int64_t larger(int64_t a, int64_t b);

#endif
