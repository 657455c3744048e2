// SPDX-License-Identifier: Apache-2.0
// Values of CSV into the fields of a record.
#include <math.h>
#include <string.h>
#include <strings.h>

#include "record/csv_impl.h"
#include "record/json_read.h"

// A record being read.
typedef struct reading {
    leati_csv_cursor cursor;
    void *record;
    bool failed; // the error is written; what follows is split and not stored
    bool out_of_memory;
} reading;

// --- values --------------------------------------------------------------------------------------

static bool fail(reading *r, const char *at, const leat_field *field, const char *text)
{
    leati_parse_fail(r->cursor.error, (size_t)(at - r->cursor.text), "field %s: %s", field->name,
                     text);
    r->failed = true;
    return false;
}

static bool fail_value(reading *r, const leati_csv_value *value, const leat_field *field,
                       const leat_type *type, bool is_number)
{
    leati_shown found, wanted;
    leati_parse_fail(r->cursor.error, (size_t)(value->at - r->cursor.text),
                     is_number ? "field %s: %s does not fit %s" : "field %s: \"%s\" is no %s",
                     field->name, leati_show(&found, value->data, value->size),
                     leati_show_type(&wanted, type));
    r->failed = true;
    return false;
}

static bool is_word(const leati_csv_value *value, const char *word)
{
    return strlen(word) == value->size && strncasecmp(value->data, word, value->size) == 0;
}

static bool store_bool(const leati_csv_value *value, bool *to)
{
    *to = is_word(value, "true") || is_word(value, "1");
    return *to || is_word(value, "false") || is_word(value, "0");
}

// Reals that are not finite; JSON and the grammar of numbers have none.
static bool store_special(const leati_csv_value *value, uint32_t kind, void *to)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN},        {"inf", INFINITY},      {"+inf", INFINITY},
                 {"-inf", -INFINITY}, {"infinity", INFINITY}, {"-infinity", -INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!is_word(value, words[i].word))
            continue;
        if (kind == LEAT_F32)
            *(float *)to = (float)words[i].value;
        else
            *(double *)to = words[i].value;
        return true;
    }
    return false;
}

static bool store_number(reading *r, const leati_csv_value *value, const leat_field *field,
                         const leat_type *type, void *to)
{
    leati_number number;
    const char *end = value->data + value->size;
    bool is_number = leati_number_scan(value->data, end, LEATI_LOOSE, &number) == end;
    if (is_number && leati_number_store(type->kind, &number, to))
        return true;
    if ((type->kind == LEAT_F32 || type->kind == LEAT_F64) && store_special(value, type->kind, to))
        return true;
    return fail_value(r, value, field, type, is_number);
}

// Lists, maps and structs stand in a value as JSON.
static bool store_json(reading *r, const leati_csv_value *value, const leat_field *field,
                       const leat_type *type, void *to)
{
    leati_json_place here = {.field = field->name};
    leat_parse_error error = {0};
    leati_json json = {.text = value->data,
                       .at = value->data,
                       .end = value->data + value->size,
                       .scratch = r->cursor.scratch,
                       .error = &error,
                       .place = &here,
                       .err = LEAT_ECORRUPT};
    if (leati_json_read_all(&json, type, to))
        return true;
    // Within a value that was copied, the place is only known as that of the value.
    bool in_text = value->data >= r->cursor.text && value->data <= r->cursor.end;
    const char *at = in_text ? value->data + error.offset : value->at;
    leati_parse_fail(r->cursor.error, (size_t)(at - r->cursor.text), "%s", error.text);
    r->failed = true;
    r->out_of_memory = json.err == LEAT_ENOMEM;
    return false;
}

static bool is_text(uint32_t kind)
{
    return kind == LEAT_STR || kind == LEAT_BYTES;
}

static bool store_present(reading *r, const leati_csv_value *value, const leat_field *field,
                          const leat_type *type, void *to)
{
    switch (type->kind) {
    case LEAT_STR:
        *(leat_str *)to = (leat_str){value->data, value->size};
        return true;
    case LEAT_BYTES:
        *(leat_bytes *)to = (leat_bytes){(const uint8_t *)value->data, value->size};
        return true;
    case LEAT_BOOL:
        return store_bool(value, to) || fail_value(r, value, field, type, false);
    case LEAT_LIST:
    case LEAT_MAP:
    case LEAT_STRUCT:
        return store_json(r, value, field, type, to);
    default:
        return store_number(r, value, field, type, to);
    }
}

static bool store_missing(reading *r, const leat_field *field, const char *at)
{
    void *to = (char *)r->record + field->offset;
    if (field->kind == LEAT_OPTIONAL)
        *(const void **)to = NULL;
    else if (is_text(field->kind))
        *(leat_str *)to = (leat_str){NULL, 0};
    else
        return fail(r, at, field, "the value is missing");
    return true;
}

// Blanks around anything but text do not count.
static void trim(leati_csv_value *value)
{
    while (value->size > 0 && (*value->data == ' ' || *value->data == '\t')) {
        value->data++;
        value->size--;
    }
    while (value->size > 0 &&
           (value->data[value->size - 1] == ' ' || value->data[value->size - 1] == '\t'))
        value->size--;
}

static void store(reading *r, leati_csv_value *value, const leat_field *field)
{
    const leat_type *type = field->type;
    void *to = (char *)r->record + field->offset;
    if (type->kind == LEAT_OPTIONAL)
        type = type->element;
    if (!is_text(type->kind))
        trim(value);
    if (!value->quoted && leati_csv_is_missing(r->cursor.csv, value->data, value->size)) {
        store_missing(r, field, value->at);
        return;
    }
    if (field->kind == LEAT_OPTIONAL) {
        void *present = leati_scratch_take(r->cursor.scratch, type->size, type->align);
        r->out_of_memory = r->out_of_memory || !present;
        *(const void **)to = present;
        to = present;
    }
    if (to)
        store_present(r, value, field, type, to);
}

// --- records -------------------------------------------------------------------------------------

// The word at `at` as a truth value; returns its end, or NULL.
static inline const char *scan_bool(const char *at, const char *end, bool *value)
{
    size_t left = (size_t)(end - at);
    *value = left >= 4 && memcmp(at, "true", 4) == 0;
    if (*value)
        return at + 4;
    return left >= 5 && memcmp(at, "false", 5) == 0 ? at + 5 : NULL;
}

// The value at `at` if it stands as it usually does; returns its end, or NULL. Only what follows
// tells whether it has been read to its end.
static inline const char *scan_quickly(const leat_csv *csv, const char *at, const char *end,
                                       uint32_t kind, void *to)
{
    const char *next;
    leati_number number;
    switch (kind) {
    case LEAT_I64:
    case LEAT_TIMESTAMP:
        return leati_integer_scan(at, end, to);
    case LEAT_STR:
        if (at == end || *at == csv->quote || csv->missing.size > 0)
            return NULL;
        next = leati_csv_plain_end(at, end, csv->delimiter);
        // Perhaps half of a line break.
        if (next > at && next[-1] == '\r')
            return NULL;
        *(leat_str *)to = (leat_str){at, (size_t)(next - at)};
        return next;
    case LEAT_BOOL:
        return scan_bool(at, end, to);
    case LEAT_F64:
        return leati_real_scan(at, end, to);
    case LEAT_I8:
    case LEAT_I16:
    case LEAT_I32:
    case LEAT_U8:
    case LEAT_U16:
    case LEAT_U32:
    case LEAT_U64:
    case LEAT_F32:
        next = leati_number_scan(at, end, LEATI_LOOSE, &number);
        return next && next < end && leati_number_store(kind, &number, to) ? next : NULL;
    default:
        return NULL;
    }
}

// Most values are read in place, without looking for their end first. False when this is another
// one: nothing has changed then but the field.
static inline bool read_quickly(reading *r, const leat_field *field, leati_csv_step *step)
{
    void *to = (char *)r->record + field->offset;
    const char *end = r->cursor.end;
    const char *next = scan_quickly(r->cursor.csv, r->cursor.at, end, field->kind, to);
    if (!next || next == end)
        return false;
    if (*next == r->cursor.csv->delimiter) {
        *step = LEATI_CSV_NEXT;
    } else {
        next += *next == '\r' && end - next > 1;
        if (*next != '\n')
            return false;
        *step = LEATI_CSV_LAST;
    }
    r->cursor.at = next + 1;
    return true;
}

// The same for a value that nobody wants.
static inline bool pass_quickly(leati_csv_cursor *cursor, leati_csv_step *step)
{
    if (cursor->at == cursor->end || *cursor->at == cursor->csv->quote)
        return false;
    const char *next = leati_csv_plain_end(cursor->at, cursor->end, cursor->csv->delimiter);
    if (next == cursor->end)
        return false;
    *step = *next == '\n' ? LEATI_CSV_LAST : LEATI_CSV_NEXT;
    cursor->at = next + 1;
    return true;
}

static leati_csv_step read_value(reading *r, const leat_field *field)
{
    leati_csv_step step;
    leati_csv_value value;
    if (!field || r->failed) {
        if (pass_quickly(&r->cursor, &step))
            return step;
    } else if (r->cursor.csv->is_quick && read_quickly(r, field, &step)) {
        return step;
    }
    step = leati_csv_split(&r->cursor, &value);
    if (field && !r->failed && (step == LEATI_CSV_NEXT || step == LEATI_CSV_LAST))
        store(r, &value, field);
    return r->out_of_memory ? LEATI_CSV_NO_MEMORY : step;
}

static void fail_count(reading *r, size_t offset, size_t count)
{
    size_t wanted = r->cursor.csv->field_count;
    leati_parse_fail(r->cursor.error, offset, "%zu value%s where there are %zu column%s", count,
                     count == 1 ? "" : "s", wanted, wanted == 1 ? "" : "s");
    r->failed = true;
}

// Where the record that has been read ends.
static const char *before_line_break(const leati_csv_cursor *cursor)
{
    const char *end = cursor->at;
    if (end > cursor->text && end[-1] == '\n')
        end -= end - cursor->text > 1 && end[-2] == '\r' ? 2 : 1;
    return end;
}

// What there is to do when `count` values have been read: `extra` is where the first beyond the
// columns stands.
static void finish(reading *r, size_t count, size_t extra)
{
    const leat_csv *csv = r->cursor.csv;
    if (count > csv->field_count && !csv->ignore_extra)
        fail_count(r, extra, count);
    const char *end = before_line_break(&r->cursor);
    if (count < csv->field_count && !csv->fill_short)
        fail_count(r, (size_t)(end - r->cursor.text), count);
    for (size_t i = count; i < csv->field_count && !r->failed; i++)
        if (csv->fields[i])
            store_missing(r, csv->fields[i], end);
    for (uint32_t i = 0; i < csv->absent_count; i++)
        *(const void **)((char *)r->record + csv->type->fields[csv->absent[i]].offset) = NULL;
}

static leat_csv_result read_record(reading *r)
{
    const leat_csv *csv = r->cursor.csv;
    leati_csv_step step = LEATI_CSV_NEXT;
    size_t count = 0, extra = 0;
    while (step == LEATI_CSV_NEXT) {
        if (count == csv->field_count)
            extra = (size_t)(r->cursor.at - r->cursor.text);
        step = read_value(r, count < csv->field_count ? csv->fields[count] : NULL);
        count++;
    }
    switch (step) {
    case LEATI_CSV_UNFINISHED:
        return LEAT_CSV_MORE;
    case LEATI_CSV_WRONG:
        return LEAT_CSV_BAD;
    case LEATI_CSV_NO_MEMORY:
        leati_parse_fail(r->cursor.error, 0, "out of memory");
        return LEAT_CSV_NOMEM;
    default:
        finish(r, count, extra);
        return r->failed ? LEAT_CSV_BAD : LEAT_CSV_RECORD;
    }
}

static leat_csv_result read_line(reading *r)
{
    bool unsure = false;
    if (!r->cursor.csv->blank_is_record) {
        size_t line_break = leati_csv_line_break(&r->cursor, r->cursor.at, &unsure);
        r->cursor.at += line_break;
        if (unsure)
            return LEAT_CSV_MORE;
        if (line_break > 0)
            return LEAT_CSV_NONE;
    }
    if (!r->cursor.csv->is_ready) {
        leati_parse_fail(r->cursor.error, 0, "no header has been read");
        r->cursor.at = r->cursor.end;
        return LEAT_CSV_BAD;
    }
    return read_record(r);
}

leat_csv_result leat_csv_next(leat_csv *csv, const char *text, size_t size_bytes, bool at_end,
                              size_t *consumed, void *record, leat_scratch *scratch,
                              leat_parse_error *error)
{
    *consumed = 0;
    if (size_bytes == 0)
        return at_end ? LEAT_CSV_NONE : LEAT_CSV_MORE;
    if (LEAT_UNLIKELY(csv->searched > 0 && !at_end && !leati_csv_find_end(csv, text, size_bytes)))
        return LEAT_CSV_MORE;
    reading r = {.cursor = {csv, text, text, text + size_bytes, at_end, scratch, error},
                 .record = record};
    leat_csv_result result = read_line(&r);
    if (result == LEAT_CSV_MORE) {
        leati_csv_find_end(csv, text, size_bytes);
    } else if (result != LEAT_CSV_NOMEM) {
        csv->searched = 0;
        csv->state = LEATI_CSV_START;
        *consumed = (size_t)(r.cursor.at - text);
    }
    return result;
}
