// SPDX-License-Identifier: Apache-2.0
// Hand-shakes with a secret: who knows it gets in, and nobody else, whatever he has heard before.
#include <sys/stat.h>

#include "tests/network/nng/side.h"

enum {
    HELLO = LEATI_FRAME_SIZE + LEATI_HELLO_SIZE,
    GREETING = LEATI_HELLO_MOST,
    CODE = LEATI_FRAME_SIZE + LEATI_MAC_SIZE
};

static leati_auth auth_of(const char *secret)
{
    leati_auth auth = {.secret.size = strlen(secret)};
    memcpy(auth.secret.bytes, secret, auth.secret.size);
    return auth;
}

// --- the code itself ---

static void check_code(const uint8_t *key, size_t key_size, const char *data, const char *wanted)
{
    leati_secret secret = {.size = key_size};
    uint8_t mac[LEATI_MAC_SIZE];
    char text[2 * LEATI_MAC_SIZE + 1];
    memcpy(secret.bytes, key, key_size);
    size_t size = strlen(data), half = size / 2;
    const leati_bytes parts[] = {{data, half}, {"", 0}, {data + half, size - half}};
    cr_assert(leati_secret_mac(&secret, parts, 3, mac));
    leati_hex_put(mac, sizeof mac, text);
    cr_assert_str_eq(text, wanted);
}

// The cases 1, 2 and 6 of RFC 4231.
Test(auth, code_is_that_of_the_standard)
{
    uint8_t key[131];
    memset(key, 0x0b, 20);
    check_code(key, 20, "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_code((const uint8_t *)"Jefe", 4, "what do ya want for nothing?",
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 131);
    check_code(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

Test(auth, hexadecimal_goes_there_and_back)
{
    uint8_t back[3];
    char text[7];
    leati_hex_put((const uint8_t[]){0x00, 0xa9, 0xff}, 3, text);
    cr_assert_str_eq(text, "00a9ff");
    cr_assert(leati_hex_get(text, 6, back, 3));
    cr_assert(back[0] == 0 && back[1] == 0xa9 && back[2] == 0xff);
    cr_assert(!leati_hex_get("00a9f", 5, back, 3));
    cr_assert(!leati_hex_get("00a9fg", 6, back, 3));
    cr_assert(!leati_hex_get("00A9FF", 6, back, 3));
}

// --- files ---

static void read_secret(const char *text, size_t size, mode_t mode, leat_err err, const char *word)
{
    char path[] = "/tmp/leat-secret-XXXXXX", why[400] = "";
    leati_secret secret = {0};
    int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, text, size) == (ssize_t)size && fchmod(file, mode) == 0);
    close(file);
    leat_err got = leati_secret_read(&secret, path, why, sizeof why);
    unlink(path);
    cr_assert_eq(got, err, "%s", why);
    cr_assert(strstr(why, word), "%s", why);
    cr_assert(err == LEAT_OK || secret.size == 0);
    if (err == LEAT_OK)
        cr_assert(secret.size == 16 && !memcmp(secret.bytes, "0123456789abcdef", 16));
}

Test(auth, secret_file_must_be_private_and_long_enough)
{
    char why[400], *longer = malloc(3000);
    leati_secret secret;
    memset(longer, 'x', 3000);
    read_secret("0123456789abcdef", 16, 0600, LEAT_OK, "");
    read_secret("0123456789abcdef\r\n \n", 20, 0400, LEAT_OK, "");
    read_secret("0123456789abcde\n", 16, 0600, LEAT_EINVAL, "too short");
    read_secret("", 0, 0600, LEAT_EINVAL, "too short");
    read_secret(longer, 1025, 0600, LEAT_EINVAL, "too long");
    read_secret(longer, 3000, 0600, LEAT_EINVAL, "too long");
    read_secret("0123456789abcdef", 16, 0640, LEAT_EINVAL, "chmod 600");
    read_secret("0123456789abcdef", 16, 0604, LEAT_EINVAL, "mode 0604");
    cr_assert_eq(leati_secret_read(&secret, "/nowhere/secret", why, sizeof why), LEAT_EIO);
    cr_assert(strstr(why, "/nowhere/secret"));
    cr_assert_eq(leati_secret_read(&secret, "/dev/null", why, sizeof why), LEAT_EINVAL);
    free(longer);
}

// --- two processes ---

// What becomes of two sides with these secrets; NULL: none.
static void meet(const char *listens, const char *dials, bool opens, const char *to_listener,
                 const char *to_dialer)
{
    hall door;
    side sides[2];
    leati_auth one = auth_of(listens ? listens : ""), other = auth_of(dials ? dials : "");
    side_init(&sides[0], 5000);
    side_init(&sides[1], 5000);
    leati_listener_options options = hall_options(&door, sides, 1);
    options.auth = &one;
    hall_open_with(&door, &options);
    leati_connection_options dialing = side_options(&sides[1], door.address);
    dialing.auth = &other;
    side_dial_with(&sides[1], &dialing);
    if (opens) {
        side_await_opened(&sides[0]);
        side_await_opened(&sides[1]);
        side_send(&sides[0], 100);
        side_send(&sides[1], 100);
        side_await_arrived(&sides[0], 100);
        side_await_arrived(&sides[1], 100);
    } else {
        side_await_closed(&sides[0]);
        side_await_closed(&sides[1]);
        cr_assert(strstr(sides[0].why, to_listener), "%s", sides[0].why);
        cr_assert(strstr(sides[1].why, to_dialer), "%s", sides[1].why);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(sides[i].opened, opens);
        cr_assert(!sides[i].wrong);
        side_fini(&sides[i]);
    }
    leati_listener_destroy(&door.listener);
}

Test(auth, the_same_secret_opens)
{
    meet("a secret of a cluster", "a secret of a cluster", true, "", "");
    meet(NULL, NULL, true, "", "");
}

Test(auth, another_secret_or_none_is_refused_and_both_are_told)
{
    meet("a secret of a cluster", "a secret of a clusteR", false, "does not know this process's",
         "has another secret");
    meet("a secret of a cluster", NULL, false, "was given no secret", "wants a secret");
    meet(NULL, "a secret of a cluster", false, "wants a secret", "was given no secret");
}

// --- strangers ---

typedef struct stranger {
    hall door;
    side taker;
    leati_auth auth;
} stranger;

static void stranger_open(stranger *s)
{
    s->auth = auth_of("a secret of a cluster");
    side_init(&s->taker, 0);
    s->taker.wild = true;
    leati_listener_options options = hall_options(&s->door, &s->taker, 1);
    options.auth = &s->auth;
    options.hello_timeout_ms = 300;
    hall_open_with(&s->door, &options);
}

static void stranger_close(stranger *s, const char *reason)
{
    side_await_closed(&s->taker);
    cr_assert(strstr(s->taker.why, reason), "%s", s->taker.why);
    cr_assert_eq(s->taker.opened, 0);
    side_fini(&s->taker);
    leati_listener_destroy(&s->door.listener);
}

// A greeting of the bare side with a nonce of its own.
static void make_greeting(uint8_t bytes[GREETING])
{
    leati_hello hello = side_hello("a bare socket");
    leati_hello_complete(&hello);
    leati_hello_put(&hello, bytes);
    leati_frame_put(&(leati_frame){.size = LEATI_HELLO_SIZE, .flags = 1}, bytes);
    leati_frame_put(&(leati_frame){.size = LEATI_NONCE_SIZE}, bytes + HELLO);
    for (int i = 0; i < LEATI_NONCE_SIZE; i++)
        bytes[HELLO + LEATI_FRAME_SIZE + i] = (uint8_t)i;
}

// The code as docs/wire.md has it.
static void make_code(const leati_auth *auth, const char *role, const uint8_t dialer[GREETING],
                      const uint8_t listener[GREETING], uint8_t bytes[CODE])
{
    const leati_bytes parts[] = {
        {"Leat hand-shake 1", 18}, {role, strlen(role)}, {dialer, GREETING}, {listener, GREETING}};
    leati_frame_put(&(leati_frame){.size = LEATI_MAC_SIZE, .flags = 1}, bytes);
    cr_assert(leati_secret_mac(&auth->secret, parts, 4, bytes + LEATI_FRAME_SIZE));
}

static size_t take(int fd, uint8_t *bytes, size_t size)
{
    ssize_t got = recv(fd, bytes, size, MSG_WAITALL);
    return got < 0 ? 0 : (size_t)got;
}

Test(auth, listener_shows_nothing_before_the_dialer_has)
{
    stranger s;
    uint8_t greeting[GREETING], theirs[GREETING], more[64];
    stranger_open(&s);
    int fd = bare_connect(s.door.address);
    make_greeting(greeting);
    bare_send(fd, greeting, sizeof greeting);
    cr_assert_eq(take(fd, theirs, sizeof theirs), sizeof theirs);
    cr_assert_eq(take(fd, more, sizeof more), 0); // until it has lost its patience
    close(fd);
    stranger_close(&s, "within 300 ms");
}

Test(auth, code_of_the_page_opens_and_its_answer_is_right)
{
    stranger s;
    uint8_t greeting[GREETING], theirs[GREETING], code[CODE], answer[CODE], expected[CODE];
    stranger_open(&s);
    int fd = bare_connect(s.door.address);
    make_greeting(greeting);
    bare_send(fd, greeting, sizeof greeting);
    cr_assert_eq(take(fd, theirs, sizeof theirs), sizeof theirs);
    make_code(&s.auth, "dialer", greeting, theirs, code);
    bare_send(fd, code, sizeof code);
    cr_assert_eq(take(fd, answer, sizeof answer), sizeof answer);
    make_code(&s.auth, "listener", greeting, theirs, expected);
    cr_assert(memcmp(answer, expected, sizeof answer) == 0);
    bare_frame(fd, (leati_frame){.kind = SIDE_KIND});
    side_await_arrived(&s.taker, 1);
    close(fd);
    side_await_closed(&s.taker);
    side_fini(&s.taker);
    leati_listener_destroy(&s.door.listener);
}

// Sends a code made in some wrong way, and gets a refusal without a code.
static void try_code(const uint8_t greeting[GREETING], const uint8_t *code, stranger *s, int fd)
{
    uint8_t answer[CODE];
    (void)greeting;
    bare_send(fd, code, CODE);
    cr_assert_eq(take(fd, answer, sizeof answer), LEATI_FRAME_SIZE);
    leati_frame frame;
    leati_frame_get(&frame, answer);
    cr_assert(frame.size == 0 && frame.kind == 0 && frame.flags == 1);
    close(fd);
    stranger_close(s, "does not know this process's secret");
}

Test(auth, what_was_recorded_is_of_no_use)
{
    uint8_t greeting[GREETING], theirs[GREETING], code[CODE];
    stranger s;
    stranger_open(&s);
    int fd = bare_connect(s.door.address);
    make_greeting(greeting);
    bare_send(fd, greeting, sizeof greeting);
    cr_assert_eq(take(fd, theirs, sizeof theirs), sizeof theirs);
    make_code(&s.auth, "dialer", greeting, theirs, code);
    bare_send(fd, code, sizeof code);
    side_await_opened(&s.taker);
    close(fd);
    side_await_closed(&s.taker);
    side_fini(&s.taker);
    leati_listener_destroy(&s.door.listener);
    // The same bytes again, to the next.
    stranger_open(&s);
    fd = bare_connect(s.door.address);
    bare_send(fd, greeting, sizeof greeting);
    cr_assert_eq(take(fd, theirs, sizeof theirs), sizeof theirs);
    try_code(greeting, code, &s, fd);
}

Test(auth, codes_of_the_other_role_and_of_other_hellos_are_refused)
{
    for (int wrong = 0; wrong < 4; wrong++) {
        uint8_t greeting[GREETING], theirs[GREETING], code[CODE];
        stranger s;
        stranger_open(&s);
        int fd = bare_connect(s.door.address);
        make_greeting(greeting);
        bare_send(fd, greeting, sizeof greeting);
        cr_assert_eq(take(fd, theirs, sizeof theirs), sizeof theirs);
        leati_auth guess = auth_of("a secret of a clusteR");
        if (wrong == 2) // somebody on the way has changed a byte of a hello
            greeting[HELLO - 1] ^= 1;
        make_code(wrong == 0 ? &guess : &s.auth, wrong == 1 ? "listener" : "dialer", greeting,
                  theirs, code);
        if (wrong == 3)
            code[CODE - 1] ^= 1;
        try_code(greeting, code, &s, fd);
    }
}

// Who listens without knowing the secret sends the dialer's own bytes back.
Test(auth, dialer_does_not_take_its_own_code)
{
    leati_auth auth = auth_of("a secret of a cluster");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    uint8_t greeting[GREETING], code[CODE];
    char address[64];
    side dialer;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0);
    cr_assert(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    side_init(&dialer, 0);
    leati_connection_options options = side_options(&dialer, address);
    options.auth = &auth;
    side_dial_with(&dialer, &options);
    int fd = accept(listener, NULL, NULL);
    cr_assert_eq(take(fd, greeting, sizeof greeting), sizeof greeting);
    bare_send(fd, greeting, sizeof greeting);
    cr_assert_eq(take(fd, code, sizeof code), sizeof code);
    bare_send(fd, code, sizeof code);
    side_await_closed(&dialer);
    cr_assert_eq(dialer.opened, 0);
    cr_assert(strstr(dialer.why, "does not know this process's secret"), "%s", dialer.why);
    close(fd);
    close(listener);
    side_fini(&dialer);
}
