// SPDX-License-Identifier: Apache-2.0
#include "operators/socket_dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operators/socket_lookup.h"

void leati_dial_init(leati_dial *d, const char *host, uint32_t port, int64_t timeout_ms)
{
    *d = (leati_dial){
        .host = host, .port = port, .timeout_ms = timeout_ms, .fd = -1, .deadline_ns = INT64_MAX};
}

static void set_deadline(leati_dial *d, int64_t now_ns)
{
    int64_t delay_ns;
    // More than there is time for is for ever.
    if (d->timeout_ms == 0 || __builtin_mul_overflow(d->timeout_ms, 1000000, &delay_ns) ||
        __builtin_add_overflow(now_ns, delay_ns, &d->deadline_ns))
        d->deadline_ns = INT64_MAX;
}

void leati_dial_reset(leati_dial *d)
{
    leati_lookup_leave(&d->lookup);
    if (d->addresses)
        freeaddrinfo(d->addresses);
    if (d->fd >= 0)
        close(d->fd);
    d->addresses = d->next = NULL;
    d->fd = -1;
}

static leat_err fail(leati_dial *d, leat_err err, const char *what, const char *why)
{
    snprintf(d->why, sizeof d->why, "%s: %s", what, why);
    leati_dial_reset(d);
    return err;
}

// --- the addresses ---

static leat_err find_addresses(leati_dial *d, int64_t now_ns, struct pollfd *wait)
{
    if (!d->lookup) {
        d->next = d->addresses = leati_lookup_numeric(d->host, d->port);
        if (d->addresses)
            return LEAT_OK;
        leat_err err = leati_lookup_start(d->host, d->port, &d->lookup);
        if (err)
            return fail(d, err, "cannot look up the host", leat_err_message(err));
        set_deadline(d, now_ns);
    }
    const char *why;
    leat_err err = leati_lookup_result(d->lookup, &d->addresses, &why);
    if (err == LEAT_EAGAIN && now_ns >= d->deadline_ns)
        return fail(d, LEAT_EIO, "cannot look up the host", strerror(ETIMEDOUT));
    if (err == LEAT_EAGAIN)
        *wait = (struct pollfd){.fd = leati_lookup_fd(d->lookup), .events = POLLIN};
    else if (err)
        return fail(d, err, "cannot look up the host", why);
    else
        leati_lookup_leave(&d->lookup);
    d->next = d->addresses;
    return err;
}

// --- the connection ---

// A client that asks for a port of this host which nobody listens on may be given that very port as
// its own, and is then connected to itself.
static bool is_own_end(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_size = sizeof own, peer_size = sizeof peer;
    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && own_size == peer_size &&
           memcmp(&own, &peer, own_size) == 0;
}

// 0 when the connection stands, EINPROGRESS, or why it does not.
static int connection_state(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    if (poll(&one, 1, 0) == 0)
        return EINPROGRESS;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return errno;
    return error == 0 && is_own_end(fd) ? ECONNREFUSED : error;
}

// Begins to connect to an address; as connection_state.
static int begin(leati_dial *d, const struct addrinfo *address)
{
    d->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                   address->ai_protocol);
    if (d->fd < 0)
        return errno;
    if (connect(d->fd, address->ai_addr, address->ai_addrlen) == 0)
        return is_own_end(d->fd) ? ECONNREFUSED : 0;
    return errno == EINTR ? EINPROGRESS : errno;
}

leat_err leati_dial_step(leati_dial *d, int64_t now_ns, int *fd, struct pollfd *wait)
{
    if (!d->addresses) {
        leat_err err = find_addresses(d, now_ns, wait);
        if (err)
            return err;
    }
    int state = d->fd >= 0 ? connection_state(d->fd) : ENOENT;
    if (state == EINPROGRESS && now_ns >= d->deadline_ns)
        state = ETIMEDOUT;
    while (state != 0 && state != EINPROGRESS) {
        if (d->fd >= 0)
            close(d->fd);
        d->fd = -1;
        if (!d->next)
            return fail(d, LEAT_EIO, "cannot connect", strerror(state));
        state = begin(d, d->next);
        set_deadline(d, now_ns);
        d->next = d->next->ai_next;
    }
    if (state == EINPROGRESS) {
        *wait = (struct pollfd){.fd = d->fd, .events = POLLOUT};
        return LEAT_EAGAIN;
    }
    *fd = d->fd;
    d->fd = -1;
    leati_dial_reset(d);
    return LEAT_OK;
}
