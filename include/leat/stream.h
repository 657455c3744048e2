// SPDX-License-Identifier: Apache-2.0
// The stream builder. Calls describe the job; nothing runs before leat_execute or leat_start.
//
// Every function takes and returns streams owned by the environment. None returns NULL: after a
// mistake the fault is kept with the environment and an inert stream comes back, so calls can be
// nested without checks. Only NULL instead of a stream leaves no trace: it names no environment to
// keep a fault in.
#ifndef LEAT_STREAM_H
#define LEAT_STREAM_H

#include "leat/env.h"
#include "leat/function.h"
#include "leat/operator.h"
#include "leat/type.h"

LEAT_BEGIN_DECLS

typedef struct leat_stream leat_stream;

// --- sources ---

// The records of an array, in order, from one subtask. Deep-copied now.
LEAT_API leat_stream *leat_from_items(leat_env *env, const leat_type *type, const void *items,
                                      size_t count);
// The numbers first … last inclusive as LEAT_I64 records, `const int64_t *`; each subtask takes a
// contiguous share.
LEAT_API leat_stream *leat_sequence(leat_env *env, int64_t first, int64_t last);
// A source of the user's own: its operators have a poll hook. Parallelism is the environment's
// unless set.
LEAT_API leat_stream *leat_source(leat_env *env, const char *name, const leat_factory *factory,
                                  const leat_type *type);

// A source whose function may block: it runs on a thread of its own in each subtask, behind a
// bounded buffer.
LEAT_API leat_stream *leat_blocking_source(leat_env *env, const char *name,
                                           const leat_blocking_source_fns *fns,
                                           const leat_type *type);

// --- transformations ---

LEAT_API leat_stream *leat_map(leat_stream *in, leat_map_fn fn, const leat_type *out_type);
LEAT_API leat_stream *leat_flat_map(leat_stream *in, leat_flat_map_fn fn,
                                    const leat_type *out_type);
LEAT_API leat_stream *leat_filter(leat_stream *in, leat_filter_fn fn);
// An operator of the user's own with one input.
LEAT_API leat_stream *leat_transform(leat_stream *in, const char *name, const leat_factory *factory,
                                     const leat_type *out_type);
// All records of streams of the same type, in any order. Creates no operator.
LEAT_API leat_stream *leat_union(leat_stream *const *streams, size_t count);

// Partitions by key fields, "word" or "user, country"; "" is the whole record. Creates no operator;
// reduce, aggregate and keyed operators follow.
LEAT_API leat_stream *leat_key_by(leat_stream *in, const char *fields);
LEAT_API leat_stream *leat_key_by_fn(leat_stream *in, leat_key_fn fn, const leat_type *key_type);
// Folds the records of each key into one; emits the updated accumulator for every record.
LEAT_API leat_stream *leat_reduce(leat_stream *keyed, leat_reduce_fn fn);
LEAT_API leat_stream *leat_aggregate(leat_stream *keyed, const leat_aggregate_fns *fns,
                                     const leat_type *accumulator_type, const leat_type *out_type);
// Asks a reduce, an aggregate or one of leat/rolling.h for the final value of each key only, at the
// end of a bounded input.
LEAT_API leat_stream *leat_final_only(leat_stream *folded);

// --- how records cross to the next operator ---

// To the subtask of the same index; may be chained.
LEAT_API leat_stream *leat_forward(leat_stream *in);
LEAT_API leat_stream *leat_rebalance(leat_stream *in); // round robin over all
LEAT_API leat_stream *leat_rescale(leat_stream *in);   // round robin over the near ones
LEAT_API leat_stream *leat_shuffle(leat_stream *in);   // at random
LEAT_API leat_stream *leat_broadcast(leat_stream *in); // to all
LEAT_API leat_stream *leat_global(leat_stream *in);    // to subtask 0
// To the subtask that `fn` names; it runs in the context of the operator that made `in`.
LEAT_API leat_stream *leat_partition_custom(leat_stream *in, leat_partition_fn fn);
// Makes the exchange a blocking one: what a producer emits is kept in a temporary file and read
// when that producer has ended. Whatever partitioner or key `in` has stays; the consumer is not
// chained.
LEAT_API leat_stream *leat_blocking_exchange(leat_stream *in);

// --- sinks ---
// They return a stream only so that it can be named; it cannot be an input.

// Calls `fn` for each record.
LEAT_API leat_stream *leat_sink(leat_stream *in, leat_sink_fn fn);
// Drops everything.
LEAT_API leat_stream *leat_discard(leat_stream *in);
// An operator of the user's own as a sink.
LEAT_API leat_stream *leat_transform_sink(leat_stream *in, const char *name,
                                          const leat_factory *factory);

// --- settings of the operator that made a stream ---
// Each returns its argument. On a union or a partitioning, which are no operators, they are faults.

LEAT_API leat_stream *leat_name(leat_stream *stream, const char *name);
// Identifies the operator's state across versions of the job; unique in a job.
LEAT_API leat_stream *leat_uid(leat_stream *stream, const char *uid);
LEAT_API leat_stream *leat_parallelism(leat_stream *stream, uint32_t parallelism);
LEAT_API leat_stream *leat_max_parallelism(leat_stream *stream, uint32_t max_parallelism);
// Begins a chain with this operator; what follows may still join it.
LEAT_API leat_stream *leat_start_new_chain(leat_stream *stream);
// Keeps this operator out of every chain.
LEAT_API leat_stream *leat_disable_chaining(leat_stream *stream);
LEAT_API leat_stream *leat_slot_group(leat_stream *stream, const char *group);
// Overrides the environment's buffer timeout for what leaves this operator, in ms.
LEAT_API leat_stream *leat_buffer_timeout(leat_stream *stream, int64_t timeout_ms);
// Gives each task that this operator is part of a worker thread of its own, which nobody else uses:
// for functions that compute for long or must not wait behind others.
LEAT_API leat_stream *leat_own_worker(leat_stream *stream);
// Lets the operator run with parallelism 1 only: any other is a fault.
LEAT_API leat_stream *leat_non_parallel(leat_stream *stream);
// Makes the operator's function a rich one: `open` is called in each subtask before its first
// record, `close` once for every `open` that returned 0, whatever happened in between (a failure of
// `close` counts only when the job came to its end by itself). Either may be NULL; both return 0 or
// what leat_fail returns. What they share is kept with leat_ctx_set_local. For any operator,
// sources and sinks too.
LEAT_API leat_stream *leat_rich(leat_stream *stream, leat_open_fn open, leat_close_fn close);
// What leat_ctx_user_data returns in this operator's functions. Borrowed; must outlive the job and
// is shared by all subtasks.
LEAT_API leat_stream *leat_user_data(leat_stream *stream, void *user_data);

LEAT_END_DECLS

#endif
