// SPDX-License-Identifier: Apache-2.0
// `leat help [VERB]`.
#include <stdio.h>

#include "base/strbuf.h"
#include "tools/verbs.h"

static int print_overview(void)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    leati_strbuf_puts(&text, "Usage: leat VERB [OPTIONS] [ARGUMENTS]\n\n");
    for (size_t i = 0; leati_verb_at(i); i++)
        leati_strbuf_printf(&text, "  %-8s  %s\n", leati_verb_at(i)->name,
                            leati_verb_at(i)->summary);
    leati_strbuf_puts(&text, "\n`leat help VERB` says more about one of them.\n");
    int status = leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static int help(const leati_verb *verb, int argc, char **argv)
{
    if (argc < 2)
        return print_overview();
    if (argc > 2) {
        fprintf(stderr, "leat help: what is \"%s\"? one verb at a time\n", argv[2]);
        return LEATI_EXIT_USAGE;
    }
    const leati_verb *asked = leati_verb_find(argv[1]);
    return asked ? leati_print_and_check(asked->usage) : LEATI_EXIT_USAGE;
}

static const char usage[] = "Usage: leat help [VERB]\n"
                            "\n"
                            "Lists the verbs, or says how one of them is used.\n";

const leati_verb leati_verb_help = {"help", "say how a verb is used", usage, help};
