// SPDX-License-Identifier: Apache-2.0
// Numbers written in decimal, as the readers of JSON and CSV meet them. Nothing here depends on the
// locale. Private to record/.
#ifndef LEATI_RECORD_NUMBER_H
#define LEATI_RECORD_NUMBER_H

#include <float.h>

#include "leat/type.h"

// A decimal number: mantissa * 10^exponent when `exact`. Otherwise there were more significant
// digits than the mantissa holds, and only the text tells the value.
typedef struct leati_number {
    uint64_t mantissa;
    int64_t exponent;
    bool negative;
    bool exact;
    const char *text, *end; // where it stands
} leati_number;

typedef enum leati_grammar {
    LEATI_STRICT, // that of JSON
    LEATI_LOOSE,  // also a plus sign, zeros in front, and no digits on one side of the point
} leati_grammar;

// Reads the longest number that stands at `at`; returns its end, or NULL when there is none.
const char *leati_number_scan(const char *at, const char *end, leati_grammar grammar,
                              leati_number *number);

// Stores a number in a field of a numeric kind (not bool): integers exactly, reals correctly
// rounded. False when it is out of range, or has a fraction and the field cannot.
bool leati_number_store(uint32_t kind, const leati_number *number, void *to);

static inline bool leati_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

// The usual case of the most usual field, in few steps: at most 18 digits, perhaps with a minus
// sign, as a 64-bit integer. Returns the end, or NULL when the number is anything else (and then
// may still be right).
static inline const char *leati_integer_scan(const char *at, const char *end, int64_t *value)
{
    const char *digits = at + (at < end && *at == '-');
    const char *last = (size_t)(end - digits) > 19 ? digits + 19 : end;
    uint64_t magnitude = 0;
    const char *p = digits;
    for (; p < last && leati_is_digit(*p); p++)
        magnitude = magnitude * 10 + (uint64_t)(*p - '0');
    size_t count = (size_t)(p - digits);
    if (count == 0 || count > 18 || (*digits == '0' && count > 1))
        return NULL;
    if (p < end && (*p == '.' || (*p | 0x20) == 'e'))
        return NULL;
    *value = digits > at ? -(int64_t)magnitude : (int64_t)magnitude;
    return p;
}

// The same for a real of at most 15 digits without an exponent: mantissa and power of ten are exact
// as doubles then, and dividing them rounds once.
static inline const char *leati_real_scan(const char *at, const char *end, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *digits = at + (at < end && *at == '-');
    const char *last = (size_t)(end - digits) > 17 ? digits + 17 : end;
    int64_t mantissa = 0;
    const char *p = digits;
    for (; p < last && leati_is_digit(*p); p++)
        mantissa = mantissa * 10 + (*p - '0');
    size_t whole = (size_t)(p - digits), fraction = 0;
    if (whole == 0 || (*digits == '0' && whole > 1))
        return NULL;
    if (p < last && *p == '.') {
        const char *point = p++;
        for (; p < last && leati_is_digit(*p); p++)
            mantissa = mantissa * 10 + (*p - '0');
        fraction = (size_t)(p - point) - 1;
        if (fraction == 0)
            return NULL;
    }
    if (FLT_EVAL_METHOD != 0 || whole + fraction > 15 ||
        (p < end && (*p == '.' || (*p | 0x20) == 'e')))
        return NULL;
    double magnitude = (double)mantissa / powers[fraction];
    *value = digits > at ? -magnitude : magnitude;
    return p;
}

#endif
