// SPDX-License-Identifier: Apache-2.0
// Bodies of requests: JSON is collected, an artifact goes to a temporary file where the artifacts
// are, so that it only needs to be renamed.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "cluster/manager/rest_impl.h"

// A body that comes more slowly than this many bytes a second, once the grace is over, is given up:
// nobody holds a thread and a file by sending a byte now and then.
enum { SLOWEST_BYTES_PER_S = 1000, GRACE_MS = 60000 };

bool leati_rest_is_hash(const char *text)
{
    return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

// Of a path that leads nowhere none is wanted.
static leati_body body_of(const leati_request *request)
{
    return request->route ? request->route->body : LEATI_BODY_NONE;
}

static uint64_t highest(const leati_request *request)
{
    if (body_of(request) == LEATI_BODY_FILE)
        return (uint64_t)leati_config_get(&request->manager->options.config,
                                          LEATI_CONFIG_ARTIFACT_MAX);
    return LEATI_REST_JSON_MAX;
}

static bool refuse_size(leati_request *request)
{
    bool is_file = body_of(request) == LEATI_BODY_FILE;
    leati_rest_error(request, MHD_HTTP_CONTENT_TOO_LARGE,
                     "the body is larger than %s%" PRIu64 " bytes",
                     is_file ? "cluster.artifact-max-size, " : "", highest(request));
    return false;
}

static void open_temporary(leati_request *request)
{
    char path[512];
    const char *hash = request->args[0];
    if (!leati_rest_is_hash(hash)) {
        leati_rest_error(request, MHD_HTTP_BAD_REQUEST,
                         "\"%.80s\" is not the hash of an artifact: 32 digits of 0-9 and a-f",
                         hash);
        return;
    }
    leati_artifact_path(request->manager, hash, path);
    snprintf(request->temporary, sizeof request->temporary, "%s.part-XXXXXX", path);
    request->file = mkostemp(request->temporary, O_CLOEXEC);
    if (request->file >= 0)
        return;
    leati_rest_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s: %s", request->temporary,
                     strerror(errno));
    request->temporary[0] = '\0';
}

bool leati_rest_body_begin(leati_request *request)
{
    const char *text = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                   MHD_HTTP_HEADER_CONTENT_LENGTH);
    // libmicrohttpd has refused what is no number.
    if (text && strtoull(text, NULL, 10) > highest(request))
        return refuse_size(request);
    if (body_of(request) == LEATI_BODY_FILE)
        open_temporary(request);
    return true;
}

static bool write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

static void store(leati_request *request, const char *data, size_t size)
{
    if (body_of(request) == LEATI_BODY_JSON) {
        leati_strbuf_append(&request->body, data, size);
        if (request->body.failed)
            leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    errno = ENOSPC;
    if (!write_all(request->file, data, size))
        leati_rest_error(request, MHD_HTTP_INSUFFICIENT_STORAGE, "%s: %s", request->temporary,
                         strerror(errno));
}

bool leati_rest_body_take(leati_request *request, const char *data, size_t size)
{
    int64_t elapsed_ms = (leati_clock_ns() - request->started_ns) / 1000000;
    request->received += size;
    if (elapsed_ms > GRACE_MS + (int64_t)(request->received / (SLOWEST_BYTES_PER_S / 1000)))
        return false;
    // What comes after an error is read and dropped, as the answer would be lost with a connection
    // that is closed with bytes unread; but not without an end.
    uint64_t most = highest(request);
    if (request->received > most) {
        if (!request->status)
            refuse_size(request);
        return request->received < most + LEATI_REST_JSON_MAX;
    }
    if (request->sum)
        leati_sha256_add(request->sum, data, size);
    if (!request->status && body_of(request) != LEATI_BODY_NONE)
        store(request, data, size);
    return true;
}

void leati_rest_body_drop(leati_request *request)
{
    if (request->file >= 0)
        close(request->file);
    request->file = -1;
    if (request->temporary[0])
        unlink(request->temporary);
    request->temporary[0] = '\0';
}

unsigned leati_rest_put_artifact(leati_request *request)
{
    char path[512], why[LEATI_REASON_SIZE] = "";
    bool known = leati_artifact_path(request->manager, request->args[0], path);
    int closed = close(request->file);
    request->file = -1;
    if (closed != 0)
        return leati_rest_error(request, MHD_HTTP_INSUFFICIENT_STORAGE, "%s: %s",
                                request->temporary, strerror(errno));
    leat_err err =
        leati_artifact_put(request->manager, request->args[0], request->temporary, why, sizeof why);
    request->temporary[0] = '\0';
    if (err != LEAT_OK)
        return leati_rest_error(request, leati_rest_status_of(err), "artifact %s: %s",
                                request->args[0], why[0] ? why : leat_err_message(err));
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "hash", request->args[0]);
    leati_put_u64(&request->out, "size", request->received);
    leati_put_close(&request->out, '}');
    return known ? MHD_HTTP_OK : MHD_HTTP_CREATED;
}

// Whether it is there; its bytes are for task managers, which have their own way.
unsigned leati_rest_get_artifact(leati_request *request)
{
    char path[512];
    struct stat info;
    const char *hash = request->args[0];
    if (!leati_rest_is_hash(hash) || !leati_artifact_path(request->manager, hash, path) ||
        stat(path, &info) != 0)
        return leati_rest_error(request, MHD_HTTP_NOT_FOUND, "there is no artifact \"%.40s\"",
                                hash);
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "hash", hash);
    leati_put_u64(&request->out, "size", (uint64_t)info.st_size);
    leati_put_close(&request->out, '}');
    return MHD_HTTP_OK;
}

// A job manager logs to its standard error, which is a file as a rule: the newest of it.
unsigned leati_rest_manager_log(leati_request *request)
{
    struct stat info;
    int file = -1;
    if (fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode))
        file = open("/proc/self/fd/2", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return leati_rest_error(request, MHD_HTTP_NOT_FOUND,
                                "the job manager does not log to a file");
    off_t at = info.st_size > LEATI_REST_LOG_MAX ? info.st_size - LEATI_REST_LOG_MAX : 0;
    char piece[4096];
    ssize_t got = 0;
    while (at < info.st_size && (got = pread(file, piece, sizeof piece, at)) > 0) {
        leati_strbuf_append(&request->out, piece, (size_t)got);
        at += got;
    }
    close(file);
    request->type = "text/plain; charset=utf-8";
    return MHD_HTTP_OK;
}
