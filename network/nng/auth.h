// SPDX-License-Identifier: Apache-2.0
// How the processes of a cluster make sure of each other: by a shared secret, by certificates (TLS,
// with one of each side), by both, or not at all.
//
// Threading. Immutable once made; any number of connections of any thread use it. Life cycle: it
// outlives all connections, dialers and listeners that were given it.
#ifndef LEATI_NETWORK_NNG_AUTH_H
#define LEATI_NETWORK_NNG_AUTH_H

#include "network/nng/secret.h"

typedef struct leati_tls leati_tls; // tls.h

typedef struct leati_auth {
    leati_secret secret; // of size 0: none
    leati_tls *tls;      // NULL: not
} leati_auth;

// The files that a user has named; each NULL when he has not.
typedef struct leati_auth_files {
    const char *secret;
    const char *tls_cert, *tls_key, *tls_ca;
} leati_auth_files;

// Reads them. `auth` stays empty when none is named. All three of TLS, or none. LEAT_EINVAL and so
// on with a sentence.
LEAT_MUST_USE leat_err leati_auth_open(leati_auth *auth, const leati_auth_files *files, char *why,
                                       size_t why_size);
void leati_auth_close(leati_auth *auth);
// Whether it asks anything of anybody; `auth` may be NULL.
bool leati_auth_is_on(const leati_auth *auth);

// Whether the certificate is valid now and signed by the authority, and the key is that of the
// certificate and nobody else's; else a sentence. (In certificate.c, which knows nothing of nng.)
LEAT_MUST_USE leat_err leati_certificate_check(const leati_auth_files *files, char *why,
                                               size_t why_size);

// Whether a file of that mode is its owner's alone; else a sentence. The same place.
LEAT_MUST_USE leat_err leati_key_check_mode(const char *path, unsigned mode, char *why,
                                            size_t why_size);

// The texts of the files (PEM), for those who do TLS with another library.
typedef struct leati_tls_texts {
    char *cert, *key, *ca;
} leati_tls_texts;

const leati_tls_texts *leati_tls_get_texts(const leati_tls *tls);

#endif
