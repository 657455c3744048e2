// SPDX-License-Identifier: Apache-2.0
// The operators of one task, linked into a tree. Everything here runs on the task's thread, except
// create and destroy.
#ifndef LEATI_RUNTIME_CHAIN_H
#define LEATI_RUNTIME_CHAIN_H

#include "graph/job_graph.h"
#include "leat/operator.h"
#include "runtime/service.h"

typedef struct leati_task leati_task;

// A side output that somebody reads.
typedef struct leati_side {
    const char *name;
    const leat_type *type; // in the layout of those who read it
    const leat_type *same; // the last type of a tag that was found to be laid out alike, or NULL
    leat_out out;
} leati_side;

// The context of one operator in one subtask.
struct leat_ctx {
    const leat_allowance *allowance; // first (leat_out_available)
    leati_task *task;
    const leati_node *node;
    leat_operator *op; // NULL before it was made
    leati_side *sides;
    uint32_t side_count;
    uint32_t input;     // of an operator of several inputs: where the record at hand came in
    int64_t watermark;  // the largest that has reached the operator
    void *local;        // the user function's own
    bool ended;         // an absorbed source: it will emit nothing more
    bool opened;        // the user's open has succeeded and close is due
    leat_operator gate; // stands before an operator that may reject records (link.c)
    void *reject;       // a record of node->reject_type, or NULL
    leati_watch watch;  // of a source: the descriptor that it waits for
    leati_alarm alarm;  // the time that it waits for
    // The same two for whoever asks: written by the task and the service, read by anyone (relaxed).
    _Atomic bool watching;
    _Atomic int64_t alarm_ns; // INT64_MAX: none
    _Atomic uint64_t rejected;
    _Atomic(struct leati_metric *) metrics; // what user functions registered: runtime/metrics.h
};

// A record writer of the task, and which output of which operator of the chain it serves.
typedef struct leati_chain_exit {
    uint32_t from_op;
    const char *side; // "" for the main output
    const leat_type *type;
    leat_operator *writer;
    leat_some_fn some; // how the writer takes several records, or NULL
} leati_chain_exit;

// One input of a head that has several: it looks like an operator to whoever feeds it.
typedef struct leati_port {
    leat_operator base;
    leat_ctx *head;
    leat_out *out; // what the head emits to
    uint32_t input;
    bool timeless; // has no event time of its own (feedback): it holds up the last watermark only
    int64_t watermark; // the largest that came in
} leati_port;

typedef struct leati_chain {
    const leat_allocator *allocator;
    const leati_vertex *vertex;
    uint32_t count;
    uint32_t tree;                 // the operators before the absorbed sources
    const bool *stopping;          // atomic, of the job
    leat_ctx *ctx;                 // one an operator, parents before children
    leat_out *outs;                // outs[i]: what operator i emits to
    leati_port *ports;             // one an input, when the head has several
    struct leati_branch *branches; // made by linking
} leati_chain;

// Makes the contexts; the operators themselves are made by build.
LEAT_MUST_USE leat_err leati_chain_init(leati_chain *chain, const leat_allocator *allocator,
                                        leati_task *task, const leati_vertex *vertex,
                                        const bool *stopping, const leat_allowance *allowance);
void leati_chain_fini(leati_chain *chain);
// Asks the factories for the operators, head first, links them and their exits, and opens them from
// the tail to the head.
LEAT_MUST_USE leat_err leati_chain_open(leati_chain *chain, const leati_chain_exit *exits,
                                        uint32_t exit_count);
// What feeds an input of the head; once the chain is open.
leat_out leati_chain_entry(leati_chain *chain, uint32_t input);
// One operator's end of input; LEAT_EAGAIN: call again when output is available. `begun` says that
// end_input has been called.
LEAT_MUST_USE leat_err leati_chain_finish(leati_chain *chain, uint32_t op, bool *begun);
// One of several inputs of the head has ended.
LEAT_MUST_USE leat_err leati_chain_input_ended(leati_chain *chain, uint32_t input);
LEAT_MUST_USE leat_err leati_chain_flush(leati_chain *chain);
bool leati_chain_can_flush(const leati_chain *chain);
LEAT_MUST_USE leat_err leati_chain_close(leati_chain *chain);
// Disposes whatever was made. Idempotent.
void leati_chain_dispose(leati_chain *chain);

static inline leat_operator *leati_chain_head(const leati_chain *chain)
{
    return chain->ctx[0].op;
}

// --- link.c ---

// Joins the outputs of all operators to what reads them.
LEAT_MUST_USE leat_err leati_chain_link(leati_chain *chain, const leati_chain_exit *exits,
                                        uint32_t exit_count);
void leati_chain_unlink(leati_chain *chain);

// --- port.c ---

LEAT_MUST_USE leat_err leati_chain_make_ports(leati_chain *chain);

#endif
