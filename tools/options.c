// SPDX-License-Identifier: Apache-2.0
#include "tools/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/text.h"

enum {
    OPTION_WORKERS = 256, // above all letters
    OPTION_STATS,
    OPTION_NAME,
    OPTION_FORMAT,
    OPTION_JSON,
    OPTION_DOT,
};

// Which verbs an option belongs to, by their names; NULL is every verb.
typedef struct option_info {
    const char *name;
    int takes_value;
    int code;
    const char *verbs[3];
} option_info;

static const option_info known[] = {
    {"parallelism", required_argument, 'p', {"run", "plan"}},
    {"set", required_argument, 'D', {"run", "plan"}},
    {"name", required_argument, OPTION_NAME, {"run", "plan"}},
    {"workers", required_argument, OPTION_WORKERS, {"run"}},
    {"stats", optional_argument, OPTION_STATS, {"run"}},
    {"quiet", no_argument, 'q', {"run"}},
    {"format", required_argument, OPTION_FORMAT, {"plan"}},
    {"json", no_argument, OPTION_JSON, {"plan", "run"}},
    {"dot", no_argument, OPTION_DOT, {"plan"}},
    {"help", no_argument, 'h', {NULL}},
};
enum { KNOWN_COUNT = sizeof known / sizeof *known };
static const char letters[] = ":p:D:qh";

typedef struct parser {
    leati_options *options;
    const leati_verb *verb;
} parser;

LEAT_PRINTF(2, 3) static leati_exit wrong(const leati_verb *verb, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "leat %s: ", verb->name);
    vfprintf(stderr, format, args);
    fprintf(stderr, " (see `leat help %s`)\n", verb->name);
    va_end(args);
    return LEATI_EXIT_USAGE;
}

static bool belongs(const option_info *info, const leati_verb *verb)
{
    if (!info->verbs[0])
        return true;
    for (size_t i = 0; info->verbs[i]; i++)
        if (!strcmp(info->verbs[i], verb->name))
            return true;
    return false;
}

static const option_info *find_code(int code)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (known[i].code == code)
            return &known[i];
    return NULL;
}

static leati_exit add_setting(parser *p, const char *option, const char *key, const char *value)
{
    leati_options *o = p->options;
    if (!leati_grow(NULL, (void **)&o->settings, &o->setting_capacity, o->setting_count + 1,
                    sizeof *o->settings)) {
        fprintf(stderr, "leat: %s\n", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    o->settings[o->setting_count++] = (leati_setting){option, key, value};
    return LEATI_EXIT_OK;
}

static leati_exit add_key_value(parser *p, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return wrong(p->verb, "-D %s: key=value is wanted, -D memory.segment-size=64KiB say", text);
    *equals = '\0';
    return add_setting(p, "-D", text, equals + 1);
}

static leati_exit set_format(parser *p, const char *text)
{
    static const char *const formats[] = {
        [LEAT_PLAN_TEXT] = "text", [LEAT_PLAN_JSON] = "json", [LEAT_PLAN_DOT] = "dot"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(text, formats[i])) {
            p->options->format = (leat_plan_format)i;
            return LEATI_EXIT_OK;
        }
    return wrong(p->verb, "--format %s: it is none of text, json, dot", text);
}

static leati_exit take(parser *p, int code, char *value)
{
    switch (code) {
    case 'p':
        return add_setting(p, "-p", "parallelism", value);
    case OPTION_WORKERS:
        return add_setting(p, "--workers", "workers", value);
    case 'D':
        return add_key_value(p, value);
    case OPTION_FORMAT:
        return set_format(p, value);
    case OPTION_JSON:
        p->options->stats = true; // the only thing that `run` prints in this form
        return set_format(p, "json");
    case OPTION_DOT:
        return set_format(p, "dot");
    case OPTION_NAME:
        p->options->name = value;
        return LEATI_EXIT_OK;
    case OPTION_STATS:
        p->options->stats = true;
        p->options->stats_file = value;
        return LEATI_EXIT_OK;
    case 'q':
        p->options->quiet = true;
        return LEATI_EXIT_OK;
    default:
        p->options->help = true;
        return LEATI_EXIT_OK;
    }
}

// `word` is what getopt stumbled over, `letter` the short option in it or 0.
static leati_exit unknown_option(parser *p, const char *word, int letter)
{
    // A known code is that of a long option with a value that it does not take.
    if (letter && find_code(letter))
        return wrong(p->verb, "%s: --%s takes no value", word, find_code(letter)->name);
    if (letter)
        return wrong(p->verb, "there is no option -%c; options of the job stand behind \"--\"",
                     letter);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *names[KNOWN_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (belongs(&known[i], p->verb))
            names[count++] = known[i].name;
    for (size_t i = 0; i < count; i++)
        if (!strncmp(names[i], name, strlen(name)))
            return wrong(p->verb, "%s may mean several options; write it in full", word);
    const char *nearest = leati_nearest(name, names, count);
    if (nearest)
        return wrong(p->verb, "there is no option %s; did you mean --%s?", word, nearest);
    return wrong(p->verb, "there is no option %s; options of the job stand behind \"--\"", word);
}

static leati_exit take_option(parser *p, int code, char **argv)
{
    const char *word = argv[optind - 1];
    if (code == '?')
        return unknown_option(p, word, optopt);
    if (code == ':') {
        const option_info *info = find_code(optopt);
        return wrong(p->verb, "a value is missing behind %s%s",
                     optopt < 256 ? (const char[]){'-', (char)optopt, '\0'} : "--",
                     optopt < 256 ? "" : info->name);
    }
    const option_info *info = find_code(code);
    if (!belongs(info, p->verb))
        return wrong(p->verb, "--%s is an option of `leat %s` only", info->name, info->verbs[0]);
    return take(p, code, optarg);
}

static leati_exit take_options(parser *p, int argc, char **argv)
{
    struct option table[KNOWN_COUNT + 1] = {0};
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        table[i] = (struct option){known[i].name, known[i].takes_value, NULL, known[i].code};
    opterr = 0;
    optind = 0; // makes getopt start anew
    int code;
    while ((code = getopt_long(argc, argv, letters, table, NULL)) != -1) {
        leati_exit status = take_option(p, code, argv);
        if (status != LEATI_EXIT_OK)
            return status;
    }
    return LEATI_EXIT_OK;
}

// The job's arguments are what stands behind "--", with the job file's path before them.
static leati_exit keep_job_arguments(leati_options *options, char **rest, int count)
{
    options->job_argv = leati_calloc(NULL, (size_t)count + 2, sizeof *options->job_argv);
    if (!options->job_argv) {
        fprintf(stderr, "leat: %s\n", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    options->job_argv[0] = options->job;
    for (int i = 0; i < count; i++)
        options->job_argv[i + 1] = rest[i];
    options->job_argc = count + 1;
    return LEATI_EXIT_OK;
}

leati_exit leati_options_parse(leati_options *options, const leati_verb *verb, int argc,
                               char **argv)
{
    *options = (leati_options){.format = LEAT_PLAN_TEXT};
    parser p = {options, verb};
    int own = 1;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    char *separator = argv[own];
    argv[own] = NULL; // getopt must not look behind it
    leati_exit status = take_options(&p, own, argv);
    argv[own] = separator;
    if (status != LEATI_EXIT_OK || options->help)
        return status;
    bool wants_job = !strcmp(verb->name, "run") || !strcmp(verb->name, "plan");
    if (!wants_job)
        return optind < own ? wrong(verb, "what is \"%s\"? it takes no argument", argv[optind])
                            : LEATI_EXIT_OK;
    if (optind == own)
        return wrong(verb, "the job file is missing: `leat %s JOB.so`", verb->name);
    options->job = argv[optind++];
    if (optind < own)
        return wrong(verb, "what is \"%s\"? arguments of the job stand behind \"--\"",
                     argv[optind]);
    return keep_job_arguments(options, argv + own + 1, own < argc ? argc - own - 1 : 0);
}

void leati_options_fini(leati_options *options)
{
    leati_free(NULL, options->settings);
    leati_free(NULL, options->job_argv);
    *options = (leati_options){0};
}
