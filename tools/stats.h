// SPDX-License-Identifier: Apache-2.0
// What the tasks of a job have done, for people.
#ifndef LEATI_TOOLS_STATS_H
#define LEATI_TOOLS_STATS_H

#include <stdio.h>

#include "leat/execute.h"

// The records that the sources have read so far.
uint64_t leati_stats_records_read(const leat_job *job);

// Splits a whole into percentages that sum to exactly 100 (largest remainder); all 0 when the whole
// is 0.
void leati_stats_percent(const uint64_t *parts, uint32_t *percent, size_t count);

// Prints the table of tasks, the bottleneck if there is one, what user functions have counted, and
// how it all went.
void leati_stats_print(FILE *to, const leat_job *job, double seconds);
// The same as one JSON object, with all figures. LEAT_ENOMEM: nothing was printed.
LEAT_MUST_USE leat_err leati_stats_print_json(FILE *to, const leat_job *job, double seconds);

#endif
