// SPDX-License-Identifier: Apache-2.0
// Two streams of different types in one operator, which keeps state for both: data and control,
// say. Records are taken from whichever input has some, so neither starves; nothing is said about
// their order across the inputs.
#ifndef LEAT_CONNECT_H
#define LEAT_CONNECT_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// Two streams that one of the calls below reads; owned by the environment.
typedef struct leat_connected leat_connected;

// Both streams are keyed, by parts of equal types, or neither is. Partitionings hold as for any
// operator: leat_broadcast(control) reaches every subtask. Never NULL.
LEAT_API leat_connected *leat_connect(leat_stream *first, leat_stream *second);

// One record for each record of either input.
LEAT_API leat_stream *leat_co_map(leat_connected *in, leat_map_fn first, leat_map_fn second,
                                  const leat_type *out_type);
// Any number of records for each record of either input.
LEAT_API leat_stream *leat_co_flat_map(leat_connected *in, leat_flat_map_fn first,
                                       leat_flat_map_fn second, const leat_type *out_type);

// As leat_process_fns, for each input. `first` and `second` are required.
typedef struct leat_co_process_fns {
    int (*first)(leat_ctx *ctx, const void *in, leat_out *out);
    int (*second)(leat_ctx *ctx, const void *in, leat_out *out);
    // One input has ended, while the other may go on.
    int (*first_end)(leat_ctx *ctx, leat_out *out);
    int (*second_end)(leat_ctx *ctx, leat_out *out);
    // Both have.
    int (*end)(leat_ctx *ctx, leat_out *out);
} leat_co_process_fns;

LEAT_API leat_stream *leat_co_process(leat_connected *in, const leat_co_process_fns *fns,
                                      const leat_type *out_type);

LEAT_END_DECLS

#endif
