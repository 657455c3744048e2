// SPDX-License-Identifier: Apache-2.0
// Alarms, the clock hook, and operators that wait for a time.
#include "jobs.h"
#include "runtime/alarm.h"
#include "runtime/service.h"

TestSuite(clock, .timeout = 60);

// --- the heap ---

enum { ALARMS = 40 };

typedef struct model {
    bool set;
    int64_t time_ns;
    uint64_t order;
} model;

static int first_due(const model *models, int64_t now_ns)
{
    int first = -1;
    for (int i = 0; i < ALARMS; i++) {
        const model *m = &models[i];
        if (!m->set || m->time_ns > now_ns)
            continue;
        if (first < 0 || m->time_ns < models[first].time_ns ||
            (m->time_ns == models[first].time_ns && m->order < models[first].order))
            first = i;
    }
    return first;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

Test(clock, alarms_come_in_the_order_of_a_list_that_is_searched)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        leati_alarms heap = {.first = NULL};
        leati_alarm alarms[ALARMS] = {{.run = NULL}};
        model models[ALARMS] = {{.set = false}};
        uint32_t random = seed;
        uint64_t order = 0;
        for (int step = 0; step < 3000; step++) {
            uint32_t at = next_random(&random) % ALARMS, what = next_random(&random) % 8;
            int64_t time_ns = next_random(&random) % 50;
            if (what < 5) {
                leati_alarms_set(&heap, &alarms[at], time_ns);
                models[at] = (model){true, time_ns, order++};
            } else if (what < 6) {
                leati_alarms_clear(&heap, &alarms[at]);
                models[at].set = false;
            } else {
                int expected = first_due(models, time_ns);
                leati_alarm *got = leati_alarms_take_due(&heap, time_ns);
                cr_assert(got == (expected < 0 ? NULL : &alarms[expected]), "step %d", step);
                if (expected >= 0)
                    models[expected].set = false;
            }
            for (int i = 0; i < ALARMS; i++)
                cr_assert_eq(alarms[i].is_set, models[i].set);
        }
    }
}

// --- the service, with a clock of the test's ---

static _Atomic int64_t shown_ns;

static int64_t show(void *user)
{
    return *(_Atomic int64_t *)user;
}

static const leat_clock by_hand = {.now_ns = show, .user = &shown_ns};

typedef struct letter {
    leati_alarm alarm; // first
    const char *name;
} letter;

static void write_letter(leati_alarm *alarm)
{
    log_step('-', ((letter *)alarm)->name);
}

static void write_tick(leati_tick *tick)
{
    log_step('-', "tick");
}

Test(clock, without_a_thread_the_owner_runs_what_is_due)
{
    leati_service *s;
    letter a = {{.run = write_letter}, "a"}, b = {{.run = write_letter}, "b"}, c = b;
    c.name = "c";
    leati_tick tick = {.interval_ns = 30, .run = write_tick};
    shown_ns = 100;
    cr_assert(leati_service_create_stepped(NULL, &by_hand, &s) == LEAT_OK);
    cr_assert(leati_service_due_ns(s) == INT64_MAX);
    leati_service_set_alarm(s, &a.alarm, 150);
    leati_service_set_alarm(s, &b.alarm, 120);
    leati_service_set_alarm(s, &c.alarm, 110);
    leati_service_add_tick(s, &tick); // at 130
    leati_service_clear_alarm(s, &c.alarm);
    leati_service_clear_alarm(s, &c.alarm);
    cr_assert(leati_service_due_ns(s) == 120);
    leati_service_run_due(s);
    cr_assert_str_eq(log_text, "");
    shown_ns = 151;
    leati_service_run_due(s);
    // The tick counts from when it ran: 181.
    cr_assert_str_eq(log_text, "-b -tick -a");
    cr_assert(leati_service_due_ns(s) == 181);
    leati_service_set_alarm(s, &a.alarm, 160);
    leati_service_set_alarm(s, &a.alarm, INT64_MAX); // takes it back
    leati_service_remove_tick(s, &tick);
    cr_assert(leati_service_due_ns(s) == INT64_MAX);
    leati_service_destroy(&s);
}

// --- operators that wait ---

// Emits what the clock shows, three times, at distances of 1 h by the clock.
typedef struct hourly {
    leat_operator base;
    int64_t next_ns;
    int emitted;
} hourly;

enum { HOURS = 3 };
static const int64_t hour_ns = INT64_C(3600) * 1000000000;
static _Atomic int polls;

static leat_err hourly_poll(leat_operator *self, leat_out *out, uint32_t max, leat_poll *state)
{
    hourly *op = (hourly *)self;
    int64_t now_ns = leat_ctx_now_ns(self->ctx);
    polls++;
    *state = LEAT_POLL_WAIT;
    if (now_ns >= op->next_ns) {
        op->next_ns = now_ns + hour_ns;
        leat_err err = leat_collect(out, &now_ns);
        if (err)
            return err;
        if (++op->emitted == HOURS)
            *state = LEAT_POLL_END;
    }
    // The first one is replaced before it comes.
    leat_ctx_wake_at(self->ctx, op->next_ns - 1);
    leat_ctx_wake_at(self->ctx, op->next_ns);
    return LEAT_OK;
}

static void hourly_dispose(leat_operator *self)
{
    free(self);
}

static leat_err hourly_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "hourly", .poll = hourly_poll, .dispose = hourly_dispose};
    hourly *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = &ops;
    *op = &made->base;
    return LEAT_OK;
}

static leat_env *hourly_env(const leat_clock *clock, leat_collection *collection)
{
    leat_env *env;
    leat_env_options options = {.clock = *clock};
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    leat_factory factory = {.create = hourly_create};
    leat_stream *hours = leat_source(env, "hours", &factory, NUMBER);
    leat_collect_records(hours, collection);
    return env;
}

Test(clock, an_operator_is_woken_when_the_hooked_clock_says_so)
{
    leat_collection *collection;
    leat_runtime *runtime;
    leat_job *job;
    shown_ns = 1000;
    cr_assert(leat_collection_create(NULL, &collection) == LEAT_OK);
    leat_env *env = hourly_env(&by_hand, collection);
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
    const void *record;
    for (int i = 0; i < HOURS; i++) {
        cr_assert(leat_collection_next(collection, -1, &record) == LEAT_OK);
        cr_assert(*(const int64_t *)record == 1000 + i * hour_ns);
        // Still waiting, however much time of the system passes.
        if (i < HOURS - 1)
            cr_assert(leat_collection_next(collection, 30, &record) == LEAT_EAGAIN);
        shown_ns += hour_ns;
    }
    cr_assert(leat_job_wait(job, -1) == LEAT_OK);
    // One poll for each hour; a wake-up may come twice when it races with the end of a turn.
    cr_assert(polls >= HOURS && polls <= 2 * HOURS, "%d", polls);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_collection_destroy(&collection);
    leat_env_destroy(&env);
}

Test(clock, a_job_that_waits_for_hours_can_be_cancelled)
{
    leat_collection *collection;
    leat_runtime *runtime;
    leat_job *job;
    cr_assert(leat_collection_create(NULL, &collection) == LEAT_OK);
    leat_env *env = hourly_env(&(leat_clock){.now_ns = NULL}, collection);
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(runtime, env, &job) == LEAT_OK);
    const void *record;
    cr_assert(leat_collection_next(collection, -1, &record) == LEAT_OK);
    leat_job_cancel(job);
    cr_assert(leat_job_wait(job, -1) == LEAT_ECANCELLED);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_collection_destroy(&collection);
    leat_env_destroy(&env);
}
