// SPDX-License-Identifier: Apache-2.0
// Functions that block, and sources that wait for descriptors. None of the assertions is timed:
// what is wrong dead-locks, and the time limit of the test finds it.
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <unistd.h>

#include "jobs.h"

TestSuite(blocking, .timeout = 60);

static sem_t reached, released;

static void set_up_semaphores(void)
{
    sem_init(&reached, 0, 0);
    sem_init(&released, 0, 0);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

// Waits for what another task of the same worker does.
static int declared_wait(leat_ctx *ctx, const void *in)
{
    leat_blocking_begin(ctx);
    wait_for(&released);
    leat_blocking_end(ctx);
    sem_post(&reached);
    return 0;
}

static int undeclared_wait(leat_ctx *ctx, const void *in)
{
    wait_for(&released);
    sem_post(&reached);
    return 0;
}

static int release(leat_ctx *ctx, const void *in)
{
    sem_post(&released);
    return 0;
}

// One record that waits and one that ends the wait, in either order, on one worker.
static void run_handshake(leat_sink_fn wait)
{
    for (int waits_first = 0; waits_first < 2; waits_first++) {
        set_up_semaphores();
        leat_env *env = new_env("1");
        for (int i = 0; i < 2; i++)
            leat_sink(leat_rebalance(leat_sequence(env, 0, 0)), i == waits_first ? release : wait);
        cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
        wait_for(&reached);
        leat_env_destroy(&env);
    }
}

Test(blocking, a_declared_wait_does_not_stop_the_workers_other_tasks)
{
    run_handshake(declared_wait);
}

Test(blocking, an_undeclared_wait_is_noticed)
{
    run_handshake(undeclared_wait);
}

enum { WAITERS = 12 };

static int wait_for_all(leat_ctx *ctx, const void *in)
{
    static _Atomic int here;
    leat_blocking_begin(ctx);
    if (atomic_fetch_add(&here, 1) + 1 == WAITERS)
        for (int i = 0; i < WAITERS; i++)
            sem_post(&released);
    wait_for(&released);
    leat_blocking_end(ctx);
    return 0;
}

Test(blocking, as_many_tasks_may_block_at_once_as_there_are)
{
    set_up_semaphores();
    leat_env *env = new_env("1");
    leat_stream *s = leat_sequence(env, 0, WAITERS - 1);
    leat_parallelism(leat_sink(leat_rebalance(s), wait_for_all), WAITERS);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
}

static int brief_section(leat_ctx *ctx, const void *in)
{
    leat_blocking_begin(ctx);
    leat_blocking_end(ctx);
    sem_post(&reached);
    return 0;
}

Test(blocking, short_sections_in_each_record_cost_no_record)
{
    set_up_semaphores();
    leat_env *env = new_env("2");
    leat_stream *s = leat_rebalance(leat_parallelism(leat_sequence(env, 1, 20000), 2));
    leat_parallelism(leat_sink(s, brief_section), 3);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    int count;
    sem_getvalue(&reached, &count);
    cr_assert(count == 20000);
    leat_env_destroy(&env);
}

// --- sources that wait for a descriptor ---

typedef struct pipe_config {
    int fd;
    int asks;         // how often it asks for its wake-up before it waits
    sem_t *waiting;   // posted then
    bool swaps;       // when disposed: puts another file under its descriptor
    int swapped_with; // that one's descriptor
} pipe_config;

typedef struct pipe_source {
    leat_operator base;
    pipe_config *config;
} pipe_source;

static leat_err pipe_poll(leat_operator *self, leat_out *out, uint32_t max, leat_poll *state)
{
    pipe_config *config = ((pipe_source *)self)->config;
    char byte;
    ssize_t got = read(config->fd, &byte, 1);
    if (got == 1) {
        int64_t value = byte;
        *state = LEAT_POLL_MORE;
        return leat_collect(out, &value);
    }
    if (got == 0) {
        *state = LEAT_POLL_END;
        return LEAT_OK;
    }
    *state = LEAT_POLL_WAIT;
    leat_err err = LEAT_OK;
    for (int i = 0; i < config->asks && !err; i++)
        err = leat_ctx_wait_readable(self->ctx, config->fd);
    sem_post(config->waiting);
    return err;
}

static void pipe_dispose(leat_operator *self)
{
    pipe_config *config = ((pipe_source *)self)->config;
    if (config->swaps) {
        dup2(config->swapped_with, config->fd);
        sem_post(&released);
        wait_for(&reached);
    }
    free(self);
}

static const leat_operator_ops pipe_ops = {
    .kind = "pipe", .poll = pipe_poll, .dispose = pipe_dispose};

static leat_err pipe_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    pipe_source *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = &pipe_ops;
    made->config = (pipe_config *)(uintptr_t)factory->config;
    *op = &made->base;
    return LEAT_OK;
}

static void open_pipe(int fds[2])
{
    cr_assert(pipe2(fds, O_NONBLOCK | O_CLOEXEC) == 0);
}

static _Atomic int64_t sum;

static int sum_fn(leat_ctx *ctx, const void *in)
{
    sum += *(const int64_t *)in;
    return 0;
}

static leat_stream *pipe_stream(leat_env *env, pipe_config *config)
{
    leat_factory factory = {pipe_create, config};
    return leat_source(env, "pipe", &factory, NUMBER);
}

Test(blocking, a_source_sleeps_until_its_descriptor_is_readable_and_may_ask_twice)
{
    sem_t waiting;
    sem_init(&waiting, 0, 0);
    int fds[2];
    open_pipe(fds);
    pipe_config config = {.fd = fds[0], .asks = 2, .waiting = &waiting};
    leat_env *env = new_env("1");
    leat_sink(leat_rebalance(pipe_stream(env, &config)), sum_fn);
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
    for (char i = 1; i <= 10; i++) {
        wait_for(&waiting);
        cr_assert(write(fds[1], &i, 1) == 1);
    }
    wait_for(&waiting);
    close(fds[1]);
    cr_assert(leat_job_wait(job, -1) == LEAT_OK, "%s", leat_job_failure(job));
    cr_assert(sum == 55);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    close(fds[0]);
}

// The first job's source gives its descriptor up when it is disposed; before that has returned, the
// source of another job waits for the new file of the same number.
Test(blocking, a_descriptor_may_have_a_new_owner_as_soon_as_the_source_is_disposed)
{
    set_up_semaphores();
    sem_t waiting;
    sem_init(&waiting, 0, 0);
    int first[2], second[2];
    open_pipe(first);
    open_pipe(second);
    pipe_config old = {
        .fd = first[0], .asks = 1, .waiting = &waiting, .swaps = true, .swapped_with = second[0]};
    pipe_config new = {.fd = first[0], .asks = 1, .waiting = &waiting};
    leat_env *envs[2] = {new_env("2"), new_env("2")};
    leat_sink(pipe_stream(envs[0], &old), sum_fn);
    leat_sink(pipe_stream(envs[1], &new), sum_fn);
    leat_runtime *runtime;
    leat_job *jobs[2];
    cr_assert(leat_runtime_create(envs[0], &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, envs[0], &jobs[0]) == LEAT_OK);
    wait_for(&waiting);
    leat_job_cancel(jobs[0]);
    wait_for(&released); // the first source is being disposed
    cr_assert(leat_start(runtime, envs[1], &jobs[1]) == LEAT_OK);
    wait_for(&waiting);
    // Its poll is over soon after; then it is only the descriptor that can wake it.
    while (leat_job_wait(jobs[1], 20) != LEAT_EAGAIN)
        cr_assert_fail("it ended too early");
    sem_post(&reached);
    cr_assert(leat_job_wait(jobs[0], -1) == LEAT_ECANCELLED);
    cr_assert(write(second[1], "\x07", 1) == 1);
    close(second[1]);
    cr_assert(leat_job_wait(jobs[1], -1) == LEAT_OK, "%s", leat_job_failure(jobs[1]));
    cr_assert(sum == 7);
    for (int i = 0; i < 2; i++) {
        leat_job_destroy(&jobs[i]);
        leat_env_destroy(&envs[i]);
    }
    leat_runtime_destroy(&runtime);
}

// --- the monitor ---

static int pipe_ends[2];

// While the worker is lent, all workers sleep, and so may the monitor. It must be awake when the
// worker has been taken back, for what follows is not declared.
static int lends_then_blocks(leat_ctx *ctx, const void *in)
{
    leat_blocking_begin(ctx);
    usleep(60000);
    leat_blocking_end(ctx);
    cr_assert(write(pipe_ends[1], "\x01", 1) == 1);
    wait_for(&released);
    close(pipe_ends[1]);
    return 0;
}

Test(blocking, the_monitor_is_awake_after_a_worker_was_taken_back)
{
    set_up_semaphores();
    sem_t waiting;
    sem_init(&waiting, 0, 0);
    open_pipe(pipe_ends);
    pipe_config config = {.fd = pipe_ends[0], .asks = 1, .waiting = &waiting};
    leat_env *env = new_env("1");
    leat_sink(leat_rebalance(pipe_stream(env, &config)), release);
    leat_sink(leat_sequence(env, 0, 0), lends_then_blocks);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
}
