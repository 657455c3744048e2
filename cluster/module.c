// SPDX-License-Identifier: Apache-2.0
#include "cluster/module.h"

#include "cluster/manager/run.h"
#include "cluster/worker/worker.h"

// Of this build: that of libleat may be another.
#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const leati_cluster_module leati_cluster_module_0 = {
    .version = TEXT(LEAT_VERSION_MAJOR) "." TEXT(LEAT_VERSION_MINOR) "." TEXT(LEAT_VERSION_PATCH),
    .manager = leati_manager_run,
    .worker = leati_worker_run,
};
