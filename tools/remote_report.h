// SPDX-License-Identifier: Apache-2.0
// How a job of a cluster has ended: accumulators, state, duration, and the exit status for that.
#ifndef LEATI_TOOLS_REMOTE_REPORT_H
#define LEATI_TOOLS_REMOTE_REPORT_H

#include "tools/remote.h"

// Asks for the result of a job that has ended and tells it on standard error. `caught` is the
// signal for which it was cancelled, or 0.
leati_exit leati_remote_report(leati_remote *remote, const leati_options *options, const char *id,
                               int caught);

#endif
