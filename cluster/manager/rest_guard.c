// SPDX-License-Identifier: Apache-2.0
// Connections whose next request does not come to the end of its headers, or, where nobody has
// shown who he is, to its end. The library's own time limit is for silence, and a client that sends
// a byte now and then is not silent: it would hold its connection and thread for ever.
//
// A thread looks through the connections that owe a request and shuts down those that owe it for
// too long; their own threads then find them closed and clean up. When there are many, who connects
// has the one shut down that has owed for longest, so that there is always room for one more. A
// connection leaves the list before its descriptor is closed.
#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/rest_impl.h"

#include <sys/socket.h>

enum { LOOK_MS = 5000 };

struct leati_rest_guest {
    leati_rest *rest;
    int fd;
    bool served;      // a request is being answered
    bool shut;        // it was told to go
    int64_t since_ns; // if it is not served: since when it owes a request
    struct leati_rest_guest *next, **link;
};

static void owes(leati_rest_guest *guest, int64_t now_ns)
{
    pthread_mutex_lock(&guest->rest->guard_lock);
    guest->served = false;
    guest->since_ns = now_ns;
    pthread_mutex_unlock(&guest->rest->guard_lock);
}

static void shut_locked(leati_rest_guest *guest)
{
    shutdown(guest->fd, SHUT_RDWR);
    guest->shut = true;
}

static void make_room_locked(leati_rest *rest)
{
    leati_rest_guest *oldest = NULL;
    if (rest->guest_count < rest->crowd)
        return;
    for (leati_rest_guest *guest = rest->guests; guest; guest = guest->next)
        if (!guest->served && !guest->shut && (!oldest || guest->since_ns < oldest->since_ns))
            oldest = guest;
    if (oldest)
        shut_locked(oldest);
}

static void arrive(leati_rest *rest, struct MHD_Connection *connection, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    leati_rest_guest *guest = leati_calloc(rest->manager->allocator, 1, sizeof *guest);
    *context = guest;
    if (!guest || !info) {
        leati_free(rest->manager->allocator, guest);
        *context = NULL; // it is served unwatched
        return;
    }
    guest->rest = rest;
    guest->fd = info->connect_fd;
    guest->since_ns = leati_clock_ns();
    pthread_mutex_lock(&rest->guard_lock);
    make_room_locked(rest);
    rest->guest_count++;
    guest->next = rest->guests;
    guest->link = &rest->guests;
    if (guest->next)
        guest->next->link = &guest->next;
    rest->guests = guest;
    pthread_mutex_unlock(&rest->guard_lock);
}

static void leave(leati_rest_guest *guest)
{
    leati_rest *rest = guest->rest;
    pthread_mutex_lock(&rest->guard_lock);
    rest->guest_count--;
    *guest->link = guest->next;
    if (guest->next)
        guest->next->link = guest->link;
    pthread_mutex_unlock(&rest->guard_lock);
    leati_free(rest->manager->allocator, guest);
}

void leati_rest_guard_connection(void *user, struct MHD_Connection *connection, void **context,
                                 enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        arrive(user, connection, context);
    } else if (*context) {
        leave(*context);
        *context = NULL;
    }
}

static leati_rest_guest *guest_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void leati_rest_guard_request(struct MHD_Connection *connection, bool begins)
{
    leati_rest_guest *guest = guest_of(connection);
    if (!guest)
        return;
    if (!begins) {
        owes(guest, leati_clock_ns());
        return;
    }
    pthread_mutex_lock(&guest->rest->guard_lock);
    guest->served = true;
    pthread_mutex_unlock(&guest->rest->guard_lock);
}

uint32_t leati_rest_guard_sweep(leati_rest *rest, int64_t now_ns)
{
    uint32_t closed = 0;
    pthread_mutex_lock(&rest->guard_lock);
    for (leati_rest_guest *guest = rest->guests; guest; guest = guest->next) {
        if (guest->served || now_ns - guest->since_ns < LEATI_REST_HEADERS_MS * INT64_C(1000000))
            continue;
        shut_locked(guest);
        closed++;
    }
    pthread_mutex_unlock(&rest->guard_lock);
    return closed;
}

static void *watch(void *arg)
{
    leati_rest *rest = arg;
    while (!atomic_load_explicit(&rest->guard_ends, memory_order_acquire)) {
        leati_park_for(&rest->guard_parker, LOOK_MS);
        (void)leati_rest_guard_sweep(rest, leati_clock_ns());
    }
    return NULL;
}

leat_err leati_rest_guard_start(leati_rest *rest)
{
    pthread_mutex_init(&rest->guard_lock, NULL);
    leat_err err = leati_thread_start(&rest->guard, "leat-rest-guard", watch, rest);
    if (err != LEAT_OK)
        pthread_mutex_destroy(&rest->guard_lock);
    return err;
}

// Connections may still leave.
void leati_rest_guard_stop(leati_rest *rest)
{
    // Pairs with the load in watch.
    atomic_store_explicit(&rest->guard_ends, true, memory_order_release);
    leati_unpark(&rest->guard_parker);
    pthread_join(rest->guard, NULL);
}
