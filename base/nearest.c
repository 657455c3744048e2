// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <string.h>

// Names are short; longer words are near to nothing.
enum { WORD_MAX = 64 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static size_t edits(const char *a, size_t a_size, const char *b, size_t b_size)
{
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
    // A third of the letters may be wrong; of very short words two.
    size_t limit = size < 6 ? 2 : size / 3;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(words[i]);
        if (other > WORD_MAX)
            continue;
        size_t distance = edits(word, size, words[i], other);
        if (distance <= limit && distance < other && distance < size) {
            nearest = words[i];
            if (distance == 0)
                break;
            limit = distance - 1;
        }
    }
    return nearest;
}
