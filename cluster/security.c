// SPDX-License-Identifier: Apache-2.0
#include "cluster/security.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

// --- where to listen ---

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

// Whether all that a name stands for are addresses that only this machine can reach.
static leat_err look_up(const char *host, bool *local, char *why, size_t why_size)
{
    struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int fault = getaddrinfo(host, NULL, &hints, &list);
    if (fault) {
        snprintf(why, why_size, "cannot listen at %.200s: %s", host, gai_strerror(fault));
        return LEAT_EINVAL;
    }
    *local = true;
    for (const struct addrinfo *at = list; at; at = at->ai_next)
        *local = *local && is_loopback(at->ai_addr);
    freeaddrinfo(list);
    return LEAT_OK;
}

leat_err leati_may_listen(const char *host, const leati_auth *auth, bool insecure,
                          const leat_logger *logger, char *why, size_t why_size)
{
    char line[600];
    bool local = false;
    if (leati_auth_is_on(auth))
        return LEAT_OK;
    leat_err err = look_up(host, &local, why, why_size);
    if (err != LEAT_OK || local)
        return err;
    if (!insecure) {
        snprintf(why, why_size,
                 "listening at %.200s would let everybody who reaches it run code here: "
                 "--secret-file, or --tls-cert, --tls-key and --tls-ca, keep strangers out; "
                 "--insecure does without",
                 host);
        return LEAT_EINVAL;
    }
    snprintf(line, sizeof line,
             "--insecure: everybody who reaches %.200s can run code here, and see and change "
             "the data of all jobs",
             host);
    if (logger->write && logger->level >= LEAT_LOG_WARN)
        logger->write(logger->user, LEAT_LOG_WARN, line);
    return LEAT_OK;
}

// --- what is not shown ---

static bool contains(const char *text, size_t size, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= size; i++)
        if (strncasecmp(text + i, word, length) == 0)
            return true;
    return false;
}

bool leati_is_secret_name(const char *name, size_t size)
{
    static const char *const words[] = {"password", "passwd", "secret", "token", "credential"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (contains(name, size, words[i]))
            return true;
    return size >= 3 && strncasecmp(name + size - 3, "key", 3) == 0;
}

void leati_mask_argument(const char *text, size_t size, bool *follows, leati_strbuf *to)
{
    const char *equals = memchr(text, '=', size);
    size_t name = equals ? (size_t)(equals - text) : size;
    bool hidden = *follows && !(size > 1 && text[0] == '-');
    *follows = false;
    if (hidden) {
        leati_strbuf_puts(to, "***");
    } else if (equals && leati_is_secret_name(text, name)) {
        leati_strbuf_append(to, text, name + 1);
        leati_strbuf_puts(to, "***");
    } else {
        // A bare "--key" is likelier the name of a field than a secret.
        *follows = size > 1 && text[0] == '-' && !equals && leati_is_secret_name(text, size) &&
                   strncasecmp(text + size - 3, "key", 3) != 0;
        leati_strbuf_append(to, text, size);
    }
}

// --- refusals ---

void leati_refusals_init(leati_refusals *refusals)
{
    memset(refusals, 0, sizeof *refusals);
    pthread_mutex_init(&refusals->lock, NULL);
}

void leati_refusals_fini(leati_refusals *refusals)
{
    pthread_mutex_destroy(&refusals->lock);
}

// "tcp://[::1]:80 says" to "tcp://[::1", "tcp://10.0.0.1:80" to "tcp://10.0.0.1".
static void take_host(const char *peer, char *host, size_t size)
{
    const char *scheme = strstr(peer, "://"), *at = peer;
    size_t before = scheme ? (size_t)(scheme + 3 - peer) : 0;
    size_t length =
        before + (at[before] == '[' ? strcspn(at + before, "] ") : strcspn(at + before, ": "));
    snprintf(host, size, "%.*s", (int)(length < size ? length : size - 1), at);
}

bool leati_refusals_take(leati_refusals *refusals, const char *peer, int64_t now_ns, uint32_t *more)
{
    const int64_t minute_ns = INT64_C(60000000000);
    char host[64];
    int oldest = 0;
    bool log = true;
    *more = 0;
    take_host(peer, host, sizeof host);
    pthread_mutex_lock(&refusals->lock);
    int found = -1;
    for (int i = 0; i < LEATI_REFUSALS && found < 0; i++) {
        if (refusals->items[i].host[0] && strcmp(refusals->items[i].host, host) == 0)
            found = i;
        if (refusals->items[i].since_ns < refusals->items[oldest].since_ns)
            oldest = i;
    }
    if (found < 0) {
        // More than that many at once: who comes then is logged when one of them is a minute old.
        found = oldest;
        log = !refusals->items[found].host[0] ||
              now_ns - refusals->items[found].since_ns >= minute_ns;
    } else {
        log = now_ns - refusals->items[found].since_ns >= minute_ns;
        refusals->items[found].count += !log;
    }
    if (log) {
        *more = strcmp(refusals->items[found].host, host) == 0 ? refusals->items[found].count : 0;
        snprintf(refusals->items[found].host, sizeof refusals->items[found].host, "%s", host);
        refusals->items[found].since_ns = now_ns;
        refusals->items[found].count = 0;
    }
    pthread_mutex_unlock(&refusals->lock);
    return log;
}
