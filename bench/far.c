// SPDX-License-Identifier: Apache-2.0
// Starting the other process, and talking to it.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/pair.h"

extern char **environ;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return -1;
}

int far_start(far_process *far, const char *role)
{
    int ends[2];
    char self[] = "/proc/self/exe", argument[32];
    snprintf(argument, sizeof argument, "%s", role);
    char *argv[] = {self, argument, NULL};
    posix_spawn_file_actions_t actions;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail("socketpair");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    errno = posix_spawn(&far->pid, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    far->socket = ends[0];
    if (errno == 0)
        return 0;
    close(ends[0]);
    return fail("starting the other process");
}

int far_finish(far_process *far)
{
    int status;
    close(far->socket);
    while (waitpid(far->pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail("waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    fprintf(stderr, "the other process ended with status %d\n", status);
    return -1;
}

int far_put(int socket, const void *data, size_t size)
{
    const uint8_t *from = data;
    while (size > 0) {
        ssize_t sent = send(socket, from, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return fail("telling the other process");
        from += sent;
        size -= (size_t)sent;
    }
    return 0;
}

int far_get(int socket, void *data, size_t size)
{
    uint8_t *to = data;
    while (size > 0) {
        ssize_t got = recv(socket, to, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail("hearing from the other process");
        if (got == 0) {
            fprintf(stderr, "the other process has gone\n");
            return -1;
        }
        to += got;
        size -= (size_t)got;
    }
    return 0;
}
