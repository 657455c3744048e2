// SPDX-License-Identifier: Apache-2.0
#include "bench/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/job.h"

extern char **environ;

enum { LOOK_EVERY_MS = 50, QUIET_LOOKS = 6, MOST_LOOKS = 100 };

static int spawn(pid_t *pid, char *const argv[], int input, int inherited)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    // Duplicating a descriptor to itself takes its close-on-exec mark away, in the child only.
    if (!error && inherited >= 0)
        error = posix_spawn_file_actions_adddup2(&actions, inherited, inherited);
    if (!error)
        error = posix_spawn(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int process_start(process *p, char *const argv[], int inherited)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fprintf(stderr, "no pipe: %s\n", strerror(errno));
        return -1;
    }
    p->started_ns = bench_now_ns();
    int error = spawn(&p->pid, argv, ends[0], inherited);
    close(ends[0]);
    p->input = ends[1];
    if (!error)
        return 0;
    close(ends[1]);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(error));
    return -1;
}

int process_finish(process *p)
{
    int status;
    close(p->input);
    while (waitpid(p->pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    fprintf(stderr, "process %d ended with status %d\n", (int)p->pid, status);
    return -1;
}

static FILE *open_proc(const process *p, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)p->pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return file;
}

// Processor time of all its threads, in ticks.
static int read_ticks(const process *p, uint64_t *ticks)
{
    char text[1024];
    uint64_t user, system;
    FILE *file = open_proc(p, "stat");
    if (!file)
        return -1;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    // The second field is the program's name in brackets, which may hold anything.
    const char *rest = strrchr(text, ')');
    if (!rest ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2)
        return -1;
    *ticks = user + system;
    return 0;
}

static int wait_until_idle(const process *p)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000};
    uint64_t before = UINT64_MAX, ticks;
    for (int look = 0, quiet = 0; look < MOST_LOOKS && quiet < QUIET_LOOKS; look++) {
        if (read_ticks(p, &ticks) != 0)
            return -1;
        quiet = ticks == before ? quiet + 1 : 0;
        before = ticks;
        nanosleep(&pause, NULL);
    }
    return 0;
}

// Whether a mapping that is rounded up to whole pages is the one asked for.
static bool is_big(uint64_t size, uint64_t big_size)
{
    return big_size > 0 && size >= big_size && size - big_size < (uint64_t)sysconf(_SC_PAGESIZE);
}

int process_idle_memory(const process *p, uint64_t big_size, memory_use *use)
{
    if (wait_until_idle(p) != 0)
        return -1;
    FILE *file = open_proc(p, "smaps");
    if (!file)
        return -1;
    char line[512];
    uint64_t size = 0, kib;
    *use = (memory_use){0};
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Size: %" SCNu64, &kib) == 1) {
            size = kib * 1024;
        } else if (sscanf(line, "Rss: %" SCNu64, &kib) == 1) {
            use->resident += kib * 1024;
            if (is_big(size, big_size))
                use->big += kib * 1024;
        }
    }
    fclose(file);
    return use->resident > 0 ? 0 : -1;
}
