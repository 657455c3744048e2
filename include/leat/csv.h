// SPDX-License-Identifier: Apache-2.0
// CSV (RFC 4180 and its usual relatives) into typed records and back.
//
// A leat_csv knows which column of a file goes to which field of a record type. One thread at a
// time. It reads from memory that its owner fills: the owner calls leat_csv_next, drops what was
// consumed, and after LEAT_CSV_MORE offers the same bytes again with more behind them. How far the
// search for the end of a record has come is remembered in between, so that records which grow
// over many refills are not searched over and over.
//
// A line ends with LF or CRLF; a CR anywhere else is data. A quote opens a quoted value only as the
// first byte of it, elsewhere it is data. Values are bytes, UTF-8 is not asked for. The rules are
// in docs/design/text-formats.md.
#ifndef LEAT_CSV_H
#define LEAT_CSV_H

#include "leat/parse.h"

LEAT_BEGIN_DECLS

// Zeros are the defaults. Copied by leat_csv_create, with all that it points to.
typedef struct leat_csv_options {
    char delimiter;    // 0: ','
    char quote;        // 0: '"'
    bool no_header;    // the columns are the fields in their order
    bool no_multiline; // a line break always ends the record, also between quotes
    bool ignore_extra; // values beyond the last column are passed over, else they are an error
    bool fill_short;   // values that a line lacks at its end are missing, else that is an error
    // A further text that means a missing value, "\\N" say, or NULL. The empty unquoted value
    // always does. A quoted value is never missing.
    const char *missing;
    const leat_column *columns; // fields whose columns have other names than they
    size_t column_count;
} leat_csv_options;

typedef struct leat_csv leat_csv;

typedef enum leat_csv_result {
    LEAT_CSV_RECORD, // a record, or the header
    LEAT_CSV_MORE,   // there is no whole record yet, and this is not the end; nothing was consumed
    LEAT_CSV_BAD,    // not a record; `*consumed` passes over it and `error` says why
    LEAT_CSV_NONE,   // no record here: a blank line, which `*consumed` passes over, or the end
    LEAT_CSV_NOMEM,  // out of memory; nothing was consumed
} leat_csv_result;

// `type` is a struct, of run time or not, that outlives the csv; values of its lists, maps and
// nested structs stand in the file as JSON. `options` may be NULL. LEAT_ETYPE (the type is no
// struct, a column names no field, two fields have one column) and LEAT_EINVAL (delimiter, quote
// and line break are not distinct) with `error` (may be NULL) written; LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_csv_create(const leat_allocator *allocator,
                                                const leat_type *type,
                                                const leat_csv_options *options, leat_csv **csv,
                                                leat_parse_error *error);
LEAT_API void leat_csv_destroy(leat_csv **csv);

// Reads the header at the start of a file and finds the columns: any order, more than are wanted. A
// byte-order mark is passed over. RECORD, MORE, NOMEM; BAD when a field that is not optional has no
// column, when a wanted column is there twice, or when this is no CSV in UTF-8; NONE when the file
// is empty. Blank lines before the header are passed over. May be called again, for another file.
// With `no_header` it only passes over a byte-order mark, and gives RECORD (NONE at the end, MORE
// when there are too few bytes to tell). `error` may be NULL.
LEAT_API LEAT_MUST_USE leat_csv_result leat_csv_header(leat_csv *csv, const char *text,
                                                       size_t size_bytes, bool at_end,
                                                       size_t *consumed, leat_parse_error *error);

// Reads the record at the start of [text, text + size_bytes); `at_end` says that nothing follows.
// RECORD: `record` is filled; strings point into `text` unless they held doubled quotes, then into
// `scratch`, as do optionals and all that is nested; `scratch` is needed, and is not reset here.
// BAD: `error` (may be NULL) has the offset from `text` and names the field; `record` is
// unspecified. A quote that is never closed costs the line in which it opened, no more. A blank
// line is a record only where there is one column which may be empty.
LEAT_API LEAT_MUST_USE leat_csv_result leat_csv_next(leat_csv *csv, const char *text,
                                                     size_t size_bytes, bool at_end,
                                                     size_t *consumed, void *record,
                                                     leat_scratch *scratch,
                                                     leat_parse_error *error);

// Forgets how far an unfinished record was searched: to be called when reading goes on elsewhere
// after LEAT_CSV_MORE. The columns stay.
LEAT_API void leat_csv_restart(leat_csv *csv);

// The record as one line without its end, all fields in the order of the type, as snprintf does:
// at most `size` bytes, no NUL, the length needed is returned. Quotes stand where they are needed
// only: around values with delimiter, quote or line break, around those that would be taken for
// missing or for a byte-order mark. What is written reads back as the same record, except that an
// optional that is absent, alone in its line and without a `missing` text, leaves a blank line.
LEAT_API size_t leat_csv_write(const leat_csv *csv, const void *record, char *buffer, size_t size);
// The same for the header line.
LEAT_API size_t leat_csv_write_header(const leat_csv *csv, char *buffer, size_t size);

LEAT_END_DECLS

#endif
