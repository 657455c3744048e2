// SPDX-License-Identifier: Apache-2.0
// Broadcast variables: all records of a bounded stream, at hand in every subtask of an operator
// before its `open` runs. A lookup table that a job computes itself, say.
//
//     leat_stream *priced = leat_map(orders, price, LEAT_TYPE(priced_order));
//     leat_broadcast_variable(priced, "rates", rates);
//     …
//     static int price(leat_ctx *ctx, const void *in, void *out)
//     {
//         size_t count;
//         const rate *rates = leat_ctx_broadcast(ctx, "rates", &count);
#ifndef LEAT_BROADCAST_H
#define LEAT_BROADCAST_H

#include "leat/function.h"
#include "leat/stream.h"

LEAT_BEGIN_DECLS

// Gives the operator that made `stream` all records of `values` under a name, which is copied; an
// operator may have several. Until `values` has ended it takes none of its input: a stream that
// never ends leaves it waiting for ever, and is a fault where that is known. Where its input comes
// from the same place as the variable, that input is kept in temporary files meanwhile, so that
// neither waits for the other. Such an operator begins a task of its own. Not for sources. Returns
// `stream`.
LEAT_API leat_stream *leat_broadcast_variable(leat_stream *stream, const char *name,
                                              leat_stream *values);

// The records of a broadcast variable of this operator, an array of the type of the stream, in no
// particular order and the same for all subtasks but for that. Never NULL for a variable of the
// operator, even if it is empty; for another name the failure is recorded, and the function is to
// return -1. From any function of the operator, `open` included; valid until its close has
// returned. What it takes in each subtask is limited by "broadcast.memory".
LEAT_API const void *leat_ctx_broadcast(leat_ctx *ctx, const char *name, size_t *count);

LEAT_END_DECLS

#endif
