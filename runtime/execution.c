// SPDX-License-Identifier: Apache-2.0
// The runtime object and the life of jobs on it: start, failure, cancellation, end.
#include "runtime/execution.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "runtime/debloat.h"
#include "runtime/metrics.h"
#include "runtime/placement_impl.h"

// --- the runtime ---

static leat_err explain(char *why, size_t why_size, leat_err err, const char *what)
{
    if (why && why_size)
        snprintf(why, why_size, "%s: %s", what, leat_err_message(err));
    return err;
}

static uint32_t count_workers(const leati_config *config)
{
    int64_t workers = leati_config_get(config, LEATI_CONFIG_WORKERS);
    if (workers == 0)
        workers = sysconf(_SC_NPROCESSORS_ONLN);
    return workers > 0 ? (uint32_t)workers : 1;
}

static leat_err create_pool(leat_runtime *r, const leati_config *config, const char **what)
{
    size_t segment_size = (size_t)leati_config_get(config, LEATI_CONFIG_SEGMENT_SIZE);
    uint64_t segments =
        (uint64_t)leati_config_get(config, LEATI_CONFIG_NETWORK_MEMORY) / segment_size;
    *what = segments == 0 ? "memory.network is less than one segment (memory.segment-size)"
                          : "memory.network has too many segments (memory.segment-size)";
    if (segments == 0 || segments > UINT32_MAX)
        return LEAT_EINVAL;
    *what = "the memory segments";
    return leati_global_pool_create(r->allocator, segment_size, (uint32_t)segments, &r->pool);
}

static leat_err create_parts(leat_runtime *r, leat_env *env, const char **what)
{
    const leati_config *config = leati_env_config(env);
    const leat_clock *clock = &leati_env_options(env)->clock;
    leat_err err = create_pool(r, config, what);
    if (err)
        return err;
    *what = "the service";
    err = r->turn_records ? leati_service_create_stepped(r->allocator, clock, &r->service)
                          : leati_service_create(r->allocator, clock, &r->service);
    if (err)
        return err;
    *what = "the worker threads";
    return r->turn_records
               ? leati_scheduler_create_stepped(r->allocator, &r->scheduler)
               : leati_scheduler_create(r->allocator, count_workers(config), &r->scheduler);
}

static leat_err create_runtime(leat_env *env, uint32_t turn_records, leat_runtime **runtime,
                               char *why, size_t why_size)
{
    const leat_allocator *allocator = leat_env_allocator(env);
    leat_runtime *r = leati_calloc(allocator, 1, sizeof *r);
    if (!r)
        return explain(why, why_size, LEAT_ENOMEM, "the runtime");
    // The environment may end before the runtime does.
    r->allocator_copy = *allocator;
    r->allocator = &r->allocator_copy;
    r->turn_records = turn_records;
    const char *what;
    leat_err err = create_parts(r, env, &what);
    if (err) {
        leat_runtime_destroy(&r);
        return explain(why, why_size, err, what);
    }
    *runtime = r;
    return LEAT_OK;
}

// Settings that were refused are faults; without them the runtime would be another than was asked
// for. What validation would find in the graph is the job's.
leat_err leat_runtime_create(leat_env *env, leat_runtime **runtime, char *why, size_t why_size)
{
    leat_err err = leati_fault_built(env);
    if (err) {
        if (why && why_size)
            snprintf(why, why_size, "%s", leat_env_fault(env, 0));
        return err;
    }
    return create_runtime(env, 0, runtime, why, why_size);
}

leat_err leati_runtime_create_stepped(leat_env *env, uint32_t turn_records, leat_runtime **runtime,
                                      char *why, size_t why_size)
{
    return create_runtime(env, turn_records, runtime, why, why_size);
}

void leat_runtime_destroy(leat_runtime **runtime)
{
    leat_runtime *r = *runtime;
    if (!r)
        return;
    leati_scheduler_destroy(&r->scheduler);
    leati_service_destroy(&r->service);
    leati_global_pool_destroy(&r->pool);
    leat_allocator allocator = r->allocator_copy;
    leati_free(&allocator, r);
    *runtime = NULL;
}

void leati_job_log(const leat_job *job, leat_log_level level, const char *format, ...)
{
    const leat_logger *logger = &leati_env_options(job->env)->logger;
    if (!logger->write || level > logger->level)
        return;
    char line[LEATI_FAILURE_TEXT + 128];
    int length = snprintf(line, sizeof line, "%s: ", job->graph ? job->graph->name : "job");
    if (length < 0 || (size_t)length >= sizeof line)
        length = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(line + length, sizeof line - (size_t)length, format, args);
    va_end(args);
    leati_text_clean(line);
    logger->write(logger->user, level, line);
}

// --- start ---

void leati_job_free(leat_job *job)
{
    leati_placed_close(job);
    leati_metrics_free(job);
    leati_job_undeploy(job);
    while (job->shared) {
        leati_shared *shared = job->shared;
        job->shared = shared->next;
        shared->destroy(shared->object);
        leati_free(job->allocator, shared);
    }
    leati_placed_free(job);
    leati_job_graph_destroy(&job->graph);
    leati_asking_fini(&job->asking);
    pthread_mutex_destroy(&job->print_lock);
    pthread_mutex_destroy(&job->shared_lock);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->ended);
    leati_free(job->allocator, job);
}

static void tell_operators(const leat_job *job)
{
    for (uint32_t v = 0; v < job->graph->vertex_count; v++)
        for (uint32_t i = 0; i < job->graph->vertices[v].op_count; i++) {
            const leati_node *node = job->graph->vertices[v].ops[i].node;
            if (node->job_over)
                node->job_over(node->factory.config);
        }
}

leat_err leati_job_create(leat_runtime *runtime, leat_env *env, leat_job **out)
{
    leat_job *job = leati_calloc(runtime->allocator, 1, sizeof *job);
    if (!job) {
        leati_env_run_failed(env, LEAT_ENOMEM, "the job: out of memory");
        return LEAT_ENOMEM;
    }
    job->runtime = runtime;
    job->env = env;
    job->allocator = runtime->allocator;
    job->config = *leati_env_config(env);
    pthread_mutex_init(&job->print_lock, NULL);
    pthread_mutex_init(&job->shared_lock, NULL);
    pthread_mutex_init(&job->lock, NULL);
    leati_cond_init(&job->ended);
    leati_asking_init(&job->asking);
    leat_err err = leati_job_graph_create(env, &job->graph);
    if (err)
        leati_job_free(job);
    else
        *out = job;
    return err;
}

// Whoever fails or cancels the job wakes its tasks from the first of these on. From the second on
// it may be concluded, as nobody here is going to touch it any more.
static void set_locked(leat_job *job, bool *flag)
{
    pthread_mutex_lock(&job->lock);
    *flag = true;
    pthread_cond_broadcast(&job->ended);
    pthread_mutex_unlock(&job->lock);
}

static void start_tasks(leat_job *job)
{
    job->live = job->task_count;
    set_locked(job, &job->started);
    for (uint32_t i = 0; i < job->task_count; i++)
        leati_runnable_release(&job->tasks[i].run);
    if (job->placed)
        set_locked(job, &job->launched);
}

leat_err leati_job_launch(leat_job *job, leat_job **out)
{
    leat_runtime *runtime = job->runtime;
    size_t told = leat_env_fault_count(job->env);
    leat_err err = leati_env_check_cached(job->env);
    if (!err)
        err = leati_job_deploy(job);
    if (err) {
        // What deployment could say itself it has said.
        if (leat_env_fault_count(job->env) == told)
            leati_env_run_failed(job->env, err, "the job could not be deployed: %s",
                                 leat_err_message(err));
        tell_operators(job);
        leati_job_free(job);
        return err;
    }
    for (leati_flusher *flusher = job->flushers; flusher; flusher = flusher->next)
        leati_service_add_tick(runtime->service, &flusher->tick);
    if (job->debloater)
        leati_debloater_start(job->debloater);
    job->ticking = true;
    leati_job_log(job, LEAT_LOG_INFO, "%u tasks, %zu channels on %u workers, digest %s",
                  job->task_count, job->channel_count, leati_scheduler_workers(runtime->scheduler),
                  job->graph->digest);
    *out = job;
    start_tasks(job);
    return LEAT_OK;
}

leat_err leat_start(leat_runtime *runtime, leat_env *env, leat_job **out)
{
    leat_job *job;
    leat_err err = leati_job_create(runtime, env, &job);
    return err ? err : leati_job_launch(job, out);
}

// --- stopping ---

// Tasks look at the flag at the start of each turn and at every wait. Those of a job that is still
// being deployed find it when they start.
static void stop_tasks(leat_job *job)
{
    pthread_mutex_lock(&job->lock);
    atomic_store_explicit(&job->stopping, true, memory_order_release);
    bool started = job->started;
    pthread_mutex_unlock(&job->lock);
    for (uint32_t i = 0; started && i < job->task_count; i++) {
        atomic_store_explicit(&job->tasks[i].run.urgent, true, memory_order_relaxed);
        leati_runnable_wake(&job->tasks[i].run);
    }
}

void leati_job_fail(leat_job *job, leat_err err, const char *text, const leati_task *task)
{
    pthread_mutex_lock(&job->lock);
    // What fails because the job was cancelled is no failure of the job.
    bool first = atomic_load_explicit(&job->state, memory_order_relaxed) == LEAT_JOB_RUNNING;
    if (first) {
        job->failure = err;
        snprintf(job->failure_text, sizeof job->failure_text, "%s", text);
        atomic_store_explicit(&job->state, LEAT_JOB_FAILING, memory_order_relaxed);
    }
    pthread_mutex_unlock(&job->lock);
    if (!first)
        return;
    leati_job_log(job, LEAT_LOG_INFO, "failing: %s", text);
    // Told before the tasks are stopped, so that they are not over before it is known why.
    if (job->placed)
        job->placed->hooks->failed(job->placed->user, err, text,
                                   task ? task->vertex->id : UINT32_MAX,
                                   task ? task->subtask : UINT32_MAX);
    stop_tasks(job);
}

void leat_job_cancel(leat_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool running = atomic_load_explicit(&job->state, memory_order_relaxed) == LEAT_JOB_RUNNING;
    if (running)
        atomic_store_explicit(&job->state, LEAT_JOB_CANCELLING, memory_order_relaxed);
    pthread_mutex_unlock(&job->lock);
    if (running)
        stop_tasks(job);
}

// --- the end ---

bool leati_job_has_finished(const leat_job *job)
{
    for (uint32_t i = 0; i < job->task_count; i++)
        if (atomic_load_explicit(&job->tasks[i].stage, memory_order_relaxed) !=
            LEATI_STAGE_FINISHED)
            return false;
    return !job->failure;
}

// What operators have kept back until the whole job had succeeded. No task is left, so what they
// share is this thread's; the first failure ends it.
static void commit_shared(leat_job *job)
{
    leat_err err = LEAT_OK;
    for (leati_shared *s = job->shared; s && !err; s = s->next) {
        char why[LEATI_FAILURE_TEXT] = "";
        err = s->commit ? s->commit(s->object, why, sizeof why) : LEAT_OK;
        if (!err)
            continue;
        pthread_mutex_lock(&job->lock);
        job->failure = err;
        snprintf(job->failure_text, sizeof job->failure_text, "%s", why);
        pthread_mutex_unlock(&job->lock);
    }
}

void leati_job_end(leat_job *job, bool commit)
{
    leati_asking_end(job);
    // A job that was cancelled after its last record had been processed has finished all the same.
    if (commit)
        commit_shared(job);
    tell_operators(job);
    pthread_mutex_lock(&job->lock);
    leat_job_state state = job->failure ? LEAT_JOB_FAILED
                           : commit     ? LEAT_JOB_FINISHED
                                        : LEAT_JOB_CANCELED;
    atomic_store_explicit(&job->state, state, memory_order_release);
    job->done = true;
    leati_job_log(job, LEAT_LOG_INFO, "%s", leat_job_state_name(state));
    pthread_cond_broadcast(&job->ended);
    pthread_mutex_unlock(&job->lock);
}

void leati_job_task_ended(leat_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool last = --job->live == 0;
    pthread_mutex_unlock(&job->lock);
    if (!last)
        return;
    if (!job->placed) {
        leati_job_end(job, leati_job_has_finished(job));
        return;
    }
    // Told first: whoever waits for the job to be over may then destroy it.
    job->placed->hooks->tasks_over(job->placed->user, leati_job_has_finished(job));
    set_locked(job, &job->over);
}

static leat_err result_of(const leat_job *job)
{
    switch (leat_job_get_state(job)) {
    case LEAT_JOB_FINISHED:
        return LEAT_OK;
    case LEAT_JOB_CANCELED:
        return LEAT_ECANCELLED;
    default:
        return job->failure;
    }
}

static bool has_come(leat_job *job, const bool *what)
{
    pthread_mutex_lock(&job->lock);
    bool come = *what;
    pthread_mutex_unlock(&job->lock);
    return come;
}

// Nobody else runs the tasks of a stepped runtime.
static leat_err wait_stepped(leat_job *job, const bool *what)
{
    while (!has_come(job, what))
        if (!leati_scheduler_step(job->runtime->scheduler))
            return LEAT_EAGAIN;
    return LEAT_OK;
}

leat_err leati_job_wait_over(leat_job *job)
{
    if (job->runtime->turn_records)
        return wait_stepped(job, &job->over);
    pthread_mutex_lock(&job->lock);
    while (!job->over || !job->launched)
        pthread_cond_wait(&job->ended, &job->lock);
    pthread_mutex_unlock(&job->lock);
    return LEAT_OK;
}

leat_err leat_job_wait(leat_job *job, int64_t timeout_ms)
{
    if (job->runtime->turn_records) {
        leat_err err = wait_stepped(job, &job->done);
        return err ? err : result_of(job);
    }
    struct timespec deadline = leati_deadline(timeout_ms > 0 ? timeout_ms : 0);
    pthread_mutex_lock(&job->lock);
    int timed_out = 0;
    while (!job->done && !timed_out)
        timed_out = timeout_ms < 0 ? pthread_cond_wait(&job->ended, &job->lock)
                                   : pthread_cond_timedwait(&job->ended, &job->lock, &deadline);
    leat_err err = job->done ? result_of(job) : LEAT_EAGAIN;
    pthread_mutex_unlock(&job->lock);
    return err;
}

void leati_job_stop_ticks(leat_job *job)
{
    for (leati_flusher *flusher = job->flushers; flusher && job->ticking; flusher = flusher->next)
        leati_service_remove_tick(job->runtime->service, &flusher->tick);
    if (job->debloater && job->ticking)
        leati_debloater_stop(job->debloater);
    job->ticking = false;
}

void leat_job_destroy(leat_job **job)
{
    if (!*job)
        return;
    leat_job_cancel(*job);
    if ((*job)->placed) // nobody has concluded it, or it is concluded and this does nothing
        leati_job_conclude(*job, false, NULL, 0);
    leat_err err = leat_job_wait(*job, -1);
    assert(err !=
           LEAT_EAGAIN); // which whoever destroys a job from inside one of its tasks would get
    (void)err;           // whoever wants to know has asked before
    leati_job_stop_ticks(*job);
    leati_job_free(*job);
    *job = NULL;
}

// --- watching ---

leat_job_state leat_job_get_state(const leat_job *job)
{
    return (leat_job_state)atomic_load_explicit(&job->state, memory_order_acquire);
}

const char *leat_job_state_name(leat_job_state state)
{
    static const char *const names[] = {"RUNNING",  "FAILING", "CANCELLING",
                                        "FINISHED", "FAILED",  "CANCELED"};
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "?";
}

const char *leat_job_failure(const leat_job *job)
{
    return job->failure_text;
}

uint32_t leat_job_task_count(const leat_job *job)
{
    return job->task_count;
}

static const char *stage_name(int stage)
{
    static const char *const names[] = {"OPENING",  "RUNNING", "ENDING",  "CLOSING",
                                        "FINISHED", "FAILED",  "CANCELED"};
    return names[stage];
}

static uint64_t read_ns(const _Atomic int64_t *counter)
{
    return (uint64_t)atomic_load_explicit(counter, memory_order_relaxed);
}

// The time since the task last accounted for any, so that one that sleeps is seen to do so.
static void add_open_interval(const leati_task *t, leat_task_stats *stats)
{
    if (atomic_load_explicit(&t->stage, memory_order_relaxed) >= LEATI_STAGE_FINISHED)
        return;
    int64_t since = leati_clock_ns() - atomic_load_explicit(&t->stamp_ns, memory_order_relaxed);
    uint64_t ns = since > 0 ? (uint64_t)since : 0;
    switch ((leati_gap)atomic_load_explicit(&t->gap, memory_order_relaxed)) {
    case LEATI_GAP_IDLE:
        stats->idle_ns += ns;
        break;
    case LEATI_GAP_SOFT:
        stats->soft_ns += ns;
        break;
    case LEATI_GAP_HARD:
        stats->hard_ns += ns;
        break;
    case LEATI_GAP_READY:
        stats->busy_ns += ns;
        break;
    }
}

void leat_job_task_stats(const leat_job *job, uint32_t index, leat_task_stats *stats)
{
    const leati_task *t = &job->tasks[index];
    *stats = (leat_task_stats){
        .name = t->vertex->name,
        .subtask = t->subtask,
        .parallelism = t->vertex->parallelism,
        .records_in = atomic_load_explicit(&t->records_in, memory_order_relaxed),
        .records_out = atomic_load_explicit(&t->records_out, memory_order_relaxed),
        .bytes_in = atomic_load_explicit(&t->bytes_in, memory_order_relaxed),
        .bytes_out = atomic_load_explicit(&t->bytes_out, memory_order_relaxed),
        .busy_ns = read_ns(&t->busy_ns),
        .idle_ns = read_ns(&t->idle_ns),
        .soft_ns = read_ns(&t->soft_ns),
        .hard_ns = read_ns(&t->hard_ns),
        .is_source = t->is_source,
        .state = stage_name(atomic_load_explicit(&t->stage, memory_order_relaxed)),
    };
    add_open_interval(t, stats);
    for (uint32_t i = 0; i < t->exit_count; i++) {
        uint32_t used, limit;
        leati_local_pool_counts(t->pools[i], &used, &limit);
        stats->segments_used += used;
        stats->segments_limit += limit;
        stats->segments_peak += leati_local_pool_peak(t->pools[i]);
    }
}

// --- in one call ---

// Runs the job to its end; `accumulators` may be NULL.
static leat_err run_on(leat_runtime *runtime, leat_env *env, leat_accumulators **accumulators)
{
    leat_job *job;
    leat_err err = leat_start(runtime, env, &job);
    if (err)
        return err;
    err = leat_job_wait(job, -1);
    if (err) {
        leati_env_run_failed(env, err, "%s", leat_job_failure(job));
    } else if (accumulators) {
        err = leat_job_accumulators(job, accumulators);
        if (err)
            leati_env_run_failed(env, err, "the accumulators: %s", leat_err_message(err));
    }
    leat_job_destroy(&job);
    return err;
}

static leat_err execute(leat_env *env, leat_accumulators **accumulators)
{
    leat_err err = leat_env_check(env);
    if (err)
        return err;
    leat_runtime *runtime;
    char why[256] = "";
    err = leat_runtime_create(env, &runtime, why, sizeof why);
    if (err) {
        leati_env_run_failed(env, err, "%s", why);
        return err;
    }
    err = run_on(runtime, env, accumulators);
    leat_runtime_destroy(&runtime);
    return err;
}

leat_err leat_execute(leat_env *env)
{
    return execute(env, NULL);
}

leat_err leat_execute_with_accumulators(leat_env *env, leat_accumulators **accumulators)
{
    return execute(env, accumulators);
}
