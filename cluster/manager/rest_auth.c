// SPDX-License-Identifier: Apache-2.0
// Who may use REST: with a secret, who shows that he knows it; with certificates, who has one.
//
// A nonce that is given out is remembered by nobody: it carries the time at which it was made and a
// code of this process. Only of those that somebody who knows the secret has used the highest count
// is kept, so that no request can be sent again; and strangers cannot fill any table. When one has
// to go to make room, all that are as old are refused from then on.
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/manager/manager_impl.h"
#include "cluster/manager/rest_impl.h"

enum { NONCES_MOST = 4096, NONCE_LIFE_MS = 600000, TIME_SIZE = 8, RANDOM_SIZE = 8, CODE_SIZE = 16 };

typedef struct used_nonce {
    uint8_t bytes[LEATI_NONCE_SIZE];
    int64_t made_ms;
    uint64_t count; // the highest so far
} used_nonce;

struct leati_rest_nonces {
    leati_secret key; // of this process alone
    pthread_mutex_t lock;
    // Under the lock.
    int64_t floor_ms; // those that are as old as that, or older, are not taken any more
    int64_t age_ms;   // for tests
    uint32_t count;
    used_nonce items[NONCES_MOST];
};

leat_err leati_rest_auth_create(leati_rest *rest, char *why, size_t why_size)
{
    if (rest->manager->auth.secret.size == 0)
        return LEAT_OK;
    struct leati_rest_nonces *made = leati_calloc(rest->manager->allocator, 1, sizeof *made);
    if (!made) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    made->key.size = LEATI_MAC_SIZE;
    made->floor_ms = -1;
    if (!leati_nonce_make(made->key.bytes, made->key.size)) {
        leati_free(rest->manager->allocator, made);
        snprintf(why, why_size, "the system has no random numbers");
        return LEAT_EIO;
    }
    pthread_mutex_init(&made->lock, NULL);
    rest->nonces = made;
    return LEAT_OK;
}

void leati_rest_auth_destroy(leati_rest *rest)
{
    struct leati_rest_nonces *gone = rest->nonces;
    rest->nonces = NULL;
    if (!gone)
        return;
    pthread_mutex_destroy(&gone->lock);
    leati_secret_fini(&gone->key);
    leati_free(rest->manager->allocator, gone);
}

void leati_rest_auth_age(leati_rest *rest, int64_t ms)
{
    pthread_mutex_lock(&rest->nonces->lock);
    rest->nonces->age_ms += ms;
    pthread_mutex_unlock(&rest->nonces->lock);
}

static int64_t now_locked(const struct leati_rest_nonces *nonces)
{
    return leati_clock_ns() / 1000000 + nonces->age_ms;
}

// --- nonces ---

// What makes one of this process's: the last bytes, from those before.
static bool sign(const struct leati_rest_nonces *nonces, const uint8_t *nonce, uint8_t *code)
{
    uint8_t mac[LEATI_MAC_SIZE];
    const leati_bytes part = {nonce, TIME_SIZE + RANDOM_SIZE};
    if (!leati_secret_mac(&nonces->key, &part, 1, mac))
        return false;
    memcpy(code, mac, CODE_SIZE);
    return true;
}

unsigned leati_rest_challenge(leati_request *request)
{
    uint8_t nonce[LEATI_NONCE_SIZE];
    char text[2 * LEATI_NONCE_SIZE + 1];
    struct leati_rest_nonces *nonces = request->rest->nonces;
    if (!nonces)
        return leati_rest_error(request, MHD_HTTP_NOT_FOUND, "this cluster has no secret");
    pthread_mutex_lock(&nonces->lock);
    uint64_t made_ms = (uint64_t)now_locked(nonces);
    pthread_mutex_unlock(&nonces->lock);
    for (int i = 0; i < TIME_SIZE; i++)
        nonce[i] = (uint8_t)(made_ms >> (8 * i));
    if (!leati_nonce_make(nonce + TIME_SIZE, RANDOM_SIZE) ||
        !sign(nonces, nonce, nonce + TIME_SIZE + RANDOM_SIZE))
        return leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    leati_hex_put(nonce, sizeof nonce, text);
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "nonce", text);
    leati_put_i64(&request->out, "lives", NONCE_LIFE_MS);
    leati_put_close(&request->out, '}');
    return MHD_HTTP_OK;
}

// Room for one more: what is too old goes, or else the oldest.
static used_nonce *make_room_locked(struct leati_rest_nonces *nonces, int64_t now_ms)
{
    if (nonces->count < NONCES_MOST)
        return &nonces->items[nonces->count++];
    used_nonce *oldest = &nonces->items[0];
    for (uint32_t i = 1; i < NONCES_MOST; i++)
        if (nonces->items[i].made_ms < oldest->made_ms)
            oldest = &nonces->items[i];
    if (oldest->made_ms > nonces->floor_ms && now_ms - oldest->made_ms < NONCE_LIFE_MS)
        nonces->floor_ms = oldest->made_ms;
    return oldest;
}

typedef enum verdict { GOOD, STALE, REPLAYED } verdict;

// Of a claim whose code is right.
static verdict use_locked(struct leati_rest_nonces *nonces, const leati_rest_claim *claim)
{
    int64_t now_ms = now_locked(nonces), made_ms = 0;
    for (int i = 0; i < TIME_SIZE; i++)
        made_ms |= (int64_t)((uint64_t)claim->nonce[i] << (8 * i));
    if (now_ms - made_ms >= NONCE_LIFE_MS)
        return STALE;
    for (uint32_t i = 0; i < nonces->count; i++) {
        used_nonce *item = &nonces->items[i];
        if (memcmp(item->bytes, claim->nonce, LEATI_NONCE_SIZE) != 0)
            continue;
        if (claim->count <= item->count)
            return REPLAYED;
        item->count = claim->count;
        return GOOD;
    }
    if (made_ms <= nonces->floor_ms)
        return STALE;
    used_nonce *item = make_room_locked(nonces, now_ms);
    memcpy(item->bytes, claim->nonce, LEATI_NONCE_SIZE);
    item->made_ms = made_ms;
    item->count = claim->count;
    return GOOD;
}

// --- requests ---

// The text is told, and logged with where it came from.
static bool refuse(leati_request *request, bool stale, const char *text)
{
    char host[64] = "", line[400];
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    leati_rest_error(request, MHD_HTTP_UNAUTHORIZED, "%s", text);
    leati_rest_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Leat%s",
                      stale ? " stale=true" : "");
    if (stale || !info || !leati_rest_host(info->client_addr, host, sizeof host))
        return false;
    snprintf(line, sizeof line, "http://%s: %s", host, text);
    leati_manager_tell_refused(request->manager, line);
    return false;
}

static bool check_secret(leati_request *request, const char *method)
{
    struct leati_rest_nonces *nonces = request->rest->nonces;
    leati_rest_claim *claim = &request->claim;
    uint8_t code[LEATI_MAC_SIZE];
    uint8_t padded[LEATI_MAC_SIZE] = {0}, expected[LEATI_MAC_SIZE] = {0};
    const char *text = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                   MHD_HTTP_HEADER_AUTHORIZATION);
    if (!text)
        return refuse(request, false,
                      "this cluster has a secret: --secret-file or LEAT_SECRET_FILE names the file "
                      "that holds it");
    if (!leati_rest_claim_parse(text, claim))
        return refuse(request, false, "the header \"Authorization\" is none of Leat's");
    request->sum = leati_sha256_begin();
    if (!request->sum ||
        !leati_rest_request_code(&request->manager->auth.secret, method, request->target, claim,
                                 code) ||
        !sign(nonces, claim->nonce, expected)) {
        leati_rest_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return false;
    }
    if (!leati_mac_is(code, claim->code))
        return refuse(request, false, "the secret is not that of this cluster");
    memcpy(padded, claim->nonce + TIME_SIZE + RANDOM_SIZE, CODE_SIZE);
    if (!leati_mac_is(padded, expected)) // that of an earlier job manager
        return refuse(request, true, "the challenge is too old");
    pthread_mutex_lock(&nonces->lock);
    verdict how = use_locked(nonces, claim);
    pthread_mutex_unlock(&nonces->lock);
    if (how == STALE)
        return refuse(request, true, "the challenge is too old");
    if (how == REPLAYED)
        return refuse(request, false, "a request like that has come before");
    request->claimed = true;
    return true;
}

static bool check_certificate(leati_request *request)
{
    unsigned problems = 0;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    gnutls_session_t session = info ? info->tls_session : NULL;
    unsigned count = 0;
    if (!session || !gnutls_certificate_get_peers(session, &count) || count == 0)
        return refuse(request, false,
                      "this cluster wants a certificate: --tls-cert, --tls-key and --tls-ca");
    if (gnutls_certificate_verify_peers2(session, &problems) < 0)
        return refuse(request, false, "the certificate cannot be looked at");
    if (problems & GNUTLS_CERT_EXPIRED)
        return refuse(request, false, "the certificate has expired");
    if (problems & GNUTLS_CERT_NOT_ACTIVATED)
        return refuse(request, false, "the certificate is not valid yet");
    if (problems)
        return refuse(request, false, "the certificate was not signed for this cluster");
    return true;
}

bool leati_rest_auth_check(leati_request *request, const char *method)
{
    const leati_auth *auth = &request->manager->auth;
    if (request->route && request->route->open)
        return true;
    if (auth->tls && !check_certificate(request))
        return false;
    return auth->secret.size == 0 || check_secret(request, method);
}

bool leati_rest_auth_check_body(leati_request *request)
{
    uint8_t hash[LEATI_MAC_SIZE];
    if (!request->claimed)
        return true;
    if (leati_sha256_end(&request->sum, hash) && leati_mac_is(hash, request->claim.body))
        return true;
    return refuse(request, false, "the body is not the one that was announced");
}

static const char *header_of(const leati_request *request, const char *name)
{
    for (int i = 0; i < request->header_count; i++)
        if (strcmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return "";
}

void leati_rest_auth_answer(leati_request *request)
{
    uint8_t code[LEATI_MAC_SIZE];
    char text[2 * LEATI_MAC_SIZE + 1];
    if (!request->claimed)
        return;
    const leati_rest_said said = {
        .status = request->status,
        .offset = header_of(request, "Leat-Offset"),
        .end = header_of(request, "Leat-End"),
        .state = header_of(request, "Leat-State"),
        .body = leati_strbuf_text(&request->out),
        .size = request->is_head ? 0 : request->out.size,
    };
    if (!leati_rest_answer_code(&request->manager->auth.secret, &request->claim, &said, code))
        return; // the client does not take it then
    leati_hex_put(code, sizeof code, text);
    leati_rest_header(request, "Leat-Code", "%s", text);
}
