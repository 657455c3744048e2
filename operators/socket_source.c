// SPDX-License-Identifier: Apache-2.0
// leat_read_socket: what a server sends, taken apart at a delimiter.
//
// The source is in one of four states, and in each waits for one thing: the dial's descriptor, the
// connection, a time, or nothing. Cancelling wakes the task, so that no wait need look for it.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "leat/socket.h"
#include "operators/builder.h"
#include "operators/delimited.h"
#include "operators/env_copy.h"
#include "operators/socket_dial.h"
#include "operators/socket_options.h"
#include "runtime/context.h"

// One read, and the bytes of records after which a turn ends although there are more.
enum { READ_BYTES = 128 * 1024, TURN_BYTES = 256 * 1024 };

typedef struct source_config {
    const char *host, *label, *delimiter;
    uint32_t port;
    int32_t max_retries;
    int64_t retry_delay_ms, connect_timeout_ms;
} source_config;

typedef enum source_state { DIALING, READING, PAUSING, ENDED } source_state;

typedef struct socket_source {
    leat_operator base;
    const source_config *config;
    source_state state;
    leati_dial dial;
    int fd;          // READING
    int64_t dial_ns; // PAUSING: when that is over
    int epoll_fd;    // becomes readable when a descriptor is writable, or -1
    int32_t tries;   // to connect again since records have passed
    bool was_connected;
    bool rest_given;
    size_t most_bytes; // of a record
    leati_delimited buffer;
} socket_source;

static leat_err system_error(socket_source *op, const char *what)
{
    return leati_ctx_error(op->base.ctx, LEAT_EIO, "%s: %s: %s", op->config->label, what,
                           strerror(errno));
}

// --- waiting ---

// The runtime watches for reading only. An epoll descriptor that watches for writing is readable
// when there is room.
static leat_err await_writable(socket_source *op, int fd)
{
    struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT};
    if (op->epoll_fd < 0)
        op->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (op->epoll_fd < 0)
        return system_error(op, "waiting for the connection");
    // The descriptor is known already when the task was woken for another reason.
    if (epoll_ctl(op->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 &&
        (errno != EEXIST || epoll_ctl(op->epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0))
        return system_error(op, "waiting for the connection");
    return leat_ctx_wait_readable(op->base.ctx, op->epoll_fd);
}

static leat_err pause_before_retry(socket_source *op)
{
    int64_t delay_ns;
    // More than there is time for is for ever.
    if (__builtin_mul_overflow(op->config->retry_delay_ms, 1000000, &delay_ns) ||
        __builtin_add_overflow(leat_ctx_now_ns(op->base.ctx), delay_ns, &op->dial_ns))
        op->dial_ns = INT64_MAX;
    op->tries++;
    op->state = PAUSING;
    return LEAT_OK;
}

// --- the states ---

static bool may_retry(const socket_source *op)
{
    return op->config->max_retries == LEAT_RETRY_FOR_EVER || op->tries < op->config->max_retries;
}

static leat_err go_on_dialing(socket_source *op, leat_poll *state)
{
    struct pollfd wait;
    leat_err err = leati_dial_step(&op->dial, leat_ctx_now_ns(op->base.ctx), &op->fd, &wait);
    if (err == LEAT_OK) {
        int yes = 1;
        // So that a server which has vanished is noticed in the end.
        (void)setsockopt(op->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
        if (op->epoll_fd >= 0)
            (void)epoll_ctl(op->epoll_fd, EPOLL_CTL_DEL, op->fd, NULL);
        op->was_connected = true;
        op->state = READING;
        return LEAT_OK;
    }
    // Without a timeout, and when this is over, INT64_MAX takes back the wake-up.
    leat_ctx_wake_at(op->base.ctx, err == LEAT_EAGAIN ? op->dial.deadline_ns : INT64_MAX);
    if (err == LEAT_EAGAIN) {
        *state = LEAT_POLL_WAIT;
        return wait.events == POLLIN ? leat_ctx_wait_readable(op->base.ctx, wait.fd)
                                     : await_writable(op, wait.fd);
    }
    if (!op->was_connected)
        return leati_ctx_error(op->base.ctx, err, "%s: %s", op->config->label, op->dial.why);
    if (may_retry(op))
        return pause_before_retry(op);
    return leati_ctx_error(op->base.ctx, err,
                           "%s: the connection was lost, and not made again in %" PRId32
                           " attempts: %s",
                           op->config->label, op->tries, op->dial.why);
}

// The connection has come to its end, in good order when `error` is 0.
static leat_err lose_connection(socket_source *op, int error)
{
    close(op->fd);
    op->fd = -1;
    if (may_retry(op))
        return pause_before_retry(op);
    if (error)
        return leati_ctx_error(op->base.ctx, LEAT_EIO, "%s: the connection was lost: %s",
                               op->config->label, strerror(error));
    op->state = ENDED;
    return LEAT_OK;
}

static leat_err read_some(socket_source *op, leat_poll *state)
{
    if (leati_delimited_pending(&op->buffer) > op->most_bytes)
        return leati_ctx_error(op->base.ctx, LEAT_ETOOBIG,
                               "%s: a record is longer than %zu bytes (record.max-size)",
                               op->config->label, op->most_bytes);
    char *to = leati_delimited_room(&op->buffer, READ_BYTES);
    if (!to)
        return leati_ctx_error(op->base.ctx, LEAT_ENOMEM, "%s: no memory for a record",
                               op->config->label);
    ssize_t got = recv(op->fd, to, READ_BYTES, MSG_DONTWAIT);
    if (got > 0) {
        op->tries = 0;
        leati_delimited_add(&op->buffer, (size_t)got);
        return LEAT_OK;
    }
    if (got == 0)
        return lose_connection(op, 0);
    if (errno == EINTR)
        return LEAT_OK;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return lose_connection(op, errno);
    *state = LEAT_POLL_WAIT;
    return leat_ctx_wait_readable(op->base.ctx, op->fd);
}

static void go_on_pausing(socket_source *op, leat_poll *state)
{
    if (leat_ctx_now_ns(op->base.ctx) >= op->dial_ns) {
        op->state = DIALING;
        return;
    }
    *state = LEAT_POLL_WAIT;
    leat_ctx_wake_at(op->base.ctx, op->dial_ns);
}

static leat_err go_on(socket_source *op, leat_poll *state)
{
    switch (op->state) {
    case DIALING:
        return go_on_dialing(op, state);
    case READING:
        return read_some(op, state);
    case PAUSING:
        go_on_pausing(op, state);
        return LEAT_OK;
    default:
        *state = LEAT_POLL_END;
        return LEAT_OK;
    }
}

// --- the operator ---

static bool next_record(socket_source *op, leat_str *record)
{
    return leati_delimited_next(&op->buffer, record) ||
           (op->state == ENDED && leati_delimited_rest(&op->buffer, record));
}

static leat_err source_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                            leat_poll *state)
{
    socket_source *op = (socket_source *)self;
    leat_err err = LEAT_OK;
    uint32_t records = 0;
    size_t bytes = 0;
    bool has_read = false;
    *state = LEAT_POLL_MORE;
    while (!err && *state == LEAT_POLL_MORE && records < max_records && bytes < TURN_BYTES) {
        leat_str record;
        if (next_record(op, &record)) {
            records++;
            bytes += record.size + 1;
            err = leat_collect(out, &record);
            if (!leat_out_available(self->ctx))
                break;
        } else if (has_read) {
            break;
        } else {
            has_read = op->state == READING;
            err = go_on(op, state);
        }
    }
    leat_ctx_count_in(self->ctx, records, bytes);
    return err;
}

static void source_dispose(leat_operator *self)
{
    socket_source *op = (socket_source *)self;
    int fds[] = {op->fd, op->epoll_fd};
    leati_dial_reset(&op->dial);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    leati_delimited_fini(&op->buffer);
    leati_operator_dispose(self);
}

static const leat_operator_ops source_ops = {
    .kind = "source: socket",
    .poll = source_poll,
    .dispose = source_dispose,
};

static leat_err source_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const source_config *config = factory->config;
    socket_source *made = leati_operator_create(ctx, sizeof *made, &source_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->config = config;
    made->fd = made->epoll_fd = -1;
    made->most_bytes =
        (size_t)leati_config_get(leati_ctx_config(ctx), LEATI_CONFIG_MAX_RECORD_SIZE);
    leati_dial_init(&made->dial, config->host, config->port, config->connect_timeout_ms);
    leati_delimited_init(&made->buffer, leat_ctx_allocator(ctx), config->delimiter);
    *op = &made->base;
    return LEAT_OK;
}

leat_stream *leat_read_socket(leat_env *env, const char *host, uint32_t port,
                              const leat_socket_source_options *options)
{
    static const leat_socket_source_options defaults;
    static const char call[] = "leat_read_socket";
    if (!options)
        options = &defaults;
    const char *why = leati_socket_fault(host, port, options->max_retries, options->retry_delay_ms,
                                         options->connect_timeout_ms);
    if (options->delimiter && !*options->delimiter)
        why = "the delimiter is empty";
    if (why)
        return leati_builder_fault(env, call, why);
    source_config *config = env ? leat_env_alloc(env, sizeof *config) : NULL;
    if (!config)
        return leati_graph_inert(env);
    config->host = leati_env_copy(env, host);
    config->label = leati_socket_label(env, host, port);
    config->delimiter = leati_env_copy(env, options->delimiter ? options->delimiter : "\n");
    if (!config->host || !config->label || !config->delimiter)
        return leati_graph_inert(env);
    config->port = port;
    config->max_retries = options->max_retries;
    config->connect_timeout_ms = options->connect_timeout_ms;
    config->retry_delay_ms = leati_socket_delay_ms(options->retry_delay_ms);
    return leati_graph_add(env, NULL,
                           &(leati_node_spec){.kind = "source: socket",
                                              .flags = LEATI_NODE_SOURCE | LEATI_NODE_NON_PARALLEL,
                                              .out_type = leat_type_scalar(LEAT_STR),
                                              .parallelism = 1,
                                              .factory = {source_create, config},
                                              .detail = config->label});
}
