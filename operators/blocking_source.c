// SPDX-License-Identifier: Apache-2.0
// leat_blocking_source: a source function that may block, on a thread of its own.
//
// Threading. The function's thread puts what it emits into a queue, from which the task takes. What
// waits there has a bound: a function that is ahead of its task waits in emit. The task is woken
// when the queue stops being empty.
//
// Life cycle. The thread starts in open and is joined in dispose, after `cancel` has been called;
// in between the worker is lent.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "leat/record.h"
#include "leat/stream.h"
#include "operators/builder.h"
#include "operators/record_queue.h"
#include "runtime/context.h"

// A queue with more than this is full; a single record may be larger.
enum { FULL_BYTES = 256 * 1024, FAILURE_BYTES = 512 };

typedef struct blocking_config {
    leat_blocking_source_fns fns;
} blocking_config;

struct leat_source_out {
    const leat_ctx *ctx;
    leat_waker *waker;
    pthread_mutex_t lock;
    pthread_cond_t taken; // the task has taken the buffer, or it is over
    // Under the lock, as far as the queue says.
    leati_record_queue queue;
    bool stopping; // the function is to return
    bool ended;    // it has
    leat_err err;
    char failure[FAILURE_BYTES];
};

typedef struct blocking_operator {
    leat_operator base;
    const blocking_config *config;
    leat_source_out out;
    bool started;
    pthread_t thread;
} blocking_operator;

// --- the function's thread ---

static leat_err emit(leat_source_out *out, const leati_queued *item)
{
    pthread_mutex_lock(&out->lock);
    while (out->queue.waiting.size >= FULL_BYTES && !out->stopping)
        pthread_cond_wait(&out->taken, &out->lock);
    bool was_empty = out->queue.waiting.size == 0;
    leat_err err = out->stopping ? LEAT_ECANCELLED : leati_record_queue_put(&out->queue, item);
    if (err && err != LEAT_ECANCELLED && !out->err) {
        out->err = err;
        snprintf(out->failure, sizeof out->failure, "emitting a record: %s", leat_err_message(err));
    }
    pthread_mutex_unlock(&out->lock);
    if (was_empty && !err)
        leat_wake(out->waker);
    return err;
}

leat_err leat_source_emit(leat_source_out *out, const void *record)
{
    return emit(out, &(leati_queued){.record = record, .timestamp = INT64_MIN});
}

leat_err leat_source_emit_at(leat_source_out *out, const void *record, int64_t timestamp)
{
    return emit(out, &(leati_queued){.record = record, .stamped = true, .timestamp = timestamp});
}

leat_err leat_source_emit_watermark(leat_source_out *out, int64_t watermark)
{
    return emit(out, &(leati_queued){.timestamp = watermark});
}

int leat_source_fail(leat_source_out *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&out->lock);
    if (!out->err) {
        out->err = LEAT_EUSER;
        vsnprintf(out->failure, sizeof out->failure, format, args);
    }
    pthread_mutex_unlock(&out->lock);
    va_end(args);
    return -1;
}

static void *source_main(void *arg)
{
    blocking_operator *op = arg;
    leat_source_out *out = &op->out;
    void *signal_stack = leati_signal_stack_enter();
    leati_crash_works_for(out->ctx);
    int result = op->config->fns.run(out->ctx, out);
    leati_crash_works_for(NULL);
    pthread_mutex_lock(&out->lock);
    if (result && !out->stopping && !out->err) {
        out->err = LEAT_EUSER;
        snprintf(out->failure, sizeof out->failure, "the source function returned %d", result);
    }
    out->ended = true;
    pthread_mutex_unlock(&out->lock);
    leat_wake(out->waker);
    leati_signal_stack_leave(signal_stack);
    return NULL;
}

// --- the task ---

static leat_err blocking_open(leat_operator *self)
{
    blocking_operator *op = (blocking_operator *)self;
    leat_source_out *out = &op->out;
    out->ctx = self->ctx;
    out->waker = leat_ctx_waker(self->ctx);
    leat_err err = leati_record_queue_init(&out->queue, leat_ctx_allocator(self->ctx),
                                           leat_ctx_out_type(self->ctx));
    if (err)
        return err;
    err = leati_thread_start(&op->thread, "leat-source", source_main, op);
    op->started = !err;
    return err;
}

// Takes what the function has emitted. `*state` says what there is.
static leat_err take(blocking_operator *op, leat_poll *state)
{
    leat_source_out *out = &op->out;
    leat_err err = LEAT_OK;
    *state = LEAT_POLL_MORE;
    pthread_mutex_lock(&out->lock);
    if (leati_record_queue_take(&out->queue)) {
        pthread_cond_signal(&out->taken);
    } else if (out->err) {
        err = out->err;
    } else {
        *state = out->ended ? LEAT_POLL_END : LEAT_POLL_WAIT;
    }
    pthread_mutex_unlock(&out->lock);
    return err ? leati_ctx_error(op->base.ctx, err, "%s", out->failure) : LEAT_OK;
}

static leat_err forward_one(blocking_operator *op, leat_out *out)
{
    leati_queued item;
    leat_err err = leati_record_queue_next(&op->out.queue, &item);
    if (err)
        return leati_ctx_error(op->base.ctx, err, "an emitted record cannot be decoded");
    if (!item.record)
        return leat_emit_watermark(out, item.timestamp);
    return item.stamped ? leat_collect_at(op->base.ctx, out, item.record, item.timestamp)
                        : leat_collect(out, item.record);
}

static leat_err blocking_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                              leat_poll *state)
{
    blocking_operator *op = (blocking_operator *)self;
    leati_record_queue *queue = &op->out.queue;
    *state = LEAT_POLL_MORE;
    uint32_t count = 0;
    leat_err err = leati_record_queue_has_next(queue) ? LEAT_OK : take(op, state);
    size_t before = queue->at;
    while (!err && count < max_records && leati_record_queue_has_next(queue) &&
           leat_out_available(self->ctx)) {
        err = forward_one(op, out);
        count++;
    }
    leat_ctx_count_in(self->ctx, count, queue->at - before);
    return err;
}

static void stop_thread(blocking_operator *op)
{
    leat_source_out *out = &op->out;
    pthread_mutex_lock(&out->lock);
    out->stopping = true;
    bool running = !out->ended;
    pthread_cond_signal(&out->taken);
    pthread_mutex_unlock(&out->lock);
    leat_blocking_begin(op->base.ctx);
    if (running && op->config->fns.cancel)
        op->config->fns.cancel(out->ctx);
    pthread_join(op->thread, NULL);
    leat_blocking_end(op->base.ctx);
}

static void blocking_dispose(leat_operator *self)
{
    blocking_operator *op = (blocking_operator *)self;
    if (op->started)
        stop_thread(op);
    pthread_mutex_destroy(&op->out.lock);
    pthread_cond_destroy(&op->out.taken);
    leati_record_queue_fini(&op->out.queue);
    leati_operator_dispose(self);
}

static const leat_operator_ops blocking_ops = {
    .kind = "source: blocking",
    .open = blocking_open,
    .poll = blocking_poll,
    .dispose = blocking_dispose,
};

static leat_err blocking_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    blocking_operator *made = leati_operator_create(ctx, sizeof *made, &blocking_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    pthread_mutex_init(&made->out.lock, NULL);
    pthread_cond_init(&made->out.taken, NULL);
    *op = &made->base;
    return LEAT_OK;
}

leat_stream *leat_blocking_source(leat_env *env, const char *name,
                                  const leat_blocking_source_fns *fns, const leat_type *type)
{
    if (!fns || !fns->run)
        return leati_builder_fault(env, "leat_blocking_source", "the run function is NULL");
    blocking_config *config = env ? leat_env_alloc(env, sizeof *config) : NULL;
    if (!config)
        return leati_graph_inert(env);
    config->fns = *fns;
    return leati_graph_add(env, NULL,
                           &(leati_node_spec){.kind = "source: blocking",
                                              .name = name,
                                              .flags = LEATI_NODE_SOURCE | LEATI_NODE_LEGACY_SOURCE,
                                              .out_type = type,
                                              .chaining = LEATI_CHAIN_HEAD,
                                              .factory = {blocking_create, config}});
}
