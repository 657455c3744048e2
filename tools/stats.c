// SPDX-License-Identifier: Apache-2.0
#include "tools/stats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/report.h"
#include "tools/text.h"

enum { NAME_COLUMNS = 44, CELL_SIZE = NAME_COLUMNS * 4 + 1 };

typedef enum column {
    TASK,
    SUBTASK,
    RECORDS_IN,
    RECORDS_OUT,
    BYTES_IN,
    BYTES_OUT,
    BUSY,
    IDLE,
    SOFT,
    HARD,
    POOL,
    STATE,
    COLUMN_COUNT
} column;

// The back-pressured share stands in two columns: "soft" is waiting before a record, "hard" inside
// one.
static const char *const headings[COLUMN_COUNT] = {
    "task",   "subtask", "records in", "records out", "bytes in", "bytes out",
    "busy %", "idle %",  "soft %",     "hard %",      "pool",     "state"};

typedef struct row {
    char cell[COLUMN_COUNT][CELL_SIZE];
} row;

uint64_t leati_stats_records_read(const leat_job *job)
{
    uint64_t records = 0;
    uint32_t count = leat_job_task_count(job);
    for (uint32_t i = 0; i < count; i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
        if (stats.is_source)
            records += stats.records_in;
    }
    return records;
}

void leati_stats_percent(const uint64_t *parts, uint32_t *percent, size_t count)
{
    double whole = 0, rest[8];
    uint32_t given = 0;
    assert(count <= sizeof rest / sizeof *rest);
    for (size_t i = 0; i < count; i++)
        whole += (double)parts[i];
    for (size_t i = 0; i < count; i++) {
        double share = whole > 0 ? 100 * (double)parts[i] / whole : 0;
        percent[i] = (uint32_t)share;
        rest[i] = share - percent[i];
        given += percent[i];
    }
    while (whole > 0 && given < 100) {
        size_t largest = 0;
        for (size_t i = 1; i < count; i++)
            if (rest[i] > rest[largest])
                largest = i;
        percent[largest]++;
        rest[largest] = -1;
        given++;
    }
}

static void format_bytes(uint64_t bytes, char *to)
{
    char scaled[LEATI_SCALED_SIZE];
    leati_scaled((double)bytes, scaled);
    snprintf(to, CELL_SIZE, "%s%s", scaled, strchr(scaled, ' ') ? "B" : " B");
}

static void format_row(const leat_task_stats *stats, row *to)
{
    uint64_t parts[4] = {stats->busy_ns, stats->idle_ns, stats->soft_ns, stats->hard_ns};
    uint32_t percent[4];
    leati_shorten(stats->name, NAME_COLUMNS, to->cell[TASK], CELL_SIZE);
    snprintf(to->cell[SUBTASK], CELL_SIZE, "%" PRIu32 "/%" PRIu32, stats->subtask + 1,
             stats->parallelism);
    snprintf(to->cell[RECORDS_IN], CELL_SIZE, "%" PRIu64, stats->records_in);
    snprintf(to->cell[RECORDS_OUT], CELL_SIZE, "%" PRIu64, stats->records_out);
    format_bytes(stats->bytes_in, to->cell[BYTES_IN]);
    format_bytes(stats->bytes_out, to->cell[BYTES_OUT]);
    leati_stats_percent(parts, percent, 4);
    for (int i = 0; i < 4; i++)
        snprintf(to->cell[BUSY + i], CELL_SIZE, "%" PRIu32, percent[i]);
    snprintf(to->cell[POOL], CELL_SIZE, "%" PRIu32 "/%" PRIu32, stats->segments_peak,
             stats->segments_limit);
    snprintf(to->cell[STATE], CELL_SIZE, "%s", stats->state);
}

static void widen(size_t *widths, const row *of)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        size_t columns = leati_columns(of->cell[i]);
        if (columns > widths[i])
            widths[i] = columns;
    }
}

// Words stand left, numbers right.
static void print_row(FILE *to, const size_t *widths, const row *of)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        const char *text = of->cell[i];
        int blanks = (int)(widths[i] - leati_columns(text));
        if (i == TASK)
            fprintf(to, "%s%*s", text, blanks, "");
        else if (i == STATE)
            fprintf(to, "  %s\n", text);
        else
            fprintf(to, "  %*s%s", blanks, "", text);
    }
}

static void print_table(FILE *to, const leat_job *job)
{
    row line;
    leat_task_stats stats;
    size_t widths[COLUMN_COUNT] = {0};
    uint32_t count = leat_job_task_count(job);
    for (int i = 0; i < COLUMN_COUNT; i++)
        snprintf(line.cell[i], CELL_SIZE, "%s", headings[i]);
    row heading = line;
    widen(widths, &heading);
    // Rows are made twice rather than kept: there may be many, and the job has ended.
    for (uint32_t i = 0; i < count; i++) {
        leat_job_task_stats(job, i, &stats);
        format_row(&stats, &line);
        widen(widths, &line);
    }
    print_row(to, widths, &heading);
    for (uint32_t i = 0; i < count; i++) {
        leat_job_task_stats(job, i, &stats);
        format_row(&stats, &line);
        print_row(to, widths, &line);
    }
}

static double wall_ns(const leat_task_stats *stats)
{
    return (double)(stats->busy_ns + stats->idle_ns + stats->soft_ns + stats->hard_ns);
}

// The bottleneck is the task that has least left to give while others wait for it: the busiest one,
// provided that any other task was held back.
static void print_bottleneck(FILE *to, const leat_job *job)
{
    enum { HELD_BACK_PERCENT = 10, BUSY_PERCENT = 50 };
    double most_busy = 0, most_held = 0;
    leat_task_stats stats, busiest = {0};
    uint32_t count = leat_job_task_count(job);
    for (uint32_t i = 0; i < count; i++) {
        leat_job_task_stats(job, i, &stats);
        double wall = wall_ns(&stats);
        if (wall <= 0)
            continue;
        double busy = 100 * (double)stats.busy_ns / wall;
        double held = 100 * (double)(stats.soft_ns + stats.hard_ns) / wall;
        if (busy > most_busy) {
            most_busy = busy;
            busiest = stats;
        }
        if (held > most_held)
            most_held = held;
    }
    if (most_held < HELD_BACK_PERCENT || most_busy < BUSY_PERCENT)
        return;
    char name[CELL_SIZE];
    leati_shorten(busiest.name, NAME_COLUMNS, name, sizeof name);
    fprintf(to, "bottleneck: %s (%" PRIu32 "/%" PRIu32 "), %.0f %% busy\n", name,
            busiest.subtask + 1, busiest.parallelism, most_busy);
}

static const char *outcome(leat_job_state state)
{
    switch (state) {
    case LEAT_JOB_FINISHED:
        return "finished in";
    case LEAT_JOB_FAILED:
        return "failed after";
    case LEAT_JOB_CANCELED:
        return "cancelled after";
    default:
        return "running for";
    }
}

void leati_stats_print(FILE *to, const leat_job *job, double seconds)
{
    char rate[LEATI_SCALED_SIZE];
    uint64_t total = leati_stats_records_read(job);
    print_table(to, job);
    print_bottleneck(to, job);
    leati_report_metrics(to, job);
    leati_report_results(to, job);
    leati_scaled(seconds > 0 ? (double)total / seconds : 0, rate);
    fprintf(to, "%s %.3f s: %" PRIu64 " records read, %s%s/s\n", outcome(leat_job_get_state(job)),
            seconds, total, rate, strchr(rate, ' ') ? "" : " ");
}
