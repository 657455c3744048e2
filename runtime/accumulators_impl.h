// SPDX-License-Identifier: Apache-2.0
// Merging of accumulators: of the subtasks of a job (accumulators.c), and of what several processes
// have sent of theirs (accumulators_wire.c).
#ifndef LEATI_RUNTIME_ACCUMULATORS_IMPL_H
#define LEATI_RUNTIME_ACCUMULATORS_IMPL_H

#include "base/arena.h"
#include "leat/metrics.h"

__extension__ typedef __int128 leati_wide;

// What has been merged under one name. The sum is wide, so that only the result can overflow, not
// a part of it.
typedef struct leati_merged {
    leat_accumulator_value value;
    leati_wide sum;
    leat_histogram *histogram;
    void *list; // `value.count` items of `value`'s list
    size_t list_capacity;
} leati_merged;

struct leat_accumulators {
    leat_allocator allocator;
    leati_arena arena; // names, texts, histograms
    leati_merged *items;
    size_t count, capacity;
};

LEAT_MUST_USE leat_err leati_accumulators_create(const leat_allocator *allocator,
                                                 leat_accumulators **accumulators);
// The one of that name and kind, which is made if it is missing; NULL: out of memory.
leati_merged *leati_accumulators_find(leat_accumulators *all, const char *name,
                                      leat_accumulator_kind kind);
bool leati_accumulator_is_list(leat_accumulator_kind kind);
bool leati_accumulator_is_i64(leat_accumulator_kind kind);
// One item of a list as leati_list_chunk has it; `*size` is how long it is.
LEAT_MUST_USE leat_err leati_accumulators_add_item(leat_accumulators *all, leati_merged *m,
                                                   const char *item, size_t *size);
// The value of a subtask that has taken any; the caller counts.
void leati_merge_i64(leati_merged *m, int64_t value);
void leati_merge_f64(leati_merged *m, double value);
// Once everything is merged: from sums to results.
void leati_accumulators_complete(leat_accumulators *all);

#endif
