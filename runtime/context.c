// SPDX-License-Identifier: Apache-2.0
// The context of an operator: the public half (leat/function.h, leat/operator.h) and the runtime's
// own (runtime/context.h).
#include "runtime/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "leat/record.h"
#include "runtime/placement_impl.h"

// --- failures ---

// With another policy than to fail the text is kept until the hook knows what has failed.
int leat_fail(leat_ctx *ctx, const char *format, ...)
{
    leati_task *t = ctx->task;
    if (!format)
        return leat_fail(ctx, "no reason given");
    va_list args;
    va_start(args, format);
    if (ctx->node->on_error == LEAT_ON_ERROR_FAIL || !ctx->opened) {
        leati_task_record_failure(t, LEAT_EUSER, ctx, format, args);
    } else {
        vsnprintf(t->reject_text, sizeof t->reject_text, format, args);
        t->reject_ctx = ctx;
    }
    va_end(args);
    return -1;
}

leat_err leati_ctx_error(leat_ctx *ctx, leat_err err, const char *format, ...)
{
    leati_task *t = ctx->task;
    // The user's function has said why, where it was that which failed.
    if (err == LEAT_EUSER && t->reject_ctx == ctx) {
        t->reject_ctx = NULL;
        return leati_ctx_error(ctx, err, "%s", t->reject_text);
    }
    va_list args;
    va_start(args, format);
    leati_task_record_failure(t, err, ctx, format, args);
    va_end(args);
    return err;
}

leat_err leati_ctx_user_failure(leat_ctx *ctx, const char *function, int result)
{
    if (leati_task_is_stopping(ctx->task))
        return LEAT_ECANCELLED;
    if (ctx->task->failure)
        return ctx->task->failure;
    return leati_ctx_error(ctx, LEAT_EUSER, "%s returned %d", function, result);
}

// --- who and where ---

const char *leat_ctx_name(const leat_ctx *ctx)
{
    return ctx->node->name;
}

uint32_t leat_ctx_subtask(const leat_ctx *ctx)
{
    return ctx->task->subtask;
}

uint32_t leat_ctx_parallelism(const leat_ctx *ctx)
{
    return ctx->task->vertex->parallelism;
}

uint32_t leat_ctx_max_parallelism(const leat_ctx *ctx)
{
    return ctx->task->vertex->max_parallelism;
}

uint32_t leat_ctx_attempt(const leat_ctx *ctx)
{
    const leati_placed *placed = ctx->task->job->placed;
    return placed ? placed->number : 0;
}

void *leat_ctx_user_data(const leat_ctx *ctx)
{
    return ctx->node->user_data;
}

const leat_type *leat_ctx_in_type(const leat_ctx *ctx)
{
    return ctx->node->in_type;
}

const leat_type *leat_ctx_out_type(const leat_ctx *ctx)
{
    return ctx->node->out_type;
}

const leat_type *leati_ctx_input_type(const leat_ctx *ctx, uint32_t input)
{
    return ctx->node->inputs[input].type;
}

void leat_ctx_set_local(leat_ctx *ctx, void *local)
{
    ctx->local = local;
}

void *leat_ctx_local(const leat_ctx *ctx)
{
    return ctx->local;
}

const leat_allocator *leat_ctx_allocator(const leat_ctx *ctx)
{
    return ctx->task->allocator;
}

const leati_key_selector *leati_ctx_key(const leat_ctx *ctx)
{
    return ctx->node->key;
}

const leati_config *leati_ctx_config(const leat_ctx *ctx)
{
    return &ctx->task->job->config;
}

// --- the record at hand ---

void *leat_ctx_scratch(leat_ctx *ctx, size_t size_bytes)
{
    ctx->task->scratch_used = true;
    return leat_scratch_take(ctx->task->scratch, size_bytes);
}

bool leat_ctx_timestamp(const leat_ctx *ctx, int64_t *timestamp)
{
    const leati_record_time *time = &ctx->task->time;
    *timestamp = time->present ? time->timestamp : INT64_MIN;
    return time->present;
}

void leati_ctx_set_timestamp(leat_ctx *ctx, bool present, int64_t timestamp)
{
    ctx->task->time =
        (leati_record_time){.timestamp = present ? timestamp : INT64_MIN, .present = present};
}

leat_err leat_collect_at(leat_ctx *ctx, leat_out *out, const void *record, int64_t timestamp)
{
    leati_record_time before = ctx->task->time;
    ctx->task->time = (leati_record_time){.timestamp = timestamp, .present = true};
    leat_err err = leat_collect(out, record);
    ctx->task->time = before;
    return err;
}

bool leat_out_has_room(const leat_ctx *ctx)
{
    return leati_task_output_available(ctx->task);
}

static leat_err collect_each(const leat_ctx *ctx, leat_out *out, const char *record,
                             uint32_t *count)
{
    uint32_t done = 0;
    leat_err err;
    do {
        err = leat_collect(out, record);
        record += ctx->node->out_type->size;
        done += err == LEAT_OK;
    } while (!err && done < *count && leat_out_available(ctx));
    *count = done;
    return err;
}

leat_err leat_collect_some(const leat_ctx *ctx, leat_out *out, const void *records, uint32_t *count)
{
    enum { PIECE = 32 }; // between two looks whether the turn is over
    if (*count == 0)
        return LEAT_OK;
    if (!out->some)
        return collect_each(ctx, out, records, count);
    const char *record = records;
    uint32_t done = 0;
    leat_err err;
    do {
        uint32_t piece = *count - done < PIECE ? *count - done : PIECE;
        err = LEAT_ECANCELLED;
        if (leati_task_is_stopping(ctx->task))
            break;
        err = out->some(out->target, record, &piece);
        done += piece;
        record += (size_t)piece * ctx->node->out_type->size;
    } while (!err && done < *count && leat_out_available(ctx));
    *count = done;
    return err;
}

int64_t leat_ctx_watermark(const leat_ctx *ctx)
{
    return ctx->watermark;
}

void leat_ctx_count_in(leat_ctx *ctx, uint64_t records, uint64_t bytes)
{
    ctx->task->extra_in += records;
    ctx->task->extra_bytes_in += bytes;
}

void leat_ctx_count_out(leat_ctx *ctx, uint64_t records, uint64_t bytes)
{
    ctx->task->extra_out += records;
    ctx->task->extra_bytes_out += bytes;
}

// --- side outputs ---

// The side output that a tag names, or NULL when nobody reads it.
static leat_err find_side(leat_ctx *ctx, const leat_tag *tag, leati_side **found)
{
    *found = NULL;
    for (uint32_t i = 0; i < ctx->side_count; i++) {
        leati_side *side = &ctx->sides[i];
        if (strcmp(side->name, tag->name) != 0)
            continue;
        if (side->same != tag->type && !leati_type_same_layout(tag->type, side->type))
            return leati_ctx_error(ctx, LEAT_ETYPE,
                                   "the tag \"%s\" has another type here than where its side "
                                   "output is read",
                                   tag->name);
        side->same = tag->type;
        *found = side;
        break;
    }
    return LEAT_OK;
}

leat_err leat_collect_side(leat_ctx *ctx, const leat_tag *tag, const void *record)
{
    leati_side *side;
    leat_err err = find_side(ctx, tag, &side);
    return err || !side ? err : leat_collect(&side->out, record);
}

uint32_t leati_ctx_side_count(const leat_ctx *ctx)
{
    return ctx->side_count;
}

const char *leati_ctx_side_name(const leat_ctx *ctx, uint32_t index)
{
    return ctx->sides[index].name;
}

leat_err leati_ctx_collect_side(leat_ctx *ctx, uint32_t index, const void *record)
{
    return leat_collect(&ctx->sides[index].out, record);
}

// --- waiting ---

bool leat_ctx_cancelled(const leat_ctx *ctx)
{
    return leati_task_is_stopping(ctx->task);
}

leat_err leat_ctx_wait_readable(leat_ctx *ctx, int fd)
{
    // Before it can run, which is what clears it.
    atomic_store_explicit(&ctx->watching, true, memory_order_relaxed);
    leat_err err = leati_service_watch(ctx->task->job->runtime->service, &ctx->watch, fd);
    if (err)
        atomic_store_explicit(&ctx->watching, false, memory_order_relaxed);
    return err;
}

void leat_ctx_wake_at(leat_ctx *ctx, int64_t time_ns)
{
    // Before it can run, which is what clears it.
    atomic_store_explicit(&ctx->alarm_ns, time_ns, memory_order_relaxed);
    leati_service_set_alarm(ctx->task->job->runtime->service, &ctx->alarm, time_ns);
}

int64_t leat_ctx_now_ns(const leat_ctx *ctx)
{
    return leati_service_now_ns(ctx->task->job->runtime->service);
}

// A waker is the task itself under another name.
leat_waker *leat_ctx_waker(leat_ctx *ctx)
{
    return (leat_waker *)&ctx->task->run;
}

void leat_wake(leat_waker *waker)
{
    leati_runnable_wake((leati_runnable *)waker);
}

void leat_blocking_begin(leat_ctx *ctx)
{
    leati_task *t = ctx->task;
    atomic_store_explicit(&t->blocking_ns, leati_clock_ns(), memory_order_relaxed);
    // Pairs with the load of whoever asks what the task waits for: the time is there.
    atomic_store_explicit(&t->blocking, ctx, memory_order_release);
    // Without a thread to lend the worker to, its other tasks wait as well; that is slow but not
    // wrong.
    leat_err err = leati_scheduler_lend(ctx->task->job->runtime->scheduler);
    (void)err;
}

void leat_blocking_end(leat_ctx *ctx)
{
    leati_scheduler_take_back(ctx->task->job->runtime->scheduler);
    atomic_store_explicit(&ctx->task->blocking, NULL, memory_order_relaxed);
}

// --- the outside ---

void leat_ctx_log(leat_ctx *ctx, leat_log_level level, const char *format, ...)
{
    const leat_logger *logger = &leati_env_options(ctx->task->job->env)->logger;
    if (!logger->write || level > logger->level)
        return;
    char line[1200];
    int length = snprintf(line, sizeof line, "%s (%u/%u): ", leat_ctx_name(ctx),
                          ctx->task->subtask + 1, ctx->task->vertex->parallelism);
    if (length < 0 || (size_t)length >= sizeof line)
        length = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(line + length, sizeof line - (size_t)length, format, args);
    va_end(args);
    leati_text_clean(line);
    logger->write(logger->user, level, line);
}

leat_err leati_ctx_shared(leat_ctx *ctx, const leati_shared_ops *ops, void **object)
{
    return leati_ctx_shared_by(ctx, ctx->node, ops, object);
}

leat_err leati_ctx_shared_by(leat_ctx *ctx, const void *key, const leati_shared_ops *ops,
                             void **object)
{
    leat_job *job = ctx->task->job;
    leat_err err = LEAT_OK;
    pthread_mutex_lock(&job->shared_lock);
    leati_shared *shared = job->shared;
    while (shared && shared->key != key)
        shared = shared->next;
    bool made = !shared;
    if (made) {
        shared = leati_calloc(job->allocator, 1, sizeof *shared);
        err = shared ? ops->create(ctx, &shared->object) : LEAT_ENOMEM;
        if (err) {
            leati_free(job->allocator, shared);
        } else {
            shared->key = key;
            shared->destroy = ops->destroy;
            shared->commit = ops->commit;
            shared->asked = key == ctx->node ? ops->asked : NULL;
            shared->node_id = ctx->node->id;
            shared->next = job->shared;
            job->shared = shared;
        }
    }
    if (!err)
        *object = shared->object;
    pthread_mutex_unlock(&job->shared_lock);
    if (!err && made && shared->asked && leati_ctx_is_home(ctx))
        leati_asking_add(job, shared);
    return err;
}
