// SPDX-License-Identifier: Apache-2.0
#include "bench/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// Signed by the issuer, or, as an authority, by itself. NULL: it could not be made.
static X509 *make_certificate(const char *name, EVP_PKEY *key, const X509 *issuer,
                              EVP_PKEY *issuer_key)
{
    X509 *made = X509_new();
    if (!made)
        return NULL;
    X509_NAME *subject = X509_get_subject_name(made);
    bool good =
        X509_set_version(made, 2) &&
        ASN1_INTEGER_set(X509_get_serialNumber(made), issuer ? 2 : 1) &&
        X509_gmtime_adj(X509_getm_notBefore(made), -3600) &&
        X509_gmtime_adj(X509_getm_notAfter(made), 24L * 3600) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1, 0) &&
        X509_set_issuer_name(made, issuer ? X509_get_subject_name(issuer) : subject) &&
        X509_set_pubkey(made, key);
    if (good && !issuer) {
        X509_EXTENSION *authority =
            X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
        good = authority && X509_add_ext(made, authority, -1);
        X509_EXTENSION_free(authority);
    }
    if (good && X509_sign(made, issuer_key, EVP_sha256()))
        return made;
    X509_free(made);
    return NULL;
}

static bool put_certificate(const char *path, const X509 *certificate)
{
    FILE *file = fopen(path, "we");
    bool good = file && PEM_write_X509(file, certificate);
    return file && fclose(file) == 0 && good;
}

static bool put_key(const char *path, const EVP_PKEY *key)
{
    FILE *file = fopen(path, "we");
    bool good = file && fchmod(fileno(file), 0600) == 0 &&
                PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    return file && fclose(file) == 0 && good;
}

leati_auth_files certificates_files(const char *folder, certificate_paths *paths)
{
    snprintf(paths->cert, sizeof paths->cert, "%.63s/cert.pem", folder);
    snprintf(paths->key, sizeof paths->key, "%.63s/key.pem", folder);
    snprintf(paths->ca, sizeof paths->ca, "%.63s/ca.pem", folder);
    return (leati_auth_files){.tls_cert = paths->cert, .tls_key = paths->key, .tls_ca = paths->ca};
}

int certificates_make(char folder[CERTIFICATES_FOLDER])
{
    certificate_paths paths = {0};
    snprintf(folder, CERTIFICATES_FOLDER, "/tmp/leat-bench-XXXXXX");
    if (!mkdtemp(folder)) {
        perror(folder);
        return -1;
    }
    certificates_files(folder, &paths);
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *ca = ca_key ? make_certificate("a bench", ca_key, NULL, ca_key) : NULL;
    X509 *member = ca && key ? make_certificate("a process", key, ca, ca_key) : NULL;
    bool good = member && put_certificate(paths.ca, ca) && put_certificate(paths.cert, member) &&
                put_key(paths.key, key);
    X509_free(member);
    X509_free(ca);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
    if (good)
        return 0;
    fprintf(stderr, "the certificates cannot be made\n");
    certificates_remove(folder);
    return -1;
}

void certificates_remove(const char *folder)
{
    certificate_paths paths = {0};
    certificates_files(folder, &paths);
    unlink(paths.cert);
    unlink(paths.key);
    unlink(paths.ca);
    rmdir(folder);
}
