// SPDX-License-Identifier: Apache-2.0
// JSON lines as a file format.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "operators/builder.h"
#include "operators/file_source.h"

typedef struct json_format {
    leat_file_format base;
    leat_json_options options;
} json_format;

typedef struct json_reader {
    const leat_allocator *allocator;
    const leat_type *type;
    const leat_json_options *options;
    leat_scratch *scratch;
} json_reader;

static leat_err json_check(const leat_file_format *format, const leat_type *type,
                           leat_parse_error *error)
{
    return leat_json_options_check(type, &((const json_format *)format)->options, error);
}

static void json_destroy(void *object)
{
    json_reader *reader = object;
    if (!reader)
        return;
    leat_scratch_destroy(&reader->scratch);
    leati_free(reader->allocator, reader);
}

static leat_err json_create(const leat_file_format *format, leat_ctx *ctx, void **object)
{
    const leat_allocator *allocator = leat_ctx_allocator(ctx);
    json_reader *reader = leati_calloc(allocator, 1, sizeof *reader);
    if (!reader)
        return LEAT_ENOMEM;
    reader->allocator = allocator;
    reader->type = leat_ctx_out_type(ctx);
    reader->options = &((const json_format *)format)->options;
    leat_err err = leat_scratch_create(allocator, &reader->scratch);
    if (err != LEAT_OK) {
        json_destroy(reader);
        return err;
    }
    *object = reader;
    return LEAT_OK;
}

static bool is_blank(const char *text, size_t size)
{
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t' || text[size - 1] == '\r'))
        size--;
    return size == 0;
}

// Files that hold JSON, but not a line for each record: those written for people to read, and
// lists.
static void hint_at_lines(const leat_type *type, const char *text, size_t size,
                          leat_parse_error *error)
{
    size_t at = 0, length = strlen(error->text);
    while (at < size && (text[at] == ' ' || text[at] == '\t'))
        at++;
    if (type->kind != LEAT_STRUCT || at == size)
        return;
    bool is_list = text[at] == '[', is_begun = text[at] == '{' && error->offset >= size;
    if (is_list || is_begun)
        snprintf(error->text + length, sizeof error->text - length,
                 "; each line must hold one whole object%s",
                 is_list ? ", without a list around them" : "");
}

static leat_file_result json_next(void *object, const leat_file_text *text, size_t *consumed,
                                  void *record, leat_parse_error *error)
{
    json_reader *reader = object;
    const char *lf = memchr(text->data + text->scanned, '\n', text->size - text->scanned);
    if (!lf && !text->at_end)
        return LEAT_FILE_MORE;
    size_t size = lf ? (size_t)(lf - text->data) : text->size;
    *consumed = size + (lf != NULL);
    leat_scratch_reset(reader->scratch);
    leat_err err = leat_record_from_json(reader->type, reader->options, text->data, size, record,
                                         reader->scratch, error);
    if (LEAT_LIKELY(err == LEAT_OK))
        return LEAT_FILE_RECORD;
    if (is_blank(text->data, size))
        return LEAT_FILE_NONE;
    if (err != LEAT_ECORRUPT)
        return LEAT_FILE_FAIL;
    hint_at_lines(reader->type, text->data, size, error);
    return LEAT_FILE_BAD;
}

const leat_file_format *leat_json_format(leat_env *env, const leat_json_options *options)
{
    json_format *format = env ? leat_env_alloc(env, sizeof *format) : NULL;
    if (!format)
        return NULL;
    if (options) {
        format->options = *options;
        format->options.columns = leati_copy_columns(env, options->columns, options->column_count);
    }
    format->base = (leat_file_format){
        .name = "json",
        .utf8 = true,
        .sync_bytes = 1,
        .check = json_check,
        .create = json_create,
        .destroy = json_destroy,
        .sync = leat_file_sync_lines,
        .next = json_next,
    };
    return &format->base;
}

leat_stream *leat_read_json(leat_env *env, const char *path, const leat_type *type,
                            const leat_json_options *options)
{
    const leat_file_format *format = leat_json_format(env, options);
    if (!format)
        return leati_graph_inert(env);
    return leat_read_files(
        env, &(leat_file_options){.paths = &path, .path_count = 1, .format = format}, type);
}
