// SPDX-License-Identifier: Apache-2.0
// All callbacks run under the lock: they are short, take no lock but a run queue's, and so removal
// needs no further hand-shake.
#include "runtime/service.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

enum { EVENTS_AT_ONCE = 16, LONGEST_WAIT_MS = 60000, FOREIGN_WAIT_MS = 10 };

struct leati_service {
    // Immutable.
    const leat_allocator *allocator;
    leat_clock clock; // zeroed: the system's
    pthread_t thread;
    bool started;
    int epoll_fd;
    int wake_fd; // readable: something is due earlier than the thread knows, or stop
    pthread_mutex_t lock;
    // Under the lock.
    leati_alarms alarms;
    int64_t sleeps_until_ns; // when the thread will look by itself
    leati_watch *watches;    // the armed ones
    bool stopping;
};

static void nudge(leati_service *s)
{
    uint64_t one = 1;
    // The counter cannot overflow: the service reads it at every nudge.
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written;
}

// --- time ---

int64_t leati_service_now_ns(const leati_service *s)
{
    return s->clock.now_ns ? s->clock.now_ns(s->clock.user) : leati_clock_ns();
}

bool leati_service_has_own_clock(const leati_service *s)
{
    return s->clock.now_ns != NULL;
}

static void run_due_locked(leati_service *s, int64_t now_ns)
{
    leati_alarm *alarm;
    while ((alarm = leati_alarms_take_due(&s->alarms, now_ns)))
        alarm->run(alarm);
}

// Runs what is due and returns the wait until the next alarm in ms, -1 for none.
static int serve_alarms_locked(leati_service *s)
{
    int64_t now_ns = leati_service_now_ns(s);
    run_due_locked(s, now_ns);
    s->sleeps_until_ns = s->alarms.first ? s->alarms.first->time_ns : INT64_MAX;
    if (s->sleeps_until_ns == INT64_MAX)
        return -1;
    int64_t longest_ms = s->clock.now_ns ? FOREIGN_WAIT_MS : LONGEST_WAIT_MS, wait_ns;
    if (__builtin_sub_overflow(s->sleeps_until_ns, now_ns, &wait_ns))
        return (int)longest_ms;
    int64_t wait_ms = wait_ns / 1000000 + (wait_ns % 1000000 != 0);
    return (int)(wait_ms < longest_ms ? wait_ms : longest_ms);
}

static void set_alarm_locked(leati_service *s, leati_alarm *alarm, int64_t time_ns)
{
    leati_alarms_set(&s->alarms, alarm, time_ns);
    if (time_ns >= s->sleeps_until_ns)
        return;
    s->sleeps_until_ns = time_ns;
    if (s->started)
        nudge(s);
}

void leati_service_set_alarm(leati_service *s, leati_alarm *alarm, int64_t time_ns)
{
    pthread_mutex_lock(&s->lock);
    if (time_ns == INT64_MAX)
        leati_alarms_clear(&s->alarms, alarm);
    else
        set_alarm_locked(s, alarm, time_ns);
    pthread_mutex_unlock(&s->lock);
}

void leati_service_clear_alarm(leati_service *s, leati_alarm *alarm)
{
    pthread_mutex_lock(&s->lock);
    leati_alarms_clear(&s->alarms, alarm);
    pthread_mutex_unlock(&s->lock);
}

static void run_tick(leati_alarm *alarm)
{
    leati_tick *tick = (leati_tick *)((char *)alarm - offsetof(leati_tick, alarm));
    leati_service *s = tick->service;
    tick->run(tick);
    leati_alarms_set(&s->alarms, alarm, leati_service_now_ns(s) + tick->interval_ns);
}

void leati_service_add_tick(leati_service *s, leati_tick *tick)
{
    tick->alarm.run = run_tick;
    tick->service = s;
    leati_service_set_alarm(s, &tick->alarm, leati_service_now_ns(s) + tick->interval_ns);
}

void leati_service_remove_tick(leati_service *s, leati_tick *tick)
{
    leati_service_clear_alarm(s, &tick->alarm);
}

int64_t leati_service_due_ns(leati_service *s)
{
    pthread_mutex_lock(&s->lock);
    int64_t due_ns = s->alarms.first ? s->alarms.first->time_ns : INT64_MAX;
    pthread_mutex_unlock(&s->lock);
    return due_ns;
}

void leati_service_run_due(leati_service *s)
{
    int64_t now_ns = leati_service_now_ns(s);
    pthread_mutex_lock(&s->lock);
    run_due_locked(s, now_ns);
    pthread_mutex_unlock(&s->lock);
}

// --- descriptors ---

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

static void take_events_locked(leati_service *s, const struct epoll_event *events, int count)
{
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

void leati_service_poll(leati_service *s)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count;
    do {
        count = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, 0);
        pthread_mutex_lock(&s->lock);
        take_events_locked(s, events, count);
        pthread_mutex_unlock(&s->lock);
    } while (count == EVENTS_AT_ONCE);
}

// --- life ---

static void *service_main(void *arg)
{
    leati_service *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        int wait_ms = serve_alarms_locked(s);
        pthread_mutex_unlock(&s->lock);
        struct epoll_event events[EVENTS_AT_ONCE];
        int count = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, wait_ms);
        pthread_mutex_lock(&s->lock);
        take_events_locked(s, events, count);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

leat_err leati_service_create_stepped(const leat_allocator *allocator, const leat_clock *clock,
                                      leati_service **service)
{
    leati_service *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = allocator;
    if (clock)
        s->clock = *clock;
    s->sleeps_until_ns = INT64_MAX;
    pthread_mutex_init(&s->lock, NULL);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = s->wake_fd};
    if (s->epoll_fd < 0 || s->wake_fd < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->wake_fd, &event) != 0) {
        leati_service_destroy(&s);
        return LEAT_EIO;
    }
    *service = s;
    return LEAT_OK;
}

leat_err leati_service_create(const leat_allocator *allocator, const leat_clock *clock,
                              leati_service **service)
{
    leati_service *s;
    leat_err err = leati_service_create_stepped(allocator, clock, &s);
    if (err)
        return err;
    err = leati_thread_start(&s->thread, "leat-service", service_main, s);
    if (err) {
        leati_service_destroy(&s);
        return err;
    }
    // Nobody else knows the service yet, and its thread does not look.
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
