// SPDX-License-Identifier: Apache-2.0
#include "jobs.h"
#include "placed.h"
#include "runtime/context.h"

TestSuite(ask, .timeout = 120);

// A source that asks home for each number that it is to emit; home gives out each number once.

enum { NUMBERS = 500 };

typedef struct giver {
    leat_job *job;
    _Atomic int64_t next;
    _Atomic bool refuses, silent;
} giver;

typedef struct asker {
    leat_operator base;
    leati_answer answer;
    giver *giver; // of this process
} asker;

static _Atomic int64_t sum;
static _Atomic int made, ended_askers, kept_silent;
static _Atomic bool refuse, be_silent, ask_too_much;

static leat_err giver_create(leat_ctx *ctx, void **object)
{
    giver *g = calloc(1, sizeof *g);
    g->job = leati_ctx_job(ctx);
    made++;
    *object = g;
    return LEAT_OK;
}

static void giver_destroy(void *object)
{
    free(object);
}

static void giver_asked(void *object, uint32_t process, uint64_t token, const uint8_t *question,
                        size_t size)
{
    giver *g = object;
    if (be_silent) {
        kept_silent++;
        return;
    }
    if (refuse || size != 4 || memcmp(question, "next", 4) != 0) {
        leati_shared_answer(g->job, process, token, LEAT_EIO, NULL, 0);
        return;
    }
    int64_t number = atomic_fetch_add(&g->next, 1);
    leati_shared_answer(g->job, process, token, LEAT_OK, (const uint8_t *)&number, sizeof number);
}

static const leati_shared_ops giver_ops = {
    .create = giver_create, .destroy = giver_destroy, .asked = giver_asked};

static leat_err ask_again(asker *a, leat_poll *state)
{
    static uint8_t large[LEATI_QUESTION_MAX + 1];
    if (ask_too_much)
        return leati_ctx_ask(a->base.ctx, large, sizeof large, &a->answer);
    *state = LEAT_POLL_WAIT;
    leat_err err = leati_ctx_ask(a->base.ctx, (const uint8_t *)"next", 4, &a->answer);
    if (!err && leati_answer_get(&a->answer) == LEATI_ANSWER_PENDING)
        // A second one while the first is under way is refused.
        cr_assert(leati_ctx_ask(a->base.ctx, (const uint8_t *)"next", 4, &a->answer) ==
                      LEAT_ESTATE ||
                  leati_answer_get(&a->answer) != LEATI_ANSWER_PENDING);
    return err;
}

static leat_err asker_poll(leat_operator *self, leat_out *out, uint32_t most, leat_poll *state)
{
    asker *a = (asker *)self;
    switch (leati_answer_get(&a->answer)) {
    case LEATI_ANSWER_NONE:
        return ask_again(a, state);
    case LEATI_ANSWER_PENDING:
        *state = LEAT_POLL_WAIT;
        return LEAT_OK;
    case LEATI_ANSWER_FAILED:
        leat_fail(self->ctx, "home says: %s", leat_err_message(a->answer.err));
        return LEAT_EUSER;
    default:
        break;
    }
    int64_t number;
    cr_assert(a->answer.size == sizeof number);
    memcpy(&number, a->answer.bytes, sizeof number);
    leati_answer_reset(&a->answer);
    if (number >= NUMBERS) {
        ended_askers++;
        *state = LEAT_POLL_END;
        return LEAT_OK;
    }
    *state = LEAT_POLL_MORE;
    return leat_collect(out, &number);
}

static void asker_dispose(leat_operator *self)
{
    leati_answer_reset(&((asker *)self)->answer);
    free(self);
}

static leat_err asker_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "asker", .poll = asker_poll, .dispose = asker_dispose};
    asker *a = calloc(1, sizeof *a);
    a->base.ops = &ops;
    *op = &a->base;
    if (!leati_ctx_is_home(ctx))
        return LEAT_OK;
    void *object;
    return leati_ctx_shared(ctx, &giver_ops, &object);
}

static int add_up(leat_ctx *ctx, const void *in)
{
    sum += *(const int64_t *)in;
    return 0;
}

static void build(leat_env *env, void *user)
{
    static const leat_factory factory = {.create = asker_create};
    leat_env_set(env, "workers", "2");
    leat_stream *source = leat_source(env, "asker", &factory, NUMBER);
    leat_parallelism(source, 3);
    leat_parallelism(leat_sink(leat_rebalance(source), add_up), 2);
}

static void check_sum(void)
{
    cr_assert(sum == (int64_t)NUMBERS * (NUMBERS - 1) / 2);
    cr_assert(made == 1 && ended_askers == 3);
}

Test(ask, subtasks_in_other_processes_share_one_object_at_home)
{
    char why[1024];
    const uint32_t process_of[] = {0, 1, 2, 0, 1};
    leat_err err = placed_execute(3, process_of, build, NULL, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    check_sum();
}

Test(ask, questions_wait_for_an_object_that_is_not_there_yet)
{
    char why[1024];
    // Home starts last.
    const uint32_t process_of[] = {2, 1, 0, 0, 1};
    leat_err err = placed_execute(3, process_of, build, NULL, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    check_sum();
}

Test(ask, in_a_job_of_one_process_everybody_is_at_home)
{
    leat_env *env = new_env("2");
    build(env, NULL);
    cr_assert(leat_execute(env) == LEAT_OK, "%s", fault_of(env));
    leat_env_destroy(&env);
    check_sum();
}

Test(ask, an_answer_may_be_an_error)
{
    char why[1024];
    refuse = true;
    const uint32_t process_of[] = {0, 1, 2, 0, 1};
    cr_assert(placed_execute(3, process_of, build, NULL, why, sizeof why) == LEAT_EUSER);
    cr_assert(strstr(why, "home says: input or output failed"), "%s", why);
}

Test(ask, too_large_questions_are_refused)
{
    char why[1024];
    ask_too_much = true;
    const uint32_t process_of[] = {0, 1, 2, 0, 1};
    cr_assert(placed_execute(3, process_of, build, NULL, why, sizeof why) == LEAT_ETOOBIG);
}

Test(ask, a_job_that_is_cancelled_forgets_its_questions)
{
    static placed_run run;
    be_silent = true;
    const uint32_t process_of[] = {0, 1, 2, 0, 1};
    cr_assert(placed_start(&run, 3, process_of, build, NULL) == LEAT_OK);
    while (kept_silent < 3)
        sched_yield();
    placed_cancel(&run);
    placed_wait_over(&run);
    cr_assert(placed_conclude(&run, false) == LEAT_ECANCELLED);
    // What comes too late finds nobody.
    leati_job_answered(run.processes[1].job, 1, LEAT_OK, (const uint8_t *)"late", 4);
    placed_destroy(&run);
}

Test(ask, questions_to_nobody_are_answered_when_the_job_ends)
{
    static placed_run run;
    be_silent = true;
    const uint32_t process_of[] = {0, 1, 2, 0, 1};
    cr_assert(placed_start(&run, 3, process_of, build, NULL) == LEAT_OK);
    // No such operator; the answer goes to a token that nobody waits for.
    leati_job_asked(run.processes[0].job, 1, 4711, 99, (const uint8_t *)"?", 1);
    placed_cancel(&run);
    placed_wait_over(&run);
    cr_assert(placed_conclude(&run, false) == LEAT_ECANCELLED);
    leati_job_asked(run.processes[0].job, 1, 4711, 100, (const uint8_t *)"?", 1);
    placed_destroy(&run);
}
