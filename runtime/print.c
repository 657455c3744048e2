// SPDX-License-Identifier: Apache-2.0
// The job's standard output and error, shared by all print sinks of the process.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/execution.h"

// A pipe that poll calls writable takes this much without blocking (PIPE_BUF), so that a wait for a
// slow reader is always a wait in poll, which cancelling can end.
enum { PIECE = 4096, POLL_MS = 50 };

static bool may_block(int fd)
{
    struct stat status;
    return fstat(fd, &status) != 0 || !S_ISREG(status.st_mode);
}

// 0, an errno, or ECANCELED.
static int write_all(const leat_ctx *ctx, int fd, const char *data, size_t size)
{
    bool pieces = may_block(fd);
    while (size > 0) {
        if (pieces) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            int ready = poll(&wait, 1, POLL_MS);
            if (leat_ctx_cancelled(ctx))
                return ECANCELED;
            if (ready == 0 || (ready < 0 && errno == EINTR))
                continue;
        }
        ssize_t written = write(fd, data, pieces && size > PIECE ? PIECE : size);
        if (written < 0) {
            if (errno == EINTR || errno == EAGAIN)
                continue;
            return errno;
        }
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

leat_err leati_ctx_print(leat_ctx *ctx, int fd, const char *data, size_t size)
{
    leat_job *job = ctx->task->job;
    const leat_env_options *options = leati_env_options(job->env);
    // A file does not block for long, and most output goes to one; the lock may be held by somebody
    // who waits for a pipe.
    bool lend = options->print || may_block(fd);
    if (lend)
        leat_blocking_begin(ctx);
    pthread_mutex_lock(&job->print_lock);
    int error = options->print ? options->print(options->print_user, fd, data, size)
                               : write_all(ctx, fd, data, size);
    pthread_mutex_unlock(&job->print_lock);
    if (lend)
        leat_blocking_end(ctx);
    if (error == 0)
        return LEAT_OK;
    if (error == ECANCELED && leat_ctx_cancelled(ctx))
        return LEAT_ECANCELLED;
    leat_err err = error == EPIPE ? LEAT_EPIPE : LEAT_EIO;
    return leati_ctx_error(ctx, err, "writing to standard %s: %s", fd == 2 ? "error" : "output",
                           strerror(error));
}
