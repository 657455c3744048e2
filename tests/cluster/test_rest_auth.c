// SPDX-License-Identifier: Apache-2.0
// REST with a secret: who knows it is served, and gets an answer that shows the same; nobody else,
// and nothing twice. Codes are worked out here from the bytes of docs/security.md.
#include "cluster/manager/rest_impl.h"
#include "tests/cluster/rest_fixture.h"

static const char secret_text[] = "a secret of a cluster";
static const char empty_body[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static fixture *start(void)
{
    fixture_secret = secret_text;
    return start_with(0);
}

// What a client writes down of a request, and then sends.
typedef struct claim {
    char nonce[65], body[65];
    unsigned long long count;
    const char *method, *target; // that are signed
    const char *secret;
} claim;

static void hex_mac(const char *secret, const char *text, size_t size, char code[65])
{
    leati_secret key = {.size = strlen(secret)};
    uint8_t mac[LEATI_MAC_SIZE];
    memcpy(key.bytes, secret, key.size);
    cr_assert(leati_secret_mac(&key, &(leati_bytes){text, size}, 1, mac));
    leati_hex_put(mac, sizeof mac, code);
}

static void code_of(const claim *c, char code[65])
{
    char text[1024];
    int size = snprintf(text, sizeof text, "Leat request 1\n%s\n%s\n%s\n%llu\n%s\n", c->method,
                        c->target, c->nonce, c->count, c->body);
    hex_mac(c->secret, text, (size_t)size, code);
}

static claim begin(const fixture *f, const char *method, const char *target)
{
    claim c = {.method = method, .target = target, .count = 1, .secret = secret_text};
    reply r = get(f, "/v1/challenge");
    json_t *value = json_of(&r, 200);
    snprintf(c.nonce, sizeof c.nonce, "%s", text_in(value, "nonce"));
    cr_assert(strlen(c.nonce) == 64 && number_in(value, "lives") == 600000);
    json_decref(value);
    snprintf(c.body, sizeof c.body, "%s", empty_body);
    return c;
}

static reply send_raw(const fixture *f, const char *method, const char *target,
                      const char *authorization, const char *body)
{
    char head[2048];
    int fd = dial(f);
    snprintf(head, sizeof head,
             "%s %s HTTP/1.1\r\nHost: here\r\nContent-Length: %zu\r\nAuthorization: %s\r\n\r\n",
             method, target, strlen(body), authorization);
    send_text(fd, head);
    send_text(fd, body);
    reply r = receive(fd, strcmp(method, "HEAD") != 0);
    close(fd);
    return r;
}

static reply send_as(const fixture *f, const claim *c, const char *method, const char *target,
                     const char *body)
{
    char code[65], header[400];
    code_of(c, code);
    snprintf(header, sizeof header, "Leat %s %llu %s %s", c->nonce, c->count, c->body, code);
    return send_raw(f, method, target, header, body);
}

static reply send_claim(const fixture *f, const claim *c)
{
    return send_as(f, c, c->method, c->target, "");
}

Test(rest_auth, strangers_see_whether_it_is_alive_and_nothing_else)
{
    static const char *const paths[] = {"/",
                                        "/v1/jobs",
                                        "/overview",
                                        "/v1/config",
                                        "/metrics",
                                        "/v1/nowhere",
                                        "/v1/jobs/0123456789/log"};
    fixture *f = start();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        reply r = get(f, paths[i]);
        cr_assert_str_eq(header(&r, "WWW-Authenticate"), "Leat");
        expect_error(r, 401, "this cluster has a secret");
    }
    expect_error(ask_with(f, "POST", "/v1/jobs", "{}", 2), 401, "secret");
    expect_error(ask_with(f, "PATCH", "/v1/jobs/0123?mode=cancel", NULL, 0), 401, "secret");
    expect_error(ask_with(f, "PUT", "/v1/artifacts/00000000000000000000000000000000", "x", 1), 401,
                 "secret");
    cr_assert(!f->submitted && f->cancels == 0);
    cr_assert_eq(status_of(get(f, "/health")), 200);
    stop(f);
}

Test(rest_auth, who_knows_the_secret_is_served_and_gets_a_code)
{
    fixture *f = start();
    claim c = begin(f, "GET", "/v1/jobs?x=%20y");
    char text[1024], code[65];
    reply r = send_claim(f, &c);
    cr_assert_eq(r.status, 200);
    int size = snprintf(text, sizeof text, "Leat answer 1\n%s\n1\n200\n\n\n\n%s", c.nonce, r.body);
    hex_mac(secret_text, text, (size_t)size, code);
    cr_assert_str_eq(header(&r, "Leat-Code"), code);
    done(&r);
    c.count = 7; // it need not be the next one
    cr_assert_eq(status_of(send_claim(f, &c)), 200);
    stop(f);
}

Test(rest_auth, answer_without_a_body_has_a_code_too)
{
    fixture *f = start();
    claim c = begin(f, "HEAD", "/v1/artifacts/00000000000000000000000000000000");
    char text[1024], code[65];
    reply r = send_claim(f, &c);
    cr_assert_eq(r.status, 404);
    int size = snprintf(text, sizeof text, "Leat answer 1\n%s\n1\n404\n\n\n\n", c.nonce);
    hex_mac(secret_text, text, (size_t)size, code);
    cr_assert_str_eq(header(&r, "Leat-Code"), code);
    done(&r);
    stop(f);
}

Test(rest_auth, output_covers_where_it_belongs)
{
    fixture *f = start();
    leati_managed_job *job = add_job(f, "0123456789abcdef0123456789abcdef", "job");
    job->output_end = 5;
    memcpy(f->output, "hello", 5);
    claim c = begin(f, "GET", "/v1/jobs/0123456789/output?offset=0");
    char text[1024], code[65];
    reply r = send_claim(f, &c);
    cr_assert_eq(r.status, 200);
    int size =
        snprintf(text, sizeof text, "Leat answer 1\n%s\n1\n200\n0\n5\nRUNNING\nhello", c.nonce);
    hex_mac(secret_text, text, (size_t)size, code);
    cr_assert_str_eq(header(&r, "Leat-Code"), code);
    done(&r);
    stop(f);
}

Test(rest_auth, nothing_is_taken_twice)
{
    fixture *f = start();
    claim c = begin(f, "GET", "/v1/jobs");
    c.count = 5;
    cr_assert_eq(status_of(send_claim(f, &c)), 200);
    expect_error(send_claim(f, &c), 401, "has come before");
    c.count = 4;
    expect_error(send_claim(f, &c), 401, "has come before");
    c.count = 6;
    cr_assert_eq(status_of(send_claim(f, &c)), 200);
    stop(f);
}

Test(rest_auth, code_is_for_one_request_only)
{
    fixture *f = start();
    add_job(f, "0123456789abcdef0123456789abcdef", "job");
    claim c = begin(f, "GET", "/v1/jobs");
    expect_error(send_as(f, &c, "GET", "/v1/config", ""), 401, "not that of this cluster");
    expect_error(send_as(f, &c, "GET", "/v1/jobs?a=b", ""), 401, "not that of this cluster");
    cr_assert_eq(status_of(send_as(f, &c, "HEAD", "/v1/jobs", "")), 401);
    expect_error(send_as(f, &c, "PATCH", "/v1/jobs", ""), 401, "not that of this cluster");
    c.secret = "another secret of a cluster";
    expect_error(send_claim(f, &c), 401, "not that of this cluster");
    cr_assert_eq(f->cancels, 0);
    stop(f);
}

Test(rest_auth, body_is_the_one_that_was_announced)
{
    fixture *f = start();
    claim c = begin(f, "POST", "/v1/jobs");
    expect_error(send_as(f, &c, "POST", "/v1/jobs", "{}"), 401, "the body is not the one");
    cr_assert(!f->submitted);
    // SHA-256 of "{}".
    snprintf(c.body, sizeof c.body, "%s",
             "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    c.count = 2;
    expect_error(send_as(f, &c, "POST", "/v1/jobs", "{}"), 400, "is missing");
    stop(f);
}

Test(rest_auth, challenge_lives_for_ten_minutes)
{
    fixture *f = start();
    claim c = begin(f, "GET", "/v1/jobs");
    leati_rest_auth_age(f->rest, 599000);
    cr_assert_eq(status_of(send_claim(f, &c)), 200);
    leati_rest_auth_age(f->rest, 1000);
    c.count++;
    reply r = send_claim(f, &c);
    cr_assert_str_eq(header(&r, "WWW-Authenticate"), "Leat stale=true");
    expect_error(r, 401, "too old");
    stop(f);
}

Test(rest_auth, challenge_of_another_process_or_made_up_is_none)
{
    fixture *f = start();
    claim c = begin(f, "GET", "/v1/jobs");
    for (size_t i = 0; i < 64; i += 9) {
        claim other = c;
        other.nonce[i] = other.nonce[i] == '0' ? '1' : '0';
        expect_error(send_claim(f, &other), 401, "too old");
    }
    cr_assert_eq(status_of(send_claim(f, &c)), 200);
    stop(f);
}

// More challenges in use than are kept: none of them becomes good again.
Test(rest_auth, forgotten_challenges_are_not_taken_again, .timeout = 60)
{
    enum { MORE = 4100 };
    fixture *f = start();
    claim first = begin(f, "GET", "/health/nowhere");
    cr_assert_eq(status_of(send_claim(f, &first)), 404);
    for (int i = 0; i < MORE; i++) {
        leati_rest_auth_age(f->rest, 1);
        claim c = begin(f, "GET", "/v1/jobs");
        cr_assert_eq(status_of(send_claim(f, &c)), 200);
    }
    first.count = 1;
    expect_error(send_claim(f, &first), 401, "too old");
    first.count = 2;
    expect_error(send_claim(f, &first), 401, "too old");
    stop(f);
}

Test(rest_auth, garbage_in_the_header_is_refused)
{
    static const char *const values[] = {
        "",       "Basic dXNlcjpwYXNz", "Leat",
        "Leat 0", "Leat zz 1 00 00",    "Leat 00 99999999999999999999999999 00 00",
    };
    fixture *f = start();
    char longer[1600], good[400];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        cr_assert_eq(status_of(send_raw(f, "GET", "/v1/jobs", values[i], "")), 401);
    memset(longer, '0', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    memcpy(longer, "Leat ", 5);
    cr_assert_eq(status_of(send_raw(f, "GET", "/v1/jobs", longer, "")), 401);
    claim c = begin(f, "GET", "/v1/jobs");
    char code[65];
    code_of(&c, code);
    int size = snprintf(good, sizeof good, "Leat %s %llu %s %s", c.nonce, c.count, c.body, code);
    for (int cut = 0; cut < size; cut += 7) {
        char part[400];
        snprintf(part, sizeof part, "%.*s", cut, good);
        cr_assert_eq(status_of(send_raw(f, "GET", "/v1/jobs", part, "")), 401);
    }
    cr_assert_eq(status_of(send_raw(f, "GET", "/v1/jobs", good, "")), 200);
    stop(f);
}

Test(rest_auth, without_a_secret_there_is_no_challenge)
{
    fixture_secret = NULL;
    fixture *f = start_with(0);
    expect_error(get(f, "/challenge"), 404, "has no secret");
    cr_assert_eq(status_of(get(f, "/v1/jobs")), 200);
    stop(f);
}

// A body that comes by the byte is not silent; a stranger has no more time for it than for headers.
Test(rest_auth, bodies_of_strangers_end)
{
    fixture *f = start();
    const char *const targets[] = {"POST /v1/jobs", "PUT /health", "GET /health"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char text[256], byte;
        int fd = dial(f);
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: here\r\nContent-Length: 99\r\n\r\n{",
                 targets[i]);
        send_text(fd, text);
        int64_t later_ns = leati_clock_ns() + (LEATI_REST_HEADERS_MS + 1) * INT64_C(1000000);
        while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
            (void)leati_rest_guard_sweep(f->rest, later_ns);
            usleep(1000);
        }
        close(fd);
    }
    stop(f);
}
