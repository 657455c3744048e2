// SPDX-License-Identifier: Apache-2.0
// Jobs over two processes with several pairs of tasks that share one connection, where turns do not
// end soon: sinks wait until all the others have ended, and tasks wait for credit in the middle of
// a record. The reader of the connection gives such turns itself if it can, and what they wait for
// has to come over the same connection. So whatever is wrong hangs, and the time limit finds it.
#include <stdatomic.h>

#include "tests/runtime/jobs.h"
#include "tests/runtime/placed.h"

TestSuite(slow_sinks, .timeout = 120);

enum { PAIRS = 6, RECORDS = 6000, ORIGINALS = 1200, COPIES = 40, BODY = 300, ROUNDS_MOST = 300 };

typedef enum waiting { NOBODY, DECLARED, UNDECLARED } waiting;

typedef struct plan {
    const char *workers;
    waiting how;
    uint32_t waiters; // sinks
    bool returns;     // through a task of the other process, which makes many records of one
} plan;

typedef struct row {
    int64_t id;
    leat_str body;
} row;
LEAT_RECORD(row, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(body, LEAT_STR));

static const plan *now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t ended; // sinks that wait for nobody; under the lock
static _Atomic int64_t records, sum;
static _Atomic uint32_t waits_of_readers, copies_by_readers;

// Whether the turn is given by the reader of a connection.
static bool is_reader(void)
{
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
           strcmp(name, "leat-net-in") == 0;
}

static bool waits(leat_ctx *ctx)
{
    return now->how != NOBODY && leat_ctx_subtask(ctx) < now->waiters;
}

static void await_others(leat_ctx *ctx)
{
    if (now->how == DECLARED)
        leat_blocking_begin(ctx);
    pthread_mutex_lock(&lock);
    if (ended < PAIRS - now->waiters)
        atomic_fetch_add(&waits_of_readers, is_reader());
    while (ended < PAIRS - now->waiters)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (now->how == DECLARED)
        leat_blocking_end(ctx);
}

static int take(leat_ctx *ctx, int64_t id)
{
    if (waits(ctx))
        await_others(ctx);
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum, id, memory_order_relaxed);
    return 0;
}

static int take_number(leat_ctx *ctx, const void *in)
{
    return take(ctx, *(const int64_t *)in);
}

static int take_row(leat_ctx *ctx, const void *in)
{
    const row *r = in;
    return r->body.size == BODY ? take(ctx, r->id) : leat_fail(ctx, "a row is not whole");
}

static int end_sink(leat_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    ended += !waits(ctx);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

// More than any pool here has room for.
static int copy_often(leat_ctx *ctx, const void *in, leat_out *out)
{
    static const char body[BODY];
    row r = {.id = *(const int64_t *)in, .body = {body, BODY}};
    leat_err err = LEAT_OK;
    for (int i = 0; i < COPIES && !err; i++)
        err = leat_collect(out, &r);
    atomic_fetch_add(&copies_by_readers, is_reader());
    return err ? -1 : 0;
}

static int64_t count_of(const plan *p)
{
    return p->returns ? ORIGINALS : RECORDS;
}

static void build(leat_env *env, void *user)
{
    const plan *p = user;
    leat_env_set_parallelism(env, PAIRS);
    leat_env_set(env, "workers", p->workers);
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_env_set(env, "memory.network", "1 MiB");
    leat_env_set(env, "network.buffers-per-channel", "1");
    leat_env_set(env, "network.floating-buffers", "0");
    leat_env_set(env, "network.max-buffers-per-channel", "1");
    leat_env_set(env, "network.overdraft-buffers", "0");
    leat_stream *end = leat_forward(leat_sequence(env, 1, count_of(p)));
    if (p->returns) {
        end = leat_disable_chaining(leat_flat_map(end, copy_often, LEAT_TYPE(row)));
        end = leat_forward(end);
    }
    end = leat_sink(end, p->returns ? take_row : take_number);
    leat_rich(leat_disable_chaining(end), NULL, end_sink);
}

static void run_once(const plan *p)
{
    // In the order of the job: sources, perhaps what copies, sinks.
    uint32_t process_of[3 * PAIRS] = {0};
    char why[1024];
    for (uint32_t i = PAIRS; i < 2 * PAIRS; i++)
        process_of[i] = 1;
    now = p;
    ended = 0;
    atomic_store(&records, 0);
    atomic_store(&sum, 0);
    leat_err err = placed_execute(2, process_of, build, (void *)(uintptr_t)p, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    int64_t times = p->returns ? COPIES : 1, count = count_of(p);
    cr_assert_eq(atomic_load(&records), times * count);
    cr_assert_eq(atomic_load(&sum), times * count * (count + 1) / 2);
}

// A few times, and until it was once the reader who gave the turn that is meant.
static void run(const plan *p, _Atomic uint32_t *by_readers)
{
    enum { LEAST = 3 };
    int rounds = 0;
    atomic_store(by_readers, 0);
    while (rounds < LEAST || (atomic_load(by_readers) == 0 && rounds < ROUNDS_MOST)) {
        run_once(p);
        rounds++;
    }
    cr_log_info("%d rounds, %u turns of readers", rounds, (unsigned)atomic_load(by_readers));
    cr_assert(atomic_load(by_readers) > 0);
}

static void run_waiters(waiting how, uint32_t waiters)
{
    run(&(plan){.workers = "1", .how = how, .waiters = waiters}, &waits_of_readers);
    run(&(plan){.workers = "2", .how = how, .waiters = waiters}, &waits_of_readers);
}

Test(slow_sinks, sink_that_says_that_it_waits_keeps_nobody_up)
{
    run_waiters(DECLARED, 1);
    run_waiters(DECLARED, 2);
    run_waiters(DECLARED, PAIRS - 1);
}

Test(slow_sinks, sink_that_waits_without_a_word_keeps_nobody_up)
{
    run_waiters(UNDECLARED, 1);
    run_waiters(UNDECLARED, 2);
}

Test(slow_sinks, turns_of_readers_wait_for_credit_that_the_same_connection_brings)
{
    run(&(plan){.workers = "1", .returns = true}, &copies_by_readers);
    run(&(plan){.workers = "2", .returns = true}, &copies_by_readers);
}

Test(slow_sinks, sinks_wait_where_records_come_back)
{
    run(&(plan){.workers = "1", .how = DECLARED, .waiters = 2, .returns = true},
        &copies_by_readers);
    run(&(plan){.workers = "1", .how = UNDECLARED, .waiters = 2, .returns = true},
        &copies_by_readers);
    run(&(plan){.workers = "2", .how = UNDECLARED, .waiters = 2, .returns = true},
        &waits_of_readers);
}
