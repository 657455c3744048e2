// SPDX-License-Identifier: Apache-2.0
// The watermark valve of one input: the minimum over its channels, with idle and finished channels
// left out. The rules are those of the reference (semantics, section 6).
#ifndef LEATI_RUNTIME_VALVE_H
#define LEATI_RUNTIME_VALVE_H

#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_valve leati_valve;

// What the input as a whole has to say after a channel's message.
typedef struct leati_valve_output {
    bool watermark_advanced;
    int64_t watermark;
    bool status_changed;
    bool idle;
} leati_valve_output;

LEAT_MUST_USE leat_err leati_valve_create(const leat_allocator *allocator, uint32_t channels,
                                          leati_valve **valve);
void leati_valve_destroy(leati_valve **valve);
// A watermark, a status, or the end of one channel.
leati_valve_output leati_valve_watermark(leati_valve *v, uint32_t index, int64_t watermark);
leati_valve_output leati_valve_status(leati_valve *v, uint32_t index, bool idle);
leati_valve_output leati_valve_finished(leati_valve *v, uint32_t index);

#endif
