// SPDX-License-Identifier: Apache-2.0
// A source of made-up records: each is computed from its index.
#ifndef LEAT_GENERATOR_H
#define LEAT_GENERATOR_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// Fills `out`, a zeroed record of the source's type, with the record of that index, 0 being the
// first. It should depend on the index alone. What it points to must live until the record has been
// emitted: static data, leat_ctx_scratch. Returns 0; anything else rejects the index (see
// leat/reject.h: in the side output it stands as its digits). Runs on the task's thread, in several
// subtasks at a time.
typedef int (*leat_generate_fn)(leat_ctx *ctx, int64_t index, void *out);

// The count of a generator without an end.
#define LEAT_UNBOUNDED (-1)

// The records of the indices 0 … count - 1, each once; of n subtasks each makes every n-th. `count`
// is 0 or more, or LEAT_UNBOUNDED: until the job is cancelled.
//
// `per_second` bounds the rate of all subtasks together; 0 leaves it unbounded. Record i is due i /
// per_second seconds after the start and comes at most about 10 ms later, when the workers are
// free: at high rates records come in bursts of what is due. After a stall (back-pressure, a busy
// machine) the source makes up for at most one second's records, as fast as it can; what it is
// behind beyond that is not made up for.
//
// Faults: no function, a count below LEAT_UNBOUNDED, a rate that is not between 0 and 1e12, a type
// that is none.
LEAT_API leat_stream *leat_generate(leat_env *env, leat_generate_fn fn, int64_t count,
                                    double per_second, const leat_type *type);

LEAT_END_DECLS

#endif
