// SPDX-License-Identifier: Apache-2.0
// Much output from one call, and records of all sizes, through pools of the smallest size.
#include "jobs.h"

enum { MILLION = 1000000 };

TestSuite(emission, .timeout = 300);

static _Atomic int64_t total, records;

static int sum_fn(leat_ctx *ctx, const void *in)
{
    total += *(const int64_t *)in;
    records++;
    return 0;
}

static leat_env *tiny_env(const char *workers)
{
    total = records = 0;
    leat_env *env = new_env(workers);
    leat_env_set(env, "memory.network", "64 KiB");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    return env;
}

static void check_million(leat_env *env)
{
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
    cr_assert(records == MILLION);
    cr_assert(total == (int64_t)MILLION * (MILLION - 1) / 2);
}

static leat_err emit_million(leat_out *out)
{
    for (int64_t i = 0; i < MILLION; i++) {
        leat_err err = leat_collect(out, &i);
        if (err)
            return err;
    }
    return LEAT_OK;
}

// --- operators that emit at the end ---

typedef struct emitter {
    leat_operator base;
    int64_t next;
} emitter;

static leat_err drop(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_OK;
}

static leat_err emit_at_end(leat_operator *self, leat_out *out)
{
    return emit_million(out);
}

// As long as output is available, at least one record a call.
static leat_err emit_slices(leat_operator *self, leat_out *out)
{
    emitter *e = (emitter *)self;
    while (e->next < MILLION) {
        int64_t value = e->next++;
        leat_err err = leat_collect(out, &value);
        if (err)
            return err;
        if (!leat_out_available(self->ctx))
            return LEAT_EAGAIN;
    }
    return LEAT_OK;
}

static void free_emitter(leat_operator *self)
{
    free(self);
}

static const leat_operator_ops emitters[] = {
    {.kind = "end", .element = drop, .end_input = emit_at_end, .dispose = free_emitter},
    {.kind = "finish", .element = drop, .finish = emit_at_end, .dispose = free_emitter},
    {.kind = "slices", .element = drop, .finish = emit_slices, .dispose = free_emitter},
};

static leat_err create_emitter(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    emitter *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = factory->config;
    *op = &made->base;
    return LEAT_OK;
}

Test(emission, end_of_input_and_finish_may_emit_a_million_records)
{
    for (size_t i = 0; i < sizeof emitters / sizeof *emitters; i++)
        for (int workers = 1; workers <= 2; workers++) {
            leat_env *env = tiny_env(workers == 1 ? "1" : "2");
            leat_factory factory = {create_emitter, &emitters[i]};
            leat_stream *s = leat_transform(leat_sequence(env, 0, 9), "emitter", &factory, NUMBER);
            leat_parallelism(leat_sink(leat_rebalance(s), sum_fn), 2);
            check_million(env);
        }
}

static int million_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    return emit_million(out) ? -1 : 0;
}

Test(emission, a_flat_map_may_emit_a_million_records_for_one)
{
    for (int workers = 1; workers <= 2; workers++) {
        leat_env *env = tiny_env(workers == 1 ? "1" : "2");
        leat_stream *s =
            leat_flat_map(leat_rebalance(leat_sequence(env, 0, 0)), million_fn, NUMBER);
        leat_parallelism(leat_sink(leat_rebalance(s), sum_fn), 2);
        check_million(env);
    }
}

Test(emission, two_flat_maps_that_wait_for_each_others_worker)
{
    // Both wait in the middle of a record, for a consumer that both feed, on one worker.
    leat_env *env = tiny_env("1");
    leat_stream *both[2];
    for (int i = 0; i < 2; i++)
        both[i] = leat_flat_map(leat_rebalance(leat_sequence(env, 0, 0)), million_fn, NUMBER);
    leat_sink(leat_rebalance(leat_union(both, 2)), sum_fn);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
    cr_assert(records == 2 * MILLION);
    cr_assert(total == (int64_t)MILLION * (MILLION - 1));
}

// --- sizes ---

static char *big_text;
// clang-format off
static const size_t sizes[] = {
    0, 1, 900, 1000, 1010, 1015, 1016, 1017, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 2040,
    2048, 5000, 65536, 70000, 200000, 1000000, 5000000,
};
// clang-format on
enum { SIZES = sizeof sizes / sizeof *sizes };

static int to_text(leat_ctx *ctx, const void *in, void *out)
{
    *(leat_str *)out = (leat_str){big_text, (uint32_t)sizes[*(const int64_t *)in % SIZES]};
    return 0;
}

static int check_text(leat_ctx *ctx, const void *in)
{
    const leat_str *text = in;
    if (memcmp(text->data ? text->data : "", big_text, text->size) != 0)
        return leat_fail(ctx, "the bytes are wrong");
    total += text->size;
    records++;
    return 0;
}

static void make_text(void)
{
    size_t most = sizes[SIZES - 1];
    big_text = malloc(most);
    cr_assert_not_null(big_text);
    for (size_t i = 0; i < most; i++)
        big_text[i] = (char)('a' + i % 23);
}

static leat_env *text_env(const char *workers, int64_t count)
{
    leat_env *env = tiny_env(workers);
    leat_stream *s =
        leat_map(leat_sequence(env, 0, count - 1), to_text, leat_type_scalar(LEAT_STR));
    leat_parallelism(leat_sink(leat_rebalance(leat_name(s, "texts")), check_text), 2);
    return env;
}

Test(emission, records_larger_than_a_segment_and_than_the_pool_go_through)
{
    make_text();
    int64_t sum = 0;
    for (int i = 0; i < SIZES; i++)
        sum += (int64_t)sizes[i];
    for (int workers = 1; workers <= 2; workers++) {
        leat_env *env = text_env(workers == 1 ? "1" : "2", 2 * SIZES);
        cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
        cr_assert(records == 2 * SIZES && total == 2 * sum);
        leat_env_destroy(&env);
    }
    free(big_text);
}

Test(emission, a_record_above_the_limit_is_refused_with_its_size)
{
    make_text();
    leat_env *env = text_env("1", SIZES);
    leat_env_set(env, "record.max-size", "100000");
    cr_assert(leat_execute(env) == LEAT_ETOOBIG);
    const char *why = fault_of(env);
    cr_assert(strncmp(why, "texts (1/1): ", 13) == 0, "%s", why);
    // 200000 bytes and the header of a string.
    cr_assert(strstr(why, "200005") && strstr(why, "100000"), "%s", why);
    leat_env_destroy(&env);
    free(big_text);
}
