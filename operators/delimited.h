// SPDX-License-Identifier: Apache-2.0
// Takes a stream of bytes apart at a delimiter. Pure but for memory: the owner reads the bytes.
//
// The search for a delimiter goes on where it has stopped, so a record that comes in many pieces is
// searched once.
#ifndef LEATI_OPERATORS_DELIMITED_H
#define LEATI_OPERATORS_DELIMITED_H

#include "leat/alloc.h"
#include "leat/base.h"

typedef struct leati_delimited {
    const leat_allocator *allocator; // borrowed, like the delimiter
    const char *delimiter;           // not empty
    size_t delimiter_size;
    bool drops_cr; // one CR before the delimiter is no part of the record
    char *data;
    size_t capacity;
    size_t at, filled; // the bytes not yet handed out
    size_t scanned;    // of these, how many are known to begin no delimiter
} leati_delimited;

// Allocates nothing yet.
void leati_delimited_init(leati_delimited *buffer, const leat_allocator *allocator,
                          const char *delimiter);
void leati_delimited_fini(leati_delimited *buffer);

// Room for at least `least` more bytes; NULL when out of memory. What next gave is no longer valid.
char *leati_delimited_room(leati_delimited *buffer, size_t least);
// So many bytes have been put there.
void leati_delimited_add(leati_delimited *buffer, size_t size);
// The next whole record, valid until room is called.
bool leati_delimited_next(leati_delimited *buffer, leat_str *record);
// What follows the last delimiter, if anything; it is handed out.
bool leati_delimited_rest(leati_delimited *buffer, leat_str *record);
// How many bytes have not been handed out.
static inline size_t leati_delimited_pending(const leati_delimited *buffer)
{
    return buffer->filled - buffer->at;
}

#endif
