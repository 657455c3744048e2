// SPDX-License-Identifier: Apache-2.0
// `leat status`.
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tools/remote.h"
#include "tools/style.h"
#include "tools/table.h"
#include "tools/text.h"

static void put_line(leati_strbuf *to, const char *name, const char *text)
{
    char clean[4096];
    if (!*text)
        return;
    leati_shorten(text, 2000, clean, sizeof clean);
    leati_strbuf_printf(to, "%-9s %s\n", name, clean);
}

static void put_head(leati_strbuf *to, const leati_client_module *c, const leati_json *job)
{
    char time[LEATI_TIME_TEXT_SIZE], took[LEATI_TIME_TEXT_SIZE];
    leati_time_text(c->integer(c->member(job, "start_time")), time);
    leati_duration_text(c->integer(c->member(job, "duration")), took);
    put_line(to, "job", c->text(c->member(job, "id")));
    put_line(to, "name", c->text(c->member(job, "name")));
    put_line(to, "state", c->text(c->member(job, "state")));
    put_line(to, "started", time);
    put_line(to, c->integer(c->member(job, "end_time")) ? "took" : "since", took);
    put_line(to, "waits for", c->text(c->member(job, "waiting_for")));
    put_line(to, "failure", c->text(c->member(job, "failure")));
}

static void add_scaled(leati_table *table, double value)
{
    char text[LEATI_SCALED_SIZE];
    leati_scaled(value, text);
    leati_table_add(table, "%s", text);
}

static void add_task(leati_table *table, const leati_client_module *c, const leati_json *vertex,
                     const leati_json *task)
{
    leati_table_add(table, "%s", c->text(c->member(vertex, "name")));
    leati_table_add(table, "%" PRId64 "/%" PRId64, c->integer(c->member(task, "subtask")) + 1,
                    c->integer(c->member(vertex, "parallelism")));
    leati_table_add(table, "%s", c->text(c->member(task, "state")));
    add_scaled(table, c->number(c->member(task, "records_in")));
    add_scaled(table, c->number(c->member(task, "records_out")));
    double held = c->number(c->member(task, "soft")) + c->number(c->member(task, "hard"));
    leati_table_add(table, "%.0f", c->number(c->member(task, "busy")) / 10);
    leati_table_add(table, "%.0f", held / 10);
    leati_table_add(table, "%.0f", c->number(c->member(task, "idle")) / 10);
    leati_table_add(table, "%s", c->text(c->member(task, "worker")));
}

static void put_tasks(leati_strbuf *to, const leati_client_module *c, const leati_json *vertices)
{
    static const char *const titles[] = {"task",         ">subtask", "state",   ">records in",
                                         ">records out", ">busy %",  ">held %", ">idle %",
                                         "worker",       NULL};
    leati_table table;
    leati_table_init(&table, titles);
    for (size_t v = 0; v < c->count(vertices); v++) {
        const leati_json *vertex = c->item(vertices, v), *tasks = c->member(vertex, "tasks");
        for (size_t t = 0; t < c->count(tasks); t++)
            add_task(&table, c, vertex, c->item(tasks, t));
    }
    if (table.count) {
        leati_strbuf_putc(to, '\n');
        leati_table_print(&table, to, leati_style_wanted(STDOUT_FILENO));
    }
    leati_strbuf_fini(&table.cells);
}

static void put_failures(leati_strbuf *to, const leati_client_module *c, const leati_json *failures)
{
    if (c->count(failures) > 1)
        leati_strbuf_puts(to, "\nfailures, the root cause first:\n");
    for (size_t i = 0; c->count(failures) > 1 && i < c->count(failures); i++) {
        const leati_json *failure = c->item(failures, i);
        char time[LEATI_TIME_TEXT_SIZE];
        leati_time_text(c->integer(c->member(failure, "time")), time);
        put_line(to, time, c->text(c->member(failure, "text")));
    }
}

static void show(leati_strbuf *to, const leati_remote *remote, const leati_options *options,
                 const leati_json *job)
{
    const leati_client_module *c = remote->api;
    put_head(to, c, job);
    put_tasks(to, c, c->member(job, "vertices"));
    put_failures(to, c, c->member(job, "failures"));
}

static int status(const leati_verb *verb, int argc, char **argv)
{
    static const leati_remote_verb how = {.below = "", .of_job = true, .show = show};
    return leati_remote_run(&how, verb, argc, argv);
}

const leati_verb leati_verb_status = {
    .name = "status",
    .summary = "say how a job of a cluster is doing",
    .arguments = "ID",
    .paragraphs =
        (const char *const[]){
            "Shows a job: its state, what it waits for, why it failed, and its tasks with what "
            "they have done and on which task manager they are. ID is what `leat submit` and `leat "
            "list` print; its first four digits suffice when no other job has the same.",
            "busy, held and idle are shares of the last second or so: at work, held back by those "
            "who read what the task emits, and without input.",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat status 3f0c", "how the job whose id begins so is doing"},
            {"leat status --json 3f0c", "the same for programs"},
            {NULL, NULL},
        },
    .exits =
        (const leati_entry[]){
            {"0", "it is written, whatever the job's state"},
            {"1", "there is no such job, or no job manager answers"},
            {"2", "the command line is wrong"},
            {NULL, NULL},
        },
    .operand = LEATI_OPERAND_ID,
    .least = 1,
    .most = 1,
    .missing = "the id of the job is missing; `leat list` shows them",
    .run = status,
};
