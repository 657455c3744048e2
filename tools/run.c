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
    fprintf(stderr, "leat: job failed: %s\n", why && *why ? why : leat_err_message(err));
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
        fprintf(stderr, "leat: --stats%s%s: %s\n", options->stats_file ? "=" : "",
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
        fprintf(stderr, "leat: the runtime cannot start: %s\n", *why ? why : leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    leati_exit status = run_job(session, signals, runtime);
    leat_runtime_destroy(&runtime);
    return status;
}

static leati_exit run_with(const leati_options *options)
{
    leati_signals signals;
    leati_session session;
    // Before anything of the job: its threads inherit what is blocked here.
    leat_err err = leati_signals_init(&signals);
    if (err != LEAT_OK) {
        fprintf(stderr, "leat: %s\n", leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    leati_exit status = leati_session_open(&session, options);
    if (status == LEATI_EXIT_OK)
        status = run_session(&session, &signals);
    leati_session_close(&session);
    leati_signals_fini(&signals);
    return status;
}

static int run(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_print_and_check(verb->usage) : (int)run_with(&options);
    leati_options_fini(&options);
    return status;
}

// clang-format off
static const char usage[] =
    "Usage: leat run [OPTIONS] JOB.so [-- ARGUMENTS]\n"
    "\n"
    "Runs the job of a job file in this process and ends when the job has. Standard output\n"
    "carries the job's results only. ARGUMENTS are for the job.\n"
    "\n"
    "  -p, --parallelism N  parallelism of operators that set none (default 1)\n"
    "      --workers N      worker threads (default: one per processor)\n"
    "  -D, --set KEY=VALUE  set a configuration key; `leat config` lists them; repeatable\n"
    "      --name NAME      the job's name (default: that of the job file)\n"
    "      --stats[=FILE]   at the end, print what each task did to standard error, or into FILE\n"
    "      --json           print that as one JSON object\n"
    "  -q, --quiet          no progress line\n"
    "  -h, --help           this text\n"
    "\n"
    "LEAT_LOG=error|warn|info|debug says what is logged to standard error (default: warn).\n"
    "\n"
    "The first SIGINT or SIGTERM cancels the job, a second one ends the process at once.\n"
    "\n"
    "Exit status: 0 all output is written, 1 the job failed, 2 the command line is wrong,\n"
    "3 the job was refused (its file, its graph, or too little memory for it), 130 and 143\n"
    "cancelled by SIGINT and SIGTERM, 141 the reader of standard output has gone.\n";
// clang-format on

const leati_verb leati_verb_run = {"run", "run a job file in this process", usage, run};
