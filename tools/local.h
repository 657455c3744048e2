// SPDX-License-Identifier: Apache-2.0
// The clusters that `leat cluster start` has started on this machine: where each keeps its files,
// and which processes belong to it.
#ifndef LEATI_TOOLS_LOCAL_H
#define LEATI_TOOLS_LOCAL_H

#include "tools/module.h"
#include "tools/options.h"

// A process is known by its id and the moment it was started at, since ids are used again.
typedef struct leati_process {
    int64_t pid, start_ticks;
} leati_process;

typedef struct leati_local {
    const char *name;             // borrowed
    char *folder, *state_file;    // absolute
    bool known;                   // there is a state file; what follows is from it
    bool damaged;                 // but nobody can read it
    char rest[160], rpc[160];     // "host:port"
    leati_process manager;        // its job manager
    int64_t task_managers, slots; // how many, and slots of each
    leati_process *workers;       // those that run
    size_t worker_count;
    // How to show that one may: secret, certificate, key, authority; NULL where there is none.
    char *auth[4];
} leati_local;

// Finds out which cluster is meant (--cluster, $LEAT_CLUSTER, "default") and reads its state. The
// user has been told why when the result is not LEATI_EXIT_OK. Call fini in both cases.
leati_exit leati_local_read(leati_local *local, const leati_options *options,
                            const leati_client_module *client);
// Whether there is a folder in which such a cluster would have its state; nobody is told anything.
bool leati_local_has_place(const leati_options *options);
// Tells the user if XDG_STATE_HOME is none, as it is passed over. Once for each call of the
// program.
void leati_local_warn(void);
void leati_local_fini(leati_local *local);
// The files of `auth`; those that the user has given with this call win. Borrows.
leati_auth_files leati_local_auth(const leati_local *local, const leati_options *options);

// Whether that very process runs; one that has ended and waits for its parent does not.
bool leati_process_lives(leati_process process);
// The moment at which a process was started, or 0 when there is none.
int64_t leati_process_ticks(int64_t pid);
// Asks it to end, and after `patience_ms` makes it. Returns once it has ended. False: it could not
// be ended; errno says why.
bool leati_process_end(leati_process process, int64_t patience_ms);

// Removes a file, or a folder with all that is in it. 0 or an errno; nothing there is no error.
int leati_remove_tree(const char *path);

#endif
