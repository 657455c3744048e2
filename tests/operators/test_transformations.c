// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "run.h"

typedef struct {
    int64_t number;
    leat_str text;
    int64_t pad[6];
} wide;
LEAT_RECORD(wide, LEAT_FIELD(number, LEAT_I64), LEAT_FIELD(text, LEAT_STR));

static int twice(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 2 * *(const int64_t *)in;
    return 0;
}

static int is_odd(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in & 1;
}

// Each number as often as it says.
static int repeat(leat_ctx *ctx, const void *in, leat_out *out)
{
    for (int64_t i = 0; i < *(const int64_t *)in; i++)
        leat_collect(out, in);
    return 0;
}

// Fails unless the output is zeroed; dirties all of it.
static int widen(leat_ctx *ctx, const void *in, void *out)
{
    wide *w = out;
    char *text = leat_ctx_scratch(ctx, 32);
    for (size_t i = 0; i < sizeof *w; i++)
        if (((const char *)out)[i])
            return leat_fail(ctx, "byte %zu is not zero", i);
    memset(w, 0xff, sizeof *w);
    w->number = *(const int64_t *)in;
    w->text = (leat_str){text, (size_t)snprintf(text, 32, "n%d", (int)w->number)};
    return 0;
}

Test(transformations, map_filter_and_flat_map_do_what_a_loop_does)
{
    for (uint32_t p = 1; p <= 3; p++)
        for (int chained = 0; chained < 2; chained++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_env_set_chaining(env, chained);
            leat_stream *odd = leat_filter(leat_sequence(env, -3, 5), is_odd);
            leat_stream *repeated = leat_flat_map(odd, repeat, leat_type_scalar(LEAT_I64));
            leat_parallelism(leat_print(leat_map(repeated, twice, leat_type_scalar(LEAT_I64))), 1);
            run_expect_lines(&r, "2\n6\n6\n6\n10\n10\n10\n10\n10\n", "numbers");
        }
}

Test(transformations, the_output_of_map_is_zeroed_before_each_call)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_print(leat_map(leat_sequence(env, 1, 3), widen, LEAT_TYPE(wide)));
    run_expect_lines(&r, "1\tn1\n2\tn2\n3\tn3\n", "wide");
}

static int fail_plainly(leat_ctx *ctx, const void *in, void *out)
{
    return *(const int64_t *)in == 4 ? 17 : 0;
}

static int fail_with_words(leat_ctx *ctx, const void *in, leat_out *out)
{
    return *(const int64_t *)in == 4 ? leat_fail(ctx, "four is too much") : 0;
}

static int fail_filter(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == 4 ? -5 : 1;
}

static int fail_sink(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == 4 ? 3 : 0;
}

Test(transformations, what_a_function_returns_fails_the_job_and_names_the_operator)
{
    static const char *const expected[] = {"17", "four is too much", "-5", "3"};
    for (int i = 0; i < 4; i++) {
        run r;
        const leat_type *type = leat_type_scalar(LEAT_I64);
        leat_stream *numbers = leat_sequence(run_begin(&r, 1), 1, 10);
        leat_stream *failing = i == 0   ? leat_map(numbers, fail_plainly, type)
                               : i == 1 ? leat_flat_map(numbers, fail_with_words, type)
                               : i == 2 ? leat_filter(numbers, fail_filter)
                                        : leat_sink(numbers, fail_sink);
        leat_name(failing, "breaks at four");
        if (i < 3)
            leat_discard(failing);
        cr_assert_eq(run_execute(&r), LEAT_EUSER, "%d: %s", i, r.failure);
        cr_assert(strstr(r.failure, expected[i]) && strstr(r.failure, "breaks at four"), "%s",
                  r.failure);
        run_end(&r);
    }
}

// An operator that counts and tells at the end of the input.
typedef struct counter {
    leat_operator base;
    int64_t seen;
} counter;

static leat_err counter_element(leat_operator *self, const void *record, leat_out *out)
{
    ((counter *)self)->seen++;
    return LEAT_OK;
}

static leat_err counter_end_input(leat_operator *self, leat_out *out)
{
    return leat_collect(out, &((counter *)self)->seen);
}

static void counter_dispose(leat_operator *self)
{
    free(self);
}

static leat_err counter_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {.kind = "counter",
                                          .element = counter_element,
                                          .end_input = counter_end_input,
                                          .dispose = counter_dispose};
    counter *c = calloc(1, sizeof *c);
    c->base.ops = &ops;
    *op = &c->base;
    return LEAT_OK;
}

Test(transformations, an_operator_of_the_users_own_takes_part)
{
    static const leat_factory factory = {.create = counter_create};
    run r;
    leat_stream *numbers = leat_sequence(run_begin(&r, 3), 1, 3000);
    leat_stream *counts = leat_transform(numbers, "count", &factory, leat_type_scalar(LEAT_I64));
    leat_parallelism(leat_print(counts), 1);
    run_expect_lines(&r, "1000\n1000\n1000\n", "a share of 1000 each");
}

// Every builder with each argument it refuses; an inert stream comes back and goes on.
Test(transformations, wrong_arguments_are_faults_and_never_null)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    const leat_type *type = leat_type_scalar(LEAT_I64);
    leat_stream *numbers = leat_sequence(env, 1, 2);
    leat_stream *keyed = leat_key_by(numbers, "");
    static const leat_factory none;
    leat_aggregate_fns no_add = {.add = NULL};
    leat_stream *streams[] = {
        leat_map(numbers, NULL, type),
        leat_map(numbers, twice, NULL),
        leat_flat_map(numbers, NULL, type),
        leat_flat_map(numbers, repeat, NULL),
        leat_filter(numbers, NULL),
        leat_sink(numbers, NULL),
        leat_reduce(keyed, NULL),
        leat_aggregate(keyed, NULL, type, type),
        leat_aggregate(keyed, &no_add, type, type),
        leat_transform(numbers, "t", NULL, type),
        leat_transform(numbers, "t", &none, type),
        leat_transform_sink(numbers, "t", &none),
        leat_source(env, "s", NULL, type),
        leat_from_items(env, NULL, NULL, 0),
        leat_from_items(env, type, NULL, 1),
        leat_read_text(env, NULL),
        leat_read_text(env, ""),
        leat_read_text_files(env, NULL, 0),
    };
    enum { COUNT = sizeof streams / sizeof *streams };
    cr_assert_eq(leat_env_fault_count(env), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert(streams[i] != NULL);
        cr_assert(leat_print(leat_filter(streams[i], is_odd)) != NULL);
    }
    cr_assert_eq(leat_env_fault_count(env), COUNT, "what follows a fault adds none");
    cr_assert(strstr(leat_env_fault(env, 0), "leat_map") != NULL, "%s", leat_env_fault(env, 0));
    // Without an environment nothing can be recorded.
    cr_assert(leat_map(NULL, twice, type) && leat_print(NULL) && leat_discard(NULL) &&
              leat_reduce(NULL, NULL) && leat_final_only(NULL) && leat_sequence(NULL, 1, 2) &&
              leat_read_text(NULL, "x") && leat_from_items(NULL, type, NULL, 0));
    run_end(&r);
}
