// SPDX-License-Identifier: Apache-2.0
// What the files of the client share.
#ifndef LEATI_CLUSTER_CLIENT_CLIENT_IMPL_H
#define LEATI_CLUSTER_CLIENT_CLIENT_IMPL_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "base/strbuf.h"
#include "cluster/client/client.h"
#include "cluster/rest_code.h"

enum { LEATI_CLIENT_WHY_SIZE = 1200, LEATI_CLIENT_CLAIM_SIZE = LEATI_REST_CLAIM_SIZE + 20 };

struct leati_client {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char *address; // "host:port"
    // Set by any thread (release), taken by the client's own (acquire exchange): nothing else is
    // handed over with it.
    _Atomic bool interrupted;
    leati_strbuf body;
    bool overflowed; // the body was larger than LEATI_CLIENT_BODY_MAX
    leati_client_answer answer;
    int64_t most_ms; // a call takes so long at most; 0: it is as for all
    char why[LEATI_CLIENT_WHY_SIZE];
    char trouble[CURL_ERROR_SIZE]; // what libcurl says of its own
    // How it shows that it may (auth.c).
    leati_secret secret;
    char *tls_cert, *tls_key, *tls_ca; // NULL: no TLS
    bool has_nonce;
    leati_rest_claim claim; // of the last request
    // Of the last answer, as it was sent.
    char said_offset[24], said_end[24], said_code[72];
    bool said_stale;
};

typedef struct leati_client_request {
    const char *method, *path;
    int64_t wait_ms;    // how long the answer may take on purpose
    const char *bytes;  // to send, or NULL
    size_t size;        // of them
    const char *file;   // to send, or NULL
    uint64_t file_size; // of it, as it was found
} leati_client_request;

leat_err leati_client_open(const char *address, leati_client **client, char *why, size_t why_size);
void leati_client_close(leati_client **client);
void leati_client_interrupt(leati_client *client);
void leati_client_hurry(leati_client *client, int64_t most_ms);
// --- auth.c ---

leat_err leati_client_secure(leati_client *client, const leati_auth_files *files);
void leati_client_auth_fini(leati_client *client);

// Answers of any status; an error only when there is none, or it is not the job manager's.
LEAT_MUST_USE leat_err leati_client_exchange(leati_client *client,
                                             const leati_client_request *request);
// --- http.c ---

// One request and its answer, with one more header or NULL.
LEAT_MUST_USE leat_err leati_client_send(leati_client *client, const leati_client_request *request,
                                         const char *header);
// The error that the status of the last answer stands for, with the sentence in `why`.
leat_err leati_client_judge(leati_client *client);
// Records a sentence and passes the error on.
leat_err leati_client_fail(leati_client *client, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);

leat_err leati_client_submit(leati_client *client, const leati_submission *submission,
                             char id[LEATI_CLIENT_ID_SIZE]);

#endif
