// SPDX-License-Identifier: Apache-2.0
// `leat plan`: shows how a job would run.
#include <stdio.h>

#include "leat/plan.h"
#include "tools/session.h"
#include "tools/verbs.h"

static leati_exit print_plan(leati_session *session)
{
    char *text = NULL;
    leat_err err = leat_plan(session->env, session->options->format, &text);
    if (err != LEAT_OK)
        return leati_session_refuse(session, err);
    leati_exit status = (leati_exit)leati_print_and_check(text);
    leat_plan_free(session->env, text);
    return status;
}

static leati_exit plan_with(const leati_options *options)
{
    leati_session session;
    leati_exit status = leati_session_open(&session, options);
    if (status == LEATI_EXIT_OK)
        status = print_plan(&session);
    leati_session_close(&session);
    return status;
}

static int plan(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_print_and_check(verb->usage) : (int)plan_with(&options);
    leati_options_fini(&options);
    return status;
}

// clang-format off
static const char usage[] =
    "Usage: leat plan [OPTIONS] JOB.so [-- ARGUMENTS]\n"
    "\n"
    "Shows a job without running it: operators, chains, tasks, how records cross between\n"
    "them, and the digest of the graph. ARGUMENTS are for the job.\n"
    "\n"
    "      --format FORMAT  text (default), json or dot (for Graphviz)\n"
    "      --json, --dot    the same as --format json and --format dot\n"
    "  -p, --parallelism N  parallelism of operators that set none (default 1)\n"
    "  -D, --set KEY=VALUE  set a configuration key; `leat config` lists them; repeatable\n"
    "      --name NAME      the job's name (default: that of the job file)\n"
    "  -h, --help           this text\n"
    "\n"
    "Exit status: 0 success, 1 standard output cannot be written, 2 the command line is\n"
    "wrong, 3 the job file or its graph is wrong.\n";
// clang-format on

const leati_verb leati_verb_plan = {"plan", "show how a job would run", usage, plan};
