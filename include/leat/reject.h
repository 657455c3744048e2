// SPDX-License-Identifier: Apache-2.0
// What becomes of records that a user function rejects, or that a source cannot read: one policy
// per operator.
//
// A record is rejected when the function that got it returns a failure (other than one that
// leat_collect gave it). What it has emitted for that record before stays emitted, and what it has
// changed in an accumulator or in its own state stays changed. Not rejections are: failures of
// open, close, key functions and partitioners, of functions that are called without a record (the
// end of an input, the result of a final value), and of the operators behind; they fail the job.
#ifndef LEAT_REJECT_H
#define LEAT_REJECT_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

typedef enum leat_on_error_policy {
    LEAT_ON_ERROR_FAIL = 0, // the job fails with the reason (default)
    LEAT_ON_ERROR_SKIP = 1, // the record is dropped and counted: the metric "rejected" (metrics.h)
} leat_on_error_policy;

// Sets the policy of the operator that made the stream.
LEAT_API leat_stream *leat_on_error(leat_stream *stream, leat_on_error_policy policy);

// The records that the operator rejects, each with its error; they are counted and do not fail the
// job. Two fields: `error`, a leat_str, and `record` of the operator's input type (for a C struct
// `click` that is LEAT_RECORD(bad, LEAT_FIELD(error, LEAT_STR), LEAT_FIELD_STRUCT(record, click))).
// For sources, and for operators of several inputs, `record` is a leat_str: the raw text, or the
// record as JSON. As any record it must keep within record.max-size. May be called on a sink.
LEAT_API leat_stream *leat_rejects(leat_stream *stream);

// For operators of one's own: the record cannot be processed, for the reason given (the format may
// be NULL when leat_fail has said why). LEAT_OK: the policy has taken care of it, go on with the
// next one. Otherwise return the code; the reason is recorded. `record` is of the input type.
LEAT_API LEAT_MUST_USE leat_err leat_reject(leat_ctx *ctx, const void *record, const char *format,
                                            ...) LEAT_PRINTF(3, 4);
// The same for a source, which met `raw` instead of a record.
LEAT_API LEAT_MUST_USE leat_err leat_reject_text(leat_ctx *ctx, leat_str raw, const char *format,
                                                 ...) LEAT_PRINTF(3, 4);

LEAT_END_DECLS

#endif
