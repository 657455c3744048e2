// SPDX-License-Identifier: Apache-2.0
// leat_write_file and its kin: a line for each record, in files that are written aside.
//
// The subtasks share the target. The first to open creates it; the job puts it in its place with
// those of the other file sinks when all its tasks have finished, and else removes it when it is
// destroyed.
#include "leat/file_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "operators/builder.h"
#include "operators/env_copy.h"
#include "operators/file_outputs.h"
#include "operators/line_buffer.h"
#include "runtime/context.h"

enum { WHY_SIZE = 1024 };

typedef struct file_config {
    const char *path;
    const char *folder; // of the environment
    uint32_t operator_id;
    leat_line_format format;
    leat_csv_options csv;
    bool overwrite, sync;
} file_config;

typedef struct file_operator {
    leat_operator base;
    const file_config *config;
    const leat_type *type;
    leati_file_target *target; // borrowed from the job
    int fd;                    // the target's
    int64_t written;           // bytes
    leat_csv *csv;             // with LEAT_LINE_CSV
    leati_line_buffer lines;
} file_operator;

// --- a subtask ---

static size_t format_text(leat_operator *self, const void *record, char *to, size_t size)
{
    return leat_record_text(((file_operator *)self)->type, record, to, size);
}

static size_t format_json(leat_operator *self, const void *record, char *to, size_t size)
{
    return leat_record_json(((file_operator *)self)->type, record, to, size);
}

static size_t format_csv(leat_operator *self, const void *record, char *to, size_t size)
{
    return leat_csv_write(((file_operator *)self)->csv, record, to, size);
}

static size_t format_csv_header(leat_operator *self, const void *record, char *to, size_t size)
{
    return leat_csv_write_header(((file_operator *)self)->csv, to, size);
}

static leat_err file_error(file_operator *op, int error, const char *what)
{
    leat_ctx *ctx = op->base.ctx;
    char path[WHY_SIZE], why[2 * WHY_SIZE];
    if (leat_ctx_parallelism(ctx) == 1)
        snprintf(path, sizeof path, "%s", op->config->path);
    else
        snprintf(path, sizeof path, "%s/%" PRIu32, op->config->path, leat_ctx_subtask(ctx) + 1);
    leat_err err = leati_file_error(error, what, path, why, sizeof why);
    return leati_ctx_error(ctx, err, "%s", why);
}

// Not declared as blocking: the page cache takes these at once as a rule, and where it does not the
// runtime's monitor hands the worker over.
static leat_err file_write(leat_operator *self, const char *data, size_t size)
{
    file_operator *op = (file_operator *)self;
    while (size > 0) {
        ssize_t written = write(op->fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return file_error(op, errno, "write");
        op->written += written;
        data += written;
        size -= (size_t)written;
    }
    return LEAT_OK;
}

static leat_err begin_csv(file_operator *op)
{
    leat_ctx *ctx = op->base.ctx;
    leat_parse_error error;
    leat_err err =
        leat_csv_create(leat_ctx_allocator(ctx), op->type, &op->config->csv, &op->csv, &error);
    if (err)
        return leati_ctx_error(ctx, err, "writing CSV: %s", leat_err_message(err));
    if (op->config->csv.no_header)
        return LEAT_OK;
    op->lines.format = format_csv_header;
    err = leati_line_buffer_put(&op->lines, NULL);
    op->lines.format = format_csv;
    op->lines.lines = 0; // the header is no record
    return err;
}

static leat_err file_open(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    const file_config *config = op->config;
    leati_file_target_options options = {.path = config->path,
                                         .folder = config->folder,
                                         .parts = leat_ctx_parallelism(self->ctx),
                                         .overwrite = config->overwrite,
                                         .token = leati_ctx_attempt_token(self->ctx),
                                         .sync = config->sync};
    leat_err err =
        leati_file_outputs_open(self->ctx, config, config->operator_id, &options, &op->target);
    if (err)
        return err;
    char why[WHY_SIZE];
    err = leati_file_target_open_part(op->target, leat_ctx_subtask(self->ctx), &op->fd, why,
                                      sizeof why);
    if (err)
        return leati_ctx_error(self->ctx, err, "%s", why);
    err = leati_line_buffer_open(&op->lines);
    return err || config->format != LEAT_LINE_CSV ? err : begin_csv(op);
}

static leat_err file_element(leat_operator *self, const void *record, leat_out *out)
{
    return leati_line_buffer_put(&((file_operator *)self)->lines, record);
}

static leat_err file_close(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    leat_err err = leati_line_buffer_flush(&op->lines);
    if (err)
        return err;
    // May take as long as the disk does.
    leat_blocking_begin(self->ctx);
    int error = leati_file_target_end_part(op->target, leat_ctx_subtask(self->ctx), op->written);
    leat_blocking_end(self->ctx);
    return error ? file_error(op, error, "finish") : LEAT_OK;
}

static void file_dispose(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    leat_csv_destroy(&op->csv);
    leati_line_buffer_fini(&op->lines);
    leati_operator_dispose(self);
}

// There is no flush hook: nobody sees the file before the end.
static const leat_operator_ops file_ops = {
    .kind = "file",
    .open = file_open,
    .element = file_element,
    .close = file_close,
    .dispose = file_dispose,
};

static leat_err file_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    file_operator *file = leati_operator_create(ctx, sizeof *file, &file_ops);
    if (!file)
        return LEAT_ENOMEM;
    file->config = factory->config;
    file->type = leat_ctx_in_type(ctx);
    file->lines.owner = &file->base;
    file->lines.write = file_write;
    file->lines.format = file->config->format == LEAT_LINE_JSON  ? format_json
                         : file->config->format == LEAT_LINE_CSV ? format_csv
                                                                 : format_text;
    *op = &file->base;
    return LEAT_OK;
}

// --- building ---

static bool copy_csv(leat_env *env, const leat_csv_options *from, leat_csv_options *to)
{
    *to = *from;
    if (from->missing && !(to->missing = leati_env_copy(env, from->missing)))
        return false;
    leat_column *columns = leat_env_alloc(env, from->column_count * sizeof *columns);
    if (!columns)
        return false;
    for (size_t i = 0; i < from->column_count; i++) {
        columns[i].field = leati_env_copy(env, from->columns[i].field);
        columns[i].name = leati_env_copy(env, from->columns[i].name);
        if (!columns[i].field || !columns[i].name)
            return false;
    }
    to->columns = columns;
    return true;
}

// Whether the format can write records of this type; a fault says why not.
static bool check_format(leat_stream *in, const leat_file_sink_options *options)
{
    static const char call[] = "leat_write_file";
    leat_csv *csv = NULL;
    leat_parse_error error;
    if (options->format == LEAT_LINE_TEXT || options->format == LEAT_LINE_JSON)
        return true;
    if (options->format != LEAT_LINE_CSV) {
        leati_builder_fault_on(in, call, "the format is none");
        return false;
    }
    leat_err err = leat_csv_create(leat_env_allocator(leati_stream_env(in)), leati_stream_type(in),
                                   options->csv, &csv, &error);
    if (err == LEAT_ENOMEM)
        leat_env_fail(leati_stream_env(in), err, "%s: %s", call, leat_err_message(err));
    else if (err)
        leati_builder_fault_on(in, call, error.text);
    leat_csv_destroy(&csv);
    return !err;
}

// Of two sinks with one path the second is at fault. Paths that are spelt differently are compared
// when the job runs: only then is it known what they name.
static void check_alone(leat_env *env, leat_stream *made, const file_config *config)
{
    for (size_t i = 0; i < leati_graph_node_count(env); i++) {
        const leati_node *node = leati_graph_node(env, i);
        const file_config *other = node->factory.config;
        if (node->factory.create == file_create && other != config &&
            strcmp(other->path, config->path) == 0)
            leati_graph_fault(made, LEAT_EINVAL,
                              "leat_write_file: %s is also what \"%s\" (operator %" PRIu32
                              ") writes: no two sinks of a job can write one output",
                              config->path, node->name, node->id);
    }
}

leat_stream *leat_write_file(leat_stream *in, const char *path,
                             const leat_file_sink_options *options)
{
    static const leat_file_sink_options defaults;
    static const char call[] = "leat_write_file";
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!options)
        options = &defaults;
    if (!path || !leati_file_target_path_ok(path))
        return leati_builder_fault_on(in, call, "the path names no file");
    if (!check_format(in, options))
        return leati_graph_inert(env);
    file_config *config = leat_env_alloc(env, sizeof *config);
    if (!config || !(config->path = leati_env_copy(env, path)) ||
        (options->csv && !copy_csv(env, options->csv, &config->csv)))
        return leati_graph_inert(env);
    config->format = options->format;
    config->folder = leati_env_folder(env);
    config->overwrite = options->overwrite;
    config->sync = !options->no_sync;
    leat_stream *made = leati_graph_add(env, in,
                                        &(leati_node_spec){.kind = "file",
                                                           .flags = LEATI_NODE_SINK,
                                                           .factory = {file_create, config},
                                                           .detail = config->path});
    const leati_node *node = leati_stream_node(made);
    if (node) {
        config->operator_id = node->id;
        check_alone(env, made, config);
    }
    return made;
}

leat_stream *leat_write_text(leat_stream *in, const char *path)
{
    return leat_write_file(in, path, NULL);
}

leat_stream *leat_write_csv(leat_stream *in, const char *path, const leat_csv_options *options)
{
    leat_file_sink_options all = {.format = LEAT_LINE_CSV, .csv = options};
    return leat_write_file(in, path, &all);
}

leat_stream *leat_write_json(leat_stream *in, const char *path)
{
    leat_file_sink_options all = {.format = LEAT_LINE_JSON};
    return leat_write_file(in, path, &all);
}
