// SPDX-License-Identifier: Apache-2.0
// What a stranger may send to a listener. The first byte says whether a hello that fits goes before
// the rest, and whether there is a secret, the second where the rest is cut in two. A short model
// of the protocol tells what the connection must have come to: whether it opened, which frames
// arrived, and why it ended.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network/nng/connection_impl.h"

// A finding: libFuzzer and the tests both see an abort.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fuzz_connection: line %d: %s\n", __LINE__, #condition);               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FRAME_MAX = 40000,
    HELLO = LEATI_FRAME_SIZE + LEATI_HELLO_SIZE,
    NONCE = LEATI_FRAME_SIZE + LEATI_NONCE_SIZE
};

// What became of a connection.
typedef struct outcome {
    bool opened;
    uint32_t arrived;
    uint64_t sum; // of headers and payloads, in their order
    leat_err err;
} outcome;

static void add(outcome *self, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        self->sum = self->sum * 31 + bytes[i];
}

static void add_frame(outcome *self, const leati_frame *frame, const uint8_t *payload)
{
    uint8_t header[LEATI_FRAME_SIZE];
    leati_frame_put(frame, header);
    add(self, header, sizeof header);
    add(self, payload, frame->size);
    self->arrived++;
}

// --- the connection ---

typedef struct taker {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    leati_connection *connection;
    outcome seen;
    uint8_t payload[FRAME_MAX];
} taker;

static void opened(leati_connection *connection, void *user, const leati_hello *peer)
{
    ((taker *)user)->seen.opened = true;
    (void)connection, (void)peer;
}

static leat_err place(leati_connection *connection, void *user, const leati_frame *frame,
                      uint8_t **to)
{
    EXPECT(frame->size > 0 && frame->size <= FRAME_MAX);
    *to = ((taker *)user)->payload;
    (void)connection;
    return LEAT_OK;
}

static leat_err arrived(leati_connection *connection, void *user, const leati_frame *frame)
{
    taker *self = user;
    add_frame(&self->seen, frame, self->payload);
    (void)connection;
    return LEAT_OK;
}

static size_t fill(leati_connection *connection, void *user,
                   leati_part parts[LEATI_CONNECTION_PARTS])
{
    (void)connection, (void)user, (void)parts;
    return 0;
}

static void sent(leati_connection *connection, void *user)
{
    EXPECT(!"nothing was given to be sent");
    (void)connection, (void)user;
}

static void closed(leati_connection *connection, void *user, leat_err err, const char *why)
{
    taker *self = user;
    EXPECT(*why);
    pthread_mutex_lock(&self->lock);
    self->seen.err = err;
    self->has_ended = true;
    pthread_cond_signal(&self->ended);
    pthread_mutex_unlock(&self->lock);
    (void)connection;
}

static const leati_connection_hooks hooks = {.opened = opened,
                                             .place = place,
                                             .arrived = arrived,
                                             .fill = fill,
                                             .sent = sent,
                                             .closed = closed};

static leat_err accepted(void *user, leati_connection *connection,
                         const leati_connection_hooks **its_hooks, void **connection_user)
{
    ((taker *)user)->connection = connection;
    *its_hooks = &hooks;
    *connection_user = user;
    return LEAT_OK;
}

static leati_hello our_hello(void)
{
    leati_hello hello = {.purpose = "data", .segment_size = 32768, .cluster = "fuzz"};
    leati_hello_complete(&hello);
    return hello;
}

// --- the model ---

static leat_err expect_frames(outcome *expected, const uint8_t *data, size_t size)
{
    leati_frame frame;
    while (size >= LEATI_FRAME_SIZE) {
        leati_frame_get(&frame, data);
        data += LEATI_FRAME_SIZE;
        size -= LEATI_FRAME_SIZE;
        if (frame.kind == 0)
            return LEAT_ECORRUPT;
        if (frame.size > FRAME_MAX)
            return LEAT_ETOOBIG;
        if (frame.size > size)
            return LEAT_EIO;
        add_frame(expected, &frame, data);
        data += frame.size;
        size -= frame.size;
    }
    return size == 0 ? LEAT_ECLOSED : LEAT_EIO;
}

// A code cannot be right: half of what it covers is random.
static leat_err expect_code(const uint8_t *data, size_t size)
{
    leati_frame frame;
    if (size < LEATI_FRAME_SIZE)
        return LEAT_ECLOSED;
    leati_frame_get(&frame, data);
    if (frame.kind != 0 || frame.flags != 1 || (frame.size != LEATI_MAC_SIZE && frame.size != 0))
        return LEAT_ECORRUPT;
    return size < LEATI_FRAME_SIZE + frame.size ? LEAT_ECLOSED : LEAT_EINVAL;
}

// Both hellos fit, but for what they say of a secret; `size` bytes follow the hello.
static void expect_after_hello(outcome *expected, const uint8_t *data, size_t size, bool theirs,
                               bool ours)
{
    expected->err = LEAT_EINVAL;
    if (theirs != ours)
        return;
    if (ours) {
        expected->err = expect_code(data, size);
        return;
    }
    expected->opened = true;
    expected->err = expect_frames(expected, data, size);
}

static void expect(outcome *expected, const uint8_t *data, size_t size, bool secret)
{
    char why[LEATI_WHY_SIZE];
    leati_frame frame;
    leati_hello ours = our_hello(), theirs;
    expected->err = LEAT_ECLOSED;
    if (size < LEATI_FRAME_SIZE)
        return;
    leati_frame_get(&frame, data);
    expected->err = LEAT_ECORRUPT;
    if (frame.kind != 0 || frame.size != LEATI_HELLO_SIZE || frame.flags > 1)
        return;
    bool with_secret = frame.flags == 1;
    size_t hello = HELLO + (with_secret ? NONCE : 0);
    expected->err = LEAT_ECLOSED;
    if (size < hello)
        return;
    expected->err = LEAT_ECORRUPT;
    if (!leati_hello_get(&theirs, data + LEATI_FRAME_SIZE))
        return;
    if (with_secret) {
        leati_frame_get(&frame, data + HELLO);
        if (frame.kind != 0 || frame.size != LEATI_NONCE_SIZE)
            return;
    }
    expected->err = leati_hello_check(&ours, &theirs, why, sizeof why);
    if (expected->err == LEAT_OK)
        expect_after_hello(expected, data + hello, size - hello, with_secret, secret);
}

// --- one input ---

// The other side may have had enough before all is sent.
static void send_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = send(fd, data, size, MSG_NOSIGNAL);
        if (wrote < 0 && errno == EINTR)
            continue; // libFuzzer's alarm
        if (wrote <= 0)
            return;
        data += wrote;
        size -= (size_t)wrote;
    }
}

static void talk(const char *address, const uint8_t *data, size_t size, size_t cut)
{
    uint8_t bytes[1024];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    send_all(fd, data, cut);
    send_all(fd, data + cut, size - cut);
    shutdown(fd, SHUT_WR);
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0 || (got < 0 && errno == EINTR))
        continue;
    close(fd);
}

static leati_listener *listen_for(taker *self, bool secret)
{
    static leati_auth auth = {.secret = {.bytes = "a secret of a cluster", .size = 21}};
    char why[256];
    leati_listener *listener;
    leati_listener_options options = {.address = "tcp://127.0.0.1:0",
                                      .hello = our_hello(),
                                      .auth = secret ? &auth : NULL,
                                      .hello_timeout_ms = 60000,
                                      .frame_max = FRAME_MAX,
                                      .most = 10,
                                      .accepted = accepted,
                                      .user = self};
    EXPECT(leati_listener_create(&options, &listener, why, sizeof why) == LEAT_OK);
    return listener;
}

// A hello that fits; with a secret, a nonce behind it. Its size.
static size_t put_head(uint8_t *bytes, bool secret)
{
    leati_hello hello = our_hello();
    leati_hello_put(&hello, bytes);
    if (!secret)
        return HELLO;
    leati_frame_put(&(leati_frame){.size = LEATI_HELLO_SIZE, .flags = 1}, bytes);
    leati_frame_put(&(leati_frame){.size = LEATI_NONCE_SIZE}, bytes + HELLO);
    memset(bytes + HELLO + LEATI_FRAME_SIZE, 7, LEATI_NONCE_SIZE);
    return HELLO + NONCE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    // Made once, as listening is not what is tested here: without a secret, and with it.
    static leati_listener *listeners[2];
    static taker self = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    if (size < 2)
        return 0;
    bool secret = data[0] & 2;
    if (!listeners[secret])
        listeners[secret] = listen_for(&self, secret);
    const leati_listener *listener = listeners[secret];
    uint8_t *bytes = malloc(HELLO + NONCE + size);
    EXPECT(bytes);
    size_t head = data[0] & 1 ? put_head(bytes, secret) : 0;
    memcpy(bytes + head, data + 2, size - 2);
    size += head - 2;
    outcome expected = {0};
    expect(&expected, bytes, size, secret);
    self.has_ended = false;
    self.seen = (outcome){0};
    talk(leati_listener_address(listener), bytes, size, size * data[1] / 256);
    pthread_mutex_lock(&self.lock);
    while (!self.has_ended)
        pthread_cond_wait(&self.ended, &self.lock);
    pthread_mutex_unlock(&self.lock);
    leati_connection_destroy(&self.connection);
    EXPECT(self.seen.opened == expected.opened);
    EXPECT(self.seen.arrived == expected.arrived);
    EXPECT(self.seen.sum == expected.sum);
    EXPECT(self.seen.err == expected.err);
    free(bytes);
    return 0;
}
