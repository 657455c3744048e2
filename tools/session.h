// SPDX-License-Identifier: Apache-2.0
// What `run` and `plan` have in common: an environment in which the job function of a job file has
// built its graph.
#ifndef LEATI_TOOLS_SESSION_H
#define LEATI_TOOLS_SESSION_H

#include "tools/console.h"
#include "tools/load.h"
#include "tools/options.h"

typedef struct leati_session {
    const leati_options *options; // borrowed
    leati_console console;
    leati_job_file file;
    leat_env *env;
} leati_session;

// Applies the settings, loads the job file, builds and checks the graph. The user has been told why
// when the result is not LEATI_EXIT_OK. Call close in both cases.
leati_exit leati_session_open(leati_session *session, const leati_options *options);
void leati_session_close(leati_session *session);

// Tells the user all faults of the environment, a line each. Returns LEATI_EXIT_REFUSED.
leati_exit leati_session_refuse(const leati_session *session, leat_err err);

#endif
