// SPDX-License-Identifier: Apache-2.0
// What the files of the client share.
#ifndef LEATI_CLUSTER_CLIENT_CLIENT_IMPL_H
#define LEATI_CLUSTER_CLIENT_CLIENT_IMPL_H

#include <curl/curl.h>
#include <stdatomic.h>

#include "base/strbuf.h"
#include "cluster/client/client.h"

enum { LEATI_CLIENT_WHY_SIZE = 1200 };

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
    char why[LEATI_CLIENT_WHY_SIZE];
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
// Answers of any status; an error only when there is none.
LEAT_MUST_USE leat_err leati_client_exchange(leati_client *client,
                                             const leati_client_request *request);
// The error that the status of the last answer stands for, with the sentence in `why`.
leat_err leati_client_judge(leati_client *client);
// Records a sentence and passes the error on.
leat_err leati_client_fail(leati_client *client, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);

leat_err leati_client_submit(leati_client *client, const leati_submission *submission,
                             char id[LEATI_CLIENT_ID_SIZE]);

#endif
