// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "jobs.h"
#include "leat/testing.h"
#include "placed.h"
#include "runtime/context.h"

TestSuite(placement, .timeout = 120);

typedef struct tally {
    int64_t key, count;
} tally;
LEAT_RECORD(tally, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(count, LEAT_I64));

enum { KEYS = 97, NUMBERS = 20000 };

static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t counts[KEYS], results;

static int to_tally(leat_ctx *ctx, const void *in, void *out)
{
    int64_t n = *(const int64_t *)in;
    *(tally *)out = (tally){.key = n % KEYS, .count = 1};
    return 0;
}

static int add_tally(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((tally *)accumulator)->count += ((const tally *)in)->count;
    return 0;
}

static int keep_tally(leat_ctx *ctx, const void *in)
{
    const tally *t = in;
    pthread_mutex_lock(&counts_lock);
    counts[t->key] += t->count;
    results++;
    pthread_mutex_unlock(&counts_lock);
    return 0;
}

// Counts numbers by their remainder, each step in tasks of its own.
static void build_count(leat_env *env, void *user)
{
    const uint32_t *parallelism = user;
    leat_env_set(env, "workers", "2");
    leat_env_set(env, "memory.network", "4 MiB");
    leat_stream *numbers = leat_parallelism(leat_sequence(env, 0, NUMBERS - 1), parallelism[0]);
    leat_stream *tallies = leat_map(leat_rebalance(numbers), to_tally, LEAT_TYPE(tally));
    leat_parallelism(tallies, parallelism[1]);
    leat_stream *sums = leat_final_only(leat_reduce(leat_key_by(tallies, "key"), add_tally));
    leat_parallelism(sums, parallelism[2]);
    leat_parallelism(leat_sink(leat_rescale(sums), keep_tally), parallelism[3]);
}

// The places of the tasks of a job that `build` describes.
static uint32_t *places(void (*build)(leat_env *, void *), void *user, uint32_t processes)
{
    leat_env *env;
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    build(env, user);
    uint32_t *made = placed_by_subtask(env, processes);
    leat_env_destroy(&env);
    return made;
}

static void check_counts(void)
{
    cr_assert(results == KEYS, "%" PRId64 " results", results);
    for (int64_t key = 0; key < KEYS; key++)
        // The numbers below NUMBERS with that remainder.
        cr_assert(counts[key] == (NUMBERS - key + KEYS - 1) / KEYS, "key %" PRId64, key);
}

static void count_over(uint32_t processes, uint32_t parallelism[4])
{
    char why[1024];
    memset(counts, 0, sizeof counts);
    results = 0;
    uint32_t *process_of = places(build_count, parallelism, processes);
    leat_err err = placed_execute(processes, process_of, build_count, parallelism, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    check_counts();
    free(process_of);
}

Test(placement, a_keyed_count_over_processes_gives_what_arithmetic_says)
{
    count_over(1, (uint32_t[]){3, 3, 3, 3});
    count_over(2, (uint32_t[]){1, 2, 2, 1});
    count_over(3, (uint32_t[]){3, 3, 3, 3});
    count_over(3, (uint32_t[]){4, 2, 5, 3});
}

Test(placement, all_channels_may_lead_to_other_processes)
{
    uint32_t parallelism[] = {2, 2, 2, 2};
    // Sources and sums in one process, what is between them in the other.
    const uint32_t process_of[] = {0, 0, 1, 1, 0, 0, 1, 1};
    char why[1024];
    leat_err err = placed_execute(2, process_of, build_count, parallelism, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    check_counts();
}

// --- what the hooks are told ---

static bool is_stage(const placed_stage *s, const placed_stage *like)
{
    return s->process == like->process && s->vertex == like->vertex && s->subtask == like->subtask;
}

Test(placement, each_task_tells_its_stages_in_order)
{
    static placed_run run;
    uint32_t parallelism[] = {2, 2, 2, 2};
    uint32_t *process_of = places(build_count, parallelism, 2);
    cr_assert(placed_start(&run, 2, process_of, build_count, parallelism) == LEAT_OK);
    placed_wait_over(&run);
    static const leati_stage expected[] = {LEATI_STAGE_RUNNING, LEATI_STAGE_ENDING,
                                           LEATI_STAGE_CLOSING, LEATI_STAGE_FINISHED};
    cr_assert(run.stage_count == 8 * 4, "%u stages", run.stage_count);
    for (uint32_t i = 0; i < run.stage_count; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < i; k++)
            before += is_stage(&run.stages[k], &run.stages[i]);
        cr_assert(run.stages[i].stage == expected[before]);
        cr_assert(run.stages[i].process == run.stages[i].subtask % 2);
    }
    // Nothing is final before it is concluded.
    cr_assert(leat_job_get_state(run.processes[0].job) == LEAT_JOB_RUNNING);
    cr_assert(leat_job_wait(run.processes[0].job, 0) == LEAT_EAGAIN);
    cr_assert(run.processes[0].finished && run.processes[1].finished);
    cr_assert(placed_conclude(&run, true) == LEAT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert(leat_job_get_state(run.processes[i].job) == LEAT_JOB_FINISHED);
        cr_assert(leat_job_wait(run.processes[i].job, 0) == LEAT_OK);
        cr_assert(leat_job_task_count(run.processes[i].job) == 4);
        cr_assert(leati_job_conclude(run.processes[i].job, true, NULL, 0) == LEAT_ESTATE);
    }
    uint32_t vertex, subtask;
    leati_job_task_place(run.processes[1].job, 3, &vertex, &subtask);
    cr_assert(vertex == 3 && subtask == 1);
    cr_assert(run.failures == 0);
    placed_destroy(&run);
    free(process_of);
}

static _Atomic int opened_third;

static int note_attempt(leat_ctx *ctx)
{
    opened_third += leat_ctx_attempt(ctx) == 3;
    return 0;
}

static int any(leat_ctx *ctx, const void *in)
{
    return 0;
}

static void build_attempt(leat_env *env, void *user)
{
    leat_stream *sink = leat_sink(leat_rebalance(leat_sequence(env, 0, 9)), any);
    leat_rich(leat_parallelism(sink, 2), note_attempt, NULL);
}

Test(placement, functions_are_told_the_number_of_the_attempt)
{
    char why[1024];
    const uint32_t process_of[] = {0, 0, 1};
    cr_assert(placed_execute(2, process_of, build_attempt, NULL, why, sizeof why) == LEAT_OK);
    cr_assert(opened_third == 2);
}

// --- ends that are none ---

static int fail_late(leat_ctx *ctx, const void *in)
{
    return leat_ctx_subtask(ctx) == 1 && *(const int64_t *)in > 700 ? leat_fail(ctx, "no luck") : 0;
}

static void build_failing(leat_env *env, void *user)
{
    leat_stream *numbers = leat_sequence(env, 0, INT64_MAX);
    leat_name(leat_parallelism(leat_sink(leat_rebalance(numbers), fail_late), 2), "picky");
}

Test(placement, a_failure_in_one_process_names_its_task_and_ends_the_job_there_only)
{
    static placed_run run;
    const uint32_t process_of[] = {0, 0, 1};
    cr_assert(placed_start(&run, 2, process_of, build_failing, NULL) == LEAT_OK);
    placed_wait_over(&run);
    cr_assert_str_eq(run.failure_text, "picky (2/2): no luck");
    cr_assert(run.failure == LEAT_EUSER && run.failures == 1);
    cr_assert(run.failure_vertex == 1 && run.failure_subtask == 1);
    cr_assert(!run.processes[0].finished && !run.processes[1].finished);
    cr_assert(placed_conclude(&run, true) == LEAT_EUSER);
    cr_assert(leat_job_get_state(run.processes[0].job) == LEAT_JOB_CANCELED);
    cr_assert(leat_job_get_state(run.processes[1].job) == LEAT_JOB_FAILED);
    cr_assert_str_eq(leat_job_failure(run.processes[1].job), "picky (2/2): no luck");
    placed_destroy(&run);
}

static void build_endless(leat_env *env, void *user)
{
    leat_stream *numbers = leat_sequence(env, 0, INT64_MAX);
    leat_parallelism(leat_sink(leat_rebalance(numbers), any), 3);
}

Test(placement, cancelled_jobs_are_concluded_as_cancelled)
{
    static placed_run run;
    const uint32_t process_of[] = {0, 0, 1, 2};
    cr_assert(placed_start(&run, 3, process_of, build_endless, NULL) == LEAT_OK);
    placed_cancel(&run);
    placed_wait_over(&run);
    cr_assert(placed_conclude(&run, false) == LEAT_ECANCELLED);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert(leat_job_wait(run.processes[i].job, 0) == LEAT_ECANCELLED);
    cr_assert(run.failures == 0);
    placed_destroy(&run);
}

Test(placement, a_job_that_was_not_finished_cannot_be_committed)
{
    static placed_run run;
    const uint32_t process_of[] = {0, 0, 1, 2};
    cr_assert(placed_start(&run, 3, process_of, build_endless, NULL) == LEAT_OK);
    placed_cancel(&run);
    placed_wait_over(&run);
    char why[100];
    cr_assert(leati_job_conclude(run.processes[0].job, true, why, sizeof why) == LEAT_ESTATE);
    cr_assert_str_eq(why, "not all tasks have finished");
    cr_assert(leat_job_get_state(run.processes[0].job) == LEAT_JOB_CANCELED);
    placed_destroy(&run);
}

Test(placement, a_running_job_that_is_destroyed_is_cancelled)
{
    static placed_run run;
    const uint32_t process_of[] = {0, 0, 1, 2};
    cr_assert(placed_start(&run, 3, process_of, build_endless, NULL) == LEAT_OK);
    placed_destroy(&run);
}

Test(placement, a_lost_peer_fails_the_job_on_behalf_of_no_task)
{
    static placed_run run;
    const uint32_t process_of[] = {0, 0, 1, 2};
    cr_assert(placed_start(&run, 3, process_of, build_endless, NULL) == LEAT_OK);
    fake_net_cut(run.net, 1, "process 0 is gone");
    placed_wait_over(&run);
    cr_assert_str_eq(run.failure_text, "process 0 is gone");
    cr_assert(run.failure_vertex == UINT32_MAX && run.failure_subtask == UINT32_MAX);
    cr_assert(placed_conclude(&run, false) == LEAT_EPIPE);
    placed_destroy(&run);
}

Test(placement, a_failure_from_outside_is_the_jobs)
{
    static placed_run run;
    const uint32_t process_of[] = {0, 0, 1, 2};
    cr_assert(placed_start(&run, 3, process_of, build_endless, NULL) == LEAT_OK);
    leati_job_fail_from_outside(run.processes[2].job, LEAT_ECLOSED, "the job manager is gone");
    placed_wait_over(&run);
    cr_assert(placed_conclude(&run, false) == LEAT_ECLOSED);
    cr_assert_str_eq(leat_job_failure(run.processes[2].job), "the job manager is gone");
    placed_destroy(&run);
}

// --- what is committed ---

typedef struct kept {
    _Atomic int made, committed, destroyed;
    bool refuses;
} kept;

static kept keeps;

static leat_err kept_create(leat_ctx *ctx, void **object)
{
    keeps.made++;
    *object = &keeps;
    return LEAT_OK;
}

static void kept_destroy(void *object)
{
    ((kept *)object)->destroyed++;
}

static leat_err kept_commit(void *object, char *why, size_t why_size)
{
    ((kept *)object)->committed++;
    if (!keeps.refuses)
        return LEAT_OK;
    snprintf(why, why_size, "the disk is full");
    return LEAT_EIO;
}

static leat_err keeping_element(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_OK;
}

static void keeping_dispose(leat_operator *self)
{
    free(self);
}

static leat_err keeping_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leati_shared_ops shared = {
        .create = kept_create, .destroy = kept_destroy, .commit = kept_commit};
    static const leat_operator_ops ops = {
        .kind = "keeper", .element = keeping_element, .dispose = keeping_dispose};
    void *object;
    leat_err err = leati_ctx_shared(ctx, &shared, &object);
    if (err)
        return err;
    *op = calloc(1, sizeof **op);
    (*op)->ops = &ops;
    return LEAT_OK;
}

static void build_keeping(leat_env *env, void *user)
{
    static const leat_factory factory = {.create = keeping_create};
    leat_stream *numbers = leat_rebalance(leat_sequence(env, 0, 99));
    leat_parallelism(leat_transform_sink(numbers, "keeper", &factory), 4);
}

static leat_err keep_and_conclude(bool commit, placed_run *run)
{
    const uint32_t process_of[] = {0, 0, 1, 0, 1};
    cr_assert(placed_start(run, 2, process_of, build_keeping, NULL) == LEAT_OK);
    placed_wait_over(run);
    cr_assert(keeps.made == 2, "one in each process");
    cr_assert(keeps.committed == 0 && keeps.destroyed == 0);
    return placed_conclude(run, commit);
}

Test(placement, each_process_commits_its_own_when_the_job_is_concluded)
{
    static placed_run run;
    cr_assert(keep_and_conclude(true, &run) == LEAT_OK);
    cr_assert(keeps.committed == 2);
    placed_destroy(&run);
    cr_assert(keeps.destroyed == 2);
}

Test(placement, without_commit_everything_is_dropped)
{
    static placed_run run;
    cr_assert(keep_and_conclude(false, &run) == LEAT_ECANCELLED);
    cr_assert(keeps.committed == 0);
    cr_assert(leat_job_get_state(run.processes[0].job) == LEAT_JOB_CANCELED);
    placed_destroy(&run);
    cr_assert(keeps.destroyed == 2);
}

Test(placement, a_commit_that_fails_fails_the_job)
{
    static placed_run run;
    keeps.refuses = true;
    cr_assert(keep_and_conclude(true, &run) == LEAT_EIO);
    cr_assert_str_eq(run.failure_text, "the disk is full");
    cr_assert(leat_job_get_state(run.processes[0].job) == LEAT_JOB_FAILED);
    placed_destroy(&run);
}

// --- what is refused ---

static void refused(const uint32_t *process_of, uint32_t processes,
                    void (*build)(leat_env *, void *), leat_err err, const char *why)
{
    static placed_run run;
    cr_assert(placed_start(&run, processes, process_of, build, NULL) == err);
    cr_assert(strstr(run.failure_text, why), "%s", run.failure_text);
    placed_destroy(&run);
}

Test(placement, a_process_without_tasks_is_refused)
{
    refused((uint32_t[]){0, 0, 0, 0}, 2, build_endless, LEAT_EINVAL,
            "no task of the job was placed in this process");
}

Test(placement, places_outside_the_cluster_are_refused)
{
    refused((uint32_t[]){0, 7, 0, 0}, 2, build_endless, LEAT_EINVAL,
            "task 1 was placed in process 7 of 2");
}

static void build_large(leat_env *env, void *user)
{
    leat_env_set(env, "memory.network", "64 KiB");
    leat_env_set(env, "memory.segment-size", "16 KiB");
    build_endless(env, user);
}

Test(placement, segments_of_received_channels_are_counted_before_the_job_starts)
{
    refused(
        (uint32_t[]){0, 1, 1, 1}, 2, build_large, LEAT_ENOBUFS,
        "the job needs at least 6 memory segments of 16384 bytes, but only 4 of all 4 are free");
}

// --- without memory ---

static void no_stage(void *user, uint32_t vertex, uint32_t subtask, leati_stage stage)
{
}

static void no_failure(void *user, leat_err err, const char *text, uint32_t vertex,
                       uint32_t subtask)
{
}

static void no_end(void *user, bool finished)
{
}

// Starts one of two processes, whose other never comes, with an allocator that fails. True when it
// has failed.
static bool start_without_memory(leat_test_allocator *allocator, uint64_t nth)
{
    static const leati_placement_hooks hooks = {
        .task_stage = no_stage, .failed = no_failure, .tasks_over = no_end};
    static const char *const names[] = {"a", "b"};
    static const uint32_t process_of[] = {0, 0, 1, 0, 1, 0, 1, 1};
    uint32_t parallelism[] = {2, 2, 2, 2};
    leat_env_options options = {.allocator = leat_test_allocator_hook(allocator)};
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job = NULL;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    build_count(env, parallelism);
    cr_assert(leat_runtime_create(env, &runtime, NULL, 0) == LEAT_OK);
    fake_net *net = fake_net_create(2, 32768);
    leati_placement placement = {
        .process_of = process_of,
        .transport = fake_net_transport(net, 0),
        .link = {.process_count = 2, .names = names, .ids = names, .addresses = names},
        .hooks = &hooks,
    };
    leat_test_allocator_fail(allocator, nth, 1);
    leat_err err = leati_start_placed(runtime, env, &placement, &job);
    bool failed = leat_test_allocator_failed(allocator) > 0;
    leat_test_allocator_fail(allocator, 0, 0);
    cr_assert(err == LEAT_OK || err == LEAT_ENOMEM);
    cr_assert(!err || leat_env_fault_count(env) > 0);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    fake_net_destroy(net);
    return failed;
}

Test(placement, any_allocation_may_fail)
{
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        leat_test_allocator *allocator;
        cr_assert(leat_test_allocator_create(NULL, &allocator) == LEAT_OK);
        failed = start_without_memory(allocator, nth);
        cr_assert(leat_test_allocator_live(allocator) == 0);
        leat_test_allocator_destroy(&allocator);
    }
}
