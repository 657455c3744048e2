// SPDX-License-Identifier: Apache-2.0
// The task manager: one process with one runtime, which runs its share of the jobs that a job
// manager gives it.
#ifndef LEATI_CLUSTER_WORKER_WORKER_H
#define LEATI_CLUSTER_WORKER_WORKER_H

#include "cluster/module.h"

// leati_cluster_module.worker. SIGTERM and SIGINT are blocked by the caller.
int leati_worker_run(const leati_worker_options *options, char *why, size_t why_size);

#endif
