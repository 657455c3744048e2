// SPDX-License-Identifier: Apache-2.0
// Ticks are few (one for each buffer timeout that a job uses), so they stand in a plain list. Both
// kinds of callbacks run under the lock: they are short, take no lock but a run queue's, and so
// removal needs no further hand-shake.
#include "runtime/service.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

enum { EVENTS_AT_ONCE = 16 };

struct leati_service {
    const leat_allocator *allocator;
    pthread_t thread;
    bool started;
    int epoll_fd;
    int wake_fd; // readable: the list of ticks has changed, or stop
    pthread_mutex_t lock;
    // Under the lock.
    leati_tick *ticks;
    leati_watch *watches; // the armed ones
    bool stopping;
};

static void nudge(leati_service *s)
{
    uint64_t one = 1;
    // The counter cannot overflow: the service reads it at every nudge.
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written;
}

// Runs what is due and returns the wait until the next tick in ms, -1 for none.
static int run_ticks_locked(leati_service *s)
{
    int64_t now = leati_clock_ns();
    int64_t earliest = INT64_MAX;
    for (leati_tick *tick = s->ticks; tick; tick = tick->next) {
        if (tick->next_ns <= now) {
            tick->run(tick);
            tick->next_ns = now + tick->interval_ns;
        }
        if (tick->next_ns < earliest)
            earliest = tick->next_ns;
    }
    if (earliest == INT64_MAX)
        return -1;
    int64_t wait_ms = (earliest - now + 999999) / 1000000;
    return wait_ms > 60000 ? 60000 : (int)wait_ms;
}

static void disarm_locked(leati_service *s, leati_watch *watch)
{
    epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->armed = false;
    for (leati_watch **at = &s->watches; *at; at = &(*at)->next)
        if (*at == watch) {
            *at = watch->next;
            return;
        }
}

// Finds the watch by its descriptor, since the event may be older than the latest changes to the
// list.
static void descriptor_ready_locked(leati_service *s, int fd)
{
    for (leati_watch *watch = s->watches; watch; watch = watch->next)
        if (watch->fd == fd) {
            disarm_locked(s, watch);
            watch->run(watch);
            return;
        }
}

static void *service_main(void *arg)
{
    leati_service *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        int wait_ms = run_ticks_locked(s);
        pthread_mutex_unlock(&s->lock);
        struct epoll_event events[EVENTS_AT_ONCE];
        int count = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, wait_ms);
        pthread_mutex_lock(&s->lock);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd != s->wake_fd) {
                descriptor_ready_locked(s, events[i].data.fd);
                continue;
            }
            uint64_t nudges;
            ssize_t got = read(s->wake_fd, &nudges, sizeof nudges);
            (void)got;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

leat_err leati_service_create(const leat_allocator *allocator, leati_service **service)
{
    leati_service *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = allocator;
    pthread_mutex_init(&s->lock, NULL);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = s->wake_fd};
    leat_err err = LEAT_OK;
    if (s->epoll_fd < 0 || s->wake_fd < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->wake_fd, &event) != 0)
        err = LEAT_EIO;
    if (!err)
        err = leati_thread_start(&s->thread, "leat-service", service_main, s);
    if (err) {
        leati_service_destroy(&s);
        return err;
    }
    s->started = true;
    *service = s;
    return LEAT_OK;
}

void leati_service_destroy(leati_service **service)
{
    leati_service *s = *service;
    if (!s)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stopping = true;
        pthread_mutex_unlock(&s->lock);
        nudge(s);
        pthread_join(s->thread, NULL);
    }
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    pthread_mutex_destroy(&s->lock);
    leati_free(s->allocator, s);
    *service = NULL;
}

void leati_service_add_tick(leati_service *s, leati_tick *tick)
{
    tick->next_ns = leati_clock_ns() + tick->interval_ns;
    pthread_mutex_lock(&s->lock);
    tick->next = s->ticks;
    s->ticks = tick;
    pthread_mutex_unlock(&s->lock);
    nudge(s);
}

void leati_service_remove_tick(leati_service *s, leati_tick *tick)
{
    pthread_mutex_lock(&s->lock);
    for (leati_tick **at = &s->ticks; *at; at = &(*at)->next)
        if (*at == tick) {
            *at = tick->next;
            break;
        }
    pthread_mutex_unlock(&s->lock);
}

leat_err leati_service_watch(leati_service *s, leati_watch *watch, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};
    pthread_mutex_lock(&s->lock);
    leat_err err = LEAT_OK;
    // A task that was woken for another reason asks once more.
    bool same = watch->armed && watch->fd == fd;
    if (watch->armed && !same)
        disarm_locked(s, watch);
    if (!same && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        err = errno == EEXIST                      ? LEAT_EEXIST
              : errno == ENOMEM || errno == ENOSPC ? LEAT_ENOMEM
                                                   : LEAT_EINVAL;
    if (!same && !err) {
        watch->fd = fd;
        watch->armed = true;
        watch->next = s->watches;
        s->watches = watch;
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

void leati_service_unwatch(leati_service *s, leati_watch *watch)
{
    pthread_mutex_lock(&s->lock);
    if (watch->armed)
        disarm_locked(s, watch);
    pthread_mutex_unlock(&s->lock);
}
