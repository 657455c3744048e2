// SPDX-License-Identifier: Apache-2.0
// The service thread of a runtime: periodic ticks and descriptors that become readable. It only
// sets flags and wakes tasks; it never runs user code and never waits for a task.
#ifndef LEATI_RUNTIME_SERVICE_H
#define LEATI_RUNTIME_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_service leati_service;

// Something to be done every `interval_ns`. Embedded in its owner.
typedef struct leati_tick {
    int64_t interval_ns;
    void (*run)(struct leati_tick *self);
    // The service's own.
    int64_t next_ns;
    struct leati_tick *next;
} leati_tick;

// A wait for a descriptor to become readable, once. Embedded in its owner.
typedef struct leati_watch {
    void (*run)(struct leati_watch *self);
    // The service's own.
    int fd;
    bool armed;
    struct leati_watch *next;
} leati_watch;

LEAT_MUST_USE leat_err leati_service_create(const leat_allocator *allocator,
                                            leati_service **service);
// No tick or watch may be left. Joins the thread.
void leati_service_destroy(leati_service **service);

void leati_service_add_tick(leati_service *service, leati_tick *tick);
// When it returns, the tick does not run and will not run again. Not from inside a tick.
void leati_service_remove_tick(leati_service *service, leati_tick *tick);

// Arms the watch; when it runs, it is no longer armed. One that is armed moves to the descriptor,
// if that is another. LEAT_EINVAL for descriptors that cannot be watched, LEAT_EEXIST when another
// watch has the descriptor.
LEAT_MUST_USE leat_err leati_service_watch(leati_service *service, leati_watch *watch, int fd);
// When it returns, the watch does not run and will not run. A no-op when it is not armed.
void leati_service_unwatch(leati_service *service, leati_watch *watch);

#endif
