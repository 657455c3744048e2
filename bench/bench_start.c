// SPDX-License-Identifier: Apache-2.0
// What `leat run` costs before anything happens: the time from the start of the process to the
// job's first record, and the resident memory of a word count whose standard input says nothing.
// The yardstick is a program that starts two threads.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/job.h"
#include "bench/process.h"

enum { STARTS = 11, QUICK_STARTS = 3 };

static char tool[] = LEAT_BENCH_TOOL, start_job[] = LEAT_BENCH_START_JOB,
            word_count[] = LEAT_BENCH_WORD_COUNT, bare_program[] = LEAT_BENCH_BARE_START;

static int starts;

// --- the first record ----------------------------------------------------------------------------

// Both times in ms from the start of the process: of the first record, and of the process's end.
typedef struct started {
    double first, end;
} started;

static int start_once(char *const argv[], const int ends[2], started *times)
{
    process p;
    int64_t at;
    if (process_start(&p, argv, ends[1]) != 0)
        return -1;
    // The time stays in the pipe meanwhile. Reading does not wait, so a process that wrote none is
    // noticed.
    if (process_finish(&p) != 0)
        return -1;
    int64_t end = bench_now_ns();
    if (read(ends[0], &at, sizeof at) != sizeof at) {
        fprintf(stderr, "%s: no record came\n", argv[0]);
        return -1;
    }
    times->first = (double)(at - p.started_ns) * 1e-6;
    times->end = (double)(end - p.started_ns) * 1e-6;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The middle of several starts. `argv[last]` becomes the number of the descriptor to write to.
static int measure_starts(char **argv, size_t last, bench_outcome *outcome)
{
    int ends[2];
    char number[16];
    double first[STARTS], end[STARTS];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        fprintf(stderr, "no pipe: %s\n", strerror(errno));
        return -1;
    }
    snprintf(number, sizeof number, "%d", ends[1]);
    argv[last] = number;
    int result = 0;
    for (int i = 0; i < starts && result == 0; i++) {
        started times = {0};
        result = start_once(argv, ends, &times);
        first[i] = times.first;
        end[i] = times.end;
    }
    close(ends[0]);
    close(ends[1]);
    if (result != 0)
        return -1;
    qsort(first, (size_t)starts, sizeof *first, ascending);
    qsort(end, (size_t)starts, sizeof *end, ascending);
    *outcome =
        (bench_outcome){.items = (uint64_t)starts, .figures = {first[starts / 2], end[starts / 2]}};
    return 0;
}

static int start_bare(void *context, bench_outcome *outcome)
{
    char *argv[] = {bare_program, NULL, NULL};
    return measure_starts(argv, 1, outcome);
}

static int start_leat(void *context, bench_outcome *outcome)
{
    char run[] = "run", rest[] = "--";
    char *argv[] = {tool, run, start_job, rest, NULL, NULL};
    return measure_starts(argv, 4, outcome);
}

// --- the memory of an idle process ---------------------------------------------------------------

// How `memory.network` is mapped: 64 MiB in segments of 32 KiB, each with 64 bytes before it.
static const uint64_t pool_size = UINT64_C(2048) * (32 * 1024 + 64);

static int measure_memory(char *const argv[], bench_outcome *outcome)
{
    process p;
    memory_use use = {0};
    if (process_start(&p, argv, -1) != 0)
        return -1;
    int result = process_idle_memory(&p, pool_size, &use);
    if (process_finish(&p) != 0 || result != 0)
        return -1;
    *outcome = (bench_outcome){
        .items = 1, .figures = {(double)(use.resident - use.big) * 1e-6, (double)use.big * 1e-6}};
    return 0;
}

static int idle_bare(void *context, bench_outcome *outcome)
{
    char *argv[] = {bare_program, NULL};
    return measure_memory(argv, outcome);
}

static int idle_leat(void *context, bench_outcome *outcome)
{
    char run[] = "run";
    char *argv[] = {tool, run, word_count, NULL};
    return measure_memory(argv, outcome);
}

// --- cases ---------------------------------------------------------------------------------------

static int setup(bench_case *self, const bench_options *options)
{
    starts = options->quick ? QUICK_STARTS : STARTS;
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_figure start_figures[] = {{"first record", "ms", 30}, {"end", "ms", 0}};
    static const bench_figure idle_figures[] = {{"resident", "MB", 10}, {"segments", "MB", 0}};
    static const bench_variant start[] = {{"bare threads", start_bare, 0},
                                          {"leat run", start_leat, 0}};
    static const bench_variant idle[] = {{"bare threads", idle_bare, 0},
                                         {"leat run", idle_leat, 0}};
    bench_case cases[] = {
        {.name = "start",
         .unit = "starts",
         .variants = start,
         .variant_count = 2,
         .figures = start_figures,
         .figure_count = 2,
         .setup = setup},
        {.name = "idle",
         .unit = "processes",
         .variants = idle,
         .variant_count = 2,
         .figures = idle_figures,
         .figure_count = 2,
         .setup = setup,
         .note = "resident is beside the segments in use, which are \"segments\""}};
    return bench_main(argc, argv, "start", cases, 2);
}
