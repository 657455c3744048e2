// SPDX-License-Identifier: Apache-2.0
// Sources that could be ten times and more faster than their sinks, for a while: memory must not
// grow once all is warm, and no record may be lost, doubled or out of order. Half of the records
// come from a source that is polled, half from one that runs on a thread of its own, so both ways
// of holding a source back are under pressure.
//
//     stress_flat [SECONDS [SEED]]
//
// Under a sanitizer only the records are checked: it keeps memory of its own, which grows.
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "leat/leat.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum {
    DEFAULT_SECONDS = 20,
    PARALLELISM = 2,
    SOURCES = 2 * PARALLELISM, // the polled ones and those with threads
    MAX_TEXT = 2000,
    SINK_WORK = 4000, // steps of a generator a record: some microseconds
    SAMPLE_MS = 50,
    WARM_UP_SECONDS = 20, // at most, else a third of the time
    GROWTH_KIB = 1024,    // more than this after the warm-up is growth
};

// What the pools may hold, small enough that all of it has been used once before the warm-up ends.
static const char network_memory[] = "8 MiB";

#define SINK_NAME "slow sink"

typedef struct parcel {
    int64_t source, index;
    leat_str text; // that many bytes as `index` and the seed say
} parcel;
LEAT_RECORD(parcel, LEAT_FIELD(source, LEAT_I64), LEAT_FIELD(index, LEAT_I64),
            LEAT_FIELD(text, LEAT_STR));

typedef struct trial {
    int64_t ends_ns; // when the sources stop
    uint64_t seed;
    char text[MAX_TEXT];
    _Atomic int64_t sent[SOURCES];
    // Each sink's own.
    struct {
        _Alignas(64) int64_t last[SOURCES]; // index; -1: none yet
        int64_t count[SOURCES];
        uint64_t work;
    } sinks[PARALLELISM];
} trial;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

static size_t text_size(const trial *t, int64_t source, int64_t index)
{
    return mix(t->seed + (uint64_t)source * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)index) %
           MAX_TEXT;
}

static parcel make_parcel(const trial *t, int64_t source, int64_t index)
{
    return (parcel){source, index, {t->text, text_size(t, source, index)}};
}

// --- the polled source ---------------------------------------------------------------------------

typedef struct polled {
    leat_operator base;
    trial *of;
    int64_t source, next;
} polled;

static leat_err polled_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                            leat_poll *state)
{
    polled *own = (polled *)self;
    leat_err err = LEAT_OK;
    *state = LEAT_POLL_END;
    if (now_ns() >= own->of->ends_ns)
        return LEAT_OK;
    for (uint32_t i = 0; i < max_records && !err && leat_out_available(self->ctx); i++) {
        parcel record = make_parcel(own->of, own->source, own->next);
        err = leat_collect(out, &record);
        own->next++;
    }
    atomic_store_explicit(&own->of->sent[own->source], own->next, memory_order_relaxed);
    *state = LEAT_POLL_MORE;
    return err;
}

static void polled_dispose(leat_operator *self)
{
    free(self);
}

static leat_err polled_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "source: polled", .poll = polled_poll, .dispose = polled_dispose};
    polled *made = malloc(sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (polled){.base = {.ops = &ops},
                     .of = (trial *)(uintptr_t)factory->config,
                     .source = leat_ctx_subtask(ctx)};
    *op = &made->base;
    return LEAT_OK;
}

// --- the source with a thread --------------------------------------------------------------------

static int run_source(const leat_ctx *ctx, leat_source_out *out)
{
    trial *t = leat_ctx_user_data(ctx);
    int64_t source = PARALLELISM + (int64_t)leat_ctx_subtask(ctx), next = 0;
    while (now_ns() < t->ends_ns) {
        parcel record = make_parcel(t, source, next);
        if (leat_source_emit(out, &record) != LEAT_OK)
            return 0;
        next++;
        atomic_store_explicit(&t->sent[source], next, memory_order_relaxed);
    }
    return 0;
}

// --- the sink ------------------------------------------------------------------------------------

static int receive(leat_ctx *ctx, const void *in)
{
    const parcel *record = in;
    trial *t = leat_ctx_user_data(ctx);
    uint32_t sink = leat_ctx_subtask(ctx);
    if (record->source < 0 || record->source >= SOURCES)
        return leat_fail(ctx, "a record of source %" PRId64, record->source);
    int64_t *last = &t->sinks[sink].last[record->source];
    if (record->index <= *last)
        return leat_fail(ctx, "source %" PRId64 ": record %" PRId64 " after %" PRId64,
                         record->source, record->index, *last);
    size_t size = text_size(t, record->source, record->index);
    if (record->text.size != size || (size && memcmp(record->text.data, t->text, size) != 0))
        return leat_fail(ctx, "source %" PRId64 ": record %" PRId64 " is damaged", record->source,
                         record->index);
    *last = record->index;
    t->sinks[sink].count[record->source]++;
    for (int step = 0; step < SINK_WORK; step++)
        t->sinks[sink].work = mix(t->sinks[sink].work + (uint64_t)step);
    return 0;
}

// --- memory --------------------------------------------------------------------------------------

static int64_t resident_kib(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*s %lld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

// Samples until the job has ended. Growth counts only when the least sample of the last third is
// above all of the warm-up, so that a passing bulge does not.
static leat_err watch(leat_job *job, int64_t starts_ns, int64_t ends_ns, int64_t *growth_kib)
{
    int64_t third = (ends_ns - starts_ns) / 3, warm = 0, least = INT64_MAX;
    int64_t warm_up = INT64_C(1000000000) * WARM_UP_SECONDS;
    leat_err err;
    if (warm_up > third)
        warm_up = third;
    while ((err = leat_job_wait(job, SAMPLE_MS)) == LEAT_EAGAIN) {
        int64_t now = now_ns(), kib = resident_kib();
        if (now < starts_ns + warm_up)
            warm = kib > warm ? kib : warm;
        else if (now > ends_ns - third && now < ends_ns)
            least = kib < least ? kib : least;
    }
    *growth_kib = least == INT64_MAX ? 0 : least - warm;
    printf("resident memory: at most %" PRId64 " KiB while warming up, %+" PRId64 " KiB later\n",
           warm, *growth_kib);
    return err;
}

// How much longer the sinks have worked than the sources' tasks, for the same records. What the
// threads of the blocking source do is not in it.
static void print_ratio(const leat_job *job)
{
    uint64_t source_ns = 1, sink_ns = 0;
    for (uint32_t i = 0; i < leat_job_task_count(job); i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
        if (strstr(stats.name, SINK_NAME))
            sink_ns += stats.busy_ns;
        else
            source_ns += stats.busy_ns;
    }
    printf("the sinks worked %.1f times as long as the sources\n",
           (double)sink_ns / (double)source_ns);
}

// --- the trial -----------------------------------------------------------------------------------

static void build(leat_env *env, trial *t)
{
    static const leat_blocking_source_fns fns = {.run = run_source};
    leat_env_set_parallelism(env, PARALLELISM);
    // Should these fail, they become faults, which stop the job.
    (void)leat_env_set(env, "workers", "2");
    (void)leat_env_set(env, "memory.network", network_memory);
    leat_stream *both[] = {
        leat_source(env, "polled", &(leat_factory){polled_create, t}, LEAT_TYPE(parcel)),
        leat_user_data(leat_blocking_source(env, "thread", &fns, LEAT_TYPE(parcel)), t)};
    leat_stream *mixed = leat_rebalance(leat_union(both, 2));
    leat_user_data(leat_name(leat_sink(mixed, receive), SINK_NAME), t);
}

static int run(leat_env *env, trial *t, int64_t seconds, int64_t *growth_kib)
{
    leat_runtime *runtime = NULL;
    leat_job *job = NULL;
    char why[256] = "";
    leat_err err = leat_runtime_create(env, &runtime, why, sizeof why);
    int64_t starts = now_ns();
    t->ends_ns = starts + seconds * 1000000000;
    if (!err)
        err = leat_start(runtime, env, &job);
    if (!err)
        err = watch(job, starts, t->ends_ns, growth_kib);
    if (err) {
        fprintf(stderr, "seed %" PRIu64 ": %s %s %s\n", t->seed, leat_err_name(err), why,
                job ? leat_job_failure(job) : "");
        for (size_t i = 0; i < leat_env_fault_count(env); i++)
            fprintf(stderr, "%s\n", leat_env_fault(env, i));
    }
    if (job && !err)
        print_ratio(job);
    if (job)
        leat_job_destroy(&job);
    if (runtime)
        leat_runtime_destroy(&runtime);
    return err ? 1 : 0;
}

static int check_counts(const trial *t)
{
    int bad = 0;
    for (int source = 0; source < SOURCES; source++) {
        int64_t sent = atomic_load(&t->sent[source]), received = 0;
        for (int sink = 0; sink < PARALLELISM; sink++)
            received += t->sinks[sink].count[source];
        printf("source %d: sent %" PRId64 ", received %" PRId64 "\n", source, sent, received);
        if (sent != received || sent == 0) {
            fprintf(stderr, "seed %" PRIu64 ": source %d lost records\n", t->seed, source);
            bad = 1;
        }
    }
    return bad;
}

int main(int argc, char **argv)
{
    static trial t;
    int64_t seconds = argc > 1 ? atoll(argv[1]) : DEFAULT_SECONDS, growth_kib = 0;
    leat_env *env;
    t.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)now_ns();
    for (size_t i = 0; i < MAX_TEXT; i++)
        t.text[i] = (char)('a' + i % 26);
    for (int sink = 0; sink < PARALLELISM; sink++)
        for (int source = 0; source < SOURCES; source++)
            t.sinks[sink].last[source] = -1;
    if (seconds <= 0 || leat_env_create(NULL, &env) != LEAT_OK)
        return 2;
    build(env, &t);
    int bad = run(env, &t, seconds, &growth_kib);
    leat_env_destroy(&env);
    if (!bad)
        bad = check_counts(&t);
#ifndef SANITIZED
    if (growth_kib > GROWTH_KIB) {
        fprintf(stderr, "seed %" PRIu64 ": memory grew by %" PRId64 " KiB\n", t.seed, growth_kib);
        bad = 1;
    }
#endif
    return bad;
}
