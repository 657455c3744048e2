// SPDX-License-Identifier: Apache-2.0
// Connections over TLS: frames larger than a record of TLS, whose certificates are taken and whose
// are not, and that every hand-shake comes to its end.
#include "tests/network/nng/certificates.h"
#include "tests/network/nng/side.h"

typedef struct cluster {
    test_authority authority, foreign;
    test_member good, stranger;
    leati_auth auth;
} cluster;

static void cluster_init(cluster *c)
{
    char why[400];
    test_authority_init(&c->authority, "of this cluster");
    test_authority_init(&c->foreign, "of another");
    test_member_init(&c->good, &c->authority, &c->authority, -3600, 3600);
    test_member_init(&c->stranger, &c->foreign, &c->foreign, -3600, 3600);
    cr_assert_eq(leati_auth_open(&c->auth, &c->good.files, why, sizeof why), LEAT_OK, "%s", why);
    cr_assert(leati_auth_is_on(&c->auth));
}

static void cluster_fini(cluster *c)
{
    leati_auth_close(&c->auth);
    test_member_fini(&c->good);
    test_member_fini(&c->stranger);
    test_authority_fini(&c->authority);
    test_authority_fini(&c->foreign);
}

static void listen_with(hall *door, side *sides, uint32_t room, const leati_auth *auth,
                        int64_t hello_timeout_ms)
{
    leati_listener_options options = hall_options(door, sides, room);
    options.auth = auth;
    options.hello_timeout_ms = hello_timeout_ms;
    hall_open_with(door, &options);
}

static void dial_with(side *self, const char *address, const leati_auth *auth)
{
    leati_connection_options options = side_options(self, address);
    options.auth = auth;
    side_dial_with(self, &options);
}

static void close_all(hall *door, side *sides, int count)
{
    for (int i = 0; i < count; i++)
        side_fini(&sides[i]);
    leati_listener_destroy(&door->listener);
}

Test(tls, frames_of_any_size_go_both_ways, .timeout = 60)
{
    enum { FRAMES = 60, MODULUS = 700001 }; // the largest ones have more than 650 KB
    cluster c;
    hall door;
    side sides[2];
    cluster_init(&c);
    side_init(&sides[0], MODULUS);
    side_init(&sides[1], MODULUS);
    listen_with(&door, sides, 1, &c.auth, 10000);
    dial_with(&sides[1], door.address, &c.auth);
    cr_assert(strncmp(door.address, "tcp://", 6) == 0);
    for (int i = 0; i < 2; i++)
        side_await_opened(&sides[i]);
    for (int i = 0; i < 2; i++)
        side_send(&sides[i], FRAMES);
    for (int i = 0; i < 2; i++) {
        side_await_arrived(&sides[i], FRAMES);
        cr_assert(!sides[i].wrong);
    }
    close_all(&door, sides, 2);
    cluster_fini(&c);
}

// One whose reader steps aside whenever it may, and every other time finds that another one reads.
typedef struct restless {
    side side; // first
    _Atomic int steps, lost;
} restless;

static bool restless_settle(leati_connection *connection, void *user)
{
    restless *self = user;
    if (!leati_connection_may_step_aside(connection))
        return true;
    leati_connection_step_aside(connection);
    if (atomic_fetch_add(&self->steps, 1) % 2 == 0)
        leati_connection_hand_on(connection);
    bool back = leati_connection_come_back(connection);
    if (!back)
        atomic_fetch_add(&self->lost, 1);
    return back;
}

Test(tls, readers_change_between_two_operations, .timeout = 60)
{
    static const uint32_t moduli[] = {10, 5000, 200001};
    static const leati_connection_hooks hooks = {SIDE_HOOKS, .settle = restless_settle};
    cluster c;
    cluster_init(&c);
    for (size_t i = 0; i < sizeof moduli / sizeof *moduli; i++) {
        enum { FRAMES = 300 };
        hall door;
        side sender;
        static restless reader;
        reader.steps = reader.lost = 0;
        side_init(&sender, moduli[i]);
        side_init(&reader.side, moduli[i]);
        listen_with(&door, &sender, 1, &c.auth, 10000);
        leati_connection_options options = side_options(&reader.side, door.address);
        options.auth = &c.auth;
        options.hooks = &hooks;
        side_dial_with(&reader.side, &options);
        side_await_opened(&sender);
        for (uint32_t n = 1; n <= FRAMES; n++) {
            side_send(&sender, n);
            if (n % 3 == 0)
                side_await_arrived(&reader.side, n);
        }
        cr_assert_not(reader.side.wrong);
        cr_assert(atomic_load(&reader.steps) > 0);
        side_fini(&reader.side);
        side_fini(&sender);
        leati_listener_destroy(&door.listener);
        cr_assert(atomic_load(&reader.lost) > 0);
    }
    cluster_fini(&c);
}

Test(tls, a_secret_may_be_asked_for_as_well)
{
    cluster c;
    hall door;
    side sides[2];
    cluster_init(&c);
    c.auth.secret.size = 20;
    side_init(&sides[0], 1000);
    side_init(&sides[1], 1000);
    listen_with(&door, sides, 1, &c.auth, 10000);
    dial_with(&sides[1], door.address, &c.auth);
    side_await_opened(&sides[0]);
    side_await_opened(&sides[1]);
    close_all(&door, sides, 2);
    cluster_fini(&c);
}

// --- who is refused ---

static void refused(const leati_auth *listens, const leati_auth *dials, const char *to_dialer)
{
    hall door;
    side sides[2];
    side_init(&sides[0], 0);
    side_init(&sides[1], 0);
    listen_with(&door, sides, 1, listens, 1000);
    dial_with(&sides[1], door.address, dials);
    for (int i = 0; i < 2; i++) {
        side_await_closed(&sides[i]);
        cr_assert_eq(sides[i].opened, 0);
    }
    cr_assert(strstr(sides[1].why, to_dialer), "%s", sides[1].why);
    close_all(&door, sides, 2);
}

Test(tls, foreign_certificates_and_none_are_refused_on_both_sides)
{
    cluster c;
    char why[400];
    leati_auth foreign, none = {0};
    cluster_init(&c);
    cr_assert_eq(leati_auth_open(&foreign, &c.stranger.files, why, sizeof why), LEAT_OK);
    refused(&c.auth, &foreign, "does not do TLS with this process");
    refused(&foreign, &c.auth, "does not do TLS with this process");
    refused(&c.auth, &none, "TLS");
    refused(&none, &c.auth, "");
    leati_auth_close(&foreign);
    cluster_fini(&c);
}

Test(tls, own_certificate_of_another_authority_is_told)
{
    cluster c;
    leati_auth auth;
    char why[400];
    cluster_init(&c);
    leati_auth_files files = c.stranger.files;
    files.tls_ca = c.good.ca;
    cr_assert_eq(leati_auth_open(&auth, &files, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "was not signed by") && strstr(why, files.tls_cert), "%s", why);
    cluster_fini(&c);
}

Test(tls, own_certificate_that_is_not_valid_now_is_told)
{
    cluster c;
    test_member past, future;
    leati_auth auth;
    char why[400];
    cluster_init(&c);
    test_member_init(&past, &c.authority, &c.authority, -3600, -60);
    test_member_init(&future, &c.authority, &c.authority, 600, 3600);
    cr_assert_eq(leati_auth_open(&auth, &past.files, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "has expired") && strstr(why, past.cert), "%s", why);
    cr_assert_eq(leati_auth_open(&auth, &future.files, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "not valid yet"), "%s", why);
    test_member_fini(&past);
    test_member_fini(&future);
    cluster_fini(&c);
}

Test(tls, files_that_do_not_go_together_are_told)
{
    cluster c;
    leati_auth auth;
    char why[400];
    cluster_init(&c);
    leati_auth_files files = c.good.files;
    files.tls_ca = NULL;
    cr_assert_eq(leati_auth_open(&auth, &files, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "needs all of"), "%s", why);
    files = c.good.files;
    files.tls_key = c.stranger.key;
    cr_assert(leati_auth_open(&auth, &files, why, sizeof why) != LEAT_OK);
    cr_assert(strstr(why, c.stranger.key), "%s", why);
    files = c.good.files;
    files.tls_cert = c.good.key;
    cr_assert_eq(leati_auth_open(&auth, &files, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "holds no certificate"), "%s", why);
    cr_assert(chmod(c.good.key, 0644) == 0);
    cr_assert_eq(leati_auth_open(&auth, &c.good.files, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "chmod 600"), "%s", why);
    files.tls_cert = "/nowhere/cert.pem";
    cr_assert_eq(leati_auth_open(&auth, &files, why, sizeof why), LEAT_EIO);
    cluster_fini(&c);
}

// --- hand-shakes that come to nothing ---

Test(tls, silence_garbage_and_hasty_ends_come_to_their_end, .timeout = 60)
{
    enum { GUESTS = 48 };
    static side sides[GUESTS];
    int fds[GUESTS];
    uint8_t block[3000];
    cluster c;
    hall door;
    cluster_init(&c);
    for (size_t i = 0; i < GUESTS; i++)
        side_init(&sides[i], 0);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7919 >> 3);
    // The beginning of a record of TLS whose rest never comes.
    static const uint8_t record[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3};
    listen_with(&door, sides, GUESTS, &c.auth, 300);
    for (size_t i = 0; i < GUESTS; i++) {
        fds[i] = bare_connect(door.address);
        if (i % 4 == 1)
            bare_send(fds[i], block, 1 + i * 50);
        else if (i % 4 == 2)
            bare_send(fds[i], record, sizeof record);
        else if (i % 4 == 3) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
    for (size_t i = 0; i < GUESTS; i++) {
        side_await_closed(&sides[i]);
        cr_assert_eq(sides[i].opened, 0);
        if (fds[i] >= 0)
            close(fds[i]);
    }
    close_all(&door, sides, GUESTS);
    cluster_fini(&c);
}

Test(tls, connection_that_is_closed_while_it_sends_ends, .timeout = 60)
{
    cluster c;
    cluster_init(&c);
    for (int round = 0; round < 20; round++) {
        hall door;
        side sides[2];
        side_init(&sides[0], 300001);
        side_init(&sides[1], 300001);
        listen_with(&door, sides, 1, &c.auth, 10000);
        dial_with(&sides[1], door.address, &c.auth);
        side_await_opened(&sides[0]);
        side_await_opened(&sides[1]);
        side_hold(&sides[0], round % 2); // it does not read: the other one's buffers fill up
        side_send(&sides[0], 1000000);
        side_send(&sides[1], 1000000);
        side_await_arrived(&sides[1], 3);
        leati_connection_close(sides[round % 3 == 0].connection, LEAT_ECLOSED, "enough");
        side_hold(&sides[0], false);
        side_await_closed(&sides[0]);
        side_await_closed(&sides[1]);
        close_all(&door, sides, 2);
    }
    cluster_fini(&c);
}
