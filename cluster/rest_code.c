// SPDX-License-Identifier: Apache-2.0
#include "cluster/rest_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void leati_rest_claim_print(const leati_rest_claim *claim, char to[LEATI_REST_CLAIM_SIZE])
{
    char nonce[2 * LEATI_NONCE_SIZE + 1], body[2 * LEATI_MAC_SIZE + 1],
        code[2 * LEATI_MAC_SIZE + 1];
    leati_hex_put(claim->nonce, sizeof claim->nonce, nonce);
    leati_hex_put(claim->body, sizeof claim->body, body);
    leati_hex_put(claim->code, sizeof claim->code, code);
    snprintf(to, LEATI_REST_CLAIM_SIZE, "Leat %s %" PRIu64 " %s %s", nonce, claim->count, body,
             code);
}

// The bytes of a word in hexadecimal, behind which `*text` is left.
static bool take_hex(const char **text, uint8_t *bytes, size_t size)
{
    size_t length = strcspn(*text, " ");
    if (!leati_hex_get(*text, length, bytes, size))
        return false;
    *text += length;
    *text += **text == ' ';
    return true;
}

bool leati_rest_claim_parse(const char *text, leati_rest_claim *claim)
{
    if (strncmp(text, "Leat ", 5) != 0)
        return false;
    text += 5;
    if (!take_hex(&text, claim->nonce, sizeof claim->nonce))
        return false;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 19 || text[digits] != ' ')
        return false;
    claim->count = strtoull(text, NULL, 10);
    text += digits + 1;
    return take_hex(&text, claim->body, sizeof claim->body) &&
           take_hex(&text, claim->code, sizeof claim->code) && !*text;
}

bool leati_rest_request_code(const leati_secret *secret, const char *method, const char *target,
                             const leati_rest_claim *claim, uint8_t code[LEATI_MAC_SIZE])
{
    char rest[2 * LEATI_NONCE_SIZE + 2 * LEATI_MAC_SIZE + 32];
    char nonce[2 * LEATI_NONCE_SIZE + 1], body[2 * LEATI_MAC_SIZE + 1];
    leati_hex_put(claim->nonce, sizeof claim->nonce, nonce);
    leati_hex_put(claim->body, sizeof claim->body, body);
    int size = snprintf(rest, sizeof rest, "\n%s\n%" PRIu64 "\n%s\n", nonce, claim->count, body);
    const leati_bytes parts[] = {{"Leat request 1\n", 15},
                                 {method, strlen(method)},
                                 {"\n", 1},
                                 {target, strlen(target)},
                                 {rest, (size_t)size}};
    return leati_secret_mac(secret, parts, sizeof parts / sizeof *parts, code);
}

bool leati_rest_answer_code(const leati_secret *secret, const leati_rest_claim *claim,
                            const leati_rest_said *said, uint8_t code[LEATI_MAC_SIZE])
{
    char head[2 * LEATI_NONCE_SIZE + 64], nonce[2 * LEATI_NONCE_SIZE + 1];
    leati_hex_put(claim->nonce, sizeof claim->nonce, nonce);
    int size = snprintf(head, sizeof head, "Leat answer 1\n%s\n%" PRIu64 "\n%u\n", nonce,
                        claim->count, said->status);
    const leati_bytes parts[] = {{head, (size_t)size},
                                 {said->offset, strlen(said->offset)},
                                 {"\n", 1},
                                 {said->end, strlen(said->end)},
                                 {"\n", 1},
                                 {said->state, strlen(said->state)},
                                 {"\n", 1},
                                 {said->body, said->size}};
    return leati_secret_mac(secret, parts, sizeof parts / sizeof *parts, code);
}
