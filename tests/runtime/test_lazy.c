// SPDX-License-Identifier: Apache-2.0
// Nothing happens before a job runs, and then on its threads.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"

static atomic_int created, opened, records;
static pthread_t builder;
static atomic_bool on_builder;

static leat_err pass(leat_operator *self, const void *record, leat_out *out)
{
    atomic_fetch_add(&records, 1);
    return leat_collect(out, record);
}

static void dispose(leat_operator *self)
{
    free(self);
}

static leat_err create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {.kind = "pass", .element = pass, .dispose = dispose};
    atomic_fetch_add(&created, 1);
    if (pthread_equal(pthread_self(), builder))
        atomic_store(&on_builder, true);
    *op = calloc(1, sizeof **op);
    if (!*op)
        return LEAT_ENOMEM;
    (*op)->ops = &ops;
    return LEAT_OK;
}

static int open_it(leat_ctx *ctx)
{
    atomic_fetch_add(&opened, 1);
    return 0;
}

static leat_env *build(void)
{
    leat_env *env = NULL;
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    builder = pthread_self();
    leat_factory factory = {.create = create};
    leat_stream *in = leat_parallelism(leat_sequence(env, 1, 10), 2);
    leat_stream *s = leat_transform(in, "pass", &factory, leat_type_scalar(LEAT_I64));
    leat_rich(leat_parallelism(s, 2), open_it, NULL);
    leat_parallelism(leat_discard(s), 2);
    return env;
}

Test(lazy, nothing_runs_before_execute)
{
    leat_env *env = build();
    char *plan = NULL;
    cr_assert(leat_env_check(env) == LEAT_OK);
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &plan) == LEAT_OK);
    leat_plan_free(env, plan);
    cr_expect(created == 0 && opened == 0 && records == 0);
    cr_assert(leat_execute(env) == LEAT_OK);
    cr_expect(created == 2 && opened == 2 && records == 10);
    leat_env_destroy(&env);
}

// --- runs that fail, and factories ---

static atomic_int failures_left;

static int fail_at_first(leat_ctx *ctx, const void *in)
{
    return atomic_fetch_sub(&failures_left, 1) > 0 ? leat_fail(ctx, "not this time") : 0;
}

Test(lazy, what_went_wrong_in_one_run_does_not_hinder_the_next)
{
    leat_env *env = NULL;
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    leat_sink(leat_sequence(env, 1, 3), fail_at_first);
    failures_left = 1;
    cr_expect(leat_execute(env) == LEAT_EUSER);
    cr_assert(leat_env_fault_count(env) == 1);
    cr_expect_str_eq(leat_env_fault(env, 0), "sink (1/1): not this time");
    cr_expect(leat_execute(env) == LEAT_OK);
    cr_expect(leat_env_fault_count(env) == 0);
    leat_env_destroy(&env);
}

// A runtime that is not as it was asked for is none.
Test(lazy, a_setting_that_was_refused_refuses_the_runtime)
{
    leat_env *env = NULL;
    leat_runtime *runtime = NULL;
    char why[200] = "";
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    leat_env_set(env, "wrkers", "1");
    cr_expect(leat_runtime_create(env, &runtime, why, sizeof why) == LEAT_ENOENT);
    cr_expect(!runtime && strstr(why, "wrkers") && strstr(why, "workers"), "%s", why);
    leat_env_destroy(&env);
}

static void keep_line(void *user, leat_log_level level, const char *line)
{
    snprintf(user, 200, "%s", line);
}

static int log_rudely(leat_ctx *ctx, const void *in)
{
    leat_ctx_log(ctx, LEAT_LOG_WARN, "a\nb\x1b[31m");
    return 0;
}

Test(lazy, a_log_line_is_one_line_whatever_is_logged)
{
    char line[200] = "";
    leat_env_options options = {.logger = {keep_line, line, LEAT_LOG_WARN}};
    leat_env *env = NULL;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    leat_sink(leat_sequence(env, 1, 1), log_rudely);
    cr_expect(leat_execute(env) == LEAT_OK);
    cr_expect_str_eq(line, "sink (1/1): a?b?[31m");
    leat_env_destroy(&env);
}

static leat_err create_lacking(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops nothing = {.kind = "nothing", .dispose = dispose};
    static const leat_operator_ops undying = {.kind = "undying", .element = pass};
    int how = *(const int *)factory->config;
    if (how == 0)
        return LEAT_OK;
    *op = calloc(1, sizeof **op);
    (*op)->ops = how == 1 ? NULL : how == 2 ? &nothing : &undying;
    if (how != 2) {
        // Nobody can dispose of it.
        static leat_operator kept;
        kept = **op;
        free(*op);
        *op = &kept;
    }
    return LEAT_OK;
}

Test(lazy, an_operator_without_what_it_needs_is_an_error_that_names_it)
{
    static const char *const expected[][3] = {
        {"its factory made no operator", "its factory made no operator",
         "its factory made no operator"},
        {"an operator with no table of hooks", "an operator with no table of hooks",
         "an operator with no table of hooks"},
        {"an operator with no element hook", "an operator with no poll hook",
         "an operator with no element_of hook"},
        {"an operator with no dispose hook", "an operator with no dispose hook",
         "an operator with no dispose hook"},
    };
    for (int how = 0; how < 4; how++)
        for (int place = 0; place < 3; place++) {
            leat_env *env = NULL;
            cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
            const leat_type *number = leat_type_scalar(LEAT_I64);
            leat_factory factory = {.create = create_lacking, .config = &how};
            leat_stream *in[] = {leat_sequence(env, 1, 3), leat_sequence(env, 1, 3)};
            leat_discard(place == 0   ? leat_transform(in[0], "lacking", &factory, number)
                         : place == 1 ? leat_source(env, "lacking", &factory, number)
                                      : leat_transform_inputs(in, 2, "lacking", &factory, number));
            cr_expect(leat_execute(env) == LEAT_EINVAL);
            const char *fault = leat_env_fault(env, 0);
            cr_expect(fault && strstr(fault, "lacking (1/1): ") &&
                          strstr(fault, expected[how][place]),
                      "%d %d: %s", how, place, fault);
            leat_env_destroy(&env);
        }
}

Test(lazy, operators_are_made_on_worker_threads)
{
    leat_env *env = build();
    cr_assert(leat_execute(env) == LEAT_OK);
    cr_expect(created == 2 && !on_builder);
    leat_env_destroy(&env);
}
