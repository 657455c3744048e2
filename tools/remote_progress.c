// SPDX-License-Identifier: Apache-2.0
#include "tools/remote_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "tools/text.h"

enum { ASK_MS = 400, RATE_MS = 1000 };

void leati_remote_progress_init(leati_remote_progress *progress, leati_remote *remote,
                                leati_console *console, const char *id)
{
    int64_t now_ns = leati_clock_ns();
    *progress = (leati_remote_progress){.remote = remote,
                                        .console = console,
                                        .id = id,
                                        .started_ns = now_ns,
                                        .older_ns = now_ns,
                                        .newer_ns = now_ns};
}

// The most back-pressured task: its share in percent, and its name.
static double most_held(const leati_client_module *c, const leati_json *job, const char **name)
{
    const leati_json *vertices = c->member(job, "vertices");
    double most = 0;
    for (size_t v = 0; v < c->count(vertices); v++) {
        const leati_json *vertex = c->item(vertices, v), *tasks = c->member(vertex, "tasks");
        for (size_t t = 0; t < c->count(tasks); t++) {
            const leati_json *task = c->item(tasks, t);
            double held = c->number(c->member(task, "soft")) + c->number(c->member(task, "hard"));
            if (held > most) {
                most = held;
                *name = c->text(c->member(vertex, "name"));
            }
        }
    }
    return most / 10;
}

// "12.3 M records  22.8 M/s  3 s  4/4 tasks  back-pressure 12 % (source: text -> flat_map)"
static void format_running(const leati_remote_progress *p, const leati_json *job, double records,
                           int64_t now_ns, char *line, size_t size)
{
    const leati_client_module *c = p->remote->api;
    const leati_json *tasks = c->member(job, "tasks");
    char count[LEATI_SCALED_SIZE], rate[LEATI_SCALED_SIZE], shown[512];
    const char *name = "";
    double seconds = (double)(now_ns - p->older_ns) / 1e9, held = most_held(c, job, &name);
    leati_scaled(records, count);
    leati_scaled(seconds > 0 && records > p->older ? (records - p->older) / seconds : 0, rate);
    int used = snprintf(
        line, size,
        "%s records  %s/s  %.0f s  %" PRId64 "/%" PRId64 " tasks  back-pressure %.0f %%", count,
        rate, (double)(now_ns - p->started_ns) / 1e9, c->integer(c->member(tasks, "running")),
        c->integer(c->member(tasks, "total")), held);
    // A line that is wider than the terminal could not be erased.
    size_t columns = leati_columns(line), width = leati_console_columns();
    enum { BRACKETS = 3, LEAST_NAME = 12 };
    if (held < 0.5 || columns + BRACKETS + LEAST_NAME >= width)
        return;
    leati_shorten(name, width - columns - BRACKETS - 1, shown, sizeof shown);
    snprintf(line + used, size - (size_t)used, " (%s)", shown);
}

static void draw(leati_remote_progress *p, const leati_json *job, bool cancelling)
{
    const leati_client_module *c = p->remote->api;
    const char *waits = c->text(c->member(job, "waiting_for"));
    const char *state = c->text(c->member(job, "state"));
    double records = c->number(c->member(job, "records_in"));
    int64_t now_ns = leati_clock_ns();
    char line[768], cut[768];
    if (cancelling)
        snprintf(line, sizeof line, "%s (a second signal ends at once)", state);
    else if (*waits)
        snprintf(line, sizeof line, "waits for %s  %.0f s", waits,
                 (double)(now_ns - p->started_ns) / 1e9);
    else
        format_running(p, job, records, now_ns, line, sizeof line);
    leati_shorten(line, leati_console_columns() - 1, cut, sizeof cut);
    leati_console_draw(p->console, cut);
    if ((now_ns - p->newer_ns) / 1000000 >= RATE_MS) {
        p->older_ns = p->newer_ns;
        p->older = p->newer;
        p->newer_ns = now_ns;
        p->newer = records;
    }
}

void leati_remote_progress_draw(leati_remote_progress *progress, bool cancelling)
{
    const leati_client_module *c = progress->remote->api;
    int64_t now_ns = leati_clock_ns();
    if (!progress->console->live || (now_ns - progress->read_ns) / 1000000 < ASK_MS)
        return;
    progress->read_ns = now_ns;
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_client_answer answer;
    snprintf(path, sizeof path, "/jobs/%s", progress->id);
    if (c->call(progress->remote->client, "GET", path, 0, &answer))
        return;
    leati_json *job = c->parse(answer.body, answer.size);
    if (job)
        draw(progress, job, cancelling);
    c->forget(job);
}
