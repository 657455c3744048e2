// SPDX-License-Identifier: Apache-2.0
// Reading the command line, for all verbs alike.
#ifndef LEATI_TOOLS_OPTIONS_H
#define LEATI_TOOLS_OPTIONS_H

#include "leat/plan.h"
#include "network/nng/auth.h"
#include "tools/verbs.h"

// A configuration key and its value, from -D or from an option that stands for a key.
typedef struct leati_setting {
    const char *option; // as it was written: "-D", "-p"
    const char *key, *value;
} leati_setting;

// A file or folder that a job brings along, from --file.
typedef struct leati_named_path {
    const char *name, *path;
} leati_named_path;

// Everything borrows from argv, which `-D key=value` and `--file name=path` cut at their first "=".
typedef struct leati_options {
    bool help, stats, quiet, json, verbose, man, detach, wait, all, running, out;
    const char *name;       // NULL: not given
    const char *stats_file; // NULL: standard error
    const char *config;     // the configuration file; NULL: the usual one
    const char *output;     // NULL: not given
    const char *manager, *cluster, *bind, *folder, *log_file, *state_file, *get; // NULL: not given
    const char *secret_file, *tls_cert, *tls_key, *tls_ca;                       // NULL: not given
    bool insecure;
    int32_t port, rpc_port, data_port; // -1: not given
    int32_t task_managers, index;      // -1: not given
    leat_plan_format format;
    leati_named_path *files; // in the order in which they were written
    size_t file_count, file_capacity;
    leati_setting *settings; // in the order in which they were written
    size_t setting_count, setting_capacity;
    char **operands; // what is no option
    size_t operand_count;
    char **rest; // what stands behind "--"
    size_t rest_count;
} leati_options;

// Returns LEATI_EXIT_OK or LEATI_EXIT_USAGE, and has told the user why. Call fini in both cases.
leati_exit leati_options_parse(leati_options *options, const leati_verb *verb, int argc,
                               char **argv);
// How this process shows that it may: what was given, and else $LEAT_SECRET_FILE, unless --insecure
// was. Borrows.
leati_auth_files leati_options_auth(const leati_options *options);
void leati_options_fini(leati_options *options);

#endif
