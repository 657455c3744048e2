// SPDX-License-Identifier: Apache-2.0
// `leat metrics`.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/remote.h"
#include "tools/style.h"
#include "tools/table.h"

// Names are asked for in groups, as a path cannot be arbitrarily long.
enum { QUERY_MAX = 2000, NAME_SIZE = 400 };

typedef struct reading {
    leati_remote *remote;
    const leati_options *options;
    leati_strbuf json;
    bool begun;
    leati_table table;
} reading;

// Whatever is no plain letter is written as "%XX".
static void put_escaped(leati_strbuf *to, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    for (; *text; text++)
        if (strchr(plain, *text))
            leati_strbuf_putc(to, *text);
        else
            leati_strbuf_printf(to, "%%%02X", (unsigned)(unsigned char)*text);
}

static void put_value(leati_strbuf *to, const leati_client_module *c, const leati_json *value)
{
    if (c->kind(value) == 's')
        leati_strbuf_puts(to, c->text(value));
    else if (c->kind(value) == 'i')
        leati_strbuf_printf(to, "%" PRId64, c->integer(value));
    else if (c->kind(value) == 'f')
        leati_strbuf_printf(to, "%.6g", c->number(value));
}

static void take(reading *r, const leati_json *metric)
{
    const leati_client_module *c = r->remote->api;
    const char *name = c->text(c->member(metric, "id"));
    leati_strbuf value;
    leati_strbuf_init(&value, NULL);
    put_value(&value, c, c->member(metric, "value"));
    if (r->options->json) {
        leati_strbuf_puts(&r->json, r->begun ? ",\n {\"id\": " : "\n {\"id\": ");
        leati_strbuf_json_string(&r->json, name, strlen(name));
        leati_strbuf_puts(&r->json, ", \"value\": ");
        leati_strbuf_json_string(&r->json, leati_strbuf_text(&value), value.size);
        leati_strbuf_putc(&r->json, '}');
        r->begun = true;
    } else {
        leati_table_add(&r->table, "%s", name);
        leati_table_add(&r->table, "%s", leati_strbuf_text(&value));
    }
    leati_strbuf_fini(&value);
}

static bool has_metric(const reading *r, const leati_json *metrics, const char *name)
{
    const leati_client_module *c = r->remote->api;
    for (size_t i = 0; i < c->count(metrics); i++)
        if (!strcmp(c->text(c->member(c->item(metrics, i), "id")), name))
            return true;
    return false;
}

// The next one of "a,b,c"; false at the end.
static bool next_name(const char **at, char *name, size_t room)
{
    if (!**at)
        return false;
    size_t size = strcspn(*at, ",");
    snprintf(name, room, "%.*s", (int)size, *at);
    *at += size + ((*at)[size] == ',');
    return true;
}

// Whether all that was asked for is there.
static leati_exit check_names(const reading *r, const leati_json *metrics)
{
    leati_exit status = LEATI_EXIT_OK;
    char name[NAME_SIZE];
    for (const char *at = r->options->get; next_name(&at, name, sizeof name);) {
        if (has_metric(r, metrics, name))
            continue;
        leati_complain(NULL, "--get: job %s has no metric \"%s\"; `leat metrics %s` shows all",
                       r->options->operands[0], name, r->options->operands[0]);
        status = LEATI_EXIT_FAILED;
    }
    return status;
}

// One group: "a,b,c", escaped.
static leati_exit read_values(reading *r, const char *names)
{
    leati_strbuf below;
    char base[LEATI_REMOTE_PATH_SIZE];
    leati_json *json = NULL;
    leati_exit status = leati_remote_job_path(r->options->operands[0], "/metrics?get=", base);
    leati_strbuf_init(&below, NULL);
    leati_strbuf_puts(&below, base);
    leati_strbuf_puts(&below, names);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_get(r->remote, leati_strbuf_text(&below), NULL, &json);
    const leati_client_module *c = r->remote->api;
    for (size_t i = 0; i < c->count(json); i++)
        take(r, c->item(json, i));
    if (status == LEATI_EXIT_OK && r->options->get)
        status = check_names(r, json);
    c->forget(json);
    leati_strbuf_fini(&below);
    return status;
}

static leati_exit read_group(reading *r, leati_strbuf *names)
{
    leati_exit status = names->size ? read_values(r, leati_strbuf_text(names)) : LEATI_EXIT_OK;
    leati_strbuf_fini(names);
    leati_strbuf_init(names, NULL);
    return status;
}

static leati_exit read_all(reading *r)
{
    const leati_client_module *c = r->remote->api;
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_json *all = NULL;
    leati_strbuf names;
    leati_strbuf_init(&names, NULL);
    leati_exit status = leati_remote_job_path(r->options->operands[0], "/metrics", path);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_get(r->remote, path, NULL, &all);
    for (size_t i = 0; status == LEATI_EXIT_OK && i < c->count(all); i++) {
        if (names.size > QUERY_MAX)
            status = read_group(r, &names);
        leati_strbuf_puts(&names, names.size ? "," : "");
        put_escaped(&names, c->text(c->member(c->item(all, i), "id")));
    }
    if (status == LEATI_EXIT_OK)
        status = read_group(r, &names);
    leati_strbuf_fini(&names);
    c->forget(all);
    return status;
}

static leati_exit read_named(reading *r)
{
    leati_strbuf names;
    leati_strbuf_init(&names, NULL);
    char name[NAME_SIZE];
    for (const char *at = r->options->get; next_name(&at, name, sizeof name);) {
        leati_strbuf_puts(&names, names.size ? "," : "");
        put_escaped(&names, name);
    }
    return read_group(r, &names);
}

static leati_exit print(reading *r)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    if (r->options->json)
        leati_strbuf_printf(&text, "[%s]\n", leati_strbuf_text(&r->json));
    else if (r->table.count)
        leati_table_print(&r->table, &text, leati_style_wanted(STDOUT_FILENO));
    leati_exit status = (leati_exit)leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static leati_exit metrics_with(const leati_options *options)
{
    static const char *const titles[] = {"metric", ">value", NULL};
    leati_remote remote;
    reading r = {.remote = &remote, .options = options};
    leati_strbuf_init(&r.json, NULL);
    leati_table_init(&r.table, titles);
    r.table.widest = 250; // names are for --get
    leati_exit status = leati_remote_open(&remote, options);
    if (status == LEATI_EXIT_OK)
        status = options->get ? read_named(&r) : read_all(&r);
    if (status == LEATI_EXIT_OK)
        status = print(&r);
    leati_remote_close(&remote);
    leati_strbuf_fini(&r.json);
    leati_strbuf_fini(&r.table.cells);
    return status;
}

static int metrics(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)metrics_with(&options);
    leati_options_fini(&options);
    return status;
}

const leati_verb leati_verb_metrics = {
    .name = "metrics",
    .summary = "show the metrics of a job of a cluster",
    .arguments = "ID",
    .paragraphs =
        (const char *const[]){
            "Shows the metrics of a job by their names: those of the job as a whole, of its tasks "
            "and network, and those that user functions have defined. Whoever collects metrics "
            "continually asks the job manager for /metrics, which is in the format of Prometheus.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat metrics 3f0c", "all of them"},
            {"leat metrics --get uptime,numRestarts 3f0c", "two of them"},
            {NULL, NULL},
        },
    .exits =
        (const leati_entry[]){
            {"0", "they are written"},
            {"1", "there is no such job or metric, or no job manager answers"},
            {"2", "the command line is wrong"},
            {NULL, NULL},
        },
    .operand = LEATI_OPERAND_ID,
    .least = 1,
    .most = 1,
    .missing = "the id of the job is missing; `leat list` shows them",
    .run = metrics,
};
