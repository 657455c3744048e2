// SPDX-License-Identifier: Apache-2.0
// What is due at some time, in order of time.
//
// A pairing heap whose links are in the alarms themselves, so that setting one cannot fail. Pure:
// the owner has the clock, and a lock where it needs one.
#ifndef LEATI_RUNTIME_ALARM_H
#define LEATI_RUNTIME_ALARM_H

#include <stdbool.h>
#include <stdint.h>

// Embedded in its owner, zeroed but for `run`.
typedef struct leati_alarm {
    void (*run)(struct leati_alarm *self);
    // The heap's own.
    int64_t time_ns;
    uint64_t order; // of two that are due at the same time the one set first comes first
    bool is_set;
    struct leati_alarm *child;    // the first of those that come later
    struct leati_alarm *next;     // the next child of the same parent
    struct leati_alarm *previous; // the one before it, or the parent of a first child
} leati_alarm;

// Zeroed: empty.
typedef struct leati_alarms {
    leati_alarm *first; // the one that is due first, or NULL
    uint64_t count;     // how many have ever been set
} leati_alarms;

// Sets an alarm, also one that is set already.
void leati_alarms_set(leati_alarms *alarms, leati_alarm *alarm, int64_t time_ns);
// A no-op when it is not set.
void leati_alarms_clear(leati_alarms *alarms, leati_alarm *alarm);
// Takes out the first of those that are due at `now_ns`, or returns NULL.
leati_alarm *leati_alarms_take_due(leati_alarms *alarms, int64_t now_ns);

#endif
