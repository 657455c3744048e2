// SPDX-License-Identifier: Apache-2.0
// `leat cancel`.
#include <stdio.h>
#include <string.h>

#include "tools/remote.h"
#include "tools/style.h"

// Waits at most so long for the job to stop; more is for `leat status` to tell.
enum { PATIENCE_MS = 10000 };

static bool is_over(const char *state)
{
    return !strcmp(state, "FINISHED") || !strcmp(state, "FAILED") || !strcmp(state, "CANCELED");
}

static leati_exit tell(const char *id, const char *state, const leati_options *options)
{
    char text[200];
    if (options->json)
        snprintf(text, sizeof text, "{\"job\": \"%s\", \"state\": \"%s\"}\n", id, state);
    else if (is_over(state))
        snprintf(text, sizeof text, "%s %s\n", id, state);
    else
        snprintf(text, sizeof text, "%s %s: its tasks take their time to stop\n", id, state);
    return (leati_exit)leati_print_and_check(text);
}

// The whole id of what was named by its first digits: what is printed serves later as well.
static leati_exit find_job(leati_remote *remote, const char *named, char id[LEATI_CLIENT_ID_SIZE])
{
    const leati_client_module *c = remote->api;
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_json *job = NULL;
    leati_exit status = leati_remote_job_path(named, "", path);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_get(remote, path, NULL, &job);
    if (status == LEATI_EXIT_OK)
        snprintf(id, LEATI_CLIENT_ID_SIZE, "%s", c->text(c->member(job, "id")));
    c->forget(job);
    return status;
}

static leati_exit cancel_job(leati_remote *remote, const leati_options *options)
{
    const leati_client_module *c = remote->api;
    char path[LEATI_REMOTE_PATH_SIZE], state[32] = "", id[LEATI_CLIENT_ID_SIZE];
    leati_client_answer answer;
    leati_exit status = find_job(remote, options->operands[0], id);
    if (status != LEATI_EXIT_OK)
        return status;
    snprintf(path, sizeof path, "/jobs/%s?mode=cancel", id);
    leat_err err = c->call(remote->client, "PATCH", path, 0, &answer);
    if (!err) {
        snprintf(path, sizeof path, "/jobs/%s/status?wait=%d&not=CANCELLING", id, PATIENCE_MS);
        err = c->call(remote->client, "GET", path, PATIENCE_MS, &answer);
    }
    if (err)
        return leati_remote_complain(remote, err);
    leati_json *json = c->parse(answer.body, answer.size);
    snprintf(state, sizeof state, "%.30s", c->text(c->member(json, "state")));
    c->forget(json);
    return tell(id, state, options);
}

static leati_exit cancel_with(const leati_options *options)
{
    leati_remote remote;
    leati_exit status = leati_remote_open(&remote, options);
    if (status == LEATI_EXIT_OK)
        status = cancel_job(&remote, options);
    leati_remote_close(&remote);
    return status;
}

static int cancel(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)cancel_with(&options);
    leati_options_fini(&options);
    return status;
}

const leati_verb leati_verb_cancel = {
    .name = "cancel",
    .summary = "cancel a job of a cluster",
    .arguments = "ID",
    .paragraphs =
        (const char *const[]){
            "Cancels a job: its tasks stop, and what they had not yet committed is dropped. Waits "
            "up to ten seconds for that, and prints the job's state. The first four digits of the "
            "id suffice when no other job has the same.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat cancel 3f0c", "cancel the job whose id begins so"},
            {"leat cancel --json 3f0c", "the same, for programs"},
            {NULL, NULL},
        },
    .exits =
        (const leati_entry[]){
            {"0", "the job is told to stop"},
            {"1", "it had ended, there is no such job, or no job manager answers"},
            {"2", "the command line is wrong"},
            {NULL, NULL},
        },
    .operand = LEATI_OPERAND_ID,
    .least = 1,
    .most = 1,
    .missing = "the id of the job is missing; `leat list` shows them",
    .run = cancel,
};
