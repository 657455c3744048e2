// SPDX-License-Identifier: Apache-2.0
// The verbs of the `leat` program and what they return to the shell.
#ifndef LEATI_TOOLS_VERBS_H
#define LEATI_TOOLS_VERBS_H

#include <stddef.h>

// docs/cli.md lists them for users.
typedef enum leati_exit {
    LEATI_EXIT_OK = 0,      // everything was done and all output written
    LEATI_EXIT_FAILED = 1,  // the job failed, or the output could not be written
    LEATI_EXIT_USAGE = 2,   // the command line is wrong
    LEATI_EXIT_REFUSED = 3, // the job file or its graph is wrong, or the job cannot be admitted
    LEATI_EXIT_SIGNAL = 128 // plus the number of the signal that ended the job
} leati_exit;

typedef struct leati_verb leati_verb;
struct leati_verb {
    const char *name;
    const char *summary; // one line for the list of verbs
    const char *usage;   // the whole help text
    // `argv[0]` is the verb. Returns the exit status.
    int (*run)(const leati_verb *verb, int argc, char **argv);
};

extern const leati_verb leati_verb_run, leati_verb_plan, leati_verb_config, leati_verb_version,
    leati_verb_help;

// The verbs in the order in which help lists them; NULL behind the last.
const leati_verb *leati_verb_at(size_t index);
// NULL when there is none of that name; the user has been told, with the nearest one, then.
const leati_verb *leati_verb_find(const char *name);

// Writes to standard output for verbs that print one text and end. Returns the exit status.
int leati_print_and_check(const char *text);

#endif
