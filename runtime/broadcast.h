// SPDX-License-Identifier: Apache-2.0
// The broadcast variables of a task: what its head's operator must have whole before the chain is
// opened (leat/broadcast.h).
//
// Threading. The task. Bounds. broadcast.memory for the records of each variable.
#ifndef LEATI_RUNTIME_BROADCAST_H
#define LEATI_RUNTIME_BROADCAST_H

#include "runtime/task.h"

typedef struct leati_broadcasts leati_broadcasts;

// For a head with variables; `channels[i]` is how many channels variable i has. LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_broadcasts_create(leati_task *task, const uint32_t *channels,
                                               leati_broadcasts **broadcasts);
void leati_broadcasts_destroy(leati_broadcasts **broadcasts);

// Where their channels are attached: variable by variable.
leati_task_input *leati_broadcasts_input(leati_broadcasts *broadcasts);
// Takes at most `max` records. LEATI_STEP_END: all are there.
LEAT_MUST_USE leat_err leati_broadcasts_step(leati_broadcasts *broadcasts, uint32_t max,
                                             leati_step *step);

#endif
