// SPDX-License-Identifier: Apache-2.0
// The outputs of all file sinks of a job. No two may be the same file, and they get their names
// together: when the job has come to its end, first all of them are looked at, and only if nothing
// is wrong with any of them are they renamed, one after the other.
//
// Threading. Any subtask; the targets are the job's, which destroys them when its tasks have ended.
#ifndef LEATI_OPERATORS_FILE_OUTPUTS_H
#define LEATI_OPERATORS_FILE_OUTPUTS_H

#include "operators/file_target.h"
#include "runtime/context.h"

// The target of an operator, which `key` stands for; the first of its subtasks makes it. Errors are
// recorded with the context.
LEAT_MUST_USE leat_err leati_file_outputs_open(leat_ctx *ctx, const void *key, uint32_t operator_id,
                                               const leati_file_target_options *options,
                                               leati_file_target **target);

#endif
