// SPDX-License-Identifier: Apache-2.0
#include "tools/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

// Words of the command line are short; longer ones are near to nothing.
enum { WORD_MAX = 48 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

// How many letters must be changed, added or dropped.
static size_t edits(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_size];
}

const char *leati_nearest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t size = strlen(word);
    if (size > WORD_MAX)
        return NULL;
    // A third of the letters may be wrong; of very short words one.
    size_t limit = size < 6 ? 2 : size / 3;
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) > WORD_MAX)
            continue;
        size_t distance = edits(word, words[i]);
        if (distance <= limit && distance < strlen(words[i])) {
            limit = distance ? distance - 1 : 0;
            nearest = words[i];
        }
    }
    return nearest;
}

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
