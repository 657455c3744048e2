// SPDX-License-Identifier: Apache-2.0
// Side outputs: named outputs of an operator beside its main one, each with a type of its own.
//
//     static const leat_tag odd = {"odd", &...};
//     leat_stream *even = leat_process(numbers, route, leat_type_scalar(LEAT_I64));
//     leat_stream *odds = leat_side_output(even, &odd);   // what `route` gave to leat_collect_side
#ifndef LEAT_SIDE_OUTPUT_H
#define LEAT_SIDE_OUTPUT_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// The side output `tag` of the operator that made `stream`; the name is copied. All who name the
// same tag of an operator must give it the same type. It may be asked for any number of times, and
// also of a sink.
LEAT_API leat_stream *leat_side_output(leat_stream *stream, const leat_tag *tag);

// --- split and select ---

typedef struct leat_choice leat_choice;
// Names the outputs that a record goes to, any number of them, by leat_choose.
typedef int (*leat_split_fn)(leat_ctx *ctx, const void *in, leat_choice *choice);
// Inside a split function: the record also goes to the output `name`. Borrowed until the function
// has returned. At most 64 names for one record; more, or NULL, reject the record.
LEAT_API void leat_choose(leat_choice *choice, const char *name);

// Routes records to named outputs, which leat_select reads. The stream itself has all records.
LEAT_API leat_stream *leat_split(leat_stream *in, leat_split_fn fn);
// The records that were given one of `names` ("even" or "even, large"), each once.
LEAT_API leat_stream *leat_select(leat_stream *split, const char *names);

LEAT_END_DECLS

#endif
