// SPDX-License-Identifier: Apache-2.0
#include "runtime/chain.h"

#include "base/alloc.h"
#include "runtime/context.h"

// --- making ---

leat_err leati_chain_init(leati_chain *chain, const leat_allocator *allocator, leati_task *task,
                          const leati_vertex *vertex, const bool *stopping,
                          const leat_allowance *allowance)
{
    *chain = (leati_chain){
        .allocator = allocator, .vertex = vertex, .count = vertex->op_count, .stopping = stopping};
    chain->ctx = leati_calloc(allocator, chain->count, sizeof *chain->ctx);
    chain->outs = leati_calloc(allocator, chain->count, sizeof *chain->outs);
    if (!chain->ctx || !chain->outs)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < chain->count; i++) {
        leat_ctx *ctx = &chain->ctx[i];
        ctx->allowance = allowance;
        ctx->task = task;
        ctx->node = vertex->ops[i].node;
        ctx->watermark = LEAT_WATERMARK_MIN;
        atomic_store_explicit(&ctx->alarm_ns, INT64_MAX, memory_order_relaxed);
        chain->tree += !vertex->ops[i].absorbed;
        if (!ctx->node->reject_type)
            continue;
        ctx->reject = leati_calloc(allocator, 1, ctx->node->reject_type->size);
        if (!ctx->reject)
            return LEAT_ENOMEM;
    }
    return leati_chain_make_ports(chain);
}

void leati_chain_fini(leati_chain *chain)
{
    leati_chain_dispose(chain);
    for (uint32_t i = 0; chain->ctx && i < chain->count; i++)
        leati_free(chain->allocator, chain->ctx[i].reject);
    leati_free(chain->allocator, chain->ctx);
    leati_free(chain->allocator, chain->outs);
    leati_free(chain->allocator, chain->ports);
    *chain = (leati_chain){.allocator = chain->allocator};
}

// What an operator lacks that it cannot do without, or NULL.
static const char *lacks(const leat_operator *op, const leati_node *node)
{
    if (!op->ops)
        return "no table of hooks";
    if (!op->ops->dispose)
        return "no dispose hook";
    if (node->input_count == 0)
        return op->ops->poll ? NULL : "no poll hook";
    if (node->input_count == 1)
        return op->ops->element ? NULL : "no element hook";
    return op->ops->element_of ? NULL : "no element_of hook";
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
        const char *lack = op ? lacks(op, ctx->node) : "no operator";
        if (lack)
            return leati_ctx_error(ctx, LEAT_EINVAL, "its factory made %s%s",
                                   op ? "an operator with " : "", lack);
        op->ctx = ctx;
        ctx->op = op;
    }
    return LEAT_OK;
}

// The user's open comes before the operator's own, which may begin to work.
static leat_err open_operator(leat_ctx *ctx)
{
    if (ctx->node->open) {
        int result = ctx->node->open(ctx);
        if (result)
            return leati_ctx_user_failure(ctx, "open", result);
    }
    ctx->opened = true;
    leat_err err = ctx->op->ops->open ? ctx->op->ops->open(ctx->op) : LEAT_OK;
    return err ? leati_ctx_error(ctx, err, "open failed: %s", leat_err_message(err)) : LEAT_OK;
}

// Whoever emits while it opens must find the others open: first the tree from its leaves to the
// head, then the sources that feed the head.
leat_err leati_chain_open(leati_chain *chain, const leati_chain_exit *exits, uint32_t exit_count)
{
    leat_err err = create_operators(chain);
    if (!err)
        err = leati_chain_link(chain, exits, exit_count);
    for (uint32_t i = chain->tree; i-- > 0 && !err;)
        err = open_operator(&chain->ctx[i]);
    for (uint32_t i = chain->tree; i < chain->count && !err; i++)
        err = open_operator(&chain->ctx[i]);
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

leat_err leati_chain_input_ended(leati_chain *chain, uint32_t input)
{
    leat_operator *head = leati_chain_head(chain);
    leat_err err =
        head->ops->input_ended ? head->ops->input_ended(head, input, &chain->outs[0]) : LEAT_OK;
    return err ? leati_ctx_error(&chain->ctx[0], err, "the end of input %u failed: %s", input,
                                 leat_err_message(err))
               : LEAT_OK;
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

// The user's close, once.
static leat_err close_function(leat_ctx *ctx)
{
    bool due = ctx->opened;
    ctx->opened = false;
    if (!due || !ctx->node->close)
        return LEAT_OK;
    int result = ctx->node->close(ctx);
    return result ? leati_ctx_user_failure(ctx, "close", result) : LEAT_OK;
}

leat_err leati_chain_close(leati_chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        leat_ctx *ctx = &chain->ctx[i];
        leat_err err = ctx->op->ops->close ? ctx->op->ops->close(ctx->op) : LEAT_OK;
        if (err)
            return leati_ctx_error(ctx, err, "close failed: %s", leat_err_message(err));
        err = close_function(ctx);
        if (err)
            return err;
    }
    return LEAT_OK;
}

void leati_chain_dispose(leati_chain *chain)
{
    for (uint32_t i = 0; chain->ctx && i < chain->count; i++) {
        leat_ctx *ctx = &chain->ctx[i];
        leat_operator *op = ctx->op;
        ctx->op = NULL;
        if (op)
            op->ops->dispose(op);
        // What goes wrong here is a consequence of what has ended the job.
        (void)close_function(ctx);
    }
    leati_chain_unlink(chain);
}
