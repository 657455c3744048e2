// SPDX-License-Identifier: Apache-2.0
// leat_write_file and its kin: a line for each record, in files that are written aside.
//
// The subtasks share the target. The first to open creates it; the job puts it in its place when
// all its tasks have finished, and else removes it when it is destroyed.
#include "leat/file_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "operators/builder.h"
#include "operators/env_copy.h"
#include "operators/file_target.h"
#include "operators/line_buffer.h"
#include "runtime/context.h"

enum { WHY_SIZE = 1024 };

typedef struct file_config {
    const char *path;
    leat_line_format format;
    leat_csv_options csv;
    bool overwrite, sync;
} file_config;

// Of all subtasks.
typedef struct output {
    const leat_allocator *allocator;
    const char *name; // of the operator
    pthread_mutex_t lock;
    leati_file_target *target; // made under the lock, does not change then
} output;

typedef struct file_operator {
    leat_operator base;
    const file_config *config;
    const leat_type *type;
    output *output; // borrowed from the job
    int fd;
    leat_csv *csv; // with LEAT_LINE_CSV
    leati_line_buffer lines;
} file_operator;

// --- what the subtasks share ---

static leat_err output_create(leat_ctx *ctx, void **object)
{
    output *o = leati_calloc(leat_ctx_allocator(ctx), 1, sizeof *o);
    if (!o)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory for an output");
    o->allocator = leat_ctx_allocator(ctx);
    o->name = leat_ctx_name(ctx);
    pthread_mutex_init(&o->lock, NULL);
    *object = o;
    return LEAT_OK;
}

static void output_destroy(void *object)
{
    output *o = object;
    leati_file_target_destroy(&o->target);
    pthread_mutex_destroy(&o->lock);
    leati_free(o->allocator, o);
}

static leat_err output_commit(void *object, char *why, size_t why_size)
{
    output *o = object;
    int used = snprintf(why, why_size, "%s: ", o->name);
    size_t skip = used > 0 && (size_t)used < why_size ? (size_t)used : 0;
    return leati_file_target_commit(o->target, why + skip, why_size - skip);
}

// The first subtask to open makes the target.
static leat_err output_open(output *o, leat_ctx *ctx, const file_config *config)
{
    leati_file_target_options options = {.path = config->path,
                                         .parts = leat_ctx_parallelism(ctx),
                                         .overwrite = config->overwrite,
                                         .sync = config->sync};
    char why[WHY_SIZE];
    leat_err err = LEAT_OK;
    pthread_mutex_lock(&o->lock);
    if (!o->target)
        err = leati_file_target_create(o->allocator, &options, &o->target, why, sizeof why);
    pthread_mutex_unlock(&o->lock);
    return err ? leati_ctx_error(ctx, err, "%s", why) : LEAT_OK;
}

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
    static const leati_shared_ops shared = {
        .create = output_create, .destroy = output_destroy, .commit = output_commit};
    file_operator *op = (file_operator *)self;
    void *object;
    leat_err err = leati_ctx_shared(self->ctx, &shared, &object);
    if (!err)
        err = output_open(object, self->ctx, op->config);
    if (err)
        return err;
    op->output = object;
    char why[WHY_SIZE];
    err = leati_file_target_open_part(op->output->target, leat_ctx_subtask(self->ctx), &op->fd, why,
                                      sizeof why);
    if (err)
        return leati_ctx_error(self->ctx, err, "%s", why);
    err = leati_line_buffer_open(&op->lines);
    return err || op->config->format != LEAT_LINE_CSV ? err : begin_csv(op);
}

static leat_err file_element(leat_operator *self, const void *record, leat_out *out)
{
    return leati_line_buffer_put(&((file_operator *)self)->lines, record);
}

// Both may take as long as the disk does. 0 or an errno; some file systems tell only here that
// there was no room.
static int finish_file(file_operator *op)
{
    leat_blocking_begin(op->base.ctx);
    int error = op->config->sync && fsync(op->fd) != 0 ? errno : 0;
    if (close(op->fd) != 0 && !error && errno != EINTR)
        error = errno;
    op->fd = -1;
    leat_blocking_end(op->base.ctx);
    return error;
}

static leat_err file_close(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    leat_err err = leati_line_buffer_flush(&op->lines);
    if (err)
        return err;
    int error = finish_file(op);
    return error ? file_error(op, error, "finish") : LEAT_OK;
}

static void file_dispose(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    if (op->fd >= 0)
        close(op->fd);
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
    file->fd = -1;
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
    config->overwrite = options->overwrite;
    config->sync = !options->no_sync;
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "file",
                                              .flags = LEATI_NODE_SINK,
                                              .factory = {file_create, config},
                                              .detail = config->path});
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
