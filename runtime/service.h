// SPDX-License-Identifier: Apache-2.0
// What a runtime waits for on behalf of its tasks: times, and descriptors that become readable. The
// service thread only sets flags and wakes tasks; it never runs user code and never waits for a
// task. Without a thread (stepped), its owner calls run_due and poll.
#ifndef LEATI_RUNTIME_SERVICE_H
#define LEATI_RUNTIME_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/env.h"
#include "runtime/alarm.h"

typedef struct leati_service leati_service;

// Something to be done every `interval_ns`, above 0. Embedded in its owner.
typedef struct leati_tick {
    int64_t interval_ns;
    void (*run)(struct leati_tick *self);
    // The service's own.
    leati_alarm alarm;
    leati_service *service;
} leati_tick;

// A wait for a descriptor to become readable, once. Embedded in its owner.
typedef struct leati_watch {
    void (*run)(struct leati_watch *self);
    // The service's own.
    int fd;
    bool armed;
    struct leati_watch *next;
} leati_watch;

// `clock` is copied; NULL or zeroed: the system's.
LEAT_MUST_USE leat_err leati_service_create(const leat_allocator *allocator,
                                            const leat_clock *clock, leati_service **service);
// The same without a thread.
LEAT_MUST_USE leat_err leati_service_create_stepped(const leat_allocator *allocator,
                                                    const leat_clock *clock,
                                                    leati_service **service);
// No tick, alarm or watch may be left. Joins the thread.
void leati_service_destroy(leati_service **service);

// What the clock shows. Any thread.
int64_t leati_service_now_ns(const leati_service *service);
// Whether that is another than the system's monotonic clock.
bool leati_service_has_own_clock(const leati_service *service);

void leati_service_add_tick(leati_service *service, leati_tick *tick);
// When it returns, the tick does not run and will not run again. Not from inside a tick.
void leati_service_remove_tick(leati_service *service, leati_tick *tick);

// Has the alarm run once when the clock has reached `time_ns`, at once if it has already; one that
// is set moves there. INT64_MAX is never.
void leati_service_set_alarm(leati_service *service, leati_alarm *alarm, int64_t time_ns);
// When it returns, the alarm does not run and will not run. A no-op when it is not set.
void leati_service_clear_alarm(leati_service *service, leati_alarm *alarm);

// Arms the watch; when it runs, it is no longer armed. One that is armed moves to the descriptor,
// if that is another. LEAT_EINVAL for descriptors that cannot be watched, LEAT_EEXIST when another
// watch has the descriptor.
LEAT_MUST_USE leat_err leati_service_watch(leati_service *service, leati_watch *watch, int fd);
// When it returns, the watch does not run and will not run. A no-op when it is not armed.
void leati_service_unwatch(leati_service *service, leati_watch *watch);

// --- without a thread ---

// When the next alarm or tick is due; INT64_MAX when none is set.
int64_t leati_service_due_ns(leati_service *service);
// Runs what is due, in order of time.
void leati_service_run_due(leati_service *service);
// Runs the watches whose descriptors are readable now.
void leati_service_poll(leati_service *service);

#endif
