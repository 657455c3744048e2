// SPDX-License-Identifier: Apache-2.0
// Requests over libcurl. The multi interface is used for one transfer at a time, as its wait can be
// ended from another thread.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "cluster/client/client_impl.h"

leat_err leati_client_fail(leati_client *client, leat_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(client->why, sizeof client->why, format, args);
    va_end(args);
    return err;
}

// --- callbacks of libcurl ---

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    leati_client *client = user;
    if (client->body.size + count > LEATI_CLIENT_BODY_MAX) {
        client->overflowed = true;
        return 0;
    }
    leati_strbuf_append(&client->body, data, size * count);
    return client->body.failed ? 0 : size * count;
}

// The value of a header if the line is of that name; without blanks around it.
static bool header_is(const char *line, size_t size, const char *name, char *value, size_t room)
{
    size_t length = strlen(name);
    if (size <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
        return false;
    const char *at = line + length + 1, *end = line + size;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (unsigned char)end[-1] <= ' ')
        end--;
    snprintf(value, room, "%.*s", (int)(end - at), at);
    return true;
}

static size_t take_header(char *line, size_t size, size_t count, void *user)
{
    leati_client *client = user;
    leati_client_answer *answer = &client->answer;
    char value[32];
    if (header_is(line, size * count, "Leat-Offset", client->said_offset,
                  sizeof client->said_offset))
        answer->offset = strtoull(client->said_offset, NULL, 10);
    else if (header_is(line, size * count, "Leat-End", client->said_end, sizeof client->said_end))
        answer->end = strtoull(client->said_end, NULL, 10);
    else if (header_is(line, size * count, "Leat-State", value, sizeof value))
        snprintf(answer->state, sizeof answer->state, "%s", value);
    else if (header_is(line, size * count, "WWW-Authenticate", value, sizeof value))
        client->said_stale = strcmp(value, "Leat stale=true") == 0;
    else
        (void)header_is(line, size * count, "Leat-Code", client->said_code,
                        sizeof client->said_code);
    return size * count;
}

static size_t give_file(char *to, size_t size, size_t count, void *user)
{
    const int *fd = user;
    ssize_t got;
    do
        got = read(*fd, to, size * count);
    while (got < 0 && errno == EINTR);
    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static int rewind_file(void *user, curl_off_t offset, int origin)
{
    const int *fd = user;
    return lseek(*fd, (off_t)offset, origin) < 0 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

// --- life ---

// "host", "host:port", "[v6]:port": to "host:port". NULL when it is none of these.
static char *complete_address(const char *address)
{
    const char *bracket = address[0] == '[' ? strchr(address, ']') : NULL;
    const char *colon = strrchr(bracket ? bracket : address, ':');
    size_t host = colon ? (size_t)(colon - address) : strlen(address);
    if (host == 0 || host > 255 || (address[0] == '[' && !bracket) ||
        (bracket && bracket[1] && bracket[1] != ':'))
        return NULL;
    for (size_t i = 0; i < host; i++)
        if ((unsigned char)address[i] <= ' ' || strchr("/@?#%\\\"<>", address[i]) ||
            (address[i] == ':' && !bracket))
            return NULL;
    long port = LEATI_CLIENT_DEFAULT_PORT;
    if (colon) {
        char *end = NULL;
        port = strtol(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end || port < 1 || port > 65535)
            return NULL;
    }
    char whole[300];
    snprintf(whole, sizeof whole, "%.*s:%ld", (int)host, address, port);
    return leati_strdup(NULL, whole);
}

static bool set_up(leati_client *client)
{
    client->multi = curl_multi_init();
    client->easy = curl_easy_init();
    return client->multi && client->easy;
}

leat_err leati_client_open(const char *address, leati_client **client, char *why, size_t why_size)
{
    char *whole = complete_address(address);
    if (!whole) {
        snprintf(why, why_size, "\"%.200s\" is no address; HOST:PORT is wanted", address);
        leati_text_clean(why);
        return LEAT_EINVAL;
    }
    // Without the TLS library, which would be initialised for nothing.
    if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK) {
        snprintf(why, why_size, "libcurl cannot be initialised");
        leati_free(NULL, whole);
        return LEAT_EIO;
    }
    leati_client *made = leati_calloc(NULL, 1, sizeof *made);
    if (made) {
        made->address = whole;
        leati_strbuf_init(&made->body, NULL);
    } else {
        leati_free(NULL, whole);
    }
    if (!made || !set_up(made)) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        leati_client_close(&made);
        return LEAT_ENOMEM;
    }
    *client = made;
    return LEAT_OK;
}

void leati_client_close(leati_client **client)
{
    leati_client *c = *client;
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    leati_client_auth_fini(c);
    leati_strbuf_fini(&c->body);
    leati_free(NULL, c->address);
    leati_free(NULL, c);
    *client = NULL;
}

void leati_client_hurry(leati_client *client, int64_t most_ms)
{
    client->most_ms = most_ms;
}

void leati_client_interrupt(leati_client *client)
{
    atomic_store_explicit(&client->interrupted, true, memory_order_release);
    (void)curl_multi_wakeup(client->multi);
}

// --- one request ---

// How long nothing may arrive, in seconds.
static long silence_of(const leati_client_request *request)
{
    return (long)((request->wait_ms + LEATI_CLIENT_SILENCE_MS) / 1000);
}

static bool set_url(leati_client *client, const leati_client_request *request)
{
    leati_strbuf url;
    leati_strbuf_init(&url, NULL);
    leati_strbuf_printf(&url, "http%s://%s/v1%s", client->tls_cert ? "s" : "", client->address,
                        request->path);
    bool good = !url.failed &&
                curl_easy_setopt(client->easy, CURLOPT_URL, leati_strbuf_text(&url)) == CURLE_OK;
    leati_strbuf_fini(&url);
    return good;
}

static void set_sending(leati_client *client, const leati_client_request *request, int *fd)
{
    CURL *easy = client->easy;
    if (*fd >= 0) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->file_size);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_file);
        curl_easy_setopt(easy, CURLOPT_READDATA, fd);
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_file);
        curl_easy_setopt(easy, CURLOPT_SEEKDATA, fd);
    } else if (request->bytes) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->bytes);
    } else if (!strcmp(request->method, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    }
    if (strcmp(request->method, "HEAD") != 0)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

// Whom the cluster's authority has signed is a member, whatever name is in the certificate.
static void set_tls(leati_client *client)
{
    curl_easy_setopt(client->easy, CURLOPT_SSLCERT, client->tls_cert);
    curl_easy_setopt(client->easy, CURLOPT_SSLKEY, client->tls_key);
    curl_easy_setopt(client->easy, CURLOPT_CAINFO, client->tls_ca);
    curl_easy_setopt(client->easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(client->easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(client->easy, CURLOPT_SSL_VERIFYHOST, 0L);
}

// The headers that all requests have, and one more or none.
static bool set_headers(leati_client *client, const char *header)
{
    curl_slist_free_all(client->headers);
    // Else libcurl would wait a second before it sends a body to a server that does not say that it
    // may.
    client->headers = curl_slist_append(NULL, "Expect:");
    if (!client->headers || !header)
        return client->headers != NULL;
    return curl_slist_append(client->headers, header) != NULL;
}

static bool prepare(leati_client *client, const leati_client_request *request, int *fd)
{
    CURL *easy = client->easy;
    curl_easy_reset(easy); // keeps the connection
    leati_strbuf_fini(&client->body);
    leati_strbuf_init(&client->body, NULL);
    client->overflowed = false;
    client->answer = (leati_client_answer){.body = ""};
    client->why[0] = '\0';
    client->said_offset[0] = client->said_end[0] = client->said_code[0] = '\0';
    client->said_stale = false;
    if (!set_url(client, request))
        return false;
    client->trouble[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->trouble);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // whatever the environment says: it is no web
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, client->tls_cert ? "https" : "http");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, client->headers);
    if (client->tls_cert)
        set_tls(client);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)LEATI_CLIENT_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)client->most_ms); // 0: none
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, silence_of(request));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
    set_sending(client, request, fd);
    return true;
}

// Whether somebody wants the call to end, which takes the wish.
static bool was_interrupted(leati_client *client, const leati_client_request *request)
{
    return request->wait_ms > 0 &&
           atomic_exchange_explicit(&client->interrupted, false, memory_order_acquire);
}

// Runs the transfer to its end. Returns whether it was not interrupted.
static bool transfer(leati_client *client, const leati_client_request *request, CURLcode *result)
{
    *result = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
        return true;
    int running = 1;
    bool interrupted = false;
    while (running && !interrupted) {
        if (curl_multi_perform(client->multi, &running) != CURLM_OK)
            break;
        if (running && curl_multi_poll(client->multi, NULL, 0, 1000, NULL) != CURLM_OK)
            break;
        interrupted = running && was_interrupted(client, request);
    }
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(client->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            *result = message->data.result;
    curl_multi_remove_handle(client->multi, client->easy);
    return !interrupted;
}

static leat_err explain(leati_client *client, CURLcode result)
{
    long error = 0;
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return leati_client_fail(client, LEAT_EIO, "%s: there is no host of that name",
                                 client->address);
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(client->easy, CURLINFO_OS_ERRNO, &error);
        return leati_client_fail(client, LEAT_EIO, "no job manager answers at %s: %s",
                                 client->address, error ? strerror((int)error) : "no connection");
    case CURLE_OPERATION_TIMEDOUT:
        return leati_client_fail(client, LEAT_EIO, "the job manager at %s does not answer in time",
                                 client->address);
    case CURLE_GOT_NOTHING:
        return leati_client_fail(
            client, LEAT_EIO, "the job manager at %s has gone away%s", client->address,
            client->tls_cert ? "" : ", or wants TLS (--tls-cert, --tls-key, --tls-ca)");
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return leati_client_fail(client, LEAT_EIO, "the job manager at %s has gone away",
                                 client->address);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return leati_client_fail(client, LEAT_EIO, "what answers at %s is no job manager",
                                 client->address);
    case CURLE_OUT_OF_MEMORY:
        return leati_client_fail(client, LEAT_ENOMEM, "%s", leat_err_message(LEAT_ENOMEM));
    case CURLE_PEER_FAILED_VERIFICATION:
        return leati_client_fail(client, LEAT_EIO,
                                 "what answers at %s has no certificate of \"%s\": %s",
                                 client->address, client->tls_ca, client->trouble);
    case CURLE_SSL_CONNECT_ERROR:
        return leati_client_fail(
            client, LEAT_EIO, "no TLS with what answers at %s: %s; is its certificate of \"%s\"?",
            client->address, *client->trouble ? client->trouble : curl_easy_strerror(result),
            client->tls_ca ? client->tls_ca : "");
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return leati_client_fail(client, LEAT_EINVAL, "%s",
                                 *client->trouble ? client->trouble : curl_easy_strerror(result));
    default:
        return leati_client_fail(client, LEAT_EIO, "the job manager at %s: %s", client->address,
                                 curl_easy_strerror(result));
    }
}

static leat_err conclude(leati_client *client, CURLcode result)
{
    if (client->overflowed)
        return leati_client_fail(client, LEAT_ETOOBIG, "the answer is larger than %d bytes",
                                 LEATI_CLIENT_BODY_MAX);
    if (client->body.failed)
        return leati_client_fail(client, LEAT_ENOMEM, "%s", leat_err_message(LEAT_ENOMEM));
    if (result != CURLE_OK)
        return explain(client, result);
    long status = 0;
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    client->answer.status = (int)status;
    client->answer.body = leati_strbuf_text(&client->body);
    client->answer.size = client->body.size;
    return LEAT_OK;
}

leat_err leati_client_send(leati_client *client, const leati_client_request *request,
                           const char *header)
{
    int fd = -1;
    if (was_interrupted(client, request))
        return leati_client_fail(client, LEAT_ECANCELLED, "interrupted");
    if (request->file) {
        fd = open(request->file, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return leati_client_fail(client, LEAT_EINVAL, "%s: %s", request->file, strerror(errno));
    }
    leat_err err;
    CURLcode result;
    if (!set_headers(client, header) || !prepare(client, request, &fd))
        err = leati_client_fail(client, LEAT_ENOMEM, "%s", leat_err_message(LEAT_ENOMEM));
    else if (!transfer(client, request, &result))
        err = leati_client_fail(client, LEAT_ECANCELLED, "interrupted");
    else
        err = conclude(client, result);
    if (fd >= 0)
        close(fd);
    return err;
}

// --- errors that the job manager tells ---

static leat_err error_of(int status)
{
    if (status >= 200 && status < 300)
        return LEAT_OK;
    if (status == 404)
        return LEAT_ENOENT;
    if (status == 409)
        return LEAT_ESTATE;
    if (status == 413)
        return LEAT_ETOOBIG;
    if (status == 507)
        return LEAT_ENOBUFS;
    return status >= 400 && status < 500 ? LEAT_EINVAL : LEAT_EIO;
}

leat_err leati_client_judge(leati_client *client)
{
    const leati_client_answer *answer = &client->answer;
    leat_err err = error_of(answer->status);
    if (err == LEAT_OK)
        return err;
    json_t *whole = json_loadb(answer->body, answer->size, 0, NULL);
    const char *said = json_string_value(json_array_get(json_object_get(whole, "errors"), 0));
    if (said)
        (void)leati_client_fail(client, err, "%s", said);
    else
        (void)leati_client_fail(client, err, "HTTP status %d; is that a job manager at %s?",
                                answer->status, client->address);
    json_decref(whole);
    leati_text_clean(client->why);
    return err;
}
