// SPDX-License-Identifier: Apache-2.0
#include "runtime/service.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>

static leati_service *service;
static sem_t ran;

static void set_up(void)
{
    sem_init(&ran, 0, 0);
    cr_assert(leati_service_create(NULL, NULL, &service) == LEAT_OK);
}

static void tear_down(void)
{
    leati_service_destroy(&service);
    cr_assert_null(service);
}

TestSuite(service, .init = set_up, .fini = tear_down, .timeout = 60);

static void wait_for_run(void)
{
    while (sem_wait(&ran) != 0)
        ;
}

typedef struct counted_tick {
    leati_tick tick; // first
    int count;       // under the service's lock
} counted_tick;

static void count_tick(leati_tick *tick)
{
    ((counted_tick *)tick)->count++;
    sem_post(&ran);
}

Test(service, a_tick_runs_again_and_again_until_it_is_removed)
{
    counted_tick often = {.tick = {.interval_ns = 1000000, .run = count_tick}};
    counted_tick never = {.tick = {.interval_ns = INT64_C(86400000) * 1000000, .run = count_tick}};
    leati_service_add_tick(service, &never.tick);
    leati_service_add_tick(service, &often.tick);
    for (int i = 0; i < 20; i++)
        wait_for_run();
    leati_service_remove_tick(service, &often.tick);
    int count = often.count;
    cr_assert(count >= 20);
    cr_assert(never.count == 0);
    // Another one shows that the service goes on without it.
    counted_tick later = {.tick = {.interval_ns = 1000000, .run = count_tick}};
    leati_service_add_tick(service, &later.tick);
    while (sem_trywait(&ran) == 0)
        ;
    for (int i = 0; i < 5; i++)
        wait_for_run();
    cr_assert(often.count == count);
    leati_service_remove_tick(service, &later.tick);
    leati_service_remove_tick(service, &never.tick);
    // Removing what is not there is allowed.
    leati_service_remove_tick(service, &never.tick);
}

typedef struct counted_watch {
    leati_watch watch; // first
    int count;         // under the service's lock
} counted_watch;

static void count_watch(leati_watch *watch)
{
    ((counted_watch *)watch)->count++;
    sem_post(&ran);
}

Test(service, a_watch_runs_once_for_each_time_it_is_armed)
{
    int fds[2];
    cr_assert(pipe(fds) == 0);
    counted_watch w = {.watch = {.run = count_watch}};
    for (int i = 1; i <= 3; i++) {
        cr_assert(leati_service_watch(service, &w.watch, fds[0]) == LEAT_OK);
        if (i == 1) {
            // Asking again before it has run changes nothing.
            cr_assert(leati_service_watch(service, &w.watch, fds[0]) == LEAT_OK);
            cr_assert(write(fds[1], "x", 1) == 1);
        }
        wait_for_run();
        // The service may still hold its lock; unwatching waits for it.
        leati_service_unwatch(service, &w.watch);
        cr_assert(w.count == i);
        cr_assert(!w.watch.armed);
    }
    close(fds[0]);
    close(fds[1]);
}

Test(service, a_watch_moves_to_another_descriptor)
{
    int one[2], other[2];
    cr_assert(pipe(one) == 0 && pipe(other) == 0);
    counted_watch w = {.watch = {.run = count_watch}};
    cr_assert(leati_service_watch(service, &w.watch, one[0]) == LEAT_OK);
    cr_assert(leati_service_watch(service, &w.watch, other[0]) == LEAT_OK);
    // The first descriptor is free for somebody else.
    counted_watch second = {.watch = {.run = count_watch}};
    cr_assert(leati_service_watch(service, &second.watch, one[0]) == LEAT_OK);
    cr_assert(write(other[1], "x", 1) == 1);
    wait_for_run();
    leati_service_unwatch(service, &w.watch);
    leati_service_unwatch(service, &second.watch);
    cr_assert(w.count == 1 && second.count == 0);
}

Test(service, the_end_of_a_pipe_counts_as_readable)
{
    int fds[2];
    cr_assert(pipe(fds) == 0);
    counted_watch w = {.watch = {.run = count_watch}};
    cr_assert(leati_service_watch(service, &w.watch, fds[0]) == LEAT_OK);
    close(fds[1]);
    wait_for_run();
    leati_service_unwatch(service, &w.watch);
    cr_assert(w.count == 1);
    close(fds[0]);
}

Test(service, what_cannot_be_watched_is_refused)
{
    counted_watch w = {.watch = {.run = count_watch}}, second = w;
    char name[] = "/tmp/leat-test-XXXXXX";
    int file = mkstemp(name);
    cr_assert(file >= 0);
    unlink(name);
    cr_assert(leati_service_watch(service, &w.watch, file) == LEAT_EINVAL);
    close(file);
    cr_assert(leati_service_watch(service, &w.watch, file) == LEAT_EINVAL);
    cr_assert(leati_service_watch(service, &w.watch, -1) == LEAT_EINVAL);
    cr_assert(!w.watch.armed);
    int fds[2];
    cr_assert(pipe(fds) == 0);
    cr_assert(leati_service_watch(service, &w.watch, fds[0]) == LEAT_OK);
    cr_assert(leati_service_watch(service, &second.watch, fds[0]) == LEAT_EEXIST);
    leati_service_unwatch(service, &w.watch);
    cr_assert(leati_service_watch(service, &second.watch, fds[0]) == LEAT_OK);
    leati_service_unwatch(service, &second.watch);
    // Again, unarmed.
    leati_service_unwatch(service, &second.watch);
}
