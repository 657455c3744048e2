// SPDX-License-Identifier: Apache-2.0
// The buffer of the sinks that write text: records become lines, which go out in batches of whole
// lines.
//
// Threading. Of the task. Bounds. One buffer of LEATI_LINE_BUFFER_SIZE; a line that is longer than
// that has one of its own for as long as it takes to write it.
#ifndef LEATI_OPERATORS_LINE_BUFFER_H
#define LEATI_OPERATORS_LINE_BUFFER_H

#include "leat/operator.h"

enum { LEATI_LINE_BUFFER_SIZE = 64 * 1024 };

typedef struct leati_line_buffer {
    // Set by the owner, before open.
    leat_operator *owner;
    // How a record becomes text, without its line end: as snprintf does, without a NUL.
    size_t (*format)(leat_operator *owner, const void *record, char *to, size_t size);
    // Where whole lines go. Says itself why it fails.
    leat_err (*write)(leat_operator *owner, const char *data, size_t size);
    const char *prefix; // of each line; borrowed
    size_t prefix_size;
    // The buffer's own.
    char *data;
    size_t capacity, used;
    uint64_t lines; // in the buffer
} leati_line_buffer;

LEAT_MUST_USE leat_err leati_line_buffer_open(leati_line_buffer *buffer);
// Frees the memory and forgets the lines. Also for a buffer that is zeroed or was not opened.
void leati_line_buffer_fini(leati_line_buffer *buffer);

// Adds the line of a record, which may write out the lines before it.
LEAT_MUST_USE leat_err leati_line_buffer_put(leati_line_buffer *buffer, const void *record);
// Writes out all lines and counts them as the task's output.
LEAT_MUST_USE leat_err leati_line_buffer_flush(leati_line_buffer *buffer);

#endif
