// SPDX-License-Identifier: Apache-2.0
// What the analysis has found, in plain words.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cluster/manager/why.h"

enum { SHOWN_SUBTASKS = 5, SHOWN_WORKERS = 3 };

typedef struct writer {
    char *to;
    size_t size, used;
} writer;

LEAT_PRINTF(2, 3) static void say(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(w->to + w->used, w->size - w->used, format, args);
    va_end(args);
    if (needed > 0)
        w->used += (size_t)needed < w->size - w->used ? (size_t)needed : w->size - w->used - 1;
}

void leati_why_duration(int64_t ms, char *text, size_t text_size)
{
    if (ms < 1000)
        snprintf(text, text_size, "%" PRId64 " ms", ms < 0 ? 0 : ms);
    else if (ms < 10000)
        snprintf(text, text_size, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms / 100 % 10);
    else if (ms < 120000)
        snprintf(text, text_size, "%" PRId64 " s", ms / 1000);
    else if (ms < INT64_C(7200000))
        snprintf(text, text_size, "%" PRId64 " min", ms / 60000);
    else
        snprintf(text, text_size, "%" PRId64 " h", ms / 3600000);
}

static void say_duration(writer *w, const char *before, int64_t ms)
{
    char text[32];
    leati_why_duration(ms, text, sizeof text);
    say(w, "%s%s", before, text);
}

// --- who ---

// Without what is in parentheses: host and process.
static void say_worker(writer *w, const leati_why_input *in, uint32_t process)
{
    const char *name = process < in->worker_count ? in->workers[process] : "";
    size_t size = strcspn(name, "(");
    while (size && name[size - 1] == ' ')
        size--;
    say(w, "%.*s", (int)size, size ? name : "");
}

static bool is_first_of_process(const leati_why_input *in, const leati_why_result *r,
                                uint32_t subtask)
{
    uint32_t first = in->first_task[r->vertex];
    for (uint32_t i = 0; i < subtask; i++)
        if (r->named[first + i] &&
            in->tasks[first + i].process == in->tasks[first + subtask].process)
            return false;
    return r->named[first + subtask];
}

static void say_workers(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    uint32_t parallelism = in->graph->vertices[r->vertex].parallelism, count = 0, said = 0;
    for (uint32_t i = 0; i < parallelism; i++)
        count += is_first_of_process(in, r, i);
    if (count > SHOWN_WORKERS) {
        say(w, " on %" PRIu32 " task managers", count);
        return;
    }
    for (uint32_t i = 0; i < parallelism; i++) {
        if (!is_first_of_process(in, r, i))
            continue;
        say(w, "%s", said == 0 ? " on " : said + 1 == count ? " and " : ", ");
        say_worker(w, in, in->tasks[in->first_task[r->vertex] + i].process);
        said++;
    }
}

static uint32_t count_named(const leati_why_input *in, const leati_why_result *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < in->graph->vertices[r->vertex].parallelism; i++)
        count += r->named[in->first_task[r->vertex] + i];
    return count;
}

// (subtask 2/4), (subtasks 1, 3 of 4), (all 4 subtasks)
static void say_subtasks(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    uint32_t parallelism = in->graph->vertices[r->vertex].parallelism;
    uint32_t count = count_named(in, r), said = 0;
    if (count == parallelism && parallelism > 1) {
        say(w, " (all %" PRIu32 " subtasks)", parallelism);
        return;
    }
    say(w, count == 1 ? " (subtask " : " (subtasks ");
    for (uint32_t i = 0; i < parallelism && said < SHOWN_SUBTASKS; i++)
        if (r->named[in->first_task[r->vertex] + i])
            say(w, "%s%" PRIu32, said++ ? ", " : "", i + 1);
    if (count > said)
        say(w, " and %" PRIu32 " more", count - said);
    say(w, count == 1 ? "/%" PRIu32 ")" : " of %" PRIu32 ")", parallelism);
}

static void say_who(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    say(w, "\"%.200s\"", in->graph->vertices[r->vertex].name);
    say_subtasks(w, in, r);
    say_workers(w, in, r);
}

// --- the rest of the sentence ---

static bool is_held(const leati_why_task *t)
{
    bool waits = t->wait == LEATI_WAIT_BUFFER || t->wait == LEATI_WAIT_CREDIT;
    return t->held >= LEATI_WHY_HELD || (waits && t->wait_ms >= LEATI_WHY_HELD_MS);
}

static bool any_held(const leati_why_input *in, uint32_t vertex)
{
    for (uint32_t i = 0; i < in->graph->vertices[vertex].parallelism; i++)
        if (is_held(&in->tasks[in->first_task[vertex] + i]))
            return true;
    return false;
}

static void say_upstream(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    uint32_t last = UINT32_MAX, said = 0;
    for (uint32_t e = 0; e < in->graph->edge_count; e++) {
        const leati_job_edge *edge = &in->graph->edges[e];
        if (edge->to_vertex != r->vertex || edge->from_vertex == last ||
            !any_held(in, edge->from_vertex))
            continue;
        last = edge->from_vertex;
        say(w, "%s\"%.80s\"", said++ ? ", " : "; ", in->graph->vertices[last].name);
    }
    if (said)
        say(w, " upstream %s for it", said == 1 ? "waits" : "wait");
}

// The named subtask that has been so for the longest.
static const leati_why_task *first_named(const leati_why_input *in, const leati_why_result *r)
{
    for (uint32_t i = 0; i < in->graph->vertices[r->vertex].parallelism; i++)
        if (r->named[in->first_task[r->vertex] + i])
            return &in->tasks[in->first_task[r->vertex] + i];
    return &in->tasks[in->first_task[r->vertex]];
}

double leati_why_load(const leati_why_input *input, uint32_t vertex, uint32_t subtask)
{
    const leati_why_task *tasks = &input->tasks[input->first_task[vertex]];
    bool any = false;
    for (uint32_t i = 0; i < input->graph->vertices[vertex].parallelism; i++)
        any |= tasks[i].records > 0;
    return any ? (double)tasks[subtask].records : tasks[subtask].records_per_s;
}

// Means over the named subtasks, and over the others.
typedef struct means {
    double busy[2], load[2], records_per_s[2];
} means;

static means means_of(const leati_why_input *in, const leati_why_result *r)
{
    means m = {{0}, {0}, {0}};
    uint32_t count[2] = {0};
    for (uint32_t i = 0; i < in->graph->vertices[r->vertex].parallelism; i++) {
        const leati_why_task *t = &in->tasks[in->first_task[r->vertex] + i];
        int other = !r->named[in->first_task[r->vertex] + i];
        m.busy[other] += t->busy;
        m.load[other] += leati_why_load(in, r->vertex, i);
        m.records_per_s[other] += t->records_per_s;
        count[other]++;
    }
    for (int other = 0; other < 2; other++) {
        m.busy[other] /= count[other] ? count[other] : 1;
        m.load[other] /= count[other] ? count[other] : 1;
        m.records_per_s[other] /= count[other] ? count[other] : 1;
    }
    return m;
}

static void say_busy(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    means m = means_of(in, r);
    bool several = count_named(in, r) > 1;
    say(w, " %s busy %.0f %%", several ? "are" : "is", m.busy[0] / 10);
    if (r->cause == LEATI_WHY_BLOCKING)
        say(w, " in a blocking user function");
    if (r->cause == LEATI_WHY_SKEW || r->cause == LEATI_WHY_SLOW_TASK)
        say(w, ", its siblings %.0f %%", m.busy[1] / 10);
    if (r->cause == LEATI_WHY_SKEW && m.load[1] > 0)
        say(w, ", as %s %.1f times as many records", several ? "they get" : "it gets",
            m.load[0] / m.load[1]);
    else if (r->cause == LEATI_WHY_SKEW)
        say(w, ", which get no records");
    if (r->cause == LEATI_WHY_SLOW_TASK)
        say(w, m.load[0] * 1.5 < m.load[1] ? " with more records" : " with as many records");
    say_duration(
        w, several ? ", and their input has been full for " : ", and its input has been full for ",
        r->since_ms);
    if (r->cause == LEATI_WHY_SLOW && m.records_per_s[0] > 0)
        say(w, " (%.3g records a second each)", m.records_per_s[0]);
}

static void say_slots(writer *w, const leati_why_input *in)
{
    say(w, "the job waits for %" PRIu32 " slot%s", in->slots_needed,
        in->slots_needed == 1 ? "" : "s");
    if (in->one_process)
        say(w,
            " in one task manager, as it has a loop; the largest has %" PRIu32 " (at most %" PRIu32
            " free in one)",
            in->slots_total, in->slots_free);
    else
        say(w, ": %" PRIu32 " of %" PRIu32 " %s free", in->slots_free, in->slots_total,
            in->slots_free == 1 ? "is" : "are");
    say_duration(w, ", for ", in->slots_ms);
}

static void say_silent(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    say_worker(w, in, first_named(in, r)->process);
    say_duration(w, " has not reported for ", r->since_ms);
    say(w, "; ");
    say_who(w, in, r);
    say(w, " %s there", count_named(in, r) == 1 ? "runs" : "run");
}

static void say_waiting(writer *w, const leati_why_input *in, const leati_why_result *r)
{
    const leati_why_task *t = first_named(in, r);
    const char *what = t->wait_text && t->wait_text[0] ? t->wait_text : NULL;
    say_who(w, in, r);
    switch (r->cause) {
    case LEATI_WHY_STUCK:
        say(w, " hangs: %s has not returned", what ? what : "a user function");
        break;
    case LEATI_WHY_OUTPUT:
        say(w, " cannot get rid of its output: %s", what ? what : "nobody takes it");
        break;
    case LEATI_WHY_OPENING:
        say(w, " has not begun, it is %s%s%s", t->state ? t->state : "", what ? ": " : "",
            what ? what : "");
        break;
    case LEATI_WHY_WORKER:
        say(w, " could go on, and no worker thread takes it");
        break;
    default:
        say(w, " gets nothing of what waits to be sent to it: nothing comes through to ");
        say_worker(w, in, t->process);
    }
    say_duration(w, ", for ", r->since_ms);
}

void leati_why_explain(const leati_why_input *input, leati_why_result *result)
{
    writer w = {.to = result->text, .size = sizeof result->text};
    result->text[0] = '\0';
    switch (result->cause) {
    case LEATI_WHY_NOTHING:
        return;
    case LEATI_WHY_SLOTS:
        say_slots(&w, input);
        return;
    case LEATI_WHY_SILENT:
        say_silent(&w, input, result);
        return;
    case LEATI_WHY_BLOCKING:
    case LEATI_WHY_SKEW:
    case LEATI_WHY_SLOW_TASK:
    case LEATI_WHY_SLOW:
        say_who(&w, input, result);
        say_busy(&w, input, result);
        break;
    default:
        say_waiting(&w, input, result);
    }
    say_upstream(&w, input, result);
}

// --- each task ---

void leati_why_task_text(const leati_why_input *input, uint32_t vertex, uint32_t subtask,
                         char *text, size_t text_size)
{
    const leati_why_task *t = &input->tasks[input->first_task[vertex] + subtask];
    writer w = {.to = text, .size = text_size};
    text[0] = '\0';
    bool ended = t->state && (!strcmp(t->state, "FINISHED") || !strcmp(t->state, "FAILED") ||
                              !strcmp(t->state, "CANCELED"));
    if (ended)
        say(&w, "has ended: %s", t->state);
    else if (t->slow_report)
        say_duration(&w, "has not reported for ", t->silent_ms);
    else if (t->wait != LEATI_WAIT_NONE && t->wait_text && t->wait_text[0])
        say(&w, "%s", t->wait_text);
    else if (t->state && strcmp(t->state, "RUNNING") != 0)
        say(&w, "is %s", t->state[0] ? t->state : "not deployed yet");
    else
        say(&w, "works");
}
