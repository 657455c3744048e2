// SPDX-License-Identifier: Apache-2.0
// CSV as a file format. A line break may lie inside quotes, so files are cut only when the user
// says that none does.
#include <stdio.h>

#include "base/alloc.h"
#include "operators/builder.h"
#include "operators/file_source.h"
#include "runtime/context.h"

typedef struct csv_format {
    leat_file_format base;
    leat_csv_options options;
} csv_format;

typedef struct csv_reader {
    const leat_allocator *allocator;
    leat_csv *csv;
    leat_scratch *scratch;
    size_t record_max;
} csv_reader;

static leat_err csv_check(const leat_file_format *format, const leat_type *type,
                          leat_parse_error *error)
{
    leat_csv *csv;
    leat_err err = leat_csv_create(NULL, type, &((const csv_format *)format)->options, &csv, error);
    if (err == LEAT_OK)
        leat_csv_destroy(&csv);
    return err;
}

static void csv_destroy(void *object)
{
    csv_reader *reader = object;
    if (!reader)
        return;
    leat_csv_destroy(&reader->csv);
    leat_scratch_destroy(&reader->scratch);
    leati_free(reader->allocator, reader);
}

static leat_err csv_create(const leat_file_format *format, leat_ctx *ctx, void **object)
{
    const leat_allocator *allocator = leat_ctx_allocator(ctx);
    csv_reader *reader = leati_calloc(allocator, 1, sizeof *reader);
    if (!reader)
        return LEAT_ENOMEM;
    leat_parse_error error = {.offset = 0};
    reader->allocator = allocator;
    reader->record_max =
        (size_t)leati_config_get(leati_ctx_config(ctx), LEATI_CONFIG_SOURCE_RECORD_MAX);
    leat_err err = leat_csv_create(allocator, leat_ctx_out_type(ctx),
                                   &((const csv_format *)format)->options, &reader->csv, &error);
    if (err == LEAT_ETYPE || err == LEAT_EINVAL)
        leati_ctx_error(ctx, err, "%s", error.text);
    if (err == LEAT_OK)
        err = leat_scratch_create(allocator, &reader->scratch);
    if (err != LEAT_OK) {
        csv_destroy(reader);
        return err;
    }
    *object = reader;
    return LEAT_OK;
}

static leat_file_result answer(leat_csv_result result, leat_parse_error *error)
{
    switch (result) {
    case LEAT_CSV_RECORD:
        return LEAT_FILE_RECORD;
    case LEAT_CSV_MORE:
        return LEAT_FILE_MORE;
    case LEAT_CSV_BAD:
        return LEAT_FILE_BAD;
    case LEAT_CSV_NONE:
        return LEAT_FILE_NONE;
    case LEAT_CSV_NOMEM:
        break;
    }
    snprintf(error->text, sizeof error->text, "no memory for the record");
    return LEAT_FILE_FAIL;
}

// What was read as if a record, or the header, ended with the text at hand, because it has become
// too long to wait for its end. If a quote that was never closed is why, it is one line that is
// bad, as it would be at the end of the file; only such a quote makes the end come before the
// text's. Whatever else it may be stays unfinished, and fails.
static leat_csv_result judge(const csv_reader *reader, const leat_file_text *text,
                             leat_csv_result result, size_t consumed, leat_parse_error *error)
{
    if (result != LEAT_CSV_BAD || consumed == text->size)
        return result == LEAT_CSV_NOMEM ? result : LEAT_CSV_MORE;
    char limit[32];
    leati_config_print(LEATI_CONFIG_SOURCE_RECORD_MAX, (int64_t)reader->record_max, limit,
                       sizeof limit);
    snprintf(error->text, sizeof error->text,
             "the quote that opens here is not closed within %s, the source.record-max-size; if no "
             "value holds line breaks, the option no_multiline bounds it by its line",
             limit);
    return LEAT_CSV_BAD;
}

static leat_file_result csv_header(void *object, const leat_file_text *text, size_t *consumed,
                                   leat_parse_error *error)
{
    csv_reader *reader = object;
    // Reading of the file before may have ended in the middle of a record.
    if (text->scanned == 0)
        leat_csv_restart(reader->csv);
    leat_csv_result result =
        leat_csv_header(reader->csv, text->data, text->size, text->at_end, consumed, error);
    if (result == LEAT_CSV_MORE && text->size > reader->record_max) {
        leat_csv_restart(reader->csv);
        result = leat_csv_header(reader->csv, text->data, text->size, true, consumed, error);
        result = judge(reader, text, result, *consumed, error);
    }
    return answer(result, error);
}

static leat_csv_result give_up(csv_reader *reader, const leat_file_text *text, size_t *consumed,
                               void *record, leat_parse_error *error)
{
    leat_csv_restart(reader->csv);
    leat_scratch_reset(reader->scratch);
    leat_csv_result result = leat_csv_next(reader->csv, text->data, text->size, true, consumed,
                                           record, reader->scratch, error);
    return judge(reader, text, result, *consumed, error);
}

static leat_file_result csv_next(void *object, const leat_file_text *text, size_t *consumed,
                                 void *record, leat_parse_error *error)
{
    csv_reader *reader = object;
    leat_scratch_reset(reader->scratch);
    leat_csv_result result = leat_csv_next(reader->csv, text->data, text->size, text->at_end,
                                           consumed, record, reader->scratch, error);
    if (LEAT_UNLIKELY(result == LEAT_CSV_MORE && text->size > reader->record_max))
        result = give_up(reader, text, consumed, record, error);
    return answer(result, error);
}

const leat_file_format *leat_csv_format(leat_env *env, const leat_csv_options *options)
{
    csv_format *format = env ? leat_env_alloc(env, sizeof *format) : NULL;
    if (!format)
        return NULL;
    if (options) {
        format->options = *options;
        format->options.missing = leati_copy_text(env, options->missing);
        format->options.columns = leati_copy_columns(env, options->columns, options->column_count);
    }
    format->base = (leat_file_format){
        .name = "csv",
        .utf8 = true,
        .sync_bytes = 1,
        .check = csv_check,
        .create = csv_create,
        .destroy = csv_destroy,
        .header = csv_header,
        .sync = format->options.no_multiline ? leat_file_sync_lines : NULL,
        .next = csv_next,
    };
    return &format->base;
}

leat_stream *leat_read_csv(leat_env *env, const char *path, const leat_type *type,
                           const leat_csv_options *options)
{
    const leat_file_format *format = leat_csv_format(env, options);
    if (!format)
        return leati_graph_inert(env);
    return leat_read_files(
        env, &(leat_file_options){.paths = &path, .path_count = 1, .format = format}, type);
}
