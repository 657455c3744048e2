// SPDX-License-Identifier: Apache-2.0
// Sources with threads: blocking ones that wait in a read, which only their cancel hook ends, and
// ones of the user's own that another thread wakes. On shared and on own workers, over pipelined
// and blocking exchanges, to the end or cancelled at a random moment. Every job that is not
// cancelled must have delivered each number once. A watchdog ends the program when a job takes too
// long.
//
//     stress_sources [SECONDS [SEED]]
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "leat/leat.h"
#include "seeded.h"

enum { MAX_SUBTASKS = 3 };

// What a job shares with its functions.
typedef struct shared {
    int64_t count; // of each subtask
    bool lingers;  // its sources do not end by themselves
    int ends[MAX_SUBTASKS][2];
    _Atomic int hooks[MAX_SUBTASKS];
    _Atomic int64_t arrived, sum;
} shared;

// --- a blocking source ---

static int run_source(const leat_ctx *ctx, leat_source_out *out)
{
    const shared *s = leat_ctx_user_data(ctx);
    for (int64_t n = 0; n < s->count; n++)
        if (leat_source_emit(out, &n))
            return -1;
    char byte;
    if (s->lingers && read(s->ends[leat_ctx_subtask(ctx)][0], &byte, 1) != 0)
        wrong("the read ended by itself", errno, 0);
    return 0;
}

static void cancel_source(const leat_ctx *ctx)
{
    shared *s = leat_ctx_user_data(ctx);
    if (s->hooks[leat_ctx_subtask(ctx)]++)
        wrong("a second call of cancel", leat_ctx_subtask(ctx), 0);
    shutdown(s->ends[leat_ctx_subtask(ctx)][0], SHUT_RDWR);
}

// --- a source that is woken ---

typedef struct woken {
    leat_operator base;
    const shared *shared;
    pthread_t thread;
    leat_waker *waker;
    bool started;
    int64_t taken;
    _Atomic int64_t offered;
    _Atomic bool stopping;
} woken;

static void *offer(void *arg)
{
    woken *op = arg;
    while (op->offered < op->shared->count && !op->stopping) {
        op->offered++;
        leat_wake(op->waker);
    }
    return NULL;
}

static leat_err woken_open(leat_operator *self)
{
    woken *op = (woken *)self;
    op->shared = leat_ctx_user_data(self->ctx);
    op->waker = leat_ctx_waker(self->ctx);
    op->started = pthread_create(&op->thread, NULL, offer, op) == 0;
    return op->started ? LEAT_OK : LEAT_ETHREAD;
}

static leat_err woken_poll(leat_operator *self, leat_out *out, uint32_t max, leat_poll *state)
{
    woken *op = (woken *)self;
    int64_t offered = op->offered;
    for (uint32_t i = 0; i < max && op->taken < offered; i++) {
        leat_err err = leat_collect(out, &op->taken);
        if (err)
            return err;
        op->taken++;
    }
    bool all = op->taken == op->shared->count && !op->shared->lingers;
    *state = all ? LEAT_POLL_END : op->taken < offered ? LEAT_POLL_MORE : LEAT_POLL_WAIT;
    return LEAT_OK;
}

static void woken_dispose(leat_operator *self)
{
    woken *op = (woken *)self;
    op->stopping = true;
    if (op->started)
        pthread_join(op->thread, NULL);
    free(op);
}

static leat_err woken_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "woken", .open = woken_open, .poll = woken_poll, .dispose = woken_dispose};
    woken *made = calloc(1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->base.ops = &ops;
    *op = &made->base;
    return LEAT_OK;
}

// --- jobs ---

static int sink_fn(leat_ctx *ctx, const void *in)
{
    shared *s = leat_ctx_user_data(ctx);
    s->arrived++;
    s->sum += *(const int64_t *)in;
    return 0;
}

static void build(leat_env *env, shared *s, uint32_t subtasks)
{
    static const leat_blocking_source_fns fns = {.run = run_source, .cancel = cancel_source};
    static const leat_factory factory = {.create = woken_create};
    const leat_type *number = leat_type_scalar(LEAT_I64);
    leat_env_set(env, "workers", below(2) ? "1" : "3");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_env_set(env, "memory.network", "256 KiB");
    leat_stream *in = below(2) ? leat_blocking_source(env, "blocking", &fns, number)
                               : leat_source(env, "woken", &factory, number);
    leat_user_data(leat_parallelism(in, subtasks), s);
    if (below(3) == 0)
        leat_own_worker(in);
    leat_stream *crossed = below(2) ? leat_rebalance(in) : in;
    leat_stream *sink = leat_sink(below(3) ? crossed : leat_blocking_exchange(crossed), sink_fn);
    leat_user_data(leat_parallelism(sink, 1 + below(3)), s);
    if (below(3) == 0)
        leat_own_worker(sink);
}

static void run_job(void)
{
    static shared s;
    s = (shared){.count = below(below(4) ? 300 : 20000), .lingers = below(3) == 0};
    uint32_t subtasks = 1 + below(MAX_SUBTASKS);
    for (uint32_t i = 0; i < subtasks; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, s.ends[i]))
            wrong("no sockets", errno, 0);
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
    if (leat_env_create(NULL, &env))
        wrong("no environment", 0, 0);
    build(env, &s, subtasks);
    leat_err err = leat_runtime_create(env, &runtime, NULL, 0);
    err = err ? err : leat_start(runtime, env, &job);
    if (err)
        wrong(leat_env_fault_count(env) ? leat_env_fault(env, 0) : "no runtime", err, 0);
    if (s.lingers || below(4) == 0) {
        usleep(below(below(2) ? 200 : 5000));
        leat_job_cancel(job);
    }
    err = leat_job_wait(job, -1);
    if (err && err != LEAT_ECANCELLED)
        wrong(leat_job_failure(job), err, 0);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    int64_t each = s.count * (s.count - 1) / 2;
    if (!err && (s.lingers || s.arrived != s.count * subtasks || s.sum != each * subtasks))
        wrong("what arrived", s.arrived, s.count * subtasks);
    for (uint32_t i = 0; i < subtasks; i++) {
        if (!err && s.hooks[i])
            wrong("cancel was called in a job that finished", i, 0);
        close(s.ends[i][0]);
        close(s.ends[i][1]);
    }
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    seed_now = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t end_s = clock_s() + seconds;
    uint64_t jobs = 0;
    start_watchdog();
    for (; clock_s() <= end_s; seed_now++, jobs++) {
        feed_watchdog();
        random_now = seed_now * UINT64_C(0x9e3779b97f4a7c15);
        run_job();
    }
    printf("%" PRIu64 " jobs up to seed %" PRIu64 "\n", jobs, seed_now - 1);
    return 0;
}
