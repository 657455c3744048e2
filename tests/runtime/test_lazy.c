// SPDX-License-Identifier: Apache-2.0
// Nothing happens before a job runs, and then on its threads.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

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

Test(lazy, operators_are_made_on_worker_threads)
{
    leat_env *env = build();
    cr_assert(leat_execute(env) == LEAT_OK);
    cr_expect(created == 2 && !on_builder);
    leat_env_destroy(&env);
}
