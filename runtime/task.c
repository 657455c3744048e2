// SPDX-License-Identifier: Apache-2.0
#include "runtime/task.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "leat/record.h"
#include "runtime/broadcast.h"
#include "runtime/context.h"
#include "runtime/placement_impl.h"

// A turn is short, so that mail and neighbours are served soon; the clock is looked at between
// batches only.
enum {
    TURN_NS = 100000,
    BATCH_SHORT_NS = 25000,
    BATCH_FIRST = 16,
    BATCH_MOST = 1024,
    FLUSH_APART_NS = 20000
};

// Turns that take a given number of records, whatever time that needs.
static bool is_stepped(const leati_task *t)
{
    return t->job->runtime->turn_records > 0;
}

bool leati_task_is_stopping(const leati_task *t)
{
    return atomic_load_explicit(&t->job->stopping, memory_order_acquire);
}

// --- failure ---

leat_err leati_task_record_failure(leati_task *t, leat_err err, const leat_ctx *ctx,
                                   const char *format, va_list args)
{
    // What goes wrong because the job is stopping is no cause of its own, and only the first cause
    // counts.
    if (err == LEAT_ECANCELLED || t->failure)
        return err;
    t->failure = err;
    int length =
        snprintf(t->failure_text, sizeof t->failure_text, "%s (%u/%u): ", leat_ctx_name(ctx),
                 t->subtask + 1, t->vertex->parallelism);
    if (length > 0 && (size_t)length < sizeof t->failure_text)
        vsnprintf(t->failure_text + length, sizeof t->failure_text - (size_t)length, format, args);
    // Messages quote data and file names.
    leati_text_clean(t->failure_text);
    return err;
}

// --- accounting ---

static void add_ns(_Atomic int64_t *counter, int64_t ns)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + ns,
                          memory_order_relaxed);
}

static _Atomic int64_t *counter_of(leati_task *t, leati_gap gap)
{
    switch (gap) {
    case LEATI_GAP_IDLE:
        return &t->idle_ns;
    case LEATI_GAP_SOFT:
        return &t->soft_ns;
    case LEATI_GAP_HARD:
        return &t->hard_ns;
    default:
        return &t->busy_ns;
    }
}

// The time since the last stamp, which becomes `now`.
static int64_t stamp(leati_task *t, int64_t now)
{
    int64_t before = atomic_load_explicit(&t->stamp_ns, memory_order_relaxed);
    atomic_store_explicit(&t->stamp_ns, now, memory_order_relaxed);
    return now - before;
}

// Accounts for the time up to now, and says what the time from now on is spent on.
static void account(leati_task *t, leati_gap next)
{
    int gap = atomic_load_explicit(&t->gap, memory_order_relaxed);
    int64_t now = leati_clock_ns();
    add_ns(counter_of(t, (leati_gap)gap), stamp(t, now));
    if (gap == LEATI_GAP_IDLE || gap == LEATI_GAP_SOFT)
        atomic_store_explicit(&t->busy_since_ns, now, memory_order_relaxed);
    // Pairs with the load in leati_job_task_wait: what was noted about the gap is there.
    atomic_store_explicit(&t->gap, (int)next, memory_order_release);
}

// Before a task sleeps. One that was woken, found nothing and sleeps again has been waiting all the
// time.
static void note_wait(leati_task *t)
{
    uint64_t moved = atomic_load_explicit(&t->bytes_in, memory_order_relaxed) +
                     atomic_load_explicit(&t->records_in, memory_order_relaxed) +
                     atomic_load_explicit(&t->records_out, memory_order_relaxed);
    if (t->next_gap == LEATI_GAP_READY || (t->next_gap == t->waited_for && moved == t->waited_at))
        return;
    t->waited_for = t->next_gap;
    t->waited_at = moved;
    atomic_store_explicit(&t->wait_since_ns, leati_clock_ns(), memory_order_relaxed);
}

// --- waiting ---

static void wake_task(leati_waiter *waiter)
{
    leati_runnable_wake(&leati_task_of_waiter(waiter)->run);
}

static bool task_stops(void *arg)
{
    return leati_task_is_stopping(arg);
}

// A writer needs a segment in the middle of a record.
static leat_err wait_mid_record(leati_waiter *waiter, bool (*ready)(void *), void *arg)
{
    leati_task *t = leati_task_of_waiter(waiter);
    account(t, LEATI_GAP_HARD);
    leat_err err = leati_scheduler_wait(&t->run, ready, arg, task_stops, t);
    account(t, LEATI_GAP_READY);
    if (err == LEAT_EAGAIN)
        return leati_ctx_error(
            &t->chain.ctx[0], LEAT_ENOBUFS,
            "in the middle of a record it waits for room in its output, which no "
            "task that is ready can make");
    if (err == LEAT_ETHREAD || err == LEAT_ENOMEM)
        leati_ctx_error(&t->chain.ctx[0], err,
                        "no thread for the worker's other tasks while this one waits");
    return err;
}

bool leati_task_output_available(leati_task *t)
{
    for (uint32_t i = 0; i < t->exit_count; i++)
        if (!leati_writer_available(t->writers[i]))
            return false;
    t->allowance.unsure = false;
    return true;
}

// --- the ends of a turn ---

static leat_err flush_operators(leati_task *t)
{
    atomic_store_explicit(&t->flush_due, false, memory_order_relaxed);
    if (!atomic_load_explicit(&t->held_back, memory_order_relaxed))
        return LEAT_OK;
    atomic_store_explicit(&t->held_back, false, memory_order_relaxed);
    return leati_chain_flush(&t->chain);
}

static void flush_writers(leati_task *t)
{
    bool notified = false;
    for (uint32_t i = 0; i < t->exit_count; i++)
        notified |= leati_writer_flush(t->writers[i]);
    if (notified)
        t->flushed_ns = leati_clock_ns();
}

// A task that is ahead of its producers runs out of input all the time. Each flush may wake a
// reader, which costs as much as a few thousand records, so it stays awake a little instead and
// looks again.
static bool flushed_just_now(const leati_task *t)
{
    return t->flushed_ns && !is_stepped(t) && leati_clock_ns() - t->flushed_ns < FLUSH_APART_NS;
}

static leat_err sleep_idle(leati_task *t, leati_turn *turn)
{
    if (flushed_just_now(t)) {
        *turn = LEATI_TURN_AGAIN;
        return LEAT_OK;
    }
    flush_writers(t);
    t->next_gap = LEATI_GAP_IDLE;
    *turn = LEATI_TURN_SLEEP;
    bool can_flush = atomic_load_explicit(&t->can_flush, memory_order_relaxed);
    return can_flush ? flush_operators(t) : LEAT_OK;
}

static leat_err sleep_blocked(leati_task *t, leati_turn *turn)
{
    flush_writers(t);
    for (uint32_t i = 0; i < t->exit_count; i++)
        leati_writer_await(t->writers[i]);
    if (leati_task_output_available(t)) {
        *turn = LEATI_TURN_AGAIN;
    } else {
        t->next_gap = LEATI_GAP_SOFT;
        *turn = LEATI_TURN_SLEEP;
    }
    return LEAT_OK;
}

// --- stages ---

static void set_stage(leati_task *t, leati_stage stage)
{
    atomic_store_explicit(&t->stage, (int)stage, memory_order_relaxed);
    const leati_placed *placed = t->job->placed;
    if (placed)
        placed->hooks->task_stage(placed->user, t->vertex->id, t->subtask, stage);
}

// What the head must have whole before the chain is opened.
static leat_err gather_broadcasts(leati_task *t, leati_turn *turn, bool *complete)
{
    enum { PIECE = 1024 };
    leati_step step;
    leat_err err = leati_broadcasts_step(t->broadcasts, is_stepped(t) ? t->batch : PIECE, &step);
    if (err)
        return err;
    *complete = step == LEATI_STEP_END;
    if (step == LEATI_STEP_IDLE) {
        t->next_gap = LEATI_GAP_IDLE;
        *turn = LEATI_TURN_SLEEP;
    }
    return LEAT_OK;
}

static leat_err open_task(leati_task *t)
{
    leat_err err = leat_scratch_create(t->allocator, &t->scratch);
    if (!err)
        err = leati_chain_open(&t->chain, t->exits, t->exit_count);
    if (err)
        return err;
    leati_input_join(t);
    atomic_store_explicit(&t->can_flush, leati_chain_can_flush(&t->chain), memory_order_relaxed);
    set_stage(t, LEATI_STAGE_RUNNING);
    return LEAT_OK;
}

// Batches get longer while they are cheap and shorter when they take a turn's time.
static void adapt_batch(leati_task *t, int64_t took_ns)
{
    if (took_ns < BATCH_SHORT_NS && t->batch < BATCH_MOST)
        t->batch *= 2;
    else if (took_ns > TURN_NS && t->batch > 1)
        t->batch /= 2;
}

static leat_err run_batches(leati_task *t, leati_step *step)
{
    int64_t start = leati_clock_ns(), before = start;
    for (;;) {
        leat_err err = t->is_mixed    ? leati_mixed_step(t, t->batch, step)
                       : t->is_source ? leati_source_step(t, t->batch, step)
                                      : leati_input_step(t, t->batch, step);
        if (err || *step != LEATI_STEP_MORE || is_stepped(t))
            return err;
        int64_t now = leati_clock_ns();
        adapt_batch(t, now - before);
        before = now;
        if (now - start >= TURN_NS || leati_task_hurries(t) ||
            leati_mailbox_has_mail(&t->mailbox) || leati_task_is_stopping(t))
            return LEAT_OK;
    }
}

static leat_err run_input(leati_task *t, leati_turn *turn)
{
    atomic_store_explicit(&t->held_back, true, memory_order_relaxed);
    leati_step step = LEATI_STEP_MORE;
    leat_err err = run_batches(t, &step);
    if (err)
        return err;
    switch (step) {
    case LEATI_STEP_MORE:
        *turn = LEATI_TURN_AGAIN;
        return LEAT_OK;
    case LEATI_STEP_IDLE:
        return sleep_idle(t, turn);
    case LEATI_STEP_BLOCKED:
        return sleep_blocked(t, turn);
    default:
        set_stage(t, LEATI_STAGE_ENDING);
        *turn = LEATI_TURN_AGAIN;
        return t->is_source ? leat_emit_watermark(&t->chain.outs[0], LEAT_WATERMARK_MAX) : LEAT_OK;
    }
}

// Operators end from the sources to the leaves; absorbed sources stand last in the chain.
static uint32_t ending_op(const leati_task *t)
{
    uint32_t absorbed = t->chain.count - t->chain.tree;
    return t->ending_at < absorbed ? t->chain.tree + t->ending_at : t->ending_at - absorbed;
}

// End of input of one operator after the other, in slices of a turn.
static leat_err end_operators(leati_task *t, leati_turn *turn)
{
    t->time = (leati_record_time){.timestamp = INT64_MIN};
    *turn = LEATI_TURN_AGAIN;
    int64_t start = leati_clock_ns();
    while (t->ending_at < t->chain.count) {
        leat_err err = leati_chain_finish(&t->chain, ending_op(t), &t->ending_begun);
        if (t->scratch_used) {
            leat_scratch_reset(t->scratch);
            t->scratch_used = false;
        }
        if (err == LEAT_EAGAIN) {
            if (!leati_task_output_available(t))
                return sleep_blocked(t, turn);
            if (is_stepped(t) || leati_clock_ns() - start >= TURN_NS)
                return LEAT_OK;
            continue;
        }
        if (err)
            return err;
        t->ending_at++;
        t->ending_begun = false;
    }
    set_stage(t, LEATI_STAGE_CLOSING);
    return LEAT_OK;
}

// Nothing that an operator waits for is looked at any more.
static void unwatch(leati_task *t)
{
    leati_service *service = t->job->runtime->service;
    for (uint32_t i = 0; i < t->chain.count; i++) {
        leati_service_unwatch(service, &t->chain.ctx[i].watch);
        leati_service_clear_alarm(service, &t->chain.ctx[i].alarm);
    }
}

static leat_err close_task(leati_task *t, leati_turn *turn)
{
    unwatch(t);
    static const leati_event events[] = {
        {.tag = LEATI_TAG_END_OF_DATA, .options = 1},
        {.tag = LEATI_TAG_END_OF_PARTITION},
    };
    for (uint32_t e = 0; e < sizeof events / sizeof *events; e++)
        for (uint32_t i = 0; i < t->exit_count; i++) {
            leat_err err = leati_writer_broadcast_event(t->writers[i], &events[e]);
            if (err)
                return err;
        }
    leat_err err = leati_chain_close(&t->chain);
    if (!err) {
        leati_chain_dispose(&t->chain);
        set_stage(t, LEATI_STAGE_FINISHED);
        *turn = LEATI_TURN_END;
    }
    return err;
}

static leat_err run_opening(leati_task *t, leati_turn *turn)
{
    bool complete = true;
    *turn = LEATI_TURN_AGAIN;
    leat_err err = t->broadcasts ? gather_broadcasts(t, turn, &complete) : LEAT_OK;
    return err || !complete ? err : open_task(t);
}

static leat_err run_stage(leati_task *t, leati_turn *turn)
{
    if (leati_task_is_stopping(t))
        return LEAT_ECANCELLED;
    if (leati_mailbox_has_mail(&t->mailbox))
        leati_mailbox_run_batch(&t->mailbox);
    if (atomic_load_explicit(&t->flush_due, memory_order_relaxed)) {
        leat_err err = flush_operators(t);
        if (err)
            return err;
    }
    switch ((leati_stage)atomic_load_explicit(&t->stage, memory_order_relaxed)) {
    case LEATI_STAGE_OPENING:
        return run_opening(t, turn);
    case LEATI_STAGE_RUNNING:
        return run_input(t, turn);
    case LEATI_STAGE_ENDING:
        return end_operators(t, turn);
    default:
        return close_task(t, turn);
    }
}

// An operator that gave an error without a reason is known by its chain only.
void leati_task_note_failure(leati_task *t, leat_err err)
{
    if (t->failure || (err == LEAT_ECANCELLED && leati_task_is_stopping(t)))
        return;
    t->failure = err;
    snprintf(t->failure_text, sizeof t->failure_text, "%s (%u/%u): %s", t->vertex->name,
             t->subtask + 1, t->vertex->parallelism, leat_err_message(err));
}

static void stop_task(leati_task *t, leat_err err)
{
    // An operator that says so while nobody has cancelled the job has failed: were its task to end
    // quietly, the others would wait for it for ever.
    bool cancelled = err == LEAT_ECANCELLED && !t->failure && leati_task_is_stopping(t);
    if (!cancelled) {
        leati_task_note_failure(t, err);
        leati_job_fail(t->job, t->failure, t->failure_text, t);
    }
    // The watch goes before the operators, who may close the descriptor, whose number may then be
    // another's.
    unwatch(t);
    leati_chain_dispose(&t->chain);
    set_stage(t, cancelled ? LEATI_STAGE_CANCELED : LEATI_STAGE_FAILED);
}

// --- a turn ---

static void publish_counts(leati_task *t)
{
    uint64_t bytes_in = t->extra_bytes_in, records_out = t->extra_out,
             bytes_out = t->extra_bytes_out;
    for (uint32_t i = 0; i < t->input.channels; i++)
        bytes_in += leati_reader_bytes(&t->input.readers[i]);
    for (uint32_t i = 0; i < t->exit_count; i++) {
        uint64_t records, bytes;
        leati_writer_counts(t->writers[i], &records, &bytes);
        records_out += records;
        bytes_out += bytes;
    }
    atomic_store_explicit(&t->records_in, t->input.records + t->extra_in, memory_order_relaxed);
    atomic_store_explicit(&t->bytes_in, bytes_in, memory_order_relaxed);
    atomic_store_explicit(&t->records_out, records_out, memory_order_relaxed);
    atomic_store_explicit(&t->bytes_out, bytes_out, memory_order_relaxed);
}

static leati_turn task_turn(leati_runnable *run)
{
    leati_task *t = leati_task_of_runnable(run);
    account(t, LEATI_GAP_READY);
    t->next_gap = LEATI_GAP_READY;
    t->allowance.over = (const bool *)leati_scheduler_hurry(run->scheduler);
    leati_turn turn = LEATI_TURN_AGAIN;
    leat_err err = run_stage(t, &turn);
    // A failure that a user function did not pass on is still one.
    if (!err)
        err = t->failure;
    if (err) {
        stop_task(t, err);
        turn = LEATI_TURN_END;
    }
    publish_counts(t);
    note_wait(t);
    account(t, t->next_gap);
    return turn;
}

bool leati_task_is(const leati_runnable *run)
{
    return run->turn == task_turn;
}

// --- life ---

static void task_ended(leati_runnable *run)
{
    leati_task *t = leati_task_of_runnable(run);
    // What close and dispose hooks may still have set.
    for (uint32_t i = 0; i < t->chain.count; i++)
        leati_service_clear_alarm(t->job->runtime->service, &t->chain.ctx[i].alarm);
    leati_mailbox_close(&t->mailbox);
    for (uint32_t i = 0; i < t->exit_count; i++)
        leati_local_pool_close(t->pools[i]);
    leati_job_task_ended(t->job);
}

static void readable(leati_watch *watch)
{
    leat_ctx *ctx = (leat_ctx *)((char *)watch - offsetof(leat_ctx, watch));
    atomic_store_explicit(&ctx->watching, false, memory_order_relaxed);
    leati_runnable_wake(&ctx->task->run);
}

static void time_has_come(leati_alarm *alarm)
{
    leat_ctx *ctx = (leat_ctx *)((char *)alarm - offsetof(leat_ctx, alarm));
    atomic_store_explicit(&ctx->alarm_ns, INT64_MAX, memory_order_relaxed);
    leati_runnable_wake(&ctx->task->run);
}

leat_err leati_task_init(leati_task *t, leat_job *job, const leat_allocator *allocator,
                         const leati_vertex *vertex, uint32_t subtask, uint32_t home)
{
    t->waiter = (leati_waiter){.wake = wake_task, .wait = wait_mid_record};
    t->job = job;
    t->allocator = allocator;
    t->vertex = vertex;
    t->subtask = subtask;
    t->is_source = vertex->ops[0].node->flags & LEATI_NODE_SOURCE;
    t->batch = is_stepped(t) ? job->runtime->turn_records : BATCH_FIRST;
    leati_mailbox_init(&t->mailbox);
    leati_runnable_init(&t->run, job->runtime->scheduler, home, task_turn, task_ended);
    // Other processes may send to it before the whole job is deployed here.
    leati_runnable_hold(&t->run);
    stamp(t, leati_clock_ns());
    atomic_store_explicit(&t->busy_since_ns,
                          atomic_load_explicit(&t->stamp_ns, memory_order_relaxed),
                          memory_order_relaxed);
    leat_err err = leati_chain_init(&t->chain, allocator, t, vertex, (const bool *)&job->stopping,
                                    &t->allowance);
    t->is_mixed = t->chain.tree < t->chain.count;
    for (uint32_t i = 0; i < t->chain.count && !err; i++) {
        t->chain.ctx[i].watch.run = readable;
        t->chain.ctx[i].alarm.run = time_has_come;
    }
    return err;
}

void leati_task_fini(leati_task *t)
{
    if (!t->job)
        return;
    leati_chain_fini(&t->chain);
    for (uint32_t i = 0; t->writers && i < t->exit_count; i++)
        leati_writer_destroy(&t->writers[i]);
    leati_input_fini(&t->input, t->allocator);
    leati_broadcasts_destroy(&t->broadcasts);
    leat_scratch_destroy(&t->scratch);
    leati_free(t->allocator, t->folder);
    leati_free(t->allocator, t->writers);
    leati_free(t->allocator, t->exits);
    for (uint32_t i = 0; t->spools && i < t->exit_count; i++)
        leati_spool_destroy(&t->spools[i]);
    leati_free(t->allocator, t->spools);
    leati_free(t->allocator, t->exchanges);
    leati_worker_destroy(&t->own_worker);
    leati_mailbox_fini(&t->mailbox);
}
