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
    leati_exit status = leati_session_prepare(&session, options);
    if (status == LEATI_EXIT_OK)
        status = leati_session_open(&session);
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
        status = options.help ? leati_help_print(verb) : (int)plan_with(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "Shows a job without running it: operators, chains, tasks, how records cross between them, and "
    "the digest of the graph. ARGUMENTS are for the job.",
    NULL,
};

static const leati_entry examples[] = {
    {"leat plan -p 4 wordcount.so", "how the job would run with four subtasks"},
    {"leat plan --dot wordcount.so >plan.dot", "a picture for Graphviz (dot -Tsvg plan.dot)"},
    {"leat plan --json job.c -- words.txt", "for programs; the job is compiled first"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "the plan is written"},
    {"1", "standard output cannot be written, or the source file does not compile"},
    {"2", "the command line or the configuration is wrong"},
    {"3", "the job file or its graph is wrong"},
    {NULL, NULL},
};

const leati_verb leati_verb_plan = {
    .name = "plan",
    .summary = "show how a job would run",
    .arguments = "JOB.so|JOB.c [-- ARGUMENTS]",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_JOB,
    .least = 1,
    .most = 1,
    .missing = "the job file is missing: `leat plan JOB.so`",
    .rest = "arguments of the job",
    .run = plan,
};
