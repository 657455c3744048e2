// SPDX-License-Identifier: Apache-2.0
// What user functions see and set: timestamps, indices, scratch memory.
#include "jobs.h"

TestSuite(context, .timeout = 60);

static int64_t expected_timestamp(int64_t number)
{
    return number * 10 - 50;
}

// Even numbers have a timestamp, odd ones have none.
static int check_time(leat_ctx *ctx, int64_t number)
{
    int64_t timestamp = 0;
    bool present = leat_ctx_timestamp(ctx, &timestamp);
    bool right = number % 2 ? !present && timestamp == INT64_MIN
                            : present && timestamp == expected_timestamp(number);
    return right
               ? 0
               : leat_fail(ctx, "%lld has timestamp %lld", (long long)number, (long long)timestamp);
}

static int stamp_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    int64_t number = *(const int64_t *)in, timestamp;
    if (leat_ctx_timestamp(ctx, &timestamp))
        return leat_fail(ctx, "the source sets no timestamps");
    leat_err err = number % 2 ? leat_collect(out, in)
                              : leat_collect_at(ctx, out, in, expected_timestamp(number));
    // What a record carried does not stay behind.
    if (leat_ctx_timestamp(ctx, &timestamp))
        return leat_fail(ctx, "the timestamp was not taken back");
    return err ? -1 : 0;
}

static int timed_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    return check_time(ctx, *(const int64_t *)in);
}

static int timed_filter(leat_ctx *ctx, const void *in)
{
    return check_time(ctx, *(const int64_t *)in) ? -1 : 1;
}

static _Atomic int64_t seen;

static int timed_sink(leat_ctx *ctx, const void *in)
{
    seen++;
    return check_time(ctx, *(const int64_t *)in);
}

Test(context, timestamps_go_with_their_records_through_chains_and_exchanges)
{
    for (int chained = 0; chained < 2; chained++) {
        seen = 0;
        leat_env *env = new_env("2");
        leat_env_set_chaining(env, chained);
        leat_stream *s = leat_flat_map(leat_sequence(env, 0, 4999), stamp_fn, NUMBER);
        s = leat_filter(leat_map(s, timed_map, NUMBER), timed_filter);
        s = leat_parallelism(leat_map(leat_rebalance(s), timed_map, NUMBER), 3);
        leat_sink(leat_shuffle(s), timed_sink);
        cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
        cr_assert(seen == 5000);
        leat_env_destroy(&env);
    }
}

// --- emitting when a watermark comes ---

static leat_err swallow(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_OK;
}

static leat_err emit_on_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    leat_err err = leat_collect(out, &watermark);
    return err ? err : leat_emit_watermark(out, watermark);
}

static void free_operator(leat_operator *self)
{
    free(self);
}

static const leat_operator_ops on_watermark = {.kind = "on watermark",
                                               .element = swallow,
                                               .watermark = emit_on_watermark,
                                               .dispose = free_operator};

static leat_err create_simple(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    leat_operator *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->ops = factory->config;
    *op = made;
    return LEAT_OK;
}

static int untimed_sink(leat_ctx *ctx, const void *in)
{
    int64_t timestamp;
    seen++;
    if (*(const int64_t *)in != LEAT_WATERMARK_MAX || leat_ctx_timestamp(ctx, &timestamp))
        return leat_fail(ctx, "a timestamp of somebody else's");
    return 0;
}

Test(context, what_a_watermark_causes_has_no_timestamp_of_an_earlier_record)
{
    seen = 0;
    leat_env *env = new_env("1");
    leat_factory factory = {create_simple, &on_watermark};
    // The last number is even, so it has a timestamp.
    leat_stream *s = leat_flat_map(leat_sequence(env, 0, 10), stamp_fn, NUMBER);
    s = leat_transform(leat_rebalance(s), "on watermark", &factory, NUMBER);
    leat_sink(s, untimed_sink);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    cr_assert(seen == 1);
    leat_env_destroy(&env);
}

// --- who and where ---

static _Atomic uint32_t subtasks_seen;
static int user_data;

static int who_sink(leat_ctx *ctx, const void *in)
{
    if (strcmp(leat_ctx_name(ctx), "who") != 0 || leat_ctx_parallelism(ctx) != 3 ||
        leat_ctx_max_parallelism(ctx) != 64 || leat_ctx_attempt(ctx) != 0 ||
        leat_ctx_subtask(ctx) >= 3 || leat_ctx_user_data(ctx) != &user_data ||
        leat_ctx_in_type(ctx) != NUMBER || leat_ctx_out_type(ctx) || leat_ctx_cancelled(ctx) ||
        !leat_ctx_allocator(ctx))
        return leat_fail(ctx, "wrong");
    atomic_fetch_or(&subtasks_seen, 1u << leat_ctx_subtask(ctx));
    return 0;
}

Test(context, a_function_knows_who_it_is)
{
    leat_env *env = new_env("2");
    leat_stream *s = leat_sink(leat_rebalance(leat_sequence(env, 0, 99)), who_sink);
    leat_user_data(leat_max_parallelism(leat_parallelism(leat_name(s, "who"), 3), 64), &user_data);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    cr_assert(subtasks_seen == 7);
    leat_env_destroy(&env);
}

static int scratch_map(leat_ctx *ctx, const void *in, void *out)
{
    int64_t number = *(const int64_t *)in;
    size_t size = 1 + (size_t)number % 5000;
    char *text = leat_ctx_scratch(ctx, size);
    if (!text)
        return leat_fail(ctx, "no scratch memory");
    memset(text, 'a' + (int)(number % 26), size);
    *(leat_str *)out = (leat_str){text, (uint32_t)size};
    return 0;
}

static int scratch_sink(leat_ctx *ctx, const void *in)
{
    const leat_str *text = in;
    seen++;
    for (uint32_t i = 0; i < text->size; i++)
        if (text->data[i] != text->data[0])
            return leat_fail(ctx, "scratch memory was used again too early");
    return 0;
}

Test(context, scratch_memory_lives_as_long_as_the_record)
{
    seen = 0;
    leat_env *env = new_env("1");
    leat_stream *s = leat_map(leat_sequence(env, 0, 9999), scratch_map, leat_type_scalar(LEAT_STR));
    leat_sink(s, scratch_sink);
    leat_sink(leat_rebalance(s), scratch_sink);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    cr_assert(seen == 20000);
    leat_env_destroy(&env);
}

// --- log lines ---

static char logged[300];

static void keep_line(void *user, leat_log_level level, const char *line)
{
    // The runtime's own lines, of the job's life, begin with the job's name.
    if (strncmp(line, "job: ", 5) != 0)
        snprintf(logged, sizeof logged, "%d %s", (int)level, line);
}

static int log_sink(leat_ctx *ctx, const void *in)
{
    leat_ctx_log(ctx, LEAT_LOG_DEBUG, "too fine");
    leat_ctx_log(ctx, LEAT_LOG_WARN, "number %d", 42);
    return 0;
}

Test(context, log_lines_name_operator_and_subtask)
{
    leat_env_options options = {.logger = {.level = LEAT_LOG_INFO, .write = keep_line}};
    leat_env *env;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    leat_name(leat_sink(leat_sequence(env, 0, 0), log_sink), "chatty");
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    char expected[100];
    snprintf(expected, sizeof expected, "%d chatty (1/1): number 42", LEAT_LOG_WARN);
    cr_assert_str_eq(logged, expected);
    leat_env_destroy(&env);
}
