// SPDX-License-Identifier: Apache-2.0
// Nothing here is timed: what is wrong dead-locks, and the time limit finds it.
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "run.h"

#define NUMBER leat_type_scalar(LEAT_I64)

TestSuite(blocking_source, .timeout = 120);

static _Atomic int64_t emitted, arrived;
static _Atomic int emit_result;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) && errno == EINTR)
        ;
}

static leat_stream *source(leat_env *env, int (*run_fn)(const leat_ctx *, leat_source_out *),
                           void (*cancel)(const leat_ctx *), const leat_type *type)
{
    // A copy is kept, so these need not live on.
    leat_blocking_source_fns fns = {.run = run_fn, .cancel = cancel};
    return leat_blocking_source(env, "sensor", &fns, type);
}

// --- records ---

enum { ORDERED = 50000 };

// Every third without a timestamp.
static int emit_ordered(const leat_ctx *ctx, leat_source_out *out)
{
    for (int64_t n = 0; n < ORDERED; n++)
        if (n % 3 ? leat_source_emit_at(out, &n, n * 10) : leat_source_emit(out, &n))
            return -1;
    return 0;
}

static int check_order(leat_ctx *ctx, const void *in)
{
    int64_t n = *(const int64_t *)in, time;
    bool stamped = leat_ctx_timestamp(ctx, &time);
    cr_assert_eq(n, arrived++);
    cr_assert_eq(stamped, n % 3 != 0);
    cr_assert_eq(time, stamped ? n * 10 : INT64_MIN);
    return 0;
}

Test(blocking_source, records_arrive_in_order_with_their_timestamps_or_without)
{
    for (int exchange = 0; exchange < 2; exchange++) {
        run r;
        arrived = 0;
        leat_stream *in = source(run_begin(&r, 1), emit_ordered, NULL, NUMBER);
        leat_sink(exchange ? leat_rebalance(in) : in, check_order);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_eq(arrived, ORDERED);
        run_end(&r);
    }
}

// After every ten records all up to them are said to be there; the watermark is the last one's
// time.
static int emit_with_watermarks(const leat_ctx *ctx, leat_source_out *out)
{
    for (int64_t n = 0; n < ORDERED; n++) {
        if (leat_source_emit_at(out, &n, n))
            return -1;
        if (n % 10 == 9 && leat_source_emit_watermark(out, n))
            return -1;
    }
    return 0;
}

static int check_watermark(leat_ctx *ctx, const void *in)
{
    int64_t n = *(const int64_t *)in, watermark = leat_ctx_watermark(ctx);
    arrived++;
    if (watermark != (n < 10 ? INT64_MIN : n / 10 * 10 - 1))
        return leat_fail(ctx, "record %d is at watermark %lld", (int)n, (long long)watermark);
    return 0;
}

Test(blocking_source, watermarks_keep_their_place_among_records)
{
    for (int exchange = 0; exchange < 2; exchange++) {
        run r;
        arrived = 0;
        leat_stream *in = source(run_begin(&r, 1), emit_with_watermarks, NULL, NUMBER);
        leat_sink(exchange ? leat_rebalance(in) : in, check_watermark);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_eq(arrived, ORDERED);
        run_end(&r);
    }
}

typedef struct item {
    leat_str text;
    leat_list numbers;
} item;
LEAT_RECORD(item, LEAT_FIELD(text, LEAT_STR), LEAT_FIELD_LIST(numbers, LEAT_SCALAR(LEAT_I64)));

// The memory of a record is used again for the next one.
static int emit_items(const leat_ctx *ctx, leat_source_out *out)
{
    char text[32];
    int64_t list[4];
    for (int64_t n = 0; n < 4; n++) {
        int size = snprintf(text, sizeof text, "number %" PRId64, n);
        for (int64_t i = 0; i < n; i++)
            list[i] = n * 10 + i;
        if (leat_source_emit(out, &(item){{text, (uint32_t)size}, {list, (uint32_t)n}}))
            return -1;
        memset(text, '#', sizeof text);
        memset(list, 0xff, sizeof list);
    }
    return 0;
}

Test(blocking_source, strings_and_lists_are_copied)
{
    run r;
    leat_print(source(run_begin(&r, 1), emit_items, NULL, LEAT_TYPE(item)));
    run_expect_lines(&r, "number 0\t[]\nnumber 1\t[10]\nnumber 2\t[20,21]\nnumber 3\t[30,31,32]\n",
                     "items");
}

static int emit_nothing(const leat_ctx *ctx, leat_source_out *out)
{
    return 0;
}

static int emit_large(const leat_ctx *ctx, leat_source_out *out)
{
    size_t size = 3u << 20;
    char *data = malloc(size);
    memset(data, 'x', size);
    leat_err err = LEAT_OK;
    for (int i = 0; i < 5 && !err; i++)
        err = leat_source_emit(out, &(leat_str){data, (uint32_t)size});
    free(data);
    return err ? -1 : 0;
}

static int count_bytes(leat_ctx *ctx, const void *in)
{
    arrived += ((const leat_str *)in)->size;
    return 0;
}

Test(blocking_source, none_and_records_larger_than_the_buffer_do)
{
    for (uint32_t p = 1; p <= 4; p += 3) {
        run r;
        arrived = 0;
        leat_env *env = run_begin(&r, p);
        leat_sink(source(env, emit_nothing, NULL, leat_type_scalar(LEAT_STR)), count_bytes);
        leat_sink(source(env, emit_large, NULL, leat_type_scalar(LEAT_STR)), count_bytes);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_eq(arrived, (int64_t)p * 5 * (3 << 20));
        run_end(&r);
    }
}

enum { PIECE = 1000, AHEAD = 2 * (256 * 1024 + 2 * PIECE) };

// As fast as it can; what is under way keeps within two buffers.
static int emit_fast(const leat_ctx *ctx, leat_source_out *out)
{
    static char data[PIECE];
    for (int i = 0; i < 20000; i++) {
        if (leat_source_emit(out, &(leat_str){data, PIECE}))
            return -1;
        emitted += PIECE;
        cr_assert(emitted - arrived <= AHEAD);
    }
    return 0;
}

static int count_slowly(leat_ctx *ctx, const void *in)
{
    arrived += PIECE;
    for (int i = 0; i < 200; i++)
        sched_yield();
    return 0;
}

Test(blocking_source, one_that_is_faster_than_its_consumer_is_held_back)
{
    run r;
    leat_sink(source(run_begin(&r, 1), emit_fast, NULL, leat_type_scalar(LEAT_STR)), count_slowly);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert(emitted == 20000 * PIECE && arrived == emitted);
    run_end(&r);
}

// --- who and where ---

enum { SUBTASKS = 4, EACH = 5000 };

static _Atomic pid_t threads[SUBTASKS];
static _Atomic int64_t sums[SUBTASKS];

static int emit_share(const leat_ctx *ctx, leat_source_out *out)
{
    cr_assert(leat_ctx_parallelism(ctx) == SUBTASKS && leat_ctx_user_data(ctx) == &sums);
    cr_assert_str_eq(leat_ctx_name(ctx), "sensor");
    cr_assert(leat_ctx_out_type(ctx) == NUMBER && !leat_ctx_cancelled(ctx));
    threads[leat_ctx_subtask(ctx)] = gettid();
    for (int64_t n = 0; n < EACH; n++) {
        int64_t number = n * SUBTASKS + leat_ctx_subtask(ctx);
        if (leat_source_emit(out, &number))
            return -1;
    }
    return 0;
}

static int sum_share(leat_ctx *ctx, const void *in)
{
    for (int i = 0; i < SUBTASKS; i++)
        cr_assert(gettid() != threads[i]);
    cr_assert_eq(*(const int64_t *)in % SUBTASKS, leat_ctx_subtask(ctx));
    sums[leat_ctx_subtask(ctx)] += *(const int64_t *)in / SUBTASKS;
    return 0;
}

Test(blocking_source, each_subtask_has_a_thread_of_its_own)
{
    run r;
    leat_stream *in = source(run_begin(&r, SUBTASKS), emit_share, NULL, NUMBER);
    leat_sink(leat_user_data(in, &sums), sum_share);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    for (int i = 0; i < SUBTASKS; i++) {
        cr_assert_eq(sums[i], (int64_t)EACH * (EACH - 1) / 2);
        for (int other = 0; other < i; other++)
            cr_assert(threads[other] != threads[i]);
    }
    run_end(&r);
}

static int emit_ten(const leat_ctx *ctx, leat_source_out *out)
{
    for (int64_t n = 0; n < 10; n++)
        if (leat_source_emit(out, &n))
            return -1;
    return 0;
}

Test(blocking_source, what_it_reads_is_counted)
{
    run r;
    leat_runtime *runtime;
    leat_job *job;
    leat_task_stats stats;
    leat_env *env = run_begin(&r, 1);
    leat_discard(leat_rebalance(source(env, emit_ten, NULL, NUMBER)));
    cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
    cr_assert_eq(leat_job_wait(job, -1), LEAT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        leat_job_task_stats(job, i, &stats);
        cr_assert_eq(stats.records_in, 10);
        cr_assert_eq(stats.is_source, i == 0);
        cr_assert_eq(stats.segments_peak, i == 0 ? 1 : 0);
    }
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    run_end(&r);
}

// --- failure ---

static int emit_and_fail(const leat_ctx *ctx, leat_source_out *out)
{
    const char *reason = leat_ctx_user_data(ctx);
    int64_t n = 0;
    if (leat_ctx_subtask(ctx) + 1 < leat_ctx_parallelism(ctx)) {
        // The others go on until they are stopped.
        while (leat_source_emit(out, &n) == LEAT_OK)
            ;
        return 7;
    }
    for (; n < 3; n++)
        if (leat_source_emit(out, &n))
            return 8;
    if (reason) {
        leat_source_fail(out, "no %s", reason);
        return leat_source_fail(out, "this comes too late");
    }
    return 5;
}

static int count_last(leat_ctx *ctx, const void *in)
{
    if (leat_ctx_subtask(ctx) + 1 == leat_ctx_parallelism(ctx))
        arrived++;
    return 0;
}

Test(blocking_source, a_failure_comes_after_the_records_with_name_subtask_and_message)
{
    static const struct {
        const char *reason;
        uint32_t parallelism;
        const char *says;
    } cases[] = {
        {"signal", 1, "sensor (1/1): no signal\n"},
        {"signal", 3, "sensor (3/3): no signal\n"},
        {NULL, 1, "sensor (1/1): the source function returned 5\n"},
        {NULL, 2, "sensor (2/2): the source function returned 5\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run r;
        arrived = 0;
        leat_env *env = run_begin(&r, cases[i].parallelism);
        leat_stream *in = source(env, emit_and_fail, NULL, NUMBER);
        leat_sink(leat_user_data(in, (void *)(uintptr_t)cases[i].reason), count_last);
        cr_assert_eq(run_execute(&r), LEAT_EUSER);
        cr_assert_str_eq(r.failure, cases[i].says);
        cr_assert_eq(arrived, 3);
        run_end(&r);
    }
}

Test(blocking_source, one_without_a_function_is_a_fault)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_discard(leat_blocking_source(env, "sensor", NULL, NUMBER));
    leat_discard(source(env, NULL, NULL, NUMBER));
    cr_assert_eq(run_execute(&r), LEAT_EINVAL);
    cr_assert(strstr(r.failure, "leat_blocking_source: the run function is NULL"), "%s", r.failure);
    run_end(&r);
}

// --- cancelling ---

typedef struct started {
    run r;
    leat_runtime *runtime;
    leat_job *job;
} started;

static void start(started *s)
{
    cr_assert_eq(leat_runtime_create(s->r.env, &s->runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(s->runtime, s->r.env, &s->job), LEAT_OK);
}

static void finish(started *s)
{
    leat_job_destroy(&s->job);
    leat_runtime_destroy(&s->runtime);
    run_end(&s->r);
}

static int ends[SUBTASKS][2];
static _Atomic int hooks[SUBTASKS];
static sem_t reached, released;

static int read_pipe(const leat_ctx *ctx, leat_source_out *out)
{
    uint32_t subtask = leat_ctx_subtask(ctx);
    int64_t n = 1;
    threads[subtask] = gettid();
    emit_result = leat_source_emit(out, &n);
    sem_post(&reached);
    char byte;
    ssize_t got = read(ends[subtask][0], &byte, 1);
    cr_assert_eq(got, 0);
    // Emitting goes on being refused.
    for (int i = 0; i < 3; i++)
        cr_assert_eq(leat_source_emit(out, &n), LEAT_ECANCELLED);
    return -1; // which is no failure now
}

static void close_pipe(const leat_ctx *ctx)
{
    uint32_t subtask = leat_ctx_subtask(ctx);
    cr_assert(gettid() != threads[subtask] && leat_ctx_cancelled(ctx));
    hooks[subtask]++;
    close(ends[subtask][1]);
}

static int fail_at_one(leat_ctx *ctx, const void *in)
{
    if (!leat_ctx_user_data(ctx))
        return 0;
    for (int i = 0; i < SUBTASKS; i++)
        wait_for(&reached);
    return leat_fail(ctx, "I do not like it");
}

// The job ends because it is cancelled, or because another operator fails.
Test(blocking_source, the_cancel_hook_gets_it_out_of_a_read)
{
    sem_init(&reached, 0, 0);
    for (int fails = 0; fails < 2; fails++) {
        started s;
        for (int i = 0; i < SUBTASKS; i++) {
            cr_assert_eq(pipe(ends[i]), 0);
            hooks[i] = 0;
        }
        leat_stream *in = source(run_begin(&s.r, SUBTASKS), read_pipe, close_pipe, NUMBER);
        leat_stream *sink = leat_parallelism(leat_sink(leat_global(in), fail_at_one), 1);
        leat_user_data(sink, fails ? &fails : NULL);
        start(&s);
        for (int i = 0; i < SUBTASKS && !fails; i++)
            wait_for(&reached);
        if (!fails)
            leat_job_cancel(s.job);
        cr_assert_eq(leat_job_wait(s.job, -1), fails ? LEAT_EUSER : LEAT_ECANCELLED);
        for (int i = 0; i < SUBTASKS; i++) {
            cr_assert_eq(hooks[i], 1);
            close(ends[i][0]);
        }
        finish(&s);
    }
}

static int emit_for_ever(const leat_ctx *ctx, leat_source_out *out)
{
    int64_t n = 0;
    leat_err err;
    while ((err = leat_source_emit(out, &n)) == LEAT_OK)
        n++;
    emit_result = err;
    return -1;
}

static int hold_up(leat_ctx *ctx, const void *in)
{
    if (arrived++ != 100)
        return 0;
    sem_post(&reached);
    leat_blocking_begin(ctx);
    wait_for(&released);
    leat_blocking_end(ctx);
    return 0;
}

Test(blocking_source, emitting_is_refused_once_the_job_is_cancelled)
{
    sem_init(&reached, 0, 0);
    sem_init(&released, 0, 0);
    for (int exchange = 0; exchange < 2; exchange++) {
        started s;
        arrived = 0;
        leat_env *env = run_begin(&s.r, 1);
        leat_env_set(env, "memory.segment-size", "1 KiB");
        leat_env_set(env, "memory.network", "64 KiB");
        leat_stream *in = source(env, emit_for_ever, NULL, NUMBER);
        leat_sink(exchange ? leat_rebalance(in) : in, hold_up);
        start(&s);
        wait_for(&reached);
        leat_job_cancel(s.job);
        sem_post(&released);
        cr_assert_eq(leat_job_wait(s.job, -1), LEAT_ECANCELLED);
        cr_assert_eq(emit_result, LEAT_ECANCELLED);
        finish(&s);
    }
}

static int look_only(const leat_ctx *ctx, leat_source_out *out)
{
    sem_post(&reached);
    while (!leat_ctx_cancelled(ctx))
        sched_yield();
    return 0;
}

Test(blocking_source, it_may_look_whether_the_job_is_cancelled)
{
    sem_init(&reached, 0, 0);
    started s;
    leat_discard(source(run_begin(&s.r, 2), look_only, NULL, NUMBER));
    start(&s);
    wait_for(&reached);
    leat_job_destroy(&s.job); // cancels, too
    finish(&s);
}

// --- allocations that fail ---

static leat_err scarce_job(const leat_allocator *allocator, char *why, size_t why_size)
{
    leat_env_options options = {.allocator = allocator};
    leat_env *env;
    snprintf(why, why_size, "no environment");
    leat_err err = leat_env_create(&options, &env);
    if (err)
        return err;
    leat_env_set(env, "workers", "1");
    leat_env_set(env, "memory.network", "128 KiB");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_stream *in = source(env, emit_items, NULL, LEAT_TYPE(item));
    leat_discard(leat_blocking_exchange(leat_own_worker(in)));
    err = leat_execute(env);
    snprintf(why, why_size, "%s", leat_env_fault_count(env) ? leat_env_fault(env, 0) : "");
    leat_env_destroy(&env);
    return err;
}

Test(blocking_source, any_allocation_may_fail)
{
    bool while_emitting = false;
    for (uint64_t n = 1, failed = 1; failed; n++) {
        leat_test_allocator *scarce;
        char why[1200];
        cr_assert_eq(leat_test_allocator_create(NULL, &scarce), LEAT_OK);
        leat_test_allocator_fail(scarce, n, 1);
        leat_err err = scarce_job(leat_test_allocator_hook(scarce), why, sizeof why);
        failed = leat_test_allocator_failed(scarce);
        cr_assert(leat_test_allocator_live(scarce) == 0, "allocation %" PRIu64, n);
        leat_test_allocator_destroy(&scarce);
        cr_assert(failed || (!err && n > 50));
        if (!err)
            continue; // it could do without
        cr_assert(err == LEAT_ENOMEM && why[0], "allocation %" PRIu64 ": %s", n,
                  leat_err_name(err));
        while_emitting = while_emitting || strstr(why, "sensor (1/1): emitting a record: ");
    }
    cr_assert(while_emitting);
}
