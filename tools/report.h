// SPDX-License-Identifier: Apache-2.0
// What user functions have counted, as lines of text.
#ifndef LEATI_TOOLS_REPORT_H
#define LEATI_TOOLS_REPORT_H

#include <stdio.h>

#include "leat/leat.h"

// A line for each metric: "metric OPERATOR (1/2) NAME: VALUE".
void leati_report_metrics(FILE *to, const leat_job *job);
// What a job leaves behind besides its output: a line for each accumulator, unless it failed, and
// one for each operator that rejected records.
void leati_report_results(FILE *to, const leat_job *job);
// Whether the accumulators of the job are a result: those of one that failed are none.
bool leati_report_has_results(const leat_job *job);

#endif
