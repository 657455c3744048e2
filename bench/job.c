// SPDX-License-Identifier: Apache-2.0
#include "bench/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

leat_env *bench_env(uint32_t workers, uint32_t parallelism)
{
    leat_env *env;
    char text[16];
    if (leat_env_create(NULL, &env) != LEAT_OK) {
        fprintf(stderr, "no environment: out of memory\n");
        return NULL;
    }
    snprintf(text, sizeof text, "%" PRIu32, workers);
    // Should this fail, it becomes a fault, which stops the job.
    (void)leat_env_set(env, "workers", text);
    leat_env_set_parallelism(env, parallelism);
    return env;
}

int bench_execute(leat_env **env)
{
    leat_err err = leat_execute(*env);
    for (size_t i = 0; i < leat_env_fault_count(*env); i++)
        fprintf(stderr, "%s\n", leat_env_fault(*env, i));
    leat_env_destroy(env);
    return err == LEAT_OK ? 0 : -1;
}

int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double bench_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double bench_all_cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return bench_cpu_seconds() + (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// --- the adding sink -----------------------------------------------------------------------------

typedef struct adder {
    leat_operator base;
    bench_total *total;
    uint64_t count, sum;
} adder;

static leat_err adder_element(leat_operator *self, const void *record, leat_out *out)
{
    adder *own = (adder *)self;
    own->count++;
    own->sum += (uint64_t) * (const int64_t *)record;
    return LEAT_OK;
}

static leat_err adder_close(leat_operator *self)
{
    adder *own = (adder *)self;
    atomic_fetch_add_explicit(&own->total->count, own->count, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->total->sum, own->sum, memory_order_relaxed);
    return LEAT_OK;
}

static void adder_dispose(leat_operator *self)
{
    free(self);
}

static leat_err adder_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "add up", .element = adder_element, .close = adder_close, .dispose = adder_dispose};
    adder *made = calloc(1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->base.ops = &ops;
    // A factory's settings are const to it; the total is not.
    made->total = (bench_total *)(uintptr_t)factory->config;
    *op = &made->base;
    return LEAT_OK;
}

leat_stream *bench_add_up(leat_stream *in, bench_total *total)
{
    return leat_transform_sink(in, "add up", &(leat_factory){adder_create, total});
}
