// SPDX-License-Identifier: Apache-2.0
// What the verbs that talk to a job manager have in common.
#ifndef LEATI_TOOLS_REMOTE_H
#define LEATI_TOOLS_REMOTE_H

#include "base/strbuf.h"
#include "tools/local.h"
#include "tools/module.h"
#include "tools/options.h"

typedef struct leati_remote {
    const leati_client_module *api;
    leati_client *client;
    char address[300]; // as it was named
    leati_auth_files auth;
    leati_local local; // whose files `auth` borrows
} leati_remote;

// Finds the job manager: -m, else --cluster, else $LEAT_JOBMANAGER, else the local cluster. The
// user has been told why when the result is not LEATI_EXIT_OK. Call close in both cases.
leati_exit leati_remote_open(leati_remote *remote, const leati_options *options);
void leati_remote_close(leati_remote *remote);

// Tells the user what went wrong in the last call; returns the exit status.
leati_exit leati_remote_complain(const leati_remote *remote, leat_err err);
// GETs a page, and parses it unless `json` is NULL; `answer` may be NULL. The user has been told
// why when the result is not LEATI_EXIT_OK.
leati_exit leati_remote_get(leati_remote *remote, const char *path, leati_client_answer *answer,
                            leati_json **json);
// The path of something of a job, "/jobs/ID/why": to `path` of 256 bytes. A usage error when the
// id cannot be one.
enum { LEATI_REMOTE_PATH_SIZE = 256 };
leati_exit leati_remote_job_path(const char *id, const char *below, char *path);

// --- whole verbs ---

// A verb that GETs one page of a job, or (`of_job` false) of the cluster, and shows it: as it came
// with --json (or by `show_json`), else by `show`. Parses the options, prints help.
typedef struct leati_remote_verb {
    const char *below; // behind the job's id, or the page
    bool of_job;
    void (*show)(leati_strbuf *to, const leati_remote *remote, const leati_options *options,
                 const leati_json *json);
    // NULL: as it came.
    void (*show_json)(leati_strbuf *to, const leati_remote *remote, const leati_options *options,
                      const leati_json *json);
} leati_remote_verb;
int leati_remote_run(const leati_remote_verb *how, const leati_verb *verb, int argc, char **argv);
// Prints a JSON answer and a line break.
leati_exit leati_remote_print(const leati_client_answer *answer);

#endif
