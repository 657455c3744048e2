// SPDX-License-Identifier: Apache-2.0
// What the `leat` program takes from the library's modules, which it loads when a verb needs them:
// so that `leat run` pays for neither nng nor an HTTP server.
//
// libleat-cluster: the daemons. libleat-client: HTTP to a job manager.
#ifndef LEATI_CLUSTER_MODULE_H
#define LEATI_CLUSTER_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config_layers.h"
#include "base/export.h"
#include "leat/error.h"
#include "leat/log.h"
#include "network/nng/auth.h"

// --- libleat-cluster ---

typedef struct leati_manager_options {
    const char *bind;       // host to listen on, "127.0.0.1"
    uint32_t port;          // of REST; 0: any
    uint32_t rpc_port;      // 0: any
    const char *folder;     // for artifacts and outputs; made if it is missing
    const char *state_file; // written once it listens, removed at the end; or NULL
    // A local cluster: so many workers are spawned (by exec of `program`) and started again when
    // they die.
    uint32_t local_workers, slots;
    const char *program;            // the leat program's own path
    const char *const *worker_args; // NULL-terminated: further arguments for them, "-D" and so on
    leati_config config;
    leat_logger logger;
    leati_auth_files auth; // how task managers and clients show that they may
    bool insecure;         // listen anywhere without that
} leati_manager_options;

typedef struct leati_worker_options {
    const char *manager;  // "host:port" of its RPC
    const char *bind;     // host to listen on for data
    uint32_t data_port;   // 0: any
    const char *folder;   // for the artifact cache and attempts; made if it is missing
    const char *log_path; // for people, or NULL
    uint32_t slots, index;
    leati_config config;
    leat_logger logger;
    leati_auth_files auth; // how it, the job manager and other task managers show that they may
    bool insecure;         // listen anywhere without that
} leati_worker_options;

// Both run until SIGTERM or SIGINT (blocked by the caller in all threads, taken by sigtimedwait or
// a signalfd here), and return 0 after an orderly end, else 1 with a sentence in `why`.
typedef struct leati_cluster_module {
    const char *version; // leat_version() of its build: must be the program's
    int (*manager)(const leati_manager_options *options, char *why, size_t why_size);
    int (*worker)(const leati_worker_options *options, char *why, size_t why_size);
} leati_cluster_module;
// The symbol of libleat-cluster.
LEATI_SHARED extern const leati_cluster_module leati_cluster_module_0;

#endif
