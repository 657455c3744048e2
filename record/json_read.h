// SPDX-License-Identifier: Apache-2.0
// The reader of JSON: tokens (json_read_text.c), values of a type (json_read.c), maps
// (json_read_map.c). Private to record/.
//
// Every function that reads begins at `at` and moves it behind what it has read. A function that
// returns false has set `err` and written the error.
#ifndef LEATI_RECORD_JSON_READ_H
#define LEATI_RECORD_JSON_READ_H

#include "record/number.h"
#include "record/parse_impl.h"
#include "record/value_impl.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// A step from a value to a part of it, for messages. Steps live in the frames of the functions that
// read the parts.
typedef struct leati_json_place {
    const struct leati_json_place *outer;
    const char *field;   // of a struct, or NULL
    const leat_str *key; // of a map, or NULL
    size_t index;        // of a list, when neither
} leati_json_place;

typedef struct leati_json {
    const char *text, *at, *end;
    leat_scratch *scratch; // may be NULL
    const leat_json_options *options;
    leat_parse_error *error; // may be NULL
    const leati_json_place *place;
    uint32_t depth;
    leat_err err;
} leati_json;

// --- failing -------------------------------------------------------------------------------------

// Both return false. `at` is what is wrong; the message has the path of the value before it.
bool leati_json_fail(leati_json *json, const char *at, const char *format, ...) LEAT_PRINTF(3, 4);
// Something else stands here than what is expected.
bool leati_json_expected(leati_json *json, const char *expected);

// Memory for `count` values of `size` bytes; NULL after failing.
void *leati_json_take(leati_json *json, size_t count, size_t size, size_t align);

// The parts of a value are read between these. After a failure nobody looks at the place any more.
static inline void leati_json_enter(leati_json *json, const leati_json_place *place)
{
    json->place = place;
}

static inline void leati_json_leave(leati_json *json)
{
    json->place = json->place->outer;
}

// --- tokens --------------------------------------------------------------------------------------

static inline void leati_json_blanks(leati_json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
}

// Passes over blanks and then `c` if it is there.
static inline bool leati_json_take_char(leati_json *json, char c)
{
    leati_json_blanks(json);
    if (json->at == json->end || *json->at != c)
        return false;
    json->at++;
    return true;
}

// The first byte at or behind `at` that is special in a string: quote, backslash, control
// character, or part of a character that is not ASCII.
static inline const char *leati_json_plain(const char *at, const char *end)
{
#ifdef __SSE2__
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        // As signed numbers, bytes beyond ASCII are less than a blank too.
        __m128i special = _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)),
                                       _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                    _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
        unsigned mask = (unsigned)_mm_movemask_epi8(special);
        if (mask)
            return at + __builtin_ctz(mask);
        at += 16;
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 &&
           (unsigned char)*at < 0x80)
        at++;
    return at;
}

// A string with its quotes. With `out` NULL it is only checked.
bool leati_json_read_string(leati_json *json, leat_str *out);
// A string that holds base64.
bool leati_json_read_bytes(leati_json *json, leat_bytes *out);
bool leati_json_bytes_of(leati_json *json, const char *at, leat_str text, leat_bytes *out);
// Passes over any value, checking it.
bool leati_json_skip(leati_json *json);

// --- values --------------------------------------------------------------------------------------

bool leati_json_read_value(leati_json *json, const leat_type *type, void *value);
bool leati_json_read_map(leati_json *json, const leat_type *type, leat_dict *map);
// The value must fill the rest of the text.
bool leati_json_read_all(leati_json *json, const leat_type *type, void *value);

#endif
