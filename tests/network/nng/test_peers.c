// SPDX-License-Identifier: Apache-2.0
// Peers that do not fit, make no sense, or mean harm.
#include "tests/network/nng/side.h"

// What a hello must look like is changed by one field; both sides must say so.
typedef void change(leati_hello *hello);

static void other_version(leati_hello *hello)
{
    snprintf(hello->version, sizeof hello->version, "%s", "0.0.1-other");
}

static void other_abi(leati_hello *hello)
{
    hello->abi = 4711;
}

static void other_purpose(leati_hello *hello)
{
    snprintf(hello->purpose, sizeof hello->purpose, "%s", "control");
}

static void other_cluster(leati_hello *hello)
{
    snprintf(hello->cluster, sizeof hello->cluster, "%s", "green");
}

static void other_segments(leati_hello *hello)
{
    hello->segment_size = 4096;
}

Test(peers, hello_that_does_not_fit_is_told_to_both_sides)
{
    static const struct {
        change *apply;
        leat_err err;
        char word[16];
    } cases[] = {{other_version, LEAT_EABI, "0.0.1-other"},
                 {other_abi, LEAT_EABI, "4711"},
                 {other_purpose, LEAT_EINVAL, "control"},
                 {other_cluster, LEAT_EINVAL, "green"},
                 {other_segments, LEAT_EINVAL, "4096"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hall door;
        side sides[2];
        side_init(&sides[0], 0);
        side_init(&sides[1], 0);
        hall_open(&door, sides, 1);
        leati_connection_options options = side_options(&sides[1], door.address);
        cases[i].apply(&options.hello);
        side_dial_with(&sides[1], &options);
        for (int j = 0; j < 2; j++) {
            side_await_closed(&sides[j]);
            cr_assert_eq(sides[j].err, cases[i].err, "%s", sides[j].why);
            cr_assert(strstr(sides[j].why, cases[i].word), "%s", sides[j].why);
            cr_assert_eq(sides[j].opened, 0);
            side_fini(&sides[j]);
        }
        leati_listener_destroy(&door.listener);
    }
}

// Sends the bytes to a listener of little patience and gives what it says.
static void say(const void *bytes, size_t size, leat_err err, const char *reason)
{
    hall door;
    side taker;
    side_init(&taker, 0);
    leati_listener_options options = hall_options(&door, &taker, 1);
    options.hello_timeout_ms = 100;
    hall_open_with(&door, &options);
    int fd = bare_connect(door.address);
    if (size)
        bare_send(fd, bytes, size);
    bare_await_end(fd);
    side_await_closed(&taker);
    cr_assert_eq(taker.err, err, "%s", taker.why);
    cr_assert(strstr(taker.why, reason), "%s", taker.why);
    cr_assert_eq(taker.opened, 0);
    side_fini(&taker);
    leati_listener_destroy(&door.listener);
}

Test(peers, strangers_are_refused)
{
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    leati_hello hello = side_hello("x");
    leati_hello_complete(&hello);
    say("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, LEAT_ECORRUPT, "makes no sense");
    memset(bytes, 0xff, sizeof bytes);
    say(bytes, sizeof bytes, LEAT_ECORRUPT, "makes no sense");
    leati_hello_put(&hello, bytes);
    bytes[0]++; // one byte more than a hello has
    say(bytes, sizeof bytes, LEAT_ECORRUPT, "makes no sense");
    leati_hello_put(&hello, bytes);
    bytes[4] = 1; // another frame before the hello
    say(bytes, sizeof bytes, LEAT_ECORRUPT, "makes no sense");
    leati_hello_put(&hello, bytes);
    bytes[LEATI_FRAME_SIZE] = 'l'; // another beginning
    say(bytes, sizeof bytes, LEAT_ECORRUPT, "makes no sense");
}

Test(peers, silence_and_half_a_hello_end_in_time)
{
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    leati_hello hello = side_hello("x");
    leati_hello_put(&hello, bytes);
    say(NULL, 0, LEAT_EIO, "within 100 ms");
    say(bytes, 1, LEAT_EIO, "within 100 ms");
    say(bytes, LEATI_FRAME_SIZE, LEAT_EIO, "within 100 ms");
    say(bytes, sizeof bytes - 1, LEAT_EIO, "within 100 ms");
}

// Each byte would start the time anew, if it were that of one read.
Test(peers, hello_that_trickles_ends_in_time)
{
    hall door;
    side taker;
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    leati_hello hello = side_hello("x");
    leati_hello_complete(&hello);
    leati_hello_put(&hello, bytes);
    side_init(&taker, 0);
    leati_listener_options options = hall_options(&door, &taker, 1);
    options.hello_timeout_ms = 200;
    hall_open_with(&door, &options);
    int fd = bare_connect(door.address);
    struct timespec pause = {.tv_nsec = 5000000};
    // It would take longer than 1.5 s.
    for (size_t i = 0; i < sizeof bytes - 1; i++) {
        if (send(fd, bytes + i, 1, MSG_NOSIGNAL) != 1)
            break;
        nanosleep(&pause, NULL);
    }
    side_await_closed(&taker);
    cr_assert(strstr(taker.why, "within 200 ms"), "%s", taker.why);
    close(fd);
    side_fini(&taker);
    leati_listener_destroy(&door.listener);
}

Test(peers, listener_that_says_nothing_is_given_up)
{
    side dialler;
    side_init(&dialler, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char address[64];
    cr_assert(bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 5) == 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    leati_connection_options options = side_options(&dialler, address);
    options.hello_timeout_ms = 100;
    side_dial_with(&dialler, &options);
    side_await_closed(&dialler);
    cr_assert_eq(dialler.err, LEAT_EIO);
    cr_assert(strstr(dialler.why, "within 100 ms"), "%s", dialler.why);
    close(fd);
    side_fini(&dialler);
}

// --- after the hello ---

static void misbehave(leati_frame frame, leat_err place_says, leat_err arrived_says, leat_err err,
                      const char *reason, int placed)
{
    hall door;
    side taker;
    side_init(&taker, 0);
    taker.wild = true;
    taker.place_says = place_says;
    taker.arrived_says = arrived_says;
    hall_open(&door, &taker, 1);
    int fd = bare_connect(door.address);
    bare_greet(fd);
    bare_frame(fd, frame);
    for (uint32_t i = 0; i < frame.size && i < 100; i++)
        (void)!send(fd, "x", 1, MSG_NOSIGNAL);
    bare_await_end(fd);
    side_await_closed(&taker);
    cr_assert_eq(taker.err, err, "%s", taker.why);
    cr_assert(strstr(taker.why, reason), "%s", taker.why);
    cr_assert_eq(taker.placed, placed);
    side_fini(&taker);
    cr_assert_eq(taker.closed, 1);
    leati_listener_destroy(&door.listener);
}

Test(peers, frame_beyond_the_limit_is_refused_before_it_is_placed)
{
    misbehave((leati_frame){.kind = 1, .size = SIDE_FRAME_MAX + 1}, 0, 0, LEAT_ETOOBIG, "1048577",
              0);
    misbehave((leati_frame){.kind = 1, .size = UINT32_MAX}, 0, 0, LEAT_ETOOBIG, "4294967295", 0);
}

Test(peers, second_hello_is_refused)
{
    misbehave((leati_frame){.size = LEATI_HELLO_SIZE}, 0, 0, LEAT_ECORRUPT, "hello twice", 0);
}

Test(peers, frame_that_a_hook_refuses_ends_the_connection)
{
    misbehave((leati_frame){.kind = 9, .size = 10}, LEAT_ENOBUFS, 0, LEAT_ENOBUFS, "kind 9", 1);
    misbehave((leati_frame){.kind = 9, .size = 10}, 0, LEAT_ESTATE, LEAT_ESTATE, "kind 9", 1);
    misbehave((leati_frame){.kind = 9}, 0, LEAT_ESTATE, LEAT_ESTATE, "kind 9", 0);
}
