// SPDX-License-Identifier: Apache-2.0
#include "tools/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "tools/option_table.h"
#include "tools/style.h"

enum { OPTIONS_MAX = 32, LETTERS_MAX = 2 * OPTIONS_MAX + 2 };

typedef struct parser {
    leati_options *options;
    const leati_verb *verb;
    // The options of the verb, as getopt wants them.
    const leati_option *known[OPTIONS_MAX];
    struct option table[OPTIONS_MAX + 1];
    size_t count;
    char letters[LETTERS_MAX];
} parser;

static void add_known(parser *p, const leati_option *option)
{
    int takes = !option->value           ? no_argument
                : option->value_optional ? optional_argument
                                         : required_argument;
    p->known[p->count] = option;
    p->table[p->count++] = (struct option){option->name, takes, NULL, option->code};
    size_t used = strlen(p->letters);
    if (leati_option_letter(option))
        snprintf(p->letters + used, sizeof p->letters - used, "%c%s", option->code,
                 takes == required_argument ? ":" : "");
}

static void parser_init(parser *p, leati_options *options, const leati_verb *verb)
{
    *p = (parser){.options = options, .verb = verb, .letters = ":"};
    const leati_option *option;
    for (size_t i = 0; (option = leati_option_at(i)) && p->count < OPTIONS_MAX; i++)
        if (leati_option_belongs(option, verb))
            add_known(p, option);
}

LEAT_PRINTF(2, 3) static leati_exit wrong(const leati_verb *verb, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    leati_complain(verb->name, "%s (see `leat help %s`)", text, verb->name);
    return LEATI_EXIT_USAGE;
}

static const leati_option *find_code(const parser *p, int code)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->known[i]->code == code)
            return p->known[i];
    return NULL;
}

static leati_exit add_setting(parser *p, const char *option, const char *key, const char *value)
{
    leati_options *o = p->options;
    if (!leati_grow(NULL, (void **)&o->settings, &o->setting_capacity, o->setting_count + 1,
                    sizeof *o->settings)) {
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
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

static leati_exit add_file(parser *p, char *text)
{
    leati_options *o = p->options;
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return wrong(p->verb, "--file %s: name=path is wanted, --file words=data/words.txt say",
                     text);
    if (!leati_grow(NULL, (void **)&o->files, &o->file_capacity, o->file_count + 1,
                    sizeof *o->files)) {
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    *equals = '\0';
    o->files[o->file_count++] = (leati_named_path){text, equals + 1};
    return LEATI_EXIT_OK;
}

// A whole number of at most `most`.
static leati_exit set_number(parser *p, const char *option, const char *text, int32_t most,
                             int32_t *to)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > most)
        return wrong(p->verb, "%s %s: a whole number from 0 to %d is wanted", option, text,
                     (int)most);
    *to = (int32_t)value;
    return LEATI_EXIT_OK;
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

enum { PORT_MOST = 65535, TASK_MANAGERS_MOST = 1000 };

// What only the verbs of a cluster have.
static leati_exit take_of_cluster(parser *p, int code, char *value)
{
    leati_options *o = p->options;
    switch (code) {
    case 's':
        return add_setting(p, "-s", "taskmanager.slots", value);
    case 'w':
        return set_number(p, "-w", value, TASK_MANAGERS_MOST, &o->task_managers);
    case LEATI_OPTION_PORT:
        return set_number(p, "--port", value, PORT_MOST, &o->port);
    case LEATI_OPTION_RPC_PORT:
        return set_number(p, "--rpc-port", value, PORT_MOST, &o->rpc_port);
    case LEATI_OPTION_DATA_PORT:
        return set_number(p, "--data-port", value, PORT_MOST, &o->data_port);
    case LEATI_OPTION_INDEX:
        return set_number(p, "--index", value, INT32_MAX, &o->index);
    default:
        break;
    }
    const struct {
        int code;
        const char **to;
    } texts[] = {
        {'m', &o->manager},
        {LEATI_OPTION_CLUSTER, &o->cluster},
        {LEATI_OPTION_BIND, &o->bind},
        {LEATI_OPTION_FOLDER, &o->folder},
        {LEATI_OPTION_LOG_FILE, &o->log_file},
        {LEATI_OPTION_STATE_FILE, &o->state_file},
        {LEATI_OPTION_GET, &o->get},
        {LEATI_OPTION_SECRET_FILE, &o->secret_file},
        {LEATI_OPTION_TLS_CERT, &o->tls_cert},
        {LEATI_OPTION_TLS_KEY, &o->tls_key},
        {LEATI_OPTION_TLS_CA, &o->tls_ca},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code)
            *texts[i].to = value;
    return LEATI_EXIT_OK;
}

static leati_exit take(parser *p, int code, char *value)
{
    leati_options *o = p->options;
    switch (code) {
    case 'p':
        return add_setting(p, "-p", "parallelism", value);
    case LEATI_OPTION_WORKERS:
        return add_setting(p, "--workers", "workers", value);
    case 'D':
        return add_key_value(p, value);
    case LEATI_OPTION_FORMAT:
        return set_format(p, value);
    case LEATI_OPTION_DOT:
        return set_format(p, "dot");
    case LEATI_OPTION_JSON:
        o->json = o->stats = true; // statistics are all that `run` prints in this form
        return set_format(p, "json");
    case LEATI_OPTION_STATS:
        o->stats = true;
        o->stats_file = value;
        return LEATI_EXIT_OK;
    case LEATI_OPTION_NAME:
        o->name = value;
        return LEATI_EXIT_OK;
    case LEATI_OPTION_CONFIG:
        o->config = value;
        return LEATI_EXIT_OK;
    case 'o':
        o->output = value;
        return LEATI_EXIT_OK;
    case LEATI_OPTION_FILE:
        return add_file(p, value);
    default:
        break;
    }
    o->quiet |= code == 'q';
    o->verbose |= code == 'v';
    o->man |= code == LEATI_OPTION_MAN;
    o->help |= code == 'h';
    o->detach |= code == 'd';
    o->wait |= code == LEATI_OPTION_WAIT;
    o->all |= code == 'a';
    o->running |= code == 'r';
    o->out |= code == LEATI_OPTION_OUT;
    o->insecure |= code == LEATI_OPTION_INSECURE;
    return take_of_cluster(p, code, value);
}

// --- mistakes ---

static leati_exit refuse(const parser *p, const char *option)
{
    if (p->verb->rest)
        return wrong(p->verb, "there is no option %s; %s stand behind \"--\"", option,
                     p->verb->rest);
    return wrong(p->verb, "there is no option %s", option);
}

// The option of another verb that somebody meant, by its name ("" matches none) or its code; NULL
// when there is none.
static const leati_option *find_foreign(const char *name, int code)
{
    const leati_option *option;
    for (size_t i = 0; (option = leati_option_at(i)); i++)
        if (option->code == code || !strcmp(option->name, name))
            return option;
    return NULL;
}

static leati_exit unknown_letter(const parser *p, const char *word, int letter)
{
    const char option[] = {'-', (char)letter, '\0'};
    // A known code is that of an option with a value that it does not take.
    const leati_option *known = find_code(p, letter), *foreign = find_foreign("", letter);
    if (known)
        return wrong(p->verb, "%s: --%s takes no value", word, known->name);
    if (foreign && letter < 256)
        return wrong(p->verb, "%s is an option of `leat %s`", option, foreign->verbs[0]);
    return refuse(p, option);
}

// `word` is what getopt stumbled over, `letter` the short option in it or 0.
static leati_exit unknown_option(const parser *p, const char *word, int letter)
{
    if (letter)
        return unknown_letter(p, word, letter);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const leati_option *foreign = find_foreign(name, 0);
    if (foreign)
        return wrong(p->verb, "--%s is an option of `leat %s`", name, foreign->verbs[0]);
    const char *names[OPTIONS_MAX];
    for (size_t i = 0; i < p->count; i++) {
        names[i] = p->known[i]->name;
        if (!strncmp(names[i], name, strlen(name)))
            return wrong(p->verb, "%s may mean several options; write it in full", word);
    }
    const char *nearest = leati_nearest(name, names, p->count);
    if (nearest)
        return wrong(p->verb, "there is no option %s; did you mean --%s?", word, nearest);
    return refuse(p, word);
}

// --- the words ---

static leati_exit take_option(parser *p, int code, char **argv)
{
    const char *word = argv[optind - 1];
    if (code == '?')
        return unknown_option(p, word, optopt);
    if (code == ':') {
        const leati_option *option = find_code(p, optopt);
        return wrong(p->verb, "a value is missing behind %s%s",
                     optopt < 256 ? (const char[]){'-', (char)optopt, '\0'} : "--",
                     optopt < 256 ? "" : option->name);
    }
    return take(p, code, optarg);
}

static leati_exit take_options(parser *p, int argc, char **argv)
{
    opterr = 0;
    optind = 0; // makes getopt start anew
    int code;
    while ((code = getopt_long(argc, argv, p->letters, p->table, NULL)) != -1) {
        leati_exit status = take_option(p, code, argv);
        if (status != LEATI_EXIT_OK)
            return status;
    }
    return LEATI_EXIT_OK;
}

static leati_exit check_operands(const parser *p)
{
    const leati_options *o = p->options;
    const leati_verb *verb = p->verb;
    if (o->operand_count < verb->least)
        return wrong(verb, "%s", verb->missing);
    if (o->operand_count <= verb->most)
        return LEATI_EXIT_OK;
    const char *extra = o->operands[verb->most];
    if (verb->rest)
        return wrong(verb, "what is \"%s\"? %s stand behind \"--\"", extra, verb->rest);
    return wrong(verb, "what is \"%s\"? %s", extra,
                 verb->most ? "that is one too many" : "it takes no argument");
}

leati_exit leati_options_parse(leati_options *options, const leati_verb *verb, int argc,
                               char **argv)
{
    *options = (leati_options){
        .format = LEAT_PLAN_TEXT,
        .port = -1,
        .rpc_port = -1,
        .data_port = -1,
        .task_managers = -1,
        .index = -1,
    };
    parser p;
    parser_init(&p, options, verb);
    int own = 1;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    char *separator = argv[own];
    argv[own] = NULL; // getopt must not look behind it
    leati_exit status = take_options(&p, own, argv);
    argv[own] = separator;
    if (status != LEATI_EXIT_OK || options->help)
        return status;
    options->operands = argv + optind;
    options->operand_count = (size_t)(own - optind);
    if (own < argc) {
        if (!verb->rest)
            return wrong(verb, "what is \"--\"? nothing stands behind it");
        options->rest = argv + own + 1;
        options->rest_count = (size_t)(argc - own - 1);
    }
    return check_operands(&p);
}

leati_auth_files leati_options_auth(const leati_options *options)
{
    const char *variable = getenv("LEAT_SECRET_FILE");
    leati_auth_files files = {
        .secret = options->secret_file,
        .tls_cert = options->tls_cert,
        .tls_key = options->tls_key,
        .tls_ca = options->tls_ca,
    };
    if (!files.secret && !options->insecure && variable && *variable)
        files.secret = variable;
    return files;
}

void leati_options_fini(leati_options *options)
{
    leati_free(NULL, options->settings);
    leati_free(NULL, options->files);
    *options = (leati_options){0};
}
