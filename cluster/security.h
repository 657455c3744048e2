// SPDX-License-Identifier: Apache-2.0
// What job managers and task managers have in common to keep strangers out: where they may listen,
// what is not shown, and how much is logged of those who were refused.
#ifndef LEATI_CLUSTER_SECURITY_H
#define LEATI_CLUSTER_SECURITY_H

#include <pthread.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "leat/log.h"
#include "network/nng/auth.h"

// Whether a process may listen there. Elsewhere than on this machine's own addresses it needs a
// secret or certificates, or to be told that it is wanted without (`insecure`), which is logged.
// LEAT_EINVAL with a sentence.
LEAT_MUST_USE leat_err leati_may_listen(const char *host, const leati_auth *auth, bool insecure,
                                        const leat_logger *logger, char *why, size_t why_size);

// --- what is not shown ---

// Whether the value that goes by this name is nobody's business: a password, a token.
bool leati_is_secret_name(const char *name, size_t size);
// What to show of the arguments of a job, one after the other: those that hold something secret
// ("--password=…", or the one behind "--password") become "***". `*follows` is false before the
// first, and tells the call for the next one what the last has found.
void leati_mask_argument(const char *text, size_t size, bool *follows, leati_strbuf *to);

// --- refusals ---

// Which hosts were refused of late, so that each is logged once a minute for each scheme ("tcp",
// "http"). Any thread.
enum { LEATI_REFUSALS = 64 };
typedef struct leati_refusals {
    pthread_mutex_t lock;
    // Under the lock.
    struct {
        char host[64];
        int64_t since_ns;
        uint32_t count; // of those that were not logged since
    } items[LEATI_REFUSALS];
} leati_refusals;

void leati_refusals_init(leati_refusals *refusals);
void leati_refusals_fini(leati_refusals *refusals);
// Whether to log one of that peer ("tcp://host:port …", "host:port", "host"); `*more` gets how many
// of it were not logged before.
bool leati_refusals_take(leati_refusals *refusals, const char *peer, int64_t now_ns,
                         uint32_t *more);

#endif
