// SPDX-License-Identifier: Apache-2.0
// The operators of one task, linked into a tree. Everything here runs on the task's thread, except
// create and destroy.
#ifndef LEATI_RUNTIME_CHAIN_H
#define LEATI_RUNTIME_CHAIN_H

#include "graph/job_graph.h"
#include "leat/operator.h"

typedef struct leati_task leati_task;

// The context of one operator in one subtask.
struct leat_ctx {
    leati_task *task;
    const leati_node *node;
    leat_operator *op; // NULL before it was made
    _Atomic(struct leati_metric *) metrics; // what user functions registered: runtime/metrics.h
};

// A record writer of the task, and which operator of the chain it serves.
typedef struct leati_chain_exit {
    uint32_t from_op;
    leat_operator *writer;
} leati_chain_exit;

typedef struct leati_chain {
    const leat_allocator *allocator;
    const leati_vertex *vertex;
    uint32_t count;
    const bool *stopping;     // atomic, of the job
    leat_ctx *ctx;            // one an operator, parents before children
    leat_out *outs;           // outs[i]: what operator i emits to
    leat_operator **branches; // fan-outs made by build, to be disposed
    uint32_t branch_count;
} leati_chain;

// Makes the contexts; the operators themselves are made by build.
LEAT_MUST_USE leat_err leati_chain_init(leati_chain *chain, const leat_allocator *allocator,
                                        leati_task *task, const leati_vertex *vertex,
                                        const bool *stopping);
void leati_chain_fini(leati_chain *chain);
// Asks the factories for the operators, head first, links them and their exits, and opens them from
// the tail to the head.
LEAT_MUST_USE leat_err leati_chain_open(leati_chain *chain, const leati_chain_exit *exits,
                                        uint32_t exit_count);
// What feeds the head; once the chain is open.
leat_out leati_chain_entry(leati_chain *chain);
// One operator's end of input; LEAT_EAGAIN: call again when output is available. `begun` says that
// end_input has been called.
LEAT_MUST_USE leat_err leati_chain_finish(leati_chain *chain, uint32_t op, bool *begun);
LEAT_MUST_USE leat_err leati_chain_flush(leati_chain *chain);
bool leati_chain_can_flush(const leati_chain *chain);
LEAT_MUST_USE leat_err leati_chain_close(leati_chain *chain);
// Disposes whatever was made. Idempotent.
void leati_chain_dispose(leati_chain *chain);

static inline leat_operator *leati_chain_head(const leati_chain *chain)
{
    return chain->ctx[0].op;
}

#endif
