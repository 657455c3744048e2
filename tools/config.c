// SPDX-License-Identifier: Apache-2.0
// `leat config`: lists the configuration keys.
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/strbuf.h"
#include "tools/options.h"
#include "tools/verbs.h"

// Wide enough for the longest value; the name column follows from the names.
enum { PRESET_COLUMNS = 10, RANGE_COLUMNS = 20, VALUE_SIZE = 32 };

static int name_columns(void)
{
    size_t widest = strlen("key");
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        size_t size = strlen(leati_config_describe((leati_config_key)key)->name);
        if (size > widest)
            widest = size;
    }
    return (int)widest;
}

static void add_key(leati_strbuf *text, leati_config_key key, int columns)
{
    const leati_config_info *info = leati_config_describe(key);
    char preset[VALUE_SIZE], lowest[VALUE_SIZE], highest[VALUE_SIZE], range[2 * VALUE_SIZE + 4];
    leati_config_print(key, info->preset, preset, sizeof preset);
    leati_config_print(key, info->lowest, lowest, sizeof lowest);
    leati_config_print(key, info->highest, highest, sizeof highest);
    snprintf(range, sizeof range, "%s .. %s", lowest, highest);
    leati_strbuf_printf(text, "%-*s  %-*s  %-*s  %s\n", columns, info->name, PRESET_COLUMNS, preset,
                        RANGE_COLUMNS, range, info->meaning);
}

static int print_keys(void)
{
    leati_strbuf text;
    int columns = name_columns();
    leati_strbuf_init(&text, NULL);
    leati_strbuf_printf(&text, "%-*s  %-*s  %-*s  %s\n", columns, "key", PRESET_COLUMNS, "default",
                        RANGE_COLUMNS, "range", "meaning");
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++)
        add_key(&text, (leati_config_key)key, columns);
    int status = leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static int config(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_print_and_check(verb->usage) : print_keys();
    leati_options_fini(&options);
    return status;
}

static const char usage[] = "Usage: leat config\n"
                            "\n"
                            "Lists the configuration keys with their defaults, ranges and "
                            "meanings. `-D key=value` sets one.\n"
                            "Sizes take a unit, \"64 KiB\" or \"1 MB\" say, and so do durations: "
                            "\"100 ms\", \"2 s\", \"1 min\".\n";

const leati_verb leati_verb_config = {"config", "list the configuration keys", usage, config};
