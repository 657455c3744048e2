// SPDX-License-Identifier: Apache-2.0
// The progress line of a job that runs in a cluster; what `leat run` shows, as far as the job
// manager tells it.
#ifndef LEATI_TOOLS_REMOTE_PROGRESS_H
#define LEATI_TOOLS_REMOTE_PROGRESS_H

#include "tools/console.h"
#include "tools/remote.h"

typedef struct leati_remote_progress {
    leati_remote *remote;
    leati_console *console;
    const char *id;
    int64_t started_ns, read_ns; // when the job was last asked about
    // Records at two moments, for the rate.
    int64_t older_ns, newer_ns;
    double older, newer;
} leati_remote_progress;

void leati_remote_progress_init(leati_remote_progress *progress, leati_remote *remote,
                                leati_console *console, const char *id);
// Asks about the job, if that was not just done, and draws the line. A job manager that does not
// answer is for others to tell.
void leati_remote_progress_draw(leati_remote_progress *progress, bool cancelling);

#endif
