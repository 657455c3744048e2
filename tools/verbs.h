// SPDX-License-Identifier: Apache-2.0
// The verbs of the `leat` program: what they do, how they are described, and what they return to
// the shell. Help texts, manual pages and completion are all made from these descriptions and from
// the table of options.
#ifndef LEATI_TOOLS_VERBS_H
#define LEATI_TOOLS_VERBS_H

#include <stdbool.h>
#include <stddef.h>

// docs/cli.md lists them for users.
typedef enum leati_exit {
    LEATI_EXIT_OK = 0,        // everything was done and all output written
    LEATI_EXIT_FAILED = 1,    // the job or the compiler failed, or output could not be written
    LEATI_EXIT_USAGE = 2,     // the command line or the configuration is wrong
    LEATI_EXIT_REFUSED = 3,   // a job, its graph or a place for files is not fit for what was asked
    LEATI_EXIT_CANCELLED = 4, // the job was cancelled by somebody else
    LEATI_EXIT_SIGNAL = 128   // plus the number of the signal that ended the job
} leati_exit;

// A term and what it means; lists end with a NULL term.
typedef struct leati_entry {
    const char *term, *text;
} leati_entry;

// What a verb is given besides options; for completion.
typedef enum leati_operand {
    LEATI_OPERAND_NONE,
    LEATI_OPERAND_JOB,
    LEATI_OPERAND_SOURCE,
    LEATI_OPERAND_DIRECTORY,
    LEATI_OPERAND_VERB,
    LEATI_OPERAND_KEY,
    LEATI_OPERAND_ID,     // of a job of a cluster
    LEATI_OPERAND_ACTION, // of `leat cluster`
} leati_operand;

typedef struct leati_verb leati_verb;
struct leati_verb {
    const char *name;
    const char *summary;           // one line for the list of verbs
    const char *arguments;         // behind the options in the usage line, or NULL
    const char *const *paragraphs; // of the description; end with NULL
    const leati_entry *examples;   // a command and what it does
    const leati_entry *exits;      // the statuses that are its own to explain
    bool hidden;                   // not for people, so not in lists
    leati_operand operand;
    size_t least, most;  // how many operands it takes
    const char *missing; // what is said when there are fewer
    const char *rest;    // what stands behind "--"; NULL: nothing may
    // `argv[0]` is the verb. Returns the exit status.
    int (*run)(const leati_verb *verb, int argc, char **argv);
};

extern const leati_verb leati_verb_run, leati_verb_plan, leati_verb_new, leati_verb_build,
    leati_verb_config, leati_verb_version, leati_verb_help, leati_verb_complete, leati_verb_cluster,
    leati_verb_submit, leati_verb_list, leati_verb_status, leati_verb_why, leati_verb_cancel,
    leati_verb_logs, leati_verb_metrics, leati_verb_jobmanager, leati_verb_taskmanager;

// The verbs in the order in which help lists them; NULL behind the last.
const leati_verb *leati_verb_at(size_t index);
// NULL when there is none of that name; the user has been told, with the nearest one, then.
const leati_verb *leati_verb_find(const char *name);

// Prints how a verb is used, to standard output. Returns the exit status.
int leati_help_print(const leati_verb *verb);
// Writes to standard output for verbs that print one text and end. Returns the exit status.
int leati_print_and_check(const char *text);

#endif
