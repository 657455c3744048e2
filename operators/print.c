// SPDX-License-Identifier: Apache-2.0
// leat_print and leat_print_to_err: the text form of each record, a line each. Lines are gathered
// and go out when the buffer is full, when the task has no more input, and at the end.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"

enum { BUFFER_SIZE = 64 * 1024 };

typedef struct print_config {
    int fd; // 1 or 2
} print_config;

typedef struct print_operator {
    leat_operator base;
    const leat_type *type;
    int fd;
    char prefix[16]; // "3> ", or empty
    size_t prefix_size;
    char *buffer;
    size_t capacity, used;
    uint64_t lines; // in the buffer
} print_operator;

static leat_err print_open(leat_operator *self)
{
    print_operator *op = (print_operator *)self;
    if (leat_ctx_parallelism(self->ctx) > 1)
        op->prefix_size = (size_t)snprintf(op->prefix, sizeof op->prefix, "%" PRIu32 "> ",
                                           leat_ctx_subtask(self->ctx) + 1);
    op->buffer = leati_alloc(leat_ctx_allocator(self->ctx), BUFFER_SIZE);
    if (!op->buffer)
        return leati_ctx_error(self->ctx, LEAT_ENOMEM, "no memory for the print buffer");
    op->capacity = BUFFER_SIZE;
    return LEAT_OK;
}

// Also the close hook.
static leat_err print_flush(leat_operator *self)
{
    print_operator *op = (print_operator *)self;
    if (op->used == 0)
        return LEAT_OK;
    leat_err err = leati_ctx_print(self->ctx, op->fd, op->buffer, op->used);
    if (err != LEAT_OK)
        return err;
    leat_ctx_count_out(self->ctx, op->lines, op->used);
    op->used = op->lines = 0;
    return LEAT_OK;
}

// Writes the line of a record to where the buffer's free part begins; returns what it needs.
static size_t put_line(print_operator *op, const void *record)
{
    size_t room = op->capacity - op->used;
    char *at = op->buffer + op->used;
    if (room <= op->prefix_size)
        return op->prefix_size + 1 + leat_record_text(op->type, record, NULL, 0);
    memcpy(at, op->prefix, op->prefix_size);
    size_t size = op->prefix_size +
                  leat_record_text(op->type, record, at + op->prefix_size, room - op->prefix_size);
    if (size < room)
        at[size] = '\n';
    return size + 1;
}

// The buffer is empty and too small for one line: the line gets a buffer of its own size.
static leat_err print_large(print_operator *op, const void *record, size_t needed)
{
    const leat_allocator *allocator = leat_ctx_allocator(op->base.ctx);
    char *usual = op->buffer;
    op->buffer = leati_alloc(allocator, needed);
    leat_err err = LEAT_OK;
    if (!op->buffer) {
        err =
            leati_ctx_error(op->base.ctx, LEAT_ENOMEM, "no memory for a line of %zu bytes", needed);
    } else {
        op->capacity = needed;
        op->used = put_line(op, record);
        op->lines = 1;
        err = print_flush(&op->base);
        leati_free(allocator, op->buffer);
    }
    op->buffer = usual;
    op->capacity = BUFFER_SIZE;
    op->used = op->lines = 0;
    return err;
}

static leat_err print_element(leat_operator *self, const void *record, leat_out *out)
{
    print_operator *op = (print_operator *)self;
    size_t needed = put_line(op, record);
    if (needed > op->capacity - op->used) {
        leat_err err = print_flush(self);
        if (err != LEAT_OK)
            return err;
        if (needed > op->capacity)
            return print_large(op, record, needed);
        needed = put_line(op, record);
    }
    op->used += needed;
    op->lines++;
    return LEAT_OK;
}

static void print_dispose(leat_operator *self)
{
    print_operator *op = (print_operator *)self;
    leati_free(leat_ctx_allocator(self->ctx), op->buffer);
    leati_operator_dispose(self);
}

static const leat_operator_ops print_ops = {
    .kind = "print",
    .open = print_open,
    .element = print_element,
    .flush = print_flush,
    .close = print_flush,
    .dispose = print_dispose,
};

static leat_err print_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const print_config *config = factory->config;
    print_operator *print = leati_operator_create(ctx, sizeof *print, &print_ops);
    if (!print)
        return LEAT_ENOMEM;
    print->fd = config->fd;
    print->type = leat_ctx_in_type(ctx);
    *op = &print->base;
    return LEAT_OK;
}

static leat_stream *build(leat_stream *in, const char *kind, const print_config *config)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = kind,
                                              .flags = LEATI_NODE_SINK,
                                              .factory = {print_create, config}});
}

leat_stream *leat_print(leat_stream *in)
{
    static const print_config config = {.fd = 1};
    return build(in, "print", &config);
}

leat_stream *leat_print_to_err(leat_stream *in)
{
    static const print_config config = {.fd = 2};
    return build(in, "print_to_err", &config);
}
