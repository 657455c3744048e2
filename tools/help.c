// SPDX-License-Identifier: Apache-2.0
// `leat help [VERB]`.
#include <stdio.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "tools/options.h"
#include "tools/page.h"
#include "tools/style.h"

const char *const leati_page_paragraphs[] = {
    "`leat` runs jobs of the stream-processing library Leat, in this process or in a cluster, and "
    "shows what is in them. A job file "
    "is a shared object that defines a job function with LEAT_JOB. Wherever one is wanted, a C or "
    "C++ source file does as well: it is compiled first.",
    "Options may stand before or behind the other words; what stands behind -- is handed to the "
    "job.",
    NULL,
};

const leati_entry leati_page_exits[] = {
    {"0", "everything was done, and all output is written"},
    {"1", "the job failed, the compiler found faults, or output could not be written"},
    {"2", "the command line or the configuration is wrong"},
    {"3", "refused: the job file, its graph, too little memory for it, a folder that is not empty"},
    {"4", "the job of a cluster was cancelled, and not by a signal to this program"},
    {"130", "cancelled by SIGINT"},
    {"143", "cancelled by SIGTERM"},
    {"141", "the reader of standard output has gone"},
    {NULL, NULL},
};

static void put_overview(leati_strbuf *to)
{
    const leati_verb *verb;
    bool bold = leati_style_wanted(STDOUT_FILENO);
    leati_strbuf_printf(to, "%sUsage:%s leat VERB [OPTIONS] [ARGUMENTS]\n\n", bold ? "\033[1m" : "",
                        bold ? "\033[0m" : "");
    for (size_t i = 0; (verb = leati_verb_at(i)); i++)
        if (!verb->hidden)
            leati_strbuf_printf(to, "  %-11s  %s\n", verb->name, verb->summary);
    leati_strbuf_puts(to, "\n`leat help VERB` says more about one of them, with examples.\n");
}

static void put_all_json(leati_strbuf *to)
{
    const leati_verb *verb;
    leati_strbuf_puts(to, "[");
    for (size_t i = 0; (verb = leati_verb_at(i)); i++) {
        if (verb->hidden)
            continue;
        leati_strbuf_puts(to, i ? ",\n  " : "\n  ");
        leati_page_json(to, verb);
    }
    leati_strbuf_puts(to, "]\n");
}

static int print(const leati_options *options, const leati_verb *asked)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    if (options->man) {
        leati_page_man(&text, asked);
    } else if (options->json && asked) {
        leati_page_json(&text, asked);
        leati_strbuf_putc(&text, '\n');
    } else if (options->json) {
        put_all_json(&text);
    } else if (asked) {
        leati_page_text(&text, asked, leati_style_wanted(STDOUT_FILENO));
    } else {
        put_overview(&text);
    }
    int status = leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static int help(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK) {
        const char *name = options.help ? "help" : options.operand_count ? *options.operands : NULL;
        const leati_verb *asked = name ? leati_verb_find(name) : NULL;
        status = name && !asked ? LEATI_EXIT_USAGE : print(&options, asked);
    }
    leati_options_fini(&options);
    return status;
}

int leati_help_print(const leati_verb *verb)
{
    return print(&(leati_options){0}, verb);
}

const leati_verb leati_verb_help = {
    .name = "help",
    .summary = "say how a verb is used",
    .arguments = "[VERB]",
    .paragraphs = (const char *const[]){"Lists the verbs, or says how one of them is used.", NULL},
    .examples =
        (const leati_entry[]){
            {"leat help run", "how jobs are run; `leat run --help` says the same"},
            {"leat help --json", "all verbs with their options, for programs"},
            {NULL, NULL},
        },
    .operand = LEATI_OPERAND_VERB,
    .most = 1,
    .run = help,
};
