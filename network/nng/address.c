// SPDX-License-Identifier: Apache-2.0
// Addresses, and nng's errors, as people read them.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "network/nng/connection_impl.h"
#include "network/nng/exchange_impl.h"

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

// --- two addresses of one process ---

static const char near_scheme[] = "ipc://";
_Static_assert((int)LEATI_EXCHANGE_ADDRESS_ONE == (int)LEATI_ADDRESS_SIZE,
               "it is the same of all connections");

bool leati_socket_path_fits(const char *path, char *why, size_t why_size)
{
    size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (*path == '/' && strlen(path) <= most)
        return true;
    if (*path == '/')
        snprintf(why, why_size, "%s has more than %zu bytes, which no socket can", path, most);
    else
        snprintf(why, why_size, "%s does not begin at the root", path);
    return false;
}

// Whether only this user can have put the socket there: then it is no trap of another user of this
// host, where a process of another host has the same path, or of who can write to a folder above.
static bool is_trusted(const char *path)
{
    char folder[sizeof((struct sockaddr_un *)NULL)->sun_path];
    struct stat info;
    const char *name = strrchr(path, '/');
    if (!name || name == path || (size_t)(name - path) >= sizeof folder)
        return false;
    memcpy(folder, path, (size_t)(name - path));
    folder[name - path] = '\0';
    return stat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IRWXG | S_IRWXO)) == 0 && lstat(path, &info) == 0 &&
           S_ISSOCK(info.st_mode) && info.st_uid == geteuid();
}

bool leati_address_choose(const char *list, bool near, char to[LEATI_EXCHANGE_ADDRESS_ONE])
{
    const char *space = strchr(list, ' '); // a path may have some, and comes last
    const size_t scheme = sizeof near_scheme - 1;
    if (near && space && strncmp(space + 1, near_scheme, scheme) == 0 &&
        is_trusted(space + 1 + scheme)) {
        snprintf(to, LEATI_EXCHANGE_ADDRESS_ONE, "%s", space + 1);
        return true;
    }
    snprintf(to, LEATI_EXCHANGE_ADDRESS_ONE, "%.*s",
             (int)(space ? (size_t)(space - list) : strlen(list)), list);
    return false;
}
