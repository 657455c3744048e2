// SPDX-License-Identifier: Apache-2.0
// A test kit for jobs and operators: a harness that runs a job in the calling thread, step by step,
// by a clock that stands still until it is told to move (docs/testing.md).
//
//     leat_harness *h;
//     leat_harness_create(NULL, &h);
//     leat_env *env = leat_harness_env(h);
//     leat_stream *lines = leat_test_input(env, "lines", leat_type_scalar(LEAT_STR));
//     leat_test_output(leat_flat_map(lines, split, LEAT_TYPE(word_count)), "words");
//     leat_harness_feed(h, "lines", &(leat_str){"to be", 5});
//     leat_harness_run(h);                      // until nothing is left to do
//     leat_harness_text(h, "words");            // "to\t1\nbe\t1\n"
//     leat_harness_destroy(&h);
//
// A harness runs one job once. It has no threads: the order of everything is the same in each run.
// Of sources that bring threads of their own (leat_blocking_source) or read sockets that does not
// hold; tests replace them by inputs. All functions are for the thread that has made the harness;
// those that run the job may also be called from inside its functions, which stands for a function
// that blocks while the others go on.
//
// What fails returns a code, and leat_harness_why says it in words.
#ifndef LEAT_TESTING_H
#define LEAT_TESTING_H

#include "leat/env.h"
#include "leat/execute.h"
#include "leat/stream.h"

LEAT_BEGIN_DECLS

typedef struct leat_harness leat_harness;

// Zeros are the defaults.
typedef struct leat_harness_options {
    const leat_allocator *allocator; // of the harness and of the job; NULL: the default
    leat_logger logger;              // of the job; zeroed: log lines are dropped
    // 0: of the tasks that are ready the one that has been so for longest has its turn. Otherwise
    // chance decides, the same with each run of the same seed.
    uint64_t seed;
    uint32_t turn_records; // that a task takes in one turn; 0: 1
    uint64_t most_turns;   // before leat_harness_run gives up; 0: 10 million
    int64_t start_ns;      // what the clock shows at first
} leat_harness_options;

// `options` may be NULL. LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_harness_create(const leat_harness_options *options,
                                                    leat_harness **harness);
// Cancels the job if it has not ended, and frees it with its environment and all that came out. Not
// from inside a function of the job.
LEAT_API void leat_harness_destroy(leat_harness **harness);
// Where the job is to be built, by stream calls or by a job function. Borrowed.
LEAT_API leat_env *leat_harness_env(leat_harness *harness);
// Why the last call that failed has done so: "there is no input \"line\"; there is \"lines\"", or
// the failure of the job. "" when none has. Valid until the next call.
LEAT_API const char *leat_harness_why(const leat_harness *harness);

// --- what goes in and comes out ---

// A source whose elements are those that the test feeds, with parallelism 1. Its name is unique
// among the inputs of the harness. `env` is that of a harness.
LEAT_API leat_stream *leat_test_input(leat_env *env, const char *name, const leat_type *type);
// A sink that keeps everything that comes out of `stream`, which may also be a side output or the
// rejects. Its name is unique among the outputs of the harness.
LEAT_API leat_stream *leat_test_output(leat_stream *stream, const char *name);
// For jobs that are built whole by a function of their own: makes the source of that name an input,
// or the sink an output, which has the same name from then on. LEAT_ENOENT, LEAT_EEXIST (two are
// called so), LEAT_EINVAL (neither source nor sink), LEAT_ESTATE (after the start), LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_harness_replace(leat_harness *harness, const char *name);

// Puts one element into an input, from where the job takes it when it is run; before the start,
// too. Records are copied. LEAT_ENOENT: there is no such input; LEAT_ESTATE: it has ended;
// LEAT_ENOMEM.
LEAT_API leat_err leat_harness_feed(leat_harness *harness, const char *input, const void *record);
LEAT_API leat_err leat_harness_feed_at(leat_harness *harness, const char *input, const void *record,
                                       int64_t timestamp);
LEAT_API leat_err leat_harness_feed_watermark(leat_harness *harness, const char *input,
                                              int64_t watermark);
LEAT_API leat_err leat_harness_end(leat_harness *harness, const char *input);
// The same for all inputs that have not ended.
LEAT_API leat_err leat_harness_end_all(leat_harness *harness);

typedef enum leat_element_kind {
    LEAT_ELEMENT_RECORD = 0,
    LEAT_ELEMENT_WATERMARK = 1,
    LEAT_ELEMENT_END = 2, // nothing follows from this subtask
} leat_element_kind;

typedef struct leat_test_element {
    leat_element_kind kind;
    const void *record; // or NULL; valid until the output is cleared or the harness destroyed
    bool has_timestamp;
    int64_t time;     // the record's timestamp, or the watermark
    uint32_t subtask; // of the output that has got it
} leat_test_element;

// Takes the next element of an output. LEAT_EAGAIN: there is none now; LEAT_ENOENT.
LEAT_API LEAT_MUST_USE leat_err leat_harness_next(leat_harness *harness, const char *output,
                                                  leat_test_element *element);
// How many elements have come out so far, taken or not (0 for an output that there is not), and one
// of them, counted from 0. LEAT_ENOENT: there is none.
LEAT_API size_t leat_harness_count(const leat_harness *harness, const char *output);
LEAT_API LEAT_MUST_USE leat_err leat_harness_element(leat_harness *harness, const char *output,
                                                     size_t index, leat_test_element *element);
// Takes all elements that have not been taken, as lines: a record's fields with a TAB between them
// (leat_record_text), followed by " @5" when it has the timestamp 5; "watermark 5", where the last
// is "watermark max"; "end". Valid until the next call; NULL for an output that there is not, and
// when out of memory.
LEAT_API const char *leat_harness_text(leat_harness *harness, const char *output);
// Forgets what has come out of it.
LEAT_API void leat_harness_clear(leat_harness *harness, const char *output);
// What print sinks have printed to descriptor 1 or 2 so far. Valid until the next call.
LEAT_API const char *leat_harness_printed(const leat_harness *harness, int fd);

// --- running ---
// All of these start the job if that has not been done. They return the code of the job's failure,
// once it has failed, or of the fault that has kept it from starting.

// Checks the graph and makes its tasks, which open when they are run.
LEAT_API LEAT_MUST_USE leat_err leat_harness_start(leat_harness *harness);
// Gives one task one turn. LEAT_EAGAIN: none is ready.
LEAT_API LEAT_MUST_USE leat_err leat_harness_step(leat_harness *harness);
// Gives turns until no task is ready. LEAT_ETOOBIG: they are still ready after the most turns.
LEAT_API LEAT_MUST_USE leat_err leat_harness_run(leat_harness *harness);
// The task that has had the last turn, an index for leat_job_task_stats.
LEAT_API uint32_t leat_harness_last_task(const leat_harness *harness);
// The job, for its state, statistics, metrics and accumulators and to cancel it; NULL before the
// start. Borrowed.
LEAT_API leat_job *leat_harness_job(leat_harness *harness);

// --- time ---

// What the clock shows; leat_ctx_now_ns of the job's functions gives the same. Any thread.
LEAT_API int64_t leat_harness_now_ns(const leat_harness *harness);
// Runs the job until nothing is ready, then moves the clock to the next moment at which something
// is due, and so on until `ns` have passed. LEAT_EINVAL for negative times; otherwise as run.
LEAT_API LEAT_MUST_USE leat_err leat_harness_advance(leat_harness *harness, int64_t ns);

// --- faults ---

// The `nth` (1: the next) allocation that the job or its environment makes from now on fails, and
// `count` in all. 0 takes that back. Of the test's own inputs and outputs none fails.
LEAT_API void leat_harness_fail_allocations(leat_harness *harness, uint64_t nth, uint64_t count);
// How many allocations the job has tried to make so far.
LEAT_API uint64_t leat_harness_allocations(const leat_harness *harness);
// The same with the memory segments that exchanges are made of. A task that finds none waits, in
// the middle of a record with an error when no other task can help. Once some have been refused,
// tasks look again when this is called again. Starts the job.
LEAT_API LEAT_MUST_USE leat_err leat_harness_fail_segments(leat_harness *harness, uint64_t nth,
                                                           uint64_t count);
// The operator of that name fails for the `nth` record (1: the first) that reaches it, over all
// subtasks, or that it emits if it is a source; as if its function had called leat_fail with `why`
// (NULL: a sentence), so with the consequences of leat_on_error. LEAT_ENOENT, LEAT_EEXIST,
// LEAT_EINVAL (0), LEAT_ESTATE (after the start), LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_harness_fail_operator(leat_harness *harness, const char *name,
                                                           uint64_t nth, const char *why);

// An allocator that can be told to fail, and counts; for any environment. Its hook may be used from
// any thread.
typedef struct leat_test_allocator leat_test_allocator;
// `under` (NULL: the default) is where the memory comes from. LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_test_allocator_create(const leat_allocator *under,
                                                           leat_test_allocator **allocator);
// Whatever was allocated through it must have been released.
LEAT_API void leat_test_allocator_destroy(leat_test_allocator **allocator);
// What to put where an allocator is asked for; lives as long as the allocator.
LEAT_API const leat_allocator *leat_test_allocator_hook(const leat_test_allocator *allocator);
// As leat_harness_fail_allocations. Any thread.
LEAT_API void leat_test_allocator_fail(leat_test_allocator *allocator, uint64_t nth,
                                       uint64_t count);
// Allocations and growths that were tried, those that were made to fail, and blocks that have not
// been released. Any thread.
LEAT_API uint64_t leat_test_allocator_tried(const leat_test_allocator *allocator);
LEAT_API uint64_t leat_test_allocator_failed(const leat_test_allocator *allocator);
LEAT_API uint64_t leat_test_allocator_live(const leat_test_allocator *allocator);

LEAT_END_DECLS

#endif
