// SPDX-License-Identifier: Apache-2.0
// HTTP to a job manager, as the program uses it: requests, their JSON, and submitting a job.
//
// It is in a module of its own (libleat-client) that the program loads when a verb needs it; the
// program finds everything through the table at the end.
//
// Threading. A client belongs to one thread; only `interrupt` may be called by another one. Life
// cycle: open … close. Bounds: connecting takes at most LEATI_CLIENT_CONNECT_MS; an answer that
// stands still for LEATI_CLIENT_SILENCE_MS longer than was asked for is given up; a body has at
// most LEATI_CLIENT_BODY_MAX bytes.
#ifndef LEATI_CLUSTER_CLIENT_CLIENT_H
#define LEATI_CLUSTER_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "leat/env.h"
#include "network/nng/auth.h"

enum {
    LEATI_CLIENT_CONNECT_MS = 5000,
    LEATI_CLIENT_SILENCE_MS = 15000,
    LEATI_CLIENT_ROOM_MS = 20000,
    LEATI_CLIENT_BODY_MAX = 256 << 20,
    LEATI_CLIENT_ID_SIZE = 33,
    LEATI_CLIENT_DEFAULT_PORT = 8081,
};

typedef struct leati_client leati_client;
// A value of a JSON text. Parts live as long as the whole.
typedef struct leati_json leati_json;

typedef struct leati_client_answer {
    int status;       // of HTTP
    const char *body; // with a NUL behind it; the client's, until its next call
    size_t size;
    // From the headers of an output: where the body begins in all that was printed, where that
    // ends, and the job's state; 0 and "" elsewhere.
    uint64_t offset, end;
    char state[32];
} leati_client_answer;

typedef struct leati_client_pair {
    const char *key, *value;
} leati_client_pair;

// What a job is submitted with. All is borrowed for the call.
typedef struct leati_submission {
    leat_env *env;        // in which the job function has built its graph, and its cached files
    const char *job_file; // the shared object
    const char *name;     // what it is called over there: "wordcount.so"
    const char *argv0;    // as the user named it
    char *const *args;    // what follows argv[0]
    size_t arg_count;
    const leati_client_pair *settings;
    size_t setting_count;
    bool attached; // somebody waits and reads the output
    // Called just before the job is created: from then on an end has to be orderly. May be NULL.
    void (*committing)(void *user);
    // Whether nobody wants the job any more: asked while there is no room for it over there, which
    // is waited for. May be NULL.
    bool (*unwanted)(void *user);
    void *user;
} leati_submission;

typedef struct leati_client_module {
    const char *version; // leat_version() of its build: must be the program's

    // `address` is "HOST:PORT", or "HOST" for the usual port. Does not connect yet. LEAT_EINVAL
    // with a sentence in `why`, LEAT_ENOMEM.
    leat_err (*open)(const char *address, leati_client **client, char *why, size_t why_size);
    void (*close)(leati_client **client);
    // How it shows that it may, for all calls that follow. LEAT_EINVAL, LEAT_EIO, LEAT_ENOMEM;
    // `why` says more.
    leat_err (*secure)(leati_client *client, const leati_auth_files *files);
    // All calls that follow take so long at most, connecting included. For a question whose answer
    // is due at once.
    void (*hurry)(leati_client *client, int64_t most_ms);
    // Makes a call that waits, or else the next one that may wait, return LEAT_ECANCELLED. From
    // any thread while the client is open.
    void (*interrupt)(leati_client *client);
    // One request; `path` begins with a slash. What may take so long because it waits on purpose
    // says so in `wait_ms`, and can be interrupted. Answers of other statuses than 2xx are errors:
    // LEAT_ENOENT (404), LEAT_ESTATE (409), LEAT_ETOOBIG (413), LEAT_ENOBUFS (507), LEAT_EINVAL
    // (other 4xx), LEAT_EIO (other 5xx; and no answer at all). `why` says more.
    leat_err (*call)(leati_client *client, const char *method, const char *path, int64_t wait_ms,
                     leati_client_answer *answer);
    // What went wrong in the last call, a sentence.
    const char *(*why)(const leati_client *client);
    // Sends what the job manager lacks and creates the job. LEAT_EGRAPH: faults are recorded with
    // the environment; LEAT_ECANCELLED: it is unwanted; else `why` says what is wrong. Waits up to
    // LEATI_CLIENT_ROOM_MS for room for its files.
    leat_err (*submit)(leati_client *client, const leati_submission *submission,
                       char id[LEATI_CLIENT_ID_SIZE]);

    // NULL: no JSON.
    leati_json *(*parse)(const char *text, size_t size);
    void (*forget)(leati_json *whole);
    // The rest take NULL for a value that is not there, and give NULL, "" or 0 for what is not
    // there or of another type.
    const leati_json *(*member)(const leati_json *object, const char *name);
    const leati_json *(*item)(const leati_json *array, size_t index);
    size_t (*count)(const leati_json *array);
    const char *(*text)(const leati_json *value);
    int64_t (*integer)(const leati_json *value);
    double (*number)(const leati_json *value);
    bool (*truth)(const leati_json *value);
    // Writes it as JSON, in one line; `put` gets pieces and returns 0, or -1 to end it. Whether all
    // is written.
    bool (*print)(const leati_json *value, int (*put)(const char *text, size_t size, void *user),
                  void *user);
    // 'o', 'a', 's', 'i' (integer), 'f' (other number), 't', 'n', or 0 when it is not there.
    char (*kind)(const leati_json *value);
} leati_client_module;
// The symbol of libleat-client.
LEATI_SHARED extern const leati_client_module leati_client_module_0;

#endif
