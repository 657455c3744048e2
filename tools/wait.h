// SPDX-License-Identifier: Apache-2.0
// Waiting for a job of a cluster: its output, the progress line, and how it ended.
//
// A client that waits is one that reads: the job manager keeps what it has not got yet, and slows
// the job down rather than dropping anything. So a client whose reader is slow keeps asking.
#ifndef LEATI_TOOLS_WAIT_H
#define LEATI_TOOLS_WAIT_H

#include "tools/remote.h"
#include "tools/session.h"
#include "tools/signals.h"

// Returns when the job has ended, the job manager is gone, or nobody reads standard output any
// more; the user has been told. `signals` holds back the first signal already.
leati_exit leati_wait_for_job(leati_remote *remote, leati_session *session, leati_signals *signals,
                              const char *id);

#endif
