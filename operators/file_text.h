// SPDX-License-Identifier: Apache-2.0
// The rule of what a line is, for the format "text" and for readers that take it by a shorter way.
#ifndef LEATI_OPERATORS_FILE_TEXT_H
#define LEATI_OPERATORS_FILE_TEXT_H

#include <string.h>

#include "leat/base.h"

// The line at `from`, which ends at the first LF, without one CR before that. Returns how many
// bytes it takes with its end; 0 when there is no LF. The first `scanned` bytes are known to hold
// none.
static inline size_t leati_text_line(const char *from, size_t size, size_t scanned, leat_str *line)
{
    const char *lf = memchr(from + scanned, '\n', size - scanned);
    if (LEAT_UNLIKELY(!lf))
        return 0;
    size_t length = (size_t)(lf - from);
    line->data = from;
    line->size = length - (length > 0 && lf[-1] == '\r');
    return length + 1;
}

#endif
