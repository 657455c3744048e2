// SPDX-License-Identifier: Apache-2.0
#include <semaphore.h>

#include "jobs.h"

enum { OPERATORS = 3 };

// items → t1 → t2 → t3 in one chain, t3 being a sink, with one record. Returns what leat_execute
// says; `why` gets the first fault.
static leat_err run_chain(const logger_config *configs, char *why, size_t why_size)
{
    clear_log();
    leat_env *env = new_env("1");
    int64_t one = 1;
    leat_stream *s = leat_name(leat_from_items(env, NUMBER, &one, 1), "items");
    for (int i = 0; i < OPERATORS; i++) {
        leat_factory factory = {logger_create, &configs[i]};
        char name[8];
        snprintf(name, sizeof name, "t%s", configs[i].name);
        s = i + 1 < OPERATORS ? leat_transform(s, name, &factory, NUMBER)
                              : leat_transform_sink(s, name, &factory);
    }
    leat_err err = leat_execute(env);
    snprintf(why, why_size, "%s", fault_of(env));
    leat_env_destroy(&env);
    return err;
}

static void fill(logger_config *configs)
{
    static const char *const names[] = {"1", "2", "3"};
    for (int i = 0; i < OPERATORS; i++)
        configs[i] = (logger_config){.name = names[i]};
}

TestSuite(chain, .timeout = 60);

Test(chain, opens_from_the_tail_and_ends_from_the_head)
{
    logger_config configs[OPERATORS];
    char why[1200];
    fill(configs);
    cr_assert(run_chain(configs, why, sizeof why) == LEAT_OK, "%s", why);
    cr_assert_str_eq(log_text, "c1 c2 c3 o3 o2 o1 e1 e2 e3 w1 w2 w3 E1 F1 E2 F2 E3 F3 C1 C2 C3 "
                               "d1 d2 d3");
}

// The log when the second operator fails at a step.
static const struct {
    char step;
    const char *log;
    const char *message; // when the operator does not say why itself
} failures[] = {
    {'c', "c1 c2 d1", "t2 (1/1): the operator could not be created: input or output failed"},
    {'o', "c1 c2 c3 o3 o2 d1 d2 d3", "t2 (1/1): open failed: input or output failed"},
    // The runtime sees only that the chain has failed.
    {'e', "c1 c2 c3 o3 o2 o1 e1 e2 d1 d2 d3",
     "items -> t1 -> t2 -> t3 (1/1): input or output failed"},
    {'w', "c1 c2 c3 o3 o2 o1 e1 e2 e3 w1 w2 d1 d2 d3",
     "items -> t1 -> t2 -> t3 (1/1): input or output failed"},
    {'E', "c1 c2 c3 o3 o2 o1 e1 e2 e3 w1 w2 w3 E1 F1 E2 d1 d2 d3",
     "t2 (1/1): end_input failed: input or output failed"},
    {'F', "c1 c2 c3 o3 o2 o1 e1 e2 e3 w1 w2 w3 E1 F1 E2 F2 d1 d2 d3",
     "t2 (1/1): finish failed: input or output failed"},
    {'C', "c1 c2 c3 o3 o2 o1 e1 e2 e3 w1 w2 w3 E1 F1 E2 F2 E3 F3 C1 C2 d1 d2 d3",
     "t2 (1/1): close failed: input or output failed"},
};

Test(chain, whatever_fails_each_operator_that_was_made_is_disposed_once)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        for (int says_why = 0; says_why < 2; says_why++) {
            logger_config configs[OPERATORS];
            char why[1200];
            fill(configs);
            configs[1].fails_at = failures[i].step;
            configs[1].says_why = says_why;
            configs[1].error = LEAT_EIO;
            leat_err err = run_chain(configs, why, sizeof why);
            cr_assert(err == (says_why ? LEAT_EUSER : LEAT_EIO), "%c: %s", failures[i].step,
                      leat_err_name(err));
            cr_assert_str_eq(log_text, failures[i].log);
            cr_assert_str_eq(why, says_why ? "t2 (1/1): no luck" : failures[i].message);
        }
}

Test(chain, a_failure_that_a_hook_does_not_return_is_one_all_the_same)
{
    const char steps[] = "oewEFC";
    for (const char *step = steps; *step; step++) {
        logger_config configs[OPERATORS];
        char why[1200];
        fill(configs);
        configs[0].fails_at = *step;
        configs[0].says_why = true;
        configs[0].error = LEAT_OK;
        cr_assert(run_chain(configs, why, sizeof why) == LEAT_EUSER, "%c", *step);
        cr_assert_str_eq(why, "t1 (1/1): no luck");
        cr_assert_str_eq(log_text + strlen(log_text) - 8, "d1 d2 d3");
    }
}

Test(chain, an_operator_that_says_cancelled_fails_its_job)
{
    const char steps[] = "coewEFC";
    for (const char *step = steps; *step; step++) {
        logger_config configs[OPERATORS];
        char why[1200];
        fill(configs);
        configs[2].fails_at = *step;
        configs[2].error = LEAT_ECANCELLED;
        cr_assert(run_chain(configs, why, sizeof why) == LEAT_ECANCELLED, "%c", *step);
        cr_assert(strstr(why, "(1/1): cancelled"), "%s", why);
    }
}

// --- trees ---

enum { SINKS = 4, RECORDS = 1000 };
static _Atomic int64_t sums[SINKS], counts[SINKS];

static int sum_up(leat_ctx *ctx, const void *in)
{
    intptr_t i = (intptr_t)leat_ctx_user_data(ctx);
    sums[i] += *(const int64_t *)in;
    counts[i]++;
    return 0;
}

static int add_one(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in + 1;
    return 0;
}

// sequence → map → (sink 0, sink 1, map → (sink 2, sink 3)), in one chain or each on its own.
Test(chain, each_consumer_of_a_tree_sees_each_record)
{
    for (int chained = 0; chained < 2; chained++)
        for (uint32_t parallelism = 1; parallelism <= 3; parallelism += 2) {
            leat_env *env = new_env("2");
            leat_env_set_chaining(env, chained);
            leat_env_set_parallelism(env, parallelism);
            leat_stream *s = leat_map(leat_sequence(env, 1, RECORDS), add_one, NUMBER);
            leat_stream *deeper = leat_map(s, add_one, NUMBER);
            for (intptr_t i = 0; i < SINKS; i++) {
                sums[i] = counts[i] = 0;
                leat_user_data(leat_sink(i < 2 ? s : deeper, sum_up), (void *)i);
            }
            cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
            for (int i = 0; i < SINKS; i++) {
                cr_assert(counts[i] == RECORDS);
                // 1 + … + 1000, and 1 or 2 more for each.
                cr_assert(sums[i] == 500500 + RECORDS * (i < 2 ? 1 : 2));
            }
            leat_env_destroy(&env);
        }
}

Test(chain, watermarks_and_ends_reach_all_branches)
{
    static const logger_config configs[] = {{.name = "1"}, {.name = "2"}, {.name = "3"}};
    clear_log();
    leat_env *env = new_env("1");
    int64_t one = 1;
    leat_factory factories[3];
    for (int i = 0; i < 3; i++)
        factories[i] = (leat_factory){logger_create, &configs[i]};
    leat_stream *s =
        leat_transform(leat_from_items(env, NUMBER, &one, 1), "t1", &factories[0], NUMBER);
    leat_transform_sink(s, "t2", &factories[1]);
    leat_transform_sink(s, "t3", &factories[2]);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
    cr_assert_str_eq(log_text, "c1 c2 c3 o3 o2 o1 e1 e2 e3 w1 w2 w3 E1 F1 E2 F2 E3 F3 C1 C2 C3 "
                               "d1 d2 d3");
}

// --- cancelling ---

static _Atomic int polls;

static leat_err poll_nothing(leat_operator *self, leat_out *out, uint32_t max, leat_poll *state)
{
    polls++;
    *state = LEAT_POLL_MORE;
    return LEAT_OK;
}

static leat_err endless_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static leat_operator_ops ops;
    leat_err err = logger_create(factory, ctx, op);
    ops = logger_ops;
    ops.element = NULL;
    ops.poll = poll_nothing;
    (*op)->ops = &ops;
    return err;
}

Test(chain, cancelling_only_disposes)
{
    static const logger_config configs[] = {{.name = "1"}, {.name = "2"}};
    clear_log();
    leat_env *env = new_env("1");
    leat_factory source = {endless_create, &configs[0]}, sink = {logger_create, &configs[1]};
    leat_transform_sink(leat_source(env, "source", &source, NUMBER), "sink", &sink);
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
    while (polls == 0)
        cr_assert(leat_job_wait(job, 1) == LEAT_EAGAIN);
    leat_job_cancel(job);
    cr_assert(leat_job_wait(job, -1) == LEAT_ECANCELLED);
    cr_assert_str_eq(log_text, "c1 c2 o2 o1 d1 d2");
    cr_assert(leat_job_get_state(job) == LEAT_JOB_CANCELED);
    cr_assert_str_eq(leat_job_failure(job), "");
    leat_job_destroy(&job);
    cr_assert_null(job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    cr_assert_str_eq(log_text, "c1 c2 o2 o1 d1 d2");
}

// --- flushing ---

static sem_t flushed;

static leat_err flush_and_tell(leat_operator *self)
{
    sem_post(&flushed);
    return LEAT_OK;
}

static leat_err flusher_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static leat_operator_ops ops;
    leat_err err = logger_create(factory, ctx, op);
    ops = logger_ops;
    ops.flush = flush_and_tell;
    (*op)->ops = &ops;
    return err;
}

// The task never runs out of input, so only the timer can ask for the flush; an exchange with a
// much longer timeout does not slow it down.
Test(chain, flush_hooks_are_called_at_the_jobs_buffer_timeout)
{
    static const logger_config configs[] = {{.name = "1"}, {.name = "2"}};
    sem_init(&flushed, 0, 0);
    leat_env *env = new_env("1");
    leat_env_set_buffer_timeout(env, 5);
    leat_stream *s = leat_map(leat_rebalance(leat_sequence(env, 1, 9)), add_one, NUMBER);
    leat_buffer_timeout(s, 86400000);
    leat_discard(leat_rebalance(s));
    leat_factory source = {endless_create, &configs[0]}, sink = {flusher_create, &configs[1]};
    leat_transform_sink(leat_source(env, "source", &source, NUMBER), "sink", &sink);
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK, "%s", fault_of(env));
    for (int i = 0; i < 3; i++)
        while (sem_wait(&flushed) != 0)
            ;
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
}
