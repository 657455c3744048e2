// SPDX-License-Identifier: Apache-2.0
// Process functions: the general operators of one input and of several.
#ifndef LEAT_PROCESS_H
#define LEAT_PROCESS_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// A process function may emit any number of records, also to side outputs (leat_collect_side), and
// once more when its input has ended. Members that are NULL do nothing; `element` is required.
// All return 0, or what leat_fail returns.
typedef struct leat_process_fns {
    int (*element)(leat_ctx *ctx, const void *in, leat_out *out);
    // No more input will come.
    int (*end)(leat_ctx *ctx, leat_out *out);
} leat_process_fns;

// `fns` is copied. A keyed input stays together by key.
LEAT_API leat_stream *leat_process(leat_stream *in, const leat_process_fns *fns,
                                   const leat_type *out_type);

// An operator of the user's own with several inputs (1 … 64), whose ordinals are their places in
// the array; it has the element_of hook. With leat_chain_with_sources it shares its task with the
// sources that feed it alone.
LEAT_API leat_stream *leat_transform_inputs(leat_stream *const *inputs, size_t count,
                                            const char *name, const leat_factory *factory,
                                            const leat_type *out_type);
LEAT_API leat_stream *leat_chain_with_sources(leat_stream *stream);

LEAT_END_DECLS

#endif
