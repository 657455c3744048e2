// SPDX-License-Identifier: Apache-2.0
// `leat cluster start`.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "tools/cluster_impl.h"
#include "tools/style.h"

enum { PATIENCE_MS = 30000, TICK_MS = 3, LOG_TAIL = 2048, ARGS_FIXED = 32 };
// Of a job manager that is to say that it is there.
enum { ANSWER_MS = 2000 };

typedef struct starting {
    leati_local *local;
    const leati_client_module *client;
    const leati_options *options;
    int64_t task_managers, slots;
    char *log;
    const char *secret; // the file; NULL: none
    char *made;         // that was made here
    pid_t child;
    int ended; // its wait status, once it has ended
    bool has_ended;
    int caught; // the signal that came meanwhile
} starting;

// --- the command ---

typedef struct words {
    char **items; // each is freed
    size_t count, room;
} words;

LEAT_PRINTF(2, 3) static void add_word(words *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w->count + 1 < w->room && vasprintf(&w->items[w->count], format, args) < 0)
        w->items[w->count] = NULL;
    va_end(args);
    w->count++;
}

// Of files, which it needs in full: it runs in another folder.
static void add_files(const starting *s, words *w)
{
    const leati_options *o = s->options;
    char whole[PATH_MAX];
    const struct {
        const char *option, *path;
    } files[] = {
        {"--config", o->config},   {"--secret-file", s->secret}, {"--tls-cert", o->tls_cert},
        {"--tls-key", o->tls_key}, {"--tls-ca", o->tls_ca},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!files[i].path)
            continue;
        add_word(w, "%s", files[i].option);
        add_word(w, "%s", realpath(files[i].path, whole) ? whole : files[i].path);
    }
    if (o->insecure)
        add_word(w, "--insecure");
}

static bool make_command(const starting *s, words *w)
{
    const leati_options *o = s->options;
    const char *folder = s->local->folder;
    *w = (words){.room = ARGS_FIXED + 2 * o->setting_count};
    w->items = leati_calloc(NULL, w->room, sizeof *w->items);
    if (!w->items)
        return false;
    add_word(w, "leat");
    add_word(w, "jobmanager");
    add_word(w, "--port");
    add_word(w, "%d", o->port > 0 ? (int)o->port : 0);
    add_word(w, "--rpc-port");
    add_word(w, "0");
    add_word(w, "-w");
    add_word(w, "%" PRId64, s->task_managers);
    add_word(w, "--folder");
    add_word(w, "%s/jobmanager", folder);
    add_word(w, "--state-file");
    add_word(w, "%s", s->local->state_file);
    for (size_t i = 0; i < o->setting_count; i++) {
        add_word(w, "-D");
        add_word(w, "%s=%s", o->settings[i].key, o->settings[i].value);
    }
    add_files(s, w);
    for (size_t i = 0; i < w->count; i++)
        if (i + 1 >= w->room || !w->items[i])
            return false;
    return true;
}

static void words_fini(words *w)
{
    for (size_t i = 0; w->items && i < w->room; i++)
        free(w->items[i]);
    leati_free(NULL, w->items);
}

// --- the process ---

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    // A session of its own: what the terminal sends is not for it. Nothing is blocked or ignored
    // just because it is here.
    int error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                         POSIX_SPAWN_SETSIGDEF);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setsigdefault(attributes, &usual);
}

static int set_files(const starting *s, posix_spawn_file_actions_t *files)
{
    int error = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error =
            posix_spawn_file_actions_addopen(files, 1, s->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!error)
        error = posix_spawn_file_actions_adddup2(files, 1, 2);
    // Whatever else is open here, a pipe of a script say, is not for a daemon to keep open.
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(files, 3);
    // Not to keep a file system of the user's busy, or lose its folder. And not the folder of the
    // cluster's state: what a job's functions write to a relative path would go with it.
    return error ? error : posix_spawn_file_actions_addchdir_np(files, "/");
}

static int spawn_with(starting *s, char *const *command)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    int error = posix_spawnattr_init(&attributes);
    if (error)
        return error;
    error = posix_spawn_file_actions_init(&files);
    if (!error) {
        error = set_attributes(&attributes);
        if (!error)
            error = set_files(s, &files);
        if (!error)
            error = posix_spawn(&s->child, "/proc/self/exe", &files, &attributes, command, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    posix_spawnattr_destroy(&attributes);
    return error;
}

static leati_exit spawn(starting *s)
{
    words command;
    int error = make_command(s, &command) ? spawn_with(s, command.items) : ENOMEM;
    words_fini(&command);
    if (!error)
        return LEATI_EXIT_OK;
    leati_complain(NULL, "the job manager cannot be started: %s", strerror(error));
    return LEATI_EXIT_FAILED;
}

// --- waiting for it ---

static bool child_has_ended(starting *s)
{
    if (!s->has_ended && waitpid(s->child, &s->ended, WNOHANG) == s->child)
        s->has_ended = true;
    return s->has_ended;
}

// Waits a little, and takes a signal that comes meanwhile.
static void rest(starting *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    int number = sigtimedwait(&set, NULL, &(struct timespec){.tv_nsec = TICK_MS * 1000000L});
    if (number > 0)
        s->caught = number;
}

// Its state file, of this start.
static bool read_state(starting *s)
{
    leati_local_fini(s->local);
    return leati_local_read(s->local, s->options, s->client) == LEATI_EXIT_OK && s->local->known &&
           !s->local->damaged && s->local->manager.pid == s->child;
}

static bool is_complete(starting *s)
{
    const leati_client_module *c = s->client;
    leati_json *overview = leati_cluster_overview(c, s->local, s->options);
    bool complete = c->integer(c->member(overview, "slots_total")) >= s->task_managers * s->slots;
    c->forget(overview);
    return complete;
}

// Whether it takes jobs; otherwise it has ended, the time is over, or a signal has come.
static bool wait_for_cluster(starting *s)
{
    int64_t end_ns = leati_clock_ns() + PATIENCE_MS * INT64_C(1000000);
    bool listens = false;
    while (!s->caught && !child_has_ended(s) && leati_clock_ns() < end_ns) {
        listens = listens || read_state(s);
        if (listens && is_complete(s))
            return true;
        rest(s);
    }
    return false;
}

// --- failing ---

// The last lines of the log, which say more than we know.
static void show_log(const char *path)
{
    char tail[LOG_TAIL + 1];
    FILE *from = fopen(path, "re");
    if (!from)
        return;
    if (fseek(from, -LOG_TAIL, SEEK_END) != 0)
        rewind(from);
    bool cut = ftell(from) > 0;
    size_t size = fread(tail, 1, LOG_TAIL, from);
    tail[size] = '\0';
    fclose(from);
    const char *at = cut ? strchr(tail, '\n') : tail;
    at = at ? at + (*at == '\n') : tail;
    if (*at)
        fprintf(stderr, "%s:\n%s", path, at);
}

static leati_exit fail(starting *s)
{
    size_t ended = 0;
    if (s->caught)
        leati_complain(NULL, "interrupted; what had been started is ended");
    else if (s->has_ended && WIFSIGNALED(s->ended))
        leati_complain(NULL, "the job manager died of signal %d", WTERMSIG(s->ended));
    else if (s->has_ended)
        leati_complain(NULL, "the job manager could not start");
    else
        leati_complain(NULL, "the cluster does not have %" PRId64 " slots within %d s; it is ended",
                       s->task_managers * s->slots, PATIENCE_MS / 1000);
    if (!s->has_ended)
        (void)leati_process_end(
            (leati_process){.pid = s->child, .start_ticks = leati_process_ticks(s->child)}, 8000);
    if (!s->caught)
        show_log(s->log);
    (void)read_state(s);
    (void)leati_cluster_clean(s->local, &ended);
    return s->caught ? (leati_exit)(LEATI_EXIT_SIGNAL + s->caught) : LEATI_EXIT_FAILED;
}

// --- one that runs already ---

static leati_exit tell(const starting *s, bool already)
{
    const leati_local *l = s->local;
    char text[800];
    if (s->options->json)
        snprintf(text, sizeof text,
                 "{\"cluster\": \"%s\", \"address\": \"%s\", \"taskmanagers\": %" PRId64
                 ", \"slots\": %" PRId64 ", \"already_running\": %s, \"folder\": \"%s\"}\n",
                 l->name, l->rest, l->task_managers, l->task_managers * l->slots,
                 already ? "true" : "false", l->folder);
    else
        snprintf(text, sizeof text,
                 "cluster \"%s\" %s at %s: %" PRId64 " task manager%s, %" PRId64 " slot%s\n",
                 l->name, already ? "is running already" : "is running", l->rest, l->task_managers,
                 l->task_managers == 1 ? "" : "s", l->task_managers * l->slots,
                 l->task_managers * l->slots == 1 ? "" : "s");
    return (leati_exit)leati_print_and_check(text);
}

// A process is not yet a cluster that takes jobs.
static bool answers(const starting *s)
{
    const leati_client_module *c = s->client;
    const leati_local *l = s->local;
    const leati_auth_files auth = leati_local_auth(l, s->options);
    leati_client *client = NULL;
    leati_client_answer answer;
    char why[300];
    leat_err err = c->open(l->rest, &client, why, sizeof why);
    if (err == LEAT_OK) {
        c->hurry(client, ANSWER_MS);
        err = c->secure(client, &auth);
        if (err == LEAT_OK)
            err = c->call(client, "GET", "/overview", 0, &answer);
        snprintf(why, sizeof why, "%s", c->why(client));
        c->close(&client);
    }
    // Whoever refuses has answered.
    if (err != LEAT_EIO && err != LEAT_ENOMEM)
        return true;
    leati_complain(NULL,
                   "cluster \"%s\" is running, but its job manager (process %" PRId64
                   ") does not answer: %s; `leat cluster stop` ends it",
                   l->name, l->manager.pid, why);
    return false;
}

// Fine when it is what is wanted; what is not said is not wanted otherwise.
static leati_exit meet_running(const starting *s, bool slots_given)
{
    const leati_local *l = s->local;
    if (!answers(s))
        return LEATI_EXIT_FAILED;
    bool same = (s->options->task_managers < 0 || s->task_managers == l->task_managers) &&
                (!slots_given || s->slots == l->slots);
    if (same)
        return tell(s, true);
    leati_complain(NULL,
                   "cluster \"%s\" is running already, with %" PRId64 " task managers of %" PRId64
                   " slots each and not %" PRId64 " of %" PRId64
                   "; `leat cluster stop` ends it, --cluster NAME names another one",
                   l->name, l->task_managers, l->slots, s->task_managers, s->slots);
    return LEATI_EXIT_REFUSED;
}

static leati_exit clean_stale(starting *s)
{
    size_t ended = 0;
    char left[80] = "";
    leati_exit status = leati_cluster_clean(s->local, &ended);
    if (ended == 1)
        snprintf(left, sizeof left, ", and its task manager is ended");
    else if (ended)
        snprintf(left, sizeof left, ", and its %zu task managers are ended", ended);
    if (status == LEATI_EXIT_OK)
        leati_complain(NULL,
                       "the last job manager of cluster \"%s\" had died; its files are removed%s",
                       s->local->name, left);
    return status;
}

// --- start ---

// The log of the last time is kept beside the new one.
static leati_exit turn_log(starting *s)
{
    char *old = NULL;
    if (asprintf(&s->log, "%s/jobmanager.log", s->local->folder) < 0)
        s->log = NULL;
    else if (asprintf(&old, "%s.1", s->log) < 0)
        old = NULL;
    if (old)
        (void)rename(s->log, old);
    free(old);
    if (s->log)
        return LEATI_EXIT_OK;
    leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
    return LEATI_EXIT_REFUSED;
}

// Else every user of the machine could run code as this one. Nobody else can read the folder.
static leati_exit make_secret(starting *s)
{
    enum { BYTES = 32 };
    uint8_t bytes[BYTES];
    char text[2 * BYTES + 2];
    if (asprintf(&s->made, "%s/secret", s->local->folder) < 0) {
        s->made = NULL;
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_FAILED;
    }
    (void)unlink(s->made);
    int file = open(s->made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = file >= 0 && getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes;
    for (size_t i = 0; i < sizeof bytes && good; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[sizeof text - 2] = '\n';
    good = good && write(file, text, sizeof text - 1) == (ssize_t)(sizeof text - 1);
    if (!good)
        leati_complain(NULL, "%s: %s", s->made, strerror(errno));
    if (file >= 0)
        close(file);
    s->secret = s->made;
    return good ? LEATI_EXIT_OK : LEATI_EXIT_FAILED;
}

static leati_exit start_fresh(starting *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    leati_exit status = turn_log(s);
    s->secret = s->options->secret_file;
    if (status == LEATI_EXIT_OK && !s->secret && !s->options->tls_cert && !s->options->insecure)
        status = make_secret(s);
    // From here on an end has to be orderly: `rest` takes them.
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (status == LEATI_EXIT_OK)
        status = spawn(s);
    if (status == LEATI_EXIT_OK)
        status = wait_for_cluster(s) ? tell(s, false) : fail(s);
    return status;
}

leati_exit leati_cluster_start(leati_local *local, const leati_client_module *client,
                               const leati_options *options, int64_t slots, bool slots_given)
{
    starting s = {.local = local, .client = client, .options = options, .slots = slots};
    s.task_managers =
        options->task_managers >= 0 ? options->task_managers : LEATI_DEFAULT_TASK_MANAGERS;
    if (s.task_managers == 0) {
        leati_complain("cluster", "-w 0: a cluster needs a task manager at least");
        return LEATI_EXIT_USAGE;
    }
    leati_exit status = LEATI_EXIT_OK;
    if (local->known && !local->damaged && leati_process_lives(local->manager))
        return meet_running(&s, slots_given);
    if (local->known)
        status = clean_stale(&s);
    if (status == LEATI_EXIT_OK)
        status = start_fresh(&s);
    free(s.log);
    free(s.made);
    return status;
}
