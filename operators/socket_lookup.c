// SPDX-License-Identifier: Apache-2.0
// The look-up is shared by its owner and its thread; whoever leaves last frees it. Its memory comes
// from the default allocator, because it may outlive the job and all that belongs to it.
#include "operators/socket_lookup.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

struct leati_lookup {
    _Atomic int holders;
    int done_fd; // an eventfd, written when the rest may be read
    char *host;
    char service[8];
    // The thread's until `done`, then the owner's.
    _Atomic bool done;
    int result; // of getaddrinfo
    int number; // errno with EAI_SYSTEM
    struct addrinfo *addresses;
};

static int look_up(const char *host, const char *service, int flags, struct addrinfo **addresses)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    *addresses = NULL;
    return getaddrinfo(host, service, &hints, addresses);
}

struct addrinfo *leati_lookup_numeric(const char *host, uint32_t port)
{
    char service[16];
    struct addrinfo *addresses;
    snprintf(service, sizeof service, "%u", port);
    return look_up(host, service, AI_NUMERICHOST, &addresses) == 0 ? addresses : NULL;
}

static void release(leati_lookup *l)
{
    if (atomic_fetch_sub_explicit(&l->holders, 1, memory_order_acq_rel) > 1)
        return;
    if (l->addresses)
        freeaddrinfo(l->addresses);
    close(l->done_fd);
    leati_free(NULL, l->host);
    leati_free(NULL, l);
}

static void *lookup_main(void *arg)
{
    leati_lookup *l = arg;
    l->result = look_up(l->host, l->service, AI_ADDRCONFIG, &l->addresses);
    l->number = errno;
    // Matches the load in leati_lookup_result.
    atomic_store_explicit(&l->done, true, memory_order_release);
    uint64_t one = 1;
    ssize_t written = write(l->done_fd, &one, sizeof one);
    (void)written; // the first write to an eventfd cannot fail
    release(l);
    return NULL;
}

leat_err leati_lookup_start(const char *host, uint32_t port, leati_lookup **lookup)
{
    leati_lookup *l = leati_calloc(NULL, 1, sizeof *l);
    char *copy = leati_strdup(NULL, host);
    int fd = l && copy ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (fd < 0) {
        leat_err err = l && copy ? LEAT_EIO : LEAT_ENOMEM;
        leati_free(NULL, copy);
        leati_free(NULL, l);
        return err;
    }
    l->done_fd = fd;
    l->host = copy;
    snprintf(l->service, sizeof l->service, "%u", port);
    atomic_store_explicit(&l->holders, 2, memory_order_relaxed);
    pthread_t thread;
    leat_err err = leati_thread_start(&thread, "leat-lookup", lookup_main, l);
    if (err) {
        atomic_store_explicit(&l->holders, 1, memory_order_relaxed);
        release(l);
        return err;
    }
    pthread_detach(thread);
    *lookup = l;
    return LEAT_OK;
}

int leati_lookup_fd(const leati_lookup *l)
{
    return l->done_fd;
}

leat_err leati_lookup_result(leati_lookup *l, struct addrinfo **addresses, const char **why)
{
    if (!atomic_load_explicit(&l->done, memory_order_acquire))
        return LEAT_EAGAIN;
    if (l->result) {
        *why = l->result == EAI_SYSTEM ? strerror(l->number) : gai_strerror(l->result);
        return LEAT_ENOENT;
    }
    *addresses = l->addresses;
    l->addresses = NULL;
    return LEAT_OK;
}

void leati_lookup_leave(leati_lookup **lookup)
{
    if (*lookup)
        release(*lookup);
    *lookup = NULL;
}
