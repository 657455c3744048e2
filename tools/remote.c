// SPDX-License-Identifier: Apache-2.0
#include "tools/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "tools/local.h"
#include "tools/style.h"

// --- finding the job manager ---

static leati_exit find_local(leati_remote *remote, const leati_options *options)
{
    leati_local_warn();
    leati_exit status = leati_local_read(&remote->local, options, remote->api);
    const leati_local local = remote->local;
    bool named = strcmp(local.name ? local.name : "default", "default") != 0;
    if (status == LEATI_EXIT_OK && !local.known) {
        leati_complain(NULL,
                       "no cluster%s%s%s is running; `leat cluster start%s%s` starts one, and -m "
                       "HOST:PORT names one elsewhere",
                       named ? " \"" : "", named ? local.name : "", named ? "\"" : "",
                       named ? " --cluster " : "", named ? local.name : "");
        status = LEATI_EXIT_FAILED;
    } else if (status == LEATI_EXIT_OK && (local.damaged || !leati_process_lives(local.manager))) {
        leati_complain(NULL,
                       "the job manager of cluster \"%s\" is gone; `leat cluster start` cleans up "
                       "and starts it again",
                       local.name);
        status = LEATI_EXIT_FAILED;
    } else if (status == LEATI_EXIT_OK) {
        snprintf(remote->address, sizeof remote->address, "%s", local.rest);
        remote->auth = leati_local_auth(&remote->local, options);
    }
    return status;
}

// One that was named may be the local one all the same, whose secret lies at hand.
static void find_auth(leati_remote *remote, const leati_options *options)
{
    remote->auth = leati_options_auth(options);
    if (remote->auth.secret || remote->auth.tls_cert || !leati_local_has_place(options))
        return;
    if (leati_local_read(&remote->local, options, remote->api) == LEATI_EXIT_OK &&
        remote->local.known && !strcmp(remote->local.rest, remote->address))
        remote->auth = leati_local_auth(&remote->local, options);
}

static leati_exit find(leati_remote *remote, const leati_options *options)
{
    const char *variable = getenv("LEAT_JOBMANAGER");
    const char *named = options->manager;
    if (!named && !options->cluster && variable && *variable)
        named = variable;
    if (!named)
        return find_local(remote, options);
    snprintf(remote->address, sizeof remote->address, "%s", named);
    find_auth(remote, options);
    return LEATI_EXIT_OK;
}

leati_exit leati_remote_open(leati_remote *remote, const leati_options *options)
{
    char why[400];
    *remote = (leati_remote){.api = leati_module_client()};
    if (!remote->api)
        return LEATI_EXIT_FAILED;
    leati_exit status = find(remote, options);
    if (status != LEATI_EXIT_OK)
        return status;
    leat_err err = remote->api->open(remote->address, &remote->client, why, sizeof why);
    if (err == LEAT_OK) {
        err = remote->api->secure(remote->client, &remote->auth);
        return err == LEAT_OK ? LEATI_EXIT_OK : leati_remote_complain(remote, err);
    }
    leati_complain(NULL, "%s%s", options->manager ? "-m: " : "", why);
    return err == LEAT_EINVAL ? LEATI_EXIT_USAGE : LEATI_EXIT_FAILED;
}

void leati_remote_close(leati_remote *remote)
{
    if (remote->client)
        remote->api->close(&remote->client);
    leati_local_fini(&remote->local);
}

// --- requests ---

leati_exit leati_remote_complain(const leati_remote *remote, leat_err err)
{
    const char *why = remote->api->why(remote->client);
    leati_complain(NULL, "%s", *why ? why : leat_err_message(err));
    return LEATI_EXIT_FAILED;
}

leati_exit leati_remote_get(leati_remote *remote, const char *path, leati_client_answer *answer,
                            leati_json **json)
{
    leati_client_answer own;
    leat_err err = remote->api->call(remote->client, "GET", path, 0, answer ? answer : &own);
    if (err != LEAT_OK)
        return leati_remote_complain(remote, err);
    const leati_client_answer *got = answer ? answer : &own;
    if (!json)
        return LEATI_EXIT_OK;
    *json = remote->api->parse(got->body, got->size);
    if (*json)
        return LEATI_EXIT_OK;
    leati_complain(NULL, "what answers at %s is no job manager", remote->address);
    return LEATI_EXIT_FAILED;
}

leati_exit leati_remote_job_path(const char *id, const char *below, char *path)
{
    size_t size = strlen(id);
    if (size < 4 || size > 32 || strspn(id, "0123456789abcdef") != size) {
        leati_complain(NULL,
                       "\"%s\" is no id of a job: 4 to 32 digits of 0-9 and a-f are wanted; "
                       "`leat list -a` shows them",
                       id);
        return LEATI_EXIT_USAGE;
    }
    snprintf(path, LEATI_REMOTE_PATH_SIZE, "/jobs/%s%s", id, below);
    return LEATI_EXIT_OK;
}

// --- whole verbs ---

leati_exit leati_remote_print(const leati_client_answer *answer)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    leati_strbuf_append(&text, answer->body, answer->size);
    if (answer->size && answer->body[answer->size - 1] != '\n')
        leati_strbuf_putc(&text, '\n');
    leati_exit status = (leati_exit)leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static leati_exit show(const leati_remote_verb *how, leati_remote *remote,
                       const leati_options *options, const char *path)
{
    leati_client_answer answer;
    leati_json *json = NULL;
    leati_exit status = leati_remote_get(remote, path, &answer, &json);
    if (status == LEATI_EXIT_OK && options->json && !how->show_json) {
        status = leati_remote_print(&answer);
    } else if (status == LEATI_EXIT_OK) {
        leati_strbuf text;
        leati_strbuf_init(&text, NULL);
        (options->json ? how->show_json : how->show)(&text, remote, options, json);
        if (text.failed)
            leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        status = text.failed ? LEATI_EXIT_FAILED
                             : (leati_exit)leati_print_and_check(leati_strbuf_text(&text));
        leati_strbuf_fini(&text);
    }
    remote->api->forget(json);
    return status;
}

static leati_exit run_with(const leati_remote_verb *how, const leati_options *options)
{
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_remote remote = {0};
    leati_exit status = LEATI_EXIT_OK;
    if (how->of_job)
        status = leati_remote_job_path(options->operands[0], how->below, path);
    else
        snprintf(path, sizeof path, "%s", how->below);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_open(&remote, options);
    if (status == LEATI_EXIT_OK)
        status = show(how, &remote, options, path);
    leati_remote_close(&remote);
    return status;
}

int leati_remote_run(const leati_remote_verb *how, const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)run_with(how, &options);
    leati_options_fini(&options);
    return status;
}
