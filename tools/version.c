// SPDX-License-Identifier: Apache-2.0
// `leat version`.
#include <stdio.h>

#include "leat/base.h"
#include "tools/options.h"
#include "tools/verbs.h"

static int version(const leati_verb *verb, int argc, char **argv)
{
    char text[128];
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    snprintf(text, sizeof text, "leat %s (job interface %d)\n", leat_version(), LEAT_ABI);
    if (status == LEATI_EXIT_OK)
        status = leati_print_and_check(options.help ? verb->usage : text);
    leati_options_fini(&options);
    return status;
}

static const char usage[] =
    "Usage: leat version\n"
    "\n"
    "Prints the version of Leat and the number of the interface that job files are compiled for.\n";

const leati_verb leati_verb_version = {"version", "print the version", usage, version};
