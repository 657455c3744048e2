// SPDX-License-Identifier: Apache-2.0
// Crashes of user functions, each in a process of its own whose handler tells where it was.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs.h"
#include "runtime/placement.h"

TestSuite(crash_place, .timeout = 120);

static int told; // where the handler writes to

static void on_crash(int signal_number, siginfo_t *info, void *context)
{
    char text[200];
    uint64_t attempt;
    uint32_t vertex, subtask;
    if (!leati_crash_place(context, &attempt, &vertex, &subtask, text, sizeof text))
        memcpy(text, "nowhere", sizeof "nowhere");
    ssize_t written = write(told, text, strlen(text));
    _exit(written > 0 ? 0 : 1);
}

static void catch_crashes(void)
{
    static char stack[128 * 1024];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
}

// What the handler says of a job that crashes.
static const char *crash(void (*build)(leat_env *env))
{
    static char text[200];
    int ends[2];
    cr_assert(pipe(ends) == 0);
    pid_t child = fork();
    cr_assert(child >= 0);
    if (child == 0) {
        told = ends[1];
        catch_crashes();
        leat_env *env;
        if (leat_env_create(NULL, &env))
            _exit(2);
        leat_env_set(env, "workers", "2");
        build(env);
        _exit(leat_execute(env) ? 3 : 4);
    }
    close(ends[1]);
    ssize_t size = 0, got;
    while ((got = read(ends[0], text + size, sizeof text - 1 - (size_t)size)) > 0)
        size += got;
    close(ends[0]);
    text[size] = '\0';
    int status;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d, \"%s\"", status, text);
    return text;
}

// --- functions ---

static int one_more(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in + 1;
    return 0;
}

static int every(leat_ctx *ctx, const void *in)
{
    return 1;
}

static int discard(leat_ctx *ctx, const void *in)
{
    return 0;
}

static int *nowhere(void)
{
    static int *_Atomic pointer; // which the compiler does not know to be NULL
    return pointer;
}

// Sanitizers would find them before the processor does.
#define CRASHES __attribute__((no_sanitize("undefined", "address")))

CRASHES static int segfault_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 0;
    if (*(const int64_t *)in > 1000)
        *nowhere() = 1;
    return 0;
}

static int abort_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 0;
    if (*(const int64_t *)in > 1000)
        abort();
    return 0;
}

__attribute__((noinline)) static int64_t recurse(leat_ctx *ctx, int64_t depth)
{
    char room[4096];
    memset(room, (int)depth, sizeof room);
    __asm__ __volatile__("" : : "r"(room) : "memory");
    if (leat_ctx_cancelled(ctx) && depth < 0)
        return 0;
    return recurse(ctx, depth + 1) + room[depth % 4096];
}

static int overflow_map(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in > 1000 ? recurse(ctx, 0) : 0;
    return 0;
}

CRASHES static int segfault_flat_map(leat_ctx *ctx, const void *in, leat_out *out)
{
    if (leat_collect(out, in))
        return -1;
    if (*(const int64_t *)in > 1000)
        *nowhere() = 1;
    return 0;
}

// a → b → c → sink in one chain, of which b crashes.
static void build_chain(leat_env *env, leat_map_fn fn)
{
    leat_stream *numbers = leat_rebalance(leat_sequence(env, 0, 1000000));
    leat_stream *a = leat_name(leat_map(numbers, one_more, NUMBER), "first");
    leat_stream *b = leat_name(leat_map(a, fn, NUMBER), "second");
    leat_stream *c = leat_name(leat_filter(b, every), "third");
    leat_sink(c, discard);
}

static void build_segfault(leat_env *env)
{
    build_chain(env, segfault_map);
}

static void build_abort(leat_env *env)
{
    build_chain(env, abort_map);
}

static void build_overflow(leat_env *env)
{
    build_chain(env, overflow_map);
}

Test(crash_place, the_second_operator_of_a_chain)
{
    cr_assert_str_eq(crash(build_segfault), "operator \"second\" (1/1)");
}

// Which has left traces of those after it.
static void build_after_emitting(leat_env *env)
{
    leat_stream *numbers = leat_rebalance(leat_sequence(env, 0, 1000000));
    leat_stream *a = leat_name(leat_map(numbers, one_more, NUMBER), "first");
    leat_stream *b = leat_name(leat_flat_map(a, segfault_flat_map, NUMBER), "second");
    leat_stream *c = leat_name(leat_map(leat_filter(b, every), one_more, NUMBER), "third");
    leat_sink(c, discard);
}

Test(crash_place, an_operator_that_has_emitted_before)
{
    cr_assert_str_eq(crash(build_after_emitting), "operator \"second\" (1/1)");
}

Test(crash_place, abort_is_told_as_well)
{
    cr_assert_str_eq(crash(build_abort), "operator \"second\" (1/1)");
}

Test(crash_place, a_stack_that_has_overflowed)
{
    cr_assert_str_eq(crash(build_overflow), "operator \"second\" (1/1)");
}

CRASHES static int segfault_third(leat_ctx *ctx, const void *in)
{
    if (leat_ctx_subtask(ctx) == 2)
        *nowhere() = 1;
    return 0;
}

static void build_sink(leat_env *env)
{
    leat_stream *numbers = leat_rebalance(leat_sequence(env, 0, 1000000));
    leat_name(leat_parallelism(leat_sink(numbers, segfault_third), 3), "sink");
}

Test(crash_place, the_subtask_is_told)
{
    cr_assert_str_eq(crash(build_sink), "operator \"sink\" (3/3)");
}

CRASHES static int segfault_source(const leat_ctx *ctx, leat_source_out *out)
{
    *nowhere() = 1;
    return 0;
}

static void build_source(leat_env *env)
{
    static const leat_blocking_source_fns fns = {.run = segfault_source};
    leat_sink(leat_blocking_source(env, "feed", &fns, NUMBER), discard);
}

Test(crash_place, the_thread_of_a_blocking_source)
{
    cr_assert_str_eq(crash(build_source), "operator \"feed\" (1/1)");
}

Test(crash_place, threads_of_the_program_work_for_no_task)
{
    char text[100];
    uint64_t attempt;
    uint32_t vertex, subtask;
    cr_assert(!leati_crash_place(NULL, &attempt, &vertex, &subtask, text, sizeof text));
}
