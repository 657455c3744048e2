// SPDX-License-Identifier: Apache-2.0
#include "tools/option_table.h"

#include <string.h>

static const leati_option options[] = {
    {"parallelism",
     'p',
     "N",
     false,
     {"run", "plan", "config"},
     "parallelism of operators that set none (default 1); the same as -D parallelism=N"},
    {"workers",
     LEATI_OPTION_WORKERS,
     "N",
     false,
     {"run", "config"},
     "worker threads (default: one per processor); the same as -D workers=N"},
    {"set",
     'D',
     "KEY=VALUE",
     false,
     {"run", "plan", "config"},
     "set a configuration key; may be repeated, and of several values for a key the last counts"},
    {"config",
     LEATI_OPTION_CONFIG,
     "FILE",
     false,
     {"run", "plan", "config"},
     "read this configuration file and no other"},
    {"name",
     LEATI_OPTION_NAME,
     "NAME",
     false,
     {"run", "plan"},
     "the job's name (default: what the job function says, or else that of the job file)"},
    {"stats",
     LEATI_OPTION_STATS,
     "FILE",
     true,
     {"run"},
     "at the end, print what each task did, and the metrics, to standard error or into FILE; also "
     "when the job failed"},
    {"json",
     LEATI_OPTION_JSON,
     NULL,
     false,
     {"run"},
     "print that as one JSON object; implies --stats"},
    {"quiet", 'q', NULL, false, {"run"}, "no progress line"},
    {"format",
     LEATI_OPTION_FORMAT,
     "text|json|dot",
     false,
     {"plan"},
     "the form of the plan (default: text); dot is for Graphviz"},
    {"json", LEATI_OPTION_JSON, NULL, false, {"plan"}, "the same as --format json"},
    {"dot", LEATI_OPTION_DOT, NULL, false, {"plan"}, "the same as --format dot"},
    {"output",
     'o',
     "FILE",
     false,
     {"build"},
     "the job file to make (default: the source file's name with .so for its ending)"},
    {"verbose", 'v', NULL, false, {"build"}, "show the compiler's command on standard error"},
    {"man", LEATI_OPTION_MAN, NULL, false, {"help"}, "print it as the source of a manual page"},
    {"json",
     LEATI_OPTION_JSON,
     NULL,
     false,
     {"new", "build", "config", "version", "help"},
     "print one JSON object"},
    {"help", 'h', NULL, false, {NULL}, "say how the verb is used"},
};

const leati_option *leati_option_at(size_t index)
{
    return index < sizeof options / sizeof *options ? &options[index] : NULL;
}

bool leati_option_belongs(const leati_option *option, const leati_verb *verb)
{
    if (!option->verbs[0])
        return true;
    for (size_t i = 0; option->verbs[i]; i++)
        if (!strcmp(option->verbs[i], verb->name))
            return true;
    return false;
}

char leati_option_letter(const leati_option *option)
{
    return option->code < 256 ? (char)option->code : '\0';
}
