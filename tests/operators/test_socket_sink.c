// SPDX-License-Identifier: Apache-2.0
// Nothing here is timed: what is wrong waits for ever, and the time limit finds it.
#include <inttypes.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "run.h"
#include "tcp.h"

TestSuite(socket_sink, .timeout = 60);

// A server that takes connections, one after the other, and keeps what each brought.
enum { MOST_VISITS = 8 };

typedef struct server {
    int fd;
    uint32_t port;
    int visits;  // connections to be taken
    size_t most; // bytes of the first one, which is then reset; 0: all
    size_t says; // bytes that it sends before it listens
    leati_strbuf heard[MOST_VISITS];
    pthread_t thread;
} server;

static void *serve(void *arg)
{
    server *s = arg;
    for (int i = 0; i < s->visits; i++) {
        int peer = tcp_accept(s->fd);
        char *words = calloc(1, s->says + 1);
        (void)tcp_send(peer, words, s->says);
        free(words);
        bool cut = i == 0 && s->most;
        tcp_hear(peer, &s->heard[i], cut ? s->most : SIZE_MAX);
        if (cut)
            tcp_reset(peer);
        else
            close(peer);
    }
    close(s->fd);
    return NULL;
}

static void server_begin(server *s)
{
    for (int i = 0; i < MOST_VISITS; i++)
        leati_strbuf_init(&s->heard[i], NULL);
    s->fd = tcp_listen(&s->port);
    s->thread = tcp_thread(serve, s);
}

static void server_end(server *s)
{
    for (int i = 0; i < MOST_VISITS; i++)
        leati_strbuf_fini(&s->heard[i]);
}

typedef struct {
    int64_t id;
    leat_str name;
} item;
LEAT_RECORD(item, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR));

Test(socket_sink, each_record_is_sent_as_a_line)
{
    static const item items[] = {{1, {"a", 1}}, {2, {"b c", 3}}};
    static const char *const expected[] = {
        "1\ta\n2\tb c\n", "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b c\"}\n"};
    for (int i = 0; i < 4; i++) {
        server s = {.visits = 1};
        run r;
        server_begin(&s);
        // Four subtasks before it make no difference: the sink has one.
        leat_env *env = run_begin(&r, 4);
        leat_socket_sink_options options = {.json = i & 1, .flush_each = i & 2};
        leat_write_socket(leat_from_items(env, LEAT_TYPE(item), items, 2), "localhost", s.port,
                          &options);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        pthread_join(s.thread, NULL);
        cr_assert_str_eq(leati_strbuf_text(&s.heard[0]), expected[i & 1]);
        server_end(&s);
        run_end(&r);
    }
}

// The number that a text of lines goes on with: its lines are consecutive numbers from `first`.
static int64_t consecutive(const char *text, int64_t first)
{
    for (; *text; text = strchr(text, '\n') + 1) {
        char line[24];
        snprintf(line, sizeof line, "%" PRId64 "\n", first);
        cr_assert(strncmp(text, line, strlen(line)) == 0, "%s is not %s", text, line);
        first++;
    }
    return first;
}

enum { MANY = 1000000 };

Test(socket_sink, many_records_arrive_in_order)
{
    server s = {.visits = 1};
    run r;
    server_begin(&s);
    leat_write_socket(leat_sequence(run_begin(&r, 1), 0, MANY - 1), "127.0.0.1", s.port, NULL);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    pthread_join(s.thread, NULL);
    cr_assert_eq(consecutive(leati_strbuf_text(&s.heard[0]), 0), MANY);
    server_end(&s);
    run_end(&r);
}

Test(socket_sink, subtasks_have_connections_of_their_own_when_asked)
{
    server s = {.visits = 3};
    run r;
    server_begin(&s);
    leat_env *env = run_begin(&r, 3);
    leat_parallelism(leat_write_socket(leat_sequence(env, 0, 299), "127.0.0.1", s.port, NULL), 3);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    pthread_join(s.thread, NULL);
    int64_t shares = 0;
    for (int i = 0; i < 3; i++) {
        const char *text = leati_strbuf_text(&s.heard[i]);
        int64_t first = strtoll(text, NULL, 10);
        cr_assert(first % 100 == 0 && consecutive(text, first) == first + 100);
        shares |= INT64_C(1) << (first / 100);
    }
    cr_assert_eq(shares, 7);
    server_end(&s);
    run_end(&r);
}

// --- connections that are lost ---

// What the first connection had taken in may be lost; the second begins with a whole line.
Test(socket_sink, a_server_that_comes_back_gets_whole_lines)
{
    server s = {.visits = 2, .most = 100000};
    run r;
    server_begin(&s);
    leat_socket_sink_options options = {.max_retries = 1, .retry_delay_ms = 1};
    leat_write_socket(leat_sequence(run_begin(&r, 1), 0, MANY - 1), "127.0.0.1", s.port, &options);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    pthread_join(s.thread, NULL);
    const char *text = leati_strbuf_text(&s.heard[1]);
    int64_t first = strtoll(text, NULL, 10);
    cr_assert(first > 0 && consecutive(text, first) == MANY);
    server_end(&s);
    run_end(&r);
}

Test(socket_sink, a_server_that_goes_away_fails_the_job)
{
    static const char *const says[] = {
        ": the connection was lost: ",
        ": the connection was lost, and not made again in 2 attempts: cannot connect: Connection "
        "refused"};
    for (int i = 0; i < 2; i++) {
        server s = {.visits = 1, .most = 1000};
        run r;
        server_begin(&s);
        leat_socket_sink_options options = {.max_retries = 2 * i, .retry_delay_ms = 1};
        leat_env *env = run_begin(&r, 1);
        // Endless, so that the loss is noticed.
        leat_write_socket(leat_sequence(env, 0, INT64_MAX), "127.0.0.1", s.port, &options);
        leat_err err = run_execute(&r);
        // Not LEAT_EPIPE: a tool would take that for its own output and say nothing.
        cr_assert(err == LEAT_EIO, "%s", r.failure);
        cr_assert(strstr(r.failure, "socket (1/1): 127.0.0.1:") && strstr(r.failure, says[i]), "%s",
                  r.failure);
        pthread_join(s.thread, NULL);
        server_end(&s);
        run_end(&r);
    }
}

Test(socket_sink, a_server_that_never_comes_fails_the_job_at_once)
{
    run r;
    uint32_t port = 0;
    int fd = tcp_bind(false, &port); // nobody listens there, and nobody else can
    leat_socket_sink_options options = {.max_retries = LEAT_RETRY_FOR_EVER};
    leat_write_socket(leat_sequence(run_begin(&r, 1), 1, 3), "127.0.0.1", port, &options);
    cr_assert_eq(run_execute(&r), LEAT_EIO);
    char says[80];
    snprintf(says, sizeof says, "127.0.0.1:%u: cannot connect: Connection refused", port);
    cr_assert(strstr(r.failure, says), "%s", r.failure);
    run_end(&r);
    close(fd);
}

// It says more than all buffers hold before it listens.
Test(socket_sink, a_server_that_talks_first_is_heard_out)
{
    server s = {.visits = 1, .says = 32 << 20};
    run r;
    server_begin(&s);
    leat_write_socket(leat_sequence(run_begin(&r, 1), 0, 3 * MANY), "127.0.0.1", s.port, NULL);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    pthread_join(s.thread, NULL);
    cr_assert_eq(consecutive(leati_strbuf_text(&s.heard[0]), 0), 3 * MANY + 1);
    server_end(&s);
    run_end(&r);
}

// --- jobs that run beside the test ---

static _Atomic int64_t generated;

static int generate(leat_ctx *ctx, int64_t index, void *out)
{
    *(int64_t *)out = index;
    generated++;
    return 0;
}

typedef struct started {
    run r;
    leat_runtime *runtime;
    leat_job *job;
} started;

static void start(started *s, uint32_t port, double per_second,
                  const leat_socket_sink_options *options)
{
    leat_env *env = run_begin(&s->r, 1);
    generated = 0;
    leat_write_socket(
        leat_generate(env, generate, LEAT_UNBOUNDED, per_second, leat_type_scalar(LEAT_I64)),
        "127.0.0.1", port, options);
    cr_assert_eq(leat_runtime_create(env, &s->runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(s->runtime, env, &s->job), LEAT_OK);
}

static void cancel(started *s)
{
    leat_job_cancel(s->job);
    cr_assert_eq(leat_job_wait(s->job, -1), LEAT_ECANCELLED);
    leat_job_destroy(&s->job);
    leat_runtime_destroy(&s->runtime);
    run_end(&s->r);
}

// The second record is hours away: the first one goes out because there is no more input now.
Test(socket_sink, what_is_there_is_sent_when_there_is_no_more_input)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    leati_strbuf heard;
    leati_strbuf_init(&heard, NULL);
    start(&s, port, 1e-4, NULL);
    int peer = tcp_accept(fd);
    tcp_hear(peer, &heard, 2);
    cr_assert_str_eq(leati_strbuf_text(&heard), "0\n");
    cancel(&s);
    leati_strbuf_fini(&heard);
    close(peer);
    close(fd);
}

Test(socket_sink, cancelling_ends_the_wait_for_a_server_that_does_not_read)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    start(&s, port, 0, NULL);
    int peer = tcp_accept(fd);
    // Until it stands still.
    for (int64_t before = -1; before != generated || generated == 0;) {
        before = generated;
        usleep(50000);
    }
    cancel(&s);
    close(peer);
    close(fd);
}

Test(socket_sink, cancelling_ends_the_pause_before_a_retry)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    leat_socket_sink_options options = {.max_retries = 1, .retry_delay_ms = 3600 * 1000};
    start(&s, port, 0, &options);
    int peer = tcp_accept(fd);
    // A sink that loses its server before the first record pauses before it.
    while (generated == 0)
        usleep(1000);
    tcp_reset(peer);
    for (int64_t before = -1; before != generated;) {
        before = generated;
        usleep(50000);
    }
    cancel(&s);
    close(fd);
}

// The system itself gives up after two minutes at the earliest, the test after one.
Test(socket_sink, a_server_that_does_not_answer_is_given_up_after_the_timeout)
{
    run r;
    uint32_t port = 0;
    int peers[TCP_DEAF_PEERS], fd = tcp_deaf(&port, peers);
    leat_socket_sink_options options = {.connect_timeout_ms = 100};
    int64_t before_ns = leati_clock_ns();
    leat_write_socket(leat_sequence(run_begin(&r, 1), 1, 2), "127.0.0.1", port, &options);
    cr_assert_eq(run_execute(&r), LEAT_EIO, "%s", r.failure);
    cr_assert(strstr(r.failure, ": cannot connect: Connection timed out"), "%s", r.failure);
    cr_assert(leati_clock_ns() - before_ns >= 100 * 1000000);
    run_end(&r);
    for (int i = 0; i < TCP_DEAF_PEERS; i++)
        close(peers[i]);
    close(fd);
}

Test(socket_sink, wrong_arguments_are_faults)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_sequence(env, 1, 2);
    leat_write_socket(in, NULL, 1, NULL);
    leat_write_socket(in, "host", 0, NULL);
    leat_write_socket(in, "host", 65536, NULL);
    leat_write_socket(in, "host", 1, &(leat_socket_sink_options){.max_retries = -2});
    leat_write_socket(in, "host", 1, &(leat_socket_sink_options){.retry_delay_ms = -1});
    leat_write_socket(in, "host", 1, &(leat_socket_sink_options){.connect_timeout_ms = -1});
    static const char *const says[] = {"host", "port", "port", "retries", "delay", "timeout"};
    cr_assert_eq(leat_env_fault_count(env), 6);
    for (size_t i = 0; i < 6; i++)
        cr_assert(strstr(leat_env_fault(env, i), says[i]), "%s", leat_env_fault(env, i));
    run_end(&r);
}
