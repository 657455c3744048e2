// SPDX-License-Identifier: Apache-2.0
#include "tools/local.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/style.h"

enum { NAME_MAX_SIZE = 64, STATE_MAX_SIZE = 1 << 20 };

// --- which one ---

// It becomes the name of a folder.
static bool is_name(const char *name)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t size = strlen(name);
    return size && size <= NAME_MAX_SIZE && strspn(name, fit) == size && name[0] != '.' &&
           name[0] != '-';
}

static const char *chosen_name(const leati_options *options)
{
    const char *name = options->cluster, *variable = getenv("LEAT_CLUSTER");
    return name ? name : variable && *variable ? variable : "default";
}

bool leati_local_has_place(const leati_options *options)
{
    const char *place = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    return is_name(chosen_name(options)) &&
           ((place && place[0] == '/') || (home && home[0] == '/'));
}

void leati_local_warn(void)
{
    const char *place = getenv("XDG_STATE_HOME");
    if (place && *place && place[0] != '/')
        leati_complain(NULL, "XDG_STATE_HOME is passed over: \"%s\" is not an absolute path",
                       place);
}

static leati_exit choose(leati_local *local, const leati_options *options)
{
    const char *name = chosen_name(options);
    if (!is_name(name)) {
        leati_complain(NULL,
                       "\"%s\" cannot be the name of a cluster: letters, digits and ._- are "
                       "wanted, at most %d",
                       name, NAME_MAX_SIZE);
        return LEATI_EXIT_USAGE;
    }
    local->name = name;
    const char *place = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int size = -1;
    // XDG says that relative names are to be passed over.
    if (place && place[0] == '/')
        size = asprintf(&local->folder, "%s/leat/%s", place, name);
    else if (home && home[0] == '/')
        size = asprintf(&local->folder, "%s/.local/state/leat/%s", home, name);
    else {
        leati_complain(NULL, "neither XDG_STATE_HOME nor HOME names a folder for the state of "
                             "clusters");
        return LEATI_EXIT_REFUSED;
    }
    if (size < 0)
        local->folder = NULL;
    if (size < 0 || asprintf(&local->state_file, "%s/cluster.json", local->folder) < 0) {
        local->state_file = NULL;
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    return LEATI_EXIT_OK;
}

// --- its state ---

static leati_process take_process(const leati_client_module *c, const leati_json *object)
{
    return (leati_process){.pid = c->integer(c->member(object, "pid")),
                           .start_ticks = c->integer(c->member(object, "start_ticks"))};
}

static bool take_state(leati_local *local, const leati_client_module *c, const leati_json *state)
{
    const leati_json *workers = c->member(state, "taskmanagers");
    snprintf(local->rest, sizeof local->rest, "%s", c->text(c->member(state, "rest")));
    snprintf(local->rpc, sizeof local->rpc, "%s", c->text(c->member(state, "rpc")));
    local->manager = take_process(c, state);
    static const char *const files[] = {"secret_file", "tls_cert", "tls_key", "tls_ca"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = c->text(c->member(state, files[i]));
        if (*path && !(local->auth[i] = strdup(path)))
            return false;
    }
    local->task_managers = c->integer(c->member(state, "workers"));
    local->slots = c->integer(c->member(state, "slots"));
    local->workers = leati_calloc(NULL, c->count(workers) + 1, sizeof *local->workers);
    if (!local->workers)
        return false;
    for (size_t i = 0; i < c->count(workers); i++)
        local->workers[local->worker_count++] = take_process(c, c->item(workers, i));
    return true;
}

// The whole file, or NULL with an errno; ENOENT: there is none.
static char *read_file(const char *path, size_t *size)
{
    FILE *from = fopen(path, "re");
    char *text = from ? leati_alloc(NULL, STATE_MAX_SIZE) : NULL;
    if (text) {
        *size = fread(text, 1, STATE_MAX_SIZE, from);
        if (ferror(from)) {
            leati_free(NULL, text);
            text = NULL;
        }
    }
    int error = errno;
    if (from)
        fclose(from);
    errno = error;
    return text;
}

leati_exit leati_local_read(leati_local *local, const leati_options *options,
                            const leati_client_module *client)
{
    *local = (leati_local){0};
    leati_exit status = choose(local, options);
    if (status != LEATI_EXIT_OK)
        return status;
    size_t size = 0;
    char *text = read_file(local->state_file, &size);
    if (!text && errno != ENOENT && errno != ENOTDIR) {
        leati_complain(NULL, "%s: %s", local->state_file, strerror(errno));
        return LEATI_EXIT_FAILED;
    }
    if (!text)
        return LEATI_EXIT_OK;
    leati_json *state = client->parse(text, size);
    leati_free(NULL, text);
    local->known = true;
    local->damaged = client->kind(state) != 'o' || !take_state(local, client, state) ||
                     !local->rest[0] || local->manager.pid <= 0;
    client->forget(state);
    return LEATI_EXIT_OK;
}

void leati_local_fini(leati_local *local)
{
    free(local->folder);
    free(local->state_file);
    leati_free(NULL, local->workers);
    for (size_t i = 0; i < sizeof local->auth / sizeof *local->auth; i++)
        free(local->auth[i]);
    *local = (leati_local){0};
}

leati_auth_files leati_local_auth(const leati_local *local, const leati_options *options)
{
    return (leati_auth_files){
        .secret = options->secret_file ? options->secret_file : local->auth[0],
        .tls_cert = options->tls_cert ? options->tls_cert : local->auth[1],
        .tls_key = options->tls_key ? options->tls_key : local->auth[2],
        .tls_ca = options->tls_ca ? options->tls_ca : local->auth[3],
    };
}

// --- processes ---

// What stands behind the name in /proc/PID/stat, which may hold anything itself.
static bool read_stat(int64_t pid, char *state, int64_t *ticks)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *from = fopen(path, "re");
    if (!from)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    text[size] = '\0';
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ')
        return false;
    *state = at[2];
    at += 2;
    // The state is field 3, the start field 22.
    for (int field = 3; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    *ticks = at ? strtoll(at, NULL, 10) : 0;
    return *ticks > 0;
}

int64_t leati_process_ticks(int64_t pid)
{
    char state;
    int64_t ticks = 0;
    return read_stat(pid, &state, &ticks) ? ticks : 0;
}

bool leati_process_lives(leati_process process)
{
    char state;
    int64_t ticks;
    return process.pid > 0 && read_stat(process.pid, &state, &ticks) &&
           ticks == process.start_ticks && state != 'Z' && state != 'X';
}

static bool wait_for_end(int fd, int64_t timeout_ms)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&waiting, 1, (int)timeout_ms);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool leati_process_end(leati_process process, int64_t patience_ms)
{
    int fd = process.pid > 0 ? pidfd_open((pid_t)process.pid, 0) : -1;
    if (fd < 0)
        return process.pid <= 0 || errno == ESRCH;
    // What the descriptor stands for cannot change any more, so now it can be looked at.
    bool ended = !leati_process_lives(process);
    if (!ended && pidfd_send_signal(fd, SIGTERM, NULL, 0) == 0) {
        // A stopped one would not see it.
        (void)pidfd_send_signal(fd, SIGCONT, NULL, 0);
        ended = wait_for_end(fd, patience_ms);
    }
    if (!ended && pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0)
        ended = wait_for_end(fd, 10000);
    int error = ended ? 0 : errno == ESRCH ? 0 : errno ? errno : ETIMEDOUT;
    close(fd);
    errno = error;
    return !error;
}

// --- files ---

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    if (kind == FTW_DP ? rmdir(path) : unlink(path))
        return errno == ENOENT ? 0 : errno;
    return 0;
}

int leati_remove_tree(const char *path)
{
    struct stat info;
    if (lstat(path, &info))
        return errno == ENOENT ? 0 : errno;
    int error = nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    return error < 0 ? errno : error;
}
