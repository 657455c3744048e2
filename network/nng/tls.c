// SPDX-License-Identifier: Apache-2.0
#include "network/nng/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <nng/supplemental/tls/tls.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "network/nng/connection_impl.h"

enum { PEM_MOST = 1 << 20 };

struct leati_tls {
    leati_tls_texts texts;
    nng_tls_config *dialing, *listening;
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
    else if (is_private && (info.st_mode & (S_IRWXG | S_IRWXO)))
        snprintf(why, why_size,
                 "the key \"%s\" can be used by others than its owner (mode %04o); `chmod 600` "
                 "makes it private",
                 path, (unsigned)(info.st_mode & 07777));
    else
        err = LEAT_OK;
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

// --- configurations ---

static leat_err configure(const leati_tls *tls, const leati_auth_files *files, nng_tls_mode mode,
                          nng_tls_config **config, char *why, size_t why_size)
{
    const char *about = "TLS";
    int error = nng_tls_config_alloc(config, mode);
    if (!error)
        error = nng_tls_config_auth_mode(*config, NNG_TLS_AUTH_MODE_REQUIRED);
    if (!error) {
        about = files->tls_ca;
        error = nng_tls_config_ca_chain(*config, tls->texts.ca, NULL);
    }
    if (!error) {
        about = files->tls_cert;
        error = nng_tls_config_own_cert(*config, tls->texts.cert, tls->texts.key, NULL);
    }
    if (!error)
        return LEAT_OK;
    if (error == NNG_ENOTSUP)
        snprintf(why, why_size, "nng was built without TLS here");
    else if (about == files->tls_cert)
        snprintf(why, why_size, "\"%s\" and \"%s\" are no certificate and its key: %s", about,
                 files->tls_key, nng_strerror(error));
    else
        snprintf(why, why_size, "%s: %s", about, nng_strerror(error));
    return error == NNG_ENOMEM ? LEAT_ENOMEM : LEAT_EINVAL;
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
        err = configure(made, files, NNG_TLS_MODE_CLIENT, &made->dialing, why, why_size);
    if (err == LEAT_OK)
        err = configure(made, files, NNG_TLS_MODE_SERVER, &made->listening, why, why_size);
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
    if (gone->dialing)
        nng_tls_config_free(gone->dialing);
    if (gone->listening)
        nng_tls_config_free(gone->listening);
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

// --- use ---

bool leati_tls_address(const char *address, char *to, size_t size)
{
    return strncmp(address, "tcp://", 6) == 0 &&
           (size_t)snprintf(to, size, "tls+%s", address) < size;
}

int leati_tls_set_dialer(const leati_tls *tls, nng_stream_dialer *dialer)
{
    return nng_stream_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tls->dialing);
}

int leati_tls_set_listener(const leati_tls *tls, nng_stream_listener *listener)
{
    return nng_stream_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tls->listening);
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
