// SPDX-License-Identifier: Apache-2.0
// The environment: the job graph while it is being built, its settings and its faults.
//
// An environment belongs to one thread until it is executed, and must not be changed while a job
// made from it runs. Faults in building stick to it, so a chain of builder calls needs no checks in
// between: leat_env_check (and everything that executes) reports them all.
#ifndef LEAT_ENV_H
#define LEAT_ENV_H

#include "leat/alloc.h"
#include "leat/base.h"
#include "leat/error.h"
#include "leat/log.h"

LEAT_BEGIN_DECLS

typedef struct leat_env leat_env;

// The clock hook: what paced sources, waits of loops, watched files, retries, buffer timeouts,
// meters and leat_ctx_now_ns go by. `now_ns` gives nanoseconds since any moment, never less than
// before; it is called from any thread, concurrently, and must not call back into the library.
// Turns of tasks and the times of leat_task_stats go by the system's clock all the same. A clock
// that runs at a pace of its own is looked at every 10 ms while anybody waits for it.
typedef struct leat_clock {
    int64_t (*now_ns)(void *user);
    void *user; // must outlive the runtime
} leat_clock;

typedef struct leat_env_options {
    const leat_allocator *allocator; // NULL: the default
    leat_logger logger;              // zeroed: log lines are dropped
    // Takes what print sinks print (`fd` is 1 or 2, whole lines, called from worker threads one at
    // a time, may block); 0 for success or an errno. NULL: written to that file descriptor.
    int (*print)(void *user, int fd, const char *data, size_t size);
    void *print_user;
    leat_clock clock; // zeroed: the system's monotonic clock
} leat_env_options;

// `options` may be NULL. LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_env_create(const leat_env_options *options, leat_env **env);
// Frees the graph and everything from leat_env_alloc. No job made from it may be alive.
LEAT_API void leat_env_destroy(leat_env **env);

// The job's name, for people. Copied.
LEAT_API void leat_env_set_name(leat_env *env, const char *name);
// Parallelism of operators that set none (default 1), 1 … 32768.
LEAT_API void leat_env_set_parallelism(leat_env *env, uint32_t parallelism);
LEAT_API uint32_t leat_env_parallelism(const leat_env *env);
// Number of key groups of operators that set none; 0 (default) derives it: the larger of 128 and 16
// × parallelism rounded up to a power of two, at most 32768.
LEAT_API void leat_env_set_max_parallelism(leat_env *env, uint32_t max_parallelism);
// Whether operators are chained at all (default true).
LEAT_API void leat_env_set_chaining(leat_env *env, bool enabled);
// How long a record may wait in a partly filled segment, in ms (default 100): 0 flushes after every
// record, -1 only full segments.
LEAT_API void leat_env_set_buffer_timeout(leat_env *env, int64_t timeout_ms);
// Sets a configuration key, "memory.segment-size" to "64 KiB" say (docs/configuration.md). An
// unknown key or a bad value is a fault.
LEAT_API leat_err leat_env_set(leat_env *env, const char *key, const char *value);

// Zeroed memory that lives as long as the environment, for the settings of operators; NULL when out
// of memory (which becomes a fault).
LEAT_API void *leat_env_alloc(leat_env *env, size_t size_bytes);
LEAT_API const leat_allocator *leat_env_allocator(const leat_env *env);

// Records a fault: a job function calls it for wrong arguments, say.
LEAT_API void leat_env_fail(leat_env *env, leat_err err, const char *format, ...) LEAT_PRINTF(3, 4);
// Validates the graph. LEAT_OK, or the code of the first fault.
LEAT_API LEAT_MUST_USE leat_err leat_env_check(leat_env *env);
// The faults so far, in order; texts live until the environment changes.
LEAT_API size_t leat_env_fault_count(const leat_env *env);
LEAT_API const char *leat_env_fault(const leat_env *env, size_t index);

LEAT_END_DECLS

#endif
