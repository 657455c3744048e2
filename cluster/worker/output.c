// SPDX-License-Identifier: Apache-2.0
// What a job prints and logs, on its way to the job manager.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "base/utf8.h"
#include "cluster/worker/worker_impl.h"

enum { PIECE = 64 * 1024, LOG_MOST = 200 };

// --- print sinks ---

void leati_attempt_stop_output(leati_attempt *a)
{
    pthread_mutex_lock(&a->out_lock);
    a->job_stops = true;
    pthread_cond_broadcast(&a->room);
    pthread_mutex_unlock(&a->out_lock);
}

// How much may be sent now; 0: the job stops.
static size_t wait_for_room_locked(leati_attempt *a, size_t size)
{
    for (;;) {
        // The runtime knows that the job stops when this says so, and takes it for no failure.
        if (a->job_stops)
            return 0;
        uint64_t ahead = a->output_sent - a->output_taken;
        if (ahead < LEATI_OUTPUT_WINDOW) {
            uint64_t room = LEATI_OUTPUT_WINDOW - ahead;
            if (size > PIECE)
                size = PIECE;
            return size < room ? size : (size_t)room;
        }
        pthread_cond_wait(&a->room, &a->out_lock);
    }
}

// leat_env_options.print; one thread at a time.
int leati_attempt_print(void *user, int fd, const char *data, size_t size)
{
    leati_attempt *a = user;
    while (size) {
        pthread_mutex_lock(&a->out_lock);
        size_t piece = wait_for_room_locked(a, size);
        uint64_t offset = a->output_sent;
        a->output_sent += piece;
        pthread_mutex_unlock(&a->out_lock);
        if (piece == 0)
            return ECANCELED;
        leat_err err =
            leati_control_send(a->tm, a->session, LEATI_MESSAGE_OUTPUT, LEAT_TYPE(leati_msg_output),
                               &(leati_msg_output){.attempt = a->id,
                                                   .fd = (uint32_t)fd,
                                                   .offset = offset,
                                                   .bytes = {(const uint8_t *)data, piece}});
        // A lost connection cancels the job: that is waited for above.
        if (err && err != LEAT_ECLOSED)
            return err == LEAT_ENOMEM ? ENOMEM : EIO;
        data += piece;
        size -= piece;
    }
    return 0;
}

void leati_attempt_taken(leati_attempt *a, uint64_t offset)
{
    pthread_mutex_lock(&a->out_lock);
    if (offset > a->output_taken && offset <= a->output_sent) {
        a->output_taken = offset;
        pthread_cond_broadcast(&a->room);
    }
    pthread_mutex_unlock(&a->out_lock);
}

// --- the log ---

// What is logged is not waited for by anybody, so it is bounded by dropping. Gives how many lines
// were dropped before this one; false: so is this.
static bool may_log(leati_attempt *a, uint32_t *dropped)
{
    int64_t second = leati_clock_ns() / 1000000000;
    pthread_mutex_lock(&a->out_lock);
    *dropped = 0;
    if (a->log_second != second) {
        a->log_second = second;
        a->log_count = 0;
        *dropped = a->log_dropped;
        a->log_dropped = 0;
    }
    bool may = a->log_count < LOG_MOST;
    if (may)
        a->log_count++;
    else
        a->log_dropped++;
    pthread_mutex_unlock(&a->out_lock);
    return may;
}

static void send_line(leati_attempt *a, leat_log_level level, const char *line)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)leati_control_send(
        a->tm, a->session, LEATI_MESSAGE_LOG, LEAT_TYPE(leati_msg_log),
        &(leati_msg_log){.attempt = a->id,
                         .level = (uint32_t)level,
                         .time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
                         .line = {line, strlen(line)}});
    leati_taskmanager_log(a->tm, level, "%s", line);
}

static void send_dropped(leati_attempt *a, uint32_t dropped)
{
    char text[80];
    snprintf(text, sizeof text, "%u line%s of the log %s dropped: more than %d in a second",
             (unsigned)dropped, dropped == 1 ? "" : "s", dropped == 1 ? "was" : "were",
             (int)LOG_MOST);
    send_line(a, LEAT_LOG_WARN, text);
}

void leati_attempt_log_dropped(leati_attempt *a)
{
    pthread_mutex_lock(&a->out_lock);
    uint32_t dropped = a->log_dropped;
    a->log_dropped = 0;
    pthread_mutex_unlock(&a->out_lock);
    if (dropped)
        send_dropped(a, dropped);
}

void leati_attempt_log(void *user, leat_log_level level, const char *line)
{
    leati_attempt *a = user;
    uint32_t dropped;
    if (!may_log(a, &dropped))
        return;
    if (dropped)
        send_dropped(a, dropped);
    send_line(a, level, line);
}
