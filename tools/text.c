// SPDX-License-Identifier: Apache-2.0
#include "tools/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void leati_scaled(double value, char *to)
{
    static const char prefixes[] = " kMGTPE";
    size_t prefix = 0;
    // Just below a thousand the three digits would round up to four.
    while (value >= 999.5 && prefix + 1 < sizeof prefixes - 1) {
        value /= 1000;
        prefix++;
    }
    if (prefix == 0)
        snprintf(to, LEATI_SCALED_SIZE, "%.0f", value);
    else
        snprintf(to, LEATI_SCALED_SIZE, "%.*f %c", value < 9.995 ? 2 : value < 99.95, value,
                 prefixes[prefix]);
}

static size_t step(const char *text, size_t left)
{
    size_t length = leati_utf8_length(text, left);
    return length ? length : 1;
}

size_t leati_columns(const char *text)
{
    size_t columns = 0;
    for (size_t left = strlen(text); left; columns++) {
        size_t length = step(text, left);
        text += length;
        left -= length;
    }
    return columns;
}

// Copies the code points number `from` up to, not including, `end`.
static size_t copy_columns(const char *text, size_t from, size_t end, char *to, size_t size)
{
    size_t used = 0, left = strlen(text);
    for (size_t column = 0; left && column < end; column++) {
        size_t length = step(text, left);
        if (column >= from) {
            if (used + length >= size)
                break;
            bool plain =
                (unsigned char)text[0] >= 0x20 && text[0] != 0x7f && leati_utf8_length(text, left);
            if (plain)
                memcpy(to + used, text, length);
            else
                to[used] = '?';
            used += length;
        }
        text += length;
        left -= length;
    }
    to[used] = '\0';
    return used;
}

void leati_shorten(const char *text, size_t columns, char *to, size_t size)
{
    enum { GAP = 2 };
    size_t all = leati_columns(text);
    if (all <= columns || columns <= GAP) {
        copy_columns(text, 0, columns, to, size);
        return;
    }
    size_t head = (columns - GAP + 1) / 2, tail = columns - GAP - head;
    size_t used = copy_columns(text, 0, head, to, size);
    if (used + GAP < size) {
        memcpy(to + used, "..", GAP);
        used += GAP;
    }
    copy_columns(text, all - tail, all, to + used, size - used);
}
