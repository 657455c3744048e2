// SPDX-License-Identifier: Apache-2.0
// leat_print and its kin: the text form of each record, a line each, to standard output or error.
#include "leat/print.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "operators/builder.h"
#include "operators/env_copy.h"
#include "operators/line_buffer.h"
#include "runtime/context.h"

typedef struct print_config {
    int fd;                 // 1 or 2
    const char *identifier; // "" for none
} print_config;

typedef struct print_operator {
    leat_operator base;
    const print_config *config;
    const leat_type *type;
    leati_line_buffer lines;
    char *prefix; // "id:3> ", or NULL for none
} print_operator;

static size_t print_format(leat_operator *self, const void *record, char *to, size_t size)
{
    return leat_record_text(((print_operator *)self)->type, record, to, size);
}

static leat_err print_write(leat_operator *self, const char *data, size_t size)
{
    return leati_ctx_print(self->ctx, ((print_operator *)self)->config->fd, data, size);
}

// What stands in front of each line: as snprintf does.
static size_t put_prefix(const leat_ctx *ctx, const char *identifier, char *to, size_t size)
{
    bool many = leat_ctx_parallelism(ctx) > 1;
    if (!many && !*identifier)
        return 0;
    char number[16] = "";
    if (many)
        snprintf(number, sizeof number, "%" PRIu32, leat_ctx_subtask(ctx) + 1);
    const char *colon = many && *identifier ? ":" : "";
    return (size_t)snprintf(to, size, "%s%s%s> ", identifier, colon, number);
}

static leat_err print_open(leat_operator *self)
{
    print_operator *op = (print_operator *)self;
    op->lines.owner = self;
    op->lines.format = print_format;
    op->lines.write = print_write;
    size_t size = put_prefix(self->ctx, op->config->identifier, NULL, 0);
    if (size) {
        op->prefix = leati_alloc(leat_ctx_allocator(self->ctx), size + 1);
        if (!op->prefix)
            return leati_ctx_error(self->ctx, LEAT_ENOMEM, "no memory for the prefix");
        put_prefix(self->ctx, op->config->identifier, op->prefix, size + 1);
        op->lines.prefix = op->prefix;
        op->lines.prefix_size = size;
    }
    return leati_line_buffer_open(&op->lines);
}

static leat_err print_element(leat_operator *self, const void *record, leat_out *out)
{
    return leati_line_buffer_put(&((print_operator *)self)->lines, record);
}

// Also the close hook.
static leat_err print_flush(leat_operator *self)
{
    return leati_line_buffer_flush(&((print_operator *)self)->lines);
}

static void print_dispose(leat_operator *self)
{
    print_operator *op = (print_operator *)self;
    leati_line_buffer_fini(&op->lines);
    leati_free(leat_ctx_allocator(self->ctx), op->prefix);
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
    print_operator *print = leati_operator_create(ctx, sizeof *print, &print_ops);
    if (!print)
        return LEAT_ENOMEM;
    print->config = factory->config;
    print->type = leat_ctx_in_type(ctx);
    *op = &print->base;
    return LEAT_OK;
}

static leat_stream *build(leat_stream *in, const char *kind, int fd, const char *identifier)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    print_config *config = leat_env_alloc(env, sizeof *config);
    if (!config || !(config->identifier = leati_env_copy(env, identifier ? identifier : "")))
        return leati_graph_inert(env);
    config->fd = fd;
    return leati_graph_add(
        env, in,
        &(leati_node_spec){.kind = kind,
                           .flags = LEATI_NODE_SINK,
                           .factory = {print_create, config},
                           .detail = *config->identifier ? config->identifier : NULL});
}

leat_stream *leat_print(leat_stream *in)
{
    return build(in, "print", 1, NULL);
}

leat_stream *leat_print_to_err(leat_stream *in)
{
    return build(in, "print_to_err", 2, NULL);
}

leat_stream *leat_print_as(leat_stream *in, const char *identifier)
{
    return build(in, "print", 1, identifier);
}

leat_stream *leat_print_to_err_as(leat_stream *in, const char *identifier)
{
    return build(in, "print_to_err", 2, identifier);
}
