// SPDX-License-Identifier: Apache-2.0
// How every bench measures: the variants of a case take turns (yardstick, subject, yardstick,
// subject …), so that a machine whose speed drifts slows all of them; each run's counts are checked
// before any figure is printed; what is printed is the median, the spread, and the ratio to the
// yardstick of the same round.
//
// A case measures speed, items a second, unless it names other figures (latencies, bytes): then
// each run reports those, and the yardstick's stand beside the subject's.
#ifndef LEATI_BENCH_HARNESS_H
#define LEATI_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_options {
    bool quick;      // one round over little data: only to see that it works
    bool json;       // one JSON object on one line instead of a table
    unsigned rounds; // that are measured; at least 5 unless quick
    // How much data cases with a choice should take, in MB of text, millions of records or seconds
    // of a schedule; 0: as they like.
    uint64_t size;
} bench_options;

enum { BENCH_MAX_FIGURES = 8 };

// What a run measures when that is not the speed.
typedef struct bench_figure {
    const char *name; // "p99"
    const char *unit; // "µs"
    double most;      // the goal: no more than this, in all variants but the first; 0: none
} bench_figure;

// What a run has done. Every run of a case must report the same items and sum.
typedef struct bench_outcome {
    uint64_t items;                    // words, records …: the speed is items per second
    uint64_t checksum;                 // over the results
    double figures[BENCH_MAX_FIGURES]; // of cases that name some, in their order
} bench_outcome;

typedef struct bench_variant {
    const char *name;
    // Does the work once, and is timed doing it. 0, or anything else after saying why on stderr.
    int (*run)(void *context, bench_outcome *outcome);
    double goal; // the least speed as a share of the first variant's; 0: none
} bench_variant;

typedef struct bench_case bench_case;
struct bench_case {
    const char *name;              // short and unique: it labels a chart
    const char *unit;              // what `items` counts, in the plural
    const bench_variant *variants; // the first is the yardstick
    size_t variant_count;
    const bench_figure *figures; // NULL: the speed is what is measured
    size_t figure_count;         // at most BENCH_MAX_FIGURES
    const char *note;            // a line below the figures, or NULL; `setup` may set it
    // Makes the data, not timed; sets `context`, and `expected` when the outcome is known
    // beforehand. May be NULL.
    int (*setup)(bench_case *self, const bench_options *options);
    void (*teardown)(bench_case *self);
    void *context;
    bench_outcome expected; // zeros: the first run's outcome is what the others must agree with
};

// The whole main of a bench: parses --quick, --json, --rounds N, --size N and names of cases, runs
// and prints. Returns the exit status: not 0 when a run failed, a count was wrong or the build is
// none to measure. A missed goal is printed and is no failure.
int bench_main(int argc, char **argv, const char *bench, bench_case *cases, size_t case_count);

#endif
