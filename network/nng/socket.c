// SPDX-License-Identifier: Apache-2.0
// The socket below an nng_stream: which one it is, and waiting for its bytes.
//
// nng reads for who waits on a thread of its own: the system wakes that one, which reads and wakes
// who waits. A reader that waits for its socket by itself, and only then asks nng for what is
// there, is woken once instead of twice, and no lock is held while it waits. nng does not tell the
// descriptor, but the ends of a socket say whose it is.
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "network/nng/connection_impl.h"

typedef struct at {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
} at;

typedef int (*end_of)(int fd, struct sockaddr *address, socklen_t *size);

// An end of a socket; false: it is none, or not connected.
static bool get_end(int fd, end_of which, at *to)
{
    memset(to, 0, sizeof *to);
    socklen_t size = sizeof *to;
    return which(fd, &to->any, &size) == 0;
}

void leati_socket_each(void (*visit)(void *user, int fd), void *user)
{
    DIR *files = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (files && (entry = readdir(files)) != NULL)
        if (entry->d_name[0] != '.')
            visit(user, (int)strtol(entry->d_name, NULL, 10));
    if (files)
        closedir(files);
}

bool leati_socket_is_called(int fd, bool other, const char *path)
{
    at end;
    return get_end(fd, other ? getpeername : getsockname, &end) && end.any.sa_family == AF_UNIX &&
           strncmp(end.un.sun_path, path, sizeof end.un.sun_path) == 0;
}

// --- which one it is ---

// Whether that is an address of nng, which has its numbers in the order of the network.
static bool is_same(const at *end, const nng_sockaddr *address)
{
    if (end->any.sa_family == AF_INET)
        return address->s_family == NNG_AF_INET && end->in.sin_port == address->s_in.sa_port &&
               end->in.sin_addr.s_addr == address->s_in.sa_addr;
    return end->any.sa_family == AF_INET6 && address->s_family == NNG_AF_INET6 &&
           end->in6.sin6_port == address->s_in6.sa_port &&
           memcmp(&end->in6.sin6_addr, address->s_in6.sa_addr, sizeof end->in6.sin6_addr) == 0;
}

typedef struct search {
    nng_sockaddr here, there;
    uint64_t peer; // the process at the other end of a socket file
    int found;
    unsigned count;
} search;

// Both ends of a socket file have its path, and who has dialled has no name: so what tells two
// apart is the process at the other end.
static bool is_near(const search *s, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    const char *path = s->here.s_ipc.sa_path;
    at end;
    return (leati_socket_is_called(fd, false, path) || leati_socket_is_called(fd, true, path)) &&
           get_end(fd, getpeername, &end) && // it is not the one that listens
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (uint64_t)peer.pid == s->peer;
}

static bool is_between(const search *s, int fd)
{
    at end;
    return get_end(fd, getsockname, &end) && is_same(&end, &s->here) &&
           get_end(fd, getpeername, &end) && is_same(&end, &s->there);
}

static void look_at(void *user, int fd)
{
    search *s = user;
    if (s->here.s_family == NNG_AF_IPC ? is_near(s, fd) : is_between(s, fd)) {
        s->found = fd;
        s->count++;
    }
}

int leati_socket_of(nng_stream *stream)
{
    search s = {.count = 0};
    if (nng_stream_get_addr(stream, NNG_OPT_LOCADDR, &s.here) != 0 ||
        nng_stream_get_addr(stream, NNG_OPT_REMADDR, &s.there) != 0)
        return -1;
    if (s.here.s_family == NNG_AF_IPC &&
        nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_PID, &s.peer) != 0)
        return -1;
    leati_socket_each(look_at, &s);
    return s.count == 1 ? s.found : -1;
}

// --- waiting ---

// A sleep that ends so soon is not worth it: to be woken takes as long, and the system likes to
// wake who sleeps on the processor of who has brought the bytes, where the two then take turns. But
// who has had little to do since it waited last is not to burn a processor for that.
enum { SOON_NS = 30000, WORTH = 3 };

// Whether something comes until then. Whoever else can run on this processor does.
static bool look_out(struct pollfd *bytes, int64_t until_ns)
{
    do {
        if (poll(bytes, 1, 0) != 0)
            return true;
        sched_yield();
    } while (leati_clock_ns() < until_ns);
    return false;
}

void leati_socket_await(int fd, leati_waits *waits)
{
    struct pollfd bytes = {.fd = fd, .events = POLLIN};
    int64_t start_ns = leati_clock_ns(), soon_ns = (start_ns - waits->over_ns) * WORTH;
    if (soon_ns > SOON_NS)
        soon_ns = SOON_NS;
    if (!waits->short_ones || !look_out(&bytes, start_ns + soon_ns))
        // An interruption, or an error, is for nng to find out.
        (void)poll(&bytes, 1, LEATI_SOCKET_PATIENCE_MS);
    waits->over_ns = leati_clock_ns();
    waits->short_ones = waits->over_ns - start_ns < soon_ns;
}
