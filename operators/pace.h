// SPDX-License-Identifier: Apache-2.0
// When each of the numbered records of a paced source is due. Pure: the caller has the clock.
//
// Record i of all subtasks together is due i / rate seconds after the start. So the subtasks, each
// of which emits every n-th record, share the rate evenly and take turns, with no word between
// them. Records that are overdue are emitted at once; what is overdue by more than
// LEATI_PACE_DEBT_NS is forgiven by moving the start, so that a source which was held up does not
// flood its readers for as long as it stood still.
#ifndef LEATI_OPERATORS_PACE_H
#define LEATI_OPERATORS_PACE_H

#include "leat/base.h"

// A paced source wakes at most once in LEATI_PACE_BURST_NS and then emits all that is due.
#define LEATI_PACE_BURST_NS INT64_C(10000000)
#define LEATI_PACE_DEBT_NS  INT64_C(1000000000)

typedef struct leati_pace {
    double per_second; // of all subtasks together; above 0
    int64_t start_ns;  // when record 0 is, or would have been, due
} leati_pace;

// When a record is due; INT64_MAX for never.
int64_t leati_pace_due_ns(const leati_pace *pace, int64_t index);
// Forgives what is overdue by too much. `next` is the record that the caller will emit next.
void leati_pace_forgive(leati_pace *pace, int64_t next, int64_t now_ns);
// When to look again, given that `next` is not due yet.
int64_t leati_pace_wake_ns(const leati_pace *pace, int64_t next, int64_t now_ns);

#endif
