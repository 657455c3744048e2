// SPDX-License-Identifier: Apache-2.0
#include "runtime/chain.h"

#include "base/alloc.h"
#include "runtime/context.h"

// --- ends and branches ---

// Where a sink's output leads.
static leat_err refuse(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_ESTATE;
}

// Where an output leads that nobody reads.
static leat_err drop(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_OK;
}

static leat_err swallow_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    return LEAT_OK;
}

static void dispose_nothing(leat_operator *self)
{
}

static const leat_operator_ops sink_end_ops = {
    .kind = "end",
    .element = refuse,
    .watermark = swallow_watermark,
    .dispose = dispose_nothing,
};

static const leat_operator_ops loose_end_ops = {
    .kind = "end",
    .element = drop,
    .watermark = swallow_watermark,
    .dispose = dispose_nothing,
};

// Immutable, so these serve all chains.
static leat_operator end_of_sink = {.ops = &sink_end_ops};
static leat_operator loose_end = {.ops = &loose_end_ops};

// One output that leads to several: each gets every element.
typedef struct branch {
    leat_operator base;
    const leat_allocator *allocator;
    uint32_t count;
    leat_out outs[];
} branch;

static leat_err branch_element(leat_operator *self, const void *record, leat_out *out)
{
    branch *b = (branch *)self;
    for (uint32_t i = 0; i < b->count; i++) {
        leat_err err = leat_collect(&b->outs[i], record);
        if (LEAT_UNLIKELY(err))
            return err;
    }
    return LEAT_OK;
}

static leat_err branch_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    branch *b = (branch *)self;
    for (uint32_t i = 0; i < b->count; i++) {
        leat_err err = leat_emit_watermark(&b->outs[i], watermark);
        if (err)
            return err;
    }
    return LEAT_OK;
}

static void branch_dispose(leat_operator *self)
{
    branch *b = (branch *)self;
    leati_free(b->allocator, b);
}

static const leat_operator_ops branch_ops = {
    .kind = "branch",
    .element = branch_element,
    .watermark = branch_watermark,
    .dispose = branch_dispose,
};

leat_err leat_emit_watermark(leat_out *out, int64_t watermark)
{
    leat_operator *op = out->target;
    if (op->ops->watermark)
        return op->ops->watermark(op, watermark, out->next);
    return leat_emit_watermark(out->next, watermark);
}

// --- making ---

leat_err leati_chain_init(leati_chain *chain, const leat_allocator *allocator, leati_task *task,
                          const leati_vertex *vertex, const bool *stopping)
{
    *chain = (leati_chain){
        .allocator = allocator, .vertex = vertex, .count = vertex->op_count, .stopping = stopping};
    chain->ctx = leati_calloc(allocator, chain->count, sizeof *chain->ctx);
    chain->outs = leati_calloc(allocator, chain->count, sizeof *chain->outs);
    chain->branches = leati_calloc(allocator, chain->count, sizeof *chain->branches);
    if (!chain->ctx || !chain->outs || !chain->branches)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < chain->count; i++)
        chain->ctx[i] = (leat_ctx){.task = task, .node = vertex->ops[i].node};
    return LEAT_OK;
}

void leati_chain_fini(leati_chain *chain)
{
    leati_chain_dispose(chain);
    leati_free(chain->allocator, chain->ctx);
    leati_free(chain->allocator, chain->outs);
    leati_free(chain->allocator, chain->branches);
    chain->ctx = NULL;
    chain->outs = NULL;
    chain->branches = NULL;
    chain->count = 0;
}

static leat_err create_operators(leati_chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        leat_ctx *ctx = &chain->ctx[i];
        const leat_factory *factory = &ctx->node->factory;
        leat_operator *op = NULL;
        leat_err err = factory->create(factory, ctx, &op);
        if (err)
            return leati_ctx_error(ctx, err, "the operator could not be created: %s",
                                   leat_err_message(err));
        op->ctx = ctx;
        ctx->op = op;
    }
    return LEAT_OK;
}

static uint32_t count_consumers(const leati_chain *chain, uint32_t op,
                                const leati_chain_exit *exits, uint32_t exit_count)
{
    uint32_t count = 0;
    for (uint32_t i = op + 1; i < chain->count; i++)
        count += chain->vertex->ops[i].parent == op;
    for (uint32_t i = 0; i < exit_count; i++)
        count += exits[i].from_op == op;
    return count;
}

static leat_out out_to(const leati_chain *chain, leat_operator *target, leat_out *next)
{
    return (leat_out){.element = target->ops->element,
                      .target = target,
                      .next = next,
                      .stopping = chain->stopping};
}

leat_out leati_chain_entry(leati_chain *chain)
{
    return out_to(chain, leati_chain_head(chain), &chain->outs[0]);
}

static leat_err link_operator(leati_chain *chain, uint32_t op, const leati_chain_exit *exits,
                              uint32_t exit_count)
{
    uint32_t consumers = count_consumers(chain, op, exits, exit_count);
    if (consumers == 0) {
        chain->outs[op] =
            out_to(chain, chain->ctx[op].node->out_type ? &loose_end : &end_of_sink, NULL);
        return LEAT_OK;
    }
    leat_out *to = &chain->outs[op];
    if (consumers > 1) {
        branch *b = leati_calloc(chain->allocator, 1, sizeof *b + consumers * sizeof *b->outs);
        if (!b)
            return LEAT_ENOMEM;
        b->base.ops = &branch_ops;
        b->allocator = chain->allocator;
        b->count = consumers;
        chain->branches[chain->branch_count++] = &b->base;
        chain->outs[op] = out_to(chain, &b->base, NULL);
        to = b->outs;
    }
    for (uint32_t i = op + 1; i < chain->count; i++)
        if (chain->vertex->ops[i].parent == op)
            *to++ = out_to(chain, chain->ctx[i].op, &chain->outs[i]);
    for (uint32_t i = 0; i < exit_count; i++)
        if (exits[i].from_op == op)
            *to++ = out_to(chain, exits[i].writer, NULL);
    return LEAT_OK;
}

leat_err leati_chain_open(leati_chain *chain, const leati_chain_exit *exits, uint32_t exit_count)
{
    leat_err err = create_operators(chain);
    for (uint32_t i = 0; i < chain->count && !err; i++)
        err = link_operator(chain, i, exits, exit_count);
    // From the tail to the head, because an operator may emit while it opens.
    for (uint32_t i = chain->count; i-- > 0 && !err;) {
        leat_operator *op = chain->ctx[i].op;
        if (op->ops->open)
            err = op->ops->open(op);
        if (err)
            return leati_ctx_error(&chain->ctx[i], err, "open failed: %s", leat_err_message(err));
    }
    return err;
}

// --- ending ---

leat_err leati_chain_finish(leati_chain *chain, uint32_t index, bool *begun)
{
    leat_operator *op = chain->ctx[index].op;
    leat_err err = LEAT_OK;
    if (!*begun) {
        *begun = true;
        if (op->ops->end_input)
            err = op->ops->end_input(op, &chain->outs[index]);
        if (err)
            return leati_ctx_error(&chain->ctx[index], err, "end_input failed: %s",
                                   leat_err_message(err));
    }
    if (op->ops->finish)
        err = op->ops->finish(op, &chain->outs[index]);
    if (err && err != LEAT_EAGAIN)
        return leati_ctx_error(&chain->ctx[index], err, "finish failed: %s", leat_err_message(err));
    return err;
}

bool leati_chain_can_flush(const leati_chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++)
        if (chain->ctx[i].op->ops->flush)
            return true;
    return false;
}

leat_err leati_chain_flush(leati_chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        leat_operator *op = chain->ctx[i].op;
        leat_err err = op->ops->flush ? op->ops->flush(op) : LEAT_OK;
        if (err)
            return leati_ctx_error(&chain->ctx[i], err, "flush failed: %s", leat_err_message(err));
    }
    return LEAT_OK;
}

leat_err leati_chain_close(leati_chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        leat_operator *op = chain->ctx[i].op;
        leat_err err = op->ops->close ? op->ops->close(op) : LEAT_OK;
        if (err)
            return leati_ctx_error(&chain->ctx[i], err, "close failed: %s", leat_err_message(err));
    }
    return LEAT_OK;
}

void leati_chain_dispose(leati_chain *chain)
{
    for (uint32_t i = 0; chain->ctx && i < chain->count; i++) {
        leat_operator *op = chain->ctx[i].op;
        chain->ctx[i].op = NULL;
        if (op)
            op->ops->dispose(op);
    }
    for (uint32_t i = 0; i < chain->branch_count; i++)
        chain->branches[i]->ops->dispose(chain->branches[i]);
    chain->branch_count = 0;
}
