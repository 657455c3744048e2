// SPDX-License-Identifier: Apache-2.0
// What is known of a CSV file before its records: options, and which column is which field.
#include "leat/csv.h"

#include <string.h>

#include "base/alloc.h"
#include "record/csv_impl.h"

// --- making --------------------------------------------------------------------------------------

static char *copy_text(const leat_csv *csv, const char *text)
{
    return leati_strdup(&csv->allocator, text);
}

static leat_err copy_columns(leat_csv *csv, const leat_csv_options *options)
{
    if (options->column_count == 0)
        return LEAT_OK;
    csv->columns = leati_calloc(&csv->allocator, options->column_count, sizeof *csv->columns);
    if (!csv->columns)
        return LEAT_ENOMEM;
    csv->column_count = options->column_count;
    for (size_t i = 0; i < options->column_count; i++) {
        csv->columns[i].field = copy_text(csv, options->columns[i].field);
        csv->columns[i].name = copy_text(csv, options->columns[i].name);
        if (!csv->columns[i].field || !csv->columns[i].name)
            return LEAT_ENOMEM;
    }
    return LEAT_OK;
}

static leat_err copy_missing(leat_csv *csv, const char *missing)
{
    if (!missing || !*missing)
        return LEAT_OK;
    csv->missing = (leat_str){copy_text(csv, missing), strlen(missing)};
    return csv->missing.data ? LEAT_OK : LEAT_ENOMEM;
}

static bool is_special(const leat_csv *csv, char c)
{
    return c == csv->delimiter || c == csv->quote || c == '\n' || c == '\r';
}

static leat_err check_marks(const leat_csv *csv, const char *missing, leat_parse_error *error)
{
    char d = csv->delimiter, q = csv->quote;
    if (d == q || d == '\n' || d == '\r' || q == '\n' || q == '\r') {
        leati_parse_fail(error, 0, "delimiter, quote and line break must differ");
        return LEAT_EINVAL;
    }
    for (; missing && *missing; missing++)
        if (is_special(csv, *missing)) {
            leati_parse_fail(error, 0, "the text that means missing would need quotes");
            return LEAT_EINVAL;
        }
    return LEAT_OK;
}

static leat_err copy_options(leat_csv *csv, const leat_csv_options *options,
                             leat_parse_error *error)
{
    static const char numeric[] = "0123456789+-.eE";
    csv->delimiter = options->delimiter ? options->delimiter : ',';
    csv->quote = options->quote ? options->quote : '"';
    csv->no_header = options->no_header;
    csv->no_multiline = options->no_multiline;
    csv->ignore_extra = options->ignore_extra;
    csv->fill_short = options->fill_short;
    csv->is_quick = !strchr(numeric, csv->delimiter) && !strchr(numeric, csv->quote);
    leat_err err = check_marks(csv, options->missing, error);
    if (err == LEAT_OK)
        err = leati_columns_check(csv->type, options->columns, options->column_count, error);
    if (err == LEAT_OK)
        err = copy_columns(csv, options);
    if (err == LEAT_OK)
        err = copy_missing(csv, options->missing);
    return err;
}

// Each column a field, in their order.
static leat_err use_type(leat_csv *csv)
{
    uint32_t count = csv->type->field_count;
    csv->absent = leati_calloc(&csv->allocator, count, sizeof *csv->absent);
    if (!csv->absent || !leati_grow(&csv->allocator, (void **)&csv->fields, &csv->field_capacity,
                                    count, sizeof *csv->fields))
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        csv->fields[i] = &csv->type->fields[i];
    csv->field_count = count;
    return LEAT_OK;
}

static void columns_are_known(leat_csv *csv)
{
    const leat_field *only = csv->field_count == 1 ? csv->fields[0] : NULL;
    csv->blank_is_record =
        only && (only->kind == LEAT_OPTIONAL || only->kind == LEAT_STR || only->kind == LEAT_BYTES);
    csv->is_ready = true;
}

leat_err leat_csv_create(const leat_allocator *allocator, const leat_type *type,
                         const leat_csv_options *options, leat_csv **csv, leat_parse_error *error)
{
    static const leat_csv_options defaults;
    if (type->kind != LEAT_STRUCT) {
        leati_parse_fail(error, 0, "records of CSV are structs");
        return LEAT_ETYPE;
    }
    leat_csv *made = leati_calloc(allocator, 1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = *leati_allocator_or_default(allocator);
    made->type = leat_type_hold(type);
    leat_err err = copy_options(made, options ? options : &defaults, error);
    if (err == LEAT_OK)
        err = leat_scratch_create(allocator, &made->scratch);
    if (err == LEAT_OK)
        err = use_type(made);
    if (err != LEAT_OK) {
        if (err == LEAT_ENOMEM)
            leati_parse_fail(error, 0, "out of memory");
        leat_csv_destroy(&made);
        return err;
    }
    if (made->no_header)
        columns_are_known(made);
    *csv = made;
    return LEAT_OK;
}

void leat_csv_destroy(leat_csv **csv)
{
    leat_csv *gone = *csv;
    if (!gone)
        return;
    leat_allocator allocator = gone->allocator;
    for (size_t i = 0; i < gone->column_count; i++) {
        leati_free(&allocator, (char *)gone->columns[i].field);
        leati_free(&allocator, (char *)gone->columns[i].name);
    }
    leati_free(&allocator, gone->columns);
    leati_free(&allocator, (char *)gone->missing.data);
    leati_free(&allocator, gone->fields);
    leati_free(&allocator, gone->absent);
    leat_scratch_destroy(&gone->scratch);
    leat_type_release(gone->type);
    leati_free(&allocator, gone);
    *csv = NULL;
}

void leat_csv_restart(leat_csv *csv)
{
    csv->searched = 0;
    csv->state = LEATI_CSV_START;
}

// --- the header ----------------------------------------------------------------------------------

static leat_csv_result out_of_memory(const leati_csv_cursor *cursor)
{
    leati_parse_fail(cursor->error, 0, "out of memory");
    return LEAT_CSV_NOMEM;
}

// Adds the next column of the file. `*guess` is the field that is expected.
static leat_csv_result add_column(leat_csv *csv, const leati_csv_cursor *cursor,
                                  const leati_csv_value *name, uint32_t *guess)
{
    const leat_type *type = csv->type;
    uint32_t index = leati_field_named(type, csv->columns, csv->column_count, name->data,
                                       name->size, *guess < type->field_count ? *guess : 0);
    const leat_field *field = index < type->field_count ? &type->fields[index] : NULL;
    if (!leati_grow(&csv->allocator, (void **)&csv->fields, &csv->field_capacity,
                    csv->field_count + 1, sizeof *csv->fields))
        return out_of_memory(cursor);
    csv->fields[csv->field_count++] = field;
    if (!field)
        return LEAT_CSV_RECORD;
    *guess = index + 1;
    // While the header is read, `absent` has a mark for each field.
    if (csv->absent[index]) {
        leati_shown shown;
        leati_parse_fail(cursor->error, (size_t)(name->at - cursor->text),
                         "the header has the column \"%s\" twice",
                         leati_show(&shown, name->data, name->size));
        return LEAT_CSV_BAD;
    }
    csv->absent[index] = 1;
    return LEAT_CSV_RECORD;
}

// A field without a column: the header is shown, which begins at `start`. One with a single column
// has most likely been cut by the wrong delimiter.
static void fail_absent(const leat_csv *csv, const leati_csv_cursor *cursor, const char *start,
                        uint32_t index)
{
    const char *end = cursor->at;
    while (end > start && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    const char *cr = memchr(start, '\r', (size_t)(end - start));
    leati_shown shown, delimiter;
    const char *name = leati_name_of_field(csv->type, csv->columns, csv->column_count, index);
    leati_show(&shown, start, (size_t)(end - start));
    if (cr && cr[1] != '\n')
        leati_parse_fail(cursor->error, 0,
                         "the header has no column \"%s\"; it has a CR without LF, which does not "
                         "end a line",
                         name);
    else if (csv->field_count == 1)
        leati_parse_fail(cursor->error, 0,
                         "the header has no column \"%s\"; its only column is %s: is '%s' the "
                         "delimiter?",
                         name, shown.text,
                         csv->delimiter == '\t' ? "\\t"
                                                : leati_show(&delimiter, &csv->delimiter, 1));
    else
        leati_parse_fail(cursor->error, 0, "the header has no column \"%s\"; it is %s", name,
                         shown.text);
}

// Turns the marks into the list of fields without a column.
static leat_csv_result list_absent(leat_csv *csv, const leati_csv_cursor *cursor, const char *start)
{
    csv->absent_count = 0;
    for (uint32_t i = 0; i < csv->type->field_count; i++) {
        if (csv->absent[i])
            continue;
        if (csv->type->fields[i].kind != LEAT_OPTIONAL) {
            fail_absent(csv, cursor, start, i);
            return LEAT_CSV_BAD;
        }
        csv->absent[csv->absent_count++] = i;
    }
    return LEAT_CSV_RECORD;
}

static leat_csv_result read_names(leat_csv *csv, leati_csv_cursor *cursor)
{
    leati_csv_step step;
    const char *start = cursor->at;
    uint32_t guess = 0;
    leat_csv_result result = LEAT_CSV_RECORD;
    csv->field_count = 0;
    memset(csv->absent, 0, csv->type->field_count * sizeof *csv->absent);
    do {
        leati_csv_value name;
        step = leati_csv_split(cursor, &name);
        if (step == LEATI_CSV_UNFINISHED)
            return LEAT_CSV_MORE;
        if (step == LEATI_CSV_WRONG)
            return LEAT_CSV_BAD;
        if (step == LEATI_CSV_NO_MEMORY)
            return out_of_memory(cursor);
        if (result == LEAT_CSV_RECORD)
            result = add_column(csv, cursor, &name, &guess);
    } while (step == LEATI_CSV_NEXT && result != LEAT_CSV_NOMEM);
    return result == LEAT_CSV_RECORD ? list_absent(csv, cursor, start) : result;
}

// Passes over a byte-order mark; and, before a header, over blank lines.
static leat_csv_result pass_start(const leat_csv *csv, leati_csv_cursor *cursor)
{
    size_t size = (size_t)(cursor->end - cursor->text), mark, line_break;
    bool unsure = size < 4 && !cursor->at_end;
    if (unsure)
        return LEAT_CSV_MORE;
    if (leat_text_start(cursor->text, size, &mark, cursor->error) != LEAT_OK) {
        cursor->at = cursor->end;
        return LEAT_CSV_BAD;
    }
    cursor->at += mark;
    while (!csv->no_header && (line_break = leati_csv_line_break(cursor, cursor->at, &unsure)))
        cursor->at += line_break;
    if (unsure)
        return LEAT_CSV_MORE;
    if (cursor->at == cursor->end)
        return cursor->at_end ? LEAT_CSV_NONE : LEAT_CSV_MORE;
    return LEAT_CSV_RECORD;
}

leat_csv_result leat_csv_header(leat_csv *csv, const char *text, size_t size_bytes, bool at_end,
                                size_t *consumed, leat_parse_error *error)
{
    leati_csv_cursor cursor = {csv, text, text, text + size_bytes, at_end, csv->scratch, error};
    *consumed = 0;
    if (csv->searched > 0 && !at_end && !leati_csv_find_end(csv, text, size_bytes))
        return LEAT_CSV_MORE;
    leat_csv_result result = pass_start(csv, &cursor);
    if (result == LEAT_CSV_RECORD && !csv->no_header) {
        size_t start = (size_t)(cursor.at - text);
        csv->is_ready = false;
        leat_scratch_reset(csv->scratch);
        result = read_names(csv, &cursor);
        if (result == LEAT_CSV_RECORD)
            columns_are_known(csv);
        if (result == LEAT_CSV_MORE) {
            csv->searched = csv->searched < start ? start : csv->searched;
            leati_csv_find_end(csv, text, size_bytes);
        }
    }
    if (result == LEAT_CSV_RECORD || result == LEAT_CSV_BAD || result == LEAT_CSV_NONE) {
        *consumed = (size_t)(cursor.at - text);
        leat_csv_restart(csv);
    }
    return result;
}
