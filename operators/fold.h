// SPDX-License-Identifier: Apache-2.0
// What the folding operators (reduce, aggregate) share: finding the accumulator of a record's key,
// and walking all accumulators at the end when only final values are wanted.
#ifndef LEATI_OPERATORS_FOLD_H
#define LEATI_OPERATORS_FOLD_H

#include "leat/stream.h"
#include "operators/builder.h"
#include "runtime/context.h"
#include "runtime/keyed_table.h"

// The settings of every folding operator start with this; leat_final_only writes it.
typedef struct leati_fold_config {
    bool final_only;
} leati_fold_config;

// What leat_final_only knows folding operators by.
leat_err leati_reduce_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op);
leat_err leati_aggregate_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op);

typedef struct leati_fold {
    leat_operator base;
    const leati_key_selector *selector;
    const leat_type *accumulator_type;
    leati_keyed_table *table;
    void *key_record; // what a key function fills; NULL when the key is fields of the record
    bool nullable;    // the key may be null
    bool final_only;
    size_t cursor; // of finish
} leati_fold;

// Where a record's key was found; to be handed from find to insert.
typedef struct leati_fold_key {
    uint64_t hash;
    const void *record;
} leati_fold_key;

void leati_fold_init(leati_fold *fold, const leati_fold_config *config,
                     const leat_type *accumulator_type);
// The open hook.
leat_err leati_fold_open(leat_operator *self);
// The dispose hook, for operators that own nothing else.
void leati_fold_dispose(leat_operator *self);

// Finds the accumulator of a record's key; NULL in `*accumulator` when there is none yet.
leat_err leati_fold_find(leati_fold *fold, const void *in, leati_fold_key *key, void **accumulator);
// Stores a copy of `initial` under the key that find has just looked for.
leat_err leati_fold_insert(leati_fold *fold, const leati_fold_key *key, const void *initial,
                           void **accumulator);
// After a user function has changed the accumulator.
leat_err leati_fold_own(leati_fold *fold, void **accumulator);

// Emits the accumulators with `emit` when only final values are wanted, in slices: LEAT_EAGAIN as
// long as there are more.
typedef leat_err (*leati_fold_emit)(leati_fold *fold, const void *accumulator, leat_out *out);
leat_err leati_fold_finish(leati_fold *fold, leati_fold_emit emit, leat_out *out);

#endif
