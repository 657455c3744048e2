// SPDX-License-Identifier: Apache-2.0
// TLS between the processes of a cluster: each has a certificate, and trusts those that were signed
// by the cluster's own authority, whatever name is in them. What that authority signs is a member.
#ifndef LEATI_NETWORK_NNG_TLS_H
#define LEATI_NETWORK_NNG_TLS_H

#include <nng/nng.h>

#include "network/nng/auth.h"

LEAT_MUST_USE leat_err leati_tls_create(const leati_auth_files *files, leati_tls **tls, char *why,
                                        size_t why_size);
void leati_tls_destroy(leati_tls **tls);

// "tcp://…" becomes "tls+tcp://…". False: it cannot have TLS, or does not fit.
bool leati_tls_address(const char *address, char *to, size_t size);
// 0 or an error of nng.
int leati_tls_set_dialer(const leati_tls *tls, nng_stream_dialer *dialer);
int leati_tls_set_listener(const leati_tls *tls, nng_stream_listener *listener);

#endif
