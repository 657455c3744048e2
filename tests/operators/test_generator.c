// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdatomic.h>

#include "operators/pace.h"
#include "run.h"

TestSuite(generator, .timeout = 120);

#define NUMBER leat_type_scalar(LEAT_I64)

// --- the pace, by a clock of the test's ---

enum { MS = 1000000 };

static const int64_t second_ns = 1000 * (int64_t)MS, begin_ns = 5000 * (int64_t)MS;

static leati_pace pace_of(double per_second)
{
    return (leati_pace){.per_second = per_second, .start_ns = begin_ns};
}

Test(generator, records_are_due_at_even_distances)
{
    static const struct {
        double per_second;
        int64_t index, after_ns;
    } cases[] = {{1000, 0, 0},
                 {1000, 1, MS},
                 {1000, 1000000, 1000000 * (int64_t)MS},
                 {0.5, 3, 6000 * (int64_t)MS},
                 {4, 3, 750 * (int64_t)MS},
                 {1e9, 7, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leati_pace pace = pace_of(cases[i].per_second);
        cr_assert_eq(leati_pace_due_ns(&pace, cases[i].index) - begin_ns, cases[i].after_ns);
    }
    leati_pace slow = pace_of(1e-6);
    cr_assert_eq(leati_pace_due_ns(&slow, INT64_MAX), INT64_MAX);
}

// What one of `parallelism` subtasks emits until `end_ns` when it is called up to `late_ms` late;
// `all` counts by time, in ms since the beginning.
static int64_t emit_until(double per_second, uint32_t subtask, uint32_t parallelism, int64_t end_ns,
                          uint32_t late_ms, int *all)
{
    leati_pace pace = pace_of(per_second);
    int64_t next = subtask, count = 0;
    uint32_t random = subtask + 1;
    for (int64_t now_ns = begin_ns; now_ns < end_ns;) {
        leati_pace_forgive(&pace, next, now_ns);
        for (; leati_pace_due_ns(&pace, next) <= now_ns; next += parallelism, count++)
            all[(now_ns - begin_ns) / MS]++;
        int64_t wake_ns = leati_pace_wake_ns(&pace, next, now_ns);
        cr_assert(wake_ns >= now_ns + 10 * MS && wake_ns >= leati_pace_due_ns(&pace, next));
        random = random * 1664525 + 1013904223;
        now_ns = wake_ns + (int64_t)((random >> 8) % (late_ms + 1)) * MS;
    }
    return count;
}

// At any time no more than was due, and no fewer than was due 10 ms and one delay before.
Test(generator, three_subtasks_share_a_rate_exactly)
{
    enum { SECONDS = 30, LATE_MS = 20, P = 3 };
    int *all = calloc(SECONDS * 1000 + 1, sizeof *all);
    int64_t end_ns = begin_ns + SECONDS * second_ns, count = 0, sum = 0;
    for (uint32_t s = 0; s < P; s++)
        count += emit_until(1000, s, P, end_ns, LATE_MS, all);
    cr_assert(count <= SECONDS * 1000 && count > SECONDS * 1000 - 10 - LATE_MS - P);
    for (int ms = 0; ms < SECONDS * 1000; ms++) {
        sum += all[ms];
        cr_assert(sum <= ms + 1 && sum >= ms - 10 - LATE_MS - P, "%" PRId64 " in %d ms", sum, ms);
    }
    free(all);
}

Test(generator, a_stall_is_made_up_for_by_one_second_at_most)
{
    static const struct {
        int64_t stall_ms, made_up;
    } cases[] = {{0, 1}, {999, 1000}, {1000, 1001}, {60000, 1001}, {86400000, 1001}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leati_pace pace = pace_of(1000);
        int64_t now_ns = begin_ns + cases[i].stall_ms * MS, next = 0;
        leati_pace_forgive(&pace, next, now_ns);
        while (leati_pace_due_ns(&pace, next) <= now_ns)
            next++;
        cr_assert_eq(next, cases[i].made_up, "after %" PRId64 " ms", cases[i].stall_ms);
        // From then on the rate is what it was.
        int64_t due = leati_pace_due_ns(&pace, next + 1000) - leati_pace_due_ns(&pace, next);
        cr_assert(due >= second_ns - 1 && due <= second_ns + 1);
    }
}

// --- jobs ---

enum { MOST = 100001 };
static _Atomic int seen[MOST];
static _Atomic int64_t arrived;

static int generate(leat_ctx *ctx, int64_t index, void *out)
{
    cr_assert_eq(*(int64_t *)out, 0);
    cr_assert_eq(index % leat_ctx_parallelism(ctx), leat_ctx_subtask(ctx));
    *(int64_t *)out = index;
    return 0;
}

static int note(leat_ctx *ctx, const void *in)
{
    seen[*(const int64_t *)in]++;
    arrived++;
    return 0;
}

static void expect_each_once(int64_t count, double per_second, uint32_t parallelism)
{
    run r;
    arrived = 0;
    memset(seen, 0, sizeof seen);
    leat_env *env = run_begin(&r, parallelism);
    leat_sink(leat_rebalance(leat_generate(env, generate, count, per_second, NUMBER)), note);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(arrived, count);
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(seen[i], 1, "%" PRId64 " at p=%u", i, parallelism);
    run_end(&r);
}

Test(generator, each_index_is_generated_once)
{
    static const uint32_t parallelisms[] = {1, 2, 4, 7};
    static const int64_t counts[] = {0, 1, 5, 7, MOST};
    for (int p = 0; p < 4; p++)
        for (int c = 0; c < 5; c++)
            expect_each_once(counts[c], 0, parallelisms[p]);
}

Test(generator, each_index_is_generated_once_at_a_rate)
{
    expect_each_once(20000, 1e5, 4);
    expect_each_once(1, 1e-3, 2); // the first is due at once
    expect_each_once(0, 1, 2);
}

// Both subtasks wake every 10 ms and emit what is due by then: by the time t all records up to
// t * rate, counted from the one that is due at 0.
Test(generator, records_come_when_they_are_due)
{
    static const double rates[] = {100, 250, 1000, 0.5};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        leat_harness *h;
        cr_assert_eq(leat_harness_create(NULL, &h), LEAT_OK);
        leat_env *env = leat_harness_env(h);
        leat_env_set_parallelism(env, 2);
        leat_test_output(leat_generate(env, generate, LEAT_UNBOUNDED, rates[i], NUMBER), "out");
        cr_assert_eq(leat_harness_run(h), LEAT_OK);
        for (int64_t ms = 0; ms <= 6000; ms += 500) {
            int64_t due = (int64_t)((double)ms * rates[i] / 1000) + 1;
            cr_assert_eq((int64_t)leat_harness_count(h, "out"), due, "%" PRId64 " ms, %g a second",
                         ms, rates[i]);
            cr_assert_eq(leat_harness_advance(h, 500 * (int64_t)MS), LEAT_OK);
        }
        leat_harness_destroy(&h);
    }
}

// Without an end, until the job is cancelled; the second one sleeps for hours after its first
// record.
Test(generator, an_unbounded_one_ends_when_it_is_cancelled)
{
    static const double rates[] = {0, 1e-4};
    for (int i = 0; i < 2; i++) {
        run r;
        leat_runtime *runtime;
        leat_job *job;
        leat_collection *collection;
        leat_env *env = run_begin(&r, 1);
        cr_assert_eq(leat_collection_create(NULL, &collection), LEAT_OK);
        leat_collect_records(leat_generate(env, generate, LEAT_UNBOUNDED, rates[i], NUMBER),
                             collection);
        cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
        cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
        const void *record;
        for (int64_t n = 0; n < (i ? 1 : 1000); n++) {
            cr_assert_eq(leat_collection_next(collection, -1, &record), LEAT_OK);
            cr_assert_eq(*(const int64_t *)record, n);
        }
        leat_job_cancel(job);
        cr_assert_eq(leat_job_wait(job, -1), LEAT_ECANCELLED);
        leat_job_destroy(&job);
        leat_runtime_destroy(&runtime);
        leat_collection_destroy(&collection);
        run_end(&r);
    }
}

typedef struct {
    int64_t id;
    leat_str name;
} item;
LEAT_RECORD(item, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR));

static int generate_item(leat_ctx *ctx, int64_t index, void *out)
{
    char *name = leat_ctx_scratch(ctx, 32);
    int size = snprintf(name, 32, "item %" PRId64, index);
    *(item *)out = (item){index, {name, (size_t)size}};
    return 0;
}

Test(generator, records_may_point_to_scratch_memory)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_print(leat_rebalance(leat_generate(env, generate_item, 3, 0, LEAT_TYPE(item))));
    run_expect_lines(&r, "0\titem 0\n1\titem 1\n2\titem 2\n", "items");
}

// --- indices that are rejected ---

static int generate_even(leat_ctx *ctx, int64_t index, void *out)
{
    *(int64_t *)out = index;
    return index == 7 ? leat_fail(ctx, "no seven") : index % 2 ? 5 : 0;
}

Test(generator, an_index_that_is_rejected_fails_the_job_or_is_skipped)
{
    for (int skip = 0; skip < 2; skip++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *numbers = leat_generate(env, generate_even, 6, 0, NUMBER);
        if (skip)
            leat_on_error(numbers, LEAT_ON_ERROR_SKIP);
        leat_print(numbers);
        cr_assert_eq(run_execute(&r), skip ? LEAT_OK : LEAT_EUSER, "%s", r.failure);
        if (skip)
            cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "0\n2\n4\n");
        else
            cr_assert(strstr(r.failure, "the generator function returned 5 for 1"), "%s",
                      r.failure);
        run_end(&r);
    }
}

Test(generator, rejected_indices_go_to_the_side_output_as_digits)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *numbers = leat_generate(env, generate_even, 9, 0, NUMBER);
    leat_discard(numbers);
    leat_print(leat_rejects(numbers));
    run_expect_lines(&r,
                     "the generator function returned 5 for 1\t1\n"
                     "the generator function returned 5 for 3\t3\n"
                     "the generator function returned 5 for 5\t5\n"
                     "no seven\t7\n",
                     "rejects");
}

// --- faults ---

Test(generator, wrong_arguments_are_faults)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_generate(env, NULL, 1, 0, NUMBER);
    leat_generate(env, generate, -2, 0, NUMBER);
    leat_generate(env, generate, 1, -1, NUMBER);
    leat_generate(env, generate, 1, 0.0 / 0.0, NUMBER);
    leat_generate(env, generate, 1, 1e13, NUMBER);
    leat_generate(env, generate, 1, 0, NULL);
    cr_assert_eq(leat_env_fault_count(env), 6);
    static const char *const says[] = {
        "the function is NULL", "the count", "the rate", "the rate", "the rate", "type"};
    for (size_t i = 0; i < 6; i++)
        cr_assert(strstr(leat_env_fault(env, i), says[i]), "%s", leat_env_fault(env, i));
    run_end(&r);
}
