// SPDX-License-Identifier: Apache-2.0
// What several benches need around a job.
#ifndef LEATI_BENCH_JOB_H
#define LEATI_BENCH_JOB_H

#include <stdatomic.h>

#include "leat/leat.h"

// An environment with that many workers, or NULL after saying why.
leat_env *bench_env(uint32_t workers, uint32_t parallelism);
// Runs the job, says on stderr what went wrong, and destroys the environment. 0 or -1.
int bench_execute(leat_env **env);

// What a sink has seen. Each subtask adds its share when it closes.
typedef struct bench_total {
    _Atomic uint64_t count, sum;
} bench_total;

// A sink that adds up the numbers of a stream of LEAT_I64. `total` must outlive the job.
leat_stream *bench_add_up(leat_stream *in, bench_total *total);

// Nanoseconds of the monotonic clock; seconds of processor time that this process has used.
int64_t bench_now_ns(void);
double bench_cpu_seconds(void);
// The same with the processes that it has started and waited for.
double bench_all_cpu_seconds(void);

#endif
