// SPDX-License-Identifier: Apache-2.0
#include "jobs.h"

// --- functions that fail ---

static bool says_why;
static int64_t victim = 5; // the record at which they fail

static int broken(leat_ctx *ctx, int64_t number)
{
    if (number != victim)
        return 0;
    return says_why ? leat_fail(ctx, "%s is no good", "five") : 7;
}

static int good_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

static int bad_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    return broken(ctx, *(const int64_t *)in);
}

static int bad_flat_map(leat_ctx *ctx, const void *in, leat_out *out)
{
    return broken(ctx, *(const int64_t *)in);
}

static int bad_filter(leat_ctx *ctx, const void *in)
{
    return broken(ctx, *(const int64_t *)in) ? -7 : 1;
}

static int bad_sink(leat_ctx *ctx, const void *in)
{
    return broken(ctx, *(const int64_t *)in);
}

static int bad_key(leat_ctx *ctx, const void *in, void *key)
{
    return broken(ctx, *(const int64_t *)in);
}

static int bad_reduce(leat_ctx *ctx, void *accumulator, const void *in)
{
    return broken(ctx, *(const int64_t *)in);
}

static int good_create(leat_ctx *ctx, void *accumulator)
{
    return 0;
}

static int bad_create(leat_ctx *ctx, void *accumulator)
{
    return broken(ctx, victim);
}

static int good_add(leat_ctx *ctx, void *accumulator, const void *in)
{
    *(int64_t *)accumulator = victim;
    return 0;
}

static int bad_result(leat_ctx *ctx, const void *accumulator, void *out)
{
    return broken(ctx, *(const int64_t *)accumulator);
}

typedef leat_stream *(*build_fn)(leat_stream *in);

static leat_stream *with_map(leat_stream *in)
{
    return leat_map(in, bad_map, NUMBER);
}
static leat_stream *with_flat_map(leat_stream *in)
{
    return leat_flat_map(in, bad_flat_map, NUMBER);
}
static leat_stream *with_filter(leat_stream *in)
{
    return leat_filter(in, bad_filter);
}
static leat_stream *with_aggregate(leat_stream *in, const leat_aggregate_fns *fns)
{
    return leat_aggregate(leat_key_by(in, ""), fns, NUMBER, NUMBER);
}
static leat_stream *with_create(leat_stream *in)
{
    return with_aggregate(in, &(leat_aggregate_fns){.create = bad_create, .add = good_add});
}
static leat_stream *with_add(leat_stream *in)
{
    return with_aggregate(in, &(leat_aggregate_fns){.create = good_create, .add = bad_reduce});
}
static leat_stream *with_result(leat_stream *in)
{
    return with_aggregate(in, &(leat_aggregate_fns){.add = good_add, .result = bad_result});
}

static const struct {
    build_fn build;
    const char *says;
} cases[] = {
    {with_map, "the map function returned 7"},
    {with_flat_map, "the flat_map function returned 7"},
    {with_filter, "the filter function returned -7"},
    {with_create, " function returned 7"},
    {with_add, " function returned 7"},
    {with_result, " function returned 7"},
};

TestSuite(failure, .timeout = 120);

static leat_err run_and_free(leat_env *env, char *why, size_t why_size)
{
    leat_err err = leat_execute(env);
    snprintf(why, why_size, "%s", fault_of(env));
    leat_env_destroy(&env);
    return err;
}

Test(failure, a_function_of_each_kind_fails_the_job_by_name_subtask_and_message)
{
    char why[1200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int why_too = 0; why_too < 2; why_too++)
            for (int chained = 0; chained < 2; chained++) {
                says_why = why_too;
                leat_env *env = new_env("2");
                leat_env_set_chaining(env, chained);
                leat_discard(leat_name(cases[i].build(leat_sequence(env, 0, 9)), "victim"));
                cr_assert(run_and_free(env, why, sizeof why) == LEAT_EUSER);
                cr_assert(strncmp(why, "victim (1/1): ", 14) == 0, "%zu: %s", i, why);
                if (why_too)
                    cr_assert_str_eq(why + 14, "five is no good");
                else
                    cr_assert(strstr(why, cases[i].says), "%zu: %s", i, why);
            }
}

Test(failure, sinks_reduces_and_key_functions_fail_the_job_too)
{
    char why[1200];
    says_why = false;
    leat_env *env = new_env("1");
    leat_name(leat_sink(leat_sequence(env, 0, 9), bad_sink), "victim");
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EUSER);
    cr_assert_str_eq(why, "victim (1/1): the sink function returned 7");

    env = new_env("1");
    int64_t twice[] = {5, 5};
    leat_stream *items = leat_from_items(env, NUMBER, twice, 2);
    leat_discard(leat_name(leat_reduce(leat_key_by(items, ""), bad_reduce), "victim"));
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EUSER);
    cr_assert_str_eq(why, "victim (1/1): the reduce function returned 7");

    // The key is first computed by whoever emits.
    says_why = true;
    env = new_env("1");
    leat_stream *numbers = leat_name(leat_sequence(env, 0, 9), "numbers");
    leat_discard(leat_reduce(leat_key_by_fn(numbers, bad_key, NUMBER), bad_reduce));
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EUSER);
    cr_assert_str_eq(why, "numbers (1/1): five is no good");
}

Test(failure, the_subtask_that_failed_is_named)
{
    says_why = true;
    char why[1200];
    leat_env *env = new_env("2");
    // Shares of 0 … 8 for three subtasks: 5 is in the second.
    leat_stream *s = leat_parallelism(leat_sequence(env, 0, 8), 3);
    leat_sink(leat_name(leat_parallelism(leat_map(s, bad_map, NUMBER), 3), "victim"), bad_sink);
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EUSER);
    cr_assert_str_eq(why, "victim (2/3): five is no good");
}

static int always_bad(leat_ctx *ctx, const void *in)
{
    return leat_fail(ctx, "from %u", leat_ctx_subtask(ctx));
}

Test(failure, the_first_failure_wins_and_stays)
{
    for (int round = 0; round < 50; round++) {
        leat_env *env = new_env("2");
        leat_env_set_parallelism(env, 4);
        leat_name(leat_sink(leat_rebalance(leat_sequence(env, 0, 9999)), always_bad), "victim");
        leat_runtime *runtime;
        leat_job *job;
        cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
        cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
        cr_assert(leat_job_wait(job, -1) == LEAT_EUSER);
        cr_assert(leat_job_get_state(job) == LEAT_JOB_FAILED);
        unsigned number, of, from;
        cr_assert(sscanf(leat_job_failure(job), "victim (%u/%u): from %u", &number, &of, &from) ==
                  3);
        cr_assert(number == from + 1 && of == 4);
        // Cancelling a job that has failed changes nothing.
        leat_job_cancel(job);
        cr_assert(leat_job_get_state(job) == LEAT_JOB_FAILED);
        leat_job_destroy(&job);
        leat_runtime_destroy(&runtime);
        leat_env_destroy(&env);
    }
}

static int talkative(leat_ctx *ctx, const void *in)
{
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    return leat_fail(ctx, "%s", text);
}

Test(failure, a_long_message_is_cut)
{
    char why[6000];
    leat_env *env = new_env("1");
    leat_name(leat_sink(leat_sequence(env, 0, 9), talkative), "victim");
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EUSER);
    cr_assert(strncmp(why, "victim (1/1): xxx", 17) == 0);
    cr_assert(strlen(why) > 1000 && strlen(why) < 1200, "%zu", strlen(why));
}

// --- what a job may be refused for ---

Test(failure, a_job_without_enough_segments_is_refused_with_the_numbers)
{
    char why[1200];
    leat_env *env = new_env("1");
    leat_env_set(env, "memory.network", "64 KiB");
    leat_env_set(env, "memory.segment-size", "32 KiB");
    // Two producers with two channels each: a segment a channel, and one more, for each producer.
    leat_stream *s = leat_rebalance(leat_parallelism(leat_sequence(env, 0, 9), 2));
    leat_parallelism(leat_sink(s, bad_sink), 2);
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_ENOBUFS);
    cr_assert(strstr(why, "needs at least 6 memory segments of 32768 bytes"), "%s", why);
    cr_assert(strstr(why, "but only 2 of all 2 are free"), "%s", why);
}

Test(failure, memory_without_room_for_one_segment_is_refused_with_the_settings)
{
    char why[1200];
    leat_env *env = new_env("1");
    leat_env_set(env, "memory.network", "64 KiB");
    leat_env_set(env, "memory.segment-size", "1 MiB");
    leat_sink(leat_sequence(env, 0, 9), bad_sink);
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EINVAL);
    cr_assert(strstr(why, "memory.network") && strstr(why, "memory.segment-size"), "%s", why);
}

Test(failure, a_graph_without_operators_is_refused)
{
    char why[1200];
    leat_env *env = new_env("1");
    cr_assert(run_and_free(env, why, sizeof why) == LEAT_EGRAPH, "%s", why);
    cr_assert(why[0]);
}

// --- allocations that fail ---

typedef struct stingy {
    _Atomic int64_t until;  // calls that succeed
    bool for_good;          // or only the one call fails
    _Atomic int64_t living; // blocks
    _Atomic bool refused;
} stingy;

static bool refuses(stingy *s)
{
    int64_t left = atomic_fetch_sub(&s->until, 1);
    bool refused = left == 0 || (left < 0 && s->for_good);
    if (refused)
        s->refused = true;
    return refused;
}

static void *stingy_allocate(void *user, size_t size)
{
    stingy *s = user;
    void *block = refuses(s) ? NULL : malloc(size);
    s->living += block != NULL;
    return block;
}

static void *stingy_reallocate(void *user, void *ptr, size_t size)
{
    stingy *s = user;
    if (refuses(s))
        return NULL;
    void *block = realloc(ptr, size);
    s->living += block && !ptr;
    return block;
}

static void stingy_release(void *user, void *ptr)
{
    ((stingy *)user)->living -= ptr != NULL;
    free(ptr);
}

static int add_up(leat_ctx *ctx, void *accumulator, const void *in)
{
    return 0;
}

static int modulo(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = *(const int64_t *)in % 3;
    return 0;
}

static leat_err small_job(stingy *s, bool *told)
{
    leat_allocator allocator = {stingy_allocate, stingy_reallocate, stingy_release, s};
    leat_env_options options = {.allocator = &allocator};
    leat_env *env;
    leat_err err = leat_env_create(&options, &env);
    if (err) {
        *told = true;
        return err;
    }
    leat_env_set(env, "workers", "2");
    leat_env_set(env, "memory.network", "128 KiB");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_stream *numbers = leat_parallelism(leat_sequence(env, 0, 99), 2);
    leat_stream *keyed = leat_key_by_fn(leat_map(numbers, good_map, NUMBER), modulo, NUMBER);
    leat_stream *sums = leat_final_only(leat_reduce(keyed, add_up));
    leat_discard(leat_parallelism(sums, 2));
    leat_discard(leat_broadcast(leat_union((leat_stream *[]){sums, numbers}, 2)));
    err = leat_execute(env);
    *told = leat_env_fault_count(env) > 0;
    leat_env_destroy(&env);
    return err;
}

Test(failure, any_allocation_may_fail)
{
    for (int for_good = 0; for_good < 2; for_good++)
        for (int64_t n = 0;; n++) {
            stingy s = {.until = n, .for_good = for_good};
            bool told = false;
            leat_err err = small_job(&s, &told);
            cr_assert(s.living == 0, "allocation %lld: %lld blocks are left", (long long)n,
                      (long long)s.living);
            if (!s.refused) {
                cr_assert(err == LEAT_OK && n > 100);
                break;
            }
            // With a single failure the job may go on where it can do without.
            cr_assert(err == LEAT_ENOMEM || (err == LEAT_OK && !for_good), "allocation %lld: %s",
                      (long long)n, leat_err_name(err));
            cr_assert(told || err == LEAT_OK, "allocation %lld", (long long)n);
        }
}
