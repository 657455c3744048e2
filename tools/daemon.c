// SPDX-License-Identifier: Apache-2.0
// `leat jobmanager` and `leat taskmanager`: the processes of a cluster. What they do is in the
// module libleat-cluster; here are the settings, the log and the folder.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/local.h"
#include "tools/log.h"
#include "tools/module.h"
#include "tools/options.h"
#include "tools/settings.h"
#include "tools/style.h"

enum { DEFAULT_REST_PORT = 8081, DEFAULT_RPC_PORT = 8082, WHY_SIZE = 1200 };

typedef struct service {
    const leati_options *options;
    const leati_cluster_module *module;
    leati_settings settings;
    char *folder;    // where it keeps its files
    char *temporary; // the folder of that one that was made for it, or NULL
    leat_logger logger;
} service;

// --- the log ---

// leat_logger.write: one write a line, so that lines of several threads and processes that share a
// file stay whole. A log that cannot be written is no reason to fail.
static void log_line(void *user, leat_log_level level, const char *text)
{
    char line[4096];
    size_t size = leati_log_format_dated(level, text, line, sizeof line);
    (void)!write(STDERR_FILENO, line, size);
}

// What libraries and job functions print by themselves goes to the log as well.
static bool redirect_to(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0) {
        leati_complain(NULL, "--log-file %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (fd > STDERR_FILENO)
        close(fd);
    return true;
}

// --- life ---

// One below a fresh one, as local task managers have theirs beside the job manager's.
static leati_exit make_folder(service *d, const char *kind)
{
    const char *place = getenv("TMPDIR");
    char *fresh = NULL;
    if (asprintf(&fresh, "%s/leat-XXXXXX", place && *place ? place : "/tmp") < 0) {
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_FAILED;
    }
    if (!mkdtemp(fresh)) {
        leati_complain(NULL, "cannot make a folder like %s: %s; name one with --folder", fresh,
                       strerror(errno));
        free(fresh);
        return LEATI_EXIT_FAILED;
    }
    d->temporary = fresh;
    if (asprintf(&d->folder, "%s/%s", fresh, kind) >= 0)
        return LEATI_EXIT_OK;
    d->folder = NULL;
    leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
    return LEATI_EXIT_FAILED;
}

// The module takes them when it is ready to; until then they wait.
static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    // The end of the session that started it is not the end of a daemon.
    signal(SIGHUP, SIG_IGN);
}

// As many as the system lets it: each connection and each spilled buffer is one.
static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static leati_exit service_open(service *d, const leati_options *options, const char *kind)
{
    *d = (service){.options = options};
    leati_exit status = leati_settings_read(&d->settings, options);
    if (status != LEATI_EXIT_OK)
        return status;
    block_signals();
    raise_file_limit();
    d->module = leati_module_cluster();
    if (!d->module)
        return LEATI_EXIT_FAILED;
    if (!options->folder && make_folder(d, kind) != LEATI_EXIT_OK)
        return LEATI_EXIT_FAILED;
    d->logger = (leat_logger){.write = log_line, .level = leati_log_level_wanted(LEAT_LOG_INFO)};
    if (options->log_file && !redirect_to(options->log_file))
        return LEATI_EXIT_FAILED;
    return LEATI_EXIT_OK;
}

static void service_close(service *d)
{
    if (d->temporary)
        (void)leati_remove_tree(d->temporary);
    free(d->temporary);
    free(d->folder);
    leati_settings_fini(&d->settings);
}

static leati_exit conclude(int result, const char *verb, const char *why)
{
    if (result == 0)
        return LEATI_EXIT_OK;
    leati_complain(verb, "%s", *why ? why : "it has failed");
    return LEATI_EXIT_FAILED;
}

// --- the job manager ---

enum { OTHER_ARGS = 12 }; // beside the settings

// What its workers are given beside what the module adds: the same settings, and the same ways to
// show that they may.
static char **worker_args(const leati_options *o)
{
    char **args = leati_calloc(NULL, 2 * o->setting_count + OTHER_ARGS + 1, sizeof *args);
    size_t used = 0;
    const leati_auth_files auth = leati_options_auth(o);
    const struct {
        const char *option, *value;
    } others[] = {
        {"--config", o->config},     {"--secret-file", auth.secret}, {"--tls-cert", auth.tls_cert},
        {"--tls-key", auth.tls_key}, {"--tls-ca", auth.tls_ca},
    };
    for (size_t i = 0; args && i < o->setting_count; i++) {
        args[used++] = strdup("-D");
        if (asprintf(&args[used], "%s=%s", o->settings[i].key, o->settings[i].value) < 0)
            args[used] = NULL;
        used++;
    }
    for (size_t i = 0; args && i < sizeof others / sizeof *others; i++) {
        if (!others[i].value)
            continue;
        args[used++] = strdup(others[i].option);
        args[used++] = strdup(others[i].value);
    }
    if (args && o->insecure)
        args[used++] = strdup("--insecure");
    return args;
}

static void free_args(char **args, const leati_options *o)
{
    for (size_t i = 0; args && i < 2 * o->setting_count + OTHER_ARGS; i++)
        free(args[i]);
    leati_free(NULL, args);
}

static leati_exit run_manager(service *d)
{
    const leati_options *o = d->options;
    char why[WHY_SIZE] = "", program[PATH_MAX] = "";
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    char **args = worker_args(o);
    if (size <= 0 || !args) {
        leati_complain(NULL, "%s",
                       size <= 0 ? "/proc/self/exe cannot be read" : leat_err_message(LEAT_ENOMEM));
        free_args(args, o);
        return LEATI_EXIT_FAILED;
    }
    const leati_config *config = &d->settings.layers.config;
    leati_manager_options options = {
        .bind = o->bind ? o->bind : "127.0.0.1",
        .port = o->port >= 0 ? (uint32_t)o->port : DEFAULT_REST_PORT,
        .rpc_port = o->rpc_port >= 0 ? (uint32_t)o->rpc_port : DEFAULT_RPC_PORT,
        .folder = o->folder ? o->folder : d->folder,
        .state_file = o->state_file,
        .local_workers = o->task_managers > 0 ? (uint32_t)o->task_managers : 0,
        .slots = (uint32_t)leati_config_get(config, LEATI_CONFIG_SLOTS),
        .program = program,
        .worker_args = (const char *const *)args,
        .config = *config,
        .logger = d->logger,
        .auth = leati_options_auth(o),
        .insecure = o->insecure,
    };
    int result = d->module->manager(&options, why, sizeof why);
    free_args(args, o);
    return conclude(result, "jobmanager", why);
}

static leati_exit manage(const leati_options *options)
{
    service d;
    leati_exit status = service_open(&d, options, "jobmanager");
    if (status == LEATI_EXIT_OK)
        status = run_manager(&d);
    service_close(&d);
    return status;
}

static int jobmanager(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)manage(&options);
    leati_options_fini(&options);
    return status;
}

// --- a task manager ---

static leati_exit run_worker(service *d)
{
    const leati_options *o = d->options;
    char why[WHY_SIZE] = "";
    const leati_config *config = &d->settings.layers.config;
    leati_worker_options options = {
        .manager = o->manager,
        .bind = o->bind ? o->bind : "127.0.0.1",
        .data_port = o->data_port >= 0 ? (uint32_t)o->data_port : 0,
        .folder = o->folder ? o->folder : d->folder,
        .log_path = o->log_file,
        .slots = (uint32_t)leati_config_get(config, LEATI_CONFIG_SLOTS),
        .index = o->index > 0 ? (uint32_t)o->index : 0,
        .config = *config,
        .logger = d->logger,
        .auth = leati_options_auth(o),
        .insecure = o->insecure,
    };
    return conclude(d->module->worker(&options, why, sizeof why), "taskmanager", why);
}

static leati_exit work(const leati_options *options)
{
    service d;
    if (!options->manager) {
        leati_complain("taskmanager", "the job manager is missing: -m HOST:PORT names where it "
                                      "listens for task managers (8082, unless it was told "
                                      "otherwise)");
        return LEATI_EXIT_USAGE;
    }
    leati_exit status = service_open(&d, options, "taskmanager");
    if (status == LEATI_EXIT_OK)
        status = run_worker(&d);
    service_close(&d);
    return status;
}

static int taskmanager(const leati_verb *verb, int argc, char **argv)
{
    leati_options options;
    int status = leati_options_parse(&options, verb, argc, argv);
    if (status == LEATI_EXIT_OK)
        status = options.help ? leati_help_print(verb) : (int)work(&options);
    leati_options_fini(&options);
    return status;
}

// --- descriptions ---

static const leati_entry exits[] = {
    {"0", "it has ended in order, after SIGTERM or SIGINT"},
    {"1", "it could not start or go on: a port in use, say"},
    {"2", "the command line or the configuration is wrong"},
    {NULL, NULL},
};

const leati_verb leati_verb_jobmanager = {
    .name = "jobmanager",
    .summary = "be the job manager of a cluster",
    .paragraphs =
        (const char *const[]){
            "Runs in the foreground: takes jobs from clients and has task managers run them, until "
            "SIGTERM or SIGINT. `leat cluster start` starts one with its task managers.",
            "Whoever may submit a job can have any code run. By default it listens on this machine "
            "only, and elsewhere only with a secret (--secret-file) or with certificates (TLS), "
            "which its task managers and clients need too; see docs/security.md.",
            "LEAT_LOG=error|warn|info|debug says what is logged (default: info).",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat jobmanager --bind 10.0.0.1 --secret-file /etc/leat/secret",
             "for clients and task managers of a network"},
            {"leat jobmanager -w 4 -s 2 --port 9000", "with four task managers on this machine"},
            {NULL, NULL},
        },
    .exits = exits,
    .run = jobmanager,
};

const leati_verb leati_verb_taskmanager = {
    .name = "taskmanager",
    .summary = "be a task manager of a cluster",
    .paragraphs =
        (const char *const[]){
            "Runs in the foreground: registers with a job manager, offers its slots, and runs the "
            "tasks that it is given, until SIGTERM or SIGINT. When the job manager goes away it "
            "cancels what it runs and looks for it anew.",
            "LEAT_LOG=error|warn|info|debug says what is logged (default: info).",
            NULL,
        },
    .examples =
        (const leati_entry[]){
            {"leat taskmanager -m 10.0.0.1:8082 --bind 10.0.0.2 --secret-file secret",
             "on another machine; the secret is the same"},
            {"leat taskmanager -m 127.0.0.1:8082 --log-file tm.log", "log to a file"},
            {NULL, NULL},
        },
    .exits = exits,
    .run = taskmanager,
};
