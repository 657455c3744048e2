// SPDX-License-Identifier: Apache-2.0
// leat_sequence: the numbers from first to last, a contiguous share for each subtask.
#include <inttypes.h>
#include <stdio.h>

#include "leat/stream.h"
#include "operators/builder.h"
#include "operators/sequence.h"
#include "runtime/context.h"

enum { PIECE = 32 }; // numbers that are made at a time

typedef struct sequence_config {
    int64_t first, last;
} sequence_config;

typedef struct sequence_operator {
    leat_operator base;
    int64_t next, last; // what is left, when not at the end
    bool ended;
} sequence_operator;

// Counting the numbers would overflow for the full range, so this works with the distance from the
// first to the last, which is one less. The first (distance % parallelism + 1) shares hold one
// number more than the others.
bool leati_sequence_share(int64_t first, int64_t last, uint32_t subtask, uint32_t parallelism,
                          int64_t *share_first, int64_t *share_last)
{
    if (first > last)
        return false;
    uint64_t distance = (uint64_t)last - (uint64_t)first;
    uint64_t least = distance / parallelism, longer = distance % parallelism + 1;
    bool is_longer = subtask < longer;
    if (!is_longer && least == 0)
        return false;
    uint64_t start = (uint64_t)first + subtask * least + (is_longer ? subtask : longer);
    *share_first = (int64_t)start;
    *share_last = (int64_t)(start + least - !is_longer);
    return true;
}

static leat_err sequence_open(leat_operator *self)
{
    sequence_operator *op = (sequence_operator *)self;
    op->ended = !leati_sequence_share(op->next, op->last, leat_ctx_subtask(self->ctx),
                                      leat_ctx_parallelism(self->ctx), &op->next, &op->last);
    return LEAT_OK;
}

static leat_err sequence_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                              leat_poll *state)
{
    sequence_operator *op = (sequence_operator *)self;
    *state = LEAT_POLL_END;
    if (op->ended)
        return LEAT_OK;
    uint64_t left = (uint64_t)op->last - (uint64_t)op->next; // after the next one
    uint64_t count = left < max_records ? left + 1 : max_records;
    uint64_t next = (uint64_t)op->next;
    uint64_t done = 0;
    leat_err err = LEAT_OK;
    do {
        int64_t values[PIECE];
        uint32_t made = count - done < PIECE ? (uint32_t)(count - done) : PIECE;
        for (uint32_t i = 0; i < made; i++)
            values[i] = (int64_t)(next + done + i);
        err = leat_collect_some(self->ctx, out, values, &made);
        done += made;
    } while (err == LEAT_OK && done < count && leat_out_available(self->ctx));
    leat_ctx_count_in(self->ctx, done, done * sizeof(int64_t));
    op->ended = done > left;
    op->next = (int64_t)(next + done);
    if (!op->ended)
        *state = LEAT_POLL_MORE;
    return err;
}

static const leat_operator_ops sequence_ops = {
    .kind = "source: sequence",
    .open = sequence_open,
    .poll = sequence_poll,
    .dispose = leati_operator_dispose,
};

static leat_err sequence_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const sequence_config *config = factory->config;
    sequence_operator *sequence = leati_operator_create(ctx, sizeof *sequence, &sequence_ops);
    if (!sequence)
        return LEAT_ENOMEM;
    sequence->next = config->first;
    sequence->last = config->last;
    *op = &sequence->base;
    return LEAT_OK;
}

leat_stream *leat_sequence(leat_env *env, int64_t first, int64_t last)
{
    if (!env)
        return leati_graph_inert(env);
    sequence_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    *config = (sequence_config){.first = first, .last = last};
    char detail[64];
    snprintf(detail, sizeof detail, "%" PRId64 " … %" PRId64, first, last);
    return leati_graph_add(env, NULL,
                           &(leati_node_spec){.kind = "source: sequence",
                                              .flags = LEATI_NODE_SOURCE,
                                              .out_type = leat_type_scalar(LEAT_I64),
                                              .factory = {sequence_create, config},
                                              .detail = detail});
}
