// SPDX-License-Identifier: Apache-2.0
// The HTTP server: it listens, takes requests apart, and sends what pages have put together.
//
// The answer is given when all of the body has come, also to what is refused early: a connection
// that is closed with bytes unread loses its answer. Only a body that says to be too large is
// answered at once.
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/rest_impl.h"

// --- requests ---

static leati_request *request_create(leati_rest *rest, struct MHD_Connection *connection)
{
    leati_manager *manager = rest->manager;
    leati_request *request = leati_calloc(manager->allocator, 1, sizeof *request);
    if (!request)
        return NULL;
    request->rest = rest;
    request->manager = manager;
    request->connection = connection;
    request->type = "application/json";
    request->file = -1;
    request->started_ns = leati_clock_ns();
    leati_strbuf_init(&request->out, manager->allocator);
    leati_strbuf_init(&request->body, manager->allocator);
    return request;
}

static void request_completed(void *user, struct MHD_Connection *connection, void **state,
                              enum MHD_RequestTerminationCode code)
{
    leati_request *request = *state;
    leati_rest_guard_request(connection, false);
    if (!request)
        return;
    leati_rest_body_drop(request);
    leati_strbuf_fini(&request->body);
    leati_strbuf_fini(&request->out);
    if (request->sum)
        leati_sha256_drop(&request->sum);
    leati_free(request->manager->allocator, request->target);
    leati_free(request->manager->allocator, request->path);
    leati_free(request->manager->allocator, request);
    *state = NULL;
}

static void free_text(void *user)
{
    leati_strbuf *text = user;
    const leat_allocator *allocator = text->allocator;
    leati_strbuf_fini(text);
    leati_free(allocator, text);
}

// The answer lives as long as the library sends it, which may be longer than the request.
static struct MHD_Response *make_response(leati_request *request)
{
    if (request->out.failed)
        request->status = leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    leati_strbuf *text = leati_alloc(request->manager->allocator, sizeof *text);
    if (!text)
        return NULL;
    *text = request->out;
    leati_strbuf_init(&request->out, request->manager->allocator);
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        text->size, text->data ? text->data : (char *)leati_strbuf_text(text), free_text, text);
    if (!response)
        free_text(text);
    return response;
}

static enum MHD_Result answer(leati_request *request)
{
    if (!request->out.failed)
        leati_rest_auth_answer(request);
    struct MHD_Response *response = make_response(request);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, request->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (request->allow[0])
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->allow);
    for (int i = 0; i < request->header_count; i++)
        MHD_add_response_header(response, request->headers[i].name, request->headers[i].value);
    enum MHD_Result sent = MHD_queue_response(request->connection, request->status, response);
    MHD_destroy_response(response);
    return sent;
}

static unsigned show_job(leati_request *request)
{
    pthread_mutex_lock(&request->manager->lock);
    leati_managed_job *job = leati_rest_find_job(request);
    unsigned status = job ? request->route->job(request, job) : request->status;
    pthread_mutex_unlock(&request->manager->lock);
    return status;
}

// Called with the path as it was sent, before anything else of a request is known.
static void *on_target(void *user, const char *target, struct MHD_Connection *connection)
{
    leati_request *request = request_create(user, connection);
    if (!request)
        return NULL;
    request->target = leati_strdup(request->manager->allocator, target);
    if (request->target)
        return request;
    leati_free(request->manager->allocator, request);
    return NULL;
}

// Called when the headers have come, for each piece of the body, and at the end.
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state)
{
    leati_request *request = *state;
    if (!request)
        return MHD_NO;
    if (!request->begun) {
        request->begun = true;
        request->is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
        request->route = leati_rest_route(request, method, url);
        // Strangers do not learn what there is, and send no bodies.
        if (!leati_rest_auth_check(request, method)) {
            request->route = NULL;
            return MHD_YES;
        }
        // Who may be anybody has no more time for a body than for its headers.
        if (!request->route || !request->route->open)
            leati_rest_guard_request(connection, true);
        bool readable = !request->route || leati_rest_body_begin(request);
        return readable ? MHD_YES : answer(request);
    }
    if (*size) {
        bool good = leati_rest_body_take(request, data, *size);
        *size = 0;
        return good ? MHD_YES : MHD_NO;
    }
    if (!request->status && leati_rest_auth_check_body(request))
        request->status = request->route->page ? request->route->page(request) : show_job(request);
    return answer(request);
}

// --- listening ---

static void log_library(void *user, const char *format, va_list args)
{
    leati_rest *rest = user;
    const leat_logger *logger = &rest->manager->options.logger;
    char line[400];
    if (!logger->write || logger->level < LEAT_LOG_DEBUG)
        return;
    int prefix = snprintf(line, sizeof line, "http: ");
    vsnprintf(line + prefix, sizeof line - (size_t)prefix, format, args);
    line[strcspn(line, "\r\n")] = '\0';
    logger->write(logger->user, LEAT_LOG_DEBUG, line);
}

static int open_listener(const struct addrinfo *at)
{
    int one = 1;
    int listener = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, at->ai_addr, at->ai_addrlen) == 0 && listen(listener, 511) == 0)
        return listener;
    int error = errno;
    close(listener);
    errno = error;
    return -1;
}

// What to dial: the host as it was configured, and the port that it has become.
static void note_address(leati_manager *manager, int listener)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char port[16] = "0";
    if (getsockname(listener, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    bool brackets = strchr(manager->options.bind, ':') != NULL;
    snprintf(manager->rest_address, sizeof manager->rest_address, "%s%s%s:%s", brackets ? "[" : "",
             manager->options.bind, brackets ? "]" : "", port);
}

static leat_err listen_at(leati_manager *manager, int *listener, char *why, size_t why_size)
{
    char port[16];
    struct addrinfo *list = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    snprintf(port, sizeof port, "%u", manager->options.port);
    int fault = getaddrinfo(manager->options.bind, port, &hints, &list);
    if (fault) {
        snprintf(why, why_size, "cannot listen at %s: %s", manager->options.bind,
                 gai_strerror(fault));
        return LEAT_EINVAL;
    }
    *listener = -1;
    for (struct addrinfo *at = list; at && *listener < 0; at = at->ai_next)
        *listener = open_listener(at);
    int error = errno;
    freeaddrinfo(list);
    if (*listener >= 0)
        return LEAT_OK;
    snprintf(why, why_size, "cannot listen for HTTP at %s, port %s: %s", manager->options.bind,
             port, error == EADDRINUSE ? "it is in use" : strerror(error));
    return LEAT_EIO;
}

static struct MHD_Daemon *start_daemon(leati_rest *rest, int listener)
{
    const leati_tls *tls = rest->manager->auth.tls;
    const leati_tls_texts *texts = tls ? leati_tls_get_texts(tls) : NULL;
    unsigned most = leati_listener_share(LEATI_REST_PART, LEATI_REST_CONNECTIONS);
    rest->crowd = most - most / 4;
    struct MHD_OptionItem more[] = {
        {MHD_OPTION_HTTPS_MEM_KEY, 0, texts ? texts->key : NULL},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, texts ? texts->cert : NULL},
        {MHD_OPTION_HTTPS_MEM_TRUST, 0, texts ? texts->ca : NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, rest, MHD_OPTION_EXTERNAL_LOGGER, log_library, rest,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_URI_LOG_CALLBACK, on_target, rest,
        MHD_OPTION_NOTIFY_COMPLETED, request_completed, rest, MHD_OPTION_NOTIFY_CONNECTION,
        leati_rest_guard_connection, rest, MHD_OPTION_CONNECTION_LIMIT, most,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LEATI_REST_TIMEOUT_S, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)LEATI_REST_STACK, MHD_OPTION_ARRAY, tls ? more : &more[3], MHD_OPTION_END);
}

leat_err leati_rest_start(leati_manager *manager, leati_rest **rest, char *why, size_t why_size)
{
    int listener;
    leat_err err = listen_at(manager, &listener, why, why_size);
    if (err != LEAT_OK)
        return err;
    leati_rest *made = leati_calloc(manager->allocator, 1, sizeof *made);
    err = LEAT_ENOMEM;
    if (!made)
        goto no_memory;
    made->manager = manager;
    note_address(manager, listener);
    err = leati_rest_auth_create(made, why, why_size);
    if (err != LEAT_OK)
        goto no_guard;
    err = leati_rest_guard_start(made);
    if (err != LEAT_OK)
        goto no_guard;
    made->daemon = start_daemon(made, listener);
    if (made->daemon) {
        *rest = made;
        return LEAT_OK;
    }
    err = LEAT_ETHREAD;
    leati_rest_guard_stop(made);
    pthread_mutex_destroy(&made->guard_lock);
no_guard:
    leati_rest_auth_destroy(made);
    leati_free(manager->allocator, made);
no_memory:
    close(listener);
    snprintf(why, why_size, "the HTTP server does not start: %s", leat_err_message(err));
    return err;
}

void leati_rest_stop(leati_rest **rest)
{
    leati_rest *gone = *rest;
    if (!gone)
        return;
    *rest = NULL;
    pthread_mutex_lock(&gone->manager->lock);
    gone->stopping = true;
    pthread_cond_broadcast(&gone->manager->changed);
    pthread_mutex_unlock(&gone->manager->lock);
    leati_rest_guard_stop(gone);
    MHD_stop_daemon(gone->daemon); // waits for all its threads, and closes the listener
    pthread_mutex_destroy(&gone->guard_lock);
    leati_rest_auth_destroy(gone);
    leati_free(gone->manager->allocator, gone);
}
