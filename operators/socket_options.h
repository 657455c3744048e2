// SPDX-License-Identifier: Apache-2.0
// What the builders of the socket source and the socket sink share.
#ifndef LEATI_OPERATORS_SOCKET_OPTIONS_H
#define LEATI_OPERATORS_SOCKET_OPTIONS_H

#include "leat/env.h"

// What is wrong with these, in words of static storage; NULL when nothing is.
const char *leati_socket_fault(const char *host, uint32_t port, int32_t max_retries,
                               int64_t retry_delay_ms, int64_t connect_timeout_ms);
// The delay that an option stands for.
int64_t leati_socket_delay_ms(int64_t option_ms);
// "host:1234" or "[::1]:1234", for messages; of the environment's memory, NULL when there is none.
const char *leati_socket_label(leat_env *env, const char *host, uint32_t port);

#endif
