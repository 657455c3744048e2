// SPDX-License-Identifier: Apache-2.0
// What `run` and `plan` have in common: an environment in which the job function of a job file has
// built its graph.
#ifndef LEATI_TOOLS_SESSION_H
#define LEATI_TOOLS_SESSION_H

#include "base/job_file.h"
#include "tools/console.h"
#include "tools/options.h"
#include "tools/settings.h"
#include "tools/source.h"

typedef struct leati_session {
    const leati_options *options; // borrowed
    leati_console console;
    leati_settings settings;
    leati_source source; // what a source file was compiled to
    bool keep_source;    // until close; else it goes once it is loaded
    leati_job_file file;
    leat_env *env;
    char **argv; // of the job: its file, and what stands behind "--"
} leati_session;

// What comes before anything of the job is done: reads the settings, and compiles the job when it
// is a source file. The user has been told why when the result is not LEATI_EXIT_OK. Call close in
// both cases.
leati_exit leati_session_prepare(leati_session *session, const leati_options *options);
// Loads the job file, builds and checks the graph; the rest as above.
leati_exit leati_session_open(leati_session *session);
void leati_session_close(leati_session *session);

// Tells the user all faults of the environment, a line each. Returns LEATI_EXIT_REFUSED.
leati_exit leati_session_refuse(const leati_session *session, leat_err err);

#endif
