// SPDX-License-Identifier: Apache-2.0
// Text as a file format: its lines.
#include <stdio.h>
#include <string.h>

#include "leat/file_source.h"
#include "operators/file_text.h"

bool leat_file_sync_lines(void *reader, const leat_file_text *text, size_t *skip)
{
    const char *lf = text->size ? memchr(text->data, '\n', text->size) : NULL;
    *skip = lf ? (size_t)(lf - text->data) + 1 : text->size;
    return lf != NULL;
}

static leat_err text_check(const leat_file_format *format, const leat_type *type,
                           leat_parse_error *error)
{
    if (leat_type_equal(type, leat_type_scalar(LEAT_STR)))
        return LEAT_OK;
    snprintf(error->text, sizeof error->text, "lines are records of the type str");
    return LEAT_ETYPE;
}

static leat_file_result text_next(void *reader, const leat_file_text *text, size_t *consumed,
                                  void *record, leat_parse_error *error)
{
    size_t taken = leati_text_line(text->data, text->size, text->scanned, record);
    if (LEAT_UNLIKELY(taken == 0)) {
        if (!text->at_end)
            return LEAT_FILE_MORE;
        taken = text->size;
        *(leat_str *)record = (leat_str){.data = text->data, .size = taken};
    }
    *consumed = taken;
    return LEAT_FILE_RECORD;
}

const leat_file_format *leat_text_format(void)
{
    static const leat_file_format format = {
        .name = "text",
        .sync_bytes = 1,
        .check = text_check,
        .sync = leat_file_sync_lines,
        .next = text_next,
    };
    return &format;
}

leat_stream *leat_read_text_files(leat_env *env, const char *const *paths, size_t path_count)
{
    return leat_read_files(env,
                           &(leat_file_options){
                               .paths = paths,
                               .path_count = path_count,
                               .format = leat_text_format(),
                           },
                           leat_type_scalar(LEAT_STR));
}

leat_stream *leat_read_text(leat_env *env, const char *path)
{
    return leat_read_text_files(env, &path, 1);
}
