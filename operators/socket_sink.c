// SPDX-License-Identifier: Apache-2.0
// leat_write_socket: a line for each record, sent to a server.
//
// What the system takes at once is sent at once. Everything else (connecting, waiting for room,
// pausing) happens with the worker lent, in waits of POLL_MS between which the sink looks whether
// the job was cancelled.
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "leat/record.h"
#include "leat/socket.h"
#include "operators/builder.h"
#include "operators/env_copy.h"
#include "operators/line_buffer.h"
#include "operators/socket_dial.h"
#include "operators/socket_options.h"
#include "runtime/context.h"

enum { POLL_MS = 50, DRAIN_BYTES = 4096 };

typedef struct sink_config {
    const char *host, *label;
    uint32_t port;
    leat_socket_sink_options options; // with the default delay filled in
} sink_config;

typedef struct socket_sink {
    leat_operator base;
    const sink_config *config;
    const leat_type *type;
    leati_dial dial;
    int fd;            // -1 when there is no connection
    bool peer_is_done; // the server will send no more
    int32_t tries;     // to connect again since something was sent
    leati_line_buffer lines;
    char why[512];
} socket_sink;

// --- the connection; all of this with the worker lent ---

static leat_err explain(socket_sink *op, leat_err err, const char *what, const char *why)
{
    snprintf(op->why, sizeof op->why, "%s: %s%s", op->config->label, what, why);
    return err;
}

static bool may_retry(const socket_sink *op)
{
    int32_t most = op->config->options.max_retries;
    return most == LEAT_RETRY_FOR_EVER || op->tries < most;
}

static leat_err dial(socket_sink *op)
{
    struct pollfd wait;
    leat_err err;
    while ((err = leati_dial_step(&op->dial, leati_clock_ns(), &op->fd, &wait)) == LEAT_EAGAIN) {
        (void)poll(&wait, 1, POLL_MS);
        if (leat_ctx_cancelled(op->base.ctx))
            return LEAT_ECANCELLED;
    }
    if (err)
        return err;
    op->peer_is_done = false;
    int yes = 1;
    if (op->config->options.flush_each)
        (void)setsockopt(op->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return LEAT_OK;
}

static leat_err pause_before_retry(socket_sink *op)
{
    int64_t end_ns = leati_clock_ns() + op->config->options.retry_delay_ms * 1000000;
    op->tries++;
    for (int64_t left_ns; (left_ns = end_ns - leati_clock_ns()) > 0;) {
        int64_t left_ms = left_ns / 1000000 + 1;
        (void)poll(NULL, 0, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
        if (leat_ctx_cancelled(op->base.ctx))
            return LEAT_ECANCELLED;
    }
    return LEAT_OK;
}

static leat_err connect_again(socket_sink *op)
{
    for (;;) {
        leat_err err = pause_before_retry(op);
        if (!err)
            err = dial(op);
        if (!err || err == LEAT_ECANCELLED)
            return err;
        if (!may_retry(op)) {
            char what[96];
            snprintf(
                what, sizeof what,
                "the connection was lost, and not made again in %" PRId32 " attempts: ", op->tries);
            return explain(op, err, what, op->dial.why);
        }
    }
}

// Drops what the server has sent: it may wait for that before it reads on, and closing a connection
// with unread bytes would make the system drop what is still to be sent.
static void drain(socket_sink *op)
{
    char dropped[DRAIN_BYTES];
    ssize_t got;
    while ((got = recv(op->fd, dropped, sizeof dropped, MSG_DONTWAIT)) > 0)
        ;
    op->peer_is_done |= got == 0;
}

// --- sending ---

// Sends what the system takes without waiting; 0 or an errno, EAGAIN when that was not all.
static int send_some(socket_sink *op, const char *data, size_t size, size_t *sent)
{
    while (*sent < size) {
        ssize_t taken = send(op->fd, data + *sent, size - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken < 0 && errno == EINTR)
            continue;
        if (taken < 0)
            return errno == EWOULDBLOCK ? EAGAIN : errno;
        *sent += (size_t)taken;
    }
    op->tries = 0;
    return 0;
}

static void wait_for_room(socket_sink *op)
{
    short events = op->peer_is_done ? POLLOUT : POLLOUT | POLLIN;
    struct pollfd one = {.fd = op->fd, .events = events};
    if (poll(&one, 1, POLL_MS) > 0 && (one.revents & POLLIN))
        drain(op);
}

// The connection was lost: what counts as sent is whole lines.
static leat_err recover(socket_sink *op, int error, const char *data, size_t *sent)
{
    close(op->fd);
    op->fd = -1;
    while (*sent > 0 && data[*sent - 1] != '\n')
        --*sent;
    // LEAT_EPIPE is for the program's own output, whose end is no failure to tell of.
    return may_retry(op) ? connect_again(op)
                         : explain(op, LEAT_EIO, "the connection was lost: ", strerror(error));
}

static leat_err send_waiting(socket_sink *op, int error, const char *data, size_t size,
                             size_t *sent)
{
    while (error) {
        if (leat_ctx_cancelled(op->base.ctx))
            return LEAT_ECANCELLED;
        if (error == EAGAIN) {
            wait_for_room(op);
        } else {
            leat_err err = recover(op, error, data, sent);
            if (err)
                return err;
        }
        error = send_some(op, data, size, sent);
    }
    return LEAT_OK;
}

static leat_err report(socket_sink *op, leat_err err)
{
    if (!err || err == LEAT_ECANCELLED)
        return err;
    return leati_ctx_error(op->base.ctx, err, "%s", op->why);
}

static leat_err sink_write(leat_operator *self, const char *data, size_t size)
{
    socket_sink *op = (socket_sink *)self;
    size_t sent = 0;
    int error = send_some(op, data, size, &sent);
    if (error == 0)
        return LEAT_OK;
    leat_blocking_begin(self->ctx);
    leat_err err = send_waiting(op, error, data, size, &sent);
    leat_blocking_end(self->ctx);
    return report(op, err);
}

// --- the operator ---

static size_t sink_format(leat_operator *self, const void *record, char *to, size_t size)
{
    socket_sink *op = (socket_sink *)self;
    return op->config->options.json ? leat_record_json(op->type, record, to, size)
                                    : leat_record_text(op->type, record, to, size);
}

static leat_err sink_open(leat_operator *self)
{
    socket_sink *op = (socket_sink *)self;
    leat_err err = leati_line_buffer_open(&op->lines);
    if (err)
        return err;
    leat_blocking_begin(self->ctx);
    err = dial(op);
    leat_blocking_end(self->ctx);
    return err ? report(op, explain(op, err, "", op->dial.why)) : LEAT_OK;
}

static leat_err sink_flush(leat_operator *self)
{
    return leati_line_buffer_flush(&((socket_sink *)self)->lines);
}

static leat_err sink_element(leat_operator *self, const void *record, leat_out *out)
{
    socket_sink *op = (socket_sink *)self;
    leat_err err = leati_line_buffer_put(&op->lines, record);
    return err || !op->config->options.flush_each ? err : sink_flush(self);
}

static leat_err sink_close(leat_operator *self)
{
    socket_sink *op = (socket_sink *)self;
    leat_err err = sink_flush(self);
    if (err)
        return err;
    (void)shutdown(op->fd, SHUT_WR);
    drain(op);
    return LEAT_OK;
}

static void sink_dispose(leat_operator *self)
{
    socket_sink *op = (socket_sink *)self;
    leati_dial_reset(&op->dial);
    if (op->fd >= 0)
        close(op->fd);
    leati_line_buffer_fini(&op->lines);
    leati_operator_dispose(self);
}

static const leat_operator_ops sink_ops = {
    .kind = "socket",
    .open = sink_open,
    .element = sink_element,
    .flush = sink_flush,
    .close = sink_close,
    .dispose = sink_dispose,
};

static leat_err sink_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    socket_sink *made = leati_operator_create(ctx, sizeof *made, &sink_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = factory->config;
    made->type = leat_ctx_in_type(ctx);
    made->fd = -1;
    leati_dial_init(&made->dial, made->config->host, made->config->port,
                    made->config->options.connect_timeout_ms);
    made->lines.owner = &made->base;
    made->lines.format = sink_format;
    made->lines.write = sink_write;
    *op = &made->base;
    return LEAT_OK;
}

leat_stream *leat_write_socket(leat_stream *in, const char *host, uint32_t port,
                               const leat_socket_sink_options *options)
{
    static const leat_socket_sink_options defaults;
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!options)
        options = &defaults;
    const char *why = leati_socket_fault(host, port, options->max_retries, options->retry_delay_ms,
                                         options->connect_timeout_ms);
    if (why)
        return leati_builder_fault_on(in, "leat_write_socket", why);
    sink_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->host = leati_env_copy(env, host);
    config->label = leati_socket_label(env, host, port);
    if (!config->host || !config->label)
        return leati_graph_inert(env);
    config->port = port;
    config->options = *options;
    config->options.retry_delay_ms = leati_socket_delay_ms(options->retry_delay_ms);
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "socket",
                                              .flags = LEATI_NODE_SINK,
                                              .parallelism = 1,
                                              .factory = {sink_create, config},
                                              .detail = config->label});
}
