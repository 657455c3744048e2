// SPDX-License-Identifier: Apache-2.0
// Addresses, and nng's errors, as people read them.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/nng/connection_impl.h"

const char *leati_nng_text(int error)
{
    switch (error) {
    case NNG_ECONNSHUT:
    case NNG_ECLOSED: // what a send says after the other side has closed
        return "closed by the other side";
    case NNG_ECONNRESET:
        return "reset by the other side";
    case NNG_ECONNREFUSED:
        return "nobody listens there";
    case NNG_ETIMEDOUT:
        return "no answer in time";
    case NNG_EADDRINUSE:
        return "the address is in use";
    case NNG_EADDRINVAL:
        return "there is no such address";
    case NNG_EAGAIN: // of looking a name up
        return "the name of the host cannot be looked up now";
    case NNG_EUNREACHABLE:
        return "the host cannot be reached";
    case NNG_ENOFILES:
        return "too many open files";
    case NNG_ENOENT:
        return "nobody listens there";
    default:
        return nng_strerror(error);
    }
}

leat_err leati_nng_error(int error)
{
    switch (error) {
    case 0:
        return LEAT_OK;
    case NNG_ENOMEM:
        return LEAT_ENOMEM;
    case NNG_ECONNSHUT:
    case NNG_ECLOSED:
        return LEAT_ECLOSED;
    case NNG_ECANCELED:
        return LEAT_ECANCELLED;
    default:
        return LEAT_EIO;
    }
}

static bool is_port(const char *text, long lowest)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits])
        return false;
    long port = strtol(text, NULL, 10);
    return port >= lowest && port <= 65535;
}

leat_err leati_address_check(const char *address, long lowest, char *why, size_t why_size)
{
    const char *port = address ? strrchr(address, ':') : NULL;
    if (address && strlen(address) < LEATI_ADDRESS_SIZE) {
        if (strncmp(address, "ipc://", 6) == 0 && address[6])
            return LEAT_OK;
        // Of a user, a path and so on nng would make something else.
        if (strncmp(address, "tcp://", 6) == 0 && port > address + 6 &&
            !strpbrk(address + 6, "/@?# ") && is_port(port + 1, lowest))
            return LEAT_OK;
    }
    snprintf(why, why_size,
             "\"%.100s\" is no address (\"tcp://host:port\" with a port of %ld to "
             "65535, or \"ipc://path\")",
             address ? address : "", lowest);
    return LEAT_EINVAL;
}

void leati_address_print(const nng_sockaddr *address, const char *fallback, char *to, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    if (address->s_family == NNG_AF_INET &&
        inet_ntop(AF_INET, &address->s_in.sa_addr, host, sizeof host))
        snprintf(to, size, "tcp://%s:%u", host, ntohs(address->s_in.sa_port));
    else if (address->s_family == NNG_AF_INET6 &&
             inet_ntop(AF_INET6, address->s_in6.sa_addr, host, sizeof host))
        snprintf(to, size, "tcp://[%s]:%u", host, ntohs(address->s_in6.sa_port));
    else
        snprintf(to, size, "%s", fallback);
}
