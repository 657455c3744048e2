// SPDX-License-Identifier: Apache-2.0
#include "tools/console.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/log.h"

static const char erase_line[] = "\r\033[K";

void leati_console_init(leati_console *console, bool quiet)
{
    const char *term = getenv("TERM");
    bool can_erase = term && *term && strcmp(term, "dumb") != 0;
    *console = (leati_console){
        .live = !quiet && can_erase && isatty(STDERR_FILENO),
        .level = leati_log_level_wanted(LEAT_LOG_WARN),
    };
    console->out_live = console->live && isatty(STDOUT_FILENO);
    pthread_mutex_init(&console->lock, NULL);
}

void leati_console_fini(leati_console *console)
{
    pthread_mutex_destroy(&console->lock);
}

// All of it, whatever the descriptor's mode; 0 or an errno.
static int write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(fd, data, size);
        if (written >= 0) {
            data += written;
            size -= (size_t)written;
        } else if (errno == EAGAIN) {
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static void erase_locked(leati_console *console)
{
    if (console->drawn)
        (void)write_all(STDERR_FILENO, erase_line, sizeof erase_line - 1);
    console->drawn = false;
}

void leati_console_draw(leati_console *console, const char *text)
{
    if (!console->live)
        return;
    char line[1024];
    int size = snprintf(line, sizeof line, "%s%s", erase_line, text);
    if (size < 0)
        return;
    if ((size_t)size >= sizeof line)
        size = sizeof line - 1;
    pthread_mutex_lock(&console->lock);
    (void)write_all(STDERR_FILENO, line, (size_t)size);
    console->drawn = true;
    pthread_mutex_unlock(&console->lock);
}

void leati_console_erase(leati_console *console)
{
    pthread_mutex_lock(&console->lock);
    erase_locked(console);
    pthread_mutex_unlock(&console->lock);
}

size_t leati_console_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

// leat_env_options.print. The lock is held while a slow terminal takes the text; that delays the
// progress line only, since the runtime calls the hook one at a time.
static int print(void *user, int fd, const char *data, size_t size)
{
    leati_console *console = user;
    if (fd == STDOUT_FILENO && !console->out_live)
        return write_all(fd, data, size);
    pthread_mutex_lock(&console->lock);
    erase_locked(console);
    int error = write_all(fd, data, size);
    pthread_mutex_unlock(&console->lock);
    return error;
}

// leat_logger.write. A log that cannot be written is no reason to fail.
static void log_line(void *user, leat_log_level level, const char *text)
{
    leati_console *console = user;
    char line[2048];
    size_t size = leati_log_format(level, text, line, sizeof line);
    pthread_mutex_lock(&console->lock);
    erase_locked(console);
    (void)write_all(STDERR_FILENO, line, size);
    pthread_mutex_unlock(&console->lock);
}

void leati_console_hooks(leati_console *console, leat_env_options *options)
{
    options->logger = (leat_logger){.write = log_line, .user = console, .level = console->level};
    if (console->live) {
        options->print = print;
        options->print_user = console;
    }
}
