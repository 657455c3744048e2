// SPDX-License-Identifier: Apache-2.0
// The library's modules, which are loaded when a verb needs them: so that `leat run` starts without
// the libraries of a cluster.
#ifndef LEATI_TOOLS_MODULE_H
#define LEATI_TOOLS_MODULE_H

#include "cluster/client/client.h"
#include "cluster/module.h"

// NULL when it cannot be loaded or belongs to another version: the user has been told then. They
// stay loaded.
const leati_client_module *leati_module_client(void);
const leati_cluster_module *leati_module_cluster(void);

#endif
