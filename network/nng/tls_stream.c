// SPDX-License-Identifier: Apache-2.0
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "network/nng/tls.h"

struct leati_tls_stream {
    const leat_allocator *allocator;
    // Both threads use it, under the lock; nothing waits while it is held.
    pthread_mutex_t lock;
    SSL *ssl;
    BIO *in, *out; // of the peer, and for it; they belong to `ssl`
    // The putting thread's.
    uint8_t *taken;
    size_t taken_room;
    // The getting thread's.
    char why[300];
    uint8_t room[LEATI_TLS_ROOM];
};

leati_tls_stream *leati_tls_stream_create(const leati_tls *tls, const leat_allocator *allocator,
                                          bool dialed)
{
    leati_tls_stream *self = leati_alloc(allocator, sizeof *self);
    if (!self)
        return NULL;
    memset(self, 0, offsetof(leati_tls_stream, room));
    self->allocator = allocator;
    pthread_mutex_init(&self->lock, NULL);
    self->ssl = SSL_new(leati_tls_context(tls));
    self->in = BIO_new(BIO_s_mem());
    self->out = BIO_new(BIO_s_mem());
    if (!self->ssl || !self->in || !self->out) {
        BIO_free(self->in);
        BIO_free(self->out);
        self->in = self->out = NULL;
        leati_tls_stream_destroy(&self);
        return NULL;
    }
    SSL_set_bio(self->ssl, self->in, self->out);
    if (dialed)
        SSL_set_connect_state(self->ssl);
    else
        SSL_set_accept_state(self->ssl);
    return self;
}

void leati_tls_stream_destroy(leati_tls_stream **stream)
{
    leati_tls_stream *self = *stream;
    *stream = NULL;
    if (!self)
        return;
    SSL_free(self->ssl);
    pthread_mutex_destroy(&self->lock);
    leati_free(self->allocator, self->taken);
    leati_free(self->allocator, self);
}

// --- what went wrong ---

static void explain(leati_tls_stream *self)
{
    long fault = SSL_get_verify_result(self->ssl);
    unsigned long error = ERR_peek_error();
    const char *reason = error ? ERR_reason_error_string(error) : NULL;
    // An alert is what the other side says of us.
    static const char sslv3[] = "sslv3 alert ", tls[] = "tlsv1 alert ", tls13[] = "tlsv13 alert ";
    if (fault != X509_V_OK)
        snprintf(self->why, sizeof self->why, "its certificate is refused: %s",
                 X509_verify_cert_error_string(fault));
    else if (reason && strncmp(reason, sslv3, sizeof sslv3 - 1) == 0)
        snprintf(self->why, sizeof self->why, "it says: %s", reason + sizeof sslv3 - 1);
    else if (reason && strncmp(reason, tls, sizeof tls - 1) == 0)
        snprintf(self->why, sizeof self->why, "it says: %s", reason + sizeof tls - 1);
    else if (reason && strncmp(reason, tls13, sizeof tls13 - 1) == 0)
        snprintf(self->why, sizeof self->why, "it says: %s", reason + sizeof tls13 - 1);
    else
        snprintf(self->why, sizeof self->why, "%s", reason ? reason : "what it sends is no TLS");
    ERR_clear_error();
}

const char *leati_tls_stream_why(const leati_tls_stream *stream)
{
    return stream->why;
}

// Of a call that has not succeeded; under the lock.
static leati_tls_state judge_locked(leati_tls_stream *self, int result)
{
    switch (SSL_get_error(self->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return LEATI_TLS_WANTS;
    case SSL_ERROR_ZERO_RETURN:
        return LEATI_TLS_ENDED;
    default:
        return LEATI_TLS_FAILED;
    }
}

// --- the thread that gets ---

leati_tls_state leati_tls_stream_shake(leati_tls_stream *stream)
{
    ERR_clear_error();
    pthread_mutex_lock(&stream->lock);
    int result = SSL_do_handshake(stream->ssl);
    leati_tls_state state = result == 1 ? LEATI_TLS_DONE : judge_locked(stream, result);
    if (state == LEATI_TLS_FAILED)
        explain(stream);
    pthread_mutex_unlock(&stream->lock);
    return state;
}

leati_tls_state leati_tls_stream_get(leati_tls_stream *stream, void *to, size_t size, size_t *got)
{
    ERR_clear_error();
    pthread_mutex_lock(&stream->lock);
    int result = SSL_read_ex(stream->ssl, to, size, got);
    leati_tls_state state = result == 1 ? LEATI_TLS_DONE : judge_locked(stream, result);
    if (state == LEATI_TLS_FAILED)
        explain(stream);
    pthread_mutex_unlock(&stream->lock);
    return state;
}

uint8_t *leati_tls_stream_room(leati_tls_stream *stream)
{
    return stream->room;
}

bool leati_tls_stream_feed(leati_tls_stream *stream, size_t size)
{
    pthread_mutex_lock(&stream->lock);
    int written = BIO_write(stream->in, stream->room, (int)size);
    pthread_mutex_unlock(&stream->lock);
    return written == (int)size;
}

// --- the thread that puts ---

leati_tls_state leati_tls_stream_put(leati_tls_stream *stream, const void *bytes, size_t size)
{
    size_t written = 0;
    ERR_clear_error();
    pthread_mutex_lock(&stream->lock);
    int result = SSL_write_ex(stream->ssl, bytes, size, &written);
    leati_tls_state state = result == 1 ? LEATI_TLS_DONE : judge_locked(stream, result);
    ERR_clear_error();
    pthread_mutex_unlock(&stream->lock);
    return state;
}

bool leati_tls_stream_take(leati_tls_stream *stream, const uint8_t **bytes, size_t *size)
{
    bool good = true;
    pthread_mutex_lock(&stream->lock);
    *size = BIO_ctrl_pending(stream->out);
    if (*size > stream->taken_room) {
        leati_free(stream->allocator, stream->taken);
        stream->taken = leati_alloc(stream->allocator, *size);
        stream->taken_room = stream->taken ? *size : 0;
        good = stream->taken != NULL;
    }
    if (good && *size > 0)
        good = BIO_read(stream->out, stream->taken, (int)*size) == (int)*size;
    pthread_mutex_unlock(&stream->lock);
    *bytes = stream->taken;
    return good;
}
