// SPDX-License-Identifier: Apache-2.0
// The hand-shake, on the reader's thread: each side says hello; and where there is a secret, each
// shows that it knows it.
//
// With a secret a nonce goes behind the hello, and both are covered by the codes that follow. The
// side that has dialed shows its code first: who only connects learns nothing that he could try
// guesses on. The codes of the two differ in a word, so that none can be sent back, and each covers
// a nonce of the side that checks it, so that none can be sent again.
#include <string.h>

#include "network/nng/auth.h"
#include "network/nng/connection_impl.h"

// A hello's flag: a nonce follows it, and codes are wanted.
enum { WITH_SECRET = 1 };

// Ours must be on its way before the connection ends, so that a peer that does not fit learns why.
static void await_greeting_sent(leati_connection *self)
{
    while (!atomic_load_explicit(&self->greeted, memory_order_acquire))
        leati_futex_wait(&self->greeted, 0);
}

static leat_err refuse_stranger(leati_connection *self)
{
    return leati_connection_fail(self, LEAT_ECORRUPT,
                                 "is no process of Leat: what it says makes no "
                                 "sense");
}

static bool has_secret(const leati_connection *self)
{
    return self->auth && self->auth->secret.size > 0;
}

leat_err leati_connection_prepare_hello(leati_connection *self)
{
    leati_hello_put(&self->hello, self->hello_frame);
    self->hello_size = LEATI_FRAME_SIZE + LEATI_HELLO_SIZE;
    if (!has_secret(self))
        return LEAT_OK;
    uint8_t *nonce = self->hello_frame + self->hello_size;
    leati_frame_put(&(leati_frame){.size = LEATI_HELLO_SIZE, .flags = WITH_SECRET},
                    self->hello_frame);
    leati_frame_put(&(leati_frame){.size = LEATI_NONCE_SIZE}, nonce);
    self->hello_size += LEATI_FRAME_SIZE + LEATI_NONCE_SIZE;
    return leati_nonce_make(nonce + LEATI_FRAME_SIZE, LEATI_NONCE_SIZE) ? LEAT_OK : LEAT_EIO;
}

// --- codes ---

typedef struct codes {
    uint8_t dialer[LEATI_MAC_SIZE], listener[LEATI_MAC_SIZE];
} codes;

// Over all that both have said, from the buffer, where the peer's hello is.
static leat_err make_codes(leati_connection *self, const uint8_t *theirs, size_t size, codes *to)
{
    static const char label[] = "Leat hand-shake 1"; // its NUL too
    bool dialed = self->dialer != NULL;
    leati_bytes ours = {self->hello_frame, self->hello_size}, other = {theirs, size};
    leati_bytes parts[] = {
        {label, sizeof label}, {NULL, 0}, dialed ? ours : other, dialed ? other : ours};
    parts[1] = (leati_bytes){"dialer", 6};
    bool good = leati_secret_mac(&self->auth->secret, parts, 4, to->dialer);
    parts[1] = (leati_bytes){"listener", 8};
    good = good && leati_secret_mac(&self->auth->secret, parts, 4, to->listener);
    return good ? LEAT_OK
                : leati_connection_fail(self, LEAT_ENOMEM, "was given up: %s",
                                        leat_err_message(LEAT_ENOMEM));
}

// A code, or with NULL that the peer's is wrong. The writer has sent our hello and waits for the
// connection to be open, so that its side of the stream is free.
static leat_err send_code(leati_connection *self, const uint8_t *code, int64_t deadline_ns)
{
    uint8_t frame[LEATI_FRAME_SIZE + LEATI_MAC_SIZE];
    size_t size = code ? LEATI_MAC_SIZE : 0;
    leati_frame_put(&(leati_frame){.size = (uint32_t)size, .flags = WITH_SECRET}, frame);
    if (code)
        memcpy(frame + LEATI_FRAME_SIZE, code, size);
    await_greeting_sent(self);
    leati_part part = {.data = frame, .size = LEATI_FRAME_SIZE + size};
    int error = leati_connection_transmit(self, &part, 1, deadline_ns);
    if (!error)
        return LEAT_OK;
    return leati_connection_fail(self, leati_nng_error(error), "was lost while sending: %s",
                                 leati_nng_text(error));
}

// `*is` says whether the peer's code is the one that is expected.
static leat_err read_code(leati_connection *self, const uint8_t *expected, int64_t deadline_ns,
                          bool *is)
{
    leati_frame frame;
    leat_err err = leati_connection_buffer(self, LEATI_FRAME_SIZE, deadline_ns);
    if (err != LEAT_OK)
        return err;
    leati_frame_get(&frame, self->buffer + self->begin);
    if (frame.kind != 0 || frame.flags != WITH_SECRET ||
        (frame.size != LEATI_MAC_SIZE && frame.size != 0))
        return refuse_stranger(self);
    err = leati_connection_buffer(self, LEATI_FRAME_SIZE + frame.size, deadline_ns);
    if (err != LEAT_OK)
        return err;
    const uint8_t *code = self->buffer + self->begin + LEATI_FRAME_SIZE;
    if (frame.size == 0 && self->dialer)
        return leati_connection_fail(self, LEAT_EINVAL,
                                     "has another secret than this process: it was refused");
    *is = frame.size == LEATI_MAC_SIZE && leati_mac_is(code, expected);
    self->begin += LEATI_FRAME_SIZE + frame.size;
    return LEAT_OK;
}

static leat_err show_first(leati_connection *self, const codes *known, const leati_hello *peer,
                           int64_t deadline_ns)
{
    bool is = false;
    leat_err err = send_code(self, known->dialer, deadline_ns);
    if (err == LEAT_OK)
        err = read_code(self, known->listener, deadline_ns, &is);
    if (err != LEAT_OK || is)
        return err;
    return leati_connection_fail(self, LEAT_EINVAL, "(%s) does not know this process's secret",
                                 peer->process);
}

static leat_err show_second(leati_connection *self, const codes *known, const leati_hello *peer,
                            int64_t deadline_ns)
{
    bool is = false;
    leat_err err = read_code(self, known->dialer, deadline_ns, &is);
    if (err != LEAT_OK)
        return err;
    err = send_code(self, is ? known->listener : NULL, deadline_ns);
    if (err != LEAT_OK || is)
        return err;
    return leati_connection_fail(self, LEAT_EINVAL, "(%s) does not know this process's secret",
                                 peer->process);
}

// --- hellos ---

static leat_err compare(leati_connection *self, const leati_hello *peer, bool with_secret)
{
    char why[LEATI_WHY_SIZE];
    leat_err err = leati_hello_check(&self->hello, peer, why, sizeof why);
    if (err == LEAT_OK && with_secret == has_secret(self))
        return LEAT_OK;
    await_greeting_sent(self);
    if (err != LEAT_OK)
        return leati_connection_fail(self, err, "%s", why);
    return leati_connection_fail(
        self, LEAT_EINVAL,
        with_secret ? "(%s) wants a secret, and this process was given none (--secret-file)"
                    : "(%s) was given no secret, and this process wants it (--secret-file)",
        peer->process);
}

leat_err leati_connection_greet(leati_connection *self, leati_hello *peer)
{
    leati_frame frame;
    codes known;
    int64_t deadline_ns = leati_connection_deadline(self->hello_timeout_ms);
    // Before the writer begins, whose operations it uses.
    int error = self->auth && self->auth->tls ? leati_connection_shake_tls(self, deadline_ns) : 0;
    if (error)
        return leati_connection_lost(self, error, false);
    leati_connection_enter(self, LEATI_CONNECTION_GREETING);
    leat_err err = leati_connection_buffer(self, LEATI_FRAME_SIZE, deadline_ns);
    if (err != LEAT_OK)
        return err;
    leati_frame_get(&frame, self->buffer + self->begin);
    if (frame.kind != 0 || frame.size != LEATI_HELLO_SIZE || frame.flags > WITH_SECRET)
        return refuse_stranger(self);
    // The nonce is read also where it is not wanted: what is unread when a connection is closed
    // would keep the peer from reading our hello.
    bool with_secret = frame.flags == WITH_SECRET;
    size_t size = LEATI_FRAME_SIZE + LEATI_HELLO_SIZE +
                  (with_secret ? LEATI_FRAME_SIZE + LEATI_NONCE_SIZE : 0);
    err = leati_connection_buffer(self, size, deadline_ns);
    if (err != LEAT_OK)
        return err;
    const uint8_t *bytes = self->buffer + self->begin;
    if (!leati_hello_get(peer, bytes + LEATI_FRAME_SIZE))
        return refuse_stranger(self);
    if (with_secret) {
        leati_frame_get(&frame, bytes + LEATI_FRAME_SIZE + LEATI_HELLO_SIZE);
        if (frame.kind != 0 || frame.size != LEATI_NONCE_SIZE)
            return refuse_stranger(self);
    }
    err = compare(self, peer, with_secret);
    if (err == LEAT_OK && with_secret)
        err = make_codes(self, bytes, size, &known);
    self->begin += size;
    if (err != LEAT_OK || !with_secret)
        return err;
    return self->dialer ? show_first(self, &known, peer, deadline_ns)
                        : show_second(self, &known, peer, deadline_ns);
}
