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
    int64_t timeout_ms; // for the look-up, and for each address; 0: the system's
    // The dial's own.
    leati_lookup *lookup;
    struct addrinfo *addresses, *next; // to be tried
    int fd;                            // being connected, or -1
    int64_t deadline_ns;               // of what is under way; INT64_MAX: none
    char why[256];                     // after a failure
} leati_dial;

// Allocates nothing yet.
void leati_dial_init(leati_dial *dial, const char *host, uint32_t port, int64_t timeout_ms);
// Gives up what is under way; the next step begins anew.
void leati_dial_reset(leati_dial *dial);

// Goes on as far as possible; `now_ns` is what the caller's clock shows. LEAT_OK: `*fd` is
// connected, does not block and is the caller's. LEAT_EAGAIN: call again when `*wait` is ready, or
// when the clock shows `deadline_ns`. Anything else: `why` says why not, and the next
// step begins anew.
LEAT_MUST_USE leat_err leati_dial_step(leati_dial *dial, int64_t now_ns, int *fd,
                                       struct pollfd *wait);

#endif
