// SPDX-License-Identifier: Apache-2.0
// `leat why`: what holds a job up.
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/remote.h"
#include "tools/style.h"
#include "tools/table.h"
#include "tools/text.h"

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void put_clean(leati_strbuf *to, const char *text)
{
    char clean[4096];
    leati_shorten(text, 1000, clean, sizeof clean);
    leati_strbuf_puts(to, clean);
}

static void put_bottleneck(leati_strbuf *to, const leati_client_module *c, const leati_json *json)
{
    const leati_json *found = c->member(json, "bottleneck");
    leati_strbuf_puts(to, "job ");
    put_clean(to, c->text(c->member(json, "job")));
    leati_strbuf_puts(to, " is ");
    put_clean(to, c->text(c->member(json, "state")));
    if (*c->text(c->member(json, "text"))) {
        leati_strbuf_puts(to, ": ");
        put_clean(to, c->text(c->member(json, "text")));
    }
    leati_strbuf_putc(to, '\n');
    if (c->kind(found) != 'o') {
        leati_strbuf_puts(to, "nothing holds it up\n");
        return;
    }
    leati_strbuf_puts(to, "bottleneck: ");
    put_clean(to, c->text(c->member(found, "text")));
    int64_t since = c->integer(c->member(found, "since"));
    if (since > 0) {
        char time[LEATI_TIME_TEXT_SIZE], took[LEATI_TIME_TEXT_SIZE];
        leati_time_text(since, time);
        leati_duration_text(now_ms() - since, took);
        leati_strbuf_printf(to, "\nsince:      %s, %s ago", time, took);
    }
    leati_strbuf_putc(to, '\n');
}

static void add_task(leati_table *table, const leati_client_module *c, const leati_json *task)
{
    char took[LEATI_TIME_TEXT_SIZE] = "";
    int64_t since = c->integer(c->member(task, "since"));
    if (since > 0)
        leati_duration_text(now_ms() - since, took);
    leati_table_add(table, "%s", c->text(c->member(task, "name")));
    leati_table_add(table, "%" PRId64, c->integer(c->member(task, "subtask")) + 1);
    leati_table_add(table, "%.0f", c->number(c->member(task, "busy")) / 10);
    leati_table_add(table, "%.0f", c->number(c->member(task, "backpressured")) / 10);
    leati_table_add(table, "%.0f", c->number(c->member(task, "idle")) / 10);
    leati_table_add(table, "%s", took);
    const char *text = c->text(c->member(task, "text"));
    leati_table_add(table, "%s", *text ? text : c->text(c->member(task, "wait")));
}

static void show(leati_strbuf *to, const leati_remote *remote, const leati_options *options,
                 const leati_json *json)
{
    static const char *const titles[] = {"task",    ">subtask", ">busy %",      ">held %",
                                         ">idle %", ">for",     "what it does", NULL};
    const leati_client_module *c = remote->api;
    const leati_json *tasks = c->member(json, "tasks");
    put_bottleneck(to, c, json);
    leati_table table;
    leati_table_init(&table, titles);
    for (size_t i = 0; i < c->count(tasks); i++)
        add_task(&table, c, c->item(tasks, i));
    if (table.count) {
        leati_strbuf_putc(to, '\n');
        leati_table_print(&table, to, leati_style_wanted(STDOUT_FILENO));
    }
    leati_strbuf_fini(&table.cells);
}

static int why(const leati_verb *verb, int argc, char **argv)
{
    static const leati_remote_verb how = {.below = "/why", .of_job = true, .show = show};
    return leati_remote_run(&how, verb, argc, argv);
}

const leati_verb leati_verb_why = {
    .name = "why",
    .summary = "say what holds a job of a cluster up",
    .arguments = "ID",
    .paragraphs =
        (const char *const[]){
            "Names the bottleneck of a job, if there is one: the first busy task below one that is "
            "held back, with what it does and since when. Below that, what each task is doing or "
            "waiting for at this moment: input, memory for its output, the credit of a channel, "
            "the return of a user function.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat why 3f0c", "why the job whose id begins so is slow"},
            {"leat why --json 3f0c", "the same, for programs"},
            {NULL, NULL},
        },
    .exits =
        (const leati_entry[]){
            {"0", "it is written, whether something holds the job up or not"},
            {"1", "there is no such job, or no job manager answers"},
            {"2", "the command line is wrong"},
            {NULL, NULL},
        },
    .operand = LEATI_OPERAND_ID,
    .least = 1,
    .most = 1,
    .missing = "the id of the job is missing; `leat list` shows them",
    .run = why,
};
