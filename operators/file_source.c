// SPDX-License-Identifier: Apache-2.0
// leat_read_files: the records of files, directories and standard input. The subtasks share one
// list of splits and each takes the next when it has read one to its end; in other processes than
// that of subtask 0 they ask for it.
#include "operators/file_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "leat/reject.h"
#include "operators/builder.h"
#include "operators/file_away.h"
#include "operators/file_reader.h"
#include "runtime/context.h"

// After so many bytes, or one read without a record, poll returns, so that turns stay short when
// records are long.
enum { TURN_BYTES = 256 * 1024, WHY_BYTES = 1024 };

typedef struct file_config {
    leati_file_rules rules;
    const leat_file_format *format;
    leat_file_compression compression;
    const char *folder; // of the environment
} file_config;

typedef struct file_operator {
    leat_operator base;
    const file_config *config;
    leati_file_home *home;     // borrowed from the job
    leati_file_splits *splits; // of it
    bool is_home;
    leati_file_sleeper sleeper; // at home
    bool joined;
    leati_file_away away; // elsewhere
    void *format_reader;
    bool format_made;
    leati_file_reader reader;
    leati_file_split split; // the one that is being read, or without a file
    void *record;
    leat_parse_error error;
} file_operator;

// --- open ---

static leati_file_listing listing_of(const file_operator *op, char *why)
{
    return (leati_file_listing){.watching = op->config->rules.watch_interval_ms > 0,
                                .folder = op->config->folder,
                                .ctx = op->base.ctx,
                                .why = why,
                                .why_size = WHY_BYTES};
}

// Lists the files, at home.
static leat_err start(file_operator *op)
{
    leat_ctx *ctx = op->base.ctx;
    char why[WHY_BYTES] = "";
    leati_file_listing listing = listing_of(op, why);
    leat_err err =
        leati_file_splits_start(op->splits, &op->config->rules, &listing, leat_ctx_now_ns(ctx));
    if (err != LEAT_OK)
        return leati_ctx_error(ctx, err, "%s", why);
    leati_file_home_serve(op->home);
    return LEAT_OK;
}

static leat_err join(file_operator *op)
{
    leat_ctx *ctx = op->base.ctx;
    leat_err err = leati_file_home_get(ctx, &op->home);
    if (err != LEAT_OK)
        return err;
    op->splits = leati_file_home_splits(op->home);
    op->is_home = leati_ctx_is_home(ctx);
    if (!op->is_home)
        return LEAT_OK;
    err = start(op);
    if (err != LEAT_OK)
        return err;
    op->sleeper.waker = leat_ctx_waker(ctx);
    leati_file_splits_join(op->splits, &op->sleeper);
    op->joined = true;
    return LEAT_OK;
}

static leat_err file_open(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    const leat_file_format *format = op->config->format;
    const leat_allocator *allocator = leat_ctx_allocator(self->ctx);
    leat_err err = join(op);
    if (err != LEAT_OK)
        return err;
    op->record = leati_calloc(allocator, 1, leat_ctx_out_type(self->ctx)->size);
    if (!op->record)
        return leati_ctx_error(self->ctx, LEAT_ENOMEM, "no memory for a record");
    if (format->create) {
        err = format->create(format, self->ctx, &op->format_reader);
        if (err != LEAT_OK)
            return leati_ctx_error(self->ctx, err, "the format \"%s\" has made no reader: %s",
                                   format->name, leat_err_message(err));
    }
    op->format_made = true;
    leati_file_reader_init(&op->reader, allocator, format, op->format_reader, LEATI_FILE_BLOCK);
    op->reader.splits = op->splits;
    op->reader.folder = op->config->folder;
    op->reader.record_max =
        (size_t)leati_config_get(leati_ctx_config(self->ctx), LEATI_CONFIG_SOURCE_RECORD_MAX);
    return LEAT_OK;
}

// --- splits ---

static void leave_split(file_operator *op)
{
    leati_file_reader_close(&op->reader);
    leati_file_splits_release(op->splits, &op->split);
}

// A file that has gone, or was replaced or truncated, has changed: where paths are watched, what is
// there now is listed again, so that the rest of the old one is not missed.
static leat_err lose_split(file_operator *op, leat_err err)
{
    leat_ctx *ctx = op->base.ctx;
    bool changed = err == LEAT_ENOENT || err == LEAT_ESTATE;
    if (changed && op->config->rules.watch_interval_ms > 0) {
        leat_ctx_log(ctx, LEAT_LOG_WARN, "%s", op->reader.why);
        leave_split(op);
        return LEAT_OK;
    }
    return leati_ctx_error(ctx, err == LEAT_ESTATE ? LEAT_EIO : err, "%s", op->reader.why);
}

static leat_err take_split(file_operator *op, leati_split_result *result)
{
    if (!op->is_home)
        return leati_file_away_next(&op->away, op->base.ctx, op->home, &op->split, result);
    *result = leati_file_splits_next(op->splits, &op->sleeper, &op->split);
    return LEAT_OK;
}

// Opens the next split, or says that there is none.
static leat_err next_split(file_operator *op, leat_poll *state)
{
    leati_split_result result;
    leat_err err = take_split(op, &result);
    if (err != LEAT_OK)
        return err;
    switch (result) {
    case LEATI_SPLIT_FOUND:
        err = leati_file_reader_open(&op->reader, &op->split);
        return err == LEAT_OK ? LEAT_OK : lose_split(op, err);
    case LEATI_SPLIT_LOST:
        leat_ctx_log(op->base.ctx, LEAT_LOG_WARN,
                     "%s: has changed since it was listed; what it held from byte %" PRId64
                     " on is passed over, and what it holds now is read from its start",
                     op->split.file->path, op->split.start);
        leati_file_splits_release(op->splits, &op->split);
        return LEAT_OK;
    case LEATI_SPLIT_NONE:
        *state = LEAT_POLL_END;
        return LEAT_OK;
    case LEATI_SPLIT_WAIT:
        *state = LEAT_POLL_WAIT;
        return LEAT_OK;
    case LEATI_SPLIT_WATCH:
        // Until the next listing is due, or somebody else's has found something.
        *state = LEAT_POLL_WAIT;
        leat_ctx_wake_at(op->base.ctx, leati_file_splits_due_ns(op->splits));
        return LEAT_OK;
    }
    return LEAT_OK;
}

// Lists watched paths once more when that is due.
static leat_err scan(file_operator *op)
{
    leat_ctx *ctx = op->base.ctx;
    int64_t now_ns = leat_ctx_now_ns(ctx);
    if (!leati_file_splits_due(op->splits, now_ns))
        return LEAT_OK;
    char why[WHY_BYTES] = "no memory for the list of files";
    leati_file_listing listing = listing_of(op, why);
    leat_blocking_begin(ctx);
    leat_err err = leati_file_splits_scan(op->splits, &listing, now_ns);
    if (err == LEAT_OK)
        leati_file_home_serve(op->home);
    leat_blocking_end(ctx);
    if (err == LEAT_OK || err == LEAT_ECANCELLED)
        return err;
    return leati_ctx_error(ctx, err, "%s", why);
}

// --- records ---

// Reads one block, or arranges to be woken when there is something to read.
static leat_err fill(file_operator *op, leat_poll *state)
{
    leat_ctx *ctx = op->base.ctx;
    leat_err err = LEAT_EAGAIN;
    if (leati_file_reader_ready(&op->reader))
        err = leati_file_reader_fill(&op->reader);
    if (err == LEAT_OK)
        return LEAT_OK;
    if (err != LEAT_EAGAIN)
        return lose_split(op, err);
    *state = LEAT_POLL_WAIT;
    return leat_ctx_wait_readable(ctx, op->reader.fd);
}

static leat_err reject(file_operator *op)
{
    char place[320];
    leati_file_reader_place(&op->reader, place, sizeof place);
    leat_err err = leat_reject_text(op->base.ctx, op->reader.raw, "%s: %s", place, op->error.text);
    // A format that says nothing of the next one must not repeat this.
    op->error.text[0] = '\0';
    op->error.offset = 0;
    return err;
}

// Does what is to be done before there can be a record.
static leat_err go_on(file_operator *op, leati_read why, leat_poll *state)
{
    switch (why) {
    case LEATI_READ_FILL:
        return fill(op, state);
    case LEATI_READ_BAD:
        return reject(op);
    case LEATI_READ_FAIL:
        return leati_ctx_error(op->base.ctx, op->reader.failure, "%s", op->reader.why);
    case LEATI_READ_END:
        if (op->split.file)
            leave_split(op);
        return next_split(op, state);
    default:
        return LEAT_OK;
    }
}

static leat_err file_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                          leat_poll *state)
{
    file_operator *op = (file_operator *)self;
    leati_file_reader *reader = &op->reader;
    uint32_t records = 0;
    size_t bytes = 0;
    bool has_read = false;
    *state = LEAT_POLL_MORE;
    leat_err err = scan(op);
    while (err == LEAT_OK && *state == LEAT_POLL_MORE && records < max_records &&
           bytes < TURN_BYTES) {
        size_t at = reader->at;
        leati_read found = op->split.file ? leati_file_reader_next(reader, op->record, &op->error)
                                          : LEATI_READ_END;
        if (LEAT_LIKELY(found == LEATI_READ_RECORD)) {
            records++;
            bytes += reader->at - at;
            err = leat_collect(out, op->record);
        } else if (found == LEATI_READ_FILL && has_read) {
            break;
        } else {
            // Going to another place of the file starts the buffer anew.
            bytes += reader->at > at ? reader->at - at : 0;
            has_read |= found == LEATI_READ_FILL;
            err = go_on(op, found, state);
        }
        if (!leat_out_available(self->ctx))
            break;
    }
    leat_ctx_count_in(self->ctx, records, bytes);
    return err;
}

static void file_dispose(leat_operator *self)
{
    file_operator *op = (file_operator *)self;
    const leat_file_format *format = op->config->format;
    if (op->format_made) {
        leati_file_reader_fini(&op->reader);
        if (format->destroy)
            format->destroy(op->format_reader);
    }
    if (op->split.file)
        leati_file_splits_release(op->splits, &op->split);
    if (op->joined)
        leati_file_splits_leave(op->splits, &op->sleeper);
    if (op->home)
        leati_file_away_fini(&op->away, op->home);
    leati_free(leat_ctx_allocator(self->ctx), op->record);
    leati_operator_dispose(self);
}

static const leat_operator_ops file_ops = {
    .kind = "source: files",
    .open = file_open,
    .poll = file_poll,
    .dispose = file_dispose,
};

static leat_err file_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    file_operator *made = leati_operator_create(ctx, sizeof *made, &file_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

// --- the builder ---

static int compression_of(const leati_file_rules *rules, const char *path)
{
    // The rules are the first member.
    const file_config *config = (const file_config *)rules;
    switch (config->compression) {
    case LEAT_FILE_PLAIN:
        return LEATI_PLAIN;
    case LEAT_FILE_GZIP:
        return LEATI_GZIP;
    case LEAT_FILE_ZSTD:
        return LEATI_ZSTD;
    default:
        return leati_compression_by_name(path);
    }
}

const char *leati_copy_text(leat_env *env, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    char *copy = text ? leat_env_alloc(env, size) : NULL;
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

const leat_column *leati_copy_columns(leat_env *env, const leat_column *columns, size_t count)
{
    leat_column *copies = count ? leat_env_alloc(env, count * sizeof *copies) : NULL;
    for (size_t i = 0; copies && i < count; i++) {
        copies[i].field = leati_copy_text(env, columns[i].field);
        copies[i].name = leati_copy_text(env, columns[i].name);
    }
    return copies;
}

static const char *const *copy_paths(leat_env *env, const char *const *paths, size_t count)
{
    const char **copies = leat_env_alloc(env, count * sizeof *copies);
    for (size_t i = 0; copies && i < count; i++)
        if (!(copies[i] = leati_copy_text(env, paths[i])))
            return NULL;
    return copies;
}

// What pictures show: the paths, or the first few and how many there are, and how they are read.
static void print_detail(leati_strbuf *text, const file_config *config)
{
    static const char *const forced[] = {"", ", plain", ", gzip", ", zstd"};
    enum { SHOWN_BYTES = 200 };
    const leati_file_rules *rules = &config->rules;
    for (size_t i = 0; i < rules->path_count; i++) {
        if (text->size > SHOWN_BYTES) {
            leati_strbuf_printf(text, ", … %zu paths", rules->path_count);
            break;
        }
        leati_strbuf_printf(text, "%s%s", i ? ", " : "", rules->paths[i]);
    }
    leati_strbuf_puts(text, forced[config->compression]);
    if (rules->watch_interval_ms > 0)
        leati_strbuf_printf(text, ", watched every %" PRId64 " ms", rules->watch_interval_ms);
}

// Why the options cannot be used, or NULL.
static const char *check_options(const leat_file_options *options)
{
    if (!options || !options->paths || options->path_count == 0)
        return "there are no paths";
    for (size_t i = 0; i < options->path_count; i++) {
        if (!options->paths[i] || !*options->paths[i])
            return "a path is empty";
        if (options->watch_interval_ms > 0 && strcmp(options->paths[i], "-") == 0)
            return "standard input cannot be watched";
    }
    if (!options->format)
        return "there is no format";
    if (!options->format->name || !options->format->next)
        return "the format has no name or no next hook";
    if (options->watch_interval_ms < 0 || options->watch_interval_ms > INT64_C(86400000))
        return "the interval of watching is not between 0 and a day";
    if ((unsigned)options->compression > LEAT_FILE_ZSTD)
        return "this compression is not known";
    return NULL;
}

// Standard input is that of the program which builds the graph. A watched path is never done.
static uint32_t flags_of(const file_config *config)
{
    uint32_t flags = LEATI_NODE_SOURCE;
    if (config->rules.watch_interval_ms > 0)
        flags |= LEATI_NODE_ENDLESS;
    for (size_t i = 0; i < config->rules.path_count; i++)
        if (strcmp(config->rules.paths[i], "-") == 0)
            flags |= LEATI_NODE_LOCAL;
    return flags;
}

static leat_stream *add_source(leat_env *env, const file_config *config, const leat_type *type)
{
    size_t kind_size = strlen(config->format->name) + sizeof "source: ";
    char *kind = leat_env_alloc(env, kind_size);
    if (!kind)
        return leati_graph_inert(env);
    snprintf(kind, kind_size, "source: %s", config->format->name);
    leati_strbuf detail;
    leati_strbuf_init(&detail, leat_env_allocator(env));
    print_detail(&detail, config);
    leat_stream *stream = leati_graph_add(env, NULL,
                                          &(leati_node_spec){.kind = kind,
                                                             .flags = flags_of(config),
                                                             .out_type = type,
                                                             .factory = {file_create, config},
                                                             .detail = leati_strbuf_text(&detail)});
    leati_strbuf_fini(&detail);
    return stream;
}

leat_stream *leat_read_files(leat_env *env, const leat_file_options *options, const leat_type *type)
{
    if (!env)
        return leati_graph_inert(env);
    const char *wrong = check_options(options);
    if (wrong)
        return leati_builder_fault(env, "leat_read_files", wrong);
    const leat_file_format *format = options->format;
    leat_parse_error error = {.offset = 0};
    const char *why;
    // Unfit types are found when the operator is added.
    if (type && leat_type_check(type, &why) == LEAT_OK && format->check &&
        format->check(format, type, &error) != LEAT_OK) {
        leat_env_fail(env, LEAT_ETYPE, "leat_read_files: the format \"%s\": %s", format->name,
                      error.text[0] ? error.text : "it cannot have records of this type");
        return leati_graph_inert(env);
    }
    file_config *config = leat_env_alloc(env, sizeof *config);
    const char *const *paths = copy_paths(env, options->paths, options->path_count);
    if (!config || !paths)
        return leati_graph_inert(env);
    config->rules = (leati_file_rules){.paths = paths,
                                       .path_count = options->path_count,
                                       .compression = compression_of,
                                       .whole = !format->sync,
                                       .watch_interval_ms = options->watch_interval_ms};
    config->format = format;
    config->folder = leati_env_folder(env);
    config->compression = options->compression;
    return add_source(env, config, type);
}
