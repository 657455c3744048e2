// SPDX-License-Identifier: Apache-2.0
// The progress line of a running job: records read, their rate, and which task is held back most.
#ifndef LEATI_TOOLS_PROGRESS_H
#define LEATI_TOOLS_PROGRESS_H

#include "leat/execute.h"
#include "tools/console.h"

typedef struct leati_snapshot {
    int64_t at_ns; // monotonic clock
    uint64_t records;
    uint64_t *held_ns; // one for each task, or NULL when out of memory: all taken as 0 then
} leati_snapshot;

typedef struct leati_progress {
    leati_console *console;
    const leat_job *job;
    int64_t started_ns; // monotonic clock
    // Rates are measured from the older one. A new one is taken each second, so the window is one
    // to two seconds long, which can be read and yet follows what happens.
    leati_snapshot older, newer;
} leati_progress;

void leati_progress_init(leati_progress *progress, leati_console *console, const leat_job *job);
void leati_progress_fini(leati_progress *progress);
// Redraws the line; cheap when there is none.
void leati_progress_draw(leati_progress *progress);

#endif
