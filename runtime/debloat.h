// SPDX-License-Identifier: Apache-2.0
// Debloating: how large the segments before a task may be, so that what is queued is worked off
// within a target time. A slow task gets small ones; then what waits before it, and with it the
// time that a record takes from end to end under back-pressure, is little, whatever the size of the
// pools.
//
// leati_debloat is the arithmetic, and knows neither clock nor channels. leati_debloater goes by
// the figures that the tasks of a job publish anyway, and leaves the result at their channels,
// where writers (network/writer.h) and the transport find it when they open a segment or grant one:
// a job without it pays nothing, one with it nothing for a record.
//
// Threading. The debloater's looks are on the service thread; what is shown may be read by anyone.
#ifndef LEATI_RUNTIME_DEBLOAT_H
#define LEATI_RUNTIME_DEBLOAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "leat/execute.h"

enum { LEATI_DEBLOAT_LEAST = 256, LEATI_DEBLOAT_PERIOD_MS = 200 };

typedef struct leati_debloat {
    // Immutable.
    int64_t target_ns;
    uint32_t least, most; // sizes of segments
    // Of who looks.
    double average;
    uint64_t bytes;    // at the last sample
    int64_t active_ns; // the same
    // Relaxed: figures.
    _Atomic uint32_t size;    // announced
    _Atomic int64_t drain_ns; // estimated for what is queued; 0: nothing is
} leati_debloat;

void leati_debloat_init(leati_debloat *self, int64_t target_ns, uint32_t segment_size);
// A look: what has been taken in so far, how long the task has not been waiting for input so far,
// and how many segments are queued now. True: `size` has changed and is to be announced.
bool leati_debloat_look(leati_debloat *self, uint64_t bytes, int64_t active_ns, uint32_t segments);

// --- of a job ---

typedef struct leati_debloater leati_debloater;

// NULL with LEAT_OK when the configuration does not ask for it.
LEAT_MUST_USE leat_err leati_debloater_create(leat_job *job, leati_debloater **debloater);
void leati_debloater_destroy(leati_debloater **debloater);
// From when the tasks run, until the channels go.
void leati_debloater_start(leati_debloater *debloater);
void leati_debloater_stop(leati_debloater *debloater);
// Looks once at all tasks; it does so itself each LEATI_DEBLOAT_PERIOD_MS.
void leati_debloater_look(leati_debloater *debloater);

// Of the input of a task, for metrics: the size of segments, and how long what is queued will take
// (0 when that is not known). Any thread, while the job lives.
LEATI_SHARED void leati_job_task_debloat(const leat_job *job, uint32_t index, uint32_t *size_bytes,
                                         int64_t *drain_ms);

#endif
