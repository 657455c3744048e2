// SPDX-License-Identifier: Apache-2.0
// Exchanges of one host: they talk over a socket file by themselves, and over the port whenever
// that does not go well, whatever the reason.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "network/nng/exchange_impl.h"
#include "tests/network/nng/certificates.h"
#include "tests/network/nng/flow.h"

enum { TIMEOUT_MS = 10000, BYTES = 300000 };

// Two nodes, of which the first one dials, and a folder for socket files. `told` is what the first
// one is told about the second one.
typedef struct pair {
    char folder[64], paths[2][128], told[LEATI_EXCHANGE_ADDRESS];
    node nodes[2];
    share shares[2];
    flow flows[2];
} pair;

static void pair_init(pair *self)
{
    memset(self, 0, sizeof *self);
    snprintf(self->folder, sizeof self->folder, "/tmp/leat-near-XXXXXX");
    cr_assert(mkdtemp(self->folder));
    for (int i = 0; i < 2; i++)
        snprintf(self->paths[i], sizeof self->paths[i], "%s/%d", self->folder, i);
}

static void pair_open_with(pair *self, int64_t timeout_ms, const leati_auth *auth)
{
    node_open_at(&self->nodes[0], "one", timeout_ms, self->paths[0], auth);
    node_open_at(&self->nodes[1], "two", timeout_ms, self->paths[1], auth);
    snprintf(self->told, sizeof self->told, "%s", leati_exchange_address(self->nodes[1].transport));
}

static void pair_open(pair *self)
{
    pair_init(self);
    pair_open_with(self, TIMEOUT_MS, NULL);
}

// What the first one is told: the second one's port, and this path.
static void tell(pair *self, const char *path)
{
    const char *address = leati_exchange_address(self->nodes[1].transport);
    snprintf(self->told, sizeof self->told, "%.*s ipc://%s", (int)strcspn(address, " "), address,
             path);
}

static void pair_share(pair *self, uint64_t attempt)
{
    const char *addresses[2] = {leati_exchange_address(self->nodes[0].transport), self->told};
    for (uint32_t i = 0; i < 2; i++)
        share_open_at(&self->shares[i], self->nodes, 2, i, attempt, addresses);
}

static void start_flows(pair *self, uint64_t bytes)
{
    for (uint32_t i = 0; i < 2; i++) {
        flow *f = &self->flows[i];
        flow_init(f, &self->shares[i], &self->shares[1 - i], i, bytes);
        f->events = f->urgent = 3;
        flow_receive(f, i, 8);
        flow_send(f, 1 - i);
        flow_start_producer(f);
        flow_start_consumer(f);
    }
}

static void end_flows(pair *self)
{
    for (int i = 0; i < 2; i++)
        flow_join(&self->flows[i]);
    for (int i = 0; i < 2; i++)
        share_close(&self->shares[i]);
    for (int i = 0; i < 2; i++)
        flow_fini(&self->flows[i]);
}

static void pair_close(pair *self)
{
    for (int i = 0; i < 2; i++)
        node_close(&self->nodes[i]);
    // Nothing is left in it.
    cr_assert_eq(rmdir(self->folder), 0);
}

// The address by which the first node has its open connection, or "".
static void way_of(const pair *self, char to[LEATI_EXCHANGE_ADDRESS_ONE])
{
    leati_exchange *exchange = (leati_exchange *)self->nodes[0].transport;
    *to = '\0';
    pthread_mutex_lock(&exchange->lock);
    for (leati_wire *wire = exchange->wires; wire; wire = wire->next)
        if (!wire->over && atomic_load(&wire->peer))
            snprintf(to, LEATI_EXCHANGE_ADDRESS_ONE, "%s", leati_connection_peer(wire->connection));
    pthread_mutex_unlock(&exchange->lock);
}

// A job between the two arrives whole, over such an address.
static void expect_way(pair *self, const char *scheme)
{
    char way[LEATI_EXCHANGE_ADDRESS_ONE];
    static uint64_t attempt;
    pair_share(self, ++attempt);
    start_flows(self, BYTES);
    for (int i = 0; i < 2; i++)
        flow_await(&self->flows[i], UINT64_MAX);
    way_of(self, way);
    cr_expect(strncmp(way, scheme, strlen(scheme)) == 0, "%s instead of %s", way, scheme);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(self->shares[i].failures, 0);
    end_flows(self);
}

static void expect_port(const char *path)
{
    static pair both;
    pair_open(&both);
    tell(&both, path);
    expect_way(&both, "tcp://");
    pair_close(&both);
}

static struct sockaddr_un socket_address(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    cr_assert(strlen(path) < sizeof at.sun_path);
    memcpy(at.sun_path, path, strlen(path));
    return at;
}

// A socket of this test's own at that path, which does what it is told.
static int bare_socket(const char *path)
{
    const struct sockaddr_un at = socket_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static int bare_connect(const char *path)
{
    const struct sockaddr_un at = socket_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

// --- by themselves ---

Test(exchange_near, two_of_one_host_talk_over_the_socket)
{
    static pair both;
    char expected[LEATI_EXCHANGE_ADDRESS];
    pair_open(&both);
    cr_assert(strncmp(both.told, "tcp://127.0.0.1:", 16) == 0);
    snprintf(expected, sizeof expected, "ipc://%s", both.paths[1]);
    cr_assert_str_eq(strchr(both.told, ' ') + 1, expected);
    expect_way(&both, expected);
    expect_way(&both, expected); // the next job, over the same connection
    pair_close(&both);
}

// How much the sockets take of which one end or the other has that path, at least.
static int room_of(const char *path)
{
    int least = 0, room;
    for (int fd = 0; fd < 1000; fd++) {
        struct sockaddr_un own = {0}, other = {0};
        socklen_t size = sizeof own, other_size = sizeof other, room_size = sizeof room;
        if (getsockname(fd, (struct sockaddr *)&own, &size) != 0 || own.sun_family != AF_UNIX)
            continue;
        (void)getpeername(fd, (struct sockaddr *)&other, &other_size);
        if (strcmp(own.sun_path, path) != 0 && strcmp(other.sun_path, path) != 0)
            continue;
        cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &room_size), 0);
        least = least == 0 || room < least ? room : least;
    }
    return least;
}

Test(exchange_near, its_sockets_have_more_room_than_others)
{
    static pair both;
    char path[128];
    pair_open(&both);
    snprintf(path, sizeof path, "%s/other", both.folder);
    int fd = bare_socket(path);
    cr_assert_eq(listen(fd, 8), 0);
    int other = bare_connect(path);
    expect_way(&both, "ipc://");
    cr_assert(room_of(path) > 0);
    cr_assert(room_of(both.paths[1]) > room_of(path));
    close(other);
    close(fd);
    unlink(path);
    pair_close(&both);
}

Test(exchange_near, the_file_is_its_users_alone_and_goes_at_the_end)
{
    static pair both;
    struct stat info;
    pair_open(&both);
    cr_assert(lstat(both.paths[0], &info) == 0 && S_ISSOCK(info.st_mode));
    cr_assert_eq(info.st_mode & 07777, 0600);
    node_close(&both.nodes[0]);
    cr_assert(lstat(both.paths[0], &info) != 0);
    node_open(&both.nodes[0], "one", TIMEOUT_MS);
    pair_close(&both);
}

Test(exchange_near, paths_are_taken_as_they_are)
{
    static pair both;
    pair_init(&both);
    snprintf(both.paths[1], sizeof both.paths[1], "%s/a b%%20c#d?e:f ipc:", both.folder);
    pair_open_with(&both, TIMEOUT_MS, NULL);
    expect_way(&both, "ipc://");
    pair_close(&both);
}

Test(exchange_near, who_has_no_socket_talks_over_the_port)
{
    for (int without = 0; without < 2; without++) {
        static pair both;
        pair_init(&both);
        pair_open_with(&both, TIMEOUT_MS, NULL);
        node_close(&both.nodes[without]);
        node_open(&both.nodes[without], without ? "two" : "one", TIMEOUT_MS);
        snprintf(both.told, sizeof both.told, "%s",
                 leati_exchange_address(both.nodes[1].transport));
        cr_assert_eq(strchr(both.told, ' ') != NULL, without == 0);
        expect_way(&both, "tcp://");
        pair_close(&both);
    }
}

Test(exchange_near, a_path_that_no_socket_can_have_is_told_and_done_without)
{
    char longest[200], why[300];
    const char *const paths[] = {longest, "relative", "/nowhere/at/all"};
    const char *const texts[] = {"has more than 107 bytes", "does not begin at the root",
                                 "cannot listen at ipc:///nowhere/at/all"};
    snprintf(longest, sizeof longest, "/tmp/%0103d", 0);
    cr_assert_eq(strlen(longest), 108);
    for (int i = 0; i < 3; i++) {
        leati_transport *made;
        const leati_exchange_options options = {
            .address = "tcp://127.0.0.1:0",
            .process = "one",
            .segment_size = FLOW_SEGMENT,
            .connect_timeout_ms = TIMEOUT_MS,
            .socket_path = paths[i],
        };
        snprintf(why, sizeof why, "left from before");
        cr_assert_eq(leati_exchange_create(&options, &made, why, sizeof why), LEAT_OK);
        cr_expect(strstr(why, texts[i]), "%s", why);
        cr_expect(!strchr(leati_exchange_address(made), ' '));
        leati_exchange_destroy(&made);
    }
}

// --- what is no socket of a process of the same user ---

Test(exchange_near, what_is_no_trusted_socket_is_not_even_tried)
{
    static pair both;
    char path[128], other[160];
    pair_open(&both);
    snprintf(path, sizeof path, "%s/other", both.folder);
    tell(&both, path); // nothing there
    expect_way(&both, "tcp://");
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && close(fd) == 0);
    node_close(&both.nodes[0]); // and with it the connection
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], NULL);
    expect_way(&both, "tcp://");
    unlink(path);
    // A link to the right one.
    cr_assert_eq(symlink(both.paths[1], path), 0);
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], NULL);
    expect_way(&both, "tcp://");
    unlink(path);
    // The right one, in a folder that others may enter.
    tell(&both, both.paths[1]);
    cr_assert_eq(chmod(both.folder, 0710), 0);
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], NULL);
    expect_way(&both, "tcp://");
    cr_assert_eq(chmod(both.folder, 0700), 0);
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], NULL);
    expect_way(&both, "ipc://");
    // Of a path too long to be one.
    snprintf(other, sizeof other, "/tmp/%0140d", 0);
    tell(&both, other);
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], NULL);
    expect_way(&both, "tcp://");
    pair_close(&both);
}

Test(exchange_near, a_socket_of_another_user_is_not_tried)
{
    static pair both;
    pair_open(&both);
    if (geteuid() != 0)
        cr_skip("only root can give files away");
    cr_assert_eq(lchown(both.paths[1], 1, 1), 0);
    expect_way(&both, "tcp://");
    pair_close(&both);
}

// --- sockets at which the wrong one listens, or nobody ---

Test(exchange_near, a_socket_that_a_dead_process_has_left_is_passed_over)
{
    char folder[] = "/tmp/leat-near-left-XXXXXX", path[128];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/left", folder);
    close(bare_socket(path));
    expect_port(path);
    unlink(path);
    rmdir(folder);
}

Test(exchange_near, who_says_nothing_is_passed_over_in_time)
{
    static pair both;
    char path[128];
    pair_init(&both);
    pair_open_with(&both, 4000, NULL); // of which the socket may take a quarter
    snprintf(path, sizeof path, "%s/mute", both.folder);
    int fd = bare_socket(path);
    cr_assert_eq(listen(fd, 8), 0);
    tell(&both, path);
    expect_way(&both, "tcp://");
    close(fd);
    unlink(path);
    pair_close(&both);
}

Test(exchange_near, a_queue_that_is_full_is_passed_over)
{
    static pair both;
    char path[128];
    pair_init(&both);
    pair_open_with(&both, 4000, NULL);
    snprintf(path, sizeof path, "%s/full", both.folder);
    int fd = bare_socket(path);
    cr_assert_eq(listen(fd, 0), 0);
    int waits = bare_connect(path);
    tell(&both, path);
    expect_way(&both, "tcp://");
    close(waits);
    close(fd);
    unlink(path);
    pair_close(&both);
}

static void *close_all(void *arg)
{
    int listener = *(int *)arg, fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        cr_assert_eq(send(fd, "what do you want?", 17, MSG_NOSIGNAL), 17);
        close(fd);
    }
    return NULL;
}

Test(exchange_near, who_talks_nonsense_is_passed_over)
{
    static pair both;
    char path[128];
    pthread_t thread;
    pair_open(&both);
    snprintf(path, sizeof path, "%s/nonsense", both.folder);
    int fd = bare_socket(path);
    cr_assert(listen(fd, 8) == 0 && pthread_create(&thread, NULL, close_all, &fd) == 0);
    tell(&both, path);
    expect_way(&both, "tcp://");
    shutdown(fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(fd);
    unlink(path);
    pair_close(&both);
}

Test(exchange_near, another_process_is_passed_over_and_not_disturbed)
{
    static pair both;
    static node third;
    char path[128];
    leati_exchange_counts counts;
    pair_open(&both);
    snprintf(path, sizeof path, "%s/third", both.folder);
    node_open_at(&third, "three", TIMEOUT_MS, path, NULL);
    tell(&both, path);
    expect_way(&both, "tcp://");
    do {
        leati_exchange_count(third.transport, &counts);
        sched_yield();
    } while (counts.connections > 0); // it thinks it has one until that is closed
    node_close(&third);
    pair_close(&both);
}

// --- failures ---

Test(exchange_near, when_neither_answers_the_port_is_named)
{
    static pair both;
    static flow f;
    pair_init(&both);
    pair_open_with(&both, 600, NULL);
    snprintf(both.paths[1], sizeof both.paths[1], "%s/left", both.folder);
    close(bare_socket(both.paths[1]));
    node gone; // for a port at which nobody listens
    node_open(&gone, "gone", 600);
    snprintf(both.told, sizeof both.told, "%s ipc://%s", leati_exchange_address(gone.transport),
             both.paths[1]);
    node_close(&gone);
    pair_share(&both, 1);
    flow_init(&f, NULL, &both.shares[0], 0, 0);
    flow_receive(&f, 1, 4);
    share_await_failure(&both.shares[0]);
    const char *start = "no connection to taskmanager 1: tcp://127.0.0.1:";
    cr_assert(strncmp(both.shares[0].text, start, strlen(start)) == 0, "%s", both.shares[0].text);
    cr_assert(strstr(both.shares[0].text, "nobody listens there"));
    share_close(&both.shares[0]);
    share_close(&both.shares[1]);
    flow_fini(&f);
    unlink(both.paths[1]);
    pair_close(&both);
}

Test(exchange_near, a_connection_that_is_lost_fails_the_job_and_the_next_one_has_a_new_one)
{
    static pair both;
    pair_open(&both);
    pair_share(&both, 1000);
    start_flows(&both, UINT64_C(1) << 40);
    flow_await(&both.flows[0], BYTES);
    flow_await(&both.flows[1], BYTES);
    leati_exchange *exchange = (leati_exchange *)both.nodes[0].transport;
    pthread_mutex_lock(&exchange->lock);
    for (leati_wire *wire = exchange->wires; wire; wire = wire->next)
        if (!wire->over)
            leati_connection_close(wire->connection, LEAT_EIO, "cut by the test");
    pthread_mutex_unlock(&exchange->lock);
    for (int i = 0; i < 2; i++) {
        share_await_failure(&both.shares[i]);
        cr_expect(strstr(both.shares[i].text, i ? "ipc://" : "cut by the test"), "%s",
                  both.shares[i].text);
        flow_cancel(&both.flows[i]);
    }
    end_flows(&both);
    expect_way(&both, "ipc://");
    pair_close(&both);
}

// --- security ---

static const leati_auth *secret(char letter)
{
    static leati_auth auths[2];
    leati_auth *self = &auths[letter == 'a'];
    self->secret.size = 20;
    memset(self->secret.bytes, letter, self->secret.size);
    return self;
}

Test(exchange_near, a_secret_is_asked_for_at_the_socket_too)
{
    static pair both;
    static node third;
    char path[128];
    pair_init(&both);
    pair_open_with(&both, TIMEOUT_MS, secret('a'));
    expect_way(&both, "ipc://");
    // Somebody with another one, who says to be the second node.
    snprintf(path, sizeof path, "%s/third", both.folder);
    node_open_at(&third, "two", TIMEOUT_MS, path, secret('b'));
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], secret('a'));
    tell(&both, path);
    expect_way(&both, "tcp://");
    node_close(&third);
    // And with none.
    node_open_at(&third, "two", TIMEOUT_MS, path, NULL);
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], secret('a'));
    expect_way(&both, "tcp://");
    node_close(&third);
    pair_close(&both);
}

Test(exchange_near, certificates_are_asked_for_at_the_socket_too)
{
    static pair both;
    static node third;
    test_authority authority;
    test_member member;
    leati_auth auth;
    char path[128], why[400];
    test_authority_init(&authority, "of this cluster");
    test_member_init(&member, &authority, &authority, -3600, 3600);
    cr_assert_eq(leati_auth_open(&auth, &member.files, why, sizeof why), LEAT_OK, "%s", why);
    pair_init(&both);
    pair_open_with(&both, TIMEOUT_MS, &auth);
    expect_way(&both, "ipc://");
    snprintf(path, sizeof path, "%s/third", both.folder);
    node_open_at(&third, "two", TIMEOUT_MS, path, NULL);
    node_close(&both.nodes[0]);
    node_open_at(&both.nodes[0], "one", TIMEOUT_MS, both.paths[0], &auth);
    tell(&both, path);
    expect_way(&both, "tcp://");
    node_close(&third);
    pair_close(&both);
    leati_auth_close(&auth);
    test_member_fini(&member);
    test_authority_fini(&authority);
}
