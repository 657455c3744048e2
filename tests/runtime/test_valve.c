// SPDX-License-Identifier: Apache-2.0
#include "runtime/valve.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define MAX     INT64_MAX
#define MIN     INT64_MIN
#define NOTHING INT64_MIN // no watermark comes out

typedef enum what { WATERMARK, IDLE, ACTIVE, FINISH, STOP } what;
typedef enum status { SAME, GOES_IDLE, GOES_ACTIVE } status;

typedef struct step {
    what what;
    uint32_t channel;
    int64_t watermark;
    // What has to come out.
    int64_t out;
    status status;
} step;

typedef struct sequence {
    const char *claim;
    uint32_t channels;
    step steps[12];
} sequence;

static leati_valve_output take(leati_valve *valve, const step *s)
{
    switch (s->what) {
    case WATERMARK:
        return leati_valve_watermark(valve, s->channel, s->watermark);
    case IDLE:
    case ACTIVE:
        return leati_valve_status(valve, s->channel, s->what == IDLE);
    default:
        return leati_valve_finished(valve, s->channel);
    }
}

// Worked out by hand from the rules of the reference.
static const sequence sequences[] = {
    {"one channel: its watermarks go through, others than rising ones do not",
     1,
     {{WATERMARK, 0, 5, 5, SAME},
      {WATERMARK, 0, 5, NOTHING, SAME},
      {WATERMARK, 0, 4, NOTHING, SAME},
      {WATERMARK, 0, 6, 6, SAME},
      {WATERMARK, 0, MAX, MAX, SAME},
      {WATERMARK, 0, 7, NOTHING, SAME}}},
    {"the minimum over the channels goes through",
     3,
     {{WATERMARK, 0, 10, NOTHING, SAME},
      {WATERMARK, 1, 20, NOTHING, SAME},
      {WATERMARK, 2, 5, 5, SAME},
      {WATERMARK, 2, 15, 10, SAME},
      {WATERMARK, 1, 30, NOTHING, SAME},
      {WATERMARK, 0, 40, 15, SAME},
      {WATERMARK, 2, 100, 30, SAME}}},
    {"an idle channel leaves the minimum",
     2,
     {{WATERMARK, 0, 10, NOTHING, SAME}, {IDLE, 1, 0, 10, SAME}, {WATERMARK, 0, 12, 12, SAME}}},
    {"the watermarks of an idle channel are ignored",
     2,
     {{WATERMARK, 0, 10, NOTHING, SAME},
      {IDLE, 1, 0, 10, SAME},
      {WATERMARK, 1, 50, NOTHING, SAME},
      {ACTIVE, 1, 0, NOTHING, SAME},
      // It is still at its beginning and has to catch up with 10.
      {WATERMARK, 1, 9, NOTHING, SAME},
      {WATERMARK, 0, 20, 20, SAME},
      {WATERMARK, 1, 19, NOTHING, SAME},
      {WATERMARK, 0, 30, 30, SAME},
      {WATERMARK, 1, 30, NOTHING, SAME},
      {WATERMARK, 0, 40, NOTHING, SAME},
      {WATERMARK, 1, 35, 35, SAME}}},
    {"a channel that resumes at the output or beyond counts at once",
     2,
     {{WATERMARK, 0, 10, NOTHING, SAME},
      {WATERMARK, 1, 10, 10, SAME},
      {IDLE, 1, 0, NOTHING, SAME},
      {ACTIVE, 1, 0, NOTHING, SAME},
      {WATERMARK, 0, 20, NOTHING, SAME},
      {WATERMARK, 1, 15, 15, SAME}}},
    {"when all are idle the largest watermark goes through, then the status",
     3,
     {{WATERMARK, 0, 10, NOTHING, SAME},
      {WATERMARK, 1, 30, NOTHING, SAME},
      {WATERMARK, 2, 20, 10, SAME},
      {IDLE, 1, 0, NOTHING, SAME},
      {IDLE, 0, 0, 20, SAME},
      {IDLE, 2, 0, 30, GOES_IDLE},
      {WATERMARK, 2, 40, NOTHING, SAME},
      {IDLE, 2, 0, NOTHING, SAME},
      {ACTIVE, 0, 0, NOTHING, GOES_ACTIVE},
      {WATERMARK, 0, 29, NOTHING, SAME},
      {WATERMARK, 0, 31, 31, SAME}}},
    {"all idle before any watermark: only the status changes",
     2,
     {{IDLE, 0, 0, NOTHING, SAME},
      {IDLE, 1, 0, NOTHING, GOES_IDLE},
      {ACTIVE, 1, 0, NOTHING, GOES_ACTIVE},
      {WATERMARK, 1, 1, 1, SAME}}},
    {"an idle channel beside a finished one does not end event time",
     2,
     {{WATERMARK, 1, 7, NOTHING, SAME},
      {IDLE, 1, 0, NOTHING, SAME},
      {WATERMARK, 0, MAX, 7, GOES_IDLE},
      {FINISH, 0, 0, NOTHING, SAME},
      {ACTIVE, 1, 0, NOTHING, GOES_ACTIVE},
      {WATERMARK, 1, 8, 8, SAME},
      {WATERMARK, 1, MAX, MAX, SAME}}},
    {"a finished channel leaves the minimum",
     2,
     {{WATERMARK, 0, 10, NOTHING, SAME},
      {WATERMARK, 1, 3, 3, SAME},
      {WATERMARK, 1, MAX, 10, SAME},
      {WATERMARK, 0, MAX, MAX, SAME},
      {FINISH, 0, 0, NOTHING, SAME},
      {FINISH, 1, 0, NOTHING, SAME}}},
    {"the largest watermark of a finished channel is not flushed",
     3,
     {{WATERMARK, 0, 100, NOTHING, SAME},
      {WATERMARK, 1, 5, NOTHING, SAME},
      {WATERMARK, 2, 6, 5, SAME},
      {STOP, 0, 0, NOTHING, SAME},
      {IDLE, 1, 0, 6, SAME},
      {IDLE, 2, 0, NOTHING, GOES_IDLE}}},
    {"channels that were cut off do not end event time",
     2,
     {{WATERMARK, 0, 5, NOTHING, SAME},
      {STOP, 0, 0, NOTHING, SAME},
      {WATERMARK, 1, 9, 9, SAME},
      {WATERMARK, 1, MAX, NOTHING, SAME}}},
    {"the end of an idle channel counts",
     2,
     {{IDLE, 0, 0, NOTHING, SAME},
      {WATERMARK, 0, MAX, NOTHING, SAME},
      {WATERMARK, 1, MAX, MAX, SAME}}},
};

Test(valve, each_rule_in_sequences_worked_out_by_hand, .timeout = 60)
{
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        const sequence *q = &sequences[i];
        leati_valve *valve;
        cr_assert(leati_valve_create(NULL, q->channels, &valve) == LEAT_OK);
        for (int n = 0; n < 12; n++) {
            const step *s = &q->steps[n];
            if (s->out == 0 && s->watermark == 0 && s->what == WATERMARK)
                break;
            leati_valve_output out = take(valve, s);
            cr_assert(out.watermark_advanced == (s->out != NOTHING), "%s, step %d", q->claim, n);
            if (out.watermark_advanced)
                cr_assert(out.watermark == s->out, "%s, step %d: %lld", q->claim, n,
                          (long long)out.watermark);
            cr_assert(out.status_changed == (s->status != SAME), "%s, step %d", q->claim, n);
            if (out.status_changed)
                cr_assert(out.idle == (s->status == GOES_IDLE), "%s, step %d", q->claim, n);
        }
        leati_valve_destroy(&valve);
        cr_assert_null(valve);
    }
}

// --- a naive model: everything is computed afresh with every message ---

enum { CHANNELS = 5 };

typedef struct model {
    struct {
        int64_t watermark;
        bool idle, aligned, finished, drained;
    } c[CHANNELS];
    uint32_t count;
    int64_t output;
    bool idle;
} model;

static bool all_drained(const model *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (!m->c[i].drained)
            return false;
    return true;
}

// The minimum over aligned channels, the maximum over unfinished ones when all are idle, or the
// end.
static int64_t target(const model *m, bool *goes_idle)
{
    int64_t minimum = MAX, maximum = MIN;
    bool any_aligned = false, any_active = false, any_unfinished = false;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->c[i].finished)
            continue;
        any_unfinished = true;
        any_active |= !m->c[i].idle;
        if (m->c[i].watermark > maximum)
            maximum = m->c[i].watermark;
        if (!m->c[i].aligned)
            continue;
        any_aligned = true;
        if (m->c[i].watermark < minimum)
            minimum = m->c[i].watermark;
    }
    *goes_idle = any_unfinished && !any_active;
    if (!any_unfinished)
        return all_drained(m) ? MAX : MIN;
    if (!any_active)
        return maximum;
    return any_aligned ? minimum : MIN;
}

static leati_valve_output settle(model *m)
{
    leati_valve_output out = {0};
    bool idle;
    int64_t next = target(m, &idle);
    if (m->idle && idle)
        return out; // it said all it had to say when it went idle
    if (next > m->output) {
        m->output = next;
        out.watermark_advanced = true;
        out.watermark = next;
    }
    if (idle && !m->idle) {
        m->idle = out.idle = out.status_changed = true;
    }
    return out;
}

static leati_valve_output model_take(model *m, const step *s)
{
    leati_valve_output nothing = {0};
    uint32_t i = s->channel;
    if (m->c[i].finished)
        return nothing;
    if (s->what == FINISH || s->what == STOP || (s->what == WATERMARK && s->watermark == MAX)) {
        m->c[i].finished = true;
        m->c[i].drained = s->what == WATERMARK;
        m->c[i].aligned = false;
        return settle(m);
    }
    if (s->what == WATERMARK) {
        if (m->idle || m->c[i].idle || s->watermark <= m->c[i].watermark)
            return nothing;
        m->c[i].watermark = s->watermark;
        m->c[i].aligned |= s->watermark >= m->output;
        return settle(m);
    }
    if (m->c[i].idle == (s->what == IDLE))
        return nothing;
    m->c[i].idle = s->what == IDLE;
    m->c[i].aligned = s->what == ACTIVE && m->c[i].watermark >= m->output;
    bool was_idle = m->idle && s->what == ACTIVE;
    if (was_idle)
        m->idle = false;
    leati_valve_output out = settle(m);
    out.status_changed |= was_idle;
    return out;
}

static uint32_t below(uint64_t *random, uint32_t bound)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*random >> 33) % bound);
}

Test(valve, random_messages_give_what_the_naive_model_gives, .timeout = 60)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t random = seed;
        model m = {.count = 1 + below(&random, CHANNELS), .output = MIN};
        leati_valve *valve;
        cr_assert(leati_valve_create(NULL, m.count, &valve) == LEAT_OK);
        for (uint32_t i = 0; i < m.count; i++) {
            m.c[i].watermark = MIN;
            m.c[i].aligned = true;
        }
        for (int n = 0; n < 200; n++) {
            uint32_t choice = below(&random, 100);
            step s = {.what = choice < 70   ? WATERMARK
                              : choice < 83 ? IDLE
                              : choice < 98 ? ACTIVE
                                            : FINISH,
                      .channel = below(&random, m.count),
                      .watermark =
                          below(&random, 150) == 0 ? MAX : below(&random, (uint32_t)n + 5)};
            leati_valve_output got = take(valve, &s), expected = model_take(&m, &s);
            cr_assert(got.watermark_advanced == expected.watermark_advanced &&
                          got.watermark == expected.watermark &&
                          got.status_changed == expected.status_changed &&
                          got.idle == expected.idle,
                      "seed %llu, message %d", (unsigned long long)seed, n);
        }
        leati_valve_destroy(&valve);
    }
}

static void *no_memory(void *user, size_t size)
{
    return NULL;
}

Test(valve, without_memory_there_is_none, .timeout = 60)
{
    leat_allocator none = *leat_allocator_default();
    none.allocate = no_memory;
    leati_valve *valve = NULL;
    cr_assert(leati_valve_create(&none, 3, &valve) == LEAT_ENOMEM);
    cr_assert_null(valve);
    leati_valve_destroy(&valve);
}
