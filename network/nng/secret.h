// SPDX-License-Identifier: Apache-2.0
// The shared secret of a cluster, and what is computed with it. Knows nothing of nng: clients of
// REST use it too.
//
// A secret is never sent. Who knows it shows that by a code over bytes which the other side has
// chosen a part of, so that what was recorded is of no use.
#ifndef LEATI_NETWORK_NNG_SECRET_H
#define LEATI_NETWORK_NNG_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

enum { LEATI_SECRET_MIN = 16, LEATI_SECRET_MAX = 1024, LEATI_MAC_SIZE = 32, LEATI_NONCE_SIZE = 32 };

typedef struct leati_secret {
    uint8_t bytes[LEATI_SECRET_MAX];
    size_t size; // 0: there is none
} leati_secret;

// Reads it from a file: its bytes without white space at the end. LEAT_EINVAL with a sentence when
// others than its owner may read or write it, or it is too short or too long; LEAT_EIO.
LEAT_MUST_USE leat_err leati_secret_read(leati_secret *secret, const char *path, char *why,
                                         size_t why_size);
// Overwrites it.
void leati_secret_fini(leati_secret *secret);

typedef struct leati_bytes {
    const void *data;
    size_t size;
} leati_bytes;

// HMAC-SHA256 over the parts in a row. False: out of memory.
LEAT_MUST_USE bool leati_secret_mac(const leati_secret *secret, const leati_bytes *parts,
                                    size_t count, uint8_t mac[LEATI_MAC_SIZE]);
// In a time that does not tell where they differ.
bool leati_mac_is(const uint8_t a[LEATI_MAC_SIZE], const uint8_t b[LEATI_MAC_SIZE]);
// Bytes that nobody can foresee. False: the system has none.
LEAT_MUST_USE bool leati_nonce_make(void *to, size_t size);

// --- SHA-256 ---

typedef struct leati_sha256 leati_sha256;
leati_sha256 *leati_sha256_begin(void); // NULL: out of memory
void leati_sha256_add(leati_sha256 *sum, const void *data, size_t size);
// Ends it, and frees it. False: it could not be computed.
bool leati_sha256_end(leati_sha256 **sum, uint8_t hash[LEATI_MAC_SIZE]);
void leati_sha256_drop(leati_sha256 **sum);

// --- texts ---

// Two digits a byte, and a NUL.
void leati_hex_put(const uint8_t *bytes, size_t size, char *to);
// False unless it is exactly so many digits of 0-9 and a-f.
bool leati_hex_get(const char *text, size_t length, uint8_t *bytes, size_t size);

#endif
