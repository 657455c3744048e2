// SPDX-License-Identifier: Apache-2.0
// Operators with workers of their own, and sources that are woken by threads of their own. Nothing
// is timed: what is wrong dead-locks, and the time limit finds it.
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "jobs.h"

TestSuite(own_worker, .timeout = 120);

enum { MAX_SUBTASKS = 8 };

static sem_t reached, released;

static void set_up_semaphores(void)
{
    sem_init(&reached, 0, 0);
    sem_init(&released, 0, 0);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) && errno == EINTR)
        ;
}

static size_t count_threads(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    cr_assert_not_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

// The kernel takes a moment to forget a thread that was joined.
static void wait_for_threads(size_t count)
{
    while (count_threads() != count)
        sched_yield();
}

// --- which thread ---

typedef struct thread_log {
    pthread_mutex_t lock;
    pid_t ids[256];
    size_t count;
    _Atomic int64_t records;
} thread_log;

static thread_log logs[MAX_SUBTASKS + 1]; // of the operator's subtasks; the last is everybody's

static void note_thread(thread_log *log)
{
    pid_t id = gettid();
    size_t i = 0;
    pthread_mutex_lock(&log->lock);
    while (i < log->count && log->ids[i] != id)
        i++;
    if (i == log->count && i < 256)
        log->ids[log->count++] = id;
    pthread_mutex_unlock(&log->lock);
    log->records++;
}

static int note_own(leat_ctx *ctx, const void *in, void *out)
{
    note_thread(&logs[leat_ctx_subtask(ctx)]);
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

static int note_other(leat_ctx *ctx, const void *in, void *out)
{
    note_thread(&logs[MAX_SUBTASKS]);
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

static int note_sink(leat_ctx *ctx, const void *in)
{
    note_thread(&logs[MAX_SUBTASKS]);
    return 0;
}

static void clear_logs(void)
{
    for (int i = 0; i <= MAX_SUBTASKS; i++) {
        pthread_mutex_init(&logs[i].lock, NULL);
        logs[i].count = 0;
        logs[i].records = 0;
    }
}

static leat_stream *numbers(leat_env *env, uint32_t parallelism, int64_t count)
{
    return leat_parallelism(leat_sequence(env, 0, count - 1), parallelism);
}

static void build_noting_job(leat_env *env, uint32_t subtasks)
{
    clear_logs();
    leat_stream *in = leat_map(numbers(env, 2, 20000), note_other, NUMBER);
    in = leat_map(leat_rebalance(leat_parallelism(in, 2)), note_own, NUMBER);
    in = leat_own_worker(leat_parallelism(in, subtasks));
    leat_parallelism(leat_sink(leat_rebalance(in), note_sink), 3);
}

// Each of the operator's subtasks ran on one thread only, on which nobody else did.
static void check_logs(uint32_t subtasks)
{
    int64_t records = 0;
    for (uint32_t i = 0; i < subtasks; i++) {
        cr_assert(logs[i].count == 1, "subtask %u: %zu threads", i, logs[i].count);
        records += logs[i].records;
        for (uint32_t other = 0; other < i; other++)
            cr_assert(logs[other].ids[0] != logs[i].ids[0]);
        for (size_t n = 0; n < logs[MAX_SUBTASKS].count; n++)
            cr_assert(logs[MAX_SUBTASKS].ids[n] != logs[i].ids[0]);
    }
    cr_assert(records == 20000 && logs[MAX_SUBTASKS].records == 40000);
}

Test(own_worker, each_subtask_has_a_thread_on_which_nobody_else_runs_and_which_goes)
{
    static const char *const workers[] = {"1", "2", "4"};
    size_t before = count_threads();
    for (int w = 0; w < 3; w++)
        for (uint32_t subtasks = 1; subtasks <= 4; subtasks++) {
            leat_env *env = new_env(workers[w]);
            build_noting_job(env, subtasks);
            cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
            check_logs(subtasks);
            leat_env_destroy(&env);
            wait_for_threads(before);
        }
}

Test(own_worker, jobs_of_one_runtime_use_the_threads_again)
{
    size_t before = count_threads(), first = 0;
    leat_env *env = new_env("1");
    leat_runtime *runtime;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    leat_env_destroy(&env);
    for (int i = 0; i < 40; i++) {
        leat_job *job;
        env = new_env("1");
        build_noting_job(env, 4);
        cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
        cr_assert(leat_job_wait(job, -1) == LEAT_OK, "%s", leat_job_failure(job));
        check_logs(4);
        leat_job_destroy(&job);
        leat_env_destroy(&env);
        first = first ? first : count_threads();
    }
    // A thread that is not yet a spare when the next job starts is not found.
    cr_assert(count_threads() <= first + 8, "%zu after %zu", count_threads(), first);
    leat_runtime_destroy(&runtime);
    wait_for_threads(before);
}

// --- blocking ---

enum { BLOCKERS = 8, ENOUGH = 5000 };

static int wait_undeclared(leat_ctx *ctx, const void *in)
{
    wait_for(&released);
    return 0;
}

static int release_at_last(leat_ctx *ctx, const void *in)
{
    for (int i = 0; i < BLOCKERS && *(const int64_t *)in == ENOUGH - 1; i++)
        sem_post(&released);
    return 0;
}

// On one shared worker; those that block are not shared, so nobody has to be freed from them.
Test(own_worker, blocking_there_holds_up_nobody_else)
{
    set_up_semaphores();
    leat_env *env = new_env("1");
    leat_stream *blocked = leat_sink(leat_rebalance(numbers(env, 1, BLOCKERS)), wait_undeclared);
    leat_own_worker(leat_parallelism(blocked, BLOCKERS));
    leat_sink(leat_rebalance(numbers(env, 1, ENOUGH)), release_at_last);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
}

static int multiply(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0; i < 100000; i++)
        if (leat_collect(out, &i))
            return -1;
    return 0;
}

static int sum_fn(leat_ctx *ctx, const void *in)
{
    *(_Atomic int64_t *)leat_ctx_user_data(ctx) += *(const int64_t *)in;
    return 0;
}

// Producer, consumer, or both have workers of their own, and wait for each other mid-record.
Test(own_worker, back_pressure_works_between_all_kinds_of_workers)
{
    for (int which = 0; which < 4; which++) {
        _Atomic int64_t sum = 0;
        leat_env *env = new_env("1");
        leat_env_set(env, "memory.segment-size", "1 KiB");
        leat_env_set(env, "memory.network", "64 KiB");
        leat_stream *many = leat_flat_map(numbers(env, 1, 10), multiply, NUMBER);
        leat_stream *sink = leat_user_data(leat_sink(leat_rebalance(many), sum_fn), &sum);
        leat_parallelism(sink, 2);
        if (which & 1)
            leat_own_worker(many);
        if (which & 2)
            leat_own_worker(sink);
        cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
        cr_assert(sum == INT64_C(10) * 99999 * 100000 / 2);
        leat_env_destroy(&env);
    }
}

static int fail_at_77(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == 77 ? leat_fail(ctx, "not this one") : 0;
}

static int hold_up(leat_ctx *ctx, const void *in)
{
    if (*(const int64_t *)in == 77) {
        sem_post(&reached);
        wait_for(&released);
    }
    return 0;
}

Test(own_worker, failing_and_cancelling_end_the_job_and_its_threads)
{
    set_up_semaphores();
    size_t before = count_threads();
    leat_env *env = new_env("1");
    leat_own_worker(leat_name(leat_sink(numbers(env, 1, 100), fail_at_77), "picky"));
    cr_assert(leat_execute(env) == LEAT_EUSER);
    cr_assert_str_eq(fault_of(env), "picky (1/1): not this one");
    leat_env_destroy(&env);
    wait_for_threads(before);

    leat_runtime *runtime;
    leat_job *job;
    env = new_env("1");
    leat_own_worker(leat_sink(leat_rebalance(numbers(env, 1, 1000000)), hold_up));
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
    wait_for(&reached);
    leat_job_cancel(job);
    sem_post(&released);
    cr_assert(leat_job_wait(job, -1) == LEAT_ECANCELLED);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    wait_for_threads(before);
}

Test(own_worker, a_union_cannot_have_one)
{
    leat_env *env = new_env("1");
    leat_stream *both[] = {numbers(env, 1, 1), numbers(env, 1, 1)};
    leat_sink(leat_own_worker(leat_union(both, 2)), sum_fn);
    cr_assert(leat_execute(env) != LEAT_OK && strstr(fault_of(env), "leat_own_worker"));
    leat_env_destroy(&env);
}

// --- sources that are woken ---

// Its thread offers numbers and wakes the task, which takes them in its next poll.
typedef struct woken {
    leat_operator base;
    pthread_t thread;
    leat_waker *waker;
    int64_t total;
    _Atomic int64_t offered, taken;
    _Atomic bool stopping;
    sem_t wanted;
} woken;

typedef struct woken_config {
    int64_t total;
    bool in_step; // each number waits until the one before was taken
    bool stalls;  // after half of them
} woken_config;

static const woken_config *config_of_woken;

static void *offer(void *arg)
{
    woken *op = arg;
    for (int64_t n = 0; n < op->total && !op->stopping; n++) {
        if (config_of_woken->in_step && n > 0)
            wait_for(&op->wanted);
        if (config_of_woken->stalls && n == op->total / 2) {
            sem_post(&reached);
            break;
        }
        op->offered++;
        leat_wake(op->waker);
    }
    // Calls without a reason are harmless, also when the source has ended.
    for (int i = 0; i < 100; i++)
        leat_wake(op->waker);
    return NULL;
}

static leat_err woken_open(leat_operator *self)
{
    woken *op = (woken *)self;
    op->waker = leat_ctx_waker(self->ctx);
    return pthread_create(&op->thread, NULL, offer, op) ? LEAT_ETHREAD : LEAT_OK;
}

static leat_err woken_poll(leat_operator *self, leat_out *out, uint32_t max, leat_poll *state)
{
    woken *op = (woken *)self;
    int64_t offered = op->offered;
    for (uint32_t i = 0; i < max && op->taken < offered; i++) {
        int64_t n = op->taken++;
        leat_err err = leat_collect(out, &n);
        if (err)
            return err;
        sem_post(&op->wanted);
    }
    *state = op->taken == op->total    ? LEAT_POLL_END
             : op->taken < op->offered ? LEAT_POLL_MORE
                                       : LEAT_POLL_WAIT;
    return LEAT_OK;
}

static void woken_dispose(leat_operator *self)
{
    woken *op = (woken *)self;
    op->stopping = true;
    sem_post(&op->wanted);
    if (op->waker)
        pthread_join(op->thread, NULL);
    free(op);
}

static const leat_operator_ops woken_ops = {
    .kind = "woken", .open = woken_open, .poll = woken_poll, .dispose = woken_dispose};

static leat_err woken_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    woken *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    config_of_woken = factory->config;
    made->base.ops = &woken_ops;
    made->total = config_of_woken->total;
    sem_init(&made->wanted, 0, 0);
    *op = &made->base;
    return LEAT_OK;
}

static leat_stream *woken_stream(leat_env *env, const woken_config *config)
{
    return leat_source(env, "woken", &(leat_factory){woken_create, config}, NUMBER);
}

Test(own_worker, no_wake_up_of_a_source_is_lost)
{
    static const char *const workers[] = {"1", "2"};
    for (int in_step = 0; in_step < 2; in_step++)
        for (int w = 0; w < 2; w++)
            for (int own = 0; own < 2; own++) {
                _Atomic int64_t sum = 0;
                woken_config config = {.total = 20000, .in_step = in_step};
                leat_env *env = new_env(workers[w]);
                leat_stream *in = woken_stream(env, &config);
                leat_parallelism(in, 2);
                if (own)
                    leat_own_worker(in);
                leat_user_data(leat_sink(leat_rebalance(in), sum_fn), &sum);
                cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
                cr_assert(sum == INT64_C(2) * 19999 * 20000 / 2);
                leat_env_destroy(&env);
            }
}

Test(own_worker, a_source_that_sleeps_can_be_cancelled)
{
    set_up_semaphores();
    woken_config config = {.total = 1000, .stalls = true};
    leat_env *env = new_env("1");
    leat_runtime *runtime;
    leat_job *job;
    leat_discard(woken_stream(env, &config));
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
    wait_for(&reached);
    leat_job_cancel(job);
    cr_assert(leat_job_wait(job, -1) == LEAT_ECANCELLED);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
}
