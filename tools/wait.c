// SPDX-License-Identifier: Apache-2.0
#include "tools/wait.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "tools/remote_progress.h"
#include "tools/remote_report.h"
#include "tools/style.h"

enum {
    POLL_MS = 8000,  // of a request for more output; the job manager waits for us longer
    REDRAW_MS = 200, // of that when there is a progress line
    STANDSTILL_MS = 200,
    SIGN_OF_LIFE_MS = 4000, // while our reader does not read
    PIECE = 4096,           // what a pipe that is ready takes without blocking
};

typedef struct waiting {
    leati_remote *remote;
    leati_console *console;
    const char *id;
    // Set by the thread that takes signals (release), seen by this one (acquire).
    _Atomic bool unwanted;
    bool told;            // the job manager knows that it is unwanted
    uint64_t offset, end; // what is written already, of what was printed
    uint64_t lost;        // of what was printed; then this was no success
    char state[32];
    leati_strbuf piece; // what is to be written next
    int64_t asked_ns;   // when the job manager last heard of us
    leati_remote_progress progress;
} waiting;

static const leati_client_module *api(const waiting *w)
{
    return w->remote->api;
}

// --- cancelling ---

// From the thread that takes signals.
static void unwant(void *user)
{
    waiting *w = user;
    atomic_store_explicit(&w->unwanted, true, memory_order_release);
    api(w)->interrupt(w->remote->client);
}

static leat_err cancel_job(waiting *w)
{
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_client_answer answer;
    snprintf(path, sizeof path, "/jobs/%s?mode=cancel", w->id);
    w->told = true;
    leat_err err = api(w)->call(w->remote->client, "PATCH", path, 0, &answer);
    return err == LEAT_ESTATE ? LEAT_OK : err; // it has ended just now
}

// Tells the job manager if a signal has come.
static leat_err heed_signal(waiting *w)
{
    if (w->told || !atomic_load_explicit(&w->unwanted, memory_order_acquire))
        return LEAT_OK;
    return cancel_job(w);
}

// --- output ---

static leat_err ask_for_output(waiting *w, int64_t wait_ms, leati_client_answer *answer)
{
    char path[LEATI_REMOTE_PATH_SIZE];
    snprintf(path, sizeof path, "/jobs/%s/output?offset=%" PRIu64 "&wait=%" PRId64 "&attached=1",
             w->id, w->offset, wait_ms);
    w->asked_ns = leati_clock_ns();
    return api(w)->call(w->remote->client, "GET", path, wait_ms, answer);
}

static leat_err take_output(waiting *w)
{
    leati_client_answer answer;
    leat_err err = ask_for_output(w, w->console->live ? REDRAW_MS : POLL_MS, &answer);
    if (err)
        return err;
    if (answer.offset > w->offset) {
        w->lost += answer.offset - w->offset;
        leati_console_erase(w->console);
        leati_complain(NULL,
                       "%" PRIu64 " bytes of the job's output are lost: they were not read "
                       "in time",
                       answer.offset - w->offset);
    }
    w->offset = answer.offset;
    w->end = answer.end;
    snprintf(w->state, sizeof w->state, "%s", answer.state);
    w->piece.size = 0;
    leati_strbuf_append(&w->piece, answer.body, answer.size);
    return w->piece.failed ? LEAT_ENOMEM : LEAT_OK;
}

// While standard output takes nothing: a signal, and a sign of life. What comes with it is asked
// for again later.
static leat_err stand_still(waiting *w)
{
    leati_client_answer answer;
    leat_err err = heed_signal(w);
    if (!err && (leati_clock_ns() - w->asked_ns) / 1000000 >= SIGN_OF_LIFE_MS)
        err = ask_for_output(w, 0, &answer);
    return err;
}

// `*error` gets the errno of standard output.
static leat_err write_output(waiting *w, int *error)
{
    const char *at = w->piece.data;
    leat_err err = LEAT_OK;
    if (w->piece.size && w->console->out_live)
        leati_console_erase(w->console);
    for (size_t left = w->piece.size; left && !err && !*error;) {
        struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
        int ready = poll(&out, 1, STANDSTILL_MS);
        if (ready <= 0) {
            err = ready == 0 || errno == EINTR ? stand_still(w) : LEAT_EIO;
            continue;
        }
        ssize_t written = write(STDOUT_FILENO, at, left < PIECE ? left : PIECE);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            *error = errno;
        if (written <= 0)
            continue;
        at += written;
        left -= (size_t)written;
        w->offset += (uint64_t)written;
    }
    return err;
}

// --- the end ---

static bool is_over(const waiting *w)
{
    bool final = !strcmp(w->state, "FINISHED") || !strcmp(w->state, "FAILED") ||
                 !strcmp(w->state, "CANCELED");
    return final && w->offset >= w->end;
}

static leati_exit give_up(waiting *w, leat_err err)
{
    leati_console_erase(w->console);
    const char *why = err == LEAT_ENOMEM ? "" : api(w)->why(w->remote->client);
    leati_complain(NULL, "%s; job %s is no longer waited for", *why ? why : leat_err_message(err),
                   w->id);
    return LEATI_EXIT_FAILED;
}

static leati_exit output_failed(waiting *w, int error)
{
    leati_console_erase(w->console);
    // Nobody is left who would read what it makes.
    leat_err err = cancel_job(w);
    if (error == EPIPE)
        return (leati_exit)(LEATI_EXIT_SIGNAL + SIGPIPE);
    leati_complain(NULL, "cannot write to standard output: %s; the job is %scancelled",
                   strerror(error), err ? "not " : "");
    return LEATI_EXIT_FAILED;
}

// Returns LEATI_EXIT_OK when the job is over.
static leati_exit follow(waiting *w)
{
    int error = 0;
    while (!is_over(w)) {
        leat_err err = heed_signal(w);
        if (!err)
            err = take_output(w);
        if (!err)
            err = write_output(w, &error);
        if (error)
            return output_failed(w, error);
        if (err == LEAT_ECANCELLED) // a signal has come
            continue;
        if (err)
            return give_up(w, err);
        if (!is_over(w))
            leati_remote_progress_draw(&w->progress, w->told);
    }
    leati_console_erase(w->console);
    return LEATI_EXIT_OK;
}

leati_exit leati_wait_for_job(leati_remote *remote, leati_session *session, leati_signals *signals,
                              const char *id)
{
    waiting w = {.remote = remote, .console = &session->console, .id = id};
    leati_strbuf_init(&w.piece, NULL);
    leati_remote_progress_init(&w.progress, remote, w.console, id);
    leati_signals_watch_with(signals, unwant, &w);
    leati_exit status = follow(&w);
    int caught = leati_signals_unwatch(signals);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_report(remote, session->options, id, caught);
    // A job that has finished is no success when its results are not all here.
    if (status == LEATI_EXIT_OK && w.lost)
        status = LEATI_EXIT_FAILED;
    leati_strbuf_fini(&w.piece);
    return status;
}
