// SPDX-License-Identifier: Apache-2.0
// leat_blocking_source: a source function that may block, on a thread of its own.
//
// Threading. The function's thread encodes what it emits into one of two buffers; the task takes
// the full one and decodes from it, so that the lock is held for a swap only. The buffer that is
// being filled has a bound: a function that is ahead of its task waits in emit. The task is woken
// when the buffer stops being empty.
//
// Life cycle. The thread starts in open and is joined in dispose, after `cancel` has been called;
// in between the worker is lent.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "leat/record.h"
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

// A buffer with more than this is full; a single record may be larger.
enum { FULL_BYTES = 256 * 1024, FAILURE_BYTES = 512 };

typedef struct blocking_config {
    leat_blocking_source_fns fns;
} blocking_config;

// Before each record in a buffer.
typedef struct entry {
    uint32_t size;
    bool stamped;
    int64_t timestamp;
} entry;

typedef struct buffer {
    uint8_t *data;
    size_t size, capacity;
} buffer;

struct leat_source_out {
    const leat_ctx *ctx;
    const leat_allocator *allocator;
    const leat_type *type;
    leat_waker *waker;
    pthread_mutex_t lock;
    pthread_cond_t taken; // the task has taken the buffer, or it is over
    // Under the lock.
    buffer filling;
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
    // Task.
    buffer draining;
    size_t at; // read position in it
    void *record;
    leat_scratch *scratch;
} blocking_operator;

// --- the function's thread ---

static bool reserve(leat_source_out *out, size_t more)
{
    return leati_grow(out->allocator, (void **)&out->filling.data, &out->filling.capacity,
                      out->filling.size + more, 1);
}

static leat_err append_locked(leat_source_out *out, const void *record, bool stamped,
                              int64_t timestamp)
{
    size_t size = leat_record_encoded_size(out->type, record);
    if (size > UINT32_MAX)
        return LEAT_ETOOBIG;
    if (!reserve(out, sizeof(entry) + size))
        return LEAT_ENOMEM;
    uint8_t *to = out->filling.data + out->filling.size;
    entry head = {.size = (uint32_t)size, .stamped = stamped, .timestamp = timestamp};
    memcpy(to, &head, sizeof head);
    if (!leat_record_encode(out->type, record, to + sizeof head, to + sizeof head + size))
        return LEAT_EINVAL;
    out->filling.size += sizeof head + size;
    return LEAT_OK;
}

static leat_err emit(leat_source_out *out, const void *record, bool stamped, int64_t timestamp)
{
    pthread_mutex_lock(&out->lock);
    while (out->filling.size >= FULL_BYTES && !out->stopping)
        pthread_cond_wait(&out->taken, &out->lock);
    bool was_empty = out->filling.size == 0;
    leat_err err = out->stopping ? LEAT_ECANCELLED : append_locked(out, record, stamped, timestamp);
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
    return emit(out, record, false, INT64_MIN);
}

leat_err leat_source_emit_at(leat_source_out *out, const void *record, int64_t timestamp)
{
    return emit(out, record, true, timestamp);
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
    int result = op->config->fns.run(out->ctx, out);
    pthread_mutex_lock(&out->lock);
    if (result && !out->stopping && !out->err) {
        out->err = LEAT_EUSER;
        snprintf(out->failure, sizeof out->failure, "the source function returned %d", result);
    }
    out->ended = true;
    pthread_mutex_unlock(&out->lock);
    leat_wake(out->waker);
    return NULL;
}

// --- the task ---

static leat_err blocking_open(leat_operator *self)
{
    blocking_operator *op = (blocking_operator *)self;
    leat_source_out *out = &op->out;
    out->ctx = self->ctx;
    out->allocator = leat_ctx_allocator(self->ctx);
    out->type = leat_ctx_out_type(self->ctx);
    out->waker = leat_ctx_waker(self->ctx);
    op->record = leati_calloc(out->allocator, 1, out->type->size);
    leat_err err = op->record ? leat_scratch_create(out->allocator, &op->scratch) : LEAT_ENOMEM;
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
    op->at = op->draining.size = 0;
    pthread_mutex_lock(&out->lock);
    if (out->filling.size > 0) {
        buffer full = out->filling;
        out->filling = op->draining;
        op->draining = full;
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
    entry head;
    memcpy(&head, op->draining.data + op->at, sizeof head);
    const uint8_t *body = op->draining.data + op->at + sizeof head;
    op->at += sizeof head + head.size;
    leat_scratch_reset(op->scratch);
    leat_err err = leat_record_decode(op->out.type, body, head.size, op->record, op->scratch);
    if (err)
        return leati_ctx_error(op->base.ctx, err, "an emitted record cannot be decoded");
    return head.stamped ? leat_collect_at(op->base.ctx, out, op->record, head.timestamp)
                        : leat_collect(out, op->record);
}

static leat_err blocking_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                              leat_poll *state)
{
    blocking_operator *op = (blocking_operator *)self;
    *state = LEAT_POLL_MORE;
    uint32_t count = 0;
    size_t bytes = op->at;
    leat_err err = LEAT_OK;
    if (op->at == op->draining.size) {
        err = take(op, state);
        bytes = 0;
    }
    while (!err && count < max_records && op->at < op->draining.size &&
           leat_out_available(self->ctx)) {
        err = forward_one(op, out);
        count++;
    }
    leat_ctx_count_in(self->ctx, count, op->at - bytes);
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
    const leat_allocator *allocator = leat_ctx_allocator(self->ctx);
    if (op->started)
        stop_thread(op);
    pthread_mutex_destroy(&op->out.lock);
    pthread_cond_destroy(&op->out.taken);
    leati_free(allocator, op->out.filling.data);
    leati_free(allocator, op->draining.data);
    leati_free(allocator, op->record);
    leat_scratch_destroy(&op->scratch);
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
