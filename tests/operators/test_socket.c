// SPDX-License-Identifier: Apache-2.0
// The socket source. Nothing here is timed: what is wrong waits for ever, and the time limit finds
// it.
#include <fcntl.h>
#include <poll.h>

#include "base/thread.h"
#include "run.h"
#include "tcp.h"

TestSuite(socket_source, .timeout = 60);

enum { MOST_VISITS = 6 };

// What a server does with one connection after the other: says something and ends it. It then stops
// listening, unless it goes on and on.
typedef struct script {
    int fd;
    uint32_t port;
    const char *visits[MOST_VISITS + 1];
    size_t piece; // bytes to be sent at a time; 0: all
    bool lasts;   // further connections are ended without a word
    pthread_t thread;
} script;

static void visit(script *s, const char *text)
{
    int peer = tcp_accept(s->fd);
    size_t size = strlen(text), step = s->piece ? s->piece : size;
    for (size_t at = 0; at < size; at += step)
        cr_assert(tcp_send(peer, text + at, size - at < step ? size - at : step));
    close(peer);
}

static void *serve(void *arg)
{
    script *s = arg;
    for (int i = 0; s->visits[i]; i++)
        visit(s, s->visits[i]);
    for (int peer; s->lasts && (peer = accept(s->fd, NULL, NULL)) >= 0;)
        close(peer);
    if (!s->lasts)
        close(s->fd);
    return NULL;
}

static void script_begin(script *s)
{
    s->fd = tcp_listen(&s->port);
    s->thread = tcp_thread(serve, s);
}

static void script_end(script *s)
{
    if (s->lasts)
        shutdown(s->fd, SHUT_RDWR); // ends its accept
    pthread_join(s->thread, NULL);
    if (s->lasts)
        close(s->fd);
}

// Runs a job that prints what the source reads; the result is its end, and `r` holds the lines.
static leat_err read_all(run *r, const char *host, uint32_t port,
                         const leat_socket_source_options *options)
{
    leat_print(leat_read_socket(run_begin(r, 1), host, port, options));
    return run_execute(r);
}

Test(socket_source, lines_arrive_without_their_ends_and_the_end_of_the_connection_ends_the_stream)
{
    for (size_t piece = 0; piece < 3; piece++) {
        script s = {.visits = {"one\r\ntwo\n\nx\ry\r\r\nlast\r"}, .piece = piece};
        run r;
        script_begin(&s);
        cr_assert_eq(read_all(&r, "127.0.0.1", s.port, NULL), LEAT_OK, "%s", r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "one\ntwo\n\nx\ry\r\nlast\r\n");
        run_end(&r);
        script_end(&s);
    }
}

Test(socket_source, records_end_at_any_delimiter)
{
    static const struct {
        const char *delimiter, *text, *lines;
    } cases[] = {{";", "a\r;b\n;c", "a\r\nb\n\nc\n"},
                 {"--", "a-b--c----d-", "a-b\nc\n\nd-\n"},
                 {"\r\n", "a\nb\r\nc", "a\nb\nc\n"}};
    for (int i = 0; i < 3; i++) {
        script s = {.visits = {cases[i].text}, .piece = 1};
        run r;
        script_begin(&s);
        leat_socket_source_options options = {.delimiter = cases[i].delimiter};
        cr_assert_eq(read_all(&r, "127.0.0.1", s.port, &options), LEAT_OK, "%s", r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].lines);
        run_end(&r);
        script_end(&s);
    }
}

Test(socket_source, names_and_addresses_of_both_kinds_are_understood)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "::1"};
    for (int i = 0; i < 3; i++) {
        script s = {.visits = {"here\n"}};
        run r;
        s.fd = tcp_bind(i == 2, &s.port);
        if (s.fd < 0)
            continue; // no IPv6 on this machine
        cr_assert_eq(listen(s.fd, 1), 0);
        s.thread = tcp_thread(serve, &s);
        cr_assert_eq(read_all(&r, hosts[i], s.port, NULL), LEAT_OK, "%s", r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "here\n");
        run_end(&r);
        script_end(&s);
    }
}

enum { MANY = 300000 };

static void *say_many(void *arg)
{
    int peer = tcp_accept(*(int *)arg);
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    for (int i = 0; i < MANY; i++)
        leati_strbuf_printf(&text, "%d\n", i);
    cr_assert(tcp_send(peer, text.data, text.size));
    leati_strbuf_fini(&text);
    close(peer);
    return NULL;
}

static int check_next(leat_ctx *ctx, const void *in)
{
    int64_t *next = leat_ctx_user_data(ctx);
    const leat_str *line = in;
    char text[24];
    int size = snprintf(text, sizeof text, "%d", (int)*next);
    cr_assert_eq(leat_ctx_parallelism(ctx), 1);
    cr_assert(line->size == (size_t)size && memcmp(line->data, text, line->size) == 0);
    ++*next;
    return 0;
}

Test(socket_source, many_lines_arrive_in_order_at_one_subtask)
{
    run r;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    int64_t next = 0;
    pthread_t thread = tcp_thread(say_many, &fd);
    leat_env *env = run_begin(&r, 4);
    leat_stream *lines = leat_read_socket(env, "127.0.0.1", port, NULL);
    leat_user_data(leat_parallelism(leat_sink(lines, check_next), 1), &next);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(next, MANY);
    pthread_join(thread, NULL);
    close(fd);
    run_end(&r);
}

// --- connections that are lost ---

Test(socket_source, an_unfinished_record_goes_on_with_the_next_connection)
{
    // The fourth connection brings a record, so the two failures after it are counted anew.
    script s = {.visits = {"ab", "c\nd", "", "e\nrest", "", NULL}, .lasts = true};
    run r;
    script_begin(&s);
    leat_socket_source_options options = {.max_retries = 2, .retry_delay_ms = 1};
    cr_assert_eq(read_all(&r, "127.0.0.1", s.port, &options), LEAT_OK, "%s", r.failure);
    cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "abc\nde\nrest\n");
    run_end(&r);
    script_end(&s);
}

Test(socket_source, a_server_that_does_not_come_back_fails_the_job)
{
    script s = {.visits = {"one\n", NULL}};
    run r;
    script_begin(&s);
    leat_socket_source_options options = {.max_retries = 3, .retry_delay_ms = 1};
    cr_assert_eq(read_all(&r, "127.0.0.1", s.port, &options), LEAT_EIO);
    cr_assert(strstr(r.failure, "the connection was lost, and not made again in 3 attempts: cannot "
                                "connect: Connection refused"),
              "%s", r.failure);
    run_end(&r);
    script_end(&s);
}

Test(socket_source, a_connection_that_cannot_be_made_fails_the_job_at_once)
{
    uint32_t port = 0;
    int fd = tcp_bind(false, &port); // nobody listens there, and nobody else can
    run r;
    leat_socket_source_options options = {.max_retries = LEAT_RETRY_FOR_EVER};
    cr_assert_eq(read_all(&r, "127.0.0.1", port, &options), LEAT_EIO);
    char says[80];
    snprintf(says, sizeof says, "127.0.0.1:%u: cannot connect: Connection refused", port);
    cr_assert(strstr(r.failure, says), "%s", r.failure);
    run_end(&r);
    close(fd);
    cr_assert_eq(read_all(&r, "no host..at all", 1, NULL), LEAT_ENOENT);
    cr_assert(strstr(r.failure, "no host..at all:1: cannot look up the host: "), "%s", r.failure);
    run_end(&r);
}

// --- jobs that run beside the test ---

typedef struct started {
    run r;
    leat_runtime *runtime;
    leat_job *job;
    leat_collection *lines;
} started;

static void start(started *s, uint32_t port, const leat_socket_source_options *options)
{
    cr_assert_eq(leat_collection_create(NULL, &s->lines), LEAT_OK);
    leat_env *env = run_begin(&s->r, 1);
    leat_collect_records(leat_read_socket(env, "127.0.0.1", port, options), s->lines);
    cr_assert_eq(leat_runtime_create(env, &s->runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(s->runtime, env, &s->job), LEAT_OK);
}

static void expect_line(started *s, const char *text)
{
    const void *record;
    cr_assert_eq(leat_collection_next(s->lines, -1, &record), LEAT_OK);
    const leat_str *line = record;
    cr_assert(line->size == strlen(text) && memcmp(line->data, text, line->size) == 0);
}

static void finish(started *s)
{
    leat_job_destroy(&s->job);
    leat_runtime_destroy(&s->runtime);
    leat_collection_destroy(&s->lines);
    run_end(&s->r);
}

static void cancel(started *s)
{
    leat_job_cancel(s->job);
    cr_assert_eq(leat_job_wait(s->job, -1), LEAT_ECANCELLED);
    finish(s);
}

// The record shows that the client has read all that came with it, which a reset would drop.
Test(socket_source, a_reset_fails_the_job_unless_there_are_retries)
{
    for (int retries = 0; retries < 2; retries++) {
        started s;
        uint32_t port = 0;
        int fd = tcp_listen(&port);
        start(&s, port, &(leat_socket_source_options){.max_retries = retries, .retry_delay_ms = 1});
        int peer = tcp_accept(fd);
        tcp_say(peer, "one\ntw");
        expect_line(&s, "one");
        tcp_reset(peer);
        if (retries) {
            peer = tcp_accept(fd);
            tcp_say(peer, "o\nthree");
            close(peer);
            close(tcp_accept(fd));
            expect_line(&s, "two");
            expect_line(&s, "three");
            cr_assert_eq(leat_job_wait(s.job, -1), LEAT_OK);
        } else {
            char says[100];
            snprintf(says, sizeof says,
                     "source: socket (1/1): 127.0.0.1:%u: the connection was lost: Connection "
                     "reset by peer",
                     port);
            cr_assert_eq(leat_job_wait(s.job, -1), LEAT_EIO);
            cr_assert(strstr(leat_job_failure(s.job), says), "%s", leat_job_failure(s.job));
        }
        finish(&s);
        close(fd);
    }
}

Test(socket_source, a_server_may_go_away_and_come_back)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    leat_socket_source_options options = {.max_retries = LEAT_RETRY_FOR_EVER, .retry_delay_ms = 1};
    start(&s, port, &options);
    for (int round = 0; round < 3; round++) {
        int peer = tcp_accept(fd);
        tcp_say(peer, "hello\nand");
        expect_line(&s, round ? "andhello" : "hello");
        // The server ends: nobody listens for a while.
        close(fd);
        close(peer);
        usleep(10000);
        fd = tcp_listen(&port);
    }
    int peer = tcp_accept(fd);
    tcp_say(peer, " bye\n");
    expect_line(&s, "and bye");
    cancel(&s);
    close(peer);
    close(fd);
}

Test(socket_source, lines_come_when_they_are_there)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    start(&s, port, NULL);
    int peer = tcp_accept(fd);
    for (int i = 0; i < 20; i++) {
        tcp_say(peer, "li");
        tcp_say(peer, "ne\n");
        expect_line(&s, "line");
    }
    cancel(&s); // while it waits for more
    close(peer);
    close(fd);
}

Test(socket_source, cancelling_ends_the_pause_before_a_retry)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    leat_socket_source_options options = {.max_retries = 1, .retry_delay_ms = 3600 * 1000};
    start(&s, port, &options);
    int peer = tcp_accept(fd);
    tcp_say(peer, "line\n");
    expect_line(&s, "line");
    close(peer);
    usleep(10000);
    cancel(&s);
    close(fd);
}

// A port whose queue of connections is full leaves who asks next without an answer.
Test(socket_source, cancelling_ends_a_connection_attempt)
{
    enum { FILLERS = 16 };
    started s;
    uint32_t port = 0;
    int fd = tcp_bind(false, &port), filler[FILLERS];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cr_assert_eq(listen(fd, 0), 0);
    for (int i = 0; i < FILLERS; i++) {
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(filler[i], (struct sockaddr *)&address, sizeof address);
    }
    start(&s, port, NULL);
    const void *record;
    cr_assert_eq(leat_collection_next(s.lines, 20, &record), LEAT_EAGAIN);
    cancel(&s);
    for (int i = 0; i < FILLERS; i++)
        close(filler[i]);
    close(fd);
}

// --- bounds and faults ---

static void *say_without_end(void *arg)
{
    int peer = tcp_accept(*(int *)arg);
    char data[4096];
    memset(data, 'x', sizeof data);
    while (tcp_send(peer, data, sizeof data))
        ;
    close(peer);
    return NULL;
}

Test(socket_source, a_record_without_end_fails_the_job)
{
    run r;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    pthread_t thread = tcp_thread(say_without_end, &fd);
    leat_env *env = run_begin(&r, 1);
    leat_env_set(env, "record.max-size", "1 MiB");
    leat_discard(leat_read_socket(env, "127.0.0.1", port, NULL));
    cr_assert_eq(run_execute(&r), LEAT_ETOOBIG);
    cr_assert(strstr(r.failure, "a record is longer than 1048576 bytes (record.max-size)"), "%s",
              r.failure);
    run_end(&r);
    pthread_join(thread, NULL);
    close(fd);
}

// The system itself gives up after two minutes at the earliest, the test after one.
Test(socket_source, a_server_that_does_not_answer_is_given_up_after_the_timeout)
{
    run r;
    uint32_t port = 0;
    int peers[TCP_DEAF_PEERS], fd = tcp_deaf(&port, peers);
    leat_socket_source_options options = {.connect_timeout_ms = 100};
    int64_t before_ns = leati_clock_ns();
    cr_assert_eq(read_all(&r, "127.0.0.1", port, &options), LEAT_EIO);
    cr_assert(strstr(r.failure, ": cannot connect: Connection timed out"), "%s", r.failure);
    cr_assert(leati_clock_ns() - before_ns >= 100 * 1000000);
    run_end(&r);
    for (int i = 0; i < TCP_DEAF_PEERS; i++)
        close(peers[i]);
    close(fd);
}

// The deadline of a connection that was made ends nothing.
Test(socket_source, the_timeout_is_for_connecting_only)
{
    started s;
    uint32_t port = 0;
    int fd = tcp_listen(&port);
    start(&s, port, &(leat_socket_source_options){.connect_timeout_ms = 50});
    int peer = tcp_accept(fd);
    usleep(150000);
    tcp_say(peer, "late\n");
    expect_line(&s, "late");
    close(peer);
    cr_assert_eq(leat_job_wait(s.job, -1), LEAT_OK);
    finish(&s);
    close(fd);
}

Test(socket_source, wrong_arguments_are_faults)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_read_socket(env, NULL, 1, NULL);
    leat_read_socket(env, "", 1, NULL);
    leat_read_socket(env, "host", 0, NULL);
    leat_read_socket(env, "host", 65536, NULL);
    leat_read_socket(env, "host", 1, &(leat_socket_source_options){.max_retries = -2});
    leat_read_socket(env, "host", 1, &(leat_socket_source_options){.retry_delay_ms = -1});
    leat_read_socket(env, "host", 1, &(leat_socket_source_options){.delimiter = ""});
    leat_read_socket(env, "host", 1, &(leat_socket_source_options){.connect_timeout_ms = -1});
    static const char *const says[] = {"host",    "host",  "port",      "port",
                                       "retries", "delay", "delimiter", "timeout"};
    cr_assert_eq(leat_env_fault_count(env), 8);
    for (size_t i = 0; i < 8; i++)
        cr_assert(strstr(leat_env_fault(env, i), says[i]), "%s", leat_env_fault(env, i));
    run_end(&r);
    env = run_begin(&r, 1);
    leat_discard(leat_parallelism(leat_read_socket(env, "host", 1, NULL), 2));
    cr_assert(run_execute(&r) != LEAT_OK && strstr(r.failure, "parallelism"), "%s", r.failure);
    run_end(&r);
}
