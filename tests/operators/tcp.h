// SPDX-License-Identifier: Apache-2.0
// The other end of a socket source or sink: servers on ports that the system chooses.
#ifndef LEATI_TESTS_OPERATORS_TCP_H
#define LEATI_TESTS_OPERATORS_TCP_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strbuf.h"

// Binds to the loopback address, of IPv6 when `six`, at `*port`; 0 is replaced by the port found.
// -1 when there is no such network.
static inline int tcp_bind(bool six, uint32_t *port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)*port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)*port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *address = six ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t size = six ? sizeof v6 : sizeof v4;
    int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, address, size) != 0) {
        close(fd);
        return -1;
    }
    cr_assert_eq(getsockname(fd, address, &size), 0);
    *port = ntohs(six ? v6.sin6_port : v4.sin_port);
    return fd;
}

static inline int tcp_listen(uint32_t *port)
{
    int fd = tcp_bind(false, port);
    cr_assert(fd >= 0 && listen(fd, 16) == 0);
    return fd;
}

// A server that answers nobody any more: its queue is full, so that whoever else connects waits.
// `peers` keep it full.
enum { TCP_DEAF_PEERS = 8 };
static inline int tcp_deaf(uint32_t *port, int peers[TCP_DEAF_PEERS])
{
    int fd = tcp_bind(false, port);
    cr_assert(fd >= 0 && listen(fd, 0) == 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)*port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < TCP_DEAF_PEERS; i++) {
        peers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        cr_assert(peers[i] >= 0);
        int result = connect(peers[i], (struct sockaddr *)&address, sizeof address);
        cr_assert(result == 0 || errno == EINPROGRESS);
    }
    return fd;
}

static inline int tcp_accept(int fd)
{
    int peer;
    do
        peer = accept(fd, NULL, NULL);
    while (peer < 0 && errno == EINTR);
    cr_assert(peer >= 0, "%s", strerror(errno));
    return peer;
}

// False when the peer has gone.
static inline bool tcp_send(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        data += sent;
        size -= (size_t)sent;
    }
    return true;
}

static inline void tcp_say(int fd, const char *text)
{
    cr_assert(tcp_send(fd, text, strlen(text)));
}

// What comes until the end, or until `most` bytes have come.
static inline void tcp_hear(int fd, leati_strbuf *to, size_t most)
{
    char data[4096];
    size_t total = 0;
    ssize_t got = 1;
    while (total < most && got > 0) {
        size_t left = most - total;
        got = recv(fd, data, left < sizeof data ? left : sizeof data, 0);
        if (got > 0) {
            leati_strbuf_append(to, data, (size_t)got);
            total += (size_t)got;
        }
    }
}

// Ends the connection as a crash of the peer's machine does.
static inline void tcp_reset(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static inline pthread_t tcp_thread(void *(*main_fn)(void *), void *arg)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, main_fn, arg), 0);
    return thread;
}

#endif
