// SPDX-License-Identifier: Apache-2.0
// The actions of `leat cluster`.
#ifndef LEATI_TOOLS_CLUSTER_IMPL_H
#define LEATI_TOOLS_CLUSTER_IMPL_H

#include "tools/local.h"
#include "tools/options.h"

enum { LEATI_DEFAULT_TASK_MANAGERS = 3 };

// Everything that changes a cluster holds its folder's lock: two starts at once do not meet. Makes
// the folder. The user has been told why when the result is not LEATI_EXIT_OK.
leati_exit leati_cluster_lock(const leati_local *local, int *lock);
// Ends what still runs of a cluster and removes all but its logs; `*ended` gets how many processes
// there were. Needs the lock.
leati_exit leati_cluster_clean(const leati_local *local, size_t *ended);
// What the job manager says of itself; NULL without a word when it does not answer.
leati_json *leati_cluster_overview(const leati_client_module *client, const leati_local *local,
                                   const leati_options *options);

leati_exit leati_cluster_start(leati_local *local, const leati_client_module *client,
                               const leati_options *options, int64_t slots, bool slots_given);

#endif
