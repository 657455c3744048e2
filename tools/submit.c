// SPDX-License-Identifier: Apache-2.0
// `leat submit`: runs a job in a cluster.
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "tools/remote.h"
#include "tools/session.h"
#include "tools/signals.h"
#include "tools/style.h"
#include "tools/wait.h"

enum { VALUE_SIZE = 64, NAME_SIZE = 256 };

typedef struct submitting {
    const leati_options *options;
    leati_session session;
    leati_signals signals;
    leati_remote remote;
    char name[NAME_SIZE]; // of the job file, over there
    leati_client_pair settings[LEATI_CONFIG_COUNT];
    char values[LEATI_CONFIG_COUNT][VALUE_SIZE];
    size_t setting_count;
    char id[LEATI_CLIENT_ID_SIZE];
} submitting;

// "jobs/wordcount.c" is "wordcount.so" there.
static void name_job_file(submitting *s)
{
    const char *path = s->options->operands[0], *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *ending = strrchr(base, '.');
    if (ending && leati_is_source(base))
        snprintf(s->name, sizeof s->name, "%.*s.so", (int)(ending - base), base);
    else
        snprintf(s->name, sizeof s->name, "%s", base);
}

// Whether it is about the processes of a cluster, and is given where they are started.
static bool is_of_processes(leati_config_key key, const char *name)
{
    return key == LEATI_CONFIG_WORKERS || key == LEATI_CONFIG_IPC ||
           strncmp(name, "memory.", 7) == 0 || strncmp(name, "taskmanager.", 12) == 0 ||
           strncmp(name, "cluster.", 8) == 0;
}

// What was set anywhere, for the job's environments over there.
static void collect_settings(submitting *s)
{
    const leati_config_layers *layers = &s->session.settings.layers;
    for (int i = 0; i < LEATI_CONFIG_COUNT; i++) {
        leati_config_key key = (leati_config_key)i;
        const char *name = leati_config_describe(key)->name;
        if (!layers->where[key])
            continue;
        if (is_of_processes(key, name)) {
            if (strcmp(layers->where[key], "-D") == 0)
                fprintf(stderr,
                        "leat: note: %s is a setting of the cluster's processes, not of a job: it "
                        "has no effect here\n",
                        name);
            continue;
        }
        char *value = s->values[s->setting_count];
        leati_config_print(key, leati_config_get(&layers->config, key), value, VALUE_SIZE);
        s->settings[s->setting_count++] = (leati_client_pair){name, value};
    }
}

// Once the job may exist, its end has to be orderly.
static void commit(void *user)
{
    submitting *s = user;
    leati_signals_hold(&s->signals);
}

static bool is_unwanted(void *user)
{
    submitting *s = user;
    return leati_signals_caught(&s->signals) != 0;
}

static leati_exit refuse(submitting *s, leat_err err)
{
    if (err == LEAT_ECANCELLED)
        return (leati_exit)(LEATI_EXIT_SIGNAL + leati_signals_caught(&s->signals));
    if (err == LEAT_EGRAPH)
        return leati_session_refuse(&s->session, err);
    (void)leati_remote_complain(&s->remote, err);
    return err == LEAT_EIO || err == LEAT_ENOMEM ? LEATI_EXIT_FAILED : LEATI_EXIT_REFUSED;
}

static leati_exit submit(submitting *s)
{
    const leati_options *o = s->options;
    const char *made = s->session.source.made;
    name_job_file(s);
    collect_settings(s);
    leati_submission submission = {
        .env = s->session.env,
        .job_file = made ? made : o->operands[0],
        .name = s->name,
        .argv0 = o->operands[0],
        .args = o->rest,
        .arg_count = o->rest_count,
        .settings = s->settings,
        .setting_count = s->setting_count,
        .attached = !o->detach,
        .committing = commit,
        .unwanted = is_unwanted,
        .user = s,
    };
    leat_err err = s->remote.api->submit(s->remote.client, &submission, s->id);
    return err ? refuse(s, err) : LEATI_EXIT_OK;
}

static leati_exit conclude(submitting *s)
{
    char text[LEATI_CLIENT_ID_SIZE + 20];
    // It is over there now.
    leati_source_remove(&s->session.source);
    if (!s->options->detach)
        return leati_wait_for_job(&s->remote, &s->session, &s->signals, s->id);
    snprintf(text, sizeof text, s->options->json ? "{\"id\": \"%s\"}\n" : "%s\n", s->id);
    return (leati_exit)leati_print_and_check(text);
}

static leati_exit run_prepared(submitting *s)
{
    // Before anything of the job: its threads inherit what is blocked here.
    leat_err err = leati_signals_init(&s->signals);
    if (err != LEAT_OK) {
        leati_complain(NULL, "%s", leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    s->session.keep_source = true;
    leati_exit status = leati_session_open(&s->session);
    if (status == LEATI_EXIT_OK)
        status = submit(s);
    if (status == LEATI_EXIT_OK)
        status = conclude(s);
    leati_signals_fini(&s->signals);
    return status;
}

static leati_exit submit_with(const leati_options *options)
{
    submitting s = {.options = options};
    if (options->detach && options->wait) {
        leati_complain("submit", "--detach and --wait exclude each other");
        return LEATI_EXIT_USAGE;
    }
    // That no cluster is there is told before anything is compiled.
    leati_exit status = leati_remote_open(&s.remote, options);
    if (status == LEATI_EXIT_OK) {
        status = leati_session_prepare(&s.session, options);
        if (status == LEATI_EXIT_OK)
            status = run_prepared(&s);
        leati_session_close(&s.session);
    }
    leati_remote_close(&s.remote);
    return status;
}

static int run(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)submit_with(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "Runs a job in a cluster. The job function is called here, so that faults of the graph are "
    "told here and no job is created; then the graph, the job file, the libraries that it needs "
    "and that lie beside it, and the files that it names are sent as far as the cluster has not "
    "got them. Each task manager calls the job function again, with the same ARGUMENTS; it must "
    "build the same graph there.",
    "Unless --detach is given, waits for the end of the job. What its print sinks print goes to "
    "standard output, as with `leat run`; state, duration and accumulators go to standard error.",
    "The first SIGINT or SIGTERM cancels the job and waits for its end; a second one ends this "
    "program at once. When nobody reads standard output any more, the job is cancelled.",
    "The job manager is the one that -m names, or the environment variable LEAT_JOBMANAGER, or "
    "that of the cluster that `leat cluster start` has started.",
    NULL,
};

static const leati_entry examples[] = {
    {"leat submit -p 3 wordcount.so -- --input words.txt", "count words and print the counts here"},
    {"leat submit --detach wordcount.so -- --input words.txt", "print the job's id and go on"},
    {"leat submit --file dictionary=words.txt wordcount.so -- --input words.txt",
     "send a file along that the job finds by its name"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "the job has finished and all output is written; or it was submitted, with --detach"},
    {"1", "the job failed, no job manager answers, or output is lost or cannot be written"},
    {"2", "the command line or the configuration is wrong"},
    {"3", "refused, here or by the job manager: the job file, its graph, its files"},
    {"4", "the job was cancelled, and not by a signal to this program"},
    {"130", "cancelled by SIGINT"},
    {"143", "cancelled by SIGTERM"},
    {"141", "the reader of standard output has gone, and the job is cancelled"},
    {NULL, NULL},
};

const leati_verb leati_verb_submit = {
    .name = "submit",
    .summary = "run a job in a cluster",
    .arguments = "JOB.so|JOB.c [-- ARGUMENTS]",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_JOB,
    .least = 1,
    .most = 1,
    .missing = "the job file is missing: `leat submit JOB.so`",
    .rest = "arguments of the job",
    .run = run,
};
