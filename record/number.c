// SPDX-License-Identifier: Apache-2.0
// From decimal to binary.
//
// Reals are correctly rounded in three ways, the quicker ones first. When mantissa and power of ten
// are both exact as a double, one operation rounds once. When both are exact as an extended double
// of 64 bits (x86), its result is within half a unit of the last of 64 bits; rounding once more to
// 53 is right unless the bits cut off are exactly one half, since every tie is such a number. The
// rest is given to strtod as digits and exponent without a decimal point, which is the only part of
// a number that depends on the locale.
//
// Rejected: the algorithm of Eisel and Lemire, which needs a table of 10 KB for the few numbers
// that are neither.
#include "record/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Exponents beyond this are cut off, so that no sum with a count of digits overflows; what is cut
// off is zero or out of range either way.
#define LARGEST_EXPONENT (INT64_C(1) << 60)

// --- reading digits ------------------------------------------------------------------------------

// Adds the digits at `at` to the mantissa, modulo 2^64.
static const char *scan_digits(const char *at, const char *end, uint64_t *mantissa)
{
    uint64_t sum = *mantissa;
    for (; at < end && leati_is_digit(*at); at++)
        sum = sum * 10 + (uint64_t)(*at - '0');
    *mantissa = sum;
    return at;
}

// An exponent with its sign, behind the letter; NULL when there are no digits.
static const char *scan_exponent(const char *at, const char *end, int64_t *exponent)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end || !leati_is_digit(*at))
        return NULL;
    int64_t value = 0;
    for (; at < end && leati_is_digit(*at); at++)
        if (value < LARGEST_EXPONENT / 10)
            value = value * 10 + (*at - '0');
    *exponent += negative ? -value : value;
    return at;
}

// Reads the digits in [first, end) once more, when there may be too many for the mantissa. Zeros at
// the end count as part of the exponent, so that they make nothing inexact.
static void rescan(leati_number *number, const char *first, const char *end)
{
    uint64_t mantissa = 0;
    int64_t zeros = 0, dropped = 0, fraction = 0;
    bool in_fraction = false, exact = true;
    for (const char *p = first; p < end; p++) {
        if (*p == '.') {
            in_fraction = true;
            continue;
        }
        fraction += in_fraction;
        if (*p == '0') {
            zeros++;
            continue;
        }
        for (; zeros > 0 && exact && mantissa <= UINT64_MAX / 10; zeros--)
            mantissa *= 10;
        uint64_t more;
        if (zeros > 0 || !exact || __builtin_mul_overflow(mantissa, 10, &more) ||
            __builtin_add_overflow(more, (uint64_t)(*p - '0'), &more)) {
            exact = false;
            dropped += zeros + 1;
            zeros = 0;
        } else {
            mantissa = more;
        }
    }
    number->mantissa = mantissa;
    number->exact = exact;
    number->exponent += zeros + dropped - fraction;
}

const char *leati_number_scan(const char *at, const char *end, leati_grammar grammar,
                              leati_number *number)
{
    bool loose = grammar == LEATI_LOOSE;
    *number = (leati_number){.text = at, .exact = true};
    number->negative = at < end && *at == '-';
    if (number->negative || (loose && at < end && *at == '+'))
        at++;
    const char *first = at;
    at = scan_digits(at, end, &number->mantissa);
    size_t whole = (size_t)(at - first), fraction = 0;
    if (!loose && (whole == 0 || (whole > 1 && *first == '0')))
        return NULL;
    if (at < end && *at == '.') {
        const char *point = at;
        at = scan_digits(at + 1, end, &number->mantissa);
        fraction = (size_t)(at - point) - 1;
        if (fraction == 0 && !loose)
            return NULL;
    }
    if (whole + fraction == 0)
        return NULL;
    const char *digits_end = at;
    if (at < end && (*at | 0x20) == 'e') {
        at = scan_exponent(at + 1, end, &number->exponent);
        if (!at)
            return NULL;
    }
    number->end = at;
    // 19 digits always fit.
    if (LEAT_UNLIKELY(whole + fraction > 19))
        rescan(number, first, digits_end);
    else
        number->exponent -= (int64_t)fraction;
    return at;
}

// --- integers ------------------------------------------------------------------------------------

// The magnitude as an integer. A number that is not exact is none that fits: its mantissa alone has
// 64 bits, so what follows is a fraction or makes it too large.
static bool as_integer(const leati_number *number, uint64_t *magnitude)
{
    uint64_t value = number->mantissa;
    int64_t exponent = number->exponent;
    if (!number->exact)
        return false;
    for (; exponent < 0 && value; exponent++) {
        if (value % 10)
            return false;
        value /= 10;
    }
    for (; exponent > 0 && value; exponent--)
        if (__builtin_mul_overflow(value, 10, &value))
            return false;
    *magnitude = value;
    return true;
}

static bool store_signed(const leati_number *number, int bits, int64_t *to)
{
    uint64_t magnitude;
    if (!as_integer(number, &magnitude))
        return false;
    if (magnitude > (UINT64_C(1) << (bits - 1)) - !number->negative)
        return false;
    *to = (int64_t)(number->negative ? 0 - magnitude : magnitude);
    return true;
}

static bool store_unsigned(const leati_number *number, int bits, uint64_t *to)
{
    return as_integer(number, to) && (*to == 0 || !number->negative) &&
           (bits == 64 || *to >> bits == 0);
}

// --- reals ---------------------------------------------------------------------------------------

// More digits than any tie between two doubles has; a digit behind them stands for all the rest.
enum { MOST_DIGITS = 770 };

// Writes the number as an integer and an exponent, for strtod.
static void write_plain(const leati_number *number, char text[static MOST_DIGITS + 32])
{
    int64_t exponent = 0, dropped = 0, fraction = 0;
    bool in_fraction = false, more = false;
    size_t count = 0;
    const char *p = number->text;
    if (p < number->end && (*p == '-' || *p == '+'))
        p++;
    for (; p < number->end && (*p == '.' || leati_is_digit(*p)); p++) {
        if (*p == '.') {
            in_fraction = true;
            continue;
        }
        fraction += in_fraction;
        if (count == 0 && *p == '0')
            continue;
        if (count < MOST_DIGITS) {
            text[count++] = *p;
        } else {
            dropped++;
            more = more || *p != '0';
        }
    }
    if (p < number->end)
        scan_exponent(p + 1, number->end, &exponent);
    exponent += dropped - fraction;
    if (more) {
        text[count++] = '1';
        exponent--;
    }
    if (count == 0)
        text[count++] = '0';
    exponent = exponent > 9999 ? 9999 : exponent < -9999 ? -9999 : exponent;
    snprintf(text + count, 16, "e%d", (int)exponent);
}

// The magnitude, correctly rounded, when that takes no more than one operation.
static bool quick_f64(const leati_number *number, double *to)
{
    int64_t exponent = number->exponent;
    if (!number->exact)
        return false;
#if FLT_EVAL_METHOD == 0
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (number->mantissa <= UINT64_C(1) << DBL_MANT_DIG && exponent >= -22 && exponent <= 22) {
        double value = (double)number->mantissa;
        *to = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
        return true;
    }
#endif
#if LDBL_MANT_DIG == 64
    static const long double long_powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                              1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                              1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                              1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (exponent >= -27 && exponent <= 27) {
        long double value = (long double)number->mantissa;
        value = exponent < 0 ? value / long_powers[-exponent] : value * long_powers[exponent];
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        if ((bits & 0x7ff) == 0x400)
            return false;
        *to = (double)value;
        return true;
    }
#endif
    return number->mantissa == 0 ? (*to = 0, true) : false;
}

static double as_f64(const leati_number *number)
{
    double value;
    if (LEAT_UNLIKELY(!quick_f64(number, &value))) {
        char text[MOST_DIGITS + 32];
        write_plain(number, text);
        value = strtod(text, NULL);
    }
    return number->negative ? -value : value;
}

// Rounding to a double and then to a float is right unless the double is a tie between two floats,
// or its float would have fewer bits than usual.
static float as_f32(const leati_number *number)
{
    double value = as_f64(number);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool is_tie = (bits & 0x1fffffff) == 0x10000000;
    if (value == 0 && number->mantissa == 0)
        return (float)value;
    if (LEAT_LIKELY(!is_tie && fabs(value) >= (double)FLT_MIN && fabs(value) <= (double)FLT_MAX))
        return (float)value;
    char text[MOST_DIGITS + 32];
    write_plain(number, text);
    float rounded = strtof(text, NULL);
    return number->negative ? -rounded : rounded;
}

// --- fields --------------------------------------------------------------------------------------

bool leati_number_store(uint32_t kind, const leati_number *number, void *to)
{
    union {
        int64_t i;
        uint64_t u;
        double d;
        float f;
    } value;
    switch (kind) {
#define INTEGER(K, store, part, bits, ctype)                                                       \
    case K:                                                                                        \
        if (!store(number, bits, &value.part))                                                     \
            return false;                                                                          \
        *(ctype *)to = (ctype)value.part;                                                          \
        return true;
        INTEGER(LEAT_I8, store_signed, i, 8, int8_t)
        INTEGER(LEAT_I16, store_signed, i, 16, int16_t)
        INTEGER(LEAT_I32, store_signed, i, 32, int32_t)
        INTEGER(LEAT_I64, store_signed, i, 64, int64_t)
        INTEGER(LEAT_TIMESTAMP, store_signed, i, 64, int64_t)
        INTEGER(LEAT_U8, store_unsigned, u, 8, uint8_t)
        INTEGER(LEAT_U16, store_unsigned, u, 16, uint16_t)
        INTEGER(LEAT_U32, store_unsigned, u, 32, uint32_t)
        INTEGER(LEAT_U64, store_unsigned, u, 64, uint64_t)
#undef INTEGER
    case LEAT_F32:
        value.f = as_f32(number);
        if (isinf(value.f))
            return false;
        *(float *)to = value.f;
        return true;
    case LEAT_F64:
        value.d = as_f64(number);
        if (isinf(value.d))
            return false;
        *(double *)to = value.d;
        return true;
    default:
        return false;
    }
}
