// SPDX-License-Identifier: Apache-2.0
// How a client shows that it may: by the secret, request by request, or by a certificate.
//
// With a secret the answers are checked too, so that nobody who merely listens at the right port is
// taken for the job manager, or is sent a job.
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/client/client_impl.h"

static leat_err no_memory(leati_client *client)
{
    return leati_client_fail(client, LEAT_ENOMEM, "%s", leat_err_message(LEAT_ENOMEM));
}

// --- what the user has named ---

static leat_err take_files(leati_client *client, const leati_auth_files *files)
{
    const char *const named[] = {files->tls_cert, files->tls_key, files->tls_ca};
    char **const to[] = {&client->tls_cert, &client->tls_key, &client->tls_ca};
    for (int i = 0; i < 3; i++) {
        if (!named[i])
            return leati_client_fail(client, LEAT_EINVAL,
                                     "TLS needs all of --tls-cert, --tls-key and --tls-ca");
        if (access(named[i], R_OK) != 0)
            return leati_client_fail(client, LEAT_EIO, "\"%.800s\": %s", named[i], strerror(errno));
        *to[i] = leati_strdup(NULL, named[i]);
        if (!*to[i])
            return no_memory(client);
    }
    return leati_certificate_check(files, client->why, sizeof client->why);
}

leat_err leati_client_secure(leati_client *client, const leati_auth_files *files)
{
    leat_err err = LEAT_OK;
    if (files->secret)
        err = leati_secret_read(&client->secret, files->secret, client->why, sizeof client->why);
    if (err == LEAT_OK && (files->tls_cert || files->tls_key || files->tls_ca))
        err = take_files(client, files);
    return err;
}

void leati_client_auth_fini(leati_client *client)
{
    leati_secret_fini(&client->secret);
    leati_free(NULL, client->tls_cert);
    leati_free(NULL, client->tls_key);
    leati_free(NULL, client->tls_ca);
}

// --- requests ---

static leat_err ask_for_nonce(leati_client *client)
{
    leat_err err = leati_client_send(
        client, &(leati_client_request){.method = "GET", .path = "/challenge"}, NULL);
    if (err != LEAT_OK)
        return err;
    if (client->answer.status == 404)
        return leati_client_fail(client, LEAT_EINVAL,
                                 "the cluster at %s has no secret, and one was given here",
                                 client->address);
    err = leati_client_judge(client);
    if (err != LEAT_OK)
        return err;
    json_t *whole = json_loadb(client->answer.body, client->answer.size, 0, NULL);
    const char *text = json_string_value(json_object_get(whole, "nonce"));
    client->claim.count = 0;
    client->has_nonce =
        text && leati_hex_get(text, strlen(text), client->claim.nonce, sizeof client->claim.nonce);
    json_decref(whole);
    return client->has_nonce
               ? LEAT_OK
               : leati_client_fail(client, LEAT_EIO, "what answers at %s is no job manager",
                                   client->address);
}

static leat_err add_file(leati_client *client, const char *path, leati_sha256 *sum)
{
    char piece[16 << 10];
    ssize_t got;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return leati_client_fail(client, LEAT_EIO, "%.800s: %s", path, strerror(errno));
    do {
        got = read(file, piece, sizeof piece);
        if (got > 0)
            leati_sha256_add(sum, piece, (size_t)got);
    } while (got > 0 || (got < 0 && errno == EINTR));
    leat_err err = LEAT_OK;
    if (got < 0)
        err = leati_client_fail(client, LEAT_EIO, "%.800s: %s", path, strerror(errno));
    (void)close(file);
    return err;
}

static leat_err sum_body(leati_client *client, const leati_client_request *request)
{
    leat_err err = LEAT_OK;
    leati_sha256 *sum = leati_sha256_begin();
    if (!sum)
        return no_memory(client);
    if (request->file)
        err = add_file(client, request->file, sum);
    else if (request->bytes)
        leati_sha256_add(sum, request->bytes, request->size);
    if (!leati_sha256_end(&sum, client->claim.body) && err == LEAT_OK)
        err = no_memory(client);
    return err;
}

static leat_err sign(leati_client *client, const leati_client_request *request,
                     char header[LEATI_CLIENT_CLAIM_SIZE])
{
    char claim[LEATI_REST_CLAIM_SIZE];
    leati_strbuf target;
    leat_err err = sum_body(client, request);
    if (err != LEAT_OK)
        return err;
    client->claim.count++;
    leati_strbuf_init(&target, NULL);
    leati_strbuf_printf(&target, "/v1%s", request->path);
    bool good = !target.failed && leati_rest_request_code(&client->secret, request->method,
                                                          leati_strbuf_text(&target),
                                                          &client->claim, client->claim.code);
    leati_strbuf_fini(&target);
    if (!good)
        return no_memory(client);
    leati_rest_claim_print(&client->claim, claim);
    snprintf(header, LEATI_CLIENT_CLAIM_SIZE, "Authorization: %s", claim);
    return LEAT_OK;
}

// --- answers ---

static leat_err check_answer(leati_client *client, const leati_client_request *request)
{
    uint8_t code[LEATI_MAC_SIZE], theirs[LEATI_MAC_SIZE];
    const leati_client_answer *answer = &client->answer;
    // A complaint may come from the HTTP library over there, which knows no secret.
    if (answer->status == 400 || answer->status == 401 || answer->status >= 500)
        return LEAT_OK;
    const leati_rest_said said = {
        .status = (unsigned)answer->status,
        .offset = client->said_offset,
        .end = client->said_end,
        .state = answer->state,
        .body = answer->body,
        .size = strcmp(request->method, "HEAD") != 0 ? answer->size : 0,
    };
    if (!leati_rest_answer_code(&client->secret, &client->claim, &said, code))
        return no_memory(client);
    if (leati_hex_get(client->said_code, strlen(client->said_code), theirs, sizeof theirs) &&
        leati_mac_is(code, theirs))
        return LEAT_OK;
    return leati_client_fail(
        client, LEAT_EIO, "what answers at %s does not know the cluster's secret", client->address);
}

leat_err leati_client_exchange(leati_client *client, const leati_client_request *request)
{
    char header[LEATI_CLIENT_CLAIM_SIZE];
    if (client->secret.size == 0)
        return leati_client_send(client, request, NULL);
    for (bool again = false;; again = true) {
        leat_err err = client->has_nonce ? LEAT_OK : ask_for_nonce(client);
        if (err == LEAT_OK)
            err = sign(client, request, header);
        if (err == LEAT_OK)
            err = leati_client_send(client, request, header);
        if (err != LEAT_OK)
            return err;
        if (client->answer.status != 401 || !client->said_stale || again)
            return check_answer(client, request);
        client->has_nonce = false;
    }
}
