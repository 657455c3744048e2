// SPDX-License-Identifier: Apache-2.0
// Typed records from text: what all readers of text formats share, and JSON. CSV has a header of
// its own (leat/csv.h). The rules of both are in docs/design/text-formats.md.
//
// Everything here is pure: any thread, no state, no input or output, no memory but the scratch.
#ifndef LEAT_PARSE_H
#define LEAT_PARSE_H

#include "leat/record.h"

LEAT_BEGIN_DECLS

// Where and why a text could not be read.
typedef struct leat_parse_error {
    size_t offset;  // bytes from the start of the text to what is wrong
    char text[256]; // "field age: 300 does not fit u8"; one line, NUL-terminated
} leat_parse_error;

// The name in the file of a field whose name in the record is another, "Cost Total $" for "cost".
typedef struct leat_column {
    const char *field; // of the record
    const char *name;  // in the file
} leat_column;

// How JSON is read. Zeros are the defaults.
typedef struct leat_json_options {
    const leat_column *columns; // borrowed; of the outermost struct only
    size_t column_count;
    bool refuse_unknown; // a member that is no field is an error, at any depth; else it is skipped
} leat_json_options;

// Members that are skipped nest at most this deep; what is read nests as deep as its type.
#define LEAT_JSON_MAX_DEPTH 128

// Reads one JSON text (RFC 8259) that must fill [text, text + size_bytes), blanks aside, into
// `record`: the inverse of leat_record_json. A struct is an object with its members in any order;
// absent optionals are null or not there; bytes are base64. Numbers must be in range, and for
// integers without a fraction in their value (1.0 and 1e3 are integers).
//
// Strings point into `text` when they hold no escapes, else into `scratch`, as do lists, maps and
// optionals; `scratch` is needed (LEAT_EINVAL) for these and for structs of more than 64 fields,
// and is not reset here. `options` may be NULL, and `error` too; the latter is written on failure
// only, whatever the failure. LEAT_ECORRUPT: not JSON, or not JSON of this type; LEAT_ENOMEM. On
// error `record` is unspecified.
LEAT_API LEAT_MUST_USE leat_err leat_record_from_json(const leat_type *type,
                                                      const leat_json_options *options,
                                                      const char *text, size_t size_bytes,
                                                      void *record, leat_scratch *scratch,
                                                      leat_parse_error *error);

// Checks that options fit a type, once and before they are used: every column names a field, none
// twice, and no two fields end up with one name. LEAT_ETYPE, with `error` (may be NULL) written.
LEAT_API LEAT_MUST_USE leat_err leat_json_options_check(const leat_type *type,
                                                        const leat_json_options *options,
                                                        leat_parse_error *error);

// Looks at the first bytes of a file: sets `*skip` to the size of the byte-order mark of UTF-8 that
// is to be passed over, 0 when there is none. The marks of UTF-16 and UTF-32 are an error
// (LEAT_ECORRUPT), as such files cannot be read. Four bytes are enough. `error` may be NULL.
LEAT_API LEAT_MUST_USE leat_err leat_text_start(const char *text, size_t size_bytes, size_t *skip,
                                                leat_parse_error *error);

LEAT_END_DECLS

#endif
