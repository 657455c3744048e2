// SPDX-License-Identifier: Apache-2.0
#include "operators/socket_options.h"

#include <stdio.h>
#include <string.h>

#include "leat/socket.h"

enum { DEFAULT_DELAY_MS = 500 };

const char *leati_socket_fault(const char *host, uint32_t port, int32_t max_retries,
                               int64_t retry_delay_ms, int64_t connect_timeout_ms)
{
    if (!host || !*host)
        return "there is no host";
    if (port < 1 || port > 65535)
        return "the port is not in 1 ... 65535";
    if (max_retries < 0 && max_retries != LEAT_RETRY_FOR_EVER)
        return "the number of retries is negative";
    if (retry_delay_ms < 0)
        return "the delay is negative";
    if (connect_timeout_ms < 0)
        return "the timeout is negative";
    return NULL;
}

int64_t leati_socket_delay_ms(int64_t option_ms)
{
    return option_ms ? option_ms : DEFAULT_DELAY_MS;
}

const char *leati_socket_label(leat_env *env, const char *host, uint32_t port)
{
    const char *form = strchr(host, ':') ? "[%s]:%u" : "%s:%u";
    size_t size = strlen(host) + sizeof "[]:65535";
    char *label = leat_env_alloc(env, size);
    if (label)
        snprintf(label, size, form, host, port);
    return label;
}
