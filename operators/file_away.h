// SPDX-License-Identifier: Apache-2.0
// One subtask of a file source whose list of splits is in another process: it asks there for the
// next ones when it has read those it has. That it asks again says that it has done so.
//
// Threading. The subtask's.
#ifndef LEATI_OPERATORS_FILE_AWAY_H
#define LEATI_OPERATORS_FILE_AWAY_H

#include "operators/file_home.h"
#include "runtime/context.h"

// Zeroed at first.
typedef struct leati_file_away {
    leati_answer answer;
    leati_file_batch batch;
    uint32_t at; // in it
    bool ended;
} leati_file_away;

// The next split, as leati_file_splits_next; LEATI_SPLIT_WAIT while the answer is under way, which
// wakes the task. `home` is the object of this process. Errors are recorded.
LEAT_MUST_USE leat_err leati_file_away_next(leati_file_away *away, leat_ctx *ctx,
                                            leati_file_home *home, leati_file_split *split,
                                            leati_split_result *result);
// Gives everything back, in the dispose hook.
void leati_file_away_fini(leati_file_away *away, leati_file_home *home);

#endif
