// SPDX-License-Identifier: Apache-2.0
// Accepting connections.
#include <sys/resource.h>

#include "tests/network/nng/side.h"

enum { MANY = 40 };

Test(listener, each_gets_a_port_of_its_own)
{
    hall halls[2];
    side sides[2];
    for (int i = 0; i < 2; i++) {
        side_init(&sides[i], 0);
        hall_open(&halls[i], &sides[i], 1);
        cr_assert(strncmp(halls[i].address, "tcp://127.0.0.1:", 16) == 0);
        cr_assert_neq(strtol(halls[i].address + 16, NULL, 10), 0);
    }
    cr_assert_str_neq(halls[0].address, halls[1].address);
    for (int i = 0; i < 2; i++) {
        leati_listener_destroy(&halls[i].listener);
        side_fini(&sides[i]);
    }
}

Test(listener, address_in_use_or_not_ours_is_told)
{
    hall first, second;
    side taker;
    char why[256] = "";
    side_init(&taker, 0);
    hall_open(&first, &taker, 1);
    leati_listener_options options = hall_options(&second, &taker, 1);
    options.address = first.address;
    cr_assert_eq(leati_listener_create(&options, &second.listener, why, sizeof why), LEAT_EIO);
    cr_assert(strstr(why, first.address) && strstr(why, "in use"), "%s", why);
    options.address = "tcp://192.0.2.1:0"; // an address for examples, of no machine
    cr_assert_eq(leati_listener_create(&options, &second.listener, why, sizeof why), LEAT_EIO);
    cr_assert(strstr(why, "192.0.2.1"), "%s", why);
    options.address = "nonsense";
    cr_assert_eq(leati_listener_create(&options, &second.listener, why, sizeof why), LEAT_EINVAL);
    cr_assert_null(second.listener);
    leati_listener_destroy(&first.listener);
    side_fini(&taker);
}

Test(listener, many_that_come_at_once_are_all_served)
{
    hall door;
    static side takers[MANY], diallers[MANY];
    for (int i = 0; i < MANY; i++) {
        side_init(&takers[i], 1000);
        side_init(&diallers[i], 1000);
    }
    hall_open(&door, takers, MANY);
    for (int i = 0; i < MANY; i++) {
        side_dial(&diallers[i], door.address);
        side_send(&diallers[i], 50);
    }
    for (int i = 0; i < MANY; i++) {
        side_await_opened(&diallers[i]);
        side_await_arrived(&takers[i], 50);
    }
    // Connections outlive their listener.
    leati_listener_destroy(&door.listener);
    for (int i = 0; i < MANY; i++) {
        side_send(&takers[i], 50);
        side_send(&diallers[i], 100);
    }
    for (int i = 0; i < MANY; i++)
        side_await_arrived(&takers[i], 100);
    for (int i = 0; i < MANY; i++) {
        side_fini(&diallers[i]);
        side_fini(&takers[i]);
        cr_assert(!takers[i].wrong && !diallers[i].wrong);
    }
}

Test(listener, more_than_the_most_are_closed_until_others_have_gone)
{
    hall door;
    side takers[4];
    for (int i = 0; i < 4; i++)
        side_init(&takers[i], 0);
    leati_listener_options options = hall_options(&door, takers, 4);
    options.most = 2;
    hall_open_with(&door, &options);
    int first = bare_connect(door.address), second = bare_connect(door.address);
    bare_greet(first);
    bare_greet(second);
    bare_await_end(bare_connect(door.address));
    cr_assert_eq(atomic_load(&door.come), 2);
    close(first);
    side_await_closed(&takers[0]); // which has made room before
    int third = bare_connect(door.address);
    bare_greet(third);
    side_await_opened(&takers[2]);
    leati_listener_destroy(&door.listener);
    for (int i = 0; i < 4; i++)
        side_fini(&takers[i]);
    close(second);
    close(third);
}

Test(listener, who_says_nothing_keeps_nobody_out)
{
    enum { SILENT = LEATI_GREETING_MOST + 8 };
    hall door;
    static side takers[SILENT + 1];
    int fds[SILENT];
    char byte;
    struct rlimit files;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_max < 8 * LEATI_GREETING_MOST)
        cr_skip("no process may have so many files");
    files.rlim_cur = 8 * LEATI_GREETING_MOST;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    for (int i = 0; i <= SILENT; i++) {
        pthread_mutex_init(&takers[i].lock, NULL);
        leati_cond_init(&takers[i].changed);
    }
    leati_listener_options options = hall_options(&door, takers, SILENT + 1);
    options.hello_timeout_ms = 0; // never: it is not time that ends them
    hall_open_with(&door, &options);
    for (int i = 0; i < SILENT; i++)
        fds[i] = bare_connect(door.address);
    int good = bare_connect(door.address);
    bare_greet(good);
    side_await_opened(&takers[SILENT]);
    // The oldest have gone, and know why; those that came last may still say who they are.
    for (int i = 0; i < SILENT - LEATI_GREETING_MOST; i++)
        side_await_closed(&takers[i]);
    cr_assert(strstr(takers[0].why, "had not said who it is"), "%s", takers[0].why);
    bare_greet(fds[SILENT - 1]);
    side_await_opened(&takers[SILENT - 1]);
    cr_assert_eq(recv(fds[SILENT / 2], &byte, 1, MSG_DONTWAIT | MSG_PEEK), 1); // a hello, no end
    leati_listener_destroy(&door.listener);
    for (int i = 0; i <= SILENT; i++)
        side_fini(&takers[i]);
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
    close(good);
}

Test(listener, strangers_get_a_part_of_the_files)
{
    struct rlimit few = {.rlim_cur = 80, .rlim_max = RLIM_INFINITY}, before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    cr_assert_eq(leati_listener_share(8, 512), 10);
    cr_assert_eq(leati_listener_share(8, 10), 10);
    cr_assert_eq(leati_listener_share(8, 9), 9);
    cr_assert_eq(leati_listener_share(40, 9), 4); // some in any case
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}

Test(listener, connection_that_is_not_taken_is_closed_without_a_hook)
{
    hall door;
    side taker;
    side_init(&taker, 0);
    hall_open(&door, &taker, 0);
    for (int i = 0; i < 20; i++)
        bare_await_end(bare_connect(door.address));
    leati_listener_destroy(&door.listener);
    cr_assert_eq(taker.opened + taker.closed, 0);
    side_fini(&taker);
}

// Without a descriptor for the next one it waits, and goes on when there is one.
Test(listener, want_of_descriptors_passes)
{
    enum { FREE = 6 };
    hall door;
    static side takers[MANY];
    int fds[MANY], opened = 0;
    struct rlimit before, few;
    for (int i = 0; i < MANY; i++)
        side_init(&takers[i], 0);
    hall_open(&door, takers, MANY);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < MANY; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // The sockets are there; what is accepted needs descriptors beyond the last of them.
    few = before;
    few.rlim_cur = (rlim_t)fds[MANY - 1] + 1 + FREE;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtol(strrchr(door.address, ':') + 1, NULL, 10));
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(connect(fds[i], (struct sockaddr *)&to, sizeof to), 0);
    for (int i = 0; i < FREE; i++)
        bare_greet(fds[i]);
    cr_assert(atomic_load(&door.come) <= FREE);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = FREE; i < MANY; i++)
        bare_greet(fds[i]);
    for (int i = 0; i < MANY; i++) {
        side_await_opened(&takers[i]);
        opened++;
    }
    cr_assert_eq(opened, MANY);
    leati_listener_destroy(&door.listener);
    for (int i = 0; i < MANY; i++) {
        side_fini(&takers[i]);
        close(fds[i]);
    }
}
