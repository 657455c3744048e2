// SPDX-License-Identifier: Apache-2.0
// The policy for records that user functions reject, for each kind of operator that has one.
#include <stdatomic.h>

#include "leat/metrics.h"
#include "leat/reject.h"
#include "leat/rolling.h"
#include "run.h"

// What every function here does with the numbers 3 and 5: one failure says why, one does not.
static int verdict(leat_ctx *ctx, const void *in)
{
    int64_t n = *(const int64_t *)in;
    return n == 3 ? leat_fail(ctx, "no three") : n == 5 ? -7 : 0;
}

static int tenfold(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in * 10;
    return verdict(ctx, in);
}

static int emit_first(leat_ctx *ctx, const void *in, leat_out *out)
{
    (void)leat_collect(out, in);
    return verdict(ctx, in);
}

static int keep_most(leat_ctx *ctx, const void *in)
{
    int result = verdict(ctx, in);
    return result ? result : *(const int64_t *)in != 1;
}

static int add_up(leat_ctx *ctx, const void *in)
{
    int result = verdict(ctx, in);
    if (result == 0)
        atomic_fetch_add((atomic_llong *)leat_ctx_user_data(ctx), *(const int64_t *)in);
    return result;
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    int result = verdict(ctx, in);
    if (result == 0)
        *(int64_t *)accumulator += *(const int64_t *)in;
    return result;
}

static int create_never(leat_ctx *ctx, void *accumulator)
{
    return leat_fail(ctx, "no accumulator");
}

static int odd_results_fail(leat_ctx *ctx, const void *accumulator, void *out)
{
    *(int64_t *)out = *(const int64_t *)accumulator;
    return *(int64_t *)out % 2 ? leat_fail(ctx, "odd") : 0;
}

static int all_alike(leat_ctx *ctx, const void *in, void *key)
{
    *(bool *)key = true;
    return 0;
}

static leat_stream *keyed(leat_stream *in)
{
    return leat_key_by_fn(in, all_alike, leat_type_scalar(LEAT_BOOL));
}

typedef enum operator_kind {
    MAP,
    FLAT_MAP,
    FILTER,
    SINK,
    REDUCE,
    AGGREGATE,
    CREATE,
    RESULT,
    FINAL,
} operator_kind;

// The operator; all but the sink are printed.
static leat_stream *add_operator(leat_stream *in, operator_kind kind, atomic_llong *sum)
{
    static const leat_aggregate_fns adding = {.add = add},
                                    creating = {.create = create_never, .add = add},
                                    resulting = {.add = add, .result = odd_results_fail};
    const leat_type *i64 = leat_type_scalar(LEAT_I64);
    switch (kind) {
    case MAP:
        return leat_map(in, tenfold, i64);
    case FLAT_MAP:
        return leat_flat_map(in, emit_first, i64);
    case FILTER:
        return leat_filter(in, keep_most);
    case SINK:
        return leat_user_data(leat_sink(in, add_up), sum);
    case REDUCE:
        return leat_reduce(keyed(in), add);
    case AGGREGATE:
        return leat_aggregate(keyed(in), &adding, i64, i64);
    case CREATE:
        return leat_aggregate(keyed(in), &creating, i64, i64);
    case RESULT:
        return leat_aggregate(keyed(in), &resulting, i64, i64);
    default:
        return leat_final_only(leat_aggregate(keyed(in), &adding, i64, i64));
    }
}

static void add_rejected(void *user, const leat_metric *metric)
{
    if (metric->built_in && strcmp(metric->name, "rejected") == 0)
        *(int64_t *)user += metric->count;
}

// Runs the job; how many records all its operators have rejected.
static leat_err run_counting(run *r, int64_t *rejected)
{
    leat_runtime *runtime;
    leat_job *job;
    *rejected = 0;
    cr_assert_eq(leat_runtime_create(r->env, &runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(runtime, r->env, &job), LEAT_OK);
    leat_err err = leat_job_wait(job, 30000);
    leat_job_each_metric(job, add_rejected, rejected);
    snprintf(r->failure, sizeof r->failure, "%s", leat_job_failure(job));
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    return err;
}

// The input is 1 … 6.
static const struct {
    const char *name;
    operator_kind kind;
    const char *out;     // what is printed when 3 and 5 are rejected
    const char *rejects; // what the side output holds
    const char *failure; // what the failure says without a policy
    int64_t count, sum;
} cases[] = {
    {"map", MAP, "10\n20\n40\n60\n", "no three\t3\nthe map function returned -7\t5\n", "no three",
     2, 0},
    // What was emitted before the failure stays emitted.
    {"flat_map", FLAT_MAP, "1\n2\n3\n4\n5\n6\n",
     "no three\t3\nthe flat_map function returned -7\t5\n", "no three", 2, 0},
    {"filter", FILTER, "2\n4\n6\n", "no three\t3\nthe filter function returned -7\t5\n", "no three",
     2, 0},
    {"sink", SINK, "", "no three\t3\nthe sink function returned -7\t5\n", "no three", 2, 13},
    // A rejected record gives no update.
    {"reduce", REDUCE, "1\n3\n7\n13\n", "no three\t3\nthe reduce function returned -7\t5\n",
     "no three", 2, 0},
    {"aggregate", AGGREGATE, "1\n3\n7\n13\n", "no three\t3\nthe add function returned -7\t5\n",
     "no three", 2, 0},
    {"create", CREATE, "",
     "no accumulator\t1\nno accumulator\t2\nno accumulator\t3\nno accumulator\t4\n"
     "no accumulator\t5\nno accumulator\t6\n",
     "no accumulator", 6, 0},
    // The sums are 1, 3, 7 and 13, so every result fails, beside the two additions.
    {"result", RESULT, "",
     "odd\t1\nodd\t2\nno three\t3\nodd\t4\nthe add function returned -7\t5\nodd\t6\n", "odd", 6, 0},
    {"final", FINAL, "13\n", "no three\t3\nthe add function returned -7\t5\n", "no three", 2, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static leat_stream *begin(run *r, size_t i, uint32_t parallelism, atomic_llong *sum)
{
    static const int64_t numbers[] = {1, 2, 3, 4, 5, 6};
    leat_env *env = run_begin(r, parallelism);
    leat_stream *in = leat_from_items(env, leat_type_scalar(LEAT_I64), numbers, 6);
    leat_stream *made = add_operator(in, cases[i].kind, sum);
    if (cases[i].kind != SINK)
        leat_parallelism(leat_print(made), 1);
    return made;
}

Test(reject_by_kind, without_a_policy_the_job_fails)
{
    for (size_t i = 0; i < CASES; i++) {
        run r;
        atomic_llong sum = 0;
        begin(&r, i, 1, &sum);
        cr_assert_eq(run_execute(&r), LEAT_EUSER, "%s", cases[i].name);
        cr_assert(strstr(r.failure, cases[i].failure) != NULL, "%s: %s", cases[i].name, r.failure);
        run_end(&r);
    }
}

Test(reject_by_kind, skipped_records_are_counted)
{
    for (size_t i = 0; i < CASES; i++) {
        run r;
        int64_t rejected;
        atomic_llong sum = 0;
        leat_on_error(begin(&r, i, 1, &sum), LEAT_ON_ERROR_SKIP);
        cr_assert_eq(run_counting(&r, &rejected), LEAT_OK, "%s: %s", cases[i].name, r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].out, "%s", cases[i].name);
        cr_assert_eq(rejected, cases[i].count, "%s: %d", cases[i].name, (int)rejected);
        cr_assert_eq(sum, cases[i].sum, "%s", cases[i].name);
        run_end(&r);
    }
}

Test(reject_by_kind, a_side_output_takes_them_with_their_errors)
{
    for (size_t i = 0; i < CASES; i++) {
        run r;
        int64_t rejected;
        atomic_llong sum = 0;
        leat_print_to_err(leat_rejects(begin(&r, i, 1, &sum)));
        cr_assert_eq(run_counting(&r, &rejected), LEAT_OK, "%s: %s", cases[i].name, r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].out, "%s", cases[i].name);
        cr_assert_str_eq(leati_strbuf_text(&r.out[1]), cases[i].rejects, "%s", cases[i].name);
        cr_assert_eq(rejected, cases[i].count, "%s: %d", cases[i].name, (int)rejected);
        cr_assert_eq(sum, cases[i].sum, "%s", cases[i].name);
        run_end(&r);
    }
}

Test(reject_by_kind, all_subtasks_follow_the_policy)
{
    for (uint32_t p = 2; p <= 4; p += 2) {
        for (size_t i = 0; i < CASES; i++) {
            run r;
            int64_t rejected;
            atomic_llong sum = 0;
            leat_stream *bad = leat_rejects(begin(&r, i, p, &sum));
            leat_parallelism(leat_print_to_err(bad), 1);
            cr_assert_eq(run_counting(&r, &rejected), LEAT_OK, "%s: %s", cases[i].name, r.failure);
            cr_assert_eq(rejected, cases[i].count, "%s: %d", cases[i].name, (int)rejected);
            char *found = strdup(leati_strbuf_text(&r.out[1])), *sorted = strdup(cases[i].rejects);
            run_sort(found);
            run_sort(sorted);
            cr_assert_str_eq(found, sorted, "%s", cases[i].name);
            free(found);
            free(sorted);
            run_end(&r);
        }
    }
}

Test(reject_by_kind, a_sum_that_overflows_keeps_its_last_good_value)
{
    static const int64_t numbers[] = {INT64_MAX - 5, 3, 9, 1, INT64_MAX, 1, 1};
    for (int final = 0; final < 2; final++) {
        run r;
        int64_t rejected;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, leat_type_scalar(LEAT_I64), numbers, 7);
        leat_stream *sums = leat_sum(keyed(in), NULL);
        leat_print(final ? leat_final_only(sums) : sums);
        leat_print_to_err(leat_rejects(sums));
        cr_assert_eq(run_counting(&r, &rejected), LEAT_OK, "%s", r.failure);
        // 2^63 - 1 is the largest; 3 and 1 fit, then one more 1, and the last does not.
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]),
                         final ? "9223372036854775807\n"
                               : "9223372036854775802\n9223372036854775805\n"
                                 "9223372036854775806\n9223372036854775807\n");
        cr_assert_str_eq(leati_strbuf_text(&r.out[1]),
                         "the sum of the records of the key true does not fit in i64\t9\n"
                         "the sum of the records of the key true does not fit in i64\t"
                         "9223372036854775807\n"
                         "the sum of the records of the key true does not fit in i64\t1\n");
        cr_assert_eq(rejected, 3);
        run_end(&r);
    }
}

// --- several records at once ---

typedef struct {
    int64_t key;
    int8_t value;
} small;
LEAT_RECORD(small, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(value, LEAT_I8));

static int add_small(leat_ctx *ctx, void *accumulator, const void *in)
{
    int8_t *sum = &((small *)accumulator)->value;
    int result = *sum + ((const small *)in)->value;
    *sum = (int8_t)(result > INT8_MAX ? *sum : result);
    return result > INT8_MAX ? -1 : 0;
}

Test(reject_by_kind, final_values_leave_out_what_was_rejected)
{
    // Keys that are fields are folded in batches when only final values are wanted. Of 100, 20, 10
    // and 5 the third does not fit any more, for each of the hundred keys.
    static const int8_t values[] = {100, 20, 10, 5};
    small items[400];
    char expected[100 * 12];
    size_t size = 0;
    for (int i = 0; i < 400; i++)
        items[i] = (small){i % 100, values[i / 100]};
    for (int i = 0; i < 100; i++)
        size += (size_t)snprintf(expected + size, sizeof expected - size, "%d\t125\n", i);
    run_sort(expected);
    for (int sum = 0; sum < 2; sum++) {
        run r;
        int64_t rejected;
        leat_env *env = run_begin(&r, 2);
        leat_stream *in = leat_key_by(leat_from_items(env, LEAT_TYPE(small), items, 400), "key");
        leat_stream *out = sum ? leat_sum(in, "value") : leat_reduce(in, add_small);
        leat_on_error(leat_final_only(out), LEAT_ON_ERROR_SKIP);
        leat_parallelism(leat_print(out), 1);
        cr_assert_eq(run_counting(&r, &rejected), LEAT_OK, "%s", r.failure);
        char *found = strdup(leati_strbuf_text(&r.out[0]));
        run_sort(found);
        cr_assert_str_eq(found, expected);
        cr_assert_eq(rejected, 100);
        free(found);
        run_end(&r);
    }
}

static int never(leat_ctx *ctx, const void *accumulator, void *out)
{
    return leat_fail(ctx, "no result");
}

Test(reject_by_kind, a_final_value_that_cannot_be_made_fails_the_job)
{
    // There is no record that could be rejected for it.
    static const int64_t one = 1;
    static const leat_aggregate_fns fns = {.add = add, .result = never};
    const leat_type *i64 = leat_type_scalar(LEAT_I64);
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *ones = keyed(leat_from_items(env, i64, &one, 1));
    leat_stream *made = leat_final_only(leat_aggregate(ones, &fns, i64, i64));
    leat_discard(leat_on_error(made, LEAT_ON_ERROR_SKIP));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_assert(strstr(r.failure, "no result") != NULL, "%s", r.failure);
    run_end(&r);
}

// --- what a rejected call has stored ---

static int make_text(leat_ctx *ctx, const void *in, void *out)
{
    char *text = leat_ctx_scratch(ctx, 300);
    if (!text)
        return leat_fail(ctx, "out of memory");
    int64_t n = *(const int64_t *)in;
    memset(text, 'a' + (int)(n % 26), 300);
    *(leat_str *)out = (leat_str){text, 300};
    return 0;
}

// Takes the record and rejects it all the same, but for those of 'c'.
static int take_and_reject(leat_ctx *ctx, void *accumulator, const void *in)
{
    leat_str former = *(leat_str *)accumulator;
    *(leat_str *)accumulator = *(const leat_str *)in;
    if (former.data[0] != former.data[299])
        return leat_fail(ctx, "the former text is broken");
    return ((const leat_str *)in)->data[0] == 'c' ? 0 : -1;
}

Test(reject_by_kind, what_a_rejected_call_stored_is_made_the_runtimes_own)
{
    // 100 texts: 'a' enters as it is; of those behind it three begin with 'c' (2, 28, 54) and one
    // more (80), and all others are rejected although they are stored.
    run r;
    int64_t rejected;
    leat_env *env = run_begin(&r, 1);
    leat_stream *texts = leat_map(leat_sequence(env, 0, 99), make_text, leat_type_scalar(LEAT_STR));
    leat_stream *reduced = leat_reduce(keyed(texts), take_and_reject);
    leat_print(leat_on_error(reduced, LEAT_ON_ERROR_SKIP));
    cr_assert_eq(run_counting(&r, &rejected), LEAT_OK, "%s", r.failure);
    cr_assert_eq(rejected, 95);
    const char *out = leati_strbuf_text(&r.out[0]);
    cr_assert_eq(strlen(out), 5 * 301);
    for (int line = 0; line < 5; line++)
        for (int i = 0; i < 300; i++)
            cr_assert_eq(out[line * 301 + i], line ? 'c' : 'a');
    run_end(&r);
}
