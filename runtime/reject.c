// SPDX-License-Identifier: Apache-2.0
// Records that a user function rejects: the operator's policy (leat/reject.h).
//
// leat_fail of an operator whose policy is not to fail keeps its text with the task; the operator's
// hook then says whether a record was rejected, or whether it is a failure all the same.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "leat/record.h"
#include "leat/reject.h"
#include "runtime/context.h"
#include "runtime/execution.h"

// The reason, from the format or from what leat_fail has kept.
static void take_reason(leat_ctx *ctx, const char *format, va_list args)
{
    leati_task *t = ctx->task;
    if (format)
        vsnprintf(t->reject_text, sizeof t->reject_text, format, args);
    else if (t->reject_ctx != ctx)
        snprintf(t->reject_text, sizeof t->reject_text, "rejected");
    t->reject_ctx = NULL;
    // It may quote data and file names.
    leati_text_clean(t->reject_text);
}

static leati_side *rejects_of(const leat_ctx *ctx)
{
    for (uint32_t i = 0; i < ctx->side_count; i++)
        if (strcmp(ctx->sides[i].name, LEATI_REJECTS) == 0)
            return &ctx->sides[i];
    return NULL;
}

static leat_err emit(leat_ctx *ctx, leati_side *side, const void *record, const leat_type *type)
{
    leati_task *t = ctx->task;
    const leat_field *fields = ctx->node->reject_type->fields;
    char *rejected = ctx->reject;
    leat_str error = {.data = t->reject_text, .size = strlen(t->reject_text)};
    memcpy(rejected + fields[0].offset, &error, sizeof error);
    memcpy(rejected + fields[1].offset, record, type->size);
    return leat_collect(&side->out, rejected);
}

// Operators of several inputs have no one type: their rejects are told as JSON.
static leat_err emit_as_json(leat_ctx *ctx, leati_side *side, const void *record)
{
    const leat_type *type = ctx->node->inputs[ctx->input].type;
    size_t size = leat_record_json(type, record, NULL, 0);
    char *text = leat_ctx_scratch(ctx, size);
    if (!text)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory for a rejected record");
    leat_str json = {.data = text, .size = leat_record_json(type, record, text, size)};
    return emit(ctx, side, &json, leat_type_scalar(LEAT_STR));
}

static void count(leat_ctx *ctx)
{
    uint64_t rejected = atomic_load_explicit(&ctx->rejected, memory_order_relaxed);
    atomic_store_explicit(&ctx->rejected, rejected + 1, memory_order_relaxed);
}

// `record`, or `raw` when there is none.
static leat_err reject(leat_ctx *ctx, const void *record, const leat_str *raw)
{
    leati_task *t = ctx->task;
    if (leati_task_is_stopping(t))
        return LEAT_ECANCELLED;
    // What has failed behind this operator is no rejection by it.
    if (t->failure)
        return t->failure;
    if (ctx->node->on_error == LEAT_ON_ERROR_FAIL)
        return leati_ctx_error(ctx, LEAT_EUSER, "%s", t->reject_text);
    count(ctx);
    leati_side *side = rejects_of(ctx);
    if (!side)
        return LEAT_OK;
    if (raw)
        return emit(ctx, side, raw, leat_type_scalar(LEAT_STR));
    if (ctx->node->input_count > 1)
        return emit_as_json(ctx, side, record);
    return emit(ctx, side, record, ctx->node->in_type);
}

leat_err leat_reject(leat_ctx *ctx, const void *record, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    take_reason(ctx, format, args);
    va_end(args);
    return reject(ctx, record, NULL);
}

leat_err leat_reject_text(leat_ctx *ctx, leat_str raw, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    take_reason(ctx, format, args);
    va_end(args);
    return reject(ctx, NULL, &raw);
}

leat_err leati_ctx_reject(leat_ctx *ctx, const void *record, const char *function, int result)
{
    if (ctx->task->reject_ctx == ctx)
        return leat_reject(ctx, record, NULL);
    return leat_reject(ctx, record, "%s returned %d", function, result);
}

leat_err leati_ctx_reject_raw(leat_ctx *ctx, leat_str raw, const char *function, int result)
{
    if (ctx->task->reject_ctx == ctx)
        return leat_reject_text(ctx, raw, NULL);
    return leat_reject_text(ctx, raw, "%s returned %d for %.*s", function, result, (int)raw.size,
                            raw.data);
}
