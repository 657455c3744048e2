// SPDX-License-Identifier: Apache-2.0
// Nothing here is timed: what is wrong dead-locks, and the time limit finds it.
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "run.h"

TestSuite(collect, .timeout = 120);

typedef struct {
    int64_t id;
    leat_str name;
    leat_list scores;
} item;
LEAT_RECORD(item, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR),
            LEAT_FIELD_LIST(scores, LEAT_SCALAR(LEAT_I32)));

static leat_collection *collection(const leat_collection_options *options)
{
    leat_collection *c;
    cr_assert_eq(leat_collection_create(options, &c), LEAT_OK);
    return c;
}

// A job that runs beside the test.
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

static int make_item(leat_ctx *ctx, int64_t index, void *out)
{
    char *name = leat_ctx_scratch(ctx, 32);
    int32_t *scores = leat_ctx_scratch(ctx, sizeof *scores * 3);
    for (int32_t i = 0; i < 3; i++)
        scores[i] = (int32_t)index * 10 + i;
    int size = snprintf(name, 32, "item %" PRId64, index);
    *(item *)out = (item){index, {name, (size_t)size}, {scores, (size_t)index % 4}};
    return 0;
}

static void expect_item(const void *record, int64_t id)
{
    const item *found = record;
    char name[32];
    snprintf(name, sizeof name, "item %" PRId64, id);
    cr_assert_eq(found->id, id);
    cr_assert(found->name.size == strlen(name) &&
              memcmp(found->name.data, name, found->name.size) == 0);
    cr_assert_eq(found->scores.count, (size_t)id % 4);
    for (size_t i = 0; i < found->scores.count; i++)
        cr_assert_eq(((const int32_t *)found->scores.items)[i], (int32_t)id * 10 + (int32_t)i);
}

// index % 4 lists have up to three scores.
Test(collect, records_are_deep_copies_in_order_and_outlive_the_job)
{
    run r;
    const void *record = NULL;
    leat_collection *c = collection(NULL);
    cr_assert_null(leat_collection_type(c));
    cr_assert_eq(leat_collection_next(c, 0, &record), LEAT_EAGAIN);
    cr_assert_eq(leat_collection_next(c, 1, &record), LEAT_EAGAIN);
    leat_collect_records(leat_generate(run_begin(&r, 1), make_item, 1000, 0, LEAT_TYPE(item)), c);
    cr_assert_eq(leat_collection_type(c), LEAT_TYPE(item));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
    for (int64_t id = 0; id < 1000; id++) {
        cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_OK);
        expect_item(record, id);
    }
    const void *before = record;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(leat_collection_next(c, i - 1, &record), LEAT_ECLOSED);
    cr_assert_eq(record, before);
    expect_item(record, 999); // still valid
    leat_collection_destroy(&c);
    cr_assert_null(c);
    leat_collection_destroy(&c);
}

Test(collect, records_of_several_subtasks_all_arrive)
{
    enum { COUNT = 50000 };
    for (uint32_t p = 1; p <= 7; p += 3) {
        started s;
        char *seen = calloc(1, COUNT);
        leat_collection *c = collection(&(leat_collection_options){.max_records = 100});
        const void *record;
        leat_collect_records(leat_sequence(run_begin(&s.r, p), 0, COUNT - 1), c);
        start(&s);
        while (leat_collection_next(c, -1, &record) == LEAT_OK)
            seen[*(const int64_t *)record]++;
        cr_assert_eq(leat_job_wait(s.job, -1), LEAT_OK);
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(seen[i], 1, "%d", i);
        finish(&s);
        leat_collection_destroy(&c);
        free(seen);
    }
}

// --- bounds ---

static _Atomic int64_t emitted;

static int count_emitted(leat_ctx *ctx, int64_t index, void *out)
{
    emitted++;
    *(int64_t *)out = index;
    return 0;
}

static leat_stream *numbers(leat_env *env, int64_t count)
{
    emitted = 0;
    return leat_generate(env, count_emitted, count, 0, leat_type_scalar(LEAT_I64));
}

// One more is in the hand of the sink, which waits.
Test(collect, the_job_waits_for_whoever_takes_the_records)
{
    enum { BOUND = 10 };
    // A number takes less than 64 bytes with what the queue adds, and more than 16.
    leat_collection_options options[] = {{.max_records = BOUND}, {.max_bytes = 64 * BOUND}};
    for (int i = 0; i < 2; i++) {
        started s;
        leat_collection *c = collection(&options[i]);
        const void *record;
        leat_collect_records(numbers(run_begin(&s.r, 1), 20000), c);
        start(&s);
        int64_t most = i ? 4 * BOUND : BOUND;
        for (int64_t n = 0; n < 20000; n++) {
            cr_assert(emitted <= n + most + 1);
            cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_OK);
            cr_assert_eq(*(const int64_t *)record, n);
        }
        cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_ECLOSED);
        cr_assert_eq(leat_job_wait(s.job, -1), LEAT_OK);
        finish(&s);
        leat_collection_destroy(&c);
    }
}

Test(collect, a_record_larger_than_the_bound_still_passes)
{
    started s;
    leat_collection *c = collection(&(leat_collection_options){.max_bytes = 1});
    const void *record;
    leat_collect_records(leat_generate(run_begin(&s.r, 1), make_item, 50, 0, LEAT_TYPE(item)), c);
    start(&s);
    for (int64_t id = 0; id < 50; id++) {
        cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_OK);
        expect_item(record, id);
    }
    cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_ECLOSED);
    finish(&s);
    leat_collection_destroy(&c);
}

Test(collect, cancelling_ends_the_wait_for_room)
{
    for (uint32_t p = 1; p <= 3; p += 2) {
        started s;
        leat_collection *c = collection(&(leat_collection_options){.max_records = 1});
        leat_collect_records(numbers(run_begin(&s.r, p), LEAT_UNBOUNDED), c);
        start(&s);
        while (emitted < 2)
            sched_yield();
        leat_job_cancel(s.job);
        cr_assert_eq(leat_job_wait(s.job, -1), LEAT_ECANCELLED);
        const void *record;
        // What was collected can be taken all the same.
        cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_OK);
        cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_ECLOSED);
        finish(&s);
        leat_collection_destroy(&c);
    }
}

Test(collect, a_full_collection_fails_the_job_when_asked)
{
    run r;
    const void *record;
    leat_collection *c =
        collection(&(leat_collection_options){.max_records = 5, .fail_when_full = true});
    leat_collect_records(numbers(run_begin(&r, 1), 6), c);
    cr_assert_eq(run_execute(&r), LEAT_ETOOBIG);
    cr_assert(strstr(r.failure, "collect (1/1): the collection is full: it holds 5 records"), "%s",
              r.failure);
    run_end(&r);
    for (int64_t n = 0; n < 5; n++)
        cr_assert(leat_collection_next(c, -1, &record) == LEAT_OK && *(const int64_t *)record == n);
    cr_assert_eq(leat_collection_next(c, -1, &record), LEAT_ECLOSED);
    leat_collection_destroy(&c);
}

// --- ends ---

static leat_err wait_result;

static void *wait_for_end(void *arg)
{
    const void *record;
    while ((wait_result = leat_collection_next(arg, -1, &record)) == LEAT_OK)
        ;
    return NULL;
}

static int refuse(leat_ctx *ctx)
{
    return leat_fail(ctx, "not today");
}

// Often the sink's tasks have not opened by then, and never do.
Test(collect, whoever_waits_is_told_of_a_job_that_fails_at_its_start)
{
    for (int round = 0; round < 50; round++) {
        started s;
        pthread_t thread;
        leat_collection *c = collection(NULL);
        leat_env *env = run_begin(&s.r, 3);
        leat_discard(leat_rich(leat_sequence(env, 1, 10), refuse, NULL));
        leat_collect_records(leat_rebalance(numbers(env, LEAT_UNBOUNDED)), c);
        cr_assert_eq(pthread_create(&thread, NULL, wait_for_end, c), 0);
        start(&s);
        pthread_join(thread, NULL);
        cr_assert_eq(wait_result, LEAT_ECLOSED);
        cr_assert_eq(leat_job_wait(s.job, -1), LEAT_EUSER);
        finish(&s);
        leat_collection_destroy(&c);
    }
}

Test(collect, whoever_waits_can_be_told_by_the_program)
{
    pthread_t thread;
    leat_collection *c = collection(NULL);
    cr_assert_eq(pthread_create(&thread, NULL, wait_for_end, c), 0);
    leat_collection_end(c);
    pthread_join(thread, NULL);
    cr_assert_eq(wait_result, LEAT_ECLOSED);
    leat_collection_destroy(&c);
}

Test(collect, a_second_run_goes_on_collecting)
{
    run r;
    const void *record;
    leat_collection *c = collection(NULL);
    leat_collect_records(numbers(run_begin(&r, 2), 10), c);
    for (int i = 0; i < 3; i++) {
        int64_t sum = 0;
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        while (leat_collection_next(c, -1, &record) == LEAT_OK)
            sum += *(const int64_t *)record;
        cr_assert_eq(sum, 45);
    }
    run_end(&r);
    leat_collection_destroy(&c);
}

Test(collect, wrong_arguments_are_faults)
{
    run r;
    leat_collection *c = collection(NULL);
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_sequence(env, 1, 3);
    leat_collect_records(in, NULL);
    leat_collect_records(in, c);
    leat_collect_records(in, c);
    cr_assert_eq(leat_env_fault_count(env), 2);
    cr_assert(strstr(leat_env_fault(env, 0), "the collection is NULL"));
    cr_assert(strstr(leat_env_fault(env, 1), "the collection has a stream already"));
    run_end(&r);
    leat_collection_destroy(&c);
}

// --- memory ---

typedef struct meagre {
    _Atomic int64_t left, living;
} meagre;

static void *meagre_reallocate(void *user, void *ptr, size_t size)
{
    meagre *m = user;
    if (atomic_fetch_sub(&m->left, 1) <= 0)
        return NULL;
    void *block = realloc(ptr, size);
    m->living += block && !ptr;
    return block;
}

static void *meagre_allocate(void *user, size_t size)
{
    return meagre_reallocate(user, NULL, size);
}

static void meagre_release(void *user, void *ptr)
{
    ((meagre *)user)->living -= ptr != NULL;
    free(ptr);
}

Test(collect, running_out_of_memory_fails_the_job_and_leaks_nothing)
{
    for (int64_t most = 0; most < 8; most++) {
        meagre m = {.left = most};
        leat_allocator allocator = {meagre_allocate, meagre_reallocate, meagre_release, &m};
        leat_collection *c;
        leat_err err =
            leat_collection_create(&(leat_collection_options){.allocator = &allocator}, &c);
        cr_assert_eq(err, most ? LEAT_OK : LEAT_ENOMEM);
        if (err)
            continue;
        run r;
        leat_collect_records(numbers(run_begin(&r, 1), 5), c);
        cr_assert_eq(run_execute(&r), most <= 5 ? LEAT_ENOMEM : LEAT_OK, "%s", r.failure);
        run_end(&r);
        leat_collection_destroy(&c);
        cr_assert_eq(m.living, 0);
    }
}
