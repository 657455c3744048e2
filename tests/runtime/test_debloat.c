// SPDX-License-Identifier: Apache-2.0
// The size of segments before a slow task: the arithmetic with times of the test's, and a job with
// a throttled sink.
#include <unistd.h>

#include "jobs.h"
#include "runtime/debloat.h"
#include "runtime/execution.h"

TestSuite(debloat, .timeout = 120);

enum { WHOLE = 32768 };
static const int64_t second_ns = 1000000000;

static leati_debloat gate_of(int64_t target_ns)
{
    leati_debloat gate;
    leati_debloat_init(&gate, target_ns, WHOLE);
    return gate;
}

static uint32_t size_of(leati_debloat *gate)
{
    return atomic_load(&gate->size);
}

// So many looks, a second of work and so many bytes each. Returns how many of them had news.
static int look(leati_debloat *gate, int count, uint64_t bytes, uint32_t segments)
{
    int news = 0;
    for (int i = 0; i < count; i++)
        news +=
            leati_debloat_look(gate, gate->bytes + bytes, gate->active_ns + second_ns, segments);
    return news;
}

Test(debloat, the_size_goes_down_by_two_twentyfirsts_and_is_announced_from_a_quarter_on)
{
    leati_debloat gate = gate_of(second_ns);
    // Nothing is taken in: 32768 (19/21)^n is 29647, 26824, 24269; a quarter less is 24576.
    cr_assert_eq(look(&gate, 2, 0, 10), 0);
    cr_assert_eq(size_of(&gate), WHOLE);
    cr_assert_eq(look(&gate, 1, 0, 10), 1);
    cr_assert_eq(size_of(&gate), 24269);
}

Test(debloat, a_slow_task_gets_what_it_works_off_within_the_target)
{
    leati_debloat gate = gate_of(second_ns);
    // 20,000 bytes a second and 20 segments: 1,000 each.
    look(&gate, 200, 20000, 20);
    cr_assert(size_of(&gate) >= 1000 && size_of(&gate) <= 1334, "%u", size_of(&gate));
    int64_t drain_ms = atomic_load(&gate.drain_ns) / 1000000;
    cr_assert(drain_ms >= 1000 && drain_ms <= 1334, "%lld", (long long)drain_ms);
    // With half the target it is half of that.
    gate = gate_of(second_ns / 2);
    look(&gate, 200, 20000, 20);
    cr_assert(size_of(&gate) >= 500 && size_of(&gate) <= 667, "%u", size_of(&gate));
}

Test(debloat, the_size_stays_between_256_bytes_and_a_segment)
{
    leati_debloat gate = gate_of(second_ns);
    look(&gate, 200, 100, 20);
    cr_assert_eq(size_of(&gate), 256);
    // Ten times a segment for each: it grows as slowly as it has shrunk, and to the end.
    int news = look(&gate, 30, 10 * WHOLE * 20, 20);
    cr_assert(news > 0 && size_of(&gate) < WHOLE);
    look(&gate, 60, 10 * WHOLE * 20, 20);
    cr_assert_eq(size_of(&gate), WHOLE);
    cr_assert_eq(look(&gate, 10, 10 * WHOLE * 20, 20), 0);
    leati_debloat small;
    leati_debloat_init(&small, second_ns, 128);
    look(&small, 200, 1, 20);
    cr_assert_eq(size_of(&small), 128);
}

Test(debloat, an_empty_queue_counts_as_one_segment)
{
    leati_debloat gate = gate_of(second_ns);
    look(&gate, 200, 2000, 0);
    cr_assert(size_of(&gate) >= 2000 && size_of(&gate) <= 2668, "%u", size_of(&gate));
    cr_assert_eq(atomic_load(&gate.drain_ns), 0);
}

Test(debloat, a_task_that_has_not_worked_or_not_yet_told_changes_nothing)
{
    leati_debloat gate = gate_of(second_ns);
    for (int i = 0; i < 100; i++)
        cr_assert(!leati_debloat_look(&gate, 1000, 999999, 20));
    for (int i = 0; i < 100; i++)
        cr_assert(!leati_debloat_look(&gate, 0, second_ns - 1, 20));
    cr_assert(gate.average == WHOLE);
    // 2,000 bytes in those 0.5 s and 0.7 s together, one segment: (2000 / 1.2 - 32768) 2 / 21.
    cr_assert(!leati_debloat_look(&gate, 0, second_ns / 2, 1));
    leati_debloat_look(&gate, 2000, second_ns * 12 / 10, 1);
    cr_assert((uint32_t)gate.average == 29805, "%f", gate.average);
}

// --- a job ---

static _Atomic int64_t shown_ns;

static int64_t show(void *user)
{
    return *(_Atomic int64_t *)user;
}

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    *(int64_t *)out = index;
    return 0;
}

static int take_slowly(leat_ctx *ctx, const void *record)
{
    usleep(200);
    return 0;
}

// Sources that are, in turns of the same size, as many times as fast as the sink.
enum { SOURCES = 5 };

static leat_env *throttled(const char *debloat)
{
    leat_env *env;
    leat_env_options options = {.clock = {.now_ns = show, .user = &shown_ns}};
    shown_ns = 1;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    cr_assert(leat_env_set(env, "network.debloat", debloat) == LEAT_OK);
    cr_assert(leat_env_set(env, "network.debloat-target", "1ms") == LEAT_OK);
    leat_stream *numbers = leat_generate(env, make, LEAT_UNBOUNDED, 0, NUMBER);
    leat_parallelism(numbers, SOURCES);
    leat_parallelism(leat_sink(leat_rebalance(numbers), take_slowly), 1);
    return env;
}

typedef struct stepping {
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
} stepping;

static void stepping_open(stepping *s, const char *debloat)
{
    *s = (stepping){.env = throttled(debloat)};
    cr_assert(leati_runtime_create_stepped(s->env, 10, &s->runtime, NULL, 0) == LEAT_OK);
    cr_assert(leat_start(s->runtime, s->env, &s->job) == LEAT_OK);
    cr_assert_eq(leat_job_task_count(s->job), SOURCES + 1);
}

static void stepping_close(stepping *s)
{
    leat_job_cancel(s->job);
    cr_assert(leat_job_wait(s->job, -1) == LEAT_ECANCELLED);
    leat_job_destroy(&s->job);
    leat_runtime_destroy(&s->runtime);
    leat_env_destroy(&s->env);
}

// Some turns, and a period of the clock.
static void stepping_go_on(stepping *s)
{
    for (int i = 0; i < 6; i++)
        cr_assert_not_null(leati_scheduler_step(s->runtime->scheduler));
    shown_ns += LEATI_DEBLOAT_PERIOD_MS * INT64_C(1000000);
    leati_service_run_due(s->runtime->service);
}

static uint64_t queued_bytes(const stepping *s)
{
    uint64_t out = 0, in = 0;
    for (uint32_t i = 0; i <= SOURCES; i++) {
        leat_task_stats stats;
        leat_job_task_stats(s->job, i, &stats);
        if (stats.is_source)
            out += stats.bytes_out;
        else
            in = stats.bytes_in;
    }
    return out > in ? out - in : 0;
}

// That the sink wants.
static uint32_t segment_bytes(const stepping *s)
{
    uint32_t least = WHOLE;
    for (uint32_t i = 0; i <= SOURCES; i++) {
        uint32_t size;
        int64_t drain_ms;
        leati_job_task_debloat(s->job, i, &size, &drain_ms);
        least = size < least ? size : least;
    }
    return least;
}

// What ten segments in each channel, and the open one, hold at the least.
static const uint64_t little = (uint64_t)SOURCES * 11 * LEATI_DEBLOAT_LEAST;

Test(debloat, before_a_throttled_sink_little_is_queued)
{
    stepping s;
    stepping_open(&s, "true");
    cr_assert_eq(segment_bytes(&s), WHOLE);
    // 200 us a record are 64 bytes in 1 ms at most, whatever is queued.
    for (int i = 0; segment_bytes(&s) > LEATI_DEBLOAT_LEAST; i++) {
        cr_assert(i < 20000, "%u", segment_bytes(&s));
        stepping_go_on(&s);
    }
    // When what was queued in larger segments is gone.
    for (int i = 0; queued_bytes(&s) > little; i++) {
        cr_assert(i < 20000, "%llu", (unsigned long long)queued_bytes(&s));
        stepping_go_on(&s);
    }
    for (int i = 0; i < 50; i++) {
        stepping_go_on(&s);
        cr_assert(queued_bytes(&s) <= little, "%llu", (unsigned long long)queued_bytes(&s));
    }
    stepping_close(&s);
}

Test(debloat, without_it_segments_stay_whole)
{
    stepping s;
    stepping_open(&s, "false");
    for (int i = 0; queued_bytes(&s) <= 2 * little; i++) {
        cr_assert(i < 20000);
        stepping_go_on(&s);
    }
    cr_assert_eq(segment_bytes(&s), WHOLE);
    stepping_close(&s);
}
