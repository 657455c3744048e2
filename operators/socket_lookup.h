// SPDX-License-Identifier: Apache-2.0
// Looking up a host's addresses on a thread that can be left to itself.
#ifndef LEATI_OPERATORS_SOCKET_LOOKUP_H
#define LEATI_OPERATORS_SOCKET_LOOKUP_H

#include "leat/error.h"

struct addrinfo;
typedef struct leati_lookup leati_lookup;

// Addresses written as such, without a look-up; NULL when the host is none.
struct addrinfo *leati_lookup_numeric(const char *host, uint32_t port);

// Begins to look up a name. LEAT_ENOMEM, LEAT_ETHREAD, LEAT_EIO.
LEAT_MUST_USE leat_err leati_lookup_start(const char *host, uint32_t port, leati_lookup **lookup);
// Becomes readable when there is a result.
int leati_lookup_fd(const leati_lookup *lookup);
// LEAT_EAGAIN while it goes on. LEAT_OK: the list is the caller's (freeaddrinfo). LEAT_ENOENT with
// a static text: there is no such host, or it could not be found out.
LEAT_MUST_USE leat_err leati_lookup_result(leati_lookup *lookup, struct addrinfo **addresses,
                                           const char **why);
// Does not wait for it.
void leati_lookup_leave(leati_lookup **lookup);

#endif
