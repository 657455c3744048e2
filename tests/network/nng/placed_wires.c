// SPDX-License-Identifier: Apache-2.0
// Jobs over several "processes" of this one, joined by the exchanges that task managers have, over
// loopback.
#include <stdio.h>
#include <stdlib.h>

#include "network/nng/exchange_impl.h"
#include "tests/runtime/placed.h"
#include "tests/stress/nng_races.h"

// The exchange's calls, but for the first, which fills in where the others listen.
typedef struct endpoint {
    leati_transport transport; // first
    fake_net *net;
    leati_transport *exchange;
} endpoint;

struct fake_net {
    uint32_t count;
    endpoint endpoints[PROCESSES_MOST];
};

static leat_err open_link(leati_transport *self, const leati_link_options *options,
                          leati_link **link)
{
    endpoint *from = (endpoint *)self;
    const char *addresses[PROCESSES_MOST];
    leati_link_options with = *options;
    for (uint32_t i = 0; i < from->net->count; i++)
        addresses[i] = leati_exchange_address(from->net->endpoints[i].exchange);
    with.addresses = addresses;
    return from->exchange->open(from->exchange, &with, link);
}

fake_net *fake_net_create(uint32_t processes, uint32_t segment_size)
{
    fake_net *net = calloc(1, sizeof *net);
    if (!net)
        abort();
    net->count = processes;
    for (uint32_t i = 0; i < processes; i++) {
        endpoint *to = &net->endpoints[i];
        char process[32], why[256];
        snprintf(process, sizeof process, "process %u", i);
        leati_exchange_options options = {
            .address = "tcp://127.0.0.1:0",
            .process = process,
            .segment_size = segment_size,
            .connect_timeout_ms = 20000,
        };
        if (leati_exchange_create(&options, &to->exchange, why, sizeof why)) {
            fprintf(stderr, "%s\n", why);
            abort();
        }
        to->transport = *to->exchange;
        to->transport.open = open_link;
        to->net = net;
    }
    return net;
}

void fake_net_destroy(fake_net *net)
{
    for (uint32_t i = 0; net && i < net->count; i++)
        leati_exchange_destroy(&net->endpoints[i].exchange);
    free(net);
}

leati_transport *fake_net_transport(fake_net *net, uint32_t process)
{
    return &net->endpoints[process].transport;
}

void fake_net_cut(fake_net *net, uint32_t process, const char *text)
{
    leati_exchange *exchange = (leati_exchange *)net->endpoints[process].exchange;
    pthread_mutex_lock(&exchange->lock);
    for (leati_wire *wire = exchange->wires; wire; wire = wire->next)
        if (!wire->over && atomic_load_explicit(&wire->peer, memory_order_acquire))
            leati_connection_close(wire->connection, LEAT_EPIPE, text);
    pthread_mutex_unlock(&exchange->lock);
}
