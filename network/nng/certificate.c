// SPDX-License-Identifier: Apache-2.0
// Looks at a process's own certificate before it is used: that it has expired, say, its owner gets
// to know here, while its peers could only tell that the hand-shake has failed.
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "network/nng/auth.h"

typedef struct looked_at {
    FILE *file;
    X509 *certificate;
    X509_STORE *store;
    X509_STORE_CTX *context;
    STACK_OF(X509) * chain; // what else is in the certificate's file
} looked_at;

static X509 *next_certificate(looked_at *l)
{
    return PEM_read_X509(l->file, NULL, NULL, NULL);
}

static leat_err open_file(looked_at *l, const char *path, char *why, size_t why_size)
{
    if (l->file)
        fclose(l->file);
    l->file = fopen(path, "re");
    if (l->file)
        return LEAT_OK;
    snprintf(why, why_size, "\"%s\": %s", path, strerror(errno));
    return LEAT_EIO;
}

static leat_err refuse_file(const char *path, char *why, size_t why_size)
{
    snprintf(why, why_size, "\"%s\" holds no certificate in PEM form", path);
    return LEAT_EINVAL;
}

static leat_err read_files(looked_at *l, const leati_auth_files *files, char *why, size_t why_size)
{
    leat_err err = open_file(l, files->tls_cert, why, why_size);
    if (err != LEAT_OK)
        return err;
    l->certificate = next_certificate(l);
    if (!l->certificate)
        return refuse_file(files->tls_cert, why, why_size);
    for (X509 *more; (more = next_certificate(l));)
        if (!sk_X509_push(l->chain, more))
            X509_free(more);
    err = open_file(l, files->tls_ca, why, why_size);
    if (err != LEAT_OK)
        return err;
    int count = 0;
    for (X509 *authority; (authority = next_certificate(l)); count++) {
        (void)X509_STORE_add_cert(l->store, authority);
        X509_free(authority);
    }
    return count ? LEAT_OK : refuse_file(files->tls_ca, why, why_size);
}

static leat_err verify(looked_at *l, const leati_auth_files *files, char *why, size_t why_size)
{
    if (!X509_STORE_CTX_init(l->context, l->store, l->certificate, l->chain)) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    if (X509_verify_cert(l->context) == 1)
        return LEAT_OK;
    int fault = X509_STORE_CTX_get_error(l->context);
    if (fault == X509_V_ERR_CERT_HAS_EXPIRED)
        snprintf(why, why_size, "the certificate \"%s\" or its authority has expired",
                 files->tls_cert);
    else if (fault == X509_V_ERR_CERT_NOT_YET_VALID)
        snprintf(why, why_size, "the certificate \"%s\" is not valid yet", files->tls_cert);
    else
        snprintf(why, why_size, "the certificate \"%s\" was not signed by that of \"%s\": %s",
                 files->tls_cert, files->tls_ca, X509_verify_cert_error_string(fault));
    return LEAT_EINVAL;
}

// --- the key ---

leat_err leati_key_check_mode(const char *path, unsigned mode, char *why, size_t why_size)
{
    if (!(mode & (S_IRWXG | S_IRWXO)))
        return LEAT_OK;
    snprintf(why, why_size,
             "the key \"%s\" can be used by others than its owner (mode %04o); `chmod 600` makes "
             "it private",
             path, mode & 07777);
    return LEAT_EINVAL;
}

static int no_password(char *to, int size, int writing, void *user)
{
    return 0; // nobody is there to be asked
}

static leat_err check_key(looked_at *l, const leati_auth_files *files, char *why, size_t why_size)
{
    struct stat info;
    leat_err err = open_file(l, files->tls_key, why, why_size);
    if (err != LEAT_OK)
        return err;
    if (fstat(fileno(l->file), &info) != 0) {
        snprintf(why, why_size, "\"%s\": %s", files->tls_key, strerror(errno));
        return LEAT_EIO;
    }
    err = leati_key_check_mode(files->tls_key, info.st_mode, why, why_size);
    if (err != LEAT_OK)
        return err;
    EVP_PKEY *key = PEM_read_PrivateKey(l->file, NULL, no_password, NULL);
    bool fits = key && X509_check_private_key(l->certificate, key) == 1;
    EVP_PKEY_free(key);
    if (fits)
        return LEAT_OK;
    snprintf(why, why_size, "\"%s\" is not the key of the certificate \"%s\"", files->tls_key,
             files->tls_cert);
    return LEAT_EINVAL;
}

leat_err leati_certificate_check(const leati_auth_files *files, char *why, size_t why_size)
{
    looked_at l = {
        .store = X509_STORE_new(), .context = X509_STORE_CTX_new(), .chain = sk_X509_new_null()};
    leat_err err = LEAT_ENOMEM;
    if (l.store && l.context && l.chain)
        err = read_files(&l, files, why, why_size);
    else
        snprintf(why, why_size, "%s", leat_err_message(err));
    if (err == LEAT_OK)
        err = verify(&l, files, why, why_size);
    if (err == LEAT_OK)
        err = check_key(&l, files, why, why_size);
    if (l.file)
        fclose(l.file);
    X509_STORE_CTX_free(l.context);
    X509_STORE_free(l.store);
    X509_free(l.certificate);
    sk_X509_pop_free(l.chain, X509_free);
    return err;
}
