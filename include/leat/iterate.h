// SPDX-License-Identifier: Apache-2.0
// Iterations: a part of the graph whose output comes back to its start.
//
//     leat_stream *loop = leat_iterate(numbers, 1000);
//     leat_stream *less = leat_process(loop, &subtract_one, leat_type_scalar(LEAT_I64));
//     leat_close_with(loop, leat_side_output(less, &again));
//     leat_print(less);
//
// What comes back waits in memory, at most iteration.feedback-memory a subtask. New input is taken
// only while a quarter of that is in use; a loop that makes more of its records all the time
// reaches the bound and fails the job by name. Feedback carries records without their timestamps
// and no watermarks. Exchanges inside the loop are no blocking ones and have no buffer timeout of
// -1, or records would wait in them for ever: that is a fault.
#ifndef LEAT_ITERATE_H
#define LEAT_ITERATE_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// The head of a loop: emits what comes from `in` and what comes back. When `in` has ended and
// nothing has come back to any subtask for `max_wait_ms` (milliseconds), the loop ends; with 0 it
// never does. What
// comes back after that fails the job, so the time must exceed the longest way through the loop.
LEAT_API leat_stream *leat_iterate(leat_stream *in, int64_t max_wait_ms);

// The same where what comes back is of another type: the head emits the records of `in`, and
// leat_feedback those that come back, for leat_connect(loop, leat_feedback(loop)).
LEAT_API leat_stream *leat_iterate_with(leat_stream *in, const leat_type *feedback_type,
                                        int64_t max_wait_ms);
LEAT_API leat_stream *leat_feedback(leat_stream *loop);

// Leads `feedback` back to the head. Each loop is closed once; the end of the loop has the head's
// parallelism. Returns the loop's end, a sink, so that it can be named.
LEAT_API leat_stream *leat_close_with(leat_stream *loop, leat_stream *feedback);

LEAT_END_DECLS

#endif
