// SPDX-License-Identifier: Apache-2.0
// `leat logs`: a job's log, or what it has printed.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "tools/remote.h"
#include "tools/style.h"

// Writes a piece of text, or of the inside of a JSON string.
static leati_exit put(const char *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0)
        return LEATI_EXIT_OK;
    if (errno == EPIPE) // `leat logs ID | head`
        return (leati_exit)(LEATI_EXIT_SIGNAL + SIGPIPE);
    leati_complain(NULL, "cannot write to standard output: %s", strerror(errno));
    return LEATI_EXIT_FAILED;
}

static leati_exit put_log(leati_remote *remote, const leati_options *options)
{
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_client_answer answer;
    leati_exit status = leati_remote_job_path(options->operands[0], "/log", path);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_get(remote, path, &answer, NULL);
    if (status != LEATI_EXIT_OK || !options->json)
        return status == LEATI_EXIT_OK ? put(answer.body, answer.size) : status;
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    leati_strbuf_puts(&text, "{\"log\": ");
    leati_strbuf_json_string(&text, answer.body, answer.size);
    leati_strbuf_puts(&text, "}\n");
    status = put(leati_strbuf_text(&text), text.size);
    leati_strbuf_fini(&text);
    return status;
}

// How much of a piece is the rest of a line whose beginning is no longer kept. Nothing when it is
// all of it, as of a line that is longer than what is kept.
static size_t rest_of_line(const leati_client_answer *answer)
{
    const char *end = answer->size ? memchr(answer->body, '\n', answer->size) : NULL;
    size_t rest = end ? (size_t)(end - answer->body) + 1 : 0;
    return rest < answer->size ? rest : 0;
}

// All that is kept now, a piece at a time: the end may move meanwhile, and so may the beginning.
static leati_exit put_output(leati_remote *remote, const leati_options *options, leati_strbuf *all)
{
    char path[LEATI_REMOTE_PATH_SIZE], below[80];
    uint64_t offset = 0, end = 0;
    bool first = true;
    leati_exit status = LEATI_EXIT_OK;
    while (status == LEATI_EXIT_OK && (first || offset < end)) {
        leati_client_answer answer;
        snprintf(below, sizeof below, "/output?offset=%" PRIu64, offset);
        status = leati_remote_job_path(options->operands[0], below, path);
        if (status == LEATI_EXIT_OK)
            status = leati_remote_get(remote, path, &answer, NULL);
        if (status != LEATI_EXIT_OK)
            break;
        size_t rest = answer.offset > offset ? rest_of_line(&answer) : 0;
        if (answer.offset > offset)
            leati_complain(NULL, "the first %" PRIu64 " bytes of %s are no longer kept",
                           answer.offset + rest - offset, first ? "the output" : "what follows");
        end = first ? answer.end : end;
        offset = answer.offset + answer.size;
        if (options->json)
            leati_strbuf_append(all, answer.body + rest, answer.size - rest);
        else
            status = put(answer.body + rest, answer.size - rest);
        if (!answer.size)
            break;
        first = false;
    }
    return status;
}

static leati_exit put_whole_output(leati_remote *remote, const leati_options *options)
{
    leati_strbuf all, text;
    leati_strbuf_init(&all, NULL);
    leati_strbuf_init(&text, NULL);
    leati_exit status = put_output(remote, options, &all);
    if (status == LEATI_EXIT_OK && options->json) {
        leati_strbuf_puts(&text, "{\"output\": ");
        leati_strbuf_json_string(&text, leati_strbuf_text(&all), all.size);
        leati_strbuf_puts(&text, "}\n");
        status = put(leati_strbuf_text(&text), text.size);
    }
    leati_strbuf_fini(&all);
    leati_strbuf_fini(&text);
    return status;
}

static leati_exit logs_with(const leati_options *options)
{
    leati_remote remote;
    // A reader that has gone is an error of the write.
    signal(SIGPIPE, SIG_IGN);
    leati_exit status = leati_remote_open(&remote, options);
    if (status == LEATI_EXIT_OK)
        status = options->out ? put_whole_output(&remote, options) : put_log(&remote, options);
    leati_remote_close(&remote);
    return status;
}

static int logs(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)logs_with(&options);
    leati_options_fini(&options);
    return status;
}

const leati_verb leati_verb_logs = {
    .name = "logs",
    .summary = "show the log of a job, or what it has printed",
    .arguments = "ID",
    .paragraphs =
        (const char *const[]){
            "Prints the newest lines of a job's log, from all task managers, each with time, level "
            "and place. With --out it prints what the job's print sinks have written; of a job "
            "that nobody waits for the last bytes are kept, as many as the job manager's setting "
            "cluster.job-output says.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat logs 3f0c", "what happened to the job"},
            {"leat logs --out 3f0c", "its results, after `leat submit --detach`"},
            {NULL, NULL},
        },
    .exits =
        (const leati_entry[]){
            {"0", "it is written"},
            {"1", "there is no such job, or no job manager answers"},
            {"2", "the command line is wrong"},
            {"141", "the reader of standard output has gone"},
            {NULL, NULL},
        },
    .operand = LEATI_OPERAND_ID,
    .least = 1,
    .most = 1,
    .missing = "the id of the job is missing; `leat list` shows them",
    .run = logs,
};
