// SPDX-License-Identifier: Apache-2.0
// A naive second implementation of records: values as trees, made at random, encoded byte by byte,
// compared by sorting and hashed as docs/design/hash.md says. It shares nothing with record/ but
// the descriptions of types.
#ifndef LEAT_TESTS_RECORD_MODEL_H
#define LEAT_TESTS_RECORD_MODEL_H

#include "leat/record.h"

typedef struct model {
    const leat_type *type;
    uint64_t bits;       // bool, integers (extended to 64 bits), reals (as they are in memory)
    char *data;          // str, bytes
    size_t count;        // bytes of data; or how many items
    struct model *items; // list; map: key, value, key, …; optional: none or one; struct: fields
} model;

// A stream of numbers that a seed decides.
typedef struct dice {
    uint64_t state;
} dice;
uint64_t roll(dice *d, uint64_t sides);

// A type of run time, of few and of many shapes. The caller owns the reference.
const leat_type *random_type(dice *d, int depth);

void model_random(model *value, const leat_type *type, dice *d, int size);
void model_free(model *value);

// Builds the C value in `to`. What it points to is allocated; model_unbuild frees that.
void model_build(const model *value, void *to);
void model_unbuild(const leat_type *type, void *built);

// The wire form, appended to a buffer that is large enough. With dice, a random one of all the
// forms that a decoder must take; without, the one that the encoder must write.
uint8_t *model_encode(const model *value, uint8_t *to, dice *d);

int model_compare(const model *a, const model *b);
uint64_t model_hash(const model *value);

#endif
