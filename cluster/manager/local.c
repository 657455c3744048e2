// SPDX-License-Identifier: Apache-2.0
// The task managers of a local cluster: children of this process, by spawn and exec. A pidfd wakes
// the manager's thread when one dies; it is started again, later and later when it dies early.
//
// The table of children is changed by the manager's thread, under the lock; that thread reads it
// without.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/local.h"

#define MS INT64_C(1000000)

enum {
    DELAY_LEAST_MS = 200,
    DELAY_MOST_MS = 5000,
    SETTLED_MS = 10000, // one that has lived so long starts anew with the least delay
    DEATH_WAIT_MS = 300,
    KILL_WAIT_MS = 2000,
    ARGS_MOST = 128,
};

uint32_t leati_local_count(const leati_manager *manager)
{
    return manager->local ? manager->local->count : 0;
}

bool leati_local_is_child(const leati_manager *manager, int64_t pid, uint32_t index)
{
    for (uint32_t i = 0; i < leati_local_count(manager); i++)
        if (manager->local->children[i].pid == pid && manager->local->children[i].index == index)
            return true;
    return false;
}

// --- starting ---

typedef struct command {
    const char *argv[ARGS_MOST];
    char address[160], index[16], slots[16], folder[LEATI_PATH_SIZE], log[LEATI_PATH_SIZE];
} command;

// Its folders stand beside the job manager's.
void leati_local_folder(const leati_manager *manager, uint32_t index, const char *suffix,
                        char *path)
{
    const char *folder = manager->state_folder, *slash = strrchr(folder, '/');
    int parent = slash ? (int)(slash - folder) : 1;
    snprintf(path, LEATI_PATH_SIZE, "%.*s/taskmanager-%u%s", parent, slash ? folder : ".", index,
             suffix);
}

static bool make_command(const leati_manager *manager, uint32_t index, command *c)
{
    const leati_manager_options *options = &manager->options;
    const char *rpc = manager->rpc_address;
    bool any = !strncmp(rpc, "0.0.0.0:", 8);
    snprintf(c->address, sizeof c->address, "%s%s", any ? "127.0.0.1" : rpc, any ? rpc + 7 : "");
    snprintf(c->index, sizeof c->index, "%u", index);
    snprintf(c->slots, sizeof c->slots, "%u", options->slots);
    leati_local_folder(manager, index, "", c->folder);
    leati_local_folder(manager, index, ".log", c->log);
    const char *const own[] = {options->program, "taskmanager", "-m",         c->address,
                               "--index",        c->index,      "-s",         c->slots,
                               "--folder",       c->folder,     "--log-file", c->log};
    size_t count = sizeof own / sizeof *own;
    memcpy(c->argv, own, sizeof own);
    for (const char *const *arg = options->worker_args; arg && *arg; arg++) {
        if (count == ARGS_MOST - 1)
            return false;
        c->argv[count++] = *arg;
    }
    c->argv[count] = NULL;
    return true;
}

// What it prints before it has opened its log, and when it crashes, belongs into the same file.
static int spawn(const command *c, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, c->log,
                                                 O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!error)
        error = posix_spawn(pid, c->argv[0], &files, &attributes, (char *const *)c->argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static leat_err start_child(leati_manager *manager, leati_child *child, char *why, size_t why_size)
{
    command c = {0};
    pid_t pid = 0;
    int error = make_command(manager, child->index, &c) ? spawn(&c, &pid) : E2BIG;
    int64_t now_ns = leati_clock_ns();
    pthread_mutex_lock(&manager->lock);
    if (error) {
        child->restart_ns = now_ns + child->delay_ms * MS;
        snprintf(why, why_size, "task manager %u cannot be started: \"%s\": %s", child->index,
                 manager->options.program, strerror(error));
    } else {
        child->pid = pid;
        child->pidfd = pidfd_open(pid, 0); // without it, its death is found by looking
        child->started_ns = now_ns;
        child->start_ticks = leati_start_ticks(pid);
        manager->local->changed = true;
    }
    pthread_mutex_unlock(&manager->lock);
    return error ? LEAT_EIO : LEAT_OK;
}

leat_err leati_local_start(leati_manager *manager, char *why, size_t why_size)
{
    uint32_t count = manager->options.local_workers;
    if (count == 0)
        return LEAT_OK;
    struct leati_local *local = leati_calloc(manager->allocator, 1, sizeof *local);
    leati_child *children = leati_calloc(manager->allocator, count, sizeof *children);
    if (!local || !children) {
        leati_free(manager->allocator, local);
        leati_free(manager->allocator, children);
        snprintf(why, why_size, "out of memory");
        return LEAT_ENOMEM;
    }
    *local = (struct leati_local){.children = children, .count = count};
    for (uint32_t i = 0; i < count; i++)
        children[i] = (leati_child){.index = i + 1, .pidfd = -1, .delay_ms = DELAY_LEAST_MS};
    pthread_mutex_lock(&manager->lock);
    manager->local = local;
    pthread_mutex_unlock(&manager->lock);
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; err == LEAT_OK && i < count; i++)
        err = start_child(manager, &children[i], why, why_size);
    return err;
}

void leati_local_destroy(leati_manager *manager)
{
    struct leati_local *local = manager->local;
    if (!local)
        return;
    manager->local = NULL;
    leati_free(manager->allocator, local->children);
    leati_free(manager->allocator, local);
}

// --- watching ---

uint32_t leati_local_poll(leati_manager *manager, struct pollfd *fds, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < leati_local_count(manager) && count < room; i++)
        if (manager->local->children[i].pidfd >= 0)
            fds[count++] =
                (struct pollfd){.fd = manager->local->children[i].pidfd, .events = POLLIN};
    return count;
}

static void describe_death(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        snprintf(text, size, "died of signal %d%s%s%s", WTERMSIG(status), name ? " (SIG" : "",
                 name ? name : "", name ? ")" : "");
    } else {
        snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
    }
}

// Whether it has just died; its death is noted then.
static bool reap(leati_manager *manager, leati_child *child, int64_t now_ns)
{
    int status = 0;
    if (child->pid == 0)
        return false;
    pid_t got = waitpid((pid_t)child->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    if (got < 0)
        snprintf(child->death, sizeof child->death, "has ended");
    else
        describe_death(status, child->death, sizeof child->death);
    if (child->pidfd >= 0)
        (void)close(child->pidfd);
    child->pidfd = -1;
    child->dead_pid = child->pid;
    child->pid = 0;
    if (now_ns - child->started_ns >= SETTLED_MS * MS)
        child->delay_ms = DELAY_LEAST_MS;
    child->restart_ns = now_ns + child->delay_ms * MS;
    child->delay_ms = child->delay_ms * 2 < DELAY_MOST_MS ? child->delay_ms * 2 : DELAY_MOST_MS;
    manager->local->changed = true;
    return true;
}

static void died(leati_manager *manager, const leati_child *child)
{
    bool known = false;
    char text[LEATI_REASON_SIZE];
    for (leati_member *member = manager->members, *next; member; member = next) {
        next = member->next;
        if (!member->local || member->pid != child->dead_pid)
            continue;
        known = true;
        if (member->crash[0])
            snprintf(text, sizeof text, "%s died of %s", member->name, member->crash);
        else
            snprintf(text, sizeof text, "%s %s", member->name, child->death);
        leati_member_lose(manager, member, text);
    }
    if (!known) // before it has registered, or its connection ended first: this tells of both
        leati_manager_log(manager, manager->stopping ? LEAT_LOG_INFO : LEAT_LOG_WARN,
                          "task manager %u (pid %lld) %s", child->index, (long long)child->dead_pid,
                          child->death);
}

int64_t leati_local_check(leati_manager *manager, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < leati_local_count(manager); i++) {
        leati_child *child = &manager->local->children[i];
        pthread_mutex_lock(&manager->lock);
        if (reap(manager, child, now_ns)) {
            died(manager, child);
            pthread_cond_broadcast(&manager->changed);
        }
        bool wanted = child->pid == 0 && !manager->stopping;
        pthread_mutex_unlock(&manager->lock);
        char why[300];
        if (wanted && now_ns >= child->restart_ns &&
            start_child(manager, child, why, sizeof why) != LEAT_OK)
            leati_manager_log(manager, LEAT_LOG_ERROR, "%s", why);
        if (child->pid == 0 && wanted && child->restart_ns < next_ns)
            next_ns = child->restart_ns;
    }
    if (leati_local_count(manager) && manager->local->changed) {
        char why[300];
        manager->local->changed = false;
        if (leati_manager_write_state(manager, why, sizeof why) != LEAT_OK)
            leati_manager_log(manager, LEAT_LOG_ERROR, "%s", why);
    }
    return next_ns;
}

bool leati_local_death(leati_manager *manager, int64_t pid, char *text, size_t size)
{
    struct timespec deadline = leati_deadline(DEATH_WAIT_MS);
    for (bool waiting = true;;) {
        bool child = false;
        for (uint32_t i = 0; i < leati_local_count(manager); i++) {
            const leati_child *c = &manager->local->children[i];
            if (c->dead_pid == pid && c->death[0]) {
                snprintf(text, size, "%s", c->death);
                return true;
            }
            child = child || c->pid == pid;
        }
        if (!child || !waiting)
            return false;
        waiting = pthread_cond_timedwait(&manager->changed, &manager->lock, &deadline) == 0;
    }
}

// --- the end ---

static uint32_t still_there(const leati_manager *manager)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < leati_local_count(manager); i++)
        count += manager->local->children[i].pid != 0;
    return count;
}

// Until all have died, or that time is over.
static void wait_for_deaths(leati_manager *manager, int64_t patience_ms)
{
    int64_t end_ns = leati_clock_ns() + patience_ms * MS;
    for (;;) {
        struct pollfd fds[LEATI_LOCAL_POLLED];
        int64_t now_ns = leati_clock_ns();
        (void)leati_local_check(manager, now_ns);
        leati_manager_flush_log(manager);
        if (still_there(manager) == 0 || now_ns >= end_ns)
            return;
        uint32_t count = leati_local_poll(manager, fds, LEATI_LOCAL_POLLED);
        int64_t left_ms = (end_ns - now_ns) / MS + 1;
        (void)poll(fds, count, (int)(left_ms < 50 ? left_ms : 50));
    }
}

static void signal_all(leati_manager *manager, int signal)
{
    // A pid is a child's until it is reaped, which only this thread does.
    for (uint32_t i = 0; i < leati_local_count(manager); i++)
        if (manager->local->children[i].pid)
            (void)kill((pid_t)manager->local->children[i].pid, signal);
}

static bool is_member(const leati_manager *manager, int64_t pid)
{
    const leati_member *member = manager->members;
    while (member && !(member->local && member->pid == pid))
        member = member->next;
    return member != NULL;
}

void leati_local_stop(leati_manager *manager, int64_t patience_ms)
{
    if (leati_local_count(manager) == 0)
        return;
    pthread_mutex_lock(&manager->lock);
    for (leati_member *member = manager->members; member; member = member->next)
        if (member->local)
            (void)leati_member_tell(member, LEATI_MESSAGE_SHUTDOWN, NULL, NULL);
    // Those that have not registered do not hear it.
    for (uint32_t i = 0; i < manager->local->count; i++)
        if (manager->local->children[i].pid && !is_member(manager, manager->local->children[i].pid))
            (void)kill((pid_t)manager->local->children[i].pid, SIGTERM);
    pthread_mutex_unlock(&manager->lock);
    wait_for_deaths(manager, patience_ms);
    if (still_there(manager)) {
        leati_manager_log(manager, LEAT_LOG_WARN, "%u task managers do not end, and are killed",
                          still_there(manager));
        signal_all(manager, SIGKILL);
        wait_for_deaths(manager, KILL_WAIT_MS);
    }
    for (uint32_t i = 0; i < manager->local->count; i++) {
        char path[LEATI_PATH_SIZE];
        leati_local_folder(manager, i + 1, "", path);
        leati_remove_tree(path);
    }
}
