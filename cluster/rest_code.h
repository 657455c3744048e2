// SPDX-License-Identifier: Apache-2.0
// How requests of REST show that who sends them knows the secret of the cluster, and answers that
// the job manager does. docs/security.md has the bytes.
//
//     Authorization: Leat NONCE COUNT BODY CODE
//
// NONCE came from GET /challenge, COUNT grows with each request that uses it, BODY is the SHA-256
// of the body, CODE covers all of these, the method and the path.
#ifndef LEATI_CLUSTER_REST_CODE_H
#define LEATI_CLUSTER_REST_CODE_H

#include "network/nng/secret.h"

enum { LEATI_REST_CLAIM_SIZE = 5 + 64 + 1 + 20 + 1 + 64 + 1 + 64 + 1 };

typedef struct leati_rest_claim {
    uint8_t nonce[LEATI_NONCE_SIZE];
    uint64_t count;
    uint8_t body[LEATI_MAC_SIZE];
    uint8_t code[LEATI_MAC_SIZE];
} leati_rest_claim;

// The value of the header "Authorization".
void leati_rest_claim_print(const leati_rest_claim *claim, char to[LEATI_REST_CLAIM_SIZE]);
bool leati_rest_claim_parse(const char *text, leati_rest_claim *claim);

// The code of a request; `target` is the path with what follows "?", as it is sent. False: out of
// memory.
LEAT_MUST_USE bool leati_rest_request_code(const leati_secret *secret, const char *method,
                                           const char *target, const leati_rest_claim *claim,
                                           uint8_t code[LEATI_MAC_SIZE]);

// What an answer is covered of; headers that it does not have are "".
typedef struct leati_rest_said {
    unsigned status;
    const char *offset, *end, *state; // Leat-Offset, Leat-End, Leat-State
    const void *body;                 // what a HEAD does not send is not covered
    size_t size;
} leati_rest_said;
// The value of the header "Leat-Code".
LEAT_MUST_USE bool leati_rest_answer_code(const leati_secret *secret, const leati_rest_claim *claim,
                                          const leati_rest_said *said,
                                          uint8_t code[LEATI_MAC_SIZE]);

#endif
