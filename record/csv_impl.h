// SPDX-License-Identifier: Apache-2.0
// CSV: options and header (csv.c), records in (csv_read.c, over the values of csv_split.c), records
// out (csv_write.c). Private to record/.
#ifndef LEATI_RECORD_CSV_IMPL_H
#define LEATI_RECORD_CSV_IMPL_H

#include "leat/csv.h"
#include "record/parse_impl.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// Where a search for the end of a record has come to.
typedef enum leati_csv_state {
    LEATI_CSV_START,  // a value begins
    LEATI_CSV_PLAIN,  // in a value without quotes
    LEATI_CSV_QUOTED, // between quotes
    LEATI_CSV_CLOSED, // behind a quote that closes the value, unless another follows
    LEATI_CSV_BROKEN, // behind text that may not stand there; the next line break ends the record
} leati_csv_state;

struct leat_csv {
    leat_allocator allocator;
    const leat_type *type; // held
    char delimiter, quote;
    bool no_header, no_multiline, ignore_extra, fill_short;
    bool is_quick;        // numbers end before a delimiter whatever follows
    bool blank_is_record; // a line without anything in it is the missing value of its one column
    leat_str missing;     // of size 0 when there is no such text
    leat_column *columns;
    size_t column_count;
    leat_scratch *scratch; // for names in a header
    // What the columns of the file are: fields, or NULL for those that are not wanted.
    const leat_field **fields;
    size_t field_count, field_capacity;
    uint32_t *absent; // fields without a column
    uint32_t absent_count;
    bool is_ready; // the columns are known
    size_t searched;
    leati_csv_state state;
};

typedef struct leati_csv_cursor {
    const leat_csv *csv;
    const char *text, *at, *end;
    bool at_end; // nothing follows `end`
    leat_scratch *scratch;
    leat_parse_error *error;
} leati_csv_cursor;

typedef struct leati_csv_value {
    const char *at; // where it stands, with its quote
    const char *data;
    size_t size;
    bool quoted;
} leati_csv_value;

typedef enum leati_csv_step {
    LEATI_CSV_NEXT, // another value follows
    LEATI_CSV_LAST, // the record ends behind it
    LEATI_CSV_UNFINISHED,
    LEATI_CSV_WRONG, // the cursor stands behind the record, and the error is written
    LEATI_CSV_NO_MEMORY,
} leati_csv_step;

// Reads the value at the cursor and moves it behind the delimiter or line break.
leati_csv_step leati_csv_split(leati_csv_cursor *cursor, leati_csv_value *value);

// The first delimiter or line feed at or behind `at`.
static inline const char *leati_csv_plain_end(const char *at, const char *end, char delimiter)
{
#ifdef __SSE2__
    const __m128i delimiters = _mm_set1_epi8(delimiter), breaks = _mm_set1_epi8('\n');
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        unsigned mask = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiters), _mm_cmpeq_epi8(bytes, breaks)));
        if (mask)
            return at + __builtin_ctz(mask);
        at += 16;
    }
#endif
    while (at < end && *at != delimiter && *at != '\n')
        at++;
    return at;
}

// The line break at `at`: 1 or 2 bytes, 0 when there is none. `*unsure` is set when it takes one
// more byte to tell.
static inline size_t leati_csv_line_break(const leati_csv_cursor *cursor, const char *at,
                                          bool *unsure)
{
    if (at == cursor->end)
        return 0;
    if (*at == '\n')
        return 1;
    if (*at != '\r')
        return 0;
    if (cursor->end - at > 1)
        return at[1] == '\n' ? 2 : 0;
    *unsure = *unsure || !cursor->at_end;
    return 0;
}

// Goes on looking for the end of the record at `text`; whether it is there.
bool leati_csv_find_end(leat_csv *csv, const char *text, size_t size);

// Missing values, other than by quotes.
static inline bool leati_csv_is_missing(const leat_csv *csv, const char *data, size_t size)
{
    return size == 0 ||
           (size == csv->missing.size && __builtin_memcmp(data, csv->missing.data, size) == 0);
}

#endif
