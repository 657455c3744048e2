// SPDX-License-Identifier: Apache-2.0
// Decimal numbers: grammar, ranges of integers, and reals against those of the C library.
#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "record/number.h"

// The number must be all of the text.
static bool scan(const char *text, leati_grammar grammar, leati_number *number)
{
    // A block of exactly that size.
    size_t size = strlen(text);
    char *block = malloc(size ? size : 1);
    memcpy(block, text, size);
    const char *end = leati_number_scan(block, block + size, grammar, number);
    bool whole = end == block + size;
    // What follows may look at the text.
    number->text = text;
    number->end = text + size;
    free(block);
    return whole;
}

Test(number, grammars_take_what_they_should)
{
    static const struct {
        const char *text;
        bool strict, loose;
    } rows[] = {
        {"0", 1, 1},   {"-0", 1, 1},   {"7", 1, 1},       {"10", 1, 1},    {"0.5", 1, 1},
        {"1e5", 1, 1}, {"1E+5", 1, 1}, {"1.25e-3", 1, 1}, {"-1.0", 1, 1},  {"007", 0, 1},
        {"+5", 0, 1},  {".5", 0, 1},   {"5.", 0, 1},      {"-.5e1", 0, 1}, {"", 0, 0},
        {"-", 0, 0},   {"+", 0, 0},    {".", 0, 0},       {"-.", 0, 0},    {"e5", 0, 0},
        {"1e", 0, 0},  {"1e+", 0, 0},  {"1.5.5", 0, 0},   {"1x", 0, 0},    {"0x10", 0, 0},
        {"--1", 0, 0}, {"1 ", 0, 0},   {" 1", 0, 0},      {"nan", 0, 0},   {"inf", 0, 0},
        {"1,5", 0, 0}, {"-00", 0, 1},  {"00.5", 0, 1},    {".e1", 0, 0},   {"1e5.0", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leati_number number;
        cr_assert(scan(rows[i].text, LEATI_STRICT, &number) == rows[i].strict, "%s", rows[i].text);
        cr_assert(scan(rows[i].text, LEATI_LOOSE, &number) == rows[i].loose, "%s", rows[i].text);
    }
}

// What storing gives: the integer as text, or NULL.
static const char *stored(uint32_t kind, const char *text, char to[static 32])
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } v;
    leati_number number;
    if (!scan(text, LEATI_STRICT, &number) || !leati_number_store(kind, &number, &v))
        return NULL;
    switch (kind) {
    case LEAT_I8:
        snprintf(to, 32, "%d", v.i8);
        break;
    case LEAT_I16:
        snprintf(to, 32, "%d", v.i16);
        break;
    case LEAT_I32:
        snprintf(to, 32, "%d", v.i32);
        break;
    case LEAT_U8:
        snprintf(to, 32, "%u", v.u8);
        break;
    case LEAT_U16:
        snprintf(to, 32, "%u", v.u16);
        break;
    case LEAT_U32:
        snprintf(to, 32, "%u", v.u32);
        break;
    case LEAT_U64:
        snprintf(to, 32, "%llu", (unsigned long long)v.u64);
        break;
    default:
        snprintf(to, 32, "%lld", (long long)v.i64);
    }
    return to;
}

Test(number, integers_are_exact_or_refused)
{
    static const struct {
        uint32_t kind;
        const char *text, *expected;
    } rows[] = {
        {LEAT_I8, "127", "127"},
        {LEAT_I8, "128", NULL},
        {LEAT_I8, "-128", "-128"},
        {LEAT_I8, "-129", NULL},
        {LEAT_U8, "255", "255"},
        {LEAT_U8, "300", NULL},
        {LEAT_U8, "-0", "0"},
        {LEAT_U8, "-1", NULL},
        {LEAT_I16, "32767", "32767"},
        {LEAT_I16, "-32769", NULL},
        {LEAT_U16, "65535", "65535"},
        {LEAT_U16, "65536", NULL},
        {LEAT_I32, "2147483647", "2147483647"},
        {LEAT_I32, "2147483648", NULL},
        {LEAT_I32, "-2147483648", "-2147483648"},
        {LEAT_U32, "4294967295", "4294967295"},
        {LEAT_U32, "4294967296", NULL},
        {LEAT_I64, "9223372036854775807", "9223372036854775807"},
        {LEAT_I64, "9223372036854775808", NULL},
        {LEAT_I64, "-9223372036854775808", "-9223372036854775808"},
        {LEAT_I64, "-9223372036854775809", NULL},
        {LEAT_TIMESTAMP, "1700000000000", "1700000000000"},
        {LEAT_U64, "18446744073709551615", "18446744073709551615"},
        {LEAT_U64, "18446744073709551616", NULL},
        {LEAT_U64, "99999999999999999999", NULL},
        {LEAT_I64, "1.0", "1"},
        {LEAT_I64, "1.5", NULL},
        {LEAT_I64, "1e3", "1000"},
        {LEAT_I64, "1500e-2", "15"},
        {LEAT_I64, "1500e-3", NULL},
        {LEAT_I64, "-12.50e1", "-125"},
        {LEAT_I64, "1e18", "1000000000000000000"},
        {LEAT_I64, "1e19", NULL},
        {LEAT_U64, "1e19", "10000000000000000000"},
        {LEAT_U64, "1e20", NULL},
        {LEAT_U64, "18446744073709551615.000000000000000000000000", "18446744073709551615"},
        {LEAT_U64, "18446744073709551615.000000000000000000000001", NULL},
        {LEAT_U64, "0.00000000000000000000000000018446744073709551615e46", NULL},
        {LEAT_U64, "0.00000000000000000000000000018446744073709551615e47", "18446744073709551615"},
        {LEAT_I64, "1000000000000000000000000000000e-30", "1"},
        {LEAT_I64, "123456789012345678901234567890e-29", NULL},
        {LEAT_I64, "0e999999999999999999999999", "0"},
        {LEAT_I64, "0.000e-999999999999999999999999", "0"},
        {LEAT_I64, "1e999999999999999999999999", NULL},
        {LEAT_I64, "1e-999999999999999999999999", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        const char *got = stored(rows[i].kind, rows[i].text, text), *want = rows[i].expected;
        cr_assert(!got == !want && (!got || strcmp(got, want) == 0), "%s gave %s", rows[i].text,
                  got ? got : "nothing");
    }
}

// Both must be the same to the last bit, and out of range for the same texts.
static void compare_with_the_library(const char *text)
{
    leati_number number;
    double d = 0, want = strtod(text, NULL);
    float f = 0, want_f = strtof(text, NULL);
    cr_assert(scan(text, LEATI_STRICT, &number), "%s", text);
    cr_assert(leati_number_store(LEAT_F64, &number, &d) == !isinf(want), "%s", text);
    cr_assert(isinf(want) || memcmp(&d, &want, sizeof d) == 0, "%s gave %a, not %a", text, d, want);
    cr_assert(leati_number_store(LEAT_F32, &number, &f) == !isinf(want_f), "%s", text);
    cr_assert(isinf(want_f) || memcmp(&f, &want_f, sizeof f) == 0, "%s gave %a, not %a", text,
              (double)f, (double)want_f);
    const char *end = text + strlen(text), *next = leati_real_scan(text, end, &d);
    cr_assert(!next || (next == end && memcmp(&d, &want, sizeof d) == 0), "%s gave %a, not %a",
              text, d, want);
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed ^ *seed >> 29;
}

Test(number, the_quick_ways_refuse_what_they_cannot)
{
    static const struct {
        const char *text;
        bool integer, real;
    } rows[] = {
        {"0", 1, 1},
        {"-7", 1, 1},
        {"123456789012345678", 1, 0},
        {"1234567890123456789", 0, 0},
        {"", 0, 0},
        {"-", 0, 0},
        {"123456789012345", 1, 1},
        {"1234567890123456", 1, 0},
        {"01", 0, 0},
        {"1.", 0, 0},
        {"12345678901234.5", 0, 1},
        {"123456789012345.5", 0, 0},
        {"1.5", 0, 1},
        {".5", 0, 0},
        {"0.00000000000001", 0, 1},
        {"0.000000000000001", 0, 0},
        {"1e5", 0, 0},
        {"1.5e", 0, 0},
        {"1.2.3", 0, 0},
        {"+1", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rows[i].text, *end = text + strlen(text);
        int64_t integer;
        double real;
        const char *next = leati_integer_scan(text, end, &integer);
        cr_assert(rows[i].integer ? next == end : !next, "%s", text);
        next = leati_real_scan(text, end, &real);
        cr_assert(rows[i].real ? next == end : !next, "%s", text);
    }
}

Test(number, reals_are_correctly_rounded)
{
    static const char *const rows[] = {
        "0",
        "-0",
        "0.0e5",
        "1",
        "0.1",
        "0.3",
        "123456789.125",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740991.5",
        "9007199254740993.0000000000000000000000001",
        "18446744073709551615",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1.8e308",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "1e400",
        "3.4028235e38",
        "3.4028235677973366e38",
        "3.4028235677973365e38",
        "3.5e38",
        "1.17549435e-38",
        "1.401298464324817e-45",
        "7.006492321624085e-46",
        "7.006492321624086e-46",
        "16777217",
        "16777219",
        "16777217.0000001",
        "33554435",
        "0.500000059604644775390625",
        "0.50000005960464477539062500000001",
        "0.50000005960464477539062499999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "8.5070586659632215e37",
        "12345678901234567890123456789012345678901234567890e-20",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        compare_with_the_library(rows[i]);
    uint64_t seed = 7;
    char text[128];
    for (int i = 0; i < 60000; i++) {
        uint64_t bits = next(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            snprintf(text, sizeof text, "%.*e", (int)(next(&seed) % 20), value);
            compare_with_the_library(text);
        }
        // Numbers of the size that data has: the quick ways.
        snprintf(text, sizeof text, "%llue%d",
                 (unsigned long long)(next(&seed) >> next(&seed) % 60),
                 (int)(next(&seed) % 70) - 35);
        compare_with_the_library(text);
        snprintf(text, sizeof text, "%.17g", (double)(next(&seed) >> 11) / 1e9);
        compare_with_the_library(text);
        snprintf(text, sizeof text, "-%.*f", (int)(next(&seed) % 14),
                 (double)(next(&seed) >> next(&seed) % 60) / 1e3);
        compare_with_the_library(text);
    }
}

static double positive(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

Test(number, ties_between_two_reals_are_seen_through)
{
    uint64_t seed = 11;
    char text[1200];
    for (int i = 0; i < 4000; i++) {
        // The number halfway between two doubles, or two floats, and those next to it. Numbers
        // between 2^-60 and 2^60.
        double low = positive((UINT64_C(963) + next(&seed) % 120) << 52 | next(&seed) >> 12 | 1);
        double high = positive(bits_of(low) + 1);
        long double half = (long double)low + (long double)(high - low) / 2;
        snprintf(text, sizeof text, "%.120Lf", half);
        compare_with_the_library(text);
        text[strlen(text) - 1] = '1';
        compare_with_the_library(text);
        // A float has 29 bits less.
        low = positive(bits_of(low) >> 29 << 29);
        high = positive(bits_of(low) + (UINT64_C(1) << 28));
        snprintf(text, sizeof text, "%.120f", high);
        compare_with_the_library(text);
        text[strlen(text) - 1] = '1';
        compare_with_the_library(text);
    }
    // More digits than are kept: the last one decides.
    memset(text, 0, sizeof text);
    memcpy(text, "9007199254740993.", 17);
    memset(text + 17, '0', 1100);
    compare_with_the_library(text);
    text[1116] = '1';
    compare_with_the_library(text);
}

Test(number, the_locale_does_not_matter)
{
    // Where no locale with a decimal comma is installed this holds trivially.
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fa_IR.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        leati_number number;
        double value = 0;
        setlocale(LC_ALL, locales[i]);
        cr_assert(scan("1234567890123456789012345.5e-24", LEATI_STRICT, &number));
        cr_assert(leati_number_store(LEAT_F64, &number, &value));
        cr_assert(value == 1.2345678901234568);
    }
}
