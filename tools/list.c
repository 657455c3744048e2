// SPDX-License-Identifier: Apache-2.0
// `leat list`.
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tools/remote.h"
#include "tools/style.h"
#include "tools/table.h"
#include "tools/text.h"

enum { NAME_COLUMNS = 40 };

static bool is_final(const char *state)
{
    return !strcmp(state, "FINISHED") || !strcmp(state, "FAILED") || !strcmp(state, "CANCELED");
}

static bool is_wanted(const leati_options *options, const char *state)
{
    if (options->all)
        return true;
    return !is_final(state) && !(options->running && !strcmp(state, "CREATED"));
}

static void add_job(leati_table *table, const leati_client_module *c, const leati_json *job)
{
    char started[LEATI_TIME_TEXT_SIZE], took[LEATI_TIME_TEXT_SIZE], records[LEATI_SCALED_SIZE];
    char name[NAME_COLUMNS * 4 + 1];
    const leati_json *tasks = c->member(job, "tasks");
    leati_time_text(c->integer(c->member(job, "start_time")), started);
    leati_duration_text(c->integer(c->member(job, "duration")), took);
    leati_scaled(c->number(c->member(job, "records_in")), records);
    leati_table_add(table, "%.12s", c->text(c->member(job, "id")));
    leati_table_add(table, "%s", started);
    leati_table_add(table, "%s", took);
    leati_table_add(table, "%s", c->text(c->member(job, "state")));
    leati_table_add(table, "%" PRId64 "/%" PRId64, c->integer(c->member(tasks, "running")),
                    c->integer(c->member(tasks, "total")));
    leati_table_add(table, "%s", records);
    leati_shorten(c->text(c->member(job, "name")), NAME_COLUMNS, name, sizeof name);
    leati_table_add(table, "%s", name);
}

static void show(leati_strbuf *to, const leati_remote *remote, const leati_options *options,
                 const leati_json *json)
{
    static const char *const titles[] = {"id",     "started",  ">duration", "state",
                                         ">tasks", ">records", "name",      NULL};
    const leati_client_module *c = remote->api;
    const leati_json *jobs = c->member(json, "jobs");
    leati_table table;
    leati_table_init(&table, titles);
    for (size_t i = 0; i < c->count(jobs); i++) {
        const leati_json *job = c->item(jobs, i);
        if (is_wanted(options, c->text(c->member(job, "state"))))
            add_job(&table, c, job);
    }
    if (table.count)
        leati_table_print(&table, to, leati_style_wanted(STDOUT_FILENO));
    leati_strbuf_fini(&table.cells);
}

static int put_text(const char *text, size_t size, void *user)
{
    leati_strbuf *to = user;
    leati_strbuf_append(to, text, size);
    return to->failed ? -1 : 0;
}

static void show_json(leati_strbuf *to, const leati_remote *remote, const leati_options *options,
                      const leati_json *json)
{
    const leati_client_module *c = remote->api;
    const leati_json *jobs = c->member(json, "jobs");
    bool begun = false;
    leati_strbuf_puts(to, "{\"jobs\": [");
    for (size_t i = 0; i < c->count(jobs) && !to->failed; i++) {
        const leati_json *job = c->item(jobs, i);
        if (!is_wanted(options, c->text(c->member(job, "state"))))
            continue;
        leati_strbuf_puts(to, begun ? ",\n " : "\n ");
        to->failed = !c->print(job, put_text, to) || to->failed;
        begun = true;
    }
    leati_strbuf_puts(to, "]}\n");
}

static int list(const leati_verb *verb, int argc, char **argv)
{
    static const leati_remote_verb how = {.below = "/jobs", .show = show, .show_json = show_json};
    return leati_remote_run(&how, verb, argc, argv);
}

const leati_verb leati_verb_list = {
    .name = "list",
    .summary = "list the jobs of a cluster",
    .paragraphs =
        (const char *const[]){
            "Lists the jobs of a cluster that have not ended, the newest first: the beginning of "
            "the id, when it was submitted, how long ago that was, its state, how many of its "
            "tasks run, how many records its sources have read, its name. --json prints the "
            "same jobs with all that is known of them.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat list", "the jobs that run or wait for slots"},
            {"leat list -a", "those that have ended as well"},
            {NULL, NULL},
        },
    .exits =
        (const leati_entry[]){
            {"0", "the list is written, and may be empty"},
            {"1", "no job manager answers"},
            {NULL, NULL},
        },
    .run = list,
};
