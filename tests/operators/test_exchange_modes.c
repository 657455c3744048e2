// SPDX-License-Identifier: Apache-2.0
// Whole jobs over each way of crossing to the next operator: numbers are stamped with the subtask
// that made them, and the sink notes which subtask they reached.
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "run.h"

typedef struct stamped {
    int64_t number;
    uint32_t from;
} stamped;
LEAT_RECORD(stamped, LEAT_FIELD(number, LEAT_I64), LEAT_FIELD(from, LEAT_U32));

typedef struct arrival {
    stamped record;
    uint32_t at;
} arrival;

enum { MAX_ARRIVALS = 400000, MAX_SUBTASKS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static arrival arrivals[MAX_ARRIVALS];
static size_t arrival_count;

static int stamp_fn(leat_ctx *ctx, const void *in, void *out)
{
    *(stamped *)out = (stamped){*(const int64_t *)in, leat_ctx_subtask(ctx)};
    return 0;
}

static int note_fn(leat_ctx *ctx, const void *in)
{
    pthread_mutex_lock(&lock);
    cr_assert(arrival_count < MAX_ARRIVALS);
    arrivals[arrival_count++] = (arrival){*(const stamped *)in, leat_ctx_subtask(ctx)};
    pthread_mutex_unlock(&lock);
    return 0;
}

// The numbers 0 … count - 1, stamped by an operator of the name "numbers".
static leat_stream *numbers(leat_env *env, uint32_t parallelism, int64_t count)
{
    leat_stream *source = leat_parallelism(leat_sequence(env, 0, count - 1), parallelism);
    leat_stream *made = leat_map(source, stamp_fn, LEAT_TYPE(stamped));
    return leat_name(leat_parallelism(made, parallelism), "numbers");
}

typedef leat_stream *(*way)(leat_stream *in);

// Runs numbers from `producers` subtasks over `how` to `consumers`.
static void send(way how, uint32_t producers, uint32_t consumers, int64_t count)
{
    run r;
    arrival_count = 0;
    leat_stream *in = numbers(run_begin(&r, 1), producers, count);
    leat_parallelism(leat_sink(how(in), note_fn), consumers);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
}

static size_t count_between(uint32_t from, uint32_t at)
{
    size_t count = 0;
    for (size_t i = 0; i < arrival_count; i++)
        count += arrivals[i].record.from == from && arrivals[i].at == at;
    return count;
}

// Every number arrived `copies` times, and those that took one way kept their order.
static void expect_all(int64_t count, size_t copies)
{
    uint8_t *seen = calloc((size_t)count + 1, 1);
    int64_t last[MAX_SUBTASKS][MAX_SUBTASKS];
    memset(last, -1, sizeof last);
    cr_assert_eq(arrival_count, (size_t)count * copies);
    for (size_t i = 0; i < arrival_count; i++) {
        const arrival *a = &arrivals[i];
        cr_assert(a->record.number >= 0 && a->record.number < count);
        seen[a->record.number]++;
        cr_assert(last[a->record.from][a->at] < a->record.number);
        last[a->record.from][a->at] = a->record.number;
    }
    for (int64_t n = 0; n < count; n++)
        cr_assert_eq(seen[n], copies, "%" PRId64, n);
    free(seen);
}

TestSuite(exchange_modes, .timeout = 120);

// --- partitioners of one's own ---

static int64_t choice; // for those that always choose the same

static int64_t by_modulo(leat_ctx *ctx, const void *in, uint32_t channels)
{
    cr_assert(channels == 4 && !strcmp(leat_ctx_name(ctx), "numbers"));
    cr_assert(((const stamped *)in)->from == leat_ctx_subtask(ctx));
    return ((const stamped *)in)->number % channels;
}

static int64_t always(leat_ctx *ctx, const void *in, uint32_t channels)
{
    return ((const stamped *)in)->number == 99 ? choice : 0;
}

static int64_t failing(leat_ctx *ctx, const void *in, uint32_t channels)
{
    return ((const stamped *)in)->number == 99 ? leat_fail(ctx, "no way for 99") : 0;
}

static leat_stream *modulo(leat_stream *in)
{
    return leat_partition_custom(in, by_modulo);
}

Test(exchange_modes, a_custom_partitioner_decides_the_subtask)
{
    for (uint32_t producers = 1; producers <= 4; producers += 3) {
        send(modulo, producers, 4, 10000);
        expect_all(10000, 1);
        for (size_t i = 0; i < arrival_count; i++)
            cr_assert(arrivals[i].at == arrivals[i].record.number % 4);
    }
}

static void expect_failure(leat_partition_fn fn, uint32_t consumers, const char *says)
{
    run r;
    // 100 numbers from two subtasks: the last one comes from the second.
    leat_stream *in = numbers(run_begin(&r, 1), 2, 100);
    leat_parallelism(leat_sink(leat_partition_custom(in, fn), note_fn), consumers);
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_assert(strstr(r.failure, says), "%s instead of %s", r.failure, says);
    run_end(&r);
}

Test(exchange_modes, a_choice_out_of_range_fails_the_job_with_who_and_what)
{
    const struct {
        int64_t choice;
        uint32_t consumers;
        const char *says;
    } cases[] = {
        {4, 4, "numbers (2/2): the partitioner chose subtask 4 of 4\n"},
        {1, 1, "numbers (2/2): the partitioner chose subtask 1 of 1\n"},
        {-1, 4, "numbers (2/2): the partitioner chose subtask -1 of 4\n"},
        {INT64_MAX, 3, "numbers (2/2): the partitioner chose subtask 9223372036854775807 of 3\n"},
        {INT64_MIN, 3, "numbers (2/2): the partitioner chose subtask -9223372036854775808 of 3\n"},
        {INT64_C(1) << 32, 3, "numbers (2/2): the partitioner chose subtask 4294967296 of 3\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        choice = cases[i].choice;
        expect_failure(always, cases[i].consumers, cases[i].says);
    }
    expect_failure(failing, 4, "numbers (2/2): no way for 99\n");
}

Test(exchange_modes, a_custom_partitioner_without_a_function_is_a_fault)
{
    run r;
    leat_sink(leat_partition_custom(numbers(run_begin(&r, 1), 1, 1), NULL), note_fn);
    cr_assert_eq(run_execute(&r), LEAT_EINVAL);
    cr_assert(strstr(r.failure, "leat_partition_custom: the function is NULL"), "%s", r.failure);
    run_end(&r);
}

// --- the built-in ones ---

Test(exchange_modes, shuffle_is_even_within_three_percent)
{
    send(leat_shuffle, 1, 4, 100000);
    expect_all(100000, 1);
    for (uint32_t at = 0; at < 4; at++)
        cr_assert(count_between(0, at) >= 24250 && count_between(0, at) <= 25750);
}

Test(exchange_modes, rebalance_gives_each_subtask_the_same)
{
    send(leat_rebalance, 2, 4, 40000);
    expect_all(40000, 1);
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t at = 0; at < 4; at++)
            cr_assert_eq(count_between(from, at), 5000);
}

Test(exchange_modes, rescale_stays_near)
{
    send(leat_rescale, 2, 4, 4000);
    expect_all(4000, 1);
    for (uint32_t from = 0; from < 2; from++)
        for (uint32_t at = 0; at < 4; at++)
            cr_assert_eq(count_between(from, at), at / 2 == from ? 1000 : 0);
    send(leat_rescale, 4, 2, 4000);
    expect_all(4000, 1);
    for (uint32_t from = 0; from < 4; from++)
        for (uint32_t at = 0; at < 2; at++)
            cr_assert_eq(count_between(from, at), from / 2 == at ? 1000 : 0);
}

Test(exchange_modes, broadcast_forward_and_global)
{
    send(leat_broadcast, 3, 4, 3000);
    expect_all(3000, 4);
    for (uint32_t from = 0; from < 3; from++)
        for (uint32_t at = 0; at < 4; at++)
            cr_assert_eq(count_between(from, at), 1000);
    send(leat_forward, 4, 4, 4000);
    expect_all(4000, 1);
    for (uint32_t at = 0; at < 4; at++)
        cr_assert_eq(count_between(at, at), 1000);
    send(leat_global, 4, 4, 4000);
    expect_all(4000, 1);
    for (uint32_t from = 0; from < 4; from++)
        cr_assert_eq(count_between(from, 0), 1000);
}

// --- blocking exchanges ---

static leat_stream *by_number(leat_stream *in)
{
    return leat_key_by(in, "number");
}

static leat_stream *blocking_forward(leat_stream *in)
{
    return leat_blocking_exchange(leat_forward(in));
}

static leat_stream *blocking_broadcast(leat_stream *in)
{
    return leat_broadcast(leat_blocking_exchange(in));
}

static leat_stream *blocking_by_number(leat_stream *in)
{
    return leat_blocking_exchange(by_number(in));
}

Test(exchange_modes, a_blocking_exchange_gives_the_same_to_the_same_subtasks)
{
    static const struct {
        way pipelined, blocking;
        bool copies; // one for each consumer
    } cases[] = {
        {leat_forward, blocking_forward, false},
        {by_number, blocking_by_number, false},
        {leat_broadcast, blocking_broadcast, true},
    };
    enum { COUNT = 20000 };
    static uint8_t where[COUNT];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint32_t p = 1; p <= 4; p *= 2) {
            send(cases[c].pipelined, p, p, COUNT);
            for (size_t i = 0; i < arrival_count; i++)
                where[arrivals[i].record.number] |= (uint8_t)(1u << arrivals[i].at);
            send(cases[c].blocking, p, p, COUNT);
            expect_all(COUNT, cases[c].copies ? p : 1);
            for (size_t i = 0; i < arrival_count; i++)
                cr_assert(where[arrivals[i].record.number] & 1u << arrivals[i].at);
            memset(where, 0, sizeof where);
        }
}

static leat_stream *blocking(leat_stream *in)
{
    return leat_blocking_exchange(in);
}

Test(exchange_modes, an_empty_blocking_exchange_ends)
{
    for (uint32_t p = 1; p <= 4; p *= 2) {
        send(blocking, p, p, 0);
        send(blocking_by_number, p, 5 - p, 0);
        cr_assert_eq(arrival_count, 0);
    }
}

// How many records each subtask has made, in the first and in the second of two stages.
static _Atomic int64_t made[2][MAX_SUBTASKS];
static int64_t made_in_all; // by each subtask

static int count_fn(leat_ctx *ctx, const void *in, void *out)
{
    const stamped *record = in;
    int stage = leat_ctx_user_data(ctx) ? 1 : 0;
    if (stage == 1) // the first stage's producer of this record has ended
        cr_assert_eq(made[0][record->from], made_in_all);
    *(stamped *)out = (stamped){record->number, leat_ctx_subtask(ctx)};
    made[stage][leat_ctx_subtask(ctx)]++;
    return 0;
}

static int second_ended(leat_ctx *ctx, const void *in)
{
    cr_assert_eq(made[1][((const stamped *)in)->from], made_in_all);
    return note_fn(ctx, in);
}

Test(exchange_modes, what_a_producer_made_is_read_once_it_has_ended)
{
    for (uint32_t p = 1; p <= 4; p *= 2) {
        run r;
        made_in_all = 30000 / p;
        memset((void *)made, 0, sizeof made);
        arrival_count = 0;
        leat_stream *stage = numbers(run_begin(&r, p), p, 30000);
        stage = leat_map(stage, count_fn, LEAT_TYPE(stamped));
        stage = leat_map(leat_blocking_exchange(stage), count_fn, LEAT_TYPE(stamped));
        leat_user_data(stage, &made);
        leat_sink(leat_blocking_exchange(leat_rebalance(stage)), second_ended);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_eq(arrival_count, 30000);
        run_end(&r);
    }
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((stamped *)accumulator)->number += ((const stamped *)in)->number;
    return 0;
}

static int third(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = ((const stamped *)in)->number % 3;
    return 0;
}

// …
Test(exchange_modes, a_key_stays_one_and_unions_and_branches_may_be_blocking)
{
    int64_t expected[3] = {0};
    for (int64_t n = 0; n < 1000; n++)
        expected[n % 3] += 3 * n;
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_stream *in = numbers(env, 2, 1000);
    leat_stream *both[] = {in, leat_blocking_exchange(leat_rebalance(in)), numbers(env, 1, 1000)};
    leat_stream *keyed = leat_key_by_fn(leat_union(both, 3), third, leat_type_scalar(LEAT_I64));
    arrival_count = 0;
    leat_sink(leat_final_only(leat_reduce(leat_blocking_exchange(keyed), add)), note_fn);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(arrival_count, 3);
    for (int i = 0; i < 3; i++) {
        int found = 0;
        for (int a = 0; a < 3; a++)
            found += arrivals[a].record.number == expected[i];
        cr_assert_eq(found, 1, "%d", i);
    }
    run_end(&r);
}

static int long_text(leat_ctx *ctx, const void *in, void *out)
{
    size_t size = (size_t)(*(const int64_t *)in * 977 % 60000);
    char *data = leat_ctx_scratch(ctx, size + 1);
    cr_assert_not_null(data);
    memset(data, 'a' + (int)(size % 26), size);
    *(leat_str *)out = (leat_str){data, (uint32_t)size};
    return 0;
}

static int check_text(leat_ctx *ctx, const void *in)
{
    const leat_str *text = in;
    for (size_t i = 0; i < text->size; i++)
        cr_assert(text->data[i] == 'a' + (char)(text->size % 26));
    *(_Atomic int64_t *)leat_ctx_user_data(ctx) += (int64_t)text->size + 1;
    return 0;
}

Test(exchange_modes, records_larger_than_a_segment_cross_a_blocking_exchange)
{
    int64_t expected = 0;
    for (int64_t n = 0; n < 300; n++)
        expected += n * 977 % 60000 + 1;
    for (uint32_t p = 1; p <= 4; p *= 2) {
        run r;
        _Atomic int64_t total = 0;
        leat_env *env = run_begin(&r, p);
        leat_env_set(env, "memory.segment-size", "1 KiB");
        leat_env_set(env, "memory.network", "64 KiB");
        leat_stream *texts =
            leat_map(leat_sequence(env, 0, 299), long_text, leat_type_scalar(LEAT_STR));
        leat_stream *crossed = leat_blocking_exchange(leat_key_by(texts, ""));
        leat_user_data(leat_sink(crossed, check_text), &total);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_eq(total, expected);
        run_end(&r);
    }
}

Test(exchange_modes, a_folder_that_is_none_refuses_the_job_by_name)
{
    run r;
    leat_runtime *runtime;
    leat_job *job;
    leat_env *env = run_begin(&r, 2);
    arrival_count = 0;
    leat_sink(leat_blocking_exchange(numbers(env, 2, 100)), note_fn);
    cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
    setenv("TMPDIR", "/nowhere/at/all", 1);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_EIO);
    cr_assert_eq(leat_env_fault_count(env), 1);
    cr_assert(strstr(leat_env_fault(env, 0),
                     "numbers: a file for its blocking exchange cannot be made in "
                     "/nowhere/at/all: No such file or directory"),
              "%s", leat_env_fault(env, 0));
    run_end(&r);
    // The runtime is as good as before.
    unsetenv("TMPDIR");
    env = run_begin(&r, 2);
    leat_sink(leat_blocking_exchange(numbers(env, 2, 100)), note_fn);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
    cr_assert_eq(leat_job_wait(job, -1), LEAT_OK);
    cr_assert_eq(arrival_count, 100);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    run_end(&r);
}

Test(exchange_modes, a_full_disk_fails_the_job_with_the_producers_name)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (uint32_t p = 1; p <= 4; p *= 2) {
        run r;
        leat_sink(leat_blocking_exchange(leat_shuffle(numbers(run_begin(&r, p), 1, 1000000))),
                  note_fn);
        cr_assert_eq(run_execute(&r), LEAT_EIO);
        cr_assert(strstr(r.failure, "numbers (1/1): writing to a temporary file: File too large"),
                  "%s", r.failure);
        run_end(&r);
    }
}

static sem_t reached, released;

static int pause_fn(leat_ctx *ctx, const void *in, void *out)
{
    *(stamped *)out = *(const stamped *)in;
    if (((const stamped *)in)->number != 15000)
        return 0;
    sem_post(&reached);
    leat_blocking_begin(ctx);
    while (sem_wait(&released) && errno == EINTR)
        ;
    leat_blocking_end(ctx);
    return 0;
}

// Cancelled while the first exchange is being written, and while it is being read and the second
// one written.
Test(exchange_modes, a_job_can_be_cancelled_in_the_middle)
{
    sem_init(&reached, 0, 0);
    sem_init(&released, 0, 0);
    for (uint32_t p = 1; p <= 4; p *= 2)
        for (int where = 0; where < 2; where++)
            for (int waits = 0; waits < 2; waits++) {
                run r;
                leat_runtime *runtime;
                leat_job *job;
                leat_env *env = run_begin(&r, p);
                leat_stream *in = numbers(env, p, 30000);
                if (where == 0)
                    in = leat_map(in, pause_fn, LEAT_TYPE(stamped));
                in = leat_blocking_exchange(leat_shuffle(in));
                in = leat_map(in, where ? pause_fn : count_fn, LEAT_TYPE(stamped));
                leat_sink(leat_blocking_exchange(in), note_fn);
                arrival_count = 0;
                cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
                cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
                while (sem_wait(&reached) && errno == EINTR)
                    ;
                leat_job_cancel(job);
                sem_post(&released);
                if (waits)
                    cr_assert_eq(leat_job_wait(job, -1), LEAT_ECANCELLED);
                leat_job_destroy(&job);
                leat_runtime_destroy(&runtime);
                run_end(&r);
            }
}

Test(exchange_modes, a_plan_shows_blocking_exchanges_and_breaks_its_chains_there)
{
    for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
        run r;
        char *text;
        leat_stream *in = numbers(run_begin(&r, 1), 1, 10);
        leat_sink(is_blocking ? leat_blocking_exchange(in) : in, note_fn);
        cr_assert_eq(leat_plan(r.env, LEAT_PLAN_TEXT, &text), LEAT_OK);
        cr_assert_eq(strstr(text, "=> vertex 1 by forward, ") != NULL, is_blocking, "%s", text);
        cr_assert_eq(strstr(text, ", read when complete\n") != NULL, is_blocking, "%s", text);
        leat_plan_free(r.env, text);
        run_end(&r);
    }
}
