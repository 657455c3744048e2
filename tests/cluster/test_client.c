// SPDX-License-Identifier: Apache-2.0
// HTTP to a job manager that the test plays: it takes one connection and answers with prepared
// bytes, however wrong they are.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/client/client.h"

static const leati_client_module *const api = &leati_client_module_0;

typedef struct server {
    int listener;
    char address[32];
    const char *answer; // NULL: nothing is ever answered
    char request[2048]; // what was asked
    pthread_t thread;
} server;

static void *serve(void *arg)
{
    server *s = arg;
    size_t size = 0;
    int peer = accept(s->listener, NULL, NULL);
    while (peer >= 0 && size < sizeof s->request - 1 && !strstr(s->request, "\r\n\r\n")) {
        ssize_t got = read(peer, s->request + size, sizeof s->request - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    if (s->answer)
        cr_assert(write(peer, s->answer, strlen(s->answer)) >= 0);
    else
        while (read(peer, s->request, 1) > 0)
            ;
    close(peer);
    return NULL;
}

static leati_client *start(server *s, const char *answer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    leati_client *client = NULL;
    char why[200];
    *s = (server){.answer = answer, .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    cr_assert(bind(s->listener, (struct sockaddr *)&at, size) == 0);
    cr_assert(listen(s->listener, 4) == 0);
    cr_assert(getsockname(s->listener, (struct sockaddr *)&at, &size) == 0);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(at.sin_port));
    cr_assert(pthread_create(&s->thread, NULL, serve, s) == 0);
    cr_assert(api->open(s->address, &client, why, sizeof why) == LEAT_OK, "%s", why);
    return client;
}

static void stop(server *s, leati_client **client)
{
    api->close(client);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

static leat_err get(leati_client *client, leati_client_answer *answer)
{
    return api->call(client, "GET", "/overview", 0, answer);
}

// One answer from start to end; what `why` says is left in `said`.
static leat_err ask(const char *answer, char *said, size_t size)
{
    server s;
    leati_client_answer got;
    leati_client *client = start(&s, answer);
    leat_err err = get(client, &got);
    snprintf(said, size, "%s", api->why(client));
    stop(&s, &client);
    return err;
}

Test(client, answers_have_their_body_and_headers)
{
    server s;
    leati_client_answer got;
    leati_client *client =
        start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nLeat-Offset: 18446744073709551615\r\n"
                  "leat-end:  12 \r\nLEAT-STATE: RUNNING\r\n\r\nab\ncd");
    cr_assert(get(client, &got) == LEAT_OK);
    cr_assert(got.status == 200 && got.size == 5 && !memcmp(got.body, "ab\ncd", 6));
    cr_assert(got.offset == UINT64_MAX && got.end == 12);
    cr_assert_str_eq(got.state, "RUNNING");
    cr_assert(!strncmp(s.request, "GET /v1/overview HTTP/1.1\r\n", 27), "%s", s.request);
    stop(&s, &client);
}

Test(client, errors_are_told_in_the_words_of_the_job_manager)
{
    static const struct {
        const char *answer;
        leat_err err;
        const char *said;
    } cases[] = {
        {"HTTP/1.1 404 No\r\nContent-Length: 27\r\n\r\n{\"errors\": [\"no job 1234\"]}",
         LEAT_ENOENT, "no job 1234"},
        {"HTTP/1.1 409 No\r\nContent-Length: 23\r\n\r\n{\"errors\":[\"it ended\"]}", LEAT_ESTATE,
         NULL},
        {"HTTP/1.1 400 No\r\nContent-Length: 27\r\n\r\n{\"errors\":[\"a\\u001b[31mb\"]}",
         LEAT_EINVAL, NULL},
        {"HTTP/1.1 507 No\r\nContent-Length: 2\r\n\r\n{}", LEAT_ENOBUFS, "job manager at"},
        {"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\n{}", LEAT_ETOOBIG, "job manager at"},
        {"HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\n<html>", LEAT_EIO, "HTTP status 500"},
        {"HTTP/1.1 302 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
         LEAT_EIO, "HTTP status 302"},
        {"HTTP/1.1 404 No\r\nContent-Length: 15\r\n\r\n{\"errors\":[17]}", LEAT_ENOENT,
         "HTTP status 404"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[1300];
        leat_err err = ask(cases[i].answer, said, sizeof said);
        cr_assert(err == cases[i].err, "case %zu: %s: %s", i, leat_err_name(err), said);
        cr_assert(!cases[i].said || strstr(said, cases[i].said), "case %zu: %s", i, said);
        cr_assert(!strchr(said, '\033'), "case %zu", i);
    }
}

Test(client, answers_that_are_none_are_errors_and_nothing_else)
{
    static const char *const answers[] = {
        "",
        "\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 2000000 OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        char said[1300];
        leat_err err = ask(answers[i], said, sizeof said);
        cr_assert(err == LEAT_EIO, "case %zu: %s", i, leat_err_name(err));
        cr_assert(said[0], "case %zu", i);
    }
}

Test(client, nobody_there_is_an_error)
{
    leati_client *client;
    leati_client_answer got;
    char why[200];
    // A port that was free a moment ago, and that only its owner may take again.
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(held, (struct sockaddr *)&at, size) == 0);
    cr_assert(getsockname(held, (struct sockaddr *)&at, &size) == 0);
    snprintf(why, sizeof why, "127.0.0.1:%d", ntohs(at.sin_port));
    cr_assert(api->open(why, &client, why, sizeof why) == LEAT_OK);
    cr_assert(get(client, &got) == LEAT_EIO);
    cr_assert(strstr(api->why(client), "no job manager answers at 127.0.0.1:"), "%s",
              api->why(client));
    api->close(&client);
    close(held);
}

Test(client, addresses_are_a_host_and_a_port)
{
    static const char *const good[] = {"host", "host:1", "10.0.0.1:65535", "[::1]:80", "[::1]"};
    static const char *const bad[] = {"",          ":80",        "host:",   "host:0", "host:65536",
                                      "host:x",    "host:80x",   "host:-1", "a b:80", "a/b:80",
                                      "u@host:1",  "http://a:1", "[::1:80", "::1",    "host:80#x",
                                      "[::1]x:80", "a\n:80",     "host: 80"};
    char why[300];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        leati_client *client = NULL;
        cr_assert(api->open(good[i], &client, why, sizeof why) == LEAT_OK, "%s: %s", good[i], why);
        api->close(&client);
        cr_assert(client == NULL);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        leati_client *client = NULL;
        cr_assert(api->open(bad[i], &client, why, sizeof why) == LEAT_EINVAL, "%s", bad[i]);
        cr_assert(client == NULL);
        cr_assert(strstr(why, "HOST:PORT"), "%s", why);
    }
}

Test(client, a_proxy_of_the_environment_is_not_used)
{
    char said[1300];
    cr_assert(setenv("http_proxy", "http://127.0.0.1:1/", 1) == 0);
    cr_assert(setenv("ALL_PROXY", "http://127.0.0.1:1/", 1) == 0);
    cr_assert(ask("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", said, sizeof said) == LEAT_OK,
              "%s", said);
}

static void *interrupt_soon(void *arg)
{
    server *s = ((void **)arg)[0];
    // Once it is asked, the other thread waits for the answer, or is about to.
    while (!__atomic_load_n(&s->request[0], __ATOMIC_RELAXED))
        usleep(1000);
    api->interrupt(((void **)arg)[1]);
    return NULL;
}

Test(client, a_call_that_waits_can_be_interrupted)
{
    server s;
    leati_client_answer got;
    pthread_t thread;
    leati_client *client = start(&s, NULL);
    void *both[] = {&s, client};
    cr_assert(pthread_create(&thread, NULL, interrupt_soon, both) == 0);
    cr_assert(api->call(client, "GET", "/jobs", 60000, &got) == LEAT_ECANCELLED);
    pthread_join(thread, NULL);
    // One wish ends one call; a wish that comes first ends the next.
    api->interrupt(client);
    cr_assert(api->call(client, "GET", "/jobs", 60000, &got) == LEAT_ECANCELLED);
    stop(&s, &client);
}

Test(client, json_that_is_not_there_is_nothing)
{
    static const char text[] = "{\"a\": [1, 2.5, \"x\", true, null], \"o\": {\"b\": 1e300}}";
    leati_json *whole = api->parse(text, strlen(text));
    const leati_json *a = api->member(whole, "a");
    cr_assert(api->count(a) == 5 && api->integer(api->item(a, 0)) == 1);
    cr_assert(api->number(api->item(a, 1)) > 2.4 && api->integer(api->item(a, 1)) == 2);
    cr_assert_str_eq(api->text(api->item(a, 2)), "x");
    cr_assert(api->truth(api->item(a, 3)) && !api->truth(api->item(a, 4)));
    cr_assert(api->kind(api->item(a, 4)) == 'n' && api->kind(whole) == 'o' && api->kind(a) == 'a');
    cr_assert(api->item(a, 5) == NULL && api->member(whole, "z") == NULL);
    cr_assert(api->member(a, "z") == NULL && api->item(whole, 0) == NULL && api->count(whole) == 0);
    cr_assert(api->integer(api->member(api->member(whole, "o"), "b")) == 0); // beyond 64 bits
    cr_assert_str_eq(api->text(NULL), "");
    cr_assert(api->integer(NULL) == 0 && api->count(NULL) == 0 && api->kind(NULL) == '\0');
    cr_assert(api->number(api->item(a, 2)) < 1 && !api->truth(NULL));
    api->forget(whole);
    api->forget(NULL);
    cr_assert(api->parse("{", 1) == NULL && api->parse("", 0) == NULL);
}
