// SPDX-License-Identifier: Apache-2.0
// A growing run of bytes for messages, pictures and control data. Running out of memory is
// remembered, so that a chain of appends is checked once at its end.
#ifndef LEATI_BASE_STRBUF_H
#define LEATI_BASE_STRBUF_H

#include <stdarg.h>

#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_strbuf {
    const leat_allocator *allocator;
    char *data; // `size` bytes and a NUL after them; NULL before the first append
    size_t size;
    size_t capacity;
    bool failed;
} leati_strbuf;

void leati_strbuf_init(leati_strbuf *buffer, const leat_allocator *allocator);
void leati_strbuf_fini(leati_strbuf *buffer);
void leati_strbuf_append(leati_strbuf *buffer, const void *data, size_t size);
void leati_strbuf_puts(leati_strbuf *buffer, const char *text);
void leati_strbuf_putc(leati_strbuf *buffer, char c);
void leati_strbuf_printf(leati_strbuf *buffer, const char *format, ...) LEAT_PRINTF(2, 3);
void leati_strbuf_vprintf(leati_strbuf *buffer, const char *format, va_list args);
// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void leati_strbuf_json_string(leati_strbuf *buffer, const char *text, size_t size);
// The text with a NUL, never NULL: "" when nothing could be stored.
const char *leati_strbuf_text(const leati_strbuf *buffer);
// Transfers the text (NUL-terminated) to the caller, who frees it with leati_free of the same
// allocator; NULL when an append failed.
char *leati_strbuf_take(leati_strbuf *buffer);

#endif
