// SPDX-License-Identifier: Apache-2.0
// One thread a process. The sender fills eight segments while the eight before them are on their
// way; the receiver reads the rest of a segment and the next header in one call, and then decodes
// the segment.
#include "bench/bare_remote.h"

#include <errno.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "bench/histogram.h"
#include "bench/job.h"
#include "bench/pair.h"

enum { SEGMENT = 32 * 1024, HEADER = 16, GATHERED = 8, TRIP = 64 };

// The header stands before the data.
typedef struct segment {
    uint32_t size; // of the data; 0: the end
    uint32_t unused[3];
    uint8_t data[SEGMENT];
} segment;

static int fail(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, nng_strerror(error));
    return -1;
}

// --- records, by hand ---

static uint8_t *encode(uint8_t *to, const uint8_t *end, int64_t id, const uint8_t *body,
                       uint32_t size)
{
    if ((size_t)(end - to) < size + 15u)
        return NULL;
    uint64_t big = __builtin_bswap64((uint64_t)id);
    *to++ = 0x92;
    *to++ = 0xd3;
    memcpy(to, &big, 8);
    to += 8;
    if (size < 256) {
        *to++ = 0xd9;
        *to++ = (uint8_t)size;
    } else {
        uint32_t big_size = __builtin_bswap32(size);
        *to++ = 0xdb;
        memcpy(to, &big_size, 4);
        to += 4;
    }
    memcpy(to, body, size);
    return to + size;
}

// Adds up all records of a segment. False: they are none.
static bool decode(const segment *s, bare_result *result)
{
    const uint8_t *at = s->data, *end = at + s->size;
    while (end - at >= 15) {
        uint64_t big;
        uint32_t size;
        if (at[0] != 0x92 || at[1] != 0xd3)
            return false;
        memcpy(&big, at + 2, 8);
        if (at[10] == 0xd9) {
            size = at[11];
            at += 12;
        } else if (at[10] == 0xdb) {
            memcpy(&size, at + 11, 4);
            size = __builtin_bswap32(size);
            at += 15;
        } else {
            return false;
        }
        if ((size_t)(end - at) < size)
            return false;
        at += size;
        result->records++;
        result->sum += __builtin_bswap64(big) + size;
    }
    return at == end;
}

// --- nng ---

static int wait_for(nng_aio *aio)
{
    nng_aio_wait(aio);
    return nng_aio_result(aio);
}

static int send_all(nng_stream *stream, nng_aio *aio, nng_iov *iov, unsigned count, bool begun)
{
    for (unsigned first = 0;;) {
        if (!begun) {
            nng_aio_set_iov(aio, count - first, iov + first);
            nng_stream_send(stream, aio);
        }
        begun = false;
        int error = wait_for(aio);
        if (error)
            return error;
        for (size_t sent = nng_aio_count(aio); sent > 0 && first < count;) {
            size_t step = sent < iov[first].iov_len ? sent : iov[first].iov_len;
            iov[first].iov_buf = (uint8_t *)iov[first].iov_buf + step;
            iov[first].iov_len -= step;
            sent -= step;
            first += iov[first].iov_len == 0;
        }
        if (first == count)
            return 0;
    }
}

static int receive_exactly(nng_stream *stream, nng_aio *aio, void *to, size_t size)
{
    for (size_t got = 0; got < size; got += nng_aio_count(aio)) {
        nng_iov iov = {.iov_buf = (uint8_t *)to + got, .iov_len = size - got};
        nng_aio_set_iov(aio, 1, &iov);
        nng_stream_recv(stream, aio);
        int error = wait_for(aio);
        if (error)
            return error;
    }
    return 0;
}

// --- the sender ---

typedef struct sender {
    segment *segments; // two rows of GATHERED
    uint64_t next, records;
    uint8_t *body;
    uint32_t size;
} sender;

// Fills a row; returns how many segments there are in it, the end among them.
static unsigned fill(sender *s, segment *row, nng_iov iov[GATHERED])
{
    unsigned count = 0;
    bool end = false;
    while (count < GATHERED && !end) {
        segment *to = &row[count];
        uint8_t *at = to->data, *after = at;
        while (s->next < s->records &&
               (after = encode(at, to->data + SEGMENT, (int64_t)s->next, s->body, s->size))) {
            at = after;
            s->next++;
        }
        to->size = (uint32_t)(at - to->data);
        end = to->size == 0;
        iov[count++] = (nng_iov){.iov_buf = to, .iov_len = HEADER + to->size};
    }
    return count;
}

static int send_records(const bare_load *load, nng_stream *stream)
{
    nng_aio *aio;
    nng_iov iov[2][GATHERED];
    sender s = {.records = load->records,
                .size = load->body,
                .segments = calloc(2 * GATHERED, sizeof(segment)),
                .body = calloc(1, load->body)};
    int error = !s.segments || !s.body ? NNG_ENOMEM : nng_aio_alloc(&aio, NULL, NULL);
    if (error)
        return fail("no memory", error);
    unsigned under_way = 0;
    bool more = true;
    for (unsigned turn = 0; more && !error; turn = 1 - turn) {
        segment *row = s.segments + turn * GATHERED;
        unsigned count = fill(&s, row, iov[turn]);
        if (under_way)
            error = send_all(stream, aio, iov[1 - turn], under_way, true);
        if (error)
            break;
        nng_aio_set_iov(aio, count, iov[turn]);
        nng_stream_send(stream, aio);
        under_way = count;
        more = row[count - 1].size > 0;
        if (!more)
            error = send_all(stream, aio, iov[turn], count, true);
    }
    nng_aio_free(aio);
    free(s.segments);
    free(s.body);
    return error ? fail("sending", error) : 0;
}

// --- the receiver ---

static int receive_records(nng_stream *stream, bare_result *result)
{
    nng_aio *aio;
    segment *ring = calloc(2, sizeof *ring);
    int error = ring ? nng_aio_alloc(&aio, NULL, NULL) : NNG_ENOMEM;
    if (error) {
        free(ring);
        return fail("no memory", error);
    }
    bool good = true;
    error = receive_exactly(stream, aio, &ring[0], HEADER);
    for (unsigned turn = 0; !error && good && ring[turn].size > 0; turn = 1 - turn) {
        segment *this = &ring[turn], *next = &ring[1 - turn];
        size_t needed = this->size + HEADER;
        for (size_t got = 0; got < needed && !error;) {
            nng_iov iov[2] = {{.iov_buf = this->data + got, .iov_len = this->size - got},
                              {.iov_buf = next, .iov_len = HEADER}};
            unsigned skip = got >= this->size;
            if (skip)
                iov[1] = (nng_iov){.iov_buf = (uint8_t *)next + (got - this->size),
                                   .iov_len = needed - got};
            nng_aio_set_iov(aio, 2 - skip, iov + skip);
            nng_stream_recv(stream, aio);
            error = wait_for(aio);
            got += error ? 0 : nng_aio_count(aio);
        }
        good = error || decode(this, result);
    }
    nng_aio_free(aio);
    free(ring);
    if (!good)
        fprintf(stderr, "what has come is none of the records\n");
    return error ? fail("receiving", error) : good ? 0 : -1;
}

// --- plain sockets ---

static int plain_send(int fd, const bare_load *load)
{
    static uint8_t bytes[GATHERED][SEGMENT];
    uint64_t left = load->records * (load->body + (load->body < 256 ? 12u : 15u));
    while (left > 0) {
        struct iovec iov[GATHERED];
        for (int i = 0; i < GATHERED; i++)
            iov[i] = (struct iovec){bytes[i], SEGMENT};
        if (left < sizeof bytes)
            iov[0].iov_len = left < SEGMENT ? left : SEGMENT;
        ssize_t sent = writev(fd, iov, left < sizeof bytes ? 1 : GATHERED);
        if (sent < 0 && errno != EINTR) {
            perror("writing");
            return -1;
        }
        left -= sent > 0 ? (uint64_t)sent : 0;
    }
    return 0;
}

static int plain_receive(int fd, const bare_load *load)
{
    static uint8_t bytes[2][SEGMENT];
    uint64_t left = load->records * (load->body + (load->body < 256 ? 12u : 15u));
    while (left > 0) {
        struct iovec iov[2] = {{bytes[0], SEGMENT}, {bytes[1], SEGMENT}};
        ssize_t got = readv(fd, iov, 2);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            perror("reading");
            return -1;
        }
        left -= got > 0 ? (uint64_t)got : 0;
    }
    return 0;
}

// A listening socket at any port, which is returned in `at`.
static int plain_listen(struct sockaddr_in *at)
{
    socklen_t size = sizeof *at;
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)at, size) == 0 && listen(fd, 1) == 0 &&
        getsockname(fd, (struct sockaddr *)at, &size) == 0)
        return fd;
    perror("listening");
    if (fd >= 0)
        close(fd);
    return -1;
}

static int plain_near(const bare_load *load, int socket)
{
    struct sockaddr_in at;
    int listener = plain_listen(&at);
    if (listener < 0 || far_put(socket, &at, sizeof at) != 0)
        return -1;
    int fd = accept(listener, NULL, NULL);
    close(listener);
    if (fd < 0)
        return -1;
    int status = plain_send(fd, load);
    close(fd);
    return status;
}

static int plain_far(const bare_load *load)
{
    struct sockaddr_in at;
    if (far_get(0, &at, sizeof at) != 0)
        return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror("connecting");
        return -1;
    }
    int status = plain_receive(fd, load);
    close(fd);
    return status;
}

// --- connecting by nng ---

// Waits for the other process to dial.
static int nng_near(int socket, nng_stream **stream)
{
    nng_stream_listener *listener;
    nng_aio *aio;
    int port = 0, error = nng_stream_listener_alloc(&listener, "tcp://127.0.0.1:0");
    if (error)
        return fail("listening", error);
    error = nng_aio_alloc(&aio, NULL, NULL);
    if (!error)
        error = nng_stream_listener_listen(listener);
    if (!error)
        error = nng_stream_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port);
    if (!error && far_put(socket, &port, sizeof port) != 0)
        return -1;
    if (!error) {
        nng_stream_listener_accept(listener, aio);
        error = wait_for(aio);
    }
    if (!error)
        *stream = nng_aio_get_output(aio, 0);
    nng_stream_listener_free(listener);
    nng_aio_free(aio);
    return error ? fail("accepting", error) : 0;
}

static int nng_far(nng_stream **stream)
{
    nng_stream_dialer *dialer;
    nng_aio *aio;
    char address[64];
    int port;
    if (far_get(0, &port, sizeof port) != 0)
        return -1;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    int error = nng_stream_dialer_alloc(&dialer, address);
    if (!error)
        error = nng_aio_alloc(&aio, NULL, NULL);
    if (error)
        return fail("dialing", error);
    nng_stream_dialer_dial(dialer, aio);
    error = wait_for(aio);
    if (!error)
        *stream = nng_aio_get_output(aio, 0);
    nng_stream_dialer_free(dialer);
    nng_aio_free(aio);
    return error ? fail("dialing", error) : 0;
}

// --- the two processes ---

static int near(const bare_load *load, int socket)
{
    nng_stream *stream;
    if (load->plain)
        return plain_near(load, socket);
    if (nng_near(socket, &stream) != 0)
        return -1;
    int status = send_records(load, stream);
    char done;
    if (!status)
        status = far_get(socket, &done, sizeof done); // all is received
    nng_stream_free(stream);
    return status;
}

static int far_side(const bare_load *load, bare_result *result)
{
    nng_stream *stream;
    if (load->plain)
        return plain_far(load);
    if (nng_far(&stream) != 0)
        return -1;
    int status = receive_records(stream, result);
    char done = 0;
    if (!status)
        status = far_put(0, &done, sizeof done);
    nng_stream_free(stream);
    return status;
}

int bare_remote(const bare_load *load, bare_result *result)
{
    far_process far;
    if (far_start(&far, "--bare") != 0)
        return -1;
    int status = far_put(far.socket, load, sizeof *load);
    if (!status)
        status = near(load, far.socket);
    if (!status)
        status = far_get(far.socket, result, sizeof *result);
    return far_finish(&far) == 0 ? status : -1;
}

int bare_far_main(void)
{
    bare_load load;
    bare_result result = {0};
    if (far_get(0, &load, sizeof load) != 0 || far_side(&load, &result) != 0)
        return 1;
    return far_put(0, &result, sizeof result) == 0 ? 0 : 1;
}

// --- round trips ---

static int trip(nng_stream *stream, nng_aio *aio, uint8_t bytes[TRIP], bool answer)
{
    nng_iov iov = {.iov_buf = bytes, .iov_len = TRIP};
    int error = answer ? receive_exactly(stream, aio, bytes, TRIP) : 0;
    if (!error)
        error = send_all(stream, aio, &iov, 1, false);
    if (!error && !answer)
        error = receive_exactly(stream, aio, bytes, TRIP);
    return error;
}

static int make_trips(const bare_trips *trips, nng_stream *stream, nng_aio *aio,
                      bare_halves *halves)
{
    static histogram h;
    uint8_t bytes[TRIP] = {0};
    int error = 0;
    h = (histogram){0};
    int64_t start = bench_now_ns();
    for (uint64_t i = 0; i < trips->count && !error; i++) {
        int64_t due = start + (int64_t)i * trips->interval_ns;
        struct timespec at = {due / 1000000000, due % 1000000000};
        if (trips->interval_ns)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        int64_t begun = bench_now_ns();
        error = trip(stream, aio, bytes, false);
        histogram_add(&h, bench_now_ns() - begun);
    }
    *halves = (bare_halves){(double)histogram_quantile(&h, 0.5) * 0.5e-3,
                            (double)histogram_quantile(&h, 0.99) * 0.5e-3};
    return error ? fail("a round trip", error) : 0;
}

int bare_round_trips(const bare_trips *trips, bare_halves *halves)
{
    far_process far;
    nng_stream *stream;
    nng_aio *aio;
    if (far_start(&far, "--echo") != 0)
        return -1;
    int status = far_put(far.socket, trips, sizeof *trips);
    if (status || nng_near(far.socket, &stream) != 0)
        return far_finish(&far), -1;
    status = nng_aio_alloc(&aio, NULL, NULL) ? -1 : 0;
    if (!status) {
        status = make_trips(trips, stream, aio, halves);
        nng_aio_free(aio);
    }
    nng_stream_free(stream);
    return far_finish(&far) == 0 ? status : -1;
}

int bare_echo_main(void)
{
    bare_trips trips;
    nng_stream *stream;
    nng_aio *aio;
    uint8_t bytes[TRIP];
    if (far_get(0, &trips, sizeof trips) != 0 || nng_far(&stream) != 0)
        return 1;
    int error = nng_aio_alloc(&aio, NULL, NULL);
    for (uint64_t i = 0; i < trips.count && !error; i++)
        error = trip(stream, aio, bytes, true);
    return error ? 1 : 0;
}
