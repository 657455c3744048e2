// SPDX-License-Identifier: Apache-2.0
// Accumulators of user functions: each kind, merging over subtasks and operators, refusals.
#include <math.h>

#include "jobs.h"
#include "leat/metrics.h"

TestSuite(accumulators, .timeout = 60);

static leat_env *env_with(leat_sink_fn sink, int64_t last, uint32_t parallelism)
{
    leat_env *env = new_env("2");
    leat_stream *s = leat_sink(leat_rebalance(leat_sequence(env, 1, last)), sink);
    leat_parallelism(leat_name(s, "sink"), parallelism);
    return env;
}

static leat_accumulators *run_env(leat_env **env)
{
    leat_accumulators *all = NULL;
    cr_assert(leat_execute_with_accumulators(*env, &all) == LEAT_OK, "%s", fault_of(*env));
    leat_env_destroy(env);
    return all;
}

static leat_accumulator_value find(const leat_accumulators *all, const char *name,
                                   leat_accumulator_kind kind, uint64_t count)
{
    leat_accumulator_value value;
    cr_assert(leat_accumulators_find(all, name, &value), "there is no %s", name);
    cr_assert(value.kind == kind && value.count == count, "%s: kind %d, count %llu", name,
              (int)value.kind, (unsigned long long)value.count);
    return value;
}

// --- every kind ---

static const struct {
    const char *name;
    leat_accumulator_kind kind;
} numeric[] = {
    {"sum i64", LEAT_ACCUMULATOR_SUM_I64},   {"sum f64", LEAT_ACCUMULATOR_SUM_F64},
    {"average", LEAT_ACCUMULATOR_AVERAGE},   {"min i64", LEAT_ACCUMULATOR_MIN_I64},
    {"max i64", LEAT_ACCUMULATOR_MAX_I64},   {"min f64", LEAT_ACCUMULATOR_MIN_F64},
    {"max f64", LEAT_ACCUMULATOR_MAX_F64},   {"histogram", LEAT_ACCUMULATOR_HISTOGRAM},
    {"list i64", LEAT_ACCUMULATOR_LIST_I64}, {"list f64", LEAT_ACCUMULATOR_LIST_F64},
};

// 1 … 40 becomes -19 … 20.
static int every_kind(leat_ctx *ctx, const void *in)
{
    int64_t number = *(const int64_t *)in - 20;
    for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++) {
        leat_accumulator *a = leat_ctx_accumulator(ctx, numeric[i].name, numeric[i].kind);
        if (a != leat_ctx_accumulator(ctx, numeric[i].name, numeric[i].kind))
            return leat_fail(ctx, "one name, two accumulators");
        if (leat_accumulator_add_i64(a, number))
            return leat_fail(ctx, "%s takes no i64", numeric[i].name);
    }
    char text[30];
    int size = snprintf(text, sizeof text, "<%lld>", (long long)number);
    return leat_accumulator_add_str(leat_ctx_accumulator(ctx, "texts", LEAT_ACCUMULATOR_LIST_STR),
                                    (leat_str){text, (size_t)size})
               ? -1
               : 0;
}

static void check_lists(const leat_accumulators *all)
{
    const int64_t *i64s = find(all, "list i64", LEAT_ACCUMULATOR_LIST_I64, 40).i64s;
    const double *f64s = find(all, "list f64", LEAT_ACCUMULATOR_LIST_F64, 40).f64s;
    const leat_str *strs = find(all, "texts", LEAT_ACCUMULATOR_LIST_STR, 40).strs;
    uint64_t seen = 0;
    for (size_t i = 0; i < 40; i++) {
        char text[30];
        int size = snprintf(text, sizeof text, "<%lld>", (long long)i64s[i]);
        cr_assert(strs[i].size == (size_t)size && !memcmp(strs[i].data, text, strs[i].size));
        cr_assert(f64s[i] == (double)i64s[i]);
        cr_assert(i64s[i] >= -19 && i64s[i] <= 20);
        seen |= UINT64_C(1) << (i64s[i] + 19);
    }
    cr_assert(seen == (UINT64_C(1) << 40) - 1);
}

Test(accumulators, of_every_kind_are_merged_over_the_subtasks)
{
    for (uint32_t parallelism = 1; parallelism <= 4; parallelism++) {
        leat_env *env = env_with(every_kind, 40, parallelism);
        leat_accumulators *all = run_env(&env);
        cr_assert(leat_accumulators_count(all) == 11);
        // -19 … 20 sum to 20.
        cr_assert(find(all, "sum i64", LEAT_ACCUMULATOR_SUM_I64, 40).i64 == 20);
        cr_assert(find(all, "sum f64", LEAT_ACCUMULATOR_SUM_F64, 40).f64 == 20);
        cr_assert(find(all, "average", LEAT_ACCUMULATOR_AVERAGE, 40).f64 == 0.5);
        cr_assert(find(all, "min i64", LEAT_ACCUMULATOR_MIN_I64, 40).i64 == -19);
        cr_assert(find(all, "max i64", LEAT_ACCUMULATOR_MAX_I64, 40).i64 == 20);
        cr_assert(find(all, "min f64", LEAT_ACCUMULATOR_MIN_F64, 40).f64 == -19);
        cr_assert(find(all, "max f64", LEAT_ACCUMULATOR_MAX_F64, 40).f64 == 20);
        const leat_histogram *h = find(all, "histogram", LEAT_ACCUMULATOR_HISTOGRAM, 40).histogram;
        cr_assert(leat_histogram_min(h) == -19 && leat_histogram_max(h) == 20);
        cr_assert(leat_histogram_mean(h) == 0.5);
        // Of forty, the 20th is 0 and the 30th is 10.
        cr_assert(leat_histogram_percentile(h, 50) == 0);
        cr_assert(leat_histogram_percentile(h, 75) == 10);
        check_lists(all);
        leat_accumulators_destroy(&all);
        cr_assert_null(all);
    }
}

Test(accumulators, stand_in_the_order_of_making)
{
    leat_env *env = env_with(every_kind, 40, 2);
    leat_accumulators *all = run_env(&env);
    leat_accumulator_value value = {.count = 77};
    for (uint32_t i = 0; i < sizeof numeric / sizeof *numeric; i++) {
        cr_assert(leat_accumulators_get(all, i, &value));
        cr_assert_str_eq(value.name, numeric[i].name);
    }
    value.count = 77;
    cr_assert(!leat_accumulators_get(all, 11, &value));
    cr_assert(!leat_accumulators_find(all, "none", &value));
    cr_assert(value.count == 77);
    leat_accumulators_destroy(&all);
}

// --- merging ---

static int share(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "shared", LEAT_ACCUMULATOR_SUM_I64), 1);
    // A metric of the same name is another thing.
    leat_counter_add(leat_ctx_counter(ctx, "shared"), 5);
    return 0;
}

Test(accumulators, of_one_name_are_merged_over_operators)
{
    leat_env *env = new_env("2");
    leat_stream *s = leat_map(leat_sequence(env, 1, 25), share, NUMBER);
    leat_discard(leat_parallelism(leat_map(leat_rebalance(s), share, NUMBER), 3));
    leat_accumulators *all = run_env(&env);
    cr_assert(leat_accumulators_count(all) == 1);
    cr_assert(find(all, "shared", LEAT_ACCUMULATOR_SUM_I64, 50).i64 == 50);
    leat_accumulators_destroy(&all);
}

static int only_make(leat_ctx *ctx, const void *in)
{
    for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++)
        if (!leat_ctx_accumulator(ctx, numeric[i].name, numeric[i].kind))
            return -1;
    return 0;
}

Test(accumulators, that_took_no_value_are_there_and_empty)
{
    leat_env *env = env_with(only_make, 3, 1);
    leat_accumulators *all = run_env(&env);
    cr_assert(leat_accumulators_count(all) == 10);
    for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++) {
        leat_accumulator_value value = find(all, numeric[i].name, numeric[i].kind, 0);
        cr_assert(value.i64 == 0 && value.f64 == 0 && !value.overflow);
    }
    leat_accumulators_destroy(&all);
}

// Of two numbers, so that each of two subtasks takes one.
static int large_sums(leat_ctx *ctx, const void *in)
{
    int64_t large = INT64_MAX - 5;
    leat_accumulator *up = leat_ctx_accumulator(ctx, "up", LEAT_ACCUMULATOR_SUM_I64);
    leat_accumulator *down = leat_ctx_accumulator(ctx, "down", LEAT_ACCUMULATOR_SUM_I64);
    leat_accumulator *both = leat_ctx_accumulator(ctx, "both", LEAT_ACCUMULATOR_SUM_I64);
    return leat_accumulator_add_i64(up, large) || leat_accumulator_add_i64(down, -large) ||
                   leat_accumulator_add_i64(both, leat_ctx_subtask(ctx) ? large : 3 - large)
               ? -1
               : 0;
}

Test(accumulators, a_merged_sum_that_does_not_fit_says_so)
{
    leat_env *env = env_with(large_sums, 2, 2);
    leat_accumulators *all = run_env(&env);
    leat_accumulator_value value = find(all, "up", LEAT_ACCUMULATOR_SUM_I64, 2);
    cr_assert(value.overflow && value.i64 == INT64_MAX);
    value = find(all, "down", LEAT_ACCUMULATOR_SUM_I64, 2);
    cr_assert(value.overflow && value.i64 == INT64_MIN);
    value = find(all, "both", LEAT_ACCUMULATOR_SUM_I64, 2);
    cr_assert(!value.overflow && value.i64 == 3);
    leat_accumulators_destroy(&all);
}

// NaN for 2, otherwise the number.
static int with_nan(leat_ctx *ctx, const void *in)
{
    int64_t number = *(const int64_t *)in;
    double value = number == 2 ? (double)NAN : (double)number;
    leat_accumulator_add_f64(leat_ctx_accumulator(ctx, "least", LEAT_ACCUMULATOR_MIN_F64), value);
    leat_accumulator_add_f64(leat_ctx_accumulator(ctx, "most", LEAT_ACCUMULATOR_MAX_F64), value);
    leat_accumulator_add_f64(leat_ctx_accumulator(ctx, "nans", LEAT_ACCUMULATOR_MIN_F64),
                             (double)NAN);
    return 0;
}

Test(accumulators, nan_is_above_all_numbers)
{
    for (uint32_t parallelism = 1; parallelism <= 3; parallelism++) {
        leat_env *env = env_with(with_nan, 3, parallelism);
        leat_accumulators *all = run_env(&env);
        cr_assert(find(all, "least", LEAT_ACCUMULATOR_MIN_F64, 3).f64 == 1);
        cr_assert(isnan(find(all, "most", LEAT_ACCUMULATOR_MAX_F64, 3).f64));
        cr_assert(isnan(find(all, "nans", LEAT_ACCUMULATOR_MIN_F64, 3).f64));
        leat_accumulators_destroy(&all);
    }
}

// Texts of 0, 1, 4, 9 … 39² bytes: some cross the pieces that a list is kept in, or fill one.
static int squares(leat_ctx *ctx, const void *in)
{
    static char text[12000];
    int64_t number = *(const int64_t *)in - 1;
    size_t size = (size_t)(number < 39 ? number * number : 12000);
    memset(text, 'a' + (int)(number % 26), size);
    leat_accumulator *a = leat_ctx_accumulator(ctx, "squares", LEAT_ACCUMULATOR_LIST_STR);
    return leat_accumulator_add_str(a, (leat_str){size ? text : NULL, size}) ? -1 : 0;
}

Test(accumulators, a_list_keeps_order_and_texts_of_any_size)
{
    leat_env *env = env_with(squares, 42, 1);
    leat_accumulators *all = run_env(&env);
    const leat_str *strs = find(all, "squares", LEAT_ACCUMULATOR_LIST_STR, 42).strs;
    for (size_t i = 0; i < 42; i++) {
        cr_assert(strs[i].size == (i < 39 ? i * i : 12000));
        for (size_t k = 0; k < strs[i].size; k++)
            cr_assert(strs[i].data[k] == (char)('a' + i % 26));
    }
    leat_accumulators_destroy(&all);
}

// --- refusals ---

static leat_accumulator *make(leat_ctx *ctx, leat_accumulator_kind kind)
{
    return leat_ctx_accumulator(ctx, "it", kind);
}

static int two_kinds(leat_ctx *ctx, const void *in)
{
    leat_accumulator *first = make(ctx, LEAT_ACCUMULATOR_SUM_I64);
    return first && !make(ctx, LEAT_ACCUMULATOR_SUM_F64) ? 0 : leat_fail(ctx, "two kinds");
}

static int no_kind(leat_ctx *ctx, const void *in)
{
    return make(ctx, (leat_accumulator_kind)11) ? leat_fail(ctx, "no kind") : 0;
}

static int f64_into_i64(leat_ctx *ctx, const void *in)
{
    static const leat_accumulator_kind kinds[] = {
        LEAT_ACCUMULATOR_SUM_I64,   LEAT_ACCUMULATOR_MIN_I64,  LEAT_ACCUMULATOR_MAX_I64,
        LEAT_ACCUMULATOR_HISTOGRAM, LEAT_ACCUMULATOR_LIST_I64, LEAT_ACCUMULATOR_LIST_STR};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[] = {(char)('a' + i), '\0'};
        leat_accumulator *a = leat_ctx_accumulator(ctx, name, kinds[i]);
        if (!a || leat_accumulator_add_f64(a, 1) != LEAT_ETYPE)
            return leat_fail(ctx, "%s took an f64", name);
    }
    return 0;
}

static int i64_into_str(leat_ctx *ctx, const void *in)
{
    bool refused = leat_accumulator_add_i64(make(ctx, LEAT_ACCUMULATOR_LIST_STR), 1) == LEAT_ETYPE;
    return refused ? 0 : leat_fail(ctx, "it took an i64");
}

static int str_into_average(leat_ctx *ctx, const void *in)
{
    leat_accumulator *a = make(ctx, LEAT_ACCUMULATOR_AVERAGE);
    bool refused = leat_accumulator_add_str(a, LEAT_STR_LITERAL("x")) == LEAT_ETYPE;
    return refused ? 0 : leat_fail(ctx, "it took a text");
}

static int sum_up(leat_ctx *ctx, const void *in)
{
    leat_accumulator *a = make(ctx, LEAT_ACCUMULATOR_SUM_I64);
    bool refused = leat_accumulator_add_i64(a, INT64_MAX) == LEAT_OK &&
                   leat_accumulator_add_i64(a, 1) == LEAT_ETOOBIG;
    return refused ? 0 : leat_fail(ctx, "it took too much");
}

static int fill_list(leat_ctx *ctx, const void *in)
{
    static char text[LEAT_ACCUMULATOR_LIST_MAX];
    leat_accumulator *a = make(ctx, LEAT_ACCUMULATOR_LIST_STR);
    // Two of 8 MiB less their 8 bytes fill it.
    leat_str half = {text, LEAT_ACCUMULATOR_LIST_MAX / 2 - 8};
    for (int i = 0; i < 2; i++)
        if (leat_accumulator_add_str(a, half))
            return leat_fail(ctx, "it was not full");
    bool refused = leat_accumulator_add_str(a, (leat_str){NULL, 0}) == LEAT_ETOOBIG;
    return refused ? 0 : leat_fail(ctx, "it took too much");
}

static int huge_text(leat_ctx *ctx, const void *in)
{
    leat_str huge = {"x", SIZE_MAX};
    leat_accumulator *a = make(ctx, LEAT_ACCUMULATOR_LIST_STR);
    return leat_accumulator_add_str(a, huge) == LEAT_ETOOBIG ? 0 : leat_fail(ctx, "it took it");
}

Test(accumulators, wrong_use_fails_the_job_even_if_the_function_goes_on)
{
    static const struct {
        leat_sink_fn fn;
        leat_err err;
        const char *failure;
    } cases[] = {
        {two_kinds, LEAT_EEXIST, "sink (1/1): accumulator \"it\" is of another kind in \"sink\""},
        {no_kind, LEAT_EINVAL, "sink (1/1): accumulator \"it\": there is no kind 11"},
        {f64_into_i64, LEAT_ETYPE, "sink (1/1): accumulator \"a\": a sum takes no f64"},
        {i64_into_str, LEAT_ETYPE, "sink (1/1): accumulator \"it\": a list takes no i64"},
        {str_into_average, LEAT_ETYPE, "sink (1/1): accumulator \"it\": an average takes no text"},
        {sum_up, LEAT_ETOOBIG, "sink (1/1): accumulator \"it\": the sum leaves 64 bits"},
        {fill_list, LEAT_ETOOBIG,
         "sink (1/1): accumulator \"it\": a list of more than 16777216 bytes"},
        {huge_text, LEAT_ETOOBIG,
         "sink (1/1): accumulator \"it\": a list of more than 16777216 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat_env *env = env_with(cases[i].fn, 1, 1);
        leat_accumulators *all = NULL;
        leat_err err = leat_execute_with_accumulators(env, &all);
        cr_assert(err == cases[i].err, "case %zu: %s", i, leat_err_name(err));
        cr_assert_str_eq(fault_of(env), cases[i].failure);
        cr_assert_null(all, "a job that failed has no accumulators");
        leat_env_destroy(&env);
    }
}

static int sum_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 1;
    make(ctx, LEAT_ACCUMULATOR_SUM_I64);
    return 0;
}

static int list_sink(leat_ctx *ctx, const void *in)
{
    make(ctx, LEAT_ACCUMULATOR_LIST_I64);
    return 0;
}

Test(accumulators, a_name_has_one_kind_in_all_operators)
{
    leat_env *env = new_env("1");
    leat_stream *first = leat_name(leat_map(leat_sequence(env, 1, 1), sum_map, NUMBER), "first");
    leat_name(leat_sink(first, list_sink), "second");
    cr_assert(leat_execute(env) == LEAT_EEXIST);
    cr_assert_str_eq(fault_of(env),
                     "second (1/1): accumulator \"it\" is of another kind in \"first\"");
    leat_env_destroy(&env);
}

Test(accumulators, adding_to_null_is_refused)
{
    cr_assert(leat_accumulator_add_i64(NULL, 1) == LEAT_EINVAL);
    cr_assert(leat_accumulator_add_f64(NULL, 1) == LEAT_EINVAL);
    cr_assert(leat_accumulator_add_str(NULL, (leat_str){0}) == LEAT_EINVAL);
}

// --- jobs that fail, memory that runs out ---

static int fail_at_3(leat_ctx *ctx, const void *in)
{
    leat_accumulator *a = leat_ctx_accumulator(ctx, "seen", LEAT_ACCUMULATOR_SUM_I64);
    leat_accumulator_add_i64(a, 1);
    return *(const int64_t *)in == 3 ? leat_fail(ctx, "three") : 0;
}

// Counts allocations down on one thread; the one at 0 and those after it fail.
static _Thread_local int64_t allocations_left = INT64_MAX;

static void *counted_allocate(void *user, size_t size_bytes)
{
    return allocations_left-- > 0 ? malloc(size_bytes) : NULL;
}

static void *counted_reallocate(void *user, void *ptr, size_t size_bytes)
{
    return allocations_left-- > 0 ? realloc(ptr, size_bytes) : NULL;
}

static void counted_release(void *user, void *ptr)
{
    free(ptr);
}

Test(accumulators, of_a_job_that_failed_can_be_read_from_the_job)
{
    leat_env *env = env_with(fail_at_3, 10, 1);
    leat_runtime *runtime;
    leat_job *job;
    leat_accumulators *all;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
    cr_assert(leat_job_wait(job, -1) == LEAT_EUSER);
    cr_assert(leat_job_accumulators(job, &all) == LEAT_OK);
    cr_assert(find(all, "seen", LEAT_ACCUMULATOR_SUM_I64, 3).i64 == 3);
    leat_accumulators_destroy(&all);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
}

Test(accumulators, merging_survives_every_lack_of_memory)
{
    static const leat_allocator allocator = {counted_allocate, counted_reallocate, counted_release,
                                             NULL};
    leat_env_options options = {.allocator = &allocator};
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    leat_sink(leat_sequence(env, 1, 40), every_kind);
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
    cr_assert(leat_job_wait(job, -1) == LEAT_OK);
    leat_accumulators *all = NULL;
    int64_t needed = 0;
    leat_err err = LEAT_ENOMEM;
    for (; err; needed++) {
        cr_assert_null(all);
        allocations_left = needed;
        err = leat_job_accumulators(job, &all);
        allocations_left = INT64_MAX;
        cr_assert(err == LEAT_OK || err == LEAT_ENOMEM);
    }
    cr_assert(needed > 5 && leat_accumulators_count(all) == 11);
    // They outlive what they came from.
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    check_lists(all);
    leat_accumulators_destroy(&all);
}

// The first allocation makes the accumulator, the second its first piece of list.
static int starved(leat_ctx *ctx, const void *in)
{
    allocations_left = 1;
    leat_accumulator *a = make(ctx, LEAT_ACCUMULATOR_LIST_I64);
    leat_err err = leat_accumulator_add_i64(a, 1);
    allocations_left = INT64_MAX;
    return a && err == LEAT_ENOMEM ? 0 : leat_fail(ctx, "there was memory");
}

Test(accumulators, a_list_without_memory_fails_the_job)
{
    static const leat_allocator allocator = {counted_allocate, counted_reallocate, counted_release,
                                             NULL};
    leat_env_options options = {.allocator = &allocator};
    leat_env *env;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    leat_name(leat_sink(leat_sequence(env, 1, 1), starved), "starved");
    cr_assert(leat_execute(env) == LEAT_ENOMEM);
    cr_assert_str_eq(fault_of(env), "starved (1/1): accumulator \"it\": out of memory");
    leat_env_destroy(&env);
}
