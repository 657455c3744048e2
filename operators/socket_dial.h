// SPDX-License-Identifier: Apache-2.0
// Connecting to a server without ever blocking: looking up its name and trying its addresses.
//
// Threading. One thread. A name that is no address is looked up by a detached thread, because
// nothing can end a look-up; a dial that is reset meanwhile leaves that thread to itself, with the
// memory that it needs.
#ifndef LEATI_OPERATORS_SOCKET_DIAL_H
#define LEATI_OPERATORS_SOCKET_DIAL_H

#include <poll.h>

#include "leat/error.h"

struct addrinfo;
typedef struct leati_lookup leati_lookup;

typedef struct leati_dial {
    const char *host; // borrowed
    uint32_t port;
    // The dial's own.
    leati_lookup *lookup;
    struct addrinfo *addresses, *next; // to be tried
    int fd;                            // being connected, or -1
    char why[256];                     // after a failure
} leati_dial;

// Allocates nothing yet.
void leati_dial_init(leati_dial *dial, const char *host, uint32_t port);
// Gives up what is under way; the next step begins anew.
void leati_dial_reset(leati_dial *dial);

// Goes on as far as possible. LEAT_OK: `*fd` is connected, does not block and is the caller's.
// LEAT_EAGAIN: call again when `*wait` is ready. Anything else: `why` says why not, and the next
// step begins anew.
LEAT_MUST_USE leat_err leati_dial_step(leati_dial *dial, int *fd, struct pollfd *wait);

#endif
