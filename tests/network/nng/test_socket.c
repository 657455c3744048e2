// SPDX-License-Identifier: Apache-2.0
// The socket below a stream of nng: it is the right one, or none; and who waits there wakes up.
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "network/nng/connection_impl.h"

enum { PATIENCE_MS = 20000, PAUSE_US = 50000 };

TestSuite(socket, .timeout = 100);

// --- streams, of which each has an aio ---

typedef struct end {
    nng_aio *aio;
    nng_stream *stream;
} end;

static int finish(const end *e)
{
    nng_aio_wait(e->aio);
    return nng_aio_result(e->aio);
}

static void end_init(end *e)
{
    cr_assert(nng_aio_alloc(&e->aio, NULL, NULL) == 0);
    nng_aio_set_timeout(e->aio, PATIENCE_MS);
}

static void take_stream(end *e)
{
    int error = finish(e);
    cr_assert(error == 0, "%s", nng_strerror(error));
    e->stream = nng_aio_get_output(e->aio, 0);
}

static void end_close(end *e)
{
    nng_stream_free(e->stream);
    nng_aio_free(e->aio);
}

static nng_stream_listener *listen_at(const char *address)
{
    nng_stream_listener *listener;
    cr_assert(nng_stream_listener_alloc(&listener, address) == 0);
    int error = nng_stream_listener_listen(listener);
    cr_assert(error == 0, "%s: %s", address, nng_strerror(error));
    return listener;
}

static void accept_from(nng_stream_listener *listener, end *to)
{
    end_init(to);
    nng_stream_listener_accept(listener, to->aio);
    take_stream(to);
}

static void dial(const char *address, end *to)
{
    nng_stream_dialer *dialer;
    end_init(to);
    cr_assert(nng_stream_dialer_alloc(&dialer, address) == 0);
    nng_stream_dialer_dial(dialer, to->aio);
    take_stream(to);
    nng_stream_dialer_free(dialer);
}

// Two ends in this process, over `listener` at that port.
static void join(nng_stream_listener *listener, const char *address, end ends[2])
{
    end_init(&ends[1]);
    nng_stream_listener_accept(listener, ends[1].aio);
    dial(address, &ends[0]);
    take_stream(&ends[1]);
}

static nng_stream_listener *listen_at_any_port(const char *host, char address[64])
{
    int port;
    snprintf(address, 64, "tcp://%s:0", host);
    nng_stream_listener *listener = listen_at(address);
    cr_assert(nng_stream_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) == 0);
    snprintf(address, 64, "tcp://%s:%d", host, port);
    return listener;
}

// What is written to the one's socket is what the other one's stream receives.
static bool is_socket_of(int fd, char sign, const end *other)
{
    char got = 0;
    nng_iov iov = {.iov_buf = &got, .iov_len = 1};
    if (fd < 0 || send(fd, &sign, 1, MSG_NOSIGNAL) != 1)
        return false;
    nng_aio_set_iov(other->aio, 1, &iov);
    nng_stream_recv(other->stream, other->aio);
    return finish(other) == 0 && got == sign;
}

// --- which one it is ---

static void find_among_many(const char *host)
{
    enum { MANY = 20 };
    end ends[MANY][2];
    char address[64];
    nng_stream_listener *listener = listen_at_any_port(host, address);
    for (int i = 0; i < MANY; i++)
        join(listener, address, ends[i]);
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 2; k++)
            cr_expect(
                is_socket_of(leati_socket_of(ends[i][k].stream), (char)('a' + i), &ends[i][1 - k]));
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 2; k++)
            end_close(&ends[i][k]);
    nng_stream_listener_free(listener);
}

Test(socket, is_found_among_many_of_both_kinds)
{
    find_among_many("127.0.0.1");
    find_among_many("[::1]");
}

// Both ends of the one are in this process, so there is no telling them apart.
Test(socket, of_a_file_is_not_guessed)
{
    char folder[] = "/tmp/leat-socket-XXXXXX", address[64];
    end ends[2];
    cr_assert(mkdtemp(folder));
    snprintf(address, sizeof address, "ipc://%s/s", folder);
    nng_stream_listener *listener = listen_at(address);
    join(listener, address, ends);
    cr_expect(leati_socket_of(ends[0].stream) == -1);
    cr_expect(leati_socket_of(ends[1].stream) == -1);
    end_close(&ends[0]);
    end_close(&ends[1]);
    nng_stream_listener_free(listener);
    rmdir(folder);
}

// The other process: dials `count` times, says of the last one by its status whether the socket is
// the right one, and keeps all of them open until it is told to end.
static pid_t start_dialing(const char *address, int count, const int until[2])
{
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid > 0)
        return pid;
    end ends[2];
    char byte;
    close(until[1]);
    alarm(60);
    while (access(address + sizeof "ipc://" - 1, F_OK) != 0)
        usleep(1000);
    for (int i = 0; i < count; i++)
        dial(address, &ends[i]);
    int fd = leati_socket_of(ends[count - 1].stream);
    if (fd >= 0)
        (void)!send(fd, "d", 1, MSG_NOSIGNAL);
    (void)!read(until[0], &byte, 1);
    _exit(fd >= 0);
}

// Over a socket file from another process: `count` connections at a time.
static void find_in_file(int count)
{
    char folder[] = "/tmp/leat-socket-XXXXXX", address[64], path[40];
    end ends[2];
    int until[2], status;
    cr_assert(mkdtemp(folder) && pipe(until) == 0);
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(address, sizeof address, "ipc://%s", path);
    pid_t other = start_dialing(address, count, until);
    nng_stream_listener *listener = listen_at(address);
    for (int i = 0; i < count; i++)
        accept_from(listener, &ends[i]);
    int fd = leati_socket_of(ends[0].stream);
    cr_expect_eq(fd >= 0, count == 1);
    if (count == 1) {
        // It is connected to the process that has sent this.
        struct pollfd bytes = {.fd = fd, .events = POLLIN};
        char got = 0;
        cr_expect(poll(&bytes, 1, PATIENCE_MS) == 1 && read(fd, &got, 1) == 1 && got == 'd');
    }
    close(until[1]);
    cr_assert(waitpid(other, &status, 0) == other);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == (count == 1), "status %x", status);
    for (int i = 0; i < count; i++)
        end_close(&ends[i]);
    nng_stream_listener_free(listener);
    close(until[0]);
    rmdir(folder);
}

Test(socket, of_a_file_is_found_by_the_other_process)
{
    find_in_file(1);
}

Test(socket, of_two_to_one_process_none_is_taken)
{
    find_in_file(2);
}

// --- waiting ---

typedef struct waiting {
    int fds[2];
    leati_waits waits;
    _Atomic bool over;
} waiting;

static void *wait_there(void *arg)
{
    waiting *w = arg;
    leati_socket_await(w->fds[0], &w->waits);
    atomic_store(&w->over, true);
    return NULL;
}

typedef enum event { BYTES, END, SHUT_DOWN } event;

static void happen(const waiting *w, event what)
{
    if (what == BYTES)
        cr_assert(write(w->fds[1], "x", 1) == 1);
    else if (what == END)
        close(w->fds[1]);
    else
        shutdown(w->fds[0], SHUT_RD);
}

// The pause is longer than who waits looks before it sleeps, and shorter than it sleeps.
static void wait_for(event what, bool before, bool looks)
{
    waiting w = {.waits.short_ones = looks};
    pthread_t thread;
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, w.fds) == 0);
    if (before)
        happen(&w, what);
    cr_assert(pthread_create(&thread, NULL, wait_there, &w) == 0);
    if (!before) {
        usleep(PAUSE_US);
        cr_expect_not(atomic_load(&w.over));
        happen(&w, what);
    }
    pthread_join(thread, NULL);
    cr_expect(before || !w.waits.short_ones);
    cr_expect(w.waits.over_ns > 0);
    close(w.fds[0]);
    if (what != END)
        close(w.fds[1]);
}

Test(socket, wakes_who_waits)
{
    for (event what = BYTES; what <= SHUT_DOWN; what++)
        for (int i = 0; i < 4; i++)
            wait_for(what, i & 1, i & 2);
}
