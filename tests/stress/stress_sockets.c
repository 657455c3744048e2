// SPDX-License-Identifier: Apache-2.0
// Socket sinks and sources around a relay that hands what the sink sends to the source, in pieces
// of random size. One job writes numbers, another reads them. The relay may cut connections, and
// jobs may be cancelled at a random moment, while they look up a name, connect, pause or wait. Jobs
// that come to their end over whole connections must have passed each number once and in order. A
// watchdog ends the program when a round takes too long.
//
//     stress_sockets [SECONDS [SEED]]
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "leat/leat.h"
#include "seeded.h"

enum { MOST = 20000 };

// --- the relay ---

typedef struct relay {
    int from_fd, to_fd; // where the sink and the source connect
    uint32_t from_port, to_port;
    bool cuts; // connections break now and then
    uint64_t random;
    pthread_t thread;
} relay;

static int listen_anywhere(uint32_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        wrong("no server", errno, 0);
    *port = ntohs(address.sin_port);
    return fd;
}

// Hands on what comes until one of the two is gone; false when it is to be cut before.
static bool pass(relay *r, int from, int to)
{
    char data[5000];
    ssize_t got;
    while ((got = recv(from, data, 1 + next_random(&r->random, sizeof data), 0)) > 0) {
        for (ssize_t at = 0, sent; at < got; at += sent)
            if ((sent = send(to, data + at, (size_t)(got - at), MSG_NOSIGNAL)) < 0)
                return true;
        if (r->cuts && next_random(&r->random, 20) == 0)
            return false;
    }
    return true;
}

// Pairs of connections, until the listeners are shut down.
static void *relay_main(void *arg)
{
    relay *r = arg;
    for (;;) {
        int from = accept(r->from_fd, NULL, NULL);
        int to = from >= 0 ? accept(r->to_fd, NULL, NULL) : -1;
        if (to >= 0 && !pass(r, from, to)) {
            struct linger at_once = {.l_onoff = 1};
            setsockopt(next_random(&r->random, 2) ? from : to, SOL_SOCKET, SO_LINGER, &at_once,
                       sizeof at_once);
        }
        if (from >= 0)
            close(from);
        if (to < 0)
            return NULL;
        close(to);
    }
}

static void relay_begin(relay *r, bool cuts)
{
    *r = (relay){.cuts = cuts, .random = random_now};
    r->from_fd = listen_anywhere(&r->from_port);
    r->to_fd = listen_anywhere(&r->to_port);
    if (pthread_create(&r->thread, NULL, relay_main, r) != 0)
        wrong("no thread", errno, 0);
}

static void relay_end(relay *r)
{
    shutdown(r->from_fd, SHUT_RDWR);
    shutdown(r->to_fd, SHUT_RDWR);
    pthread_join(r->thread, NULL);
    close(r->from_fd);
    close(r->to_fd);
}

// --- the jobs ---

typedef struct reading {
    _Atomic int64_t lines;
    bool whole; // they must be the numbers in their order
} reading;

static int check(leat_ctx *ctx, const void *in)
{
    reading *r = leat_ctx_user_data(ctx);
    const leat_str *line = in;
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRId64, r->lines);
    if (r->whole && (line->size != (size_t)size || memcmp(line->data, text, line->size) != 0))
        wrong("a wrong line", r->lines, (int64_t)line->size);
    r->lines++;
    return 0;
}

static leat_env *environment(void)
{
    leat_env *env;
    if (leat_env_create(NULL, &env) != LEAT_OK)
        wrong("no environment", 0, 0);
    leat_env_set(env, "workers", "2");
    return env;
}

static const char *host(void)
{
    return below(2) ? "127.0.0.1" : "localhost";
}

static leat_env *writer(const relay *r, int64_t count)
{
    leat_env *env = environment();
    leat_socket_sink_options options = {.flush_each = below(4) == 0,
                                        .max_retries = r->cuts ? LEAT_RETRY_FOR_EVER : 0,
                                        .retry_delay_ms = 1 + below(3)};
    leat_write_socket(leat_sequence(env, 0, count - 1), host(), r->from_port, &options);
    return env;
}

static leat_env *reader(const relay *r, reading *to)
{
    leat_env *env = environment();
    leat_socket_source_options options = {.max_retries = r->cuts ? LEAT_RETRY_FOR_EVER : 0,
                                          .retry_delay_ms = 1 + below(3)};
    leat_user_data(leat_sink(leat_read_socket(env, host(), r->to_port, &options), check), to);
    return env;
}

static void stop_at_random(leat_job *job, const reading *r, int64_t count)
{
    int64_t at = below((uint32_t)count + 1);
    // Where lines were lost that many may never come.
    for (int i = 0; i < 2000 && r->lines < at; i++)
        if (leat_job_get_state(job) == LEAT_JOB_RUNNING)
            usleep(100);
    leat_job_cancel(job);
}

static void round_of(void)
{
    int64_t count = 1 + below(MOST);
    bool cuts = below(2), cancelled = cuts || below(3) == 0;
    relay r;
    reading to = {.whole = !cuts};
    leat_runtime *runtime;
    leat_job *writing, *job;
    relay_begin(&r, cuts);
    leat_env *out = writer(&r, count), *in = reader(&r, &to);
    if (leat_runtime_create(in, &runtime, NULL, 0) != LEAT_OK ||
        leat_start(runtime, in, &job) != LEAT_OK || leat_start(runtime, out, &writing) != LEAT_OK)
        wrong("no job", 0, 0);
    if (cancelled) {
        stop_at_random(job, &to, count);
        leat_job_cancel(writing);
    }
    leat_err written = leat_job_wait(writing, -1), heard = leat_job_wait(job, -1);
    if (!cancelled && (written || heard || to.lines != count))
        wrong("an end that is not whole", written ? written : heard, to.lines);
    leat_job_destroy(&writing);
    leat_job_destroy(&job);
    relay_end(&r);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&out);
    leat_env_destroy(&in);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t end_s = clock_s() + seconds, rounds = 0;
    start_watchdog();
    do {
        random_now = seed_now = seed + (uint64_t)rounds;
        feed_watchdog();
        round_of();
        rounds++;
    } while (clock_s() < end_s);
    printf("%" PRId64 " rounds\n", rounds);
    return 0;
}
