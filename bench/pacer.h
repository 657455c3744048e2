// SPDX-License-Identifier: Apache-2.0
// A source that follows a schedule: a timer's descriptor says when the next record is due, and each
// record carries the time at which it was.
#ifndef LEATI_BENCH_PACER_H
#define LEATI_BENCH_PACER_H

#include "bench/schedule.h"
#include "leat/leat.h"

typedef struct stamped {
    int64_t index, due_ns;
} stamped;
LEAT_RECORD(stamped, LEAT_FIELD(index, LEAT_I64), LEAT_FIELD(due_ns, LEAT_I64));

// As the `create` of a factory; its config is a schedule. For a source of one subtask.
leat_err pacer_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op);

#endif
