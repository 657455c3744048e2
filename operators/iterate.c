// SPDX-License-Identifier: Apache-2.0
// leat_iterate: a loop in the graph, made of three operators that hold no cycle among them.
//
// The head has two inputs: what comes from outside, and a source in its own task that takes from
// the loop's lane. The tail is a sink that puts on the lane. The source is absorbed by the head, so
// that the head can leave the outside waiting while much comes back: what waits on the lane is
// bounded by an error, and a loop that does not amplify must never get there.
#include "leat/iterate.h"

#include "operators/builder.h"
#include "operators/loop.h"
#include "runtime/context.h"

// Has a blank, so no tag of a user's is called so.
#define FEEDBACK_SIDE "feedback records"

static size_t most_bytes(const leat_ctx *ctx)
{
    return (size_t)leati_config_get(leati_ctx_config(ctx), LEATI_CONFIG_FEEDBACK_MEMORY);
}

// --- the head ---

typedef struct head_operator {
    leat_operator base;
    const leati_loop_config *config;
    leati_loop_lane *lane;
    size_t much; // bytes on the lane while which the outside waits
} head_operator;

static leat_err head_open(leat_operator *self)
{
    head_operator *op = (head_operator *)self;
    op->much = most_bytes(self->ctx) / 4;
    return leati_loop_lane_of(self->ctx, op->config, &op->lane);
}

static leat_err head_element_of(leat_operator *self, uint32_t input, const void *record,
                                leat_out *out)
{
    const head_operator *op = (const head_operator *)self;
    if (input == 1 && op->config->typed)
        return leat_collect_side(self->ctx, &op->config->feedback, record);
    return leat_collect(out, record);
}

static bool head_accepts(leat_operator *self)
{
    const head_operator *op = (const head_operator *)self;
    return leati_loop_waiting(op->lane) < op->much;
}

static leat_err head_input_ended(leat_operator *self, uint32_t input, leat_out *out)
{
    const head_operator *op = (const head_operator *)self;
    if (input == 0)
        leati_loop_outside_ended(op->lane, leat_ctx_now_ns(self->ctx));
    return LEAT_OK;
}

static const leat_operator_ops head_ops = {
    .kind = "iterate",
    .open = head_open,
    .element_of = head_element_of,
    .accepts = head_accepts,
    .input_ended = head_input_ended,
    .dispose = leati_operator_dispose,
};

static leat_err head_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    head_operator *made = leati_operator_create(ctx, sizeof *made, &head_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

// --- the source of what comes back ---

typedef struct back_operator {
    leat_operator base;
    const leati_loop_config *config;
    leati_loop_lane *lane;
} back_operator;

static leat_err back_open(leat_operator *self)
{
    back_operator *op = (back_operator *)self;
    leat_err err = leati_loop_lane_of(self->ctx, op->config, &op->lane);
    if (!err)
        leati_loop_attach(op->lane, leat_ctx_waker(self->ctx));
    return err;
}

static leat_err emit_back(back_operator *op, leat_out *out, uint32_t most)
{
    leati_record_queue *queue = &op->lane->queue;
    leat_err err = LEAT_OK;
    uint32_t count = 0;
    size_t before = queue->at;
    while (!err && count < most && leati_record_queue_has_next(queue) &&
           leat_out_available(op->base.ctx)) {
        leati_queued item;
        err = leati_record_queue_next(queue, &item);
        if (err)
            return leati_ctx_error(op->base.ctx, err, "a record on its way back is corrupt");
        err = leat_collect(out, item.record);
        count++;
    }
    leat_ctx_count_in(op->base.ctx, count, queue->at - before);
    leati_loop_moved(op->lane, leat_ctx_now_ns(op->base.ctx));
    return err;
}

// Nothing has come back: the loop ends when that has lasted for long enough on all lanes.
static void wait_for_more(back_operator *op, leat_poll *state)
{
    int64_t since_ns = leati_loop_quiet_since(op->lane);
    *state = LEAT_POLL_WAIT;
    if (since_ns == INT64_MAX || op->config->max_wait_ms == 0)
        return;
    int64_t over_ns = since_ns + op->config->max_wait_ms * 1000000;
    if (leat_ctx_now_ns(op->base.ctx) < over_ns)
        leat_ctx_wake_at(op->base.ctx, over_ns);
    else
        *state = leati_loop_close(op->lane) ? LEAT_POLL_END : LEAT_POLL_MORE;
}

static leat_err back_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                          leat_poll *state)
{
    back_operator *op = (back_operator *)self;
    *state = LEAT_POLL_MORE;
    if (leati_record_queue_has_next(&op->lane->queue) || leati_loop_take(op->lane))
        return emit_back(op, out, max_records);
    wait_for_more(op, state);
    return LEAT_OK;
}

static void back_dispose(leat_operator *self)
{
    back_operator *op = (back_operator *)self;
    if (op->lane)
        leati_loop_attach(op->lane, NULL);
    leati_operator_dispose(self);
}

static const leat_operator_ops back_ops = {
    .kind = "source: feedback",
    .open = back_open,
    .poll = back_poll,
    .dispose = back_dispose,
};

static leat_err back_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    back_operator *made = leati_operator_create(ctx, sizeof *made, &back_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

// --- the tail ---

typedef struct tail_operator {
    leat_operator base;
    const leati_loop_config *config;
    leati_loop_lane *lane;
    size_t most;
} tail_operator;

static leat_err tail_open(leat_operator *self)
{
    tail_operator *op = (tail_operator *)self;
    op->most = most_bytes(self->ctx);
    return leati_loop_lane_of(self->ctx, op->config, &op->lane);
}

static leat_err tail_element(leat_operator *self, const void *record, leat_out *out)
{
    tail_operator *op = (tail_operator *)self;
    bool was_empty;
    leat_err err = leati_loop_put(op->lane, record, op->most, &was_empty);
    if (LEAT_LIKELY(err == LEAT_OK)) {
        // Of a lane that is not empty the head notes the time when it takes.
        if (was_empty)
            leati_loop_moved(op->lane, leat_ctx_now_ns(self->ctx));
        leat_ctx_count_out(self->ctx, 1, 0);
        return LEAT_OK;
    }
    const char *name = op->config->head->name;
    if (err == LEAT_ENOBUFS)
        return leati_ctx_error(self->ctx, err,
                               "%zu bytes wait to come back to \"%s\": the loop makes more records "
                               "than leave it; if they all leave in the end, raise "
                               "iteration.feedback-memory",
                               op->most, name);
    if (err == LEAT_ESTATE)
        return leati_ctx_error(
            self->ctx, err,
            "a record comes back to \"%s\" after the loop has ended: its longest "
            "wait, %lld ms, is too short",
            name, (long long)op->config->max_wait_ms);
    return leati_ctx_error(self->ctx, err, "a record cannot come back to \"%s\": %s", name,
                           leat_err_message(err));
}

static const leat_operator_ops tail_ops = {
    .kind = "close_with",
    .open = tail_open,
    .element = tail_element,
    .dispose = leati_operator_dispose,
};

static leat_err tail_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    tail_operator *made = leati_operator_create(ctx, sizeof *made, &tail_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

// --- building ---

static leat_stream *build(leat_stream *in, const char *call, const leat_type *feedback_type,
                          bool typed, int64_t max_wait_ms)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (max_wait_ms < 0 || max_wait_ms > INT64_MAX / 2000000)
        return leati_builder_fault_on(in, call, "the wait is negative or far too long");
    leati_loop_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    *config = (leati_loop_config){.feedback = {.name = FEEDBACK_SIDE, .type = feedback_type},
                                  .typed = typed,
                                  .max_wait_ms = max_wait_ms};
    leat_stream *back =
        leati_graph_add(env, NULL,
                        &(leati_node_spec){.kind = "source: feedback",
                                           .flags = LEATI_NODE_SOURCE | LEATI_NODE_FEEDBACK,
                                           .out_type = feedback_type,
                                           .factory = {back_create, config}});
    leat_stream *const inputs[] = {in, back};
    leat_stream *head = leati_graph_add_inputs(
        env, inputs, 2,
        &(leati_node_spec){.kind = "iterate",
                           .flags = LEATI_NODE_OPEN_LOOP | (max_wait_ms ? 0 : LEATI_NODE_ENDLESS),
                           .out_type = leati_stream_type(in),
                           .factory = {head_create, config}});
    config->head = leati_stream_node(head);
    if (leati_stream_node(back))
        leati_stream_node(back)->peer = config->head;
    return head;
}

leat_stream *leat_iterate(leat_stream *in, int64_t max_wait_ms)
{
    return build(in, "leat_iterate", leati_stream_type(in), false, max_wait_ms);
}

leat_stream *leat_iterate_with(leat_stream *in, const leat_type *feedback_type, int64_t max_wait_ms)
{
    if (!feedback_type && leati_stream_env(in))
        return leati_builder_fault_on(in, "leat_iterate_with", "the feedback's type is NULL");
    return build(in, "leat_iterate_with", feedback_type, true, max_wait_ms);
}

static leati_loop_config *loop_of(leat_stream *loop, const char *call)
{
    leati_node *node = leati_stream_node(loop);
    if (node && node->factory.create == head_create)
        return (leati_loop_config *)node->factory.config; // written by the builder alone
    if (leati_stream_type(loop))
        leati_builder_fault_on(loop, call, "the stream is not that of an iteration");
    return NULL;
}

leat_stream *leat_feedback(leat_stream *loop)
{
    const leati_loop_config *config = loop_of(loop, "leat_feedback");
    if (!config)
        return leati_graph_inert(leati_stream_env(loop));
    if (!config->typed)
        return leati_builder_fault_on(loop, "leat_feedback",
                                      "what comes back is among the loop's own records");
    return leati_graph_side(loop, FEEDBACK_SIDE, config->feedback.type);
}

leat_stream *leat_close_with(leat_stream *loop, leat_stream *feedback)
{
    leat_env *env = leati_stream_env(loop);
    leati_loop_config *config = loop_of(loop, "leat_close_with");
    leati_node *head = leati_stream_node(loop);
    const leat_type *type = config ? leati_stream_type(feedback) : NULL;
    if (config && !feedback)
        return leati_builder_fault_on(loop, "leat_close_with", "the feedback is NULL");
    if (!type) {
        // The fault that made the feedback inert is known; that the loop is open is not another.
        if (config)
            head->flags &= ~(uint32_t)LEATI_NODE_OPEN_LOOP;
        return leati_graph_inert(env);
    }
    if (!(head->flags & LEATI_NODE_OPEN_LOOP))
        return leati_builder_fault_on(loop, "leat_close_with", "the loop is closed already");
    head->flags &= ~(uint32_t)LEATI_NODE_OPEN_LOOP;
    if (!leati_type_same_layout(type, config->feedback.type)) {
        leati_graph_fault(loop, LEAT_ETYPE,
                          "leat_close_with: what comes back is %s, but the loop takes %s",
                          leati_builder_type_text(env, type),
                          leati_builder_type_text(env, config->feedback.type));
        return leati_graph_inert(env);
    }
    leat_stream *tail = leati_graph_add(env, feedback,
                                        &(leati_node_spec){.kind = "close_with",
                                                           .flags = LEATI_NODE_SINK,
                                                           .factory = {tail_create, config}});
    if (leati_stream_node(tail))
        leati_stream_node(tail)->peer = head;
    return tail;
}
