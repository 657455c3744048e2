// SPDX-License-Identifier: Apache-2.0
// `leat config`: the configuration keys with their present values. The text is a configuration file
// itself, so that it can be kept and changed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "tools/options.h"
#include "tools/settings.h"
#include "tools/style.h"

enum { VALUE_SIZE = 64, VALUE_COLUMNS = 44 };

typedef struct view {
    leati_strbuf text;
    const leati_settings *settings;
    const leati_options *options;
} view;

static const char *where_of(const view *v, leati_config_key key)
{
    const char *where = v->settings->layers.where[key];
    return where ? where : "default";
}

// --- text ---

static void put_key(view *v, leati_config_key key)
{
    const leati_config_info *info = leati_config_describe(key);
    char preset[VALUE_SIZE], lowest[VALUE_SIZE], highest[VALUE_SIZE], value[VALUE_SIZE];
    leati_config_print(key, info->preset, preset, sizeof preset);
    leati_config_print(key, info->lowest, lowest, sizeof lowest);
    leati_config_print(key, info->highest, highest, sizeof highest);
    leati_config_print(key, leati_config_get(&v->settings->layers.config, key), value,
                       sizeof value);
    leati_strbuf_printf(&v->text, "\n# %s\n# %s, %s to %s, default %s\n", info->meaning, info->kind,
                        lowest, highest, preset);
    int used = (int)(strlen(info->name) + 2 + strlen(value));
    leati_strbuf_printf(&v->text, "%s: %s%*s  # %s\n", info->name, value,
                        used < VALUE_COLUMNS ? VALUE_COLUMNS - used : 0, "", where_of(v, key));
}

static void put_text(view *v, const bool *wanted)
{
    if (v->settings->file)
        leati_strbuf_printf(&v->text,
                            "# settings of the file %s, the environment and the options\n",
                            v->settings->file);
    else
        leati_strbuf_puts(&v->text, "# settings of the environment and the options; there is no "
                                    "configuration file\n");
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++)
        if (wanted[key])
            put_key(v, (leati_config_key)key);
}

// --- JSON ---

static void put_string(view *v, const char *name, const char *text)
{
    leati_strbuf_printf(&v->text, ", \"%s\": ", name);
    leati_strbuf_json_string(&v->text, text, strlen(text));
}

// Numbers in bytes and milliseconds; a flag as what it is.
static void put_number(view *v, const char *name, leati_config_key key, int64_t number)
{
    bool flag = !strcmp(leati_config_describe(key)->kind, "flag");
    if (flag)
        leati_strbuf_printf(&v->text, ", \"%s\": %s", name, number ? "true" : "false");
    else
        leati_strbuf_printf(&v->text, ", \"%s\": %" PRId64, name, number);
}

static void put_json_key(view *v, leati_config_key key)
{
    const leati_config_info *info = leati_config_describe(key);
    char variable[LEATI_CONFIG_VARIABLE_SIZE], value[VALUE_SIZE];
    int64_t number = leati_config_get(&v->settings->layers.config, key);
    leati_config_print(key, number, value, sizeof value);
    leati_config_variable(key, variable);
    leati_strbuf_printf(&v->text, "{\"key\": \"%s\"", info->name);
    put_string(v, "type", info->kind);
    put_number(v, "value", key, number);
    put_string(v, "text", value);
    put_string(v, "from", where_of(v, key));
    put_number(v, "default", key, info->preset);
    put_number(v, "lowest", key, info->lowest);
    put_number(v, "highest", key, info->highest);
    put_string(v, "variable", variable);
    put_string(v, "meaning", info->meaning);
    leati_strbuf_putc(&v->text, '}');
}

static void put_json(view *v, const bool *wanted)
{
    const char *file = v->settings->file;
    leati_strbuf_puts(&v->text, "{\"file\": ");
    if (file)
        leati_strbuf_json_string(&v->text, file, strlen(file));
    else
        leati_strbuf_puts(&v->text, "null");
    leati_strbuf_puts(&v->text, ", \"settings\": [");
    bool begun = false;
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        if (!wanted[key])
            continue;
        leati_strbuf_puts(&v->text, begun ? ",\n  " : "\n  ");
        put_json_key(v, (leati_config_key)key);
        begun = true;
    }
    leati_strbuf_puts(&v->text, "]}\n");
}

// --- the verb ---

// A word is a key, or the name of a group of them; false when it is neither.
static bool want(const char *word, bool *wanted)
{
    bool found = false;
    size_t size = strlen(word);
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const char *name = leati_config_describe((leati_config_key)key)->name;
        if (strncmp(name, word, size) != 0 || (name[size] != '\0' && name[size] != '.'))
            continue;
        wanted[key] = found = true;
    }
    return found;
}

static leati_exit choose(const leati_options *options, bool *wanted)
{
    for (int key = 0; options->operand_count == 0 && key < LEATI_CONFIG_COUNT; key++)
        wanted[key] = true;
    for (size_t i = 0; i < options->operand_count; i++) {
        leati_config unused;
        char why[400];
        if (want(options->operands[i], wanted))
            continue;
        // Setting it says best what is wrong with it.
        leati_config_init(&unused);
        if (leati_config_set(&unused, options->operands[i], "", why, sizeof why) != LEAT_OK)
            leati_complain("config", "%s", why);
        return LEATI_EXIT_USAGE;
    }
    return LEATI_EXIT_OK;
}

static leati_exit show(const leati_options *options)
{
    bool wanted[LEATI_CONFIG_COUNT] = {false};
    leati_settings settings;
    leati_exit status = choose(options, wanted);
    if (status != LEATI_EXIT_OK)
        return status;
    status = leati_settings_read(&settings, options);
    if (status == LEATI_EXIT_OK) {
        view v = {.settings = &settings, .options = options};
        leati_strbuf_init(&v.text, NULL);
        if (options->json)
            put_json(&v, wanted);
        else
            put_text(&v, wanted);
        status = (leati_exit)leati_print_and_check(leati_strbuf_text(&v.text));
        leati_strbuf_fini(&v.text);
    }
    leati_settings_fini(&settings);
    return status;
}

static int config(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)show(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "Lists the configuration keys: what they mean, their types, ranges and defaults, the values "
    "that a job would be run with now, and where each comes from. KEY names one, or a group such "
    "as "
    "network. The output is a configuration file itself.",
    "Values come from a file, from the environment, from options, and from the job function, of "
    "which the later ones win. The file is the one that --config names, or else $LEAT_CONFIG, or "
    "else $XDG_CONFIG_HOME/leat/leat.yaml (~/.config/leat/leat.yaml), or else "
    "/etc/leat/leat.yaml. It is YAML; the key memory.segment-size stands there as it is or as "
    "segment-size in a map called memory. The environment variable for that key is "
    "LEAT_MEMORY_SEGMENT_SIZE. Other variables that begin with LEAT_ are refused, save "
    "LEAT_CONFIG, "
    "LEAT_LOG, LEAT_INCLUDE, LEAT_BUILD_DIR, LEAT_COMMIT, LEAT_NO_ASLR, and those that begin with "
    "LEAT_JOB_, LEAT_TEST_ or LEAT_BENCH_.",
    "Sizes take a unit, \"64 KiB\" or \"1 MB\" say, and so do durations: \"100 ms\", \"2 s\", "
    "\"1 min\".",
    NULL,
};

static const leati_entry examples[] = {
    {"leat config", "all keys"},
    {"leat config memory -D memory.network=1GiB", "a group of keys, with an option"},
    {"LEAT_WORKERS=2 leat config workers", "what a variable does"},
    {"leat config --json", "for programs"},
    {"leat config >leat.yaml", "a file to change, and to name with --config"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "they are listed"},
    {"1", "standard output cannot be written"},
    {"2", "the command line or the configuration is wrong"},
    {NULL, NULL},
};

const leati_verb leati_verb_config = {
    .name = "config",
    .summary = "list the settings, and where their values come from",
    .arguments = "[KEY...]",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_KEY,
    .most = LEATI_CONFIG_COUNT,
    .run = config,
};
