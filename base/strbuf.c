// SPDX-License-Identifier: Apache-2.0
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

void leati_strbuf_init(leati_strbuf *buffer, const leat_allocator *allocator)
{
    *buffer = (leati_strbuf){.allocator = allocator};
}

void leati_strbuf_fini(leati_strbuf *buffer)
{
    leati_free(buffer->allocator, buffer->data);
    *buffer = (leati_strbuf){.allocator = buffer->allocator};
}

// Room for `more` bytes and a NUL.
static bool reserve(leati_strbuf *buffer, size_t more)
{
    size_t needed;
    if (buffer->failed || __builtin_add_overflow(buffer->size, more, &needed) ||
        !leati_grow(buffer->allocator, (void **)&buffer->data, &buffer->capacity, needed + 1, 1)) {
        buffer->failed = true;
        return false;
    }
    return true;
}

void leati_strbuf_append(leati_strbuf *buffer, const void *data, size_t size)
{
    if (!reserve(buffer, size))
        return;
    if (size)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void leati_strbuf_puts(leati_strbuf *buffer, const char *text)
{
    leati_strbuf_append(buffer, text, strlen(text));
}

void leati_strbuf_putc(leati_strbuf *buffer, char c)
{
    leati_strbuf_append(buffer, &c, 1);
}

void leati_strbuf_vprintf(leati_strbuf *buffer, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        buffer->failed = true;
    else if (reserve(buffer, (size_t)length)) {
        vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, again);
        buffer->size += (size_t)length;
    }
    va_end(again);
}

void leati_strbuf_printf(leati_strbuf *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    leati_strbuf_vprintf(buffer, format, args);
    va_end(args);
}

void leati_strbuf_json_string(leati_strbuf *buffer, const char *text, size_t size)
{
    size_t length = leati_json_string(text, size, NULL, 0);
    if (!reserve(buffer, length))
        return;
    leati_json_string(text, size, buffer->data + buffer->size, length);
    buffer->size += length;
    buffer->data[buffer->size] = '\0';
}

const char *leati_strbuf_text(const leati_strbuf *buffer)
{
    return buffer->data ? buffer->data : "";
}

char *leati_strbuf_take(leati_strbuf *buffer)
{
    if (!buffer->data)
        leati_strbuf_append(buffer, "", 0);
    if (buffer->failed) {
        leati_strbuf_fini(buffer);
        return NULL;
    }
    char *text = buffer->data;
    *buffer = (leati_strbuf){.allocator = buffer->allocator};
    return text;
}
