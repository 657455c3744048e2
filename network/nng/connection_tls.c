// SPDX-License-Identifier: Apache-2.0
// The operations of a connection over TLS: as those of connection_io.c, with another form of the
// same bytes below.
#include "network/nng/connection_impl.h"
#include "network/nng/tls.h"

// Sends all that the stream has to say.
static int flush(leati_connection *self, int64_t deadline_ns)
{
    leati_part part;
    const uint8_t *bytes;
    if (!leati_tls_stream_take(self->tls, &bytes, &part.size))
        return NNG_ENOMEM;
    part.data = bytes;
    return part.size ? leati_connection_transmit_bytes(self, &part, 1, deadline_ns) : 0;
}

// Gives the stream what comes next of the peer.
static int feed(leati_connection *self, int64_t deadline_ns)
{
    size_t got;
    const nng_iov iov = {.iov_buf = leati_tls_stream_room(self->tls), .iov_len = LEATI_TLS_ROOM};
    int error = leati_connection_receive_bytes(self, &iov, 1, deadline_ns, &got);
    if (error)
        return error;
    return leati_tls_stream_feed(self->tls, got) ? 0 : NNG_ENOMEM;
}

static int error_of(leati_tls_state state)
{
    return state == LEATI_TLS_ENDED ? NNG_ECONNSHUT : NNG_ECRYPTO;
}

int leati_connection_shake_tls(leati_connection *self, int64_t deadline_ns)
{
    self->tls = leati_tls_stream_create(self->auth->tls, self->allocator, self->dialer != NULL);
    if (!self->tls)
        return NNG_ENOMEM;
    for (;;) {
        leati_tls_state state = leati_tls_stream_shake(self->tls);
        // What is said last tells the other side why it is refused.
        int error = flush(self, deadline_ns);
        if (state == LEATI_TLS_FAILED || state == LEATI_TLS_ENDED)
            return error_of(state);
        if (state == LEATI_TLS_DONE || error)
            return error;
        error = feed(self, deadline_ns);
        if (error)
            return error;
    }
}

int leati_connection_receive_tls(leati_connection *self, const nng_iov *iov, unsigned count,
                                 int64_t deadline_ns, size_t *got)
{
    *got = 0;
    for (unsigned i = 0; i < count;) {
        size_t size = 0, done = 0;
        leati_tls_state state = LEATI_TLS_DONE;
        for (; done < iov[i].iov_len && state == LEATI_TLS_DONE; done += size, size = 0)
            state = leati_tls_stream_get(self->tls, (uint8_t *)iov[i].iov_buf + done,
                                         iov[i].iov_len - done, &size);
        *got += done;
        if (state == LEATI_TLS_DONE)
            i++;
        else if (*got > 0) // what has gone wrong after it is found the next time
            return 0;
        else if (state != LEATI_TLS_WANTS)
            return error_of(state);
        else {
            int error = feed(self, deadline_ns);
            if (error)
                return error;
        }
    }
    return 0;
}

int leati_connection_transmit_tls(leati_connection *self, const leati_part *parts, size_t count,
                                  int64_t deadline_ns)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = parts[i].data;
        for (size_t left = parts[i].size; left > 0;) {
            size_t size = left < LEATI_TLS_CHUNK ? left : LEATI_TLS_CHUNK;
            leati_tls_state state = leati_tls_stream_put(self->tls, at, size);
            if (state != LEATI_TLS_DONE)
                return error_of(state);
            at += size;
            left -= size;
            int error = flush(self, deadline_ns);
            if (error)
                return error;
        }
    }
    return 0;
}
