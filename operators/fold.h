// SPDX-License-Identifier: Apache-2.0
// What the folding operators (reduce, aggregate, sum and its kin) share: finding the accumulator of
// a record's key, and walking all accumulators at the end when only final values are wanted.
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
leat_err leati_rolling_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op);

typedef struct leati_fold leati_fold;

// Where a record's key was found.
typedef struct leati_fold_key {
    uint64_t hash;
    const void *record;
} leati_fold_key;

// What distinguishes one folding operator from another: how it folds a record into `*accumulator`
// (NULL: the first of its key, to be inserted), and how it emits one. A fold that leaves NULL there
// has rejected the record: nothing is emitted for it. `emit` gets the record that made the update;
// NULL for a final value.
typedef struct leati_fold_ops {
    leat_err (*fold)(leati_fold *fold, const leati_fold_key *key, const void *record,
                     void **accumulator);
    leat_err (*emit)(leati_fold *fold, const void *record, const void *accumulator, leat_out *out);
} leati_fold_ops;

struct leati_fold {
    leat_operator base;
    const leati_fold_ops *ops;
    const leati_key_selector *selector;
    const leat_type *accumulator_type;
    leati_keyed_table *table;
    void *key_record; // what a key function fills; NULL when the key is fields of the record
    bool nullable;    // the key may be null
    bool final_only;
    size_t cursor; // of finish
};

void leati_fold_init(leati_fold *fold, const leati_fold_ops *ops, const leati_fold_config *config,
                     const leat_type *accumulator_type);
// The hooks of folding operators; dispose is for those that own nothing else. With `elements` an
// operator gets several records at once; it is for final values only, since nothing asks between
// two of them whether output is still available.
leat_err leati_fold_open(leat_operator *self);
leat_err leati_fold_element(leat_operator *self, const void *record, leat_out *out);
leat_err leati_fold_elements(leat_operator *self, const void *records, uint32_t count,
                             leat_out *out);
leat_err leati_fold_finish(leat_operator *self, leat_out *out);
void leati_fold_dispose(leat_operator *self);

// For the fold function: stores a copy of `initial` under the record's key.
leat_err leati_fold_insert(leati_fold *fold, const leati_fold_key *key, const void *initial,
                           void **accumulator);
// The same: after a user function has changed the accumulator.
leat_err leati_fold_own(leati_fold *fold, void **accumulator);
// The user function that folds has returned `result`, not 0: the operator's policy for rejected
// records applies. To be returned by the fold function; what the user function has changed in the
// accumulator before stays.
leat_err leati_fold_reject(leati_fold *fold, const void *record, void **accumulator,
                           const char *function, int result);
// The key as JSON, for messages: at most `size` bytes with the NUL, cut where it is longer.
void leati_fold_key_text(const leati_fold *fold, const leati_fold_key *key, char *text,
                         size_t size);

#endif
