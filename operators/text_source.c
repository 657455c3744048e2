// SPDX-License-Identifier: Apache-2.0
// leat_read_text: the lines of files, directories and standard input. The subtasks share one list
// of splits and each takes the next when it has read one to its end.
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "leat/stream.h"
#include "operators/builder.h"
#include "operators/line_reader.h"
#include "runtime/context.h"

// After so many bytes, or one read without a line, poll returns, so that turns stay short when
// lines are long.
enum { TURN_BYTES = 256 * 1024 };

typedef struct text_config {
    const char *const *paths;
    size_t path_count;
} text_config;

typedef struct text_operator {
    leat_operator base;
    const text_config *config;
    leati_text_splits *splits; // borrowed from the job
    leati_line_reader reader;
    bool reading; // a split is open
} text_operator;

static leat_err splits_create(leat_ctx *ctx, void **object)
{
    leati_text_splits *splits;
    leat_err err = leati_text_splits_create(
        leat_ctx_allocator(ctx), leati_config_get(leati_ctx_config(ctx), LEATI_CONFIG_SPLIT_SIZE),
        &splits);
    if (err != LEAT_OK)
        return leati_ctx_error(ctx, err, "no memory for the list of files");
    *object = splits;
    return LEAT_OK;
}

static void splits_destroy(void *object)
{
    leati_text_splits *splits = object;
    leati_text_splits_destroy(&splits);
}

static leat_err text_open(leat_operator *self)
{
    static const leati_shared_ops shared = {.create = splits_create, .destroy = splits_destroy};
    text_operator *op = (text_operator *)self;
    void *object;
    char why[1024];
    leat_err err = leati_ctx_shared(self->ctx, &shared, &object);
    if (err != LEAT_OK)
        return err;
    op->splits = object;
    err = leati_text_splits_list(op->splits, op->config->paths, op->config->path_count, why,
                                 sizeof why);
    return err == LEAT_OK ? LEAT_OK : leati_ctx_error(self->ctx, err, "%s", why);
}

// Reads one block, or arranges to be woken when there is something to read.
static leat_err fill(text_operator *op, leat_poll *state)
{
    leat_ctx *ctx = op->base.ctx;
    leat_err err = LEAT_EAGAIN;
    if (leati_line_reader_ready(&op->reader))
        err = leati_line_reader_fill(&op->reader);
    if (err == LEAT_OK)
        return LEAT_OK;
    if (err != LEAT_EAGAIN)
        return leati_ctx_error(ctx, err, "%s", op->reader.why);
    *state = LEAT_POLL_WAIT;
    return leat_ctx_wait_readable(ctx, op->reader.fd);
}

// Opens the next split, or says that there is none.
static leat_err next_split(text_operator *op, leat_poll *state)
{
    leati_text_split split;
    if (!leati_text_splits_next(op->splits, &split)) {
        *state = LEAT_POLL_END;
        return LEAT_OK;
    }
    leat_err err = leati_line_reader_open(&op->reader, &split);
    if (err != LEAT_OK)
        return leati_ctx_error(op->base.ctx, err, "%s", op->reader.why);
    op->reading = true;
    return LEAT_OK;
}

// What is to be done before there can be a line.
static leat_err go_on(text_operator *op, leati_line why, leat_poll *state)
{
    if (!op->reading)
        return next_split(op, state);
    if (why == LEATI_LINE_NEEDS_FILL)
        return fill(op, state);
    leati_line_reader_close(&op->reader);
    op->reading = false;
    return LEAT_OK;
}

static leat_err text_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                          leat_poll *state)
{
    text_operator *op = (text_operator *)self;
    leat_err err = LEAT_OK;
    uint32_t records = 0;
    size_t bytes = 0;
    bool has_read = false;
    *state = LEAT_POLL_MORE;
    while (err == LEAT_OK && *state == LEAT_POLL_MORE && records < max_records &&
           bytes < TURN_BYTES) {
        leat_str line;
        leati_line found =
            op->reading ? leati_line_reader_next(&op->reader, &line) : LEATI_LINE_END;
        if (LEAT_LIKELY(found == LEATI_LINE_FOUND)) {
            records++;
            bytes += line.size + 1;
            err = leat_collect(out, &line);
            if (!leat_out_available(self->ctx))
                break;
        } else if (found == LEATI_LINE_NEEDS_FILL && has_read) {
            break;
        } else {
            has_read |= found == LEATI_LINE_NEEDS_FILL;
            err = go_on(op, found, state);
        }
    }
    leat_ctx_count_in(self->ctx, records, bytes);
    return err;
}

static void text_dispose(leat_operator *self)
{
    text_operator *op = (text_operator *)self;
    leati_line_reader_fini(&op->reader);
    leati_operator_dispose(self);
}

static const leat_operator_ops text_ops = {
    .kind = "source: text",
    .open = text_open,
    .poll = text_poll,
    .dispose = text_dispose,
};

static leat_err text_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    text_operator *text = leati_operator_create(ctx, sizeof *text, &text_ops);
    if (!text)
        return LEAT_ENOMEM;
    text->config = factory->config;
    leati_line_reader_init(&text->reader, leat_ctx_allocator(ctx), LEATI_LINE_BLOCK);
    *op = &text->base;
    return LEAT_OK;
}

static const char *const *copy_paths(leat_env *env, const char *const *paths, size_t count)
{
    char **copies = leat_env_alloc(env, count * sizeof *copies);
    for (size_t i = 0; copies && i < count; i++) {
        size_t size = strlen(paths[i]) + 1;
        copies[i] = leat_env_alloc(env, size);
        if (!copies[i])
            return NULL;
        memcpy(copies[i], paths[i], size);
    }
    return (const char *const *)copies;
}

// The paths as pictures show them: all of them, or the first few and how many there are.
static void print_paths(leati_strbuf *text, const text_config *config)
{
    enum { SHOWN_BYTES = 200 };
    for (size_t i = 0; i < config->path_count; i++) {
        if (text->size > SHOWN_BYTES) {
            leati_strbuf_printf(text, ", … %zu paths", config->path_count);
            return;
        }
        leati_strbuf_printf(text, "%s%s", i ? ", " : "", config->paths[i]);
    }
}

leat_stream *leat_read_text_files(leat_env *env, const char *const *paths, size_t path_count)
{
    if (!env)
        return leati_graph_inert(env);
    if (!paths || path_count == 0)
        return leati_builder_fault(env, "leat_read_text_files", "there are no paths");
    for (size_t i = 0; i < path_count; i++)
        if (!paths[i] || !*paths[i])
            return leati_builder_fault(env, "leat_read_text_files", "a path is empty");
    text_config *config = leat_env_alloc(env, sizeof *config);
    const char *const *copies = config ? copy_paths(env, paths, path_count) : NULL;
    if (!copies)
        return leati_graph_inert(env);
    *config = (text_config){.paths = copies, .path_count = path_count};
    leati_strbuf detail;
    leati_strbuf_init(&detail, leat_env_allocator(env));
    print_paths(&detail, config);
    leat_stream *stream = leati_graph_add(env, NULL,
                                          &(leati_node_spec){.kind = "source: text",
                                                             .flags = LEATI_NODE_SOURCE,
                                                             .out_type = leat_type_scalar(LEAT_STR),
                                                             .factory = {text_create, config},
                                                             .detail = leati_strbuf_text(&detail)});
    leati_strbuf_fini(&detail);
    return stream;
}

leat_stream *leat_read_text(leat_env *env, const char *path)
{
    return leat_read_text_files(env, &path, 1);
}
