// SPDX-License-Identifier: Apache-2.0
// What the builders and factories of all operators share.
#ifndef LEATI_OPERATORS_BUILDER_H
#define LEATI_OPERATORS_BUILDER_H

#include "graph/stream_graph.h"

// Records that `call` was used wrongly, "leat_map: the function is NULL" say, and returns an inert
// stream. Without an environment nothing can be recorded.
leat_stream *leati_builder_fault(leat_env *env, const char *call, const char *what);

// The same where there is an input: the fault names the operator that made it.
leat_stream *leati_builder_fault_on(leat_stream *in, const char *call, const char *what);

// A type as text, for messages; lives as long as the environment. "?" when out of memory.
const char *leati_builder_type_text(leat_env *env, const leat_type *type);

// Whether `in` can be an input; a fault is recorded where it is not inert.
bool leati_builder_input(leat_stream *in);

// A zeroed operator of `size_bytes` with `ops` and `ctx` filled in; NULL when out of memory.
void *leati_operator_create(leat_ctx *ctx, size_t size_bytes, const leat_operator_ops *ops);
// The dispose hook of operators that own nothing else.
void leati_operator_dispose(leat_operator *self);

#endif
