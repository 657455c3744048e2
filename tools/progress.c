// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "tools/stats.h"
#include "tools/text.h"

static double seconds_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e9;
}

void leati_progress_init(leati_progress *progress, leati_console *console, const leat_job *job)
{
    int64_t now_ns = leati_clock_ns();
    *progress = (leati_progress){.console = console, .job = job, .started_ns = now_ns};
    progress->older.at_ns = progress->newer.at_ns = now_ns;
    if (!console->live)
        return;
    size_t count = (size_t)leat_job_task_count(job) + 1; // not 0
    progress->older.held_ns = leati_calloc(NULL, count, sizeof(uint64_t));
    progress->newer.held_ns = leati_calloc(NULL, count, sizeof(uint64_t));
}

void leati_progress_fini(leati_progress *progress)
{
    leati_console_erase(progress->console);
    leati_free(NULL, progress->older.held_ns);
    leati_free(NULL, progress->newer.held_ns);
}

static uint64_t held_ns(const leat_job *job, uint32_t index, leat_task_stats *stats)
{
    leat_job_task_stats(job, index, stats);
    return stats->soft_ns + stats->hard_ns;
}

// The share of the window during which the most back-pressured task was held back, in percent.
static double most_held(const leati_progress *progress, double seconds, leat_task_stats *most)
{
    uint64_t longest = 0;
    uint32_t count = leat_job_task_count(progress->job);
    for (uint32_t i = 0; i < count; i++) {
        leat_task_stats stats;
        uint64_t now = held_ns(progress->job, i, &stats);
        uint64_t before = progress->older.held_ns ? progress->older.held_ns[i] : 0;
        uint64_t held = now > before ? now - before : 0;
        if (i == 0 || held > longest) {
            longest = held;
            *most = stats;
        }
    }
    double share = seconds > 0 ? (double)longest / seconds / 1e7 : 0;
    return share > 100 ? 100 : share;
}

static void take_snapshot(leati_progress *progress, int64_t now_ns, uint64_t records)
{
    leati_snapshot fresh = progress->older;
    uint32_t count = leat_job_task_count(progress->job);
    fresh.at_ns = now_ns;
    fresh.records = records;
    for (uint32_t i = 0; fresh.held_ns && i < count; i++) {
        leat_task_stats stats;
        fresh.held_ns[i] = held_ns(progress->job, i, &stats);
    }
    progress->older = progress->newer;
    progress->newer = fresh;
}

// "12.3 M records  22.8 M/s  3 s  back-pressure 12 % (source: text -> flat_map)"
static void format_line(const leati_progress *progress, int64_t now_ns, uint64_t records,
                        char *line, size_t size)
{
    char count[LEATI_SCALED_SIZE], rate[LEATI_SCALED_SIZE], shown[512];
    double seconds = seconds_between(progress->older.at_ns, now_ns);
    leat_task_stats most = {.name = ""};
    double share = most_held(progress, seconds, &most);
    uint64_t fresh = records > progress->older.records ? records - progress->older.records : 0;
    leati_scaled((double)records, count);
    leati_scaled(seconds > 0 ? (double)fresh / seconds : 0, rate);
    int used = snprintf(line, size, "%s records  %s/s  %.0f s", count, rate,
                        seconds_between(progress->started_ns, now_ns));
    if (leat_job_get_state(progress->job) == LEAT_JOB_CANCELLING) {
        snprintf(line + used, size - (size_t)used, "  cancelling (a second signal ends at once)");
        return;
    }
    used += snprintf(line + used, size - (size_t)used, "  back-pressure %.0f %%", share);
    // A line that is wider than the terminal could not be erased.
    size_t columns = leati_columns(line), width = leati_console_columns();
    enum { BRACKETS = 3, LEAST_NAME = 12 };
    if (share < 0.5 || columns + BRACKETS + LEAST_NAME >= width)
        return;
    leati_shorten(most.name, width - columns - BRACKETS - 1, shown, sizeof shown);
    snprintf(line + used, size - (size_t)used, " (%s)", shown);
}

void leati_progress_draw(leati_progress *progress)
{
    if (!progress->console->live)
        return;
    char line[768], cut[768];
    int64_t now_ns = leati_clock_ns();
    uint64_t records = leati_stats_records_read(progress->job);
    format_line(progress, now_ns, records, line, sizeof line);
    leati_shorten(line, leati_console_columns() - 1, cut, sizeof cut);
    leati_console_draw(progress->console, cut);
    if (seconds_between(progress->newer.at_ns, now_ns) >= 1)
        take_snapshot(progress, now_ns, records);
}
