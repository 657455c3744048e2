// SPDX-License-Identifier: Apache-2.0
#include "network/nng/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { PEM_MOST = 1 << 20 };

struct leati_tls {
    leati_tls_texts texts;
    SSL_CTX *context;
};

// --- files ---

static char *read_all(int file, size_t size)
{
    char *text = leati_alloc(NULL, size + 1);
    size_t done = 0;
    while (text && done < size) {
        ssize_t got = read(file, text + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    if (text)
        text[done] = '\0';
    return text;
}

static leat_err read_pem(const char *path, bool is_private, char **text, char *why, size_t why_size)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0 || fstat(file, &info) != 0) {
        snprintf(why, why_size, "\"%s\": %s", path, strerror(errno));
        if (file >= 0)
            (void)close(file);
        return LEAT_EIO;
    }
    leat_err err = LEAT_EINVAL;
    if (!S_ISREG(info.st_mode) || info.st_size > PEM_MOST)
        snprintf(why, why_size, "\"%s\" is no file of certificates or keys", path);
    else
        err = is_private ? leati_key_check_mode(path, info.st_mode, why, why_size) : LEAT_OK;
    if (err == LEAT_OK) {
        *text = read_all(file, (size_t)info.st_size);
        if (!*text) {
            snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
            err = LEAT_ENOMEM;
        } else if (!strstr(*text, "-----BEGIN ")) {
            snprintf(why, why_size, "\"%s\" holds nothing in PEM form (\"-----BEGIN …\")", path);
            err = LEAT_EINVAL;
        }
    }
    (void)close(file);
    return err;
}

// --- the context ---

static int no_password(char *to, int size, int writing, void *user)
{
    return 0; // nobody is there to be asked
}

static leat_err configure(SSL_CTX *context, const leati_auth_files *files, char *why,
                          size_t why_size)
{
    SSL_CTX_set_default_passwd_cb(context, no_password);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0); // nobody comes back
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
    // All processes of a cluster are of one version.
    int good = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    if (good != 1 || SSL_CTX_load_verify_locations(context, files->tls_ca, NULL) != 1) {
        snprintf(why, why_size, "\"%s\" holds no certificate in PEM form", files->tls_ca);
        return LEAT_EINVAL;
    }
    if (SSL_CTX_use_certificate_chain_file(context, files->tls_cert) != 1) {
        snprintf(why, why_size, "\"%s\" holds no certificate in PEM form", files->tls_cert);
        return LEAT_EINVAL;
    }
    if (SSL_CTX_use_PrivateKey_file(context, files->tls_key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        snprintf(why, why_size, "\"%s\" is not the key of the certificate \"%s\"", files->tls_key,
                 files->tls_cert);
        return LEAT_EINVAL;
    }
    return LEAT_OK;
}

static leat_err make_context(leati_tls *tls, const leati_auth_files *files, char *why,
                             size_t why_size)
{
    tls->context = SSL_CTX_new(TLS_method());
    leat_err err = LEAT_ENOMEM;
    if (tls->context)
        err = configure(tls->context, files, why, why_size);
    else
        snprintf(why, why_size, "%s", leat_err_message(err));
    ERR_clear_error();
    return err;
}

void *leati_tls_context(const leati_tls *tls)
{
    return tls->context;
}

leat_err leati_tls_create(const leati_auth_files *files, leati_tls **tls, char *why,
                          size_t why_size)
{
    leati_tls *made = leati_calloc(NULL, 1, sizeof *made);
    if (!made) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    leat_err err = read_pem(files->tls_cert, false, &made->texts.cert, why, why_size);
    if (err == LEAT_OK)
        err = read_pem(files->tls_key, true, &made->texts.key, why, why_size);
    if (err == LEAT_OK)
        err = read_pem(files->tls_ca, false, &made->texts.ca, why, why_size);
    if (err == LEAT_OK)
        err = leati_certificate_check(files, why, why_size);
    if (err == LEAT_OK)
        err = make_context(made, files, why, why_size);
    if (err == LEAT_OK)
        *tls = made;
    else
        leati_tls_destroy(&made);
    return err;
}

void leati_tls_destroy(leati_tls **tls)
{
    leati_tls *gone = *tls;
    *tls = NULL;
    if (!gone)
        return;
    SSL_CTX_free(gone->context);
    if (gone->texts.key)
        OPENSSL_cleanse(gone->texts.key, strlen(gone->texts.key));
    leati_free(NULL, gone->texts.cert);
    leati_free(NULL, gone->texts.key);
    leati_free(NULL, gone->texts.ca);
    leati_free(NULL, gone);
}

const leati_tls_texts *leati_tls_get_texts(const leati_tls *tls)
{
    return &tls->texts;
}

// --- both ways of authentication ---

leat_err leati_auth_open(leati_auth *auth, const leati_auth_files *files, char *why,
                         size_t why_size)
{
    leat_err err = LEAT_OK;
    *auth = (leati_auth){0};
    int named = !!files->tls_cert + !!files->tls_key + !!files->tls_ca;
    if (named != 0 && named != 3) {
        snprintf(why, why_size, "TLS needs all of --tls-cert, --tls-key and --tls-ca");
        return LEAT_EINVAL;
    }
    if (files->secret)
        err = leati_secret_read(&auth->secret, files->secret, why, why_size);
    if (err == LEAT_OK && named)
        err = leati_tls_create(files, &auth->tls, why, why_size);
    if (err != LEAT_OK)
        leati_auth_close(auth);
    return err;
}

void leati_auth_close(leati_auth *auth)
{
    leati_tls_destroy(&auth->tls);
    leati_secret_fini(&auth->secret);
}

bool leati_auth_is_on(const leati_auth *auth)
{
    return auth && (auth->secret.size > 0 || auth->tls);
}
