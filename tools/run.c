// SPDX-License-Identifier: Apache-2.0
// `leat run`: runs a job file in this process.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/session.h"
#include "tools/signals.h"
#include "tools/stats.h"
#include "tools/style.h"
#include "tools/verbs.h"

enum { REDRAW_MS = 200 };

static leat_err wait_for(leat_job *job, leati_console *console)
{
    leati_progress progress;
    leat_err err;
    leati_progress_init(&progress, console, job);
    while ((err = leat_job_wait(job, REDRAW_MS)) == LEAT_EAGAIN)
        leati_progress_draw(&progress);
    leati_progress_fini(&progress);
    return err;
}

// `caught` is the signal that the user sent, or 0. A job that had already written all its output
// when the signal came has succeeded.
static leati_exit report(const leat_job *job, leat_err err, int caught)
{
    if (err == LEAT_OK)
        return LEATI_EXIT_OK;
    if (err == LEAT_ECANCELLED && caught)
        return (leati_exit)(LEATI_EXIT_SIGNAL + caught);
    // Whoever reads our output has seen enough: `leat run … | head`. A filter ends without a word
    // then, with the status that dying by SIGPIPE gives.
    if (err == LEAT_EPIPE)
        return (leati_exit)(LEATI_EXIT_SIGNAL + SIGPIPE);
    const char *why = leat_job_failure(job);
    leati_complain(NULL, "job failed: %s", why && *why ? why : leat_err_message(err));
    return LEATI_EXIT_FAILED;
}

static bool print_stats(const leati_options *options, const leat_job *job, double seconds)
{
    FILE *to = options->stats_file ? fopen(options->stats_file, "we") : stderr;
    const char *why = NULL;
    if (to && options->format == LEAT_PLAN_JSON) {
        leat_err err = leati_stats_print_json(to, job, seconds);
        why = err ? leat_err_message(err) : NULL;
    } else if (to) {
        leati_stats_print(to, job, seconds);
    }
    if (!to || (to != stderr && fclose(to) != 0))
        why = strerror(errno);
    if (why)
        leati_complain(NULL, "--stats%s%s: %s", options->stats_file ? "=" : "",
                       options->stats_file ? options->stats_file : "", why);
    return !why;
}

// What the user is told at the end of the job.
static leati_exit conclude(const leati_options *options, const leat_job *job, leat_err err,
                           int caught, double seconds)
{
    leati_exit status = report(job, err, caught);
    // The statistics show the results as well.
    if ((!options->stats || options->stats_file) && err != LEAT_EPIPE)
        leati_report_results(stderr, job);
    if (options->stats && !print_stats(options, job, seconds) && status == LEATI_EXIT_OK)
        status = LEATI_EXIT_FAILED;
    return status;
}

static leati_exit run_job(leati_session *session, leati_signals *signals, leat_runtime *runtime)
{
    leat_job *job = NULL;
    // Once tasks run, output is being written: the end has to be orderly.
    leati_signals_hold(signals);
    int64_t started_ns = leati_clock_ns();
    leat_err err = leat_start(runtime, session->env, &job);
    if (err != LEAT_OK)
        return leati_session_refuse(session, err);
    leati_signals_watch(signals, job);
    err = wait_for(job, &session->console);
    double seconds = (double)(leati_clock_ns() - started_ns) / 1e9;
    int caught = leati_signals_unwatch(signals);
    leati_exit status = conclude(session->options, job, err, caught, seconds);
    leat_job_destroy(&job);
    return status;
}

static leati_exit run_session(leati_session *session, leati_signals *signals)
{
    char why[512] = "";
    leat_runtime *runtime = NULL;
    leat_err err = leat_runtime_create(session->env, &runtime, why, sizeof why);
    if (err != LEAT_OK) {
        leati_complain(NULL, "the runtime cannot start: %s", *why ? why : leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    leati_exit status = run_job(session, signals, runtime);
    leat_runtime_destroy(&runtime);
    return status;
}

static leati_exit run_prepared(leati_session *session)
{
    leati_signals signals;
    // Before anything of the job: its threads inherit what is blocked here.
    leat_err err = leati_signals_init(&signals);
    if (err != LEAT_OK) {
        leati_complain(NULL, "%s", leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    leati_exit status = leati_session_open(session);
    if (status == LEATI_EXIT_OK)
        status = run_session(session, &signals);
    leati_signals_fini(&signals);
    return status;
}

static leati_exit run_with(const leati_options *options)
{
    leati_session session;
    leati_exit status = leati_session_prepare(&session, options);
    if (status == LEATI_EXIT_OK)
        status = run_prepared(&session);
    leati_session_close(&session);
    return status;
}

static int run(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)run_with(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "Runs the job of a job file in this process and ends when the job has. A C or C++ source file "
    "in its place is compiled first, as `leat build` does. Standard output carries the job's "
    "results only; the log, the progress line and the table of tasks go to standard error. "
    "ARGUMENTS are for the job.",
    "The first SIGINT or SIGTERM cancels the job: every wait ends and nothing more is emitted. A "
    "second one ends the process at once.",
    "LEAT_LOG=error|warn|info|debug says what is logged to standard error (default: warn).",
    NULL,
};

static const leati_entry examples[] = {
    {"leat run wordcount.so -- --input words.txt", "count the words of a file"},
    {"leat run -p 2 --stats wordcount.so <words.txt", "with two subtasks, and say how it went"},
    {"leat run -D memory.segment-size=64KiB wordcount.so <words.txt", "with a setting"},
    {"leat run job.c -- words.txt", "compile a job and run it"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "all output is written"},
    {"1", "the job failed, or its source file does not compile"},
    {"2", "the command line or the configuration is wrong"},
    {"3", "the job was refused: its file, its graph, or too little memory for it"},
    {"130", "cancelled by SIGINT"},
    {"143", "cancelled by SIGTERM"},
    {"141", "the reader of standard output has gone"},
    {NULL, NULL},
};

const leati_verb leati_verb_run = {
    .name = "run",
    .summary = "run a job in this process",
    .arguments = "JOB.so|JOB.c [-- ARGUMENTS]",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_JOB,
    .least = 1,
    .most = 1,
    .missing = "the job file is missing: `leat run JOB.so`",
    .rest = "arguments of the job",
    .run = run,
};
