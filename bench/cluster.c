// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return -1;
}

// --- programs ---

static void keep(int fd, char *out, size_t out_size)
{
    char rest[4096];
    size_t used = 0;
    for (;;) {
        bool full = used + 1 >= out_size;
        ssize_t got =
            full ? read(fd, rest, sizeof rest) : read(fd, out + used, out_size - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += full ? 0 : (size_t)got;
    }
    if (out_size > 0)
        out[used] = '\0';
}

int cluster_run(char *const argv[], char *out, size_t out_size)
{
    int ends[2], status;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail("pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    errno = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (errno) {
        close(ends[0]);
        return fail(argv[0]);
    }
    keep(ends[0], out, out_size);
    close(ends[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail("waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    fprintf(stderr, "%s %s: status %d\n", argv[0], argv[1], status);
    return -1;
}

// --- asking ---

int64_t cluster_number(const char *json, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *at = strstr(json, quoted);
    if (!at)
        return -1;
    at += strlen(quoted);
    at += strspn(at, " \n:");
    return strtoll(at, NULL, 10);
}

// --- life ---

static int read_state(cluster *c)
{
    char path[512], text[8192] = "";
    snprintf(path, sizeof path, "%s/leat/default/cluster.json", c->folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return fail(path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    c->count = 0;
    for (const char *at = text; (at = strstr(at, "\"pid\"")) && c->count < CLUSTER_MAX_PROCESSES;
         at++)
        c->pids[c->count++] = (pid_t)cluster_number(at, "pid");
    return 0;
}

int cluster_start(cluster *c, char *tool, unsigned workers)
{
    char number[16], out[1024];
    const char *tmp = getenv("TMPDIR");
    snprintf(c->folder, sizeof c->folder, "%s/leat-bench-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(c->folder))
        return fail(c->folder);
    setenv("XDG_STATE_HOME", c->folder, 1);
    snprintf(number, sizeof number, "%u", workers);
    char verb[] = "cluster", start[] = "start", w[] = "-w";
    char *argv[] = {tool, verb, start, w, number, NULL};
    if (cluster_run(argv, out, sizeof out) != 0)
        return -1;
    return read_state(c);
}

void cluster_stop(cluster *c, char *tool)
{
    char out[1024], verb[] = "cluster", stop[] = "stop";
    char *argv[] = {tool, verb, stop, NULL};
    (void)cluster_run(argv, out, sizeof out);
    char rm[] = "/bin/rm", flags[] = "-rf";
    char *clean[] = {rm, flags, c->folder, NULL};
    (void)cluster_run(clean, out, sizeof out);
}

// --- looking from outside ---

static uint64_t entries(pid_t pid, const char *what)
{
    char path[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

int cluster_look(const cluster *c, cluster_use *use)
{
    *use = (cluster_use){0};
    for (size_t i = 0; i < c->count; i++) {
        char path[64];
        uint64_t total, resident;
        snprintf(path, sizeof path, "/proc/%d/statm", (int)c->pids[i]);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%" SCNu64 " %" SCNu64, &total, &resident) == 2) {
            use->resident += resident * (uint64_t)sysconf(_SC_PAGESIZE);
            use->threads += entries(c->pids[i], "task");
            use->files += entries(c->pids[i], "fd");
            use->processes++;
        }
        fclose(file);
    }
    return use->processes == c->count ? 0 : -1;
}
