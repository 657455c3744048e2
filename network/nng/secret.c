// SPDX-License-Identifier: Apache-2.0
#include "network/nng/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// --- the file ---

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static leat_err check_file(int file, const char *path, char *why, size_t why_size)
{
    struct stat info;
    if (fstat(file, &info) != 0) {
        snprintf(why, why_size, "the secret file \"%s\": %s", path, strerror(errno));
        return LEAT_EIO;
    }
    if (!S_ISREG(info.st_mode)) {
        snprintf(why, why_size, "the secret file \"%s\" is no ordinary file", path);
        return LEAT_EINVAL;
    }
    if (info.st_mode & (S_IRWXG | S_IRWXO)) {
        snprintf(why, why_size,
                 "the secret file \"%s\" can be used by others than its owner (mode %04o); "
                 "`chmod 600` makes it private",
                 path, (unsigned)(info.st_mode & 07777));
        return LEAT_EINVAL;
    }
    return LEAT_OK;
}

static leat_err read_file(int file, const char *path, leati_secret *secret, char *why,
                          size_t why_size)
{
    uint8_t bytes[LEATI_SECRET_MAX + 64];
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 && size < sizeof bytes) {
        do
            got = read(file, bytes + size, sizeof bytes - size);
        while (got < 0 && errno == EINTR);
        size += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        snprintf(why, why_size, "the secret file \"%s\": %s", path, strerror(errno));
        return LEAT_EIO;
    }
    while (size > 0 && is_space(bytes[size - 1]))
        size--;
    bool fits = size >= LEATI_SECRET_MIN && size <= LEATI_SECRET_MAX;
    if (fits) {
        memset(secret, 0, sizeof *secret);
        memcpy(secret->bytes, bytes, size);
        secret->size = size;
    } else {
        snprintf(why, why_size, "the secret in \"%s\" is too %s: it needs %d to %d bytes", path,
                 size < LEATI_SECRET_MIN ? "short" : "long", LEATI_SECRET_MIN, LEATI_SECRET_MAX);
    }
    OPENSSL_cleanse(bytes, sizeof bytes);
    return fits ? LEAT_OK : LEAT_EINVAL;
}

leat_err leati_secret_read(leati_secret *secret, const char *path, char *why, size_t why_size)
{
    // A FIFO must not make it wait.
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) {
        snprintf(why, why_size, "the secret file \"%s\": %s", path, strerror(errno));
        return LEAT_EIO;
    }
    leat_err err = check_file(file, path, why, why_size);
    if (err == LEAT_OK)
        err = read_file(file, path, secret, why, why_size);
    (void)close(file);
    return err;
}

void leati_secret_fini(leati_secret *secret)
{
    OPENSSL_cleanse(secret, sizeof *secret);
}

// --- codes ---

bool leati_secret_mac(const leati_secret *secret, const leati_bytes *parts, size_t count,
                      uint8_t mac[LEATI_MAC_SIZE])
{
    size_t size = LEATI_MAC_SIZE;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, secret->bytes, secret->size);
    bool good = context && key && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1;
    for (size_t i = 0; good && i < count; i++)
        good = EVP_DigestSignUpdate(context, parts[i].data, parts[i].size) == 1;
    good = good && EVP_DigestSignFinal(context, mac, &size) == 1;
    EVP_PKEY_free(key);
    EVP_MD_CTX_free(context);
    return good;
}

bool leati_mac_is(const uint8_t a[LEATI_MAC_SIZE], const uint8_t b[LEATI_MAC_SIZE])
{
    return CRYPTO_memcmp(a, b, LEATI_MAC_SIZE) == 0;
}

bool leati_nonce_make(void *to, size_t size)
{
    uint8_t *at = to;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

// --- SHA-256 ---

// It is libcrypto's, and nobody outside can tell.
static EVP_MD_CTX *of(leati_sha256 *sum)
{
    return (EVP_MD_CTX *)(void *)sum;
}

leati_sha256 *leati_sha256_begin(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context && !EVP_DigestInit_ex(context, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(context);
        context = NULL;
    }
    return (leati_sha256 *)(void *)context;
}

void leati_sha256_add(leati_sha256 *sum, const void *data, size_t size)
{
    // Of a digest that was begun this cannot fail.
    (void)EVP_DigestUpdate(of(sum), data, size);
}

bool leati_sha256_end(leati_sha256 **sum, uint8_t hash[LEATI_MAC_SIZE])
{
    bool good = EVP_DigestFinal_ex(of(*sum), hash, NULL);
    leati_sha256_drop(sum);
    return good;
}

void leati_sha256_drop(leati_sha256 **sum)
{
    EVP_MD_CTX_free(of(*sum));
    *sum = NULL;
}

// --- texts ---

void leati_hex_put(const uint8_t *bytes, size_t size, char *to)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * size] = '\0';
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool leati_hex_get(const char *text, size_t length, uint8_t *bytes, size_t size)
{
    if (length != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
