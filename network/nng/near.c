// SPDX-License-Identifier: Apache-2.0
// Processes of one host, which talk over a socket file: which of the two addresses of a process is
// the one to dial, and room in such a socket.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "network/nng/connection_impl.h"
#include "network/nng/exchange_impl.h"

_Static_assert((int)LEATI_EXCHANGE_ADDRESS_ONE == (int)LEATI_ADDRESS_SIZE,
               "it is the same of all connections");

static const char scheme[] = "ipc://";

// The path of such an address, or NULL.
static const char *path_of(const char *address)
{
    return strncmp(address, scheme, sizeof scheme - 1) == 0 ? address + sizeof scheme - 1 : NULL;
}

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
    const char *path = near && space ? path_of(space + 1) : NULL;
    if (path && is_trusted(path)) {
        snprintf(to, LEATI_EXCHANGE_ADDRESS_ONE, "%s", space + 1);
        return true;
    }
    snprintf(to, LEATI_EXCHANGE_ADDRESS_ONE, "%.*s",
             (int)(space ? (size_t)(space - list) : strlen(list)), list);
    return false;
}

// --- room ---

// TCP finds the room that it needs by itself. A socket file has 208 KiB unless it is told, less
// than one send of eight segments, and who has filled it is woken when three quarters of it are
// empty: sender and receiver would take turns. The system gives less when its limit is lower.
enum { ROOM = 512 << 10 };

static void widen(void *path, int fd)
{
    int room = ROOM;
    // A descriptor that is closed meanwhile, and another one that gets its number, take no harm.
    if (leati_socket_is_called(fd, false, path) || leati_socket_is_called(fd, true, path))
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

void leati_near_widen(const char *address)
{
    const char *path = path_of(address);
    if (path)
        leati_socket_each(widen, (void *)(uintptr_t)path);
}
