// SPDX-License-Identifier: Apache-2.0
// What the subtasks of a file source share in one process. Where subtask 0 runs, at home, it has
// the list of splits, also for those in other processes, which ask for theirs. Elsewhere it only
// knows the files that were handed out (file_away.h).
//
// Threading. Any thread. Lock order: its own, then that of the splits. Nothing waits for a listing.
// Bounds. One entry for each subtask elsewhere.
#ifndef LEATI_OPERATORS_FILE_HOME_H
#define LEATI_OPERATORS_FILE_HOME_H

#include "operators/file_split_wire.h"

typedef struct leati_file_home leati_file_home;

// The operator's object in this process, which belongs to the job. The error is recorded.
LEAT_MUST_USE leat_err leati_file_home_get(leat_ctx *ctx, leati_file_home **home);
leati_file_splits *leati_file_home_splits(const leati_file_home *home);
// As leati_file_machine, of this process.
uint64_t leati_file_home_machine(const leati_file_home *home);
// There may be something to hand out: to be called after each listing.
void leati_file_home_serve(leati_file_home *home);

#endif
