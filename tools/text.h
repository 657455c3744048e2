// SPDX-License-Identifier: Apache-2.0
// Small texts for people: scaled numbers, shortened names.
#ifndef LEATI_TOOLS_TEXT_H
#define LEATI_TOOLS_TEXT_H

#include <stddef.h>
#include <stdint.h>

// "0", "950", "12.3 M": three significant digits and a decimal prefix; `to` holds LEATI_SCALED_SIZE
// bytes.
enum { LEATI_SCALED_SIZE = 16 };
void leati_scaled(double value, char *to);

// How many columns a text takes: one for each code point or stray byte.
size_t leati_columns(const char *text);
// Copies a text so that it takes at most `columns` columns; what is too long is cut in the middle,
// where names of chains differ least. Control characters become "?". `to` always ends in a NUL and
// holds at most `size` bytes.
void leati_shorten(const char *text, size_t columns, char *to, size_t size);

#endif
