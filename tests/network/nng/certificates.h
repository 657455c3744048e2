// SPDX-License-Identifier: Apache-2.0
// Certificates for tests, made by libcrypto: an authority, and what it signs, as files in a folder
// of the test's own.
#ifndef TESTS_NETWORK_NNG_CERTIFICATES_H
#define TESTS_NETWORK_NNG_CERTIFICATES_H

#include <criterion/criterion.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "network/nng/auth.h"

typedef struct test_authority {
    EVP_PKEY *key;
    X509 *certificate;
} test_authority;

// The files of one member.
typedef struct test_member {
    char folder[64], cert[96], key[96], ca[96];
    leati_auth_files files; // which point to these
} test_member;

static inline X509 *test_certificate(const char *name, EVP_PKEY *key, const X509 *issuer,
                                     EVP_PKEY *issuer_key, long from_s, long to_s)
{
    X509 *made = X509_new();
    X509_NAME *subject = X509_get_subject_name(made);
    cr_assert(made && X509_set_version(made, 2));
    ASN1_INTEGER_set(X509_get_serialNumber(made), rand() % 1000000 + 1);
    X509_gmtime_adj(X509_getm_notBefore(made), from_s);
    X509_gmtime_adj(X509_getm_notAfter(made), to_s);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1, 0);
    X509_set_issuer_name(made, issuer ? X509_get_subject_name(issuer) : subject);
    X509_set_pubkey(made, key);
    if (!issuer) {
        X509_EXTENSION *authority =
            X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
        cr_assert(authority && X509_add_ext(made, authority, -1));
        X509_EXTENSION_free(authority);
    }
    cr_assert(X509_sign(made, issuer_key, EVP_sha256()));
    return made;
}

static inline void test_authority_init(test_authority *self, const char *name)
{
    self->key = EVP_EC_gen("P-256");
    cr_assert(self->key);
    self->certificate = test_certificate(name, self->key, NULL, self->key, -3600, 3600);
}

static inline void test_authority_fini(test_authority *self)
{
    X509_free(self->certificate);
    EVP_PKEY_free(self->key);
}

// One that is valid from and to these seconds from now on, signed by `by`, and trusts `trusts`.
static inline void test_member_init(test_member *self, const test_authority *by,
                                    const test_authority *trusts, long from_s, long to_s)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = test_certificate("a member", key, by->certificate, by->key, from_s, to_s);
    snprintf(self->folder, sizeof self->folder, "/tmp/leat-certificates-XXXXXX");
    cr_assert(mkdtemp(self->folder));
    snprintf(self->cert, sizeof self->cert, "%s/cert.pem", self->folder);
    snprintf(self->key, sizeof self->key, "%s/key.pem", self->folder);
    snprintf(self->ca, sizeof self->ca, "%s/ca.pem", self->folder);
    FILE *file = fopen(self->cert, "we");
    cr_assert(file && PEM_write_X509(file, certificate) && fclose(file) == 0);
    file = fopen(self->key, "we");
    cr_assert(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL));
    cr_assert(fchmod(fileno(file), 0600) == 0 && fclose(file) == 0);
    file = fopen(self->ca, "we");
    cr_assert(file && PEM_write_X509(file, trusts->certificate) && fclose(file) == 0);
    self->files =
        (leati_auth_files){.tls_cert = self->cert, .tls_key = self->key, .tls_ca = self->ca};
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static inline void test_member_fini(test_member *self)
{
    unlink(self->cert);
    unlink(self->key);
    unlink(self->ca);
    rmdir(self->folder);
}

#endif
