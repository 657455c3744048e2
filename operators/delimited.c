// SPDX-License-Identifier: Apache-2.0
#include "operators/delimited.h"

#include <string.h>

#include "base/alloc.h"

void leati_delimited_init(leati_delimited *b, const leat_allocator *allocator,
                          const char *delimiter)
{
    *b = (leati_delimited){.allocator = allocator,
                           .delimiter = delimiter,
                           .delimiter_size = strlen(delimiter),
                           .drops_cr = strcmp(delimiter, "\n") == 0};
}

void leati_delimited_fini(leati_delimited *b)
{
    leati_free(b->allocator, b->data);
    b->data = NULL;
    b->capacity = b->at = b->filled = b->scanned = 0;
}

char *leati_delimited_room(leati_delimited *b, size_t least)
{
    size_t pending = leati_delimited_pending(b);
    if (b->at && pending)
        memmove(b->data, b->data + b->at, pending);
    b->at = 0;
    b->filled = pending;
    void *data = b->data;
    if (!leati_grow(b->allocator, &data, &b->capacity, pending + least, 1))
        return NULL;
    b->data = data;
    return b->data + b->filled;
}

void leati_delimited_add(leati_delimited *b, size_t size)
{
    b->filled += size;
}

bool leati_delimited_next(leati_delimited *b, leat_str *record)
{
    size_t pending = leati_delimited_pending(b), width = b->delimiter_size;
    if (pending - b->scanned < width)
        return false;
    const char *start = b->data + b->at, *from = start + b->scanned;
    const char *end = width == 1 ? memchr(from, b->delimiter[0], pending - b->scanned)
                                 : memmem(from, pending - b->scanned, b->delimiter, width);
    if (!end) {
        b->scanned = pending - width + 1;
        return false;
    }
    size_t size = (size_t)(end - start);
    b->at += size + width;
    b->scanned = 0;
    size -= b->drops_cr && size > 0 && end[-1] == '\r';
    *record = (leat_str){.data = start, .size = size};
    return true;
}

bool leati_delimited_rest(leati_delimited *b, leat_str *record)
{
    if (leati_delimited_pending(b) == 0)
        return false;
    *record = (leat_str){.data = b->data + b->at, .size = leati_delimited_pending(b)};
    b->at = b->filled;
    b->scanned = 0;
    return true;
}
