// SPDX-License-Identifier: Apache-2.0
// What pages need of a request: its arguments, and ways to say no.
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/manager/rest_impl.h"

unsigned leati_rest_error(leati_request *request, unsigned status, const char *format, ...)
{
    char text[LEATI_REASON_SIZE + 200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    leati_strbuf_fini(&request->out);
    leati_strbuf_init(&request->out, request->manager->allocator);
    leati_put_open(&request->out, NULL, '{');
    leati_put_open(&request->out, "errors", '[');
    leati_put_text(&request->out, NULL, text);
    leati_put_close(&request->out, ']');
    leati_put_close(&request->out, '}');
    request->type = "application/json";
    request->status = status;
    return status;
}

unsigned leati_rest_status_of(leat_err err)
{
    switch (err) {
    case LEAT_ENOMEM:
    case LEAT_EAGAIN:
    case LEAT_ECLOSED:
    case LEAT_ETHREAD:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    case LEAT_EIO:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    case LEAT_ENOBUFS:
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    case LEAT_ETOOBIG:
        return MHD_HTTP_CONTENT_TOO_LARGE;
    case LEAT_ENOENT:
    case LEAT_ESTATE:
    case LEAT_EABI:
    case LEAT_EEXIST:
        return MHD_HTTP_CONFLICT;
    default:
        return MHD_HTTP_BAD_REQUEST;
    }
}

void leati_rest_header(leati_request *request, const char *name, const char *format, ...)
{
    if (request->header_count == (int)(sizeof request->headers / sizeof *request->headers))
        return;
    int index = request->header_count++;
    snprintf(request->headers[index].name, sizeof request->headers[index].name, "%s", name);
    va_list args;
    va_start(args, format);
    vsnprintf(request->headers[index].value, sizeof request->headers[index].value, format, args);
    va_end(args);
}

const char *leati_rest_query(leati_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

// Digits and nothing else.
static bool read_number(const char *text, uint64_t highest, uint64_t *value)
{
    if (!text[0] || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, NULL, 10);
    if (errno || number > highest)
        return false;
    *value = number;
    return true;
}

bool leati_rest_number(leati_request *request, const char *name, uint64_t preset, uint64_t highest,
                       uint64_t *value)
{
    const char *text = leati_rest_query(request, name);
    *value = preset;
    if (!text || read_number(text, highest, value))
        return true;
    leati_rest_error(request, MHD_HTTP_BAD_REQUEST,
                     "%s: \"%.80s\" is not a whole number from 0 to %" PRIu64, name, text, highest);
    return false;
}

leati_managed_job *leati_rest_find_job(leati_request *request)
{
    bool several = false;
    leati_managed_job *job = leati_manager_find(request->manager, request->args[0], &several);
    if (!job && several)
        leati_rest_error(request, MHD_HTTP_CONFLICT,
                         "several jobs have ids that begin with \"%.40s\"", request->args[0]);
    else if (!job)
        leati_rest_error(request, MHD_HTTP_NOT_FOUND, "there is no job \"%.40s\"",
                         request->args[0]);
    return job;
}

bool leati_rest_index(leati_request *request, int index, const char *what, uint32_t count,
                      uint32_t *value)
{
    uint64_t number = 0;
    if (count && read_number(request->args[index], count - 1, &number)) {
        *value = (uint32_t)number;
        return true;
    }
    leati_rest_error(request, MHD_HTTP_NOT_FOUND,
                     "there is no %s \"%.40s\": they are 0 to %" PRId64, what, request->args[index],
                     (int64_t)count - 1);
    return false;
}

bool leati_rest_host(const struct sockaddr *address, char *to, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    socklen_t length =
        address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo(address, length, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        return false;
    bool brackets = strchr(host, ':') != NULL;
    snprintf(to, size, "%s%s%s", brackets ? "[" : "", host, brackets ? "]" : "");
    return true;
}

void leati_rest_pause(leati_request *request, bool paused)
{
    MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              paused ? 0u : (unsigned)LEATI_REST_TIMEOUT_S);
}
