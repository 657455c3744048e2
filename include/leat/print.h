// SPDX-License-Identifier: Apache-2.0
// Sinks that print: the text form of each record, a line each, to standard output or error.
//
// Above parallelism 1 each line begins with the number of its subtask from 1, `2> `. A sink with an
// identifier puts that before it, `id:2> `, or alone at parallelism 1, `id> `. Lines are written
// whole and never interleaved, in batches, and at the latest when the task has no more input for
// the moment. The streams that come back can be named and the like; they cannot be inputs.
//
// Where an embedding program gave a print hook (leat_env_options), that takes the lines.
#ifndef LEAT_PRINT_H
#define LEAT_PRINT_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

LEAT_API leat_stream *leat_print(leat_stream *in);
LEAT_API leat_stream *leat_print_to_err(leat_stream *in);
// The same with an identifier, which is copied; NULL or "" is none.
LEAT_API leat_stream *leat_print_as(leat_stream *in, const char *identifier);
LEAT_API leat_stream *leat_print_to_err_as(leat_stream *in, const char *identifier);

LEAT_END_DECLS

#endif
