// SPDX-License-Identifier: Apache-2.0
// Tasks that do not stop when they are told.
#ifndef LEATI_CLUSTER_WORKER_WATCHDOG_H
#define LEATI_CLUSTER_WORKER_WATCHDOG_H

#include "cluster/worker/worker_impl.h"

// Ends the process, with last words, when an attempt was cancelled more than
// taskmanager.cancel-timeout ago and still runs: user code that never returns cannot be ended
// otherwise. Main thread.
void leati_watch_attempts(leati_taskmanager *tm, int64_t now);

#endif
