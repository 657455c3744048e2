// SPDX-License-Identifier: Apache-2.0
// `leat build`: compiles a single-file job.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/job_file.h"
#include "base/strbuf.h"
#include "tools/compiler.h"
#include "tools/options.h"
#include "tools/style.h"

// The source's name with ".so" for its ending, in the same folder; to be freed.
static char *default_output(const char *source)
{
    char *output = NULL;
    const char *ending = strrchr(source, '.');
    if (asprintf(&output, "%.*s.so", (int)(ending - source), source) < 0)
        return NULL;
    return output;
}

// A sanitizer's library has to come first in a program, so what was built for one cannot be loaded
// into this one.
static bool can_be_loaded(const leati_options *options)
{
    for (size_t i = 0; i < options->rest_count; i++)
        if (!strncmp(options->rest[i], "-fsanitize", strlen("-fsanitize")))
            return false;
    return true;
}

// Undefined functions and a missing job function are better told now than by `leat run`.
static leati_exit check(const leati_options *options, const char *output)
{
    leati_job_file file;
    char why[1024];
    if (!can_be_loaded(options))
        return LEATI_EXIT_OK;
    if (!leati_job_file_open(output, &file, why, sizeof why)) {
        leati_complain(NULL, "%s was built, but %s", output, why);
        return LEATI_EXIT_REFUSED;
    }
    leati_job_file_close(&file);
    return LEATI_EXIT_OK;
}

static leati_exit print(const leati_strbuf *command, const char *output)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    leati_strbuf_puts(&text, "{\"output\": ");
    leati_strbuf_json_string(&text, output, strlen(output));
    leati_strbuf_puts(&text, ", \"command\": [");
    for (size_t at = 0; at < command->size; at += strlen(command->data + at) + 1) {
        leati_strbuf_puts(&text, at ? ", " : "");
        leati_strbuf_json_string(&text, command->data + at, strlen(command->data + at));
    }
    leati_strbuf_puts(&text, "]}\n");
    leati_exit status = (leati_exit)leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static leati_exit build_to(const leati_options *options, const char *output)
{
    leati_strbuf command;
    leati_strbuf_init(&command, NULL);
    leati_exit status = leati_compile(&(leati_compilation){
        .source = options->operands[0],
        .output = output,
        .flags = options->rest,
        .flag_count = options->rest_count,
        .verbose = options->verbose,
        .command = &command,
    });
    if (status == LEATI_EXIT_OK) {
        status = check(options, output);
        // What is no job file after all is not left lying about.
        if (status != LEATI_EXIT_OK)
            unlink(output);
    }
    if (status == LEATI_EXIT_OK && options->json)
        status = print(&command, output);
    leati_strbuf_fini(&command);
    return status;
}

static leati_exit build_with(const leati_options *options)
{
    const char *source = options->operands[0];
    if (!leati_is_source(source)) {
        leati_complain("build",
                       "\"%s\" is no source file: its name ends neither in .c nor in .cc, "
                       ".cpp or .cxx (see `leat help build`)",
                       source);
        return LEATI_EXIT_USAGE;
    }
    char *output = options->output ? strdup(options->output) : default_output(source);
    if (!output) {
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    leati_exit status = build_to(options, output);
    free(output);
    return status;
}

static int build(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)build_with(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "Compiles a job that is one source file of C or C++ to a job file, and makes sure that it can "
    "be loaded. FLAGS are for the compiler, behind its own.",
    "The compiler is $CC (default cc), for C++ $CXX (default c++). The headers are those that "
    "belong to this program, or in the folder that LEAT_INCLUDE names. A job of several files is "
    "better made with `leat new`.",
    NULL,
};

static const leati_entry examples[] = {
    {"leat build job.c", "makes job.so"},
    {"leat build job.c -o fast.so -- -O3 -march=native", "another name, and flags"},
    {"CC='gcc -fanalyzer' leat build -v job.c", "another compiler, and its command shown"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "the job file is made"},
    {"1", "the compiler found faults, and has said which"},
    {"2", "the command line is wrong"},
    {"3", "there is no source file, compiler or header, or what was made is no job file"},
    {NULL, NULL},
};

const leati_verb leati_verb_build = {
    .name = "build",
    .summary = "compile a job that is one source file",
    .arguments = "FILE.c [-- FLAGS]",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_SOURCE,
    .least = 1,
    .most = 1,
    .missing = "the source file is missing: `leat build FILE.c`",
    .rest = "flags of the compiler",
    .run = build,
};
