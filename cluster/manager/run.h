// SPDX-License-Identifier: Apache-2.0
// The job manager as the cluster's module offers it.
#ifndef LEATI_CLUSTER_MANAGER_RUN_H
#define LEATI_CLUSTER_MANAGER_RUN_H

#include "cluster/module.h"

// Runs a job manager until SIGTERM or SIGINT, which the caller has blocked. 0, or 1 with a
// sentence.
int leati_manager_run(const leati_manager_options *options, char *why, size_t why_size);

#endif
