// SPDX-License-Identifier: Apache-2.0
// The REST interface as a server: paths, methods, bodies, waiting, and clients that misbehave.
#include <sys/resource.h>

#include "cluster/manager/rest_impl.h"
#include "tests/cluster/rest_fixture.h"

#define ID  "0123456789abcdef0123456789abcdef"
#define ID2 "0123ffffffffffffffffffffffffffff"

Test(rest, tells_of_the_cluster_with_and_without_version)
{
    fixture *f = start_with(0);
    static const char *const paths[] = {"/v1/overview", "/overview", "/v1/overview/"};
    for (int i = 0; i < 3; i++) {
        reply r = get(f, paths[i]);
        json_t *value = json_of(&r, 200);
        cr_assert(!strcmp(text_in(value, "version"), leat_version()));
        cr_assert(number_in(value, "slots_total") == 0);
        cr_assert(number_in(value, "pid") == getpid());
        cr_assert(!strcmp(text_in(value, "rest_address"), f->manager.rest_address));
        json_decref(value);
    }
    reply r = get(f, "/health");
    cr_assert(r.status == 200 && !strcmp(r.body, "ok"));
    done(&r);
    stop(f);
}

Test(rest, refuses_unknown_paths_and_methods_in_json)
{
    fixture *f = start_with(0);
    static const char *const paths[] = {"/nothing",    "/v2/overview",           "/jobs/x/y/z",
                                        "/v1/v1/jobs", "/a/b/c/d/e/f/g/h/i/j/k", "//",
                                        "/%2e%2e/etc"};
    for (int i = 0; i < 7; i++)
        expect_error(get(f, paths[i]), 404, "there is nothing at");
    expect_error(get(f, "/v1/jobs/%00"), 400, "the path has a NUL in it");
    expect_error(get(f, "/health%00x?y=%00"), 400, "the path has a NUL in it");
    expect_error(get(f, "/v1/jobs/" ID), 404, "there is no job \"" ID "\"");
    expect_error(get(f, "/taskmanagers/9"), 404, "there is no task manager \"9\"");
    expect_error(ask_with(f, "DELETE", "/v1/jobs", NULL, 0), 405, "GET, HEAD, POST");
    expect_error(ask_with(f, "POST", "/overview", NULL, 0), 405, "GET, HEAD");
    expect_error(ask_with(f, "OPTIONS", "/v1/jobs/" ID, NULL, 0), 405, "PATCH");
    reply r = ask_with(f, "PUT", "/health", "x", 1);
    cr_assert(r.status == 405 && !strcmp(header(&r, "Allow"), "GET, HEAD"));
    done(&r);
    stop(f);
}

Test(rest, answers_head_without_a_body)
{
    fixture *f = start_with(0);
    int fd = dial(f);
    send_text(fd, "HEAD /overview HTTP/1.1\r\nHost: here\r\n\r\n"
                  "GET /health HTTP/1.1\r\nHost: here\r\n\r\n");
    reply head = receive(fd, false);
    cr_assert(head.status == 200);
    close(fd);
    done(&head);
    cr_assert(status_of(ask_with(f, "HEAD", "/artifacts/" ID, NULL, 0)) == 404);
    stop(f);
}

Test(rest, serves_many_requests_on_one_connection)
{
    fixture *f = start_with(0);
    int fd = dial(f);
    for (int i = 0; i < 50; i++) {
        send_text(fd, i % 5
                          ? "GET /health HTTP/1.1\r\nHost: here\r\n\r\n"
                          : "POST /nothing HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc");
        reply r = receive(fd, true);
        cr_assert(r.status == (i % 5 ? 200 : 404));
        done(&r);
    }
    close(fd);
    stop(f);
}

// --- artifacts ---

static reply put(const fixture *f, const char *hash, const void *data, size_t size)
{
    char path[80];
    snprintf(path, sizeof path, "/v1/artifacts/%s", hash);
    return ask_with(f, "PUT", path, data, size);
}

Test(rest, takes_artifacts_whose_hash_is_right)
{
    fixture *f = start_with(0);
    char hash[33];
    size_t size = 3 << 20;
    char *data = malloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    hash_of(data, size, hash);
    cr_assert(status_of(put(f, hash, data, size)) == 201);
    cr_assert(status_of(put(f, hash, data, size)) == 200);
    char path[512];
    cr_assert(leati_artifact_path(&f->manager, hash, path));
    size_t kept;
    char *copy = read_file(path, &kept);
    cr_assert(kept == size && !memcmp(copy, data, size));
    snprintf(path, sizeof path, "/artifacts/%s", hash);
    cr_assert(status_of(ask_with(f, "HEAD", path, NULL, 0)) == 200);
    hash_of("", 0, hash);
    cr_assert(status_of(put(f, hash, "", 0)) == 201);
    free(copy);
    free(data);
    stop(f);
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; // . and ..
}

// The server notices a broken connection in its own time.
static void expect_empty(const char *folder)
{
    int left = entries(folder);
    for (int i = 0; i < 2000 && left > 0; i++) {
        usleep(5000);
        left = entries(folder);
    }
    cr_assert(left == 0, "a temporary file is left");
}

Test(rest, leaves_nothing_of_artifacts_that_are_wrong)
{
    fixture *f = start_with(4096);
    expect_error(put(f, ID, "abc", 3), 400, "its bytes have the hash");
    expect_error(put(f, "ABCDEF", "abc", 3), 400, "\"ABCDEF\" is not the hash");
    expect_error(put(f, "..%2f..%2fetc%2fpasswd", "abc", 3), 404, "there is nothing");
    char *data = calloc(1, 5000);
    expect_error(put(f, ID, data, 5000), 413, "cluster.artifact-max-size, 4096 bytes");
    free(data);
    // Half of it, and then nothing more.
    int fd = dial(f);
    send_text(fd,
              "PUT /artifacts/" ID " HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nhalf");
    close(fd);
    expect_empty(f->folder);
    stop(f);
}

Test(rest, refuses_chunks_beyond_the_limit)
{
    fixture *f = start_with(4096);
    int fd = dial(f);
    char chunk[1100];
    snprintf(chunk, sizeof chunk, "400\r\n%01024d\r\n", 0);
    send_text(fd,
              "PUT /artifacts/" ID " HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 5; i++)
        send_text(fd, chunk);
    send_text(fd, "0\r\n\r\n");
    expect_error(receive(fd, true), 413, "larger than");
    close(fd);
    expect_empty(f->folder);
    stop(f);
}

// --- waiting ---

typedef struct later {
    fixture *f;
    leati_managed_job *job;
    const char *path;
    reply r;
} later;

static void *ask_later(void *arg)
{
    later *l = arg;
    l->r = get(l->f, l->path);
    return NULL;
}

static void set_phase(fixture *f, leati_managed_job *job, leati_job_phase phase)
{
    pthread_mutex_lock(&f->manager.lock);
    job->phase = phase;
    pthread_cond_broadcast(&f->manager.changed);
    pthread_mutex_unlock(&f->manager.lock);
}

Test(rest, waits_for_another_state)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "waiting");
    later l = {.f = f, .job = job, .path = "/v1/jobs/0123/status?wait=30000&not=RUNNING"};
    pthread_t thread;
    reply r = get(f, "/v1/jobs/0123/status?wait=1&not=RUNNING");
    json_t *value = json_of(&r, 200);
    cr_assert(!strcmp(text_in(value, "state"), "RUNNING"));
    json_decref(value);
    cr_assert(pthread_create(&thread, NULL, ask_later, &l) == 0);
    set_phase(f, job, LEATI_PHASE_CONCLUDING); // shown as RUNNING still
    set_phase(f, job, LEATI_PHASE_FINISHED);
    pthread_join(thread, NULL);
    value = json_of(&l.r, 200);
    cr_assert(!strcmp(text_in(value, "state"), "FINISHED"));
    json_decref(value);
    expect_error(get(f, "/v1/jobs/0123/status?wait=-1"), 400, "wait: \"-1\" is not a whole number");
    expect_error(get(f, "/v1/jobs/0123/status?wait=30000&not=running"), 400,
                 "not: \"running\" is not a state");
    stop(f);
}

// Until a waiting client has been heard of.
static void wait_for_reads(fixture *f)
{
    pthread_mutex_lock(&f->manager.lock);
    while (f->reads == 0) {
        pthread_mutex_unlock(&f->manager.lock);
        usleep(1000);
        pthread_mutex_lock(&f->manager.lock);
    }
    pthread_mutex_unlock(&f->manager.lock);
}

Test(rest, stops_while_somebody_waits)
{
    fixture *f = start_with(0);
    static const char *const paths[] = {"status?wait=30000&not=RUNNING", "output?wait=30000",
                                        "output?wait=30000&attached=1"};
    int fds[3];
    add_job(f, ID, "waiting");
    for (int i = 0; i < 3; i++) {
        char text[200];
        fds[i] = dial(f);
        snprintf(text, sizeof text, "GET /jobs/0123/%s HTTP/1.1\r\nHost: here\r\n\r\n", paths[i]);
        send_text(fds[i], text);
    }
    wait_for_reads(f); // the last one waits already
    stop(f);
    for (int i = 0; i < 3; i++) {
        reply r = receive(fds[i], true);
        cr_assert(r.status == 0 || r.status == 200);
        done(&r);
        close(fds[i]);
    }
}

Test(rest, gives_output_from_an_offset_on)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "printing");
    memcpy(f->output, "hello world", 11);
    job->output_end = 11;
    reply r = get(f, "/v1/jobs/0123/output?offset=6");
    cr_assert(r.status == 200 && r.size == 5 && !memcmp(r.body, "world", 5));
    cr_assert(!strcmp(header(&r, "Leat-Offset"), "6"));
    cr_assert(!strcmp(header(&r, "Leat-End"), "11"));
    cr_assert(!strcmp(header(&r, "Leat-State"), "RUNNING"));
    done(&r);
    cr_assert(f->reads == 0);
    // The beginning is no longer kept.
    job->output_first = 4;
    r = get(f, "/v1/jobs/0123/output?offset=0&attached=1");
    cr_assert(r.size == 7 && !strcmp(header(&r, "Leat-Offset"), "4"));
    cr_assert(f->reads == 1 && f->read_up_to == 0);
    done(&r);
    r = get(f, "/v1/jobs/0123/output?offset=11&attached=1&wait=1");
    cr_assert(r.status == 200 && r.size == 0 && f->read_up_to == 11);
    done(&r);
    expect_error(get(f, "/v1/jobs/0123/output?offset=12"), 416, "is beyond the end, 11");
    expect_error(get(f, "/v1/jobs/0123/output?offset=1x"), 400, "offset: \"1x\"");
    expect_error(get(f, "/v1/jobs/0123/output?attached=2"), 400, "attached");
    stop(f);
}

// --- jobs ---

Test(rest, shortens_ids_only_where_they_are_unique)
{
    fixture *f = start_with(0);
    add_job(f, ID, "one");
    add_job(f, ID2, "two");
    expect_error(get(f, "/v1/jobs/0123"), 409, "several jobs");
    expect_error(get(f, "/v1/jobs/012"), 404, "there is no job");
    reply r = get(f, "/v1/jobs/01234");
    json_t *value = json_of(&r, 200);
    cr_assert(!strcmp(text_in(value, "name"), "one"));
    json_decref(value);
    r = get(f, "/v1/jobs");
    value = json_of(&r, 200);
    cr_assert(json_array_size(json_object_get(value, "jobs")) == 2);
    json_decref(value);
    stop(f);
}

Test(rest, cancels_once)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "one");
    expect_error(ask_with(f, "PATCH", "/v1/jobs/0123?mode=stop", NULL, 0), 400, "mode: \"stop\"");
    expect_error(ask_with(f, "PATCH", "/v1/jobs/0123", NULL, 0), 400, "mode: it is missing");
    cr_assert(f->cancels == 0);
    cr_assert(status_of(ask_with(f, "PATCH", "/v1/jobs/0123?mode=cancel", NULL, 0)) == 202);
    cr_assert(f->cancels == 1);
    set_phase(f, job, LEATI_PHASE_CANCELED);
    expect_error(ask_with(f, "PATCH", "/v1/jobs/0123?mode=cancel", NULL, 0), 409,
                 "the job is CANCELED");
    stop(f);
}

// --- clients that misbehave ---

Test(rest, survives_garbage_and_half_requests)
{
    fixture *f = start_with(0);
    static const char *const texts[] = {
        "",
        "\r\n\r\n",
        "GET",
        "GET /overview",
        "GET /overview HTTP/9.9\r\n\r\n",
        "GET /overview HTTP/1.1\r\nHost",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "POST /jobs HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n{}",
        "POST /jobs HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
        "POST /jobs HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /jobs/%00%ff%fe HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /jobs?get=%zz&&==& HTTP/1.1\r\nHost: h\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int fd = dial(f);
        send_text(fd, texts[i]);
        shutdown(fd, SHUT_WR);
        reply r = receive(fd, true);
        cr_assert(r.status == 0 || r.status == 200 || r.status >= 400, "%zu: %d", i, r.status);
        done(&r);
        close(fd);
    }
    // Headers without an end are more than a connection may take.
    int fd = dial(f);
    send_text(fd, "GET /health HTTP/1.1\r\n");
    for (int i = 0; i < 4000 && send_text(fd, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"); i++)
        ;
    reply r = receive(fd, true);
    cr_assert(r.status == 0 || r.status >= 400);
    done(&r);
    close(fd);
    cr_assert(status_of(get(f, "/health")) == 200);
    stop(f);
}

Test(rest, serves_others_beside_many_slow_clients)
{
    fixture *f = start_with(0);
    int fds[200];
    for (int i = 0; i < 200; i++) {
        fds[i] = dial(f);
        send_text(fds[i],
                  i % 2 ? "GET /health HTT" : "POST /jobs HTTP/1.1\r\nContent-Length: 9\r\n");
    }
    for (int i = 0; i < 20; i++)
        cr_assert(status_of(get(f, "/health")) == 200);
    for (int i = 0; i < 200; i++)
        close(fds[i]);
    stop(f);
}

// A client that goes on sending headers is not silent, so the library would let it.
Test(rest, closes_connections_whose_headers_do_not_end)
{
    fixture *f = start_with(0);
    int slow = dial(f), idle = dial(f), waiting = dial(f);
    add_job(f, ID, "waiting");
    send_text(slow, "GET /health HTTP/1.1\r\nX-One: 1\r\n");
    send_text(idle, "GET /health HTTP/1.1\r\nHost: here\r\n\r\n");
    reply r = receive(idle, true);
    cr_assert(r.status == 200);
    done(&r);
    send_text(waiting, "GET /jobs/0123/output?wait=30000&attached=1 HTTP/1.1\r\nHost: h\r\n\r\n");
    wait_for_reads(f);
    cr_assert(leati_rest_guard_sweep(f->rest, leati_clock_ns()) == 0);
    // A minute later. What is being served may take its time.
    int64_t later_ns = leati_clock_ns() + (LEATI_REST_HEADERS_MS + 1) * INT64_C(1000000);
    char byte;
    for (int i = 0; i < 2; i++)
        while (recv(i ? idle : slow, &byte, 1, MSG_DONTWAIT) < 0) {
            (void)leati_rest_guard_sweep(f->rest, later_ns);
            usleep(1000);
        }
    set_phase(f, f->manager.jobs, LEATI_PHASE_FINISHED);
    r = receive(waiting, true);
    cr_assert(r.status == 200);
    done(&r);
    close(slow);
    close(idle);
    close(waiting);
    stop(f);
}

// All of them owe a request, and whoever comes is served none the less.
Test(rest, a_crowd_that_asks_for_nothing_keeps_nobody_out)
{
    enum { CROWD = LEATI_REST_CONNECTIONS + 100 };
    static int fds[CROWD];
    struct rlimit files;
    fixture *f = start_with(0);
    // Both ends are here.
    cr_assert(getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (files.rlim_max < 2 * CROWD + 100)
        cr_skip("no process may have so many files");
    files.rlim_cur = files.rlim_max < 8192 ? files.rlim_max : 8192;
    cr_assert(setrlimit(RLIMIT_NOFILE, &files) == 0);
    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial(f);
        send_text(fds[i], "GET /health HTT");
    }
    for (int i = 0; i < 20; i++)
        cr_assert(status_of(get(f, "/health")) == 200);
    char byte;
    cr_assert(recv(fds[0], &byte, 1, 0) <= 0); // who has waited for longest
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    stop(f);
}

Test(rest, says_which_port_is_in_use)
{
    fixture *f = start_with(0);
    leati_manager other = f->manager;
    leati_rest *rest = NULL;
    char why[256] = "";
    other.options.port = (uint32_t)strtoul(strrchr(f->manager.rest_address, ':') + 1, NULL, 10);
    cr_assert(leati_rest_start(&other, &rest, why, sizeof why) == LEAT_EIO);
    cr_assert(strstr(why, "it is in use") && strstr(why, "127.0.0.1"), "%s", why);
    other.options.bind = "no such host.";
    cr_assert(leati_rest_start(&other, &rest, why, sizeof why) == LEAT_EINVAL);
    cr_assert(strstr(why, "cannot listen at no such host."), "%s", why);
    stop(f);
}
