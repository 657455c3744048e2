// SPDX-License-Identifier: Apache-2.0
// leat_generate: records computed from their indices, at a rate or as fast as they can be made.
#include "leat/generator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "operators/builder.h"
#include "operators/pace.h"
#include "runtime/context.h"

// More records a second than can be told apart in ns.
#define FASTEST 1e12

typedef struct generator_config {
    leat_generate_fn fn;
    int64_t count; // LEAT_UNBOUNDED for no end
    double per_second;
} generator_config;

typedef struct generator_operator {
    leat_operator base;
    const generator_config *config;
    int64_t next;    // the index of the next record
    int64_t end;     // the first index that is not generated
    leati_pace pace; // with a rate
    size_t size_bytes;
    _Alignas(max_align_t) char record[];
} generator_operator;

static bool is_paced(const generator_operator *op)
{
    return op->config->per_second > 0;
}

static leat_err generator_open(leat_operator *self)
{
    generator_operator *op = (generator_operator *)self;
    op->next = leat_ctx_subtask(self->ctx);
    op->end = op->config->count == LEAT_UNBOUNDED ? INT64_MAX : op->config->count;
    op->pace =
        (leati_pace){.per_second = op->config->per_second, .start_ns = leat_ctx_now_ns(self->ctx)};
    return LEAT_OK;
}

static leat_err generate_one(generator_operator *op, leat_out *out)
{
    leat_ctx *ctx = op->base.ctx;
    int64_t index = op->next;
    // Near the end of the numbers the sum would overflow.
    int64_t step = leat_ctx_parallelism(ctx);
    op->next = index > op->end - step ? op->end : index + step;
    memset(op->record, 0, op->size_bytes);
    int result = op->config->fn(ctx, index, op->record);
    if (LEAT_LIKELY(result == 0))
        return leat_collect(out, op->record);
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRId64, index);
    return leati_ctx_reject_raw(ctx, (leat_str){digits, (size_t)size}, "the generator function",
                                result);
}

static leat_err generator_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                               leat_poll *state)
{
    generator_operator *op = (generator_operator *)self;
    int64_t now_ns = 0;
    if (is_paced(op) && op->next < op->end) {
        now_ns = leat_ctx_now_ns(self->ctx);
        leati_pace_forgive(&op->pace, op->next, now_ns);
    }
    leat_err err = LEAT_OK;
    uint32_t records = 0;
    bool due = true;
    while (!err && records < max_records && op->next < op->end &&
           (records == 0 || leat_out_available(self->ctx))) {
        due = !is_paced(op) || leati_pace_due_ns(&op->pace, op->next) <= now_ns;
        if (!due)
            break;
        err = generate_one(op, out);
        records++;
    }
    leat_ctx_count_in(self->ctx, records, records * op->size_bytes);
    *state = op->next >= op->end ? LEAT_POLL_END : due ? LEAT_POLL_MORE : LEAT_POLL_WAIT;
    if (*state == LEAT_POLL_WAIT)
        leat_ctx_wake_at(self->ctx, leati_pace_wake_ns(&op->pace, op->next, now_ns));
    return err;
}

static const leat_operator_ops generator_ops = {
    .kind = "source: generator",
    .open = generator_open,
    .poll = generator_poll,
    .dispose = leati_operator_dispose,
};

static leat_err generator_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    size_t size = leat_ctx_out_type(ctx)->size;
    generator_operator *made = leati_operator_create(ctx, sizeof *made + size, &generator_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    made->size_bytes = size;
    *op = &made->base;
    return LEAT_OK;
}

// "100 records, 2.500 per second". Of integers, because this enters the graph's digest and a number
// with a point is written otherwise in other locales.
static void describe(const generator_config *config, char *to, size_t size)
{
    int used = config->count == LEAT_UNBOUNDED
                   ? snprintf(to, size, "without end")
                   : snprintf(to, size, "%" PRId64 " records", config->count);
    int64_t thousandths = (int64_t)(config->per_second * 1000);
    if (config->per_second > 0)
        snprintf(to + used, size - (size_t)used, ", %" PRId64 ".%03d per second",
                 thousandths / 1000, (int)(thousandths % 1000));
}

leat_stream *leat_generate(leat_env *env, leat_generate_fn fn, int64_t count, double per_second,
                           const leat_type *type)
{
    static const char call[] = "leat_generate";
    if (!fn)
        return leati_builder_fault(env, call, "the function is NULL");
    if (count < 0 && count != LEAT_UNBOUNDED)
        return leati_builder_fault(env, call, "the count is negative");
    if (!(per_second >= 0 && per_second <= FASTEST))
        return leati_builder_fault(env, call, "the rate is not between 0 and 1e12");
    generator_config *config = env ? leat_env_alloc(env, sizeof *config) : NULL;
    if (!config)
        return leati_graph_inert(env);
    *config = (generator_config){.fn = fn, .count = count, .per_second = per_second};
    char detail[96];
    describe(config, detail, sizeof detail);
    return leati_graph_add(
        env, NULL,
        &(leati_node_spec){.kind = "source: generator",
                           .flags = LEATI_NODE_SOURCE |
                                    (count == LEAT_UNBOUNDED ? LEATI_NODE_ENDLESS : 0),
                           .out_type = type,
                           .factory = {generator_create, config},
                           .detail = detail});
}
