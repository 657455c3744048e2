// SPDX-License-Identifier: Apache-2.0
// `leat cluster start|stop|status`: a cluster of this machine.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cluster_impl.h"
#include "tools/remote.h"
#include "tools/settings.h"
#include "tools/style.h"
#include "tools/table.h"

enum { MANAGER_PATIENCE_MS = 15000, WORKER_PATIENCE_MS = 3000 };

// --- what start and stop share ---

static int make_folders(const char *path)
{
    char *copy = strdup(path);
    int error = copy ? 0 : ENOMEM;
    char *slash = copy ? strchr(copy + 1, '/') : NULL;
    while (slash && !error) {
        *slash = '\0';
        error = mkdir(copy, 0700) && errno != EEXIST ? errno : 0;
        *slash = '/';
        slash = strchr(slash + 1, '/');
    }
    if (!error && mkdir(path, 0700) && errno != EEXIST)
        error = errno;
    free(copy);
    return error;
}

leati_exit leati_cluster_lock(const leati_local *local, int *lock)
{
    int error = make_folders(local->folder);
    int fd = error ? -1 : open(local->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!error && fd < 0)
        error = errno;
    // Whoever has it is done soon: nobody holds it for longer than a start may take.
    while (!error && flock(fd, LOCK_EX))
        if (errno != EINTR)
            error = errno;
    if (!error) {
        *lock = fd;
        return LEATI_EXIT_OK;
    }
    leati_complain(NULL, "%s: %s", local->folder, strerror(error));
    if (fd >= 0)
        close(fd);
    return LEATI_EXIT_FAILED;
}

static bool is_log(const char *name)
{
    return strstr(name, ".log") != NULL;
}

// Removes all but the logs.
static int clear_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? 0 : errno;
    int error = 0;
    const struct dirent *entry;
    while (!error && (entry = readdir(folder))) {
        char *below = NULL;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || is_log(entry->d_name))
            continue;
        error =
            asprintf(&below, "%s/%s", path, entry->d_name) < 0 ? ENOMEM : leati_remove_tree(below);
        if (error != ENOMEM)
            free(below);
    }
    closedir(folder);
    return error;
}

leati_exit leati_cluster_clean(const leati_local *local, size_t *ended)
{
    *ended = 0;
    for (size_t i = 0; i < local->worker_count; i++) {
        if (!leati_process_lives(local->workers[i]))
            continue;
        if (!leati_process_end(local->workers[i], WORKER_PATIENCE_MS)) {
            leati_complain(NULL, "process %" PRId64 " cannot be ended: %s", local->workers[i].pid,
                           strerror(errno));
            return LEATI_EXIT_FAILED;
        }
        ++*ended;
    }
    int error = clear_folder(local->folder);
    if (!error)
        return LEATI_EXIT_OK;
    leati_complain(NULL, "%s cannot be cleared: %s", local->folder, strerror(error));
    return LEATI_EXIT_FAILED;
}

leati_json *leati_cluster_overview(const leati_client_module *c, const leati_local *local,
                                   const leati_options *options)
{
    char why[200];
    leati_client *client = NULL;
    leati_client_answer answer;
    leati_json *overview = NULL;
    const leati_auth_files auth = leati_local_auth(local, options);
    if (c->open(local->rest, &client, why, sizeof why))
        return NULL;
    if (c->secure(client, &auth) == LEAT_OK &&
        c->call(client, "GET", "/overview", 0, &answer) == LEAT_OK)
        overview = c->parse(answer.body, answer.size);
    c->close(&client);
    return overview;
}

// --- stop ---

static leati_exit stop_running(const leati_local *local)
{
    size_t ended = 0;
    bool lived = !local->damaged && leati_process_lives(local->manager);
    if (lived && !leati_process_end(local->manager, MANAGER_PATIENCE_MS)) {
        leati_complain(NULL, "the job manager (process %" PRId64 ") cannot be ended: %s",
                       local->manager.pid, strerror(errno));
        return LEATI_EXIT_FAILED;
    }
    return leati_cluster_clean(local, &ended);
}

static leati_exit stop(leati_local *local, const leati_options *options)
{
    char text[200];
    leati_exit status = local->known ? stop_running(local) : LEATI_EXIT_OK;
    if (status != LEATI_EXIT_OK)
        return status;
    if (options->json)
        snprintf(text, sizeof text, "{\"cluster\": \"%s\", \"was_running\": %s}\n", local->name,
                 local->known ? "true" : "false");
    else
        snprintf(text, sizeof text, "cluster \"%s\" %s\n", local->name,
                 local->known ? "is stopped" : "was not running");
    return (leati_exit)leati_print_and_check(text);
}

// --- status ---

static void put_jobs(leati_strbuf *to, const leati_client_module *c, const leati_json *jobs)
{
    static const char *const states[] = {"created", "running", "finished", "failed", "canceled"};
    leati_strbuf_puts(to, "jobs           ");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        leati_strbuf_printf(to, "%s%" PRId64 " %s", i ? ", " : "",
                            c->integer(c->member(jobs, states[i])), states[i]);
    leati_strbuf_putc(to, '\n');
}

static void put_members(leati_strbuf *to, const leati_client_module *c, const leati_json *members)
{
    static const char *const titles[] = {"task manager", ">slots", ">free", ">memory",
                                         "data address", "log",    NULL};
    leati_table table;
    leati_table_init(&table, titles);
    for (size_t i = 0; i < c->count(members); i++) {
        const leati_json *m = c->item(members, i);
        leati_table_add(&table, "%s", c->text(c->member(m, "name")));
        leati_table_add(&table, "%" PRId64, c->integer(c->member(m, "slots_total")));
        leati_table_add(&table, "%" PRId64, c->integer(c->member(m, "slots_free")));
        leati_table_add(&table, "%.1f MB",
                        c->number(c->member(c->member(m, "memory"), "resident")) / 1e6);
        leati_table_add(&table, "%s", c->text(c->member(m, "data_address")));
        leati_table_add(&table, "%s", c->text(c->member(m, "log_path")));
    }
    if (table.count) {
        leati_strbuf_putc(to, '\n');
        leati_table_print(&table, to, leati_style_wanted(STDOUT_FILENO));
    }
    leati_strbuf_fini(&table.cells);
}

static leati_exit put_status(leati_remote *remote, const char *name, leati_strbuf *to)
{
    const leati_client_module *c = remote->api;
    leati_json *overview = NULL, *members = NULL;
    char uptime[LEATI_TIME_TEXT_SIZE];
    leati_exit status = leati_remote_get(remote, "/overview", NULL, &overview);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_get(remote, "/taskmanagers", NULL, &members);
    if (status == LEATI_EXIT_OK) {
        leati_duration_text(c->integer(c->member(overview, "uptime")), uptime);
        if (name)
            leati_strbuf_printf(to, "cluster        %s\n", name);
        leati_strbuf_printf(
            to,
            "address        %s\nfor workers    %s\nup             %s\ntask managers  %" PRId64
            "\nslots          %" PRId64 ", %" PRId64 " free\n",
            remote->address, c->text(c->member(overview, "rpc_address")), uptime,
            c->integer(c->member(overview, "taskmanagers")),
            c->integer(c->member(overview, "slots_total")),
            c->integer(c->member(overview, "slots_free")));
        put_jobs(to, c, c->member(overview, "jobs"));
        put_members(to, c, c->member(members, "taskmanagers"));
    }
    c->forget(members);
    c->forget(overview);
    return status;
}

static leati_exit print_status(leati_remote *remote, const char *name, const leati_options *options)
{
    leati_client_answer answer;
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    leati_exit status = options->json ? leati_remote_get(remote, "/overview", &answer, NULL)
                                      : put_status(remote, name, &text);
    if (status == LEATI_EXIT_OK)
        status = options->json ? leati_remote_print(&answer)
                               : (leati_exit)leati_print_and_check(leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return status;
}

static leati_exit refuse_status(const leati_local *local, const char *more)
{
    leati_local_warn();
    leati_complain(NULL, "cluster \"%s\" is not running%s", local->name, more);
    return LEATI_EXIT_REFUSED;
}

static leati_exit show_status(const leati_local *local, const leati_options *options)
{
    leati_remote remote = {0};
    leati_options whose = *options;
    if (!options->manager) {
        if (!local->known)
            return refuse_status(local, "");
        if (local->damaged || !leati_process_lives(local->manager))
            return refuse_status(local, ": its job manager is gone; `leat cluster start` cleans up "
                                        "and starts it again");
        whose.cluster = local->name; // and not what LEAT_JOBMANAGER says
    }
    leati_exit status = leati_remote_open(&remote, &whose);
    if (status == LEATI_EXIT_OK)
        status = print_status(&remote, options->manager ? NULL : local->name, options);
    leati_remote_close(&remote);
    return status;
}

// --- the verb ---

// Reads the state anew once nobody else can change it.
static leati_exit change(leati_local *local, const leati_client_module *client,
                         const leati_options *options, const leati_settings *settings)
{
    int lock = -1;
    leati_exit status = leati_cluster_lock(local, &lock);
    if (status != LEATI_EXIT_OK)
        return status;
    leati_local_fini(local);
    status = leati_local_read(local, options, client);
    const leati_config_layers *layers = &settings->layers;
    if (status == LEATI_EXIT_OK && !strcmp(options->operands[0], "stop"))
        status = stop(local, options);
    else if (status == LEATI_EXIT_OK)
        status = leati_cluster_start(local, client, options,
                                     leati_config_get(&layers->config, LEATI_CONFIG_SLOTS),
                                     layers->where[LEATI_CONFIG_SLOTS] != NULL);
    close(lock);
    return status;
}

static leati_exit act(const leati_options *options, const leati_settings *settings)
{
    const char *action = options->operands[0];
    bool changes = !strcmp(action, "start") || !strcmp(action, "stop");
    if (!changes && strcmp(action, "status") != 0) {
        leati_complain("cluster", "\"%s\" is none of start, stop, status", action);
        return LEATI_EXIT_USAGE;
    }
    if (changes && options->manager) {
        leati_complain("cluster", "-m is for `leat cluster status`; clusters of this machine have "
                                  "names (--cluster NAME)");
        return LEATI_EXIT_USAGE;
    }
    const leati_client_module *client = leati_module_client();
    if (!client)
        return LEATI_EXIT_FAILED;
    leati_local local;
    if (changes)
        leati_local_warn();
    leati_exit status = leati_local_read(&local, options, client);
    if (status == LEATI_EXIT_OK)
        status = changes ? change(&local, client, options, settings) : show_status(&local, options);
    leati_local_fini(&local);
    return status;
}

static leati_exit cluster_with(const leati_options *options)
{
    leati_settings settings;
    leati_exit status = leati_settings_read(&settings, options);
    if (status == LEATI_EXIT_OK)
        status = act(options, &settings);
    leati_settings_fini(&settings);
    return status;
}

static int cluster(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)cluster_with(&options);
    leati_options_fini(&options);
    return status;
}

static const char *const paragraphs[] = {
    "start runs a job manager and task managers on this machine in the background, waits until "
    "they take jobs, and prints the address. The other verbs find it without being told. When it "
    "is running already, that is said and nothing is done; what one that has died has left behind "
    "is removed first.",
    "stop cancels its jobs, ends all its processes and removes its files, except for the logs. "
    "status shows its address, its task managers and how many jobs it has.",
    "Several clusters have different names. Files and logs of each are in "
    "$XDG_STATE_HOME/leat/NAME, which is ~/.local/state/leat/NAME by default. A task manager that "
    "dies is started again.",
    NULL,
};

static const leati_entry examples[] = {
    {"leat cluster start", "three task managers with a slot each"},
    {"leat cluster start -w 2 -s 4 --cluster big", "one with a name and eight slots"},
    {"leat cluster status", "how it is doing"},
    {"leat cluster stop --cluster big", "end that one"},
    {NULL, NULL},
};

static const leati_entry exits[] = {
    {"0", "it runs, is stopped, or its status is written"},
    {"1", "it could not be started or stopped, or its job manager does not answer"},
    {"2", "the command line or the configuration is wrong"},
    {"3", "one of that name and another shape is running; for status: none is"},
    {"130", "start was interrupted, and has ended what it had started"},
    {NULL, NULL},
};

const leati_verb leati_verb_cluster = {
    .name = "cluster",
    .summary = "start, stop or show a cluster of this machine",
    .arguments = "start|stop|status",
    .paragraphs = paragraphs,
    .examples = examples,
    .exits = exits,
    .operand = LEATI_OPERAND_ACTION,
    .least = 1,
    .most = 1,
    .missing = "what is to be done? `leat cluster start`, `stop` or `status`",
    .run = cluster,
};
