// SPDX-License-Identifier: Apache-2.0
// `leat version`.
#include <stdio.h>
#include <string.h>

#include "base/config_file.h"
#include "base/strbuf.h"
#include "leat/base.h"
#include "tools/build_info.h"
#include "tools/options.h"

static void put_string(leati_strbuf *to, const char *before, const char *text)
{
    leati_strbuf_puts(to, before);
    leati_strbuf_json_string(to, text, strlen(text));
}

static void put_json(leati_strbuf *to)
{
    static const leati_entry libraries[] = {LEATI_BUILD_LIBRARIES};
    put_string(to, "{\"program\": ", LEATI_BUILD_VERSION);
    put_string(to, ", \"library\": ", leat_version());
    leati_strbuf_printf(to, ", \"job_interface\": %d,\n \"build\": {", LEAT_ABI);
    put_string(to, "\"type\": ", LEATI_BUILD_TYPE);
    put_string(to, ", \"optimization\": ", LEATI_BUILD_OPTIMIZATION);
    put_string(to, ", \"sanitizers\": ", LEATI_BUILD_SANITIZERS);
    put_string(to, ", \"compiler\": ", LEATI_BUILD_COMPILER);
    put_string(to, ", \"machine\": ", LEATI_BUILD_MACHINE);
    leati_strbuf_puts(to, "},\n \"dependencies\": {");
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        put_string(to, i ? ", " : "", libraries[i].term);
        put_string(to, ": ", libraries[i].text);
    }
    put_string(to, ", \"libyaml\": ", leati_config_file_yaml_version());
    leati_strbuf_puts(to, "}}\n");
}

static int print(bool json)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    if (json)
        put_json(&text);
    else if (!strcmp(leat_version(), LEATI_BUILD_VERSION))
        leati_strbuf_printf(&text, "leat %s (job interface %d)\n", leat_version(), LEAT_ABI);
    else
        leati_strbuf_printf(&text, "leat %s (job interface %d), with the library of version %s\n",
                            LEATI_BUILD_VERSION, LEAT_ABI, leat_version());
    int status = leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static int version(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : print(options.json);
    leati_options_fini(&options);
    return status;
}

const leati_verb leati_verb_version = {
    .name = "version",
    .summary = "print the version",
    .paragraphs =
        (const char *const[]){
            "Prints the version of Leat and the number of the interface that job files are "
            "compiled for.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat version", "in one line"},
            {"leat version --json", "also how it was built, and with which libraries"},
            {NULL, NULL},
        },
    .run = version,
};
