// SPDX-License-Identifier: Apache-2.0
#include "operators/line_buffer.h"

#include <string.h>

#include "base/alloc.h"
#include "runtime/context.h"

leat_err leati_line_buffer_open(leati_line_buffer *buffer)
{
    leat_ctx *ctx = buffer->owner->ctx;
    buffer->data = leati_alloc(leat_ctx_allocator(ctx), LEATI_LINE_BUFFER_SIZE);
    if (!buffer->data)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory for the buffer of lines");
    buffer->capacity = LEATI_LINE_BUFFER_SIZE;
    buffer->used = buffer->lines = 0;
    return LEAT_OK;
}

void leati_line_buffer_fini(leati_line_buffer *buffer)
{
    if (buffer->data)
        leati_free(leat_ctx_allocator(buffer->owner->ctx), buffer->data);
    buffer->data = NULL;
    buffer->capacity = buffer->used = buffer->lines = 0;
}

leat_err leati_line_buffer_flush(leati_line_buffer *buffer)
{
    if (buffer->used == 0)
        return LEAT_OK;
    leat_err err = buffer->write(buffer->owner, buffer->data, buffer->used);
    if (err)
        return err;
    leat_ctx_count_out(buffer->owner->ctx, buffer->lines, buffer->used);
    buffer->used = buffer->lines = 0;
    return LEAT_OK;
}

// Writes the line of a record to where the buffer's free part begins; returns what it needs.
static size_t put_line(leati_line_buffer *buffer, const void *record)
{
    size_t room = buffer->capacity - buffer->used;
    char *at = buffer->data + buffer->used;
    size_t prefix = buffer->prefix_size;
    if (room <= prefix)
        return prefix + 1 + buffer->format(buffer->owner, record, NULL, 0);
    if (prefix)
        memcpy(at, buffer->prefix, prefix);
    size_t size = prefix + buffer->format(buffer->owner, record, at + prefix, room - prefix);
    if (size < room)
        at[size] = '\n';
    return size + 1;
}

// The buffer is empty and too small for one line: the line gets a buffer of its own size.
static leat_err put_large(leati_line_buffer *buffer, const void *record, size_t needed)
{
    leat_ctx *ctx = buffer->owner->ctx;
    char *usual = buffer->data;
    char *large = leati_alloc(leat_ctx_allocator(ctx), needed);
    if (!large)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory for a line of %zu bytes", needed);
    buffer->data = large;
    buffer->capacity = needed;
    buffer->used = put_line(buffer, record);
    buffer->lines = 1;
    leat_err err = leati_line_buffer_flush(buffer);
    leati_free(leat_ctx_allocator(ctx), large);
    buffer->data = usual;
    buffer->capacity = LEATI_LINE_BUFFER_SIZE;
    buffer->used = buffer->lines = 0;
    return err;
}

leat_err leati_line_buffer_put(leati_line_buffer *buffer, const void *record)
{
    size_t needed = put_line(buffer, record);
    if (LEAT_UNLIKELY(needed > buffer->capacity - buffer->used)) {
        leat_err err = leati_line_buffer_flush(buffer);
        if (err)
            return err;
        if (needed > buffer->capacity)
            return put_large(buffer, record, needed);
        needed = put_line(buffer, record);
    }
    buffer->used += needed;
    buffer->lines++;
    return LEAT_OK;
}
