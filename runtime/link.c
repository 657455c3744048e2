// SPDX-License-Identifier: Apache-2.0
// What the outputs of a chain's operators lead to: the next operator, a writer, several of these,
// an input of the head, or nowhere.
#include <string.h>

#include "base/alloc.h"
#include "runtime/chain.h"
#include "runtime/context.h"
#include "runtime/task.h"

// --- ends ---

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

// --- branches ---

// One output that leads to several: each gets every element. Or a guarded one: what fails behind it
// is noted here, so that the operator before it, which may swallow failures of its own function,
// cannot mistake this one for such.
typedef struct leati_branch {
    leat_operator base;
    leati_task *guards; // the task to note failures with, or NULL
    struct leati_branch *next;
    uint32_t count;
    leat_out outs[];
} leati_branch;

static leat_err branch_element(leat_operator *self, const void *record, leat_out *out)
{
    leati_branch *b = (leati_branch *)self;
    for (uint32_t i = 0; i < b->count; i++) {
        leat_err err = leat_collect(&b->outs[i], record);
        if (LEAT_UNLIKELY(err)) {
            if (b->guards)
                leati_task_note_failure(b->guards, err);
            return err;
        }
    }
    return LEAT_OK;
}

static leat_err branch_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    leati_branch *b = (leati_branch *)self;
    for (uint32_t i = 0; i < b->count; i++) {
        leat_err err = leat_emit_watermark(&b->outs[i], watermark);
        if (err)
            return err;
    }
    return LEAT_OK;
}

static const leat_operator_ops branch_ops = {
    .kind = "branch",
    .element = branch_element,
    .watermark = branch_watermark,
    .dispose = dispose_nothing,
};

// --- gates ---

// Before an operator that may reject records: what its function said with leat_fail about an
// earlier record, and then did not reject, is not said about the next one.
static leat_ctx *ctx_of_gate(leat_operator *gate)
{
    return (leat_ctx *)((char *)gate - offsetof(leat_ctx, gate));
}

static leat_err gate_element(leat_operator *self, const void *record, leat_out *out)
{
    leat_ctx *ctx = ctx_of_gate(self);
    ctx->task->reject_ctx = NULL;
    return ctx->op->ops->element(ctx->op, record, out);
}

static leat_err gate_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    leat_ctx *ctx = ctx_of_gate(self);
    leat_out to = {.target = ctx->op, .next = out};
    return leat_emit_watermark(&to, watermark);
}

static const leat_operator_ops gate_ops = {
    .kind = "gate",
    .element = gate_element,
    .watermark = gate_watermark,
    .dispose = dispose_nothing,
};

static leat_err pass_watermark(leat_out *out, int64_t watermark)
{
    leat_operator *op = out->target;
    // Writers borrow the context of the operator before them.
    if (op->ctx && op->ctx->op == op && watermark > op->ctx->watermark)
        op->ctx->watermark = watermark;
    if (op->ops->watermark)
        return op->ops->watermark(op, watermark, out->next);
    return leat_emit_watermark(out->next, watermark);
}

leat_err leat_emit_watermark(leat_out *out, int64_t watermark)
{
    leat_err err = pass_watermark(out, watermark);
    for (uint32_t i = 0; out->from && i < out->from->side_count && !err; i++)
        err = pass_watermark(&out->from->sides[i].out, watermark);
    return err;
}

// --- linking ---

typedef struct linking {
    leati_chain *chain;
    const leati_chain_exit *exits;
    uint32_t exit_count;
} linking;

static bool reads_op(const linking *l, uint32_t i, uint32_t op, const char *side)
{
    const leati_chain_op *reader = &l->chain->vertex->ops[i];
    return !reader->absorbed && reader->parent == op && strcmp(reader->side, side) == 0;
}

static bool reads_exit(const linking *l, uint32_t i, uint32_t op, const char *side)
{
    return l->exits[i].from_op == op && strcmp(l->exits[i].side, side) == 0;
}

static uint32_t count_readers(const linking *l, uint32_t op, const char *side)
{
    uint32_t count = 0;
    for (uint32_t i = op + 1; i < l->chain->tree; i++)
        count += reads_op(l, i, op, side);
    for (uint32_t i = 0; i < l->exit_count; i++)
        count += reads_exit(l, i, op, side);
    return count;
}

static leat_out out_to(const leati_chain *chain, leat_operator *target, leat_out *next)
{
    return (leat_out){.element = target->ops->element,
                      .target = target,
                      .next = next,
                      .stopping = chain->stopping};
}

// What feeds an operator of one input.
static leat_out out_to_op(const leati_chain *chain, uint32_t op)
{
    leat_ctx *ctx = &chain->ctx[op];
    if (ctx->node->on_error == LEAT_ON_ERROR_FAIL)
        return out_to(chain, ctx->op, &chain->outs[op]);
    ctx->gate.ops = &gate_ops;
    return out_to(chain, &ctx->gate, &chain->outs[op]);
}

static leati_branch *branch_create(leati_chain *chain, uint32_t count, leati_task *guards)
{
    leati_branch *b = leati_calloc(chain->allocator, 1, sizeof *b + count * sizeof *b->outs);
    if (!b)
        return NULL;
    b->base.ops = &branch_ops;
    b->guards = guards;
    b->count = count;
    b->next = chain->branches;
    chain->branches = b;
    return b;
}

// Fills `out`, an output of operator `op` that somebody reads.
static leat_err join(const linking *l, uint32_t op, const char *side, leat_out *out)
{
    leati_chain *chain = l->chain;
    leat_ctx *ctx = &chain->ctx[op];
    uint32_t count = count_readers(l, op, side);
    bool guarded = ctx->node->on_error != LEAT_ON_ERROR_FAIL;
    leat_out *to = out;
    if (count > 1 || guarded) {
        leati_branch *b = branch_create(chain, count, guarded ? ctx->task : NULL);
        if (!b)
            return LEAT_ENOMEM;
        *out = out_to(chain, &b->base, NULL);
        to = b->outs;
    }
    for (uint32_t i = op + 1; i < chain->tree; i++)
        if (reads_op(l, i, op, side))
            *to++ = out_to_op(chain, i);
    for (uint32_t i = 0; i < l->exit_count; i++)
        if (reads_exit(l, i, op, side)) {
            *to = out_to(chain, l->exits[i].writer, NULL);
            to++->some = l->exits[i].some;
        }
    return LEAT_OK;
}

static leat_err add_side(const linking *l, uint32_t op, const char *side, const leat_type *type)
{
    leat_ctx *ctx = &l->chain->ctx[op];
    for (uint32_t i = 0; i < ctx->side_count; i++)
        if (strcmp(ctx->sides[i].name, side) == 0)
            return LEAT_OK;
    ctx->sides[ctx->side_count] = (leati_side){.name = side, .type = type};
    return join(l, op, side, &ctx->sides[ctx->side_count++].out);
}

static leat_err link_sides(const linking *l, uint32_t op)
{
    leati_chain *chain = l->chain;
    uint32_t most = 0;
    for (uint32_t i = op + 1; i < chain->tree; i++)
        most += chain->vertex->ops[i].parent == op && chain->vertex->ops[i].side[0];
    for (uint32_t i = 0; i < l->exit_count; i++)
        most += l->exits[i].from_op == op && l->exits[i].side[0];
    if (most == 0)
        return LEAT_OK;
    leat_ctx *ctx = &chain->ctx[op];
    ctx->sides = leati_calloc(chain->allocator, most, sizeof *ctx->sides);
    leat_err err = ctx->sides ? LEAT_OK : LEAT_ENOMEM;
    for (uint32_t i = op + 1; i < chain->tree && !err; i++) {
        const leati_chain_op *reader = &chain->vertex->ops[i];
        if (reader->parent == op && reader->side[0])
            err = add_side(l, op, reader->side, reader->node->in_type);
    }
    for (uint32_t i = 0; i < l->exit_count && !err; i++)
        if (l->exits[i].from_op == op && l->exits[i].side[0])
            err = add_side(l, op, l->exits[i].side, l->exits[i].type);
    chain->outs[op].from = ctx;
    return err;
}

static leat_err link_operator(const linking *l, uint32_t op)
{
    leati_chain *chain = l->chain;
    const leati_chain_op *self = &chain->vertex->ops[op];
    if (self->absorbed) {
        chain->outs[op] = out_to(chain, &chain->ports[self->absorbed_input].base, NULL);
        return LEAT_OK;
    }
    leat_err err = LEAT_OK;
    if (count_readers(l, op, "") == 0)
        chain->outs[op] = out_to(chain, self->node->out_type ? &loose_end : &end_of_sink, NULL);
    else
        err = join(l, op, "", &chain->outs[op]);
    return err ? err : link_sides(l, op);
}

leat_err leati_chain_link(leati_chain *chain, const leati_chain_exit *exits, uint32_t exit_count)
{
    linking l = {.chain = chain, .exits = exits, .exit_count = exit_count};
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; i < chain->count && !err; i++)
        err = link_operator(&l, i);
    return err;
}

void leati_chain_unlink(leati_chain *chain)
{
    while (chain->branches) {
        leati_branch *b = chain->branches;
        chain->branches = b->next;
        leati_free(chain->allocator, b);
    }
    for (uint32_t i = 0; chain->ctx && i < chain->count; i++) {
        leati_free(chain->allocator, chain->ctx[i].sides);
        chain->ctx[i].sides = NULL;
        chain->ctx[i].side_count = 0;
    }
}

leat_out leati_chain_entry(leati_chain *chain, uint32_t input)
{
    if (chain->ports)
        return out_to(chain, &chain->ports[input].base, NULL);
    return out_to_op(chain, 0);
}
